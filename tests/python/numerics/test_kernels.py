"""The kernels against their definition: Fourier inversion, quadrature, a fine search for the infimum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.kernels import (
    ORDERS,
    check_order,
    kernel_infimum,
    kernel_peak,
    kernel_shape,
    spectrum,
    squared_kernel_integrals,
)

DIMENSIONS = range(1, 9)


def radial(function: Any, dimension: int) -> float:
    """Return the integral over R^d of a function of |t|."""
    sphere = 2 * math.pi ** (dimension / 2) / math.gamma(dimension / 2)
    value, _ = integrate.quad(lambda r: function(r) * r ** (dimension - 1), 0, 40, epsabs=1e-13, limit=400)
    return sphere * value


def kernel(order: int, dimension: int, r: Any) -> Any:
    return kernel_peak(order, dimension) * kernel_shape(order, dimension, np.asarray(r) ** 2)


def inverted(order: int, dimension: int, distance: float) -> float:
    """Return the kernel at a distance by inverting its spectrum (a Hankel transform)."""
    half = dimension / 2 - 1

    def integrand(w: float) -> float:
        wave = (
            special.jv(half, w * distance) * (w * distance) ** (-half)
            if distance
            else 2**-half / math.gamma(half + 1)
        )
        return float(spectrum(order, np.array(w**2)) * w ** (dimension - 1) * wave)

    value, _ = integrate.quad(integrand, 0, 40, epsabs=1e-13, limit=400)
    return float(value * (2 * math.pi) ** (-dimension / 2))


@pytest.mark.parametrize("order", ORDERS)
def test_the_spectrum_is_one_and_flat_at_zero(order: int) -> None:
    w2 = np.array([0.0, 1e-2])
    value = spectrum(order, w2)
    assert value[0] == 1.0
    # Order 2r: 1 - |w|^(2r) / (2^r r!) + ..., so that the first 2r - 1 moments vanish.
    half = order // 2
    assert (1 - value[1]) == pytest.approx(1e-2**half / (2**half * math.factorial(half)), rel=0.01)


def test_order_2_is_the_gaussian() -> None:
    w2 = np.linspace(0, 50, 7)
    np.testing.assert_allclose(spectrum(2, w2), np.exp(-w2 / 2), rtol=1e-15)
    np.testing.assert_allclose(kernel_shape(2, 3, w2), np.exp(-w2 / 2), rtol=1e-15)
    assert kernel_peak(2, 3) == pytest.approx((2 * math.pi) ** -1.5, rel=1e-14)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_shape_and_peak_are_the_inverse_transform_of_the_spectrum(order: int, dimension: int) -> None:
    for distance in (0.0, 0.7, 2.5, 4.0):
        assert float(kernel(order, dimension, distance)) == pytest.approx(
            inverted(order, dimension, distance), abs=1e-10
        )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_kernel_integrates_to_one_and_its_low_moments_vanish(order: int, dimension: int) -> None:
    assert radial(lambda r: kernel(order, dimension, r), dimension) == pytest.approx(1, abs=1e-9)
    for power in range(2, order, 2):
        assert radial(lambda r, p=power: r**p * kernel(order, dimension, r), dimension) == pytest.approx(
            0, abs=1e-7
        )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_no_value_lies_below_the_infimum_and_it_is_reached(order: int, dimension: int) -> None:
    infimum = kernel_infimum(order, dimension)
    values = kernel_shape(order, dimension, np.linspace(0, 80, 800_001))
    assert values.min() >= infimum - 1e-15
    assert values.min() == pytest.approx(infimum, abs=1e-9)
    assert values[0] == pytest.approx(1.0, abs=1e-14)


def test_the_infima_of_the_design_notes() -> None:
    assert [round(kernel_infimum(4, d), 4) for d in (1, 2, 3)] == [-0.0547, -0.0249, -0.0121]
    assert [round(kernel_infimum(6, d), 4) for d in (1, 2, 3)] == [-0.0911, -0.0451, -0.0238]
    assert kernel_infimum(2, 5) == 0.0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
def test_roughness_against_quadrature(order: int, dimension: int) -> None:
    value, gradient = squared_kernel_integrals(order, dimension)
    assert value == pytest.approx(radial(lambda r: kernel(order, dimension, r) ** 2, dimension), rel=1e-9)
    step = 1e-5

    def slope(r: float) -> float:
        return float(kernel(order, dimension, r + step) - kernel(order, dimension, abs(r - step))) / (
            2 * step
        )

    # The gradient points outwards, so one coordinate has 1/d of its squared length.
    by_quadrature = radial(lambda r: slope(r) ** 2, dimension) / dimension
    assert gradient == pytest.approx(by_quadrature, rel=1e-6)


def test_roughness_of_the_gaussian_in_closed_form() -> None:
    for dimension in DIMENSIONS:
        value, gradient = squared_kernel_integrals(2, dimension)
        assert value == pytest.approx((4 * math.pi) ** (-dimension / 2), rel=1e-13)
        assert gradient == pytest.approx(value / 2, rel=1e-13)


@pytest.mark.parametrize("order", [0, 1, 3, 8, -2, True, "2", None, 2.5, math.nan], ids=repr)
def test_other_orders_are_refused(order: Any) -> None:
    with pytest.raises(InvalidArgument, match="order must be one of"):
        check_order(order)


@pytest.mark.parametrize("order", [2, 4, 6])
def test_orders_come_back_as_ints(order: Any) -> None:
    assert check_order(order) == order
    assert type(check_order(order)) is int
