"""How long does mean shift from every point take? pydpmode's MeanShift against plain NumPy.

    python benchmarks/mean_shift_speed.py            # n = 1000, 5000, 20000; about two minutes
    python benchmarks/mean_shift_speed.py --quick    # n = 1000, nothing written

Four Gaussians in two dimensions, bandwidth 0.6. Plain NumPy is the textbook loop: all points that still
move take one mean-shift step at a time, in blocks of 500 that fit the cache, until they move by less
than a thousandth of the bandwidth. It is left out at n = 20000, where it would take minutes. Rows go to
benchmarks/results/mean_shift_speed.csv; `agree` is the share of points that both put into the same mode.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pydpmode import MeanShift, datasets

FloatArray = NDArray[np.float64]

SEED = 300_000
BANDWIDTH = 0.6
SIZES = (1000, 5000, 20_000)
LARGEST_PLAIN = 5000
REPEATS = 3
BLOCK = 500
OUTPUT = Path(__file__).parent / "results" / "mean_shift_speed.csv"


def plain_mean_shift(x: FloatArray, h: float, *, tolerance: float = 1e-3, max_steps: int = 500) -> FloatArray:
    """Return where every point ends: Gaussian mean shift as a textbook writes it, in blocks."""
    rows = x / h
    ends = rows.copy()
    moving = np.arange(rows.shape[0])
    for _ in range(max_steps):
        new = np.empty((moving.size, rows.shape[1]))
        for start in range(0, moving.size, BLOCK):
            here = ends[moving[start : start + BLOCK]]
            squared = np.sum((here[:, None, :] - rows[None]) ** 2, axis=2)
            weights = np.exp(-0.5 * squared)
            new[start : start + BLOCK] = weights @ rows / weights.sum(axis=1, keepdims=True)
        moved = np.linalg.norm(new - ends[moving], axis=1)
        ends[moving] = new
        moving = moving[moved > tolerance]
        if moving.size == 0:
            break
    return ends * h


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Speed of mean shift from every point.")
    parser.add_argument("--quick", action="store_true", help="n = 1000 only, nothing written")
    quick = parser.parse_args().quick
    MeanShift(BANDWIDTH).fit(datasets.four_gaussians(200, seed=1)[0])  # imports and plans, outside the clock
    rows = [measure(n) for n in (SIZES[:1] if quick else SIZES)]
    if not quick:
        with OUTPUT.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def measure(n: int) -> dict[str, object]:
    """Return one row: seconds of both (best of three for ours), and whether they agree."""
    x = datasets.four_gaussians(n, seed=SEED)[0].to_numpy()
    best = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        ours = MeanShift(BANDWIDTH).fit(x)
        best = min(best, time.perf_counter() - start)
    row: dict[str, object] = {"n": n, "modes": len(ours.cluster_centers_), "seconds_pydpmode": f"{best:.3f}"}
    if n <= LARGEST_PLAIN:
        start = time.perf_counter()
        ends = plain_mean_shift(x, BANDWIDTH)
        seconds = time.perf_counter() - start
        squared = np.sum((ends[:, None, :] - ours.cluster_centers_[None]) ** 2, axis=2)
        agree = float(np.mean(np.argmin(squared, axis=1) == ours.labels_))
        row |= {"seconds_numpy": f"{seconds:.3f}", "ratio": f"{seconds / best:.1f}", "agree": f"{agree:.4f}"}
    else:
        row |= {"seconds_numpy": "", "ratio": "", "agree": ""}
    print(row, flush=True)
    return row


if __name__ == "__main__":
    main()
