"""Identifiers become codes, one a person; bounds become floats in the units of the data."""

from __future__ import annotations

import datetime
import decimal
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pydpmode.errors import InvalidArgument, InvalidBounds, NonNumericColumn
from pydpmode.privacy.sources import as_bound, open_source

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

NAN, INF = math.nan, math.inf
DAY = 86400.0


def first_value(data):
    table = open_source(data)
    return next(table.blocks(table.names, 3))[0, 0]


# -- identifiers --------------------------------------------------------------------------------

WORDS = ["b", "a", None, "b", None, "c", "a"]
WORD_CODES = [0, 1, -1, 0, -1, 2, 1]
BIG = [2**62 + 1, 2**62, None, 2**62 + 1, None, 5, 2**62]


@pytest.mark.parametrize(
    "data",
    [
        pd.Series(WORDS),
        pd.Series(WORDS, dtype=object),
        pd.Series(WORDS, dtype="category"),
        pd.Series(WORDS, dtype=pd.CategoricalDtype(["z", "c", "b", "a"])),
        pd.Series(WORDS, dtype="string"),
        pd.Series(WORDS, dtype="string[pyarrow]"),
        pd.Series(WORDS, dtype=pd.ArrowDtype(pa.string())),
        np.array(WORDS, dtype=object),
        np.ma.masked_array(["b", "a", "zz", "b", "q", "c", "a"], mask=[0, 0, 1, 0, 1, 0, 0]).astype(object),
        WORDS,
        pl.Series(WORDS),
        pl.Series(WORDS, dtype=pl.Categorical),
        pl.Series(WORDS, dtype=pl.Enum(["z", "c", "b", "a"])),
        pa.array(WORDS),
        pa.array(WORDS).dictionary_encode(),
        pa.chunked_array([WORDS[:3], WORDS[3:]]),
        pd.Series(BIG, dtype="Int64"),
        pl.Series(BIG),
        pa.array(BIG),
        pd.Series([1.5, -0.0, NAN, 1.5, NAN, INF, 0.0]),
        pd.Series([1.5, -0.0, NAN, 1.5, None, INF, 0.0], dtype="float64[pyarrow]"),
        pa.array([1.5, -0.0, NAN, 1.5, None, INF, 0.0]),
        pl.Series([1.5, -0.0, NAN, 1.5, None, INF, 0.0]),
        np.array([1.5, -0.0, NAN, 1.5, NAN, INF, 0.0], ">f8"),
        pd.Series(pd.to_datetime(["2020", "2021", None, "2020", None, "2019", "2021"], format="%Y")),
        pd.Series(
            pd.to_datetime(["2020", "2021", None, "2020", None, "2019", "2021"], format="%Y", utc=True)
        ),
        [(1, [2]), "x", None, (1, [2]), NAN, [1], "x"],
        [(1, 2), (1, 3), pd.NA, (1, 2), pd.NaT, (2, 2), (1, 3)],
    ],
    ids=lambda data: f"{type(data).__module__}-{getattr(data, 'dtype', '')}",
)
def test_codes_number_the_persons_and_the_missing_are_nobody(data):
    codes = open_source({"id": data}).codes("id")
    assert codes.dtype == np.int64
    assert codes.tolist() == WORD_CODES


@pytest.mark.parametrize(
    "values",
    [
        np.array(["b", "a", "b"]),
        np.array([b"b", b"a", b"b"]),
        np.array([3.5, 1.0, 3.5], np.float16),
        np.array([3.5, 1.0, 3.5], np.longdouble),
        np.array([3j, 1j, 3j]),
        np.array([3, 1, 3], ">i4"),
        np.array([True, False, True]),
        pl.Series([True, False, True]),
        pl.Series([decimal.Decimal(2), decimal.Decimal(1), decimal.Decimal(2)]),
        pl.Series([[1], [2], [1]]),
        pa.array(np.array([3.5, 1.0, 3.5], np.float16)),
    ],
)
def test_codes_of_other_dtypes(values):
    codes = open_source({"id": values}).codes("id")
    assert codes[0] == codes[2] != codes[1]
    assert sorted(set(codes.tolist())) == [0, 1]
    np.testing.assert_array_equal(codes, open_source({"id": values}).codes("id"))


