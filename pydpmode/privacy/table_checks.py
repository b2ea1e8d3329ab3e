"""Checks of what a user says about a table, by its schema alone: no value is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..budget import as_whole
from ..errors import InvalidArgument
from .bounds import Bounds, read_bounds
from .sources import open_source


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a value that is not one of the allowed texts."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidArgument(f"{name} must be one of {list(allowed)}, got {value!r}")


def check_count(name: str, value: object) -> int | None:
    """Return a whole number from 1 on, or None."""
    return None if value is None else as_whole(value, name, 1)


def check_table(data: Any, bounds: Bounds | None, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Check a table, its bounds and its columns by the schema alone; return the columns with bounds."""
    source = open_source(data, columns=columns if isinstance(data, np.ndarray | list) else None)
    checked = read_bounds(bounds, source, columns or ())
    source.check_columns(tuple(checked))
    return tuple(checked)
