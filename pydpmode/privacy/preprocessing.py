"""Statistics for preprocessing: quantiles per column, and moments of rows clipped to a public ball.

Each is one release: a plan that is complete before a row is read, a sum over blocks of rows, and what is
drawn from that sum. `PrivateData.release_statistic` charges the ledger in between.

Moments. A row x is scaled about a centre, `y = (x - c)/s`, and moved to the ball of radius R along its ray;
`u = y/max(|y|, R)` has `|u| <= 1`. Centre, scale and radius are public, or come from earlier releases. A row
of weight w in [0, 1] contributes `w (a v, b)`: v is u (order 1), or the upper triangle of `u u'` with its
off-diagonal entries times sqrt(2) (order 2); b counts the rows. Then `|v|` is the Frobenius norm of `u u'`,
which is `|u|^2 <= 1`.

Add or remove: `a^2 + b^2 = 1`, so a contribution has norm at most 1: Delta_0 = 1.

Replace: `a = 1`. Two present rows of weight 1 have the same count, and differ by at most
- order 1: `|u - t| <= 2`;
- order 2: `|uu' - tt'|_F^2 = |u|^4 + |t|^4 - 2 (u.t)^2 <= 2`, reached by orthogonal u and t of length 1.
A present row and a missing one differ by at most `sqrt(1 + b^2)`. So b = sqrt(3) and b = 1 cost nothing:
Delta_0 = 2 and sqrt(2). With two weights the squared difference is convex in them and largest at a corner,
(1, 1), (1, 0), (0, 1) or (0, 0). A person's rows are averaged: their mean lies in the convex hull of what
single rows contribute, and the norm of a difference is convex. So Delta_0 holds for persons as well.

Arithmetic. Whatever the order of a sum of terms of total size at most n, `depth` roundings deep, its error
in Euclidean norm is at most `n u depth`, u = 2^-53 (Higham 2002, Section 4.2); a product of matrices is
such a sum. A computed point may leave the unit ball by a relative `(d + 8) u`. Both are in the margin, for
both neighbours. The sum is rounded to the lattice once, after all blocks.

Quantiles: see `quantiles`. A record's weight is spread evenly over `SPREAD` cells around its own, so that the
share of it below an edge is a ramp from 0 to 1 instead of a step: in the proof there, any number in [0, 1]
will do. Without it all edges beside many equal values are equally good, however far. Quantiles of the
distance from a centre are those of one more column, computed from each row by itself and clipped to [0, R].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..budget import Adjacency, PrivacySpent
from ..errors import InvalidArgument
from ..numerics.moments import Ball, NoisyMoments, Order, moment_sums
from ..numerics.surfaces import FloatArray
from ..results.coordinates import Coordinate
from .accounting import Charge
from .bounds import ClippedBlock
from .features import Sensitivity
from .gaussian import gaussian_mu
from .noise import discrete_gaussian, simulated_gaussian
from .quantiles import (
    CELLS,
    QUARTILES,
    WEIGHT_BITS,
    QuantilePlan,
    _draw_epsilon,
    cell_weights,
    draw_quantiles,
)
from .surface_release import LatticeNoise, calibrate

if TYPE_CHECKING:
    from .private_data import PrivateData

MAX_COLUMNS = 512
# Sensitivity of the moments under replacement, and the share of the squared norm that counts rows when one
# is added or removed.
_REPLACED: dict[Order, float] = {1: 2.0, 2: math.sqrt(2.0)}
_COUNT_SHARE = 0.1
_UNIT_ROUNDOFF = 2.0**-53
# Roundings that a row's terms go through: within its block, and over the blocks.
_DEPTH = 2**18
# Cells over which a record's weight is spread: a thousandth of the bounds' width. A power of two.
SPREAD = 64
_LARGEST_REACH = 1e100

T = TypeVar("T")


@dataclass(frozen=True, eq=False, kw_only=True)
class Statistic(ABC, Generic[T]):
    """A statistic that is summed over blocks of rows and released once; known before a row is read.

    Parameters
    ----------
    columns : tuple of str
        Names of the coordinates.
    lower, upper : (d,) arrays
        Their public box.
    epsilon, delta : float
        The guarantee.
    sensitivity : Sensitivity
    noise_scale : float
        In the units of the sensitivity.
    """

    columns: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    epsilon: float
    delta: float
    sensitivity: Sensitivity
    noise_scale: float

    @abstractmethod
    def charge(self, label: str, simulated: bool) -> Charge:
        """Return what the ledger records."""

    @abstractmethod
    def block(self, block: ClippedBlock, first: int) -> NDArray[Any]:
        """Return what a block of rows adds to the sum. NOT private."""

    @abstractmethod
    def finish(self, blocks: Iterable[NDArray[Any]], seed: int | None) -> T:
        """Return what is released of the sum over blocks; with a seed it is simulated, not private."""

    @abstractmethod
    def mechanism(self, simulated: bool) -> str:
        """Return the name of the mechanism."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentStatistic(Statistic[NoisyMoments]):
    """First or second moments of rows clipped to a ball: one Gaussian mechanism.

    Parameters
    ----------
    ball : Ball
    order : {1, 2}
    noise : LatticeNoise
    adjacency : {"replace", "add_remove"}
    n_units : int or None
        The public number of units.
    """

    ball: Ball
    order: Order
    noise: LatticeNoise
    adjacency: Adjacency
    n_units: int | None

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale."""
        return self.noise.sensitivity.total / self.noise.scale

    @property
    def factors(self) -> tuple[float, float]:
        """The factors (a, b) of a row's moments and of its count."""
        return moment_factors(self.adjacency, self.order)

    def charge(self, label: str, simulated: bool) -> Charge:
        """Return what the ledger records."""
        return Charge(
            label=label,
            mechanism="mean" if self.order == 1 else "second moments",
            epsilon=self.epsilon,
            delta=self.delta,
            gaussian_mus=(self.mu,),
            extra_delta=self.noise.extra_delta,
            slack=self.noise.slack,
            columns=self.columns,
            simulated=simulated,
        )

    def block(self, block: ClippedBlock, first: int) -> FloatArray:
        """Return `sum w (a v, b)` of a block. NOT private."""
        count = float(block.values.shape[1]) if block.weights is None else float(block.weights.sum())
        value, one = self.factors
        moments = moment_sums(self.ball.unit(block.values), block.weights, self.order)
        return np.append(value * moments, one * count)

    def finish(self, blocks: Iterable[NDArray[Any]], seed: int | None) -> NoisyMoments:
        """Round the sum to the lattice, add exact discrete Gaussian noise, and undo the factors."""
        length = moment_length(len(self.columns), self.order)
        exact = np.zeros(length)
        for part in blocks:
            exact += part
        integers = np.rint(exact / self.noise.step).astype(np.int64)
        scale = self.noise.scale / self.noise.step
        draw = discrete_gaussian(length, scale) if seed is None else simulated_gaussian(length, scale, seed)
        vector = np.asarray((integers + draw) * self.noise.step, dtype=np.float64)
        value, one = self.factors
        return NoisyMoments(
            order=self.order,
            total=float(vector[-1]) / one,
            total_sd=self.noise.scale / one,
            sums=vector[:-1] / value,
            noise_sd=self.noise.scale / value,
            units=self.n_units,
        )

    def mechanism(self, simulated: bool) -> str:
        """Return the name of the mechanism."""
        what = "mean" if self.order == 1 else "second moments"
        return f"{what} ({'simulated' if simulated else 'discrete'} Gaussian)"


