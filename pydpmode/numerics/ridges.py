"""Peaks on a ridge: as narrow along an axis as the kernel itself, as where values stand on one place there.

A column of 0 and 1 beside a continuous one gives two ridges, each a density of the continuous column alone.
Two things are then other than on a smooth surface, and both would let noise along the ridge pass for modes:

- the noise has no way round along the narrow axis: its persistence is that of a field of fewer dimensions,
  which is larger for as many cells (see `significance.persistence_quantile`);
- a record's kernel is at full height or nothing along the narrow axis: the sampling variance of the height,
  the integral of the squared kernel over the records, is that of a smooth density times `K(0) / R(K)` for
  each narrow axis, sqrt 2 for the Gaussian kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from .mode_candidates import Candidates, noise_lengths
from .mode_errors import cells_ratio, total_variance
from .mode_set import BoolArray, IntArray
from .significance import Look, persistence_threshold
from .surfaces import FloatArray, Surface

# By kernel order: width of the kernel's own summit, sqrt(-K(0)/K''(0)) in bandwidths, and K(0)/R(K).
_KERNELS: Mapping[int, tuple[float, float]] = MappingProxyType(
    {2: (1.0, math.sqrt(2.0)), 4: (math.sqrt(0.6), 1.2571), 6: (math.sqrt(3 / 7), 1.1987)}
)
# A summit this much wider than the kernel's own is one of values that spread: by .46 bandwidths and more.
_NARROW = 1.1
# Volumes of the unit ball.
_BALLS = (1.0, 2.0, math.pi, 4 * math.pi / 3)
_LEAST_WIDTH = 0.1


def survive_on_ridges(
    surface: Surface, candidates: Candidates, passed: BoolArray, persistence: FloatArray, look: Look
) -> BoolArray:
    """Say which of the peaks that passed also pass by the rules of the ridge that they stand on, if any.

    Parameters
    ----------
    surface : Surface
        Of two or three dimensions; in others there is nothing to do.
    candidates : Candidates
        From a grid.
    passed : (k,) bool array
        The peaks to look at.
    persistence : (k,) array
        Height over the saddle; infinite for the highest.
    look : {"only", "widest", "narrower"}
        As in `find_modes`.

    Returns
    -------
    (k,) bool array
        Never more than `passed`.
    """
    out = passed.copy()
    looked_at = np.flatnonzero(passed & np.isfinite(persistence) & (candidates.deaths > 0))
    if surface.lower.size not in (2, 3) or surface.order not in _KERNELS or looked_at.size == 0:
        return out
    narrow = narrow_axes(surface, candidates.points[looked_at])
    count = narrow.sum(axis=1)
    ridges = (count > 0) & (count < surface.lower.size)
    looked_at, narrow = looked_at[ridges], narrow[ridges]
    cells = _cells_along(surface, candidates, looked_at, narrow)
    error = np.sqrt(_ridge_variance(surface, candidates.heights[looked_at], count[ridges]))
    left = surface.lower.size - count[ridges]
    needed = np.array(
        [float(persistence_threshold(n, int(d), look)) for n, d in zip(cells, left, strict=True)]
    )
    out[looked_at] = persistence[looked_at] >= needed * error
    return out


def narrow_axes(surface: Surface, points: FloatArray) -> BoolArray:
    """Say along which axes summits are as narrow as the kernel itself, (k, d)."""
    own, _ = _KERNELS[surface.order]
    density, _, hessian = surface.derivatives(points)
    bend = -np.diagonal(hessian, axis1=1, axis2=2)
    # The width w of a Gaussian summit: its second derivative is -density / w^2.
    return np.asarray(bend * (_NARROW * own * surface.bandwidth) ** 2 > density[:, None])


def _ridge_variance(surface: Surface, heights: FloatArray, narrow: IntArray) -> FloatArray:
    """Return the variance of the heights, sampling taken as that of values on `narrow` places."""
    noise = surface.noise.value
    smooth = total_variance(surface, heights) - noise
    squares = heights**2 / surface.n_effective
    # The integral of the squared kernel grows; the square of the mean does not.
    return np.asarray(noise + (smooth + squares) * _KERNELS[surface.order][1] ** narrow - squares)


def _cells_along(surface: Surface, candidates: Candidates, chosen: IntArray, narrow: BoolArray) -> FloatArray:
    """Return the cells of the islands along the axes that are not narrow.

    An island is taken for an ellipsoid, whose half-width along a narrow axis follows from how far the summit
    stands above the level at which the island is cut; a face of the box may cut it as well.
    """
    heights, deaths = candidates.heights[chosen], candidates.deaths[chosen]
    top = np.maximum(heights, candidates.heights[candidates.neighbours[chosen]])
    reach = np.sqrt(2 * np.log(top / deaths))[:, None] * surface.bandwidth
    points = candidates.points[chosen]
    width = np.minimum(reach, points - surface.lower) + np.minimum(reach, surface.upper - points)
    across = np.where(narrow, np.maximum(width / 2 / noise_lengths(surface), _LEAST_WIDTH), 1.0)
    d, left = surface.lower.size, surface.lower.size - narrow.sum(axis=1)
    shape = np.array(_BALLS)[left] / _BALLS[d]
    whole = candidates.cells[chosen] * cells_ratio(surface, heights)
    return np.asarray(whole * shape / across.prod(axis=1))
