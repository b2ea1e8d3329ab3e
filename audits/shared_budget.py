"""Work for other processes: a function that can be imported there."""

from __future__ import annotations

import numpy as np

from pydpmode.budget import Budget
from pydpmode.errors import BudgetExceeded
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy.private_data import PrivateData


def spend(path: str, epsilon: float = 0.3) -> int:
    """Release from one table and ledger until refused, and return how often it went well."""
    rows = np.linspace(0, 3, 40)
    data = PrivateData(rows, bounds=(0.0, 3.0), columns=["x"], budget=Budget(1.0, 1e-6), ledger=path)
    at = [data.coordinate("x")]
    design = LatticeDesign(("x",), *data.box(at), np.ones(1), 2, 0.5, 0.5, 3.0)
    done = 0
    while True:
        try:
            data.release_surface(design, at, epsilon=epsilon, delta=1e-6)
        except BudgetExceeded:
            return done
        done += 1
