"""`surface`, `grams` and the paper on the paper's Tables 2 and 3, from the same rows.

    python benchmarks/grams_tables.py            # about fifteen minutes; CSV and docs/grams.md
    python benchmarks/grams_tables.py --quick    # two cells, five runs, nothing written
    python benchmarks/grams_tables.py --tuning   # the seeds that rules were set on, nothing written
    python benchmarks/grams_tables.py --docs     # the table in docs/grams.md anew from the CSV

Replacing one record, delta = 1e-6, bandwidth by the public rule, nothing known of the density. Methods:

surface    one surface, `find_modes`; the number of modes is not given
grams      DP-GRAMS, sound: full batch, correlated noise before clipping, tight accounting, modes by
           regression on the whole trace; the number of modes is not given
iterates   the same releases, finished as in the paper: last iterates, filtered, Ward with the true number
published  the paper's calibration (noise on scores) with independent noise, which is what its formulas
           cover; minibatches, last iterates, Ward with the true number; k = 4 ascents per mode

`mse` is equation (14) of the paper, which is kind to missing modes: `exact` is the share of runs with the
right number, `missed` the share of true modes without an estimate within half the distance between modes.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from accuracy import (
    DELTA,
    EPSILONS,
    PAPER,
    REPORTING_SEED,
    SIZES,
    TUNING_SEED,
    describe,
    paper_figures,
)
from simulated_grams import simulated_grams
from simulated_release import reported_modes, simulated_surface
from study_densities import DENSITIES

from pydpmode import GramsOptions
from pydpmode.numerics.mode_set import ModeSet

METHODS = ("surface", "grams", "iterates", "published")
RUNS = 20
QUICK = ((5000, 1.0), (5000, 5.0))
HERE = Path(__file__).parent
OUTPUT = HERE / "results" / "grams_tables.csv"
PAGE = HERE.parent / "docs" / "grams.md"
BEGIN, END = "<!-- table begins -->", "<!-- table ends -->"


def one_run(name: str, n: int, epsilon: float, seed: int) -> dict[str, ModeSet]:
    """Return the modes that each method finds in one sample."""
    density = DENSITIES[name]
    x, box, count = density.sample(n, seed), (density.lower, density.upper), len(density.modes)
    grams = simulated_grams(x, *box, epsilon, DELTA, seed)
    published = GramsOptions(accountant="published", noise="independent", k=4 * count)
    return {
        "surface": reported_modes(simulated_surface(x, *box, epsilon, DELTA, seed))[1],
        "grams": grams.modes(),
        "iterates": grams.modes(n_modes=count, finish="iterates"),
        "published": simulated_grams(x, *box, epsilon, DELTA, seed, published).modes(n_modes=count),
    }


def cell(name: str, n: int, epsilon: float, runs: int, seed: int) -> list[dict[str, object]]:
    """Run one density at one n and epsilon; one row per method."""
    found = [one_run(name, n, epsilon, seed + run) for run in range(runs)]
    paper = paper_figures().get((name, n, epsilon), math.nan)
    rows = []
    for method in METHODS:
        told = describe([run[method] for run in found], DENSITIES[name])
        figures = {key: f"{told[key]:.4g}" for key in ("mse", "mse_se", "exact", "missed", "false")}
        rows.append(
            {"density": name, "n": n, "epsilon": epsilon, "method": method, "runs": runs, **figures}
            | {"paper_mse": paper}
        )
    return rows


def write_page() -> None:
    """Put the table of the CSV into docs/grams.md, between its two marks."""
    with OUTPUT.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cells = {(r["density"], r["n"], r["epsilon"]): {} for r in rows}  # type: dict[tuple[str, ...], dict]
    for r in rows:
        cells[r["density"], r["n"], r["epsilon"]][r["method"]] = r
    lines = [
        "| density | n | epsilon | paper | surface | exact | grams | exact | iterates | published |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, n, epsilon), by in cells.items():
        paper = float(by["grams"]["paper_mse"])
        parts = [name.replace("_", " "), n, epsilon, _short(paper)]
        for method in METHODS:
            parts.append(_short(float(by[method]["mse"])))
            if method in ("surface", "grams"):
                parts.append(f"{float(by[method]['exact']):.2f}")
        lines.append(f"| {' | '.join(parts)} |")
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(
        f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{rest.split(END)[1]}", encoding="utf-8"
    )


def _short(value: float) -> str:
    if math.isnan(value):
        return "--"
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.4f}"


def main() -> None:
    """Run the study, write its table and the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two cells with five runs; nothing is written")
    parser.add_argument("--tuning", action="store_true", help="the tuning seeds; nothing is written")
    parser.add_argument("--docs", action="store_true", help="only rewrite the table in docs/grams.md")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    if options.docs:
        write_page()
        return
    runs = 5 if options.quick else options.runs
    seed = TUNING_SEED if options.tuning else REPORTING_SEED
    plan = QUICK if options.quick else [(n, e) for n in SIZES for e in EPSILONS]
    rows: list[dict[str, object]] = []
    for name in PAPER:
        for n, epsilon in plan:
            start = time.perf_counter()
            new = cell(name, n, epsilon, runs, seed)
            rows += new
            told = ", ".join(f"{r['method']} {r['mse']} ({r['exact']})" for r in new)
            print(f"{name} n={n} eps={epsilon} paper {new[0]['paper_mse']}: {told}  "
                  f"[{time.perf_counter() - start:.0f} s]", flush=True)  # fmt: skip
    if options.quick or options.tuning:
        return
    with OUTPUT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_page()


if __name__ == "__main__":
    main()
