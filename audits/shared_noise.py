"""Releases for other processes: functions that can be imported there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pydpmode.budget import Budget
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy.private_data import PrivateData


def release(data: PrivateData, bandwidth: float) -> NDArray[np.float64]:
    """Return the released vector of a small surface of the first column."""
    at = [data.coordinate(data.columns[0])]
    design = LatticeDesign(data.columns[:1], *data.box(at), np.full(1, bandwidth), 2, 0.5, 0.5, 3.0)
    return data.release_surface(design, at, epsilon=1.0, delta=1e-6).vector


def released_vector(_: int) -> bytes:
    """Return a released vector of the same table, each time anew, as bytes."""
    data = PrivateData(np.linspace(0, 3, 25), bounds=(0.0, 3.0), budget=Budget(1.0, 1e-6))
    return release(data, 1.0).tobytes()
