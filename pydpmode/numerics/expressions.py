"""Arithmetic of columns, row by row: parsed once, evaluated on arrays and on intervals.

An expression is made of column names, numbers, `+ - * / **`, brackets and a few functions. It knows nothing
of other rows, so a record's value depends on that record alone: a transform of private rows that needs no
budget. Interval arithmetic (Moore 1966) gives the range that public bounds allow.

Names that are not Python's go between back quotes: `` `wage last year` / 1000 ``.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import InvalidArgument
from .surfaces import FloatArray

Interval = tuple[float, float]

_QUOTED = re.compile(r"`([^`]+)`")
_HIDDEN = "_quoted_{}_"
# Increasing functions, with the lower end of where they are finite.
_FUNCTIONS: dict[str, tuple[Callable[[FloatArray], FloatArray], float, bool]] = {
    "log": (np.log, 0.0, True),
    "log2": (np.log2, 0.0, True),
    "log10": (np.log10, 0.0, True),
    "log1p": (np.log1p, -1.0, True),
    "sqrt": (np.sqrt, 0.0, False),
    "exp": (np.exp, -math.inf, False),
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
}
# Numbers that an expression may hold, and its length: beyond, it is no formula of a person.
_LONGEST = 100_000


@dataclass(frozen=True, eq=False)
class Expression:
    """A parsed expression of columns.

    Parameters
    ----------
    text : str
        As given.
    columns : tuple of str
        The columns it uses, in order of appearance, once each.
    """

    text: str
    columns: tuple[str, ...]
    _tree: ast.expr
    _names: Mapping[str, str]

    def evaluate(self, values: Mapping[str, FloatArray]) -> FloatArray:
        """Return the value of each row, (b,); NaN where a column that is used is NaN.

        Parameters
        ----------
        values : mapping of str to (b,) array
            The columns. Outside of what the functions are defined on the result is NaN or infinite.
        """
        with np.errstate(all="ignore"):
            return np.asarray(self._value(self._tree, values), dtype=np.float64)

    def interval(self, bounds: Mapping[str, Interval]) -> Interval:
        """Return the range of values that bounds of the columns allow, widened by rounding.

        Raises
        ------
        InvalidArgument
            When the expression is not finite everywhere inside the bounds, or constant.
        """
        try:
            low, high = self._range(self._tree, bounds)
        except RecursionError as problem:
            raise InvalidArgument("the expression is nested too deeply") from problem
        if not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidArgument(f"{self.text}: too large inside the bounds {self._stated(bounds)}")
        # Rounding has widened what is constant by a few units in the last place.
        if high - low <= max(1e-12 * max(abs(low), abs(high)), 1e-300):
            raise InvalidArgument(f"{self.text} is constant; it must depend on a column")
        return low, high

    def _stated(self, bounds: Mapping[str, Interval]) -> str:
        return ", ".join(f"{c}: ({bounds[c][0]:g}, {bounds[c][1]:g})" for c in self.columns)

    def _value(self, node: ast.expr, values: Mapping[str, FloatArray]) -> FloatArray | float:
        if isinstance(node, ast.Constant):
            return _number(node)
        if isinstance(node, ast.Name):
            return values[self._names.get(node.id, node.id)]
        if isinstance(node, ast.UnaryOp):
            inner = self._value(node.operand, values)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp):
            left, right = self._value(node.left, values), self._value(node.right, values)
            return _combine(_OPERATORS[type(node.op)], left, right)
        name, argument = _call(node)
        inner = np.asarray(self._value(argument, values), dtype=np.float64)
        if name == "I":
            return inner
        return np.abs(inner) if name == "abs" else _FUNCTIONS[name][0](inner)

    def _range(self, node: ast.expr, bounds: Mapping[str, Interval]) -> Interval:
        if isinstance(node, ast.Constant):
            return _number(node), _number(node)
        if isinstance(node, ast.Name):
            return bounds[self._names.get(node.id, node.id)]
        if isinstance(node, ast.UnaryOp):
            low, high = self._range(node.operand, bounds)
            return (-high, -low) if isinstance(node.op, ast.USub) else (low, high)
        if isinstance(node, ast.BinOp):
            return self._binary_range(node, bounds)
        name, argument = _call(node)
        low, high = self._range(argument, bounds)
        if name == "I":
            return low, high
        if name == "abs":
            return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
        function, edge, is_open = _FUNCTIONS[name]
        if low < edge or (is_open and low == edge):
            raise InvalidArgument(
                f"{name}() in {self.text!r} needs values {'above' if is_open else 'of at least'} {edge:g}, "
                f"but the bounds {self._stated(bounds)} allow {low:g}; give bounds that do not"
            )
        with np.errstate(all="ignore"):
            ends = function(np.array([low, high]))
        return _outward(float(ends[0]), float(ends[1]))

    def _binary_range(self, node: ast.BinOp, bounds: Mapping[str, Interval]) -> Interval:
        sign = _OPERATORS[type(node.op)]
        left, right = self._range(node.left, bounds), self._range(node.right, bounds)
        if sign == "/" and right[0] <= 0 <= right[1]:
            raise InvalidArgument(
                f"{self.text!r} divides by something that the bounds {self._stated(bounds)} allow to be 0"
            )
        if sign == "**":
            return self._power_range(left, right, bounds)
        with np.errstate(all="ignore"):
            corners = [float(_combine(sign, np.array(a), np.array(b))) for a in left for b in right]
        return _outward(min(corners), max(corners))

    def _power_range(self, base: Interval, power: Interval, bounds: Mapping[str, Interval]) -> Interval:
        k = power[0]
        if power[0] != power[1]:
            raise InvalidArgument(f"{self.text!r}: a power must be a number, such as wage**2")
        whole = float(k).is_integer()
        if (base[0] < 0 and not whole) or (k < 0 and base[0] <= 0 <= base[1]):
            raise InvalidArgument(
                f"{self.text!r}: the power {k:g} is not defined for all that the bounds "
                f"{self._stated(bounds)} allow"
            )
        with np.errstate(all="ignore"):
            ends = [float(np.float64(end) ** k) for end in base]
        # An even power turns at zero.
        if whole and k > 0 and k % 2 == 0 and base[0] <= 0 <= base[1]:
            ends.append(0.0)
        return _outward(min(ends), max(ends))


@lru_cache(maxsize=512)
def parse_expression(text: str) -> Expression:
    """Parse an expression of columns.

    Raises
    ------
    InvalidArgument
        On anything but names, numbers, `+ - * / **`, brackets and the functions log, log2, log10, log1p,
        sqrt, exp, abs and I, or when no column is used.
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise InvalidArgument(f"an expression must be a text of at most {_LONGEST} characters")
    hidden: dict[str, str] = {}

    def hide(match: re.Match[str]) -> str:
        name = _HIDDEN.format(len(hidden))
        hidden[name] = match.group(1)
        return name

    source = _QUOTED.sub(hide, text.strip())
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise InvalidArgument(
            f"{text!r} is not an expression of columns; names with spaces, dots or signs, and words of "
            "Python such as lambda, go between back quotes: `wage last year`"
        ) from problem
    columns: list[str] = []
    try:
        _check(tree, text, hidden, columns)
    except RecursionError as problem:
        raise InvalidArgument("the expression is nested too deeply") from problem
    if not columns:
        raise InvalidArgument(f"{text!r} uses no column")
    return Expression(text, tuple(dict.fromkeys(columns)), tree, hidden)


