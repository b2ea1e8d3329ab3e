"""How sensitive clusters by DP-GRAMS are to minibatch, clipping and step size, as the paper's sweeps ask.

    python benchmarks/cluster_sweeps.py            # two minutes; writes results/cluster_sweeps.csv
    python benchmarks/cluster_sweeps.py --quick    # three settings, three runs, nothing written

The paper's DP-GRAMS-C is DP-GRAMS whose ascents are merged to the given number of clusters by Ward linkage,
every row going to the nearest: here `DensityModes(mechanism="grams", n_modes=4,
grams=GramsOptions(finish="iterates"))` on the blobs of clustering_tables.py (Table 6; n = 2000, epsilon = 1,
delta = 1e-6, box (-3, 3)). Knobs, one at a time, as in grams_sweeps.py.

`ari`, `nmi` and `mse` (of the centres) as in clustering_tables.py; `seconds`: processor time, seeded noise.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from clustering_tables import BOUND, REPORTING_SEED, RUNS, FloatArray, blobs
from grams_sweeps import KNOBS
from result_files import write_rows
from simulated_grams import SimulatedGrams, simulated_grams
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from pydpmode import GramsOptions
from pydpmode.numerics.evaluation import mode_mse

N, EPSILON, DELTA, CLUSTERS = 2000, 1.0, 1e-6, 4
MEASURES = ("ari", "nmi", "mse", "seconds")
RESULTS = Path(__file__).parent / "results" / "cluster_sweeps.csv"


def release(rows: FloatArray, seed: int, options: GramsOptions | None = None) -> SimulatedGrams:
    """Return one simulated run of DP-GRAMS."""
    return simulated_grams(rows, -BOUND, BOUND, EPSILON, DELTA, seed, options, n_modes=CLUSTERS)


def options_for(knob: str, value: float) -> GramsOptions:
    """Return the options with one knob moved."""
    if knob == "eta":
        return GramsOptions(eta=value)
    if knob == "m":
        return GramsOptions(m=round(value * N), accountant="rdp")
    # The default is a public number: the same for every data set of this size.
    default = release(np.zeros((N, 2)), 0)
    return GramsOptions(A=value * default.trace.clip / float(default.bandwidth.prod()))


def one_run(seed: int, options: GramsOptions) -> tuple[float, ...]:
    """Return the measures of one run."""
    data = blobs(N, seed)
    start = time.process_time()
    centres = release(data.rows, seed, options).modes(n_modes=CLUSTERS, finish="iterates").locations
    labels = np.argmin(np.square(data.rows[:, None] - centres).sum(axis=2), axis=1)
    seconds = time.process_time() - start
    return (
        adjusted_rand_score(data.labels, labels),
        normalized_mutual_info_score(data.labels, labels),
        mode_mse(centres, data.centres),
        seconds,
    )


def row(knob: str, value: float, runs: int) -> dict[str, object]:
    """Run one setting."""
    options = options_for(knob, value)
    one_run(0, options)  # warm: calibrations are kept
    values = np.array([one_run(seed, options) for seed in range(REPORTING_SEED, REPORTING_SEED + runs)])
    spread = values.std(axis=0, ddof=1) / np.sqrt(runs)
    told: dict[str, object] = {"data": "blobs", "n": N, "epsilon": EPSILON, "knob": knob, "value": value}
    told["runs"] = runs
    for k, name in enumerate(MEASURES):
        told |= {name: f"{values[:, k].mean():.4g}", f"{name}_se": f"{spread[k]:.2g}"}
    return told


def main() -> None:
    """Run the sweeps and write their table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three settings; nothing is written")
    quick = parser.parse_args().quick
    rows: list[dict[str, object]] = []
    for knob, values in KNOBS.items():
        for value in values[1:2] if quick else values:
            rows.append(row(knob, value, 3 if quick else RUNS))
            print("  ".join(f"{key} {told}" for key, told in rows[-1].items()), flush=True)
    if quick:
        return
    write_rows(RESULTS, rows)


if __name__ == "__main__":
    main()
