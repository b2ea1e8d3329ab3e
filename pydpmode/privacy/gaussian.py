"""The exact privacy curve of the Gaussian mechanism, continuous and discrete.

Nothing here has ever seen a row. `mu` is always sensitivity over noise standard deviation. Every
number that a guarantee rests on is rounded to the safe side: a delta upwards, an epsilon
upwards, a permitted `mu` downwards, a noise scale upwards.

Two terms come on top of the Gaussian curve, `extra_delta` and `slack`: a release meets
`delta = e^slack gaussian_delta(epsilon - slack, mu) + extra_delta` at every epsilon. `slack` comes from the
discrete Gaussian (`discrete_gaussian_slack`), `extra_delta` from everything that may fail.

References
----------
Balle & Wang (2018), "Improving the Gaussian mechanism for differential privacy", ICML.
Dong, Roth & Su (2022), "Gaussian differential privacy", JRSS B 84.
Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy", NeurIPS.
Hsu, Kakade & Zhang (2012), "A tail inequality for quadratic forms of subgaussian random vectors".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from ..budget import as_number, check_delta, check_epsilon
from ..errors import InvalidArgument, InvalidBudget

Array = npt.NDArray[np.float64]
Curve = Callable[[float], float]

# Relative rounding error of the curve (measured: under 3e-12), with room to spare.
MARGIN = 1e-11
# Above this mu the delta is 1 to the last bit, and its square would overflow.
LARGEST_MU = 1e150
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the exact delta of the Gaussian mechanism at `epsilon`, rounded up.

    Parameters
    ----------
    epsilon : float
        At least 0.
    mu : float
        L2 sensitivity over the noise's standard deviation, at least 0.

    Returns
    -------
    float
        In [0, 1]. Never below the exact value; above it by a relative 1e-10 at most
        (or by the smallest positive double, where the exact value underflows).

    Raises
    ------
    InvalidArgument
        When a parameter is not a number or is negative.

    Notes
    -----
    Balle & Wang (2018), Theorem 8: the mechanism is (epsilon, delta)-DP if and only if
    `Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) <= delta`.
    Proof: the worst neighbours are N(0, 1) and N(mu, 1); the likelihood ratio exceeds
    `e^epsilon` beyond `epsilon/mu + mu/2`; the two probabilities of that half-line are the
    two terms (Neyman & Pearson: no other set does better).
    Computed as `phi(x) (M(x) - M(y))`, with `x, y = epsilon/mu -+ mu/2` and `M` Mills' ratio,
    which does not cancel and does not overflow.
    """
    return plain_delta(at_least_zero(epsilon, "epsilon"), at_least_zero(mu, "mu"))


def gaussian_epsilon(delta: float, mu: float, *, extra_delta: float = 0.0, slack: float = 0.0) -> float:
    """Return the smallest epsilon at which the Gaussian mechanism meets `delta`, rounded up.

    Parameters
    ----------
    delta : float
        Strictly between 0 and 1.
    mu : float
        L2 sensitivity over the noise's standard deviation, at least 0.
    extra_delta, slack : float
        As in `Charge`: parts of the guarantee that are not Gaussian.

    Returns
    -------
    float
        `inf` when `extra_delta` alone uses up `delta`.

    Notes
    -----
    Theorem 8 of Balle & Wang (2018) solved for epsilon. The curve decreases in epsilon, so
    bisection is exact; the end of the bracket that meets `delta` is returned.
    """
    target = check_delta(delta)
    ratio, extra = at_least_zero(mu, "mu"), at_least_zero(extra_delta, "extra_delta")
    if extra > target or (ratio and extra == target):
        return math.inf
    curve = with_extras(functools.partial(plain_delta, mu=ratio), extra, at_least_zero(slack, "slack"))
    return smallest_epsilon(curve, target)


