"""What a model and all its copies share: one table, and the one budget that its first release opened."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from ..errors import InvalidArgument, LedgerError, PicklingRefused
from ..privacy.private_data import PrivateData


class StudyCell:
    """The private data of a model. Copies of the model share the cell, so a copy has no second budget.

    Parameters
    ----------
    study : PrivateData or None
        Given by the user; its ledger guards it.
    table : object
        A bare table: the first release that is charged opens its budget.
    """

    def __init__(self, study: PrivateData | None = None, table: Any = None) -> None:
        self.table = table
        self._study = study
        self._candidate: PrivateData | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def study(self) -> PrivateData | None:
        """The data with their budget; None for a table before its first charged release."""
        return self._study

    @contextlib.contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Hold the cell during a release: threads wait, so that they see each other's charges.

        Raises
        ------
        LedgerError
            In a forked process, for a table whose budget would be opened in each process.
        """
        if self.table is not None and os.getpid() != self._process:
            raise LedgerError(
                "the budget of this table belongs to the process that made the model, and this is another "
                "one; make a PrivateData with ledger='study.jsonl', a file that both share. "
                "Nothing was read or charged"
            )
        with self._lock:
            try:
                yield
            finally:
                # A refused release leaves no budget behind: only a charge opens it.
                if self._candidate is not None and self._candidate.ledger.entries():
                    self._study = self._candidate
                self._candidate = None

    def open_table(self, make: Callable[[], PrivateData]) -> PrivateData:
        """Return the study of the table, or a new one that stays only if something is charged."""
        if self.table is None:
            raise InvalidArgument("this model has no private table")
        if self._study is not None:
            return self._study
        self._candidate = make()
        return self._candidate

    def __copy__(self) -> StudyCell:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> StudyCell:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PicklingRefused(
            "a model with private rows is never pickled: a copy would carry the rows and a second, unguarded "
            "budget. Save its result, or open the data with the same ledger file in the other process"
        )
