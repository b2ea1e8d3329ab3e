"""How far estimated modes are from true ones: for simulations, where the truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..budget import as_number
from ..errors import InvalidArgument
from .mode_set import IntArray
from .surfaces import FloatArray


@dataclass(frozen=True)
class ModeMatch:
    """Estimated modes paired with true ones so that the sum of squared distances is least.

    Parameters
    ----------
    estimated, true : (m,) int arrays
        Rows of the pairs, `m = min(k_hat, k)`.
    squared_distances : (m,) array
        Of the pairs.
    n_estimated, n_true : int
        k_hat and k.
    """

    estimated: IntArray
    true: IntArray
    squared_distances: FloatArray
    n_estimated: int
    n_true: int


@dataclass(frozen=True)
class ModeErrorSummary:
    """Errors over repeated runs with one truth.

    Parameters
    ----------
    runs : int
        Number of runs.
    mse, mse_standard_error, median_squared_error : float
        Mean, its standard error and median of `mode_mse` over the runs that reported a mode. NaN
        when there are none.
    exact_count_rate : float
        Share of runs with as many modes as the truth.
    missed_rate : float
        Share of true modes (over all runs) with no estimate within the radius.
    false_rate : float
        Share of estimated modes (over all runs) that are near no true one.
    false_run_rate : float
        Share of runs with any such mode.
    silent_rate : float
        Share of runs that reported no mode.
    """

    runs: int
    mse: float
    mse_standard_error: float
    median_squared_error: float
    exact_count_rate: float
    missed_rate: float
    false_rate: float
    false_run_rate: float
    silent_rate: float


def match_modes(estimated: ArrayLike, true: ArrayLike, *, largest: float = math.inf) -> ModeMatch:
    """Pair estimated with true modes by optimal assignment.

    Parameters
    ----------
    estimated, true : (k_hat, d) and (k, d) arrays
        Locations in the same units. A 1-D array is one column.
    largest : float
        Squared distances above this count as this in the assignment, so that one hopeless pair
        does not decide the others; the distances returned are the true ones.

    Raises
    ------
    InvalidArgument
        If the numbers of columns differ, or a location is not finite.
    """
    squared = _squared_distances(estimated, true)
    rows, columns = _assign(np.minimum(squared, largest))
    return ModeMatch(
        estimated=rows,
        true=columns,
        squared_distances=squared[rows, columns],
        n_estimated=squared.shape[0],
        n_true=squared.shape[1],
    )


def mode_mse(estimated: ArrayLike, true: ArrayLike, *, charge: float | None = None) -> float:
    """Return the paper's error of a set of modes: equation (14) of arXiv 2607.29675.

    Sum of squared distances of optimally matched pairs over `max(k, k_hat)`. It is kind to missing
    and to extra modes: report `exact_count_rate` beside it, or give a charge.

    Parameters
    ----------
    estimated, true : (k_hat, d) and (k, d) arrays
        Locations in the same units.
    charge : float, optional
        Squared distance charged for every missing or extra mode, and the most that a pair can
        cost (OSPA distance of order 2, squared: Schuhmacher, Vo & Vo 2008). None charges nothing.

    Returns
    -------
    float
        NaN when nothing was estimated and nothing is charged: equation (14) would call it perfect.
    """
    limit = math.inf if charge is None else as_number(charge, "charge")
    if not limit >= 0:
        raise InvalidArgument(f"charge must be at least 0, got {limit}")
    match = match_modes(estimated, true, largest=limit)
    most = max(match.n_estimated, match.n_true)
    if most == 0:
        return 0.0
    if charge is None:
        if min(match.n_estimated, match.n_true) == 0:
            return math.nan
        return float(match.squared_distances.sum()) / most
    unmatched = abs(match.n_estimated - match.n_true)
    return (float(np.minimum(match.squared_distances, limit).sum()) + limit * unmatched) / most


def missed_modes(estimated: ArrayLike, true: ArrayLike, *, radius: float) -> int:
    """Count the true modes without an estimate of their own within `radius`."""
    squared = _squared_distances(estimated, true)
    return int(squared.shape[1]) - _pairs_within(squared, radius)


def false_modes(estimated: ArrayLike, true: ArrayLike, *, radius: float) -> int:
    """Count the estimated modes without a true one of their own within `radius`."""
    squared = _squared_distances(estimated, true)
    return int(squared.shape[0]) - _pairs_within(squared, radius)


def summarise_errors(estimates: Sequence[ArrayLike], true: ArrayLike, *, radius: float) -> ModeErrorSummary:
    """Summarise repeated estimates of one set of true modes.

    Parameters
    ----------
    estimates : sequence of (k_hat, d) arrays
        One per run.
    true : (k, d) array
        The truth.
    radius : float
        How near an estimate must be to count as having found a mode, in the units of the modes.

    Raises
    ------
    InvalidArgument
        If there are no runs, or the shapes do not fit.
    """
    runs = len(estimates)
    if runs == 0:
        raise InvalidArgument("estimates holds no runs; give one array of modes per run")
    truth = _locations(true, "true")
    errors = np.array([mode_mse(found, truth) for found in estimates])
    counts = np.array([_locations(found, "estimated").shape[0] for found in estimates])
    missed = np.array([missed_modes(found, truth, radius=radius) for found in estimates])
    false = np.array([false_modes(found, truth, radius=radius) for found in estimates])
    known = errors[np.isfinite(errors)]
    spread = float(known.std(ddof=1) / math.sqrt(known.size)) if known.size > 1 else math.nan
    return ModeErrorSummary(
        runs=runs,
        mse=float(known.mean()) if known.size else math.nan,
        mse_standard_error=spread,
        median_squared_error=float(np.median(known)) if known.size else math.nan,
        exact_count_rate=float(np.mean(counts == truth.shape[0])),
        missed_rate=float(missed.sum()) / max(runs * truth.shape[0], 1),
        false_rate=float(false.sum()) / max(int(counts.sum()), 1),
        false_run_rate=float(np.mean(false > 0)),
        silent_rate=float(np.mean(counts == 0)),
    )


def oracle_modal_loss(predictions: ArrayLike, modes: ArrayLike) -> float:
    """Return the paper's error of a modal regression: equation (15) of arXiv 2607.29675.

    The mean, over predictions, of the squared distance to the nearest true conditional mode at
    the same predictor value. It is kind to branches that are missing: report
    `missed_branch_rate` beside it.

    Parameters
    ----------
    predictions : (m,) or (m, r) array
        Up to r estimated branches at each of m predictor values, NaN where there are fewer.
    modes : (m,) or (m, k) array
        Up to k true conditional modes at the same values, NaN where there are fewer.

    Returns
    -------
    float
        NaN when nothing was predicted.

    Raises
    ------
    InvalidArgument
        If the numbers of rows differ, or a row has a prediction and no true mode.
    """
    distance, predicted, _ = _branch_distances(predictions, modes)
    if not predicted.any():
        return math.nan
    nearest = np.where(predicted, np.min(distance, axis=2, initial=np.inf), 0.0)
    if np.isinf(nearest).any():
        raise InvalidArgument("modes must hold at least one number in every row with a prediction")
    return float(nearest[predicted].mean())


def missed_branch_rate(predictions: ArrayLike, modes: ArrayLike, *, radius: float) -> float:
    """Return the share of true conditional modes with no prediction within `radius`.

    Shapes as in `oracle_modal_loss`. NaN when there are no true modes.
    """
    distance, _, true = _branch_distances(predictions, modes)
    if not true.any():
        return math.nan
    nearest = np.min(distance, axis=1, initial=np.inf)
    return float(np.mean(nearest[true] > _radius(radius) ** 2))


def _branch_distances(
    predictions: ArrayLike, modes: ArrayLike
) -> tuple[FloatArray, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return squared distances (m, r, k), infinite where either side is NaN, and which are there."""
    predicted, true = (np.asarray(part, dtype=np.float64) for part in (predictions, modes))
    predicted, true = (part[:, None] if part.ndim == 1 else part for part in (predicted, true))
    if predicted.ndim != 2 or true.ndim != 2 or predicted.shape[0] != true.shape[0]:
        raise InvalidArgument(
            f"predictions and modes need one row per predictor value, got {predicted.shape} and {true.shape}"
        )
    squared = np.square(predicted[:, :, None] - true[:, None, :])
    return np.where(np.isnan(squared), np.inf, squared), ~np.isnan(predicted), ~np.isnan(true)


