"""The paper's Tables 2 and 3 at the default rule, beside one bandwidth and mean shift without privacy.

    python benchmarks/mode_peers.py               # half an hour; writes results/mode_peers.csv
    python benchmarks/mode_peers.py --only kms    # one method; the rows of the others stay
    python benchmarks/mode_peers.py --quick       # two cells a density, few runs, nothing written

Same rows and seeds as accuracy.py; number of modes not given, delta = 1e-6, replacing one record. Methods:

ladder          `DensityModes` as by default: a public ladder of bandwidths
reference       `DensityModes(bandwidth="reference")`: one public bandwidth
mean_shift      `pydpmode.MeanShift` with its own bandwidth from the rows: NOT private
sklearn         scikit-learn's `MeanShift(bin_seeding=True)`, the tenth quantile of the distances: NOT private
kms             `kms` of the R package ks with its plug-in bandwidth (ks_modes.R): NOT private. Skipped where
                R or ks is not there. Three runs, and one at n = 5000; none longer than five minutes

`mse` is equation (14) of the paper; `exact`, `missed`, `false` as in accuracy.py. `seconds`: processor time
of release and reading, or of the fit, that of `kms` as R tells it. Standard errors (`_se`) are over runs.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path

from accuracy import DELTA, EPSILONS, PAPER, REPORTING_SEED, RUNS, SIZES, describe, mean_and_error
from kernel_mean_shift import kernel_modes, why_not
from simulated_release import reported_modes, simulated_surface
from sklearn.cluster import MeanShift as SklearnMeanShift
from sklearn.cluster import estimate_bandwidth
from study_densities import DENSITIES, FloatArray, StudyDensity

from pydpmode import MeanShift

Row = dict[str, object]

RESULTS = Path(__file__).parent / "results" / "mode_peers.csv"
FIELDS = ("density", "n", "epsilon", "method", "runs", "mse", "mse_se", "exact", "missed", "false")
FIELDS += ("seconds", "seconds_se")
PLAIN, RULES = ("mean_shift", "sklearn", "kms"), ("ladder", "reference")
METHODS = (*PLAIN, *RULES)
SLOW_ROWS = 5000
KMS_RUNS, SLOW_RUNS = 3, 1
QUICK_RUNS = 5
QUICK = ((1000, (1.0,)), (5000, (0.5,)))


class Located:
    """Locations, as `describe` reads them."""

    def __init__(self, locations: FloatArray) -> None:
        self.locations = locations


def private(density: StudyDensity, x: FloatArray, rule: str, epsilon: float, seed: int) -> FloatArray:
    """Return the modes of one simulated release."""
    released = simulated_surface(x, density.lower, density.upper, epsilon, DELTA, seed, bandwidth=rule)
    return reported_modes(released)[1].locations


def plain(x: FloatArray, method: str, seed: int) -> tuple[FloatArray, float] | None:
    """Return the modes of the rows themselves and processor seconds; None where there is no R."""
    start = time.process_time()
    if method == "mean_shift":
        return MeanShift().fit(x).cluster_centers_, time.process_time() - start
    if method == "kms":
        found = kernel_modes(x)
        return None if found is None else (found.modes, found.seconds)
    width = estimate_bandwidth(x, quantile=0.1, n_samples=1000, random_state=seed)
    model = SklearnMeanShift(bandwidth=width, bin_seeding=True).fit(x)
    return model.cluster_centers_, time.process_time() - start


def one_run(
    density: StudyDensity, x: FloatArray, epsilon: float | str, method: str, seed: int
) -> tuple[FloatArray, float] | None:
    """Return modes and processor seconds."""
    if not epsilon:
        return plain(x, method, seed)
    start = time.process_time()
    return private(density, x, method, float(epsilon), seed), time.process_time() - start


def row(
    density: StudyDensity, n: int, epsilon: float | str, method: str, runs: int, seed: int
) -> dict[str, object] | None:
    """Run one method in one cell; None where it cannot run."""
    found, seconds = [], []
    for run in range(seed, seed + runs):
        outcome = one_run(density, density.sample(n, run), epsilon, method, run)
        if outcome is None:
            return None
        found.append(Located(outcome[0]))
        seconds.append(outcome[1])
    told = describe(found, density)
    figures = {key: f"{told[key]:.4g}" for key in ("mse", "mse_se", "exact", "missed", "false")}
    took = mean_and_error(seconds)
    return {
        "density": density.name,
        "n": n,
        "epsilon": epsilon,
        "method": method,
        "runs": runs,
        **figures,
        "seconds": f"{took[0]:.3g}",
        "seconds_se": f"{took[1]:.2g}",
    }


def place(row: Row) -> tuple[int, int, float, int]:
    """Return what a row is about, and by that its place in the table."""
    epsilon = float(str(row["epsilon"])) if row["epsilon"] else -1.0
    density = list(PAPER).index(str(row["density"]))
    return density, int(str(row["n"])), epsilon, METHODS.index(str(row["method"]))


def merge(row: Row) -> None:
    """Put a row into the CSV; the one of the same cell and method goes."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        kept: dict[tuple[int, int, float, int], Row] = {place(old): dict(old) for old in csv.DictReader(file)}
    kept[place(row)] = row
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[key] for key in sorted(kept))


def cells(quick: bool, methods: tuple[str, ...]) -> Iterator[tuple[str, int, float | str, str, int]]:
    """Yield density, n, epsilon, method and number of runs of every cell."""
    for name in PAPER:
        for n, epsilons in QUICK if quick else [(n, EPSILONS) for n in SIZES]:
            pairs = [("", method) for method in PLAIN]
            pairs += [(epsilon, rule) for epsilon in epsilons for rule in RULES]
            for epsilon, method in pairs:
                slow = method == "kms" and n >= SLOW_ROWS
                runs = QUICK_RUNS if quick else RUNS
                if method == "kms":
                    runs = min(runs, SLOW_RUNS if slow else KMS_RUNS)
                if method in methods and not (quick and slow):
                    yield name, n, epsilon, method, runs


def main() -> None:
    """Run the study and write its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few cells and runs; nothing is written")
    parser.add_argument("--only", default="", metavar="METHODS", help=f"of {','.join(METHODS)}")
    options = parser.parse_args()
    methods = tuple(part for part in options.only.split(",") if part) or METHODS
    if unknown := set(methods) - set(METHODS):
        parser.error(f"no method is called {', '.join(sorted(unknown))}")
    if "kms" in methods and (reason := why_not()):
        print(reason)
        methods = tuple(method for method in methods if method != "kms")
    for name, n, epsilon, method, runs in cells(options.quick, methods):
        made = row(DENSITIES[name], n, epsilon, method, runs, REPORTING_SEED)
        if made is None:
            continue
        print("  ".join(f"{key} {made[key]}" for key in FIELDS), flush=True)
        if not options.quick:
            merge(made)


if __name__ == "__main__":
    main()
