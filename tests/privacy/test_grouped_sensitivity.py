"""Groups in one release: one record moves the released sum by at most the stated sensitivity."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from pydpmode import Budget, PrivateData
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy.features import exact_sensitivity, grouped_sensitivity
from pydpmode.privacy.grouped_release import GROUPED_ZERO_WEIGHT, DeclaredLevels

COLUMNS = ("x", "y")
BOUNDS = {"x": (0.0, 1.0), "y": (0.0, 2.0)}
DESIGN = LatticeDesign(
    COLUMNS, np.zeros(2), np.array([1.0, 2.0]), np.array([0.2, 0.4]), 2, GROUPED_ZERO_WEIGHT
)
GROUPS = DeclaredLevels("g", ("a", "b"))


def table(rows: list[tuple[float, float, str | None]], **extra: list[float]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["x", "y", "g"])
    return frame.assign(**extra)


def released_sum(frame: pd.DataFrame, **options: object) -> tuple[np.ndarray, float]:
    """Return the sum without noise, in feature units, and the stated sensitivity."""
    study = PrivateData(frame, bounds=BOUNDS, budget=Budget(1, 1e-6), **options)  # type: ignore[arg-type]
    plan = study.plan(DESIGN, epsilon=1, delta=1e-6, groups=2)
    coordinates = [study.coordinate(c) for c in COLUMNS]
    return study._lattice_sum(plan, coordinates, GROUPS) * plan.step, plan.sensitivity.total


BASE: list[tuple[float, float, str | None]] = [
    (0.3, 0.5, "a"),
    (0.7, 1.5, "b"),
    (0.2, 1.1, "a"),
    (0.9, 0.1, "b"),
]


@pytest.mark.parametrize(
    ("new", "most"),
    [
        ((0.9, 1.9, "a"), None),  # stays in its level, moves as far as it can
        ((0.3, 0.5, "b"), math.sqrt(2)),  # changes its level only
        ((1.0, 2.0, "b"), math.sqrt(2)),  # changes both
        ((0.3, 0.5, "c"), 1.0),  # to a level that is not declared
        ((0.3, 0.5, None), 1.0),
        ((np.nan, 0.5, "b"), 1.0),
        ((-5.0, 99.0, "b"), math.sqrt(2)),
    ],
)
def test_neighbours_differ_by_at_most_the_sensitivity(
    new: tuple[float, float, str | None], most: float | None
) -> None:
    first, sensitivity = released_sum(table(BASE))
    second, _ = released_sum(table([new, *BASE[1:]]))
    change = float(np.linalg.norm(first - second))
    assert change <= sensitivity
    if most is not None:
        assert change == pytest.approx(most, abs=1e-5)


def test_a_move_between_levels_reaches_the_bound() -> None:
    _, sensitivity = released_sum(table(BASE))
    assert sensitivity == pytest.approx(math.sqrt(2), abs=1e-3)
    assert sensitivity >= math.sqrt(2)


def test_a_person_in_two_levels_moves_the_sum_by_no_more() -> None:
    rows: list[tuple[float, float, str | None]] = [*BASE, (0.1, 0.2, "b"), (0.6, 1.9, "a")]
    person = [1, 2, 3, 3, 1, 1]
    frame = table(rows).assign(person=person)
    moved = frame.copy()
    moved.loc[moved.person == 1, ["x", "y", "g"]] = [[0.95, 1.95, "b"], [0.9, 0.05, "a"], [0.5, 1.0, "b"]]
    first, sensitivity = released_sum(frame, unit="person", person="person")
    second, _ = released_sum(moved, unit="person", person="person")
    assert np.linalg.norm(first - second) <= sensitivity


def test_one_record_more_adds_norm_one() -> None:
    first, sensitivity = released_sum(table(BASE), adjacency="add_remove", n_guess=4)
    second, _ = released_sum(table([*BASE, (0.4, 0.4, "b")]), adjacency="add_remove", n_guess=4)
    change = float(np.linalg.norm(first - second))
    assert change <= sensitivity
    assert change == pytest.approx(1.0, abs=1e-5)


def test_the_bound_in_exact_arithmetic() -> None:
    own = exact_sensitivity(DESIGN, "replace", 0.0)
    assert grouped_sensitivity(own, "replace", 1) == own
    assert grouped_sensitivity(own, "replace", 3) == pytest.approx(math.sqrt(2))
    assert grouped_sensitivity(1.0, "add_remove", 3) == 1.0
    assert grouped_sensitivity(1.6, "replace", 3) == 1.6


def test_random_neighbours() -> None:
    random = np.random.default_rng(8)
    levels = np.array(["a", "b", "c"])
    for _ in range(20):
        rows = [
            (float(x), float(y), str(g))
            for x, y, g in zip(
                random.uniform(-0.2, 1.2, 6),
                random.uniform(-0.5, 2.5, 6),
                random.choice(levels, 6),
                strict=True,
            )
        ]
        other = [
            (float(random.uniform(0, 1)), float(random.uniform(0, 2)), str(random.choice(levels))),
            *rows[1:],
        ]
        first, sensitivity = released_sum(table(rows))
        second, _ = released_sum(table(other))
        assert np.linalg.norm(first - second) <= sensitivity
