"""Modes from traces made by hand: filtering, merging, the regression field and its errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pydpmode import errors
from pydpmode.numerics.correlated_noise import noise_covariance
from pydpmode.numerics.noisy_trace import NoisyTrace
from pydpmode.numerics.trace_field import TraceField
from pydpmode.numerics.trace_modes import find_trace_modes, height_level

UNIT = np.zeros(2), np.ones(2)


def bumps(x: np.ndarray, centres: np.ndarray, width: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Value and gradient of equal Gaussian bumps at x (..., d)."""
    value, gradient = 0.0, 0.0
    for c in centres:
        one = np.exp(-0.5 * np.sum((x - c) ** 2, axis=-1) / width**2) / len(centres) * 0.1
        value = value + one
        gradient = gradient - one[..., None] * (x - c) / width**2
    return np.asarray(value), np.asarray(gradient)


def climb(
    starts: np.ndarray,
    centres: np.ndarray,
    *,
    sd: float = 0.0,
    rounds: int = 8,
    seed: int = 0,
    **changes: Any,
) -> NoisyTrace:
    """Noisy mean shift on known bumps: a trace as a release would leave it."""
    generator = np.random.default_rng(seed)
    k, d = starts.shape
    here, floor = starts, 0.002
    positions, densities, gradients, scores = [here], [], [], []
    for _ in range(rounds):
        value, gradient = bumps(here, centres)
        factor = np.linalg.cholesky(noise_covariance(here))
        value = value + sd * factor @ generator.normal(size=k)
        gradient = gradient + sd * factor @ generator.normal(size=(k, d))
        score = gradient / np.maximum(value, floor)[:, None]
        here = np.clip(here + score, 0, 20)
        for sink, item in ((positions, here), (densities, value), (gradients, gradient), (scores, score)):
            sink.append(item)
    parts: dict[str, Any] = {
        "positions": np.array(positions),
        "densities": np.array(densities),
        "gradients": np.array(gradients),
        "scores": np.array(scores),
        "density_sd": sd or 1e-6,
        "gradient_sd": sd or 1e-6,
        "correlated": True,
        "size": np.full(d, 20.0),
        "records": 1e5,
        "batch": 1e5,
        "smooth": True,
        "roughness": (0.08, 0.04),
        "step": 1.0,
        "clip": 1.0,
        "floor": floor,
    }
    return NoisyTrace(**(parts | changes))


TWO = np.array([[6.0, 6.0], [14.0, 13.0]])
STARTS = np.array([[4.0, 5.0], [7.5, 6.5], [6.0, 8.0], [13.0, 12.0], [15.5, 13.0], [14.0, 15.0]])


