"""Norms of the kernel in the noise's own space, against the published table and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from pydpmode import errors
from pydpmode.numerics.correlated_noise import (
    NUGGET,
    Whitening,
    noise_covariance,
    roughness_integrals,
    shift_factors,
)

# I_0, I_1, c_0, c_1 of the design document, orders 2 and 4.
TABLE = {
    (2, 1): (0.21157109, 0.17630924, 1.4524, 1.7420),
    (2, 2): (0.038861792, 0.070957836, 1.4506, 1.5400),
    (2, 3): (0.0069222463, 0.019761897, 1.4424, 1.4779),
    (2, 4): (0.0012125369, 0.0047075063, 1.4344, 1.4508),
    (2, 5): (2.0963333e-4, 0.0010278396, 1.4283, 1.4367),
    (2, 6): (3.5863087e-5, 2.1224262e-4, 1.4240, 1.4287),
    (4, 1): (0.480443, 0.844081, 1.5815, 1.8024),
    (4, 2): (0.163884, 0.511917, 1.5100, 1.5703),
    (4, 3): (0.0465716, 0.201157, 1.4711, 1.4948),
    (4, 4): (0.0118223, 0.0643092, 1.4494, 1.4607),
}


@pytest.mark.parametrize(("order", "dimension"), list(TABLE))
def test_integrals_and_factors_are_those_of_the_table(order: int, dimension: int) -> None:
    i0, i1, c0, c1 = TABLE[order, dimension]
    # To the last printed digit.
    np.testing.assert_allclose(roughness_integrals(dimension, order), (i0, i1), rtol=5e-6)
    np.testing.assert_allclose(shift_factors(dimension, order), (c0, c1), atol=6e-5)


def test_integrals_by_quadrature_in_one_dimension() -> None:
    """The definition: squared spectrum over the spectral density of exp(-|x|), 1/(pi (1 + w^2))."""
    for power, expected in enumerate(roughness_integrals(1)):
        value, _ = integrate.quad(
            lambda w, p=power: w ** (2 * p) * math.exp(-w * w) * math.pi * (1 + w * w) / (2 * math.pi) ** 2,
            -np.inf,
            np.inf,
        )
        assert value == pytest.approx(expected, rel=1e-9)


def test_factors_are_never_below_what_a_search_finds() -> None:
    """One dimension, where the inner products have a closed form by quadrature at many distances."""
    for power, factor in enumerate(shift_factors(1)):
        w, weight = np.polynomial.legendre.leggauss(400)
        w, weight = 8 * w, 8 * weight
        density = weight * w ** (2 * power) * np.exp(-w * w) * (1 + w * w)
        t = np.linspace(0, 12, 60_001)
        correlation = np.cos(np.outer(t, w)) @ density / density.sum()
        found = math.sqrt(2 * (1 - correlation.min()))
        assert found <= factor <= found * (1 + 1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_a_dense_set_of_points_comes_close_to_the_norm(dimension: int) -> None:
    """The finite-dimensional norm grows towards the function's own as points fill space."""
    sides = {1: 81, 2: 17, 3: 7}[dimension]
    reach = {1: 5.0, 2: 3.2, 3: 2.0}[dimension]
    axes = [np.linspace(-reach, reach, sides)] * dimension
    points = np.stack([m.ravel() for m in np.meshgrid(*axes)], axis=1)
    kernel = np.exp(-0.5 * np.sum(points**2, axis=1)) / (2 * math.pi) ** (dimension / 2)
    norm = float(kernel @ np.linalg.solve(noise_covariance(points), kernel))
    i0 = roughness_integrals(dimension)[0]
    assert {1: 0.99, 2: 0.9, 3: 0.75}[dimension] * i0 < norm < i0


@pytest.mark.parametrize(
    "points",
    [
        np.random.default_rng(1).normal(size=(40, 2)) * 3,
        np.zeros((6, 2)),
        np.array([[0.0], [1e-9], [1e-9], [5.0]]),
        np.array([[2.0, 2.0]]),
    ],
    ids=["spread", "all equal", "nearly equal", "one"],
)
def test_whitening_never_stretches_the_norm(points: np.ndarray) -> None:
    white = Whitening.correlated(points)
    k = points.shape[0]
    np.testing.assert_allclose(white.forward @ white.factor, np.eye(k), atol=1e-9)
    exact = noise_covariance(points) - NUGGET * np.eye(k)
    assert np.linalg.eigvalsh(white.forward @ exact @ white.forward.T)[-1] <= 1
    assert np.linalg.norm(white.forward, 2) <= Whitening.NORM
    # What is multiplied back has the covariance that it should have.
    np.testing.assert_allclose(white.factor @ white.factor.T, noise_covariance(points), rtol=1e-6, atol=1e-9)


def test_impossible_kernels_are_refused() -> None:
    with pytest.raises(errors.InvalidArgument, match="order 2 and 4"):
        roughness_integrals(2, 6)
    with pytest.raises(errors.InvalidArgument, match="dimension"):
        shift_factors(0)
