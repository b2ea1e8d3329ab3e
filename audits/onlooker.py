"""What an onlooker could see besides the released numbers: rows in results, progress, the ledger's text."""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from pydpmode.privacy import private_data


def marks(values: Sequence[float]) -> list[bytes]:
    """Return by what planted numbers would be known: the bytes of a double, and the first digits."""
    return [mark for v in values for mark in (np.float64(v).tobytes(), repr(v)[:8].encode())]


def shows(blob: bytes, values: Sequence[float]) -> bool:
    """Whether a planted number is in the blob."""
    return any(mark in blob for mark in marks(values))


def always_shown(look: Callable[[], Mapping[str, bytes]], values: Sequence[float]) -> set[tuple[str, bytes]]:
    """Return where which planted numbers are seen, as (name of the blob, mark).

    What has fresh noise in it may hold a planted number's first digits by chance, so that a look which finds
    some is taken again: a row that leaks is there each time.
    """
    found = _found(look(), values)
    return found & _found(look(), values) if found else found


def _found(blobs: Mapping[str, bytes], values: Sequence[float]) -> set[tuple[str, bytes]]:
    return {(where, mark) for where, blob in blobs.items() for mark in marks(values) if mark in blob}


def reachable_arrays(root: object, limit: int = 200_000) -> list[np.ndarray]:
    """Return the arrays that can be reached from an object, over at most `limit` objects."""
    seen, stack, arrays = set(), [root], []
    while stack and len(seen) < limit:
        item = stack.pop()
        if id(item) in seen or isinstance(item, type) or type(item).__name__ == "module":
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            arrays.append(item)
        if callable(item) and hasattr(item, "__globals__"):
            continue
        stack.extend(gc.get_referents(item))
    return arrays


class _Bar:
    """Stands in for the progress bar and keeps what it was told."""

    def __init__(self, log: list[Any]) -> None:
        self._log = log

    def update(self, rows: int) -> None:
        self._log.append(rows)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.append("closed")


@contextlib.contextmanager
def progress_told() -> Iterator[list[Any]]:
    """Yield a list that takes what the progress bars of a block are told."""
    told: list[Any] = []

    def bar(n_rows: int | None, wanted: bool | None) -> _Bar:
        # Where the number of rows is private nothing is shown, so nothing is told.
        told.append((n_rows, wanted))
        return _Bar(told if n_rows is not None else [])

    with mock.patch.object(private_data, "progress_bar", bar):
        yield told


def ledger_text(path: Path) -> str:
    """Return a ledger's text without identifiers, which are random, times, and the checksums over both."""
    text = path.read_text() if path.exists() else ""
    return re.sub(r'"(id|time|created|checksum)":"[^"]*"', "", text)


def remove_ledger(path: Path) -> None:
    """Remove a ledger and its head, where they are."""
    path.unlink(missing_ok=True)
    path.with_name(path.name + ".head").unlink(missing_ok=True)
