"""Two sums that every spectral surface needs: over a separable lattice, and over a box."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .surfaces import FloatArray

ComplexArray = NDArray[np.complex128]


def contract_phases(
    dense: ComplexArray, phases: Sequence[ComplexArray], degree: int
) -> dict[tuple[int, ...], FloatArray]:
    """Contract the lattice with per-axis phases; return Re sums by derivative order per axis.

    `phases[a]` has shape (degree + 1, m, n_a). Keys are tuples of derivative orders summing to at
    most `degree`.
    """
    m = phases[0].shape[1]
    # Level by level from the last axis: values are arrays (..., n_axis, m) per tuple of orders.
    level: dict[tuple[int, ...], ComplexArray] = {}
    if len(phases) == 1:
        return {(p,): np.real(phases[0][p] @ dense) for p in range(degree + 1)}
    last = phases[-1]
    flat = dense.reshape(-1, dense.shape[-1]) @ last.reshape(-1, last.shape[-1]).T
    cube = flat.reshape(*dense.shape[:-1], degree + 1, m)
    for p in range(degree + 1):
        level[(p,)] = cube[..., p, :]
    for axis in range(len(phases) - 2, 0, -1):
        level = {
            (p, *orders): np.einsum("...jm,mj->...m", values, phases[axis][p])
            for orders, values in level.items()
            for p in range(degree + 1 - sum(orders))
        }
    return {
        (p, *orders): np.real(np.einsum("jm,mj->m", values, phases[0][p]))
        for orders, values in level.items()
        for p in range(degree + 1 - sum(orders))
    }


def box_factors(frequencies: FloatArray, a: FloatArray, b: FloatArray) -> ComplexArray:
    """Return `int_a^b exp(-i w x) dx` for each frequency and axis, (M, d)."""
    middle, half = (a + b) / 2, (b - a) / 2
    # Sine over its argument is stable at w = 0, unlike the difference of exponentials.
    return np.asarray(
        np.exp(-1j * frequencies * middle) * 2 * half * np.sinc(frequencies * half / np.pi),
        dtype=np.complex128,
    )
