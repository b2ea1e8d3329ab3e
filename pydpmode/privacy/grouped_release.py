"""Surfaces of several groups in one release: the groups are declared, never learned.

A column's public levels are one more coordinate with a 0/1 kernel: a record contributes to the surface of its
own level and to no other, so that the release costs no more than one surface. See
`features.grouped_sensitivity` for the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..budget import PrivacySpent
from ..errors import InvalidArgument, UnknownColumn
from ..numerics.device_sums import DeviceSums
from ..numerics.feature_sums import feature_sum
from ..numerics.fourier_sums import ComplexArray
from ..numerics.surfaces import FloatArray
from ..results.coordinates import Coordinate
from ..results.grouped_surface import GroupedSurface, Level
from ..results.released_surface import ReleasedSurface
from .bounds import ClippedBlock
from .surface_release import ReleasePlan
from .table_source import CodeArray, TableSource

MOST_LEVELS = 100
# Zero-frequency weight with groups under replacement: between two groups it does not cancel, so that it
# costs `1/sqrt(1 - g_0)` as under add/remove.
GROUPED_ZERO_WEIGHT = 0.1


@dataclass(frozen=True)
class DeclaredLevels:
    """The public levels of a grouping column.

    Parameters
    ----------
    column : str
    levels : tuple of str, int, float or bool
        Known without looking at the rows. A row with another value, or none, counts nothing.

    Raises
    ------
    InvalidArgument
        When there are no levels, too many, equal ones, or texts and numbers mixed.
    """

    column: str
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", check_levels(self.column, self.levels))

    @property
    def count(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @property
    def are_texts(self) -> bool:
        """Whether the levels are texts; numbers otherwise."""
        return isinstance(self.levels[0], str)

    def words(self) -> str:
        """Return the note that travels with the release."""
        shown = ", ".join(str(level) for level in self.levels)
        return f"one surface for each declared level of {self.column}: {shown}; rows of no other level count"

    def check(self, source: TableSource) -> None:
        """Check by the schema alone that the column can have these levels.

        Raises
        ------
        UnknownColumn, InvalidArgument
            When there is no such column, or it holds numbers and the levels are texts.
        """
        if self.column not in source.names:
            source.kind(self.column)
            raise UnknownColumn(f"there is no column {self.column!r}")
        source.check_levels(self.column, texts=self.are_texts)

    def codes(self, source: TableSource, rows_per_block: int) -> CodeArray:
        """Return the level of each row, counted from 0; -1 where it is none of them. PRIVATE."""
        source.tie(self.column)
        if self.are_texts or not source.holds_numbers(self.column):
            return source.level_codes(self.column, self.levels)
        parts = [
            _number_codes(block[0], self.levels) for block in source.blocks([self.column], rows_per_block)
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def surfaces(
        self, plan: ReleasePlan, vector: FloatArray, spent: PrivacySpent, coordinates: tuple[Coordinate, ...]
    ) -> GroupedSurface:
        """Return the released vector as one surface per level."""
        parts = vector.reshape(plan.groups, -1)
        surfaces = tuple(ReleasedSurface.from_vector(plan.design, part, spent, coordinates) for part in parts)
        return GroupedSurface(self.column, self.levels, surfaces)


def check_levels(column: str, levels: object) -> tuple[Level, ...]:
    """Return declared levels as plain texts or numbers, or say what is wrong with them."""
    advice = f"declare the public levels of {column!r}, such as levels=['north', 'south'] or levels=[0, 1]"
    if isinstance(levels, str | bytes) or not isinstance(levels, Sequence | np.ndarray):
        raise InvalidArgument(f"levels must be a sequence, got {type(levels).__name__}; {advice}")
    plain = tuple(level.item() if isinstance(level, np.generic) else level for level in levels)
    if not 1 <= len(plain) <= MOST_LEVELS:
        raise InvalidArgument(f"levels must hold 1 to {MOST_LEVELS} levels, got {len(plain)}; {advice}")
    texts = [isinstance(level, str) for level in plain]
    if not all(texts) and (any(texts) or not all(_is_number(level) for level in plain)):
        raise InvalidArgument(f"levels must be all texts or all numbers, got {list(plain)!r}; {advice}")
    if len(set(plain)) < len(plain):
        raise InvalidArgument(f"a level is declared twice: {list(plain)!r}")
    return plain


def _is_number(level: object) -> bool:
    try:
        return isinstance(level, Real) and math.isfinite(float(level))
    except OverflowError:  # a whole number beyond all doubles
        return False


def _number_codes(values: FloatArray, levels: Sequence[Any]) -> CodeArray:
    codes = np.full(values.size, -1, dtype=np.int64)
    for number, level in enumerate(levels):
        codes[values == float(level)] = number
    return codes


def group_sums(
    plan: ReleasePlan,
    block: ClippedBlock,
    codes: CodeArray | None,
    first: int,
    device: DeviceSums | None = None,
) -> tuple[float | FloatArray, ComplexArray]:
    """Return total weights (groups,) and feature sums (groups, M) of one block. NOT private.

    Without codes the block is one group: a number and (M,) sums. Without a device the processor computes.
    """

    def of(values: FloatArray, weights: FloatArray | None) -> tuple[float, ComplexArray]:
        if device is None:
            return feature_sum(plan.design, values, weights, plan.tolerance)
        return device.feature_sum(plan.design, values, weights)

    if codes is None:
        return of(block.values, block.weights)
    own = codes[first : first + block.values.shape[1]]
    totals = np.zeros(plan.groups)
    sums = np.zeros((plan.groups, plan.design.n_pairs), dtype=np.complex128)
    for group in range(plan.groups):
        here = own == group
        values = np.ascontiguousarray(block.values[:, here])
        weights = None if block.weights is None else block.weights[here]
        totals[group], sums[group] = of(values, weights)
    return totals, sums
