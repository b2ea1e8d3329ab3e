"""Bad input gets a clear error and costs nothing; odd input is input."""

from __future__ import annotations

import datetime
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pydpmode as dpm
from pydpmode import errors

CANARY = 7423.918273
FRAME = pd.DataFrame({"age": [CANARY, 30.0, 40.0], "name": ["a", "b", "c"]})
GOOD = {"age": (0, 100)}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, errors.MissingBounds),
        ({"bounds": {}}, errors.MissingBounds),
        ({"bounds": {"age": (90, 15)}}, errors.InvalidBounds),
        ({"bounds": {"age": (15, 15)}}, errors.InvalidBounds),
        ({"bounds": {"age": (0, np.inf)}}, errors.InvalidBounds),
        ({"bounds": {"age": (np.nan, 1)}}, errors.InvalidBounds),
        ({"bounds": {"age": (0, 1, 2)}}, errors.InvalidBounds),
        ({"bounds": {"age": "ab"}}, errors.InvalidBounds),
        ({"bounds": {"age": (True, 50)}}, errors.InvalidBounds),
        ({"bounds": {"age": (np.zeros(2), 50)}}, errors.InvalidBounds),
        ({"bounds": {"wages": (0, 1)}}, errors.UnknownColumn),
        ({"bounds": {"name": (0, 1)}}, errors.NonNumericColumn),
        ({"bounds": GOOD, "columns": ["wage"]}, errors.UnknownColumn),
        ({"bounds": GOOD, "columns": []}, errors.InvalidArgument),
        ({"bounds": GOOD, "columns": ["age", "age"]}, errors.InvalidArgument),
        ({"bounds": GOOD, "log": "wage"}, errors.UnknownColumn),
        ({"bounds": GOOD, "bandwidth": 0}, errors.InvalidArgument),
        ({"bounds": GOOD, "bandwidth": -1.0}, errors.InvalidArgument),
        ({"bounds": GOOD, "bandwidth": np.nan}, errors.InvalidArgument),
        ({"bounds": GOOD, "bandwidth": True}, errors.InvalidArgument),
        ({"bounds": GOOD, "bandwidth": "silverman"}, errors.InvalidArgument),
        ({"bounds": GOOD, "bandwidth": {"wage": 1.0}}, errors.InvalidArgument),
        ({"bounds": GOOD, "bandwidth": 1e-9}, errors.InvalidArgument),
        ({"bounds": GOOD, "order": 3}, errors.InvalidArgument),
        ({"bounds": GOOD, "n_modes": 0}, errors.InvalidArgument),
        ({"bounds": GOOD, "n_modes": 1.5}, errors.InvalidArgument),
        ({"bounds": GOOD, "n_modes": True}, errors.InvalidArgument),
        ({"bounds": GOOD, "false_mode_rate": 0}, errors.InvalidArgument),
        ({"bounds": GOOD, "resolution": {"wage": 1}}, errors.InvalidArgument),
        ({"bounds": GOOD, "resolution": {"age": -1}}, errors.InvalidArgument),
        ({"bounds": GOOD, "n_features": 2000}, errors.InvalidArgument),
    ],
)
def test_wrong_options_are_refused_without_a_row_value(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        dpm.DensityModes(FRAME, **options).fit(epsilon=1.0, delta=1e-6)
    text = str(caught.value)
    assert len(text) > 20
    assert "7423" not in text


@pytest.mark.parametrize("epsilon", [None, 0, -1.0, np.nan, np.inf, True, "1", [1.0], np.ones(2), 1j])
def test_wrong_epsilon(epsilon: Any) -> None:
    with pytest.raises(errors.InvalidBudget, match="epsilon"):
        dpm.DensityModes(FRAME, bounds=GOOD).fit(epsilon=epsilon, delta=1e-6)


@pytest.mark.parametrize("delta", [None, 0, 1, -1e-6, 2.0, np.nan, False, "1e-6", [1e-6]])
def test_wrong_delta(delta: Any) -> None:
    with pytest.raises(errors.InvalidBudget, match="delta"):
        dpm.DensityModes(FRAME, bounds=GOOD).fit(epsilon=1.0, delta=delta)


@pytest.mark.parametrize("seed", [True, -1, 1.5, "a"])
def test_wrong_seed_costs_nothing(seed: Any) -> None:
    study = dpm.PrivateData(FRAME, bounds=GOOD, budget=dpm.Budget(1.0, 1e-6))
    with pytest.raises(errors.InvalidArgument, match="seed"):
        dpm.DensityModes(study).fit(epsilon=1.0, seed=seed)
    assert study.ledger.entries() == ()


def test_every_refusal_leaves_the_ledger_as_it_was(tmp_path) -> None:
    path = tmp_path / "ledger.jsonl"
    study = dpm.PrivateData(FRAME, bounds=GOOD, budget=dpm.Budget(1.0, 1e-6), ledger=path)
    before = path.read_bytes()
    for epsilon, delta in ((None, None), (np.nan, None), (1.5, None), (1.0, 0.0), (1.0, 1e-3)):
        with pytest.raises(errors.PydpmodeError):
            dpm.DensityModes(study).fit(epsilon=epsilon, delta=delta)
    for bandwidth in (0, "none", 1e-9):
        with pytest.raises(errors.InvalidArgument):
            dpm.DensityModes(study, bandwidth=bandwidth).fit(epsilon=0.5)
    assert path.read_bytes() == before


def test_a_delta_above_one_over_n_warns_once_and_is_stored() -> None:
    x = np.random.default_rng(0).normal(size=2000)
    with pytest.warns(errors.WeakDelta) as caught:
        res = dpm.DensityModes(x, bounds=(-5, 5)).fit(epsilon=1.0, delta=1e-2, seed=1)
    assert len(caught) == 1
    assert any("1/n" in text for text in res.warnings)


def test_no_rows_and_unreadable_objects() -> None:
    with pytest.raises(errors.EmptyData):
        dpm.DensityModes(pd.DataFrame({"a": np.array([], dtype=float)}), bounds={"a": (0, 1)})
    with pytest.raises(errors.UnsupportedSource):
        dpm.DensityModes(object(), bounds={"a": (0, 1)})
    with pytest.raises(errors.DuplicateColumns):
        dpm.DensityModes(pd.DataFrame(np.zeros((3, 2)), columns=["a", "a"]), bounds={"a": (0, 1)})
    with pytest.raises(errors.InvalidArgument):
        dpm.DensityModes(np.zeros((5, 9)), bounds=[(0, 1)] * 9)


RNG = np.random.default_rng(3)
BASE = RNG.integers(0, 100, 400)
ODD: dict[str, Any] = {
    "constant": pd.DataFrame({"a": np.full(400, 50.0)}),
    "all at a bound": pd.DataFrame({"a": np.full(400, 100.0)}),
    "all far outside": pd.DataFrame({"a": np.full(400, 1e300)}),
    "int8": pd.DataFrame({"a": BASE.astype("int8")}),
    "uint8": pd.DataFrame({"a": BASE.astype("uint8")}),
    "uint64": pd.DataFrame({"a": np.full(400, 2**64 - 1, dtype="uint64")}),
    "float32": pd.DataFrame({"a": BASE.astype("float32")}),
    "float16": pd.DataFrame({"a": BASE.astype("float16")}),
    "bool": pd.DataFrame({"a": BASE > 50}),
    "nullable": pd.DataFrame({"a": pd.array([None, *BASE[1:].tolist()], dtype="Int64")}),
    "nullable float": pd.DataFrame({"a": pd.array([None, *BASE[1:].tolist()], dtype="Float64")}),
    "arrow": pd.DataFrame({"a": pd.array([None, *BASE[1:].tolist()], dtype=pd.ArrowDtype(pa.int32()))}),
    "arrow table": pa.table({"a": pa.array([None, *BASE[1:].tolist()])}),
    "missing": pd.DataFrame({"a": np.full(400, np.nan)}),
    "infinite": pd.DataFrame({"a": np.where(BASE > 50, np.inf, -np.inf)}),
    "mixed": pd.DataFrame({"a": np.where(BASE > 80, np.nan, np.where(BASE > 60, np.inf, BASE))}),
    "one row": pd.DataFrame({"a": [50.0]}),
    "non-contiguous": np.asfortranarray(np.tile(BASE, (6, 1)).astype(float))[::3].T[:, :1],
    "index repeated": pd.DataFrame({"a": BASE.astype(float)}, index=np.zeros(400, dtype=int)),
}


@pytest.mark.parametrize("name", list(ODD))
@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
def test_odd_input_is_input(name: str) -> None:
    data = ODD[name]
    bounds = [(0, 100)] if isinstance(data, np.ndarray) else {"a": (0, 100)}
    res = dpm.DensityModes(data, bounds=bounds).fit(epsilon=1.0, delta=1e-6, seed=1)
    assert np.isfinite(res.surface.vector).all()
    assert np.isfinite(res.modes.to_numpy()).all()
    assert res.modes.to_numpy().min(initial=0) >= 0
    assert res.modes.to_numpy().max(initial=0) <= 100
    assert "nan" not in res.summary().as_text().lower().replace("nan where", "")


@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_dates_are_input_and_come_back_as_dates(zone: str | None) -> None:
    when = pd.Timestamp("2020-06-15", tz=zone) + pd.to_timedelta(RNG.normal(0, 20, 3000), unit="D")
    frame = pd.DataFrame({"when": when})
    res = dpm.DensityModes(frame, bounds={"when": (datetime.date(2020, 1, 1), "2020-12-31")}).fit(
        epsilon=1.0, delta=1e-6, seed=1
    )
    assert res.n_modes == 1
    assert "2020-06" in res.summary().as_text()


def test_the_callers_array_is_not_changed_and_may_be_read_only() -> None:
    x = RNG.normal(size=(500, 2)) * 10
    x[0] = [np.nan, np.inf]
    copy = x.copy()
    x.setflags(write=False)
    dpm.DensityModes(x, bounds=[(-5, 5), (-5, 5)], log=()).fit(epsilon=5.0, delta=1e-6, seed=1)
    assert np.array_equal(x, copy, equal_nan=True)


def test_a_bandwidth_that_says_nothing_is_refused() -> None:
    x = np.random.default_rng(0).normal(size=500)
    with pytest.raises(errors.InvalidArgument, match="width of its box"):
        dpm.DensityModes(x, bounds=(-5, 5), bandwidth=11.0).fit(epsilon=1.0, delta=1e-6)
    with pytest.raises(errors.InvalidArgument, match="bandwidth"):
        dpm.DensityModes(x, bounds=(-5, 5), bandwidth=-3)
    with pytest.raises(errors.InvalidArgument, match="resolution must map"):
        dpm.DensityModes(x, bounds=(-5, 5), resolution=1)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
def test_a_very_fine_bandwidth_takes_little_memory() -> None:
    """100,000 bandwidths: matrices of phases over the whole box would take 80 GB."""
    x = np.random.default_rng(0).normal(size=500)
    tracemalloc.start()
    try:
        res = dpm.DensityModes(x, bounds=(-5, 5), bandwidth=0.0001).fit(epsilon=1.0, delta=1e-6, seed=1)
        assert tracemalloc.get_traced_memory()[1] < 400e6
    finally:
        tracemalloc.stop()
    assert np.isfinite(res.modes.to_numpy()).all()


@pytest.mark.parametrize("d", [4, 7])
def test_clusters_of_which_the_release_says_nothing_are_marked(d: int) -> None:
    """A kernel far narrower than any cluster: their images are zero to the last digit."""
    x = np.random.default_rng(0).normal(size=(300, d))
    model = dpm.ModalClustering(x, bounds=[(-5, 5)] * d, bandwidth=0.003, n_clusters=2)
    planned = model.preview(1.0, 1e-6).modes
    with pytest.warns(errors.LowSignal, match="2 of 2 clusters cannot be told from noise"):
        res = model.fit(epsilon=1.0, delta=1e-6, seed=1)
    assert (planned["evidence_z"] < 1e-6).all()
    assert (res.stability.to_numpy() < 1e-6).all()
    assert (res.shares["total"] <= 0.75).all()


def test_a_delta_above_the_budgets_is_refused() -> None:
    study = dpm.PrivateData(FRAME, bounds=GOOD, budget=dpm.Budget(1.0, 1e-6))
    with pytest.raises(errors.InvalidBudget, match="above the budget"):
        dpm.DensityModes(study).fit(epsilon=0.5, delta=1e-4)
    assert study.ledger.entries() == ()


def test_rows_that_count_nothing_are_pointed_out() -> None:
    data = pd.DataFrame({"a": np.where(np.arange(3000) < 2900, np.nan, 50.0)})
    with pytest.warns(errors.LowSignal, match="only about") as caught:
        dpm.DensityModes(data, bounds={"a": (0, 100)}).fit(epsilon=5.0, delta=1e-6, seed=1)
    assert len(caught) == 1


def test_a_failed_search_keeps_what_was_released(monkeypatch: pytest.MonkeyPatch) -> None:
    model = dpm.DensityModes(np.linspace(-4, 4, 500), bounds=(-5, 5))
    assert model.released is None

    def broken(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("pydpmode.models.density_modes.find_modes", broken)
    with pytest.raises(MemoryError):
        model.fit(epsilon=1.0, delta=1e-6, seed=1)
    assert model.released is not None
    assert np.isfinite(model.released.vector).all()


def test_bandwidths_of_dates_are_durations() -> None:
    when = pd.Timestamp("2020-06-15") + pd.to_timedelta(RNG.normal(0, 20, 2000), unit="D")
    bounds = {"when": ("2020-01-01", "2020-12-31")}
    for spec in (pd.Timedelta(days=10), {"when": "10 days"}, {"when": datetime.timedelta(days=10)}, 864000.0):
        res = dpm.DensityModes(pd.DataFrame({"when": when}), bounds=bounds, bandwidth=spec).fit(
            epsilon=1.0, delta=1e-6, seed=1
        )
        assert res.surface.bandwidth[0] == 864000.0
    with pytest.raises(errors.InvalidArgument, match="duration"):
        dpm.DensityModes(pd.DataFrame({"when": when}), bounds=bounds, bandwidth={"when": "ten"})
