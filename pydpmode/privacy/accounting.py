"""What releases cost, alone and together, when their parameters are fixed in advance.

Nothing here has ever seen a row. The rule for parameters that are chosen after seeing earlier
results, which a ledger needs, is in `privacy_filter`.

References
----------
Kairouz, Oh & Viswanath (2015), "The composition theorem for differential privacy", ICML.
Dong, Roth & Su (2022), "Gaussian differential privacy", JRSS B 84.
Dong, Durfee & Rogers (2020), "Optimal differential privacy composition for exponential
mechanisms", ICML.
Smith & Thakurta (2022), "Fully adaptive composition for Gaussian differential privacy",
arXiv 2210.17520.
Koskela, Tobaben & Honkela (2023), "Individual privacy accounting with Gaussian differential
privacy", ICLR.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..budget import as_number, check_delta, check_epsilon
from ..errors import InvalidArgument
from .gaussian import (
    LARGEST_MU,
    Array,
    Curve,
    at_least_zero,
    combine_mu,
    discrete_gaussian_correction,
    discrete_gaussian_slack,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    log_curve,
    plain_delta,
    released_delta,
    smallest_epsilon,
    unit_noise_scale,
    with_extras,
)

__all__ = [
    "Charge",
    "combine_mu",
    "compose",
    "compose_delta",
    "discrete_gaussian_correction",
    "discrete_gaussian_slack",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "unit_noise_scale",
]

TOLERANCE = 1e-9
"""Relative tolerance of every comparison with a stated epsilon, delta or mu."""

MAX_TEXT = 200
"""Longest label and mechanism name, in characters."""

# Rounding error of the mean over the draws, relative (measured: under 1e-11).
_MIXTURE_MARGIN = 1e-10
# More outcomes of the draws than this are composed on dp_accounting's grid instead.
_MAX_OUTCOMES = 200_000
# Bound on the rounding error of the fast Fourier transforms in dp_accounting's composition.
_PLD_GUARD = 1e-12


@dataclass(frozen=True)
class Charge:
    """What one release costs, known before a row is read.

    A release is any number of Gaussian mechanisms and any number of pure-DP draws, with all
    parameters fixed in advance.

    Parameters
    ----------
    label : str
        The user's name for the release; at most 200 characters.
    mechanism : str
        For example "surface (discrete Gaussian)"; at most 200 characters.
    epsilon, delta : float
        The guarantee of the release alone. It is checked against the parts below.
    gaussian_mus : tuple of float
        Sensitivity over noise standard deviation of each Gaussian part.
    draws : tuple of (float, int)
        Pure-DP parts: (epsilon of one draw, number of such draws).
    extra_delta : float
        Probability of failure that holds at every epsilon: random features whose bound on the
        sensitivity fails, the tail of the discrete Gaussian. Fixed by public parameters.
    slack : float
        Shift in epsilon that the discrete Gaussian costs (`discrete_gaussian_slack`).
    bounded_range : bool
        True when every draw is an exact exponential mechanism (weights `exp(epsilon u / 2)`, that is
        Gumbel noise). Permute-and-flip and Laplace noise are not.
    columns : tuple of str
        The columns that are read.
    simulated : bool
        True when the noise comes from a seed, so that nothing is private.

    Raises
    ------
    InvalidArgument
        When a field is out of range, or the parts do not meet the stated (epsilon, delta).

    Examples
    --------
    >>> Charge("first look", "surface", 1.0, 1e-6, gaussian_mus=(gaussian_mu(1.0, 1e-6),)).epsilon
    1.0
    """

    label: str
    mechanism: str
    epsilon: float
    delta: float
    gaussian_mus: tuple[float, ...] = ()
    draws: tuple[tuple[float, int], ...] = ()
    extra_delta: float = 0.0
    slack: float = 0.0
    bounded_range: bool = False
    columns: tuple[str, ...] = ()
    simulated: bool = False

    def __post_init__(self) -> None:
        for name in ("label", "mechanism"):
            _check_text(getattr(self, name), name)
        put = functools.partial(object.__setattr__, self)
        put("epsilon", check_epsilon(self.epsilon))
        put("delta", _probability(self.delta, "delta"))
        put("gaussian_mus", tuple(at_least_zero(mu, "each of gaussian_mus") for mu in self.gaussian_mus))
        put("draws", tuple(_draw(item) for item in self.draws))
        put("extra_delta", _probability(self.extra_delta, "extra_delta"))
        put("slack", at_least_zero(self.slack, "slack"))
        put("columns", tuple(str(column) for column in self.columns))
        if not (self.mu or self.draws or self.extra_delta):
            raise InvalidArgument("a charge needs a mu > 0, draws or extra_delta: a release is never free")
        self._check_statement()

    def _check_statement(self) -> None:
        epsilon = self.epsilon * (1 + TOLERANCE)
        allowed = self.delta * (1 + TOLERANCE)
        # The cheap bounds first: they settle most charges.
        if _delta_by_parts(self, epsilon) <= allowed or _equivalent_delta([self], epsilon) <= allowed:
            return
        actual = _delta_alone(self, epsilon)
        if actual > allowed:
            raise InvalidArgument(
                f"this release costs delta={actual:g} at epsilon={self.epsilon:g}, more than the stated "
                f"delta={self.delta:g}; use more noise, or state the larger delta"
            )

    @classmethod
    def stated(
        cls,
        *,
        label: str,
        mechanism: str,
        epsilon: float,
        delta: float,
        columns: Sequence[str] = (),
        simulated: bool = False,
    ) -> Charge:
        """Return the charge of a mechanism of which only its (epsilon, delta) is known.

        Every (epsilon, delta)-DP mechanism is dominated by: fail with probability delta, else answer
        by randomised response at epsilon (Kairouz, Oh & Viswanath 2015, proof of Theorem 3.3).
        """
        return cls(
            label=label,
            mechanism=mechanism,
            epsilon=epsilon,
            delta=delta,
            draws=((epsilon, 1),),
            extra_delta=delta,
            columns=tuple(columns),
            simulated=simulated,
        )

    @property
    def mu(self) -> float:
        """Sensitivity over noise standard deviation of all Gaussian parts together."""
        return combine_mu(self.gaussian_mus)

    @property
    def pure_epsilon(self) -> float:
        """Sum of the epsilons of all pure-DP draws."""
        return math.fsum(epsilon * count for epsilon, count in self.draws)

    @property
    def equivalent_mu(self) -> float:
        """The `mu` of a Gaussian mechanism that dominates all parts (`slack`, `extra_delta` aside).

        A pure-DP draw is dominated by `mu = 2 Phi^-1(1/(1+e^-epsilon))`: its trade-off function is at
        least two chords that meet at `a = b = 1/(1+e^epsilon)`, and the Gaussian one, being convex,
        stays below both chords if it passes below that point.
        With `bounded_range`, `epsilon/2` takes the place of `epsilon`: the log-ratio of two exponential
        mechanisms lies in an interval of length epsilon, so the extreme pair has two outcomes with
        probabilities p, q whose log-odds are epsilon apart (Dong, Durfee & Rogers 2020), and
        `Phi^-1(p) - Phi^-1(q)` is largest where the two lie symmetrically about 1/2.
        """
        from scipy import special  # imported here: slow to import, and not needed before a release

        factor = 0.5 if self.bounded_range else 1.0
        parts = [self.mu]
        for epsilon, count in self.draws:
            one = -2 * float(special.ndtri_exp(-np.logaddexp(0.0, epsilon * factor)))
            parts.append(one * math.sqrt(count) * (1 + 1e-12))
        return combine_mu(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        out = {name: getattr(self, name) for name in self.__dataclass_fields__}
        out["draws"] = [[epsilon, count] for epsilon, count in self.draws]
        out["gaussian_mus"] = list(self.gaussian_mus)
        out["columns"] = list(self.columns)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Charge:
        """Rebuild from `to_dict`, checking everything again."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__})


