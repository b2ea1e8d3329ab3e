"""Moments in a ball, and components of a matrix with white noise, against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.moments import Ball, NoisyMoments, as_matrix, moment_sums
from pydpmode.numerics.principal_components import leading_components


def symmetric_noise(generator: np.random.Generator, d: int, sd: float) -> np.ndarray:
    noise = generator.normal(size=(d, d)) * sd
    return (noise + noise.T) / 2


def test_the_vector_of_second_moments_has_the_matrix_norm() -> None:
    u = np.random.default_rng(0).normal(size=(4, 50)) / 5
    weights = np.linspace(0, 1, 50)
    vector = moment_sums(u, weights, 2)
    matrix = (u * weights) @ u.T
    np.testing.assert_allclose(as_matrix(vector), matrix, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(vector), np.linalg.norm(matrix))
    np.testing.assert_allclose(moment_sums(u, None, 1), u.sum(axis=1))


def test_rows_are_moved_to_the_ball_along_their_ray() -> None:
    ball = Ball(np.array([1.0, 0.0]), np.array([2.0, 1.0]), 5.0)
    np.testing.assert_allclose(
        ball.unit(np.array([[1.0, 7.0, 13.0], [0.0, 4.0, 8.0]])).T, [[0, 0], [0.6, 0.8], [0.6, 0.8]]
    )
    assert ball.reach(np.array([-5.0, -4.0]), np.array([3.0, 4.0])) == 5.0
    np.testing.assert_allclose(ball.distances(np.array([[1.0, 7.0], [0.0, 4.0]])), [0.0, 5.0])


@pytest.mark.parametrize(
    ("centre", "scale", "radius"),
    [
        ([0.0], [0.0], 1.0),
        ([0.0], [1.0, 2.0], 1.0),
        ([math.nan], [1.0], 1.0),
        ([0.0], [1.0], math.inf),
        ([0.0], [1.0], 0.0),
    ],
)
def test_what_is_no_ball(centre: list[float], scale: list[float], radius: float) -> None:
    with pytest.raises(InvalidArgument):
        Ball(np.array(centre), np.array(scale), radius)


@pytest.mark.parametrize(("total", "records"), [(95.0, 100.0), (70.0, 70.0), (130.0, 100.0), (-3.0, 1.0)])
def test_the_public_number_is_used_where_the_released_one_agrees(total: float, records: float) -> None:
    assert NoisyMoments(1, total, 4.0, np.zeros(2), 1.0, 100).records == records
    assert NoisyMoments(1, 130.0, 4.0, np.zeros(2), 1.0, None).records == 130.0


@pytest.mark.parametrize("sd", [0.05, 0.15, 0.3])
def test_variances_are_unbiased_and_errors_hold(sd: float) -> None:
    generator = np.random.default_rng(1)
    exact = np.concatenate([[6.0, 5, 4, 3], np.linspace(1, 0, 40)])
    found = [
        leading_components(np.diag(exact) + symmetric_noise(generator, 44, sd), sd, 4) for _ in range(150)
    ]
    variances = np.array([c.variances for c in found])
    observed = np.array([c.observed[:4] for c in found])
    error = sd / math.sqrt(150)
    assert np.abs(variances.mean(axis=0) - exact[:4]).max() < max(5 * error, 0.05 * sd)
    # Without the correction the last one is off by more.
    assert observed.mean(axis=0)[3] - exact[3] > 2 * abs(variances.mean(axis=0)[3] - exact[3])
    assert (0.7 * sd < variances.std(axis=0)).all()
    assert (variances.std(axis=0) < 1.3 * sd).all()
    turned = np.array([np.arccos(np.minimum(np.abs(np.diag(c.vectors[:, :4])), 1)) for c in found])
    expected = np.mean([c.angles for c in found], axis=0)
    np.testing.assert_allclose(np.sqrt(np.mean(turned**2, axis=0)), expected, rtol=0.3)


def test_pure_noise_is_not_clear_and_signal_is() -> None:
    generator = np.random.default_rng(2)
    noise = [leading_components(symmetric_noise(generator, 60, 1.0), 1.0, 2) for _ in range(40)]
    assert np.mean([c.clear[0] for c in noise]) < 0.2
    spike = np.zeros((60, 60))
    spike[0, 0] = 20.0
    assert leading_components(spike + symmetric_noise(generator, 60, 1.0), 1.0, 2).clear.tolist() == [
        True,
        False,
    ]


def test_without_noise_it_is_the_eigendecomposition() -> None:
    matrix = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.5]])
    found = leading_components(matrix, 0.0, 2)
    np.testing.assert_allclose(found.variances, [3, 1])
    np.testing.assert_allclose(found.vectors[0], [math.sqrt(0.5), math.sqrt(0.5), 0], atol=1e-12)
    np.testing.assert_allclose(found.angles, 0)
    assert found.total == 4.5
    np.testing.assert_allclose(leading_components(matrix, 0.0, 3).variances, [3, 1, 0.5])


def test_variances_stay_positive_and_decreasing() -> None:
    generator = np.random.default_rng(5)
    for _ in range(50):
        found = leading_components(symmetric_noise(generator, 12, 1.0), 1.0, 12)
        assert (found.variances > 0).all()
        assert (np.diff(found.variances) <= 0).all()
        assert np.isfinite(found.angles).all()
