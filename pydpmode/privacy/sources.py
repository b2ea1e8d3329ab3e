"""The door for data: whatever a user calls data becomes a `TableSource`, bounds become floats.

Nothing is read here but the schema. See `TableSource` for what is promised about the rows.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..budget import as_number
from ..errors import EmptyData, InvalidArgument, InvalidBounds, NonNumericColumn, UnsupportedSource
from ..numerics.surfaces import FloatArray
from .dask_source import is_dask, table_of_dask
from .file_sources import open_file
from .memory_sources import (
    MemoryTable,
    column_of,
    fill_seconds,
    is_polars,
    table_of_array,
    table_of_arrow,
    table_of_frame,
    table_of_mapping,
    table_of_polars,
)
from .stream_sources import stream_of
from .table_source import BaseTable, CodeArray, IntegerArray, Kind, TableSource, as_names

__all__ = ["CodeArray", "FloatArray", "Kind", "TableSource", "as_bound", "open_source"]

_ROW = (list, tuple, np.ndarray)
_ALLOWED = (
    "a NumPy array of shape (n,) or (n, d), a list of numbers, a dictionary of columns, a pandas or polars "
    "DataFrame or Series, an Arrow table or data set, a RowStream, a polars LazyFrame, a DuckDB relation, a "
    "Dask array or data frame, or the path of a .csv, .csv.gz, .parquet or .pq file or of a "
    "folder of Parquet files"
)


def open_source(
    data: object,
    *,
    columns: Sequence[str] | None = None,
    datetimes: Sequence[str] = (),
    allow_empty: bool = False,
) -> TableSource:
    """Return `data` as a table of rows, after checks of its schema; no value is looked at.

    Parameters
    ----------
    data : array, data frame, Arrow table or data set, dictionary, list, lazy or Dask table, or path
        A 1-D array (or list) is n points of one column. A path is a CSV file with a header line
        (comma separated, UTF-8, plain or gzip), a Parquet file, or a folder of Parquet files. An
        open table is returned as it is.
    columns : sequence of str, optional
        For arrays, lists and single columns: their names ("x1", "x2", ... or the Series' own name
        when omitted). For tables: the columns to keep, in this order (all when omitted).
    datetimes : sequence of str, optional
        Columns of a CSV file that are ISO 8601 dates or date-times; its other columns are
        numbers. In other sources the dtype says so, and is checked.
    allow_empty : bool
        Accept a table with 0 rows: for adjacency="add_remove", where the number of rows is private.

    Returns
    -------
    TableSource

    Raises
    ------
    UnsupportedSource
        When `data` is none of these, or a file that is missing, damaged or without a header.
    EmptyData
        When there are 0 rows.
    DuplicateColumns
        When two columns have the same name.
    UnknownColumn
        When `columns` or `datetimes` names a column that is not there.

    Examples
    --------
    >>> table = open_source({"age": [31, 45, None], "wage": [1e4, 2e4, 3e4]})
    >>> table.names, table.n_rows, table.kind("age")
    (('age', 'wage'), 3, 'number')
    >>> [block.shape for block in table.blocks(["wage", "age"], rows_per_block=2)]
    [(2, 2), (2, 1)]
    """
    wanted = None if columns is None else as_names(columns)
    table = _open(data, wanted, as_names(datetimes))
    if not allow_empty and table.is_empty:
        raise EmptyData("the data have 0 rows; at least one row is needed")
    for name in as_names(datetimes):
        if table.kind(name) != "datetime":
            raise NonNumericColumn(
                f"column {name!r} is named in datetimes but has no datetime dtype; convert it first, for "
                "example with pandas.to_datetime(column, errors='coerce')"
            )
    return table if wanted is None or wanted == table.names else _Selection(table, wanted)


def _open(data: object, columns: tuple[str, ...] | None, datetimes: tuple[str, ...]) -> BaseTable:
    if isinstance(data, BaseTable):
        return data
    if isinstance(data, str | os.PathLike):
        return open_file(Path(data), datetimes)
    if is_dask(data):
        return table_of_dask(data, columns)
    if isinstance(data, pd.DataFrame):
        return table_of_frame(data)
    if isinstance(data, np.ndarray):
        return table_of_array(data, columns)
    if is_polars(data, "DataFrame"):
        return table_of_polars(data)
    if isinstance(data, Mapping):
        return table_of_mapping(data)
    # Every entry: of a list of numbers one odd entry is missing, wherever it stands.
    if isinstance(data, list | tuple) and data and all(isinstance(row, _ROW) for row in data):
        raise UnsupportedSource(
            "a list of rows has no dtype; give numpy.asarray(rows, dtype=float) or a data frame"
        )
    column = column_of(data)
    if column is not None:
        own = getattr(data, "name", None)
        names = columns or ("x1" if own in (None, "") else str(own),)
        if len(names) != 1:
            raise InvalidArgument(f"columns has {len(names)} names, but the data are one column")
        return MemoryTable(names, [column])
    streamed = stream_of(data)
    if streamed is not None:
        return streamed
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return table_of_arrow(data)
    raise UnsupportedSource(f"data is a {type(data).__name__}, which cannot be read; give {_ALLOWED}")


def takes_names(data: object) -> bool:
    """Whether the columns of `data` have no names of their own, so that `columns` names them."""
    return isinstance(data, np.ndarray | list) or (is_dask(data) and hasattr(data, "chunks"))


class _Selection(BaseTable):
    """Some columns of a table, in a given order."""

    def __init__(self, table: BaseTable, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self._table = table
        self.places_are_fixed = table.places_are_fixed
        for name in names:
            table.position(name)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self._table.n_rows

    @property
    def is_empty(self) -> bool:
        """Whether there is no row."""
        return self._table.is_empty

    @property
    def parts(self) -> int:
        """As of the whole table."""
        return self._table.parts

    def check_passes(self, passes: int) -> None:
        """As for the whole table."""
        self._table.check_passes(passes)

    def tie(self, column: str) -> None:
        """As for the whole table."""
        self.position(column)
        self._table.tie(column)

    def summed(
        self, columns: Sequence[str], rows_per_block: int, work: Callable[[FloatArray], IntegerArray]
    ) -> IntegerArray | None:
        """As for the whole table."""
        self.check_columns(columns)
        return self._table.summed(columns, rows_per_block, work)

    def _schema(self, position: int) -> tuple[Kind | None, str]:
        return self._table._schema(self._table.position(self.names[position]))

    def _blocks(self, positions: list[int], rows_per_block: int) -> Iterator[FloatArray]:
        return self._table.blocks([self.names[position] for position in positions], rows_per_block)

    def _codes(self, position: int) -> CodeArray:
        return self._table.codes(self.names[position])

    def _values_of(self, position: int) -> Iterator[Sequence[object]]:
        return self._table._values_of(self._table.position(self.names[position]))


def as_bound(kind: Kind, value: object, *, name: str = "bound") -> float:
    """Return a bound that a user gave for a column as a float, in the units of its blocks.

    Parameters
    ----------
    kind : {"number", "datetime", "timedelta"}
        What the column holds.
    value : number, or a time for the matching kind
        datetime: seconds since 1970-01-01 UTC as a number, `datetime.date`, `datetime.datetime`,
        `pandas.Timestamp`, `numpy.datetime64` or ISO 8601 text; without a zone UTC is taken.
        timedelta: seconds as a number, `datetime.timedelta`, `pandas.Timedelta` or `numpy.timedelta64`.
    name : str
        What to call the value in a message.

    Raises
    ------
    InvalidBounds
        When the value does not fit the kind. (Whether it is finite is for the caller to check.)

    Examples
    --------
    >>> as_bound("number", 90)
    90.0
    >>> as_bound("datetime", "1970-01-02")
    86400.0
    """
    if kind == "datetime" and _is_moment(value):
        return _moment_seconds(value, name)
    if kind == "timedelta" and isinstance(value, datetime.timedelta | np.timedelta64):
        return _duration_seconds(value, name)
    if isinstance(value, np.timedelta64 | np.datetime64 | datetime.date | datetime.timedelta | str):
        a_date = _ISO.fullmatch(value) is not None if isinstance(value, str) else _is_moment(value)
        hint = _DATES_HINT if kind == "number" and a_date else ""
        raise InvalidBounds(
            f"{name} of a {kind} column must be a number{_ALSO[kind]}, got {type(value).__name__}{hint}"
        )
    if isinstance(value, Decimal):
        value = float(value)
    try:
        return as_number(value, name, InvalidBounds)
    except OverflowError:
        raise InvalidBounds(f"{name} is too large for a float64; give a number within +-1e308") from None


_ALSO = {
    "number": "",
    "datetime": " (seconds since 1970), a date, a datetime or ISO 8601 text",
    "timedelta": " (seconds) or a timedelta",
}
_DATES_HINT = (
    "; where a column of a CSV file holds dates, name it in datetimes=[...] (on the command line "
    "--datetimes NAME); in a data frame convert it to dates first"
)
# pandas reads words such as "now" and day-first dates as well; bounds are ISO 8601 only.
_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?)?", re.ASCII
)


def _is_moment(value: object) -> bool:
    return value is pd.NaT or isinstance(value, datetime.date | np.datetime64 | str)


def _moment_seconds(value: Any, name: str) -> float:
    if isinstance(value, str):
        return _text_seconds(value, name)
    if isinstance(value, datetime.datetime) and value is not pd.NaT and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, pd.Timestamp):
        value = value.to_datetime64()
    return _seconds(value if isinstance(value, np.datetime64) else _as_datetime64(value), name)


def _as_datetime64(value: Any) -> np.datetime64:
    return np.datetime64("NaT", "s") if value is pd.NaT else np.datetime64(value)


def _text_seconds(value: str, name: str) -> float:
    text = value.strip()
    try:
        if not _ISO.fullmatch(text):
            raise ValueError
        moment = datetime.datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        raise InvalidBounds(
            f"{name} must be an ISO 8601 date such as '2020-01-31' or '2020-01-31T12:00:00', got {value!r}"
        ) from None
    return _moment_seconds(moment, name)


def _duration_seconds(value: Any, name: str) -> float:
    if isinstance(value, pd.Timedelta):
        value = value.to_timedelta64()
    return _seconds(value if isinstance(value, np.timedelta64) else np.timedelta64(value), name)


def _seconds(value: np.datetime64 | np.timedelta64, name: str) -> float:
    out = np.empty(1)
    fill_seconds(np.array([value]), out)
    if np.isnan(out[0]):
        raise InvalidBounds(f"{name} is not a time (NaT); give a date or a number of seconds")
    return float(out[0])
