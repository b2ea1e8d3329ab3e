"""How often a column of zeros and ones beside a normal one gives more than its two modes.

The two values make two ridges, along which noise has no way round: see pydpmode/numerics/ridges.py.

    python benchmarks/ridge_modes.py            # 100 fits a cell, minutes; writes results/ridge_modes.csv
    python benchmarks/ridge_modes.py --quick    # few fits of one cell, nothing written

`more_than_two`, `fewer`: shares of fits with more modes than two, and with fewer; `rules`: whether the rules
of ridges were applied, to the same releases. Wanted: about .05.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from pathlib import Path
from unittest import mock

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import pydpmode as dpm
from pydpmode.numerics import mode_seeking

# The rules were written on seeds below 2,000.
REPORTING_SEED = 730_000
CELLS = ((5000, 1.0, 0.2), (5000, 1.0, 0.5), (1000, 5.0, 0.5), (5000, 5.0, 0.5))
BOUNDS = {"flag": (0.0, 1.0), "x": (0.0, 100.0)}
RESULTS = Path(__file__).parent / "results" / "ridge_modes.csv"


def count(seed: int, n: int, epsilon: float, share: float) -> int:
    """Return the number of modes of one release."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame({"flag": (random.random(n) < share).astype(float), "x": random.normal(50, 10, n)})
    return dpm.DensityModes(table, bounds=BOUNDS).fit(epsilon, 1e-6, seed=seed).n_modes


def cell(n: int, epsilon: float, share: float, runs: int, rules: bool) -> dict[str, object]:
    """Return a row of the table."""
    own = mode_seeking.survive_on_ridges
    with mock.patch.object(mode_seeking, "survive_on_ridges", own if rules else lambda *given: given[2]):
        found = np.array([count(REPORTING_SEED + k, n, epsilon, share) for k in range(runs)])
    more = float((found > 2).mean())
    return {
        "n": n,
        "epsilon": epsilon,
        "share": share,
        "rules": rules,
        "runs": runs,
        "more_than_two": round(more, 4),
        "standard_error": round(float(np.sqrt(more * (1 - more) / runs)), 4),
        "fewer": round(float((found < 2).mean()), 4),
        "seed": REPORTING_SEED,
    }


def main() -> None:
    """Simulate, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", dpm.errors.PydpmodeWarning)
    table = []
    for n, epsilon, share in CELLS[:1] if quick else CELLS:
        for rules in (False, True):
            table.append(cell(n, epsilon, share, 8 if quick else 100, rules))
            print(table[-1], flush=True)
    if not quick:
        with RESULTS.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
