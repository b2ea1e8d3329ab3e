"""Numbers, dates and durations as text, with the digits that their standard error supports."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .coordinates import Kind

MISSING = "--"

# Seconds per unit, largest first.
TIME_UNITS: tuple[tuple[str, float], ...] = (
    ("d", 86400.0),
    ("h", 3600.0),
    ("min", 60.0),
    ("s", 1.0),
    ("ms", 1e-3),
)
# A date is shown to the day, minute, ... when its error is at least this many seconds.
_DATE_STEPS: tuple[tuple[float, str, int], ...] = (
    (43200.0, "D", 86_400_000_000),
    (30.0, "m", 60_000_000),
    (0.5, "s", 1_000_000),
    (5e-4, "ms", 1000),
    (0.0, "us", 1),
)
_MICROSECONDS_LIMIT = 9.2e18


class ValueText(Protocol):
    """How one coordinate's values, and their errors, are shown."""

    def value(self, number: float) -> str:
        """Return a value as text."""
        ...

    def error(self, number: float) -> str:
        """Return a standard error as text."""
        ...


@dataclass(frozen=True)
class NumberText:
    """Numbers with a fixed number of decimals, divided by `unit` and followed by `suffix`.

    Parameters
    ----------
    decimals : int
        Digits after the point.
    scientific : bool
        Whether to use powers of ten: very large or very small scales only.
    unit, suffix
        For durations: seconds per unit, and its name.
    """

    decimals: int
    scientific: bool = False
    unit: float = 1.0
    suffix: str = ""

    def value(self, number: float) -> str:
        """Return a value as text."""
        if math.isnan(number):
            return MISSING
        scaled = number / self.unit
        if math.isinf(scaled):
            return "inf" if scaled > 0 else "-inf"
        text = f"{scaled:.{self.decimals}{'e' if self.scientific else 'f'}}"
        if float(text) == 0:
            text = text.removeprefix("-")
        return f"{text} {self.suffix}" if self.suffix else text

    def error(self, number: float) -> str:
        """Return a standard error as text; one that would be rounded to zero is shown as a bound."""
        if self.scientific and math.isfinite(number):
            return f"{number / self.unit:.1e}"
        smallest = 10.0**-self.decimals
        if 0 < number / self.unit < smallest / 2:
            return f"<{self.value(smallest * self.unit)}"
        return self.value(number)


@dataclass(frozen=True)
class DateText:
    """Dates (given as seconds since 1970) to a sensible unit, errors as durations."""

    unit: str
    microseconds: int
    errors: NumberText

    def value(self, number: float) -> str:
        """Return a date as text."""
        micro = number * 1e6
        if math.isnan(micro) or abs(micro) > _MICROSECONDS_LIMIT:
            return MISSING
        ticks = round(micro / self.microseconds) * self.microseconds
        # Round first: the cast to a coarser unit would cut.
        return str(np.datetime64(ticks, "us").astype(f"datetime64[{self.unit}]")).replace("T", " ")

    def error(self, number: float) -> str:
        """Return a standard error as text."""
        return self.errors.error(number)


def number_text(error: float, size: float) -> NumberText:
    """Return the format for numbers up to `size` known to within `error`: two digits of the error."""
    if not (math.isfinite(error) and error > 0):
        error = abs(size) * 1e-4 if size else 1.0
    if size >= 1e12 or error < 1e-8:
        digits = 1 if size == 0 else math.ceil(math.log10(max(size / error, 10.0)))
        return NumberText(decimals=min(digits + 1, 15), scientific=True)
    return NumberText(decimals=min(max(1 - math.floor(math.log10(error)), 0), 10))


def time_unit(size: float) -> tuple[str, float]:
    """Return the largest unit of time (name, seconds) that is at most `size` seconds."""
    return next(((name, unit) for name, unit in TIME_UNITS if size >= unit), TIME_UNITS[-1])


def duration_text(error: float, size: float) -> NumberText:
    """Return the format for durations up to `size` seconds known to within `error` seconds."""
    name, unit = time_unit(size)
    plain = number_text(error / unit, size / unit)
    return NumberText(plain.decimals, plain.scientific, unit, name)


def date_text(error: float) -> DateText:
    """Return the format for dates known to within `error` seconds."""
    if not (math.isfinite(error) and error > 0):
        error = 86400.0
    unit, microseconds = next((unit, micro) for least, unit, micro in _DATE_STEPS if error >= least)
    return DateText(unit, microseconds, duration_text(error, error))


def value_text(kind: Kind, errors: Iterable[float], values: Iterable[float], fallback: float) -> ValueText:
    """Return the format that suits a coordinate: the smallest error decides the digits.

    Parameters
    ----------
    kind : {"number", "datetime", "timedelta"}
        What the numbers are.
    errors, values : iterables of float
        All that is to be shown with this format; not-finite entries are passed over.
    fallback : float
        Error to assume where none is known.
    """
    finite = [e for e in errors if math.isfinite(e) and e > 0]
    error = min(finite, default=fallback)
    size = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    if kind == "datetime":
        return date_text(error)
    if kind == "timedelta":
        return duration_text(error, max(size, error))
    return number_text(error, size)


def plain(number: float, digits: int = 10) -> str:
    """Return a number the user gave, with no digit lost up to `digits` and no needless zeros."""
    if math.isnan(number):
        return MISSING
    if number.is_integer() and abs(number) < 10.0**digits:
        return str(int(number))
    return f"{number:.{digits}g}"


def cost_text(number: float) -> str:
    """Return an epsilon or delta: as the user typed it, or, where it was computed, with four digits."""
    return plain(number) if math.isnan(number) or float(f"{number:.6g}") == number else f"{number:.4g}"


def span_text(seconds: float, digits: int = 4) -> str:
    """Return a span of time in its largest fitting unit, such as "19.2 h"."""
    name, unit = time_unit(abs(seconds))
    return f"{plain(seconds / unit, digits)} {name}"


def spread_text(kind: Kind, spread: float, digits: int = 4) -> str:
    """Return a width, an error or a distance along a coordinate: of dates and durations a span of time."""
    return f"{spread:.{digits}g}" if kind == "number" else span_text(spread, digits)


def limits_text(kind: Kind, low: float, high: float) -> list[str]:
    """Return the two ends of a public range as text, with no digit lost."""
    if kind == "number":
        return [plain(low), plain(high)]
    if kind == "timedelta":
        return [span_text(low) if low else f"0 {time_unit(abs(high))[0]}", span_text(high)]
    step = next(
        (least for least, _, micro in _DATE_STEPS if low * 1e6 % micro == high * 1e6 % micro == 0), 1e-6
    )
    dates = date_text(max(step, 1e-6))
    return [dates.value(low), dates.value(high)]


def shorten(name: str, width: int) -> str:
    """Cut the middle out of a name longer than `width` characters."""
    if len(name) <= width:
        return name
    tail = (width - 2) // 2
    return f"{name[: width - 2 - tail]}..{name[-tail:]}"