def _squared_distances(estimated: ArrayLike, true: ArrayLike) -> FloatArray:
    """Return squared distances (k_hat, k). No modes may come without columns."""
    found, truth = _locations(estimated, "estimated"), _locations(true, "true")
    if found.shape[0] == 0 or truth.shape[0] == 0:
        return np.empty((found.shape[0], truth.shape[0]))
    if found.shape[1] != truth.shape[1]:
        raise InvalidArgument(
            f"estimated and true need the same columns, got {found.shape[1]} and {truth.shape[1]}"
        )
    return np.asarray(np.sum(np.square(found[:, None, :] - truth[None, :, :]), axis=-1))


def _assign(cost: FloatArray) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the cheapest assignment."""
    # Imported here: scipy.optimize is slow to import and only simulations need it.
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(cost)
    return np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)


def _pairs_within(squared: FloatArray, radius: float) -> int:
    """Return the largest number of disjoint pairs within the radius."""
    within = squared <= _radius(radius) ** 2
    rows, columns = _assign(np.where(within, 0.0, 1.0))
    return int(np.count_nonzero(within[rows, columns]))


def _radius(radius: object) -> float:
    value = as_number(radius, "radius")
    if not value > 0:
        raise InvalidArgument(f"radius must be positive, got {value}")
    return value


def _locations(modes: ArrayLike, name: str) -> FloatArray:
    """Return locations as (k, d); an empty list is no modes in one column."""
    array = np.asarray(modes, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not np.all(np.isfinite(array)):
        raise InvalidArgument(f"{name} must be finite locations of shape (k, d), got shape {array.shape}")
    return array
