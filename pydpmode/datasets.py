"""A real table that ships with the package, and the simulated designs of the seed paper.

The seed paper is Bhattacharjee & Auddy, "Differentially Private Nonparametric Modal Learning with
Applications to Regression and Clustering" (arXiv 2607.29675). Every simulator takes a number of
rows and a seed and returns `(data frame, truth)`. Nothing here is private: the real table is public
and the other tables are made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidArgument

FloatArray = NDArray[np.float64]
Seed = int | np.random.SeedSequence | np.random.Generator

_GAUSSIAN_CENTRES = ((3.0, 3.0), (3.0, -3.0), (-3.0, 3.0), (-3.0, -3.0))

_T_CENTRES = ((0.0, 0.0), (6.0, 0.0), (-6.0, 0.0), (0.0, 6.0), (0.0, -6.0))
_T_DEGREES = (15.0, 6.0, 10.0, 8.0, 20.0)
_T_SCALES = (0.1, 0.9, 1.3, 1.0, 0.4)

_LEVELS_SD = 0.2
_SINUSOID_SD = 0.15


def wages_path() -> Path:
    """Return the path of the packaged Parquet file with the columns `age` and `wage`.

    See `wages` for what the figures are. The path suits the command line and out-of-core reading.

    Examples
    --------
    >>> from pydpmode import datasets
    >>> datasets.wages_path().name
    'wages.parquet'
    """
    return Path(__file__).with_name("data") / "wages.parquet"


def wages() -> pd.DataFrame:
    """Load age and yearly wage of 178,122 earners of the CPS public-use file.

    One row per tax unit of the file whose primary adult earned a positive wage. Survey weights are
    not included, so that shares describe the sample and not the population. Provenance and licence
    (CC0 1.0) are in `pydpmode/data/README.md`.

    Returns
    -------
    DataFrame of 178,122 rows and two int64 columns
        `age` : age of the primary adult in years, 15 to 85; the survey records 80 to 84 as 80, and
        85 or more as 85.
        `wage` : wages, salaries and tips of the primary adult in US dollars a year, 1 or more.

    Examples
    --------
    >>> from pydpmode import datasets
    >>> datasets.wages().shape
    (178122, 2)
    """
    return pd.read_parquet(wages_path())


@dataclass(frozen=True)
class ModalBranch:
    """One branch of a conditional mode: `level + amplitude * sin(frequency * x)` on `[low, high]`.

    Parameters
    ----------
    low, high : float
        The branch exists for `low <= x <= high` and nowhere else.
    level, amplitude : float
        In the units of the response.
    frequency : float
        In radians per unit of x.
    """

    low: float
    high: float
    level: float
    amplitude: float = 0.0
    frequency: float = 0.0

    def exists(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Return whether the branch exists at `x`, in the shape of `x`."""
        at = np.asarray(x, dtype=np.float64)
        return np.asarray((at >= self.low) & (at <= self.high), dtype=np.bool_)

    def value(self, x: ArrayLike) -> FloatArray:
        """Return the branch at `x`, in the shape of `x`; NaN where it does not exist."""
        at = np.asarray(x, dtype=np.float64)
        curve = self.level + self.amplitude * np.sin(self.frequency * at)
        return np.where(self.exists(at), curve, np.nan)


@dataclass(frozen=True)
class ModalTruth:
    """The true conditional modes of a regression design: one branch per component.

    Examples
    --------
    >>> from pydpmode import datasets
    >>> _, truth = datasets.three_levels(30, seed=1)
    >>> truth.at([0.2, 0.45, 0.65])
    array([[ 3., nan, nan],
           [ 3.,  2., nan],
           [nan,  2.,  1.]])
    """

    branches: tuple[ModalBranch, ...]

    def at(self, x: ArrayLike) -> FloatArray:
        """Return every branch at every `x`.

        Parameters
        ----------
        x : (m,) array_like, or one number
            Where to evaluate.

        Returns
        -------
        (m, k) float array
            Column j is branch j; NaN where that branch does not exist. At least one entry of a row
            is finite for every x in the support of the design.
        """
        points = np.atleast_1d(np.asarray(x, dtype=np.float64))
        if points.ndim != 1:
            raise InvalidArgument(f"x must be one number or one-dimensional, got {points.ndim} dimensions")
        return np.stack([branch.value(points) for branch in self.branches], axis=1)


_LEVELS = ModalTruth(
    (ModalBranch(0.0, 0.5, 3.0), ModalBranch(0.4, 0.7, 2.0), ModalBranch(0.6, 1.0, 1.0)),
)
_SINUSOIDS = ModalTruth(
    (
        ModalBranch(0.0, 1.0, 1.5, amplitude=0.5, frequency=3 * np.pi),
        ModalBranch(0.0, 1.0, 0.0, amplitude=0.5, frequency=3 * np.pi),
    ),
)


def four_gaussians(n: int, seed: Seed) -> tuple[pd.DataFrame, FloatArray]:
    """Draw from four bivariate Gaussians at (+-3, +-3), unit covariance, equal weights.

    Source: the seed paper, section 3.1.

    Parameters
    ----------
    n : int
        Number of rows, >= 1. Components are drawn independently row by row.
    seed : int, SeedSequence or Generator
        Makes the draw reproducible.

    Returns
    -------
    data : DataFrame with n rows, columns `x` and `y`
    truth : (4, 2) float array
        The modes of the density: the centres, exact to 1e-6.

    Raises
    ------
    InvalidArgument
        When n is not a whole number >= 1 or seed is not one of the three types.
    """
    size, random = _check_rows(n), _generator(seed)
    centres = np.array(_GAUSSIAN_CENTRES)
    component = random.integers(len(centres), size=size)
    points = centres[component] + random.standard_normal((size, 2))
    return pd.DataFrame(points, columns=["x", "y"]), centres


