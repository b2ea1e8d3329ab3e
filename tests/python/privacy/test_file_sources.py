"""Tables in files: every record keeps its place, no cell can disturb another or raise an error."""

from __future__ import annotations

import gzip
import math
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pydpmode.errors import (
    DuplicateColumns,
    EmptyData,
    InvalidArgument,
    NonNumericColumn,
    PydpmodeError,
    UnknownColumn,
    UnsupportedSource,
)
from pydpmode.privacy.sources import open_source

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NAN, INF = math.nan, math.inf
SECRET = "ZQ7secret"
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def write(tmp_path):
    """Return a function that writes bytes (or text) to a file and returns its path."""

    def write_file(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def values(table, columns=None, rows=1000):
    return np.hstack(list(table.blocks(columns or table.names, rows)))


def same(got, wanted):
    np.testing.assert_array_equal(got, np.atleast_2d(np.asarray(wanted, dtype=float)))


# -- CSV ----------------------------------------------------------------------------------------


def test_a_csv_file_is_a_table(write):
    for name, content in (("a.csv", b"a,b\n1,2\n3,4\n"), ("A.CSV.GZ", gzip.compress(b"a,b\n1,2\n3,4\n"))):
        path = write(content, name)
        for data in (path, str(path)):
            table = open_source(data)
            assert (table.names, table.n_rows, table.kind("b")) == (("a", "b"), 2, "number")
            same(values(table, ["b", "a"]), [[2, 4], [1, 3]])
    assert repr(table) == "<CsvTable with 2 columns>"


def test_columns_select_and_check_as_for_any_table(write):
    path = write("id,a,b\np,1,2\nq,3,4\n")
    table = open_source(path, columns=["b", "id"])
    assert table.names == ("b", "id")
    assert table.codes("id").tolist() == [0, 1]
    with pytest.raises(UnknownColumn, match="no column 'c'; the first line has 3 names"):
        open_source(path).check_columns(["c"])
    with pytest.raises(InvalidArgument, match="rows_per_block"):
        open_source(path).blocks(["a"], 0)


# -- CSV: headers and damage --------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", ["", "\ufeff", "\n", "\n1,2\n", ",\n1,2\n", "1.5,2\n3,4\n", '"a,b\n1,2\n']
)
def test_a_file_without_a_header(write, content):
    with pytest.raises(UnsupportedSource, match="no header line") as caught:
        open_source(write(content))
    assert "1.5" not in str(caught.value)


@pytest.mark.parametrize("content", ["a,b", "a,b\n", "a,b\r\n"])
def test_a_file_with_a_header_only(write, content):
    with pytest.raises(EmptyData, match="0 rows"):
        open_source(write(content))


def test_duplicate_headers(write):
    with pytest.raises(DuplicateColumns, match="called 'a'"):
        open_source(write("a,b,a\n1,2,3\n"))
    # Spreadsheets leave several columns without a name; nobody can ask for one.
    same(values(open_source(write("a,,\n1,2,3\n")), ["a"]), [1])


def test_a_first_line_that_may_be_a_row_is_never_shown(write):
    table = open_source(write(f"{SECRET},34,50000\nJones,20,1000\n"))
    for ask in (table.kind, table.codes):
        with pytest.raises(UnknownColumn, match="has 3 columns, whose names are not shown") as caught:
            ask("age")
        assert SECRET not in str(caught.value)
    with pytest.raises(DuplicateColumns) as duplicate:
        open_source(write(f"{SECRET},{SECRET},50000\nJones,20,1000\n"))
    assert SECRET not in str(duplicate.value)


@pytest.mark.parametrize("index", [True, False])
def test_numbered_headers_of_pandas(write, index):
    table = open_source(write(pd.DataFrame(np.arange(6.0).reshape(3, 2)).to_csv(index=index)))
    same(values(table, ["1", "0"]), [[1, 3, 5], [0, 2, 4]])
    with pytest.raises(UnknownColumn, match="the first line has"):
        table.kind("7")