def compose_delta(charges: Sequence[Charge], epsilon: float) -> float:
    """Return the delta at `epsilon` of all `charges` together, rounded up.

    Parameters
    ----------
    charges : sequence of Charge
        Releases whose parameters were fixed in advance (the mechanisms may be adaptive).
    epsilon : float
        At least 0.

    Returns
    -------
    float
        In [0, 1]: the smallest of the three bounds that `compose` describes.
    """
    level = at_least_zero(epsilon, "epsilon")
    if not charges:
        return 0.0
    basic = total(charges, "delta") if total(charges, "epsilon") <= level * (1 + TOLERANCE) else 1.0
    return min(1.0, basic, _tight_delta(charges, level), _equivalent_delta(charges, level))


def compose(charges: Sequence[Charge], delta: float) -> float:
    """Return the epsilon at `delta` of all `charges` together, rounded up.

    Parameters
    ----------
    charges : sequence of Charge
        Releases whose parameters were fixed in advance (the mechanisms may be adaptive).
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        The smallest of three valid bounds; 0 without charges, `inf` when none holds at `delta`:

        - tight: Gaussian parts are exactly one Gaussian (`combine_mu`); pure draws are dominated by
          randomised response, so that their losses are binomial and the delta is the mean of the
          Gaussian curve over them (Kairouz, Oh & Viswanath 2015, Theorem 3.3; composition of dominating
          pairs: Dong, Roth & Su 2022, Section 3). No grid. Above 200,000 outcomes of the draws, the
          privacy loss distributions of dp_accounting, rounded up, take their place;
        - every draw replaced by its Gaussian equivalent (better for `bounded_range`);
        - basic: the sum of the stated epsilons, if the stated deltas add up to at most `delta`.

    Notes
    -----
    When releases and their PARAMETERS are chosen after seeing earlier results, this number only
    describes: a stopping rule must be a filter. For Gaussian charges the tight bound is one, with the
    same constants (Smith & Thakurta 2022; Koskela, Tobaben & Honkela 2023); with pure draws, or as the
    smaller of several bounds, it is not. `privacy_filter` holds the rule that the ledger obeys.
    """
    target = check_delta(delta)
    if not charges:
        return 0.0
    extra, slack = total(charges, "extra_delta"), total(charges, "slack")
    tight = smallest_epsilon(with_extras(_tight_curve(charges), extra, slack), target)
    equivalent = tight
    if any(charge.draws for charge in charges):
        equivalent = smallest_epsilon(functools.partial(_equivalent_delta, charges), target)
    basic = total(charges, "epsilon") if total(charges, "delta") <= target * (1 + TOLERANCE) else math.inf
    return min(tight, equivalent, basic)


