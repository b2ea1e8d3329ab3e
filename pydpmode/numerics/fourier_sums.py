"""Sums that spectral surfaces need: over a separable lattice, over a box, and on a grid of any size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .surfaces import FloatArray

ComplexArray = NDArray[np.complex128]

# Entries of the largest matrix of phases of one coordinate; beyond it a grid is read by FINUFFT.
LARGEST_PHASES = 8_000_000
_POINTS_AT_ONCE = 4_000_000
_TOLERANCE = 1e-10


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


def too_large_for_products(grid: Sequence[FloatArray], frequencies: Sequence[FloatArray]) -> bool:
    """Return whether a matrix of phases of one coordinate would hold too many numbers."""
    return max(x.size * w.size for x, w in zip(grid, frequencies, strict=True)) > LARGEST_PHASES


def half_lattice_on_grid(dense: ComplexArray, angles: Sequence[FloatArray]) -> FloatArray:
    """Return `Re sum_j c_j exp(-i j.a)` on a product grid by FINUFFT, to a relative 1e-10.

    Parameters
    ----------
    dense : (J_1 + 1, 2 J_2 + 1, ...) complex array
        Coefficients of a half lattice: first index from 0, the other ones from `-J_a`.
    angles : d arrays
        Axes of the grid, as angles: a period of the lattice is `2 pi`.
    """
    import finufft

    d, half = dense.ndim, dense.shape[0] - 1
    full = np.zeros((2 * half + 1, *dense.shape[1:]), dtype=np.complex128)
    full[half:] = dense
    transform = (finufft.nufft1d2, finufft.nufft2d2, finufft.nufft3d2)[d - 1]
    shape = tuple(a.size for a in angles)
    out = np.empty(int(np.prod(shape, dtype=np.int64)))
    for start in range(0, out.size, _POINTS_AT_ONCE):
        index = np.unravel_index(np.arange(start, min(out.size, start + _POINTS_AT_ONCE)), shape)
        points = [np.ascontiguousarray(a[i]) for a, i in zip(angles, index, strict=True)]
        # One thread: the bits do not depend on the number of cores.
        values = transform(*points, full, isign=-1, eps=_TOLERANCE, nthreads=1)
        out[start : start + points[0].size] = values.real
    return out.reshape(shape)
