"""The table of docs/speed.md, from the CSV file that `make bench-suite` writes.

python -m benchmarks.suite.page    # put the table into the page
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "suite.csv"
PAGE = ROOT / "docs" / "speed.md"


def ratio_table() -> str:
    """Return the ratios of the last run, with their ceilings."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [
        "| | seconds | beside | its seconds | ratio | at most |",
        "|---|---:|---|---:|---:|---:|",
    ]
    last = ""
    for row in rows:
        # A case with several peers is named once.
        case, seconds = (row["case"], row["seconds"]) if row["case"] != last else ("", "")
        last = row["case"]
        told = f"{row['peer']} | {row['peer_seconds']} | {ratio_text(float(row['ratio']))} | {row['most']}"
        lines.append(f"| {case} | {seconds} | {told} |")
    return "\n".join(lines)


def ratio_text(value: float) -> str:
    """Return a ratio as people read it."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def page(text: str) -> str:
    """Return the page with the table in its place."""
    return re.sub(
        r"<!-- suite\.csv -->\n.*?<!-- end -->",
        lambda _: f"<!-- suite.csv -->\n{ratio_table()}\n<!-- end -->",
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
