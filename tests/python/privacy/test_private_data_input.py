"""Odd tables are input, not errors; and no text that leaves holds a value of a row."""

from __future__ import annotations

import datetime
import gzip
import io
import pickle
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pydpmode as dpm
from pydpmode.errors import (
    DuplicateColumns,
    EmptyData,
    InvalidArgument,
    InvalidBounds,
    MissingBounds,
    NonNumericColumn,
    PydpmodeError,
    UnknownColumn,
    UnsupportedSource,
)
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy.private_data import PrivateData
from pydpmode.privacy.progress import progress_bar
from pydpmode.results.released_surface import ReleasedSurface

BUDGET = dpm.Budget(8.0, 1e-4)
# Written in no source line but these: if they turn up anywhere, they came from a row.
CANARY = 31337.03125
CANARY_TEXT = "31337"


def released(data: Any, bounds: Any, *, columns: list[str] | None = None, **knobs: Any) -> ReleasedSurface:
    """Release the first columns of a table without noise worth speaking of (seeded, large epsilon)."""
    study = PrivateData(data, bounds=bounds, budget=dpm.Budget(1e4, 1e-3), **knobs)
    names = columns or list(study.columns)
    coordinates = [study.coordinate(name) for name in names]
    lower, upper = study.box(coordinates)
    design = LatticeDesign(tuple(names), lower, upper, (upper - lower) * 0.1)
    return study.release_surface(design, coordinates, epsilon=1e3, delta=1e-4, seed=1)


def check_finite(surface: ReleasedSurface) -> None:
    unit = np.random.default_rng(0).uniform(size=(20, surface.dimension))
    for part in surface.derivatives(surface.lower + unit * (surface.upper - surface.lower)):
        assert np.all(np.isfinite(part))
    assert np.isfinite(surface.integrate(surface.lower, surface.upper))
    assert np.isfinite(surface.n_effective)


AGES = np.array([20, 35, 35, 50, 77, 90, 101, 127])
SAME: dict[str, Any] = {
    "int8": AGES.astype("i1"),
    "uint8": AGES.astype("u1"),
    "int64": AGES,
    "big-endian": AGES.astype(">f8"),
    "float16": AGES.astype("f2"),
    "float32": AGES.astype("f4"),
    "long double": AGES.astype(np.longdouble),
    "reversed": AGES.astype(float)[::-1],
    "strided": np.repeat(AGES.astype(float), 3)[::3],
    "a column of a matrix": np.asfortranarray(np.stack([AGES, AGES], axis=1).astype(float))[:, 1],
    "list": AGES.tolist(),
    "masked": np.ma.masked_array(np.append(AGES, 5), mask=[False] * 8 + [True]),
    "Series": pd.Series(AGES, name="x1"),
    "Int64 with NA": pd.Series([*AGES.tolist(), pd.NA], dtype="Int64", name="x1"),
    "Float32 with NA": pd.Series([*AGES.tolist(), None], dtype="Float32", name="x1"),
    "pandas Arrow": pd.Series([*AGES.tolist(), None], dtype="int16[pyarrow]", name="x1"),
    "NaN": np.append(AGES.astype(float), np.nan),
    "Arrow": pa.table({"x1": pa.chunked_array([AGES[:3], pa.array([None], pa.int64()), AGES[3:]])}),
    "polars": pl.DataFrame({"x1": [*AGES.tolist(), None]}),
    "dictionary": {"x1": AGES},
    "data frame": pd.DataFrame({"x1": AGES, "name": [CANARY_TEXT] * 8}),
}