STRINGS = getattr(np.dtypes, "StringDType", None)
NEWER = [
    *([np.array(["3", "1", "3"], STRINGS())] if STRINGS is not None else []),
    *([pl.Series([3, 1, 3], dtype=pl.Int128)] if hasattr(pl, "Int128") else []),
    *([pa.array(["3", "1", "3"], pa.string_view())] if hasattr(pa, "string_view") else []),
]


@pytest.mark.parametrize("values", NEWER, ids=str)
def test_dtypes_of_newer_libraries(values):
    table = open_source({"id": values})
    assert table.codes("id").tolist() == [0, 1, 0]
    if isinstance(values, pl.Series):
        assert first_value(values) == 3
    else:
        with pytest.raises(NonNumericColumn, match=r"string_view|StringDType"):
            table.kind("id")


def test_codes_without_missing_and_with_all_missing():
    assert open_source({"id": [7, 7, 8]}).codes("id").tolist() == [0, 0, 1]
    for missing in ([None, NAN], pa.nulls(2), np.array([NAN, NAN]), pd.Series([pd.NA, pd.NA], dtype="Int64")):
        assert open_source({"id": missing}).codes("id").tolist() == [-1, -1]


def test_a_nested_arrow_identifier_is_refused():
    with pytest.raises(InvalidArgument, match="nested dtype list"):
        open_source({"id": pa.array([[1], [2]])}).codes("id")


IDENTIFIER = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2))


@given(st.lists(IDENTIFIER, min_size=2))
@settings(max_examples=100, deadline=None)
def test_codes_group_exactly_the_equal_identifiers(values):
    codes = open_source({"id": values}).codes("id").tolist()
    assert sorted({code for code in codes if code >= 0}) == list(range(max(codes) + 1))
    for value, code in zip(values, codes, strict=True):
        assert (code == -1) == (value is None)
        assert [other == code for other in codes] == [other == value for other in values]


# Identifiers that libraries' hash tables merge or not, by what else is in the table: texts with a NUL, lone
# surrogates and their repr, and equal numbers of different hashes.
def awkward_pairs(kind):
    if kind == "nul":
        return [text for i in range(40) for text in (f"a\0{i}", f"a\0b{i}")]
    if kind == "surrogate":
        return [text for i in range(40) for text in (chr(0xD800 + i), repr(chr(0xD800 + i)))]
    if kind == "float32":
        return [number for i in range(1, 280, 7) for number in (np.float32(i / 7), i / 7)]
    return [x for i in range(40) for x in (np.datetime64(i, "D"), datetime.date(1970, 1, 1 + i % 28), i)]


@pytest.mark.parametrize("kind", ["nul", "surrogate", "float32", "date"])
@pytest.mark.parametrize("container", ["list", "object", "string", "polars", "masked"])
def test_one_more_row_does_not_regroup_the_others(kind, container):
    if container in ("string", "polars") and kind in ("float32", "date"):
        pytest.skip("texts only")
    if (container, kind) == ("polars", "surrogate"):
        pytest.skip("polars has UTF-8 only")

    def codes(values):
        made = {
            "list": lambda: values,
            "object": lambda: pd.Series(values, dtype=object),
            "string": lambda: pd.Series(values, dtype="string[python]"),
            "polars": lambda: pl.Series(values),
            "masked": lambda: np.ma.MaskedArray(np.array(values, dtype=object), [False] * len(values)),
        }
        return open_source({"id": made[container]()}).codes("id")

    pairs = awkward_pairs(kind)
    alone = codes(pairs)
    added = [None, "new"] + ([7, b"x"] if container in ("list", "object", "masked") else [])
    for extra in ([one] for one in added):
        np.testing.assert_array_equal(codes(pairs + extra)[: len(pairs)], alone)
    for many in (5, 50, 500):
        first = [f"other {i}" for i in range(many)]
        np.testing.assert_array_equal(codes(first + pairs)[many:], alone + many)
    if kind != "date":
        # Each is another person: none of these is equal to another of its own type and hash.
        assert len(set(alone.tolist())) == len(pairs)


