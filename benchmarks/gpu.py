"""Seconds of a release with its sums on the processor and on a GPU, from the same rows.

    python benchmarks/gpu.py [--quick] [--rows 100000000]

Needs CuPy and a CUDA device, and says so where there is none: then nothing is measured and nothing written.
With them it writes benchmarks/results/gpu.csv. Rows come as record batches cut from one small table, as in
scaling.py, so that reading costs next to nothing. Times are those of the clock, medians over repeats, of
`release_surface` as a whole: the comparison at made-up points, the pass, and the noise. Every size is also
checked: the sums of both, before noise, must lie within their margins of each other.

Columns 4 and more have 4096 random frequencies; there a hundredth of the rows is taken.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from pydpmode import Budget, PrivateData, RowStream
from pydpmode.budget import Device
from pydpmode.errors import InvalidArgument, MissingDependency
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.numerics.device_sums import cupy_module

RESULTS = Path(__file__).parent / "results" / "gpu.csv"
SEED = 20261130
BATCH = 2**17
LOW, HIGH = -8.0, 8.0
# Columns and bandwidth: the work on a GPU grows with the number of frequencies, FINUFFT's hardly.
CASES = ((1, 0.1), (2, 0.8), (2, 0.1), (3, 1.6), (4, 1.6), (6, 1.6))


def pool(d: int) -> pa.RecordBatch:
    """Return one batch of rows, of which every table here is made."""
    x = np.random.default_rng(SEED).normal(size=(d, BATCH))
    return pa.record_batch([pa.array(column) for column in x], names=names_of(d))


def names_of(d: int) -> list[str]:
    """Return the names of the columns."""
    return [f"x{k + 1}" for k in range(d)]


def batches(batch: pa.RecordBatch, n: int) -> Iterator[pa.RecordBatch]:
    """Yield the batch again and again, n rows in all."""
    for start in range(0, n, BATCH):
        yield batch.slice(0, min(BATCH, n - start))


def opened(batch: pa.RecordBatch, n: int, device: Device) -> PrivateData:
    """Return n rows with a budget."""
    stream = RowStream(lambda: pa.RecordBatchReader.from_batches(batch.schema, batches(batch, n)), n_rows=n)
    bounds = dict.fromkeys(batch.schema.names, (LOW, HIGH))
    return PrivateData(stream, bounds=bounds, budget=Budget(1.0, 1e-9), progress=False, device=device)


def design_of(d: int, bandwidth: float) -> Design:
    """Return the frequencies of the release."""
    box = tuple(names_of(d)), np.full(d, LOW), np.full(d, HIGH), np.full(d, bandwidth)
    return LatticeDesign(*box) if d <= 3 else RandomDesign(*box)


def seconds(batch: pa.RecordBatch, n: int, device: Device, design: Design, repeats: int) -> float:
    """Return the median time of a release."""
    times = []
    for _ in range(repeats):
        study = opened(batch, n, device)
        coordinates = [study.coordinate(name) for name in design.columns]
        start = time.perf_counter()
        study.release_surface(design, coordinates, epsilon=1.0, delta=1e-9)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def share_of_margins(batch: pa.RecordBatch, n: int, design: Design) -> float:
    """Return how far the two sums lie apart, over the half margins that they may differ by."""
    sums, margin = [], 0.0
    for device in ("cpu", "cuda"):
        study = opened(batch, n, device)
        plan = study.plan(design, epsilon=1.0, delta=1e-9)
        sums.append(study._lattice_sum(plan, [study.coordinate(name) for name in design.columns]) * plan.step)
        margin += (plan.sensitivity.arithmetic + plan.sensitivity.rounding) / 2
    return float(np.linalg.norm(sums[0] - sums[1])) / margin


def main() -> None:
    """Measure every case and write the table, where there is a GPU."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="a million rows, nothing written")
    arguments.add_argument("--rows", type=float, default=1e8)
    given = arguments.parse_args()
    try:
        module = cupy_module()
    except (MissingDependency, InvalidArgument) as problem:
        print(f"There is no GPU to measure here: {problem}. Nothing was measured, nothing was written.")
        return
    card = module.xp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    most = int(1e6 if given.quick else given.rows)
    rows = []
    for d, bandwidth in CASES:
        n = most if d <= 3 else max(most // 100, BATCH)
        batch, design = pool(d), design_of(d, bandwidth)
        seconds(batch, 1000, "cuda", design, 1)  # compiles the device's functions
        apart = share_of_margins(batch, n, design)
        if not apart <= 1:
            raise SystemExit(f"{d} columns: the sums differ by {apart:.2g} times what the margins allow")
        cpu, gpu = (seconds(batch, n, device, design, 3) for device in ("cpu", "cuda"))
        rows.append([card, d, bandwidth, design.n_pairs, n, f"{cpu:.3f}", f"{gpu:.3f}", f"{apart:.3g}"])
        print(*rows[-1], flush=True)
    if given.quick:
        return
    with RESULTS.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(
            [
                "gpu",
                "columns",
                "bandwidth",
                "pairs",
                "rows",
                "cpu_seconds",
                "gpu_seconds",
                "apart_over_margins",
            ]
        )
        table.writerows(rows)


if __name__ == "__main__":
    main()
