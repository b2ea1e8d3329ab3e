"""Formulas of a regression: `"log(wage) ~ age + sqrt(hours)"`, each term row by row.

A term may be a column, a function of columns (`log`, `sqrt`, ... of `numerics.expressions`) or arithmetic
inside `I(...)`. Names with spaces, dots or signs stand between back quotes. What would be learned from the
data (`scale`, `poly`, splines, categories) is refused: its result for one row depends on the others, and no
budget has paid for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .errors import InvalidArgument
from .numerics.expressions import parse_expression

TermKind = Literal["column", "log", "expression"]

_NAME = r"(?:[^\W\d]\w*|`[^`]+`)"
_COLUMN = re.compile(rf"\s*({_NAME})\s*")
_LOG = re.compile(rf"\s*(?:(?:np|numpy)\s*\.\s*)?log\s*\(\s*({_NAME})\s*\)\s*")
_QUOTED = re.compile(r"`[^`]*`")
_CALLED = re.compile(r"(?<![\w.`])(?:[^\W\d]\w*\s*\.\s*)*([^\W\d]\w*)\s*\(")
# Functions of other formula languages whose result for a row depends on the other rows.
_LEARNED = frozenset(
    [
        *(
            "scale",
            "center",
            "standardize",
            "standardise",
            "zscore",
            "minmax",
            "poly",
            "bs",
            "ns",
            "cr",
            "cc",
        ),
        *(
            "te",
            "ti",
            "s",
            "lo",
            "hashed",
            "rank",
            "qcut",
            "cut",
            "ecdf",
            "quantile",
            "diff",
            "lag",
            "cumsum",
        ),
        *("mean", "std", "var", "median", "min", "max", "sum"),
    ]
)
_CATEGORIES = frozenset(["C", "factor", "as_factor", "Categorical", "category", "Treatment", "Sum"])
_EXAMPLE = "write for example 'log(wage) ~ age' or 'y ~ x1 + x2'"


@dataclass(frozen=True)
class Term:
    """One side, or one summand, of a formula.

    Parameters
    ----------
    text : str
        As written, without outer blanks.
    kind : {"column", "log", "expression"}
        A column as it is; its natural logarithm (shown back on the column's own scale); or an
        expression, see `numerics.expressions`.
    columns : tuple of str
        The columns it uses.
    """

    text: str
    kind: TermKind
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Formula:
    """A parsed formula: one response and one or more predictors."""

    response: Term
    predictors: tuple[Term, ...]


def parse_formula(text: str) -> Formula:
    """Parse `"response ~ predictor + ..."`. Reads no data.

    Raises
    ------
    InvalidArgument
        When it is not of that form; uses operators of R's formulas that mean more than a sum (`*`, `:`,
        `-`, `^`, `.`); calls what would be learned from the data; names a term twice; or has the
        response among the predictors.

    Examples
    --------
    >>> parsed = parse_formula("np.log(wage) ~ age + I(hours / 52)")
    >>> parsed.response.kind, parsed.response.columns
    ('log', ('wage',))
    >>> [term.text for term in parsed.predictors]
    ['age', 'I(hours / 52)']
    """
    if not isinstance(text, str):
        raise InvalidArgument(f"a formula is a text, got {type(text).__name__}; {_EXAMPLE}")
    sides = list(_split(text, "~"))
    if len(sides) != 2 or not all(side.strip() for side in sides):
        raise InvalidArgument(f"{text!r} is not of the form 'response ~ predictors' with one '~'; {_EXAMPLE}")
    response = _term(sides[0], text, arithmetic=True)
    predictors = tuple(_term(part, text) for part in _split(sides[1], "+"))
    twice = sorted({t.text for t in predictors if [p.text for p in predictors].count(t.text) > 1})
    if twice:
        raise InvalidArgument(f"{text!r} has the term {twice[0]!r} twice")
    shared = sorted({c for t in predictors for c in t.columns if c in response.columns})
    if shared:
        raise InvalidArgument(
            f"{text!r}: the response is made of {shared}, which is among the predictors as well; a column "
            "cannot explain itself"
        )
    return Formula(response, predictors)


def _term(part: str, formula: str, *, arithmetic: bool = False) -> Term:
    """Return a term; the operators of R's formulas mean arithmetic in the response only."""
    text = part.strip()
    if not arithmetic:
        _check_operators(text, formula)
    for name in _CALLED.findall(_QUOTED.sub("``", text)):
        _check_function(name, formula)
    plain = _COLUMN.fullmatch(text)
    if plain:
        name = plain.group(1).strip("`")
        return Term(name, "column", (name,))
    logarithm = _LOG.fullmatch(text)
    if logarithm:
        name = logarithm.group(1).strip("`")
        return Term(text, "log", (name,))
    return Term(text, "expression", parse_expression(text).columns)


def _check_operators(text: str, formula: str) -> None:
    """Refuse what R's formulas give another meaning than arithmetic."""
    if not text:
        raise InvalidArgument(f"{formula!r} has an empty term beside a '+'; {_EXAMPLE}")
    if text == ".":
        raise InvalidArgument(f"{formula!r}: '.' (all other columns) is not offered; name the columns")
    if re.fullmatch(r"-?\s*\d+(\.\d*)?", text) or re.search(r"-\s*1\s*$", _outside(text)):
        raise InvalidArgument(
            f"{formula!r}: a modal regression has no intercept to add or to drop; leave 1, 0 and - 1 out"
        )
    outer = _outside(text)
    for sign, meaning in (
        (":", "an interaction"),
        ("*", "main effects with their interaction"),
        ("^", "interactions up to a degree"),
        ("/", "nesting"),
        ("%", "nesting"),
        ("|", "grouping"),
        ("-", "leaving a term out"),
    ):
        if sign in outer:
            raise InvalidArgument(
                f"{formula!r}: outside of brackets {sign!r} means {meaning} in a formula; the joint density "
                f"has every interaction already. For arithmetic write I({text})"
            )


def _check_function(name: str, formula: str) -> None:
    if name in _CATEGORIES:
        raise InvalidArgument(
            f"{formula!r}: {name}() learns its levels from the data; give the column as by= and its public "
            "levels as levels="
        )
    if name in _LEARNED:
        raise InvalidArgument(
            f"{formula!r}: {name}() is learned from the data (its value for a row depends on other rows), "
            "so that it would need budget of its own; use row-wise transforms such as log, sqrt and I(x / 10)"
        )


def _split(text: str, sign: str) -> Iterator[str]:
    """Yield the parts of a text between signs that are outside of brackets and back quotes."""
    depth, quoted, start = 0, False, 0
    for i, letter in enumerate(text):
        if letter == "`":
            quoted = not quoted
        elif not quoted and letter in "([{":
            depth += 1
        elif not quoted and letter in ")]}":
            depth -= 1
        elif not quoted and depth == 0 and letter == sign:
            yield text[start:i]
            start = i + 1
    yield text[start:]


def _outside(text: str) -> str:
    """Return what of a text is outside of brackets and back quotes."""
    out, depth, quoted = [], 0, False
    for letter in text:
        if letter == "`":
            quoted = not quoted
        elif not quoted and letter in "([{":
            depth += 1
        elif not quoted and letter in ")]}":
            depth -= 1
        elif not quoted and depth == 0:
            out.append(letter)
    return "".join(out)