def test_equal_identifiers_of_several_types_are_one_person():
    one = [
        1,
        1.0,
        True,
        np.int8(1),
        np.float16(1),
        np.bool_(True),
        decimal.Decimal(1),
        np.longdouble(1),
        1 + 0j,
    ]
    assert open_source({"id": one}).codes("id").tolist() == [0] * len(one)
    moment = datetime.datetime(2020, 1, 1)
    same = [moment, pd.Timestamp(moment), np.datetime64("2020-01-01", "s"), np.datetime64("2020", "Y")]
    assert open_source({"id": same}).codes("id").tolist() == [0] * len(same)
    utc = datetime.datetime(2020, 10, 25, 0, 30, tzinfo=datetime.UTC)
    zoned = pd.Timestamp(utc).tz_convert("Europe/Berlin")
    for twice in ([utc, pd.Timestamp(utc), zoned], [zoned.to_pydatetime(), pd.Timestamp(utc), utc]):
        assert open_source({"id": twice}).codes("id").tolist() == [0, 0, 0]
    first = datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))
    assert open_source({"id": [first, utc, first]}).codes("id").tolist() == [0, 1, 0]
    missing = [
        np.float32("nan"),
        np.datetime64("NaT"),
        decimal.Decimal("sNaN"),
        complex(NAN, 0),
        np.longdouble("nan"),
    ]
    assert open_source({"id": missing}).codes("id").tolist() == [-1] * len(missing)
    # An infinite half float equals 314159 where NumPy converts that number, and has its hash.
    apart = [
        314159,
        float("inf"),
        "1",
        b"1",
        1,
        (1, "a"),
        (1.0, "a"),
        np.str_("1"),
        np.datetime64(10**17, "Y"),
    ]
    assert open_source({"id": apart}).codes("id").tolist() == [0, 1, 2, 3, 4, 5, 5, 2, 6]
    for order in ([np.float16("inf"), 314159], [314159, np.float16("inf")]):
        assert len(set(open_source({"id": order}).codes("id").tolist())) == 2


# -- bounds -------------------------------------------------------------------------------------

MOMENT = datetime.datetime(2020, 1, 1, 12)


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("number", 3, 3.0),
        ("number", np.float32(0.5), 0.5),
        ("number", np.int8(-3), -3.0),
        ("number", decimal.Decimal("0.25"), 0.25),
        ("number", INF, INF),
        ("datetime", 10, 10.0),
        ("datetime", MOMENT, 1577880000.0),
        ("datetime", MOMENT.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2))), 1577872800.0),
        ("datetime", datetime.date(1970, 1, 3), 2 * DAY),
        ("datetime", pd.Timestamp("2020-01-01 12:00", tz="America/New_York"), 1577898000.0),
        ("datetime", pd.Timestamp(MOMENT), 1577880000.0),
        ("datetime", np.datetime64("1970-01-03"), 2 * DAY),
        ("datetime", np.datetime64("1971", "Y"), 365 * DAY),
        ("datetime", "1970-01-03", 2 * DAY),
        ("datetime", " 2020-01-01T12:00:00.5Z ", 1577880000.5),
        ("datetime", "2020-01-01 12:00:00,5+01:00", 1577876400.5),
        ("timedelta", 2.5, 2.5),
        ("timedelta", datetime.timedelta(days=1), DAY),
        ("timedelta", pd.Timedelta("1h"), 3600.0),
        ("timedelta", np.timedelta64(2, "m"), 120.0),
    ],
)
def test_bounds_become_floats(kind, value, wanted):
    result = as_bound(kind, value)
    assert type(result) is float
    assert result == wanted


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("number", "3"),
        ("number", True),
        ("number", None),
        ("number", np.array([1.0])),
        ("number", np.timedelta64(1, "s")),
        ("number", MOMENT),
        ("number", 10**400),
        ("datetime", "yesterday"),
        ("datetime", "now"),
        ("datetime", "2020-02-30"),
        ("datetime", "01/02/2020"),
        ("datetime", "5"),
        ("datetime", pd.NaT),
        ("datetime", np.datetime64("NaT")),
        ("datetime", datetime.timedelta(1)),
        ("datetime", np.bool_(True)),
        ("timedelta", "1 day"),
        ("timedelta", np.timedelta64("NaT")),
        ("timedelta", MOMENT),
    ],
)
def test_bounds_of_another_type_are_refused(kind, value):
    with pytest.raises(InvalidBounds, match="age"):
        as_bound(kind, value, name="age")


@given(st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)))
@settings(max_examples=100, deadline=None)
def test_a_bound_equals_the_same_moment_in_the_data(moment):
    bound = as_bound("datetime", moment)
    column = pd.Series([moment])
    for data in (column, column.dt.tz_localize("UTC"), pa.array([moment]), pl.Series([moment])):
        assert first_value(data) == bound
    assert as_bound("datetime", moment.isoformat()) == bound
