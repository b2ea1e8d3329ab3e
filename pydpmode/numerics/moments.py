"""Sums over points of a ball: their first or second moments, with known noise, and what is read from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import InvalidArgument
from .surfaces import FloatArray

Order = Literal[1, 2]
# Squares of shorter vectors than this underflow: a point outside of so small a ball would seem inside.
LEAST_RADIUS = 1e-100
# Within this many standard errors of the public number of units, that number is the better estimate.
_AS_PUBLIC = 2.0


@dataclass(frozen=True, eq=False)
class Ball:
    """A ball in scaled coordinates: points with `|(x - centre)/scale| <= radius`. Public, or released.

    Parameters
    ----------
    centre, scale : (d,) arrays
        In the units of the coordinates; scales > 0.
    radius : float
        At least 1e-100, in scales.

    Raises
    ------
    InvalidArgument
        When they are not finite, not positive, or of different lengths.
    """

    centre: FloatArray
    scale: FloatArray
    radius: float

    def __post_init__(self) -> None:
        centre, scale = (np.array(v, dtype=np.float64, ndmin=1) for v in (self.centre, self.scale))
        if centre.ndim != 1 or centre.shape != scale.shape:
            raise InvalidArgument("centre and scale must have one entry per column")
        if not (np.isfinite(centre).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise InvalidArgument("centre must be finite and scale finite and > 0")
        radius = float(self.radius)
        if not LEAST_RADIUS <= radius < math.inf:
            raise InvalidArgument(f"radius must be finite and at least {LEAST_RADIUS}, got {self.radius!r}")
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "radius", radius)

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return `(x - centre)/scale` of points (d, b)."""
        return np.asarray((values - self.centre[:, None]) / self.scale[:, None])

    def distances(self, values: FloatArray) -> FloatArray:
        """Return the lengths of scaled points, (b,): each of its own point alone, to the last bit.

        Squares are added one coordinate after the other. A reduction of NumPy's may add them in another order
        where there is one point only, and a point at an edge of a cell would change cells with its company.
        """
        total = np.zeros(values.shape[1])
        for row in self.scaled(values):
            total += row * row
        return np.asarray(np.sqrt(total))

    def unit(self, values: FloatArray) -> FloatArray:
        """Return points (d, b) scaled, moved to the ball along their ray, and divided by the radius."""
        y = self.scaled(values)
        length = np.sqrt(np.einsum("ij,ij->j", y, y))
        return np.asarray(y / np.maximum(length, self.radius))

    def reach(self, lower: FloatArray, upper: FloatArray) -> float:
        """Return the largest scaled distance of a box from the centre."""
        far = np.maximum(np.abs(lower - self.centre), np.abs(upper - self.centre)) / self.scale
        return float(np.sqrt(np.sum(far**2)))


def moment_sums(unit: FloatArray, weights: FloatArray | None, order: Order) -> FloatArray:
    """Return the weighted sum of points u (d, b) of the unit ball, or of their squares, as one vector.

    Order 1: `sum w u`, d entries. Order 2: the upper triangle of `sum w u u'`, its off-diagonal entries times
    sqrt(2), so that the Euclidean norm of the vector is the Frobenius norm of the matrix.
    """
    weighted = unit if weights is None else unit * weights
    if order == 1:
        return np.asarray(weighted.sum(axis=1))
    square = weighted @ unit.T
    rows, columns = np.triu_indices(len(unit))
    return np.asarray(square[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0)))


def as_matrix(vector: FloatArray) -> FloatArray:
    """Return the symmetric matrix of which `moment_sums` of order 2 holds the upper triangle."""
    d = math.isqrt(2 * len(vector))
    rows, columns = np.triu_indices(d)
    out = np.zeros((d, d))
    out[rows, columns] = vector / np.where(rows == columns, 1.0, math.sqrt(2.0))
    out[columns, rows] = out[rows, columns]
    return out


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Moments of points of the unit ball, plus white noise of known size.

    Parameters
    ----------
    order : {1, 2}
    total : float
        Weight of all points.
    total_sd : float
        Its noise.
    sums : (d,) or (d (d + 1) / 2,) array
        As `moment_sums`.
    noise_sd : float
        Of each entry of `sums`.
    units : int or None
        The public number of units, which the weight cannot exceed.
    """

    order: Order
    total: float
    total_sd: float
    sums: FloatArray
    noise_sd: float
    units: int | None

    @property
    def records(self) -> float:
        """The number of records to divide by, at least 1.

        The public number where the released weight agrees with it (nothing is missing then); else the weight.
        """
        if self.units is None:
            return max(self.total, 1.0)
        if abs(self.total - self.units) <= _AS_PUBLIC * self.total_sd:
            return float(self.units)
        return min(max(self.total, 1.0), float(self.units))

    def mean(self, ball: Ball) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the clipped points in the coordinates' units, and its privacy errors, (d,)."""
        unit = ball.radius * ball.scale / self.records
        return ball.centre + unit * self.sums, np.asarray(unit * self.noise_sd)

    def second_moments(self, ball: Ball) -> tuple[FloatArray, float]:
        """Return the mean of `y y'`, y the clipped scaled points, (d, d), and the noise of a diagonal entry.

        An entry off the diagonal has `1/sqrt(2)` of that noise.
        """
        unit = ball.radius**2 / self.records
        return unit * as_matrix(self.sums), unit * self.noise_sd
