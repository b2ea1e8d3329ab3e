"""Sharpen the locations of modes by a fit to the coefficients, with errors that know the smoothing bias.

Four estimates of each mode are read off one release, all post-processing:

- `m`, the mode of the surface, biased by the kernel's smoothing;
- `m4`, the mode of the order-4 reading: less biased, noisier;
- `L`, the mode of fitted Gaussian bumps smoothed at half the bandwidth: little noise, and little bias
  where the bumps fit;
- `f`, the mode of the fitted bumps smoothed at the whole bandwidth: what `m` should be if they fit.

All four move linearly with small errors of the coefficients, so their joint covariance follows from
the privacy noise and from the fitted density (sampling): no resampling. The estimate is `L`, pulled to
`m` where `m - f` is clear of noise (the bumps do not fit) and to `m4` where the bumps say that
smoothing moved the mode and `m4 - L` is clear of noise. Constants were set on the tuning seeds of
benchmarks/accuracy.py and benchmarks/interval_coverage.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .bump_fit import BumpFit, fit_bumps
from .bump_mixtures import climb_bumps, gradient_responses, read_bumps
from .fourier_sums import ComplexArray
from .mode_ascent import ascend
from .mode_set import BoolArray
from .spectral_surfaces import LatticeSurface
from .surfaces import FloatArray, Surface

_SMOOTHING = 0.5  # bandwidths, of the fitted bumps whose mode is L
_ALONE = 0.9  # share of the height at L above which one bump makes the mode
_FARTHEST = 1.0  # bandwidths between m and the others, beyond which they are not trusted
_MISFIT = 3.0  # times its expected size that m - f may have before L is pulled to m
_DISAGREEMENT = 1.0  # likewise for m4 - L
_SHARE_OF_FOURTH = 0.5  # at most, of m4 in the estimate
_BIAS_SHARE = 0.5  # of the smoothing that the bumps undo, counted as possible bias
_BIAS_DISAGREEMENT = 1.5  # times its expected size that m4 - L may have before it counts as bias
_DENSITY_SMOOTHING = 0.5  # bandwidths, of the fitted density in sampling variances
# What the intervals are checked for; see `RefinedModes.checked`.
_CHI_SQUARE_99 = (6.635, 9.210, 11.345)
_LARGEST_BIAS = 0.5  # standard errors, of the smoothing that the bumps undo
_LARGEST_ERROR = 0.07  # bandwidths
_WIDTH_RANGE = (0.05, 25.0)  # squared bandwidths, of the first bumps

M, M4, L, F = range(4)  # rows of the four estimates


@dataclass(frozen=True, eq=False)
class RefinedModes:
    """Refined locations of k modes.

    Parameters
    ----------
    locations : (k, d) array
        In the columns' units.
    covariance_privacy, covariance_sampling : (k, d, d) arrays
        Of the refined location.
    covariance_bias : (k, d, d) array
        Second moment put down to the smoothing bias that is left.
    checked : (k,) bool array
        Whether the interval was found fit to be relied on: the bumps fit the surface here (`m - f`
        and `m4 - L` within their 99% regions), the smoothing that they undo is below half a
        standard error, and the standard error is small enough (.07 bandwidths) for those checks
        to have power. A bump with a skew that these miss is what remains.
    refined : (k,) bool array
        Whether the location moved at all; others are the surface's own.
    """

    locations: FloatArray
    covariance_privacy: FloatArray
    covariance_sampling: FloatArray
    covariance_bias: FloatArray
    checked: BoolArray
    refined: BoolArray


@dataclass(frozen=True, eq=False)
class _Estimates:
    """The four estimates in working units: (k, 4, d), with joint covariances (k, 4, d, 4, d).

    `alone` says whether one bump makes the mode L.
    """

    places: FloatArray
    privacy: FloatArray
    sampling: FloatArray
    usable: BoolArray
    alone: BoolArray

    @property
    def dimension(self) -> int:
        return int(self.places.shape[2])


def lattice_reading(surface: Surface) -> LatticeSurface | None:
    """Return the lattice surface inside a surface, or None where there is none (d >= 4)."""
    inner = getattr(surface, "surface", surface)
    return inner if isinstance(inner, LatticeSurface) else None


def refine_modes(surface: Surface, modes: FloatArray) -> RefinedModes | None:
    """Refine the locations of modes strictly inside the box. Post-processing: free.

    Parameters
    ----------
    surface : Surface
        Released, or a plain kernel density estimate, on a lattice (d <= 3), at any bandwidth.
    modes : (k, d) array
        Its modes, in the columns' units.

    Returns
    -------
    RefinedModes or None
        None when the surface is not on a lattice, holds no record, or no bump could be fitted.
    """
    lattice = lattice_reading(surface)
    if lattice is None or modes.shape[0] == 0 or not lattice.n_effective > 0:
        return None
    second = lattice if lattice.order == 2 else replace(lattice, read_order=2)
    own = modes if lattice.order == 2 else ascend(second, modes).ends
    unit = lattice.design.bandwidth
    fit = fit_bumps(second, (own - lattice.lower) / unit, _first_variances(second, own))
    if fit.bumps.count == 0:
        return None
    estimates = _estimates(second, fit, own)
    chosen = [_choose(estimates, i, second.bandwidth / unit) for i in range(modes.shape[0])]
    _undo_meetings(chosen, estimates)
    scale = np.multiply.outer(unit, unit)
    return RefinedModes(
        locations=np.clip(
            lattice.lower + np.stack([c.place for c in chosen]) * unit, lattice.lower, lattice.upper
        ),
        covariance_privacy=np.stack([c.privacy for c in chosen]) * scale,
        covariance_sampling=np.stack([c.sampling for c in chosen]) * scale,
        covariance_bias=np.stack([c.bias for c in chosen]) * scale,
        checked=np.array([c.checked for c in chosen]),
        refined=np.array([c.refined for c in chosen]),
    )


def _first_variances(surface: LatticeSurface, modes: FloatArray) -> FloatArray:
    """Return the squared widths, in working units, that the curvature at the modes suggests."""
    unit = surface.design.bandwidth
    density, _, hessian = surface.derivatives(modes)
    curvature = -np.einsum("kaa,a->k", hessian, unit**2) / unit.size
    ratio = float(np.mean((surface.bandwidth / unit) ** 2))
    floor = np.maximum(density, 0) / (_WIDTH_RANGE[1] + ratio) + np.finfo(float).tiny
    return np.asarray(np.clip(density / np.maximum(curvature, floor) - ratio, *_WIDTH_RANGE))


def _estimates(surface: LatticeSurface, fit: BumpFit, modes: FloatArray) -> _Estimates:
    unit, lower = surface.design.bandwidth, surface.lower
    ratio = surface.bandwidth / unit
    fourth = replace(surface, read_order=4)
    own = (modes - lower) / unit
    other_climb = ascend(fourth, modes)
    other = (other_climb.ends - lower) / unit
    whole, whole_ok = climb_bumps(fit.bumps, own, ratio)
    half, half_ok = climb_bumps(fit.bumps, whole, _SMOOTHING * ratio)
    m_filters, m_ok = _surface_filters(surface, own)
    m4_filters, m4_ok = _surface_filters(fourth, other)
    responses = fit.responses()
    filters = np.zeros((own.shape[0], 4, unit.size, surface.phi.size), dtype=np.complex128)
    filters[:, M], filters[:, M4] = m_filters, m4_filters
    kept = fit.sketch.kept
    filters[:, L, :, kept] = np.moveaxis(_bump_filters(fit, half, _SMOOTHING * ratio, responses), -1, 0)
    filters[:, F, :, kept] = np.moveaxis(_bump_filters(fit, whole, ratio, responses), -1, 0)
    places = np.stack([own, other, half, whole], axis=1)
    near = np.max(np.sum(((places - own[:, None]) / ratio) ** 2, axis=2)[:, [M4, L]], axis=1)
    usable = m_ok & m4_ok & half_ok & whole_ok & other_climb.converged & (near <= _FARTHEST**2)
    privacy, sampling = _covariances(fit, filters)
    parts = read_bumps(fit.bumps, half, _SMOOTHING * ratio).parts
    alone = parts.max(axis=1) > _ALONE * parts.sum(axis=1)
    return _Estimates(places, privacy, sampling, np.asarray(usable), alone)


def _surface_filters(surface: LatticeSurface, points: FloatArray) -> tuple[ComplexArray, BoolArray]:
    """Return `g` with `d mode = Re sum_j conj(g_j) d phi_j` for modes at `points`, and which are peaks."""
    unit = surface.design.bandwidth
    hessian = surface.hessian(surface.lower + points * unit) * np.multiply.outer(unit, unit)
    eigenvalues = np.linalg.eigvalsh(hessian)
    peaks = eigenvalues[:, -1] < 1e-6 * eigenvalues[:, 0]
    safe = np.where(peaks[:, None, None], hessian, -np.eye(unit.size))
    w = surface.design.frequencies
    phase = np.exp(1j * (points @ w.T)) * surface.design.read_weights(surface.bandwidth, surface.order)
    return -np.linalg.solve(safe, 1j * phase[:, None, :] * w.T), np.asarray(peaks)


def _bump_filters(
    fit: BumpFit, points: FloatArray, smoothing: FloatArray, responses: ComplexArray
) -> ComplexArray:
    """Return the same for modes of the fitted bumps, (k, d, M) over the sketch's frequencies."""
    at = read_bumps(fit.bumps, points, smoothing)
    safe = np.where(
        (np.linalg.eigvalsh(at.hessian)[:, -1] < 0)[:, None, None], at.hessian, -np.eye(points.shape[1])
    )
    moved = -np.linalg.solve(safe, gradient_responses(fit.bumps, at))
    return np.asarray(moved @ responses)


