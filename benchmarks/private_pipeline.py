"""Digits clustered end to end inside one budget: centre, components and clusters all private.

scikit-learn's 1797 x 64 digits; what is public is the pixel box [0, 16], n, six components and ten clusters.

    python benchmarks/private_pipeline.py                     # about half an hour
    python benchmarks/private_pipeline.py --quick             # two epsilons, three runs, nothing written
    python benchmarks/private_pipeline.py --methods kmeans    # some methods only; others' rows are kept
    python benchmarks/private_pipeline.py --tuning            # made-up mixtures, nothing written

Methods: `pipeline` is `PrivateClusteringPipeline` with its default shares, rows clipped at the public radius
5 in scales of 6 grey levels; `pipeline, private radius` releases the radius too. `diffprivlib` is its PCA and
KMeans with half of epsilon each (pure DP; bounds and norms public, scores within -6 and 6); it runs where
scikit-learn is older than 1.9. `kmeans` is scikit-learn's on its PCA, not private; `classes` assigns to the
true class means in those components.

Rows go to benchmarks/results/private_pipeline.csv: means over runs and their standard errors.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TUNING_SEED, REPORTING_SEED = 80_000, 500_000
EPSILONS = (0.25, 0.5, 1.0, 2.5, 5.0)
DELTA = 1e-5
RUNS, QUICK_RUNS = 20, 3
COMPONENTS, CLUSTERS = 6, 10
BOX = (0.0, 16.0)
SCALE, RADIUS = 6.0, 5.0
RESULTS = Path(__file__).parent / "results" / "private_pipeline.csv"
FIELDS = ("method", "epsilon", "runs", "ari", "ari_se", "nmi", "nmi_se", "seconds")


def pipeline(
    rows: FloatArray, labels: IntArray, epsilon: float, seed: int, radius: object = RADIUS
) -> IntArray:
    """Return the labels of the rows by our pipeline."""
    from pydpmode import PrivateClusteringPipeline
    from pydpmode.errors import LowSignal

    model = PrivateClusteringPipeline(
        rows,
        bounds=[BOX] * rows.shape[1],
        n_components=COMPONENTS,
        n_clusters=CLUSTERS,
        radius=radius,  # type: ignore[arg-type]
        scale=SCALE,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignal)
        found = model.fit(epsilon, DELTA, seed=seed)
    return np.asarray(found.predict(rows).to_numpy(dtype=np.int64))


def private_radius(rows: FloatArray, labels: IntArray, epsilon: float, seed: int) -> IntArray:
    """Return the labels of the rows by our pipeline, the radius released as well."""
    return pipeline(rows, labels, epsilon, seed, "private")


def peer(rows: FloatArray, labels: IntArray, epsilon: float, seed: int) -> IntArray:
    """Return the labels by diffprivlib's PCA and KMeans."""
    from diffprivlib.models import PCA as PrivatePCA
    from diffprivlib.models import KMeans as PrivateKMeans

    half = (BOX[1] - BOX[0]) / 2
    scaled = (rows - half) / SCALE
    side = np.full(rows.shape[1], half / SCALE)
    norm = float(np.linalg.norm(side))
    components = PrivatePCA(
        COMPONENTS, epsilon=epsilon / 2, bounds=(-side, side), data_norm=norm, random_state=seed
    )
    scores = np.clip(components.fit(scaled).transform(scaled), -6, 6)
    box = np.full(COMPONENTS, 6.0)
    clusters = PrivateKMeans(CLUSTERS, epsilon=epsilon / 2, bounds=(-box, box), random_state=seed)
    return np.asarray(clusters.fit(scores).predict(scores))


def kmeans(rows: FloatArray, labels: IntArray, epsilon: float, seed: int) -> IntArray:
    """Return the labels by scikit-learn's PCA and k-means. Not private."""
    scores = PCA(COMPONENTS, random_state=seed).fit_transform(rows)
    return np.asarray(KMeans(CLUSTERS, n_init=10, random_state=seed).fit_predict(scores))


