"""Bandwidth rules that need no private row: public box, public n, dimension, epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from ..errors import InvalidArgument
from .surfaces import FloatArray

# Share of the box width that stands for one standard deviation in the sampling part of the
# reference rule, and in its privacy part.
REFERENCE_SHARE = 0.15
PRIVACY_SHARE = 0.24
# A box usually spans about five standard deviations.
PAPER_SHARE = 0.2
RULES = ("reference", "paper")

BandwidthSpec = str | float | Sequence[float] | Mapping[str, float]


@dataclass(frozen=True)
class BandwidthChoice:
    """A bandwidth per coordinate and the words that say where it came from.

    Parameters
    ----------
    values : (d,) array
        In the coordinates' units.
    rule : str
        For the summary.
    """

    values: FloatArray
    rule: str


def choose_bandwidth(
    spec: BandwidthSpec,
    *,
    columns: Sequence[str],
    lower: FloatArray,
    upper: FloatArray,
    n: int | None,
    epsilon: float | None,
    resolution: Mapping[str, float] | None = None,
) -> BandwidthChoice:
    """Return the bandwidth of a release. Reads no row.

    Parameters
    ----------
    spec : {"reference", "paper"}, float, sequence or mapping
        A rule; or one number for all coordinates; or one per coordinate.
        "reference": `width * max(.15 n^(-1/(d+6)), .24 (n epsilon)^(-1/(d+3)))`, the first the rate
        for gradients, the second where privacy noise dominates. "paper": the rates of Bhattacharjee &
        Auddy with smoothness 3, `width/5 * max((log n/n)^(1/(d+6)), (n epsilon)^(-1/(d+3)))`.
    columns : sequence of str
    lower, upper : (d,) arrays
        The public box.
    n : int or None
        Public number of records (a guess where it is private). Needed by the rules.
    epsilon : float or None
        Of the release; None for a surface without noise.
    resolution : mapping of str to float, optional
        Public recording step per column (1 for ages in whole years): a floor for the rules, since
        below it heaping makes false modes.

    Raises
    ------
    InvalidArgument
        On an unknown rule, a bandwidth that is not finite and > 0, or one that does not fit the columns.
    """
    widths = upper - lower
    d = len(columns)
    if isinstance(spec, str):
        if spec not in RULES:
            raise InvalidArgument(
                f"bandwidth must be one of {list(RULES)}, a number or one per column, got {spec!r}"
            )
        if n is None:
            raise InvalidArgument(f"bandwidth={spec!r} needs the public number of records")
        values = widths * _rate(spec, max(n, 2), d, epsilon)
        floor = _resolution(resolution, columns)
        words = f"{spec} (public)"
        if np.any(floor > values):
            words += ", raised to the resolution"
        return BandwidthChoice(np.maximum(values, floor), words)
    values = _explicit(spec, columns)
    if np.any(values > widths):
        raise InvalidArgument(
            f"a bandwidth above the width of its box shows nothing of the inside: got {values.tolist()} for "
            f"widths {widths.tolist()} of {list(columns)} (dates and durations are in seconds)"
        )
    return BandwidthChoice(values, "given by the user")


def check_bandwidth(spec: BandwidthSpec) -> BandwidthSpec:
    """Return `spec` when it can be a bandwidth for some columns, or raise `InvalidArgument`.

    What needs the columns and the box is checked by `choose_bandwidth`.
    """
    if isinstance(spec, str):
        if spec not in RULES:
            raise InvalidArgument(
                f"bandwidth must be one of {list(RULES)}, a number or one per column, got {spec!r}"
            )
        return spec
    if isinstance(spec, Mapping):
        _explicit(list(spec.values()), [str(c) for c in spec])
    elif isinstance(spec, Sequence | np.ndarray):
        _explicit(np.asarray(spec).tolist(), [f"column {i + 1}" for i in range(len(spec))])
    else:
        _explicit(spec, ["the column"])
    return spec


def _rate(rule: str, n: int, d: int, epsilon: float | None) -> float:
    private = 0.0 if epsilon is None else float((n * epsilon) ** (-1 / (d + 3)))
    if rule == "paper":
        share = PAPER_SHARE * max(float((math.log(n) / n) ** (1 / (d + 6))), private)
    else:
        share = max(REFERENCE_SHARE * float(n ** (-1 / (d + 6))), PRIVACY_SHARE * private)
    # Wider than this a bandwidth says nothing about the inside of the box.
    return min(share, 0.25)


def _explicit(spec: float | Sequence[float] | Mapping[str, float], columns: Sequence[str]) -> FloatArray:
    if isinstance(spec, Mapping):
        if set(spec) != set(columns):
            raise InvalidArgument(
                f"bandwidth names {sorted(map(str, spec))}, the columns are {list(columns)}"
            )
        numbers = [spec[c] for c in columns]
    elif isinstance(spec, Real) and not isinstance(spec, bool):
        numbers = [float(spec)] * len(columns)
    elif isinstance(spec, Sequence | np.ndarray) and len(spec) == len(columns):
        numbers = list(spec)
    else:
        raise InvalidArgument(
            f"bandwidth must be a rule, one number, or one per column {list(columns)}; got {spec!r}"
        )
    for number in numbers:
        if (
            isinstance(number, bool | np.bool_)
            or not isinstance(number, Real)
            or not (0 < float(number) < math.inf)
        ):
            raise InvalidArgument(
                f"bandwidth must be finite and > 0, got {number!r}; try 0.1 * the box width"
            )
    return np.array([float(number) for number in numbers])


def _resolution(resolution: Mapping[str, float] | None, columns: Sequence[str]) -> FloatArray:
    if resolution is None:
        return np.zeros(len(columns))
    unknown = sorted(str(c) for c in resolution if c not in columns)
    if unknown:
        raise InvalidArgument(f"resolution names {unknown}; the columns are {list(columns)}")
    steps = np.array([float(resolution.get(c, 0.0)) for c in columns])
    if not np.all(np.isfinite(steps) & (steps >= 0)):
        raise InvalidArgument(f"resolution must be finite and >= 0, got {dict(resolution)!r}")
    return steps
