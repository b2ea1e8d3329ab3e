"""Public bounds: checked without looking at a row, and the only way from raw to clipped values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..budget import Outside
from ..errors import InvalidArgument, InvalidBounds, MissingBounds
from ..numerics.surfaces import FloatArray
from ..results.coordinates import Coordinate
from .sources import as_bound
from .table_source import TableSource

# A lower bound of 0 has no logarithm: this share of the upper bound takes its place.
LOG_FLOOR_SHARE = 1e-3

Bounds = Mapping[str, tuple[Any, Any]] | Sequence[tuple[Any, Any]] | tuple[Any, Any]


@dataclass(frozen=True)
class ClippedBlock:
    """Rows after clipping: the only form in which values reach the arithmetic.

    Parameters
    ----------
    values : (d, b) array
        Coordinates (after the transform), inside the public box; missing rows hold the lower corner.
    weights : (b,) array or None
        Contribution of each row in [0, 1], zero for missing rows; None when all are 1.
    """

    values: FloatArray
    weights: FloatArray | None


def read_bounds(
    bounds: Bounds | None, source: TableSource, wanted: Sequence[str] = ()
) -> dict[str, tuple[float, float]]:
    """Return checked bounds per column, as floats (seconds for times).

    Parameters
    ----------
    bounds : mapping, or sequence of pairs
        `{column: (low, high)}`; for arrays also one pair per column in order, or one pair when
        there is one column. Datetime columns take dates or ISO strings.
    source : TableSource
        For names and kinds; no row is read.
    wanted : sequence of str
        Columns that the caller asked for, for the message when bounds are missing.

    Raises
    ------
    MissingBounds
        When there are none.
    InvalidBounds
        When they are not pairs of finite numbers with low < high.
    UnknownColumn
        When a name is not a column.
    """
    if bounds is None or _as_list(bounds) == [] or (isinstance(bounds, Mapping) and not bounds):
        name = repr(wanted[0] if wanted else "column")
        raise MissingBounds(
            f"public bounds are missing: give bounds={{{name}: (low, high)}} (on the command line "
            "--bounds NAME=LOW:HIGH); they are never taken from the data, because that would reveal "
            "the extreme rows"
        )
    named = _by_name(bounds) if isinstance(bounds, Mapping) else _by_position(bounds, source)
    # Refuses unknown columns in words that fit the source: a file's header is not always one.
    source.check_columns([name for name in named if name not in source.names])
    return {name: _one_bound(name, pair, source) for name, pair in named.items()}


def _by_name(bounds: Mapping[Any, Any]) -> dict[str, Any]:
    # Labels of a data frame may be numbers; columns are known by their text.
    named = {str(label): pair for label, pair in bounds.items()}
    if len(named) < len(bounds):
        raise InvalidBounds("two labels in bounds have the same text; give one pair per column")
    return named


def _by_position(bounds: object, source: TableSource) -> dict[str, Any]:
    names = source.names
    pairs = _as_list(bounds)
    if pairs is None:
        raise InvalidBounds(
            "bounds must be a mapping {column: (low, high)} or one (low, high) per column, "
            f"got {type(bounds).__name__}"
        )
    if not source.names_are_public:
        raise InvalidBounds(
            "bounds by position need named columns: the file's first line holds numbers and may be a row; "
            "check that it is a header, and give a mapping {column: (low, high)}"
        )
    if len(pairs) == 2 and all(_as_list(end) is None for end in pairs):
        pairs = [pairs]
    if len(pairs) != len(names):
        raise InvalidBounds(
            f"got {len(pairs)} pairs of bounds for {len(names)} columns; give one (low, high) per column, "
            "or a mapping {column: (low, high)}"
        )
    return dict(zip(names, pairs, strict=True))


def _as_list(value: object) -> list[Any] | None:
    """Return the entries of a sequence or array; None for anything else, text and sets included."""
    if isinstance(value, np.ndarray):
        return list(value) if value.ndim else None
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else None


def _one_bound(name: str, given: object, source: TableSource) -> tuple[float, float]:
    pair = _as_list(given)
    if pair is None or len(pair) != 2:
        raise InvalidBounds(f"{name}: bounds must be a pair (low, high), got {_name_of(given, pair)}")
    kind = source.kind(name)
    try:
        low, high = (as_bound(kind, value) for value in pair)
    except InvalidBounds as problem:
        raise InvalidBounds(f"{name}: {problem}") from None
    if kind == "datetime" and all(isinstance(v, int | float) and 1000 <= v <= 9999 for v in pair):
        raise InvalidBounds(
            f"{name} holds dates, and numbers are seconds since 1970; ({pair[0]}, {pair[1]}) "
            f"look like years: give dates, such as ('{int(low)}-01-01', '{int(high)}-12-31')"
        )
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InvalidBounds(f"{name}: bounds must be finite, got ({pair[0]}, {pair[1]})")
    if not low < high:
        raise InvalidBounds(
            f"{name}: the lower bound must be below the upper one, got ({pair[0]}, {pair[1]})"
        )
    if not math.isfinite(high - low):
        raise InvalidBounds(f"{name}: the width of the bounds overflows; give narrower ones")
    return low, high


def _name_of(given: object, entries: list[Any] | None) -> str:
    return type(given).__name__ if entries is None else f"{len(entries)} entries"


def coordinate_box(
    coordinates: Sequence[Coordinate], bounds: Mapping[str, tuple[float, float]]
) -> tuple[FloatArray, FloatArray]:
    """Return the public box of the coordinates, after their transforms, as two (d,) arrays.

    Raises
    ------
    MissingBounds
        When a used column has no bounds.
    InvalidBounds
        When a logarithm is asked for and the lower bound is negative.
    """
    low, high = [], []
    for c in coordinates:
        for column in c.sources:
            if column not in bounds:
                raise MissingBounds(f"{column}: give public (low, high); bounds are known for {list(bounds)}")
        if c.derived:
            ends = np.array(_derived_range(c, bounds))
            low.append(float(ends[0]))
            high.append(float(ends[1]))
            continue
        a, b = bounds[c.column]
        if c.transform == "log":
            a = log_lower_bound(c.column, a, b)
        ends = c.forward(np.array([a, b], dtype=np.float64))
        low.append(float(ends[0]))
        high.append(float(ends[1]))
    return np.array(low), np.array(high)


def _derived_range(coordinate: Coordinate, bounds: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """Return the public range of a coordinate of several columns: its limits, or what the bounds allow.

    Raises
    ------
    InvalidBounds
        When it is not defined everywhere inside the bounds, or the range is too wide or empty.
    """
    try:
        low, high = coordinate.interval(bounds)
    except InvalidArgument as problem:
        raise InvalidBounds(str(problem)) from None
    # Also where limits are given: an infinite sum could be undefined for some rows alone.
    if not (math.isfinite(high - low) and low < high):
        raise InvalidBounds(
            f"{coordinate.name}: its range over the bounds of the columns is empty or overflows; "
            "check its weights, or give narrower bounds"
        )
    return coordinate.limits or (low, high)


def log_lower_bound(column: str, low: float, high: float) -> float:
    """Return the lower bound to use under a logarithm: `low`, or a thousandth of `high` when it is 0.

    Smaller values then count as that one (with outside="ignore" their rows count nothing).
    The choice depends on the public bounds alone.

    Raises
    ------
    InvalidBounds
        When `low` is negative, or `high` so small that a thousandth of it vanishes.
    """
    floor = low if low != 0 else high * LOG_FLOOR_SHARE
    if floor <= 0:
        raise InvalidBounds(
            f"{column}: a logarithm needs bounds above 0, got ({low:g}, {high:g}); give the smallest value "
            f"that matters, such as {column}=(1, 1000): smaller values count as that one"
        )
    return floor


def used_columns(coordinates: Sequence[Coordinate]) -> tuple[str, ...]:
    """Return the columns that some coordinates are made of, in order, once each."""
    return tuple(dict.fromkeys(name for c in coordinates for name in c.sources))


def coordinate_block(
    raw: FloatArray,
    columns: Sequence[str],
    coordinates: Sequence[Coordinate],
    bounds: Mapping[str, tuple[float, float]],
    outside: Outside,
    weights: FloatArray | None,
) -> ClippedBlock:
    """Return a block of original columns as coordinates inside their box; each row by itself.

    As `clip_block`, and the columns of an expression or affine map are clipped to their own bounds before
    it is evaluated: its value is then finite. With `outside="ignore"` a row outside the bounds of one of
    them, or outside its limits, gets weight 0.

    Parameters
    ----------
    raw : (m, b) array
        Values of the original columns; overwritten.
    columns : sequence of m str
        Their names.
    coordinates : sequence of d Coordinate
    bounds : mapping
        Public bounds per column.
    weights : (b,) array or None
        As in `clip_block`.
    """
    lower, upper = coordinate_box(coordinates, bounds)
    derived = [c for c in coordinates if c.derived]
    if derived or [c.column for c in coordinates] != list(columns):
        place = {name: row for row, name in enumerate(columns)}
        parts = {name: raw[place[name]] for name in used_columns(derived)}
        inside = {name: np.clip(part, *bounds[name]) for name, part in parts.items()}
        values = np.empty((len(coordinates), raw.shape[1]))
        for k, c in enumerate(coordinates):
            values[k] = c.evaluate(inside) if c.derived else raw[place[c.column]]
            if outside == "ignore" and c.derived:
                values[k, _any_outside({s: parts[s] for s in c.sources}, bounds)] = np.nan
        raw = values
    return clip_block(raw, coordinates, lower, upper, outside, weights)


def _any_outside(values: Mapping[str, FloatArray], bounds: Mapping[str, tuple[float, float]]) -> np.ndarray:
    gone = np.zeros(next(iter(values.values())).shape, dtype=bool)
    for name, column in values.items():
        low, high = bounds[name]
        gone |= (column < low) | (column > high)
    return gone


def clip_block(
    raw: FloatArray,
    coordinates: Sequence[Coordinate],
    lower: FloatArray,
    upper: FloatArray,
    outside: Outside,
    weights: FloatArray | None,
) -> ClippedBlock:
    """Return a block transformed and clipped to the box; each row by itself, whatever the others hold.

    A row with a missing value (or weight) gets weight 0. Infinite values go to the bound. With
    `outside="ignore"` a row outside the box in any coordinate gets weight 0.

    Parameters
    ----------
    raw : (d, b) array
        Values of the original columns; overwritten.
    weights : (b,) array or None
        Contributions in [0, 1] (NaN: missing); None when all are 1.
    """
    dropped: np.ndarray | None = None
    for row, c, low, high in zip(raw, coordinates, lower, upper, strict=True):
        if c.transform == "log":
            row[:] = c.forward(row)
        # One pass decides whether anything but clean values is there: a NaN makes both false.
        clean = bool(row.size == 0 or (row.min() >= low and row.max() <= high))
        if clean:
            continue
        missing = np.isnan(row)
        bad = missing | (row < low) | (row > high) if outside == "ignore" else missing
        dropped = bad if dropped is None else dropped | bad
        np.clip(row, low, high, out=row)
        row[missing] = low
    if weights is None:
        if dropped is None or not dropped.any():
            return ClippedBlock(raw, None)
        return ClippedBlock(raw, np.where(dropped, 0.0, 1.0))
    usable = np.clip(np.nan_to_num(weights, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return ClippedBlock(raw, usable if dropped is None else np.where(dropped, 0.0, usable))
