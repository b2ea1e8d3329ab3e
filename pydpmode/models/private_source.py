"""Where a preprocessing model gets its rows: a table with a budget of one fit, or a `PrivateData`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..budget import Budget, check_delta, check_epsilon
from ..errors import InvalidArgument, InvalidBudget
from ..privacy.bounds import Bounds
from ..privacy.private_data import PrivateData, check_table
from ..privacy.table_options import check_known
from .study_cell import StudyCell


class PrivateSource:
    """A table, or a study, and the columns of it that are used.

    Parameters
    ----------
    data : table or PrivateData
        A table's budget is what the first release is given.
    columns : sequence of str, optional
        All columns with bounds when omitted.
    bounds : mapping, optional
        PUBLIC bounds; with a table only.
    """

    def __init__(self, data: Any, columns: Sequence[str] | str | None, bounds: Bounds | None) -> None:
        names = (columns,) if isinstance(columns, str) else None if columns is None else tuple(columns)
        self._bounds, self._given = bounds, names
        if isinstance(data, PrivateData):
            if bounds is not None:
                raise InvalidArgument("this PrivateData already has its bounds; do not give bounds= again")
            self.cell, known = StudyCell(study=data), data.columns
        else:
            self.cell, known = StudyCell(table=data), check_table(data, bounds, names)
        check_known(names or (), known)
        if names is not None and (len(set(names)) != len(names) or not names):
            raise InvalidArgument(f"columns must be one or more different names, got {list(names)}")
        self.names: tuple[str, ...] = names if names is not None else tuple(known)

    def open(self, epsilon: float | None, delta: float | None) -> tuple[PrivateData, Budget]:
        """Return the private data and the (epsilon, delta) of this fit. Inside `cell.one_at_a_time()`."""
        study = self.cell.study
        if study is not None:
            whole = study.budget.delta
            spend = check_delta(delta if delta is not None else whole)
            if spend > whole:
                raise InvalidBudget(f"delta = {spend:g} is above the budget's delta {whole:g}; leave it out")
            return study, Budget(check_epsilon(epsilon), spend)
        budget = Budget(check_epsilon(epsilon), check_delta(delta))
        table = self.cell.table
        unnamed = isinstance(table, np.ndarray | list)

        def make() -> PrivateData:
            names = self._given if unnamed else None
            return PrivateData(table, bounds=self._bounds, budget=budget, columns=names)

        return self.cell.open_table(make), budget
