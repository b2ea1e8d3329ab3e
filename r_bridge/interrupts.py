"""Ctrl-C while R runs below Python: it interrupts R, and arrives in Python once, as KeyboardInterrupt."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


class Interrupts:
    """Where an interrupt goes: to R while R runs, to Python while Python runs below R.

    Python's own handler raises at whichever line of Python runs next. While R runs this may be a line of
    rpy2's callbacks (console, events) that no one can catch: the interrupt would be printed and lost.
    So the handler keeps still there, and a thread, woken by the signal itself, sets R's flag.

    Parameters
    ----------
    rlib : object
        R's library, with its flag `R_interrupts_pending`.
    """

    def __init__(self, rlib: Any) -> None:
        self._rlib = rlib
        self._depth_of_python = 0
        self._arrived = False  # in the present call of R
        self._closing = False  # R has returned, and its handler is about to be taken away
        self._late = False

    @contextlib.contextmanager
    def in_python(self) -> Iterator[None]:
        """Python code that R called: an interrupt is raised in it, as in any Python code."""
        self._depth_of_python += 1
        try:
            yield
        finally:
            self._depth_of_python -= 1

    @contextlib.contextmanager
    def in_r(self) -> Iterator[None]:
        """R code that Python calls, in the main thread; elsewhere no signal arrives and nothing is done.

        Raises
        ------
        KeyboardInterrupt
            If R was interrupted outside its own handlers, or ended before it saw the interrupt.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        outer = self._depth_of_python, self._arrived
        self._depth_of_python, self._arrived, self._late = 0, False, False
        here, there = socket.socketpair()
        here.setblocking(False)
        watcher = threading.Thread(target=self._watch, args=(there,), daemon=True)
        watcher.start()
        handler = signal.getsignal(signal.SIGINT)
        # A handler of the caller's own stays where it is: it may do more than raise.
        if ours := handler in (signal.default_int_handler, self._handle):
            signal.signal(signal.SIGINT, self._handle)
        wakeup = signal.set_wakeup_fd(here.fileno(), warn_on_full_buffer=False)
        failed: Exception | None = None
        try:
            yield
        except Exception as problem:
            failed = problem
        finally:
            self._closing = True
            signal.set_wakeup_fd(wakeup)
            here.close()
            # Only when the watcher is gone: a late signal must not interrupt the next call.
            watcher.join()
            there.close()
            unseen = bool(self._rlib.R_interrupts_pending)
            self._rlib.R_interrupts_pending = 0
            if ours:
                signal.signal(signal.SIGINT, handler)
            unseen, broken = unseen or self._late, self._arrived and failed is not None
            self._closing = False
            self._depth_of_python, self._arrived = outer
        # R's interrupt has no message where none of R's handlers was in place.
        if unseen or broken:
            raise KeyboardInterrupt("interrupted") from failed
        if failed is not None:
            raise failed

    def _watch(self, there: socket.socket) -> None:
        while signals := there.recv(64):
            if signal.SIGINT in signals:
                self._arrived = True
                self._rlib.R_interrupts_pending = 1

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._depth_of_python:
            signal.default_int_handler(number, frame)
        self._late = self._late or self._closing
