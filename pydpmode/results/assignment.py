"""Which mode or cluster each row of new data belongs to: a function of the release and of those rows only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InvalidArgument
from ..numerics.mode_set import IntArray
from ..numerics.surfaces import FloatArray, Surface
from .base_results import SurfaceFacts
from .coordinates import Coordinate, points_of


def check_method(method: object) -> None:
    """Refuse a way of assignment that there is not."""
    if method not in ("nearest", "basin"):
        raise InvalidArgument(f"method must be 'nearest' or 'basin', got {method!r}")


def label_rows(
    new: Any,
    coordinates: Sequence[Coordinate],
    facts: SurfaceFacts,
    count: int,
    assign: Callable[[FloatArray], IntArray],
    name: str,
) -> pd.Series[Any]:
    """Return numbers from 1 with the index of `new`; <NA> where a value is missing.

    Parameters
    ----------
    new : DataFrame or array
        As `points_of` takes it. Values outside the box count as at its boundary.
    coordinates : sequence of Coordinate
    facts : SurfaceFacts
    count : int
        How many modes or clusters there are; with none every label is <NA>.
    assign : callable
        From points (m, d) inside the box to numbers from 0.
    name : str
        Of the answer.
    """
    points, index = points_of(new, coordinates)
    points = np.clip(points, facts.lower, facts.upper)
    present = ~np.isnan(points).any(axis=1)
    numbers = np.zeros(points.shape[0], dtype=np.int64)
    if count and present.any():
        numbers[present] = assign(points[present]) + 1
    labels = pd.array(numbers, dtype="Int64")
    labels[numbers == 0] = pd.NA
    return pd.Series(labels, index=index, name=name)


def basin_of(surface: Surface | None, centres: FloatArray, points: FloatArray) -> IntArray:
    """Return the centre whose basin on the surface each point lies in.

    Raises
    ------
    InvalidArgument
        When the surface is not at hand.
    """
    if surface is None:
        raise InvalidArgument(
            "method='basin' needs the surface, and this result was saved or released without it; "
            "use method='nearest', or save with surface=True"
        )
    from ..numerics.mode_seeking import assign_basins

    return np.asarray(assign_basins(surface, centres, points))
