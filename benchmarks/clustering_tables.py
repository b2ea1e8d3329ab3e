"""Private modal clustering beside its peers, one table a command.

    python benchmarks/clustering_tables.py digits     # the paper's Table 7: six whitened PCA dimensions
    python benchmarks/clustering_tables.py blobs      # the paper's Table 6: four blobs in the plane
    python benchmarks/clustering_tables.py mnist      # for Table 8: 5,000 images, five whitened dimensions
    python benchmarks/clustering_tables.py hsct       # for Table 9: flow cytometry, four colours, labelled
    python benchmarks/clustering_tables.py skewed     # made-up clusters of unequal size and shape
    python benchmarks/clustering_tables.py gaussian   # unknown number on one Gaussian: false splits
    python benchmarks/clustering_tables.py docs       # docs/clustering.md anew from the CSV files
    python benchmarks/clustering_tables.py tuning     # made-up mixtures that constants were set on

`--quick`: fewer cells, runs and methods, nothing written. Rows go to benchmarks/results/clustering_TABLE.csv,
each as soon as it is there; rows of other methods and cells stay. So parts can be run alone:
`digits --only fit`, `digits --only fit,modes --epsilons 0.5,2.5`, `hsct --sizes 9928`, `--runs 5`. The data
of mnist and hsct are fetched (fetch_data.py); where they cannot be had, the table is skipped and the reason
printed.

Methods: `fit` and `modes` are `ModalClustering` with the number of clusters given, K; `unknown` (only when
asked for) is `fit` without it. `dp_kmeans` is diffprivlib's KMeans with the same bounds and epsilon (pure DP,
its own neighbouring relation). Not private: `kmeans` is scikit-learn's; `mean_shift` is too, with a bandwidth
that is chosen by the number of clusters and never by the classes (`mean_shift` below), and `kms` is that of
the R package ks with its own bandwidth. Every method gets the same rows, except that `mean_shift` and, in
more than two columns, `kms` get a sample of at most 5,000 and 1,000; other rows get the nearest centre, and
the cluster of the nearest row of the sample. Methods that are not private have one run where the rows are the
same in every run; otherwise `kms` has three, and one at n = 5000.

Errors of the centres (`mse`) are to the true class means (blobs: true centres), by optimal assignment, in the
units before whitening. Seconds are of processor time, those of `mean_shift` with the search for its
bandwidth. Standard errors are over runs.
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
from cluster_data import BOUND, UNCLASSIFIED, Data, blobs, digits, gaussian, hsct, mixture, mnist, skewed
from fetch_data import NotAtHand
from kernel_mean_shift import MOST, kernel_modes
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MeanShift, estimate_bandwidth
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from pydpmode import ModalClustering
from pydpmode.numerics.evaluation import mode_mse

__all__ = ["BOUND", "REPORTING_SEED", "digits"]  # for figures.py

FloatArray = NDArray[np.float64]
Row = dict[str, object]

TUNING_SEED, REPORTING_SEED = 70_000, 300_000
RUNS, QUICK_RUNS = 20, 3
SLOW_ROWS = 5000
KMS_RUNS, SLOW_RUNS = 3, 1  # of ks::kms, whose time grows with the square of the rows
RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "clustering.md"
BEGIN, END = "<!-- tables begin -->", "<!-- tables end -->"
EPSILONS = {
    "digits": (0.25, 0.5, 1.0, 2.5, 5.0),
    "blobs": (0.1, 0.2, 0.5, 1.0, 5.0),
    "mnist": (0.05, 0.1, 0.2, 0.5, 1.0),
    "hsct": (0.1, 0.25, 0.5, 1.0, 5.0),
    "skewed": (0.25, 1.0, 5.0),
    "tuning": (0.25, 1.0, 5.0),
}
MEASURES = ("ari", "nmi", "mse", "clusters", "seconds")
QUANTILES = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
SHIFTED_ROWS = 5000
GAUSSIAN_CELLS = ((2000, 1.0), (2000, 5.0), (20_000, 1.0))


@dataclass(frozen=True)
class Outcome:
    """What one method made of one data set."""

    centres: FloatArray
    labels: NDArray[np.int64]
    seconds: float


# -- methods -------------------------------------------------------------------------------------------


def ours(data: Data, epsilon: float, delta: float, seed: int, count: int | None, centres: str) -> Outcome:
    """Return the clusters of `ModalClustering` with seeded noise."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ModalClustering(
            data.rows, bounds=[data.box] * data.rows.shape[1], n_clusters=count, centres=centres
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


