"""A failure while rows are read must not carry them: logs show the variables of a traceback's frames."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator


@contextlib.contextmanager
def without_rows() -> Iterator[None]:
    """Clear the variables of all finished frames of an exception that passes through."""
    try:
        yield
    except BaseException as problem:
        traceback.clear_frames(problem.__traceback__)
        raise
