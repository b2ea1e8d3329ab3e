"""Decoded R values as the arguments that the Python models take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pydpmode.errors import InvalidArgument

from .wire import NA_INTEGER, RList, RVector

_QUIET = 1 << 51
_SECONDS = {"secs": 1.0, "mins": 60.0, "hours": 3600.0, "days": 86400.0, "weeks": 604800.0}


def plain(value: Any) -> Any:
    """Return a decoded R value as plain Python data.

    Vectors of length 1 without names become scalars, named vectors and lists dictionaries, other
    vectors lists, matrices lists of rows, data frames pandas data frames; dates and times become
    `datetime64`, difftimes `timedelta64`, a missing entry None.
    """
    if isinstance(value, RList):
        if "data.frame" in value.classes:
            return frame(value)
        items = [plain(item) for item in value.items]
        return items if value.names is None else dict(zip(value.names, items, strict=True))
    if not isinstance(value, RVector):
        return value
    entries = _entries(value)
    if "dim" in value.attributes:
        shape = tuple(int(size) for size in value.attributes["dim"].values)
        return np.array(entries, dtype=object).reshape(shape, order="F").tolist()
    if value.names is not None:
        return dict(zip(value.names, entries, strict=True))
    return entries[0] if len(entries) == 1 else entries


def frame(value: RList) -> pd.DataFrame:
    """Return a decoded data frame. A column's dtype follows from its R type alone, never from its values."""
    names = value.names or ()
    if len(set(names)) < len(names):
        # pandas keeps double names; the models refuse them by name.
        table = pd.concat([column(item) for item in value.items], axis=1)
        table.columns = pd.Index(names)
        return table
    columns = {name: column(item) for name, item in zip(names, value.items, strict=True)}
    return pd.DataFrame(columns, copy=False)


def column(value: Any) -> pd.Series[Any]:
    """Return one column: numbers and logicals as float64 (NA is NaN), factors as categories."""
    if not isinstance(value, RVector):
        raise InvalidArgument("a column of a data frame must be an atomic vector")
    if "factor" in value.classes:
        given = value.attributes["levels"].values
        # R's level NA is no value: its rows are missing, as those without a code are.
        places: Any = np.cumsum([0, *(text is not None for text in given)]) - 1
        places[1:][[text is None for text in given]] = -1
        codes = places[np.where(value.values == NA_INTEGER, 0, value.values)]
        levels: Any = [text for text in given if text is not None]
        return pd.Series(pd.Categorical.from_codes(codes, levels, ordered="ordered" in value.classes))
    if value.kind == "character":
        return pd.Series(value.values, dtype=object)
    numbers = numbers_of(value)
    if {"Date", "POSIXct"} & set(value.classes):
        return pd.Series(_moments(value, numbers))
    if "difftime" in value.classes:
        return pd.Series(_durations(value, numbers))
    return pd.Series(numbers, copy=False)


def numbers_of(value: RVector) -> Any:
    """Return the entries as float64, missing ones as NaN."""
    if value.kind == "double":
        numbers = value.values.astype(np.float64)
        # R's NA is a signalling NaN: arithmetic on it warns. With the quiet bit it is silent, and still NA.
        numbers.view(np.int64)[np.isnan(numbers)] |= _QUIET
        return numbers
    numbers = value.values.astype(np.float64)
    numbers[value.values == NA_INTEGER] = np.nan
    return numbers


def _moments(value: RVector, numbers: Any) -> Any:
    scale = 86400e6 if "Date" in value.classes else 1e6
    return _ticks(numbers, scale).view("datetime64[us]")


def _durations(value: RVector, numbers: Any) -> Any:
    unit = str(value.attributes["units"].values[0])
    return _ticks(numbers, _SECONDS[unit] * 1e6).view("timedelta64[us]")


def _ticks(numbers: Any, scale: float) -> Any:
    with np.errstate(invalid="ignore", over="ignore"):
        microseconds = numbers * scale
    ticks = np.full(len(microseconds), np.iinfo(np.int64).min)  # not a time
    usable = np.abs(microseconds) < 9e18
    ticks[usable] = np.round(microseconds[usable]).astype(np.int64)
    return ticks


def _entries(value: RVector) -> list[Any]:
    if value.kind == "character":
        return list(value.values)
    if "factor" in value.classes:
        levels = value.attributes["levels"].values
        return [None if code == NA_INTEGER else levels[code - 1] for code in value.values]
    if {"Date", "POSIXct"} & set(value.classes):
        return list(_moments(value, numbers_of(value)))
    if "difftime" in value.classes:
        return list(_durations(value, numbers_of(value)))
    if value.kind == "double":
        return [float(item) for item in value.values]
    make = bool if value.kind == "logical" else int
    return [None if item == NA_INTEGER else make(item) for item in value.values]
