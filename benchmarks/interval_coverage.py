"""How often intervals cover the true mode, and whether the summary says so where they do not.

Every reported mode of every run is set against the nearest true mode of the density itself (not of the
smoothed one): the 95% interval of each coordinate, and the joint 95% region. Modes that the summary calls
reliable are counted apart. Beside them stand the surface's own maxima, errors linearised (`refine=False`).

    python benchmarks/interval_coverage.py            # about fifteen minutes
    python benchmarks/interval_coverage.py --quick    # a few cells, five runs, nothing written
    python benchmarks/interval_coverage.py --tuning   # seeds that constants were set on, nothing written

Rows go to benchmarks/results/coverage.csv (one per density, n and epsilon) and coverage_by_density.csv.
Columns: `modes` reported in all runs; `reliable` the share called so; `marginal`, `joint` coverage among
the reliable ones with standard errors; `all_...` among all; `plain_...` without refinement.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm
from simulated_release import reported_modes, simulated_surface
from study_densities import DENSITIES, StudyDensity

from pydpmode.numerics.mode_seeking import find_modes
from pydpmode.numerics.mode_set import ModeSet

FloatArray = NDArray[np.float64]

TUNING_SEED, REPORTING_SEED = 70_000, 300_000
DELTA = 1e-6
RUNS = 20
SIZES = (700, 2000, 5000, 20_000, 50_000)
EPSILONS = (0.1, 0.5, 1.0, 5.0)
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Check:
    """One reported mode: is it called reliable, and which regions hold the nearest true mode."""

    reliable: bool
    marginal: tuple[bool, ...]
    joint: bool


def checks(modes: ModeSet, density: StudyDensity) -> list[Check]:
    """Set every reported mode against the nearest true one."""
    out = []
    limit = float(chi2.ppf(0.95, density.dimension))
    z = float(norm.ppf(0.975))
    for k in range(modes.count):
        away = density.modes - modes.locations[k]
        gap = away[np.argmin(np.sum(away**2, axis=1))]
        covariance = modes.covariance_privacy[k] + modes.covariance_sampling[k] + modes.covariance_bias[k]
        if np.isfinite(covariance).all():
            marginal = tuple(bool(x) for x in np.abs(gap) <= z * np.sqrt(np.diag(covariance)))
            joint = bool(gap @ np.linalg.solve(covariance, gap) <= limit)
        else:
            marginal, joint = (False,) * density.dimension, False
        out.append(Check(bool(modes.reliable[k]), marginal, joint))
    return out


def rates(found: Iterable[Check]) -> tuple[int, float, float, float, float]:
    """Return number, marginal and joint coverage, each with its standard error (modes as independent)."""
    items = list(found)
    if not items:
        return 0, float("nan"), float("nan"), float("nan"), float("nan")
    marginal = np.array([np.mean(c.marginal) for c in items])
    joint = np.array([c.joint for c in items], dtype=float)
    root = np.sqrt(len(items))
    return (
        len(items),
        float(marginal.mean()),
        float(marginal.std() / root),
        float(joint.mean()),
        float(joint.std() / root),
    )


def describe(refined: list[Check], plain: list[Check]) -> dict[str, float]:
    """Summarise the checks of some runs."""
    count, marginal, marginal_se, joint, joint_se = rates(c for c in refined if c.reliable)
    _, all_marginal, _, all_joint, _ = rates(refined)
    plain_count, plain_marginal, _, plain_joint, _ = rates(c for c in plain if c.reliable)
    return {
        "modes": len(refined),
        "reliable": count / max(len(refined), 1),
        "marginal": marginal,
        "marginal_se": marginal_se,
        "joint": joint,
        "joint_se": joint_se,
        "all_marginal": all_marginal,
        "all_joint": all_joint,
        "plain_reliable": plain_count / max(len(plain), 1),
        "plain_marginal": plain_marginal,
        "plain_joint": plain_joint,
    }


def cell(
    density: StudyDensity, n: int, epsilon: float, runs: int, seed: int
) -> tuple[list[Check], list[Check]]:
    """Run one density at one n and epsilon: checks with and without refinement."""
    refined: list[Check] = []
    plain: list[Check] = []
    for run in range(runs):
        x = density.sample(n, seed + run)
        surface = simulated_surface(x, density.lower, density.upper, epsilon, DELTA, seed + run)
        reading, modes = reported_modes(surface)
        refined += checks(modes, density)
        plain += checks(find_modes(reading.surface, look=reading.look, refine=False), density)
    return refined, plain


def show(name: str, row: dict[str, float]) -> None:
    """Print one line."""
    print(
        f"{name:34s} modes {row['modes']:5.0f} reliable {row['reliable']:.2f} "
        f"marginal {row['marginal']:.3f} ({row['marginal_se']:.3f}) "
        f"joint {row['joint']:.3f} ({row['joint_se']:.3f}) "
        f"all {row['all_joint']:.2f} plain {row['plain_reliable']:.2f} {row['plain_joint']:.2f}",
        flush=True,
    )


def write(path: Path, rows: list[dict[str, float | str]]) -> None:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


def main() -> None:
    """Run the study and write its tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few cells with five runs; nothing is written")
    parser.add_argument("--tuning", action="store_true", help="the tuning seeds; nothing is written")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    runs = 5 if options.quick else options.runs
    seed = TUNING_SEED if options.tuning else REPORTING_SEED
    names = ("four_gaussians", "skewed", "bimodal") if options.quick else tuple(DENSITIES)
    cells = ((1000, 1.0), (20_000, 1.0)) if options.quick else [(n, e) for n in SIZES for e in EPSILONS]
    rows: list[dict[str, float | str]] = []
    summary: list[dict[str, float | str]] = []
    everything: tuple[list[Check], list[Check]] = ([], [])
    for name in names:
        together: tuple[list[Check], list[Check]] = ([], [])
        for number, (n, epsilon) in enumerate(cells):
            # Fresh data in every cell, so that the cells of a density are independent.
            found = cell(DENSITIES[name], n, epsilon, runs, seed + 1000 * number)
            row = describe(*found)
            show(f"{name} {n} {epsilon}", row)
            rows.append({"density": name, "n": n, "epsilon": epsilon, "runs": runs, **row})
            for kept, more in zip(together, found, strict=True):
                kept.extend(more)
        row = describe(*together)
        show(f"== {name}", row)
        summary.append({"density": name, **row})
        for kept, more in zip(everything, together, strict=True):
            kept.extend(more)
    row = describe(*everything)
    show("== all", row)
    summary.append({"density": "all", **row})
    if not (options.quick or options.tuning):
        write(RESULTS / "coverage.csv", rows)
        write(RESULTS / "coverage_by_density.csv", summary)


if __name__ == "__main__":
    main()
