"""From the exact feature sum to a released surface: calibration, noise, reading.

Guarantee. The released vector is `round(sum_i Phi_i) + noise` on a lattice of step `g`: one Gaussian
mechanism of L2 sensitivity `Delta`. Everything read from it is post-processing, so the released
surface is (epsilon, delta)-differentially private for the stated adjacency, given public bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..budget import Adjacency, as_whole
from ..errors import InvalidArgument
from ..numerics.designs import Design, RandomDesign
from ..numerics.feature_sums import FAST_TOLERANCE, TRANSFORM_TOLERANCE
from ..numerics.fourier_sums import ComplexArray
from ..numerics.surfaces import FloatArray
from ..results.coordinates import Coordinate
from .accounting import Charge
from .features import (
    Sensitivity,
    arithmetic_margin,
    exact_sensitivity,
    grouped_sensitivity,
    phase_error,
)
from .gaussian import discrete_gaussian_slack, gaussian_mu
from .noise import LARGEST_SCALE, discrete_gaussian, simulated_gaussian

# Share of delta set aside for the failure of the random-feature bound.
FAILURE_SHARE = 1e-3
_FINENESS = 2.0**-24
# Up to this many units the fast transform adds at most .0005 to Delta.
_SHORT_BLOCK = 2**17
_LARGEST_INTEGER_BITS = 61


@dataclass(frozen=True)
class ReleasePlan:
    """Everything about a release that is known before a row is read.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
    epsilon, delta : float
        The guarantee.
    adjacency : {"replace", "add_remove"}
    sensitivity : Sensitivity
    noise_scale : float
        Standard deviation `sigma` of the noise in each released entry.
    step : float
        Lattice step `g`, a power of two.
    extra_delta : float
        Part of delta not spent by the Gaussian itself: the tail of the discrete Gaussian and the
        failure probability of random features.
    slack : float
        Shift in epsilon that the discrete Gaussian costs (about 1e-17).
    tolerance : float
        Of the transform: the fast one where blocks are short enough for its margin to be negligible. On a
        device: the proved bound of its sums.
    groups : int
        Surfaces released together, one after the other in the vector; each record is in at most one.
    """

    design: Design
    epsilon: float
    delta: float
    adjacency: Adjacency
    sensitivity: Sensitivity
    noise_scale: float
    step: float
    extra_delta: float
    slack: float
    tolerance: float
    groups: int = 1

    @property
    def length(self) -> int:
        """Number of released entries, `1 + 2 M` for each group."""
        return self.groups * (1 + 2 * self.design.n_pairs)

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale: the Gaussian-DP parameter."""
        return self.sensitivity.total / self.noise_scale

    def charge(self, label: str, simulated: bool) -> Charge:
        """Return what the ledger records."""
        return Charge(
            label=label,
            mechanism="surface",
            epsilon=self.epsilon,
            delta=self.delta,
            gaussian_mus=(self.mu,),
            extra_delta=self.extra_delta,
            slack=self.slack,
            columns=self.design.columns,
            simulated=simulated,
        )


def plan_release(
    design: Design,
    *,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    units_per_sum: int,
    depth: int,
    roundings: int,
    largest_total: int,
    mu: float | None = None,
    groups: int = 1,
    tolerance: float | None = None,
) -> ReleasePlan:
    """Calibrate the noise of a surface release. Reads nothing.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
    epsilon, delta : float
        Already checked.
    adjacency : {"replace", "add_remove"}
    units_per_sum, depth : int
        For `arithmetic_margin`.
    roundings : int
        How many separately rounded sums one unit can change (each adds `g sqrt(D')`).
    largest_total : int
        Public ceiling of the total weight, so that no integer overflows.
    mu : float, optional
        Sensitivity over noise scale, where the release is one part of what meets (epsilon, delta) and the
        whole has been accounted for elsewhere; from (epsilon, delta) when omitted.
    groups : int
        Number of surfaces released together; see `features.grouped_sensitivity`.
    tolerance : float, optional
        Proved bound of the sums' error, as in `features.device_tolerance`; that of the transform, or of
        random frequencies, when omitted.
    """
    if abs(math.fsum(design.pair_weights) + design.zero_weight - 1) > 1e-9:
        raise InvalidArgument("the weights of the design do not sum to 1; make a new design")
    failure = delta * FAILURE_SHARE if isinstance(design, RandomDesign) else 0.0
    base = grouped_sensitivity(exact_sensitivity(design, adjacency, failure), adjacency, groups)
    # Under add/remove the norm bound is exact for any frequencies: nothing can fail.
    failure = 0.0 if adjacency == "add_remove" else failure
    length = groups * (1 + 2 * design.n_pairs)
    if tolerance is None:
        tolerance = FAST_TOLERANCE if units_per_sum <= _SHORT_BLOCK else TRANSFORM_TOLERANCE
        error = max(tolerance, phase_error(design))
    else:
        error = tolerance
    noise = calibrate(
        base,
        arithmetic_margin(units_per_sum, depth, error),
        length,
        epsilon=epsilon,
        delta=delta,
        roundings=roundings,
        largest_total=largest_total,
        failure=failure,
        mu=mu,
    )
    return ReleasePlan(
        design,
        epsilon,
        delta,
        adjacency,
        noise.sensitivity,
        noise.scale,
        noise.step,
        noise.extra_delta,
        noise.slack,
        tolerance,
        groups,
    )


