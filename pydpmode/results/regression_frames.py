"""New data and long frames of a modal regression: from predictor values to rows of a table and back."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import InvalidArgument, UnknownColumn, UnknownLevel
from ..numerics.surfaces import FloatArray
from .coordinates import Coordinate, points_of
from .grouped_surface import Level

OK, MISSING, OUTSIDE, NO_BRANCH, UNKNOWN = "ok", "missing", "outside the box", "no branch", "unknown level"


@dataclass(frozen=True, eq=False)
class NewRows:
    """Predictor values of new data.

    Parameters
    ----------
    points : (m, p) array
        In the coordinates' units.
    group : (m,) int array
        Position of the row's level; -1 where it is missing or was not declared.
    status : (m,) array of text
        "ok", "missing", "outside the box" or "unknown level".
    index : pandas Index
        Of the new data.
    """

    points: FloatArray
    group: NDArray[np.int64]
    status: NDArray[np.object_]
    index: pd.Index[Any]

    def usable(self, group: int) -> NDArray[np.int64]:
        """Return the rows of a group that can be predicted."""
        return np.flatnonzero((self.group == group) & (self.status == OK))


def read_new_rows(
    new: Any,
    predictors: Sequence[Coordinate],
    lower: FloatArray,
    upper: FloatArray,
    by: str | None,
    levels: Sequence[Level],
) -> NewRows:
    """Return new data as points, with what is wrong with each row.

    Warns once when a level was not declared.

    Raises
    ------
    UnknownColumn, DuplicateColumns, NonNumericColumn, InvalidArgument
        When the new data do not have the predictors (and the grouping column).
    """
    new = pd.DataFrame(new) if isinstance(new, Mapping) else new
    points, index = points_of(new, predictors)
    status = np.full(points.shape[0], OK, dtype=object)
    status[((points < lower) | (points > upper)).any(axis=1)] = OUTSIDE
    status[np.isnan(points).any(axis=1)] = MISSING
    group = np.zeros(points.shape[0], dtype=np.int64)
    if by is not None:
        group, absent = _groups(new, by, levels)
        status[(group < 0) & ~absent] = UNKNOWN
        status[absent] = MISSING
        if np.any(status == UNKNOWN):
            warnings.warn(
                f"new data have values of {by!r} that are none of the declared levels {list(levels)}; "
                "their rows are NaN",
                UnknownLevel,
                stacklevel=4,
            )
    return NewRows(points, group, status, index)


def _groups(new: Any, by: str, levels: Sequence[Level]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    frame = new if isinstance(new, pd.DataFrame) or not hasattr(new, "to_pandas") else new.to_pandas()
    if not isinstance(frame, pd.DataFrame):
        raise InvalidArgument(f"new data must be a data frame with the grouping column {by!r}")
    names = [str(name) for name in frame.columns]
    if by not in names:
        raise UnknownColumn(f"new data has no column {by!r}, which says the group; it has {names[:12]}")
    values = frame.iloc[:, names.index(by)]
    place = {level: number for number, level in enumerate(levels)}
    codes = [place.get(value, -1) if _hashable(value) else -1 for value in values.tolist()]
    return np.array(codes, dtype=np.int64).reshape(len(values)), np.asarray(values.isna())


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def shown_columns(coordinate: Coordinate, values: FloatArray, suffix: str = "") -> dict[str, Any]:
    """Return the values on the original column's scale under its name, for logarithms and times."""
    if not coordinate.maps_back and coordinate.kind == "number":
        return {}
    return {f"{coordinate.column}{suffix}": coordinate.back(values)}


def response_columns(
    coordinate: Coordinate, estimate: FloatArray | None, lower: FloatArray, upper: FloatArray
) -> dict[str, Any]:
    """Return what a frame shows of the response on its original scale."""
    out = {} if estimate is None else shown_columns(coordinate, estimate)
    return {
        **out,
        **shown_columns(coordinate, lower, "_lower"),
        **shown_columns(coordinate, upper, "_upper"),
    }


def predictor_columns(
    predictors: Sequence[Coordinate], points: FloatArray, taken: Sequence[str]
) -> dict[str, Any]:
    """Return predictor values on their original scales; a name that is taken gets an underscore."""
    out: dict[str, Any] = {}
    for coordinate, values in zip(predictors, points.T, strict=True):
        name = coordinate.column
        while name in taken or name in out:
            name += "_"
        out[name] = coordinate.back(values)
    return out
