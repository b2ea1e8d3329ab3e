"""From the sum to the release: calibration met and not wasted, the lattice, the noise that arrives."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pydpmode.budget import ADJACENCIES, PrivacySpent
from pydpmode.errors import InvalidBudget
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.spectral_surfaces import spectral_surface
from pydpmode.privacy.features import ZERO_WEIGHT, exact_sensitivity
from pydpmode.privacy.gaussian import gaussian_delta, unit_noise_scale
from pydpmode.privacy.surface_release import (
    FAILURE_SHARE,
    ReleasePlan,
    add_noise,
    plan_release,
    to_lattice,
)
from pydpmode.results.released_surface import ReleasedSurface

NAMES = tuple("abcdefgh")


def design_of(d: int, order: int = 2, adjacency: Any = "replace", n_pairs: int = 2048) -> Design:
    box = NAMES[:d], np.zeros(d), np.full(d, 4.0), np.ones(d), order, ZERO_WEIGHT[adjacency]
    return LatticeDesign(*box) if d <= 3 else RandomDesign(*box, n_pairs=n_pairs, frequency_seed=5)


def plan_of(design: Design, **changes: Any) -> ReleasePlan:
    fields: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "adjacency": "replace",
        "units_per_sum": 10_000,
        "depth": 10_000,
        "roundings": 1,
        "largest_total": 10_000,
    }
    return plan_release(design, **{**fields, **changes})


DESIGNS = {(d, a): design_of(d, 2, a, 1500) for d in (1, 2, 4, 8) for a in ADJACENCIES}


@settings(max_examples=60)
@given(
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from(ADJACENCIES),
    st.floats(0.01, 20),
    st.floats(-12, -2).map(lambda p: 10**p),
    st.sampled_from([1, 100, 10**5]),
)
def test_the_guarantee_is_met_and_not_wasted(
    d: int, adjacency: Any, epsilon: float, delta: float, n: int
) -> None:
    design = DESIGNS[d, adjacency]
    plan = plan_of(
        design, epsilon=epsilon, delta=delta, adjacency=adjacency, units_per_sum=n, depth=n, largest_total=n
    )
    spent = math.exp(plan.slack) * gaussian_delta(epsilon - plan.slack, plan.mu) + plan.extra_delta
    assert spent <= delta
    assert plan.mu == plan.sensitivity.total / plan.noise_scale
    # The failure of random features is paid out of delta, and out of it alone.
    is_random = isinstance(design, RandomDesign) and adjacency == "replace"
    failure = delta * FAILURE_SHARE if is_random else 0.0
    assert plan.sensitivity.failure_probability == failure
    assert plan.extra_delta >= failure
    exact = exact_sensitivity(design, adjacency, delta * FAILURE_SHARE if d > 3 else 0.0)
    assert plan.sensitivity.exact == exact
    assert plan.sensitivity.total >= exact
    # The sums of 1e5 units in double precision cost .2% in the worst case; no sum of 100 shows.
    room = 1.003 if n > 1000 else 1.001
    assert plan.noise_scale <= room * exact * unit_noise_scale(epsilon, delta)


def test_the_usual_case_by_hand() -> None:
    plan = plan_of(design_of(2))
    assert unit_noise_scale(1.0, 1e-6) == pytest.approx(4.2247, abs=1e-4)
    # Half the weight at zero: two far records are at about 1 instead of the root of 2.
    assert plan.sensitivity.exact == pytest.approx(1.02, abs=0.01)
    assert plan.noise_scale == pytest.approx(4.2247 * plan.sensitivity.total, rel=1e-4)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("total", [1, 10**6, 10**15])
def test_the_lattice_is_a_power_of_two_fine_enough_and_cannot_overflow(d: int, total: int) -> None:
    plan = plan_of(design_of(d), units_per_sum=1, depth=1, largest_total=total)
    mantissa, _ = math.frexp(plan.step)
    assert mantissa == 0.5
    assert plan.sensitivity.rounding == plan.step * math.sqrt(plan.length)
    if total == 1:
        assert plan.sensitivity.rounding <= plan.sensitivity.exact * 2.0**-24
        assert plan.noise_scale / plan.step >= 2**30 / 10
    # The largest entry of the sum, and far tails of the noise, stay inside 64 bits.
    assert total / plan.step + 12 * plan.noise_scale / plan.step < 2.0**63


def test_margins_grow_with_what_can_differ() -> None:
    design = design_of(2)
    plain = plan_of(design)
    assert plan_of(design, units_per_sum=20_000).sensitivity.arithmetic > plain.sensitivity.arithmetic
    assert plan_of(design, roundings=7).sensitivity.rounding == 7 * plain.sensitivity.rounding


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-6), (math.nan, 1e-6), (1.0, 0.0), (1.0, 1.0), (None, 1e-6), (True, 1e-6)]
)
def test_no_plan_without_a_budget(epsilon: Any, delta: float) -> None:
    with pytest.raises(InvalidBudget):
        plan_of(design_of(1), epsilon=epsilon, delta=delta)


def test_a_charge_says_what_the_release_costs() -> None:
    plan = plan_of(design_of(4), delta=1e-5)
    charge = plan.charge("first", simulated=True)
    assert charge.gaussian_mus == (plan.mu,)
    assert (charge.epsilon, charge.delta, charge.label, charge.simulated) == (1.0, 1e-5, "first", True)
    assert (charge.extra_delta, charge.slack) == (plan.extra_delta, plan.slack)
    assert charge.columns == NAMES[:4]


# -- the vector ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3, 4])
def test_the_sum_is_rounded_to_the_nearest_point_of_the_lattice(d: int) -> None:
    design = design_of(d)
    plan = plan_of(design)
    total, sums = feature_sum(design, np.random.default_rng(0).uniform(0, 4, (d, 50)))
    exact = to_lattice(plan, total, sums)
    assert exact.dtype == np.int64
    root = np.sqrt(design.pair_weights)
    vector = np.concatenate([[math.sqrt(design.zero_weight) * total], root * sums.real, root * sums.imag])
    assert np.abs(exact * plan.step - vector).max() <= plan.step / 2
    assert len(exact) == plan.length == 1 + 2 * design.n_pairs


@pytest.mark.parametrize("seed", [None, 4])
def test_what_is_released_are_multiples_of_the_step(seed: int | None) -> None:
    plan = plan_of(design_of(2))
    exact = np.arange(plan.length, dtype=np.int64) * 1_000_003
    released = add_noise(plan, exact, seed)
    in_steps = released / plan.step
    np.testing.assert_array_equal(in_steps, np.rint(in_steps))
    z = (in_steps - exact) * plan.step / plan.noise_scale
    assert abs((z**2).mean() - 1) < 5 * math.sqrt(2 / plan.length)
    np.testing.assert_array_equal(exact, np.arange(plan.length) * 1_000_003)


def test_the_released_low_digits_say_nothing_of_the_sum() -> None:
    """The lattice position of the sum, modulo any power of two, is hidden by the noise."""
    plan = plan_of(design_of(2))
    digits = [
        np.rint(add_noise(plan, np.zeros(plan.length, np.int64), None) / plan.step).astype(np.int64) % 8
        for _ in range(6)
    ]
    counts = np.bincount(np.concatenate(digits), minlength=8)
    assert stats.chisquare(counts).pvalue > 1e-6


def test_only_a_seed_repeats_a_release() -> None:
    plan = plan_of(design_of(1))
    exact = np.zeros(plan.length, np.int64)
    np.testing.assert_array_equal(add_noise(plan, exact, 9), add_noise(plan, exact, 9))
    assert not np.array_equal(add_noise(plan, exact, 9), add_noise(plan, exact, 8))
    assert not np.array_equal(add_noise(plan, exact, None), add_noise(plan, exact, None))


# -- the noise in density units ---------------------------------------------------------------------------


def deviation(
    design: Design, plan: ReleasePlan, exact: np.ndarray, seed: int | None, point: np.ndarray
) -> float:
    """Return the squared length of the noise in (density, gradient, Hessian), whitened by the formula."""
    n = 5000
    spent = PrivacySpent(
        epsilon=plan.epsilon,
        delta=plan.delta,
        adjacency="replace",
        unit="row",
        mechanism="surface",
        sensitivity=plan.sensitivity.total,
        noise_scale=plan.noise_scale,
        n_units=n,
        bounds={},
    )
    released = ReleasedSurface.from_vector(design, add_noise(plan, exact, seed), spent)
    # What the same release would be without noise, divided by the same released total.
    m = design.n_pairs
    clean = (exact[1 : m + 1] + 1j * exact[m + 1 :]) * plan.step
    phi = clean / (np.sqrt(design.pair_weights) * released.n_effective)
    truth = spectral_surface(design, phi, np.zeros(m), released.n_effective)
    parts = []
    for one, other in zip(released.derivatives(point), truth.derivatives(point), strict=True):
        parts.append(one[0] - other[0])
    d = design.dimension
    upper = np.triu_indices(d)
    noise = released.noise
    first = float(parts[0]) ** 2 / noise.value
    gradient = parts[1] @ np.linalg.solve(noise.gradient, parts[1])
    # The Hessian given the density, with which it is correlated.
    slope = noise.value_hessian[upper] / noise.value
    rest = parts[2][upper] - slope * parts[0]
    covariance = noise.hessian[upper][:, upper[0], upper[1]] - noise.value * np.outer(slope, slope)
    return float(first + gradient + rest @ np.linalg.solve(covariance, rest))


@pytest.mark.parametrize(("real", "releases"), [(False, 250), (True, 40)], ids=["seeded", "real"])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_released_noise_has_the_stated_covariance(d: int, real: bool, releases: int) -> None:
    design = LatticeDesign(NAMES[:3], [0] * 3, [1.5] * 3, [1] * 3) if d == 3 else design_of(d, n_pairs=1100)
    plan = plan_of(design, units_per_sum=5000, depth=5000, largest_total=5000)
    # Random features: so few records that the read-off error does not show beside the noise.
    x = np.random.default_rng(d).uniform(0, 1.5, (d, 5000 if d < 4 else 30))
    exact = to_lattice(plan, *feature_sum(design, x))
    point = np.full((1, d), 0.8)
    squares = [deviation(design, plan, exact, None if real else s, point) for s in range(releases)]
    freedom = 1 + d + d * (d + 1) // 2
    total = stats.chi2(freedom * releases)
    threshold = 1e-6 if real else 1e-4
    assert total.cdf(sum(squares)) > threshold
    assert total.sf(sum(squares)) > threshold
    assert stats.kstest(squares, stats.chi2(freedom).cdf).pvalue > threshold


def test_a_plan_is_a_frozen_value() -> None:
    plan = plan_of(design_of(1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.noise_scale = 0.0  # type: ignore[misc]
