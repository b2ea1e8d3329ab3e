"""How high and how persistent a peak must be to be told from noise.

The noise on a released surface is a stationary Gaussian field of known covariance, so both
thresholds follow from it and from the box alone; neither is tuned on data.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..budget import as_number
from ..errors import InvalidArgument
from .surfaces import FloatArray

# Quantiles (95%) of the largest persistence of any peak but the highest, in standard deviations,
# in a Gaussian field over so many cells; by benchmarks/persistence_quantiles.py, whose table
# with standard errors is benchmarks/results/persistence_quantiles.csv.
_CELLS: dict[int, tuple[float, ...]] = {
    1: (1, 2, 3, 4, 6, 9, 12, 18, 25, 50, 100, 200, 400, 1000, 3000),
    2: (1, 2, 4, 9, 16, 25, 64, 144, 400, 900, 2500, 10000),
    3: (1, 4, 8, 27, 64, 216, 1000, 4096),
}
_QUANTILES: dict[int, tuple[float, ...]] = {
    1: (0.15, 0.67, 1.25, 1.72, 2.40, 2.97, 3.35, 3.84, 4.18, 4.84, 5.40, 5.92, 6.38, 6.92, 7.54),
    2: (0.25, 0.47, 0.98, 1.60, 2.02, 2.32, 2.80, 3.14, 3.47, 3.71, 3.98, 4.28),
    3: (0.35, 0.92, 1.17, 1.76, 2.13, 2.50, 2.88, 3.24),
}

# What persistence must reach whatever the island, in standard deviations: peaks on islands of a few
# cells are so many that the quantiles above, near zero there, say nothing.
LEAST_PERSISTENCE = {1: 1.3, 2: 1.5, 3: 1.6}
# The quantiles are for one region. Times these, the chance of ANY false mode in a flat field, at any peak
# with its own island's size, is 5% when one surface is searched ("only"). In a ladder the widest reading
# has half of that chance and all the narrower ones together the other half. By
# benchmarks/joint_thresholds.py (table in benchmarks/results/joint_thresholds.csv): the largest value over
# box widths, for privacy noise and for sampling noise.
Look = Literal["only", "widest", "narrower"]
_JOINT: dict[int, dict[Look, float]] = {
    1: {"only": 1.06, "widest": 1.16, "narrower": 1.31},
    2: {"only": 1.23, "widest": 1.31, "narrower": 1.40},
    3: {"only": 1.30, "widest": 1.52, "narrower": 1.52},
}
# Share of the rate that the height threshold of each look may spend: up to six are narrower.
_HEIGHT_SHARE: dict[Look, float] = {"only": 1.0, "widest": 0.5, "narrower": 0.08}

_SEARCH_FROM, _SEARCH_TO, _SEARCH_STEP = -10.0, 60.0, 0.05


def expected_euler_characteristic(height: ArrayLike, lengths: ArrayLike) -> FloatArray:
    """Return the expected Euler characteristic of the excursion set of a Gaussian field on a box.

    For a unit-variance stationary field and a high level it is close to the chance that the
    field exceeds the level anywhere in the box (Adler & Taylor 2007, Theorem 11.7.2). All
    Minkowski terms are there: corners, edges, faces and the inside.

    Parameters
    ----------
    height : float or array
        Level in standard deviations.
    lengths : (d,) array
        Sides of the box in correlation lengths of the field (`1/sqrt` of the variance of the
        derivative of the unit-variance field).

    Returns
    -------
    float array
        Shape of `height`.
    """
    u = np.asarray(height, dtype=np.float64)
    sides = _check_lengths(lengths)
    total = 0.5 * np.vectorize(math.erfc, otypes=[np.float64])(u / math.sqrt(2.0))
    minkowski = np.ones(1)
    for side in sides:
        minkowski = np.convolve(minkowski, (1.0, side))
    hermite_before, hermite = np.zeros_like(u), np.ones_like(u)
    density = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    for j, volume in enumerate(minkowski[1:], start=1):
        total = total + volume * (2.0 * math.pi) ** (-j / 2) * hermite * density
        hermite_before, hermite = hermite, u * hermite - (j - 1) * hermite_before
    return np.asarray(total)


def height_threshold(lengths: ArrayLike, false_mode_rate: float = 0.05) -> float:
    """Return the level, in noise standard deviations, that pure noise exceeds at a given rate.

    The highest level at which the expected Euler characteristic equals `false_mode_rate`.

    Parameters
    ----------
    lengths : (d,) array
        Sides of the box in correlation lengths of the noise.
    false_mode_rate : float
        Chance of any false peak over the whole box, inside (0, 1).

    Raises
    ------
    InvalidArgument
        If the rate is not inside (0, 1), or a length is negative or not finite.
    """
    rate = check_rate(false_mode_rate)
    levels = np.arange(_SEARCH_FROM, _SEARCH_TO, _SEARCH_STEP)
    above = expected_euler_characteristic(levels, lengths) >= rate
    last = int(np.flatnonzero(above)[-1]) if above.any() else 0
    low, high = float(levels[last]), float(levels[min(last + 1, levels.size - 1)])
    for _ in range(5):
        levels = np.linspace(low, high, 257)
        above = expected_euler_characteristic(levels, lengths) >= rate
        last = int(np.flatnonzero(above[:-1])[-1]) if above[:-1].any() else 0
        low, high = float(levels[last]), float(levels[last + 1])
    return high


def persistence_quantile(cells: ArrayLike, dimension: int) -> FloatArray:
    """Return the persistence that noise over so many cells exceeds in 5% of cases.

    The 95% quantile of the largest persistence of any peak but the highest in a stationary field
    with Gaussian covariance, simulated for one, two and three dimensions and interpolated in
    `log(cells)`. Beyond the simulated range it grows like `sqrt(log cells)`, as the range of a
    Gaussian field does. In four and more dimensions the values for three are used: at the same
    number of cells persistence falls with the dimension, because ways round a valley are more
    (simulated in four: see the table of results), so this errs towards fewer modes.

    Parameters
    ----------
    cells : float or array
        Volume in units of the product of the correlation lengths. At most 1 gives nearly 0.
    dimension : int
        At least 1.

    Returns
    -------
    float array
        In standard deviations, shape of `cells`.
    """
    if dimension < 1:
        raise InvalidArgument(f"dimension must be at least 1, got {dimension}")
    table = min(dimension, max(_CELLS))
    log_cells, quantiles = np.log(_CELLS[table]), np.array(_QUANTILES[table])
    asked = np.log(np.maximum(np.asarray(cells, dtype=np.float64), 1e-300))
    inside = np.interp(asked, log_cells, quantiles, left=0.0)
    beyond = quantiles[-1] * np.sqrt(np.maximum(asked, log_cells[-1]) / log_cells[-1])
    return np.asarray(np.where(asked > log_cells[-1], beyond, inside))


def persistence_threshold(cells: ArrayLike, dimension: int, look: Look = "only") -> FloatArray:
    """Return the persistence that a mode must reach, so that 5% of flat fields have any false mode.

    Parameters
    ----------
    cells : float or array
        Noise cells of the island that the peak stood on when it died.
    dimension : int
        At least 1.
    look : {"only", "widest", "narrower"}
        Whether this surface alone is searched, or which reading of a ladder it is.

    Returns
    -------
    float array
        In standard deviations, shape of `cells`.
    """
    quantile = persistence_quantile(cells, dimension)
    table = min(dimension, max(_JOINT))
    return np.maximum(LEAST_PERSISTENCE[table], _JOINT[table][look] * quantile)


def height_rate(rate: float, look: Look = "only") -> float:
    """Return the part of a false-mode rate that the height threshold of one look may spend."""
    return rate * _HEIGHT_SHARE[look]


def check_rate(rate: object) -> float:
    """Return a false-mode rate inside (0, 1), or say what is wrong with it."""
    value = as_number(rate, "false_mode_rate")
    if not 0.0 < value < 1.0:
        raise InvalidArgument(f"false_mode_rate must be inside (0, 1), got {value}; try 0.05")
    return value


def check_look(look: object) -> Look:
    """Return `look` when it is one, or say what is wrong with it."""
    for known in _HEIGHT_SHARE:
        if look == known:
            return known
    raise InvalidArgument(f"look must be one of {list(_HEIGHT_SHARE)}, got {look!r}")


def _check_lengths(lengths: ArrayLike) -> FloatArray:
    sides = np.atleast_1d(np.asarray(lengths, dtype=np.float64))
    if sides.ndim != 1 or not np.all(np.isfinite(sides)) or np.any(sides < 0):
        raise InvalidArgument(
            "lengths must be finite and not negative, one per dimension: box side over correlation length"
        )
    return sides