@dataclass(frozen=True, eq=False, kw_only=True)
class QuantileStatistic(Statistic[FloatArray]):
    """Quantiles of every coordinate, or of the distance from a centre: exponential mechanisms.

    Parameters
    ----------
    plan : QuantilePlan
        The draws.
    ball : Ball, optional
        When given: quantiles of `|(x - centre)/scale|`, between 0 and the radius.
    """

    plan: QuantilePlan
    ball: Ball | None = None

    def charge(self, label: str, simulated: bool) -> Charge:
        """Return what the ledger records."""
        return Charge(
            label=label,
            mechanism="quantiles",
            epsilon=self.epsilon,
            delta=self.delta,
            draws=((self.plan.epsilon_draw, self.plan.draws),),
            bounded_range=True,
            columns=self.columns,
            simulated=simulated,
        )

    def block(self, block: ClippedBlock, first: int) -> NDArray[Any]:
        """Return the weight of a block's rows per cell. NOT private."""
        values, weights = block.values, block.weights
        if self.ball is not None:
            values = np.minimum(self.ball.distances(values), self.ball.radius)[None, :]
        if weights is not None:
            # Rounded down to what can be shared out over the cells in whole units.
            unit = 2**WEIGHT_BITS // SPREAD
            weights = np.floor(weights * unit) / unit
        return cell_weights(ClippedBlock(values, weights), self.plan.lower, self.plan.upper)

    def finish(self, blocks: Iterable[NDArray[Any]], seed: int | None) -> FloatArray:
        """Draw all quantiles: (columns, probabilities), in the units of the columns (or in scales)."""
        total = np.zeros((self.plan.lower.size, CELLS), dtype=np.int64)
        for part in blocks:
            total += part
        return draw_quantiles(self.plan, [spread_weights(total)], seed)

    def mechanism(self, simulated: bool) -> str:
        """Return the name of the mechanism."""
        return f"quantiles ({'simulated ' if simulated else ''}exponential mechanism)"


