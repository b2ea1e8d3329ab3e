"""Public bounds and clipping: the only way from raw values to the arithmetic."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pydpmode.errors import (
    InvalidArgument,
    InvalidBounds,
    MissingBounds,
    NonNumericColumn,
    UnknownColumn,
)
from pydpmode.privacy.bounds import clip_block, coordinate_block, coordinate_box, read_bounds
from pydpmode.privacy.sources import open_source
from pydpmode.results.coordinates import Coordinate

FRAME = pd.DataFrame(
    {
        "age": [31, 45],
        "wage": [1e4, 2e4],
        "when": pd.to_datetime(["2020-01-01", "2021-01-01"]),
        "name": ["canary-ann", "canary-bob"],
    }
)
SOURCE = open_source(FRAME)


def test_a_mapping_a_list_and_one_pair() -> None:
    assert read_bounds({"wage": (0, 3e5), "age": (15, 90)}, SOURCE) == {"wage": (0, 3e5), "age": (15, 90)}
    array = open_source(np.zeros((3, 2)))
    for pairs in (
        [(0, 1), (2, 3)],
        ((0, 1), (2, 3)),
        np.array([[0, 1], [2, 3.0]]),
        [np.array([0, 1]), [2, 3]],
    ):
        assert read_bounds(pairs, array) == {"x1": (0.0, 1.0), "x2": (2.0, 3.0)}
    one = open_source(np.zeros(3))
    for pair in ((0, 1), [0, 1], np.array([0, 1]), [(0, 1)], np.array([[0, 1]])):
        assert read_bounds(pair, one) == {"x1": (0.0, 1.0)}


def test_labels_that_are_numbers_are_known_by_their_text() -> None:
    frame = open_source(pd.DataFrame(np.zeros((3, 2))))
    assert read_bounds({0: (0, 1), "1": (2, 3)}, frame) == {"0": (0, 1), "1": (2, 3)}
    with pytest.raises(InvalidBounds, match="same text"):
        read_bounds({0: (0, 1), "0": (2, 3)}, frame)


def test_times_are_seconds() -> None:
    expected = {"when": (0.0, 86400.0)}
    for pair in (("1970-01-01", "1970-01-02"), (pd.Timestamp(0), pd.Timestamp("1970-01-02")), (0, 86400)):
        assert read_bounds({"when": pair}, SOURCE) == expected


@pytest.mark.parametrize("bounds", [None, {}, [], (), np.zeros((0, 2))], ids=repr)
def test_missing_bounds_say_what_to_give_and_why(bounds: Any) -> None:
    for wanted, name in ((("wage", "age"), "wage"), ((), "column")):
        with pytest.raises(MissingBounds, match=rf"give bounds=\{{'{name}': \(low, high\)\}}") as caught:
            read_bounds(bounds, SOURCE, wanted)
        assert "never taken from the data" in str(caught.value)


@pytest.mark.parametrize(
    "pair",
    [
        (1, 0),
        (1, 1),
        (0, math.inf),
        (-math.inf, 0),
        (math.nan, 1),
        (0, math.nan),
        (-1.7e308, 1.7e308),
        (0, 10**400),
        (False, True),
        ("0", "1"),
        (None, 1),
        (0,),
        (0, 1, 2),
        (),
        5,
        None,
        "01",
        {0, 1},
        {0: 1, 1: 2},
        np.array(3.0),
        (np.zeros(2), 1),
        (0j, 1),
    ],
    ids=repr,
)
def test_what_is_no_pair_of_bounds_is_refused_with_the_column(pair: Any) -> None:
    with pytest.raises(InvalidBounds, match="age"):
        read_bounds({"age": pair}, SOURCE)


@pytest.mark.parametrize(
    "bounds",
    [5, True, "ab", "a", {1, 2}, np.array(1.0), object(), 1j],
    ids=lambda value: type(value).__name__,
)
def test_what_are_no_bounds_is_refused(bounds: Any) -> None:
    with pytest.raises(InvalidBounds):
        read_bounds(bounds, open_source(np.zeros((3, 2))))


@pytest.mark.parametrize("pairs", [[(0, 1)], [(0, 1)] * 3, (0, 1), [0, 1, 2]], ids=repr)
def test_a_wrong_number_of_pairs_is_refused(pairs: Any) -> None:
    with pytest.raises(InvalidBounds, match="for 2 columns"):
        read_bounds(pairs, open_source(np.zeros((3, 2))))


def test_unknown_and_non_numeric_columns() -> None:
    with pytest.raises(UnknownColumn, match="no column 'income'; the columns are 'age', 'wage'"):
        read_bounds({"income": (0, 1)}, SOURCE)
    with pytest.raises(NonNumericColumn, match="name") as caught:
        read_bounds({"name": (0, 1)}, SOURCE)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "bounds",
    [None, {}, [(0, 1), (0, 1)], [(0, 1)], [(0, 1), (3, 1)], {"age": (0, 1)}, {"age": (1, 0)}],
    ids=repr,
)
def test_a_first_line_that_may_be_a_row_is_never_shown(tmp_path: Any, bounds: Any) -> None:
    path = tmp_path / "no_header.csv"
    path.write_text("77771.25,Canary\n1,2\n3,4\n")
    with pytest.raises(InvalidArgument) as caught:
        read_bounds(bounds, open_source(path))
    assert "77771" not in str(caught.value)
    assert "Canary" not in str(caught.value)


def test_the_box_goes_through_the_transform() -> None:
    coordinates = [Coordinate("log(wage)", "wage", "log"), Coordinate.plain("age")]
    lower, upper = coordinate_box(coordinates, {"age": (15, 90), "wage": (1, math.e**5)})
    np.testing.assert_allclose(lower, [0, 15], atol=1e-12)
    np.testing.assert_allclose(upper, [5, 90])
    # A lower bound of zero has no logarithm: a thousandth of the upper one takes its place.
    lower, upper = coordinate_box(coordinates[:1], {"wage": (0, 1000)})
    np.testing.assert_allclose([lower[0], upper[0]], [0, math.log(1000)], atol=1e-12)
    with pytest.raises(InvalidBounds, match="wage: a logarithm needs"):
        coordinate_box(coordinates, {"age": (15, 90), "wage": (-1, 10)})
    with pytest.raises(MissingBounds, match="wage"):
        coordinate_box(coordinates, {"age": (15, 90)})


# -- clipping ---------------------------------------------------------------------------------------

LOG = Coordinate("log(x)", "x", "log")
PLAIN = Coordinate.plain("x")


def clip(raw: Any, coordinates: Any, low: Any, high: Any, outside: Any = "clip", weights: Any = None) -> Any:
    block = np.array(raw, dtype=float, order="C", ndmin=2)
    return clip_block(block, coordinates, np.array(low, float), np.array(high, float), outside, weights)


def test_clean_rows_pass_as_they_are() -> None:
    block = clip([0.0, 0.5, 1.0], [PLAIN], [0], [1])
    np.testing.assert_array_equal(block.values, [[0, 0.5, 1]])
    assert block.weights is None
    assert clip(np.empty((1, 0)), [PLAIN], [0], [1]).values.shape == (1, 0)


def test_clip_moves_and_ignore_leaves_out() -> None:
    raw = [-math.inf, -1, 0, 0.5, 1, 2, math.inf, math.nan]
    moved = clip(raw, [PLAIN], [0], [1])
    np.testing.assert_array_equal(moved.values, [[0, 0, 0, 0.5, 1, 1, 1, 0]])
    np.testing.assert_array_equal(moved.weights, [1, 1, 1, 1, 1, 1, 1, 0])
    ignored = clip(raw, [PLAIN], [0], [1], "ignore")
    np.testing.assert_array_equal(ignored.weights, [0, 0, 1, 1, 1, 0, 0, 0])


def test_a_row_counts_only_when_every_coordinate_does() -> None:
    raw = [[0.5, math.nan, 0.5, 2.0], [0.5, 0.5, math.nan, 0.5]]
    np.testing.assert_array_equal(clip(raw, [PLAIN, PLAIN], [0, 0], [1, 1]).weights, [1, 0, 0, 1])
    ignored = clip(raw, [PLAIN, PLAIN], [0, 0], [1, 1], "ignore")
    np.testing.assert_array_equal(ignored.weights, [1, 0, 0, 0])


def test_under_a_logarithm_nothing_is_missing_but_what_was() -> None:
    raw = [-5.0, 0.0, 5e-324, 1.0, math.e, 1e308, math.inf, math.nan, -math.inf]
    block = clip(raw, [LOG], [0], [2])
    np.testing.assert_allclose(block.values, [[0, 0, 0, 0, 1, 2, 2, 0, 0]], atol=1e-15)
    np.testing.assert_array_equal(block.weights, [1, 1, 1, 1, 1, 1, 1, 0, 1])


def test_weights_are_cut_to_their_range_and_missing_ones_are_zero() -> None:
    weights = np.array([0.0, 0.5, 1.0, 2.0, -1.0, math.inf, -math.inf, math.nan])
    block = clip(np.full(8, 0.5), [PLAIN], [0], [1], "clip", weights)
    np.testing.assert_array_equal(block.weights, [0, 0.5, 1, 1, 0, 1, 0, 0])
    with_missing = clip([math.nan, 0.5], [PLAIN], [0], [1], "clip", np.array([0.7, 0.7]))
    np.testing.assert_array_equal(with_missing.weights, [0, 0.7])


ANYTHING = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=ANYTHING),
    st.sampled_from(["clip", "ignore"]),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_whatever_comes_in_fits_the_box_and_each_row_is_for_itself(
    raw: np.ndarray, outside: Any, logs: bool, weighted: bool, data: Any
) -> None:
    d, n = raw.shape
    weights = data.draw(hnp.arrays(np.float64, n, elements=ANYTHING)) if weighted else None
    coordinates = [LOG if logs else PLAIN] * d
    low, high = np.full(d, -1.5), np.full(d, 2.25)
    whole = clip(raw, coordinates, low, high, outside, None if weights is None else weights.copy())
    assert np.all((whole.values >= -1.5) & (whole.values <= 2.25))
    counted = np.ones(n) if whole.weights is None else whole.weights
    assert np.all((counted >= 0) & (counted <= 1))
    assert np.all(counted[np.isnan(raw).any(axis=0)] == 0)
    for i in range(n):
        alone = clip(
            raw[:, i : i + 1],
            coordinates,
            low,
            high,
            outside,
            None if weights is None else weights[i : i + 1].copy(),
        )
        np.testing.assert_array_equal(alone.values, whole.values[:, i : i + 1])
        assert (1.0 if alone.weights is None else alone.weights[0]) == counted[i]


def test_signalling_nans_raise_no_warning() -> None:
    """A bit pattern that makes the processor complain: the warning would tell of a value."""
    odd = np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf0\x7f" * 9, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for coordinate in (PLAIN, LOG):
            for n in (1, 3, 9):
                raw = np.empty((1, n))
                raw.view(np.int64)[:] = odd.view(np.int64)[:n]
                block = clip_block(raw, [coordinate], np.zeros(1), np.ones(1), "clip", raw[0].copy())
                assert block.weights is not None
                assert not block.weights.any()


# -- expressions ------------------------------------------------------------------------------------

BOUNDS = {"pay": (0.0, 100.0), "hours": (1.0, 80.0)}
RATE = Coordinate.of_expression("pay / hours", name="rate", limits=(0.0, 20.0))


def rate(pay: Any, hours: Any, outside: Any = "clip") -> Any:
    raw = np.array([pay, hours], dtype=float)
    return coordinate_block(raw, ["pay", "hours"], [RATE], BOUNDS, outside, None)


def test_the_box_of_an_expression_is_its_limits_or_what_bounds_allow() -> None:
    low, high = coordinate_box([Coordinate.of_expression("pay / hours")], BOUNDS)
    np.testing.assert_allclose([low[0], high[0]], [0, 100], atol=1e-12)
    low, high = coordinate_box([RATE], BOUNDS)
    assert (low[0], high[0]) == (0.0, 20.0)
    with pytest.raises(InvalidBounds, match="divides"):
        coordinate_box([Coordinate.of_expression("hours / pay")], BOUNDS)
    with pytest.raises(MissingBounds, match="days"):
        coordinate_box([Coordinate.of_expression("pay / days")], BOUNDS)


def test_the_columns_of_an_expression_are_clipped_first() -> None:
    block = rate([50, 1000, -5, math.inf, math.nan, 10], [10, 10, 10, 0, 10, math.nan])
    np.testing.assert_allclose(block.values, [[5, 10, 0, 20, 0, 0]])
    np.testing.assert_array_equal(block.weights, [1, 1, 1, 1, 0, 0])
    ignored = rate([50, 1000, 100, 40], [10, 10, 1, 4], "ignore")
    np.testing.assert_array_equal(ignored.weights, [1, 0, 0, 1])


def test_an_expression_named_like_its_column_is_still_evaluated() -> None:
    named = Coordinate.of_expression("pay / 10", name="pay")
    block = coordinate_block(np.array([[50.0]]), ["pay"], [named], BOUNDS, "clip", None)
    np.testing.assert_allclose(block.values, [[5.0]])


def test_one_column_in_two_coordinates() -> None:
    both = [Coordinate.plain("hours"), Coordinate("log(hours)", "hours", "log")]
    block = coordinate_block(np.array([[1.0, math.e]]), ["hours"], both, BOUNDS, "clip", None)
    np.testing.assert_allclose(block.values, [[1, math.e], [0, 1]], atol=1e-15)


def test_years_are_no_dates() -> None:
    source = open_source(pd.DataFrame({"when": pd.to_datetime(["2021-05-01"])}))
    with pytest.raises(InvalidBounds, match=r"look like years: give dates, such as \('2020-01-01'"):
        read_bounds({"when": (2020, 2022)}, source)
    assert read_bounds({"when": ("2020-01-01", "2022-01-01")}, source)["when"][0] == 1577836800.0
