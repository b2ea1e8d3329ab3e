"""Tables in memory: every dtype is read right, by its dtype alone, and nothing of the caller's changes."""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pydpmode.errors import (
    DuplicateColumns,
    EmptyData,
    InvalidArgument,
    NonNumericColumn,
    UnknownColumn,
    UnsupportedSource,
)
from pydpmode.privacy.sources import open_source
from r_bridge.r_words import in_r_words

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

NAN, INF = math.nan, math.inf
DAY = 86400.0


def read(data, columns=None, rows=3, **options):
    table = open_source(data, **options)
    columns = table.names if columns is None else columns
    blocks = list(table.blocks(columns, rows))
    assert all(block.dtype == np.float64 and block.flags.c_contiguous for block in blocks)
    assert all(block.shape == (len(columns), rows) for block in blocks[:-1])
    assert 1 <= blocks[-1].shape[1] <= rows
    return np.concatenate(blocks, axis=1)


def same(got, wanted):
    np.testing.assert_array_equal(got, np.atleast_2d(np.asarray(wanted, dtype=float)))


# -- shapes and kinds of data -------------------------------------------------------------------


def test_array_of_one_dimension_is_points_of_one_column():
    table = open_source(np.arange(5))
    assert (table.names, table.n_rows, table.kind("x1")) == (("x1",), 5, "number")
    same(read(np.arange(5)), [0, 1, 2, 3, 4])


def test_array_of_two_dimensions_has_one_column_each():
    x = np.arange(12.0).reshape(4, 3)
    assert open_source(x).names == ("x1", "x2", "x3")
    table = open_source(x, columns=["a", "b", "c"])
    assert table.names == ("a", "b", "c")
    same(np.hstack(list(table.blocks(["c", "a"], 3))), x[:, [2, 0]].T)


@pytest.mark.parametrize("shape", [(), (2, 2, 2), (4, 0)])
def test_array_that_is_no_table_is_refused(shape):
    with pytest.raises(UnsupportedSource, match=r"give shape \(n,\)"):
        open_source(np.zeros(shape))


def test_names_for_an_array_must_fit():
    with pytest.raises(InvalidArgument, match="2 names, but the array has 3 columns"):
        open_source(np.zeros((4, 3)), columns=["a", "b"])
    with pytest.raises(InvalidArgument, match="2 names, but the data are one column"):
        open_source([1.0, 2.0], columns=["a", "b"])
    with pytest.raises(DuplicateColumns, match="'a'"):
        open_source(np.zeros((4, 2)), columns=["a", "a"])


TABLE = {"a": [1.0, 2.0, 3.0, 4.0], "b": [5, 6, 7, 8]}


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame(TABLE),
        pl.DataFrame(TABLE),
        pa.table(TABLE),
        pa.RecordBatch.from_pydict(TABLE),
        pa.concat_tables([pa.table(TABLE).slice(0, 1), pa.table(TABLE).slice(1)]),
        TABLE,
        {name: np.array(column) for name, column in TABLE.items()},
        {"a": pd.Series(TABLE["a"], index=[9, 9, 3, 1]), "b": pl.Series(TABLE["b"])},
        {"a": pa.array(TABLE["a"]), "b": pa.chunked_array([[5], [6, 7, 8]])},
    ],
    ids=lambda data: type(data).__name__,
)
def test_tables_of_every_library_read_the_same(data):
    table = open_source(data)
    assert (table.names, table.n_rows) == (("a", "b"), 4)
    same(read(data), [TABLE["a"], TABLE["b"]])
    same(read(data, ["b"]), TABLE["b"])
    same(read(data, ["b", "a", "b"], rows=10**15), [TABLE["b"], TABLE["a"], TABLE["b"]])


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ([1, 2, 3, 4], "x1"),
        ((1, 2, 3, 4), "x1"),
        (pd.Series([1, 2, 3, 4]), "x1"),
        (pd.Series([1, 2, 3, 4], name="age"), "age"),
        (pl.Series("age", [1, 2, 3, 4]), "age"),
        (pl.Series([1, 2, 3, 4]), "x1"),
        (pa.array([1, 2, 3, 4]), "x1"),
        (pa.chunked_array([[1], [2, 3, 4]]), "x1"),
    ],
)
def test_one_column(data, name):
    assert open_source(data).names == (name,)
    assert open_source(data, columns=["z"]).names == ("z",)
    same(read(data), [1, 2, 3, 4])


