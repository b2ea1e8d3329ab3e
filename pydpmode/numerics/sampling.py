"""Drawing points from a surface, and how much of it is negative.

A released surface can dip below zero by noise; points are drawn from `max(p, 0)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..budget import as_whole
from ..errors import InvalidArgument
from .spectral_surfaces import LatticeSurface, RandomFeatureSurface
from .surfaces import FloatArray

# Grid nodes per axis for drawing: fine against the bandwidth, bounded in memory.
_MAX_NODES = {1: 4096, 2: 1024, 3: 160}
_NODES_RANDOM = 96
_SOBOL_LOG2 = 11
_BATCH = 512


def grid_axes(
    surface: LatticeSurface | RandomFeatureSurface, per_bandwidth: float, most: int
) -> list[FloatArray]:
    """Return cell midpoints per axis, `per_bandwidth` cells a bandwidth, at most `most`."""
    axes = []
    for low, high, h in zip(surface.lower, surface.upper, surface.bandwidth, strict=True):
        cells = int(np.clip(np.ceil((high - low) / h * per_bandwidth), 8, most))
        axes.append(low + (np.arange(cells) + 0.5) * (high - low) / cells)
    return axes


def sample_surface(surface: LatticeSurface | RandomFeatureSurface, n: int, seed: int | None) -> FloatArray:
    """Return n points (n, d) from the positive part of a surface.

    On a lattice (d <= 3): a grid cell by its share, then uniformly inside it. Random features: one
    coordinate after the other from the surface's conditional marginals, each cut at zero.

    Raises
    ------
    InvalidArgument
        When n or seed is not a whole number >= 0, or the surface is nowhere positive.
    """
    count = as_whole(n, "n", 0)
    generator = np.random.default_rng(None if seed is None else as_whole(seed, "seed", 0))
    if isinstance(surface, LatticeSurface):
        return _sample_grid(surface, count, generator)
    return _sample_conditionals(surface, count, generator)


def _sample_grid(surface: LatticeSurface, n: int, generator: np.random.Generator) -> FloatArray:
    axes = grid_axes(surface, 6.0, _MAX_NODES[surface.dimension])
    positive = np.maximum(surface.density_on_grid(axes), 0).ravel()
    cells = _draw_cells(np.broadcast_to(positive, (1, positive.size)), n, generator)
    index = np.unravel_index(cells, [a.size for a in axes])
    points = np.stack([axis[i] for axis, i in zip(axes, index, strict=True)], axis=1)
    step = np.array(
        [(high - low) / a.size for low, high, a in zip(surface.lower, surface.upper, axes, strict=True)]
    )
    return np.asarray(points + generator.uniform(-0.5, 0.5, points.shape) * step)


def _draw_cells(weights: FloatArray, n: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Draw one cell for each of n rows; a single row of weights serves all."""
    cumulative = np.cumsum(weights, axis=1)
    if np.any(cumulative[:, -1] <= 0):
        raise InvalidArgument("the surface is nowhere positive: the release is all noise; spend more epsilon")
    u = generator.uniform(size=n)
    if weights.shape[0] == 1:
        found = np.searchsorted(cumulative[0], u * cumulative[0, -1], side="right")
        return np.asarray(np.minimum(found, weights.shape[1] - 1), dtype=np.intp)
    below = cumulative < (u * cumulative[:, -1])[:, None]
    return np.asarray(np.minimum(below.sum(axis=1), weights.shape[1] - 1), dtype=np.intp)


def _sample_conditionals(surface: RandomFeatureSurface, n: int, generator: np.random.Generator) -> FloatArray:
    axes = grid_axes(surface, 6.0, _NODES_RANDOM)
    points = np.empty((n, surface.dimension))
    marginals = [surface.marginal(surface.columns[: a + 1]) for a in range(surface.dimension)]
    for start in range(0, n, _BATCH):
        part = slice(start, min(n, start + _BATCH))
        for a, (marginal, axis) in enumerate(zip(marginals, axes, strict=True)):
            weights = np.maximum(marginal.density_on_product(points[part, :a], axis), 0)
            dead = weights.sum(axis=1) <= 0
            # Where the noisy conditional is nowhere positive nothing is known: draw uniformly.
            weights[dead] = 1.0
            cells = _draw_cells(weights, part.stop - part.start, generator)
            step = axis[1] - axis[0]
            points[part, a] = axis[cells] + generator.uniform(-0.5, 0.5, len(cells)) * step
    return points


def negative_mass(surface: LatticeSurface | RandomFeatureSurface) -> float:
    """Return the integral of `max(-p, 0)` over the box: by a grid (d <= 3) or a Sobol set."""
    volume = float(np.prod(surface.upper - surface.lower))
    if isinstance(surface, LatticeSurface):
        values = surface.density_on_grid(grid_axes(surface, 2.5, {1: 4096, 2: 512, 3: 96}[surface.dimension]))
    else:
        from scipy.stats import qmc  # imported here: scipy.stats is slow to import

        unit = qmc.Sobol(surface.dimension, scramble=False).random_base2(_SOBOL_LOG2)
        values = surface.density(surface.lower + unit * (surface.upper - surface.lower))
    return float(np.maximum(-values, 0).mean() * volume)
