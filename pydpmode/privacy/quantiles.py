"""Quantiles of one column at a time by the exponential mechanism: the private scale of a bandwidth.

Candidates for the quantile `a/b` of a column are the `CELLS + 1` edges of equal cells of its public
interval. Edge e has the utility

    u(e) = -| b L(e) - a N |,

`L(e)` the weight of the records in cells below e and `N` that of all. It is largest where the share
`a/b` of the weight lies below. A draw takes e with probability proportional to `exp(epsilon u / (2 b))`.

Sensitivity. A unit contributes `w` to `N` and `w 1(cell below e)` to `L`, with `0 <= w <= 1` (a person: a
mean of such pairs), hence `w (b 1(below) - a)` to `b L - a N`: a number in [-a, b - a]. Replacing it by
another such number moves `b L - a N` by at most b; so does replacing a present record by a missing one
(w = 0), and adding or removing one. `| |` is 1-Lipschitz. So u has sensitivity at most b under both
adjacencies, a draw is epsilon-DP (McSherry & Talwar 2007, Theorem 6), and its log-ratios lie in an interval
of length epsilon ("bounded range"; Dong, Durfee & Rogers 2020).

Arithmetic. A record's cell is computed from that record alone. Weights are whole multiples of
`2^-WEIGHT_BITS`, rounded down (a unit stays within [0, 1]), so `L`, `N` and `u` are whole numbers, exact in
64 bits. The draw is exact too (`exponential_draw`: no floating-point weight is compared), so no low-order
bit of a record survives in the result, which is one of the public edges.

Missing records weigh nothing; with `outside="ignore"` neither do records outside the box in any column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument
from ..numerics.surfaces import FloatArray
from .accounting import Charge, gaussian_mu
from .bounds import ClippedBlock
from .grams_calibration import draws_mu
from .grams_initialisation import exponential_draw
from .surface_release import ReleasePlan

# Enough for bounds a thousand times too wide; an exact draw takes time in proportion.
CELLS = 2**13
WEIGHT_BITS = 20
# Quartiles, as whole numbers a/b: robust, and their distance is what the scale comes from.
QUARTILES = ((1, 4), (3, 4))
# Share of the squared noise budget that the draws take: the surface's noise grows by 5%.
SCALE_SHARE = 0.1

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class QuantilePlan:
    """The draws of a quantile release, and what is left for the surface, known before a row is read.

    Parameters
    ----------
    lower, upper : (d,) arrays
        The public box of the coordinates.
    probabilities : tuple of (a, b)
        Quantiles a/b of every coordinate.
    epsilon_draw : float
        Of each of the `d * len(probabilities)` draws.
    surface_mu : float
        Sensitivity over noise scale that a surface may have beside the draws.
    """

    lower: FloatArray
    upper: FloatArray
    probabilities: tuple[tuple[int, int], ...]
    epsilon_draw: float
    surface_mu: float

    @property
    def draws(self) -> int:
        """Number of draws."""
        return self.lower.size * len(self.probabilities)

    def charge(self, reserve: ReleasePlan, label: str, simulated: bool) -> Charge:
        """Return the one charge of the draws and of the surface, with the extras of `reserve`."""
        return Charge(
            label=label,
            mechanism="quartiles and surface",
            epsilon=reserve.epsilon,
            delta=reserve.delta,
            gaussian_mus=(self.surface_mu,),
            draws=((self.epsilon_draw, self.draws),),
            bounded_range=True,
            extra_delta=reserve.extra_delta,
            slack=reserve.slack,
            columns=reserve.design.columns,
            simulated=simulated,
        )

    def held(self, plan: ReleasePlan, reserve: ReleasePlan) -> ReleasePlan:
        """Return the plan of the surface, after checking that it costs no more than what was charged.

        Raises
        ------
        InvalidArgument
            When it does, which a design within the reserve never does.
        """
        if plan.mu > self.surface_mu or plan.extra_delta > reserve.extra_delta or plan.slack > reserve.slack:
            raise InvalidArgument(
                "the surface would cost more than was charged for it; nothing more was read"
            )
        return plan


def reserved(largest: ReleasePlan) -> ReleasePlan:
    """Return a plan with extras that hold for every smaller design as well.

    The slack of the discrete Gaussian is about `(2 D' + 4 sqrt(92 D') + 400)/(24 sigma_int^2)`, and
    `sigma_int` grows with `sqrt(D')` up to a factor 2: over all D' it varies by less than a factor 2000,
    around 1e-16.
    """
    return replace(largest, slack=2000 * largest.slack, extra_delta=2 * largest.extra_delta)


def plan_quantiles(
    lower: FloatArray,
    upper: FloatArray,
    reserve: ReleasePlan,
    *,
    probabilities: Sequence[tuple[int, int]] = QUARTILES,
    share: float = SCALE_SHARE,
) -> QuantilePlan:
    """Split (epsilon, delta) between the draws and the surface that follows them. Reads nothing.

    Each draw counts as the Gaussian mechanism that dominates it (`draws_mu`), so that draws and surface
    together are one Gaussian whose squared mu is the sum. `share` of that square goes to the draws.
    That is more than the same share of epsilon: pure draws compose better than their sum.

    Parameters
    ----------
    lower, upper : (d,) arrays
        The public box of the coordinates.
    reserve : ReleasePlan
        The (epsilon, delta) of the whole, and the extras of the surface (`reserved`).
    probabilities : sequence of (a, b)
        Quantiles a/b, `0 < a < b`, whole numbers.
    share : float
        In (0, 1).
    """
    if not (0 < share < 1 and all(0 < a < b for a, b in probabilities)):
        raise InvalidArgument(f"share and quantiles must be inside (0, 1), got {share!r}, {probabilities!r}")
    whole = gaussian_mu(reserve.epsilon, reserve.delta, extra_delta=reserve.extra_delta, slack=reserve.slack)
    draws = lower.size * len(probabilities)
    epsilon_draw = _draw_epsilon(math.sqrt(share / draws) * whole)
    spent = draws_mu(epsilon_draw, draws)
    # A little below, so that the rounding of the sum of squares cannot exceed the whole.
    left = math.sqrt(whole**2 - spent**2) * (1 - 1e-11)
    return QuantilePlan(lower, upper, tuple(probabilities), epsilon_draw, left)


def _draw_epsilon(mu: float) -> float:
    """Return the epsilon of one bounded-range draw that this mu dominates: the inverse of `draws_mu`."""
    from scipy import special  # imported here: slow to import, and not needed before a release

    return float(2 * (special.log_ndtr(mu / 2) - special.log_ndtr(-mu / 2))) * (1 - 1e-9)


def cell_weights(block: ClippedBlock, lower: FloatArray, upper: FloatArray) -> IntArray:
    """Return the weight of a block's records per cell, (d, CELLS), in `2^-WEIGHT_BITS`. NOT private."""
    d, rows = block.values.shape
    unit = 2.0**WEIGHT_BITS
    weights = np.full(rows, unit) if block.weights is None else np.floor(block.weights * unit)
    out = np.empty((d, CELLS), dtype=np.int64)
    for row, column in enumerate(block.values):
        place = np.floor((column - lower[row]) / (upper[row] - lower[row]) * CELLS)
        cells = np.clip(place, 0, CELLS - 1).astype(np.int64)
        # Whole numbers whose sum over a block stays far below 2^53: exact in any order.
        out[row] = np.bincount(cells, weights=weights, minlength=CELLS).astype(np.int64)
    return out


def draw_quantiles(plan: QuantilePlan, counts: Iterable[IntArray], seed: int | None) -> FloatArray:
    """Draw all quantiles from the summed cell weights: (d, number of probabilities), in the columns' units.

    Epsilon-DP for `draws * epsilon_draw`, and less by composition. With a seed the draws are reproducible and
    NOT private.
    """
    total = np.zeros((plan.lower.size, CELLS), dtype=np.int64)
    for part in counts:
        total += part
    generator = None if seed is None else np.random.default_rng([seed, CELLS])
    below = np.concatenate([np.zeros((total.shape[0], 1), dtype=np.int64), np.cumsum(total, axis=1)], axis=1)
    out = np.empty((plan.lower.size, len(plan.probabilities)))
    for axis, column in enumerate(below):
        for k, (a, b) in enumerate(plan.probabilities):
            utility = -np.abs(b * column - a * column[-1])
            edge = exponential_draw(utility, plan.epsilon_draw / (b * 2**WEIGHT_BITS), generator)
            out[axis, k] = plan.lower[axis] + (plan.upper[axis] - plan.lower[axis]) * (edge / CELLS)
    return out
