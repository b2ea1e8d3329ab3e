"""How much noise DP-GRAMS needs, for each way of accounting.

"pld" (default) and "rdp" add noise to the LINEAR statistics of each round, the kernel mean and its gradient
at the k ascents, stacked and scaled to sensitivity 1: `(a p, b grad p)`. Replacing one of m records moves
them by at most 1/m in the norm in which the noise is white: in the covariance's own norm for any k
(`numerics.correlated_noise`), or sqrt(k)/m in the Euclidean norm for independent noise. Clipping,
dividing, filtering and merging come after the noise.

"published" adds noise to the clipped and divided SCORES, as the paper does. One ascent's score moves by at
most `S_h/m`; k independent ones by `sqrt(k) S_h/m` together. With correlated noise over several ascents
no such bound holds (docs/where-we-differ.md), so that combination is refused.

References
----------
Hall, Rinaldo & Wasserman (2013), "Differential privacy for functions and functional data", JMLR 14.
Wang, Balle & Kasiviswanathan (2019), "Subsampled Renyi differential privacy and analytical moments
accountant", Theorem 27.
Cesar & Rogers (2021), "Bounding, concentrating, and truncating", Lemma 3.2 (bounded range and zCDP).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidArgument, InvalidBudget
from ..numerics.correlated_noise import Whitening
from ..numerics.score_kernels import CHUNK, ScoreKernel
from .features import Sensitivity
from .gaussian import combine_mu, discrete_gaussian_slack, gaussian_mu
from .grams_options import Accountant

_FINENESS = 2.0**-24
_LARGEST_INTEGER_BITS = 61
_UNIT_ROUNDOFF = 2.0**-53
# Terms of one entry's rounding beyond the sum itself: offsets, exponential, products, scaling.
_OTHER_ROUNDINGS = 64
# Renyi orders tried: whole numbers, which cost least, spaced evenly on a log scale.
_ORDERS, _LARGEST_ORDER = 24, 512


@dataclass(frozen=True)
class Rounds:
    """The shape of the rounds.

    Parameters
    ----------
    kernel : ScoreKernel
    records, number, batch, ascents : int
        n, T, m and k.
    correlated : bool
        Whether the noise of one round is correlated over ascents.
    block : int
        Largest number of records summed before rounding to the lattice.
    """

    kernel: ScoreKernel
    records: int
    number: int
    batch: int
    ascents: int
    correlated: bool
    block: int

    @property
    def fraction(self) -> float:
        """Share of the records in one round, m/n."""
        return self.batch / self.records

    @property
    def base(self) -> float:
        """Norm by which one record moves statistics that are scaled to move by at most 1 at one ascent.

        In the covariance's own norm for correlated noise, Euclidean for independent noise.
        """
        return 1.0 if self.correlated else math.sqrt(self.ascents)

    @property
    def draws(self) -> int:
        """Number of starts that one record can influence."""
        return self.ascents


@dataclass(frozen=True)
class RoundNoise:
    """The calibrated noise of one round; the fields are those of `GramsPlan`."""

    sensitivity: Sensitivity
    scale: float
    lattice: float
    mu: float
    extra_delta: float
    slack: float

    def fields(self) -> dict[str, object]:
        """Return the fields by the names that a plan has for them."""
        return {
            "sensitivity": self.sensitivity,
            "noise_scale": self.scale,
            "lattice": self.lattice,
            "mu": self.mu,
            "extra_delta": self.extra_delta,
            "slack": self.slack,
        }


def score_sensitivity(kernel: ScoreKernel, clip: float, floor: float) -> float:
    """Return `S_h` in bandwidth units: m times what replacing one of m records can do to one score.

    `2 G_K / p_floor + (sup K - inf K) A / p_floor^2`: clipping is 1-Lipschitz, the clipped gradient is at
    most A long, and `1/max(p, p_floor)` has slope at most `1/p_floor^2`.
    """
    return 2 * kernel.gradient_supremum / floor + (kernel.supremum - kernel.infimum) * clip / floor**2


def draws_mu(epsilon_draw: float, number: int) -> float:
    """Return the mu of a Gaussian mechanism that dominates `number` exact exponential-mechanism draws.

    See `Charge.equivalent_mu`: draws have bounded range epsilon_draw, so each pair of output laws is
    dominated by the two-point pair with log-odds -+epsilon_draw/2.
    """
    from scipy import special  # imported here: slow to import, and not needed before a release

    one = -2 * float(special.ndtri_exp(-np.logaddexp(0.0, epsilon_draw / 2)))
    return one * math.sqrt(number) * (1 + 1e-12)


def published_epsilon(epsilon: float, delta: float, rounds: int, fraction: float) -> float:
    """Return the paper's `eps_iter`: privacy of one round so that T of them compose to (epsilon, delta).

    `min{log(1 + (e-1) m/n), epsilon/(2 sqrt(2 T ln(2/delta))), sqrt(epsilon/(4 T))}`, equation (6): the first
    keeps the Gaussian mechanism's classical calibration valid (epsilon at most 1 before sampling), the others
    make the two terms of advanced composition (Dwork & Roth 2014, Theorem 3.20) at most epsilon/2 each.
    """
    return min(
        math.log1p((math.e - 1) * fraction),
        epsilon / (2 * math.sqrt(2 * rounds * math.log(2 / delta))),
        math.sqrt(epsilon / (4 * rounds)),
    )


def published_ratio(epsilon: float, delta: float, rounds: int, fraction: float) -> float:
    """Return the paper's noise scale over the sensitivity: sigma of equation (6) over `S_h/m`.

    `sqrt(2 ln(2.5 m T/(n delta))) / log(1 + (n/m)(e^eps_iter - 1))`.
    """
    inside = 2.5 * fraction * rounds / delta
    if inside <= math.e:
        raise InvalidArgument(
            "the published calibration does not hold for so large a delta; use a smaller one"
        )
    before = math.log1p(math.expm1(published_epsilon(epsilon, delta, rounds, fraction)) / fraction)
    return math.sqrt(2 * math.log(inside)) / before


def linear_noise(
    accountant: Accountant,
    rounds: Rounds,
    scales: tuple[float, float],
    *,
    epsilon: float,
    delta: float,
    epsilon_draw: float,
) -> RoundNoise:
    """Calibrate noise on the scaled sums of the linear statistics, for "pld" and "rdp".

    Parameters
    ----------
    accountant : {"pld", "rdp"}
    rounds : Rounds
    scales : (float, float)
        a and b: such that one record moves the scaled sums at one point, or in the covariance's norm, by
        at most 1.
    epsilon, delta : float
        Of rounds and starts together.
    epsilon_draw : float
        Of each start.
    """
    kernel, ascents = rounds.kernel, rounds.ascents
    length = ascents * (1 + kernel.dimension)
    base = rounds.base * (1 + 1e-9)
    # One record's own norm is below `base`, so no sum is longer than n of them.
    lattice = _lattice(base, length, rounds.records * base)
    sensitivity = Sensitivity(base, _arithmetic(rounds, scales), lattice * math.sqrt(length), 0.0)
    total = sensitivity.total

    def ratio(extra: float, slack: float) -> float:
        if accountant == "rdp":
            share = delta * (1 - 1e-12) - 2 * extra
            return _rdp_ratio(
                epsilon - slack, share, rounds.number, rounds.fraction, epsilon_draw, rounds.draws
            )
        return 1 / _round_mu(epsilon, delta, rounds.number, epsilon_draw, rounds.draws, extra, slack)

    slack, extra = _discreteness(length, total * ratio(0.0, 0.0) / lattice, total, lattice, rounds.number)
    best = ratio(extra, slack)
    sigma = total * best
    while accountant == "pld" and total / sigma > 1 / best:
        sigma = math.nextafter(sigma, math.inf)
    mu = combine_mu([total / sigma] * rounds.number) if accountant == "pld" else 0.0
    return RoundNoise(sensitivity, sigma, lattice, mu, extra, slack)


def published_noise(rounds: Rounds, *, floor: float, clip: float, epsilon: float, delta: float) -> RoundNoise:
    """Calibrate noise on the scores by the paper's formulas.

    Parameters
    ----------
    rounds : Rounds
    floor, clip : float
        p_floor and A, in bandwidth units.
    epsilon, delta : float
        Of the rounds alone: the starts come on top (basic composition, as in the paper).
    """
    kernel = rounds.kernel
    length = rounds.ascents * kernel.dimension
    base = rounds.base * score_sensitivity(kernel, clip, floor) / rounds.batch * (1 + 1e-9)
    lattice = _lattice(base, length, clip / floor)
    # Errors of the batch means, through the slopes 1/floor and A/floor^2; both neighbours may be off.
    slope = kernel.gradient_supremum / floor + kernel.supremum * clip / floor**2
    depth = CHUNK + rounds.batch / CHUNK + _OTHER_ROUNDINGS
    margin = 2 * math.sqrt(length) * slope * _UNIT_ROUNDOFF * depth
    sensitivity = Sensitivity(base, margin, lattice * math.sqrt(length), 0.0)
    total, number, fraction = sensitivity.total, rounds.number, rounds.fraction
    first = total * published_ratio(epsilon, delta, number, fraction)
    slack, extra = _discreteness(length, first / lattice, total, lattice, number)
    ratio = published_ratio(epsilon - slack, delta * (1 - 1e-12) - 2 * extra, number, fraction)
    return RoundNoise(sensitivity, total * ratio, lattice, 0.0, extra, slack)


# -- parts -----------------------------------------------------------------------------------------------


def _discreteness(
    length: int, scale: float, total: float, lattice: float, rounds: int
) -> tuple[float, float]:
    """Return (slack, extra_delta) of all rounds: what the discrete Gaussian costs over the continuous one.

    It falls with the scale, so a scale calibrated without it bounds it from above.
    """
    slack, tail = discrete_gaussian_slack(length, scale, total / lattice / scale)
    return slack * rounds, tail * rounds


def _lattice(base: float, length: int, largest: float) -> float:
    """Return a power of two at or below `base 2^-24 / sqrt(length)`, coarser only against overflow."""
    fine = math.floor(math.log2(base * _FINENESS / math.sqrt(length)))
    coarse = math.ceil(math.log2(max(largest, 1e-300))) - _LARGEST_INTEGER_BITS
    return float(2.0 ** max(fine, coarse))


def _round_mu(
    epsilon: float, delta: float, rounds: int, epsilon_draw: float, ascents: int, extra: float, slack: float
) -> float:
    """Return the mu of one round such that all rounds and draws together are (epsilon, delta)-DP."""
    whole = gaussian_mu(epsilon, delta, extra_delta=extra, slack=slack)
    draws = draws_mu(epsilon_draw, ascents)
    if not draws < whole:
        raise InvalidBudget("eps_init leaves nothing for the ascent; use a smaller share")
    return math.sqrt((whole - draws) * (whole + draws) / rounds) * (1 - 1e-12)


def _arithmetic(rounds: Rounds, scales: tuple[float, float]) -> float:
    """Return the margin in the sensitivity for inexact sums of up to `block` records.

    A row lies in one block, and the others are the same bits for both neighbours. Each entry of a block's
    sum has at most `block` terms no larger than S, added to a depth of `1024 + block/1024`, then multiplied
    by the whitening map, of norm at most `|M|`: k products in each of k sums are off by at most
    `k u |M|_F |F| <= k^2 u |M| block S`. Either neighbour may be off that way.
    """
    kernel, block = rounds.kernel, min(rounds.block, rounds.records)
    size = max(scales[0] * kernel.supremum, scales[1] * kernel.gradient_supremum)
    depth = min(CHUNK, block) + block / CHUNK + math.pow(rounds.ascents, 1.5) + _OTHER_ROUNDINGS
    norm = Whitening.NORM if rounds.correlated else 1.0
    entries = math.sqrt(rounds.ascents * (1 + kernel.dimension))
    return 2 * norm * entries * block * size * _UNIT_ROUNDOFF * depth


@functools.lru_cache(maxsize=64)
def _rdp_ratio(
    epsilon: float, delta: float, rounds: int, fraction: float, epsilon_draw: float, ascents: int
) -> float:
    """Return the smallest noise multiplier whose T sampled rounds and k draws are (epsilon, delta)-DP."""
    # The best order is about 1 + 2 ln(1/delta)/epsilon; orders above that are slow and never better.
    largest = min(_LARGEST_ORDER, math.ceil(16 + 4 * math.log(1 / delta) / epsilon))

    def spent(ratio: float) -> float:
        return rdp_epsilon(ratio, delta, rounds, fraction, epsilon_draw, ascents, largest)

    high = 1.0
    while spent(high) > epsilon:
        high *= 2
        if high > 1e9:
            raise InvalidBudget("eps_init leaves nothing for the ascent; use a smaller share")
    low = high / 2
    while spent(low) <= epsilon and low > 1e-6:
        low, high = low / 2, low
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spent(middle) <= epsilon else (middle, high)
    return high


def rdp_epsilon(
    ratio: float,
    delta: float,
    rounds: int,
    fraction: float,
    epsilon_draw: float,
    draws: int,
    largest_order: int = _LARGEST_ORDER,
) -> float:
    """Return the epsilon at `delta` of rounds on minibatches without replacement, and the starts' draws.

    Parameters
    ----------
    ratio : float
        Noise scale over the sensitivity of one round.
    rounds : int
    fraction : float
        m/n.
    epsilon_draw, draws : float, int
        Of the starts. A draw of bounded range epsilon_draw is `epsilon_draw^2/8`-zCDP.
    largest_order : int
        Of the Renyi orders that are tried; any choice is valid.
    """
    from dp_accounting import dp_event, privacy_accountant  # imported here: slow to import
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    orders = np.unique(np.rint(np.geomspace(2, largest_order, _ORDERS)).astype(int)).tolist()
    accountant = rdp.RdpAccountant(orders, privacy_accountant.NeighboringRelation.REPLACE_ONE)
    whole = 10**9
    noisy = dp_event.GaussianDpEvent(ratio)
    # The event asks for sizes; only their ratio enters.
    sampled = dp_event.SampledWithoutReplacementDpEvent(whole, math.ceil(fraction * whole), noisy)
    accountant.compose(noisy if fraction >= 1 else sampled, rounds)
    # rho-zCDP is the Renyi curve of a Gaussian of scale 1/sqrt(2 rho).
    if draws:
        accountant.compose(dp_event.GaussianDpEvent(2 / epsilon_draw), draws)
    return float(accountant.get_epsilon(delta))