def _covariances(fit: BumpFit, filters: ComplexArray) -> tuple[FloatArray, FloatArray]:
    """Return the joint covariances (k, 4, d, 4, d) from privacy noise and from sampling."""
    k, count, d, pairs = filters.shape
    parts = np.ascontiguousarray(filters).view(np.float64).reshape(k, count * d, 2 * pairs)
    variance = np.repeat(fit.sketch.surface.part_variance, 2)
    privacy = (parts * variance) @ np.swapaxes(parts, 1, 2)
    # Sampling: an estimate moves by the mean over records of G(x), so its variance is that of G
    # under the fitted density, over n.
    kept = filters[:, :, :, fit.sketch.kept].reshape(k * count * d, -1)
    values = fit.sketch.fields(kept).reshape(k, count * d, -1)
    chance = fit.bumps.on_grid(fit.sketch.grid, np.full(d, _DENSITY_SMOOTHING))
    chance = chance / chance.sum()
    mean = values @ chance
    second = (values * chance) @ np.swapaxes(values, 1, 2)
    sampling = (second - mean[:, :, None] * mean[:, None, :]) / fit.sketch.surface.n_effective
    shape = (k, count, d, count, d)
    return privacy.reshape(shape), sampling.reshape(shape)


@dataclass
class _Chosen:
    place: FloatArray
    privacy: FloatArray
    sampling: FloatArray
    bias: FloatArray
    checked: bool
    refined: bool


