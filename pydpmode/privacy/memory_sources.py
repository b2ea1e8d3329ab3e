"""Tables in memory: NumPy, pandas, polars, Arrow, lists and dictionaries of them.

Nothing is converted before it is read: each block casts its own slice, so that a table of
float64 columns is copied once and the memory beyond the input is one block.
"""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, Protocol

import numpy as np
import pandas as pd

from ..errors import InvalidArgument, UnsupportedSource
from ..numerics.surfaces import FloatArray
from .arrow_columns import ArrowColumn, import_pyarrow
from .table_source import BaseTable, CodeArray, Kind, write_seconds


class Column(Protocol):
    """One column in memory. `kind` is None when the dtype is not numeric."""

    kind: Kind | None
    dtype: str

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def fill(self, start: int, out: FloatArray) -> None:
        """Write rows start, start + 1, ... into the float64 array `out`."""
        ...

    def codes(self) -> CodeArray:
        """Return identifier codes; see `TableSource.codes`."""
        ...

    def objects(self) -> Sequence[object]:
        """Return the values as Python objects; None or NaN where missing."""
        ...


class MemoryTable(BaseTable):
    """Named columns of equal length in memory."""

    def __init__(self, names: Sequence[str], columns: Sequence[Column]) -> None:
        super().__init__(names)
        self._columns = tuple(columns)
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise UnsupportedSource("the columns differ in length; give columns of one length")
        self._n_rows = lengths.pop() if lengths else 0

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self._n_rows

    def _schema(self, position: int) -> tuple[Kind | None, str]:
        column = self._columns[position]
        return column.kind, column.dtype

    def _blocks(self, positions: list[int], rows_per_block: int) -> Iterator[FloatArray]:
        used = [self._columns[position] for position in positions]
        for start in range(0, self._n_rows, rows_per_block):
            block = np.empty((len(used), min(rows_per_block, self._n_rows - start)))
            for column, row in zip(used, block, strict=True):
                column.fill(start, row)
            yield block

    def _codes(self, position: int) -> CodeArray:
        return self._columns[position].codes()

    def _values_of(self, position: int) -> Iterator[Sequence[object]]:
        yield self._columns[position].objects()


class NumpyColumn:
    """One column of a NumPy array, masked or not, of any memory layout."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        masked = isinstance(values, np.ma.MaskedArray)
        self._mask = np.ma.getmaskarray(values).reshape(-1) if masked else None
        # A column of a matrix has two dimensions.
        self._values = np.asarray(np.ma.getdata(values)).reshape(-1)
        self.dtype = str(self._values.dtype)
        kinds: dict[str, Kind] = {"M": "datetime", "m": "timedelta"}
        numeric: Kind | None = "number" if self._values.dtype.kind in "biuf" else None
        self.kind = kinds.get(self._values.dtype.kind, numeric)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._values)

    def fill(self, start: int, out: FloatArray) -> None:
        """Write rows start, start + 1, ... into `out`."""
        part = self._values[start : start + len(out)]
        if part.dtype.kind in "mM":
            fill_seconds(part, out)
        else:
            # A long double beyond float64 becomes infinite, silently: the warning would tell of a value.
            with np.errstate(all="ignore"):
                np.copyto(out, part, casting="unsafe")
        if self._mask is not None:
            out[self._mask[start : start + len(out)]] = np.nan

    def codes(self) -> CodeArray:
        """Return identifier codes."""
        return array_codes(self._values, self._mask)

    def objects(self) -> Sequence[object]:
        """Return the values as Python objects."""
        values = self._values if self._mask is None else np.ma.MaskedArray(self._values, self._mask)
        plain: list[object] = values.tolist()
        return plain


class ListColumn:
    """A list or tuple of Python numbers. What is not a number (None, text, ...) is missing.

    A list declares no dtype, and refusing it for one entry would tell of that entry's row.
    """

    kind: Kind | None = "number"
    dtype = "list"

    def __init__(self, values: Sequence[object]) -> None:
        self._values = values

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._values)

    def fill(self, start: int, out: FloatArray) -> None:
        """Write rows start, start + 1, ... into `out`."""
        out[:] = [number_or_nan(value) for value in self._values[start : start + len(out)]]

    def codes(self) -> CodeArray:
        """Return identifier codes."""
        return object_codes(self._values)

    def objects(self) -> Sequence[object]:
        """Return the values as they are."""
        return self._values


class PandasColumn:
    """One pandas Series with an extension dtype that is not Arrow's."""

    def __init__(self, values: pd.Series[Any]) -> None:
        self._values = values
        dtype: Any = values.dtype
        # `dtype.name` and not str(): the text of some dtypes lists values.
        self.dtype = str(dtype.name)
        self._zoned = isinstance(dtype, pd.DatetimeTZDtype)
        kind = dtype.subtype.kind if isinstance(dtype, pd.SparseDtype) else dtype.kind
        numeric: Kind | None = "number" if kind in "biuf" else None
        self.kind: Kind | None = "datetime" if self._zoned else numeric

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._values)

    def fill(self, start: int, out: FloatArray) -> None:
        """Write rows start, start + 1, ... into `out`."""
        part = self._values.iloc[start : start + len(out)]
        if self._zoned:
            fill_seconds(part.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), out)
        else:
            out[:] = part.to_numpy(dtype="float64", na_value=np.nan)

    def codes(self) -> CodeArray:
        """Return identifier codes."""
        dtype: Any = self._values.dtype
        texts = isinstance(dtype, pd.StringDtype) and dtype.storage == "python"
        if texts or getattr(getattr(dtype, "subtype", None), "kind", "") == "O":
            return object_codes(self.objects())
        return np.asarray(pd.factorize(self._values, use_na_sentinel=True)[0], dtype=np.int64)

    def objects(self) -> Sequence[object]:
        """Return the values as Python objects."""
        plain: list[object] = self._values.astype(object).tolist()
        return plain


