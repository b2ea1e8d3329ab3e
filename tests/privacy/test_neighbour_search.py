"""A search over neighbours and options for the largest shift of a release: never above the stated Delta.

hypothesis chooses the options (columns, order, ladder, box, weight of zero, unit, weights, blocks), an
optimiser the two records, and the shift is taken from the integers that a release would add noise to.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pydpmode as dpm
from audits.neighbours import squared_distance, worst_pair
from pydpmode.errors import InvalidArgument
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.privacy import private_data
from pydpmode.privacy.bounds import ClippedBlock
from pydpmode.privacy.features import exact_sensitivity
from pydpmode.privacy.private_data import PrivateData
from pydpmode.privacy.quantiles import CELLS, QUARTILES, WEIGHT_BITS, cell_weights

NAMES = ("a", "b", "c", "d", "e")
EPSILON, DELTA = 1.0, 1e-6


def move(one: PrivateData, other: PrivateData, design: Design) -> tuple[float, float]:
    """Return the shift between two tables and the stated Delta, which must be the same for both."""
    at = [one.coordinate(c) for c in design.columns]
    plans = [study.plan(design, epsilon=EPSILON, delta=DELTA) for study in (one, other)]
    assert plans[0].sensitivity == plans[1].sensitivity
    assert (plans[0].noise_scale, plans[0].step) == (plans[1].noise_scale, plans[1].step)
    sums = [study._lattice_sum(plans[0], at) for study in (one, other)]
    return float(np.linalg.norm((sums[0] - sums[1]).astype(float)) * plans[0].step), plans[
        0
    ].sensitivity.total


def study(rows: np.ndarray, design: Design, **more: Any) -> PrivateData:
    table = pd.DataFrame(np.atleast_2d(rows), columns=list(design.columns)).assign(**more.pop("extra", {}))
    bounds = {c: (lo, up) for c, lo, up in zip(design.columns, design.lower, design.upper, strict=True)}
    return PrivateData(table, bounds=bounds, budget=dpm.Budget(EPSILON, DELTA), **more)


@st.composite
def designs(draw: Any, zero_weights: tuple[float, ...] = (0.5,), most: int = 5) -> Design:
    d = draw(st.integers(1, most))
    width = np.array(
        draw(
            st.lists(st.sampled_from([0.3, 1.0, 2.5, 4.0, *([8.0] if d < 3 else [])]), min_size=d, max_size=d)
        )
    )
    lower = np.array(draw(st.lists(st.sampled_from([-3.0, 0.0, 1e3]), min_size=d, max_size=d)))
    bandwidth = np.array(draw(st.lists(st.sampled_from([0.25, 1.0, 20.0]), min_size=d, max_size=d)))
    box = (NAMES[:d], lower, lower + width * bandwidth, bandwidth)
    zero = draw(st.sampled_from(zero_weights))
    order = draw(st.sampled_from([2, 4]))
    if d > 3:
        return RandomDesign(*box, order, zero, 1024, draw(st.integers(0, 50)))
    ladder = draw(
        st.sampled_from([((1.0,), (1.0,)), ((1.0, 0.5), (0.5, 0.5)), ((1.0, 0.6, 0.3), (0.9, 0.05, 0.05))])
    )
    cut = draw(st.sampled_from([2.0, 3.5, 5.0] if d < 3 else [2.0]))
    try:
        return LatticeDesign(*box, order, zero, draw(st.sampled_from([0.6, 1.5])), cut, *ladder)
    except InvalidArgument:
        # Too many frequencies, or none: refused before anything is read.
        assume(False)
        raise


def plannable(design: Design, adjacency: Any) -> None:
    """Skip a box that is too small for a kernel of higher order: the plan refuses it."""
    try:
        exact_sensitivity(design, adjacency, 1e-9)
    except InvalidArgument:
        assume(False)


@settings(max_examples=80, deadline=None)
@given(
    designs(zero_weights=(0.02, 0.5, 0.9)),
    st.integers(0, 10**6),
    st.sampled_from(["clip", "ignore"]),
    st.data(),
)
def test_replacing_the_worst_record(design: Design, seed: int, outside: Any, data: Any) -> None:
    plannable(design, "replace")
    generator = np.random.default_rng(seed)
    one, other = worst_pair(design, generator)
    # A record beyond the box, or a missing one, in the place of the second.
    odd = data.draw(st.sampled_from(["as found", "beyond", "missing", "infinite"]))
    second = {
        "as found": other,
        "beyond": other + 1e3 * (design.upper - design.lower),
        "missing": np.full(other.size, np.nan),
        "infinite": np.full(other.size, np.inf),
    }[odd]
    rest = generator.uniform(design.lower, design.upper, size=(data.draw(st.integers(0, 4)), one.size))
    weights = data.draw(st.sampled_from([None, (1.0, 1.0), (1.0, 0.0), (50.0, 1.0), (0.3, np.nan)]))
    more: list[dict[str, Any]] = [{"outside": outside}, {"outside": outside}]
    if weights is not None:
        for knobs, weight in zip(more, weights, strict=True):
            knobs |= {"weights": "w", "max_weight": 1.0, "extra": {"w": [*[0.5] * len(rest), weight]}}
    shift, delta = move(
        study(np.vstack([rest, one]), design, **more[0]),
        study(np.vstack([rest, second]), design, **more[1]),
        design,
    )
    assert shift <= delta


@settings(max_examples=40, deadline=None)
@given(designs(zero_weights=(0.02, 0.1), most=4), st.integers(0, 10**6), st.integers(0, 3))
def test_adding_a_record_anywhere(design: Design, seed: int, place: int) -> None:
    generator = np.random.default_rng(seed)
    rows = generator.uniform(design.lower, design.upper, size=(4, design.dimension))
    knobs: dict[str, Any] = {"adjacency": "add_remove", "n_max": 10}
    shift, delta = move(
        study(rows, design, **knobs), study(np.delete(rows, place, axis=0), design, **knobs), design
    )
    assert shift <= delta


@settings(max_examples=40, deadline=None)
@given(designs(most=2), st.integers(0, 10**6), st.sampled_from([1, 2, 7]), st.sampled_from([1, 3, 40]))
def test_replacing_a_person_of_any_number_of_rows(design: Design, seed: int, before: int, after: int) -> None:
    plannable(design, "replace")
    generator = np.random.default_rng(seed)
    one, other = worst_pair(design, generator)
    rest = generator.uniform(design.lower, design.upper, size=(3, one.size))
    tables = []
    for who, (record, count) in enumerate(((one, before), (other, after))):
        rows = np.vstack([rest[:1], np.repeat(record[None], count, axis=0), rest[1:]])
        persons = ["x", *[f"p{who}"] * count, "x", "y"]
        tables.append(study(rows, design, unit="person", person="id", extra={"id": persons}))
    shift, delta = move(*tables, design)
    assert shift <= delta


def known(d: int, width: float, **ladder: tuple[float, ...]) -> Design:
    box = (NAMES[:d], np.zeros(d), np.full(d, width), np.ones(d), 2, 0.5)
    return LatticeDesign(*box, 1.0, 4.0, **ladder) if d <= 3 else RandomDesign(*box, 2048, 1)


@pytest.mark.parametrize(
    ("design", "least"),
    [
        (known(1, 8.0), 0.999),
        (known(2, 8.0), 0.99),
        (known(3, 6.0), 0.99),
        (known(1, 8.0, scales=(1.0, 0.3), masses=(0.8, 0.2)), 0.99),
        (known(4, 6.0), 0.94),
        (known(5, 6.0), 0.93),
    ],
    ids=["1", "2", "3", "ladder", "4", "5"],
)
def test_the_search_comes_close_to_the_stated_sensitivity(design: Design, least: float) -> None:
    """A search that never comes near Delta would prove nothing."""
    one, other = worst_pair(design, np.random.default_rng(5))
    shift, delta = move(study(one, design), study(other, design), design)
    assert least * delta < shift <= delta


@pytest.mark.parametrize("length", [1, 2, 5])
def test_blocks_of_any_length(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block is rounded by itself: the margin for rounding covers all of them together."""
    monkeypatch.setattr(private_data, "BLOCK_ROWS", length)
    design = LatticeDesign(("a",), np.zeros(1), np.full(1, 3.0), np.ones(1), 2, 0.5, 0.5, 3.5)
    one, other = worst_pair(design, np.random.default_rng(1))
    rows = np.linspace(0, 3, 11)[:, None]
    for place in (0, 4, 10):
        swapped = rows.copy()
        rows[place], swapped[place] = one, other
        shift, delta = move(study(rows, design), study(swapped, design), design)
        assert 0.95 * delta < shift <= delta
        knobs: dict[str, Any] = {"adjacency": "add_remove", "n_max": 11}
        # A row at the front moves every later row to another place in its block.
        shift, delta = move(study(rows, design, **knobs), study(rows[1:], design, **knobs), design)
        assert 0.95 * delta < shift <= delta


