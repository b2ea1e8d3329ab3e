"""How often noise makes a certified branch, and how often prediction regions cover.

    python benchmarks/false_branches.py            # about ten minutes
    python benchmarks/false_branches.py --quick    # two cells, ten runs, nothing written

Writes benchmarks/results/false_branches.csv and benchmarks/results/prediction_regions.csv.

False branches. Designs with one conditional mode at every x (or none: a flat density): in each run, is there
an x with two certified branches? Empty: no records at all but a few, is anything certified? The rule's
constant was set on TUNING_SEED; the figures are from REPORTING_SEED. Values outside the box are ignored, so
that nothing piles up at a bound.

Prediction regions: coverage of 5000 new records of the same design by regions of level .9, over runs.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from simulated_release import simulated_surface

from pydpmode import datasets
from pydpmode.budget import Outside
from pydpmode.numerics.conditional_regions import (
    conditional_density,
    highest_density_regions,
    surface_sd,
)
from pydpmode.numerics.modal_branches import find_branches
from pydpmode.numerics.regression_bandwidth import regression_bandwidth
from pydpmode.privacy.gaussian import gaussian_mu
from pydpmode.results.released_surface import ReleasedSurface

TUNING_SEED, REPORTING_SEED = 77, 20_261_131
RUNS, REGION_RUNS, DELTA, LEVEL, FRESH = 100, 20, 1e-5, 0.9, 5000
SIZES = ((500, 1.0), (2000, 0.2), (2000, 1.0), (20_000, 1.0))
RESULTS = Path(__file__).with_name("results")

Design = Callable[[np.random.Generator, int], np.ndarray]


def _with(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.column_stack([x, y])


def flat(random: np.random.Generator, n: int) -> np.ndarray:
    """Draw uniformly on the box: no mode at all."""
    return random.uniform(size=(n, 2))


def plateau(random: np.random.Generator, n: int) -> np.ndarray:
    """Draw y uniformly on a wide stretch."""
    return _with(random.uniform(size=n), random.uniform(0.2, 0.8, size=n))


def normal(sd: float) -> Design:
    """Return a design with a straight normal ridge."""

    def draw(random: np.random.Generator, n: int) -> np.ndarray:
        return _with(random.uniform(size=n), 0.5 + sd * random.standard_normal(n))

    return draw


def wave(random: np.random.Generator, n: int) -> np.ndarray:
    """Draw a normal ridge along a steep curve."""
    x = random.uniform(size=n)
    return _with(x, 0.5 + 0.25 * np.sin(9 * x) + 0.08 * random.standard_normal(n))


def skewed(random: np.random.Generator, n: int) -> np.ndarray:
    """Draw a skewed ridge (gamma, shape 3)."""
    x = random.uniform(size=n)
    return _with(x, 0.1 + 0.2 * x + 0.06 * random.gamma(3.0, size=n))


def clustered(random: np.random.Generator, n: int) -> np.ndarray:
    """Draw x and y normally: few records at either end of x."""
    return _with(0.5 + 0.15 * random.standard_normal(n), 0.5 + 0.12 * random.standard_normal(n))


def scarce(random: np.random.Generator, n: int) -> np.ndarray:
    """Put all records outside of the box: noise alone."""
    return np.full((n, 2), -1.0)


DESIGNS: dict[str, Design] = {
    "noise alone": scarce,
    "flat": flat,
    "plateau": plateau,
    "normal .05": normal(0.05),
    "normal .1": normal(0.1),
    "normal .2": normal(0.2),
    "wave": wave,
    "skewed": skewed,
    "clustered": clustered,
}


def release(
    data: np.ndarray, low: float, high: float, epsilon: float, seed: int, outside: Outside
) -> ReleasedSurface:
    """Return a simulated release at the public rule."""
    lower, upper = np.array([0.0, low]), np.array([1.0, high])
    bandwidth = regression_bandwidth(lower, upper, n=len(data), mu=gaussian_mu(epsilon, DELTA))
    return simulated_surface(data, lower, upper, epsilon, DELTA, seed, bandwidth=bandwidth, outside=outside)


def false_branches(name: str, n: int, epsilon: float, seed: int, runs: int) -> dict[str, float | str]:
    """Return the share of runs with two certified branches at one x, and with any."""
    two, some = [], []
    for run in range(runs):
        key = np.random.SeedSequence([seed, n, run, int(100 * epsilon)])
        random = np.random.default_rng(key)
        noise = int(key.generate_state(1)[0])
        found = find_branches(release(DESIGNS[name](random, n), 0.0, 1.0, epsilon, noise, "ignore"), 1)
        points = found.point[found.certified]
        two.append(points.size > np.unique(points).size)
        some.append(points.size > 0)
    share = float(np.mean(two))
    return {
        "design": name,
        "n": n,
        "epsilon": epsilon,
        "runs": runs,
        "two_certified": share,
        "two_certified_se": float(np.sqrt(share * (1 - share) / runs)),
        "any_certified": float(np.mean(some)),
    }


def regions(name: str, n: int, epsilon: float, seed: int, runs: int) -> dict[str, float | str]:
    """Return coverage and length of prediction regions."""
    draw, low, high = {
        "three_levels": (datasets.three_levels, 0.0, 4.0),
        "sinusoid": (datasets.sinusoid, -1.0, 2.5),
    }[name]
    covered, lengths, blank = [], [], []
    for run in range(runs):
        key = np.random.SeedSequence([seed, n, run, int(100 * epsilon)])
        data = draw(n, seed=np.random.default_rng(key))[0].to_numpy()
        fresh = draw(FRESH, seed=np.random.SeedSequence([seed, 1, run]))[0].to_numpy()
        surface = release(data, low, high, epsilon, int(key.generate_state(1)[0]), "clip")
        read = conditional_density(surface, 1, np.round(fresh[:, :1], 3))
        found = highest_density_regions(read, LEVEL, surface_sd(surface))
        known = [bool(part) for part in found]
        inside = [
            any(a <= y <= b for a, b in part) for part, y in zip(found, fresh[:, 1].tolist(), strict=True)
        ]
        covered.append(np.mean([i for i, k in zip(inside, known, strict=True) if k] or [np.nan]))
        lengths.append(np.mean([sum(b - a for a, b in part) for part in found if part] or [np.nan]))
        blank.append(1 - np.mean(known))
    return {
        "design": name,
        "n": n,
        "epsilon": epsilon,
        "runs": runs,
        "coverage": float(np.nanmean(covered)),
        "coverage_se": float(np.nanstd(covered, ddof=1) / np.sqrt(runs)),
        "length": float(np.nanmean(lengths)),
        "blank": float(np.mean(blank)),
    }


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
    parser.add_argument("--quick", action="store_true", help="two cells with ten runs; nothing is written")
    parser.add_argument("--only", choices=("branches", "regions"), help="one of the two studies")
    parser.add_argument("--tuning", action="store_true", help="the tuning seed; nothing is written")
    options = parser.parse_args()
    if options.quick:
        print(*false_branches("normal .1", 2000, 1.0, REPORTING_SEED, 10).values())
        print(*regions("sinusoid", 2400, 1.0, REPORTING_SEED, 3).values())
        return
    seed = TUNING_SEED if options.tuning else REPORTING_SEED
    first = []
    for name in DESIGNS if options.only != "regions" else ():
        for n, epsilon in SIZES:
            first.append(false_branches(name, n, epsilon, seed, RUNS))
            print(*first[-1].values(), flush=True)
    second = []
    for name in ("three_levels", "sinusoid") if options.only != "branches" else ():
        for n, epsilon in ((600, 1.0), (2400, 0.5), (2400, 1.0), (20_000, 1.0)):
            second.append(regions(name, n, epsilon, seed, REGION_RUNS))
            print(*second[-1].values(), flush=True)
    for table, rows in (("false_branches", first), ("prediction_regions", second)):
        if rows and not options.tuning:
            write(RESULTS / f"{table}.csv", rows)


if __name__ == "__main__":
    main()