class PolarsColumn:
    """One polars Series."""

    def __init__(self, values: Any) -> None:
        self._values = values
        dtype = values.dtype
        # The class's name and not str(): the text of an Enum lists its categories.
        self.dtype = "list" if dtype.is_nested() else dtype.base_type().__name__
        self.kind = _polars_kind(dtype, self.dtype)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._values)

    def fill(self, start: int, out: FloatArray) -> None:
        """Write rows start, start + 1, ... into `out`."""
        polars = sys.modules["polars"]
        part = self._values.slice(start, len(out))
        if self.kind == "number":
            out[:] = part.cast(polars.Float64).to_numpy()
            return
        # Time types are counts: of days for dates, else of the dtype's time unit.
        steps = part.to_physical().fill_null(0).to_numpy()
        write_seconds(steps, getattr(part.dtype, "time_unit", None) or "D", out)
        out[part.is_null().to_numpy()] = np.nan

    def codes(self) -> CodeArray:
        """Return identifier codes."""
        values = self._values
        polars = sys.modules["polars"]
        if self.dtype in ("Categorical", "Enum"):
            values = values.cast(polars.String)
        if self.dtype in ("String", "Categorical", "Enum", "Binary") or self.dtype not in _POLARS_PLAIN:
            return object_codes(values.to_list())
        # Nulls are filled, since NumPy would make floats of integers with nulls and merge large ones.
        missing = values.is_null().to_numpy()
        physical = values.to_physical()
        filled = physical.fill_null(False if self.dtype == "Boolean" else 0)
        return array_codes(filled.to_numpy(), np.asarray(missing))

    def objects(self) -> Sequence[object]:
        """Return the values as Python objects."""
        plain: list[object] = self._values.to_list()
        return plain


_POLARS_PLAIN = {
    *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
    *("Float32", "Float64", "Boolean", "Date", "Datetime", "Duration", "Time"),
}


def _polars_kind(dtype: Any, name: str) -> Kind | None:
    times: dict[str, Kind] = {"Date": "datetime", "Datetime": "datetime", "Duration": "timedelta"}
    return times.get(name, "number" if dtype.is_numeric() or name == "Boolean" else None)


def fill_seconds(values: np.ndarray[Any, Any], out: FloatArray) -> None:
    """Write datetime64 or timedelta64 values as seconds into `out`: NaT becomes NaN."""
    unit, step = np.datetime_data(values.dtype)
    if unit in ("Y", "M"):
        # Calendar units have no fixed length as dates; as durations NumPy's mean length is taken.
        mean_days = {"Y": 365.2425, "M": 365.2425 / 12}[unit]
        if values.dtype.kind == "m":
            write_seconds(values.astype(np.int64), "D", out)
            out *= step * mean_days
            out[np.isnat(values)] = np.nan
            return
        values, unit, step = values.astype("datetime64[D]"), "D", 1
    steps = values.view(np.int64) if values.dtype.isnative else values.astype(np.int64)
    write_seconds(steps * step if step != 1 else steps, unit, out)
    out[np.isnat(values)] = np.nan


