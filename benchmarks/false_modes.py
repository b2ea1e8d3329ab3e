"""How often data with one mode are said to have more: the false-mode rate at the default.

Normal, t5, gamma and uniform data and an exponential piled at a bound, every coordinate the same, drawn
inside the box (what clipping would pile on its faces would be modes of the clipped data). Sizes from
next to nothing to 50,000, epsilon from .1 to 5, one to three dimensions. Wanted: at most .05 in every cell.

    python benchmarks/false_modes.py            # about forty minutes
    python benchmarks/false_modes.py --quick    # few runs of few cells, nothing written

Rows go to benchmarks/results/false_modes.csv. `more_than_one`: share of runs that report two modes or more.
`any_significant`: share with any mode that is said to be told from noise, which among 20 records is
rarely so. `low`, `high`: 95% Clopper-Pearson interval of `more_than_one`. `beyond_chance`: whether so many
runs or more would come with a probability below .05 / cells if the rate were .05. Dimensions may be run one
by one (`--dimensions 2`): rows of the others stay.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from simulated_release import reported_modes, simulated_surface

FloatArray = NDArray[np.float64]
# The thresholds were simulated on pure noise (joint_thresholds.py), never tuned on these densities.
REPORTING_SEED = 610_000
DELTA, RATE = 1e-6, 0.05
DENSITIES: dict[str, tuple[Any, float, float]] = {
    "normal": (stats.norm(), -4.0, 4.0),
    "t5": (stats.t(5), -7.0, 7.0),
    "gamma": (stats.gamma(3), 0.0, 12.0),
    "uniform": (stats.uniform(), 0.0, 1.0),
    "exponential": (stats.expon(), 0.0, 8.0),
}
SIZES = (20, 700, 5000, 50_000)
EPSILONS = (0.1, 1.0, 5.0)
RUNS = {1: 25, 2: 15, 3: 10}
FIELDS = (
    "density",
    "dimension",
    "n",
    "epsilon",
    "bandwidth",
    "runs",
    "more_than_one",
    "standard_error",
    "low",
    "high",
    "any_significant",
    "beyond_chance",
    "seed",
)
RESULTS = Path(__file__).parent / "results" / "false_modes.csv"


def rows_inside(name: str, n: int, dimension: int, seed: list[int]) -> FloatArray:
    """Return n rows of independent coordinates, drawn inside the box."""
    law, low, high = DENSITIES[name]
    share = np.random.default_rng(seed).uniform(size=(n, dimension))
    inside = law.cdf(low) + share * (law.cdf(high) - law.cdf(low))
    return np.clip(law.ppf(inside), low, high)


def counts(
    name: str, dimension: int, n: int, epsilon: float, bandwidth: str, runs: int, seed: int
) -> Iterator[tuple[int, int]]:
    """Yield the number of modes, and of significant ones, of each run."""
    _, low, high = DENSITIES[name]
    for run in range(runs):
        stream = [seed, list(DENSITIES).index(name), dimension, n, int(100 * epsilon), run]
        x = rows_inside(name, n, dimension, stream)
        noise = int(np.random.default_rng([*stream, 1]).integers(2**31))
        surface = simulated_surface(x, low, high, epsilon, DELTA, noise, bandwidth=bandwidth)
        modes = reported_modes(surface, refine=False)[1]
        yield modes.count, int(modes.significant.sum())


def write(table: list[dict[str, object]]) -> None:
    """Write the rows, beside those of other dimensions that are there."""
    done = {str(row["dimension"]) for row in table}
    if RESULTS.exists():
        with RESULTS.open() as stream:
            others = [dict(r) for r in csv.DictReader(stream) if r["dimension"] not in done]
        table = [*others, *table]
    with RESULTS.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(table, key=lambda row: str(row["dimension"])))


def main() -> None:
    """Simulate, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--bandwidth", default="ladder", help="rule (default: the package's default)")
    parser.add_argument("--dimensions", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--seed", type=int, default=REPORTING_SEED)
    arguments = parser.parse_args()
    sizes, epsilons = ((700,), (1.0,)) if arguments.quick else (SIZES, EPSILONS)
    cells = list(itertools.product(arguments.dimensions, DENSITIES, sizes, epsilons))
    table: list[dict[str, object]] = []
    for dimension, name, n, epsilon in cells:
        if n == SIZES[0] and epsilon != EPSILONS[1] and not arguments.quick:
            continue
        start, runs = time.perf_counter(), 10 if arguments.quick else RUNS[dimension]
        found = np.array(list(counts(name, dimension, n, epsilon, arguments.bandwidth, runs, arguments.seed)))
        several = int((found[:, 0] > 1).sum())
        interval = stats.binomtest(several, runs).proportion_ci(method="exact")
        beyond = bool(stats.binom.sf(several - 1, runs, RATE) < 0.05 / len(cells))
        rate = several / runs
        figures = {
            "density": name,
            "dimension": dimension,
            "n": n,
            "epsilon": epsilon,
            "bandwidth": arguments.bandwidth,
            "runs": runs,
            "more_than_one": round(rate, 4),
            "standard_error": round(float(np.sqrt(rate * (1 - rate) / runs)), 4),
            "low": round(interval.low, 4),
            "high": round(interval.high, 4),
            "any_significant": round(float((found[:, 1] > 0).mean()), 4),
            "beyond_chance": beyond,
            "seed": arguments.seed,
        }
        table.append(figures)
        seconds = (time.perf_counter() - start) / runs
        print(
            f"d={dimension} {name:12s} n={n:6d} eps={epsilon:<4g} more than one {rate:.3f} "
            f"[{interval.low:.3f}, {interval.high:.3f}] significant {figures['any_significant']:.2f} "
            f"{'BEYOND CHANCE ' if beyond else ''}({seconds:.2f} s a run)",
            flush=True,
        )
    for dimension in arguments.dimensions:
        rates = [float(str(r["more_than_one"])) for r in table if r["dimension"] == dimension]
        print(f"d={dimension}: mean {np.mean(rates):.4f}, largest {max(rates):.3f}")
    if not arguments.quick:
        write(table)


if __name__ == "__main__":
    main()
