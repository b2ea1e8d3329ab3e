"""Where the modes of a surface may be: maxima of a public grid, or ascents from public points.

In one to three dimensions a grid sees every peak and every saddle. From four on it would be too
large: a low-discrepancy point set is climbed instead, and the saddle between two peaks is taken
from a path between them. Neither looks at anything but the surface and its box.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .mode_ascent import ascend, default_floor
from .mode_errors import total_variance
from .mode_merging import merge_by_radius
from .mode_set import BoolArray, IntArray
from .persistence import ElderTree, elder_tree, grid_persistence
from .spectral_surfaces import coarse_reading
from .surfaces import FloatArray, Surface

GRID_DIMENSIONS = 3
FIRST_STEP = 1.0 / 2.5  # grid step in bandwidths
COARSE_STEP = 1.0 / 1.5  # a grid coarser than this can miss peaks, and is flagged
_FEWEST_NODES = 9  # per axis, however small the box

_POINTS = 2048
_POINTS_FROM_SIX = 4096  # d >= 6
_FEW_POINTS = 1024  # where they only measure islands
_EARLY_KEPT, _EARLY_STEPS = 512, 3
_CLIMBED = 200
_NEAR = 0.5  # bandwidths: early points closer than this climb as one
_SAME = 0.05  # bandwidths: ends closer than this are one peak
_PEAKS_JOINED = 60  # peaks between which saddles are looked for
_HIGHER_NEIGHBOURS = 6  # paths from each peak to higher ones
_LINE_STEP = 0.4  # bandwidths between points of a path
_PATH_STEPS, _PATH_STEP = 10, 0.5  # most steps that a path climbs, and their longest in bandwidths
_FEWEST_ON_LINE, _MOST_ON_LINE = 7, 41  # points of a path


@dataclass(frozen=True)
class SearchGrid:
    """A product grid over the box, both faces included.

    Parameters
    ----------
    axes : tuple of arrays
        Sorted coordinates per axis, in the columns' units.
    step : (d,) array
        Distance between nodes, in bandwidths.
    coarse : bool
        Whether any step is above `COARSE_STEP`.
    """

    axes: tuple[FloatArray, ...]
    step: FloatArray
    coarse: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of nodes per axis."""
        return tuple(axis.size for axis in self.axes)


@dataclass(frozen=True)
class Candidates:
    """The k peaks of a surface, highest first, before any is judged.

    Parameters
    ----------
    points : (k, d) array
        Where they are, in the columns' units.
    heights, deaths : (k,) arrays
        Density at the peak, and at the saddle where it meets a higher one (`-inf`: never).
    neighbours : (k,) int array
        The peak across that saddle; see `persistence.drain`.
    cells : (k,) array
        Volume, in noise cells, of the island that the peak stood on when it died. From four
        dimensions on it is that of all the box above the saddle, an upper bound.
    steps : (k,) int array
        Steps of the climb that led there; zero on a grid.
    mass : (k,) array or None
        Integral of the positive part of the surface over the peak's basin, up to a factor; None
        without a grid.
    grid : SearchGrid or None
        The grid, when there was one.
    """

    points: FloatArray
    heights: FloatArray
    deaths: FloatArray
    neighbours: IntArray
    cells: FloatArray
    steps: IntArray
    mass: FloatArray | None
    grid: SearchGrid | None

    @property
    def count(self) -> int:
        """Number of peaks k."""
        return int(self.heights.shape[0])


def search_grid(surface: Surface, *, step: float = FIRST_STEP, max_nodes: int = 2_000_000) -> SearchGrid:
    """Lay a grid of at most `step` bandwidths over the box, coarser if it would be too large."""
    widths = (surface.upper - surface.lower) / surface.bandwidth
    wanted = step
    while True:
        sizes = np.maximum(np.ceil(widths / wanted - 1e-9) + 1, _FEWEST_NODES)
        nodes = float(np.prod(sizes))
        if nodes <= max_nodes or np.all(sizes <= _FEWEST_NODES):
            break
        wanted *= max((nodes / max_nodes) ** (1.0 / sizes.size), 1.001)
    axes = tuple(
        np.linspace(low, high, int(size))
        for low, high, size in zip(surface.lower, surface.upper, sizes, strict=True)
    )
    steps = widths / (sizes - 1)
    return SearchGrid(axes=axes, step=steps, coarse=bool(np.any(steps > COARSE_STEP * (1 + 1e-9))))


def grid_weights(grid: SearchGrid) -> FloatArray:
    """Return the weights of the trapezoid rule on the grid, in units of one cell."""
    weights = np.ones(())
    for size in grid.shape:
        ends = np.ones(size)
        ends[[0, -1]] = 0.5
        weights = weights[..., None] * ends
    return weights