def classes(rows: FloatArray, labels: IntArray, epsilon: float, seed: int) -> IntArray:
    """Return the nearest true class mean of each row, in scikit-learn's components. Not private."""
    scores = PCA(COMPONENTS, random_state=seed).fit_transform(rows)
    means = np.array([scores[labels == k].mean(axis=0) for k in range(CLUSTERS)])
    return np.asarray(np.argmin(((scores[:, None] - means) ** 2).sum(axis=2), axis=1))


Method = Callable[[FloatArray, IntArray, float, int], IntArray]
METHODS: dict[str, Method] = {
    "pipeline": pipeline,
    "pipeline, private radius": private_radius,
    "diffprivlib": peer,
    "kmeans": kmeans,
    "classes": classes,
}
NOT_PRIVATE = ("kmeans", "classes")


def digits(seed: int) -> tuple[FloatArray, IntArray]:
    """Return the digits: the same rows whatever the seed."""
    rows, labels = load_digits(return_X_y=True)
    return np.asarray(rows), np.asarray(labels)


def mixture(seed: int) -> tuple[FloatArray, IntArray]:
    """Return 1800 rows in the same box: ten Gaussian clusters with twelve common directions of spread."""
    random = np.random.default_rng(seed)
    centres = np.clip(6 + 5 * random.normal(size=(CLUSTERS, 64)), *BOX)
    directions = 1.4 * random.normal(size=(12, 64))
    labels = random.integers(0, CLUSTERS, 1800)
    spread = random.normal(size=(1800, 12)) @ directions + 2 * random.normal(size=(1800, 64))
    return np.clip(centres[labels] + spread, *BOX), labels


def cell(
    name: str, epsilon: float, runs: int, seed: int, data: Callable[[int], tuple[FloatArray, IntArray]]
) -> dict[str, object]:
    """Run one method at one epsilon and return its row."""
    scores = []
    started = time.perf_counter()
    for run in range(runs):
        rows, labels = data(seed + run)
        found = METHODS[name](rows, labels, epsilon, seed + run)
        scores.append((adjusted_rand_score(labels, found), normalized_mutual_info_score(labels, found)))
    mean = np.mean(scores, axis=0)
    error = np.std(scores, axis=0, ddof=1) / np.sqrt(runs) if runs > 1 else np.zeros(2)
    return {
        "method": name,
        "epsilon": "" if name in NOT_PRIVATE else epsilon,
        "runs": runs,
        "ari": f"{mean[0]:.4f}",
        "ari_se": f"{error[0]:.4f}",
        "nmi": f"{mean[1]:.4f}",
        "nmi_se": f"{error[1]:.4f}",
        "seconds": f"{(time.perf_counter() - started) / runs:.2f}",
    }


def write(rows: list[dict[str, object]]) -> None:
    """Write the rows in the order of the methods; rows of methods that were not run stay."""
    kept: list[dict[str, object]] = []
    if RESULTS.exists():
        done = {(row["method"], str(row["epsilon"])) for row in rows}
        with RESULTS.open(newline="", encoding="utf-8") as file:
            kept = [dict(row) for row in csv.DictReader(file) if (row["method"], row["epsilon"]) not in done]
    names = list(METHODS)
    everything = sorted(
        [*kept, *rows], key=lambda row: (names.index(str(row["method"])), float(str(row["epsilon"] or 0)))
    )
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(everything)


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two epsilons, three runs, nothing written")
    parser.add_argument("--tuning", action="store_true", help="made-up mixtures, nothing written")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    options = parser.parse_args()
    seed = TUNING_SEED if options.tuning else REPORTING_SEED
    rows = []
    for name in options.methods:
        for epsilon in [1.0] if name in NOT_PRIVATE else (0.5, 1.0) if options.quick else options.epsilons:
            row = cell(
                name,
                epsilon,
                QUICK_RUNS if options.quick else RUNS,
                seed,
                mixture if options.tuning else digits,
            )
            rows.append(row)
            print("  ".join(f"{key} {row[key]}" for key in FIELDS), flush=True)
            if not (options.quick or options.tuning):
                write(rows)


if __name__ == "__main__":
    main()
