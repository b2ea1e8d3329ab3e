"""The one door: what is charged, when rows are read, and what one unit can do to the sum."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pydpmode as dpm
from pydpmode.budget import ADJACENCIES
from pydpmode.errors import (
    BudgetExceeded,
    EmptyData,
    InvalidArgument,
    InvalidBudget,
    MissingBounds,
    NonNumericColumn,
    PicklingRefused,
    UnknownColumn,
)
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.privacy import private_data
from pydpmode.privacy.features import ZERO_WEIGHT
from pydpmode.privacy.private_data import PrivateData
from pydpmode.privacy.table_options import check_table
from pydpmode.privacy.table_source import BaseTable, CodeArray, Kind
from pydpmode.results.coordinates import Coordinate

BUDGET = dpm.Budget(5.0, 1e-5)


def design_for(study: PrivateData, names: list[str], h: float = 0.2) -> tuple[Design, list[Coordinate]]:
    coordinates = [study.coordinate(name) for name in names]
    lower, upper = study.box(coordinates)
    box = tuple(names), lower, upper, (upper - lower) * h, 2, ZERO_WEIGHT[study.adjacency]
    return (LatticeDesign(*box) if len(names) <= 3 else RandomDesign(*box, n_pairs=1024)), coordinates


def release(study: PrivateData, names: list[str] | None = None, epsilon: float = 1.0, **knobs: Any) -> Any:
    design, coordinates = design_for(study, names or list(study.columns))
    return study.release_surface(design, coordinates, epsilon=epsilon, delta=1e-6, **knobs)


def exact_sum(study: PrivateData, names: list[str]) -> tuple[np.ndarray, Any]:
    """Return the integers that noise would be added to, and the plan of the release."""
    design, coordinates = design_for(study, names)
    plan = study.plan(design, epsilon=1.0, delta=1e-6)
    return study._lattice_sum(plan, coordinates), plan


def moved(one: PrivateData, other: PrivateData, names: list[str]) -> tuple[float, float]:
    """Return how far two tables' sums are apart, and the stated Delta."""
    (a, plan), (b, again) = exact_sum(one, names), exact_sum(other, names)
    assert plan.step == again.step
    assert plan.sensitivity == again.sensitivity
    return float(np.linalg.norm((a - b).astype(float)) * plan.step), plan.sensitivity.total


class Spy(BaseTable):
    """A table that counts its readers and looks at the ledger while it is read."""

    def __init__(self, values: np.ndarray, fail_at: int | None = None) -> None:
        super().__init__([f"x{i + 1}" for i in range(values.shape[1])])
        self.values = values
        self.fail_at = fail_at
        self.reads = 0
        self.code_reads = 0
        self.study: PrivateData | None = None
        self.seen: list[list[str]] = []

    @property
    def n_rows(self) -> int:
        return len(self.values)

    def _schema(self, position: int) -> tuple[Kind | None, str]:
        return "number", "float64"

    def _blocks(self, positions: list[int], rows_per_block: int) -> Iterator[np.ndarray]:
        self.reads += 1
        assert self.study is not None
        self.seen.append([entry.status for entry in self.study.ledger.entries()])
        for number, start in enumerate(range(0, self.n_rows, 100)):
            block = np.array(self.values[start : start + 100, positions].T, order="C")
            if number == self.fail_at:
                raise OSError(5, "the disk went away")
            yield block

    def _codes(self, position: int) -> CodeArray:
        self.code_reads += 1
        return np.unique(self.values[:, position], return_inverse=True)[1].astype(np.int64)


def spied(fail_at: int | None = None, **knobs: Any) -> tuple[PrivateData, Spy]:
    spy = Spy(np.random.default_rng(0).uniform(size=(450, 2)), fail_at)
    study = PrivateData(spy, bounds={"x1": (0, 1), "x2": (0, 1)}, budget=BUDGET, **knobs)
    spy.study = study
    return study, spy