def gaussian_mu(epsilon: float, delta: float, *, extra_delta: float = 0.0, slack: float = 0.0) -> float:
    """Return the largest `mu` whose Gaussian mechanism is (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee to meet.
    extra_delta, slack : float
        As in `Charge`: parts of the guarantee that are not Gaussian and must fit as well.

    Raises
    ------
    InvalidBudget
        When epsilon or delta is out of range, or nothing of it is left for the noise.

    Notes
    -----
    Theorem 8 of Balle & Wang (2018) solved for `mu`. The curve increases in `mu` (less noise
    can be post-processed into more), so bisection is exact; the end that meets `delta` is returned.
    """
    target_epsilon, target = check_epsilon(epsilon), check_delta(delta)
    extra, slack = at_least_zero(extra_delta, "extra_delta"), at_least_zero(slack, "slack")
    if extra >= target or slack >= target_epsilon:
        raise InvalidBudget(
            f"nothing is left for the noise: extra_delta={extra:g} must be below delta={target:g} and "
            f"slack={slack:g} below epsilon={target_epsilon:g}; ask for a larger delta or epsilon"
        )

    def meets(mu: float) -> bool:
        return released_delta(target_epsilon, mu, extra, slack) <= target

    low = 1.0
    while not meets(low):
        low /= 2
    high = 2 * low
    while meets(high):
        low, high = high, 2 * high
    low, high = _narrow(lambda mu: released_delta(target_epsilon, mu, extra, slack), target, low, high)
    while (middle := low + (high - low) / 2) not in (low, high):
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low


def _narrow(curve: Curve, target: float, low: float, high: float) -> tuple[float, float]:
    """Return a narrower (low, high): the curve is at most `target` at low and above it at high.

    Secant steps on the logarithm guess where it crosses; both ends of the guess are then tested, so
    the result does not rest on how good it is. When a test fails the ends stay as they were.
    """
    points = [(mu, math.log(max(curve(mu), 1e-300) / target)) for mu in (low, high)]
    for _ in range(12):
        (a, at_a), (b, at_b) = points
        if at_a == at_b:
            return low, high
        guess = min(max(b - at_b * (b - a) / (at_b - at_a), low), high)
        if abs(guess - b) <= 1e-12 * b:
            break
        points = [points[1], (guess, math.log(max(curve(guess), 1e-300) / target))]
    near, far = max(low, guess * (1 - 1e-11)), min(high, guess * (1 + 1e-11))
    return (near, far) if curve(near) <= target < curve(far) else (low, high)


def unit_noise_scale(epsilon: float, delta: float, *, extra_delta: float = 0.0, slack: float = 0.0) -> float:
    """Return sigma_1: the Gaussian noise that makes a release of sensitivity 1 (epsilon, delta)-DP.

    The noise of a release of sensitivity Delta is `Delta * unit_noise_scale(epsilon, delta)`.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee to meet.
    extra_delta, slack : float
        As in `Charge`.

    Raises
    ------
    InvalidBudget
        When epsilon or delta is out of range, or nothing of it is left for the noise.

    Notes
    -----
    `1 / gaussian_mu`, rounded up until the guarantee holds when it is evaluated again at
    `1 / sigma_1`. Source: Balle & Wang (2018), Theorem 8 and Algorithm 1.

    Examples
    --------
    >>> round(unit_noise_scale(1.0, 1e-6), 4)
    4.2247
    """
    mu = gaussian_mu(epsilon, delta, extra_delta=extra_delta, slack=slack)
    scale = 1 / mu
    while 1 / scale > mu or released_delta(epsilon, 1 / scale, extra_delta, slack) > delta:
        scale = math.nextafter(scale, math.inf)
    return scale


def discrete_gaussian_correction(epsilon: float, dimension: int, sigma_int: float) -> float:
    """Return what the discrete Gaussian adds to the analytic delta at `epsilon`.

    Parameters
    ----------
    epsilon : float
        The epsilon at which the delta is stated; the term grows with it.
    dimension : int
        Number of released entries.
    sigma_int : float
        Noise standard deviation in lattice steps, at least 1.

    Returns
    -------
    float
        `(1 + e^epsilon) sqrt(dimension/1152) / sigma_int^2`; `inf` where it overflows.

    Notes
    -----
    The rounded continuous Gaussian is post-processing of the analytic one (the shift between
    neighbours is a whole number of steps). Its log-ratio to the discrete Gaussian is
    `(z^2/sigma_int^2 - 1)/(24 sigma_int^2)` to first order, of variance `2/(24 sigma_int^2)^2` in
    each coordinate, so the total variation distance T is at most half the square root of the
    sum: `sqrt(dimension/1152)/sigma_int^2` (above its limit by at least a quarter, which covers
    the higher orders). And `P <= P' + T`, `Q' <= Q + T` on every event give `delta' + (1+e^epsilon) T`.
    `discrete_gaussian_slack` has no factor `e^epsilon` and should be preferred for a ledger, whose
    total epsilon is above that of any single release.
    """
    exponent = at_least_zero(epsilon, "epsilon")
    scale, entries = _lattice(dimension, sigma_int, least=1.0)
    distance = math.sqrt(entries / 1152) / scale**2
    return distance * (1 + math.exp(exponent)) if exponent < 700 else math.inf


