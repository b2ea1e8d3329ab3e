"""Principal components of a symmetric matrix that carries white noise of known size.

The noise E of a released second-moment matrix is a Gaussian orthogonal matrix: variance s^2 on the diagonal,
s^2/2 off it. Hence `u'Eu` has the standard deviation s for every unit vector u, and `u'Ev` has s/sqrt(2) for
orthogonal u, v.

Bias. Noise pushes the largest eigenvalues up: away from the many small ones. To second order an eigenvalue
`a_i` of the exact matrix appears at `l_i = a_i + (s^2/2) sum_{j != i} 1/(a_i - a_j)`, and for eigenvalues
outside the bulk this holds for any size of the noise with the observed `l_j` in place of `a_j` (Capitaine,
Donati-Martin & Feral 2009, for a full-rank deformation of a Wigner matrix). The terms between the components
that are kept cancel in their sum and only split near-ties, so the sum is taken over the others. An eigenvalue
below `2 s sqrt(d/2)` cannot be told from one of pure noise (Baik, Ben Arous & Peche 2005).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .surfaces import FloatArray

# Eigenvalues and sums below this share of the edge of the noise are raised to it before a division.
_FLOOR = 0.1


@dataclass(frozen=True, eq=False)
class Components:
    """The leading components of a noisy symmetric matrix.

    Parameters
    ----------
    vectors : (k, d) array
        Orthonormal rows; the entry of largest size in each is positive.
    variances : (k,) array
        Eigenvalues without the bias of the noise; decreasing, at least a tenth of `edge` (or 1e-12).
    observed : (d,) array
        All eigenvalues as they come, decreasing.
    noise_sd : float
        Noise of an eigenvalue, s.
    edge : float
        Largest eigenvalue that noise alone has, `s sqrt(2 d)`.
    angles : (k,) array
        Expected angle between a component and the exact one that the noise causes, in radians, at most pi/2.
    total : float
        Trace of the matrix: the variance of all components.
    total_sd : float
        Its noise.
    """

    vectors: FloatArray
    variances: FloatArray
    observed: FloatArray
    noise_sd: float
    edge: float
    angles: FloatArray
    total: float
    total_sd: float

    @property
    def clear(self) -> FloatArray:
        """Which components' eigenvalues are above what noise alone gives, (k,) booleans."""
        return np.asarray(self.observed[: len(self.variances)] > self.edge)


def leading_components(matrix: FloatArray, noise_sd: float, count: int) -> Components:
    """Return the `count` leading components of a symmetric matrix (d, d).

    Parameters
    ----------
    matrix : (d, d) array
    noise_sd : float
        Standard deviation of the noise on the diagonal; off it, `1/sqrt(2)` of that.
    count : int
        In 1..d.
    """
    d = len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors.T[::-1]
    kept, rest = values[:count], values[count:]
    off = noise_sd / math.sqrt(2.0)
    edge = 2 * off * math.sqrt(d)
    gaps = kept[:, None] - rest[None, :]
    # A gap below the noise of an entry is no gap: its term fades instead of growing without bound.
    push = off**2 * np.sum(gaps / (gaps**2 + off**2), axis=1) if off > 0 else np.zeros(count)
    floor = max(_FLOOR * edge, 1e-12)
    variances = np.minimum.accumulate(np.maximum(kept - push, floor))
    leading = vectors[:count]
    signs = np.sign(leading[np.arange(count), np.argmax(np.abs(leading), axis=1)])
    return Components(
        vectors=leading * signs[:, None],
        variances=variances,
        observed=values,
        noise_sd=noise_sd,
        edge=edge,
        angles=_angles(variances, rest, off),
        total=float(np.trace(matrix)),
        total_sd=noise_sd * math.sqrt(d),
    )


def _angles(variances: FloatArray, rest: FloatArray, off: float) -> FloatArray:
    """Return the root mean square angle of each component, first order in the noise, capped at pi/2."""
    exact = np.concatenate([variances, np.minimum(np.maximum(rest, 0.0), variances[-1])])
    # The bulk is spread by the noise; its exact eigenvalues are taken at their mean.
    exact[len(variances) :] = rest.clip(0).mean() if len(rest) else 0.0
    gaps = variances[:, None] - exact[None, :]
    np.fill_diagonal(gaps, math.inf)
    squared = np.sum(off**2 / np.maximum(gaps**2, off**2 * 1e-6), axis=1) if off > 0 else 0 * variances
    return np.asarray(np.arctan(np.sqrt(squared)))
