"""Time and peak memory of a fit on tables that are streamed, each source in a process of its own.

    python benchmarks/streaming.py [--quick] [--rows 100000000]

Writes benchmarks/results/streaming.csv. The table is two columns of doubles (1.6 GB at 1e8 rows). The
record batches are generated while they are read and never stored; files are written to a temporary
folder first, with fewer rows. Peak memory is that of the whole process (the libraries included), and
beyond what it was before the fit.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

RESULTS = Path(__file__).parent / "results" / "streaming.csv"
SEED = 20261130
SCHEMA = pa.schema([("x", pa.float64()), ("y", pa.float64())])
BATCH = 2**17
BOUNDS = {"x": (-8.0, 8.0), "y": (-8.0, 8.0)}


def batches(n: int) -> Iterator[pa.RecordBatch]:
    """Yield n rows of two Gaussian columns, fresh ones in each batch."""
    rng = np.random.default_rng(SEED)
    for start in range(0, n, BATCH):
        rows = min(BATCH, n - start)
        yield pa.record_batch(
            [pa.array(rng.standard_normal(rows, dtype=np.float32).astype(float)) for _ in range(2)],
            schema=SCHEMA,
        )


def write_files(folder: Path, n: int, n_csv: int) -> None:
    """Write a folder of Parquet files and one CSV file."""
    import pyarrow.csv
    import pyarrow.parquet

    (folder / "parquet").mkdir()
    writer = None
    for number, batch in enumerate(batches(n)):
        if number % 64 == 0:
            if writer is not None:
                writer.close()
            path = folder / "parquet" / f"part{number // 64:04d}.parquet"
            writer = pyarrow.parquet.ParquetWriter(path, SCHEMA)
        writer.write_batch(batch)
    writer.close()
    with pyarrow.csv.CSVWriter(folder / "table.csv", SCHEMA) as table:
        for batch in batches(n_csv):
            table.write_batch(batch)


def source(name: str, folder: Path, n: int) -> object:
    """Return the table to be read."""
    from pydpmode import RowStream

    if name == "record batches":
        return RowStream(pa.RecordBatchReader.from_batches(SCHEMA, batches(n)), n_rows=n)
    if name == "Parquet folder":
        return folder / "parquet"
    if name == "CSV file":
        return folder / "table.csv"
    if name == "Arrow data set":
        import pyarrow.dataset

        return pyarrow.dataset.dataset(folder / "parquet")
    if name == "polars lazy frame":
        import polars

        return polars.scan_parquet(folder / "parquet" / "*.parquet")
    import duckdb

    return duckdb.connect().read_parquet(str(folder / "parquet" / "*.parquet"))


SOURCES = (
    "record batches",
    "Parquet folder",
    "Arrow data set",
    "polars lazy frame",
    "DuckDB query",
    "CSV file",
)


def peak_memory() -> float:
    """Return the peak resident memory of this process since it was last forgotten, in MB (Linux)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def measure(name: str, folder: Path, n: int) -> None:
    """Fit one source in this process; print seconds, peak and growth."""
    import time

    from pydpmode import DensityModes, PrivateData, RowStream
    from pydpmode.budget import Budget

    def fit(data: object) -> None:
        study = PrivateData(data, bounds=BOUNDS, budget=Budget(1.0, 1e-9), progress=False)
        DensityModes(study).fit(epsilon=1.0)

    # A short fit first, so that libraries are loaded and their buffers there.
    fit(RowStream(pa.RecordBatchReader.from_batches(SCHEMA, batches(10**6)), n_rows=10**6))
    data = source(name, folder, n)
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")
    before = peak_memory()
    start = time.perf_counter()
    fit(data)
    print(f"{time.perf_counter() - start:.3f} {peak_memory():.0f} {peak_memory() - before:.0f}")


def main() -> None:
    """Measure every source and write the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="3 million rows, 1 million in files")
    arguments.add_argument("--rows", type=int, default=10**8, help="rows of the generated stream")
    arguments.add_argument("--only", choices=SOURCES, help="measure one source again, and keep the others")
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    arguments.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.one:
        measure(given.one, given.folder, given.rows)
        return
    n = 3 * 10**6 if given.quick else given.rows
    n_files, n_csv = (10**6, 10**6) if given.quick else (3 * n // 10, n // 10)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), n_files, n_csv)
        for name in SOURCES if given.only is None else (given.only,):
            size = {"record batches": n, "CSV file": n_csv}.get(name, n_files)
            command = [sys.executable, __file__, "--one", name, "--folder", folder, "--rows", str(size)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            seconds, peak, grown = (float(text) for text in out.split())
            rows.append([name, size, f"{seconds:.1f}", f"{size / seconds / 1e6:.2f}", int(peak), int(grown)])
            print(*rows[-1], sep="\t", flush=True)
    if not given.quick:
        if given.only is not None:
            with RESULTS.open(newline="") as file:
                kept = list(csv.reader(file))[1:]
            rows = [rows[0] if row[0] == given.only else row for row in kept]
        with RESULTS.open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(
                ["source", "rows", "seconds", "million_rows_per_second", "peak_MB", "peak_beyond_start_MB"]
            )
            table.writerows(rows)


if __name__ == "__main__":
    main()
