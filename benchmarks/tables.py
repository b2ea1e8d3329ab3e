"""Every table of the paper that its data allow: run the studies, then write docs/tables.md from their CSVs.

    python benchmarks/tables.py            # all studies in full, page, figures: hours
    python benchmarks/tables.py --quick    # every study with few cells and runs; nothing is written
    python benchmarks/tables.py --page     # only docs/tables.md, from the committed CSVs
    python benchmarks/tables.py --check    # whether docs/tables.md is what the CSVs give

The studies are benchmarks of their own, each with its command and seed; the paper's figures are in
benchmarks/paper/. The page holds no number that is not in a CSV.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from tables_page import PAGE, page

HERE = Path(__file__).resolve().parent

STUDIES: tuple[tuple[str, ...], ...] = (
    ("mode_peers.py",),
    ("grams_tables.py",),
    ("grams_sweeps.py",),
    ("regression_tables.py",),
    ("pms_tables.py",),
    ("pms_sweeps.py",),
    ("linear_modal.py",),
    ("clustering_tables.py", "blobs"),
    ("cluster_sweeps.py",),
    ("clustering_tables.py", "digits"),
    ("clustering_tables.py", "mnist"),
    ("clustering_tables.py", "hsct"),
    ("clustering_tables.py", "skewed"),
    ("clustering_tables.py", "gaussian"),
    ("private_pipeline.py",),
)
# What --quick leaves out besides, as it takes longest: ks::kms, diffprivlib's PCA and the released radius.
QUICK = {
    "mode_peers.py": ("--only", "mean_shift,sklearn,ladder,reference"),
    "private_pipeline.py": ("--methods", "pipeline", "kmeans", "classes"),
}


def run(step: tuple[str, ...], quick: bool) -> None:
    """Run one benchmark with this Python."""
    script, *rest = step
    extra = ("--quick", *QUICK.get(script, ())) if quick else ()
    command = [sys.executable, str(HERE / script), *rest, *extra]
    print(f"-- {' '.join([script, *rest, *extra])}", flush=True)
    start = time.perf_counter()
    subprocess.run(command, check=True)
    print(f"   {time.perf_counter() - start:.0f} s", flush=True)


def current() -> bool:
    """Return whether docs/tables.md is what the CSVs give."""
    return PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()


def main() -> None:
    """Run the studies and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few cells and runs; nothing is written")
    parser.add_argument("--page", action="store_true", help="only the page, from the committed CSVs")
    parser.add_argument("--check", action="store_true", help="only whether the page is what the CSVs give")
    options = parser.parse_args()
    if not (options.page or options.check):
        for step in (*STUDIES, ("figures.py",)):
            run(step, options.quick)
    if options.check or options.quick:
        if not current():
            raise SystemExit("docs/tables.md is not what the CSVs give: python benchmarks/tables.py --page")
        print("docs/tables.md is what the CSVs give")
        return
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Written: {PAGE}")


if __name__ == "__main__":
    main()