def noise_lengths(surface: Surface) -> FloatArray:
    """Return the noise's correlation lengths; the bandwidth where the surface has no noise."""
    lengths = np.asarray(surface.noise_length, dtype=np.float64)
    known = np.isfinite(lengths) & (lengths > 0) & (surface.noise.value > 0)
    return np.where(known, lengths, surface.bandwidth)


def grid_candidates(surface: Surface, grid: SearchGrid) -> Candidates:
    """Return the local maxima of the surface on a grid, with persistence and basin mass."""
    values = surface.density_on_grid(grid.axes)
    found = grid_persistence(values)
    places = np.unravel_index(found.maxima, grid.shape)
    points = np.stack([axis[place] for axis, place in zip(grid.axes, places, strict=True)], axis=-1)
    cell = float(np.prod(grid.step * surface.bandwidth / noise_lengths(surface)))
    weights = np.where(found.labels >= 0, np.maximum(values, 0.0), 0.0) * grid_weights(grid)
    labels = np.maximum(found.labels, 0).ravel()
    mass = np.bincount(labels, weights=weights.ravel(), minlength=found.count)[: found.count]
    return Candidates(
        points=points.reshape(found.count, len(grid.axes)),
        heights=found.heights,
        deaths=found.deaths,
        neighbours=found.neighbours,
        cells=np.asarray(found.sizes * cell, dtype=np.float64),
        steps=np.zeros(found.count, dtype=np.int64),
        mass=np.asarray(mass, dtype=np.float64),
        grid=grid,
    )


def public_points(lower: FloatArray, upper: FloatArray, count: int | None = None) -> FloatArray:
    """Return at least `count` Sobol points inside the box: the same for everyone, so they tell nothing."""
    # Imported here: scipy.stats costs more than the rest of the package to import.
    from scipy.stats import qmc

    d = lower.size
    wanted = count if count is not None else _POINTS if d < 6 else _POINTS_FROM_SIX
    power = math.ceil(math.log2(wanted))
    # Not scrambled, so no seed; moved by half a step, so that no point is a corner of the box.
    unit = qmc.Sobol(d, scramble=False).random_base2(power) + 0.5 ** (power + 1)
    return np.asarray(lower + unit * (upper - lower))


def point_candidates(
    surface: Surface,
    *,
    worth_joining: Callable[[FloatArray], BoolArray],
    at_least: int = 1,
    starts: FloatArray | None = None,
) -> Candidates:
    """Return the peaks that ascents from public points reach, with saddles from paths between them.

    Parameters
    ----------
    surface : Surface
        Of four dimensions or more (works in any).
    worth_joining : callable
        Says of heights whether such peaks can become modes. The others are not joined by paths,
        which saves nearly all of the work on a noisy surface; their persistence counts as zero.
    at_least : int
        Join so many of the highest peaks all the same.
    starts : (m, d) array, optional
        Climb from here, and not from the public points.
    """
    points = public_points(surface.lower, surface.upper, None if starts is None else _FEW_POINTS)
    weights = np.maximum(surface.density(points), 0.0)
    if starts is None:
        early = np.argsort(-weights, kind="stable")[:_EARLY_KEPT]
        near = ascend(surface, points[early], max_steps=_EARLY_STEPS).ends
        group = merge_by_radius(near / surface.bandwidth, surface.density(near), _NEAR)
        starts = near[group.representatives[:_CLIMBED]]
    climb = ascend(surface, starts)
    ends = climb.ends
    heights = surface.density(ends)
    peaks = merge_by_radius(ends / surface.bandwidth, heights, _SAME)
    points, heights = ends[peaks.representatives], heights[peaks.representatives]
    joined = worth_joining(heights) | (np.arange(heights.size) < at_least)
    tree = _join_by_paths(surface, points, heights, np.flatnonzero(joined)[:_PEAKS_JOINED])
    cells_per_start = np.prod((surface.upper - surface.lower) / noise_lengths(surface)) / weights.size
    return Candidates(
        points=points,
        heights=heights,
        deaths=tree.deaths,
        neighbours=tree.neighbours,
        # One start more than was seen: an island smaller than the starts can see counts in full.
        cells=(1.0 + np.sum(weights >= tree.deaths[:, None], axis=1)) * cells_per_start,
        steps=climb.steps[peaks.representatives],
        mass=None,
        grid=None,
    )


