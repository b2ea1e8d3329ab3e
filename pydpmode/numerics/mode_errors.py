"""How far the noise and the sample can have moved a mode, its height and its curvature.

Formulas of the linearised theory around one point of a surface; both sources of error are
known from the surface alone, so nothing here reads a record.
"""

from __future__ import annotations

import numpy as np

from .mode_set import BoolArray
from .surfaces import FloatArray, Surface

_NEARLY_SINGULAR = 1e-10  # least curvature, as a share of the largest, that counts as definite


def total_variance(surface: Surface, density: FloatArray) -> FloatArray:
    """Return the variance of the density from privacy noise and sampling, shape of `density`.

    `noise.value + max(R p - p^2, 0) / n`, with `R` the integral of the squared kernel. Infinite
    when the surface holds no record (`n_effective` not above zero). Negative densities count as
    zero in the sampling part.
    """
    p = np.asarray(density, dtype=np.float64)
    if not surface.n_effective > 0:
        return np.full(p.shape, np.inf)
    positive = np.maximum(p, 0.0)
    sampling = np.maximum(positive * (surface.roughness.value - positive), 0.0) / surface.n_effective
    return surface.noise.value + sampling


def cells_ratio(surface: Surface, density: FloatArray) -> FloatArray:
    """Return how many cells of privacy and sampling noise together there are in one of privacy noise alone.

    Sampling noise has sqrt(2) times the kernel's width, so there are fewer: the correlation length of the
    sum, from its variance over that of its derivative, is set by the larger part at that density.
    Without privacy noise the reference is the cell of the bandwidth. Shape of `density`, at most about 1.
    """
    p = np.maximum(np.asarray(density, dtype=np.float64), 0.0)
    n = max(surface.n_effective, 1.0)
    noise, roughness = surface.noise, surface.roughness
    ratio = np.ones(p.shape)
    for axis, h in enumerate(surface.bandwidth):
        privacy = noise.gradient[axis, axis]
        slope = privacy + p * roughness.gradient[axis, axis] / n
        value = noise.value + p * roughness.value / n
        # Cells are counted in the noise's own length, or in bandwidths where there is no noise.
        square = slope * (noise.value / privacy if privacy > 0 else h**2)
        ratio = ratio * np.sqrt(np.where(value > 0, square / np.where(value > 0, value, 1.0), 1.0))
    return ratio


def gradient_covariances(surface: Surface, density: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the covariance of the gradient at points of given density, by source.

    Parameters
    ----------
    surface : Surface
        Whose gradient.
    density : (m,) array
        Density at the points.

    Returns
    -------
    privacy, sampling : (m, d, d) arrays
        The noise's own, the same everywhere, and `R_grad p / n`. The sampling part is NaN when
        the surface holds no record.
    """
    p = np.maximum(np.asarray(density, dtype=np.float64), 0.0)
    privacy = np.broadcast_to(surface.noise.gradient, (*p.shape, *surface.noise.gradient.shape)).copy()
    n = surface.n_effective
    share = p / n if n > 0 else np.full(p.shape, np.nan)
    return privacy, share[:, None, None] * surface.roughness.gradient


def location_covariances(
    surface: Surface, density: FloatArray, hessian: FloatArray, on_face: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the covariance of mode locations, `H^-1 G H^-1`, by source.

    Parameters
    ----------
    surface : Surface
        Whose modes.
    density, hessian : (m,) and (m, d, d) arrays
        Value and curvature at the modes.
    on_face : (m, d) bool array
        Coordinates held by a face of the box: their rows and columns are NaN, and the others are
        treated as if the held ones were known.

    Returns
    -------
    privacy, sampling : (m, d, d) arrays
        NaN where the curvature along the free coordinates is not negative definite.
    """
    h = surface.bandwidth
    d = h.size
    held = on_face[:, :, None] | on_face[:, None, :]
    curvature = -hessian * h[:, None] * h
    largest = np.max(np.abs(np.where(held, 0.0, curvature)), axis=(1, 2), initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    # Held coordinates get a neutral row and column: one batch of inverses serves all modes.
    relative = np.where(held, np.eye(d), curvature / scale[:, None, None])
    definite = np.linalg.eigvalsh(relative)[:, 0] > _NEARLY_SINGULAR
    relative = np.where(definite[:, None, None], relative, np.eye(d))
    outside = held | ~definite[:, None, None]
    # (H^-1)_ab = -h_a h_b (relative^-1)_ab / scale; scale is divided out in two steps, lest its
    # square underflow.
    inverse = np.where(outside, np.nan, np.linalg.inv(relative) * h[:, None] * h)
    inverse_free, unit = np.where(held, 0.0, inverse), scale[:, None, None]
    privacy, sampling = (
        np.where(outside, np.nan, inverse_free @ (g / unit) @ inverse_free / unit)
        for g in gradient_covariances(surface, density)
    )
    return privacy, sampling


def curvature_z_scores(surface: Surface, hessian: FloatArray) -> FloatArray:
    """Return the smallest curvature at each mode over its noise standard deviation, shape (m,).

    The curvature is `-v^T H v` for the direction `v` in which the surface bends least, lengths
    measured in bandwidths so that the answer does not depend on the columns' units. Infinite (with
    the sign of the curvature) where the surface has no noise; zero for no curvature.
    """
    h = surface.bandwidth
    eigenvalues, vectors = np.linalg.eigh(hessian * h[:, None] * h)
    direction = vectors[:, :, -1] * h
    variance = np.einsum(
        "abce,ma,mb,mc,me->m", surface.noise.hessian, direction, direction, direction, direction
    )
    return safe_ratio(-eigenvalues[:, -1], np.sqrt(np.maximum(variance, 0.0)))


def safe_ratio(signal: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return `signal / deviation` with `x / 0` infinite by sign, `0 / 0` and `inf / inf` zero."""
    signal, deviation = np.broadcast_arrays(np.asarray(signal, float), np.asarray(deviation, float))
    exact = deviation == 0
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = np.where(exact, np.copysign(np.inf, signal), signal / np.where(exact, 1.0, deviation))
    ratio = np.where(exact & (signal == 0), 0.0, ratio)
    return np.asarray(np.where(np.isnan(ratio), 0.0, ratio))
