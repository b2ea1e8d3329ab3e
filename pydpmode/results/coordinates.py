"""The coordinates of a surface, and the way from a user's columns to them and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import DuplicateColumns, InvalidArgument, NonNumericColumn, UnknownColumn, UnsupportedSource
from ..numerics.expressions import Expression, parse_expression
from ..numerics.surfaces import FloatArray

Transform = Literal["identity", "log", "expression", "affine"]
Kind = Literal["number", "datetime", "timedelta"]

_MICROSECONDS = 1e6
_TIME_LIMIT = 9.2e12  # seconds that still fit in 64 bits as microseconds


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of a surface, and how it came from a column of the user's table.

    Parameters
    ----------
    name : str
        Name on the surface, such as "log(wage)".
    column : str
        The original column, such as "wage"; of an expression or affine map its name.
    transform : {"identity", "log", "expression", "affine"}
        What was applied, row by row, before the release.
    kind : {"number", "datetime", "timedelta"}
        Datetimes are held as seconds since 1970-01-01 UTC, durations as seconds.
    expression : str
        Of the columns, for the transform "expression", such as "sqrt(wage / hours)"; see
        `numerics.expressions`. Not mapped back.
    limits : pair of float, optional
        Public limits of the values of an expression or affine map: those outside count as the limit.
        Without them the limits are what the bounds of the columns allow.
    columns, weights, offset
        Of the transform "affine": `offset + sum weights * columns`, such as a score of a released
        principal component.
    simulated : bool
        Whether its coefficients come from a release with simulated noise, which is NOT private: no release
        that rests on it is.
    """

    name: str
    column: str
    transform: Transform = "identity"
    kind: Kind = "number"
    expression: str = ""
    limits: tuple[float, float] | None = None
    columns: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    offset: float = 0.0
    simulated: bool = False

    def __post_init__(self) -> None:
        if self.transform not in ("identity", "log", "expression", "affine"):
            raise InvalidArgument(
                f"transform must be 'identity', 'log', 'expression' or 'affine', got {self.transform!r}"
            )
        self._check_affine()
        if (self.transform == "expression") != bool(self.expression):
            raise InvalidArgument("expression= goes with transform='expression', and only with it")
        if self.limits is not None:
            low, high = (float(end) for end in self.limits)
            if not self.derived or not (np.isfinite(high - low) and low < high):
                raise InvalidArgument(
                    "limits, of an expression or affine map only, must be finite, low < high; "
                    f"got {self.limits!r}"
                )
            object.__setattr__(self, "limits", (low, high))
        if self.kind not in ("number", "datetime", "timedelta"):
            raise InvalidArgument(f"kind must be 'number', 'datetime' or 'timedelta', got {self.kind!r}")
        if self.transform == "log" and self.kind != "number":
            raise InvalidArgument(f"the log is for numbers; {self.column!r} holds {self.kind} values")

    def _check_affine(self) -> None:
        if (self.transform == "affine") != bool(self.columns):
            raise InvalidArgument("columns= goes with transform='affine', and only with it")
        for name, kind in (("columns", str), ("weights", float)):
            object.__setattr__(self, name, tuple(kind(item) for item in getattr(self, name)))
        if len(self.weights) != len(self.columns) or len(set(self.columns)) != len(self.columns):
            raise InvalidArgument("an affine map needs one weight per column, and each column once")
        if not np.isfinite([*self.weights, self.offset]).all():
            raise InvalidArgument("weights and offset of an affine map must be finite")

    @classmethod
    def plain(cls, name: str) -> Coordinate:
        """Return the coordinate of a numeric column that is used as it is."""
        return cls(name, name)

    @classmethod
    def of_expression(
        cls, text: str, *, name: str | None = None, limits: tuple[float, float] | None = None
    ) -> Coordinate:
        """Return the coordinate of an expression of number columns."""
        parse_expression(text)
        return cls(name or text, name or text, "expression", "number", text, limits)

    @classmethod
    def affine(
        cls,
        name: str,
        columns: Sequence[str],
        weights: Sequence[float] | FloatArray,
        offset: float,
        *,
        limits: tuple[float, float] | None = None,
        simulated: bool = False,
    ) -> Coordinate:
        """Return the coordinate `offset + sum weights * columns` of number columns.

        The coefficients must be public, or come from a release: if from a simulated one, say so.
        """
        return cls(
            name,
            name,
            "affine",
            limits=limits,
            columns=tuple(columns),
            weights=tuple(float(w) for w in weights),
            offset=float(offset),
            simulated=simulated,
        )

    @property
    def derived(self) -> bool:
        """Whether it is made of several columns; its limits are then its own."""
        return self.transform in ("expression", "affine")

    @property
    def parsed(self) -> Expression:
        """The expression, for the transform "expression"."""
        return parse_expression(self.expression)

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of the user's table that it is made of."""
        if self.transform == "affine":
            return self.columns
        return self.parsed.columns if self.transform == "expression" else (self.column,)

    @property
    def maps_back(self) -> bool:
        """Whether values are shown on the original column's scale as well."""
        return self.transform == "log"

    def evaluate(self, values: Mapping[str, FloatArray]) -> FloatArray:
        """Map values of the source columns, (b,) each, to the coordinate; NaN where one is NaN."""
        if self.transform == "expression":
            return self.parsed.evaluate(values)
        if self.transform == "affine":
            total = np.full(values[self.columns[0]].shape, self.offset)
            for name, weight in zip(self.columns, self.weights, strict=True):
                total += weight * values[name]
            return total
        return self.forward(values[self.column])

    def interval(self, bounds: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
        """Return the range of a derived coordinate over its columns' bounds, by interval arithmetic."""
        if self.transform == "expression":
            return self.parsed.interval({c: bounds[c] for c in self.sources})
        ends = [
            sorted((w * bounds[c][0], w * bounds[c][1]))
            for c, w in zip(self.columns, self.weights, strict=True)
        ]
        return self.offset + sum(low for low, _ in ends), self.offset + sum(high for _, high in ends)

    def forward(self, values: FloatArray) -> FloatArray:
        """Map values of the original column (as floats) to the coordinate; NaN stays NaN."""
        if self.transform != "log":
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            # At or below zero the logarithm is taken as minus infinity: the lower bound, never missing.
            return np.where(values <= 0, -np.inf, np.log(values))

    def back_number(self, values: FloatArray) -> FloatArray:
        """Map coordinates back to the original column, as floats (seconds for times).

        A derived coordinate stays as it is.
        """
        if self.transform != "log":
            return np.asarray(values, dtype=float)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(values))

    def back(self, values: FloatArray) -> FloatArray | NDArray[np.datetime64] | NDArray[np.timedelta64]:
        """Map coordinates back to the original column in its own type (dates for datetimes)."""
        numbers = self.back_number(values)
        if self.kind == "number":
            return numbers
        ticks = np.full(numbers.shape, np.iinfo(np.int64).min)  # not a time
        usable = np.abs(numbers) < _TIME_LIMIT
        ticks[usable] = np.round(numbers[usable] * _MICROSECONDS).astype(np.int64)
        return ticks.view("datetime64[us]" if self.kind == "datetime" else "timedelta64[us]")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        plain = {name: getattr(self, name) for name in ("name", "column", "transform", "kind")}
        if not self.derived:
            return plain
        limits = {"limits": self.limits and list(self.limits)}
        if self.transform == "expression":
            return {**plain, "expression": self.expression, **limits}
        parts = {"columns": list(self.columns), "weights": list(self.weights), "offset": self.offset}
        return {**plain, **parts, **limits}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Coordinate:
        """Return a coordinate from `to_dict()`."""
        given = dict(data)
        limits = given.pop("limits", None)
        return cls(**given, limits=None if limits is None else (float(limits[0]), float(limits[1])))


