"""What is made of a release: modes, branches and clusters, beside peers on the rows themselves."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pydpmode import DensityModes, ModalClustering, ModalRegression, datasets
from pydpmode.numerics.mode_seeking import find_modes
from pydpmode.numerics.scale_choice import choose_reading

from .cases import OURS, SEED, Case, Peer, Work

LOW, HIGH = -8.0, 8.0
MEAN_SHIFT = "scikit-learn MeanShift"
KMEANS = "scikit-learn KMeans"
PRIVATE_KMEANS = "diffprivlib KMeans"
DIRECT = "NumPy: the kernel density at 500 points"
LOWESS = "statsmodels lowess"
HISTOGRAM = "NumPy histogram, SciPy filter"
DIGITS = 10


def corners(n: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows about 2 or 4 centres at (+-3, +-3, 0, ...), and the centres."""
    signs = list(itertools.product((-3.0, 3.0), repeat=min(dimension, 2)))
    centres = np.zeros((len(signs), dimension))
    centres[:, :2] = signs
    random = np.random.default_rng(SEED)
    rows = centres[random.integers(len(centres), size=n)] + random.normal(size=(n, dimension))
    return np.clip(rows, LOW, HIGH), centres


def kernel_sums(rows: np.ndarray, points: np.ndarray, h: float) -> np.ndarray:
    """Return the Gaussian kernel density up to a factor, in blocks of 100 points."""
    out = np.empty(len(points))
    for start in range(0, len(points), 100):
        part = points[start : start + 100]
        cross = part @ rows.T
        squared = (part**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - 2 * cross
        out[start : start + 100] = np.exp(-0.5 * squared / h**2).sum(axis=1)
    return out


def mode_search(dimension: int, n: int, _: Path) -> Work:
    """Return the search for modes on a released surface, beside mean shift on the rows themselves."""
    from sklearn.cluster import MeanShift

    rows, centres = corners(n, dimension)
    box = [(LOW, HIGH)] * dimension
    model = DensityModes(rows, bounds=box)
    model.fit(epsilon=2.0, delta=1e-6, seed=1)
    surface = model.released
    points = rows[:500]

    def ours() -> np.ndarray:
        reading = choose_reading(surface)
        return find_modes(reading.surface, look=reading.look).locations

    def check(results: Mapping[str, Any]) -> None:
        found = {OURS: results[OURS], MEAN_SHIFT: results[MEAN_SHIFT].cluster_centers_}
        for name, places in found.items():
            away = np.linalg.norm(centres[:, None] - places, axis=2).min(axis=1)
            assert away.max() < 1.5, name
        assert np.all(results[DIRECT] >= 1)

    runs = {
        OURS: ours,
        MEAN_SHIFT: lambda: MeanShift(bandwidth=2.0, bin_seeding=True).fit(rows),
        DIRECT: lambda: kernel_sums(rows, points, 0.6),
    }
    return Work(runs, check)


def whole_fit(n: int, _: Path) -> Work:
    """Return a whole fit of modes in two columns, beside private clusters with their number given."""
    rows = datasets.four_gaussians(n, seed=SEED)[0].to_numpy()
    box = [(LOW, HIGH)] * 2

    def check(results: Mapping[str, Any]) -> None:
        assert len(results[OURS].modes) == 4

    runs = {
        OURS: lambda: DensityModes(rows, bounds=box).fit(epsilon=1.0, delta=1e-9),
        PRIVATE_KMEANS: lambda: private_kmeans(rows, 4, HIGH),
    }
    return Work(runs, check)


def private_kmeans(rows: np.ndarray, count: int, bound: float) -> Any:
    """Return diffprivlib's clusters."""
    from diffprivlib.models import KMeans

    return KMeans(count, epsilon=1.0, bounds=(-bound, bound)).fit(rows)


def regression(n: int, _: Path) -> Work:
    """Return a whole regression of the packaged wages: formula, release, branches, errors."""
    from scipy.ndimage import gaussian_filter
    from statsmodels.nonparametric.smoothers_lowess import lowess

    table = datasets.wages()
    table = table.sample(n, random_state=1) if n < len(table) else table
    bounds = {"age": (15, 90), "wage": (1000, 300_000)}
    age = table["age"].to_numpy(float)
    wage = np.log(np.clip(table["wage"].to_numpy(float), *bounds["wage"]))

    def ours() -> Any:
        model = ModalRegression.from_formula("log(wage) ~ age", table, bounds=bounds, resolution={"age": 1})
        return model.fit(epsilon=1.0, delta=1e-6)

    def picture() -> np.ndarray:
        ranges = [bounds["age"], np.log(bounds["wage"])]
        counts, _, edges = np.histogram2d(age, wage, bins=(75, 120), range=ranges)
        smooth = gaussian_filter(counts, (2.0, 3.0))
        return 0.5 * (edges[:-1] + edges[1:])[smooth.argmax(axis=1)]

    def check(results: Mapping[str, Any]) -> None:
        at_forty = results[OURS].predict({"age": [40.0]})["estimate"].to_numpy()
        assert np.abs(at_forty - results[HISTOGRAM][25]).min() < 0.3
        assert len(results[LOWESS]) == n

    runs = {
        OURS: ours,
        LOWESS: lambda: lowess(wage, age, frac=0.1, it=0, delta=0.75),
        HISTOGRAM: picture,
    }
    return Work(runs, check)


def digits(n: int) -> np.ndarray:
    """Return rows of scikit-learn's digits in six whitened components."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    scores = PCA(6, whiten=True, svd_solver="full").fit_transform(
        StandardScaler().fit_transform(load_digits().data)
    )
    return np.clip(scores[:n], -3, 3)


def clusters(n: int, _: Path) -> Work:
    """Return a whole clustering of the digits, beside KMeans with the same number."""
    from sklearn.cluster import KMeans

    rows = digits(n)
    count = min(DIGITS, max(2, n // 50))

    def ours() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few records: some clusters are faint
            model = ModalClustering(
                rows, bounds=[(-3, 3)] * 6, n_clusters=count, public_transform="PCA, taken as public"
            )
            return model.fit(epsilon=1.0, delta=1e-5)

    def check(results: Mapping[str, Any]) -> None:
        assert np.shape(results[OURS].centres) == (count, 6)
        assert results[KMEANS].cluster_centers_.shape == (count, 6)

    runs = {
        OURS: ours,
        KMEANS: lambda: KMeans(count, n_init=10, random_state=1).fit(rows),
        PRIVATE_KMEANS: lambda: private_kmeans(rows, count, 3.0),
    }
    return Work(runs, check)


CASES = (
    *(
        Case(
            f"search for modes, {d} column{'s' * (d > 1)}",
            rows,
            few,
            functools.partial(mode_search, d),
            (Peer(MEAN_SHIFT, most), Peer(DIRECT, direct)),
            rounds=3,
        )
        for d, rows, few, most, direct in (
            (1, 20_000, 2000, 2.0, 1.5),
            (2, 20_000, 2000, 0.5, 1.5),
            (3, 20_000, 0, 0.6, 5.0),
            (4, 10_000, 0, 3.0, 100.0),
        )
    ),
    Case("modes, whole fit", 100_000, 5000, whole_fit, (Peer(PRIVATE_KMEANS, 0.6, "diffprivlib.models"),)),
    Case("regression, whole fit", 178_122, 20_000, regression, (Peer(LOWESS, 10.0), Peer(HISTOGRAM, 15.0))),
    Case(
        "clusters, whole fit",
        1797,
        100,
        clusters,
        (Peer(KMEANS, 150.0), Peer(PRIVATE_KMEANS, 100.0, "diffprivlib.models")),
        rounds=3,
    ),
)
