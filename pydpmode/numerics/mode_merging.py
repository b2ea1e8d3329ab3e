"""Merge points that stand for the same mode.

By a radius when the number of modes is not known, by Ward linkage when it is: the two rules of
Bhattacharjee & Auddy (2026, arXiv 2607.29675, section 3).

Distances are Euclidean in the units given: divide by the bandwidth first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidArgument
from .mode_set import IntArray
from .surfaces import FloatArray


@dataclass(frozen=True)
class MergedPoints:
    """m points in k groups, the group of the weightiest point first.

    Parameters
    ----------
    labels : (m,) int array
        Group of every point.
    representatives : (k,) int array
        The weightiest point of each group (the first of equal ones).
    centres : (k, d) array
        Plain mean of each group: what the paper reports.
    """

    labels: IntArray
    representatives: IntArray
    centres: FloatArray

    @property
    def count(self) -> int:
        """Number of groups k."""
        return int(self.representatives.shape[0])


def merge_by_radius(points: ArrayLike, weights: ArrayLike, radius: float) -> MergedPoints:
    """Group points by distance, the weightiest first.

    The weightiest point that is still free takes every free point within `radius` of it. Groups
    cannot chain: no member is farther than `radius` from its representative.

    Parameters
    ----------
    points : (m, d) array
        In units in which one radius makes sense in every coordinate.
    weights : (m,) array
        Usually the density at each point. Of equal weights, the first point goes first.
    radius : float
        Not negative. Zero joins identical points only.

    Raises
    ------
    InvalidArgument
        If the radius is negative or not a number, or the shapes do not fit.
    """
    places, priority = _check(points, weights)
    if not radius >= 0:
        raise InvalidArgument(f"radius must be at least 0, got {radius}; 1 is one bandwidth")
    labels = np.full(priority.size, -1, dtype=np.int64)
    for point in np.argsort(-priority, kind="stable").tolist():
        if labels[point] >= 0:
            continue
        near = np.sum(np.square(places - places[point]), axis=1) <= radius * radius
        near[point] = True
        labels[near & (labels < 0)] = labels.max() + 1
    return _describe(places, priority, labels)


def merge_by_ward(points: ArrayLike, n_clusters: int, weights: ArrayLike | None = None) -> MergedPoints:
    """Group points into `n_clusters` by Ward's criterion (least growth of the sum of squares).

    Gives exactly `n_clusters` groups, also among identical points, or one per point when there
    are fewer points. Deterministic: ties go by the order of the points.

    Parameters
    ----------
    points : (m, d) array
        In units in which Euclidean distance makes sense.
    n_clusters : int
        At least 1.
    weights : (m,) array, optional
        Order the groups and choose their representatives. Equal by default.

    Raises
    ------
    InvalidArgument
        If `n_clusters` is below 1, or the shapes do not fit.
    """
    places = np.atleast_2d(np.asarray(points, dtype=np.float64))
    places, priority = _check(places, np.zeros(places.shape[0]) if weights is None else weights)
    if n_clusters < 1:
        raise InvalidArgument(f"n_clusters must be at least 1, got {n_clusters}")
    if priority.size <= n_clusters:
        return _describe(places, priority, np.arange(priority.size, dtype=np.int64))
    # Imported here: it costs a large part of the import of the package and few searches need it.
    from scipy.cluster.hierarchy import cut_tree, linkage

    labels = cut_tree(linkage(places, method="ward"), n_clusters=n_clusters).ravel()
    return _describe(places, priority, labels.astype(np.int64))


def _check(points: ArrayLike, weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return points (m, d) and weights (m,) as floats, or say why they do not fit."""
    places = np.asarray(points, dtype=np.float64)
    priority = np.asarray(weights, dtype=np.float64)
    if places.ndim != 2 or priority.shape != places.shape[:1]:
        raise InvalidArgument(
            f"points must be (m, d) and weights (m,), got shapes {places.shape} and {priority.shape}"
        )
    return places, priority


def _describe(points: FloatArray, weights: FloatArray, groups: IntArray) -> MergedPoints:
    """Describe each group, numbered by their weightiest points."""
    order = np.argsort(-weights, kind="stable")
    _, first = np.unique(groups[order], return_index=True)
    representatives = order[np.sort(first)]
    number = np.empty(representatives.size, dtype=np.int64)
    number[groups[representatives]] = np.arange(representatives.size)
    labels = number[groups]
    centres = np.zeros((representatives.size, points.shape[1]))
    np.add.at(centres, labels, points)
    centres /= np.bincount(labels, minlength=representatives.size)[:, None]
    return MergedPoints(labels=labels, representatives=representatives, centres=centres)
