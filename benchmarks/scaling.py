"""Cost of a whole fit against the number of rows, beside the bare transform and a NumPy pass.

    python benchmarks/scaling.py [--quick] [--most 100000000]

Two columns. Rows come as record batches cut from one small table, so that no size needs memory and none
pays for making its rows. Times are processor seconds of all threads, which other work on the machine
disturbs least, medians over repeats. Writes benchmarks/results/scaling.csv and
docs/scaling.png.

- fit: checks, one pass, exact noise, search for modes, standard errors.
- pass: the part of it that depends on n, charged and read, without the search (`release_surface`).
- FINUFFT: its type-1 transform of the same blocks at the same tolerance and lattice, angles ready.
- NumPy: one cosine of both columns, block by block, the cheapest useful pass.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from pydpmode import Budget, DensityModes, PrivateData, RowStream
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.feature_sums import FAST_TOLERANCE, TRANSFORM_TOLERANCE

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[1] / "docs"
SEED = 20261130
BATCH = 2**17
BANDWIDTH = 0.8
LOW, HIGH = -8.0, 8.0


def pool() -> pa.RecordBatch:
    """Return one batch of rows, of which every table here is made."""
    x = np.random.default_rng(SEED).normal(size=(2, BATCH))
    return pa.record_batch([pa.array(x[0]), pa.array(x[1])], names=["x", "y"])


def batches(batch: pa.RecordBatch, n: int) -> Iterator[pa.RecordBatch]:
    """Yield the batch again and again, n rows in all."""
    for start in range(0, n, BATCH):
        yield batch.slice(0, min(BATCH, n - start))


def opened(batch: pa.RecordBatch, n: int) -> PrivateData:
    """Return n rows with a budget."""
    stream = RowStream(
        lambda: pa.RecordBatchReader.from_batches(batch.schema, batches(batch, n)),
        n_rows=n,
    )
    bounds = {"x": (LOW, HIGH), "y": (LOW, HIGH)}
    return PrivateData(stream, bounds=bounds, budget=Budget(1.0, 1e-9), progress=False)


def fit(batch: pa.RecordBatch, n: int) -> Callable[[], object]:
    """Return the whole fit."""
    return lambda: DensityModes(opened(batch, n), bandwidth=BANDWIDTH).fit(epsilon=1.0)


def one_pass(batch: pa.RecordBatch, n: int) -> Callable[[], object]:
    """Return the release alone."""

    def run() -> object:
        study = opened(batch, n)
        coordinates = [study.coordinate(name) for name in ("x", "y")]
        return study.release_surface(design(), coordinates, epsilon=1.0, delta=1e-9)

    return run


def design() -> LatticeDesign:
    """Return the lattice of the release."""
    return LatticeDesign(("x", "y"), [LOW, LOW], [HIGH, HIGH], [BANDWIDTH, BANDWIDTH])


def bare_transform(batch: pa.RecordBatch, n: int) -> Callable[[], object]:
    """Return FINUFFT's transform of the same blocks, inputs ready."""
    import finufft

    lattice = design()
    x = np.stack([column.to_numpy() for column in batch.columns])
    scale = (2 * np.pi / (lattice.sides * lattice.bandwidth))[:, None]
    angles = np.ascontiguousarray((np.clip(x, LOW, HIGH) - LOW) * scale)
    shape = tuple(int(2 * j + 1) for j in lattice.half_sizes)
    strengths = np.ones(BATCH, np.complex128)
    # As the release does: only short tables are allowed the fast one, when rows have no fixed places.
    tolerance = FAST_TOLERANCE if n <= BATCH else TRANSFORM_TOLERANCE

    def run() -> object:
        total = np.zeros(shape, np.complex128)
        for start in range(0, n, BATCH):
            rows = min(BATCH, n - start)
            part = [np.ascontiguousarray(angle[:rows]) for angle in angles]
            total += finufft.nufft2d1(
                *part, strengths[:rows], shape, isign=1, eps=tolerance, nthreads=1, spread_sort=0
            )
        return total

    return run


def numpy_pass(batch: pa.RecordBatch, n: int) -> Callable[[], object]:
    """Return one cosine of every value, block by block."""
    x = np.stack([column.to_numpy() for column in batch.columns])

    def run() -> object:
        return sum(float(np.cos(x[:, : min(BATCH, n - start)]).sum()) for start in range(0, n, BATCH))

    return run


CASES = {"fit": fit, "pass": one_pass, "FINUFFT": bare_transform, "NumPy": numpy_pass}


def seconds(run: Callable[[], object], repeats: int) -> float:
    """Return the median processor time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return float(np.median(times))


def draw(rows: list[dict[str, float]]) -> None:
    """Draw seconds against n."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
    n = np.array([row["n"] for row in rows])
    styles = {"fit": ("#3f51b5", "o", "whole fit"), "pass": ("#00897b", "s", "release (one pass)")}
    styles |= {"FINUFFT": ("#e65100", "^", "FINUFFT alone"), "NumPy": ("#757575", "v", "one cosine a value")}
    for name, (colour, marker, label) in styles.items():
        axis.loglog(n, [row[name] for row in rows], color=colour, marker=marker, ms=5, label=label)
    last = rows[-1]
    axis.loglog(n, last["pass"] * n / last["n"], color="black", lw=0.8, ls=":", label="proportional to n")
    axis.set_xlabel("rows")
    axis.set_ylabel("processor seconds")
    axis.legend(frameon=False, fontsize=9)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(DOCS / "scaling.png", dpi=150)


def main() -> None:
    """Measure every size and write the table and the plot."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="up to a million rows, nothing written")
    arguments.add_argument("--most", type=float, default=1e8, help="largest number of rows")
    given = arguments.parse_args()
    most = 1e6 if given.quick else given.most
    warnings.simplefilter("ignore")
    batch = pool()
    for make in CASES.values():
        make(batch, 1000)()
    rows = []
    for power in range(8, int(2 * np.log10(most) + 1e-9) + 1):
        n = round(10 ** (power / 2))
        repeats = 5 if n <= 10**6 else 1
        row: dict[str, float] = {"n": n} | {k: seconds(make(batch, n), repeats) for k, make in CASES.items()}
        rows.append(row)
        print(*(f"{name} {value:.4g}" for name, value in row.items()), flush=True)
    if given.quick:
        return
    with (RESULTS / "scaling.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["n", *(f"{name}_seconds" for name in CASES), "pass_over_FINUFFT", "pass_over_NumPy"])
        for row in rows:
            ratios = [f"{row['pass'] / row[peer]:.2f}" for peer in ("FINUFFT", "NumPy")]
            table.writerow([int(row["n"]), *(f"{row[name]:.4f}" for name in CASES), *ratios])
    draw(rows)


if __name__ == "__main__":
    main()