def quoted(column: str) -> str:
    """Return a column's name as it must stand in an expression."""
    return column if column.isidentifier() and not keyword.iskeyword(column) else f"`{column}`"


def _check(node: ast.expr, text: str, hidden: Mapping[str, str], columns: list[str]) -> None:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise InvalidArgument(f"{text!r} holds {node.value!r}; numbers and column names are allowed")
    elif isinstance(node, ast.Name):
        columns.append(hidden.get(node.id, node.id))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        _check(node.operand, text, hidden, columns)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left, text, hidden, columns)
        _check(node.right, text, hidden, columns)
    elif isinstance(node, ast.Call):
        name, argument = _call(node)
        if name not in {*_FUNCTIONS, "abs", "I"}:
            raise InvalidArgument(
                f"{name}() is not allowed in {text!r}: a transform must act on each row by itself; "
                f"allowed are {', '.join(sorted([*_FUNCTIONS, 'abs', 'I']))} and + - * / **"
            )
        _check(argument, text, hidden, columns)
    else:
        dotted = _dotted(node, hidden)
        if dotted is not None:
            raise InvalidArgument(
                f"{text!r} has a name with a dot; when {dotted} is a column, write it between back quotes: "
                f"`{dotted}`"
            )
        raise InvalidArgument(
            f"{text!r} is not arithmetic of columns: allowed are names, numbers, + - * / **, brackets and "
            f"{', '.join(sorted([*_FUNCTIONS, 'abs', 'I']))}"
        )


def _dotted(node: ast.expr, hidden: Mapping[str, str]) -> str | None:
    """Return `lab.value` where names are joined by dots alone, None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not parts or not isinstance(node, ast.Name) or node.id in hidden:
        return None
    return ".".join([node.id, *reversed(parts)])


def _call(node: ast.expr) -> tuple[str, ast.expr]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        raise InvalidArgument("an expression may call functions by their names only")
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    if isinstance(node.func, ast.Attribute) and not (
        isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "numpy")
    ):
        raise InvalidArgument("an expression may call functions by their names only")
    if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
        raise InvalidArgument(f"{name}() takes one argument, an expression of columns, and nothing else")
    return name, node.args[0]


def _number(node: ast.Constant) -> float:
    value = node.value
    if not isinstance(value, int | float):
        raise InvalidArgument("an expression holds something that is not a number")
    try:
        return float(value)
    except OverflowError as problem:
        raise InvalidArgument("an expression holds a number that is too large") from problem


def _combine(sign: str, left: FloatArray | float, right: FloatArray | float) -> FloatArray:
    a, b = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if sign == "+":
        return np.asarray(a + b)
    if sign == "-":
        return np.asarray(a - b)
    if sign == "*":
        return np.asarray(a * b)
    return np.asarray(a / b) if sign == "/" else np.asarray(a**b)


def _outward(low: float, high: float) -> Interval:
    """Widen an interval by the rounding of one operation."""
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