def array_codes(values: np.ndarray[Any, Any], mask: np.ndarray[Any, Any] | None = None) -> CodeArray:
    """Return identifier codes of a one-dimensional NumPy array; masked, NaN and NaT are missing."""
    if values.dtype.kind in "OT":
        return object_codes(values.tolist(), mask)
    missing = np.zeros(len(values), dtype=bool) if mask is None else mask.copy()
    if values.dtype.kind in "mM":
        missing |= np.isnat(values)
    elif values.dtype.kind in "fc":
        missing |= np.isnan(values)
    present = np.asarray(values[~missing], dtype=values.dtype.newbyteorder("="))
    if present.dtype.kind in "mM":
        present = present.view(np.int64)
    codes = np.full(len(values), -1, dtype=np.int64)
    # pandas hashes the common dtypes in linear time; NumPy sorts the rest.
    if present.dtype.kind in "biu" or present.dtype in (np.float32, np.float64):
        codes[~missing] = pd.factorize(present)[0]
    else:
        codes[~missing] = np.unique(present, return_inverse=True)[1].reshape(-1)
    return codes


def object_codes(values: Sequence[object], mask: np.ndarray[Any, Any] | None = None) -> CodeArray:
    """Return identifier codes of Python objects; None, NaN, NaT, pd.NA and masked are missing.

    Each entry is treated by itself: one odd identifier must not regroup the other rows. Hence a dictionary:
    pandas' tables choose by ALL entries how they compare (texts alone may end at a NUL, or be taken by their
    `repr`), and compare entries of different hashes as well, when these happen to meet.
    """
    codes = np.empty(len(values), dtype=np.int64)
    seen: dict[object, int] = {}
    for row, value in enumerate(values):
        key = value if type(value) in (str, int) else _as_key(value)
        missing = key is None or (mask is not None and bool(mask[row]))
        codes[row] = -1 if missing else seen.setdefault(key, len(seen))
    return codes


# Types of which equal values have equal hashes, also across types (1, 1.0 and True are one person).
_COMPARABLE: frozenset[type] = frozenset(
    (
        *(str, bytes, bool, int, float, complex, Decimal, Fraction),
        *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta, pd.Timestamp, pd.Timedelta),
    )
)
_BASES: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (str, str.__str__),
    (bytes, bytes.__bytes__),
    (int, int.__index__),
    (float, float.__float__),
)


def _as_key(value: object) -> object:
    """Return what identifies a value, whatever the others are: a key of a dictionary; None when missing."""
    if isinstance(value, np.generic):
        value = _without_numpy(value)
    if value is None or value is pd.NA or value is pd.NaT or value is np.ma.masked:
        return None
    for base, plain in _BASES:
        if isinstance(value, base) and type(value) not in _COMPARABLE:
            value = plain(value)
    if isinstance(value, float | complex | Decimal) and (
        value.is_nan() if isinstance(value, Decimal) else value != value
    ):
        return None
    if isinstance(value, tuple):
        return ("tuple", *map(_as_key, value))
    try:
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            # Between zones, pandas and Python differ about equal moments in the hour that comes twice.
            value = value.astimezone(datetime.UTC)
        hash(value)
    except (TypeError, OverflowError):
        return (type(value).__name__, repr(value))
    # Equal values of other types need not have equal hashes: only those of one type are one person.
    return value if type(value) in _COMPARABLE else (type(value), value)


