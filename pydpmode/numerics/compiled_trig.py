"""Sine and cosine of many phases, compiled where numba is installed (extra `fast`), else NumPy's.

The compiled code evaluates Taylor polynomials after reduction to [-pi/2, pi/2], in plain double precision
without reordering of sums (`fastmath` is off), so the same numbers give the same bits on one machine.

Error. With `k` the whole number nearest to `x/pi` and `r = x - k pi`, `sin x = (-1)^k sin r`, and the same
for the cosine. The series alternate, so the polynomials to `r^17` and `r^18` err by at most
`(pi/2)^19/19! < 4.4e-14` and `(pi/2)^20/20! < 3.5e-15`; pi is subtracted in three parts, of which the first
two have exact products with `|k| < 2^20`; that and the rounding in the polynomials add less than 2e-15.
Together below `TRIG_ERROR`, measured in the tests, and far below the tolerance 1e-12 per record that
`privacy.features.arithmetic_margin` holds ready. The phases themselves are rounded before: see
`privacy.features.phase_error`.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from .surfaces import FloatArray

TRIG_ERROR = 5e-14
# Below so many pairs of sine and cosine NumPy is done before the compiled code is loaded.
WORTH_COMPILING = 20_000_000
_TILE = 512  # frequencies whose sums stay in the nearest cache
_MOST_HALF_TURNS = float(2**20)  # up to which the reduction is proven

_INVERSE_PI = 0.3183098861837907
_PI_HIGH = 3.1415926534682512  # pi in three parts: the first two have 33 bits or fewer
_PI_MIDDLE = 1.2154201012607932e-10
_PI_LOW = 4.044532497591901e-21
_MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding and subtracting it rounds to a whole number


@functools.cache
def has_compiler() -> bool:
    """Whether numba is installed and compiles here: one that does not fit another library fails at that."""
    if importlib.util.find_spec("numba") is None:
        return False
    one, sums = np.zeros((1, 1)), np.zeros((2, 1))
    try:
        _compiled()(one, np.ones(1), one, sums[0], sums[1])
    except Exception:
        return False
    return bool(sums[0, 0] == 1.0)


def _sum_phases(
    points: FloatArray, weights: FloatArray, frequencies: FloatArray, cosine: FloatArray, sine: FloatArray
) -> None:
    """Add `weight_i cos(w_j.z_i)` and the sines to `cosine` and `sine`; shapes as in `phase_sums`."""
    count, dimension = points.shape
    phase, cosines, sines = np.empty(_TILE), np.empty(_TILE), np.empty(_TILE)
    for start in range(0, cosine.size, _TILE):
        size = min(_TILE, cosine.size - start)
        cosines[:], sines[:] = 0.0, 0.0
        for i in range(count):
            weight = weights[i]
            # Inner loops of fixed form: the compiler turns them into vector instructions.
            for j in range(size):
                phase[j] = points[i, 0] * frequencies[0, start + j]
            for a in range(1, dimension):
                for j in range(size):
                    phase[j] += points[i, a] * frequencies[a, start + j]
            for j in range(size):
                x = phase[j]
                k = (x * _INVERSE_PI + _MAGIC) - _MAGIC
                half = 0.5 * k
                odd = half - ((half + _MAGIC) - _MAGIC)
                sign = weight * (1.0 - 8.0 * odd * odd)
                r = ((x - k * _PI_HIGH) - k * _PI_MIDDLE) - k * _PI_LOW
                q = r * r
                s = 2.8114572543455206e-15
                s = s * q - 7.647163731819816e-13
                s = s * q + 1.6059043836821613e-10
                s = s * q - 2.505210838544172e-08
                s = s * q + 2.7557319223985893e-06
                s = s * q - 0.0001984126984126984
                s = s * q + 0.008333333333333333
                s = s * q - 0.16666666666666666
                c = -1.5619206968586225e-16
                c = c * q + 4.779477332387385e-14
                c = c * q - 1.1470745597729725e-11
                c = c * q + 2.08767569878681e-09
                c = c * q - 2.755731922398589e-07
                c = c * q + 2.48015873015873e-05
                c = c * q - 0.001388888888888889
                c = c * q + 0.041666666666666664
                c = c * q - 0.5
                sines[j] += sign * (r + r * q * s)
                cosines[j] += sign * (1.0 + q * c)
        for j in range(size):
            cosine[start + j] += cosines[j]
            sine[start + j] += sines[j]


@functools.cache
def _compiled() -> Callable[..., None]:
    import numba

    compile_it: Any = numba.njit
    try:
        done: Callable[..., None] = compile_it(_sum_phases, cache=True, nogil=True)
    except RuntimeError:  # nowhere to keep the compiled code
        done = compile_it(_sum_phases, nogil=True)
    return done


def phase_sums(
    points: FloatArray, weights: FloatArray, frequencies: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return `sum_i weight_i cos(w_j.z_i)` and the same with sines, (D,) each, by the compiled code.

    Parameters
    ----------
    points : (b, d) array
    weights : (b,) array
    frequencies : (d, D) array
    """
    cosine, sine = np.zeros(frequencies.shape[1]), np.zeros(frequencies.shape[1])
    arrays = [np.ascontiguousarray(part) for part in (points, weights, frequencies)]
    _compiled()(*arrays, cosine, sine)
    return cosine, sine


def within_reduction(widths: FloatArray, frequencies: FloatArray) -> bool:
    """Whether every phase in a box of these widths is surely in the range that the reduction is proven for.

    Public: it depends on the box and on the frequencies (d, D), not on the points.
    """
    longest = np.sqrt((frequencies**2).sum(axis=0).max(initial=0.0))
    return bool(longest * np.linalg.norm(widths) < _MOST_HALF_TURNS)
