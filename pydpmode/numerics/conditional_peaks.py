"""Peaks of a density along the response, on a grid of predictor values.

Everything works on the values of a surface on a product grid, so that any surface will do. A peak of the
slice `y -> p(x, y)` is a conditional mode: p(y | x) is the slice over a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .surfaces import FloatArray, Surface

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Grid steps in bandwidths, and the most grid points per axis by the number of predictors.
_RESPONSE_STEP, _MOST_RESPONSE = 1 / 6, 1201
_PREDICTOR_STEP = {1: 1 / 4, 2: 1 / 3, 3: 1 / 2}
_MOST_PREDICTOR = {1: 801, 2: 41, 3: 13}
_FEWEST = 9
# Window, in bandwidths, in which a peak at the edge of the data is compared with its surroundings.
_EDGE_WINDOW = 1.0

# Where the density of the predictors is below so many standard deviations nothing is known.
LEAST_TOTAL = 3.0


@dataclass(frozen=True, eq=False)
class Slices:
    """A surface on a grid: one row per point of the predictors' grid, the response along it.

    Parameters
    ----------
    axes : tuple of p arrays
        Grid of each predictor, in its units.
    responses : (g,) array
        Evenly spaced grid of the response.
    density : (c, g) array
        The surface; c is the number of points of the product grid, last predictor fastest.
    bandwidth : (p + 1,) array
        Of the predictors, then of the response.
    noise_sd : float
        Of the density, by privacy.
    gradient_variance : float
        Of the derivative along the response, by privacy.
    roughness, gradient_roughness : float
        Sampling variance of the density is `roughness p / n`, of its derivative along the response
        `gradient_roughness p / n`.
    records : float
    cells : (p + 1,) array
        Box sides in correlation lengths of the noise, predictors first.
    """

    axes: tuple[FloatArray, ...]
    responses: FloatArray
    density: FloatArray
    bandwidth: FloatArray
    noise_sd: float
    gradient_variance: float
    roughness: float
    gradient_roughness: float
    records: float
    cells: FloatArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the predictors' grid."""
        return tuple(a.size for a in self.axes)

    @property
    def step(self) -> float:
        """Step of the response grid."""
        return float(self.responses[1] - self.responses[0])

    def density_sd(self, density: FloatArray) -> FloatArray:
        """Return the standard deviation of the surface where it is `density` high: privacy and sampling."""
        sampling = self.roughness * np.maximum(density, 0.0) / self.records
        return np.asarray(np.sqrt(self.noise_sd**2 + sampling))

    def known(self) -> BoolArray:
        """Return where the density of the predictors is clear of the noise, (c,)."""
        span = float(self.responses[-1] - self.responses[0])
        total = self.density.sum(axis=1) * self.step
        noise = integral_variance(self.noise_sd, span, span / float(self.cells[-1]))
        return np.asarray(total > LEAST_TOTAL * math.sqrt(noise))

    def points(self) -> FloatArray:
        """Return the predictors at every point of the grid, (c, p)."""
        mesh = np.meshgrid(*self.axes, indexing="ij")
        return np.stack([m.ravel() for m in mesh], axis=1)


@dataclass(frozen=True, eq=False)
class Peaks:
    """Peaks of the slices, sorted by slice and then by response.

    Parameters
    ----------
    column : (k,) int array
        Row of `Slices.density`.
    place : (k,) int array
        Grid point of the response nearest to the peak.
    response, height, curvature : (k,) arrays
        Location, density and second derivative along the response (negative).
    relative : (k,) array
        Height over the highest of the slice.
    prominence : (k,) array
        Height above the deepest point on the way to the nearest higher peak of the slice (its
        own height for the highest).
    """

    column: IntArray
    place: IntArray
    response: FloatArray
    height: FloatArray
    curvature: FloatArray
    relative: FloatArray
    prominence: FloatArray

    def take(self, keep: NDArray[np.generic]) -> Peaks:
        """Return some of the peaks."""
        return Peaks(*(getattr(self, name)[keep] for name in self.__dataclass_fields__))


def read_slices(surface: Surface, response: int) -> Slices:
    """Read a surface on a grid fine enough for peaks along the coordinate `response`."""
    d = len(surface.columns)
    others = [a for a in range(d) if a != response]
    axes = tuple(
        _axis(surface, a, _PREDICTOR_STEP[min(d - 1, 3)], _MOST_PREDICTOR[min(d - 1, 3)]) for a in others
    )
    responses = _axis(surface, response, _RESPONSE_STEP, _MOST_RESPONSE)
    grid: list[FloatArray] = [np.empty(0)] * d
    for a, axis in zip(others, axes, strict=True):
        grid[a] = axis
    grid[response] = responses
    values = np.moveaxis(surface.density_on_grid(grid), response, -1)
    order = [*others, response]
    return Slices(
        axes=axes,
        responses=responses,
        density=np.ascontiguousarray(values.reshape(-1, responses.size)),
        bandwidth=surface.bandwidth[order],
        noise_sd=math.sqrt(max(surface.noise.value, 0.0)),
        gradient_variance=float(surface.noise.gradient[response, response]),
        roughness=float(surface.roughness.value),
        gradient_roughness=float(surface.roughness.gradient[response, response]),
        records=float(surface.n_effective),
        cells=((surface.upper - surface.lower) / surface.noise_length)[order],
    )