def test_a_header_in_another_encoding(write):
    assert open_source(write("Größe\n1\n".encode())).names == ("Größe",)
    assert open_source(write("Größe\n1\n".encode("latin-1"))).names == ("Größe",)
    with pytest.raises(UnsupportedSource, match="UTF-16"):
        open_source(write("a,b\n1,2\n".encode("utf-16")))


def test_files_that_are_not_there_or_of_another_kind(tmp_path):
    for name, message in (
        ("none.csv", "there is no file"),
        ("data.xlsx", r"ends in \.csv, \.csv\.gz, \.parquet, \.pq"),
    ):
        with pytest.raises(UnsupportedSource, match=message):
            open_source(tmp_path / name)
    with pytest.raises(UnsupportedSource, match="holds no Parquet file"):
        open_source(tmp_path)


def test_a_damaged_gzip_file(write):
    content = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i * i, i**3) for i in range(200000)))
    with pytest.raises(UnsupportedSource, match="damaged"):
        open_source(write(b"not gzip", "a.csv.gz"))
    cut = open_source(write(content[: len(content) // 2], "b.csv.gz"), columns=["a", "b"])
    with pytest.raises(UnsupportedSource, match="damaged, cut short"):
        values(cut)


def test_a_file_that_changed_is_not_read(write):
    path = write("a\n1\n2\n")
    table = open_source(path)
    assert table.n_rows == 2
    write("a\n1\n2\n3\n")
    for read in (lambda: values(table), lambda: table.codes("a")):
        with pytest.raises(UnsupportedSource, match="was changed after it was opened"):
            read()
    path.unlink()
    with pytest.raises(UnsupportedSource, match="was changed"):
        values(table)


@given(content=st.binary(max_size=80))
@FUZZ
def test_any_file_is_read_or_refused(tmp_path, content):
    for name in ("fuzz.csv", "fuzz.csv.gz", "fuzz.parquet"):
        path = tmp_path / name
        path.write_bytes(content)
        try:
            table = open_source(path)
        except PydpmodeError:
            continue
        named = [name for name in table.names if name]
        assert values(table, named).shape == (len(named), table.n_rows)


# -- Parquet ------------------------------------------------------------------------------------

FRAME = pd.DataFrame(
    {
        "a": [1.5, None, 3.0, INF, -2.0],
        "n": pd.Series([1, None, 3, 4, 5], dtype="Int64"),
        "t": pd.to_datetime(["1970-01-02", None, "1970-01-03", "1970-01-01", "1969-12-31"]),
        "id": pd.Categorical(["q", "p", None, "q", "p"]),
        "name": [SECRET] * 5,
        "a.b": [1, 2, 3, 4, 5],
    }
)
WANTED = {
    "a": [1.5, NAN, 3, INF, -2],
    "n": [1, NAN, 3, 4, 5],
    "t": [86400, NAN, 2 * 86400, 0, -86400],
    "a.b": [1, 2, 3, 4, 5],
}


@pytest.mark.parametrize("name", ["x.parquet", "x.pq", "X.PARQUET"])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 10**12])
def test_a_parquet_file(tmp_path, name, rows):
    path = tmp_path / name
    pq.write_table(pa.Table.from_pandas(FRAME, preserve_index=False), path, row_group_size=2)
    table = open_source(path)
    assert (table.names, table.n_rows) == (tuple(FRAME.columns), 5)
    assert [table.kind(column) for column in WANTED] == ["number", "number", "datetime", "number"]
    for columns in (["a"], ["a.b"], ["a.b", "a"], ["t", "n", "a", "n"]):
        blocks = list(table.blocks(columns, rows))
        assert [block.shape[1] for block in blocks] == [min(rows, 5 - i) for i in range(0, 5, rows)]
        same(np.hstack(blocks), [WANTED[column] for column in columns])
    assert table.codes("id").tolist() == [0, 1, -1, 0, 1]
    assert table.codes("name").tolist() == [0] * 5
    for column in ("id", "name"):
        with pytest.raises(NonNumericColumn, match=f"column '{column}' has dtype") as caught:
            table.blocks([column], 2)
        assert SECRET not in str(caught.value)


def test_a_folder_of_parquet_files_is_one_table_in_the_order_of_names(tmp_path):
    for name, values_ in (
        ("b/p2.parquet", [3, 4, 5]),
        ("a/p1.parquet", [1, 2]),
        ("_tmp/x.parquet", [9]),
        (".p.parquet", [9]),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(
            pa.table({"v": pa.array(values_, pa.int32()), "w": [str(v % 2) for v in values_]}), path
        )
    (tmp_path / "readme.txt").write_text("v\n1\n")
    table = open_source(str(tmp_path))
    assert table.n_rows == 5
    assert [block[0].tolist() for block in table.blocks(["v"], 2)] == [[1, 2], [3, 4], [5]]
    assert table.codes("w").tolist() == [0, 1, 0, 1, 0]


def test_a_folder_needs_one_schema(tmp_path):
    pq.write_table(pa.table({"v": [1], "w": [1.0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"w": [2.0], "v": [2]}), tmp_path / "2.parquet")
    same(values(open_source(tmp_path), ["v", "w"]), [[1, 2], [1, 2]])
    pq.write_table(pa.table({"v": [SECRET], "w": [1.0]}), tmp_path / "3.parquet")
    with pytest.raises(
        UnsupportedSource, match=r"column 'v' is int64 in the first .*3\.parquet' holds it as string"
    ):
        open_source(tmp_path)
    pq.write_table(pa.table({"w": [1.0]}), tmp_path / "3.parquet")
    with pytest.raises(UnsupportedSource, match=r"3\.parquet' has no such column"):
        open_source(tmp_path)


def test_parquet_files_that_cannot_be_used(tmp_path, write):
    with pytest.raises(UnsupportedSource, match="not a readable Parquet file"):
        open_source(write("a,b\n1,2\n", "x.parquet"))
    pq.write_table(pa.table({"a": pa.array([], pa.int8())}), tmp_path / "empty.parquet")
    with pytest.raises(EmptyData):
        open_source(tmp_path / "empty.parquet")
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "twice.parquet")
    with pytest.raises(DuplicateColumns, match="'a'"):
        open_source(tmp_path / "twice.parquet")
    pq.write_table(pa.table({"s": [{"x": 1.0}]}), tmp_path / "nested.parquet")
    with pytest.raises(NonNumericColumn, match="'s' has dtype struct"):
        open_source(tmp_path / "nested.parquet").kind("s")


def test_a_parquet_file_that_changed_or_is_damaged(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.arange(10000.0)}), path, compression="none")
    table = open_source(path)
    content = bytearray(path.read_bytes())
    state = path.stat()
    content[4:4000] = b"\xff" * 3996
    path.write_bytes(bytes(content))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(UnsupportedSource, match="damaged"):
        values(table)
    path.write_bytes(bytes(content) + b"x")
    with pytest.raises(UnsupportedSource, match="was changed"):
        values(table)


