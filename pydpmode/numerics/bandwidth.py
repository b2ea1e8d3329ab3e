"""Bandwidth rules. None reads a row: public facts, or quartiles that were released privately.

The widest bandwidth of a rule is a share of the box width (or of a released spread) that falls with the
number of records like the best rate for gradients, and more slowly where privacy noise dominates. A ladder
is released at that bandwidth and at narrower ones, and read at the one that shows the most modes
(`scale_choice`), so that a box several times too wide costs little. Constants were set on other
seeds than benchmarks/bandwidth_study.py reports; docs/bandwidth.md has the measured comparison.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from ..errors import InvalidArgument
from .designs import DEFAULT_CUT, DEFAULT_READ_RATIO, MAX_LATTICE_DIMENSION
from .surfaces import FloatArray

# Share of the box width that stands for one standard deviation in the sampling part of the
# reference rule, and in its privacy part.
REFERENCE_SHARE = 0.15
PRIVACY_SHARE = 0.24
# A box usually spans about five standard deviations.
PAPER_SHARE = 0.2
# The same two for the private rule, in units of the spread of the quartiles (interquartile range / 1.349).
SPREAD_SHARE = 0.8
SPREAD_PRIVACY_SHARE = 1.3
_NORMAL_QUARTILES = 1.349
# Quartiles are drawn with about this share of epsilon each (two columns); where n times it is below the
# second number, their error in ranks is as large as the data, and the public rule takes over.
_DRAW_SHARE, _FEWEST_RANKS = 0.06, 20.0
# Narrowest private bandwidth in public ones, by dimension, and widest; and how many times `_MOST_PAIRS`
# frequency pairs the narrowest may need.
_NARROWEST = {1: 1 / 64, 2: 1 / 16, 3: 1 / 3}
_WIDEST = 1.25
_NARROWEST_PAIRS = 3.0
RULES = ("ladder", "reference", "private", "paper")
# Wider than this a bandwidth says nothing about the inside of the box.
_LARGEST_SHARE = 0.25
# A ladder keeps its narrow scales while the release has no more frequency pairs than this, by dimension:
# exact noise takes about 25 microseconds of one processor for a pair. Of more records than the second number
# fewer, like their inverse root: there the widest bandwidth is narrow already, and noise would take
# longer than the sum over the records.
_MOST_PAIRS = {1: 100_000, 2: 12_000, 3: 120_000}
_MANY_RECORDS = 10_000

BandwidthSpec = str | float | Sequence[float] | Mapping[str, float]


@dataclass(frozen=True)
class Ladder:
    """Scales of a release, in units of its widest bandwidth, with the share of the weight of each."""

    scales: tuple[float, ...] = (1.0,)
    masses: tuple[float, ...] = (1.0,)

    def down_to(self, narrowest: float) -> Ladder:
        """Return the ladder without the scales below `narrowest`; the widest stays."""
        kept = [
            (s, m)
            for s, m in zip(self.scales, self.masses, strict=True)
            if s >= narrowest * (1 - 1e-9) or s == 1.0
        ]
        whole = math.fsum(m for _, m in kept)
        return Ladder(tuple(s for s, _ in kept), tuple(m / whole for _, m in kept))


# Fewer scales in more dimensions: a scale of s costs s^-d times the frequencies.
LADDERS = {
    1: Ladder((1.0, 0.5, 0.25, 0.125), (0.4, 0.3, 0.2, 0.1)),
    2: Ladder((1.0, 0.5, 0.25), (0.6, 0.25, 0.15)),
    3: Ladder((1.0, 0.5), (0.6, 0.4)),
}


@dataclass(frozen=True)
class BandwidthChoice:
    """A bandwidth per coordinate and the words that say where it came from.

    Parameters
    ----------
    values : (d,) array
        In the coordinates' units; of a ladder the widest.
    rule : str
        For the summary.
    ladder : Ladder
        One scale for a plain release.
    """

    values: FloatArray
    rule: str
    ladder: Ladder = Ladder()


def choose_bandwidth(
    spec: BandwidthSpec,
    *,
    columns: Sequence[str],
    lower: FloatArray,
    upper: FloatArray,
    n: int | None,
    epsilon: float | None,
    resolution: Mapping[str, float] | None = None,
    quartiles: FloatArray | None = None,
) -> BandwidthChoice:
    """Return the bandwidth of a release. Reads no row.

    Parameters
    ----------
    spec : {"ladder", "reference", "private", "paper"}, float, sequence or mapping
        A rule; or one number for all coordinates; or one per coordinate.
        "reference": `width * max(.15 n^(-1/(d+6)), .24 (n epsilon)^(-1/(d+3)))`, the first the rate
        for gradients, the second where privacy noise dominates. "ladder": the same as the widest of several
        bandwidths, down to an eighth, a quarter or a half of it in 1, 2 or 3 dimensions ("reference" in 4 and
        more). "private": a ladder whose widest bandwidth is in proportion to the spread of privately
        released quartiles, for bounds that are many times too wide. "paper": the rates of Bhattacharjee &
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
    quartiles : (d, 2) array, optional
        For "private": released lower and upper quartile per coordinate. None gives the narrowest
        bandwidths that the rule may choose.

    Raises
    ------
    InvalidArgument
        On an unknown rule, a bandwidth that is not finite and > 0, or one that does not fit the columns.
    """
    widths = upper - lower
    if not isinstance(spec, str):
        values = _explicit(spec, columns)
        if np.any(values > widths):
            raise InvalidArgument(
                "a bandwidth above the width of its box shows nothing of the inside: "
                f"got {values.tolist()} for widths {widths.tolist()} of {list(columns)} "
                "(dates and durations are in seconds)"
            )
        return BandwidthChoice(values, "given by the user")
    check_bandwidth(spec)
    if n is None:
        raise InvalidArgument(f"bandwidth={spec!r} needs the public number of records")
    d, count = len(columns), max(n, 2)
    floor = _resolution(resolution, columns)
    if spec == "private":
        values = _private(widths, count, epsilon, quartiles)
        source = "quartiles"
    else:
        values = widths * _rate("paper" if spec == "paper" else "reference", count, d, epsilon)
        source = "public"
    words = f"{spec} ({source})"
    if np.any(floor > values):
        words += ", raised to the resolution"
    values = np.maximum(values, floor)
    ladder = Ladder()
    if spec in ("ladder", "private") and d <= MAX_LATTICE_DIMENSION:
        ladder = _affordable(LADDERS[d], widths / values, count).down_to(float(np.max(floor / values)))
    return BandwidthChoice(values, words, ladder)


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
    return min(share, _LARGEST_SHARE)


def _private(widths: FloatArray, n: int, epsilon: float | None, quartiles: FloatArray | None) -> FloatArray:
    """Return bandwidths in proportion to the spread of released quartiles, within limits around public ones.

    `spread * max(.8 (4/(d+4))^(1/(d+6)) n^(-1/(d+6)), 1.3 (n epsilon)^(-1/(d+3)))`, the first the normal
    reference rule for gradients a little narrowed, since the spread of several modes together is more than
    that of one. Where n epsilon is so small that quartiles are noise, the public rule gradually takes over.
    """
    d = widths.size
    public = widths * _rate("reference", n, d, epsilon)
    narrowest = _narrowest(widths / public)
    if quartiles is None:
        return public * narrowest
    spread = np.maximum(quartiles[:, 1] - quartiles[:, 0], 0.0) / _NORMAL_QUARTILES
    rate = SPREAD_SHARE * (4 / (d + 4)) ** (1 / (d + 6)) * n ** (-1 / (d + 6))
    trust = 1.0
    if epsilon is not None:
        rate = max(rate, SPREAD_PRIVACY_SHARE * (n * epsilon) ** (-1 / (d + 3)))
        ranks = n * epsilon * _DRAW_SHARE * math.sqrt(2 / d)
        trust = 1 / (1 + (_FEWEST_RANKS / ranks) ** 2)
    own = np.clip(spread * rate, narrowest * public, _WIDEST * public)
    return np.asarray(public * (own / public) ** trust)


def _narrowest(widths: FloatArray) -> float:
    """Return the narrowest private bandwidth in public ones, for a box of so many public ones."""
    d = widths.size
    narrowest = _NARROWEST.get(d, 1.0)
    while narrowest < 1 and _pairs(widths / narrowest, Ladder()) > _NARROWEST_PAIRS * _MOST_PAIRS[d]:
        narrowest = min(1.0, 1.1 * narrowest)
    return narrowest


def _affordable(ladder: Ladder, widths: FloatArray, n: int) -> Ladder:
    """Return the ladder without narrow scales that would need too many frequencies."""
    most = _MOST_PAIRS[widths.size] * min(1.0, math.sqrt(_MANY_RECORDS / n))
    while len(ladder.scales) > 1 and _pairs(widths, ladder) > most:
        ladder = ladder.down_to(sorted(ladder.scales)[1])
    return ladder


def _pairs(widths: FloatArray, ladder: Ladder) -> float:
    """Return about how many frequency pairs a release has whose box is so many bandwidths wide."""
    d = widths.size
    ball = math.pi ** (d / 2) / math.gamma(d / 2 + 1) / 2**d
    sides = widths + 6 * DEFAULT_READ_RATIO
    return 0.5 * float(ball) * float(np.prod(DEFAULT_CUT / min(ladder.scales) * sides / math.pi))


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
