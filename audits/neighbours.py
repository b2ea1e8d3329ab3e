"""A search for the pair of records that moves a release furthest: hill climbing from many starts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from pydpmode.numerics.designs import Design

FloatArray = NDArray[np.float64]


def squared_distance(design: Design, one: FloatArray, other: FloatArray) -> float:
    """Return `|Phi(one) - Phi(other)|^2` of two records in the columns' units, in exact arithmetic."""
    phase = design.frequencies @ ((one - other) / design.bandwidth)
    # |Phi - Phi'|^2 = 2 - 2 k, and g_0 + sum g_j = 1.
    return float(2 * design.pair_weights @ (1 - np.cos(phase)))


def worst_pair(
    design: Design, generator: np.random.Generator, starts: int = 30, climbs: int = 2
) -> tuple[FloatArray, FloatArray]:
    """Return two records in the box that are as far apart in features as the search can find.

    Random pairs, corners and axis-wise differences first; the best are climbed from.
    """
    lower, upper = design.lower, design.upper
    width = upper - lower
    d = width.size

    def away(difference: FloatArray) -> float:
        phase = design.frequencies @ (difference / design.bandwidth)
        return float(design.pair_weights @ np.cos(phase))

    def slope(difference: FloatArray) -> FloatArray:
        phase = design.frequencies @ (difference / design.bandwidth)
        return np.asarray(-(design.pair_weights * np.sin(phase)) @ design.frequencies / design.bandwidth)

    # Only the difference of two records matters, and it lies in [-width, width].
    tried = [generator.uniform(-1, 1, d) * width for _ in range(starts)]
    tried += [width * generator.choice([-1.0, 0.0, 1.0], d) for _ in range(8)]
    radius = math.sqrt(d + 4) * design.bandwidth
    tried += [np.clip(radius * e, -width, width) for e in np.eye(d)]
    tried.sort(key=away)
    limits = list(zip(-width, width, strict=True))
    best = min(
        (minimize(away, t, jac=slope, method="L-BFGS-B", bounds=limits).x for t in tried[:climbs]), key=away
    )
    best = np.clip(best, -width, width)
    one = np.where(best > 0, upper, lower)
    return one, np.clip(one - best, lower, upper)
