"""Tables that arrive as Arrow record batches: data sets, readers, lazy frames, queries.

Each is read in one pass of bounded memory. What a library says when a pass fails may quote a cell, so
only the kind of its error is passed on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import numpy as np

from ..budget import as_whole
from ..errors import InvalidArgument, MissingDependency, PydpmodeError, UnsupportedSource
from ..numerics.surfaces import FloatArray
from .arrow_columns import (
    arrow_codes,
    arrow_dtype_name,
    arrow_kind,
    arrow_objects,
    fill_from_arrow,
    import_pyarrow,
    order_fingerprint,
)
from .table_source import BaseTable, CodeArray, Kind, TiedColumns, changed_order, gather_blocks

# Rows asked for at a time, and at most converted at a time: 1 MB a column.
BATCH_ROWS = 1 << 17

# Readers whose one pass has begun, or is about to, whatever object they were given through.
_STARTED: WeakSet[Any] = WeakSet()
_STARTING = threading.Lock()

Opener = Callable[[list[str]], Iterable[Any]]


class RowStream:
    """Rows that arrive as Arrow record batches, from a reader or from a function that opens one.

    Parameters
    ----------
    source : pyarrow.RecordBatchReader, pyarrow.dataset.Scanner, or callable
        A reader can be read once: one release of one pass. A callable without arguments that returns a
        new `pyarrow.RecordBatchReader` of the same rows each time can be read again.
    n_rows : int, optional
        PUBLIC number of rows. Needed for a reader under adjacency="replace", where it is public and
        used before the first row is read; a pass over another number of rows fails. For a callable it
        saves the pass that counts them. Refused where the number of rows is private: under
        adjacency="add_remove" and with unit="person".

    Raises
    ------
    UnsupportedSource
        When `source` is neither.
    InvalidArgument
        When `n_rows` is not a whole number >= 1.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"age": [31.0, 45.0, 52.0]})
    >>> RowStream(table.to_reader(), n_rows=3)
    RowStream(one pass, 3 rows)
    >>> RowStream(table.to_reader)
    RowStream(any number of passes)
    """

    def __init__(self, source: Any, *, n_rows: int | None = None) -> None:
        if not (is_reader(source) or callable(source)):
            raise UnsupportedSource(
                f"a RowStream is made from a pyarrow.RecordBatchReader or from a function that opens one, "
                f"got {type(source).__name__}; pyarrow.RecordBatchReader.from_batches makes one of a schema "
                "and an iterator of record batches"
            )
        self._source = source
        self._stated = None if n_rows is None else as_whole(n_rows, "n_rows", 1)

    @property
    def n_rows(self) -> int | None:
        """The number of rows that was stated, None when none was."""
        return self._stated

    def refuse_stated_rows(self, why: str) -> None:
        """Refuse a stated number where it is private: whether a pass fits it would tell it exactly.

        Raises
        ------
        InvalidArgument
        """
        if self._stated is not None:
            raise InvalidArgument(
                f"RowStream(n_rows={self._stated}) states the number of rows, which is private under {why}; "
                "leave n_rows out"
            )

    def __repr__(self) -> str:
        passes = "one pass" if is_reader(self._source) else "any number of passes"
        return f"RowStream({passes}{'' if self._stated is None else f', {self._stated:,} rows'})"

    def _table(self) -> BatchTable:
        """Return the rows as a table; only the schema is looked at."""
        if is_reader(self._source):
            return _table_of_reader(self._source, self._stated)
        opened = self._open()
        schema = opened.schema
        opened.close()
        return BatchTable("stream", schema, lambda _: self._open(), count=self._stated)

    def _open(self) -> Any:
        reader = self._source()
        if not isinstance(reader, import_pyarrow().RecordBatchReader):
            raise UnsupportedSource(
                f"the function of a RowStream must return a pyarrow.RecordBatchReader, got "
                f"{type(reader).__name__}"
            )
        return reader


class BatchTable(BaseTable):
    """Record batches of one schema, from something that can be opened for a pass.

    Parameters
    ----------
    what : str
        What it is, for messages: "data set", "query", ...
    schema : pyarrow.Schema
    open_pass : callable
        Called with the names of the columns that are needed; returns record batches that hold at
        least these.
    count : int or callable, optional
        The number of rows, or a function that counts them; by a pass of its own when omitted.
    reader : object, optional
        The reader that the rows come from, when it can be read once only.
    """

    # Where a query or a filter puts a row can depend on other rows.
    places_are_fixed = False

    def __init__(
        self,
        what: str,
        schema: Any,
        open_pass: Opener,
        *,
        count: int | Callable[[], int] | None = None,
        reader: Any = None,
    ) -> None:
        super().__init__(schema.names)
        self._what, self._schema_read, self._open_pass, self._reader = what, schema, open_pass, reader
        self._known = self._stated = None if callable(count) else count
        self._count = count if callable(count) else None
        self._tied = TiedColumns()

    @property
    def n_rows(self) -> int:
        """The number of rows: as stated, or counted in a pass when this is first asked for."""
        if self._known is None:
            self._known = self._counted_rows()
        return self._known

    def check_passes(self, passes: int) -> None:
        """Refuse more passes than there are, before anything is charged."""
        if self._reader is None:
            return
        with _STARTING:
            started = self._reader in _STARTED
        if started:
            raise UnsupportedSource(
                f"this {self._what} has been read already, and can be read once only; {_REOPEN}. "
                "Nothing was charged"
            )
        if passes > 1:
            raise UnsupportedSource(
                f"this release takes {passes} passes over the rows, and a {self._what} can be read once "
                f"only; {_REOPEN}. Nothing was charged"
            )

    def tie(self, column: str) -> None:
        """Check in every pass from now on that the rows come in the order of the first one."""
        self._tied.add(self.position(column))

    def _counted_rows(self) -> int:
        if self._reader is not None:
            raise UnsupportedSource(
                f"a {self._what} can be read once and does not say how many rows it has; give the public "
                "number, RowStream(reader, n_rows=...), or use adjacency='add_remove' with n_guess=; where "
                "persons are the unit, give RowStream(a function that opens a new reader)"
            )
        with self._without_messages():
            if self._count is not None:
                return int(self._count())
            return sum(len(batch) for batch in self._open_pass([self.names[0]]))

    def _schema(self, position: int) -> tuple[Kind | None, str]:
        dtype = self._schema_read.field(position).type
        return arrow_kind(dtype), arrow_dtype_name(dtype)

    def _blocks(self, positions: list[int], rows_per_block: int) -> Iterator[FloatArray]:
        parts = (self._values(batch, positions) for batch in self._batches(positions))
        return gather_blocks(parts, len(positions), rows_per_block)

    def _values(self, batch: Any, positions: list[int]) -> FloatArray:
        out = np.empty((len(positions), len(batch)))
        for row, position in zip(out, positions, strict=True):
            fill_from_arrow(self._column(batch, position), row)
        return out

    def _codes(self, position: int) -> CodeArray:
        self.check_passes(2)
        self.tie(self.names[position])
        columns = (self._column(batch, position) for batch in self._batches([position]))
        return arrow_codes(columns, self._schema_read.field(position).type)

    def _values_of(self, position: int) -> Iterator[Sequence[object]]:
        for batch in self._batches([position]):
            yield arrow_objects(self._column(batch, position))

    def _column(self, batch: Any, position: int) -> Any:
        name = self.names[position]
        index = batch.schema.get_field_index(name)
        wanted = self._schema_read.field(position).type
        if index < 0 or batch.schema.field(index).type != wanted:
            raise UnsupportedSource(
                f"column {name!r} is {arrow_dtype_name(wanted)} in the schema of this {self._what}, but a "
                "record batch holds it otherwise or not at all; give one schema"
            )
        return batch.column(index)

    def _batches(self, positions: list[int]) -> Iterator[Any]:
        """Yield the record batches of one pass, short ones, and check the number of rows."""
        self._start()
        tied = self._tied.start()
        names = list(dict.fromkeys(self.names[position] for position in [*positions, *tied]))
        rows = 0
        with self._without_messages():
            for batch in self._open_pass(names):
                for position in tied:
                    tied[position] += order_fingerprint(self._column(batch, position), rows)
                rows += len(batch)
                self._check_rows(rows, done=False)
                for start in range(0, len(batch), BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)
        self._check_rows(rows, done=True)
        changed = self._tied.changed(tied)
        if changed is not None:
            raise changed_order(f"this {self._what}", self.names[changed])

    def _start(self) -> None:
        """Take the one pass of a reader, or raise."""
        if self._reader is None:
            return
        with _STARTING:
            started = self._reader in _STARTED
            _STARTED.add(self._reader)
        if started:
            raise UnsupportedSource(f"this {self._what} has been read already; {_REOPEN}")

    def _check_rows(self, rows: int, *, done: bool) -> None:
        # The number of rows is private where persons are protected: one that was counted is not shown.
        if self._known is not None and (rows > self._known or (done and rows != self._known)):
            wanted = (
                "was counted before" if self._stated is None else f"the {self._stated:,} that were stated"
            )
            raise UnsupportedSource(
                f"this {self._what} has another number of rows than {wanted}; nothing was released"
            )

    @contextmanager
    def _without_messages(self) -> Iterator[None]:
        try:
            yield
        except PydpmodeError:
            raise
        except Exception as problem:
            # `from None`: the library's message may quote a cell.
            raise UnsupportedSource(
                f"this {self._what} failed while its rows were read ({type(problem).__name__}); read it "
                "without this package to see why"
            ) from None


_REOPEN = "give RowStream(a function that opens a new reader), or open the data again"


def is_reader(data: object) -> bool:
    """Whether `data` is an Arrow object that can be read once, without importing pyarrow."""
    kind = type(data)
    return kind.__module__.partition(".")[0] == "pyarrow" and kind.__name__ in (
        "RecordBatchReader",
        "Scanner",
    )


def stream_of(data: object) -> BaseTable | None:
    """Return an object that is read in batches as a table; None when it is not one."""
    if isinstance(data, RowStream):
        return data._table()
    if is_reader(data):
        return _table_of_reader(data, None)
    module = type(data).__module__.partition(".")[0]
    if module == "pyarrow" and hasattr(data, "to_batches") and hasattr(data, "count_rows"):
        return _table_of_dataset(data)
    if module == "polars" and type(data).__name__ == "LazyFrame":
        return _table_of_lazy_frame(data)
    if module in ("duckdb", "_duckdb") and type(data).__name__ == "DuckDBPyRelation":
        return _table_of_query(data)
    return None


def _table_of_reader(reader: Any, stated: int | None) -> BatchTable:
    if type(reader).__name__ == "Scanner":
        return BatchTable(
            "scanner",
            reader.projected_schema,
            lambda _: reader.to_reader(),
            count=stated,
            reader=reader,
        )
    return BatchTable("record-batch reader", reader.schema, lambda _: reader, count=stated, reader=reader)


def _table_of_dataset(dataset: Any) -> BatchTable:
    # Reading ahead is what fills the memory: by default 16 batches of each of 4 files, in threads that do
    # not wait for a slow reader, and of Parquet files all that is needed of them at once.
    options: dict[str, Any] = {
        "batch_size": BATCH_ROWS,
        "batch_readahead": 0,
        "fragment_readahead": 0,
        "use_threads": False,
    }
    if getattr(getattr(dataset, "format", None), "default_extname", "") == "parquet":
        import pyarrow.dataset

        options["fragment_scan_options"] = pyarrow.dataset.ParquetFragmentScanOptions(
            use_buffered_stream=True, pre_buffer=False
        )
    return BatchTable(
        "data set",
        dataset.schema,
        lambda names: dataset.to_batches(columns=names, **options),
        count=dataset.count_rows,
    )


def _table_of_lazy_frame(frame: Any) -> BatchTable:
    import polars

    if not hasattr(frame, "collect_batches"):
        raise MissingDependency(
            f"reading a polars LazyFrame in batches needs polars 1.34 or newer, got {polars.__version__}; "
            "upgrade polars, or give frame.collect()"
        )

    def open_pass(names: list[str]) -> Iterator[Any]:
        for part in frame.select(names).collect_batches(chunk_size=BATCH_ROWS, maintain_order=True):
            yield from part.to_arrow().to_batches()

    def count() -> int:
        return int(frame.select(polars.len()).collect(engine="streaming").item())

    try:
        # An empty frame of the same schema: no row is read.
        schema = polars.DataFrame(schema=frame.collect_schema()).to_arrow().schema
    except Exception as problem:
        raise UnsupportedSource(
            f"this polars LazyFrame has no schema ({type(problem).__name__}); collect_schema() says why"
        ) from None
    return BatchTable("lazy frame", schema, open_pass, count=count)


def _table_of_query(relation: Any) -> BatchTable:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def open_pass(names: list[str]) -> Iterable[Any]:
        chosen = relation.project(", ".join(quoted(name) for name in names))
        # The new name where there is one: the old one warns there.
        opener = getattr(type(chosen), "to_arrow_reader", None) or type(chosen).fetch_arrow_reader
        return opener(chosen, BATCH_ROWS)  # type: ignore[no-any-return]

    def count() -> int:
        return int(relation.aggregate("count(*)").fetchall()[0][0])

    try:
        schema = relation.limit(0).to_arrow_table().schema
    except Exception as problem:
        raise UnsupportedSource(
            f"this DuckDB relation has no schema ({type(problem).__name__}); keep its connection open, and "
            "see whether the query runs"
        ) from None
    # The relation's own names: Arrow's schema of them may number those that come twice.
    if len(set(relation.columns)) != len(relation.columns):
        raise InvalidArgument("two columns of this query have one name; give each its own with AS")
    return BatchTable("query", schema, open_pass, count=count)
