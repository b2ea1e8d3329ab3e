"""What an error may carry out of a pass over the rows: nothing of a row.

A traceback keeps the variables of its frames, a chained error keeps another traceback, and the text of
a library's error may quote a cell. Whatever fails between the charge and the release goes through here.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TypeVar

from ..errors import PydpmodeError, ReadingFailed

R = TypeVar("R")

_OUT_OF_MEMORY = "memory ran out while rows were read; free some, or read the rows in a stream"


def reading_rows(read: Callable[[], R]) -> R:
    """Return `read()`; an error of it leaves with its own frames emptied and without those before it.

    Raises
    ------
    ReadingFailed
        In place of an error of another library, whose text may quote a row.
    """
    try:
        return read()
    except BaseException as problem:
        failure = _without_rows(problem)
    # Outside the handler, so that the error caught there is not chained to this one.
    raise failure


def _without_rows(problem: BaseException) -> BaseException:
    chained: list[BaseException | None] = [problem]
    known: set[int] = set()
    while chained:
        error = chained.pop()
        if error is None or id(error) in known:
            continue
        known.add(id(error))
        chained += [error.__cause__, error.__context__]
        traceback.clear_frames(error.__traceback__)
    if isinstance(problem, MemoryError) and type(problem) is not MemoryError:
        # A library's own kind tells the shape of what did not fit, and the number of rows may be private.
        return MemoryError(_OUT_OF_MEMORY)
    if not _is_harmless(problem):
        return ReadingFailed(
            f"{type(problem).__name__} while rows were read; its text is withheld, because it may quote one. "
            "A release that was charged stays charged. Check the columns' dtypes, and please report it"
        )
    problem.__cause__ = problem.__context__ = None
    return problem


def _is_harmless(problem: BaseException) -> bool:
    """Whether the text is this package's own, or the operating system's, which knows files and not cells.

    Not every other error is an `Exception`: a panic of a library written in Rust is none.
    """
    if isinstance(problem, OSError):
        # Libraries raise it without a number and with words of their own, such as a checksum.
        return problem.errno is not None or not problem.args
    return isinstance(problem, PydpmodeError | MemoryError | KeyboardInterrupt | SystemExit | GeneratorExit)
