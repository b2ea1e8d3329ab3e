"""Marks of logarithmic axes: round values of the column, no more than there is room for."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from ..numerics.surfaces import FloatArray
from .number_text import plain

# Width of a label such as "100,000", with a gap.
_LABEL_INCHES = 0.6


def log_ticks(low: float, high: float, least_gap: float = 0.06) -> FloatArray:
    """Return round values of exp(x) to mark for x from `low` to `high`.

    Parameters
    ----------
    low, high : float
        Ends of the axis, as natural logarithms.
    least_gap : float
        Smallest distance between marks, as a share of the axis.
    """
    decades = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    for steps in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        marks = _inside(np.array([step * 10.0**k for k in decades for step in steps]), low, high)
        gaps = np.diff(np.log(marks)) / (high - low)
        if gaps.size == 0 or gaps.min() >= least_gap:
            break
    else:
        marks = marks[:: math.ceil(least_gap / float(gaps.min()))]
    if len(marks) >= 3 or (len(marks) == 2 and high - low > math.log(10)):
        return marks
    # Less than a decade: evenly spaced values read better.
    locator = import_module("matplotlib.ticker").MaxNLocator(max(min(int(1 / least_gap), 5), 1))
    return _inside(np.asarray(locator.tick_values(math.exp(low), math.exp(high))), low, high)


def _inside(values: FloatArray, low: float, high: float) -> FloatArray:
    slack = 1e-9 * (high - low)
    values = values[values > 0]
    return np.asarray(values[(np.log(values) >= low - slack) & (np.log(values) <= high + slack)])


def set_log_ticks(axis: Any, low: float, high: float) -> None:
    """Mark round values of exp(x) on an axis of x from `low` to `high`, as many as there is room for."""
    values = log_ticks(low, high, _label_share(axis) if axis.axis_name == "x" else 0.06)
    texts = [f"{v:,.0f}" if v.is_integer() and 1e3 <= v < 1e7 else plain(v, 4) for v in values.tolist()]
    axis.set_ticks(np.log(values), labels=texts)


def _label_share(axis: Any) -> float:
    """Return the share of a horizontal axis that one label takes."""
    ax = axis.axes
    width = float(ax.get_position().width * ax.figure.get_figwidth())
    return min(max(_LABEL_INCHES / width, 0.15), 0.5)
