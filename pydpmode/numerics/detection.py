"""How likely a search is to find a mode of a stated share and spread, before anything is released.

The mode is a Gaussian bump, well apart from the others. It is found when its height, and the persistence
that is then about its height, pass the thresholds of `mode_seeking`. Height and saddle are Gaussian with
known variance, so the probability is a normal tail. For planning: a bump that leans on a larger one needs
more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .bandwidth import Ladder
from .designs import DEFAULT_READ_RATIO
from .kernels import spectrum, squared_kernel_integrals
from .mode_seeking import HEIGHT_IN_SDS
from .scale_choice import ladder_readings
from .significance import Look, height_rate, height_threshold, persistence_threshold
from .surfaces import FloatArray

# Of the radial integrals; spectra are below 1e-13 at 8 over the bandwidth.
_RADII = np.linspace(0.0, 8.0, 4001)


@dataclass(frozen=True, eq=False)
class SurfacePlan:
    """What is known of a surface before its release.

    Parameters
    ----------
    widths : (d,) array
        Sides of the box, in the columns' units.
    bandwidth : (d,) array
        The (widest) bandwidth.
    ladder : Ladder
    order : int
    zero_weight : float
    noise_scale : float
        Standard deviation of the noise in each released entry.
    n : float
        Number of records.
    """

    widths: FloatArray
    bandwidth: FloatArray
    ladder: Ladder
    order: int
    zero_weight: float
    noise_scale: float
    n: float

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return self.bandwidth.size

    @property
    def readings(self) -> tuple[float, ...]:
        """Ratios at which it will be read."""
        return ladder_readings(self.ladder.scales)

    def noise(self, ratio: float) -> tuple[float, float]:
        """Return variance of the density's privacy noise and its correlation length in widest bandwidths.

        The sums over the lattice as integrals, the zero frequency left out: for boxes of a few bandwidths
        and more they agree to 1e-3. With `f` the spectrum of the weights,
        `Var p = sigma^2/n^2 / (1 - g_0) (2 pi)^(-2d) / prod h^2 int kappa_r^2/f int f`.
        """
        d = self.dimension
        value, slope, weight = _integrals(self.ladder, self.order, d, ratio)
        # What the zero frequency, whose weight is separate, would add to each.
        zero = float(np.prod(2 * math.pi / (self.widths / self.bandwidth + 6 * DEFAULT_READ_RATIO)))
        scale = (self.noise_scale / self.n) ** 2 / (1 - self.zero_weight) * (2 * math.pi) ** (-2 * d)
        variance = scale * (value - zero) * (weight - zero) / float(np.prod(self.bandwidth)) ** 2
        return variance, math.sqrt((value - zero) / slope)

    def evidence(self, share: float, spread: FloatArray, rate: float = 0.05) -> float:
        """Return how far a bump is above what it must reach, in standard deviations, at the best reading."""
        return max(self._evidence_at(r, share, spread, rate) for r in self.readings)

    def detection_probability(self, share: float, spread: FloatArray, rate: float = 0.05) -> float:
        """Return the probability that a bump with this share of the records and spread (d,) is found."""
        return 0.5 * math.erfc(-self.evidence(share, spread, rate) / math.sqrt(2.0))

    def _evidence_at(self, ratio: float, share: float, spread: FloatArray, rate: float) -> float:
        d, h = self.dimension, self.bandwidth * ratio
        look: Look = "only" if len(self.readings) == 1 else "widest" if ratio == 1.0 else "narrower"
        variance, length = self.noise(ratio)
        height = share * float(np.prod(2 * math.pi * (spread**2 + h**2)) ** -0.5)
        roughness, slope = squared_kernel_integrals(self.order, d)
        sampling = height * roughness / (self.n * float(np.prod(h)))
        error = math.sqrt(variance + max(sampling - height**2 / self.n, 0.0))
        sides = self.widths / (self.bandwidth * length)
        level = _level(tuple(sides.tolist()), height_rate(rate, look)) * math.sqrt(variance)
        # Cells of privacy and sampling noise together, as `mode_errors.cells_ratio` counts them.
        own = variance / (length / ratio) ** 2
        cells = (
            sides * (length / ratio) * math.sqrt((own + sampling * slope / roughness) / (variance + sampling))
        )
        needed = max(HEIGHT_IN_SDS, float(persistence_threshold(float(np.prod(cells)), d, look)))
        # The saddle carries noise of its own, as much again.
        return min((height - level) / error, (height / error - needed) / math.sqrt(2.0))


@lru_cache(maxsize=256)
def _level(sides: tuple[float, ...], rate: float) -> float:
    """Return `height_threshold`, once for all shares."""
    return height_threshold(np.array(sides), rate)


@lru_cache(maxsize=256)
def _integrals(ladder: Ladder, order: int, dimension: int, ratio: float) -> tuple[float, float, float]:
    """Return `int kappa_r^2/f`, `int w_1^2 kappa_r^2/f` and `int f`, in units of the widest bandwidth."""
    parts = [(s, m * s**dimension) for s, m in zip(ladder.scales, ladder.masses, strict=True)]
    whole = math.fsum(part for _, part in parts)

    def weights(radius: FloatArray) -> FloatArray:
        return np.asarray(sum(part / whole * spectrum(order, (s * radius) ** 2) for s, part in parts))

    def power(radius: FloatArray) -> FloatArray:
        return spectrum(order, (ratio * radius) ** 2) ** 2 / np.maximum(weights(radius), 1e-300)

    value: float = _radial(power, dimension, 1 / ratio)
    slope = _radial(lambda r: r**2 * power(r), dimension, 1 / ratio) / dimension
    return value, slope, _radial(weights, dimension, 1 / min(ladder.scales))


def _radial(integrand: Callable[[FloatArray], FloatArray], dimension: int, reach: float) -> float:
    """Return the integral of a function of `|w|` over all of space."""
    radius = _RADII * reach
    values = integrand(radius) * radius ** (dimension - 1)
    sphere = float(2 * math.pi ** (dimension / 2) / math.gamma(dimension / 2))
    # The trapezoid rule; the last value is nothing.
    return sphere * float(radius[1]) * (float(np.sum(values)) - float(values[0]) / 2)