def _axis(surface: Surface, a: int, step: float, most: int) -> FloatArray:
    low, high = float(surface.lower[a]), float(surface.upper[a])
    wanted = math.ceil((high - low) / (step * float(surface.bandwidth[a]))) + 1
    return np.linspace(low, high, min(max(wanted, _FEWEST), most))


def integral_variance(sd: float, span: float, length: float) -> float:
    """Return the variance of the integral of a noise field along one axis.

    For a field of standard deviation `sd` and correlation length `length` with Gaussian correlation, along
    `span`: `sd^2 span length sqrt(2 pi)`, at most `sd^2 span^2`.
    """
    return sd**2 * span * min(length * math.sqrt(2 * math.pi), span)


def find_peaks(slices: Slices) -> Peaks:
    """Return every peak of every slice that is above zero, with its prominence."""
    p = slices.density
    inner = p[:, 1:-1]
    found = (inner > p[:, :-2]) & (inner >= p[:, 2:]) & (inner > 0)
    column, place = np.nonzero(found)
    place = place + 1
    before, at, after = p[column, place - 1], p[column, place], p[column, place + 1]
    bend = before - 2 * at + after
    shift = np.clip((before - after) / (2 * bend), -0.5, 0.5)
    height = at - (before - after) * shift / 4
    highest = np.zeros(p.shape[0])
    np.maximum.at(highest, column, height)
    return Peaks(
        column=column.astype(np.int64),
        place=place.astype(np.int64),
        response=slices.responses[place] + shift * slices.step,
        height=height,
        curvature=bend / slices.step**2,
        relative=height / highest[column],
        prominence=_prominences(p, column, place, height),
    )


def _prominences(p: FloatArray, column: IntArray, place: IntArray, height: FloatArray) -> FloatArray:
    """Return the height of each peak above the higher of the saddles to higher peaks on either side."""
    out = np.array(height)
    if column.size < 2:
        return out
    # The valley between neighbours of one slice: its lowest grid value.
    flat = p.ravel()
    start = column * p.shape[1] + place
    valley = np.minimum.reduceat(flat, start)[:-1]
    same = column[1:] == column[:-1]
    edges = np.flatnonzero(np.r_[True, ~same, True])
    for first, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if stop - first > 1:
            out[first:stop] = _slice_prominences(height[first:stop], valley[first : stop - 1])
    return out


def _slice_prominences(height: FloatArray, valley: FloatArray) -> FloatArray:
    """Merge the peaks of one slice over ever deeper valleys; the lower one dies at its valley."""
    out = np.array(height)
    top = list(range(height.size))
    for v in np.argsort(-valley, kind="stable").tolist():
        left, right = _root(top, v), _root(top, v + 1)
        low, high = (left, right) if height[left] < height[right] else (right, left)
        out[low] = height[low] - valley[v]
        top[low] = high
    return out


def _root(top: list[int], i: int) -> int:
    while top[i] != i:
        i = top[i]
    return i


def edge_ratio(slices: Slices, peaks: Peaks) -> FloatArray:
    """Return the height of each peak over the highest surface value within a bandwidth of it, (k,).

    Where the data end the smoothed density is half of its plateau, a bandwidth inside .84 of it, and
    outside it falls faster: a ratio well below .6 says that the peak is the kernel's tail and no branch. A
    density that fades out slowly has a higher ratio. Where the edge is that of the box, the half is made up
    for by the kernel's mass inside.
    """
    from scipy.ndimage import maximum_filter

    size = [
        2 * math.ceil(_EDGE_WINDOW * h / (axis[1] - axis[0])) + 1
        for axis, h in zip(slices.axes, slices.bandwidth[:-1], strict=True)
    ]
    size.append(2 * math.ceil(slices.bandwidth[-1] / slices.step) + 1)
    mass = np.ones(1)
    for axis, h in zip(slices.axes, slices.bandwidth[:-1], strict=True):
        inside = _normal((axis - axis[0]) / h) - _normal((axis - axis[-1]) / h)
        mass = np.multiply.outer(mass, inside).ravel()
    grid = (slices.density / mass[:, None]).reshape(*slices.shape, -1)
    around = maximum_filter(grid, size=tuple(size), mode="nearest").reshape(slices.density.shape)
    return np.asarray(peaks.height / mass[peaks.column] / around[peaks.column, peaks.place])


def _normal(z: FloatArray) -> FloatArray:
    return np.asarray(0.5 * np.vectorize(math.erfc, otypes=[np.float64])(-z / math.sqrt(2)))


def neighbours(shape: Sequence[int]) -> list[tuple[IntArray, IntArray]]:
    """Return, for each axis of a grid, the pairs of neighbouring points along it (flat numbers)."""
    numbers = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(tuple(shape))
    out = []
    for axis in range(len(shape)):
        first = np.take(numbers, np.arange(shape[axis] - 1), axis=axis).ravel()
        second = np.take(numbers, np.arange(1, shape[axis]), axis=axis).ravel()
        out.append((first, second))
    return out
