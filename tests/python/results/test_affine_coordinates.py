"""Affine coordinates: scores of a released transform, row by row, with public limits."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pydpmode.errors import InvalidArgument, InvalidBounds, MissingBounds, UnknownColumn
from pydpmode.privacy.bounds import coordinate_block, coordinate_box
from pydpmode.results.coordinates import Coordinate, points_of

BOUNDS = {"a": (0.0, 10.0), "b": (-1.0, 1.0)}
SCORE = Coordinate.affine("score", ["a", "b"], [0.5, -2.0], 1.0, limits=(0.0, 5.0))


def test_the_box_is_the_limits_or_what_the_bounds_allow() -> None:
    low, high = coordinate_box([Coordinate.affine("s", ["a", "b"], [0.5, -2.0], 1.0), SCORE], BOUNDS)
    assert low.tolist() == [-1.0, 0.0]
    assert high.tolist() == [8.0, 5.0]
    with pytest.raises(MissingBounds, match="c: give public"):
        coordinate_box([Coordinate.affine("s", ["a", "c"], [1, 1], 0)], BOUNDS)
    with pytest.raises(InvalidBounds, match="empty or overflows"):
        coordinate_box([Coordinate.affine("s", ["a"], [0.0], 0)], BOUNDS)
    with pytest.raises(InvalidBounds, match="empty or overflows"):
        coordinate_box([Coordinate.affine("s", ["a"], [1e308], 0)], BOUNDS)


def test_columns_are_clipped_before_the_map_and_the_value_after_it() -> None:
    raw = np.array([[4.0, 40.0, 0.0, math.nan, math.inf, 10.0], [0.5, 1.0, 7.0, 0.0, 1.0, -1.0]])
    block = coordinate_block(raw.copy(), ["a", "b"], [SCORE], BOUNDS, "clip", None)
    np.testing.assert_allclose(block.values, [[2.0, 4.0, 0.0, 0.0, 4.0, 5.0]])
    np.testing.assert_array_equal(block.weights, [1, 1, 1, 0, 1, 1])
    ignored = coordinate_block(raw.copy(), ["a", "b"], [SCORE], BOUNDS, "ignore", None)
    np.testing.assert_array_equal(ignored.weights, [1, 0, 0, 0, 0, 0])


def test_beside_a_plain_column_in_any_order() -> None:
    raw = np.array([[0.5, 3.0], [4.0, 20.0]])
    block = coordinate_block(raw, ["b", "a"], [Coordinate.plain("a"), SCORE], BOUNDS, "clip", None)
    np.testing.assert_allclose(block.values, [[4.0, 10.0], [2.0, 4.0]])


def test_json_gives_the_same_coordinate_back() -> None:
    again = Coordinate.from_dict(json.loads(json.dumps(SCORE.to_dict())))
    assert again == SCORE
    free = Coordinate.affine("s", ["a"], [0.1], 0.2)
    assert Coordinate.from_dict(json.loads(json.dumps(free.to_dict()))) == free
    assert hash(again) == hash(SCORE)


def test_new_data_by_their_columns_or_by_the_score_itself() -> None:
    frame = pd.DataFrame({"b": [0.5], "other": [9.0], "a": [4.0]}, index=["row"])
    points, index = points_of(frame, [SCORE])
    assert points.tolist() == [[2.0]]
    assert list(index) == ["row"]
    assert points_of(pd.DataFrame({"score": [3.0]}), [SCORE])[0].tolist() == [[3.0]]
    with pytest.raises(UnknownColumn, match="'b'"):
        points_of(pd.DataFrame({"a": [4.0]}), [SCORE])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"columns": ("a",), "weights": (1.0, 2.0)}, "one weight per column"),
        ({"columns": ("a", "a"), "weights": (1.0, 2.0)}, "each column once"),
        ({"columns": ("a",), "weights": (math.nan,)}, "must be finite"),
        ({"columns": ("a",), "weights": (1.0,), "offset": math.inf}, "must be finite"),
        ({"columns": ("a",), "weights": (1.0,), "limits": (1.0, 1.0)}, "low < high"),
        ({}, "goes with transform='affine'"),
    ],
)
def test_what_is_no_affine_map(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Coordinate("s", "s", "affine", **fields)


def test_weights_belong_to_affine_maps_alone() -> None:
    with pytest.raises(InvalidArgument, match="only with it"):
        Coordinate("a", "a", columns=("a",), weights=(1.0,))
