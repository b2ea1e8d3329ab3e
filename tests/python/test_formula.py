"""Formulas: what they mean, and what is refused."""

from __future__ import annotations

import pytest

from pydpmode.errors import InvalidArgument
from pydpmode.formula import parse_formula


@pytest.mark.parametrize(
    ("text", "response", "predictors"),
    [
        ("y ~ x", ("y", "column"), [("x", "column")]),
        ("y~x1+ x2", ("y", "column"), [("x1", "column"), ("x2", "column")]),
        ("log(wage) ~ age", ("log(wage)", "log"), [("age", "column")]),
        ("np.log( wage ) ~ sqrt(age)", ("np.log( wage )", "log"), [("sqrt(age)", "expression")]),
        ("wage / hours ~ I(age + 1)", ("wage / hours", "expression"), [("I(age + 1)", "expression")]),
        ("log(wage / hours) ~ age", ("log(wage / hours)", "expression"), [("age", "column")]),
        ("`last wage` ~ log(`my age`)", ("last wage", "column"), [("log(`my age`)", "log")]),
        ("log(`lab.value`) ~ `.x`", ("log(`lab.value`)", "log"), [(".x", "column")]),
        ("`my mean (x)` ~ `a scale (b)`", ("my mean (x)", "column"), [("a scale (b)", "column")]),
    ],
)
def test_terms_and_their_kinds(
    text: str, response: tuple[str, str], predictors: list[tuple[str, str]]
) -> None:
    parsed = parse_formula(text)
    assert (parsed.response.text, parsed.response.kind) == response
    assert [(term.text, term.kind) for term in parsed.predictors] == predictors


@pytest.mark.parametrize(
    "text",
    [
        "lab.value ~ age",
        "log(lab.value + 2) ~ age",
        "log(lab.value) ~ age",
        "age ~ lab.value",
        "y ~ I(lab.value / 2)",
    ],
)
def test_a_name_with_a_dot_wants_back_quotes(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"back quotes: `lab\.value`"):
        parse_formula(text)
    assert "lab.value" in _columns(text.replace("lab.value", "`lab.value`"))


@pytest.mark.parametrize("text", [".x ~ age", "age ~ x.1", "age ~ I(lambda / 2)"])
def test_names_that_cannot_be_read_are_told_of_back_quotes(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"spaces, dots or signs.*back quotes"):
        parse_formula(text)


def _columns(text: str) -> set[str]:
    parsed = parse_formula(text)
    return {column for term in (parsed.response, *parsed.predictors) for column in term.columns}


def test_columns_of_a_quoted_name() -> None:
    assert parse_formula("y ~ log(`my age`)").predictors[0].columns == ("my age",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y", "one '~'"),
        ("~ x", "one '~'"),
        ("y ~", "one '~'"),
        ("y ~ x ~ z", "one '~'"),
        ("y ~ x +", "empty term"),
        ("y ~ .", "name the columns"),
        ("y ~ x - 1", "no intercept"),
        ("y ~ 0 + x", "no intercept"),
        ("y ~ 1", "no intercept"),
        ("y ~ x * z", "interaction"),
        ("y ~ x:z", "interaction"),
        ("y ~ x / z", "nesting"),
        ("y ~ x ** 2", r"I\(x \*\* 2\)"),
        ("y ~ x - z", "leaving a term out"),
        ("y ~ x | z", "grouping"),
        ("y ~ scale(x)", "learned from the data"),
        ("y ~ poly(x, 2)", "learned from the data"),
        ("y ~ bs(x, df=3)", "learned from the data"),
        ("y ~ np.mean(x)", "learned from the data"),
        ("center(y) ~ x", "learned from the data"),
        ("y ~ I(x - mean(x))", "learned from the data"),
        ("y ~ C(x)", "levels="),
        ("y ~ x + x", "twice"),
        ("y ~ x + y", "cannot explain itself"),
        ("log(y) ~ y", "cannot explain itself"),
        ("y ~ I(x * y)", "cannot explain itself"),
        ("y ~ spam(x)", "not allowed"),
        ("y ~ x.mean()", "learned from the data"),
        ("y ~ __import__('os')", "not allowed"),
    ],
)
def test_what_is_refused_and_why(text: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        parse_formula(text)


def test_a_formula_is_a_text() -> None:
    with pytest.raises(InvalidArgument, match="text"):
        parse_formula(3)  # type: ignore[arg-type]
