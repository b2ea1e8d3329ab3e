"""Tables in files: CSV (plain or gzip) and Parquet (a file or a folder of files).

Both are read in one pass of bounded memory, and the schema decides how a cell is read: the
Parquet schema, or for CSV the caller, who asks for a column as numbers (or as datetimes).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import UnsupportedSource
from ..numerics.surfaces import FloatArray
from .arrow_columns import (
    arrow_codes,
    arrow_dtype_name,
    arrow_kind,
    arrow_objects,
    fill_from_arrow,
    import_pyarrow,
)
from .csv_records import Records, is_number, keys_of, numbers_of, read_records, seconds_of
from .table_source import BaseTable, CodeArray, Kind, gather_blocks

PARQUET_SUFFIXES = (".parquet", ".pq")
CSV_SUFFIXES = (".csv", ".csv.gz")
_ROWS_UNCOUNTED = 1 << 20
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def open_file(path: Path, datetimes: Sequence[str] = ()) -> BaseTable:
    """Return the table in a file or folder, by its suffix.

    Raises
    ------
    UnsupportedSource
        When there is no such file, or it is of another kind, damaged or without a header.
    EmptyData, DuplicateColumns
        When the file has no rows, or two columns of one name.
    """
    name = path.name.lower()
    if path.is_dir():
        return ParquetTable(_parquet_files(path))
    if not name.endswith(PARQUET_SUFFIXES + CSV_SUFFIXES):
        raise UnsupportedSource(
            f"{str(path)!r} is not a file of a known kind; give a path that ends in "
            f"{', '.join(CSV_SUFFIXES + PARQUET_SUFFIXES)}, or a folder of Parquet files"
        )
    if not path.is_file():
        raise UnsupportedSource(f"there is no file {str(path)!r}; check the path")
    return ParquetTable([path]) if name.endswith(PARQUET_SUFFIXES) else CsvTable(path, datetimes)


class FileGuard:
    """The state of a file when it was opened: a later read of a changed file is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state = self._now()

    def check(self) -> None:
        """Raise `UnsupportedSource` when the file is not the one that was opened."""
        if self._now() != self._state:
            raise UnsupportedSource(f"{str(self.path)!r} was changed after it was opened; open it again")

    def _now(self) -> tuple[int, int]:
        try:
            state = self.path.stat()
        except OSError:
            return -1, -1
        return state.st_size, state.st_mtime_ns


class CsvTable(BaseTable):
    """A CSV file with a header line. Every column can be read, as numbers unless named a datetime.

    "true" and "false", in any case, are the numbers 1 and 0. Any other cell that is not a number (a datetime,
    for those) is missing, and so is a record with too
    few or too many fields: it keeps its place. See `csv_records` for what a record is.
    """

    def __init__(self, path: Path, datetimes: Sequence[str] = ()) -> None:
        import_pyarrow()
        self._path = path
        self._guard = FileGuard(path)
        header, has_rows = self._read_header()
        holds_numbers = any(is_number(name) for name in header) and not _is_numbered(header)
        names = [_decoded(name) for name in header]
        super().__init__(names, names_are_public=not holds_numbers, names_from_text=True)
        self._has_rows = bool(has_rows)
        self._datetimes = {self.position(name) for name in datetimes}

    @cached_property
    def _n_rows(self) -> int:
        return sum(len(records.ends) for records in self._records()) - 1

    @property
    def is_empty(self) -> bool:
        """Whether no record follows the header."""
        return not self._has_rows

    @property
    def n_rows(self) -> int:
        """The number of records after the header, counted in a pass over the file."""
        return self._n_rows

    def _schema(self, position: int) -> tuple[Kind | None, str]:
        return ("datetime" if position in self._datetimes else "number"), "text"

    def _blocks(self, positions: list[int], rows_per_block: int) -> Iterator[FloatArray]:
        parts = (self._values(positions, records, skip) for records, skip in self._with_header())
        # Blocks of a usual size need no count of the records beforehand, which takes a pass.
        size = rows_per_block if rows_per_block <= _ROWS_UNCOUNTED else min(rows_per_block, self.n_rows)
        return gather_blocks(parts, len(positions), size)

    def _values(self, positions: list[int], records: Records, skip: int) -> FloatArray:
        width = len(self.names)
        whole = records.is_whole(width)
        whole[:skip] = False
        out = np.full((len(positions), len(whole)), np.nan)
        for row, position in zip(out, positions, strict=True):
            cells = records.cells(position, whole, width)
            row[whole] = seconds_of(cells) if position in self._datetimes else numbers_of(cells)
        return out[:, skip:]

    def _codes(self, position: int) -> CodeArray:
        pa = import_pyarrow()
        return arrow_codes(
            (self._keys(position, records, skip) for records, skip in self._with_header()), pa.large_binary()
        )

    def _values_of(self, position: int) -> Iterator[Sequence[object]]:
        for records, skip in self._with_header():
            keys = self._keys(position, records, skip).to_pylist()
            yield [None if key is None else key.decode("utf-8", "replace") for key in keys]

    def _keys(self, position: int, records: Records, skip: int) -> Any:
        pa = import_pyarrow()
        width = len(self.names)
        whole = records.is_whole(width)
        whole[:skip] = False
        keys = keys_of(records.cells(position, whole, width))
        # Records without a key take none: null.
        place = np.cumsum(whole) - 1
        taken = keys.take(pa.array(place, mask=~whole))
        return taken.slice(skip)

    def _with_header(self) -> Iterator[tuple[Records, int]]:
        """Yield the parts of the file with the number of header records in each."""
        for number, records in enumerate(self._records()):
            yield records, int(number == 0)

    def _records(self) -> Iterator[Records]:
        self._guard.check()
        with self._opened() as stream:
            yield from read_records(stream)

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        opener: Any = gzip.open if self._path.name.lower().endswith(".gz") else open
        try:
            with opener(self._path, "rb") as stream:
                yield stream
        except (EOFError, zlib.error, OSError):
            raise UnsupportedSource(
                f"{str(self._path)!r} cannot be read: it is damaged, cut short or not readable for this user"
            ) from None

    def _read_header(self) -> tuple[list[bytes], bool]:
        with self._opened() as stream:
            if stream.read(2) in _UTF16_MARKS:
                raise UnsupportedSource(f"{str(self._path)!r} is in UTF-16; save it as UTF-8")
        parts = self._records()
        first = next(parts, None)
        if first is None or first.first_is_lost:
            raise UnsupportedSource(
                f"{str(self._path)!r} has no header line; its first line must name the columns"
            )
        header = first.fields_of_first()
        has_rows = len(first.ends) > 1 or next(parts, None) is not None
        parts.close()  # type: ignore[attr-defined]
        self._check_header(header)
        return header, has_rows

    def _check_header(self, header: list[bytes]) -> None:
        """Refuse a first line that names nothing. The message never shows it: it may be a row."""
        named = [name for name in header if name.strip()]
        if not named or (all(is_number(name) for name in named) and not _is_numbered(header)):
            raise UnsupportedSource(
                f"{str(self._path)!r} has no header line: its first line is empty or holds numbers only; "
                "it must name the columns"
            )


