"""What a case of the suite is: our way, its peers, the same data, and a check that both did the work."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Run = Callable[[], Any]
OURS = "ours"
SEED = 20261130


@dataclass(frozen=True)
class Peer:
    """What our way is timed against.

    Parameters
    ----------
    name : str
        In words.
    most : float
        Ceiling: ours may take so many times the peer's time. About twice what was measured, so that another
        machine passes and a real regression does not.
    needs : str
        A module that the package itself does not need.
    """

    name: str
    most: float
    needs: str = ""

    @property
    def is_there(self) -> bool:
        """Whether it can be run here."""
        return not self.needs or _works(self.needs)


@functools.cache
def _works(module: str) -> bool:
    """Whether a module is installed and fits the others: diffprivlib fails on newer scikit-learns."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


@dataclass(frozen=True)
class Work:
    """A case with its data made.

    Parameters
    ----------
    runs : mapping of str to callable
        Ours under `OURS`, and each peer under its name.
    check : callable
        Given what each run returned, by name; raises AssertionError when they are not the same work.
    """

    runs: Mapping[str, Run]
    check: Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Case:
    """Something worth keeping fast.

    Parameters
    ----------
    name : str
        What is timed, in words.
    rows, few : int
        Size of the data; and in the smoke test, which leaves the case out at 0: another runs the same code.
    make : callable
        Makes the data and the runs, for a number of rows and a folder for files.
    peers : tuple of Peer
    rounds : int
        Calls whose median counts, after one more to warm up.
    waits : bool
        The work waits for the disk, so the clock on the wall is read; else the processor's, which other work
        on the machine disturbs least.
    """

    name: str
    rows: int
    few: int
    make: Callable[[int, Path], Work]
    peers: tuple[Peer, ...]
    rounds: int = 5
    waits: bool = False

    @property
    def sides(self) -> list[str]:
        """Names of all runs, ours first."""
        return [OURS, *(peer.name for peer in self.peers)]
