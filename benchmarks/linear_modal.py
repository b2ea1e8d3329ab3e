"""Linear modal regression from one private release, beside least squares and the non-private modal line.

    python benchmarks/linear_modal.py            # some minutes; writes results/linear_modal.csv
    python benchmarks/linear_modal.py --quick    # four cells, ten runs, nothing written
    python benchmarks/linear_modal.py --tuning   # the seeds that rules were set on, nothing written

The modal line is y = 1 + 2 x, x uniform on (-2, 2); public box (-2.5, 2.5) by (-12, 12); replacing one
record, delta = 1e-5. Errors:

t3            Student t with three degrees of freedom: heavy tails, mean line = modal line
gamma         G - 1, G gamma of shape 2: the mean line is 2 + 2 x
skewed        (1 + .3 x)(G - 1), the same with a scale that grows: the mean line is 2 + 2.3 x
contaminated  normal of sd .7; a fifth of the rows lie in a cloud below the upper end of the line

Methods: `private` (`fit_linear_modes` on a release at the bandwidths of modal regression), `plain` (the same
on a kernel surface without noise, at the bandwidths for no noise) and `ols`, which is not private either.
Coverage is that of the 95% interval for the true modal line, smoothing bias included. `unsmoothed`: share of
runs whose intercept is the mode of the error density with the smoothing taken off.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from accuracy import TUNING_SEED
from simulated_release import simulated_surface

from pydpmode import KernelSurface
from pydpmode.numerics.linear_modal import LinearModalFit, fit_linear_modes
from pydpmode.numerics.surfaces import FloatArray
from pydpmode.privacy.gaussian import unit_noise_scale

DESIGNS = ("t3", "gamma", "skewed", "contaminated")
SIZES, EPSILONS, DELTA = (1000, 5000, 20_000), (0.5, 1.0, 5.0), 1e-5
TRUE = np.array([1.0, 2.0])
LOWER, UPPER = np.array([-2.5, -12.0]), np.array([2.5, 12.0])
RUNS = 20
# Not accuracy.py's: those had been seen while two constants of the fit were set. Used for this table alone.
REPORTING_SEED = 400_000
OUTPUT = Path(__file__).parent / "results" / "linear_modal.csv"


def sample(design: str, n: int, seed: int) -> FloatArray:
    """Draw (x, y), (n, 2)."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2, 2, n)
    if design == "t3":
        error = generator.standard_t(3, n)
    elif design in ("gamma", "skewed"):
        scale = 1 + 0.3 * x if design == "skewed" else 1.0
        error = scale * (generator.gamma(2.0, 1.0, n) - 1)
    else:
        error = 0.7 * generator.standard_normal(n)
    y = TRUE[0] + TRUE[1] * x + error
    if design == "contaminated":
        away = generator.uniform(size=n) < 0.2
        x = np.where(away, generator.uniform(1, 2, n), x)
        y = np.where(away, generator.uniform(-10, -4, n), y)
    return np.column_stack([x, y])


def bandwidths(noise_units: float, n: int) -> FloatArray:
    """Return the rule of modal regression: `noise_units` records make one standard deviation of noise."""
    effective = (noise_units**-2 + (1.4 / n) ** 2) ** -0.5
    shares = [min(0.5, 0.8 * effective**-0.5), min(max(0.18 * effective**-0.2, 0.02), 0.2)]
    return np.array(shares) * (UPPER - LOWER)


def private_fit(rows: FloatArray, epsilon: float, seed: int) -> LinearModalFit:
    """Fit on a simulated release."""
    n = rows.shape[0]
    h = bandwidths(n / (math.sqrt(2) * unit_noise_scale(epsilon, DELTA)), n)
    released = simulated_surface(rows, LOWER, UPPER, epsilon, DELTA, seed, bandwidth=h)
    return fit_linear_modes(released.surface, 1)


def plain_fit(rows: FloatArray) -> LinearModalFit:
    """Fit on the kernel surface of the rows themselves."""
    h = bandwidths(math.inf, rows.shape[0])
    return fit_linear_modes(KernelSurface.from_points(rows, h, LOWER, UPPER), 1)


def least_squares(rows: FloatArray) -> FloatArray:
    """Return intercept and slope of least squares."""
    design = np.column_stack([np.ones(rows.shape[0]), rows[:, 0]])
    return np.asarray(np.linalg.lstsq(design, rows[:, 1], rcond=None)[0])


def describe(estimates: list[FloatArray], fits: list[LinearModalFit]) -> dict[str, str]:
    """Return root mean squared errors with standard errors, and coverage where there are intervals."""
    out = {}
    squared = np.square(np.array(estimates) - TRUE)
    for a, name in enumerate(("intercept", "slope")):
        root = math.sqrt(float(squared[:, a].mean()))
        spread = float(squared[:, a].std(ddof=1)) / math.sqrt(len(estimates)) / (2 * root)
        inside = [bool(abs(f.coefficients[a] - TRUE[a]) <= 1.96 * f.standard_errors[a]) for f in fits]
        told = [float(f.standard_errors[a]) for f in fits if f.converged]
        out |= {f"rmse_{name}": f"{root:.4g}", f"rmse_{name}_se": f"{spread:.2g}"}
        out |= {
            f"coverage_{name}": f"{np.mean(inside):.3f}" if fits else "",
            f"median_se_{name}": f"{np.median(told):.4g}" if told else "",
        }
    return out | {
        "converged": f"{np.mean([f.converged for f in fits]):.3f}" if fits else "",
        "unsmoothed": f"{np.mean([f.unsmoothed for f in fits]):.3f}" if fits else "",
    }


def cell(design: str, n: int, runs: int, seed: int, epsilons: tuple[float, ...]) -> list[dict[str, object]]:
    """Run one design at one n, for every epsilon from the same rows."""
    tables = [sample(design, n, seed + run) for run in range(runs)]
    common = {"design": design, "n": n, "runs": runs}
    rows: list[dict[str, object]] = [
        {**common, "method": "ols", "epsilon": "", **describe([least_squares(t) for t in tables], [])}
    ]
    plain = [plain_fit(t) for t in tables]
    told = describe([f.coefficients for f in plain], plain)
    rows.append({**common, "method": "plain", "epsilon": "", **told})
    for epsilon in epsilons:
        fits = [private_fit(t, epsilon, seed + run) for run, t in enumerate(tables)]
        told = describe([f.coefficients for f in fits], fits)
        rows.append({**common, "method": "private", "epsilon": epsilon, **told})
    return rows


def main() -> None:
    """Run the study and write its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four cells with ten runs; nothing is written")
    parser.add_argument("--tuning", action="store_true", help="the tuning seeds; nothing is written")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    seed = TUNING_SEED if options.tuning else REPORTING_SEED
    runs = 10 if options.quick else options.runs
    rows: list[dict[str, object]] = []
    for design in DESIGNS:
        for n in (5000,) if options.quick else SIZES:
            start = time.perf_counter()
            new = cell(design, n, runs, seed, (1.0,) if options.quick else EPSILONS)
            rows += new
            for r in new:
                print(*r.values(), flush=True)
            print(f"[{time.perf_counter() - start:.0f} s]", flush=True)
    if options.quick or options.tuning:
        return
    with OUTPUT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
