"""How often the number of clusters is found when it is not given.

    python benchmarks/cluster_number.py          # about five minutes; benchmarks/results/cluster_number.csv
    python benchmarks/cluster_number.py --quick  # two sets of rows each, nothing written

Made-up rows, other ones in every run, epsilon 1 and 5: three Gaussians in two columns, `long` with standard
deviations of 1 and .2 along axes that are not those of all the data, and `round` with .6; `four columns`,
long ones again; two Gaussians of 6,000 rows each (`two`), and the same with 5% of one column set to its
lower bound (`pile`). One Gaussian is a table of clustering_tables.py.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from cluster_data import FloatArray
from result_files import write_rows

from pydpmode import ModalClustering

SEED = 86_000
DELTA = 1e-6
RUNS, FEW = 20, 10
RESULTS = Path(__file__).parent / "results" / "cluster_number.csv"
Bounds = list[tuple[float, float]]
Family = tuple[Callable[[np.random.Generator], FloatArray], Bounds, int, int]


def three(generator: np.random.Generator, centres: FloatArray, sd: FloatArray, n: int) -> FloatArray:
    """Return three Gaussians with shares .5, .3 and .2."""
    label = generator.choice(3, n, p=[0.5, 0.3, 0.2])
    return np.asarray(centres[label] + generator.normal(size=(n, centres.shape[1])) * sd)


def piled(generator: np.random.Generator, share: float) -> FloatArray:
    """Return two Gaussians, a share of the second column set to its lower bound."""
    x = generator.normal(size=(12_000, 2)) + np.repeat([[-2.0, -2.0], [2.0, 2.0]], 6000, axis=0)
    x[generator.random(12_000) < share, 1] = -5.0
    return x


PLANE = np.array([[10.0, 0.0], [15.0, 5.0], [6.0, 5.0]])
FOUR = np.array([[0.0, -2.5, 0.0, 1.0], [5.0, 2.5, 1.0, -2.0], [-4.0, 2.5, -2.0, 1.0]])
LONG, ROUND = np.array([1.0, 0.2]), np.array([0.6, 0.6])
PLANE_BOX: Bounds = [(0.0, 20.0), (-2.0, 8.0)]
FAMILIES: dict[str, Family] = {
    "long, n = 2,000": (lambda g: three(g, PLANE, LONG, 2000), PLANE_BOX, 3, RUNS),
    "long, n = 20,000": (lambda g: three(g, PLANE, LONG, 20_000), PLANE_BOX, 3, RUNS),
    "round, n = 2,000": (lambda g: three(g, PLANE, ROUND, 2000), PLANE_BOX, 3, RUNS),
    "round, n = 20,000": (lambda g: three(g, PLANE, ROUND, 20_000), PLANE_BOX, 3, RUNS),
    "four columns": (lambda g: three(g, FOUR, np.tile(LONG, 2), 20_000), [(-9.0, 9.0)] * 4, 3, FEW),
    "two": (lambda g: piled(g, 0.0), [(-5.0, 5.0)] * 2, 2, FEW),
    "pile": (lambda g: piled(g, 0.05), [(-5.0, 5.0)] * 2, 2, FEW),
}


def row(name: str, family: Family, epsilon: float, runs: int) -> dict[str, object]:
    """Return how many clusters were found in some runs."""
    make, bounds, truth, _ = family
    found, again = [], []
    for seed in range(SEED, SEED + runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ModalClustering(make(np.random.default_rng(seed)), bounds=bounds)
            result = model.fit(epsilon=epsilon, delta=DELTA, seed=seed)
        found.append(result.n_clusters)
        if result.n_clusters == truth:
            again.append(float(result.stability["found_again"].min()))
    return {
        "family": name,
        "epsilon": epsilon,
        "true": truth,
        "runs": runs,
        "right": sum(count == truth for count in found),
        "least": min(found),
        "median": float(np.median(found)),
        "most": max(found),
        "least_found_again": min(again) if again else "",
    }


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two sets of rows each, nothing written")
    quick = parser.parse_args().quick
    rows = []
    for name, family in FAMILIES.items():
        for epsilon in (1.0, 5.0):
            rows.append(row(name, family, epsilon, 2 if quick else family[3]))
            print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    if not quick:
        write_rows(RESULTS, rows)


if __name__ == "__main__":
    main()