def total(charges: Sequence[Charge], name: str) -> float:
    """Return the exact sum of one field over charges."""
    return math.fsum(getattr(charge, name) for charge in charges)


def _tight_curve(charges: Sequence[Charge]) -> Curve:
    """Return the delta of all parts together as a function of epsilon, without slack and extra_delta."""
    mu = combine_mu(mu for charge in charges for mu in charge.gaussian_mus)
    draws: Counter[float] = Counter()
    for charge in charges:
        for epsilon, count in charge.draws:
            draws[epsilon] += count
    if not draws or mu >= LARGEST_MU:
        return functools.partial(plain_delta, mu=mu)
    if math.prod(count + 1 for count in draws.values()) > _MAX_OUTCOMES:
        return _grid_curve(mu, draws)
    losses, log_weights = _outcomes(draws)
    return functools.partial(_mixture_delta, mu=mu, losses=losses, log_weights=log_weights)


def _outcomes(draws: Mapping[float, int]) -> tuple[Array, Array]:
    """Losses and log-probabilities of all draws together, each by randomised response."""
    losses, log_weights = np.zeros(1), np.zeros(1)
    for epsilon, count in draws.items():
        hits = np.arange(count + 1)
        steps = np.log((count - hits[:-1]) / (hits[:-1] + 1.0))
        choices = np.concatenate([[0.0], np.cumsum(steps)])
        log_miss = -float(np.logaddexp(0.0, epsilon))
        log_p = choices + hits * -float(np.logaddexp(0.0, -epsilon)) + (count - hits) * log_miss
        losses = np.add.outer(losses, (2.0 * hits - count) * epsilon).ravel()
        log_weights = np.add.outer(log_weights, log_p).ravel()
    return losses, log_weights


