"""Round values inside a range: where a table shows a curve."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..numerics.surfaces import FloatArray
from .coordinates import Coordinate
from .number_text import limits_text, plain, span_text, time_unit

_LEADING = (1.0, 2.0, 2.5, 5.0)
_LOG_LEADING = (1.0, 2.0, 5.0)
_ROUNDING = 12
# Calendar units, finest first: seconds in one, and how many of them make a step.
_CALENDAR: tuple[tuple[str, float, tuple[int, ...]], ...] = (
    ("s", 1.0, (1, 2, 5, 10, 15, 30)),
    ("m", 60.0, (1, 2, 5, 10, 15, 30)),
    ("h", 3600.0, (1, 2, 3, 6, 12)),
    ("D", 86400.0, (1, 2, 5, 10)),
    ("M", 2_629_746.0, (1, 2, 3, 6)),
    ("Y", 31_556_952.0, (1, 2, 5, 10, 20, 50, 100)),
)
# The finer unit starts anew with each of these.
_WITHIN = {"D": "M", "M": "Y", "h": "D", "m": "h", "s": "m"}


def clean_values(coordinate: Coordinate, low: float, high: float, count: int) -> FloatArray:
    """Return about `count` round values strictly between two ends.

    Parameters
    ----------
    coordinate : Coordinate
        Values are round on the original column's scale: whole months for dates, 1, 2, 5, 10 for logarithms.
    low, high : float
        The ends, in the coordinate's units.
    count : int
        How many are wanted.

    Returns
    -------
    (m,) array
        In the coordinate's units, ascending; the middle alone where no round value lies inside.
    """
    if coordinate.kind == "datetime":
        found = _dates(low, high, count)
    elif coordinate.kind == "timedelta":
        unit = time_unit((high - low) / 2)[1]
        found = _linear(low / unit, high / unit, count) * unit
    elif coordinate.transform == "log":
        found = np.log(_logarithmic(math.exp(low), math.exp(high), count))
    else:
        found = _linear(low, high, count)
    return found if found.size else np.array([(low + high) / 2])


def clean_text(coordinate: Coordinate, value: float) -> str:
    """Return a round value as text, on the original column's scale, with no needless digit."""
    shown = float(coordinate.back_number(np.array([value]))[0])
    if coordinate.kind == "datetime":
        return limits_text("datetime", shown, shown)[0]
    return span_text(shown) if coordinate.kind == "timedelta" and shown else plain(shown)


def _nearest(candidates: Iterator[FloatArray], count: int) -> FloatArray:
    """Return the series whose length is nearest to `count`; of two the longer."""
    return min(candidates, key=lambda found: (abs(found.size - count), -found.size), default=np.empty(0))


def _multiples(step: float, low: float, high: float) -> FloatArray:
    first, last = math.floor(low / step) + 1, math.ceil(high / step) - 1
    # Rounded, so that 3 * 0.1 is 0.3.
    digits = _ROUNDING - math.ceil(math.log10(max(abs(low), abs(high), step)))
    return np.round(np.arange(first, last + 1) * step, digits)


def _linear(low: float, high: float, count: int) -> FloatArray:
    power = math.floor(math.log10((high - low) / count))
    steps = (lead * 10.0**p for p in (power - 1, power, power + 1) for lead in _LEADING)
    return _nearest((_multiples(step, low, high) for step in steps), count)


def _logarithmic(low: float, high: float, count: int) -> FloatArray:
    powers = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    decades = 10.0**powers
    series = [np.sort(np.outer(_LOG_LEADING, decades).ravel())]
    series += [10.0 ** powers[powers % every == 0] for every in (1, 2, 3, 5)]
    inside = [found[(found > low) & (found < high)] for found in series]
    return _nearest(iter([*inside, _linear(low, high, count)] if high < 20 * low else iter(inside)), count)


def _dates(low: float, high: float, count: int) -> FloatArray:
    return _nearest(_calendars(low, high, count), count)


def _calendars(low: float, high: float, count: int) -> Iterator[FloatArray]:
    for unit, seconds, multiples in _CALENDAR:
        if (high - low) / seconds > 400 * count:
            continue
        ends = np.array([low, high]).astype("datetime64[s]").astype(f"datetime64[{unit}]")
        first, last = ends.astype(np.int64).tolist()
        every = np.arange(first, last + 2).astype(ends.dtype)
        # Days are counted within their month, hours within their day; years from 0.
        start = every.astype(f"datetime64[{_WITHIN[unit]}]") if unit in _WITHIN else np.datetime64("0000")
        position = (every - start).astype(np.int64)
        at = every.astype("datetime64[s]").astype(np.float64)
        # No step that leaves a stub at the end of a month: days 1, 11, 21 and not 31.
        whole = position < 30 if unit == "D" else np.ones(at.size, dtype=bool)
        for multiple in multiples:
            yield at[(position % multiple == 0) & (whole | (multiple == 1)) & (at > low) & (at < high)]