@settings(max_examples=30, deadline=None)
@given(designs(zero_weights=(0.02, 0.5)), st.integers(0, 10**6))
def test_the_optimiser_finds_what_random_search_does_not(design: Design, seed: int) -> None:
    plannable(design, "replace")
    generator = np.random.default_rng(seed)
    found = squared_distance(design, *worst_pair(design, generator))
    pairs = generator.uniform(design.lower, design.upper, size=(100, 2, design.dimension))
    assert found >= max(squared_distance(design, *pair) for pair in pairs) - 1e-9
    stated = exact_sensitivity(design, "replace", 1e-9)
    assert math.sqrt(found) <= stated * (1 + 1e-12)


# -- quartiles: the utility of every edge ----------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.5, 1.0, -3.0, 7.0, math.nan, math.inf]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([1.0, 0.25, 0.0]),
)
def test_one_record_moves_no_utility_by_more_than_its_sensitivity(
    others: list[float], new: float, old: float, weight: float
) -> None:
    unit = 2**WEIGHT_BITS

    def utilities(values: list[float], weights: list[float]) -> list[np.ndarray]:
        clean = np.clip(np.nan_to_num(values, nan=0.0), 0.0, 1.0)
        used = np.where(np.isnan(values), 0.0, weights)
        cells = cell_weights(ClippedBlock(clean[None], used), np.zeros(1), np.ones(1))[0]
        below = np.concatenate([[0], np.cumsum(cells)])
        return [-np.abs(b * below - a * below[-1]) for a, b in QUARTILES]

    rest = [1.0] * len(others)
    before = utilities([*others, old], [*rest, 1.0])
    replaced = utilities([*others, new], [*rest, weight])
    removed = utilities(others, rest)
    for neighbour in (replaced, removed):
        for (_, b), one, two in zip(QUARTILES, before, neighbour, strict=True):
            assert np.abs(one - two).max() <= b * unit


def test_a_utility_moves_by_nearly_its_sensitivity_somewhere() -> None:
    rows = [np.array([[0.0, 0.0, x]]) for x in (0.0, 1.0)]
    cells = [cell_weights(ClippedBlock(r, None), np.zeros(1), np.ones(1))[0] for r in rows]
    below = [np.concatenate([[0], np.cumsum(c)]) for c in cells]
    for a, b in QUARTILES:
        one, two = (-np.abs(b * v - a * v[-1]) / 2**WEIGHT_BITS for v in below)
        assert np.abs(one - two).max() >= b / 2
    assert len(below[0]) == CELLS + 1
