"""Feature sums by elementwise functions and real matrix products: the same lines for CuPy and NumPy.

Made for a GPU, where they run with CuPy as the array module. With NumPy in its place the same lines run on a
processor: in the tests, and as one side of the comparison before a release (`privacy.devices`).

Lattices. A place on a torus axis is rounded to a whole number `m` of 2^-53 turns, a function of the record
alone. The phase of frequency k is `k m` modulo 2^53 such units, exact in 64-bit whole numbers whatever k is,
and exact as a double. Cosines and sines of the axes' phases are then multiplied and summed over rows by ONE
matrix product: the first axis on the left, the products of the others on the right. The sums of
`exp(i k.theta)` follow from those of `cos cos`, `cos sin`, ..., for both signs of each k. One column is
written as two factors, `k = P a + b`, so that its cosines grow with the root of the number of frequencies.

Random frequencies. Phases by a matrix product, their cosines and sines, and a product with the weights.

Error. Only sums of products in double precision are formed, at most `GROUP` rows in a product; the products'
results are added. `privacy.features.device_tolerance` has the bound and its proof.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, MissingDependency
from .designs import Design, LatticeDesign, RandomDesign
from .fourier_sums import ComplexArray
from .surfaces import FloatArray

# Rows in one matrix product: what bounds the depth of its sums.
GROUP = 1024
# Largest memory of the device used at once, and the share of its free memory.
MOST_MEMORY = 2**30
_FREE_SHARE = 0.5

_TURN_BITS = 53
# Times a whole number of 2^-64 turns, read as signed: half turns in radians.
_RADIANS = math.pi * 2.0**-63


@dataclass(frozen=True)
class ArrayModule:
    """NumPy, or a library with NumPy's functions on a device.

    Parameters
    ----------
    xp : module
        `asarray`, `matmul`, `cos`, ...
    name : str
    to_host : callable
        Copies an array of the module into one of NumPy, when all of it has been computed.
    free_memory : callable
        Bytes that can be allocated.
    """

    xp: Any
    name: str
    to_host: Callable[[Any], FloatArray]
    free_memory: Callable[[], int]


def numpy_module() -> ArrayModule:
    """Return NumPy in the place of a device."""
    return ArrayModule(np, "NumPy", np.asarray, lambda: 2 * MOST_MEMORY)


def cupy_module() -> ArrayModule:
    """Return CuPy on the current CUDA device.

    Raises
    ------
    MissingDependency
        When CuPy is not installed, or cannot be imported.
    InvalidArgument
        When there is no CUDA device that it can use.
    """
    try:
        cupy: Any = import_module("cupy")
    except ImportError as problem:
        raise MissingDependency(
            "device='cuda' needs CuPy: pip install 'pydpmode[cuda]' (CUDA 12; for another CUDA see CuPy's "
            "own instructions), or use device='cpu'"
        ) from problem
    if not cupy.cuda.is_available():
        raise InvalidArgument(
            "device='cuda': CuPy is installed but finds no CUDA device that it can use; check the driver "
            "with nvidia-smi, or use device='cpu'"
        )

    def free_memory() -> int:
        free, _ = cupy.cuda.runtime.memGetInfo()
        # What CuPy has acquired before and holds ready is free as well.
        return int(free) + int(cupy.get_default_memory_pool().free_bytes())

    return ArrayModule(cupy, "CUDA", cupy.asnumpy, free_memory)


class DeviceSums:
    """Feature sums on the device of an array module; one block at a time, from whatever thread.

    Parameters
    ----------
    module : ArrayModule
    """

    def __init__(self, module: ArrayModule) -> None:
        self._module = module
        self._one_at_a_time = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the device's kind."""
        return self._module.name

    def check_memory(self, design: Design) -> None:
        """Refuse a design of which not even `GROUP` rows fit into the device's memory.

        Raises
        ------
        InvalidArgument
        """
        terms = _terms_of(design)
        needed = terms.fixed_bytes + GROUP * terms.row_bytes + terms.result_bytes
        available = self._available()
        if needed > available:
            have, most = (f"{size / 2**20:,.0f} MiB" for size in (available, MOST_MEMORY))
            raise InvalidArgument(
                f"device='cuda': the sums over {design.n_pairs:,} frequencies need {needed / 2**20:,.0f} MiB "
                f"of the device's memory, and {have} may be used (half of what is free, at most {most}); "
                "free some, give a larger bandwidth, or use device='cpu'"
            )

    def feature_sum(
        self, design: Design, columns: FloatArray, weights: FloatArray | None = None
    ) -> tuple[float, ComplexArray]:
        """Return the total weight and `sum_i weight_i exp(+i w_j.z_i)` over the pairs of `design`.

        As `feature_sums.feature_sum`, with an error of at most `privacy.features.device_tolerance` times the
        total weight, as a weighted vector.

        Parameters
        ----------
        design : LatticeDesign or RandomDesign
        columns : (d, b) array
            b points inside the box.
        weights : (b,) array, optional
            In [0, 1]; ones when omitted.

        Raises
        ------
        MemoryError
            When the device's memory has been used up by something else.
        """
        if columns.shape[1] == 0:
            return 0.0, np.zeros(design.n_pairs, dtype=np.complex128)
        terms = _terms_of(design)
        try:
            with self._one_at_a_time:
                return terms.read(self._products(terms, columns, weights))
        except MemoryError:
            # The library's own text tells sizes, which may follow from a private number of rows.
            raise MemoryError("the device ran out of memory; free some, or use device='cpu'") from None

    def _products(self, terms: _Terms, columns: FloatArray, weights: FloatArray | None) -> FloatArray:
        """Return the sum over all rows of left times right, on the host."""
        xp = self._module.xp
        size = GROUP * self._groups_at_once(terms)
        total: Any = None
        for start in range(0, columns.shape[1], size):
            stop = min(start + size, columns.shape[1])
            part = None if weights is None else weights[start:stop]
            rows = xp.asarray(_padded(columns[:, start:stop], part, terms.corner))
            left, right = terms.left_and_right(xp, rows[:-1], rows[-1])
            product = xp.matmul(left, right).sum(axis=0)
            total = product if total is None else total + product
        return self._module.to_host(total)

    def _available(self) -> int:
        return min(MOST_MEMORY, int(_FREE_SHARE * self._module.free_memory()))

    def _groups_at_once(self, terms: _Terms) -> int:
        group = GROUP * terms.row_bytes + terms.result_bytes
        return max(1, (self._available() - terms.fixed_bytes) // group)


def _padded(columns: FloatArray, weights: FloatArray | None, corner: FloatArray) -> FloatArray:
    """Return points and weights as (d + 1, groups, GROUP); missing rows are a corner of weight 0."""
    d, count = columns.shape
    groups = -(-count // GROUP)
    rows = np.empty((d + 1, groups * GROUP))
    rows[:d, :count] = columns
    rows[:d, count:] = corner[:, None]
    rows[d, :count] = 1.0 if weights is None else weights
    rows[d, count:] = 0.0
    return rows.reshape(d + 1, groups, GROUP)


class _Terms(Protocol):
    """The two matrices whose product holds a design's sums, and how to read it."""

    @property
    def corner(self) -> FloatArray:
        """A point of the box, (d,)."""
        ...

    @property
    def row_bytes(self) -> int:
        """Memory of one row's entries, what is formed on the way included."""
        ...

    @property
    def result_bytes(self) -> int:
        """Memory of one product."""
        ...

    @property
    def fixed_bytes(self) -> int:
        """Memory that does not grow with the rows."""
        ...

    def left_and_right(self, xp: Any, points: Any, weights: Any) -> tuple[Any, Any]:
        """Return (groups, a, GROUP) and (groups, GROUP, b) arrays from (d, groups, GROUP) points."""
        ...

    def read(self, product: FloatArray) -> tuple[float, ComplexArray]:
        """Return total weight and sums from the (a, b) product."""
        ...


def _terms_of(design: Design) -> _Terms:
    return _LatticeTerms(design) if isinstance(design, LatticeDesign) else _RandomTerms(design)


@dataclass(frozen=True)
class _Factor:
    """Frequencies `step * (0, 1, ..., count - 1)` of one axis; their negatives too when `both_signs`."""

    axis: int
    step: int
    count: int
    both_signs: bool

    @property
    def multiples(self) -> NDArray[np.uint64]:
        """The frequencies times 2^11: with a place in 2^-53 turns the product is in 2^-64 turns."""
        return np.arange(self.count, dtype=np.uint64) * np.uint64(self.step << (64 - _TURN_BITS))


def lattice_factors(design: LatticeDesign) -> tuple[_Factor, ...]:
    """Return the factors that a lattice's sums are made of: two, or three for three columns."""
    sizes = [int(j) for j in design.half_sizes]
    if design.dimension == 1:
        low = math.isqrt(sizes[0]) + 1
        return _Factor(0, low, -(-(sizes[0] + 1) // low), False), _Factor(0, 1, low, False)
    return tuple(_Factor(a, 1, j + 1, a > 0) for a, j in enumerate(sizes))


def turn_scale(design: LatticeDesign) -> FloatArray:
    """Return what turns a distance from the lower corner into 2^-53 turns of the torus, (d,)."""
    return 2.0**_TURN_BITS / (design.sides * design.bandwidth)


class _LatticeTerms:
    def __init__(self, design: LatticeDesign) -> None:
        self._design = design
        self._factors = lattice_factors(design)
        widths = [2 * factor.count for factor in self._factors]
        self._right = math.prod(widths[1:])
        self.corner = design.lower
        # Phases and angles of a factor, then its cosines and sines; products of those on the right; places.
        self.row_bytes = 8 * (3 * sum(widths) + self._right + 5 * design.dimension + 1)
        self.result_bytes = 8 * widths[0] * self._right
        self.fixed_bytes = 3 * self.result_bytes

    def left_and_right(self, xp: Any, points: Any, weights: Any) -> tuple[Any, Any]:
        scale = turn_scale(self._design)
        turns = [
            # Three roundings of IEEE arithmetic: the same whole number on every machine.
            xp.rint((x - float(low)) * float(s)).astype(xp.int64).view(xp.uint64)
            for x, low, s in zip(points, self._design.lower, scale, strict=True)
        ]
        first, *others = self._factors
        left = xp.empty((*weights.shape[:1], 2 * first.count, weights.shape[1]))
        phase = turns[first.axis][:, None, :] * xp.asarray(first.multiples)[:, None]
        angle = phase.view(xp.int64).astype(xp.float64) * _RADIANS
        xp.cos(angle, out=left[:, : first.count])
        xp.sin(angle, out=left[:, first.count :])
        left *= weights[:, None, :]
        right = None
        for factor in others:
            waves = _waves(xp, turns[factor.axis], factor)
            right = waves if right is None else _row_products(right, waves)
        return left, right

    def read(self, product: FloatArray) -> tuple[float, ComplexArray]:
        shape = [n for factor in self._factors for n in (2, factor.count)]
        table: NDArray[Any] = product.reshape(shape)
        total = float(table[(0,) * table.ndim])
        for axis in range(len(self._factors) - 1, -1, -1):
            table = _exponentials(table, 2 * axis, self._factors[axis].both_signs)
        # In one dimension the two factors reach a little beyond the largest frequency.
        half = np.ravel(table)[: math.prod(self._design.half_shape)]
        return total, np.asarray(half[self._design.pair_index], dtype=np.complex128)


def _waves(xp: Any, turns: Any, factor: _Factor) -> Any:
    """Return cosines, then sines, of a factor's frequencies: (groups, GROUP, 2 count)."""
    out = xp.empty((*turns.shape, 2 * factor.count))
    angle = (turns[:, :, None] * xp.asarray(factor.multiples)).view(xp.int64).astype(xp.float64) * _RADIANS
    xp.cos(angle, out=out[:, :, : factor.count])
    xp.sin(angle, out=out[:, :, factor.count :])
    return out


def _row_products(a: Any, b: Any) -> Any:
    """Return all products of an entry of `a` and one of `b`, row by row (Khatri and Rao)."""
    return (a[:, :, :, None] * b[:, :, None, :]).reshape(*a.shape[:2], -1)


def _exponentials(table: NDArray[Any], axis: int, both_signs: bool) -> ComplexArray:
    """Return sums of `exp(i k theta)` from those of cosine and sine, which are the two entries of `axis`."""
    even, odd = np.take(table, 0, axis=axis), np.take(table, 1, axis=axis)
    up = even + 1j * odd
    if not both_signs:
        return np.asarray(up, dtype=np.complex128)
    down = np.flip(even - 1j * odd, axis=axis)
    without_zero = np.take(down, np.arange(down.shape[axis] - 1), axis=axis)
    return np.concatenate([without_zero, up], axis=axis)


class _RandomTerms:
    def __init__(self, design: RandomDesign) -> None:
        self._design = design
        # The zero frequency comes first: its sum is the total weight.
        self._frequencies = np.zeros((design.dimension, design.n_pairs + 1))
        self._frequencies[:, 1:] = design.frequencies.T
        self.corner = design.lower
        width = design.n_pairs + 1
        self.row_bytes = 8 * (3 * width + 5 * design.dimension + 1)
        self.result_bytes = 8 * 2 * width
        self.fixed_bytes = self._frequencies.nbytes + 3 * self.result_bytes

    def left_and_right(self, xp: Any, points: Any, weights: Any) -> tuple[Any, Any]:
        design = self._design
        z = xp.stack(
            [
                (x.ravel() - float(low)) / float(h)
                for x, low, h in zip(points, design.lower, design.bandwidth, strict=True)
            ],
            axis=1,
        )
        phase = xp.matmul(z, xp.asarray(self._frequencies)).reshape(*weights.shape, -1)
        width = phase.shape[2]
        right = xp.empty((*weights.shape, 2 * width))
        xp.cos(phase, out=right[:, :, :width])
        xp.sin(phase, out=right[:, :, width:])
        return weights[:, None, :], right

    def read(self, product: FloatArray) -> tuple[float, ComplexArray]:
        cosine, sine = product.reshape(2, -1)
        return float(cosine[0]), np.asarray(cosine[1:] + 1j * sine[1:], dtype=np.complex128)