@dataclass(frozen=True)
class LatticeNoise:
    """Discrete Gaussian noise of a vector that is rounded to a lattice; fields as in `ReleasePlan`."""

    sensitivity: Sensitivity
    scale: float
    step: float
    extra_delta: float
    slack: float


def calibrate(
    base: float,
    arithmetic: float,
    length: int,
    *,
    epsilon: float,
    delta: float,
    roundings: int,
    largest_total: int,
    failure: float = 0.0,
    mu: float | None = None,
) -> LatticeNoise:
    """Return the noise of a released vector, from its sensitivity in exact arithmetic. Reads nothing.

    Parameters
    ----------
    base, arithmetic : float
        Sensitivity in exact arithmetic, and the margin for inexact sums.
    length : int
        Number of released entries.
    epsilon, delta, roundings, largest_total, mu
        As in `plan_release`.
    failure : float
        Probability that `base` does not hold; it is part of delta.
    """
    step = _lattice_step(base, length, largest_total)
    sensitivity = Sensitivity(base, arithmetic, roundings * step * math.sqrt(length), failure)
    # The discrete Gaussian's cost depends on sigma; a calibration without it bounds it from above.
    first = sensitivity.total / (mu or gaussian_mu(epsilon, delta, extra_delta=failure))
    slack, tail = discrete_gaussian_slack(length, first / step, sensitivity.total / first)
    extra = failure + tail
    if mu is None:
        mu = gaussian_mu(epsilon, delta, extra_delta=extra, slack=slack)
    sigma = sensitivity.total / mu
    while sensitivity.total / sigma > mu:
        # The division was rounded to the unsafe side.
        sigma = math.nextafter(sigma, math.inf)
    if not sigma / step < LARGEST_SCALE:
        raise InvalidArgument(
            f"epsilon {epsilon:g} at delta {delta:g} needs noise beyond the integers of the sampler; "
            "give a larger epsilon or delta"
        )
    return LatticeNoise(sensitivity, sigma, step, extra, slack)


class _OnBox(Protocol):
    """What a release is planned on: named coordinates and their box."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        ...

    @property
    def lower(self) -> FloatArray:
        """Lower corner of the box."""
        ...

    @property
    def upper(self) -> FloatArray:
        """Upper corner of the box."""
        ...


def check_request(
    design: _OnBox,
    coordinates: Sequence[Coordinate],
    box: tuple[FloatArray, FloatArray],
    seed: object,
    notes: object,
) -> None:
    """Refuse what would fail, or void the guarantee, after the charge."""
    names = tuple(c.name for c in coordinates)
    # The sensitivity of random features is bounded over the design's box alone.
    if names != design.columns or not (
        np.array_equal(box[0], design.lower) and np.array_equal(box[1], design.upper)
    ):
        raise InvalidArgument(
            f"the design (columns {list(design.columns)}) does not fit the coordinates {list(names)} and "
            "their box; make it from coordinate() and box() of this PrivateData"
        )
    if seed is not None:
        as_whole(seed, "seed", 0)
    elif not_private := [c.name for c in coordinates if c.simulated]:
        raise InvalidArgument(
            f"the coordinates {not_private} come from a release with seed=: it is simulated, NOT private, "
            "and so is what rests on them; make that release without seed, or give seed= here as well"
        )
    check_notes(notes)


def check_notes(notes: object) -> tuple[str, ...]:
    """Return notes as a tuple of texts."""
    if isinstance(notes, str) or not (
        isinstance(notes, Sequence) and all(isinstance(note, str) for note in notes)
    ):
        raise InvalidArgument("notes must be a sequence of texts, such as ('chosen from the data',)")
    return tuple(notes)


def _lattice_step(base: float, length: int, largest_total: int) -> float:
    """Return the power of two at or below `base 2^-24 / sqrt(length)`, coarser only against overflow."""
    fine = math.floor(math.log2(base * _FINENESS / math.sqrt(length)))
    coarse = math.ceil(math.log2(max(largest_total, 1))) - _LARGEST_INTEGER_BITS
    return 2.0 ** max(fine, coarse)


def to_lattice(plan: ReleasePlan, total: float | FloatArray, sums: ComplexArray) -> NDArray[np.int64]:
    """Weight feature sums and round them to integers in steps of `plan.step`. NOT yet private.

    One total and (M,) sums; or, for groups, (groups,) totals and (groups, M) sums.
    """
    root = np.sqrt(plan.design.pair_weights)
    first = math.sqrt(plan.design.zero_weight) * np.atleast_1d(total)[:, None]
    weighted = np.atleast_2d(root * sums)
    vector = np.concatenate([first, weighted.real, weighted.imag], axis=1).ravel()
    return np.rint(vector / plan.step).astype(np.int64)


def add_noise(plan: ReleasePlan, exact: NDArray[np.int64], seed: int | None) -> FloatArray:
    """Return the released vector (float64): `exact` plus discrete Gaussian noise, in feature units.

    With a seed the noise is NumPy's and the release is simulated, not private.
    """
    scale = plan.noise_scale / plan.step
    noise = (
        discrete_gaussian(plan.length, scale)
        if seed is None
        else simulated_gaussian(plan.length, scale, int(seed))
    )
    return np.asarray((exact + noise) * plan.step, dtype=np.float64)