@pytest.mark.parametrize("kind", SAME)
def test_the_same_numbers_in_any_dress_give_the_same_release(kind: str) -> None:
    surface = released(SAME[kind], {"x1": (0, 120)})
    expected = released(AGES.astype(float), (0, 120))
    missing = "NA" in kind or kind in ("NaN", "pandas Arrow", "Arrow", "polars", "masked")
    assert surface.privacy.n_units == 8 + missing
    # Missing rows weigh nothing. (The noise of n = 9 differs by a whisker from that of n = 8.)
    np.testing.assert_allclose(surface.vector, expected.vector, atol=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_callers_array_is_left_as_it_was(order: Any) -> None:
    x = np.array([[np.nan, 5.0], [-99.0, np.inf], [0.5, -np.inf], [7.0, 0.5]], order=order)
    before = x.copy()
    x.setflags(write=False)
    check_finite(released(x, [(0, 1), (0, 1)]))
    np.testing.assert_array_equal(x, before)
    frame = pd.DataFrame(x.copy(), columns=["a", "b"])
    frame_before = frame.copy(deep=True)
    check_finite(released(frame, {"a": (0, 1), "b": (0, 1)}, outside="ignore"))
    pd.testing.assert_frame_equal(frame, frame_before)


TABLES: dict[str, np.ndarray] = {
    "constant": np.full((50, 2), 0.3),
    "all rows at a corner": np.zeros((50, 2)),
    "all rows outside": np.full((50, 2), 9.0),
    "one row": np.array([[0.2, 0.9]]),
    "all missing": np.full((50, 2), np.nan),
    "one column missing": np.array([[0.5, np.nan]] * 50),
    "all infinite": np.array([[np.inf, -np.inf]] * 50),
    "enormous": np.array([[1e308, -1e308], [5e-324, -5e-324]] * 25),
    "one value of each": np.array([[np.nan, 0.1], [np.inf, 0.2], [1e300, 0.3], [0.4, np.nan], [-0.0, 1.0]]),
}


@pytest.mark.parametrize("outside", ["clip", "ignore"])
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("name", TABLES)
def test_odd_tables_give_finite_numbers_and_no_warning(name: str, adjacency: Any, outside: Any) -> None:
    surface = released(TABLES[name], [(0, 1), (0, 1)], adjacency=adjacency, outside=outside)
    check_finite(surface)
    present = ~np.isnan(TABLES[name]).any(axis=1)
    if outside == "ignore":
        with np.errstate(invalid="ignore"):
            present &= np.all((TABLES[name] >= 0) & (TABLES[name] <= 1), axis=1)
    assert surface.total == pytest.approx(present.sum(), abs=2)
    check_finite(surface.marginal("x2"))
    assert 0 <= surface.negative_mass() < np.inf


@pytest.mark.parametrize("name", ["all missing", "enormous", "one value of each"])
def test_odd_persons_weights_and_logarithms(name: str) -> None:
    x = TABLES[name]
    frame = pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "id": np.arange(len(x)) // 2, "odd": x[:, 0]})
    for person in ("id", "odd"):
        if frame[person].isna().all():
            with pytest.raises(EmptyData, match="no row has an identifier"):
                released(frame, {"x1": (0, 1), "x2": (0, 1)}, unit="person", person=person)
            continue
        check_finite(released(frame, {"x1": (0, 1), "x2": (0, 1)}, unit="person", person=person))
    for ceiling in (1.0, 1e-300, 1e300, 5e-324):
        surface = released(frame, {"x1": (0, 1)}, weights="odd", max_weight=ceiling, columns=["x1"])
        check_finite(surface)
        study = PrivateData(frame, bounds={"x1": (0, 1)}, budget=BUDGET, weights="odd", max_weight=ceiling)
        coordinates = [study.coordinate("x1")]
        design = LatticeDesign(("x1",), *study.box(coordinates), np.array([0.2]))
        plan = study.plan(design, epsilon=0.1, delta=1e-6)
        # Even where the user has told NumPy to raise: an error would tell of a value.
        with np.errstate(all="raise"):
            assert np.all(np.isfinite(study._lattice_sum(plan, coordinates)))
    study = PrivateData(frame, bounds={"x1": (0.1, 1), "odd": (1e-300, 1e300)}, budget=BUDGET)
    for column in ("x1", "odd"):
        coordinates = [study.coordinate(column, log=True)]
        lower, upper = study.box(coordinates)
        design = LatticeDesign((f"log({column})",), lower, upper, (upper - lower) * 0.2)
        check_finite(study.release_surface(design, coordinates, epsilon=1.0, delta=1e-6))


def test_times_are_seconds_and_missing_times_weigh_nothing() -> None:
    days = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", None, "2031-01-01"]), name="day")
    bounds = {"day": ("2020-01-01", datetime.date(2020, 12, 31))}
    surface = released(days, bounds)
    start = pd.Timestamp("2020-01-01").timestamp()
    assert surface.lower[0] == start
    assert surface.total == pytest.approx(3, abs=0.5)
    assert surface.coordinates[0].kind == "datetime"
    zoned = days.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    np.testing.assert_allclose(released(zoned, bounds).vector, surface.vector, atol=1e-9)
    check_finite(surface)
    study = PrivateData(days, bounds=bounds, budget=BUDGET)
    with pytest.raises(InvalidArgument, match="a logarithm needs a number column"):
        study.coordinate("day", log=True)


# -- refusals at the door ------------------------------------------------------------


def frame_of(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": [CANARY] * 3, "b": [1, 2, 3], **columns})


AT_THE_DOOR: dict[str, tuple[type[PydpmodeError], Any, dict[str, Any]]] = {
    "no rows": (EmptyData, frame_of().iloc[:0], {}),
    "no bounds": (MissingBounds, frame_of(), {"bounds": None}),
    "reversed": (InvalidBounds, frame_of(), {"bounds": {"a": (1, 0)}}),
    "infinite": (InvalidBounds, frame_of(), {"bounds": {"a": (0, np.inf)}}),
    "unknown": (UnknownColumn, frame_of(), {"bounds": {"z": (0, 1)}}),
    "text": (NonNumericColumn, frame_of(t=[CANARY_TEXT] * 3), {"bounds": {"t": (0, 1)}}),
    "object": (
        NonNumericColumn,
        frame_of(t=pd.Series([CANARY] * 3, dtype=object)),
        {"bounds": {"t": (0, 1)}},
    ),
    "category": (
        NonNumericColumn,
        frame_of(t=pd.Categorical([CANARY_TEXT] * 3)),
        {"bounds": {"t": (0, 1)}},
    ),
    "complex": (NonNumericColumn, frame_of(t=np.full(3, CANARY * 1j)), {"bounds": {"t": (0, 1)}}),
    "twice": (DuplicateColumns, pd.DataFrame(np.full((3, 2), CANARY), columns=["a", "a"]), {}),
    "cube": (UnsupportedSource, np.full((2, 2, 2), CANARY), {}),
    "rows": (UnsupportedSource, [[CANARY, 1.0], [2.0]], {}),
    "scalar": (UnsupportedSource, CANARY, {}),
    "unequal": (UnsupportedSource, {"a": [CANARY], "b": [1, 2]}, {}),
    "adjacency": (InvalidArgument, frame_of(), {"adjacency": "swap"}),
    "adjacency array": (InvalidArgument, frame_of(), {"adjacency": np.array(["replace", "replace"])}),
    "unit": (InvalidArgument, frame_of(), {"unit": "house"}),
    "outside": (InvalidArgument, frame_of(), {"outside": "drop"}),
    "person without a column": (InvalidArgument, frame_of(), {"unit": "person"}),
    "a column without persons": (InvalidArgument, frame_of(), {"person": "b"}),
    "unknown person": (UnknownColumn, frame_of(), {"unit": "person", "person": "z"}),
    "weights alone": (InvalidArgument, frame_of(), {"weights": "b"}),
    "ceiling alone": (InvalidArgument, frame_of(), {"max_weight": 1.0}),
    "unknown weights": (UnknownColumn, frame_of(), {"weights": "z", "max_weight": 1.0}),
    "text weights": (NonNumericColumn, frame_of(t=[CANARY_TEXT] * 3), {"weights": "t", "max_weight": 1.0}),
    "ceiling 0": (InvalidArgument, frame_of(), {"weights": "b", "max_weight": 0.0}),
    "ceiling inf": (InvalidArgument, frame_of(), {"weights": "b", "max_weight": np.inf}),
    "ceiling too large": (InvalidArgument, frame_of(), {"weights": "b", "max_weight": 10**400}),
    "persons and weights": (
        InvalidArgument,
        frame_of(),
        {"unit": "person", "person": "a", "weights": "b", "max_weight": 1.0},
    ),
    "n_max under replace": (InvalidArgument, frame_of(), {"n_max": 10}),
    "n_guess under replace": (InvalidArgument, frame_of(), {"n_guess": 10}),
    **{
        f"n_max {value!r}": (InvalidArgument, frame_of(), {"adjacency": "add_remove", "n_max": value})
        for value in (0, -1, 1.5, np.inf, np.nan, True, "9", 10**400)
    },
    "datetimes": (NonNumericColumn, frame_of(), {"datetimes": ["a"]}),
}


@pytest.mark.parametrize("name", AT_THE_DOOR)
def test_what_does_not_fit_is_refused_at_the_door_without_a_value(name: str) -> None:
    error, data, knobs = AT_THE_DOOR[name]
    with pytest.raises(error) as caught:
        PrivateData(data, **{"bounds": {"a": (0, 1)}, "budget": BUDGET, **knobs})
    text = "".join(traceback.format_exception(caught.value))
    assert CANARY_TEXT not in str(caught.value)
    assert CANARY_TEXT not in text
    assert len(str(caught.value)) > 20


# -- nothing of a row leaves ------------------------------------------------------------


def secret_study(folder: Path, source: str) -> PrivateData:
    frame = pd.DataFrame(
        {"a": [CANARY] * 9 + [1.0], "b": np.arange(10), "who": [f"who-{CANARY_TEXT}"] * 5 + ["x"] * 5}
    )
    data: Any = {
        "frame": frame,
        "array": frame[["a", "b"]].to_numpy(),
        "arrow": pa.Table.from_pandas(frame),
    }.get(source)
    if source == "csv":
        data = folder / "t.csv"
        frame.to_csv(data, index=False)
    if source == "csv.gz":
        data = folder / "t.csv.gz"
        data.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    if source == "parquet":
        data = folder / "t.parquet"
        frame.to_parquet(data)
    names = {"columns": ["a", "b"]} if source == "array" else {}
    return PrivateData(
        data, bounds={"a": (0, 1e5), "b": (0, 10)}, budget=BUDGET, ledger=folder / "ledger.jsonl", **names
    )


@pytest.mark.parametrize("source", ["frame", "array", "arrow", "csv", "csv.gz", "parquet"])
def test_no_text_and_no_file_holds_a_value(source: str, tmp_path: Path) -> None:
    study = secret_study(tmp_path, source)
    coordinates = [study.coordinate("a"), study.coordinate("b")]
    lower, upper = study.box(coordinates)
    design = LatticeDesign(("a", "b"), lower, upper, (upper - lower) * 0.2)
    surface = study.release_surface(design, coordinates, epsilon=1.0, delta=1e-6, label="first")
    texts = [
        repr(study),
        repr(study.ledger),
        study.ledger.table().to_string(),
        (tmp_path / "ledger.jsonl").read_text(encoding="utf-8"),
        repr(surface),
        str(surface.privacy),
        surface.save(tmp_path / "s.json").read_text(encoding="utf-8"),
    ]
    for action in (
        lambda: study.coordinate("z"),
        lambda: study.release_surface(design, coordinates, epsilon=99.0, delta=1e-6),
        lambda: study.release_surface(design, coordinates[:1], epsilon=1.0, delta=1e-6),
        lambda: pickle.dumps(study),
    ):
        with pytest.raises(PydpmodeError) as caught:
            action()
        texts.append(str(caught.value))
    for text in texts:
        assert CANARY_TEXT not in text
    # As bits: in none of the formats a value could be stored in.
    dump = pickle.dumps(surface)
    for kind in ("<f8", ">f8", "<f4"):
        assert np.array(CANARY, dtype=kind).tobytes() not in dump


# -- progress ------------------------------------------------------------


def test_a_bar_is_silent_where_it_would_tell_or_nobody_looks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for n, wanted in ((None, True), (10**9, False), (10, None), (10**9, None)):
        with progress_bar(n, wanted) as bar:
            bar.update(5)
    assert capsys.readouterr() == ("", "")
    pytest.importorskip("tqdm")
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with progress_bar(10, True) as bar:
        bar.update(10)
    assert "reading" in stream.getvalue()


@pytest.mark.parametrize("knobs", [{"adjacency": "add_remove"}, {"unit": "person", "person": "id"}], ids=repr)
def test_no_bar_tells_a_private_number_of_rows(
    knobs: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame({"x": np.zeros(123), "id": np.arange(123) % 7})
    check_finite(released(frame, {"x": (-1, 1)}, progress=True, **knobs))
    assert "123" not in capsys.readouterr().err
