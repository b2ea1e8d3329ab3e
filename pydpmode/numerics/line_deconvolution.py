"""Where the errors about a line are most frequent, with the smoothing of the surface taken off.

At given slopes the objective as a function of the height is the density of the errors, smoothed by a kernel
of known bandwidth, plus noise of known covariance. The mode of a smoothed skewed density is not that of the
density: so the density is estimated, `f = exp(g)`, with the third derivative of g held small (Silverman 1982,
Ann. Statist. 10: a normal density costs nothing). How small, the data say: the weight of the penalty is
averaged over its marginal likelihood (Laplace's approximation). The posterior variance of the mode counts
noise, sampling, and what the smoothing hides. It is too small where errors end abruptly, or have another
scale elsewhere along the line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .plane_integral import PlaneIntegral, PlaneValue
from .surfaces import FloatArray

_REACH = 3.5  # widths of the smoothed density on either side
_MOST_POINTS = 48  # of the profile
_BEYOND = 3.0  # bandwidths, of the unsmoothed density beyond the profile
_WEIGHTS = tuple(10.0**k for k in range(4, -4, -1))  # of the penalty, in widths; smooth to rough
_NEWTON_STEPS = 40
_LARGEST_STEP = 2.0  # of a log density
_WIDEST = 6.0  # width of the smoothed density in bandwidths
_NO_NOISE = 1e-7  # of the largest eigenvalue of a covariance


class UnsmoothedHeight(NamedTuple):
    """How far the mode of the errors is from the plane, and the variance of that by its sources."""

    offset: float
    privacy: float
    sampling: float


@dataclass(frozen=True, eq=False)
class _Profile:
    """The smoothed density of the errors at points `r`, and the grid `u` of the density itself."""

    r: FloatArray
    u: FloatArray
    values: FloatArray
    kernel: FloatArray
    penalty: FloatArray
    private: FloatArray
    records: float
    width: float
    bandwidth: float


class _Fit(NamedTuple):
    """The density for one weight of the penalty: its mode, and how that follows the profile."""

    evidence: float
    offset: float
    variance: float
    influence: FloatArray
    density: FloatArray


def unsmoothed_height(
    integral: PlaneIntegral, plane: FloatArray, value: PlaneValue
) -> UnsmoothedHeight | None:
    """Return the mode of the errors about a plane, or None when the density has none near it.

    Parameters
    ----------
    integral : PlaneIntegral
        Of order 2.
    plane : (p + 1,) array
        Where it has its maximum.
    value : PlaneValue
        Of the integral there.
    """
    profile = _profile(integral, plane, value)
    fits = list(_fits(profile))
    if not fits:
        return None
    evidence = np.array([fit.evidence for fit in fits])
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    offsets = np.array([fit.offset for fit in fits])
    offset = float(weight @ offsets)
    variance = float(weight @ (np.array([fit.variance for fit in fits]) + (offsets - offset) ** 2))
    influence = weight @ np.array([fit.influence for fit in fits])
    # What the smoothing hides belongs to neither source: shared out as the two are.
    sampled = _sampling(profile, fits[int(np.argmax(evidence))].density)
    parts = [max(float(influence @ part @ influence), 0.0) for part in (profile.private, sampled)]
    scale = variance / max(sum(parts), 1e-300)
    return UnsmoothedHeight(offset, parts[0] * scale, parts[1] * scale)


def _profile(integral: PlaneIntegral, plane: FloatArray, value: PlaneValue) -> _Profile:
    s = integral.residual_bandwidth
    width = math.sqrt(-value.value / float(value.hessian[0, 0]))
    width = min(max(width, s), _WIDEST * s)
    r = _even(_REACH * width, max(s / 2, 2 * _REACH * width / _MOST_POINTS))
    u = _even(_REACH * width + _BEYOND * s, s / 3)
    values, coefficients = integral.profile(plane, r)
    step = float(u[1] - u[0])
    kernel = np.exp(-0.5 * ((r[:, None] - u) / s) ** 2) * step / (s * math.sqrt(2 * math.pi))
    # Third differences, so that their squares sum to the integral of the squared third derivative.
    bends = np.diff(np.eye(u.size), 3, axis=0) * (width / step) ** 2.5
    return _Profile(
        r,
        u,
        values,
        kernel,
        bends.T @ bends,
        integral.noise_covariance(coefficients),
        integral.joint.records,
        width,
        s,
    )


def _even(reach: float, step: float) -> FloatArray:
    half = math.floor(reach / step)
    return np.arange(-half, half + 1, dtype=np.float64) * step


def _sampling(profile: _Profile, density: FloatArray) -> FloatArray:
    """Return the covariance of the profile by sampling, given the unsmoothed density."""
    smooth = profile.kernel @ density
    product = (profile.kernel * (density / float(profile.u[1] - profile.u[0]))) @ profile.kernel.T
    return np.asarray((product - np.outer(smooth, smooth)) / profile.records)


def _fits(profile: _Profile) -> Iterator[_Fit]:
    """Yield the fits from the smoothest to the roughest density, each started from the one before."""
    start = np.interp(profile.u, profile.r, profile.values)
    log_density = np.log(np.maximum(start, 0.02 * float(profile.values.max())))
    for weight in _WEIGHTS:
        for _ in range(2):  # the covariance by sampling follows the density
            whitening, size = _whitening(profile.private + _sampling(profile, np.exp(log_density)))
            log_density, loss = _climbed(profile, whitening, weight, log_density)
        fit = _described(profile, whitening, size, weight, log_density, loss)
        if fit is not None:
            yield fit


def _whitening(covariance: FloatArray) -> tuple[FloatArray, float]:
    """Return the matrix that whitens what has this covariance, and the logarithm of its determinant."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _NO_NOISE * values[-1]
    return (vectors[:, kept] / np.sqrt(values[kept])).T, float(np.log(values[kept]).sum())