def points_of(new: Any, coordinates: Sequence[Coordinate]) -> tuple[FloatArray, pd.Index[Any]]:
    """Return new data as points in the coordinates, and the index to answer with."""
    if not isinstance(new, pd.DataFrame) and hasattr(new, "to_pandas"):
        new = new.to_pandas()
    if isinstance(new, pd.Series):
        new = new.to_frame(coordinates[0].column) if len(coordinates) == 1 else new
    if not isinstance(new, pd.DataFrame):
        new = _frame_of(new, coordinates)
    columns = [_values(new, coordinate) for coordinate in coordinates]
    return np.column_stack(columns), new.index


def _values(frame: pd.DataFrame, coordinate: Coordinate) -> FloatArray:
    """Return the coordinate of each row of new data: from its sources, or as it is under its own name."""
    names = {str(name) for name in frame.columns}
    if not coordinate.derived or (coordinate.name in names and not names & {*coordinate.sources}):
        return _column(frame, coordinate)
    return coordinate.evaluate({c: _column(frame, Coordinate.plain(c)) for c in coordinate.sources})


def _frame_of(new: Any, coordinates: Sequence[Coordinate]) -> pd.DataFrame:
    wanted = len(coordinates)
    try:
        array = np.asarray(new)
    except ValueError as error:
        raise UnsupportedSource("new data must be a data frame or a rectangular array") from error
    if array.ndim == 1 and wanted == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != wanted:
        raise InvalidArgument(
            f"new data must be a data frame, or an array of shape (rows, {wanted}) with the columns "
            f"{[c.column for c in coordinates]} in this order; got shape {array.shape}"
        )
    return pd.DataFrame({c.column: array[:, j] for j, c in enumerate(coordinates)})


