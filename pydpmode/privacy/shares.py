"""Split one (epsilon, delta) over several Gaussian releases by shares of the squared noise budget.

The guarantee of the parts together: Gaussian mechanisms of mu_1, ..., mu_k compose to one of
`sqrt(sum mu_i^2)` (Dong, Roth & Su 2022, Corollary 3.3), also when later ones depend on earlier outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..budget import Budget, as_number
from ..errors import InvalidArgument
from .accounting import Charge
from .gaussian import combine_mu, gaussian_epsilon, gaussian_mu

# What a ledger sets aside of a fresh budget for failure probabilities and discrete noise (`privacy_filter`).
_EXTRA_SHARE, _SLACK_SHARE = 0.01, 1e-6


def whole_mu(budget: Budget) -> float:
    """Return the mu that all releases of one split have together: a hair below what the budget allows."""
    mu = gaussian_mu(
        budget.epsilon,
        budget.delta,
        extra_delta=_EXTRA_SHARE * budget.delta,
        slack=_SLACK_SHARE * budget.epsilon,
    )
    return mu * (1 - 1e-9)


def split_by_noise(budget: Budget, shares: Sequence[float]) -> tuple[Budget, ...]:
    """Return an (epsilon, delta) for each of several Gaussian releases that fit one budget together.

    Release i gets `mu_i^2` in proportion to its share, and Gaussian releases compose exactly to
    `sqrt(sum mu_i^2)` (Dong, Roth & Su 2022, Section 3). Each part is stated at the budget's delta, so the
    epsilons add up to more than the budget's: their sum is not what is spent. Draws of exponential mechanisms
    count as the Gaussian that dominates them.

    Parameters
    ----------
    budget : Budget
    shares : sequence of float
        Each > 0; they need not sum to 1.

    Examples
    --------
    >>> [round(part.epsilon, 3) for part in split_by_noise(Budget(1.0, 1e-6), (0.1, 0.35, 0.55))]
    [0.291, 0.569, 0.725]
    """
    numbers = [as_number(share, "share") for share in shares]
    if not numbers or any(not (math.isfinite(share) and share > 0) for share in numbers):
        raise InvalidArgument("shares must be one or more finite numbers > 0")
    whole, total = whole_mu(budget), math.fsum(numbers)
    return tuple(
        Budget(gaussian_epsilon(budget.delta, whole * math.sqrt(share / total)), budget.delta)
        for share in numbers
    )


def joined(parts: Sequence[Budget]) -> Budget:
    """Return the (epsilon, delta) of several Gaussian releases together; each is stated at the same delta.

    With what `whole_mu` sets aside for failure probabilities and discrete noise: a part's own allowance for
    them is smaller than its share of the whole, so they do not cancel.
    """
    if len(parts) == 1:
        return parts[0]
    delta = max(part.delta for part in parts)
    mu = combine_mu(gaussian_mu(part.epsilon, part.delta) for part in parts)
    epsilon = gaussian_epsilon(delta, mu, extra_delta=_EXTRA_SHARE * delta)
    return Budget(epsilon / (1 - _SLACK_SHARE), delta)


def whole_charge(budget: Budget, label: str, columns: Sequence[str]) -> Charge:
    """Return one charge as large as all parts of a split, to ask a ledger whether they fit."""
    return Charge(
        label=label,
        mechanism="several releases",
        epsilon=budget.epsilon,
        delta=budget.delta,
        gaussian_mus=(whole_mu(budget),),
        extra_delta=_EXTRA_SHARE / 4 * budget.delta,
        columns=tuple(columns),
    )
