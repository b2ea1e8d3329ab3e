"""Make pydpmode/data/wages.parquet from the CPS file that ships with Tax-Calculator.

    pip download --no-deps --no-binary :all: --dest DIR taxcalc==6.8.0
    python benchmarks/make_wages.py DIR/taxcalc-6.8.0.tar.gz pydpmode/data/wages.parquet

Reads two of the columns, keeps the rows with a positive wage in their original order, and renames
the columns. Nothing else is done to the figures.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import tarfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

MEMBER = "taxcalc-6.8.0/taxcalc/cps.csv.gz"
COLUMNS = {"age_head": "age", "e00200p": "wage"}
METADATA = {
    "source": "taxcalc 6.8.0, taxcalc/cps.csv.gz, columns age_head and e00200p where e00200p > 0",
    "licence": "CC0-1.0",
}


def read_wages(archive: Path) -> pd.DataFrame:
    """Return the rows with a positive wage: columns `age` (years) and `wage` (US dollars a year)."""
    with tarfile.open(archive) as tar:
        member = tar.extractfile(MEMBER)
        if member is None:
            raise SystemExit(f"{archive} has no file {MEMBER}")
        table = pd.read_csv(io.BytesIO(member.read()), compression="gzip", usecols=list(COLUMNS))
    table = table.rename(columns=COLUMNS)[list(COLUMNS.values())]
    return table[table["wage"] > 0].reset_index(drop=True)


def write_wages(wages: pd.DataFrame, target: Path) -> None:
    """Write one row group of two int64 columns, with the provenance in the file's metadata."""
    arrays = [pa.array(wages[name].to_numpy("int64")) for name in wages.columns]
    table = pa.table(arrays, names=list(wages.columns)).replace_schema_metadata(METADATA)
    pq.write_table(
        table, target, compression="zstd", compression_level=22, row_group_size=len(wages), version="2.6"
    )


def digest(wages: pd.DataFrame) -> str:
    """Return the SHA-256 of the figures: row by row, age then wage, as little-endian int64."""
    return hashlib.sha256(wages[["age", "wage"]].to_numpy("<i8").tobytes()).hexdigest()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Make the packaged table of wages.")
    parser.add_argument("archive", type=Path, help="taxcalc-6.8.0.tar.gz")
    parser.add_argument("target", type=Path, help="the Parquet file to write")
    arguments = parser.parse_args()
    wages = read_wages(arguments.archive)
    write_wages(wages, arguments.target)
    size = arguments.target.stat().st_size
    print(f"{len(wages)} rows, {size} bytes, sha256 of the figures {digest(wages)}")


if __name__ == "__main__":
    main()