def nearest(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return np.min(np.linalg.norm(found[:, None] - truth[None], axis=2), axis=0)


# -- the published finish ------------------------------------------------------------------------------


def standing(ends: np.ndarray, densities: np.ndarray, sd: float = 0.001) -> NoisyTrace:
    """A trace of ascents that never move: its ends and densities are given."""
    rounds = 4
    k, d = ends.shape
    trace = climb(ends, ends[:1], rounds=rounds)
    return NoisyTrace(
        **{f: getattr(trace, f) for f in ("correlated", "size", "records", "batch", "smooth", "roughness")},
        positions=np.broadcast_to(ends, (rounds + 1, k, d)),
        densities=np.broadcast_to(densities, (rounds, k)),
        gradients=np.zeros((rounds, k, d)),
        scores=np.zeros((rounds, k, d)),
        density_sd=sd,
        gradient_sd=sd,
        step=1.0,
        clip=1.0,
        floor=0.01,
    )


def iterates(trace: NoisyTrace, **options: Any) -> Any:
    return find_trace_modes(trace, *UNIT, finish="iterates", **options)


def test_radius_merging_takes_the_mean_and_the_highest_first() -> None:
    ends = np.array([[2.0, 2.0], [2.4, 2.0], [2.0, 2.3], [9.0, 9.0]])
    modes = iterates(standing(ends, np.array([0.05, 0.04, 0.04, 0.09])))
    np.testing.assert_allclose(modes.locations, [[9.0, 9.0], [6.4 / 3, 6.3 / 3]])
    np.testing.assert_allclose(modes.densities, [0.09, 0.13 / 3])
    assert modes.diagnostics.merged == 2


def test_ascents_that_have_not_arrived_do_not_enter_the_mean() -> None:
    ends = np.array([[2.0, 2.0], [2.2, 2.0], [2.9, 2.0]])
    modes = iterates(standing(ends, np.array([0.05, 0.05, 0.03])))
    np.testing.assert_allclose(modes.locations, [[2.1, 2.0]])
    np.testing.assert_allclose(modes.densities, [0.05])


def test_ties_go_by_the_order_of_the_starts() -> None:
    # In a row, one radius apart: the first of equal weight takes its neighbour, the third stands alone.
    ends = np.array([[2.0, 2.0], [2.9, 2.0], [3.8, 2.0]])
    modes = iterates(standing(ends, np.full(3, 0.05)))
    np.testing.assert_allclose(modes.locations, [[2.45, 2.0], [3.8, 2.0]])


def test_one_start_and_all_starts_equal() -> None:
    one = iterates(standing(np.array([[3.0, 4.0]]), np.array([0.05])))
    np.testing.assert_allclose(one.locations, [[3.0, 4.0]])
    same = iterates(standing(np.full((5, 2), 7.0), np.full(5, 0.05)))
    np.testing.assert_allclose(same.locations, [[7.0, 7.0]])
    assert same.diagnostics.merged == 4
    wards = iterates(standing(np.full((5, 2), 7.0), np.full(5, 0.05)), n_modes=3)
    np.testing.assert_allclose(wards.locations, np.full((3, 2), 7.0))


def test_ward_merging_gives_the_number_asked_for() -> None:
    generator = np.random.default_rng(1)
    ends = np.concatenate([c + 0.6 * generator.normal(size=(6, 2)) for c in (TWO[0], TWO[1], [3.0, 17.0])])
    trace = standing(ends, np.full(18, 0.05))
    assert iterates(trace, n_modes=3).count == 3
    assert nearest(iterates(trace, n_modes=3).locations, np.array([*TWO, [3.0, 17.0]])).max() < 0.6
    assert iterates(trace, n_modes=30).count == 18


def test_starts_that_ended_in_noise_are_dropped() -> None:
    ends = np.array([[2.0, 2.0], [9.0, 9.0], [15.0, 3.0]])
    modes = iterates(standing(ends, np.array([0.05, 0.0008, -0.001])))
    np.testing.assert_allclose(modes.locations, [[2.0, 2.0]])
    assert modes.diagnostics.dropped_by_height == 2
    assert modes.significant.all()
    nothing = iterates(standing(ends, np.array([0.0003, 0.0008, -0.001])))
    np.testing.assert_allclose(nothing.locations, [[9.0, 9.0]])
    assert not nothing.significant.any()


def test_iterates_have_no_standard_errors_and_no_shares() -> None:
    modes = iterates(climb(STARTS, TWO, sd=1e-4))
    assert np.isnan(modes.covariance_privacy).all()
    assert np.isnan(modes.mass).all()
    assert not modes.reliable.any()


def test_the_height_filter_counts_the_points_looked_at() -> None:
    assert height_level(1, 0.5) == 3.0
    assert height_level(1000, 0.05) == pytest.approx(3.89, abs=0.01)


def test_scores_alone_are_merged_unfiltered() -> None:
    trace = climb(STARTS, TWO, rounds=20)
    blind = NoisyTrace(
        **{f: getattr(trace, f) for f in trace.__dataclass_fields__}
        | {
            "densities": np.full_like(trace.densities, np.nan),
            "gradients": np.full_like(trace.gradients, np.nan),
            "density_sd": math.nan,
            "gradient_sd": math.nan,
        }
    )
    modes = iterates(blind, n_modes=2)
    assert nearest(modes.locations, TWO).max() < 0.05
    assert np.isnan(modes.densities).all()
    with pytest.raises(errors.InvalidArgument, match="finish='iterates'"):
        find_trace_modes(blind, *UNIT)
    with pytest.raises(errors.InvalidArgument, match="finish must be one of"):
        find_trace_modes(trace, *UNIT, finish="mean")  # type: ignore[arg-type]


# -- the regression finish -----------------------------------------------------------------------------


def test_the_field_interpolates_and_its_derivatives_agree() -> None:
    trace = climb(STARTS, TWO)
    field = TraceField.fit(trace)
    points = trace.positions[:-1].reshape(-1, 2)
    value, gradient, _ = field.derivatives(points)
    np.testing.assert_allclose(value, trace.densities.ravel(), atol=2e-5)
    np.testing.assert_allclose(gradient, trace.gradients.reshape(-1, 2), atol=2e-5)
    at, step = STARTS + 0.3, 1e-5
    value, gradient, hessian = field.derivatives(at)
    np.testing.assert_allclose(field.values(at), value, rtol=1e-9, atol=1e-12)
    for a in range(2):
        up, down = field.derivatives(at + step * np.eye(2)[a]), field.derivatives(at - step * np.eye(2)[a])
        np.testing.assert_allclose((up[0] - down[0]) / (2 * step), gradient[:, a], atol=1e-8)
        np.testing.assert_allclose((up[1] - down[1]) / (2 * step), hessian[:, a], atol=1e-8)


def test_a_nearly_noiseless_trace_can_be_fitted() -> None:
    exact = climb(STARTS, TWO, rounds=12, density_sd=1e-14, gradient_sd=1e-14)
    assert nearest(find_trace_modes(exact, *UNIT).locations, TWO).max() < 0.05
    still = climb(np.full((4, 2), 6.0), TWO, rounds=6, density_sd=1e-14, gradient_sd=1e-14)
    assert np.isfinite(find_trace_modes(still, *UNIT).locations).all()


def test_the_field_knows_what_it_does_not_know() -> None:
    field = TraceField.fit(climb(STARTS, TWO, sd=2e-4))
    seen, far = field.value_variance(STARTS), field.value_variance(np.array([[19.0, 1.0]]))
    assert np.all(seen < 0.01 * far)
    assert far[0] == pytest.approx(field.variance, rel=0.05)


def test_two_modes_are_found_where_they_are() -> None:
    modes = find_trace_modes(climb(STARTS, TWO, sd=2e-4), *UNIT)
    assert modes.count == 2
    assert nearest(modes.locations, TWO).max() < 0.1
    assert modes.reliable.all()
    assert np.isinf(modes.persistence[0])
    assert 0 < modes.persistence[1] <= modes.densities[1]


def test_units_are_those_of_the_columns() -> None:
    trace = climb(STARTS, TWO, sd=2e-4)
    lower, h = np.array([100.0, -5.0]), np.array([2.0, 0.25])
    plain, scaled = find_trace_modes(trace, *UNIT), find_trace_modes(trace, lower, h)
    np.testing.assert_allclose(scaled.locations, lower + plain.locations * h)
    np.testing.assert_allclose(scaled.densities, plain.densities / 0.5)
    np.testing.assert_allclose(scaled.covariance_privacy, plain.covariance_privacy * np.outer(h, h))
    assert scaled.diagnostics.height_threshold == pytest.approx(plain.diagnostics.height_threshold / 0.5)


def test_the_number_asked_for_keeps_the_most_persistent() -> None:
    trace = climb(STARTS, TWO, sd=2e-4)
    assert find_trace_modes(trace, *UNIT, n_modes=1).count == 1
    # There are only two peaks that stand above zero for certain.
    assert find_trace_modes(trace, *UNIT, n_modes=2).count == 2


def test_a_trace_of_pure_noise_has_no_significant_mode() -> None:
    generator = np.random.default_rng(3)
    starts = generator.uniform(2, 18, size=(20, 2))
    found = [
        find_trace_modes(climb(starts, np.full((1, 2), 200.0), sd=1e-3, seed=s), *UNIT) for s in range(10)
    ]
    assert sum(modes.significant.any() for modes in found) <= 1


def test_standard_errors_are_those_of_repeated_traces() -> None:
    """Fresh noise on the same density: errors over stated standard errors are standard normal."""
    z = []
    for seed in range(40):
        modes = find_trace_modes(climb(STARTS, TWO, sd=6e-4, seed=seed), *UNIT, n_modes=2)
        for place, covariance in zip(modes.locations, modes.covariance_privacy, strict=True):
            off = place - TWO[np.argmin(np.linalg.norm(TWO - place, axis=1))]
            z.append(off / np.sqrt(np.diag(covariance)))
    # 160 values: the root mean square has standard error .06.
    assert 0.75 < float(np.sqrt(np.mean(np.square(z)))) < 1.3


def test_minibatches_add_the_noise_of_sampling() -> None:
    full = find_trace_modes(climb(STARTS, TWO, sd=2e-4), *UNIT, n_modes=2)
    part = find_trace_modes(climb(STARTS, TWO, sd=2e-4, records=1e5, batch=500.0), *UNIT, n_modes=2)
    ratio = part.covariance_privacy[:, 0, 0] / full.covariance_privacy[:, 0, 0]
    assert np.all(ratio > 3)


def test_diagnostics_of_the_rounds() -> None:
    trace = climb(STARTS, TWO, rounds=3)
    assert trace.shares_clipped().tolist() == [0.0, 0.0, 0.0]
    assert trace.shares_floored().shape == (3,)
    assert np.all(np.diff(trace.distances()) < 0)
    with pytest.raises(ValueError, match="read-only"):
        trace.positions[0] = 0.0
    with pytest.raises(errors.InvalidArgument, match="densities must have shape"):
        climb(STARTS, TWO, densities=np.zeros(3))
