"""What a call of the R package inside Python (rpy2) costs beside the same call in Python.

    python benchmarks/rpy2_overhead.py [--quick]

1,000,000 x 2 doubles. Writes the rows of rpy2 in benchmarks/results/r_overhead.csv; `r_overhead.R` writes
that of reticulate. R and Python take turns on the same rows; each pair gives one difference. The table is an
R object already (table in R), or a pandas data frame that goes through the codec with the call (table in
Python).
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from pydpmode import DensityModes, datasets
from r_bridge import connect

RESULT = Path(__file__).parent / "results" / "r_overhead.csv"
SEED = 20261130
BOUNDS = {"x": (-8.0, 8.0), "y": (-8.0, 8.0)}


def main() -> None:
    """Measure, print, and keep the figures of the full run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows, pairs = (100_000, 3) if quick else (1_000_000, 15)
    bridge = connect()
    table = datasets.four_gaussians(rows, seed=SEED)[0].astype(float)
    formula, bounds = bridge.eval("~ x + y"), {name: list(pair) for name, pair in BOUNDS.items()}
    there = bridge.to_r(table)

    def in_python() -> None:
        DensityModes(table, ["x", "y"], bounds=BOUNDS).fit(epsilon=1.0, delta=1e-8)

    def in_r(data: object) -> Callable[[], None]:
        return lambda: bridge.call("dp_modes", formula, data, bounds=bounds, epsilon=1.0, delta=1e-8)

    found = [
        {"rows": rows, "pairs": pairs, "bridge": name, **compare(in_python, in_r(data), pairs)}
        for name, data in (("rpy2 (table in R)", there), ("rpy2 (table in Python)", table))
    ]
    for row in found:
        print(row)
    if not quick:
        keep(found)


def compare(in_python: Callable[[], None], in_r: Callable[[], None], pairs: int) -> dict[str, float]:
    """Return the median seconds of both, and the mean difference within pairs with its standard error."""
    in_python()
    in_r()
    seconds = [(timed(in_r), timed(in_python)) for _ in range(pairs)]
    extra = [r - python for r, python in seconds]
    return {
        "python_seconds": rounded(statistics.median(python for _, python in seconds)),
        "r_seconds": rounded(statistics.median(r for r, _ in seconds)),
        "extra_seconds": rounded(statistics.mean(extra)),
        "extra_se": rounded(statistics.stdev(extra) / pairs**0.5),
    }


def timed(call: Callable[[], None]) -> float:
    """Return the seconds of one call, after a pause."""
    time.sleep(0.3)
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def rounded(value: float) -> float:
    """Return three significant digits."""
    return float(f"{value:.3g}")


def keep(found: list[dict[str, object]]) -> None:
    """Replace the rows of these bridges, and leave the others."""
    with RESULT.open(encoding="utf-8", newline="") as file:
        others = [row for row in csv.DictReader(file) if not row["bridge"].startswith("rpy2")]
    with RESULT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows([*others, *found])


if __name__ == "__main__":
    main()