def spread_weights(total: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spread the weight of each cell evenly over `SPREAD` cells around it, in whole numbers; NOT private.

    What would fall outside stays in the first or last cell, so that no weight is lost.
    """
    share = total // SPREAD
    half = SPREAD // 2
    sums = np.cumsum(np.pad(share, ((0, 0), (SPREAD, SPREAD))), axis=1)
    wide = sums[:, SPREAD:] - sums[:, :-SPREAD]
    out = wide[:, half : half + CELLS].copy()
    out[:, 0] += wide[:, :half].sum(axis=1)
    out[:, -1] += wide[:, half + CELLS :].sum(axis=1)
    return out


def moment_factors(adjacency: Adjacency, order: Order) -> tuple[float, float]:
    """Return the factors (a, b) of a row's moments and of its count; see the module's proof."""
    if adjacency == "add_remove":
        return math.sqrt(1 - _COUNT_SHARE), math.sqrt(_COUNT_SHARE)
    return 1.0, math.sqrt(_REPLACED[order] ** 2 - 1)


def moment_length(d: int, order: Order) -> int:
    """Return the number of released entries, the count included."""
    return 1 + (d if order == 1 else d * (d + 1) // 2)


def moment_margin(base: float, units: int, d: int) -> float:
    """Return the margin in Delta for the arithmetic of moments; see the module's proof."""
    outside = 4 * (d + 8) * _UNIT_ROUNDOFF * base
    return outside + 2 * float(units) * _UNIT_ROUNDOFF * (_DEPTH + 16)


def plan_moments(
    study: PrivateData,
    coordinates: Sequence[Coordinate],
    ball: Ball,
    order: Order,
    *,
    epsilon: float,
    delta: float,
    mu: float | None = None,
) -> MomentStatistic:
    """Calibrate the moments of rows clipped to a ball. Reads and charges nothing.

    Parameters
    ----------
    study : PrivateData
    coordinates : sequence of Coordinate
    ball : Ball
        Public, or from earlier releases.
    order : {1, 2}
        Mean, or second moments.
    epsilon, delta : float
        The guarantee.
    mu : float, optional
        Sensitivity over noise scale, when it has been accounted for elsewhere.
    """
    lower, upper = study.box(coordinates)
    d = len(coordinates)
    if not 1 <= d <= MAX_COLUMNS:
        raise InvalidArgument(f"moments take 1 to {MAX_COLUMNS} columns, got {d}")
    if ball.centre.size != d or not ball.reach(lower, upper) < _LARGEST_REACH:
        raise InvalidArgument("centre and scale must have one entry per column, on the scale of the bounds")
    base = 1.0 if study.adjacency == "add_remove" else _REPLACED[order]
    noise = calibrate(
        base,
        moment_margin(base, study.n_ceiling, d),
        moment_length(d, order),
        epsilon=epsilon,
        delta=delta,
        roundings=1,
        largest_total=study.n_ceiling,
        mu=mu,
    )
    return MomentStatistic(
        columns=tuple(c.name for c in coordinates),
        lower=lower,
        upper=upper,
        epsilon=epsilon,
        delta=delta,
        sensitivity=noise.sensitivity,
        noise_scale=noise.scale,
        ball=ball,
        order=order,
        noise=noise,
        adjacency=study.adjacency,
        n_units=study.n_units,
    )


def plan_quantile_draws(
    study: PrivateData,
    coordinates: Sequence[Coordinate],
    *,
    epsilon: float,
    delta: float,
    probabilities: Sequence[tuple[int, int]] = QUARTILES,
    ball: Ball | None = None,
    mu: float | None = None,
) -> QuantileStatistic:
    """Calibrate quantiles of every coordinate, or of the distance from a centre. Reads and charges nothing.

    All draws together count as the Gaussian mechanism that dominates them, so that they compose with other
    releases as one more of these.

    Parameters
    ----------
    study : PrivateData
    coordinates : sequence of Coordinate
    epsilon, delta : float
        The guarantee.
    probabilities : sequence of (a, b)
        Quantiles a/b, whole numbers, 0 < a < b.
    ball : Ball, optional
        For quantiles of the distance: centre, scale, and the largest distance.
    mu : float, optional
        As in `plan_moments`.
    """
    lower, upper = study.box(coordinates)
    low, high = (lower, upper) if ball is None else (np.zeros(1), np.array([ball.radius]))
    draws = low.size * len(probabilities)
    whole = gaussian_mu(epsilon, delta) if mu is None else mu
    one = _draw_epsilon(whole / math.sqrt(draws) * (1 - 1e-11))
    plan = QuantilePlan(low, high, tuple(probabilities), one, 0.0)
    largest = float(max(b for _, b in probabilities))
    return QuantileStatistic(
        columns=tuple(c.name for c in coordinates),
        lower=lower,
        upper=upper,
        epsilon=epsilon,
        delta=delta,
        sensitivity=Sensitivity(largest, 0.0, 0.0, 0.0),
        # The mechanism adds Gumbel noise of this scale to each utility and takes the largest.
        noise_scale=2 * largest / one,
        plan=plan,
        ball=ball,
    )


def release(
    study: PrivateData,
    statistic: Statistic[T],
    coordinates: Sequence[Coordinate],
    *,
    label: str,
    seed: int | None = None,
) -> tuple[T, PrivacySpent]:
    """Charge the ledger, read the rows once, and return the statistic and its statement of privacy."""
    released, spent = study.release_statistic(statistic, coordinates, label=label, seed=seed)
    return released, replace(spent, mechanism=statistic.mechanism(seed is not None))