def five_t(n: int, seed: Seed) -> tuple[pd.DataFrame, FloatArray]:
    """Draw from five bivariate t components of unequal scale and tail, weights 0.2 each.

    Centres (0,0), (6,0), (-6,0), (0,6), (0,-6); the two coordinates of a component are independent
    t variables with 15, 6, 10, 8, 20 degrees of freedom, times .1, .9, 1.3, 1.0, .4, in that order.
    Source: the seed paper, section 5.3.1.

    Parameters
    ----------
    n : int
        Number of rows, >= 1. Components are drawn independently row by row.
    seed : int, SeedSequence or Generator
        Makes the draw reproducible.

    Returns
    -------
    data : DataFrame with n rows, columns `x` and `y`
    truth : (5, 2) float array
        The modes of the density: the centres, as in the paper. The neighbours' tails shift the
        mixture's own maxima by at most 1.2e-5, so that the two need not be told apart.

    Raises
    ------
    InvalidArgument
        When n is not a whole number >= 1 or seed is not one of the three types.
    """
    size, random = _check_rows(n), _generator(seed)
    centres, degrees, scales = np.array(_T_CENTRES), np.array(_T_DEGREES), np.array(_T_SCALES)
    component = random.integers(len(centres), size=size)
    steps = random.standard_t(degrees[component][:, None], size=(size, 2))
    points = centres[component] + scales[component][:, None] * steps
    return pd.DataFrame(points, columns=["x", "y"]), centres


def three_levels(n: int, seed: Seed) -> tuple[pd.DataFrame, ModalTruth]:
    """Draw the piecewise constant regression design: three levels on overlapping intervals of x.

    x uniform on [0, .5], [.4, .7], [.6, 1] with y normal around 3, 2, 1, standard deviation .2, in
    floor(n/3), floor(n/3) and the remaining rows; the rows are then put in random order.
    Source: the seed paper, appendix B.2. (The paper writes N(3, .2); its losses agree with a standard
    deviation of .2 and not with a variance.)

    Parameters
    ----------
    n : int
        Number of rows, >= 1.
    seed : int, SeedSequence or Generator
        Makes the draw reproducible.

    Returns
    -------
    data : DataFrame with n rows, columns `x` and `y`
    truth : ModalTruth of three branches
        Each exists on its own interval of x. The conditional density's own maxima are within 1e-5.

    Raises
    ------
    InvalidArgument
        When n is not a whole number >= 1 or seed is not one of the three types.
    """
    size, random = _check_rows(n), _generator(seed)
    third = size // 3
    component = np.repeat([0, 1, 2], [third, third, size - 2 * third])
    low = np.array([branch.low for branch in _LEVELS.branches])[component]
    high = np.array([branch.high for branch in _LEVELS.branches])[component]
    return _regression_table(_LEVELS, component, random.uniform(low, high), _LEVELS_SD, random)


def sinusoid(n: int, seed: Seed) -> tuple[pd.DataFrame, ModalTruth]:
    """Draw the two-branch sinusoid: y around 1.5 + .5 sin(3 pi x) or around .5 sin(3 pi x).

    x uniform on (0, 1), standard deviation .15, floor(n/2) rows on the upper branch and the rest on
    the lower one; the rows are then put in random order. Source: the seed paper, section 5.4.1.

    Parameters
    ----------
    n : int
        Number of rows, >= 1.
    seed : int, SeedSequence or Generator
        Makes the draw reproducible.

    Returns
    -------
    data : DataFrame with n rows, columns `x` and `y`
    truth : ModalTruth of two branches
        Upper branch first; both exist on all of [0, 1].

    Raises
    ------
    InvalidArgument
        When n is not a whole number >= 1 or seed is not one of the three types.
    """
    size, random = _check_rows(n), _generator(seed)
    half = size // 2
    component = np.repeat([0, 1], [half, size - half])
    return _regression_table(_SINUSOIDS, component, random.uniform(size=size), _SINUSOID_SD, random)


def _regression_table(
    truth: ModalTruth,
    component: NDArray[np.int64],
    x: FloatArray,
    sd: float,
    random: np.random.Generator,
) -> tuple[pd.DataFrame, ModalTruth]:
    rows = np.arange(len(x))
    y = truth.at(x)[rows, component] + sd * random.standard_normal(len(x))
    # Rows in component order would mislead whoever takes the first k of them.
    order = random.permutation(len(x))
    return pd.DataFrame({"x": x[order], "y": y[order]}), truth


def _check_rows(n: object) -> int:
    if _is_whole(n) and n >= 1:
        return int(n)
    raise InvalidArgument(f"n must be a whole number >= 1, got {_describe(n)}; give e.g. n=1000")


def _generator(seed: object) -> np.random.Generator:
    if isinstance(seed, np.random.SeedSequence | np.random.Generator):
        return np.random.default_rng(seed)
    if _is_whole(seed) and seed >= 0:
        return np.random.default_rng(int(seed))
    raise InvalidArgument(
        f"seed must be a whole number >= 0, a SeedSequence or a Generator, got {_describe(seed)}; "
        "give e.g. seed=1"
    )


def _is_whole(value: object) -> TypeGuard[int | np.integer[Any]]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _describe(value: object) -> str:
    return repr(value) if isinstance(value, int | float) else type(value).__name__
