"""How likely a branch of a modal regression is to be certified and seen, before anything is released.

The branch holds a share of the records, spread evenly along the predictors and normally about the branch; the
others lie on one other branch, well apart and as wide. So the height of its ridge is known, and the noise on
it is Gaussian with known variance and correlation length: what `modal_branches.find_branches` asks of it
has a probability. A branch that leans on a larger one needs more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from .detection import SurfacePlan
from .kernels import squared_kernel_integrals
from .modal_branches import CLEAR_VALLEY, EDGE, LEAST_HEIGHT, LEAST_RELATIVE, valley_threshold
from .significance import expected_euler_characteristic, height_threshold
from .surfaces import FloatArray

_NORMAL = NormalDist()
_OWN = np.linspace(-5.0, 5.0, 101)  # noise at one place of the ridge, in standard deviations
# The largest noise within a bandwidth of a place with noise e has about mean .8 + .42 e and this spread; the
# lowest in the valley beside it about mean -1.3. By simulated branches: tests/python/numerics.
_NEARBY = (0.8, 0.42, 0.56)
_VALLEY = (-1.3, 0.6)


@dataclass(frozen=True, eq=False)
class BranchPlan:
    """A branch on a surface that is to be released.

    Parameters
    ----------
    surface : SurfacePlan
        Response last.
    spread : float
        Standard deviation of the response about the branch.
    stretch : (p,) array
        Length over which the records are spread along each predictor.
    rate : float
        False-branch rate of the search.
    """

    surface: SurfacePlan
    spread: float
    stretch: FloatArray
    rate: float = 0.05

    def height(self, share: float) -> float:
        """Return the density along the ridge of a branch that holds a share of the records."""
        h = self.surface.bandwidth
        ends = (math.erf(v / 2) for v in (self.stretch / h[:-1] / math.sqrt(2)).tolist())
        wide = math.hypot(self.spread, float(h[-1]))
        return share * math.prod(ends) / float(np.prod(self.stretch)) / math.sqrt(2 * math.pi) / wide

    def density_error(self, share: float) -> float:
        """Return the standard deviation of the released density on the ridge: privacy and sampling."""
        s = self.surface
        roughness = squared_kernel_integrals(s.order, s.dimension)[0] / float(np.prod(s.bandwidth))
        return math.sqrt(self._noise[0] + roughness * self.height(share) / s.n)

    def location_errors(self, share: float, gradient_variance: float) -> tuple[float, float]:
        """Return the standard errors of the branch at one predictor value, by privacy and by sampling.

        Parameters
        ----------
        share : float
        gradient_variance : float
            Of the privacy noise of the derivative along the response.
        """
        s = self.surface
        height, h = self.height(share), float(s.bandwidth[-1])
        curvature = height / (self.spread**2 + h**2)
        slope = squared_kernel_integrals(s.order, s.dimension)[1] / (float(np.prod(s.bandwidth)) * h**2)
        return math.sqrt(gradient_variance) / curvature, math.sqrt(slope * height / s.n) / curvature

    def certified(self, share: float) -> float:
        """Return the chance that the branch is certified."""
        error = self.density_error(share)
        unit, other = self.height(share) / error, self.height(1 - share) / error
        # What noise must add, in standard deviations, for each of the conditions to hold.
        lacking = [self._level * math.sqrt(self._noise[0]) / error - unit]
        if share < 0.5:
            relative = (LEAST_RELATIVE * other - unit) / math.hypot(1, LEAST_RELATIVE)
            lacking.append(min(relative, _valley_gap(CLEAR_VALLEY, unit)))
            lacking.append(_valley_gap(valley_threshold(self._cells), unit))
        return 1 - _stays_below(max(lacking), self._cells[:-1] * self.stretch / self.surface.widths[:-1])

    def seen(self, share: float) -> float:
        """Return the chance that a certified branch is there at one predictor value."""
        error = self.density_error(share)
        unit, other = self.height(share) / error, self.height(1 - share) / error
        own = unit + _OWN
        relative = _normal(own / LEAST_RELATIVE - other) if share < 1 else np.ones(own.size)
        clear = _normal((own - _VALLEY[0] - CLEAR_VALLEY) / _VALLEY[1])
        edge = _normal((own / EDGE - unit - _NEARBY[0] - _NEARBY[1] * _OWN) / _NEARBY[2])
        weight = np.exp(-0.5 * _OWN**2) * (own * error >= LEAST_HEIGHT * math.sqrt(self._noise[0]))
        total = np.exp(-0.5 * _OWN**2).sum()
        return float(np.sum(weight * edge * np.maximum(relative, clear)) / total)

    @cached_property
    def _noise(self) -> tuple[float, float]:
        """Variance of the privacy noise and its correlation length in bandwidths."""
        return self.surface.noise(1.0)

    @cached_property
    def _cells(self) -> FloatArray:
        """Box sides in correlation lengths."""
        return np.asarray(self.surface.widths / (self.surface.bandwidth * self._noise[1]))

    @cached_property
    def _level(self) -> float:
        return height_threshold(self._cells, self.rate)


def _valley_gap(depth: float, unit: float) -> float:
    """Return what noise must add to a ridge so high, for a valley so deep beside it."""
    return (depth - unit + _VALLEY[0]) / math.hypot(1, _VALLEY[1])


def _normal(z: FloatArray) -> FloatArray:
    """Return the normal distribution function."""
    return np.asarray(0.5 * np.vectorize(math.erfc, otypes=[np.float64])(-z / math.sqrt(2)))


def _stays_below(level: float, cells: FloatArray) -> float:
    """Return the chance that noise stays below `level` all along a ridge so many correlation lengths long.

    One place stays below with chance P; upcrossings elsewhere, whose expected number is what the Euler
    characteristic counts beyond one place, are taken as Poisson.
    """
    below = max(_NORMAL.cdf(level), 1e-300)
    more = max(float(expected_euler_characteristic(level, cells)) - (1 - below), 0.0)
    return below * math.exp(-min(more / below, 700.0))
