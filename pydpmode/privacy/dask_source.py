"""Dask arrays and data frames: partial sums on the workers, added as a tree, noise on the client.

Each partition is cut into blocks; each block's sum is rounded to whole numbers before it is added to
another. Whole numbers add exactly, in any order and any tree, so which worker computes a partition,
how often it is tried, and what is lost on the way change nothing. (Two machines may differ in the last
bits of one block's sum before the rounding; the margin in Delta for a table whose rows have no fixed
places covers that.)

Everything that comes from a worker is NOT private: partial sums, and the number of rows. It goes to
the client only, which adds the noise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from typing import Any, cast

import numpy as np
import pandas as pd

from ..errors import InvalidArgument, PydpmodeError, UnsupportedSource
from ..numerics.surfaces import FloatArray
from .memory_sources import array_codes, column_of
from .table_source import (
    BaseTable,
    CodeArray,
    IntegerArray,
    Kind,
    TiedColumns,
    changed_order,
    gather_blocks,
    placed_sum,
)

# Partial sums added in one task of the tree.
_BRANCHES = 8
# How often Dask may compute a task again after it failed: a result is the same every time.
_RETRIES = 3

_VERSION = "__import__('pydpmode').__version__"

BlockFunction = Callable[[FloatArray], IntegerArray]


@dataclass(frozen=True)
class Partial:
    """What a task returns: an exact sum (or the used columns) with its number of rows, or why not.

    What does not fit the schema is returned and not raised: Dask logs a raised error with its arguments,
    and would try again.
    """

    total: IntegerArray | None = None
    rows: int = 0
    problem: str = ""
    part: Any = None


@dataclass(frozen=True)
class Expected:
    """The schema that each partition must have."""

    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    used: tuple[int, ...]
    is_frame: bool

    def problem(self, part: Any, number: int) -> str:
        """Return what is wrong with a partition, in words without a value; empty when nothing is."""
        where = f"partition {number}"
        if not self.is_frame:
            return self._problem_of_array(part, where)
        if not hasattr(part, "columns"):
            return f"{where} is a {type(part).__name__}, not a data frame"
        names = tuple(str(label) for label in part.columns)
        for name in self.names:
            if name not in names:
                return f"{where} has no column {name!r}"
        if names != self.names:
            first = next((a for a, b in zip(self.names, names, strict=False) if a != b), self.names[-1])
            return (
                f"{where} has its columns in another order, or more of them: {first!r} is not where it is in "
                "the data frame's own list of columns"
            )
        for position in self.used:
            got = _dtype_name(part.iloc[:, position].dtype)
            if got != self.dtypes[position]:
                return f"{where} holds column {names[position]!r} as {got}, not as {self.dtypes[position]}"
        return ""

    def _problem_of_array(self, part: Any, where: str) -> str:
        shape = np.shape(part)
        if len(shape) != 2 or shape[1] != len(self.names):
            return f"{where} has {len(shape)} dimensions or another width, not {len(self.names)} columns"
        got = _dtype_name(part.dtype)
        return "" if got == self.dtypes[0] else f"{where} holds the array as {got}, not as {self.dtypes[0]}"


class DaskTable(BaseTable):
    """Partitions of one schema on the workers of a Dask scheduler (or on its threads).

    Parameters
    ----------
    names : sequence of str
    kinds : sequence of (kind or None, dtype's name)
    partitions : sequence of Delayed
        Data frames, or arrays of shape (rows, columns).
    count : callable
        Counts the rows exactly.
    is_frame : bool
    """

    # Partitions may have been cut by values (a sorted index), so a replaced row may move others.
    places_are_fixed = False

    def __init__(
        self,
        names: Sequence[str],
        kinds: Sequence[tuple[Kind | None, str]],
        partitions: Sequence[Any],
        count: Callable[[], int],
        *,
        is_frame: bool,
    ) -> None:
        super().__init__(names)
        self._kinds, self._partitions, self._count = tuple(kinds), tuple(partitions), count
        self._is_frame = is_frame
        # A shuffle may leave the rows of a partition in another order each time it is computed.
        self._tied = TiedColumns()

    @property
    def parts(self) -> int:
        """The number of partitions: each begins a new block. It counts as public."""
        return max(len(self._partitions), 1)

    @cached_property
    def n_rows(self) -> int:
        """The number of rows, counted over the partitions when this is first asked for."""
        return int(_without_messages(self._count))

    def check_passes(self, passes: int) -> None:
        """Refuse workers without this package, before anything is charged: they would never answer."""
        client = _client()
        if client is None:
            return
        own = _own_version()
        # The text of an expression, so that workers without the package can answer too.
        found = client.run(eval, _VERSION, on_error="return")
        for worker, version in found.items():
            if version != own:
                has = f"pydpmode {version}" if isinstance(version, str) else "no pydpmode that it can import"
                raise UnsupportedSource(
                    f"worker {worker} has {has} and this is {own}; install the same version on every "
                    "worker. Nothing was charged"
                )

    def tie(self, column: str) -> None:
        """Check in every pass that brings rows here that they come in the order of the first one."""
        self._tied.add(self.position(column))

    def summed(self, columns: Sequence[str], rows_per_block: int, work: BlockFunction) -> IntegerArray | None:
        """Return the exact sum of `work(block)` over the blocks of all partitions."""
        dask = _import_dask()
        self.check_columns(columns)
        positions = [self.position(name) for name in columns]
        task = partial(_sum_of_partition, self._expected(positions), positions, rows_per_block, work)
        one = dask.delayed(task)
        level = [one(part, number) for number, part in enumerate(self._partitions)]
        add = dask.delayed(_add)
        while len(level) > 1:
            level = [add(level[i : i + _BRANCHES]) for i in range(0, len(level), _BRANCHES)]
        result: Partial = _compute(level[0])
        self._check_rows(result)
        return result.total

    def _check_rows(self, result: Partial, *, done: bool = True) -> None:
        if result.problem:
            raise UnsupportedSource(f"{result.problem}; every partition must have the schema of the whole")
        # Counted before under "replace" only, where the number is public.
        counted = self.__dict__.get("n_rows")
        if done and counted is not None and result.rows != counted:
            raise UnsupportedSource(
                "the partitions have another number of rows than was counted before; nothing was released"
            )

    def _expected(self, positions: Sequence[int]) -> Expected:
        dtypes = tuple(name for _, name in self._kinds)
        return Expected(self.names, dtypes, tuple(dict.fromkeys(positions)), self._is_frame)

    def _schema(self, position: int) -> tuple[Kind | None, str]:
        return self._kinds[position]

    def _blocks(self, positions: list[int], rows_per_block: int) -> Iterator[FloatArray]:
        """Bring the partitions here, one after the other: for what is not a sum over single rows."""
        used = list(dict.fromkeys(positions))
        places = [used.index(position) for position in positions]
        parts = (_block(part, places, 0, len(part), self._is_frame) for part in self._fetched(used))
        return gather_blocks(parts, len(positions), rows_per_block)

    def _codes(self, position: int) -> CodeArray:
        self._tied.add(position)
        parts = list(self._fetched([position]))
        if not self._is_frame:
            return array_codes(np.concatenate([part[:, 0] for part in parts]))
        column = column_of(pd.concat([part.iloc[:, 0] for part in parts], ignore_index=True))
        if column is None:  # a Series is always a column
            raise UnsupportedSource("the column of persons is not one column")
        return column.codes()

    def _values_of(self, position: int) -> Iterator[Sequence[object]]:
        for part in self._fetched([position]):
            column = column_of(part.iloc[:, 0] if self._is_frame else part[:, 0])
            if column is None:  # a Series is always a column
                raise UnsupportedSource("the column of levels is not one column")
            yield column.objects()

    def _fetched(self, used: list[int]) -> Iterator[Any]:
        """Yield the used columns of each partition, computed one at a time."""
        dask = _import_dask()
        tied = self._tied.start()
        # The tied columns come last, so that the others are where they are asked for.
        brought = list(dict.fromkeys([*used, *tied]))
        one = dask.delayed(partial(_narrowed, self._expected(brought), brought))
        rows = 0
        for number, part in enumerate(self._partitions):
            fetched = _compute(one(part, number))
            self._check_rows(fetched, done=False)
            for position in tied:
                tied[position] += _fingerprint(fetched.part, brought.index(position), rows, self._is_frame)
            rows += fetched.rows
            yield fetched.part
        self._check_rows(Partial(rows=rows))
        changed = self._tied.changed(tied)
        if changed is not None:
            raise changed_order("this Dask table", self.names[changed])


def is_dask(data: object) -> bool:
    """Whether `data` is a Dask array, data frame or series, without importing dask."""
    module = type(data).__module__
    return module.startswith(("dask.array", "dask.dataframe", "dask_expr"))


def table_of_dask(data: Any, columns: tuple[str, ...] | None) -> DaskTable:
    """Return a Dask array, data frame or series as a table; nothing is computed.

    Raises
    ------
    UnsupportedSource
        On an array of more than two dimensions or another Dask object.
    InvalidArgument
        When `columns` does not fit an array.
    """
    if hasattr(data, "to_delayed") and hasattr(data, "chunks") and hasattr(data, "ndim"):
        return _table_of_array(data, columns)
    frame = data.to_frame() if getattr(data, "ndim", None) == 1 and hasattr(data, "to_frame") else data
    if not (hasattr(frame, "columns") and hasattr(frame, "to_delayed")):
        raise UnsupportedSource(
            f"a Dask {type(data).__name__} is not a table; give a Dask array or data frame"
        )
    meta = frame._meta
    names = [str(label) for label in meta.columns]
    kinds = [_kind_of(meta.iloc[:, position]) for position in range(len(names))]
    return DaskTable(names, kinds, frame.to_delayed(), lambda: len(frame), is_frame=True)


def _table_of_array(array: Any, columns: tuple[str, ...] | None) -> DaskTable:
    if array.ndim not in (1, 2):
        raise UnsupportedSource(
            f"a Dask array of {array.ndim} dimensions is not a table; give shape (n,) or (n, d)"
        )
    table = array[:, None] if array.ndim == 1 else array
    width = table.shape[1]
    if width != width or width == 0:
        raise UnsupportedSource("the Dask array has no columns, or an unknown number of them")
    names = columns or tuple(f"x{j + 1}" for j in range(width))
    if len(names) != width:
        raise InvalidArgument(f"columns has {len(names)} names, but the array has {width} columns")
    kind = _kind_of(np.empty(0, dtype=table.dtype))
    # All columns of a row in one partition.
    partitions = table.rechunk({1: -1}).to_delayed().ravel()

    def count() -> int:
        rows = table.shape[0]
        if rows == rows:  # not NaN: known
            return int(rows)
        dask = _import_dask()
        return sum(dask.compute(*[dask.delayed(len)(part) for part in partitions]))

    return DaskTable(names, [kind] * width, partitions, count, is_frame=False)


def _import_dask() -> Any:
    # Untyped on purpose: types are there with some releases and not with others.
    return import_module("dask")


def _kind_of(empty: Any) -> tuple[Kind | None, str]:
    column = column_of(empty)
    return (None, type(empty).__name__) if column is None else (column.kind, column.dtype)


def _compute(task: Any) -> Partial:
    return cast(Partial, _without_messages(lambda: _computed(task)))


def _computed(task: Any) -> Any:
    # Only a cluster's client takes the option.
    options = {} if _client() is None else {"retries": _RETRIES}
    return _import_dask().compute(task, **options)[0]


def _client() -> Any:
    """Return the client of the cluster that Dask would use now; None for threads or no scheduler."""
    client = getattr(_import_dask().base.get_scheduler(), "__self__", None)
    return client if hasattr(client, "scheduler_info") else None


def _own_version() -> str:
    return str(sys.modules[__name__.partition(".")[0]].__version__)


def _without_messages(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except PydpmodeError:
        raise
    except Exception as problem:
        # `from None`: what a task says may quote a cell.
        raise UnsupportedSource(
            f"Dask could not compute the partitions ({type(problem).__name__}); its workers' logs say more"
        ) from None


# -- run on the workers ------------------------------------------------------------------------------


def _sum_of_partition(
    expected: Expected, positions: list[int], rows_per_block: int, work: BlockFunction, part: Any, number: int
) -> Partial:
    problem = expected.problem(part, number)
    if problem:
        return Partial(problem=problem)
    rows = len(part)
    total: IntegerArray | None = None
    for start in range(0, rows, rows_per_block):
        stop = min(start + rows_per_block, rows)
        value = work(_block(part, positions, start, stop, expected.is_frame))
        total = value if total is None else total + value
    return Partial(total, rows)


def _narrowed(expected: Expected, used: list[int], part: Any, number: int) -> Partial:
    problem = expected.problem(part, number)
    if problem:
        return Partial(problem=problem)
    return Partial(rows=len(part), part=part.iloc[:, used] if expected.is_frame else part[:, used])


def _add(parts: Sequence[Partial]) -> Partial:
    problem = next((part.problem for part in parts if part.problem), "")
    if problem:
        return Partial(problem=problem)
    totals = [part.total for part in parts if part.total is not None]
    total = totals[0] if len(totals) == 1 else sum(totals[1:], totals[0]) if totals else None
    return Partial(total, sum(part.rows for part in parts))


def _block(part: Any, positions: list[int], start: int, stop: int, is_frame: bool) -> FloatArray:
    """Return some rows of a partition as float64, (columns, rows)."""
    out = np.empty((len(positions), stop - start))
    for row, position in zip(out, positions, strict=True):
        values = part.iloc[:, position] if is_frame else part[:, position]
        column = column_of(values)
        if column is None:  # the dtypes are checked before
            raise UnsupportedSource("a partition holds something that is not a column")
        column.fill(start, row)
    return out


def _fingerprint(part: Any, place: int, first: int, is_frame: bool) -> int:
    """Return a number of a column of a partition and of the order of its rows; see `placed_sum`."""
    column = part.iloc[:, place] if is_frame else pd.Series(part[:, place])
    try:
        hashes = pd.util.hash_pandas_object(column, index=False, categorize=False).to_numpy()
    except (TypeError, ValueError):
        # Texts that are not Unicode, say: an error would tell of them.
        hashes = pd.util.hash_array(np.array([ascii(cell) for cell in column], dtype=object))
    return placed_sum(hashes, first)


def _dtype_name(dtype: Any) -> str:
    # `name` and not str(): the text of some dtypes lists values.
    return str(dtype.name)