def _choose(estimates: _Estimates, mode: int, ratio: FloatArray) -> _Chosen:
    """Combine the four estimates of one mode."""
    d = estimates.dimension
    places = estimates.places[mode]
    privacy, sampling = estimates.privacy[mode], estimates.sampling[mode]
    total = privacy + sampling

    def spread(weights: FloatArray, covariance: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("i,iajb,j->ab", weights, covariance, weights))

    def contrast(one: int, other: int) -> tuple[FloatArray, float, FloatArray]:
        """Return a difference of two estimates, its squared length in sds, and its covariance."""
        weights = np.zeros(4)
        weights[one], weights[other] = 1.0, -1.0
        gap, covariance = weights @ places, spread(weights, total)
        return gap, _squared_length(gap, covariance), covariance

    if not estimates.usable[mode]:
        own = np.array([1.0, 0.0, 0.0, 0.0])
        gap = places[M4] - places[M]
        near = float(np.sum((gap / ratio) ** 2)) <= _FARTHEST**2
        bias = np.outer(gap, gap) if near else np.diag(ratio**2)
        return _Chosen(places[M], spread(own, privacy), spread(own, sampling), bias, False, False)

    _, misfit_size, _ = contrast(M, F)
    gap, gap_size, _ = contrast(M4, L)
    undone, _, undone_noise = contrast(L, F)
    evidence = _squared_length(undone, total[L, :, L]) / d
    fourth = _SHARE_OF_FOURTH * evidence / (1 + evidence) * _excess(gap_size, _DISAGREEMENT * d)
    pull = (1 - fourth) * _excess(misfit_size, _MISFIT * d)
    plain = (1 - fourth) * _share_of_plain(total, undone, undone_noise)
    weights = np.array([pull + plain, fourth, 1 - fourth - plain, -pull])
    if not estimates.alone[mode] and _squared_length(undone, total[M, :, M]) < d * _LARGEST_BIAS**2:
        # Several bumps that undo no smoothing only describe tails: m is as good, and its error is surer.
        weights = np.array([1.0, 0.0, 0.0, 0.0])
    covariance = spread(weights, total)
    bias = _excess(gap_size, _BIAS_DISAGREEMENT * d) * np.outer(gap, gap)
    bias = bias + _BIAS_SHARE**2 * np.outer(undone, undone)
    error = np.sqrt(np.diag(covariance)) / ratio
    limit = _CHI_SQUARE_99[d - 1]
    checked = (
        misfit_size < limit
        and gap_size < limit
        and _squared_length(undone, covariance) < d * _LARGEST_BIAS**2
        and float(np.mean(error**2)) < _LARGEST_ERROR**2
    )
    place = weights @ places
    return _Chosen(place, spread(weights, privacy), spread(weights, sampling), bias, checked, True)


