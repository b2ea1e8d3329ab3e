"""Gaussian-based smoothing kernels of order 2, 4 and 6: spectra, infima and roughness.

Everything is in units of the bandwidth. The kernel of order 2r has the spectrum
`sum_{s<r} (|w|^2/2)^s / s! * exp(-|w|^2/2)` (value 1 at zero), so order 2 is the Gaussian density.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import InvalidArgument
from .surfaces import FloatArray

ORDERS = (2, 4, 6)


def check_order(order: object) -> int:
    """Return a kernel order that exists, or raise `InvalidArgument`."""
    if isinstance(order, bool) or not isinstance(order, int) or order not in ORDERS:
        raise InvalidArgument(f"order must be one of {ORDERS}, got {order!r}; order=2 is the Gaussian kernel")
    return order


def spectrum(order: int, squared_frequency: FloatArray) -> FloatArray:
    """Return the kernel's Fourier transform at `|w|^2`, any shape, in bandwidth units.

    Parameters
    ----------
    order : {2, 4, 6}
        Order of the kernel.
    squared_frequency : array
        `|w|^2`, where w is the frequency times the bandwidth.
    """
    half = squared_frequency / 2
    polynomial = np.ones_like(half)
    term = np.ones_like(half)
    for power in range(1, order // 2):
        term = term * half / power
        polynomial = polynomial + term
    return np.asarray(polynomial * np.exp(-half), dtype=np.float64)


def kernel_shape(order: int, dimension: int, squared_distance: FloatArray) -> FloatArray:
    """Return the kernel divided by its value at zero, at `|t|^2` in squared bandwidths.

    Orders 2 and 4 in closed form; order 4 is `(1 + (d - |t|^2)/2) / (1 + d/2) * exp(-|t|^2/2)`.
    """
    half = squared_distance / 2
    if order == 2:
        return np.asarray(np.exp(-half), dtype=np.float64)
    if order == 4:
        return np.asarray((1 + dimension / 2 - half) / (1 + dimension / 2) * np.exp(-half), dtype=np.float64)
    d = dimension
    laguerre1 = d / 2 - half
    laguerre2 = half**2 / 2 - (d / 2 + 1) * half + (d / 2) * (d / 2 + 1) / 2
    at_zero = 1 + d / 2 + (d / 2) * (d / 2 + 1) / 2
    return np.asarray((1 + laguerre1 + laguerre2) / at_zero * np.exp(-half), dtype=np.float64)


def kernel_infimum(order: int, dimension: int) -> float:
    """Return the infimum of `kernel_shape` over all of space.

    Order 2: 0. Order 4: `-(2/(d+2)) exp(-(d+4)/2)`, at `|t|^2 = d + 4` (set the derivative of the
    closed form to zero). Order 6: the derivative of the closed form is a quadratic in `|t|^2/2`;
    its smaller root is the minimum (checked against a fine grid in the tests).
    """
    if order == 2:
        return 0.0
    if order == 4:
        return -(2 / (dimension + 2)) * math.exp(-(dimension + 4) / 2)
    # For order 2r the derivative in s = |t|^2/2 is -exp(-s) L_{r-1}^{(d/2+1)}(s): here degree 2.
    alpha = dimension / 2 + 1
    roots = np.array([(alpha + 2) - math.sqrt(alpha + 2), (alpha + 2) + math.sqrt(alpha + 2)])
    return float(kernel_shape(6, dimension, 2 * roots).min())


def kernel_peak(order: int, dimension: int) -> float:
    """Return the kernel's value at zero in units of `1/prod(bandwidth)`."""
    base: float = (2 * math.pi) ** (-dimension / 2)
    half = dimension / 2
    return base * math.fsum(
        math.gamma(half + s) / math.gamma(half) / math.factorial(s) for s in range(order // 2)
    )


def squared_kernel_integrals(order: int, dimension: int) -> tuple[float, float]:
    """Return `int K^2` and `int (dK/dx_1)^2`, in bandwidth units (Plancherel's theorem).

    For order 2 they are `(4 pi)^{-d/2}` and half of it.
    """
    coefficients = np.array([1 / (2**s * math.factorial(s)) for s in range(order // 2)])
    square = np.convolve(coefficients, coefficients)
    half = dimension / 2
    scale = (4 * math.pi) ** (-half) / math.gamma(half)
    value = scale * sum(c * math.gamma(half + m) for m, c in enumerate(square))
    gradient = scale * sum(c * math.gamma(half + m + 1) for m, c in enumerate(square)) / dimension
    return float(value), float(gradient)
