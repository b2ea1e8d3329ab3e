"""Sensitivity of the feature sum, with its proofs.

One unit (a row, or a person) contributes a vector of norm at most 1: `w Phi(x)` with `0 <= w <= 1`,
or an average of such vectors, or the zero vector when it is missing. `Phi` is defined in
`numerics.designs`. The sum over units is what is released, with Gaussian noise scaled to `Delta`,
the largest Euclidean change of the sum between neighbouring tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..budget import Adjacency
from ..errors import InvalidArgument
from ..numerics.compiled_trig import TRIG_ERROR
from ..numerics.designs import Design, LatticeDesign, RandomDesign
from ..numerics.device_sums import GROUP, lattice_factors
from ..numerics.feature_sums import TRANSFORM_TOLERANCE
from ..numerics.kernels import kernel_infimum
from ..numerics.surfaces import FloatArray

# Weight of the zero frequency. Under replacement it cancels between two present records, so half
# of the norm can be spent on it for free; under add/remove it costs 1/sqrt(1 - g_0).
ZERO_WEIGHT: dict[Adjacency, float] = {"replace": 0.5, "add_remove": 0.1}

_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class Sensitivity:
    """The L2 sensitivity of a released vector, by its parts.

    Parameters
    ----------
    exact : float
        `Delta_0`: of the feature sum in exact arithmetic.
    arithmetic : float
        Margin for the error of the transform and of summation.
    rounding : float
        Margin for rounding to the lattice.
    failure_probability : float
        Probability, over the public draw of random frequencies, that `exact` does not hold;
        it is added to delta. Zero for a lattice.
    """

    exact: float
    arithmetic: float
    rounding: float
    failure_probability: float

    @property
    def total(self) -> float:
        """`Delta`: the sum of the three parts (triangle inequality)."""
        return self.exact + self.arithmetic + self.rounding


def exact_sensitivity(design: Design, adjacency: Adjacency, failure_probability: float) -> float:
    """Return `Delta_0` of the feature sum for one unit, in exact arithmetic.

    Add or remove: a contribution has norm at most 1, so `Delta_0 = 1`.

    Replace: two present records of weight 1 differ by `|Phi(x) - Phi(y)|^2 = 2 - 2 k(x - y)`, where
    `k(t) = g_0 + sum_j g_j cos(w_j.t)`; a present and a missing one by at most 1. With weights
    `a, b` in [0, 1] the squared difference is convex in `(a, b)`, so its maximum is at a corner:
    (1, 1), (1, 0), (0, 1) or (0, 0). Averages over a person's rows lie in the convex hull of
    single-record contributions, and the norm of a difference is convex, so they add nothing. Hence
    `Delta_0 = max(1, sqrt(2 - 2 inf k))`, and `inf k` is bounded below by `kernel_lower_bound`.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
    adjacency : {"replace", "add_remove"}
    failure_probability : float
        For random features: the probability that the bound may fail, added to delta.
    """
    if adjacency == "add_remove":
        return 1.0
    return max(1.0, math.sqrt(2 - 2 * kernel_lower_bound(design, failure_probability)))


def grouped_sensitivity(own: float, adjacency: Adjacency, groups: int) -> float:
    """Return `Delta_0` of the sums of several groups together, in exact arithmetic.

    The released vector holds one feature sum per group, side by side, and a record contributes `w Phi(x)`
    to the part of its own group and zero to the others; so its contribution has norm at most 1.
    Add or remove: 1. Replace: a record that stays in its group changes that part alone, by at most `own`
    (`exact_sensitivity`). One that moves takes `a Phi(x)` from one part and puts `b Phi(y)` into another;
    these are orthogonal, so the squared change is `a^2 + b^2 <= 2`, whatever x and y are. Hence
    `max(own, sqrt 2)`. Persons with rows in several groups contribute averages of such vectors: as in
    `exact_sensitivity` the norm of a difference is convex, so they add nothing.

    Parameters
    ----------
    own : float
        `exact_sensitivity` of one group's sum.
    adjacency : {"replace", "add_remove"}
    groups : int
        Number of groups; a record of none of them contributes zero.
    """
    if adjacency == "add_remove" or groups == 1:
        return own
    return max(own, math.nextafter(math.sqrt(2), 2))


def kernel_lower_bound(design: Design, failure_probability: float) -> float:
    """Return a lower bound of `k(t) = g_0 + sum_j g_j cos(w_j.t)` over all differences of the box."""
    if isinstance(design, LatticeDesign):
        lowest = _lattice_oscillation_bound(design)
    else:
        lowest = -random_feature_deviation(design, failure_probability)
    return design.zero_weight + (1 - design.zero_weight) * lowest


def _lattice_oscillation_bound(design: LatticeDesign) -> float:
    """Bound `c(t) = sum_{w != 0, |w| <= cut} kappa cos(w.t) / sum_{w != 0, |w| <= cut} kappa` from below.

    Let `S_in` (with zero) and `S_out` be the sums of the spectrum `kappa` over the lattice inside and
    outside the cut, `kappa(0) = 1`. The sum over the FULL lattice is, by Poisson summation, the
    periodised kernel: `sum_all kappa cos(w.t) >= m (S_in + S_out)`, `m` from
    `_periodised_infimum`. Dropping the outer terms costs at most `S_out`, dropping zero costs 1:
    `c >= (m (S_in + S_out) - 1 - S_out) / (S_in - 1)`.

    For a ladder `kappa(w) = sum_s c_s kappa_1(s w)` with `c_s > 0`, `sum c_s = 1`, the same holds term by
    term: the part of scale s is the periodised kernel on a torus of sides `L/s` in its own units, with its
    own sum `S_s` and infimum `m_s`, and `sum_s c_s m_s S_s` takes the place of `m (S_in + S_out)`. For order
    2 every part is positive, so a mixture costs nothing but its share of `S_out`.
    """
    inside = 1 / design.natural_zero_weight
    everything = lowest = 0.0
    for scale, coefficient in design.mixture:
        part = coefficient * _full_lattice_sum(design.sides / scale, design.order)
        everything += part
        lowest += part * _periodised_infimum(design.sides / scale, design.order)
    # The sums are accurate to a few ulps; the allowance keeps the bound on the safe side.
    outside = max(0.0, everything - inside) + 1e-12 * everything
    # A mean of cosines is never below -1, whatever the cut.
    return max(-1.0, (lowest * (1 + 1e-12) - 1 - outside) / (inside - 1))


def _full_lattice_sum(sides: FloatArray, order: int) -> float:
    """Return the sum of the spectrum over the dual lattice of a torus, by products of one-axis sums.

    What lies beyond a frequency of 14 is below 1e-35 of it. Terms are positive and summed pairwise, so the
    relative error is a few ulps.
    """
    moments = []
    for side in sides:
        w = 2 * np.pi * np.arange(1, math.ceil(14 * side / (2 * np.pi)) + 1) / side
        e = np.exp(-(w**2) / 2)
        moments.append((1 + 2 * float(e.sum()), 2 * float((e * w**2).sum()), 2 * float((e * w**4).sum())))
    m = np.array(moments)
    product = float(np.prod(m[:, 0]))
    total = product
    second = m[:, 1] / m[:, 0]
    if order >= 4:
        total += product * float(second.sum()) / 2
    if order >= 6:
        fourth = m[:, 2] / m[:, 0]
        squares = float(fourth.sum() + second.sum() ** 2 - (second**2).sum())
        total += product * squares / 8
    return total


def _periodised_infimum(sides: FloatArray, order: int) -> float:
    """Bound the periodised kernel, normalised at zero, from below.

    Order 2: a sum of positive images, so 0. Higher orders: `t` reduces to the cell
    `|t_a| <= L_a/2` and the images `m != 0` add at most `S` in absolute value, since
    `|k(s)| <= prod_a u(s_a)` (order 4: `u(s) = (1 + s^2/2) exp(-s^2/2)`, because
    `(1 + d/2 + |s|^2/2)/(1 + d/2) <= 1 + |s|^2/2 <= prod_a (1 + s_a^2/2)`; order 6 one more factor
    of the same kind). `u` decreases (order 6: from `s = sqrt 2` on, and its peak there is `4/e`), so
    the images of one axis are bounded by `u` at `(m - 1/2) L`, the cell itself by the peak. The value
    at zero is at least `1 - S`.
    """
    if order == 2:
        return 0.0
    steps = np.arange(1, 50)[:, None] - 0.5
    distance = steps * sides
    envelope = (1 + distance**2 / 2) ** (order // 2 - 1) * np.exp(-(distance**2) / 2)
    peak = 1.0 if order == 4 else 4 / math.e
    images = float(np.prod(peak + 2 * envelope.sum(axis=0)) - peak**sides.size)
    if images >= 0.5:
        raise InvalidArgument("the box is too small for a kernel of this order; use order=2")
    return (kernel_infimum(order, sides.size) - images) / (1 - images)


def random_feature_deviation(design: RandomDesign, failure_probability: float) -> float:
    """Return `t` with `k_D >= -t` on the difference box, except with the stated probability.

    `k_D(t) = mean_j cos(w_j.t)`, `E k_D = exp(-|t|^2/2) >= 0`. Lay a grid over the difference box
    `[-B_a, B_a]`, its end points included, such that every point is within `r` of a node. At the
    minimiser each partial derivative vanishes or the coordinate lies at an end, so there is a node
    that differs from the minimiser only in coordinates of zero derivative and by at most `r`:
    `k_D(node) <= min k_D + Lambda r^2/2`, `Lambda` the largest eigenvalue of `W^T W / D` (every
    second derivative of `k_D` is bounded by it). At each of the `N` nodes (one of each pair `+-t`)
    Bernstein's inequality gives `P(k_D <= -s) <= exp(-D s^2/(1 + 2 s/3))`: with `m = E cos`,
    `Var cos = (1-m^2)^2/2` and the deviation needed is `m + s` with one-sided range `1 + m`; for
    `s <= 1` the exponent is smallest at `m = 0`. So `t = s + Lambda r^2/2` with
    `N exp(-D s^2/(1 + 2 s/3)) = failure_probability`.

    The probability is over the draw of the frequencies, made afresh from the system's entropy and without
    regard to the rows; a seed that somebody chose has none.

    Parameters
    ----------
    design : RandomDesign
    failure_probability : float
        In (0, 1).

    Raises
    ------
    InvalidArgument
        When there are so few features that the bound exceeds 1.
    """
    if not 0 < failure_probability < 1:
        raise InvalidArgument(f"failure_probability must be in (0, 1), got {failure_probability!r}")
    d, n = design.dimension, design.n_pairs
    # The radius is fixed from d and D alone, never from the drawn frequencies.
    expected = (1 + math.sqrt(d / n)) ** 2
    radii = np.geomspace(1e-3, 1.0, 200)
    slack = [_bernstein_slack(design.widths, d, n, r, failure_probability) for r in radii]
    radius, s = min(zip(radii, slack, strict=True), key=lambda pair: pair[1] + expected * pair[0] ** 2 / 2)
    w = design.frequencies
    largest = float(np.linalg.eigvalsh(w.T @ w / n)[-1]) * (1 + 1e-12)
    deviation = s + largest * float(radius) ** 2 / 2
    if not (s <= 1 and deviation < 1):
        raise InvalidArgument(f"{n} random features are too few in {d} dimensions; use at least 1024")
    return deviation


def _bernstein_slack(widths: FloatArray, d: int, n: int, radius: float, failure: float) -> float:
    log_nodes = float(np.sum(np.log(np.ceil(2 * widths * math.sqrt(d) / (2 * radius)) + 1))) - math.log(2)
    x = (log_nodes - math.log(failure)) / n
    # n s^2 = (1 + 2s/3) x n, solved for s.
    return x / 3 + math.sqrt(x * x / 9 + x)


def arithmetic_margin(units_per_sum: int, depth: int, tolerance: float = TRANSFORM_TOLERANCE) -> float:
    """Return the margin in Delta for inexact sums over `units_per_sum` units.

    The transform's error, as a weighted vector, is at most its tolerance times the total weight, for
    either neighbour: `2 * 2 * n * tol`, where the factor 2 in front of the tolerance is a reserve.
    (Measured on single records: up to .4 tol, and 1.0 tol with 360,000 frequencies in one dimension;
    single coefficients near the cut are worse, up to 23 tol, but carry little weight. On top, each
    record is moved by the rounding of its position to about `1e-16` of the torus. That moves `Phi(x)`
    to `Phi(x')`, which the bound `Delta_0` covers. Random frequencies: see `phase_error`.) Summing terms of
    size at most 1 in double precision, `depth` at a time, adds at most `n * u * depth` each way,
    `u = 2^-53`.

    A row lies in exactly one block; blocks are rounded one by one and added as integers. Under
    replacement of rows the other blocks are the same bits for both neighbours, so `units_per_sum` is
    the block length; otherwise it is the public number of units (or its public ceiling).

    Parameters
    ----------
    units_per_sum : int
        Units whose sums may differ between neighbours.
    depth : int
        Terms summed in floating point before anything is rounded: rows, and sums of blocks.
    """
    n = float(units_per_sum)
    return 4 * n * tolerance + 2 * n * _UNIT_ROUNDOFF * float(depth)


def phase_error(design: Design) -> float:
    """Return how far the computed features of one record may be from a `Phi(x)`, as a weighted vector.

    A lattice: 0, its transform has a tolerance. Random frequencies: a phase `w_j.z` is a sum of d rounded
    products, off by at most `d u sum_a |w_ja| |z_a|` (and a little: one more u), which no move of the record
    explains, since it differs from frequency to frequency. Sine and cosine of it err by at most
    `numerics.compiled_trig.TRIG_ERROR`. With equal weights the norm is the root mean square over frequencies.
    It passes the smaller tolerance 1e-12 in boxes of some thousand bandwidths alone.
    """
    if isinstance(design, LatticeDesign):
        return 0.0
    longest = np.abs(design.frequencies) @ design.widths
    return TRIG_ERROR + (design.dimension + 1) * _UNIT_ROUNDOFF * float(np.sqrt(np.mean(longest**2)))


def device_tolerance(design: Design, rows: int) -> float:
    """Return a proved bound of the error of sums on a device, over the total weight, as a weighted vector.

    For `numerics.device_sums` over at most `rows` rows, whatever their places and weights in [0, 1], and in
    whatever order the device adds. Assumed: double precision with correctly rounded addition,
    multiplication (fused or not) and conversion; sums of products formed by just these (no Strassen, no
    lower precision); sines and cosines with absolute errors up to `numerics.compiled_trig.TRIG_ERROR`,
    5e-14. (CUDA states 2 ulp, at most 4.4e-16, from "extensive but not exhaustive tests": CUDA C++
    Programming Guide, Mathematical Functions, table of double precision. About a hundred times as much is
    allowed for here.) `u = 2^-53`.

    Entries. Lattice: the place of a record is rounded to a whole number of 2^-53 turns, a function of the
    record alone: `Phi(x)` becomes a `Phi(x')`, which `Delta_0` covers. From there the phase is exact up to
    the rounded pi and one product, at most `1.4 pi u`. So a computed `c + i s` is off by at most
    `e = sqrt(2) TRIG_ERROR + 2 pi u`, and a product of L of them (2 or 3 factors) by at most
    `(1 + e)^L - 1`. Random frequencies: L = 1, and the phases err as in `phase_error`, a matrix product being
    a sum of d products.

    Sums. Higham (2002), Accuracy and Stability of Numerical Algorithms, section 3.5: a product of real
    matrices computed conventionally errs, entry by entry and in any order of summation, by at most
    `gamma_K |A|^T |B|` for K terms, `gamma_m = m u/(1 - m u)`; each further rounding of a term, or addition
    of partial sums, adds 1 to m (his lemma 3.3). Here `K = GROUP`. At most `ceil(rows / GROUP)` products are
    added, in at most twice as many additions. 8 more roundings: by the weight, the product of the right
    factors, up to 2 additions of `cos cos`, `cos sin`, ..., the weighting, and 3 in reserve.

    So the real part of a frequency's sum errs by at most `gamma_m` times the weighted sum of
    `|c_1 c_2 c_3| + |c_1 s_2 s_3| + |s_1 s_2 c_3| + |s_1 c_2 s_3|`, the imaginary part likewise with the
    other four products. With angles a, b, c in the first quadrant that have these cosines and sines, the
    first is `cos a cos(b - c) + sin a sin(b + c)`, the second `cos a sin(b + c) + sin a cos(b - c)`, both at
    most `sqrt 2` (Cauchy and Schwarz): together at most 2. For two factors `cos(a - b)` and `sin(a + b)`,
    together at most `sqrt 2`; for one factor 1. That is `2^((L-1)/2)`. The total weight is the sum at
    frequency zero. All coefficients obey this one bound, and the weights `g_j` add up to 1, so the norm
    obeys it too.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
    rows : int
        Most rows given to `DeviceSums.feature_sum` at once.
    """
    depth = GROUP + 2 * math.ceil(rows / GROUP) + 8
    gamma = depth * _UNIT_ROUNDOFF / (1 - depth * _UNIT_ROUNDOFF)
    entry = math.sqrt(2) * TRIG_ERROR + 2 * math.pi * _UNIT_ROUNDOFF
    factors = len(lattice_factors(design)) if isinstance(design, LatticeDesign) else 1
    moved = (1 + entry) ** factors - 1 + phase_error(design)
    return 2 ** ((factors - 1) / 2) * gamma * (1 + moved) + moved