def nearest(points: FloatArray, centres: FloatArray, scale: FloatArray) -> IntArray:
    """Return the nearest of the centres (k, d) to each point (m, d), lengths in units of `scale`."""
    scaled, targets = points / scale, centres / scale
    best = np.full(points.shape[0], np.inf)
    label = np.full(points.shape[0], -1, dtype=np.int64)
    for number, target in enumerate(targets):
        distance = np.sum(np.square(scaled - target), axis=1)
        closer = distance < best
        best[closer], label[closer] = distance[closer], number
    return label


def _join_by_paths(surface: Surface, points: FloatArray, heights: FloatArray, joined: IntArray) -> ElderTree:
    """Join peaks, given highest first, at the passes between them.

    Each joined peak gets paths to its nearest higher ones; ways over other peaks count too, by
    the elder rule. Peaks that are not joined die at once, into the nearest joined.
    """
    scaled = points / surface.bandwidth
    first: list[int] = []
    second: list[int] = []
    for rank, peak in enumerate(joined.tolist()):
        higher = joined[:rank]
        distance = np.sum(np.square(scaled[higher] - scaled[peak]), axis=1)
        near = higher[np.argsort(distance, kind="stable")[:_HIGHER_NEIGHBOURS]]
        first.extend([peak] * near.size)
        second.extend(near.tolist())
    one, two = np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
    lower_peak = np.minimum(heights[one], heights[two])
    levels = np.minimum(_passes(surface, points[one], points[two], lower_peak), lower_peak)
    rest = np.setdiff1d(np.arange(heights.size), joined)
    into = joined[nearest(scaled[rest], scaled[joined], np.ones(scaled.shape[1]))]
    at_once = np.minimum(heights[rest], heights[into])
    return elder_tree(heights, np.append(one, rest), np.append(two, into), np.append(levels, at_once))


@dataclass
class _Paths:
    """Points on paths between m pairs of peaks, all in one array, and the best density seen at each."""

    line: IntArray  # which pair a point belongs to
    place: FloatArray
    along: FloatArray  # unit vector of the pair's line, in bandwidths
    best: FloatArray

    def lowest(self, count: int) -> FloatArray:
        lowest = np.full(count, np.inf)
        np.minimum.at(lowest, self.line, self.best)
        return lowest

    def only(self, wanted: BoolArray) -> _Paths:
        inside = wanted[self.line]
        return _Paths(self.line[inside], self.place[inside], self.along[inside], self.best[inside])


def _passes(surface: Surface, starts: FloatArray, ends: FloatArray, lower_peak: FloatArray) -> FloatArray:
    """Return the height of the pass between each of m pairs of peaks.

    A path starts as the straight line. Its points then climb, each in the plane across the line, so
    that the path goes round valleys where it can; a straight line alone made false modes of noise.
    Paths stop when their peaks are no longer a standard deviation apart from it: no mode then.
    """
    levels = np.full(starts.shape[0], -np.inf)
    if levels.size == 0:
        return levels
    enough = lower_peak - np.sqrt(total_variance(surface, lower_peak))
    surface = coarse_reading(surface)
    paths = _straight(surface, starts, ends)
    floor, h = default_floor(surface), surface.bandwidth
    for _ in range(_PATH_STEPS):
        lowest = paths.lowest(levels.size)
        levels = np.where(np.isfinite(lowest), lowest, levels)
        paths = paths.only(levels < enough)
        if paths.line.size == 0:
            return levels
        slope = surface.gradient(paths.place) * h / np.maximum(paths.best, floor)[:, None]
        slope -= np.sum(slope * paths.along, axis=1)[:, None] * paths.along
        slope /= np.maximum(np.max(np.abs(slope), axis=1) / _PATH_STEP, 1.0)[:, None]
        paths.place = np.clip(paths.place + slope * h, surface.lower, surface.upper)
        paths.best = np.maximum(paths.best, surface.density(paths.place))
    lowest = paths.lowest(levels.size)
    return np.where(np.isfinite(lowest), lowest, levels)


def _straight(surface: Surface, starts: FloatArray, ends: FloatArray) -> _Paths:
    """Return points spread along straight lines, ends left out."""
    h = surface.bandwidth
    span = (ends - starts) / h
    lengths = np.sqrt(np.sum(np.square(span), axis=1))
    counts = np.clip(np.ceil(lengths / _LINE_STEP), _FEWEST_ON_LINE, _MOST_ON_LINE).astype(np.int64)
    line = np.repeat(np.arange(counts.size), counts)
    offsets = np.cumsum(counts) - counts
    share = (np.arange(line.size) - offsets[line] + 1.0) / (counts[line] + 1.0)
    place = starts[line] + share[:, None] * span[line] * h
    return _Paths(line, place, span[line] / lengths[line, None], surface.density(place))