def discrete_gaussian_slack(
    dimension: int, sigma_int: float, mu: float, *, tail: float = 1e-40
) -> tuple[float, float]:
    """Return (slack, extra_delta) of a discrete Gaussian release against the analytic curve.

    With these two, the release is (epsilon, delta)-DP for EVERY epsilon with
    `delta = e^slack gaussian_delta(epsilon - slack, mu) + extra_delta`: for one release, or summed over
    many, whatever the adaptivity.

    Parameters
    ----------
    dimension : int
        Number of released entries.
    sigma_int : float
        Noise standard deviation in lattice steps, at least 2.
    mu : float
        Sensitivity over the noise's standard deviation (an upper bound will do).
    tail : float
        The extra_delta to spend; 1e-40 costs nothing.

    Returns
    -------
    slack, extra_delta : float
        About `(2 dimension + 4 sqrt(92 dimension) + 400)/(24 sigma_int^2)`, and `tail`.

    Notes
    -----
    Proof. Write s for sigma_int, d for the dimension, P for the discrete Gaussian on the integers
    (density `phi` of N(0, s^2) over `S = sum phi(k)`, `1 <= S <= 1 + 3 exp(-2 pi^2 s^2)` by Poisson
    summation) and R for the rounded continuous one. With U uniform on (-1/2, 1/2),
    `R(z)/phi(z) = E exp(-zU/s^2 - U^2/2s^2)`: at least `exp(-1/24s^2)` by Jensen, and at most
    `sinh(a)/a <= exp(a^2/6) = exp(z^2/24s^4)`, `a = z/2s^2`. Hence in d dimensions
    `P <= e^A R`, `A = d/24s^2`, and `P >= exp(-|z|^2/24s^4 - d log S) R`.
    Neighbours differ by a shift of whole steps, of length at most `mu s`, and R is post-processing of
    the analytic mechanism. P is sub-Gaussian (`E e^{tX} = e^{t^2 s^2/2} sum phi(k - t s^2)/sum phi(k)`, and
    the sum is largest at whole shifts), so outside probability `tail = e^-u` the output is within
    `s (mu + sqrt(d + 2 sqrt(du) + 2u))` of the other neighbour (Hsu, Kakade & Zhang 2012);
    call the bound on the second exponent there B. For any event,
    `P(E) <= tail + e^A R(E') <= tail + e^A (e^t R'(E') + delta(t)) <= tail + e^A delta(t) + e^(A+B+t) P'(E)`:
    slack = A + B. Over several releases the exponents and the tails add along every path.
    """
    scale, entries = _lattice(dimension, sigma_int, least=2.0)
    ratio = at_least_zero(mu, "mu")
    rest = check_delta(tail)
    depth = -math.log(rest)
    reach = ratio + math.sqrt(entries + 2 * math.sqrt(entries * depth) + 2 * depth)
    upper = entries / (24 * scale**2)
    lower = reach**2 / (24 * scale**2) + entries * 3 * math.exp(-2 * math.pi**2 * scale**2)
    return (upper + lower) * (1 + MARGIN), rest


def combine_mu(mus: Iterable[float]) -> float:
    """Return the `mu` of several Gaussian mechanisms together, rounded up.

    `sqrt(sum mu_i^2)`, exactly: the pair of N(0, I) and N((mu_1, ..., mu_k), I) can be rotated on to
    one axis. Source: Dong, Roth & Su (2022), Section 3.
    """
    parts = [value for mu in mus if (value := at_least_zero(mu, "mu"))]
    total = math.hypot(*parts)
    return math.nextafter(total, math.inf) if len(parts) > 1 else total


