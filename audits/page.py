"""The tables of docs/evidence.md, from the CSV files that `make audit` writes.

python -m audits.page    # put the tables into the page
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "evidence.md"


def audit_table() -> str:
    """Return what the audits found, faults last."""
    lines = [
        "| mechanism | neighbours, or planted fault | stated | runs a side | shown to be lost |",
        "|---|---|---|---|---|",
    ]
    for row in _rows("audit.csv"):
        what = f"**fault:** {row['planted_fault']}" if row["planted_fault"] else row["neighbours"]
        stated = f"({row['epsilon_stated']}, {row['delta']})"
        bound = float(row["epsilon_at_least"])
        found = f"{bound:.2f}" if bound > 0 else "nothing"
        lines.append(f"| {row['mechanism']} | {what} | {stated} | {row['runs_a_side']} | {found} |")
    return "\n".join(lines)


def fuzzing_table() -> str:
    """Return what became of hostile input."""
    lines = ["| input | tried | read | refused | wrong |", "|---|---|---|---|---|"]
    lines += [
        f"| {r['input']} | {r['inputs']} | {r['read']} | {r['refused']} | {r['wrong']} |"
        for r in _rows("fuzzing.csv")
    ]
    return "\n".join(lines)


def page(text: str) -> str:
    """Return the page with both tables in their places."""
    for name, table in (("audit.csv", audit_table()), ("fuzzing.csv", fuzzing_table())):
        text = re.sub(
            rf"<!-- {name} -->\n.*?<!-- end -->",
            f"<!-- {name} -->\n{table}\n<!-- end -->",
            text,
            flags=re.DOTALL,
        )
    return text


def _rows(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
