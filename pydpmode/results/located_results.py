"""Results that are k numbered places with errors: modes, or centres of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
import pandas as pd

from ..budget import as_number
from ..errors import InvalidArgument
from ..numerics.surfaces import FloatArray
from .base_results import Results, normal_quantile

Source = TypeVar("Source", bound=str)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LocatedResults(Results, Generic[Source]):
    """What modes and centres share: tables by number and column, from places and their covariances."""

    # What one of them is called, in the tables' index and in messages.
    item: ClassVar[str] = ""

    def _places(self) -> FloatArray:
        """Return the k x d places."""
        raise NotImplementedError

    def _covariances(self) -> Mapping[str, FloatArray]:
        """Return the k x d x d covariances by source; together they are the total."""
        raise NotImplementedError

    def _numbers(self) -> pd.Index[int]:
        return pd.RangeIndex(1, len(self._places()) + 1, name=self.item)

    def _pairs(self) -> pd.MultiIndex:
        numbers = range(1, len(self._places()) + 1)
        return pd.MultiIndex.from_product([numbers, self.columns], names=[self.item, "column"])

    def _place_table(self) -> pd.DataFrame:
        return pd.DataFrame(self._places().copy(), index=self._numbers(), columns=list(self.columns))

    def _error_table(self, *sources: Source) -> pd.DataFrame:
        return pd.DataFrame({s: self._errors(s).ravel() for s in sources}, index=self._pairs())

    def _ends(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the intervals, k x d each."""
        half = normal_quantile(level) * self._errors("total")
        return self._places() - half, self._places() + half

    def _covariance(self, source: str) -> FloatArray:
        parts = self._covariances()
        if source == "total":
            return np.asarray(sum(parts.values()))
        if source not in parts:
            *first, last = map(repr, ("total", *parts))
            raise InvalidArgument(f"source must be {', '.join(first)} or {last}, got {source!r}")
        return parts[source]

    def _errors(self, source: str) -> FloatArray:
        variances = np.diagonal(self._covariance(source), axis1=1, axis2=2)
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    def _covariance_table(self, number: object, source: str) -> pd.DataFrame:
        """Return the covariance of one place."""
        asked, count, item = as_number(number, self.item), len(self._places()), self.item
        if asked not in range(1, count + 1):
            found = f"1 to {count}" if count else f"none: no {item} was found"
            raise InvalidArgument(f"{item} must be the number of a {item} ({found}), got {number!r}")
        matrix = self._covariance(source)[int(asked) - 1]
        return pd.DataFrame(matrix.copy(), index=list(self.columns), columns=list(self.columns))