def _without_numpy(value: np.generic) -> object:
    """Return a NumPy scalar as a Python object: it may equal a number of another hash (float32(0.1), 0.1)."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        if np.isnat(value):
            return None
        try:
            return pd.Timestamp(value) if isinstance(value, np.datetime64) else pd.Timedelta(value)
        except ValueError:  # a unit or a range that pandas has not
            return (str(value.dtype), int(value.astype(np.int64)))
    plain: object = value.item()
    if isinstance(plain, np.generic):  # long doubles
        plain = complex(plain) if isinstance(plain, np.complexfloating) else float(plain)  # type: ignore[arg-type]
    return plain


def number_or_nan(value: object) -> float:
    """Return a number as a float; NaN for anything else."""
    if isinstance(value, np.timedelta64) or not isinstance(value, Real | Decimal | np.bool_):
        return math.nan
    number: Any = value
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def is_polars(data: object, *class_names: str) -> bool:
    """Whether `data` is a polars object of one of these classes, without importing polars."""
    kind = type(data)
    return kind.__module__.partition(".")[0] == "polars" and kind.__name__ in class_names


def column_of(data: object) -> Column | None:
    """Return the column that a one-dimensional object is, None when it is not one."""
    if isinstance(data, pd.Series):
        return _pandas_column(data)
    if isinstance(data, np.ndarray):
        return NumpyColumn(data) if data.ndim == 1 else None
    if is_polars(data, "Series"):
        return PolarsColumn(data)
    if isinstance(data, list | tuple):
        return ListColumn(data)
    if type(data).__module__.partition(".")[0] == "pyarrow":
        pa = import_pyarrow()
        if isinstance(data, pa.ChunkedArray):
            return ArrowColumn(data)
        if isinstance(data, pa.Array):
            return ArrowColumn(pa.chunked_array([data]))
    return None


def table_of_array(data: np.ndarray[Any, Any], columns: tuple[str, ...] | None) -> MemoryTable:
    """Return a 1-D (n points of one column) or 2-D (n x d) array as a table."""
    if data.ndim not in (1, 2):
        raise UnsupportedSource(
            f"an array of {data.ndim} dimensions is not a table; give shape (n,) for one column or (n, d)"
        )
    table = data.reshape(-1, 1) if data.ndim == 1 else data
    width = table.shape[1]
    if width == 0:
        raise UnsupportedSource("the array has 0 columns; give shape (n,) or (n, d) with d >= 1")
    names = columns or tuple(f"x{j + 1}" for j in range(width))
    if len(names) != width:
        raise InvalidArgument(f"columns has {len(names)} names, but the array has {width} columns")
    return MemoryTable(names, [NumpyColumn(table[:, j]) for j in range(width)])


def table_of_frame(data: pd.DataFrame) -> MemoryTable:
    """Return a pandas data frame as a table. Labels that are not text are named by their text."""
    names = [str(label) for label in data.columns]
    return MemoryTable(names, [_pandas_column(data.iloc[:, j]) for j in range(len(names))])


def table_of_polars(data: Any) -> MemoryTable:
    """Return a polars data frame as a table."""
    return MemoryTable(data.columns, [PolarsColumn(data.to_series(j)) for j in range(data.width)])


def table_of_arrow(data: Any) -> MemoryTable:
    """Return a pyarrow Table, or anything that exports an Arrow stream, as a table.

    A stream that can be read once only (a record-batch reader) is read into memory here.
    """
    pa = import_pyarrow()
    try:
        table = data if isinstance(data, pa.Table) else pa.table(data)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError, ValueError):
        # `from None`: the library's message may hold a value.
        raise UnsupportedSource(
            f"{type(data).__name__} does not export an Arrow table; turn it into a pyarrow.Table first"
        ) from None
    return MemoryTable(table.column_names, [ArrowColumn(column) for column in table.columns])


def table_of_mapping(data: Mapping[Any, object]) -> MemoryTable:
    """Return a dictionary of one-dimensional columns as a table."""
    names = [str(name) for name in data]
    columns = []
    for name, values in zip(names, data.values(), strict=True):
        column = column_of(values)
        if column is None:
            raise UnsupportedSource(
                f"column {name!r} is a {type(values).__name__}; each column of a dictionary must be a "
                "one-dimensional array, Series, Arrow array or list"
            )
        columns.append(column)
    return MemoryTable(names, columns)


def _pandas_column(values: pd.Series[Any]) -> Column:
    if isinstance(values.dtype, np.dtype):
        return NumpyColumn(values.to_numpy())
    if isinstance(values.dtype, pd.ArrowDtype):
        pa = import_pyarrow()
        arrow = pa.array(values.array)
        return ArrowColumn(arrow if isinstance(arrow, pa.ChunkedArray) else pa.chunked_array([arrow]))
    return PandasColumn(values)
