"""Order-4 against order-2 kernels, and how the error falls with n and epsilon beside the paper's rates.

    python benchmarks/rates.py            # about fifteen minutes
    python benchmarks/rates.py --quick    # two cells, five runs, nothing written

Writes benchmarks/results/kernel_orders.csv, benchmarks/results/rates.csv and docs/rates.png.

Kernel orders: releases designed for order 2 and for order 4 at the public rule's bandwidth and at 1.3 and
1.6 times it, modes read without and with refinement. Errors are root mean squared distances to the true
modes over the modes found; `exact` is the share of runs with the right number of modes.

Rates: mean squared error of refined modes, and of the surface's own maxima, on four Gaussians and
on the skewed density, the bandwidth by the public rule. Reference slopes are those of the paper's
Theorem 4.5 for smoothness 3 in two dimensions, logarithms left out: `n^(-1/2)` where sampling dominates and
`(n epsilon)^(-4/5)` where privacy does.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from limit import squared_errors
from numpy.typing import NDArray
from simulated_release import simulated_surface
from study_densities import DENSITIES, StudyDensity

from pydpmode.numerics.bandwidth import choose_bandwidth
from pydpmode.numerics.mode_seeking import find_modes

FloatArray = NDArray[np.float64]

SEED = 500_000
DELTA = 1e-6
RUNS = 30
ORDER_NAMES = ("four_gaussians", "five_t", "unequal_scales", "skewed", "gamma_2d", "gamma", "bimodal")
ORDER_CELLS = ((1000, 1.0), (5000, 0.5), (5000, 5.0), (50_000, 1.0))
FACTORS = (1.0, 1.3, 1.6)
RATE_NAMES = ("four_gaussians", "skewed")
SIZES = (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
FIXED_EPSILON, FIXED_N = 1.0, 10_000
STYLES = (("True", "o-", "refined (default)"), ("False", "s--", "surface maxima"))
HERE = Path(__file__).parent
ORDERS_TABLE, RATES_TABLE = HERE / "results" / "kernel_orders.csv", HERE / "results" / "rates.csv"
FIGURE = HERE.parent / "docs" / "rates.png"


def public_bandwidth(density: StudyDensity, n: int, epsilon: float) -> FloatArray:
    """Return the bandwidth of the public rule."""
    d = density.dimension
    return choose_bandwidth(
        "reference",
        columns=[f"x{i + 1}" for i in range(d)],
        lower=np.full(d, density.lower),
        upper=np.full(d, density.upper),
        n=n,
        epsilon=epsilon,
    ).values


def errors(
    density: StudyDensity, n: int, epsilon: float, *, order: int, factor: float, refine: bool, runs: int
) -> tuple[FloatArray, float, float]:
    """Return squared errors of the modes found, their share of all, and the share of exact counts."""
    h = public_bandwidth(density, n, epsilon)
    found: list[float] = []
    exact = 0
    for run in range(runs):
        x = density.sample(n, SEED + run)
        surface = simulated_surface(
            x, density.lower, density.upper, epsilon, DELTA, SEED + run, bandwidth=factor * h, order=order
        )
        modes = find_modes(surface, refine=refine).locations
        found += squared_errors(modes, density, 2 * float(h.max()))
        exact += len(modes) == len(density.modes)
    return np.array(found), len(found) / (runs * len(density.modes)), exact / runs


def kernel_orders(runs: int, cells: tuple[tuple[int, float], ...]) -> list[dict[str, float | str]]:
    """Compare the orders."""
    rows: list[dict[str, float | str]] = []
    for name in ORDER_NAMES:
        for n, epsilon in cells:
            for order, factor, refine in (
                *((2, f, False) for f in FACTORS[:2]),
                (2, 1.0, True),
                *((4, f, False) for f in FACTORS),
                (4, 1.3, True),
            ):
                squared, found, exact = errors(
                    DENSITIES[name], n, epsilon, order=order, factor=factor, refine=refine, runs=runs
                )
                rows.append(
                    {
                        "density": name,
                        "n": n,
                        "epsilon": epsilon,
                        "order": order,
                        "bandwidth_factor": factor,
                        "refined": str(refine),
                        "runs": runs,
                        "found": found,
                        "exact": exact,
                        "rmse": float(np.sqrt(squared.mean())) if squared.size else float("nan"),
                    }
                )
                print(*rows[-1].values(), flush=True)
    return rows


def rates(runs: int) -> list[dict[str, float | str]]:
    """Follow the error in n at one epsilon, and in epsilon at one n."""
    rows: list[dict[str, float | str]] = []
    plan = [("n", n, FIXED_EPSILON) for n in SIZES] + [("epsilon", FIXED_N, e) for e in EPSILONS]
    for name in RATE_NAMES:
        for along, n, epsilon in plan:
            for refine in (True, False):
                squared, found, _ = errors(
                    DENSITIES[name], n, epsilon, order=2, factor=1.0, refine=refine, runs=runs
                )
                rows.append(
                    {
                        "density": name,
                        "along": along,
                        "n": n,
                        "epsilon": epsilon,
                        "refined": str(refine),
                        "found": found,
                        "mse": float(squared.mean()) if squared.size else float("nan"),
                        "mse_se": float(squared.std() / np.sqrt(max(squared.size, 1))),
                    }
                )
                print(*rows[-1].values(), flush=True)
    return rows


def slope(x: list[float], y: list[float]) -> float:
    """Return the least-squares slope in logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def draw(rows: Sequence[Mapping[str, float | str]]) -> None:
    """Draw error against n and epsilon with the reference slopes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(9.5, 7.5), layout="constrained")
    for i, name in enumerate(RATE_NAMES):
        for j, along in enumerate(("n", "epsilon")):
            ax = panels[i, j]
            for refined, style, label in (
                ("True", "o-", "refined (default)"),
                ("False", "s--", "surface maxima"),
            ):
                part = [r for r in rows if (r["density"], r["along"], r["refined"]) == (name, along, refined)]
                x, y = [float(r[along]) for r in part], [float(r["mse"]) for r in part]
                bars = [1.96 * float(r["mse_se"]) for r in part]
                if along == "n":
                    label += f", slope {slope(x, y):.2f}"
                ax.errorbar(x, y, yerr=bars, fmt=style, capsize=2, label=label)
                if refined == "False":
                    start = y[0]
            grid = np.array([x[0], x[-1]])
            references = [(-0.8, "privacy, -4/5"), *([(-0.5, "sampling, -1/2")] if along == "n" else [])]
            for power, label in references:
                ax.plot(grid, start * (grid / grid[0]) ** power, ":", color="0.4")
                ax.annotate(
                    label,
                    (grid[-1], start * (grid[-1] / grid[0]) ** power),
                    (-2, 9),
                    textcoords="offset points",
                    ha="right",
                    color="0.3",
                    fontsize=8,
                )
            ax.set(xscale="log", yscale="log", ylabel="mean squared error")
            fixed = f"epsilon = {FIXED_EPSILON:g}" if along == "n" else f"n = {FIXED_N:,}"
            ax.set_xlabel(f"{along}  ({fixed})")
            ax.set_title(name.replace("_", " "))
            ax.legend(fontsize=8, loc="lower left")
    figure.suptitle("Error of released modes; dotted: the paper's rates (Theorem 4.5, smoothness 3, d = 2)")
    figure.savefig(FIGURE, dpi=110)


def write(path: Path, rows: list[dict[str, float | str]]) -> None:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


def main() -> None:
    """Run both studies."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few cells with five runs; nothing is written")
    parser.add_argument("--only", choices=("orders", "rates", "figure"), help="one part")
    options = parser.parse_args()
    if options.quick:
        kernel_orders(5, ORDER_CELLS[:1])
        return
    if options.only in (None, "orders"):
        write(ORDERS_TABLE, kernel_orders(RUNS, ORDER_CELLS))
    if options.only in (None, "rates"):
        write(RATES_TABLE, rates(RUNS))
    if options.only != "orders":
        with RATES_TABLE.open(encoding="utf-8") as file:
            draw(list(csv.DictReader(file)))


if __name__ == "__main__":
    main()
