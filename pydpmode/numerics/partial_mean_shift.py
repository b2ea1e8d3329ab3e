"""Partial mean shift, without privacy: the conditional modes of a response given predictors.

The baseline that private modal regression is compared with. At a predictor value x the conditional
modes are the local maxima over y of `sum_i K((x - X_i)/h_x) K((y - Y_i)/h_y)`: exactly the points where
the partial mean-shift iteration of Chen, Genovese, Tibshirani & Wasserman (2016, Algorithm 1) stands still
and is stable. They are bracketed on a grid of responses by one matrix product and polished by Newton
steps, instead of being approached by hundreds of shifts from every row.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..budget import as_number
from ..errors import InvalidArgument
from .mode_set import IntArray
from .spectral_surfaces import per_column
from .surfaces import FloatArray

_STEP = 1 / 3  # of the grid of responses, in bandwidths
# A maximum has a record within one bandwidth, because the second derivative is negative there: so many
# nodes to each side of every response, and two more to see the fall.
_REACH = 5
_PAIRS = 4_000_000  # kernel values held at once: 32 MB
_TOGETHER = 32  # maxima polished together
_CUT = 9.0  # bandwidths: a record beyond counts 3e-18 of its weight
_POLISH = 12  # Newton steps at most
_TIGHT = 1e-10  # bandwidths
_LEAST_WEIGHT = 1.0
# "likelihood": factors tried on the reference bandwidths, and rows that are predicted from the others.
_FACTORS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)
_SCORED_ROWS = 400
_COMPARED_ROWS = 4000

BandwidthRule = float | Sequence[float] | FloatArray | str


@dataclass(frozen=True, eq=False)
class ConditionalModes:
    """Conditional modes at m predictor values.

    Parameters
    ----------
    x : (m, p) array
    modes : (m, k) array
        Highest first; NaN where there are fewer.
    density : (m, k) array
        Conditional density of the response at each mode; NaN likewise.
    """

    x: FloatArray
    modes: FloatArray
    density: FloatArray

    @property
    def counts(self) -> IntArray:
        """Number of modes at each predictor value, (m,)."""
        return np.asarray(np.isfinite(self.modes).sum(axis=1), dtype=np.int64)


class PartialMeanShift:
    """Conditional modes by partial mean shift with a product Gaussian kernel. NOT private.

    Parameters
    ----------
    bandwidth_x : float or (p,) sequence, optional
        Standard deviation of the kernel per predictor, in its units.
    bandwidth_y : float, optional
        Of the response.
    rule : {"reference", "likelihood"}
        For bandwidths that are not given. "reference": the normal-reference rule for the gradient of the
        joint density, `s (4/(d+4))^(1/(d+6)) n^(-1/(d+6))`, `d = p + 1`, s the smaller of standard
        deviation and interquartile range over 1.34: too wide where branches lie far apart.
        "likelihood": the factors on it, from 1/4 to 1.4, one for the predictors and one for the response,
        that predict responses best from the other rows (leave-one-out conditional log-likelihood
        on at most some 4,000 rows).
    merge : float
        Modes at one x within so many bandwidths of a higher one are merged into it.
    min_height : float
        Modes below this share of the highest one at the same x are left out, in [0, 1].

    Attributes
    ----------
    bandwidth_x_, bandwidth_y_ : (p,) array and float
        What was used.
    n_features_in_ : int
        Number of predictors p.

    Notes
    -----
    Predicting m values from n rows takes m n kernel values: a grid of x is fast for any n; all rows
    of a large table are better binned first.

    Examples
    --------
    >>> from pydpmode import PartialMeanShift, datasets
    >>> table, _ = datasets.three_levels(1500, seed=1)
    >>> fit = PartialMeanShift(0.05, 0.15, min_height=0.2).fit(table["x"], table["y"])
    >>> fit.predict([0.2, 0.45, 0.9]).round(1)
    array([[ 3., nan],
           [ 2.,  3.],
           [ 1., nan]])
    """

    def __init__(
        self,
        bandwidth_x: float | Sequence[float] | FloatArray | None = None,
        bandwidth_y: float | None = None,
        *,
        rule: str = "reference",
        merge: float = 1.0,
        min_height: float = 0.0,
    ) -> None:
        self.bandwidth_x = bandwidth_x
        self.bandwidth_y = bandwidth_y
        self.rule = rule
        self.merge = merge
        self.min_height = min_height

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Keep predictors `X` (n, p) or (n,) and responses `y` (n,), and set the bandwidths.

        Raises
        ------
        InvalidArgument
            On shapes that do not fit, values that are not finite, or bandwidths that are not positive.
        """
        x, response = _predictors(X, "X"), np.asarray(y, dtype=np.float64)
        if response.shape != x.shape[:1] or not np.all(np.isfinite(response)):
            raise InvalidArgument(
                f"y must be one finite response per row of X ({x.shape[0]}), got shape {response.shape}"
            )
        self._check_knobs()
        self.n_features_in_ = x.shape[1]
        h_x, h_y = self._bandwidths(x, response)
        self.bandwidth_x_, self.bandwidth_y_ = h_x, h_y
        # In the order of the responses, so that those near a mode are a slice.
        order = np.argsort(response, kind="stable")
        self._scaled = np.ascontiguousarray((x / h_x)[order])
        self._responses = (response / h_y)[order]
        self._nodes = _nodes(self._responses)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the conditional modes at `X` (m, p) or (m,): (m, k), highest first, NaN where fewer.

        A row of NaN: no record is near, the kernel weights at that x sum to less than that of one record.
        """
        return self.conditional_modes(X).modes

    def conditional_modes(self, X: ArrayLike) -> ConditionalModes:
        """Return the conditional modes at `X` and the conditional density there."""
        x = self._queries(X)
        rows, places = [np.empty(0, dtype=np.int64)], [np.empty(0)]
        heights = [np.empty(0)]
        chunk = max(1, _PAIRS // self._scaled.shape[0])
        for start in range(0, x.shape[0], chunk):
            weights = self._weights(x[start : start + chunk])
            near = weights.sum(axis=1) >= _LEAST_WEIGHT * (1 - 1e-9)
            row, place = self._bracketed(weights * near[:, None])
            place, height = self._polished(weights, row, place)
            rows.append(row + start)
            places.append(place)
            heights.append(height / weights.sum(axis=1)[row] / self.bandwidth_y_)
        modes, density = _tabulate(
            x.shape[0],
            np.concatenate(rows),
            np.concatenate(places),
            np.concatenate(heights),
            self.merge,
            self.min_height,
        )
        return ConditionalModes(x * self.bandwidth_x_, modes * self.bandwidth_y_, density)

    def conditional_density(self, X: ArrayLike, y: ArrayLike) -> FloatArray:
        """Return the kernel estimate of the density of the response at every (x, y): (m, g).

        NaN in rows without records near.
        """
        x = self._queries(X)
        values = np.asarray(y, dtype=np.float64).ravel() / self.bandwidth_y_
        out = np.full((x.shape[0], values.size), np.nan)
        chunk = max(1, _PAIRS // self._scaled.shape[0])
        for start in range(0, x.shape[0], chunk):
            weights = self._weights(x[start : start + chunk])
            total = weights.sum(axis=1)
            near = total >= _LEAST_WEIGHT * (1 - 1e-9)
            density = self._along(weights[near], values) / self.bandwidth_y_
            out[start : start + chunk][near] = density / total[near, None]
        return out

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn's `clone` needs them."""
        return {name: getattr(self, name) for name in list(inspect.signature(PartialMeanShift).parameters)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        known = list(self.get_params())
        for name, value in params.items():
            if name not in known:
                raise InvalidArgument(f"PartialMeanShift has no parameter {name!r}; it has {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        shown = {"bandwidth_x": self.bandwidth_x, "bandwidth_y": self.bandwidth_y, "rule": self.rule}
        return f"PartialMeanShift({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    # -- kernel sums, in bandwidths ------------------------------------------------------------------

    def _weights(self, x: FloatArray) -> FloatArray:
        """Return `exp(-|x - X_i|^2/2)` for every query and row, (m, n)."""
        squared = np.zeros((x.shape[0], self._scaled.shape[0]))
        for a in range(self.n_features_in_):
            squared += np.square(x[:, a, None] - self._scaled[:, a])
        return np.exp(-0.5 * squared)

    def _along(self, weights: FloatArray, values: FloatArray) -> FloatArray:
        """Return the weighted kernel sum over responses at each of `values`, (m, g)."""
        out = np.zeros((weights.shape[0], values.size))
        chunk = max(1, _PAIRS // max(values.size, 1))
        for start in range(0, self._responses.size, chunk):
            part = slice(start, start + chunk)
            offset = self._responses[part, None] - values
            out += weights[:, part] @ np.exp(-0.5 * offset * offset)
        return out / math.sqrt(2 * math.pi)

    def _bracketed(self, weights: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return (row, node) of each local maximum on the grid of responses."""
        density = self._along(weights, np.asarray(self._nodes * _STEP))
        inner = density[:, 1:-1]
        peak = (inner > density[:, :-2]) & (inner >= density[:, 2:])
        # Where the grid has a gap there is no neighbour to compare with, and no maximum either.
        beside = np.diff(self._nodes) == 1
        row, column = np.nonzero(peak & beside[:-1] & beside[1:])
        return row.astype(np.int64), np.asarray(self._nodes[column + 1] * _STEP)

    def _polished(
        self, weights: FloatArray, row: IntArray, place: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return bracketed maxima to full precision, and the kernel sums there."""
        place, height = place.copy(), np.zeros(place.size)
        order = np.argsort(place, kind="stable")
        for start in range(0, place.size, _TOGETHER):
            part = order[start : start + _TOGETHER]
            ends = place[part[[0, -1]]] + np.array([-_CUT, _CUT])
            first, last = np.searchsorted(self._responses, ends)
            near = self._responses[first:last]
            place[part], height[part] = _climb(weights[row[part], first:last], near, place[part])
        return place, height

    # -- checks and rules -----------------------------------------------------------------------------

    def _queries(self, X: ArrayLike) -> FloatArray:
        if not hasattr(self, "bandwidth_x_"):
            raise InvalidArgument("this PartialMeanShift is not fitted yet; call fit first")
        x = _predictors(X, "X")
        if x.shape[1] != self.n_features_in_:
            raise InvalidArgument(f"X has {x.shape[1]} columns, the fit had {self.n_features_in_}")
        return x / self.bandwidth_x_

    def _check_knobs(self) -> None:
        if self.rule not in ("reference", "likelihood"):
            raise InvalidArgument(f"rule must be 'reference' or 'likelihood', got {self.rule!r}")
        if not as_number(self.merge, "merge") >= 0:
            raise InvalidArgument(f"merge must be at least 0, got {self.merge!r}")
        if not 0 <= as_number(self.min_height, "min_height") <= 1:
            raise InvalidArgument(f"min_height must be in [0, 1], got {self.min_height!r}")

    def _bandwidths(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
        p = x.shape[1]
        given_x = None if self.bandwidth_x is None else per_column(self.bandwidth_x, p, "bandwidth_x")
        given_y = None if self.bandwidth_y is None else as_number(self.bandwidth_y, "bandwidth_y")
        if given_x is None or given_y is None:
            h = _reference(np.column_stack([x, y]))
            if self.rule == "likelihood":
                some = np.argsort(x[:, 0], kind="stable")[:: max(1, x.shape[0] // _COMPARED_ROWS)]
                h = h * _most_likely(x[some], y[some], given_x, given_y)
            given_x = h[:p] if given_x is None else given_x
            given_y = float(h[p]) if given_y is None else given_y
        if not (np.all(np.isfinite(given_x) & (given_x > 0)) and 0 < given_y < math.inf):
            raise InvalidArgument(
                f"bandwidths must be finite and > 0, got {given_x.tolist()} and {given_y}; a column with one "
                "value only has none"
            )
        return given_x, given_y


def _climb(weights: FloatArray, responses: FloatArray, place: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the maxima of weighted kernel sums within a step of `place` (b,), and their heights."""
    here, low, high = place, place - _STEP, place + _STEP
    value = np.zeros(place.size)
    for _ in range(_POLISH):
        offset = responses - here[:, None]
        pull = weights * np.exp(-0.5 * offset * offset)
        value = pull.sum(axis=1)
        pull *= offset
        slope = pull.sum(axis=1)
        bend = value - np.einsum("bn,bn->b", pull, offset)
        # Newton's step where the density bends down, else the mean shift.
        new = np.clip(here + slope / np.where(bend > 0.05 * value, bend, value), low, high)
        moved = float(np.max(np.abs(new - here), initial=0.0))
        here = new
        if moved < _TIGHT:
            break
    return here, value / math.sqrt(2 * math.pi)


def _predictors(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape or not np.all(np.isfinite(array)):
        raise InvalidArgument(f"{name} must be a finite table (n, p) with a row, got shape {array.shape}")
    return array


def _nodes(responses: FloatArray) -> IntArray:
    """Return the whole multiples of the step that are near a response, sorted."""
    occupied = np.unique(np.rint(responses / _STEP)).astype(np.int64)
    around = occupied[:, None] + np.arange(-_REACH, _REACH + 1)
    return np.unique(around)


def _tabulate(
    count: int, row: IntArray, place: FloatArray, height: FloatArray, merge: float, min_height: float
) -> tuple[FloatArray, FloatArray]:
    """Merge and sort the modes of each row: two (count, k) arrays, padded with NaN."""
    order = np.lexsort((-height, row))
    kept: list[list[int]] = [[] for _ in range(count)]
    for index in order.tolist():
        mine = kept[row[index]]
        high_enough = not mine or height[index] >= min_height * height[mine[0]]
        if high_enough and all(abs(place[index] - place[other]) > merge for other in mine):
            mine.append(index)
    most = max((len(mine) for mine in kept), default=0)
    modes, density = (np.full((count, max(most, 1)), np.nan) for _ in range(2))
    for i, mine in enumerate(kept):
        modes[i, : len(mine)], density[i, : len(mine)] = place[mine], height[mine]
    return modes, density


def _reference(columns: FloatArray) -> FloatArray:
    n, d = columns.shape
    upper, lower = np.percentile(columns, [75, 25], axis=0)
    spread, middle = columns.std(axis=0), (upper - lower) / 1.34
    scale = np.where(middle > 0, np.minimum(spread, middle), spread)
    return np.asarray(scale * (4 / (d + 4)) ** (1 / (d + 6)) * float(n) ** (-1 / (d + 6)))


def _most_likely(
    x: FloatArray, y: FloatArray, given_x: FloatArray | None, given_y: float | None
) -> FloatArray:
    """Return the factors on the reference (p + 1,) with the largest leave-one-out conditional likelihood."""
    h = _reference(np.column_stack([x, y]))
    n, p = x.shape
    # Rows evenly spaced in the order of the predictors, so that every region is scored.
    chosen = np.argsort(x[:, 0], kind="stable")[:: max(1, n // _SCORED_ROWS)]
    own = np.arange(chosen.size)

    def pairs(values: FloatArray, width: FloatArray) -> FloatArray:
        squared = sum(
            (np.square((values[chosen, a, None] - values[:, a]) / width[a]) for a in range(values.shape[1])),
            np.zeros((chosen.size, n)),
        )
        out = np.exp(-0.5 * squared)
        out[own, chosen] = 0.0
        return out

    factors = np.array(_FACTORS)
    of_x = [h[:p] * f for f in factors] if given_x is None else [given_x]
    of_y = [h[p:] * f for f in factors] if given_y is None else [np.array([given_y])]
    weights = [pairs(x, width) for width in of_x]
    kernels = [pairs(y[:, None], width) for width in of_y]
    # A small uniform part keeps rows that nothing predicts from deciding.
    floor = 0.01 / max(float(np.ptp(y)), np.finfo(float).tiny)

    def score(w: FloatArray, k: FloatArray, width: float) -> float:
        total = np.maximum(w.sum(axis=1), 1e-300) * width * math.sqrt(2 * math.pi)
        return float(np.log(0.99 * np.einsum("in,in->i", w, k) / total + floor).mean())

    scores = np.array(
        [[score(w, k, float(v[0])) for k, v in zip(kernels, of_y, strict=True)] for w in weights]
    )
    best_x, best_y = np.unravel_index(int(np.argmax(scores)), scores.shape)
    factor_x = factors[best_x] if given_x is None else 1.0
    factor_y = factors[best_y] if given_y is None else 1.0
    return np.array([factor_x] * p + [factor_y])
