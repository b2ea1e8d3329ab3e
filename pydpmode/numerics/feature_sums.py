"""Sums of feature vectors over a block of points: the only arithmetic that touches records.

For d <= 3 one type-1 non-uniform fast Fourier transform (FINUFFT; Barnett, Magland & af Klinteberg
2019); for d >= 4 sine and cosine of every phase, compiled where numba is installed (`compiled_trig`).
Each is linear in the records and deterministic: the same block gives the same bits, whatever runs beside it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled_trig import WORTH_COMPILING, has_compiler, phase_sums, within_reduction
from .designs import Design, LatticeDesign, RandomDesign
from .surfaces import FloatArray

# Requested accuracy of the transform, relative to the number of records in the block. The fast one
# is a quarter quicker; its margin in Delta is small only for blocks of bounded length.
TRANSFORM_TOLERANCE = 1e-12
FAST_TOLERANCE = 1e-9
# Upsampled grids up to this many points stay in the processor's cache: sorting the points is wasted.
_CACHED_GRID = 50_000
# Rows of the phase matrix formed at once when d >= 4: 1024 x 4096 doubles are 32 MB.
_ROWS = 1024


def feature_sum(
    design: Design,
    columns: FloatArray,
    weights: FloatArray | None = None,
    tolerance: float = TRANSFORM_TOLERANCE,
) -> tuple[float, NDArray[np.complex128]]:
    """Return the total weight and `sum_i weight_i exp(+i w_j.z_i)` over the pairs of `design`.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
        Frequencies, M pairs.
    columns : (d, b) array
        b points, one row per coordinate, in the columns' units and inside the box.
    weights : (b,) array, optional
        Weights in [0, 1]; ones when omitted.
    tolerance : float
        Requested accuracy of the transform (d <= 3), relative to the number of records.

    Returns
    -------
    total : float
    sums : (M,) complex array
    """
    n = columns.shape[1]
    total = float(n) if weights is None else float(np.sum(weights))
    if n == 0:
        return 0.0, np.zeros(design.n_pairs, dtype=np.complex128)
    if isinstance(design, LatticeDesign):
        return total, _lattice_sum(design, columns, weights, tolerance)
    return total, _random_sum(design, columns, weights)


def _lattice_sum(
    design: LatticeDesign, columns: FloatArray, weights: FloatArray | None, tolerance: float
) -> NDArray[np.complex128]:
    import finufft

    scale = 2 * np.pi / (design.sides * design.bandwidth)
    angles = [(column - low) * s for column, low, s in zip(columns, design.lower, scale, strict=True)]
    strengths = np.ones(columns.shape[1], np.complex128) if weights is None else weights.astype(np.complex128)
    shape = tuple(int(2 * j + 1) for j in design.half_sizes)
    transform = (finufft.nufft1d1, finufft.nufft2d1, finufft.nufft3d1)[design.dimension - 1]
    modes = shape[0] if design.dimension == 1 else shape
    sort = 0 if 2**design.dimension * np.prod(shape) <= _CACHED_GRID else 2
    # One thread: its order of summation is fixed, so the bits are too. Blocks run side by side.
    full = transform(*angles, strengths, modes, isign=1, eps=tolerance, nthreads=1, spread_sort=sort)
    half = np.ascontiguousarray(full[int(design.half_sizes[0]) :])
    return np.asarray(half.reshape(-1)[design.pair_index], dtype=np.complex128)


def _random_sum(
    design: RandomDesign, columns: FloatArray, weights: FloatArray | None
) -> NDArray[np.complex128]:
    z = ((columns.T - design.lower) / design.bandwidth).astype(np.float64, copy=False)
    transposed = np.ascontiguousarray(design.frequencies.T)
    if (
        z.shape[0] * design.n_pairs >= WORTH_COMPILING
        and within_reduction(design.widths, transposed)
        and has_compiler()
    ):
        cosine, sine = phase_sums(z, np.ones(z.shape[0]) if weights is None else weights, transposed)
        return cosine + 1j * sine
    total = np.zeros(design.n_pairs, dtype=np.complex128)
    for start in range(0, z.shape[0], _ROWS):
        phase = z[start : start + _ROWS] @ transposed
        if weights is None:
            total.real += np.cos(phase).sum(axis=0)
            total.imag += np.sin(phase).sum(axis=0)
        else:
            part = weights[start : start + _ROWS]
            total.real += part @ np.cos(phase)
            total.imag += part @ np.sin(phase)
    return total