def log_curve(epsilon: Array, mu: float) -> Array:
    """Return the log of the exact Gaussian delta at each epsilon >= 0, for 0 < mu < LARGEST_MU."""
    from scipy import special  # imported here: slow to import, and not needed before a release

    with np.errstate(all="ignore"):
        x = np.minimum(epsilon / mu - mu / 2, 1e9)
        y = np.minimum(epsilon / mu + mu / 2, 1e9)
        # Beyond 1000 the result underflows whatever the gap is; Mills' ratio bounds it.
        gap = np.where(x > 1e3, _mills(x), _mills_gap(x, y, mu))
        out: Array = -0.5 * x * x - 0.5 * math.log(2 * math.pi) + np.log(gap)
        if mu >= 0.5:
            # phi(x) M(x) overflows far to the left; there the two terms do not cancel.
            tail = special.log_ndtr(-x)
            rest = np.log1p(-np.exp(epsilon + special.log_ndtr(-y) - tail))
            out = np.where(x < 0, tail + rest, out)
    return np.minimum(out, 0.0)


def _mills_gap(x: Array, y: Array, mu: float) -> Array:
    """Return M(x) - M(y), M Mills' ratio, for y = x + mu."""
    if mu >= 0.5:
        return _mills(x) - _mills(y)
    # The integral of -M'(t) = 1 - t M(t) does not cancel when mu is small.
    t = x[..., None] + mu * (_NODES + 1) / 2
    gap: Array = mu / 2 * np.sum(_WEIGHTS * (1 - t * _mills(t)), axis=-1)
    return gap


def _mills(t: Array) -> Array:
    """Return Mills' ratio (1 - Phi(t))/phi(t)."""
    from scipy import special

    return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(t / math.sqrt(2)))


def plain_delta(epsilon: float, mu: float) -> float:
    """Return `gaussian_delta` of numbers known to be finite and at least 0."""
    if mu == 0:
        return 0.0
    if mu >= LARGEST_MU:
        return 1.0
    exact = math.exp(float(log_curve(np.array([epsilon]), mu)[0]))
    return min(1.0, max(exact * (1 + MARGIN), math.ulp(0.0)))


def with_extras(curve: Curve, extra_delta: float, slack: float) -> Curve:
    """Add slack and extra_delta to a curve; below the slack nothing is known but delta <= 1."""

    def total(epsilon: float) -> float:
        if epsilon < slack:
            return 1.0
        return min(1.0, math.exp(slack) * curve(epsilon - slack) + extra_delta)

    return total


def released_delta(epsilon: float, mu: float, extra_delta: float, slack: float) -> float:
    """Return the delta at `epsilon` of a Gaussian release with `extra_delta` and `slack`."""
    return with_extras(functools.partial(plain_delta, mu=mu), extra_delta, slack)(epsilon)


def smallest_epsilon(curve: Curve, delta: float) -> float:
    """Return the smallest epsilon >= 0 with curve(epsilon) <= delta, to the last bits and from above."""
    if curve(0.0) <= delta:
        return 0.0
    high = 1.0
    while curve(high) > delta:
        high *= 2
        if high > 1e18:
            return math.inf
    low = 0.0
    while high - low > 1e-15 * high:
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if curve(middle) <= delta else (middle, high)
    return high


def at_least_zero(value: object, name: str) -> float:
    """Return a finite number >= 0 as a float, or raise `InvalidArgument`."""
    number = as_number(value, name)
    if not (math.isfinite(number) and number >= 0):
        raise InvalidArgument(f"{name} must be a finite number >= 0, got {number!r}")
    return number


def _lattice(dimension: object, sigma_int: object, *, least: float) -> tuple[float, int]:
    entries = as_number(dimension, "dimension")
    scale = as_number(sigma_int, "sigma_int")
    if not (entries >= 1 and entries == int(entries)):
        raise InvalidArgument(f"dimension must be a whole number >= 1, got {entries!r}")
    if not (math.isfinite(scale) and scale >= least):
        raise InvalidArgument(
            f"sigma_int must be finite and >= {least:g} lattice steps, got {scale!r}; use a finer lattice"
        )
    return scale, int(entries)
