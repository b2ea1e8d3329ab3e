"""How a study writes its rows: one CSV file, with the columns of the first row."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows (one or more, of the same columns) to a CSV file, in place of what it held."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
