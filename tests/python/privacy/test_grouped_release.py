"""Declared levels: what they may be, and how they are read from every kind of table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from pydpmode import errors
from pydpmode.privacy.grouped_release import DeclaredLevels
from pydpmode.privacy.sources import open_source
from pydpmode.privacy.stream_sources import RowStream

TEXTS = ["north", "south", None, "elsewhere", "north"]
NUMBERS = [1.0, 0.0, np.nan, 7.0, 1.0]


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"g": TEXTS}),
        pd.DataFrame({"g": pd.Categorical(TEXTS)}),
        pd.DataFrame({"g": pd.array(TEXTS, dtype="string")}),
        pl.DataFrame({"g": TEXTS}),
        pl.DataFrame({"g": pl.Series(TEXTS, dtype=pl.Categorical)}),
        pa.table({"g": TEXTS}),
        pa.table({"g": pa.array(TEXTS).dictionary_encode()}),
        {"g": np.array(TEXTS, dtype=object)},
    ],
)
def test_texts_of_tables_in_memory(data: Any) -> None:
    codes = DeclaredLevels("g", ("south", "north")).codes(open_source(data), 2)
    assert codes.tolist() == [1, 0, -1, -1, 1]


def test_texts_of_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"g": TEXTS, "x": range(5)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    pa.parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        codes = DeclaredLevels("g", ("south", "north")).codes(open_source(str(tmp_path / name)), 2)
        assert codes.tolist() == [1, 0, -1, -1, 1]


@pytest.mark.parametrize("levels", [(0, 1), (0.0, 1.0), (False, True)])
def test_numbers_are_compared_as_numbers(levels: tuple[Any, ...], tmp_path: Path) -> None:
    frame = pd.DataFrame({"g": NUMBERS})
    frame.to_csv(tmp_path / "n.csv", index=False)
    for data in (frame, frame.to_numpy()[:, 0], pl.DataFrame({"g": NUMBERS}), str(tmp_path / "n.csv")):
        source = open_source(data, columns=["g"] if isinstance(data, np.ndarray) else None)
        assert DeclaredLevels("g", levels).codes(source, 2).tolist() == [1, 0, -1, -1, 1]


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ("ab", "sequence"),
        (None, "sequence"),
        ((), "1 to 100"),
        (tuple(range(101)), "1 to 100"),
        (("a", "a"), "twice"),
        ((1, True), "twice"),
        (("a", 1), "all texts or all numbers"),
        ((np.nan, 1.0), "all texts or all numbers"),
        ((10**400,), "all texts or all numbers"),
        (("a", None), "all texts or all numbers"),
    ],
)
def test_wrong_levels_are_refused(levels: Any, words: str) -> None:
    with pytest.raises(errors.InvalidArgument, match=words):
        DeclaredLevels("g", levels)


def test_levels_that_the_column_cannot_have_are_refused_by_the_schema() -> None:
    source = open_source(pd.DataFrame({"g": [1, 2], "t": pd.to_datetime(["2020-01-01"] * 2)}))
    with pytest.raises(errors.InvalidArgument, match="declare numbers"):
        DeclaredLevels("g", ("a", "b")).check(source)
    with pytest.raises(errors.InvalidArgument, match="datetime"):
        DeclaredLevels("t", ("a", "b")).check(source)
    with pytest.raises(errors.UnknownColumn):
        DeclaredLevels("h", ("a", "b")).check(source)


def test_cells_that_cannot_be_compared_count_nothing() -> None:
    odd = pd.DataFrame({"g": pd.Series([["a"], "a", {"b": 1}, 1.5], dtype=object)})
    assert DeclaredLevels("g", ("a", "b")).codes(open_source(odd), 4).tolist() == [-1, 0, -1, -1]


def test_texts_of_streams_and_partitions() -> None:
    dask = pytest.importorskip("dask")
    frames = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"g": TEXTS, "x": range(5)})
    table = pa.Table.from_pandas(frame)
    with dask.config.set(scheduler="synchronous"):
        streams = [
            RowStream(lambda: table.to_reader(max_chunksize=2)),
            frames.from_pandas(frame, npartitions=2),
        ]
        if hasattr(pl.LazyFrame, "collect_batches"):  # polars 1.34
            streams.append(pl.from_pandas(frame).lazy())
        for data in streams:
            codes = DeclaredLevels("g", ("south", "north")).codes(open_source(data), 2)
            assert codes.tolist() == [1, 0, -1, -1, 1]


@pytest.mark.parametrize("encoded", [False, True])
def test_a_text_that_is_not_utf8_is_no_level_and_no_error(encoded: bool) -> None:
    """Arrow does not check texts: an error of one of them would tell of its row."""
    texts = pa.array([b"south", b"m\xfcnster", None]).view(pa.string())
    table = pa.table({"g": texts.dictionary_encode() if encoded else texts})
    for data in (table, RowStream(table.to_reader)):
        assert DeclaredLevels("g", ("south",)).codes(open_source(data), 2).tolist() == [0, -1, -1]


def test_times_of_a_day_are_no_levels_and_no_error() -> None:
    """Some have no Python object, so that reading them would fail for some rows alone."""
    table = pa.table({"g": pa.array([1, 1000], pa.int64()).view(pa.time64("ns"))})
    assert DeclaredLevels("g", ("south",)).codes(open_source(table), 2).tolist() == [-1, -1]
