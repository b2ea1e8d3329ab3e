"""Linking conditional peaks at neighbouring predictor values into branches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .conditional_peaks import IntArray, Peaks, neighbours
from .surfaces import FloatArray


def link_peaks(peaks: Peaks, shape: Sequence[int], gap: float) -> IntArray:
    """Return the branch of each peak: numbers from 0, by mutual nearest neighbours.

    Two peaks at neighbouring points of the grid are linked when each is the other's nearest and they are at
    most `gap` apart. Links are made shortest first, and never so that a branch would have two peaks at one
    point of the grid.

    Parameters
    ----------
    peaks : Peaks
        Sorted by slice.
    shape : sequence of int
        Of the predictors' grid.
    gap : float
        In the response's units.
    """
    count = int(np.prod(shape, dtype=np.int64))
    start = np.searchsorted(peaks.column, np.arange(count + 1))
    links: list[tuple[float, int, int]] = []
    for first, second in neighbours(shape):
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            links.extend(
                _mutual(
                    peaks.response, int(start[a]), int(start[a + 1]), int(start[b]), int(start[b + 1]), gap
                )
            )
    links.sort()
    parent = list(range(peaks.column.size))
    columns = [{int(c)} for c in peaks.column]
    for _, i, j in links:
        a, b = _find(parent, i), _find(parent, j)
        if a == b or columns[a] & columns[b]:
            continue
        if len(columns[a]) < len(columns[b]):
            a, b = b, a
        parent[b] = a
        columns[a] |= columns[b]
    roots = np.array([_find(parent, i) for i in range(len(parent))], dtype=np.int64)
    return np.unique(roots, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _mutual(
    response: FloatArray, a0: int, a1: int, b0: int, b1: int, gap: float
) -> list[tuple[float, int, int]]:
    if a0 == a1 or b0 == b1:
        return []
    distance = np.abs(response[a0:a1, None] - response[None, b0:b1])
    forward, backward = distance.argmin(axis=1), distance.argmin(axis=0)
    return [
        (float(distance[i, j]), a0 + i, b0 + j)
        for i, j in enumerate(forward.tolist())
        if backward[j] == i and distance[i, j] <= gap
    ]


def _find(parent: list[int], i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