def test_a_list_entry_that_is_not_a_number_is_missing():
    values = [
        1,
        None,
        2.5,
        "7",
        True,
        pd.NA,
        pd.NaT,
        10**400,
        -(10**400),
        decimal.Decimal("0.5"),
        [1],
        np.float32(3),
    ]
    values += [np.timedelta64(3, "s"), decimal.Decimal("sNaN"), np.ma.masked, 1j]
    same(read(values), [1, NAN, 2.5, NAN, 1, NAN, NAN, INF, -INF, 0.5, NAN, 3, NAN, NAN, NAN, NAN])


def test_a_list_of_rows_is_refused():
    with pytest.raises(UnsupportedSource, match=r"numpy\.asarray"):
        open_source([[1, 2], [3, 4]])


@pytest.mark.parametrize("data", [None, 3, object(), {1, 2}, iter([1]), pd.Index([1])])
def test_anything_else_is_refused_by_its_type(data):
    with pytest.raises(
        UnsupportedSource, match=f"data is a {type(data).__name__}, which cannot be read; give a NumPy"
    ):
        open_source(data)


def test_an_open_table_is_returned_as_it_is():
    table = open_source(TABLE)
    assert open_source(table) is table


def test_columns_select_from_a_table():
    table = open_source(pd.DataFrame({**TABLE, "id": list("pqpq")}), columns=["id", "b"])
    assert (table.names, table.n_rows) == (("id", "b"), 4)
    same(np.hstack(list(table.blocks(["b"], 3))), TABLE["b"])
    assert table.codes("id").tolist() == [0, 1, 0, 1]
    with pytest.raises(NonNumericColumn):
        table.kind("id")
    with pytest.raises(UnknownColumn):
        table.check_columns(["a"])
    with pytest.raises(UnknownColumn):
        open_source(TABLE, columns=["c"])
    with pytest.raises(DuplicateColumns):
        open_source(TABLE, columns=["a", "a"])


def test_labels_that_are_not_text_are_named_by_their_text():
    frame = pd.DataFrame(np.arange(4.0).reshape(2, 2))
    assert open_source(frame).names == ("0", "1")
    with pytest.raises(DuplicateColumns, match="'1'"):
        open_source(pd.DataFrame(np.zeros((2, 2)), columns=[1, "1"]))


def test_an_arrow_stream_of_another_library_is_read():
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table(TABLE).__arrow_c_stream__(requested_schema)

    same(read(Stream()), [TABLE["a"], TABLE["b"]])


# -- dtypes -------------------------------------------------------------------------------------

MOMENTS = ["2020-01-01T12:00:00", None, "1969-12-31T00:00:00.5"]
SECONDS = [1577880000.0, NAN, -DAY + 0.5]
STAMPS = pd.Series(pd.to_datetime(MOMENTS, format="ISO8601"))
PAUSES = pd.Series(pd.to_timedelta(["1 days", None, "-1.5 seconds"]))

NUMBERS = [
    *(np.array([0, 1, 100], dtype=t) for t in "bBhHiIlLqQefdg"),
    np.array([0, 1, 100], dtype=">f8"),
    np.array([0, 1, 100], dtype=">i2"),
    np.ma.masked_array([0, 1, 100]),
    *(
        pd.Series([0, 1, 100], dtype=t)
        for t in (
            "Int8",
            "UInt8",
            "Int64",
            "UInt64",
            "Float32",
            "Float64",
            "int64[pyarrow]",
            "float[pyarrow]",
        )
    ),
    pd.Series([0, 1, 100], dtype=pd.SparseDtype("int64")),
    pd.Series(
        [decimal.Decimal(0), decimal.Decimal(1), decimal.Decimal(100)],
        dtype=pd.ArrowDtype(pa.decimal128(9, 2)),
    ),
    *(pl.Series([0, 1, 100], dtype=t) for t in (pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(9, 2))),
    *(
        pa.array([0, 1, 100], t)
        for t in (pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(9), pa.decimal256(70))
    ),
    pa.array(np.array([0, 1, 100], np.float16)),
]