def dp_kmeans(data: Data, epsilon: float, delta: float, seed: int) -> Outcome | None:
    """Return the clusters of diffprivlib's KMeans; None where it cannot be imported."""
    try:
        from diffprivlib.models import KMeans as PrivateKMeans
    except ImportError:
        return None
    clipped = Data(np.clip(data.rows, *data.box), data.labels, data.centres, data.units)
    return peer(PrivateKMeans(data.count, epsilon=epsilon, bounds=data.box, random_state=seed), clipped)


def kmeans(data: Data, seed: int) -> Outcome:
    """Return the clusters of scikit-learn's KMeans."""
    return peer(KMeans(data.count, n_init=10, random_state=seed), data)


def mean_shift(data: Data, seed: int) -> Outcome:
    """Return the clusters of scikit-learn's MeanShift.

    The bandwidth is the quantile of the distances, of `QUANTILES`, that gives the number of clusters nearest
    to K, counting clusters with at least 1% of the rows; of several, the widest.
    """
    start = time.process_time()
    rows = data.rows
    if len(rows) > SHIFTED_ROWS:
        rows = rows[np.random.default_rng(seed).choice(len(rows), SHIFTED_ROWS, replace=False)]
    best, closest = None, np.inf
    for quantile in reversed(QUANTILES):
        width = estimate_bandwidth(rows, quantile=quantile, n_samples=1000, random_state=seed)
        model = MeanShift(bandwidth=width, bin_seeding=True).fit(rows)
        off = abs(int((np.bincount(model.labels_) >= 0.01 * len(rows)).sum()) - data.count)
        if off < closest:
            best, closest = model, off
    labels = best.predict(data.rows)
    return Outcome(best.cluster_centers_, labels, time.process_time() - start)


def kms(data: Data, seed: int) -> Outcome | None:
    """Return the clusters of R's `ks::kms`; None where it is not there or takes too long."""
    found = kernel_modes(data.rows, seed=seed, most=None if data.rows.shape[1] == 2 else MOST)
    return None if found is None else Outcome(found.modes, found.labels, found.seconds)


PRIVATE: dict[str, Callable[[Data, float, float, int], Outcome | None]] = {
    "fit": lambda data, epsilon, delta, seed: ours(data, epsilon, delta, seed, data.count, "fit"),
    "unknown": lambda data, epsilon, delta, seed: ours(data, epsilon, delta, seed, None, "fit"),
    "modes": lambda data, epsilon, delta, seed: ours(data, epsilon, delta, seed, data.count, "modes"),
    "dp_kmeans": dp_kmeans,
}
PLAIN: dict[str, Callable[[Data, int], Outcome | None]] = {
    "kmeans": kmeans,
    "mean_shift": mean_shift,
    "kms": kms,
}
METHODS = (*PLAIN, *PRIVATE)
DEFAULT = tuple(name for name in METHODS if name != "unknown")
QUICK = ("kmeans", "fit", "modes", "dp_kmeans")


# -- tables --------------------------------------------------------------------------------------------


def summarise(cell: Row, method: str, runs: list[tuple[Data, Outcome]]) -> Row:
    """Return one row: means and standard errors over runs."""
    scored = [(d, o, d.labels != UNCLASSIFIED) for d, o in runs]
    figures = {
        "ari": [adjusted_rand_score(d.labels[known], o.labels[known]) for d, o, known in scored],
        "nmi": [normalized_mutual_info_score(d.labels[known], o.labels[known]) for d, o, known in scored],
        "mse": [mode_mse(o.centres * d.units, d.centres * d.units) for d, o in runs],
        "clusters": [float(len(o.centres)) for _, o in runs],
        "seconds": [o.seconds for _, o in runs],
    }
    row: Row = {**cell, "method": method, "runs": len(runs)}
    for name in MEASURES:
        values = figures[name]
        row[name] = f"{np.mean(values):.4g}"
        several = len(values) > 1
        row[f"{name}_se"] = f"{np.std(values, ddof=1) / np.sqrt(len(values)):.2g}" if several else ""
    print({k: v for k, v in row.items() if not k.endswith("_se")}, flush=True)
    return row


