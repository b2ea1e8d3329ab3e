"""How accurate released modes are: the paper's Tables 2 and 3, and densities that are not Gaussian.

Number of modes not given, a ladder of bandwidths as by default, delta = 1e-6, replacing one record. Beside
the modes that `find_modes` reports stand the surface's own maxima (`refine=False`) of the same releases.

    python benchmarks/accuracy.py            # about four minutes
    python benchmarks/accuracy.py --quick    # a few cells, five runs, nothing written
    python benchmarks/accuracy.py --tuning   # seeds that constants were set on, nothing written

Rows go to benchmarks/results/accuracy.csv. `mse` is equation (14) of the paper, which is kind to missing
modes; `charged` is the same with a quarter of the squared distance between the nearest true modes charged
for every missing or extra one. `missed` and `false`: shares of true and of reported modes without a partner
within half that distance. Standard errors are over runs.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from simulated_release import reported_modes, simulated_surface
from study_densities import DENSITIES, StudyDensity

from pydpmode.numerics.evaluation import false_modes, missed_modes, mode_mse
from pydpmode.numerics.mode_seeking import find_modes
from pydpmode.numerics.mode_set import ModeSet

FloatArray = NDArray[np.float64]

TUNING_SEED, REPORTING_SEED = 70_000, 200_000
DELTA = 1e-6
RUNS = 20
SIZES = (700, 1000, 2000, 5000)
EPSILONS = (0.1, 0.25, 0.5, 1.0, 5.0)
PAPER = ("four_gaussians", "five_t")
OTHERS = (
    "unequal_weights",
    "unequal_scales",
    "skewed",
    "heavy_tails",
    "banana",
    "gamma_2d",
    "gamma",
    "bimodal",
)
OTHER_CELLS = ((1000, 1.0), (1000, 5.0), (5000, 0.5), (5000, 5.0), (50_000, 1.0))
QUICK = {"four_gaussians": ((1000, 1.0), (5000, 0.5)), "skewed": ((5000, 5.0),), "gamma": ((5000, 5.0),)}
HERE = Path(__file__).parent
RESULTS = HERE / "results" / "accuracy.csv"


def paper_figures() -> dict[tuple[str, int, float], float]:
    """Return the paper's mean squared errors by density, n and epsilon."""
    with (HERE / "paper" / "modes.csv").open(encoding="utf-8") as file:
        return {
            (r["density"], int(r["n"]), float(r["epsilon"])): float(r["mse"]) for r in csv.DictReader(file)
        }


def separation(density: StudyDensity) -> float:
    """Return the least distance between true modes; for one mode, a third of the box."""
    modes = density.modes
    if len(modes) == 1:
        return (density.upper - density.lower) / 3
    apart = np.linalg.norm(modes[:, None] - modes[None, :], axis=2)
    return float(apart[np.triu_indices(len(modes), 1)].min())


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Return mean and standard error over runs, runs without a value left out."""
    array = np.array(values)[~np.isnan(values)]
    if array.size == 0:
        return float("nan"), float("nan")
    error = array.std(ddof=1) / np.sqrt(array.size) if array.size > 1 else float("nan")
    return float(array.mean()), float(error)


def describe(sets: list[ModeSet], density: StudyDensity) -> dict[str, float]:
    """Summarise the modes of several runs."""
    radius = separation(density) / 2
    found = [s.locations for s in sets]
    k = len(density.modes)
    mse, error = mean_and_error([mode_mse(x, density.modes) for x in found])
    charged, charged_error = mean_and_error([mode_mse(x, density.modes, charge=radius**2) for x in found])
    reported = sum(len(x) for x in found)
    return {
        "mse": mse,
        "mse_se": error,
        "charged": charged,
        "charged_se": charged_error,
        "exact": float(np.mean([len(x) == k for x in found])),
        "missed": sum(missed_modes(x, density.modes, radius=radius) for x in found) / (k * len(found)),
        "false": sum(false_modes(x, density.modes, radius=radius) for x in found) / max(reported, 1),
    }


def cell(density: StudyDensity, n: int, epsilon: float, runs: int, seed: int) -> dict[str, float | str]:
    """Run one density at one n and epsilon."""
    refined, plain, bandwidths, seconds = [], [], [], 0.0
    for run in range(runs):
        x = density.sample(n, seed + run)
        surface = simulated_surface(x, density.lower, density.upper, epsilon, DELTA, seed + run)
        start = time.perf_counter()
        reading, modes = reported_modes(surface)
        seconds += time.perf_counter() - start
        refined.append(modes)
        bandwidths.append(float(reading.surface.bandwidth[0]))
        plain.append(find_modes(reading.surface, look=reading.look, refine=False))
    ours, theirs = describe(refined, density), describe(plain, density)
    return {
        "density": density.name,
        "n": n,
        "epsilon": epsilon,
        "runs": runs,
        "bandwidth": float(np.median(bandwidths)),
        **ours,
        "surface_mse": theirs["mse"],
        "surface_mse_se": theirs["mse_se"],
        "surface_charged": theirs["charged"],
        "milliseconds": 1000 * seconds / runs,
    }


def main() -> None:
    """Run the study and write its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few cells with five runs; nothing is written")
    parser.add_argument("--tuning", action="store_true", help="the tuning seeds; nothing is written")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    runs = 5 if options.quick else options.runs
    seed = TUNING_SEED if options.tuning else REPORTING_SEED
    plan = {name: [(n, e) for n in SIZES for e in EPSILONS] for name in PAPER}
    plan |= {name: list(OTHER_CELLS) for name in OTHERS}
    if options.quick:
        plan = {name: list(cells) for name, cells in QUICK.items()}
    paper = paper_figures()
    rows = []
    for name, cells in plan.items():
        for n, epsilon in cells:
            row = cell(DENSITIES[name], n, epsilon, runs, seed)
            figure = paper.get((name, n, epsilon))
            row["paper_mse"] = "" if figure is None else figure
            row["ratio_to_paper"] = "" if figure is None else float(row["mse"]) / figure
            row["ratio_to_surface"] = float(row["mse"]) / float(row["surface_mse"])
            rows.append(row)
            print(
                f"{name:16s} {n:6d} {epsilon:5} mse {row['mse']:.4f} ({row['mse_se']:.4f}) "
                f"surface {row['surface_mse']:.4f} ratio {row['ratio_to_surface']:.2f} "
                f"of the paper's {float(row['mse']) / (figure or float('nan')):.2f} "
                f"exact {row['exact']:.2f} missed {row['missed']:.2f} false {row['false']:.2f} "
                f"{row['milliseconds']:.0f} ms",
                flush=True,
            )
    if options.quick or options.tuning:
        return
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