def _column(frame: pd.DataFrame, coordinate: Coordinate) -> FloatArray:
    names = [str(name) for name in frame.columns]
    as_given = coordinate.column in names
    name = coordinate.column if as_given else coordinate.name
    if name not in names:
        wanted = f"{coordinate.column!r}" + ("" if name == coordinate.column else f" (or {name!r})")
        shown = ", ".join(repr(n) for n in names[:12]) + (", ..." if len(names) > 12 else "")
        raise UnknownColumn(f"new data has no column {wanted}; it has {shown or 'no columns'}")
    if names.count(name) > 1:
        raise DuplicateColumns(f"new data has {names.count(name)} columns named {name!r}; keep one")
    series = frame.iloc[:, names.index(name)]
    if not as_given:
        return _numbers_of(series, name)
    if coordinate.kind == "number":
        return coordinate.forward(_numbers_of(series, name))
    return coordinate.forward(_seconds_of(series, name, coordinate.kind))


def _numbers_of(series: pd.Series[Any], name: str) -> FloatArray:
    dtype = series.dtype
    if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_complex_dtype(dtype):
        raise NonNumericColumn(f"column {name!r} must hold numbers, got dtype {dtype}; convert it first")
    return np.asarray(series.to_numpy(dtype=float, na_value=np.nan))


def _seconds_of(series: pd.Series[Any], name: str, kind: Kind) -> FloatArray:
    is_time = (
        pd.api.types.is_datetime64_any_dtype(series.dtype)
        if kind == "datetime"
        else pd.api.types.is_timedelta64_dtype(series.dtype)
    )
    if not is_time:
        what = "dates and times" if kind == "datetime" else "durations"
        raise NonNumericColumn(
            f"column {name!r} must hold {what}, got dtype {series.dtype}; convert it first"
        )
    if kind == "datetime":
        times = pd.to_datetime(series, utc=True).dt.tz_localize(None)
        ticks = times.to_numpy(dtype="datetime64[us]").astype(np.int64)
    else:
        ticks = series.to_numpy(dtype="timedelta64[us]").astype(np.int64)
    missing = ticks == np.iinfo(np.int64).min
    return np.where(missing, np.nan, ticks / _MICROSECONDS)