def test_messages_about_files_hold_no_cell(write):
    path = write(f"a,b\n{SECRET},1\n2,3\n")
    table = open_source(path)
    for mistake in (lambda: table.kind("z"), lambda: table.blocks([], 2), lambda: table.blocks(["a"], -1)):
        with pytest.raises(PydpmodeError) as caught:
            mistake()
        assert not re.search(SECRET, str(caught.value) + repr(caught.value) + repr(table))


def test_paths_of_any_kind(write):
    path = write("a\n1\n")

    class Like:
        def __fspath__(self):
            return str(path)

    assert open_source(Like()).names == open_source(Path(path)).names == ("a",)


def test_the_first_row_of_a_file_without_header_is_never_shown(tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    path.write_text("DUPONT,F,2022-05-10\nMARTIN,M,2022-06-11\n")
    table = open_source(path)
    with pytest.raises(UnknownColumn) as caught:
        table.check_columns(["sbp"])
    assert "DUPONT" not in str(caught.value)
    assert "2022" not in str(caught.value)
    assert "header" in str(caught.value)


def test_a_misspelt_column_of_a_file_is_guessed(tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    path.write_text("systolic,age\n120,40\n")
    with pytest.raises(UnknownColumn, match="did you mean 'systolic'"):
        open_source(path).check_columns(["sistolic"])
