"""Location and scale of one column: quartiles by the exponential mechanism against a released density.

    python benchmarks/private_scale.py            # about a minute
    python benchmarks/private_scale.py --quick    # one column, ten runs, nothing written

Columns of unit scale in a box from -10 to 10, at the same epsilon. `quantiles` is `PrivateScaler`; `surface`
takes the quartiles from the mass of a one-dimensional release at the default bandwidth. Root mean squared
errors of the median and of the quartiles' distance / 1.349, against the rows' own, with standard errors.
Rows go to benchmarks/results/private_scale.csv. Nothing was tuned on these columns.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from result_files import write_rows
from simulated_release import simulated_surface

from pydpmode import PrivateScaler
from pydpmode.errors import LowSignal

FloatArray = NDArray[np.float64]

REPORTING_SEED = 610_000
RUNS, QUICK_RUNS = 40, 10
DELTA = 1e-6
LOW, HIGH = -10.0, 10.0
CELLS = [(1000, 0.1), (1000, 0.5), (10_000, 0.1), (10_000, 0.5)]
RESULTS = Path(__file__).parent / "results" / "private_scale.csv"


def column(name: str, n: int, seed: int) -> FloatArray:
    """Return n values of one kind."""
    random = np.random.default_rng(seed)
    if name == "gamma":
        return np.asarray(random.gamma(2.0, 1 / np.sqrt(2.0), n))
    return np.asarray(random.standard_normal(n))


def by_quantiles(x: FloatArray, epsilon: float, seed: int) -> tuple[float, float]:
    """Return location and scale by `PrivateScaler`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignal)
        found = PrivateScaler(x[:, None], bounds=[(LOW, HIGH)]).fit(epsilon, DELTA, seed=seed)
    return float(found.location[0]), float(found.scale[0])


def by_surface(x: FloatArray, epsilon: float, seed: int) -> tuple[float, float]:
    """Return the same from the mass below each point of a released density."""
    surface = simulated_surface(x, LOW, HIGH, epsilon, DELTA, seed)
    grid = np.linspace(LOW, HIGH, 2001)
    below = np.maximum.accumulate(np.cumsum(surface.density(grid[:, None])))
    quartiles = np.interp([0.25, 0.5, 0.75], below / below[-1], grid)
    return float(quartiles[1]), float((quartiles[2] - quartiles[0]) / 1.349)


METHODS = {"quantiles": by_quantiles, "surface": by_surface}


def cell(kind: str, n: int, epsilon: float, runs: int) -> list[dict[str, object]]:
    """Run both methods on the same columns."""
    errors: dict[str, list[FloatArray]] = {name: [] for name in METHODS}
    for run in range(runs):
        x = column(kind, n, REPORTING_SEED + run)
        low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
        truth = np.array([middle, (high - low) / 1.349])
        for name, method in METHODS.items():
            errors[name].append((np.array(method(x, epsilon, REPORTING_SEED + run)) - truth) ** 2)
    out: list[dict[str, object]] = []
    for name, squared in errors.items():
        mean = np.mean(squared, axis=0)
        spread = np.std(squared, axis=0, ddof=1) / np.sqrt(runs) / (2 * np.sqrt(mean))
        row: dict[str, object] = {"column": kind, "n": n, "epsilon": epsilon, "method": name, "runs": runs}
        for k, what in enumerate(("location", "scale")):
            row[what], row[f"{what}_se"] = f"{np.sqrt(mean[k]):.4f}", f"{spread[k]:.4f}"
        out.append(row)
    return out


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one column, ten runs, nothing written")
    options = parser.parse_args()
    rows = []
    for kind in ("normal",) if options.quick else ("normal", "gamma"):
        for n, epsilon in CELLS:
            for row in cell(kind, n, epsilon, QUICK_RUNS if options.quick else RUNS):
                rows.append(row)
                print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if options.quick:
        return
    write_rows(RESULTS, rows)


if __name__ == "__main__":
    main()
