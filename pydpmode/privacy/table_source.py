"""What every table of rows offers, whatever it was read from: names, kinds and blocks.

Checks look at the schema (names and dtypes), never at values: the schema is public, and an
error that depended on a value would tell something about a row.
"""

from __future__ import annotations

import difflib
import operator
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import DuplicateColumns, InvalidArgument, NonNumericColumn, UnknownColumn, UnsupportedSource
from ..numerics.surfaces import FloatArray

Kind = Literal["number", "datetime", "timedelta"]
CodeArray = npt.NDArray[np.int64]
IntegerArray = npt.NDArray[np.int64]

# The time units of NumPy, pandas, polars and Arrow; "generic" is that of arrays that hold NaT only.
_SECONDS_PER_UNIT = {"generic": 1, "s": 1, "m": 60, "h": 3600, "D": 86400, "W": 7 * 86400}
_UNITS_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}

_LONGEST_LIST = 20


class TableSource(Protocol):
    """A table of private rows, read in blocks of float64.

    Attributes
    ----------
    names : tuple of str
        The column names, in order, without duplicates.
    names_are_public : bool
        False when the names may be a row in truth: then no message shows them.
    n_rows : int
        The number of rows, those with missing values included. Counting the records of a
        CSV file takes a pass, made when this is first asked for.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        ...

    @property
    def names_are_public(self) -> bool:
        """Whether the names may be shown."""
        ...

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        ...

    @property
    def places_are_fixed(self) -> bool:
        """Whether replacing a row leaves every other row in the block it was in."""
        ...

    @property
    def parts(self) -> int:
        """How many times a block is begun early, at a boundary of the stored table, plus one."""
        ...

    def check_passes(self, passes: int) -> None:
        """Raise `UnsupportedSource` when the rows cannot be read so many times. Reads nothing."""
        ...

    def tie(self, column: str) -> None:
        """Say that a column is joined to the others by the place of a row: passes must keep one order."""
        ...

    def summed(
        self, columns: Sequence[str], rows_per_block: int, work: Callable[[FloatArray], IntegerArray]
    ) -> IntegerArray | None:
        """Return the exact sum of `work(block)` computed where the rows are; None where that is here."""
        ...

    def kind(self, name: str) -> Kind:
        """Return what a column holds, from its dtype alone.

        Raises
        ------
        UnknownColumn
            When there is no such column.
        NonNumericColumn
            When its dtype is not numeric, boolean, datetime or timedelta.
        """
        ...

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that all `columns` exist and can be read as numbers, without reading a row.

        Raises
        ------
        UnknownColumn, NonNumericColumn
            As in `kind`.
        """
        ...

    def blocks(self, columns: Sequence[str], rows_per_block: int) -> Iterator[FloatArray]:
        """Yield the rows in order, in blocks.

        Parameters
        ----------
        columns : sequence of str
            At least one.
        rows_per_block : int
            At least 1. Block i holds rows i * rows_per_block and on, whatever the parts in
            which a file or an Arrow table is stored: membership depends on the position only.

        Yields
        ------
        array of shape (len(columns), b), float64, C-contiguous
            A fresh array that the consumer may overwrite. Missing is NaN, infinities are
            kept, booleans are 0 and 1, datetimes are seconds since 1970-01-01 UTC and
            timedeltas are seconds.
        """
        ...

    def codes(self, column: str) -> CodeArray:
        """Return an integer code per row for a column that identifies persons.

        The column may have any dtype. The codes are 0..N-1, with no gap, and -1 for rows
        whose identifier is missing: they belong to no person. The same data give the same codes.

        Returns
        -------
        array of shape (n_rows,), int64

        Raises
        ------
        UnknownColumn
            When there is no such column.
        """
        ...

    def holds_numbers(self, column: str) -> bool:
        """Whether a column is read as numbers, by its dtype."""
        ...

    def check_levels(self, column: str, *, texts: bool) -> None:
        """Check by the dtype alone that a column can have levels that are texts, or numbers.

        Raises
        ------
        InvalidArgument
            When it cannot.
        """
        ...

    def level_codes(self, column: str, levels: Sequence[object]) -> CodeArray:
        """Return the position of each row's value among declared levels, -1 where it is none of them."""
        ...


