"""Simulate how persistent the peaks of pure noise are: the table in `numerics/significance.py`.

A unit-variance Gaussian field with covariance `exp(-|t|^2 / 2)` (lengths in units of its
correlation length) is drawn on a cube of N cells with free edges, on a grid of step 1/3. The
statistic is the largest persistence of any peak but the highest; its 95% quantile is the
persistence that a mode must reach to be told from noise over N cells.

    python benchmarks/persistence_quantiles.py                 # all, about eight minutes
    python benchmarks/persistence_quantiles.py --dimension 3   # one dimension; keeps the other rows

Rows go to benchmarks/results/persistence_quantiles.csv.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfftn, next_fast_len, rfftn

from pydpmode.numerics.persistence import grid_persistence

FloatArray = NDArray[np.float64]

STEP = 1.0 / 3.0
PADDING = 8.0  # correlation lengths between opposite edges of the periodic field
PROBABILITY = 0.95
SEED = 20240607
RESULTS = Path(__file__).parent / "results" / "persistence_quantiles.csv"
FIELDS = ("dimension", "cells", "quantile_95", "standard_error", "runs", "step", "seed")

# dimension -> (cells, runs)
PLAN: dict[int, tuple[tuple[int, int], ...]] = {
    1: (
        *((n, 20000) for n in (1, 2, 3, 4, 6, 9, 12, 18, 25, 50, 100, 200)),
        *((n, 10000) for n in (400, 1000, 3000)),
    ),
    2: (
        *((n, 20000) for n in (1, 2, 4, 9, 16, 25, 64, 144)),
        *((n, 5000) for n in (400, 900)),
        (2500, 2000),
        (10000, 800),
    ),
    3: ((1, 8000), (4, 8000), (8, 8000), (27, 6000), (64, 4000), (216, 2000), (1000, 800), (4096, 300)),
    4: ((16, 800), (81, 400), (256, 120)),
}


def noise_fields(rng: np.random.Generator, shape: tuple[int, ...], batch: int) -> FloatArray:
    """Return `batch` fields of the given shape: a window of a periodic field padded past its reach."""
    sizes = [next_fast_len(n + int(np.ceil(PADDING / STEP)), real=True) for n in shape]
    axes = tuple(range(1, len(sizes) + 1))
    filters, variance = np.ones(1), 1.0
    for axis, size in enumerate(sizes):
        full = 2 * np.pi * np.fft.fftfreq(size, STEP)
        variance *= float(np.mean(np.exp(-(full**2) / 2)))
        half = 2 * np.pi * np.fft.rfftfreq(size, STEP) if axis == len(sizes) - 1 else full
        filters = filters[..., None] * np.exp(-(half**2) / 4)
    white = rng.standard_normal([batch, *sizes])
    smooth = irfftn(rfftn(white, axes=axes) * filters, s=sizes, axes=axes) / np.sqrt(variance)
    return np.asarray(smooth[(slice(None), *(slice(0, n) for n in shape))])


def largest_persistence(dimension: int, cells: int, runs: int, seed: int) -> FloatArray:
    """Return the largest non-top persistence of each of `runs` fields over `cells` cells."""
    nodes = round(cells ** (1.0 / dimension) / STEP) + 1
    rng = np.random.default_rng([seed, dimension, cells])
    batch = max(1, min(runs, 200_000 // nodes**dimension))
    found: list[float] = []
    while len(found) < runs:
        for field in noise_fields(rng, (nodes,) * dimension, batch):
            persistence = grid_persistence(field).persistence
            found.append(float(persistence[1:].max()) if persistence.size > 1 else 0.0)
    return np.array(found[:runs])


def quantile_and_error(sample: FloatArray) -> tuple[float, float]:
    """Return the quantile and its standard error from the binomial spread of its rank."""
    runs = sample.size
    spread = np.sqrt(PROBABILITY * (1 - PROBABILITY) / runs)
    low, high = np.quantile(sample, [PROBABILITY - spread, min(PROBABILITY + spread, 1.0)])
    return float(np.quantile(sample, PROBABILITY)), float(high - low) / 2


def main() -> None:
    """Simulate the asked dimensions and rewrite their rows of the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dimension", type=int, choices=sorted(PLAN), action="append")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    dimensions = arguments.dimension or sorted(PLAN)
    rows: list[dict[str, object]] = []
    if RESULTS.exists():
        with RESULTS.open(newline="") as stream:
            rows = [dict(row) for row in csv.DictReader(stream) if int(row["dimension"]) not in dimensions]
    for dimension in dimensions:
        for cells, runs in PLAN[dimension]:
            value, error = quantile_and_error(largest_persistence(dimension, cells, runs, arguments.seed))
            print(f"d={dimension} cells={cells:6d}  t95={value:.3f} +- {error:.3f}", flush=True)
            rows.append(
                dict(
                    zip(
                        FIELDS,
                        (
                            dimension,
                            cells,
                            f"{value:.3f}",
                            f"{error:.3f}",
                            runs,
                            f"{STEP:.4f}",
                            arguments.seed,
                        ),
                        strict=True,
                    )
                )
            )
    rows.sort(key=lambda row: (int(str(row["dimension"])), int(str(row["cells"]))))
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