@pytest.mark.parametrize(
    "data", NUMBERS, ids=lambda data: f"{type(data).__module__}-{getattr(data, 'dtype', '')}"
)
def test_numbers_of_every_dtype(data):
    assert open_source(data).kind(open_source(data).names[0]) == "number"
    same(read(data, rows=2), [0, 1, 100])


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (np.array([True, False]), [1, 0]),
        (pd.Series([True, None, False], dtype="boolean"), [1, NAN, 0]),
        (pd.Series([True, None, False], dtype="bool[pyarrow]"), [1, NAN, 0]),
        (pl.Series([True, None, False]), [1, NAN, 0]),
        (pa.array([True, None, False]), [1, NAN, 0]),
        (np.array([NAN, INF, -INF, 1e308]), [NAN, INF, -INF, 1e308]),
        (np.array(["1e4000", "-1e4000", "2"]).astype(np.longdouble), [INF, -INF, 2]),
        (np.array([np.inf, np.nan, 60000], np.float16), [INF, NAN, 60000]),
        (np.array([2**64 - 1, 0], np.uint64), [2.0**64, 0]),
        (np.ma.masked_array([1, 2, 3, 4], mask=[0, 1, 0, 1]), [1, NAN, 3, NAN]),
        (np.ma.masked_all(3, dtype=np.int8), [NAN, NAN, NAN]),
        (pd.Series([2**63 - 1, None, -5], dtype="Int64"), [2.0**63, NAN, -5]),
        (pd.Series([1.5, None, INF], dtype="Float64"), [1.5, NAN, INF]),
        (pd.Series([1, None, 3], dtype="int64[pyarrow]"), [1, NAN, 3]),
        (pd.Series([decimal.Decimal("1.25"), None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))), [1.25, NAN]),
        (pl.Series([1, None, 3], dtype=pl.UInt8), [1, NAN, 3]),
        (pl.Series([1.0, None, NAN, INF]), [1, NAN, NAN, INF]),
        (pa.array([1, None, 3], pa.uint64()), [1, NAN, 3]),
        (pa.array([10**60, None], pa.decimal256(70)), [1e60, NAN]),
        (pd.Series([1.0, NAN, 0.0], dtype=pd.SparseDtype("float64", 0.0)), [1, NAN, 0]),
    ],
    ids=str,
)
def test_missing_infinite_and_enormous_values_are_input(data, wanted):
    same(read(data, rows=2), wanted)


ZONED = STAMPS.dt.tz_localize("UTC").dt.tz_convert("America/New_York")


@pytest.mark.parametrize(
    "data",
    [
        STAMPS,
        ZONED,
        ZONED.astype("datetime64[ns, America/New_York]"),
        STAMPS.astype("datetime64[ns]"),
        STAMPS.astype("datetime64[ms]").to_numpy(),
        STAMPS.to_numpy().astype(">M8[us]"),
        STAMPS.astype(pd.ArrowDtype(pa.timestamp("us"))),
        ZONED.astype(pd.ArrowDtype(pa.timestamp("us", "Asia/Tokyo"))),
        pl.from_pandas(STAMPS),
        pl.from_pandas(ZONED),
        pa.array(STAMPS),
        pa.array(ZONED),
    ],
    ids=lambda data: str(getattr(data, "dtype", "") or data.type),
)
def test_datetimes_are_seconds_since_1970_in_utc(data):
    assert open_source(data, columns=["t"]).kind("t") == "datetime"
    same(read(data, rows=2), SECONDS)


@pytest.mark.parametrize(
    "data",
    [
        np.array(["1970-01-03", "NaT", "1969-12-31"], "M8[D]"),
        np.array(["1970-01-03", "NaT", "1969-12-31"], "M8[2h]"),
        pl.Series([datetime.date(1970, 1, 3), None, datetime.date(1969, 12, 31)]),
        pa.array([datetime.date(1970, 1, 3), None, datetime.date(1969, 12, 31)]),
        pa.array([datetime.date(1970, 1, 3), None, datetime.date(1969, 12, 31)], pa.date64()),
    ],
)
def test_dates(data):
    same(read(data), [2 * DAY, NAN, -DAY])
    same(read(np.array(["1971", "NaT"], "M8[Y]")), [365 * DAY, NAN])
    same(read(np.array(["NaT", "NaT"], "M8")), [NAN, NAN])


