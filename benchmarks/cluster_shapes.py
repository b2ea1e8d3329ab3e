"""Clusters of own shapes beside clusters of one common shape, four to eight columns.

    python benchmarks/cluster_shapes.py                                   # about twenty minutes
    python benchmarks/cluster_shapes.py --quick                           # two families, one run each
    python benchmarks/cluster_shapes.py --csv Satellite.csv 4 --csv LetterRecognition.csv 6

Made-up families: `mixture` (Gaussian clusters of different shapes and sizes), `skewed` (gamma clusters),
`heavy` (Student's t with four degrees of freedom), `lobes` (each cluster three bumps), `large` (five thousand
rows in eight columns); and scikit-learn's `wine` and `cancer`. `--csv FILE COLUMNS` adds a table with its
labels in the one column that is not numeric, 2,500 rows a run, such as those of the R package mlbench.
All are standardised, whitened by principal components and taken as they are: this is a study of the fit,
no private analysis. No digits: constants are set on other data than those reported.

One release per run serves both fits; `common` assigns to the nearest centre. Rows go to
benchmarks/results/cluster_shapes.csv: means over runs of the adjusted Rand index and of normalised mutual
information, and the standard error of the difference of their mean.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from cluster_data import BOUND, FloatArray, mixture, whitened
from numpy.typing import NDArray
from result_files import write_rows
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from pydpmode import ModalClustering
from pydpmode.numerics.cluster_set import ClusterSet, fit_clusters, nearest_cluster

SEED = 79_000
EPSILONS = (0.25, 1.0, 5.0)
RUNS = 4
DELTA = 1e-5
CSV_ROWS = 2500
RESULTS = Path(__file__).parent / "results" / "cluster_shapes.csv"
IntArray = NDArray[np.int64]
Table = tuple[FloatArray, IntArray]


def from_mixture(seed: int, d: int, count: int, n: int) -> Table:
    """Return Gaussian clusters of different shapes and sizes."""
    data = mixture(seed, d, count, n)
    return data.rows, data.labels


def skewed(seed: int, d: int = 6, count: int = 8, n: int = 3000) -> Table:
    """Return gamma clusters, each turned and stretched in its own way."""
    generator = np.random.default_rng(seed)
    centres = 0.8 * generator.normal(size=(count, d))
    labels = generator.choice(count, n, p=generator.dirichlet(np.full(count, 3.0)))
    turns = np.array([np.linalg.qr(generator.normal(size=(d, d)))[0] for _ in range(count)])
    roots = 0.6 * turns * np.exp(0.3 * generator.normal(size=(count, 1, d)))
    noise = (generator.gamma(2, size=(n, d)) - 2) / np.sqrt(2)
    return centres[labels] + np.einsum("nij,nj->ni", roots[labels], noise), labels


def heavy(seed: int, d: int = 4, count: int = 6, n: int = 1500) -> Table:
    """Return clusters with Student's t, four degrees of freedom, of different widths."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(count, d))
    labels = generator.choice(count, n, p=generator.dirichlet(np.full(count, 5.0)))
    widths = 0.4 * np.exp(0.35 * generator.normal(size=count))
    noise = generator.normal(size=(n, d)) / np.sqrt(generator.chisquare(4, size=(n, 1)) / 4)
    return centres[labels] + widths[labels][:, None] * noise, labels


def lobes(seed: int, d: int = 5, count: int = 8, n: int = 4000) -> Table:
    """Return clusters of three Gaussian bumps each."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(count, 1, d)) + 0.45 * generator.normal(size=(count, 3, d))
    labels = generator.choice(count, n, p=generator.dirichlet(np.full(count, 6.0)))
    lobe = generator.integers(0, 3, n)
    return centres[labels, lobe] + 0.4 * generator.normal(size=(n, d)), labels


def from_csv(seed: int, path: str) -> Table:
    """Return a sample of the rows of a table with one column of labels."""
    table = pd.read_csv(path)
    numbers = table.select_dtypes("number")
    [name] = [c for c in table.columns if c not in numbers.columns]
    keep = np.random.default_rng(seed).permutation(len(table))[:CSV_ROWS]
    codes = pd.factorize(table[name])[0]
    return numbers.to_numpy(dtype=float)[keep], codes[keep]


FAMILIES: dict[str, tuple[Callable[[int], Table], int]] = {
    "mixture": (partial(from_mixture, d=6, count=10, n=1800), 6),
    "skewed": (skewed, 6),
    "heavy": (heavy, 4),
    "lobes": (lobes, 5),
    "large": (partial(from_mixture, d=8, count=10, n=5000), 8),
    "cancer": (lambda _: load_breast_cancer(return_X_y=True), 4),
    "wine": (lambda _: load_wine(return_X_y=True), 4),
}


def scores(table: Table, d: int, epsilon: float, seed: int) -> FloatArray:
    """Return ARI and NMI of the common shape (first row) and of own shapes, after one release."""
    data = whitened(*table, d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ModalClustering(data.rows, bounds=[(-BOUND, BOUND)] * d, n_clusters=data.count)
        own = model.fit(epsilon, DELTA, seed=seed)
    common = fit_clusters(model.released, data.count, own_shapes=False)
    inside = np.clip(data.rows, -BOUND, BOUND)

    def judged(clusters: ClusterSet) -> tuple[float, float]:
        labels = nearest_cluster(clusters, inside, own.facts.bandwidth)
        ari = adjusted_rand_score(data.labels, labels)
        return ari, normalized_mutual_info_score(data.labels, labels)

    return np.array([judged(common), judged(own.cluster_set)])


def cell(name: str, make: Callable[[int], Table], d: int, epsilon: float, runs: int) -> dict[str, object]:
    """Return the row of one family at one epsilon."""
    found = np.array([scores(make(SEED + run), d, epsilon, SEED + run) for run in range(runs)])
    gains = (found[:, 1] - found[:, 0]).mean(axis=1)
    row: dict[str, object] = {"family": name, "d": d, "epsilon": epsilon, "runs": runs}
    for number, kind in enumerate(("common", "own")):
        for score, value in zip(("ari", "nmi"), found[:, number].mean(axis=0), strict=True):
            row[f"{score}_{kind}"] = f"{value:.4f}"
    row["gain"] = f"{gains.mean():.4f}"
    row["gain_se"] = f"{gains.std(ddof=1) / np.sqrt(runs):.4f}" if runs > 1 else ""
    print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return row


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two families, one run each, nothing written")
    parser.add_argument("--csv", nargs=2, action="append", default=[], metavar=("FILE", "COLUMNS"))
    options = parser.parse_args()
    families = dict(FAMILIES)
    for path, d in options.csv:
        families[Path(path).stem] = (partial(from_csv, path=path), int(d))
    if options.quick:
        families = {name: families[name] for name in ("heavy", "cancer")}
    rows = []
    for name, (make, d) in families.items():
        for epsilon in EPSILONS:
            rows.append(cell(name, make, d, epsilon, 1 if options.quick else RUNS))
            if not options.quick:
                write_rows(RESULTS, rows)


if __name__ == "__main__":
    main()
