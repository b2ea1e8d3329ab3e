"""Bandwidth rules: their formulas, that they need public things alone, and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.bandwidth import choose_bandwidth

LOWER, UPPER = np.array([0.0, -10.0]), np.array([100.0, 10.0])
COLUMNS = ("age", "score")


def choose(spec: Any, **changes: Any) -> Any:
    fields: dict[str, Any] = {"columns": COLUMNS, "lower": LOWER, "upper": UPPER, "n": 5000, "epsilon": 1.0}
    return choose_bandwidth(spec, **{**fields, **changes})


def test_the_reference_rule_by_hand() -> None:
    # d = 2: .15 n^(-1/8) = .0517 and .24 (n eps)^(-1/5) = .0437: the sampling part is larger.
    np.testing.assert_allclose(choose("reference").values, [5.172, 1.034], rtol=1e-3)
    # At eps = .1 the privacy part, .24 * 500^(-1/5) = .0692, takes over.
    np.testing.assert_allclose(choose("reference", epsilon=0.1).values, [6.925, 1.385], rtol=1e-3)
    assert choose("reference").rule == "reference (public)"


def test_the_paper_rule_by_hand() -> None:
    # max((log n/n)^(1/8), (n eps)^(-1/5))/5 = .4507/5.
    np.testing.assert_allclose(choose("paper").values, [9.0146, 1.8029], rtol=1e-3)
    np.testing.assert_allclose(choose("paper", epsilon=0.001).values, [14.496, 2.899], rtol=1e-3)


@given(
    st.sampled_from(["reference", "paper"]),
    st.integers(1, 10**9),
    st.floats(1e-6, 1e3),
    st.integers(1, 8),
)
def test_rules_are_positive_at_most_a_quarter_and_shrink(rule: str, n: int, epsilon: float, d: int) -> None:
    box = {"columns": [f"x{i}" for i in range(d)], "lower": np.zeros(d), "upper": np.full(d, 2.0)}
    one = choose_bandwidth(rule, n=n, epsilon=epsilon, **box).values  # type: ignore[arg-type]
    more = choose_bandwidth(rule, n=2 * n + 2, epsilon=epsilon, **box).values  # type: ignore[arg-type]
    without = choose_bandwidth(rule, n=n, epsilon=None, **box).values  # type: ignore[arg-type]
    assert np.all((one > 0) & (one <= 0.25 * 2))
    assert np.all(without <= one)
    assert np.all(more <= one) or n < 3


def test_rules_scale_with_the_box() -> None:
    wide = choose("reference", lower=LOWER * 7, upper=UPPER * 7).values
    np.testing.assert_allclose(wide, 7 * choose("reference").values)


def test_a_resolution_is_a_floor() -> None:
    choice = choose("reference", resolution={"score": 2.0})
    np.testing.assert_allclose(choice.values, [5.172, 2.0], rtol=1e-3)
    assert choice.rule == "reference (public), raised to the resolution"
    assert "raised" not in choose("reference", resolution={"age": 1.0}).rule
    np.testing.assert_array_equal(choose(0.5, resolution={"age": 1.0}).values, [0.5, 0.5])


@pytest.mark.parametrize(
    "spec",
    [3, 3.0, np.float64(3), [3, 3.0], (3, 3), np.array([3.0, 3.0]), {"score": 3, "age": 3}],
    ids=repr,
)
def test_numbers_are_taken_as_they_are(spec: Any) -> None:
    choice = choose(spec, n=None, epsilon=None)
    np.testing.assert_array_equal(choice.values, [3.0, 3.0])
    assert choice.values.dtype == np.float64
    assert choice.rule == "given by the user"


def test_a_mapping_goes_by_name() -> None:
    np.testing.assert_array_equal(choose({"score": 1.5, "age": 4}).values, [4.0, 1.5])


@pytest.mark.parametrize(
    "spec",
    [
        "silverman",
        "",
        0,
        -1.0,
        math.nan,
        math.inf,
        True,
        None,
        1j,
        [1.0],
        [1.0, 2.0, 3.0],
        [1.0, -2.0],
        [1.0, "2"],
        [1.0, True],
        [1.0, None],
        np.ones((2, 2)),
        {"age": 1.0},
        {"age": 1.0, "score": 1.0, "wage": 1.0},
        {"age": 1.0, "score": math.nan},
        {1.0, 2.0},
    ],
    ids=repr,
)
def test_what_is_no_bandwidth_is_refused(spec: Any) -> None:
    with pytest.raises(InvalidArgument, match="bandwidth"):
        choose(spec)


@pytest.mark.parametrize(
    "resolution",
    [{"wage": 1.0}, {"age": -1.0}, {"age": math.nan}, {"age": math.inf}],
    ids=repr,
)
def test_a_bad_resolution_is_refused(resolution: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument, match="resolution"):
        choose("reference", resolution=resolution)


def test_a_rule_needs_the_number_of_records() -> None:
    with pytest.raises(InvalidArgument, match="public number of records"):
        choose("reference", n=None)
