"""Seconds that clusters take after the release: fit, standard errors and stability, on one thread.

    python benchmarks/cluster_search.py          # about a minute; benchmarks/results/cluster_search.csv
    python benchmarks/cluster_search.py --quick  # one repetition, nothing written

Data: digits (1,797 rows, six whitened columns) and made-up clusters (10,000 rows, five columns), ten clusters
at epsilon 1. `search`: `ModalClustering(released, n_clusters=10).fit()`, which reads no row. `pass`: the sums
over all rows, as in the release. Peers, in the same run and on the rows themselves, not private: KMeans of
scikit-learn with ten starts, and its Gaussian mixture with full covariances and ten starts. Medians of
processor time over repetitions, and the ratio of the search to each peer.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from cluster_data import Data, digits, mixture
from result_files import write_rows
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from pydpmode import ModalClustering
from pydpmode.numerics.feature_sums import feature_sum

SEED = 82_000
EPSILON, DELTA = 1.0, 1e-5
REPETITIONS = 5
RESULTS = Path(__file__).parent / "results" / "cluster_search.csv"


def median_seconds(work: Callable[[], object], repetitions: int) -> float:
    """Return the median processor time of some runs."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return float(np.median(times))


def row(name: str, data: Data, repetitions: int) -> dict[str, object]:
    """Return the seconds of one data set."""
    rows, count = np.clip(data.rows, *data.box), data.count
    columns = np.ascontiguousarray(rows.T)
    model = ModalClustering(rows, bounds=[data.box] * rows.shape[1], n_clusters=count)
    model.fit(EPSILON, DELTA, seed=SEED)
    design = model.released.design
    work: dict[str, Callable[[], object]] = {
        "search": lambda: ModalClustering(model.released, n_clusters=count).fit(),
        "pass": lambda: feature_sum(design, columns),
        "kmeans": lambda: KMeans(count, n_init=10, random_state=SEED).fit(rows),
        "mixture": lambda: GaussianMixture(count, n_init=10, random_state=SEED).fit(rows),
    }
    seconds = {kind: median_seconds(one, repetitions) for kind, one in work.items()}
    found: dict[str, object] = {"data": name, "n": len(rows), "d": rows.shape[1], "repetitions": repetitions}
    found |= {f"{kind}_s": f"{value:.3f}" for kind, value in seconds.items()}
    found |= {f"search/{peer}": f"{seconds['search'] / seconds[peer]:.1f}" for peer in ("kmeans", "mixture")}
    return found


def main() -> None:
    """Measure both data sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one repetition, nothing written")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    made_up = mixture(SEED, d=5, k=10, n=10_000)
    found = [
        row(name, data, 1 if quick else REPETITIONS)
        for name, data in (("digits", digits()), ("mixture", made_up))
    ]
    for one in found:
        print("  ".join(f"{key} {value}" for key, value in one.items()), flush=True)
    if not quick:
        write_rows(RESULTS, found)


if __name__ == "__main__":
    main()