def _climbed(
    profile: _Profile, whitening: FloatArray, weight: float, start: FloatArray
) -> tuple[FloatArray, float]:
    """Minimise squared whitened residuals plus penalty over the log density; Newton with halved steps."""
    design, target = whitening @ profile.kernel, whitening @ profile.values

    def loss(at: FloatArray) -> float:
        rest = target - design @ np.exp(np.minimum(at, 50.0))
        return float(rest @ rest + weight * at @ profile.penalty @ at)

    here, now = start, loss(start)
    for _ in range(_NEWTON_STEPS):
        slope = design * np.exp(here)
        downhill = slope.T @ (target - design @ np.exp(here)) - weight * profile.penalty @ here
        move = np.linalg.solve(_bending(profile, slope, weight), downhill)
        share = min(1.0, _LARGEST_STEP / max(float(np.abs(move).max()), 1e-300))
        while (new := loss(here + share * move)) > now and share > 1e-4:
            share /= 2
        if new > now:
            break
        here, gained, now = here + share * move, now - new, new
        if gained < 1e-6 * (1 + now):
            break
    return here, now


def _bending(profile: _Profile, slope: FloatArray, weight: float) -> FloatArray:
    """Return the (Gauss-Newton) second derivative of half the loss, kept away from singular."""
    out = slope.T @ slope + weight * profile.penalty
    out[np.diag_indices_from(out)] += 1e-11 * float(np.trace(out)) / out.shape[0]
    return np.asarray(out)


def _described(
    profile: _Profile,
    whitening: FloatArray,
    size: float,
    weight: float,
    log_density: FloatArray,
    loss: float,
) -> _Fit | None:
    """Return evidence, mode and its variance; None when the mode is at the end of where it is looked for."""
    u, step, n = profile.u, float(profile.u[1] - profile.u[0]), profile.u.size
    near = np.abs(u) <= max(2 * profile.bandwidth, profile.width)
    k = int(np.argmax(np.where(near, log_density, -np.inf)))
    if not (0 < k < n - 1 and near[k - 1] and near[k + 1]):
        return None
    rise = float(log_density[k + 1] - log_density[k - 1]) / 2
    bend = float(log_density[k + 1] - 2 * log_density[k] + log_density[k - 1])
    if bend >= 0:
        return None
    shift = -rise / bend
    # The slope at the mode as a combination of three values of the log density.
    slope_at = np.zeros(n)
    slope_at[[k - 1, k, k + 1]] = (-0.5 + shift, -2 * shift, 0.5 + shift)
    slope_at *= -step / bend
    slope = whitening @ profile.kernel * np.exp(log_density)
    bending = _bending(profile, slope, weight)
    solved = np.linalg.solve(bending, slope_at)
    evidence = 0.5 * ((n - 3) * math.log(weight) - loss - float(np.linalg.slogdet(bending)[1]) - size)
    return _Fit(
        evidence,
        float(u[k]) + shift * step,
        float(slope_at @ solved),
        (slope @ solved) @ whitening,
        np.exp(log_density),
    )