# -- charge, read, release ---------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("in_file", [False, True])
def test_the_charge_stands_before_the_first_read(adjacency: Any, in_file: bool, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl" if in_file else None
    study, spy = spied(adjacency=adjacency, ledger=ledger)
    assert spy.reads == 0
    release(study, ["x1"], label="one")
    assert spy.seen == [["charged, unfinished"]]
    assert [e.status for e in study.ledger.entries()] == ["released"]
    release(study, ["x1", "x2"], label="two")
    assert spy.seen[1] == ["released", "charged, unfinished"]
    assert spy.reads == 2


@pytest.mark.parametrize("fail_at", [0, 2])
def test_a_read_that_fails_stays_charged_and_unfinished(fail_at: int) -> None:
    study, spy = spied(fail_at)
    left = study.ledger.remaining()
    with pytest.raises(OSError, match="the disk went away") as caught:
        release(study, ["x1"])
    assert [e.status for e in study.ledger.entries()] == ["charged, unfinished"]
    assert study.ledger.remaining() < left
    # A traceback keeps the variables of its frames: no rows among them. (Frame 0 is this test.)
    frame: Any = caught.tb.tb_next
    names = []
    while frame is not None:
        names.append(frame.tb_frame.f_code.co_name)
        assert not any(isinstance(v, np.ndarray) for v in frame.tb_frame.f_locals.values())
        frame = frame.tb_next
    assert "_blocks" in names
    spy.fail_at = None
    release(study, ["x1"])
    assert [e.status for e in study.ledger.entries()] == ["charged, unfinished", "released"]


def test_what_does_not_fit_is_refused_before_anything_is_read() -> None:
    study, spy = spied()
    release(study, ["x1"], epsilon=4.5)
    before = study.ledger.entries()
    with pytest.raises(BudgetExceeded, match="Nothing was read"):
        release(study, ["x1"], epsilon=4.5)
    assert spy.reads == 1
    assert study.ledger.entries() == before


BAD_REQUESTS: dict[str, dict[str, Any]] = {
    "epsilon None": {"epsilon": None},
    "epsilon 0": {"epsilon": 0.0},
    "epsilon True": {"epsilon": True},
    "delta 0": {"delta": 0.0},
    "delta 1": {"delta": 1},
    "label": {"label": 3},
    "label too long": {"label": "x" * 1000},
    "seed -1": {"seed": -1},
    "seed text": {"seed": "1"},
    "seed True": {"seed": True},
    "seed 1.5": {"seed": 1.5},
    "notes": {"notes": 3},
    "notes text": {"notes": "abc"},
    "no bounds": {"coordinates": [Coordinate.plain("x3")]},
    "too many coordinates": {"coordinates": [Coordinate.plain("x1"), Coordinate.plain("x2")]},
    "another column": {"coordinates": [Coordinate.plain("x2")]},
    "a narrower box": {"design": LatticeDesign(("x1",), [0.0], [0.5], [0.1])},
    "a wider box": {"design": LatticeDesign(("x1",), [-1.0], [1.0], [0.1])},
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_costs_nothing_and_reads_nothing(name: str) -> None:
    study, spy = spied()
    design, coordinates = design_for(study, ["x1"])
    request = {
        "design": design,
        "coordinates": coordinates,
        "epsilon": 1.0,
        "delta": 1e-6,
        **BAD_REQUESTS[name],
    }
    with pytest.raises(InvalidArgument):
        study.release_surface(request.pop("design"), request.pop("coordinates"), **request)
    assert spy.reads == 0
    assert study.ledger.entries() == ()


def test_public_facts_and_plans_read_nothing() -> None:
    study, spy = spied()
    design, _ = design_for(study, ["x1", "x2"])
    study.plan(design, epsilon=1.0, delta=1e-6)
    assert (study.columns, study.n_units, study.n_planning) == (("x1", "x2"), 450, 450)
    assert (study.adjacency, study.unit, study.budget) == ("replace", "row", BUDGET)
    assert study.bounds == {"x1": (0, 1), "x2": (0, 1)}
    assert "450 rows" in repr(study)
    assert (spy.reads, spy.code_reads) == (0, 0)


def test_under_add_remove_nothing_public_depends_on_the_number_of_rows() -> None:
    def facts(n: int) -> tuple[Any, ...]:
        study = PrivateData(np.zeros((n, 1)), bounds=[(-1, 1)], budget=BUDGET, adjacency="add_remove")
        design, _ = design_for(study, ["x1"])
        surface = release(study, seed=1)
        return (
            repr(study),
            study.n_units,
            study.plan(design, epsilon=1.0, delta=1e-6).sensitivity,
            surface.privacy,
        )

    assert facts(10) == facts(997)
    study = PrivateData(np.zeros(10), bounds=(-1, 1), budget=BUDGET, adjacency="add_remove")
    with pytest.raises(InvalidArgument, match="n_guess"):
        _ = study.n_planning
    guessed = PrivateData(np.zeros(10), bounds=(-1, 1), budget=BUDGET, adjacency="add_remove", n_guess=70)
    assert guessed.n_planning == 70


# -- one object, one budget ---------------------------------------------------------------------------


def test_it_is_never_pickled_or_copied() -> None:
    study = PrivateData(np.full(10, 7.123456), bounds=(0, 10), budget=BUDGET)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(PicklingRefused) as caught:
            pickle.dumps(study, protocol)
        assert "7.12" not in str(caught.value)
    with pytest.raises(PicklingRefused):
        pickle.dumps({"inside": [study]})
    assert copy.copy(study) is study
    assert copy.deepcopy(study) is study
    assert copy.deepcopy([study])[0] is study


def test_two_objects_on_one_ledger_share_the_budget(tmp_path: Path) -> None:
    one, other = (
        PrivateData(np.zeros(50), bounds=(-1, 1), budget=BUDGET, ledger=tmp_path / "l.jsonl")
        for _ in range(2)
    )
    release(one, epsilon=4.5)
    with pytest.raises(BudgetExceeded):
        release(other, epsilon=4.5)


# -- what one unit can do --------------------------------------------------------------------------------

ODD = [0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 1e308, 5e-324]
CELLS = st.one_of(st.sampled_from(ODD), st.floats(-2, 2))
KINDS: dict[str, Any] = {
    "float64": lambda v: v,
    "float32": lambda v: v.clip(-3e38, 3e38).astype("f4"),
    "float16": lambda v: v.clip(-6e4, 6e4).astype("f2"),
    "int8": lambda v: np.nan_to_num(v).clip(-100, 100).astype("i1"),
    "uint8": lambda v: np.nan_to_num(v).clip(0, 200).astype("u1"),
    "Int16": lambda v: pd.array([None if np.isnan(x) else int(np.clip(x, -9, 9)) for x in v], dtype="Int16"),
    "Float64": lambda v: pd.array(v, dtype="Float64"),
    "arrow": lambda v: pd.array(v, dtype="double[pyarrow]"),
    "bool": lambda v: np.nan_to_num(v) > 0,
}


def table(values: np.ndarray, kind: str, **knobs: Any) -> PrivateData:
    """Return rows (n, d) as a data frame of one dtype; a last column holds weights or persons."""
    d = values.shape[1]
    frame = {f"x{i + 1}": KINDS[kind](values[:, i]) for i in range(d)}
    extra = {name: knobs.pop(name) for name in ("id", "w") if name in knobs}
    bounds = {f"x{i + 1}": (-1.0, 1.0) for i in range(d)}
    return PrivateData(pd.DataFrame({**frame, **extra}), bounds=bounds, budget=BUDGET, **knobs)


@settings(max_examples=50)
@given(
    st.data(), st.sampled_from([1, 2, 4]), st.sampled_from(list(KINDS)), st.sampled_from(["clip", "ignore"])
)
def test_neighbours_by_rows(data: Any, d: int, kind: str, outside: Any) -> None:
    n = data.draw(st.integers(2, 6))
    cells = np.array(data.draw(st.lists(CELLS, min_size=(n + 1) * d, max_size=(n + 1) * d))).reshape(-1, d)
    names = [f"x{i + 1}" for i in range(d)]
    weights = np.array(data.draw(st.lists(CELLS, min_size=n + 1, max_size=n + 1)))
    at = data.draw(st.integers(0, n - 1))
    swapped = np.arange(n)
    swapped[at] = n
    for weighted in (False, True):
        knobs: dict[str, Any] = {"outside": outside}
        if weighted:
            knobs |= {"weights": "w", "max_weight": 0.75}

        def study(rows: np.ndarray, more: dict[str, Any], weighted: bool = weighted) -> PrivateData:
            return table(cells[rows], kind, **more, **({"w": weights[rows]} if weighted else {}))

        shift, delta = moved(study(np.arange(n), knobs), study(swapped, knobs), names)
        assert shift <= delta
        private = {**knobs, "adjacency": "add_remove"}
        shift, delta = moved(study(np.arange(n), private), study(np.delete(np.arange(n), at), private), names)
        assert shift <= delta


@settings(max_examples=50)
@given(st.data(), st.sampled_from(["clip", "ignore"]), st.sampled_from(ADJACENCIES))
def test_neighbours_by_persons(data: Any, outside: Any, adjacency: Any) -> None:
    """Person 0 has any rows, in any place among the others'; or other rows; or none at all."""
    n = data.draw(st.integers(1, 5))
    sizes = data.draw(st.tuples(st.integers(1, 4), st.sampled_from([1, 3, 1000])))
    others = np.array(data.draw(st.lists(CELLS, min_size=n, max_size=n)))
    ids = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    studies = []
    for size in sizes:
        few = np.array(data.draw(st.lists(CELLS, min_size=4, max_size=4)))
        mine = np.resize(few, size)
        place = data.draw(st.integers(0, n))
        values = np.concatenate([others[:place], mine, others[place:]])
        who = np.array([*ids[:place], *[0] * size, *ids[place:]])
        knobs: dict[str, Any] = {"unit": "person", "person": "id", "outside": outside, "adjacency": adjacency}
        studies.append(table(values[:, None], "float64", id=who, **knobs))
    if adjacency == "add_remove":
        studies[1] = table(others[:, None], "float64", id=np.array(ids), **knobs)
    else:
        assert studies[0].n_units == studies[1].n_units == len(set(ids)) + 1
    shift, delta = moved(*studies, ["x1"])
    assert shift <= delta


def test_a_person_with_many_rows_is_one_vote() -> None:
    knobs: dict[str, Any] = {"unit": "person", "person": "id"}
    rows = np.array([-0.5, 0.5, 0.7])
    once = table(rows[:, None], "float64", id=[1, 2, 3], **knobs)
    often = table(
        np.repeat(rows, [1000, 1, 1])[:, None], "float64", id=np.repeat([1, 2, 3], [1000, 1, 1]), **knobs
    )
    shift, _ = moved(once, often, ["x1"])
    assert shift < 1e-6
    assert (once.n_units, often.n_units) == (3, 3)
    assert release(often, seed=1).privacy.unit == "person"


@pytest.mark.parametrize("unit", ["row", "person"])
def test_a_table_larger_than_n_max_keeps_its_sensitivity(unit: str) -> None:
    """Leaving out the rows past a ceiling would let one row go and another come: twice the shift."""
    n = 30
    values = np.where(np.arange(n) < 20, -1.0, 1.0)[:, None]
    knobs: dict[str, Any] = {"adjacency": "add_remove", "n_max": 20}
    if unit == "person":
        knobs |= {"unit": "person", "person": "id"}

    def study(rows: np.ndarray) -> PrivateData:
        more = {"id": rows} if unit == "person" else {}
        return table(values[rows], "float64", **more, **knobs)

    everything = np.arange(n)
    shift, delta = moved(study(everything), study(everything[1:]), ["x1"])
    assert shift <= delta < 1.001


def test_weights_scale_the_total_and_are_cut_at_the_ceiling() -> None:
    weights = np.array([1.0, 2.0, 4.0, 400.0, -3.0, np.nan, np.inf, 1e308])
    study = table(np.zeros((8, 1)), "float64", w=weights, weights="w", max_weight=4.0)
    exact, plan = exact_sum(study, ["x1"])
    total = exact[0] * plan.step / np.sqrt(plan.design.zero_weight)
    assert total == pytest.approx(0.25 + 0.5 + 1 + 1 + 0 + 0 + 1 + 1, abs=1e-6)
    tiny = table(np.zeros((8, 1)), "float64", w=weights, weights="w", max_weight=1e-300)
    assert exact_sum(tiny, ["x1"])[0][0] * plan.step / np.sqrt(plan.design.zero_weight) == pytest.approx(6)
    assert release(study, ["x1"], seed=1).privacy.max_weight == 4.0


# -- blocks, seeds, threads --------------------------------------------------------------------------------


def test_blocks_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    values[::7] = np.nan
    whole, plan = exact_sum(table(values, "float64"), ["x1", "x2"])
    monkeypatch.setattr(private_data, "BLOCK_ROWS", 90)
    sums = []
    for workers in (1, 2, 7):
        monkeypatch.setattr(private_data, "processors", lambda w=workers: w)
        sums.append(exact_sum(table(values, "float64"), ["x1", "x2"])[0])
    # The same bits for any number of threads; the same sum for any blocks, up to rounding.
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])
    assert np.abs(sums[0] - whole).max() <= 1000 / 90 + 1 + plan.sensitivity.arithmetic / plan.step
    person = table(values, "float64", id=np.arange(1000) // 3, unit="person", person="id")
    one, _ = exact_sum(person, ["x1", "x2"])
    monkeypatch.setattr(private_data, "BLOCK_ROWS", 2**17)
    other, plan = exact_sum(person, ["x1", "x2"])
    assert np.abs(one - other).max() <= 1 + plan.sensitivity.arithmetic / plan.step


@pytest.mark.parametrize("names", [["x1"], ["x1", "x2"], ["x1", "x2", "x3", "x4"]], ids=len)
def test_a_seed_repeats_a_release_and_marks_it(names: list[str]) -> None:
    study = PrivateData(
        np.random.default_rng(0).uniform(size=(300, 4)), bounds=[(0, 1)] * 4, budget=dpm.Budget(50.0, 1e-4)
    )
    one, again, other = (release(study, names, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.vector, again.vector)
    assert not np.array_equal(one.vector, other.vector)
    assert one.privacy.simulated
    real, real_again = release(study, names), release(study, names)
    assert not np.array_equal(real.vector, real_again.vector)
    assert not real.privacy.simulated
    assert real.privacy.mechanism == "surface (discrete Gaussian)"
    plan = study.plan(real.design, epsilon=1.0, delta=1e-6)
    np.testing.assert_array_equal(real.vector / plan.step, np.rint(real.vector / plan.step))


def test_check_table_looks_at_the_schema_alone() -> None:
    assert check_table(np.zeros((3, 2)), [(0, 1), (0, 1)], ["a", "b"]) == ("a", "b")
    with pytest.raises(MissingBounds):
        check_table(np.zeros((3, 2)), None, None)
    with pytest.raises(UnknownColumn):
        check_table(pd.DataFrame({"a": [1]}), {"b": (0, 1)}, None)
    with pytest.raises(NonNumericColumn):
        check_table(pd.DataFrame({"a": ["x"]}), {"a": (0, 1)}, None)
    with pytest.raises(EmptyData):
        check_table(np.zeros((0, 2)), [(0, 1), (0, 1)], None)
    with pytest.raises(InvalidBudget):
        PrivateData(np.zeros(3), bounds=(0, 1), budget=(1.0, 1e-6))  # type: ignore[arg-type]
