"""R's serialization format in Python: what is written is read back, and damage is refused.

That R itself reads and writes the same bytes is tested with R: tests/testthat/test-codec.R, tests/embedded.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydpmode.errors import InvalidArgument
from r_bridge.arguments import column, plain
from r_bridge.wire import NA_INTEGER, RList, RVector, decode, encode

# serialize(list(a = c(1L, NA), b = "x", c = NULL), NULL, xdr = FALSE, version = 2) in R 4.2.
FROM_R = bytes.fromhex(
    "420a02000000020204000003020013020000030000000d000000020000000100000000000080100000000100"
    "0000090004000100000078fe000000020400000100000009000400050000006e616d65731000000003000000"
    "090004000100000061090004000100000062090004000100000063fe000000"
)


def back(value: Any) -> Any:
    return plain(decode(encode(value)))


def test_bytes_that_r_wrote_are_read() -> None:
    assert plain(decode(FROM_R)) == {"a": [1, None], "b": "x", "c": None}


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        -2.5,
        "text",
        "\u6f22\u5b57",
        "",
        b"\x00\xff",
        [1, 2, 3],
        [1.5, 2.0],
        ["a", None],
        [True, False],
    ],
)
def test_plain_values_come_back(value: Any) -> None:
    assert back(value) == value


def test_lists_and_mappings_come_back() -> None:
    value = {"a": 1, "b": {"c": [1.0, 2.0], "d": None}, "e": ["x", 1, None]}
    assert back(value) == value
    assert back({}) == []  # R has one empty list


@given(st.lists(st.floats(allow_nan=False), min_size=2))
def test_floats_are_exact(values: list[float]) -> None:
    found = back(np.array(values))
    assert [struct.pack("<d", x) for x in found] == [struct.pack("<d", x) for x in values]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**53), 2**53)), min_size=2).filter(any))
def test_whole_numbers_are_exact_or_doubles(values: list[int | None]) -> None:
    found = back(values)
    assert [
        None if x is None or (isinstance(x, float) and math.isnan(x)) else int(x) for x in found
    ] == values


def test_a_whole_number_that_r_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="2\\*\\*53"):
        encode(2**60)
    with pytest.raises(InvalidArgument, match="2\\*\\*53"):
        encode([2**70, 1])


def test_missing_double_is_r_s_own() -> None:
    vector = decode(encode([1.0, None]))
    assert isinstance(vector, RVector)
    assert int(vector.values.view("<u8")[1]) & 0xFFFFFFFF == 1954


def test_matrices_are_stored_by_column() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    vector = decode(encode(matrix))
    assert vector.values.tolist() == [0, 3, 1, 4, 2, 5]
    assert back(matrix) == matrix.tolist()


def test_data_frames_keep_types_and_missing_values() -> None:
    table = pd.DataFrame(
        {
            "n": np.array([1.5, np.nan, np.inf]),
            "i": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "s": ["a", None, "NA"],
            "c": pd.Categorical(["u", None, "v"], categories=["v", "u"], ordered=True),
            "t": pd.to_datetime(["2020-01-01", None, "1900-01-01"]),
            "z": pd.to_datetime(["2020-01-01", None, "1900-01-01"]).tz_localize("Europe/Berlin"),
        }
    )
    found = decode(encode(table))
    assert isinstance(found, RList)
    assert found.classes == ("data.frame",)
    assert found.attributes["row.names"].values.tolist() == [NA_INTEGER, -3]
    by_name = dict(zip(found.names or (), found.items, strict=True))
    assert by_name["i"].values.tolist() == [1, NA_INTEGER, 3]
    assert by_name["b"].values.tolist() == [1, NA_INTEGER, 0]
    assert by_name["s"].values == ["a", None, "NA"]
    assert by_name["c"].values.tolist() == [2, NA_INTEGER, 1]
    assert by_name["c"].classes == ("ordered", "factor")
    assert by_name["t"].values[0] == 1577836800.0
    assert int(by_name["t"].values.view("<u8")[1]) & 0xFFFFFFFF == 1954  # NA, not NaN
    assert by_name["z"].values[0] == 1577836800.0 - 3600
    back_again = pd.DataFrame({name: column(item) for name, item in by_name.items()})
    assert back_again["c"].cat.categories.tolist() == ["v", "u"]
    assert back_again.isna().sum().tolist() == [1] * 7


def test_column_types_follow_from_the_r_type_alone() -> None:
    full, gap = np.array([1, 2], dtype="<i4"), np.array([1, NA_INTEGER], dtype="<i4")
    for kind in ("integer", "logical"):
        assert column(RVector(kind, full)).dtype == column(RVector(kind, gap)).dtype == np.float64


@pytest.mark.parametrize("levels", [["a", "b", None], ["a", "", None], [None, "a", "b"]])
def test_the_level_na_of_a_factor_is_no_value(levels: list[str | None]) -> None:
    """`addNA` makes a level of what is missing: a person of that name would be everybody without one."""
    codes = np.array([1, 2, 3, NA_INTEGER, 1], dtype="<i4")
    attributes = {"levels": RVector("character", levels), "class": RVector("character", ["factor"])}
    found = column(RVector("integer", codes, attributes))
    wanted = [*(levels[code - 1] for code in (1, 2, 3)), None, levels[0]]
    assert [None if value is pd.NA or value != value else value for value in found.tolist()] == wanted
    assert found.cat.categories.tolist() == [text for text in levels if text is not None]


@pytest.mark.parametrize("cut", range(2, len(FROM_R) - 1, 7))
def test_damage_is_refused(cut: int) -> None:
    with pytest.raises(InvalidArgument):
        decode(FROM_R[:cut])


def test_what_is_no_plain_data_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="not plain data"):
        encode(object())
    environment = FROM_R[:14] + struct.pack("<i", 253)
    with pytest.raises(InvalidArgument, match="type 253"):
        decode(environment)
    with pytest.raises(InvalidArgument, match="serialize"):
        decode(b"X\n" + FROM_R[2:])
