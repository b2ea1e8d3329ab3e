"""Whether a part of the budget is better spent on a second release, made where the first one found clusters.

    python benchmarks/cluster_second_release.py          # about half an hour
    python benchmarks/cluster_second_release.py --quick  # two families, one run each, nothing written

`one`: `ModalClustering`, all of the budget. `two`: the same with a share of the squared noise budget less,
and then one private step of Lloyd's algorithm: every record goes to its cluster by the first release, and the
sums of the differences to the centres, clipped to a radius, and the counts are released with Gaussian noise.
Replacing a record moves both together by at most sqrt(2) sqrt(radius^2 + weight^2), counts being multiplied
by `weight`. A step is shrunk by its known noise, against a prior variance. `bound` is it without noise.

Families as in cluster_shapes.py; no digits, and seeds of its own. All are taken as they are: a study of the
fit, no private analysis. Rows go to benchmarks/results/cluster_second_release.csv: the mean of the adjusted
Rand index and normalised mutual information, averaged over runs, and the standard error of two minus one.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from cluster_data import BOUND, Data, FloatArray, whitened
from cluster_shapes import FAMILIES
from result_files import write_rows
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from pydpmode import ModalClustering
from pydpmode.privacy.gaussian import gaussian_epsilon, gaussian_mu
from pydpmode.results.clustering_results import ClusteringResults

SEED = 81_000
EPSILON, DELTA = 0.25, 1e-5
SHARES = (0.15, 0.3, 0.5)
RADIUS = 1.0  # standard deviations of all rows
WEIGHT = 0.5
PRIOR = 0.25  # variance of a step, before its noise
LEAST_SHARE = 0.02
RUNS, QUICK_RUNS = 8, 1
RESULTS = Path(__file__).parent / "results" / "cluster_second_release.csv"


def fitted(data: Data, epsilon: float, seed: int) -> ClusteringResults:
    """Return the clusters of one release."""
    bounds = [(-BOUND, BOUND)] * data.rows.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ModalClustering(data.rows, bounds=bounds, n_clusters=data.count)
        return model.fit(epsilon, DELTA, seed=seed)


def step(data: Data, first: ClusteringResults, scale: float, generator: np.random.Generator) -> FloatArray:
    """Return the centres after one step, its noise `scale` times the sensitivity."""
    centres = first.centres.to_numpy()
    own = first.predict(data.rows).to_numpy(int) - 1
    away = np.clip(data.rows, -BOUND, BOUND) - centres[own]
    away *= np.minimum(1.0, RADIUS / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12))
    sums = np.zeros_like(centres)
    np.add.at(sums, own, away)
    noise = scale * np.sqrt(2 * (RADIUS**2 + WEIGHT**2))
    counts = np.bincount(own, minlength=len(centres)) + noise / WEIGHT * generator.normal(size=len(centres))
    counts = np.maximum(counts, LEAST_SHARE * len(data.rows))[:, None]
    moves = (sums + noise * generator.normal(size=sums.shape)) / counts
    return centres + moves * PRIOR / (PRIOR + (noise / counts) ** 2)


def index(data: Data, labels: FloatArray) -> float:
    """Return the mean of the adjusted Rand index and normalised mutual information."""
    ari = adjusted_rand_score(data.labels, labels)
    return float(ari + normalized_mutual_info_score(data.labels, labels)) / 2


def nearest(data: Data, centres: FloatArray) -> FloatArray:
    """Return the nearest centre of every row."""
    return ((data.rows[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)


def run(data: Data, share: float, seed: int) -> tuple[float, float, float]:
    """Return the index of one release, of two, and of two where the second has no noise."""
    generator = np.random.default_rng(seed)
    one = fitted(data, EPSILON, seed)
    mu = gaussian_mu(EPSILON, DELTA)
    first = fitted(data, gaussian_epsilon(DELTA, mu * np.sqrt(1 - share)), seed)
    indices = [index(data, one.predict(data.rows).to_numpy())]
    for scale in (1 / (mu * np.sqrt(share)), 0.0):
        indices.append(index(data, nearest(data, step(data, first, scale, generator))))
    return indices[0], indices[1], indices[2]


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two families, one run each, nothing written")
    quick = parser.parse_args().quick
    rows: list[dict[str, object]] = []
    for name in ("heavy", "cancer") if quick else FAMILIES:
        make, d = FAMILIES[name]
        for share in SHARES:
            seeds = range(SEED, SEED + (QUICK_RUNS if quick else RUNS))
            found = np.array([run(whitened(*make(seed), d), share, seed) for seed in seeds])
            gains = found[:, 1] - found[:, 0]
            row: dict[str, object] = {"family": name, "epsilon": EPSILON, "share": share, "runs": len(found)}
            row |= {kind: f"{v:.4f}" for kind, v in zip(("one", "two", "bound"), found.mean(0), strict=True)}
            row["gain"] = f"{gains.mean():.4f}"
            row["gain_se"] = f"{gains.std(ddof=1) / np.sqrt(len(gains)):.4f}" if len(gains) > 1 else ""
            print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
            rows.append(row)
    if not quick:
        write_rows(RESULTS, rows)


if __name__ == "__main__":
    main()