class BaseTable(ABC):
    """The part of `TableSource` that all sources share: names, checks and arguments.

    Parameters
    ----------
    names : sequence of str
        The names of the columns.
    names_are_public : bool
        False when the names may be a row in truth (a file without a header line): then no
        message lists them.
    names_from_text : bool
        True when the names are the first line of a text file: a message then shows only a name
        that is like the one asked for.
    """

    # Whether replacing a row leaves every other row in the block it was in.
    places_are_fixed = True

    def __init__(
        self, names: Sequence[str], *, names_are_public: bool = True, names_from_text: bool = False
    ) -> None:
        self._names = tuple(names)
        self._names_from_text = names_from_text
        self._names_are_public = names_are_public
        self._check_duplicates()
        self._positions = {name: position for position, name in enumerate(self._names)}

    def __repr__(self) -> str:
        """Name the class only: a representation may end in a log."""
        return f"<{type(self).__name__} with {len(self._names)} columns>"

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return self._names

    @property
    def names_are_public(self) -> bool:
        """Whether the names may be shown: not where they may be a row in truth."""
        return self._names_are_public

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no row."""
        return self.n_rows == 0

    @property
    def parts(self) -> int:
        """How many times a block is begun early, at a boundary of the stored table, plus one."""
        return 1

    def check_passes(self, passes: int) -> None:
        """Raise `UnsupportedSource` when the rows cannot be read so many times. Reads nothing."""
        return None

    def tie(self, column: str) -> None:
        """Say that a column is joined to the others by the place of a row; here the order is always one."""
        return None

    def summed(
        self, columns: Sequence[str], rows_per_block: int, work: Callable[[FloatArray], IntegerArray]
    ) -> IntegerArray | None:
        """Return the sum of `work(block)` over all blocks, computed where the rows are.

        None where the rows are read in this process. The sum is exact (integers), so its order and
        the place of the blocks do not matter. NOT private.
        """
        return None

    @abstractmethod
    def _schema(self, position: int) -> tuple[Kind | None, str]:
        """Return the kind (None: not numeric) and the dtype's name of the column at `position`."""

    @abstractmethod
    def _blocks(self, positions: list[int], rows_per_block: int) -> Iterator[FloatArray]:
        """Yield the blocks; the arguments are checked."""

    @abstractmethod
    def _codes(self, position: int) -> CodeArray:
        """Return the codes of the column at `position`."""

    def kind(self, name: str) -> Kind:
        """Return "number", "datetime" or "timedelta", from the column's dtype alone."""
        kind, dtype = self._schema(self.position(name))
        if kind is None:
            raise NonNumericColumn(
                f"column {name!r} has dtype {dtype}; a number, boolean, datetime or timedelta dtype is "
                f"needed. {_how_to_convert(dtype)}"
            )
        return kind

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that all `columns` exist and can be read as numbers, without reading a row."""
        for name in as_names(columns):
            self.kind(name)

    def blocks(self, columns: Sequence[str], rows_per_block: int) -> Iterator[FloatArray]:
        """Return an iterator over fresh blocks of shape (len(columns), b); see `TableSource`."""
        names = as_names(columns)
        if not names:
            raise InvalidArgument("columns is empty; name at least one column")
        self.check_columns(names)
        return self._blocks([self.position(name) for name in names], as_count(rows_per_block))

    def codes(self, column: str) -> CodeArray:
        """Return one integer code per row for a person identifier; see `TableSource`."""
        return self._codes(self.position(column))

    def holds_numbers(self, column: str) -> bool:
        """Whether a column is read as numbers, by its dtype."""
        return self._schema(self.position(column))[0] == "number"

    def check_levels(self, column: str, *, texts: bool) -> None:
        """Check by the dtype alone that a column can have levels that are texts, or numbers."""
        kind, dtype = self._schema(self.position(column))
        # The cells of a CSV file are texts that may be read as numbers: both will do.
        if kind is not None and kind != "number":
            raise InvalidArgument(f"column {column!r} holds {kind} values; levels are texts or numbers")
        if texts and kind == "number" and dtype != "text":
            raise InvalidArgument(
                f"column {column!r} holds numbers ({dtype}), and the declared levels are texts; "
                "declare numbers"
            )

    def level_codes(self, column: str, levels: Sequence[object]) -> CodeArray:
        """Return the position of each row's value among declared levels; see `TableSource`."""
        parts = [object_level_codes(part, levels) for part in self._values_of(self.position(column))]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def _values_of(self, position: int) -> Iterator[Sequence[object]]:
        """Yield the values of a column as Python objects, in parts: for declared levels."""
        raise UnsupportedSource(
            f"levels that are texts cannot be read from this kind of table ({type(self).__name__}); "
            "use a column of numbers"
        )

    def position(self, name: str) -> int:
        """Return the position of the column, or raise `UnknownColumn`."""
        found = self._positions.get(name)
        if found is None:
            raise UnknownColumn(f"there is no column {name!r}; {self._available(name)}")
        return found

    def _available(self, wanted: str) -> str:
        if not self._names_are_public:
            return (
                f"the file has {len(self._names)} columns, whose names are not shown because its first "
                "line holds numbers and may be a row: check that the first line is a header"
            )
        close = difflib.get_close_matches(str(wanted), self._names, n=1)
        if self._names_from_text and not close:
            # Without a likeness nothing says that the first line is a header and not a person.
            return (
                f"the first line has {len(self._names)} names (comma separated) and none like it: check "
                "the spelling, that the first line is a header, and that commas separate the fields"
            )
        if self._names_from_text:
            return f"did you mean {close[0]!r}?"
        shown = ", ".join(repr(name) for name in self._names[:_LONGEST_LIST])
        more = len(self._names) - _LONGEST_LIST
        listed = f"the columns are {shown}" + (f" and {more} more" if more > 0 else "")
        return listed + (f"; did you mean {close[0]!r}?" if close else "")

    def _check_duplicates(self) -> None:
        # An empty name is no name: nobody can mean it, and spreadsheets write several.
        twice = [name for name, count in Counter(self._names).items() if count > 1 and name]
        if not twice:
            return
        if not self._names_are_public:
            raise DuplicateColumns(
                "two entries of the first line are equal; each column needs its own name in a header line"
            )
        shown = ", ".join(repr(name) for name in twice[:_LONGEST_LIST])
        raise DuplicateColumns(f"more than one column is called {shown}; rename or drop all but one")


