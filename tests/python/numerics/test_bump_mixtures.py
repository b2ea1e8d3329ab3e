from __future__ import annotations

import numpy as np
import pytest

from pydpmode.numerics.bump_mixtures import Bumps, climb_bumps, gradient_responses, read_bumps

SMOOTHING = {1: np.array([0.6]), 2: np.array([0.5, 0.9]), 3: np.array([0.5, 0.9, 0.3])}


def random_bumps(d: int, count: int = 4) -> Bumps:
    random = np.random.default_rng(d)
    return Bumps(
        random.uniform(0.2, 1.0, count),
        random.uniform(-2, 2, (count, d)),
        np.log(random.uniform(0.5, 1.5, (count, d))),
    )


def value(bumps: Bumps, points: np.ndarray, smoothing: np.ndarray) -> np.ndarray:
    return read_bumps(bumps, points, smoothing).parts.sum(axis=1)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_derivatives_are_those_of_the_value(d: int) -> None:
    bumps, smoothing, step = random_bumps(d), SMOOTHING[d], 1e-5
    points = np.random.default_rng(9).uniform(-2, 2, (5, d))
    at = read_bumps(bumps, points, smoothing)
    for a in range(d):
        move = step * np.eye(d)[a]
        up, down = points + move, points - move
        slope = (value(bumps, up, smoothing) - value(bumps, down, smoothing)) / (2 * step)
        np.testing.assert_allclose(at.gradient[:, a], slope, rtol=1e-6, atol=1e-9)
        bend = (read_bumps(bumps, up, smoothing).gradient - read_bumps(bumps, down, smoothing).gradient) / (
            2 * step
        )
        np.testing.assert_allclose(at.hessian[:, a], bend, rtol=1e-6, atol=1e-9)


def test_a_bump_holds_its_weight_and_smoothing_widens_it() -> None:
    bumps = Bumps(np.array([0.7]), np.array([[3.0, 4.0]]), np.log(np.array([[0.8, 0.6]])))
    axes = [np.linspace(-5, 11, 161), np.linspace(-5, 13, 181)]
    mass = bumps.on_grid(axes, np.array([0.5, 0.5])).sum() * 0.1 * 0.1
    assert mass == pytest.approx(0.7, rel=1e-9)
    np.testing.assert_allclose(bumps.squared_widths(np.array([0.6, 0.8])), [[1.0, 1.0]])


@pytest.mark.parametrize("d", [1, 2, 3])
def test_grid_and_points_agree(d: int) -> None:
    bumps, smoothing = random_bumps(d), SMOOTHING[d]
    axes = [np.linspace(-1, 1, 3 + a) for a in range(d)]
    points = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    np.testing.assert_allclose(bumps.on_grid(axes, smoothing), value(bumps, points, smoothing), rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_responses_are_derivatives_in_the_parameters(d: int) -> None:
    bumps, smoothing, step = random_bumps(d), SMOOTHING[d], 1e-6
    points = np.random.default_rng(5).uniform(-1, 1, (3, d))
    at = read_bumps(bumps, points, smoothing)
    responses = gradient_responses(bumps, at)
    k = bumps.count

    def moved(flat: np.ndarray) -> np.ndarray:
        centres, widths = flat[k : k + k * d].reshape(d, k).T, flat[k + k * d :].reshape(d, k).T
        return read_bumps(Bumps(flat[:k], centres, widths), points, smoothing).gradient

    flat = np.concatenate([bumps.weights, bumps.centres.T.ravel(), bumps.log_widths.T.ravel()])
    assert responses.shape == (3, d, flat.size)
    for p in range(flat.size):
        change = step * np.eye(flat.size)[p]
        numeric = (moved(flat + change) - moved(flat - change)) / (2 * step)
        np.testing.assert_allclose(responses[:, :, p], numeric, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_climbs_end_where_the_gradient_vanishes(d: int) -> None:
    bumps, smoothing = random_bumps(d), SMOOTHING[d]
    starts = np.random.default_rng(3).uniform(-3, 3, (6, d))
    ends, peaks = climb_bumps(bumps, starts, smoothing)
    at = read_bumps(bumps, ends, smoothing)
    assert peaks.all()
    np.testing.assert_allclose(at.gradient, 0, atol=1e-8)
    assert np.all(np.linalg.eigvalsh(at.hessian) < 0)
    assert np.all(value(bumps, ends, smoothing) >= value(bumps, starts, smoothing))


def test_far_from_every_bump_a_climb_is_no_peak() -> None:
    bumps = Bumps(np.array([1.0]), np.zeros((1, 1)), np.zeros((1, 1)))
    _, peaks = climb_bumps(bumps, np.array([[1e3]]), np.array([0.5]))
    assert not peaks[0]


def test_bumps_can_be_added_and_left_out() -> None:
    bumps = Bumps.none(2).plus(np.array([1.0, 2.0]), np.ones((2, 2)), np.zeros((2, 2)))
    assert (Bumps.none(2).count, bumps.count, bumps.dimension) == (0, 2, 2)
    assert bumps.only(np.array([False, True])).weights.tolist() == [2.0]
