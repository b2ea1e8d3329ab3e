"""Noise that is correlated over points, and how far one record can move kernel statistics in its norm.

The noise field has covariance `exp(-|x - y|)`, lengths in bandwidths. Hall, Rinaldo & Wasserman (2013),
Propositions 7 and 8: a function that is released with such noise at finitely many points has the
sensitivity of its norm in the reproducing-kernel space of the covariance, whatever the points. For
kernel sums that norm is explicit. With the kernel's spectrum `k(w)` and the covariance's spectral
density `c_d (1 + |w|^2)^{-(d+1)/2}`, `c_d = Gamma((d+1)/2) pi^{-(d+1)/2}`, two records at distance t have

    <K(. - X), K(. - Y)> = (2 pi)^{-2d} / c_d * int k(w)^2 (1 + |w|^2)^{(d+1)/2} cos(w.(X - Y)) dw = R_0(t),

and the sum over the d components of the gradient is the same with one more factor `|w|^2`: `R_1(t)`.
So `I_0 = R_0(0)`, `I_1 = R_1(0)`, and replacing a record moves the two by `2 (I - R(t))`, squared. The inner
product can be negative, so the factors `c = max_t sqrt(2 (1 - R(t)/I))` are above sqrt 2 (never above 2).

The statement is about LINEAR functions of the records. Clipped and divided scores are not linear and
have no such bound: docs/where-we-differ.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from ..errors import InvalidArgument
from .kernels import check_order
from .surfaces import FloatArray

# Added to the diagonal of the covariance: points may coincide. More noise, never less: the norm of
# the enlarged covariance is smaller. It costs 5e-6 of the noise's standard deviation.
NUGGET = 1e-5

# Nodes of the radial integrals; the integrand has decayed to 1e-40 at the far end.
_REACH, _NODES = 9.0, 400
# Grid of distances on which the largest shift is sought. Beyond it R has decayed like exp(-t).
_FARTHEST, _COARSE, _FINE = 40.0, 0.02, 5e-4


def roughness_integrals(dimension: int, order: int = 2) -> tuple[float, float]:
    """Return `I_0` and `I_1`: squared norms of the kernel and of its gradient, in bandwidth units.

    Parameters
    ----------
    dimension : int
        d, at least 1.
    order : {2, 4}
        Of the Gaussian-based kernel. (The Legendre kernel jumps, so its norm is infinite.)

    Notes
    -----
    In polar coordinates and with `s = |w|^2` the integral is a sum of
    `int s^{a-1} e^{-s} (1 + s)^{(d+1)/2} ds = Gamma(a) U(a, a + (d+3)/2, 1)`, U Tricomi's function.
    """
    return _integrals(_dimension(dimension), _order(order))


@lru_cache(maxsize=64)
def shift_factors(dimension: int, order: int = 2) -> tuple[float, float]:
    """Return `c_0` and `c_1`, the factors of the exact shift under replacement, rounded up.

    Replacing one of m records moves the mean of the kernel by at most `c_0 sqrt(I_0)/m` and the mean of
    its gradient by at most `c_1 sqrt(I_1)/m`, in bandwidth units and the covariance's norm. A record
    against a missing one moves them by `sqrt(I_0)/m` and `sqrt(I_1)/m`, which is less.

    Notes
    -----
    `c^2 = max_t 2 (1 - R(t)/I)`, rigorously: at the minimum of R its derivative vanishes, and its second
    derivative is at most `B = (2 pi)^{-2d}/c_d int k^2 |w|^{2+2i} (1+|w|^2)^{(d+1)/2} dw`, so a node at most
    half a step s away has a value at most `B s^2/8` above the minimum. The nodes of a coarse grid that
    could be that one are searched again on a fine grid. Beyond the last distance R is under 1e-15 of I.
    """
    d, order = _dimension(dimension), _order(order)
    r, weight = _radial_rule(d, order)
    return _shift_factor(d, r, weight), _shift_factor(d, r, weight * r * r)


def _shift_factor(d: int, r: FloatArray, parts: FloatArray) -> float:
    at_zero, curvature = float(parts.sum()), float((parts * r * r).sum())

    def correlation(t: FloatArray) -> FloatArray:
        return np.asarray(_oscillation(d, np.outer(t, r)) @ parts)

    nodes = np.arange(0.0, _FARTHEST, _COARSE)
    values = correlation(nodes)
    fall = curvature * _COARSE**2 / 8
    cells = nodes[values <= values.min() + fall]
    offsets = np.arange(-_COARSE / 2, _COARSE / 2 + _FINE, _FINE)
    finer = (cells[:, None] + offsets).ravel()
    lowest = float(correlation(np.abs(finer)).min()) - curvature * _FINE**2 / 8
    # The quadrature's own rounding, measured below 1e-12, on the safe side.
    return math.sqrt(2 * (1 - lowest / at_zero)) * (1 + 1e-10)


def noise_covariance(points: FloatArray) -> FloatArray:
    """Return `exp(-|x - y|)` over pairs of `points` (k, d), in bandwidth units, plus the nugget: (k, k)."""
    z = np.asarray(points, dtype=np.float64)
    distance = np.sqrt(np.sum(np.square(z[:, None, :] - z[None, :, :]), axis=2))
    return np.asarray(np.exp(-distance) + NUGGET * np.eye(z.shape[0]))


@dataclass(frozen=True, eq=False)
class Whitening:
    """A linear map in which noise of a given covariance is white, and its inverse.

    For values F at k points, `M F` is what gets independent noise; multiplying back gives F plus noise
    of covariance `sigma^2 factor factor^T`. The Euclidean norm of `M v` is at most the norm of v in
    the covariance `exp(-|x - y|)`, which is at most its norm in the function space.

    Parameters
    ----------
    forward, factor : (k, k) arrays
        M and its inverse.
    """

    NORM: ClassVar[float] = NUGGET**-0.5 * 1.001
    """A bound on the spectral norm of the forward map: what rounding errors are multiplied by."""

    forward: FloatArray
    factor: FloatArray

    @classmethod
    def correlated(cls, points: FloatArray) -> Self:
        """Return the map for noise of covariance `exp(-|x - y|)` at `points` (k, d), in bandwidth units."""
        covariance = noise_covariance(points)
        count = covariance.shape[0]
        lower = np.linalg.cholesky(covariance)
        forward = np.linalg.solve(lower, np.eye(count))
        # M as computed, not as meant, decides how far a record can move M F: scale it so that the
        # computed norm of M C M^T is at most 1, C the covariance without its nugget.
        exact = covariance - NUGGET * np.eye(count)
        largest = float(np.linalg.eigvalsh(forward @ exact @ forward.T)[-1])
        # Rounding of C and of the product: below 3 k u |M|^2 |C| + 4 k u |M|^2, with |C| <= k.
        scale = math.sqrt(max(1.0, largest + 1e-10 * count**2))
        return cls(np.asarray(forward / scale), np.asarray(lower * scale))

    @classmethod
    def independent(cls, count: int) -> Self:
        """Return the identity: independent noise at each of `count` points."""
        return cls(np.eye(count), np.eye(count))


@lru_cache(maxsize=64)
def _integrals(d: int, order: int) -> tuple[float, float]:
    from scipy.special import hyperu  # imported here: slow to import

    # Powers of s = |w|^2 in the squared spectrum over exp(-s): order 4 has (1 + s/2)^2.
    coefficients = (1.0,) if order == 2 else (1.0, 1.0, 0.25)

    def integral(extra: int) -> float:
        return math.fsum(
            c * math.gamma(a) * float(hyperu(a, a + (d + 3) / 2, 1.0))
            for j, c in enumerate(coefficients)
            for a in [d / 2 + j + extra]
        )

    scale = (2 * math.pi) ** (-2 * d) * math.pi ** (d / 2) / (math.gamma(d / 2) * _spectral_constant(d))
    return scale * integral(0), scale * integral(1)


def _spectral_constant(d: int) -> float:
    return math.gamma((d + 1) / 2) / float(math.pi ** ((d + 1) / 2))


@lru_cache(maxsize=64)
def _radial_rule(d: int, order: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes r and weights such that `sum weight * g(r) = R`-type integrals of radial g."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    r = _REACH * (x + 1) / 2
    sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)
    spectrum = np.exp(-(r**2)) * (1.0 if order == 2 else (1 + r**2 / 2) ** 2)
    scale = (2 * math.pi) ** (-2 * d) / _spectral_constant(d)
    weight = _REACH / 2 * w * sphere * r ** (d - 1) * spectrum * (1 + r**2) ** ((d + 1) / 2) * scale
    return r, np.asarray(weight)


def _oscillation(d: int, s: FloatArray) -> FloatArray:
    """Return the mean of `cos(w.t)` over directions of w, at `s = |w| |t|`: 1 at zero."""
    if d == 1:
        return np.asarray(np.cos(s))
    if d == 3:
        return np.asarray(np.sinc(s / math.pi))
    from scipy.special import j0, j1, jv

    if d == 2:
        return np.asarray(j0(s))
    index = d / 2 - 1
    small = s < 1e-4
    safe = np.where(small, 1.0, s)
    out = math.gamma(d / 2) * (2 / safe) ** index * (j1(safe) if d == 4 else jv(index, safe))
    return np.asarray(np.where(small, 1 - s * s / (2 * d), out))


def _dimension(dimension: int) -> int:
    if not 1 <= dimension <= 20:
        raise InvalidArgument(f"dimension must be in 1..20, got {dimension!r}")
    return int(dimension)


def _order(order: int) -> int:
    if check_order(order) not in (2, 4):
        raise InvalidArgument(f"correlated noise is calibrated for kernels of order 2 and 4, got {order}")
    return order
