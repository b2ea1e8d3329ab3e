"""Checks of what is said about a table when it is opened: by the schema alone, before any row is read."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..budget import ADJACENCIES, UNITS, Adjacency, Outside, Unit, as_number, as_whole
from ..errors import InvalidArgument, UnknownColumn
from ..numerics.surfaces import FloatArray
from .bounds import Bounds, read_bounds
from .row_errors import reading_rows
from .sources import open_source, takes_names
from .stream_sources import RowStream
from .table_source import CodeArray, TableSource

# Largest number of rows or persons that may be stated: a double holds it exactly.
MOST_UNITS = 10**15


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Check that an option is one of those allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidArgument(f"{name} must be one of {list(allowed)}, got {value!r}")


def check_neighbours(data: object, adjacency: Adjacency, unit: Unit, outside: Outside) -> None:
    """Check what neighbouring tables are, and refuse a stated number of rows where that number is private."""
    check_choice("adjacency", adjacency, ADJACENCIES)
    check_choice("unit", unit, UNITS)
    check_choice("outside", outside, ("clip", "ignore"))
    if isinstance(data, RowStream) and (adjacency, unit) != ("replace", "row"):
        data.refuse_stated_rows("adjacency='add_remove'" if adjacency == "add_remove" else "unit='person'")


def check_person(source: TableSource, unit: Unit, person: str | None) -> str | None:
    """Return the column that identifies persons, after checking that it goes with the unit."""
    if (unit == "person") != (person is not None):
        raise InvalidArgument(
            "unit='person' and person='column that identifies persons' go together; "
            f"got unit={unit!r}, person={person!r}"
        )
    if person is not None and person not in source.names:
        source.kind(person)
    return person


def check_weights(
    source: TableSource, unit: Unit, weights: str | None, max_weight: float | None
) -> tuple[str | None, float | None]:
    """Return the column of weights and its public ceiling, checked."""
    if weights is None and max_weight is None:
        return None, None
    if weights is None or max_weight is None:
        raise InvalidArgument(
            "weights='column' and a public ceiling max_weight= go together; give both or none"
        )
    if unit == "person":
        raise InvalidArgument("weights are for unit='row'; with unit='person' each person has one vote")
    source.check_columns([weights])
    ceiling = as_number(max_weight, "max_weight")
    if not (math.isfinite(ceiling) and ceiling > 0):
        raise InvalidArgument(f"max_weight must be a finite number > 0, got {ceiling!r}")
    return weights, ceiling


def check_count(name: str, value: object) -> int | None:
    """Return a whole number of rows or persons, or None when none was given."""
    return None if value is None else as_whole(value, name, 1, MOST_UNITS)


def check_table(data: Any, bounds: Bounds | None, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Check a table, its bounds and its columns by the schema alone; return the columns with bounds."""
    names = columns if takes_names(data) else None
    source = reading_rows(lambda: open_source(data, columns=names))
    checked = read_bounds(bounds, source, columns or ())
    source.check_columns(tuple(checked))
    return tuple(checked)


def person_votes(codes: CodeArray) -> FloatArray:
    """Return each row's share of its person's one vote, (n_rows,), from codes of persons (-1: nobody).

    A row without an identifier belongs to nobody: were such rows one more person, somebody with some of
    them would have two votes.
    """
    counts = np.bincount(codes[codes >= 0], minlength=1)
    return np.where(codes >= 0, 1.0 / np.maximum(counts[codes], 1), 0.0)


def check_known(wanted: Sequence[str], known: Sequence[str], advice: str = "") -> None:
    """Check that all columns wanted have public bounds.

    Raises
    ------
    UnknownColumn
    """
    unknown = [name for name in wanted if name not in known]
    if not unknown:
        return
    close = [match for name in unknown for match in difflib.get_close_matches(name, known, n=1)]
    hint = f"; did you mean {', '.join(map(repr, close))}?" if close else ""
    raise UnknownColumn(
        f"no public bounds are known for {unknown}; columns with bounds: {list(known)}{hint or advice}"
    )
