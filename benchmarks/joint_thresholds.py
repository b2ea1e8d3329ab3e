"""Calibrate how much higher than `persistence_quantile` a mode must stand: `_JOINT` in significance.py.

`persistence_quantile(N)` is for the largest persistence over ONE region of N cells. A mode search asks the
question at every peak, each with the size of its own island, and asks it of every reading of a ladder. Here
surfaces of pure noise are simulated with the covariance that a release has (privacy noise under the
weights of the design, or the white noise that sampling from a flat density leaves), searched as `find_modes`
searches. Of one surface alone 5% may have any false mode. Of a ladder 2.5% may have one in the widest
reading, and 5% in any reading, which fixes the multiplier of the narrower ones.

    python benchmarks/joint_thresholds.py            # about ten minutes
    python benchmarks/joint_thresholds.py --quick    # few runs, nothing written

Rows go to benchmarks/results/joint_thresholds.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from pydpmode.numerics.bandwidth import LADDERS, Ladder
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.mode_candidates import grid_candidates, search_grid
from pydpmode.numerics.scale_choice import ladder_readings
from pydpmode.numerics.significance import LEAST_PERSISTENCE, persistence_quantile
from pydpmode.numerics.spectral_surfaces import LatticeSurface

FloatArray = NDArray[np.float64]
SEED = 20240919
RATE = 0.05
_SURE = 9.9  # stands for a surface that has a false mode anyway
RESULTS = Path(__file__).parent / "results" / "joint_thresholds.csv"
FIELDS = ("dimension", "look", "kind", "width", "cells", "multiplier", "standard_error", "runs", "seed")
# dimension -> ((box width in bandwidths, runs), ...): the widths that the public rule gives.
PLAN: dict[int, tuple[tuple[int, int], ...]] = {
    1: ((6, 4000), (12, 4000), (24, 3000), (45, 2000)),
    2: ((5, 2000), (10, 1200), (20, 400)),
    3: ((4, 800), (6, 400), (9, 120)),
}


def noise_surfaces(
    dimension: int, width: float, ladder: Ladder, kind: str, runs: int, seed: int
) -> Iterator[list[LatticeSurface]]:
    """Yield the readings, narrowest first, of `runs` releases of nothing but noise."""
    design = LatticeDesign(
        tuple("abc"[:dimension]),
        np.zeros(dimension),
        np.full(dimension, float(width)),
        np.ones(dimension),
        scales=ladder.scales,
        masses=ladder.masses,
    )
    variance = 1 / design.pair_weights if kind == "privacy" else np.ones(design.n_pairs)
    random = np.random.default_rng([seed, dimension, len(ladder.scales), int(10 * width), len(kind)])
    for _ in range(runs):
        white = random.standard_normal((2, design.n_pairs)) * np.sqrt(variance)
        surface = LatticeSurface(design, white[0] + 1j * white[1], variance, 1.0, design.bandwidth, 2)
        yield [
            replace(surface, read_bandwidth=design.bandwidth * ratio).in_reading_units()
            for ratio in ladder_readings(ladder.scales)
        ]


def excess(surface: LatticeSurface, dimension: int) -> float:
    """Return the largest persistence of a peak that is not the highest, over the quantile for its island."""
    found = grid_candidates(surface, search_grid(surface))
    height = (found.heights - found.deaths)[1:] / np.sqrt(surface.noise.value)
    counted = height >= LEAST_PERSISTENCE[dimension]
    if not counted.any():
        return 0.0
    quantiles = np.maximum(persistence_quantile(found.cells[1:][counted], dimension), 1e-9)
    return float(np.max(height[counted] / quantiles))


def quantile_and_error(sample: FloatArray, rate: float) -> tuple[float, float]:
    """Return the quantile that `rate` of the sample exceeds, and its standard error from its rank."""
    spread = np.sqrt(rate * (1 - rate) / sample.size)
    low, high = np.quantile(sample, [1 - rate - spread, min(1 - rate + spread, 1.0)])
    return float(np.quantile(sample, 1 - rate)), float(high - low) / 2


def multipliers(
    dimension: int, width: float, kind: str, runs: int, seed: int
) -> Iterator[tuple[str, float, float]]:
    """Yield look, multiplier and its standard error."""
    for ladder in (Ladder(), LADDERS[dimension]):
        sample = np.array(
            [
                [excess(reading, dimension) for reading in readings]
                for readings in noise_surfaces(dimension, width, ladder, kind, runs, seed)
            ]
        )
        if sample.shape[1] == 1:
            yield ("only", *quantile_and_error(sample[:, 0], RATE))
            continue
        widest, error = quantile_and_error(sample[:, -1], RATE / 2)
        yield "widest", widest, error
        # Surfaces that the widest reading fails anyway do not count against the narrower ones.
        others = np.where(sample[:, -1] > widest, _SURE, sample[:, :-1].max(axis=1))
        yield ("narrower", *quantile_and_error(others, RATE))


def main() -> None:
    """Simulate and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    rows = []
    for dimension, plan in PLAN.items():
        for kind in ("privacy", "sampling"):
            for width, most in plan:
                runs = max(40, most // 40) if arguments.quick else most
                for look, value, error in multipliers(dimension, width, kind, runs, arguments.seed):
                    name = f"d={dimension} {look:8s} {kind:8s} width {width:3d}"
                    print(f"{name}: {value:.3f} +- {error:.3f}", flush=True)
                    figures = (width, width**dimension, f"{value:.3f}", f"{error:.3f}")
                    rows.append((dimension, look, kind, *figures, runs, arguments.seed))
    if arguments.quick:
        return
    with RESULTS.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
