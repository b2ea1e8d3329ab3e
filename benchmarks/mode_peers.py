"""The paper's Tables 2 and 3 at the default rule, beside one bandwidth and mean shift without privacy.

    python benchmarks/mode_peers.py            # some minutes; writes results/mode_peers.csv
    python benchmarks/mode_peers.py --quick    # two cells a density, five runs, nothing written

Same rows and seeds as accuracy.py; number of modes not given, delta = 1e-6, replacing one record. Methods:

ladder          `DensityModes` as by default: a public ladder of bandwidths
reference       `DensityModes(bandwidth="reference")`: one public bandwidth
mean_shift      `pydpmode.MeanShift` with its own bandwidth from the rows: NOT private
sklearn         scikit-learn's `MeanShift(bin_seeding=True)`, the tenth quantile of the distances: NOT private

`mse` is equation (14) of the paper; `exact`, `missed`, `false` as in accuracy.py. `seconds`: processor time
of release and reading, or of the fit. Standard errors (`_se`) are over runs.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

from accuracy import DELTA, EPSILONS, PAPER, REPORTING_SEED, RUNS, SIZES, describe, mean_and_error
from simulated_release import reported_modes, simulated_surface
from sklearn.cluster import MeanShift as SklearnMeanShift
from sklearn.cluster import estimate_bandwidth
from study_densities import DENSITIES, FloatArray, StudyDensity

from pydpmode import MeanShift

RESULTS = Path(__file__).parent / "results" / "mode_peers.csv"
FIELDS = ("density", "n", "epsilon", "method", "runs", "mse", "mse_se", "exact", "missed", "false")
FIELDS += ("seconds", "seconds_se")
RULES = ("ladder", "reference")
QUICK = ((1000, (1.0,)), (5000, (0.5,)))


class Located:
    """Locations, as `describe` reads them."""

    def __init__(self, locations: FloatArray) -> None:
        self.locations = locations


def private(density: StudyDensity, x: FloatArray, rule: str, epsilon: float, seed: int) -> FloatArray:
    """Return the modes of one simulated release."""
    released = simulated_surface(x, density.lower, density.upper, epsilon, DELTA, seed, bandwidth=rule)
    return reported_modes(released)[1].locations


def plain(x: FloatArray, method: str, seed: int) -> FloatArray:
    """Return the modes of the rows themselves."""
    if method == "mean_shift":
        return MeanShift().fit(x).cluster_centers_
    width = estimate_bandwidth(x, quantile=0.1, n_samples=1000, random_state=seed)
    return SklearnMeanShift(bandwidth=width, bin_seeding=True).fit(x).cluster_centers_


def row(
    density: StudyDensity, n: int, epsilon: float | str, method: str, runs: int, seed: int
) -> dict[str, object]:
    """Run one method in one cell."""
    found, seconds = [], []
    for run in range(seed, seed + runs):
        x = density.sample(n, run)
        start = time.process_time()
        modes = private(density, x, method, float(epsilon), run) if epsilon else plain(x, method, run)
        seconds.append(time.process_time() - start)
        found.append(Located(modes))
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


def main() -> None:
    """Run the study and write its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few cells with five runs; nothing is written")
    quick = parser.parse_args().quick
    runs = 5 if quick else RUNS
    rows = []
    for name in PAPER:
        for n, epsilons in QUICK if quick else [(n, EPSILONS) for n in SIZES]:
            cells = [("", method) for method in ("mean_shift", "sklearn")]
            cells += [(epsilon, rule) for epsilon in epsilons for rule in RULES]
            for epsilon, method in cells:
                rows.append(row(DENSITIES[name], n, epsilon, method, runs, REPORTING_SEED))
                print("  ".join(f"{key} {rows[-1][key]}" for key in FIELDS), flush=True)
    if quick:
        return
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