def _share_of_plain(total: FloatArray, undone: FloatArray, undone_noise: FloatArray) -> float:
    """Return the weight of m against L that gives the least mean squared error.

    Nearly nothing where the bumps fit well with few of them; more where many make L noisy. The
    smoothing bias of m is what the bumps undo, less its own noise.
    """
    bias_of_m = max(float(undone @ undone) - float(np.trace(undone_noise)), 0.0)
    shared = float(np.trace(total[M, :, L]))
    own, fitted = float(np.trace(total[M, :, M])), float(np.trace(total[L, :, L]))
    share = (fitted - shared) / (own + fitted - 2 * shared + bias_of_m + 1e-15)
    return min(max(share, 0.0), 1.0)


def _squared_length(gap: FloatArray, covariance: FloatArray) -> float:
    """Return `gap' covariance^-1 gap`, safe where the covariance is singular."""
    floor = 1e-9 * float(np.trace(covariance)) + 1e-18
    return float(gap @ np.linalg.solve(covariance + floor * np.eye(gap.size), gap))


def _excess(size: float, expected: float) -> float:
    """Return the share of a squared length that is beyond what is expected of noise, in [0, 1)."""
    return 1 - min(1.0, expected / max(size, 1e-300))


def _undo_meetings(chosen: list[_Chosen], estimates: _Estimates) -> None:
    """Send two modes back to the surface's own places when refinement brought them together."""
    own = estimates.places[:, M]
    for i, j in _pairs(len(chosen)):
        apart = float(np.sum((own[i] - own[j]) ** 2))
        now = float(np.sum((chosen[i].place - chosen[j].place) ** 2))
        if now < 0.25 * apart:
            for mode in (i, j):
                chosen[mode].place = own[mode]
                chosen[mode].privacy = estimates.privacy[mode, M, :, M]
                chosen[mode].sampling = estimates.sampling[mode, M, :, M]
                chosen[mode].checked = chosen[mode].refined = False


def _pairs(count: int) -> list[tuple[int, int]]:
    first, second = np.triu_indices(count, 1)
    return list(zip(first.tolist(), second.tolist(), strict=True))


__all__ = ["RefinedModes", "lattice_reading", "refine_modes"]
