"""Durations in seconds: what a bandwidth, a resolution or a spread of a date column is measured in."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InvalidArgument


def in_seconds(value: Any) -> Any:
    """Return durations in `value` as seconds; numbers, and anything else, as they are.

    Parameters
    ----------
    value : number, duration, text, or a mapping or sequence of them
        Durations are `datetime.timedelta`, `pandas.Timedelta`, `numpy.timedelta64`; inside a mapping also
        texts such as "60 days".

    Raises
    ------
    InvalidArgument
        When a text inside a mapping is no duration.
    """
    if isinstance(value, Mapping):
        return {name: _one(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_one(item) if not isinstance(item, str) else item for item in value]
    return value if isinstance(value, str) else _one(value)


def _one(value: Any) -> Any:
    if isinstance(value, datetime.timedelta | np.timedelta64):
        return pd.Timedelta(value).total_seconds()
    if isinstance(value, str):
        try:
            return pd.Timedelta(value).total_seconds()
        except ValueError:
            raise InvalidArgument(f"{value!r} is neither a number nor a duration such as '60 days'") from None
    return value