def _mixture_delta(epsilon: float, mu: float, losses: Array, log_weights: Array) -> float:
    """Mean Gaussian delta at `epsilon - loss`, over the losses of the pure draws."""
    from scipy import special

    level = epsilon - losses
    # For a negative level, H(P|Q; e^-t) = 1 - e^-t + e^-t H(Q|P; e^t), and the Gaussian pair is symmetric.
    size = np.abs(level)
    above = log_curve(size, mu) if mu else np.full_like(size, -np.inf)
    with np.errstate(divide="ignore"):
        below = np.logaddexp(np.log(-np.expm1(-size)), above - size)
    mean = float(special.logsumexp(log_weights + np.where(level < 0, below, above)))
    return min(1.0, math.exp(min(mean, 0.0)) * (1 + _MIXTURE_MARGIN))


def _grid_curve(mu: float, draws: Mapping[float, int]) -> Curve:
    """Return the same from dp_accounting's grid of privacy losses, rounded up."""
    # Imported here: it takes longer to import than the rest of the package.
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    # A grid of about 1e5 cells over the bulk of the losses.
    reach = mu * mu + 30 * mu + sum(epsilon * math.sqrt(count) for epsilon, count in draws.items())
    step = 1e-5 * reach
    whole = pld.identity(value_discretization_interval=step)
    if mu:
        whole = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=step)
    for epsilon, count in draws.items():
        parameters = common.DifferentialPrivacyParameters(epsilon, 0)
        one = pld.from_privacy_parameters(parameters, value_discretization_interval=step)
        whole = whole.compose(one.self_compose(count) if count > 1 else one)
    return lambda epsilon: min(1.0, float(whole.get_delta_for_epsilon(epsilon)) + _PLD_GUARD)


def _tight_delta(charges: Sequence[Charge], epsilon: float) -> float:
    extra, slack = total(charges, "extra_delta"), total(charges, "slack")
    return with_extras(_tight_curve(charges), extra, slack)(epsilon)


@functools.lru_cache(maxsize=256)
def _delta_alone(charge: Charge, epsilon: float) -> float:
    """Return the tight delta of one charge; kept, because a ledger rebuilds its charges at every reading."""
    return _tight_delta([charge], epsilon)


def _equivalent_delta(charges: Sequence[Charge], epsilon: float) -> float:
    """Delta with every draw replaced by its Gaussian equivalent."""
    mu = combine_mu(charge.equivalent_mu for charge in charges)
    return released_delta(epsilon, mu, total(charges, "extra_delta"), total(charges, "slack"))


def _delta_by_parts(charge: Charge, epsilon: float) -> float:
    """Delta of one charge with the epsilons of its draws subtracted."""
    rest = epsilon - charge.pure_epsilon
    return released_delta(rest, charge.mu, charge.extra_delta, charge.slack) if rest >= 0 else 1.0


def _probability(value: object, name: str) -> float:
    number = as_number(value, name)
    if not 0 <= number < 1:
        raise InvalidArgument(f"{name} must be at least 0 and below 1, got {number!r}")
    return number


def _draw(item: Sequence[Any]) -> tuple[float, int]:
    if len(item) != 2 or isinstance(item[1], bool) or int(item[1]) != item[1] or item[1] < 1:
        raise InvalidArgument("each draw must be (epsilon of one draw, whole number of draws >= 1)")
    return check_epsilon(item[0]), int(item[1])


def _check_text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be text, got {type(value).__name__}; give e.g. {name}='first'")
    if len(value) > MAX_TEXT:
        raise InvalidArgument(f"{name} must have at most {MAX_TEXT} characters, got {len(value)}; shorten it")
