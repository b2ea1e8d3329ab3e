"""Bandwidth rules: their formulas, that they need public things alone, and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.bandwidth import Ladder, choose_bandwidth

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


# -- ladders, and the private rule -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "scales"), [(1, (1.0, 0.5, 0.25, 0.125)), (2, (1.0, 0.5, 0.25)), (3, (1.0, 0.5))]
)
def test_a_ladder_has_the_reference_bandwidth_as_its_widest(d: int, scales: tuple[float, ...]) -> None:
    box = {"columns": [f"x{i}" for i in range(d)], "lower": np.zeros(d), "upper": np.full(d, 9.0)}
    ladder = choose_bandwidth("ladder", n=2000, epsilon=1.0, **box)  # type: ignore[arg-type]
    plain = choose_bandwidth("reference", n=2000, epsilon=1.0, **box)  # type: ignore[arg-type]
    np.testing.assert_array_equal(ladder.values, plain.values)
    assert ladder.rule == "ladder (public)"
    assert ladder.ladder.scales == scales
    assert math.fsum(ladder.ladder.masses) == pytest.approx(1)
    assert plain.ladder == Ladder()


def test_four_columns_have_no_ladder() -> None:
    box = {"columns": list("abcd"), "lower": np.zeros(4), "upper": np.ones(4)}
    for rule in ("ladder", "private"):
        choice = choose_bandwidth(rule, n=2000, epsilon=1.0, **box)  # type: ignore[arg-type]
        assert choice.ladder == Ladder()


@given(st.integers(1, 3), st.integers(1, 10**8), st.floats(1e-3, 1e2))
def test_a_ladder_is_affordable_whatever_the_number_of_records(d: int, n: int, epsilon: float) -> None:
    box = {"columns": list("abc")[:d], "lower": np.zeros(d), "upper": np.full(d, 3.0)}
    choice = choose_bandwidth("ladder", n=n, epsilon=epsilon, **box)  # type: ignore[arg-type]
    if len(choice.ladder.scales) > 1:
        sides = 3.0 / choice.values + 9.0
        size = 4.5 / min(choice.ladder.scales) * sides / math.pi
        pairs = float(np.prod(size)) * math.pi ** (d / 2) / math.gamma(d / 2 + 1) / 2 ** (d + 1)
        assert pairs <= {1: 100_000, 2: 12_000, 3: 120_000}[d]
    # A million records in two columns: the widest bandwidth is narrow enough, and noise is dear.
    if d == 2 and n >= 10**6 and epsilon >= 0.1:
        assert choice.ladder == Ladder()


def test_a_resolution_cuts_the_ladder() -> None:
    """No reading may be narrower than the step at which a column is recorded."""
    widest = choose("ladder").values[0]
    for part, kept in ((0.2, (1.0, 0.5, 0.25)), (0.3, (1.0, 0.5)), (0.6, (1.0,)), (3.0, (1.0,))):
        choice = choose("ladder", resolution={"age": part * widest})
        assert choice.ladder.scales == kept
        assert math.fsum(choice.ladder.masses) == pytest.approx(1)
        assert choice.values[0] == pytest.approx(max(1.0, part) * widest)
        assert np.all(choice.values[0] * np.array(choice.ladder.scales) >= part * widest * (1 - 1e-9))


def test_the_private_rule_by_hand() -> None:
    """Quartiles of a normal column: .8 sd n^(-1/8) against 1.3 sd (n eps)^(-1/5), d = 2, trust 1."""
    spread = np.array([4.0, 1.0])
    quartiles = np.stack([50 - 0.67449 * spread, 50 + 0.67449 * spread], axis=1)
    for n, epsilon in ((10**6, 1.0), (10**6, 0.01)):
        choice = choose("private", n=n, epsilon=epsilon, quartiles=quartiles)
        rate = max(0.8 * (4 / 6) ** (1 / 8) * n ** (-1 / 8), 1.3 * (n * epsilon) ** (-1 / 5))
        np.testing.assert_allclose(choice.values, spread * rate, rtol=0.01)
    assert choice.rule == "private (quartiles)"


def test_quartiles_of_noise_leave_the_public_rule() -> None:
    """At n epsilon = 10 a drawn quartile says nothing: whatever it is, the bandwidth hardly moves."""
    public = choose("reference", n=100, epsilon=0.1).values
    for low, high in ((0.0, 1e-9), (0.0, 100.0), (3.0, 1.0)):
        drawn = np.array([[low, high], [low / 5, high / 5]])
        ratio = choose("private", n=100, epsilon=0.1, quartiles=drawn).values / public
        assert np.all((ratio > 0.95) & (ratio < 1.05))


@given(
    st.integers(1, 3),
    st.integers(1, 10**7),
    st.floats(0.01, 20),
    st.lists(st.floats(0, 1), min_size=6, max_size=6),
    st.floats(-6, 6),
)
def test_the_private_rule_never_leaves_its_limits(
    d: int, n: int, epsilon: float, places: list[float], log_width: float
) -> None:
    """What is planned for without quartiles is the narrowest that any quartiles can give."""
    widths = 10.0**log_width * np.array([1.0, 20.0, 0.01])[:d]
    quartiles = widths[:, None] * np.array(places).reshape(3, 2)[:d]
    asked: dict[str, Any] = {"columns": list("abc")[:d], "lower": np.zeros(d), "upper": widths, "n": n}
    own = choose_bandwidth("private", epsilon=epsilon, quartiles=quartiles, **asked)
    narrowest = choose_bandwidth("private", epsilon=epsilon, **asked)
    public = choose_bandwidth("reference", epsilon=epsilon, **asked)
    assert np.all(own.values >= narrowest.values * (1 - 1e-12))
    assert np.all(own.values <= 1.25 * public.values * (1 + 1e-12))
    assert np.all(own.values < widths)
