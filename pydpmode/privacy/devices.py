"""Where the sums of a surface are computed: refused, or tried on made-up points, before anything is charged.

Guarantee. A release on a device has the margin in Delta that `features.device_tolerance` proves for
arithmetic in double precision. The proof says nothing about a device or a library that computes otherwise (in
single precision, or with emulated double precision), so each release first compares the device's sums with
the processor's, for its own design, at public points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, PydpmodeError
from ..numerics.designs import MAX_LATTICE_DIMENSION, Design, LatticeDesign, RandomDesign
from ..numerics.device_sums import DeviceSums, cupy_module, numpy_module, turn_scale
from ..numerics.fourier_sums import ComplexArray
from ..numerics.surfaces import FloatArray
from .dask_source import is_dask
from .features import device_tolerance
from .table_options import check_choice

DEVICES = ("cpu", "cuda")

# Points of the comparison: several matrix products, the last one not full.
_POINTS = 1500
# Frequencies whose sums are also compared with sums rounded once.
_ROUNDED_ONCE = 64
_SEED = 20261130


def open_device(device: object, data: object) -> DeviceSums | None:
    """Return the device's sums, or None for the processor's. Reads no row.

    Parameters
    ----------
    device : {"cpu", "cuda"}
    data : table
        As given to `PrivateData`.

    Raises
    ------
    InvalidArgument
        On another device, none that works, or Dask data, which are summed where they are.
    MissingDependency
        When CuPy is missing.
    """
    check_choice("device", device, DEVICES)
    if device == "cpu":
        return None
    if is_dask(data):
        raise InvalidArgument(
            "device='cuda' is for rows that are read in this process, and the sums of Dask data are computed "
            "on Dask's workers; leave device out"
        )
    return DeviceSums(cupy_module())


def refuse_device(sums: DeviceSums | None, what: str) -> None:
    """Refuse a release that has no sums for a device.

    Raises
    ------
    InvalidArgument
    """
    if sums is not None:
        raise InvalidArgument(
            f"{what} runs on the processor only; open the same rows and ledger without device='cuda'"
        )


def try_device(sums: DeviceSums | None, dimension: int) -> None:
    """Compare the device's sums with the processor's for a design of no release; see `check_device`.

    For releases in several steps, whose last design is not known before the first charge.
    """
    if sums is not None:
        names, end = tuple(str(k) for k in range(dimension)), np.ones(dimension)
        kind = LatticeDesign if dimension <= MAX_LATTICE_DIMENSION else RandomDesign
        check_device(sums, kind(names, -end, end, 0.5 * end, 2, 0.1))


def check_device(sums: DeviceSums, design: Design) -> None:
    """Compare the device's sums with the processor's at made-up points; no row is read.

    The points are pseudo-random with random weights (rounding errors that mostly cancel), and one point
    repeated (rounding errors that add up). All coefficients together must agree with those that NumPy
    computes in the same way, and some with sums that are rounded once (`math.fsum`), each within twice the
    proved bound, as either side may err by it.

    Raises
    ------
    InvalidArgument
        When they do not, when the device's memory is too small, or when the device fails.
    """
    tolerance = device_tolerance(design, _POINTS)
    try:
        sums.check_memory(design)
        found = [_difference(sums, design, points, weights) for points, weights in _made_up(design)]
    except PydpmodeError:
        raise
    except Exception as problem:
        # No row is at hand here, so the library's own words can be shown.
        raise InvalidArgument(
            f"device='cuda': {sums.name} fails at made-up points ({type(problem).__name__}: {problem}); "
            "check the installation of CuPy, or use device='cpu'"
        ) from problem
    # NumPy's maximum keeps NaN, which is not within the bound either.
    worst = float(np.max(found)) / tolerance
    if not worst <= 2:
        raise InvalidArgument(
            f"device='cuda': at made-up points the sums of {sums.name} differ from the processor's by "
            f"{worst / 2:.2g} times what double precision allows. It may compute in lower precision, or "
            "emulate double precision (is CUBLAS_EMULATE_DOUBLE_PRECISION set?). The guarantee holds for "
            "double precision only, so the release is refused; use device='cpu'"
        )


def _made_up(design: Design) -> Iterator[tuple[FloatArray, FloatArray | None]]:
    generator = np.random.Generator(np.random.PCG64(_SEED))
    width = (design.upper - design.lower)[:, None]
    low = design.lower[:, None]
    inside = np.minimum(low + width * generator.random((design.dimension, _POINTS)), design.upper[:, None])
    yield inside, generator.random(_POINTS)
    yield np.repeat(inside[:, :1], _POINTS, axis=1), None


def _difference(sums: DeviceSums, design: Design, points: FloatArray, weights: FloatArray | None) -> float:
    """Return the largest difference of the device's sums to the processor's, over the total weight."""
    total, found = sums.feature_sum(design, points, weights)
    plain_total, plain = DeviceSums(numpy_module()).feature_sum(design, points, weights)
    squared = design.zero_weight * (total - plain_total) ** 2
    squared += float(np.sum(design.pair_weights * np.abs(found - plain) ** 2))
    some = np.unique(np.linspace(0, design.n_pairs - 1, _ROUNDED_ONCE).astype(np.int64))
    rounded_once = np.abs(found[some] - sums_rounded_once(design, points, weights, some))
    mass = points.shape[1] if weights is None else math.fsum(weights)
    return float(np.max([np.sqrt(squared), *rounded_once])) / mass


def sums_rounded_once(
    design: Design, points: FloatArray, weights: FloatArray | None, pairs: NDArray[np.int64]
) -> ComplexArray:
    """Return the feature sums of some pairs, (m,), from the processor's sines and cosines, rounded once.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
    points : (d, b) array
    weights : (b,) array or None
    pairs : (m,) array of int
        Numbers of pairs of the design.
    """
    out = np.empty(pairs.size, dtype=np.complex128)
    for j, phase in enumerate(_phases(design, points, pairs)):
        cosine, sine = np.cos(phase), np.sin(phase)
        if weights is not None:
            cosine, sine = weights * cosine, weights * sine
        out[j] = complex(math.fsum(cosine), math.fsum(sine))
    return out


def _phases(design: Design, points: FloatArray, pairs: NDArray[np.int64]) -> Iterator[FloatArray]:
    if isinstance(design, RandomDesign):
        z = (points - design.lower[:, None]) / design.bandwidth[:, None]
        yield from (frequency @ z for frequency in design.frequencies[pairs])
    else:
        yield from _lattice_phases(design, points, pairs)


def _lattice_phases(
    design: LatticeDesign, points: FloatArray, pairs: NDArray[np.int64]
) -> Iterator[FloatArray]:
    """Yield the phases of each pair, reduced in whole numbers before anything is rounded."""
    places = np.rint((points - design.lower[:, None]) * turn_scale(design)[:, None]).astype(np.int64)
    grid = np.array(np.unravel_index(design.pair_index[pairs], design.half_shape))
    grid[1:] -= design.half_sizes[1:, None]
    for multiples in grid.T:
        # Modulo 2^64 by nature, then 2^-53 turns by the shift: the sum of all axes is exact.
        turns = (multiples[:, None] * places).sum(axis=0) << 11
        yield turns.astype(np.float64) * (math.pi * 2.0**-63)
