"""Decide whether a ledger may be charged with one more release.

Users choose releases AND their epsilons after seeing earlier results. A rule that keeps the total
within (epsilon, delta) even then is called a fully adaptive filter (Rogers, Roth, Ullman & Vadhan
2016). Composing privacy curves until the composed curve leaves the budget is NOT one in general
(arXiv 2602.06756, 2026), and neither is "go on while tight OR basic composition allows it": whoever
has seen the first results may pick whichever then allows more. These three are filters:

limits
    Upper limits, fixed by the budget and the first charge alone, on the summed squares of the
    Gaussian-equivalent `mu`, the summed `extra_delta` and the summed `slack`, such that
    `e^slack gaussian_delta(epsilon - slack, mu) + extra_delta <= delta` at the limits.
    Proof for `mu`, by induction on the number of releases: whatever the first one answers, the
    rest is dominated, at every threshold, by a Gaussian with the square of `mu` that is left, and
    the first by its own; dominating pairs compose (Dong, Roth & Su 2022, Section 3; Zhu, Dong & Wang
    2022) to the Gaussian at the limit. Failure probabilities and log-ratio bounds add along
    every path and stay below their own limits. (Smith & Thakurta 2022; Koskela, Tobaben & Honkela 2023.)
basic
    Sums of the stated epsilons and deltas (Rogers et al. 2016): failures add along every path, and so do
    the logarithms of the likelihood ratio when nothing fails.
pure
    Sum of the epsilons of pure-DP draws, as long as nothing else has been charged: delta is 0.

The first charge was chosen before anything was released, so it may decide between "limits" and
"basic": "limits" if it fits there, as every Gaussian release within the budget does. "pure" may be
joined to either, because outcomes that end under it contribute nothing to delta.

References
----------
Rogers, Roth, Ullman & Vadhan (2016), "Privacy odometers and filters", NeurIPS.
Smith & Thakurta (2022), "Fully adaptive composition for Gaussian differential privacy".
Koskela, Tobaben & Honkela (2023), "Individual privacy accounting with Gaussian differential privacy".
Zhu, Dong & Wang (2022), "Optimal accounting of differential privacy via characteristic function".
"f-Differential privacy filters: validity and approximate solutions" (2026), arXiv 2602.06756.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..budget import Budget
from .accounting import TOLERANCE, Charge, total
from .gaussian import combine_mu, gaussian_epsilon, gaussian_mu, released_delta

# Shares of delta set aside for failure probabilities: the first that leaves room for 20 releases like
# the first. One hundredth of delta costs 0.05% of the noise.
_SHARES = (0.01, 0.05, 0.25)
_ROOM = 20
# Share of epsilon set aside for the slack of discrete noise (about 1e-15 a release).
_SLACK_SHARE = 1e-6
# Less than this share of the squared limit is rounding dust.
_DUST = 1e-8


@dataclass(frozen=True)
class Limits:
    """Upper limits that the charges of one ledger must keep, each for itself."""

    mu: float
    extra_delta: float
    slack: float

    def hold(self, charges: Sequence[Charge]) -> bool:
        """Whether all charges together stay within the limits."""
        spent = spent_mu(charges), total(charges, "extra_delta"), total(charges, "slack")
        bounds = self.mu, self.extra_delta, self.slack
        return all(value <= bound * (1 + TOLERANCE) for value, bound in zip(spent, bounds, strict=True))


def fits(history: Sequence[Charge], charge: Charge, budget: Budget) -> bool:
    """Whether `charge` may follow `history` within `budget`, whatever was seen in between.

    If every charge is let through by this rule, all releases together are
    (budget.epsilon, budget.delta)-DP, up to the relative tolerance 1e-9; see the module's proof.
    One release that is stated at exactly the budget fits an empty history.
    """
    charges = [*history, charge]
    if _pure(charges) and total(charges, "pure_epsilon") <= budget.epsilon * (1 + TOLERANCE):
        return True
    limits = limits_from(charges[0], budget)
    return limits.hold(charges) if limits else _basic_holds(charges, budget)


def largest_epsilon(
    history: Sequence[Charge], budget: Budget, *, delta: float, extra_delta: float = 0.0, slack: float = 0.0
) -> float:
    """Return the largest epsilon, at `delta`, of one more Gaussian release that still fits.

    Parameters
    ----------
    history : sequence of Charge
        What has been charged.
    budget : Budget
    delta : float
        The delta at which the release is stated.
    extra_delta, slack : float
        Those of the release (see `Charge`).

    Returns
    -------
    float
        0 when no release at this delta fits.
    """
    if extra_delta >= delta:
        return 0.0
    limits = limits_from(history[0], budget) if history else _limits(budget, extra_delta, slack)
    if history and limits is None:
        spent = total(history, "delta") + delta
        room = spent <= budget.delta * (1 + TOLERANCE)
        return max(0.0, budget.epsilon - total(history, "epsilon")) if room else 0.0
    if limits is None:
        return 0.0
    floor = budget.epsilon if not history and delta <= budget.delta else 0.0
    return max(floor, _left(history, limits, delta, extra_delta, slack))


def limits_from(first: Charge, budget: Budget) -> Limits | None:
    """Return the limits that the first charge fixes, or None where basic composition takes over."""
    roomy = [share for share in _SHARES if _ROOM * first.extra_delta <= share * budget.delta]
    for share in (*roomy, *_SHARES):
        limits = _limits(budget, share * budget.delta, _SLACK_SHARE * budget.epsilon)
        if limits and limits.hold([first]):
            return limits
    exact = released_delta(
        budget.epsilon * (1 + TOLERANCE), first.equivalent_mu, first.extra_delta, first.slack
    )
    if exact > budget.delta * (1 + TOLERANCE):
        return None
    # The whole of it in one release: nothing is set aside.
    limits = _limits(budget, first.extra_delta, first.slack)
    mu = max(first.equivalent_mu, limits.mu if limits else 0.0)
    return Limits(mu, first.extra_delta, first.slack)


def spent_mu(charges: Sequence[Charge]) -> float:
    """Return the Gaussian equivalent of all charges together."""
    return combine_mu(charge.equivalent_mu for charge in charges)


def _left(history: Sequence[Charge], limits: Limits, delta: float, extra_delta: float, slack: float) -> float:
    if total(history, "extra_delta") + extra_delta > limits.extra_delta * (1 + TOLERANCE):
        return 0.0
    if total(history, "slack") + slack > limits.slack * (1 + TOLERANCE):
        return 0.0
    share = 1 - (spent_mu(history) / limits.mu) ** 2
    if share < _DUST:
        return 0.0
    # A little below, so that a release calibrated to the answer fits.
    mu = limits.mu * math.sqrt(share) * (1 - 1e-12)
    return gaussian_epsilon(delta, mu, extra_delta=extra_delta, slack=slack)


@functools.lru_cache(maxsize=128)
def _limits(budget: Budget, extra_delta: float, slack: float) -> Limits | None:
    if extra_delta >= budget.delta or slack >= budget.epsilon:
        return None
    mu = gaussian_mu(budget.epsilon, budget.delta, extra_delta=extra_delta, slack=slack)
    return Limits(mu, extra_delta, slack)


def _pure(charges: Sequence[Charge]) -> bool:
    return not any(charge.mu or charge.extra_delta or charge.slack for charge in charges)


def _basic_holds(charges: Sequence[Charge], budget: Budget) -> bool:
    return total(charges, "epsilon") <= budget.epsilon * (1 + TOLERANCE) and total(
        charges, "delta"
    ) <= budget.delta * (1 + TOLERANCE)