class ParquetTable(BaseTable):
    """One or more Parquet files of one schema, one after the other."""

    def __init__(self, paths: Sequence[Path]) -> None:
        damage = _signs_of_damage()
        import pyarrow.parquet

        self._guards = [FileGuard(path) for path in paths]
        self._schema_read: Any = None
        self._row_count = 0
        for path in paths:
            try:
                with pyarrow.parquet.ParquetFile(path) as file:
                    schema, rows = file.schema_arrow, file.metadata.num_rows
                    parts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            except damage:
                raise UnsupportedSource(f"{str(path)!r} is not a readable Parquet file") from None
            if min(parts, default=0) < 0 or sum(parts) != rows:
                raise UnsupportedSource(f"{str(path)!r} is damaged: its numbers of rows do not add up")
            self._schema_read = self._schema_read or schema
            self._check_same_schema(path, schema)
            self._row_count += rows
        super().__init__(self._schema_read.names)

    @property
    def n_rows(self) -> int:
        """The number of rows, from the files' own record of it."""
        return self._row_count

    def _check_same_schema(self, path: Path, schema: Any) -> None:
        if schema.equals(self._schema_read):
            return
        for wanted in self._schema_read:
            index = schema.get_field_index(wanted.name)
            got = None if index < 0 else schema.field(index).type
            if got != wanted.type:
                has = "has no such column" if got is None else f"holds it as {arrow_dtype_name(got)}"
                raise UnsupportedSource(
                    f"column {wanted.name!r} is {arrow_dtype_name(wanted.type)} in the first Parquet file, "
                    f"but {str(path)!r} {has}; all files of a folder need one schema"
                )

    def _schema(self, position: int) -> tuple[Kind | None, str]:
        dtype = self._schema_read.field(position).type
        return arrow_kind(dtype), arrow_dtype_name(dtype)

    def _blocks(self, positions: list[int], rows_per_block: int) -> Iterator[FloatArray]:
        parts = (self._values(batch, positions) for batch in self._batches(positions))
        return gather_blocks(parts, len(positions), min(rows_per_block, self._row_count))

    def _values(self, batch: Any, positions: list[int]) -> FloatArray:
        out = np.empty((len(positions), len(batch)))
        for row, position in zip(out, positions, strict=True):
            fill_from_arrow(self._column(batch, position), row)
        return out

    def _codes(self, position: int) -> CodeArray:
        columns = (self._column(batch, position) for batch in self._batches([position]))
        return arrow_codes(columns, self._schema_read.field(position).type)

    def _values_of(self, position: int) -> Iterator[Sequence[object]]:
        for batch in self._batches([position]):
            yield arrow_objects(self._column(batch, position))

    def _column(self, batch: Any, position: int) -> Any:
        return batch.column(batch.schema.get_field_index(self.names[position]))

    def _batches(self, positions: Sequence[int]) -> Iterator[Any]:
        damage = _signs_of_damage()
        import pyarrow.parquet

        names = list(dict.fromkeys(self.names[position] for position in positions))
        for guard in self._guards:
            guard.check()
            try:
                # A buffer size makes the reader stream its pages: a row group may be the whole file.
                with pyarrow.parquet.ParquetFile(guard.path, buffer_size=1 << 20, pre_buffer=False) as file:
                    yield from file.iter_batches(batch_size=1 << 17, columns=names)
            except damage:
                raise UnsupportedSource(f"{str(guard.path)!r} is damaged and cannot be read") from None


def _signs_of_damage() -> tuple[type[Exception], ...]:
    """Return the errors by which Arrow refuses a file: its own, and of names that are not UTF-8."""
    return (import_pyarrow().ArrowException, OSError, UnicodeDecodeError)


def _parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files below `folder` in the order of their paths, hidden ones left out."""
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.name.lower().endswith(PARQUET_SUFFIXES)
        and path.is_file()
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise UnsupportedSource(f"the folder {str(folder)!r} holds no Parquet file; give one that does")
    return found


def _decoded(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _is_numbered(header: list[bytes]) -> bool:
    """Whether the header is 0, 1, 2, ..., as pandas writes it for a table without names."""
    names = header[1:] if header[0] == b"" else header
    return names == [str(j).encode() for j in range(len(names))]
