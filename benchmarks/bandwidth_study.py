"""Which bandwidth rule finds the modes best: one public bandwidth, a ladder of them, or private quartiles.

Thirteen densities in one to three dimensions, in a box that fits and in one twice as wide, n = 700..50,000,
epsilon = .1..5, delta = 1e-6, replacing one record, number of modes not given. All rules see the same rows.

    python benchmarks/bandwidth_study.py            # about half an hour
    python benchmarks/bandwidth_study.py --quick    # few cells, three runs, nothing written
    python benchmarks/bandwidth_study.py --tuning   # seeds that constants were set on, nothing written

Rows go to benchmarks/results/bandwidth_study.csv. `error`: root mean squared distance between matched true
and reported modes, over the separation of the true ones; `charged`: the same, with half that separation for
each missing or extra mode. `exact`: share of runs with the right number of modes; `missed`, `false`: true
and reported modes a run without a partner within half the separation. Standard errors (`_se`) are over runs.
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
from accuracy import separation
from numpy.typing import NDArray
from simulated_release import reported_modes, simulated_surface
from study_densities import DENSITIES, StudyDensity

from pydpmode.numerics.evaluation import false_modes, missed_modes, mode_mse

FloatArray = NDArray[np.float64]
TUNING_SEED, REPORTING_SEED = 80_000, 430_000
DELTA = 1e-6
RULES = ("reference", "private", "ladder")
SIZES = (700, 5000, 50_000)
EPSILONS = (0.1, 1.0, 5.0)
BOXES = (1.0, 2.0)
RUNS = 6
SCORES = ("error", "charged", "exact", "missed", "false")
FIELDS = (
    "density",
    "dimension",
    "box",
    "n",
    "epsilon",
    "rule",
    "runs",
    *(name for score in SCORES for name in (score, f"{score}_se")),
    "bandwidth",
    "seed",
)
RESULTS = Path(__file__).parent / "results" / "bandwidth_study.csv"


def box_of(density: StudyDensity, factor: float) -> tuple[float, float]:
    """Return the box, widened about its middle."""
    middle, half = (density.lower + density.upper) / 2, (density.upper - density.lower) / 2
    return middle - factor * half, middle + factor * half


def score(density: StudyDensity, found: FloatArray) -> tuple[float, ...]:
    """Return the scores of one run, NaN where there is nothing to score."""
    apart, truth = separation(density), density.modes
    error = np.sqrt(mode_mse(found, truth)) / apart if len(found) else np.nan
    charged = np.sqrt(mode_mse(found, truth, charge=(apart / 2) ** 2)) / apart
    return (
        float(error),
        float(charged),
        float(len(found) == len(truth)),
        missed_modes(found, truth, radius=apart / 2),
        false_modes(found, truth, radius=apart / 2),
    )


def cell(
    density: StudyDensity, factor: float, n: int, epsilon: float, runs: int, seed: int
) -> list[dict[str, object]]:
    """Return one row for each rule."""
    low, high = box_of(density, factor)
    scores: dict[str, list[tuple[float, ...]]] = {rule: [] for rule in RULES}
    bandwidths: dict[str, list[float]] = {rule: [] for rule in RULES}
    for run in range(runs):
        x = density.sample(n, seed + run)
        for rule in RULES:
            surface = simulated_surface(x, low, high, epsilon, DELTA, seed + run, bandwidth=rule)
            reading, modes = reported_modes(surface)
            scores[rule].append(score(density, modes.locations))
            bandwidths[rule].append(float(reading.surface.bandwidth[0]))
    rows = []
    for rule in RULES:
        table = np.array(scores[rule])
        row: dict[str, object] = {
            "density": density.name,
            "dimension": density.dimension,
            "box": factor,
            "n": n,
            "epsilon": epsilon,
            "rule": rule,
            "runs": runs,
            "bandwidth": f"{np.median(bandwidths[rule]):.3g}",
            "seed": seed,
        }
        for name, values in zip(SCORES, table.T, strict=True):
            known = values[np.isfinite(values)]
            row[name] = f"{known.mean():.4f}" if known.size else ""
            row[f"{name}_se"] = f"{known.std(ddof=1) / np.sqrt(known.size):.4f}" if known.size > 1 else ""
        rows.append(row)
    return rows


def kept(again: list[str]) -> list[dict[str, object]]:
    """Return the rows written earlier of densities that are not to be run again."""
    if not RESULTS.exists():
        return []
    with RESULTS.open() as stream:
        rows: list[dict[str, object]] = [dict(r) for r in csv.DictReader(stream) if r["density"] not in again]
    for row in rows:
        row["box"] = float(str(row["box"]))
    return rows


def summary(table: list[dict[str, object]]) -> None:
    """Print means over cells by box and rule."""
    for factor in BOXES:
        for rule in RULES:
            chosen = [r for r in table if r["box"] == factor and r["rule"] == rule]
            if chosen:
                means = {s: np.mean([float(str(r[s])) for r in chosen if r[s] != ""]) for s in SCORES}
                print(f"box {factor:g} {rule:10s} " + "  ".join(f"{s} {v:.3f}" for s, v in means.items()))


def main() -> None:
    """Run the study, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tuning", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--densities", nargs="+", default=list(DENSITIES), help="only these; other rows stay")
    arguments = parser.parse_args()
    sizes, epsilons = ((5000,), (1.0,)) if arguments.quick else (SIZES, EPSILONS)
    runs = 3 if arguments.quick else arguments.runs
    seed = TUNING_SEED if arguments.tuning else REPORTING_SEED
    table = [] if arguments.quick or arguments.tuning else kept(arguments.densities)
    for density in (DENSITIES[name] for name in arguments.densities):
        start = time.perf_counter()
        for factor in BOXES:
            for n in sizes:
                for epsilon in epsilons:
                    table += cell(density, factor, n, epsilon, runs, seed)
        print(f"-- {density.name}: {time.perf_counter() - start:.0f} s", flush=True)
        for factor in BOXES:
            line = []
            for rule in RULES:
                chosen = [
                    r
                    for r in table
                    if r["density"] == density.name and r["box"] == factor and r["rule"] == rule
                ]
                exact, charged = (np.mean([float(str(r[s])) for r in chosen]) for s in ("exact", "charged"))
                line.append(f"{rule} exact {exact:.2f} charged {charged:.3f}")
            print(f"   box {factor:g}: " + ", ".join(line), flush=True)
        if not (arguments.quick or arguments.tuning):
            with RESULTS.open("w", newline="") as stream:
                writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(table)
    summary(table)


if __name__ == "__main__":
    main()