def object_level_codes(values: Sequence[object], levels: Sequence[object]) -> CodeArray:
    """Return the position of each value among the levels, -1 where it is none; each by itself."""
    place = {level: number for number, level in enumerate(levels)}

    def position(value: object) -> int:
        try:
            return place.get(value, -1)
        except TypeError:  # a list in a cell, say
            return -1

    return np.fromiter((position(value) for value in values), dtype=np.int64, count=len(values))


def placed_sum(hashes: npt.NDArray[np.integer[Any]], first: int) -> int:
    """Return a number of hashes and their places, `first` on, that adds up over parts, modulo 2^64."""
    places = np.arange(first + 1, first + 1 + len(hashes), dtype=np.uint64)
    # Odd factors, spread over all bits (the golden ratio); products and sums are modulo 2^64.
    factors = places * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    return int(np.sum(hashes.astype(np.uint64) * factors, dtype=np.uint64))


class TiedColumns:
    """Columns that are joined to others by the place of a row, with a fingerprint of their order."""

    def __init__(self) -> None:
        self._known: dict[int, int | None] = {}

    def add(self, position: int) -> None:
        """Tie a column from the next pass on."""
        self._known.setdefault(position, None)

    def start(self) -> dict[int, int]:
        """Return the fingerprints of a pass that begins, by the column's position: 0."""
        return dict.fromkeys(self._known, 0)

    def changed(self, found: Mapping[int, int]) -> int | None:
        """Return the column whose order is not that of the pass before, None when there is none."""
        for position, fingerprint in found.items():
            wanted = self._known.get(position)
            if wanted is None:
                self._known[position] = fingerprint % 2**64
            elif wanted != fingerprint % 2**64:
                # Releases that join nothing need no order, and go on.
                self._known.pop(position, None)
                return position
        return None


def changed_order(what: str, column: str) -> UnsupportedSource:
    """Return the error of rows that came in another order than in an earlier pass."""
    return UnsupportedSource(
        f"{what} gave its rows in another order (or other rows) than in an earlier pass, and column "
        f"{column!r} is joined to the others by their order; nothing was released. Sort by a unique key at "
        "the end, or write the rows to a file"
    )


def as_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return column names as a tuple; one string is one name."""
    return (columns,) if isinstance(columns, str) else tuple(columns)


def as_count(rows_per_block: object) -> int:
    """Return a number of rows >= 1 as an int, or raise `InvalidArgument`."""
    message = f"rows_per_block must be a whole number >= 1, got {type(rows_per_block).__name__}"
    if isinstance(rows_per_block, bool | np.bool_):
        raise InvalidArgument(message)
    try:
        count = operator.index(rows_per_block)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidArgument(message) from None
    if count < 1:
        raise InvalidArgument(f"rows_per_block must be a whole number >= 1, got {count}")
    return count


def write_seconds(steps: npt.NDArray[np.integer[Any]], unit: str, out: FloatArray) -> None:
    """Write integer counts of a time unit into `out` as seconds.

    One moment gives the same float in every unit: whole seconds are exact, and the fraction is
    divided by itself (a count of nanoseconds since 1970 does not fit a float64).
    """
    per_second = _UNITS_PER_SECOND.get(unit)
    if per_second is None:
        out[:] = steps
        out *= _SECONDS_PER_UNIT[unit]
        return
    whole, rest = np.divmod(steps, per_second)
    np.divide(rest, per_second, out=out)
    out += whole


def gather_blocks(parts: Iterable[FloatArray], width: int, rows_per_block: int) -> Iterator[FloatArray]:
    """Re-cut parts of shape (width, any) into blocks of `rows_per_block` rows; the last may be shorter."""
    block = np.empty((width, rows_per_block))
    filled = 0
    for part in parts:
        taken = 0
        while taken < part.shape[1]:
            step = min(rows_per_block - filled, part.shape[1] - taken)
            block[:, filled : filled + step] = part[:, taken : taken + step]
            taken += step
            filled += step
            if filled == rows_per_block:
                yield block
                block = np.empty((width, rows_per_block))
                filled = 0
    if filled:
        yield np.ascontiguousarray(block[:, :filled])


def _how_to_convert(dtype: str) -> str:
    if "complex" in dtype:
        return "Use its real or imaginary part, for example data.real."
    return (
        "Convert numbers written as text with pandas.to_numeric(column, errors='coerce'), dates with "
        "pandas.to_datetime(column, errors='coerce'). Categories are for by= with their levels= in a "
        "regression; elsewhere leave the column out."
    )