@pytest.mark.parametrize(
    "data",
    [
        PAUSES,
        PAUSES.to_numpy(),
        PAUSES.astype(pd.ArrowDtype(pa.duration("ns"))),
        pl.from_pandas(PAUSES),
        pa.array(PAUSES),
    ],
)
def test_timedeltas_are_seconds(data):
    assert open_source(data, columns=["t"]).kind("t") == "timedelta"
    same(read(data), [DAY, NAN, -1.5])


def test_calendar_timedeltas_have_mean_length():
    same(read(np.array([1, "NaT"], "m8[Y]")), [365.2425 * DAY, NAN])


SECRET = "ZQ7secret"
REFUSED = [
    (np.array([1, "a"], dtype=object), "object"),
    (np.array([10**30], dtype=object), "object"),
    (np.array([SECRET]), "<U9"),
    (np.array([1j]), "complex128"),
    (pd.Series([SECRET, None]), None),
    (pd.Series([1, 2], dtype="category"), "category"),
    (pd.Series([SECRET], dtype="category"), "category"),
    (pd.Series([SECRET], dtype="string[pyarrow]"), None),
    (pd.Series([1, SECRET], dtype=object), "object"),
    (pd.Series(pd.period_range("2020", periods=2, freq="Y")), None),
    (pl.Series([SECRET]), "String"),
    (pl.Series([SECRET], dtype=pl.Categorical), "Categorical"),
    (pl.Series([SECRET], dtype=pl.Enum([SECRET])), "Enum"),
    (pl.Series([[1.0]]), "list"),
    (pl.Series([datetime.time(3)]), "Time"),
    (pa.array([SECRET]), "string"),
    (pa.array([SECRET]).dictionary_encode(), "dictionary"),
    (pa.array([[1.0]]), "list<"),
    (pa.nulls(2), "null"),
]