def table(
    make: Callable[[int], Data], cell: Row, epsilons: tuple[float, ...], delta: float, runs: int, seed: int
) -> Callable[[str], Iterator[Row]]:
    """Return what yields the rows of one method on one data set (or family of them)."""
    sets = [make(seed + run) for run in range(runs)]
    same = bool(sets[1:]) and sets[0] is sets[1]

    def rows(method: str) -> Iterator[Row]:
        if method in PLAIN:
            most = runs
            if method == "kms":
                most = min(runs, SLOW_RUNS if len(sets[0].rows) >= SLOW_ROWS else KMS_RUNS)
            chosen = sets[: 1 if same else most]
            found = [(data, PLAIN[method](data, seed + run)) for run, data in enumerate(chosen)]
            done = [(data, outcome) for data, outcome in found if outcome is not None]
            if done:
                yield summarise({**cell, "epsilon": ""}, method, done)
            return
        for epsilon in epsilons:
            found = [(d, PRIVATE[method](d, epsilon, delta, seed + run)) for run, d in enumerate(sets)]
            done = [(data, outcome) for data, outcome in found if outcome is not None]
            if done:
                yield summarise({**cell, "epsilon": epsilon}, method, done)

    return rows


def families(name: str, quick: bool) -> Iterator[tuple[Row, Callable[[int], Data]]]:
    """Yield the data of a table: what names a cell, and a maker of data by seed."""
    if name == "blobs":
        for n in (1000,) if quick else (700, 1000, 2000, 5000):
            yield {"n": n}, lambda seed, n=n: blobs(n, seed)
    elif name == "skewed":
        yield {}, skewed
    elif name == "tuning":
        yield {}, mixture
    elif name == "hsct":
        for subject in (12,) if quick else (12, None):
            data = hsct(subject)
            yield {"n": len(data.rows)}, lambda _, data=data: data
    else:
        data = {"digits": digits, "mnist": mnist}[name]()
        yield {}, lambda _: data


def gaussian_table(dimensions: tuple[int, ...], runs: int, seed: int) -> Iterator[Row]:
    """Yield how often the unknown-number fit finds more than one cluster in one correlated Gaussian."""
    for d in dimensions:
        for n, epsilon in GAUSSIAN_CELLS[: 2 if d > 2 else 3]:
            sets = ((seed + run, gaussian(n, d, seed + run)) for run in range(runs))
            split = [len(ours(data, epsilon, 1e-6, at, None, "fit").centres) > 1 for at, data in sets]
            share = float(np.mean(split))
            error = (share * (1 - share) / runs) ** 0.5
            row: Row = {"d": d, "n": n, "epsilon": epsilon, "runs": runs, "split": share}
            row["split_se"] = f"{error:.2g}"
            print(row, flush=True)
            yield row


# -- files ---------------------------------------------------------------------------------------------


def place(row: Row) -> tuple[object, ...]:
    """Return what a row is about, and by that its place in the table."""
    sizes = [float(str(row[key])) for key in ("d", "n") if row.get(key) not in (None, "")]
    epsilon = str(row["epsilon"])
    method = METHODS.index(str(row["method"])) if "method" in row else 0
    return (*sizes, float(epsilon) if epsilon else -1.0, method)


def merge(name: str, row: Row) -> None:
    """Put a row into the CSV of a table; the one of the same cell and method goes."""
    path = RESULTS / f"clustering_{name}.csv"
    kept: dict[tuple[object, ...], Row] = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            kept = {place(old): dict(old) for old in csv.DictReader(file)}
    kept[place(row)] = row
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[key] for key in sorted(kept))


