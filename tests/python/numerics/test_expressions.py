"""Expressions of columns: what is allowed, values row by row, and the range that bounds allow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.expressions import parse_expression, quoted

X = np.array([1.0, 4.0, 9.0])
Y = np.array([2.0, -2.0, 0.5])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", X),
        ("2 * x - y / 4 + 1e1", 2 * X - Y / 4 + 10),
        ("sqrt(x) + abs(-y)", np.sqrt(X) + np.abs(Y)),
        ("np.log(x) / numpy.log10(x + 1)", np.log(X) / np.log10(X + 1)),
        ("I(x ** 2) - +y", X**2 - Y),
        ("exp(log1p(x)) * log2(x)", (X + 1) * np.log2(X)),
    ],
)
def test_values(text: str, expected: np.ndarray) -> None:
    parsed = parse_expression(text)
    np.testing.assert_allclose(parsed.evaluate({"x": X, "y": Y}), expected, rtol=1e-14)


def test_columns_with_odd_names_go_between_back_quotes() -> None:
    parsed = parse_expression("log(`wage last year`) - `a-b` * x")
    assert parsed.columns == ("wage last year", "a-b", "x")
    assert quoted("x") == "x"
    for name in ("a b", "a.b", "lambda"):
        assert parse_expression(quoted(name) + "/2").columns == (name,)
    got = parsed.evaluate({"wage last year": X, "a-b": Y, "x": X})
    np.testing.assert_allclose(got, np.log(X) - Y * X)


@pytest.mark.parametrize(
    "text",
    [
        "scale(x)", "poly(x)", "x.mean()", "[x]", "x if y else 1", "lambda: x", "x > 1", "3", "", "x +",
        "x and y", "__import__('os')", "log(x, 2)", "log(x=1)", "os.log(x)", "True * x", "x @ y", "1j * x",
        "(" * 300 + "x" + ")" * 300, "-" * 5000 + "x",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("x + y", -1, 7),
        ("x - y", -2, 6),
        ("x * y", -8, 12),
        ("y ** 2", 0, 9),
        ("y ** 3", -8, 27),
        ("-abs(y)", -3, 0),
        ("1 / x", 0.25, 1),
        ("log(x)", 0, math.log(4)),
        ("x ** 0.5", 1, 2),
        ("x ** -1", 0.25, 1),
    ],
)
def test_ranges(text: str, low: float, high: float) -> None:
    got = parse_expression(text).interval({"x": (1.0, 4.0), "y": (-2.0, 3.0)})
    np.testing.assert_allclose(got, (low, high), atol=1e-12)


@pytest.mark.parametrize(
    "text", ["log(y)", "sqrt(y)", "1 / y", "y ** 0.5", "y ** -1", "x ** y", "exp(x * 1000)"]
)
def test_not_defined_everywhere_inside_the_bounds(text: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_expression(text).interval({"x": (1.0, 4.0), "y": (-2.0, 3.0)})
    with pytest.raises(InvalidArgument, match="constant"):
        parse_expression("0 * x + 3").interval({"x": (1.0, 4.0)})


@pytest.mark.parametrize("text", ["+".join(["x"] * 900), "x * 1" + "0" * 400])
def test_too_deep_or_too_large_is_refused_in_words(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"too deeply|too large"):
        parse_expression(text).interval({"x": (1.0, 4.0)})


def test_a_range_is_silent_where_the_user_lets_numpy_raise() -> None:
    with np.errstate(all="raise"):
        low, high = parse_expression("exp(x * 0) * y + x").interval({"x": (0.0, 1e-320), "y": (5e-324, 1.0)})
    assert low <= 0 < 1 <= high


PARTS = st.recursive(
    st.sampled_from(["x", "y", "2.5", "0.3", "-1"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"abs({t})"),
        inner.map(lambda t: f"({t}) ** 2"),
        inner.map(lambda t: f"sqrt(1 + abs({t}))"),
        inner.map(lambda t: f"1 / (2 + abs({t}))"),
    ),
    max_leaves=8,
)


@given(PARTS, st.lists(st.tuples(st.floats(-3, 2), st.floats(0.5, 4)), min_size=1, max_size=5))
def test_every_value_lies_in_the_range(text: str, rows: list[tuple[float, float]]) -> None:
    text = f"{text} + 0 * x"
    low, high = parse_expression(text + " + x * 1e-9").interval({"x": (-3.0, 2.0), "y": (0.5, 4.0)})
    x, y = (np.array(column) for column in zip(*rows, strict=True))
    values = parse_expression(text + " + x * 1e-9").evaluate({"x": x, "y": y})
    assert np.all((values >= low) & (values <= high))
