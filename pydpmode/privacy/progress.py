"""A progress bar for long passes: rows and time left, quiet when nobody is watching."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Protocol

# Shorter passes end before a bar could be read.
_WORTH_SHOWING = 20_000_000


class Progress(Protocol):
    """What a pass needs of a bar."""

    def update(self, rows: int) -> None:
        """Say that more rows have been read."""
        ...

    def __enter__(self) -> Progress: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class _Silent:
    def update(self, rows: int) -> None:
        """Do nothing."""

    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def progress_bar(n_rows: int | None, wanted: bool | None) -> Progress:
    """Return a bar over `n_rows` rows; None means a bar only at a terminal and on long passes.

    `n_rows` is None where the number of rows is private: then nothing is shown, since a bar would
    tell it.
    """
    if n_rows is None or wanted is False:
        return _Silent()
    if wanted is None and (n_rows < _WORTH_SHOWING or not sys.stderr.isatty()):
        return _Silent()
    try:
        from tqdm import tqdm
    except ImportError:
        return _Silent()
    bar: Any = tqdm(total=n_rows, unit=" rows", unit_scale=True, leave=False, desc="reading")
    return bar  # type: ignore[no-any-return]