def write_page() -> None:
    """Put the tables of the CSV files into docs/clustering.md, between its two marks."""
    lines: list[str] = []
    for name, title in TITLES.items():
        source = RESULTS / f"clustering_{name}.csv"
        if source.exists():
            with source.open(encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            lines += [f"### {title}", "", *(_gaussian(rows) if name == "gaussian" else _cells(rows)), ""]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(
        f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{rest.split(END)[1]}", encoding="utf-8"
    )


TITLES = {
    "blobs": "Blobs",
    "digits": "Digits",
    "mnist": "MNIST",
    "hsct": "Flow cytometry",
    "skewed": "Skewed clusters of unequal size",
    "gaussian": "One Gaussian",
}


def _cells(rows: list[dict[str, str]]) -> list[str]:
    keys = [key for key in ("n", "epsilon") if key in rows[0]]
    lines = ["| " + " | ".join([*keys, "method", "runs", "ARI", "NMI", "MSE", "clusters", "seconds"]) + " |"]
    lines.append("|" + "---|" * (len(keys) + 7))
    for row in rows:
        shown = [row[key] or "none" for key in keys]
        shown += [row["method"], row["runs"], f"{float(row['ari']):.3f}", f"{float(row['nmi']):.3f}"]
        shown += [f"{float(row['mse']):.3g}", f"{float(row['clusters']):.3g}", f"{float(row['seconds']):.2g}"]
        lines.append("| " + " | ".join(shown) + " |")
    return lines


def _gaussian(rows: list[dict[str, str]]) -> list[str]:
    lines = ["| d | n | epsilon | runs | share of runs with a false split |", "|---|---|---|---|---|"]
    keys = ("d", "n", "epsilon", "runs", "split")
    return lines + ["| " + " | ".join(row[key] for key in keys) + " |" for row in rows]


# -- command line --------------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    """Return the options, read and checked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", choices=(*EPSILONS, "gaussian", "docs"))
    parser.add_argument("--quick", action="store_true", help="few cells and runs; nothing is written")
    parser.add_argument("--only", default="", metavar="METHODS", help=f"of {','.join(METHODS)}")
    parser.add_argument("--epsilons", default="", help="other than the table's own")
    parser.add_argument("--sizes", default="", help="n of blobs and hsct, of the table's own")
    parser.add_argument("--dimensions", default="1,2,3,4,5,6", help="of gaussian")
    parser.add_argument("--runs", type=int, help=f"in a cell ({RUNS})")
    options = parser.parse_args()
    options.methods = tuple(part for part in options.only.split(",") if part)
    options.methods = options.methods or (QUICK if options.quick else DEFAULT)
    if unknown := set(options.methods) - set(METHODS):
        parser.error(f"no method is called {', '.join(sorted(unknown))}")
    return options


def rows_of(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of a table."""
    name, quick = options.table, options.quick
    runs = options.runs or (QUICK_RUNS if quick else RUNS)
    if name == "gaussian":
        dimensions = tuple(int(part) for part in options.dimensions.split(","))
        yield from gaussian_table(dimensions[:2] if quick else dimensions, runs, REPORTING_SEED)
        return
    epsilons = EPSILONS[name][2:3] if quick else EPSILONS[name]
    epsilons = tuple(float(part) for part in options.epsilons.split(",") if part) or epsilons
    delta = 1e-6 if name == "blobs" else 1e-5
    seed = TUNING_SEED if name == "tuning" else REPORTING_SEED
    sizes = {int(part) for part in options.sizes.split(",") if part}
    for cell, make in families(name, quick):
        if sizes and cell.get("n") not in sizes:
            continue
        rows = table(make, cell, epsilons, delta, runs, seed)
        for method in options.methods:
            yield from rows(method)


def main() -> None:
    """Run one table."""
    options = arguments()
    if options.table == "docs":
        write_page()
        return
    try:
        for row in rows_of(options):
            if not options.quick and options.table != "tuning":
                merge(options.table, row)
    except NotAtHand as reason:
        print(f"{options.table} is skipped. {reason}")


if __name__ == "__main__":
    main()
