"""Hostile formulas: refused in the package's words, or of a value that never leaves the interval stated.

The box of a release follows from the public bounds by interval arithmetic. A value outside of that
interval, or none at all, at columns inside their bounds would be a fault of that arithmetic.
"""

from __future__ import annotations

import itertools
import random

import numpy as np

from pydpmode.errors import PydpmodeError
from pydpmode.formula import Term, parse_formula
from pydpmode.numerics.expressions import parse_expression, quoted

from .cases import FloatArray
from .fuzzing import Tally, attempt

_BOUNDS = {"a": (0.0, 7.0), "b": (0.5, 6.0), "c": (-3.0, 3.0), "d e": (1.0, 1e6)}
_COLUMNS = ("a", "b", "c", "`d e`", "zz", "`", "ü", "a.b", "log", "True", "lambda", "_", "__import__")
_FUNCTIONS = (
    "log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs", "sin", "np.log", "numpy.sqrt",
    "os.system", "scale", "poly", "C", "factor", "eval", "I", "", "a", "max", "log.log",
)  # fmt: skip
_NUMBERS = (
    "1",
    "2",
    "0",
    "0.5",
    "-1",
    "1e308",
    "1e-320",
    "1e999",
    "1j",
    "0x1f",
    "1_0",
    "00",
    "9" * 400,
    "nan",
)
_SIGNS = ("+", "-", "*", "/", "**", "^", "%", "//", "@", ":", "|", "<", "==", " and ", ",", " if a else ")
_DEBRIS = (
    "(",
    ")",
    "[",
    "]",
    "{",
    "~",
    "~~",
    "`",
    "'",
    '"',
    "\\",
    "\n",
    "\x00",
    "#",
    ";",
    "=",
    ":=",
    "…",
    " " * 50,
)


def formula(r: random.Random) -> str:
    """Return a formula: often nearly right, so that it gets far."""
    response = _expression(r, r.choice((0, 0, 1, 2)))
    terms = []
    for _ in range(r.choice((1, 1, 1, 2, 3, 5))):
        inner = _expression(r, r.choice((0, 1, 1, 2, 3)))
        terms.append(f"I({inner})" if r.random() < 0.6 else inner)
    text = f"{response} ~ {' + '.join(terms)}"
    if r.random() < 0.1:
        place = r.randrange(len(text))
        text = text[:place] + r.choice(_DEBRIS) + text[place + r.randrange(2) :]
    if r.random() < 0.002:
        text = "b ~ I(" + "(" * 5000 + "a" + ")" * 5000 + ")"
    return text


def _expression(r: random.Random, depth: int) -> str:
    tame = r.random() < 0.9
    if depth == 0:
        if r.random() < 0.75:
            return r.choice(_COLUMNS[:4] if tame else _COLUMNS)
        return r.choice(_NUMBERS[:4] if tame else _NUMBERS)
    kind = r.random()
    if kind < 0.4:
        return f"{r.choice(_FUNCTIONS[:8] if tame else _FUNCTIONS)}({_expression(r, depth - 1)})"
    if kind < 0.9:
        sign = r.choice(_SIGNS[:5] if tame else _SIGNS)
        return f"({_expression(r, depth - 1)} {sign} {_expression(r, depth - 1)})"
    return f"-{_expression(r, depth - 1)}"


def hold_or_refuse(text: str, r: random.Random) -> bool:
    """Return False when a formula is refused; raise when a value leaves the interval stated for it."""
    try:
        parsed = parse_formula(text)
        for term in (parsed.response, *parsed.predictors):
            _check(term, r)
    except PydpmodeError:
        return False
    return True


def _check(term: Term, r: random.Random) -> None:
    # A plain column or its logarithm is an expression as well, with the same interval.
    plain = quoted(term.columns[0])
    text = {"column": plain, "log": f"log({plain})"}.get(term.kind, term.text)
    parsed = parse_expression(text)
    if set(parsed.columns) - _BOUNDS.keys():
        return
    low, high = parsed.interval(_BOUNDS)
    values = parsed.evaluate(_inside(parsed.columns, r))
    if not np.all((values >= low) & (values <= high)):
        raise RuntimeError(f"{text} leaves its interval ({low}, {high}) inside of the bounds")


def _inside(columns: tuple[str, ...], r: random.Random) -> dict[str, FloatArray]:
    """Return points inside the bounds: all corners, the middle, zero where allowed, and some at random."""
    special = [
        [low, high, (low + high) / 2, np.clip(0.0, low, high)] for low, high in map(_BOUNDS.get, columns)
    ]  # type: ignore[misc]
    drawn = [[r.uniform(*_BOUNDS[name]) for name in columns] for _ in range(64)]
    points = np.array([*itertools.product(*special), *drawn])
    return {name: points[:, i] for i, name in enumerate(columns)}


def fuzz_formulas(inputs: int) -> Tally:
    """Parse formulas and evaluate their terms inside the bounds."""
    tally = Tally("formulas")
    for seed in range(inputs):
        r = random.Random(seed)
        text = formula(r)
        attempt(tally, seed, lambda t=text, r=r: hold_or_refuse(t, r))  # type: ignore[misc]
    return tally