@pytest.mark.parametrize(("data", "dtype"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_a_column_of_another_dtype_is_refused_by_name_and_dtype(data, dtype):
    table = open_source({"x": [0] * len(data), "income": data})
    table.check_columns(["x"])
    for refuse in (
        lambda: table.check_columns(["x", "income"]),
        lambda: table.kind("income"),
        lambda: table.blocks(["income"], 5),
    ):
        with pytest.raises(
            NonNumericColumn, match=f"column 'income' has dtype .*{re.escape(dtype or '')}"
        ) as caught:
            refuse()
        assert SECRET not in str(caught.value)
        assert "convert" in str(caught.value).lower() or "real" in str(caught.value)


def test_polars_objects_beside_the_used_column_do_no_harm():
    frame = pl.DataFrame({"x": [1.0, 2.0], "o": pl.Series([object(), object()], dtype=pl.Object)})
    same(read(frame, ["x"]), [1, 2])
    with pytest.raises(NonNumericColumn, match="Object"):
        open_source(frame).kind("o")


# -- schema errors ------------------------------------------------------------------------------


def test_unknown_columns_list_the_known_ones():
    table = open_source(TABLE)
    for ask in (
        table.kind,
        table.codes,
        lambda name: table.blocks([name], 2),
        lambda name: table.check_columns([name]),
    ):
        with pytest.raises(UnknownColumn, match="no column 'aa'; the columns are 'a', 'b'; did you mean 'a'"):
            ask("aa")
    with pytest.raises(UnknownColumn, match="and 30 more"):
        open_source(np.zeros((1, 50))).kind("z")


def test_duplicate_column_names_are_refused():
    for data in (
        pd.DataFrame(np.zeros((2, 3)), columns=["a", "b", "a"]),
        pa.table([[1], [2], [3]], names=["a", "b", "a"]),
    ):
        with pytest.raises(DuplicateColumns, match="called 'a'; rename"):
            open_source(data)


@pytest.mark.parametrize(
    "data",
    [
        np.zeros(0),
        np.zeros((0, 2)),
        [],
        pd.DataFrame({"a": []}),
        pd.DataFrame(),
        pl.DataFrame({"a": []}),
        pa.table({"a": pa.array([], pa.int8())}),
        {"a": []},
        {},
        pd.Series([], dtype=float),
    ],
)
def test_no_rows(data):
    with pytest.raises(EmptyData, match="0 rows"):
        open_source(data)


def test_columns_of_a_dictionary_have_one_length():
    with pytest.raises(UnsupportedSource, match="differ in length"):
        open_source({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(UnsupportedSource, match="'b' is a float"):
        open_source({"a": [1, 2], "b": 1.0})
    with pytest.raises(UnsupportedSource, match="'b' is a ndarray"):
        open_source({"b": np.zeros((2, 2))})


@pytest.mark.parametrize("rows", [0, -1, 2.0, True, "3", None, np.array([3])])
def test_rows_per_block_is_a_whole_number(rows):
    with pytest.raises(InvalidArgument, match="rows_per_block must be a whole number >= 1"):
        open_source(TABLE).blocks(["a"], rows)


def test_no_columns_is_an_error():
    with pytest.raises(InvalidArgument, match="name at least one column"):
        open_source(TABLE).blocks([], 3)


def test_declared_datetimes_are_checked_by_dtype():
    assert open_source({"t": STAMPS}, datetimes=["t"]).kind("t") == "datetime"
    with pytest.raises(NonNumericColumn, match="'a' is named in datetimes"):
        open_source(TABLE, datetimes=["a"])
    with pytest.raises(UnknownColumn):
        open_source(TABLE, datetimes=["c"])


def test_a_representation_shows_no_row():
    assert repr(open_source({"a": [123456.0]})) == "<MemoryTable with 1 columns>"


# -- the caller's data --------------------------------------------------------------------------


def layouts():
    base = np.arange(40, dtype=np.float64).reshape(10, 4)
    frozen = base.copy()
    frozen.flags.writeable = False
    strided = np.repeat(base, 2, axis=0)[::2]
    flipped = np.flip(np.flip(base, 1), 1)
    return [base, np.asfortranarray(base), strided, flipped, frozen]


@pytest.mark.parametrize("x", layouts())
def test_any_memory_layout_and_no_change_to_the_callers_array(x):
    before = x.copy()
    table = open_source(x)
    for block in table.blocks(table.names, 4):
        block[...] = -1
    np.testing.assert_array_equal(x, before)
    same(read(x), before.T)


def test_blocks_do_not_share_memory_with_the_input_or_with_each_other():
    x = np.arange(8.0)
    blocks = list(open_source(x).blocks(["x1"], 4))
    assert not any(np.shares_memory(block, x) for block in blocks)
    assert not np.shares_memory(blocks[0], blocks[1])


@given(n=st.integers(1, 40), rows=st.integers(1, 45), cuts=st.lists(st.integers(0, 40), max_size=5))
@settings(max_examples=60, deadline=None)
def test_blocks_cut_by_position_whatever_the_chunks(n, rows, cuts):
    x = np.arange(n, dtype=float)
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    chunks = [x[a:b] for a, b in itertools.pairwise(edges)]
    data = pa.table({"a": pa.chunked_array(chunks, pa.float64())})
    got = [block[0].tolist() for block in open_source(data).blocks(["a"], rows)]
    assert got == [x[i : i + rows].tolist() for i in range(0, n, rows)]


def test_casts_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(read(np.array([NAN, 1e300]).astype(np.longdouble) * 10), [NAN, 1e301])
        same(read(np.ma.masked_invalid([NAN, 1.0])), [NAN, 1.0])


@pytest.mark.parametrize("place", [0, 1])
def test_an_odd_entry_of_a_list_is_missing_wherever_it_stands(place):
    values = [1.0, 2.0, 3.0]
    values[place] = [4.0, 5.0]
    table = open_source(values)
    (block,) = table.blocks(["x1"], 10)
    assert np.isnan(block[0]).tolist() == [i == place for i in range(3)]


@pytest.mark.parametrize("dtype", ["object", "category", "string"])
def test_the_hint_for_texts_tells_numbers_and_categories_apart(dtype: str) -> None:
    table = open_source(pd.DataFrame({"region": pd.Series(["north", "south"], dtype=dtype)}))
    with pytest.raises(NonNumericColumn) as caught:
        table.kind("region")
    hint = str(caught.value)
    assert "Convert numbers written as text with pandas.to_numeric(" in hint
    assert (
        "Categories are for by= with their levels= in a regression; elsewhere leave the column out." in hint
    )
    assert "north" not in hint
    # As an R user reads it: as.numeric() of a factor would be its codes.
    assert "as.numeric(as.character(column))" in in_r_words(hint)
