"""The kernels of DP-GRAMS: sums of a kernel and of its gradient at a few points, and their bounds.

Everything is in bandwidth units: the kernel of bandwidth h is `K(t/h)/h^d`, its gradient
`grad K(t/h)/h^(d+1)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import InvalidArgument
from .correlated_noise import roughness_integrals, shift_factors
from .kernels import kernel_infimum, kernel_peak
from .surfaces import FloatArray

KernelName = Literal["gaussian", "gaussian4", "legendre4"]
KERNELS: tuple[KernelName, ...] = ("gaussian", "gaussian4", "legendre4")

# Records summed at once: what bounds the depth of floating-point sums, and the memory.
CHUNK = 1024


@dataclass(frozen=True)
class ScoreKernel:
    """One kernel in d dimensions, with the constants that bound what one record can do.

    Parameters
    ----------
    name : {"gaussian", "gaussian4", "legendre4"}
        The Gaussian density; the Gaussian-based kernel of order 4; the product of the one-dimensional
        kernel of order 4 from the Legendre expansion, `(9 - 15 u^2)/8` on [-1, 1] (Tsybakov 2008,
        Proposition 1.3), which is what the paper compares with.
    dimension : int
    """

    name: KernelName
    dimension: int

    def __post_init__(self) -> None:
        if self.name not in KERNELS:
            raise InvalidArgument(f"kernel must be one of {list(KERNELS)}, got {self.name!r}")

    @property
    def order(self) -> int:
        """Order: 2 for the Gaussian density."""
        return 2 if self.name == "gaussian" else 4

    @property
    def smooth(self) -> bool:
        """Whether noise can be correlated over points: not for a kernel that jumps."""
        return self.name != "legendre4"

    @property
    def supremum(self) -> float:
        """Largest value (at zero, for all three)."""
        if self.name == "legendre4":
            return 1.125**self.dimension
        return kernel_peak(self.order, self.dimension)

    @property
    def infimum(self) -> float:
        """Smallest value: `-.75 * 1.125^(d-1)` for Legendre, at the edge in one coordinate."""
        if self.name == "legendre4":
            return -0.75 * 1.125 ** (self.dimension - 1)
        return self.supremum * kernel_infimum(self.order, self.dimension)

    @property
    def gradient_supremum(self) -> float:
        """Largest length `G_K` of the gradient (inside the support).

        Gaussian: at distance 1. Order 4: the derivative of `r (a - r^2/2) exp(-r^2/2)`, `a = 2 + d/2`,
        vanishes at `r^2 = (a + 3/2) -+ sqrt((a + 3/2)^2 - 2 a)`. Legendre: the squared length is convex in
        the square of each coordinate, so it is largest at a corner of {0, 1}^d: one coordinate at the edge.
        """
        d = self.dimension
        if self.name == "legendre4":
            return 3.75 * 1.125 ** (d - 1)
        if self.name == "gaussian":
            return self.supremum * math.exp(-0.5)
        a = 2 + d / 2
        middle, spread = a + 1.5, math.sqrt((a + 1.5) ** 2 - 2 * a)
        squares = (middle - spread, middle + spread)
        lengths = [math.sqrt(s) * abs(a - s / 2) * math.exp(-s / 2) for s in squares]
        return float((2 * math.pi) ** (-d / 2)) * max(lengths)

    def shift_bounds(self, correlated: bool) -> tuple[float, float]:
        """Return how far replacing one record moves the sums of K and of grad K.

        Correlated noise: `c_0 sqrt(I_0)` and `c_1 sqrt(I_1)`, in the norm of the covariance, for ANY number
        of points. Independent noise: `sup K - inf K` and `2 G_K`, Euclidean, for ONE point; k points move by
        sqrt(k) times as much.

        Raises
        ------
        InvalidArgument
            For correlated noise with a kernel that jumps.
        """
        if not correlated:
            return self.supremum - self.infimum, 2 * self.gradient_supremum
        if not self.smooth:
            raise InvalidArgument(
                "the Legendre kernel jumps at the edge of its support, so correlated noise cannot cover it; "
                "use noise='independent', or kernel='gaussian4' (order 4 and smooth)"
            )
        integrals = roughness_integrals(self.dimension, self.order)
        factors = shift_factors(self.dimension, self.order)
        return factors[0] * math.sqrt(integrals[0]), factors[1] * math.sqrt(integrals[1])

    def sums(self, points: FloatArray, rows: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Return the sums over records of `K(x - X)` and of its gradient at each point x.

        Parameters
        ----------
        points : (k, d) array
            In bandwidths.
        rows : (d, b) array
            Records, in bandwidths.
        weights : (b,) array, optional
            Of each record; all 1 when omitted.

        Returns
        -------
        (1 + d, k) array
            The value, then the components of the gradient.
        """
        total = np.zeros((1 + self.dimension, points.shape[0]))
        for start in range(0, rows.shape[1], CHUNK):
            part = slice(start, start + CHUNK)
            offsets = [points[:, a, None] - rows[a, part] for a in range(self.dimension)]
            chosen = None if weights is None else weights[part]
            total += self._chunk(offsets, chosen)
        return total

    def _chunk(self, offsets: list[FloatArray], weights: FloatArray | None) -> FloatArray:
        if self.name == "legendre4":
            value, slopes = _legendre(offsets)
        else:
            value, slopes = self._radial(offsets)
        if weights is not None:
            value = value * weights
            slopes = [slope * weights for slope in slopes]
        return np.array([value.sum(axis=1), *(slope.sum(axis=1) for slope in slopes)])

    def _radial(self, offsets: list[FloatArray]) -> tuple[FloatArray, list[FloatArray]]:
        half = sum((t * t for t in offsets[1:]), offsets[0] * offsets[0]) / 2
        value = np.exp(-half) * (2 * math.pi) ** (-self.dimension / 2)
        if self.name == "gaussian":
            return value, [-t * value for t in offsets]
        factor = 1 + self.dimension / 2 - half
        pull = -(factor + 1) * value
        return factor * value, [t * pull for t in offsets]


def _legendre(offsets: list[FloatArray]) -> tuple[FloatArray, list[FloatArray]]:
    inside = np.abs(offsets[0]) <= 1
    for t in offsets[1:]:
        inside = inside & (np.abs(t) <= 1)
    profiles = [np.where(inside, 1.125 - 1.875 * t * t, 0.0) for t in offsets]
    value = profiles[0]
    for profile in profiles[1:]:
        value = value * profile
    slopes = []
    for a, t in enumerate(offsets):
        slope = np.where(inside, -3.75 * t, 0.0)
        for b, profile in enumerate(profiles):
            if b != a:
                slope = slope * profile
        slopes.append(slope)
    return value, slopes
