"""What the conditional density of the response says beyond its modes: mean, regions, spread."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .conditional_peaks import LEAST_TOTAL, integral_variance
from .modal_branches import BranchSet, branches_at
from .surfaces import FloatArray, Surface

# Kernel mass beyond the box counts for means: so many bandwidths are added on either side.
_MARGIN = 4.0
_STEP, _MOST = 1 / 5, 1201
# Grid points per axis that the residual scale is averaged over, by the number of predictors.
_SCALE_POINTS = {1: 60, 2: 10, 3: 5}
# A bump cut above this share of its height says nothing of its spread; and the least variance left to one.
_FLAT, _LEAST_NARROWING = 0.9, 0.1
# Points read at once, and rows of a product of random features.
_CHUNK, _PRODUCT_ROWS = 2_000_000, 500


@dataclass(frozen=True, eq=False)
class ConditionalDensity:
    """The surface along the response at some predictor values.

    Parameters
    ----------
    responses : (g,) array
        Evenly spaced, a little beyond the box on either side.
    density : (m, g) array
    known : (m,) bool array
        Whether the density of the predictors is clear of the noise there.
    bandwidth : float
        Of the smoothing along the response.
    """

    responses: FloatArray
    density: FloatArray
    known: FloatArray
    bandwidth: float

    @property
    def step(self) -> float:
        """Step of the responses."""
        return float(self.responses[1] - self.responses[0])


def conditional_density(surface: Surface, response: int, points: FloatArray) -> ConditionalDensity:
    """Read the surface along the response at predictor values (m, p)."""
    h = float(surface.bandwidth[response])
    low, high = surface.lower[response] - _MARGIN * h, surface.upper[response] + _MARGIN * h
    count = min(math.ceil((high - low) / (_STEP * h)) + 1, _MOST)
    responses = np.linspace(low, high, count)
    unique, place = np.unique(points, axis=0, return_inverse=True)
    density = _read(surface, response, unique, responses)
    step = responses[1] - responses[0]
    total = density.sum(axis=1) * step
    length = float(surface.noise_length[response])
    noise = integral_variance(surface_sd(surface), high - low, length)
    # Roughness times the bandwidth leaves that of the predictors' density.
    rough = 2 * math.sqrt(math.pi) * h * surface.roughness.value
    known = total > LEAST_TOTAL * np.sqrt(noise + rough * np.maximum(total, 0) / surface.n_effective)
    index = place.reshape(-1)
    return ConditionalDensity(responses, density[index], known[index], h)


def surface_sd(surface: Surface) -> float:
    """Return the standard deviation of the privacy noise of a surface."""
    return math.sqrt(max(surface.noise.value, 0.0))


def _read(surface: Surface, response: int, points: FloatArray, responses: FloatArray) -> FloatArray:
    d = points.shape[1] + 1
    if d == 2:
        axes = [points[:, 0], responses] if response == 1 else [responses, points[:, 0]]
        grid = surface.density_on_grid(axes)
        return grid if response == 1 else grid.T
    product = getattr(getattr(surface, "surface", surface), "density_on_product", None)
    if product is not None and response == d - 1:
        parts = np.array_split(points, math.ceil(points.shape[0] / _PRODUCT_ROWS) or 1)
        return np.concatenate([product(part, responses) for part in parts])
    out = np.empty((points.shape[0], responses.size))
    rows = max(1, _CHUNK // responses.size)
    others = [a for a in range(d) if a != response]
    for start in range(0, points.shape[0], rows):
        part = points[start : start + rows]
        full = np.empty((part.shape[0] * responses.size, d))
        full[:, others] = np.repeat(part, responses.size, axis=0)
        full[:, response] = np.tile(responses, part.shape[0])
        out[start : start + rows] = surface.density(full).reshape(part.shape[0], responses.size)
    return out


def conditional_mean(found: ConditionalDensity, noise_sd: float) -> FloatArray:
    """Return the mean response at each point, (m,), NaN where nothing is known.

    From the same surface: `int y p dy / int p dy`, where values below two noise standard deviations count as
    zero (the noise of the whole response axis would move the mean about).
    """
    p = np.where(found.density > 2 * noise_sd, found.density, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = p @ found.responses / p.sum(axis=1)
    return np.where(found.known, mean, np.nan)


def highest_density_regions(
    found: ConditionalDensity, level: float, noise_sd: float
) -> list[list[tuple[float, float]]]:
    """Return, for each point, the intervals of highest conditional density that hold `level` of it.

    Values below two noise standard deviations count as zero: cut off at zero alone, the noise of the whole
    response axis would add up to mass that is not there. (Chen, Genovese, Tibshirani & Wasserman
    2016, section 4, with the density's own level sets.) Each interval is then narrowed about its middle
    for the smoothing along the response, as if the density in it were a normal bump.

    Parameters
    ----------
    found : ConditionalDensity
    level : float
        Share of the conditional mass, in (0, 1).
    noise_sd : float
        Of the density.
    """
    p = np.where(found.density > 2 * noise_sd, found.density, 0.0)
    out: list[list[tuple[float, float]]] = []
    for row, known in zip(p, found.known, strict=True):
        total = float(row.sum())
        if not known or total <= 0:
            out.append([])
            continue
        ordered = np.sort(row)[::-1]
        cut = float(ordered[min(int(np.searchsorted(np.cumsum(ordered), level * total)), row.size - 1)])
        out.append(_intervals(found.responses, row, cut, found.bandwidth))
    return out


def _intervals(
    responses: FloatArray, row: FloatArray, cut: float, bandwidth: float
) -> list[tuple[float, float]]:
    """Return the intervals where `row >= cut`, less what the smoothing has widened them by.

    Each grid point stands for half a step on either side. A normal bump of spread s that is cut at the
    share r of its height reaches `s sqrt(-2 log r)` to either side; without the smoothing h its spread would
    be `sqrt(s^2 - h^2)`.
    """
    inside = np.concatenate([[False], row >= cut, [False]])
    change = np.flatnonzero(inside[1:] != inside[:-1])
    half = (responses[1] - responses[0]) / 2
    out = []
    for first, last in zip(change[::2].tolist(), change[1::2].tolist(), strict=True):
        low, high = float(responses[first]) - half, float(responses[last - 1]) + half
        share = cut / float(row[first:last].max())
        spread = (high - low) / 2 / math.sqrt(-2 * math.log(share)) if share < _FLAT else math.inf
        narrower = math.sqrt(max(1 - (bandwidth / spread) ** 2, _LEAST_NARROWING))
        middle, reach = (low + high) / 2, (high - low) / 2 * narrower
        out.append((middle - reach, middle + reach))
    return out


def modal_residual_scale(surface: Surface, response: int, branches: BranchSet) -> float:
    """Return the spread of the response around the nearest branch: 1.4826 times the median distance.

    Over all of the density that has a branch at its predictors; the smoothing along the response is taken
    off (as for a normal spread). NaN without branches.
    """
    if not branches.count:
        return math.nan
    per_axis = _SCALE_POINTS[len(branches.axes)]
    axes = [axis[:: math.ceil(axis.size / per_axis)] for axis in branches.axes]
    h = float(surface.bandwidth[response])
    low, high = float(surface.lower[response]), float(surface.upper[response])
    responses = np.linspace(low, high, min(math.ceil((high - low) / (_STEP * h)) + 1, _MOST))
    grid = [*axes[:response], responses, *axes[response:]]
    density = np.moveaxis(surface.density_on_grid(grid), response, -1).reshape(-1, responses.size)
    points = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    at = branches_at(branches, points).estimate
    there = np.isfinite(at).any(axis=1)
    if not there.any():
        return math.nan
    distance = np.nanmin(np.abs(responses[None, :, None] - at[there, None, :]), axis=2)
    density = density[there]
    weight = np.where(density > 2 * surface_sd(surface), density, 0.0)
    order = np.argsort(distance, axis=None)
    mass = np.cumsum(weight.ravel()[order])
    if mass[-1] <= 0:
        return math.nan
    median = float(distance.ravel()[order][np.searchsorted(mass, mass[-1] / 2)])
    spread = 1.4826 * median
    return math.sqrt(max(spread**2 - float(surface.bandwidth[response]) ** 2, 0.0))
