"""Gaussian mean shift, without privacy: the baseline that the paper compares with.

The modes and basins of a plain kernel density estimate, by the same ascent that reads released surfaces.
In one to three dimensions density, gradient and Hessian come from non-uniform Fourier transforms, so a
step from every point costs about as much as reading the points, not their square.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..budget import as_whole
from ..errors import InvalidArgument
from .designs import MAX_LATTICE_DIMENSION, LatticeDesign
from .feature_sums import feature_sum
from .kernel_surface import DirectKernelSurface
from .mode_ascent import ascend
from .mode_merging import merge_by_radius
from .mode_set import IntArray
from .spectral_surfaces import LatticeSurface, per_column
from .surfaces import FloatArray

# Frequencies beyond this are dropped: what is lost is exp(-32) of the kernel's peak.
_CUT = 8.0
_MARGIN = 4.0  # bandwidths between the outermost points and the box
_MOST_FREQUENCIES = 4_000_000
_AT_ONCE = 20_000  # climbs under way together
_GRID_STEP = 1.0  # bandwidths, of starts on a grid


class MeanShift:
    """Mean-shift clustering with a Gaussian kernel, on scikit-learn's conventions. NOT private.

    Parameters
    ----------
    bandwidth : float or (d,) sequence, optional
        Standard deviation of the kernel per column. By default the normal-reference rule for gradients,
        `sd (4/(d+4))^(1/(d+6)) n^(-1/(d+6))`, from these rows.
    seeds : (m, d) array, optional
        Starts. Every row when omitted.
    bin_seeding : bool
        Start from the nodes of a grid, one bandwidth apart, that have a row nearest to them.
    max_iter : int
        Steps after which a climb is given up.

    Attributes
    ----------
    cluster_centers_ : (k, d) array
        Modes that the climbs reached, highest density first. Modes within one bandwidth of a higher one
        are merged into it.
    labels_ : (n,) int array
        Mode whose basin each row lies in.
    n_iter_ : int
        Most steps of any climb.
    n_features_in_ : int
        Number of columns d.

    Notes
    -----
    Differences from `sklearn.cluster.MeanShift`: its kernel is flat, this one Gaussian; it labels by the
    nearest centre, here rows climb to their mode. Climbs are mean-shift steps that turn into Newton's near
    the top (quadratic instead of linear convergence), kept from going downhill.

    Examples
    --------
    >>> from pydpmode import MeanShift, datasets
    >>> table, truth = datasets.four_gaussians(2000, seed=1)
    >>> sorted(MeanShift().fit(table).cluster_centers_.round().tolist())
    [[-3.0, -3.0], [-3.0, 3.0], [3.0, -3.0], [3.0, 3.0]]
    """

    def __init__(
        self,
        bandwidth: float | Sequence[float] | FloatArray | None = None,
        *,
        seeds: ArrayLike | None = None,
        bin_seeding: bool = False,
        max_iter: int = 300,
    ) -> None:
        self.bandwidth = bandwidth
        self.seeds = seeds
        self.bin_seeding = bin_seeding
        self.max_iter = max_iter

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find modes and basins of the rows `X` (n, d). `y` is ignored.

        Raises
        ------
        InvalidArgument
            On rows, seeds or a bandwidth that do not fit together, or values that are not finite.
        """
        rows = _table(X, "X")
        if self.seeds is not None and self.bin_seeding:
            raise InvalidArgument("give seeds or bin_seeding=True, not both")
        steps = as_whole(self.max_iter, "max_iter", 1)
        h = self._bandwidth(rows)
        self._surface = _surface(rows, h)
        self.n_features_in_ = rows.shape[1]
        starts = self._starts(rows, h)
        ends, self.n_iter_ = _climb(self._surface, starts, steps)
        density = self._surface.density(ends)
        merged = merge_by_radius(ends / h, density, 1.0)
        self.cluster_centers_ = ends[merged.representatives]
        everywhere = self.seeds is None and not self.bin_seeding
        self.labels_ = merged.labels if everywhere else self.predict(rows)
        return self

    def predict(self, X: ArrayLike) -> IntArray:
        """Return the mode that each row of `X` (m, d) climbs to (the nearest one to its end), (m,)."""
        if not hasattr(self, "cluster_centers_"):
            raise InvalidArgument("this MeanShift is not fitted yet; call fit first")
        rows = _table(X, "X")
        if rows.shape[1] != self.n_features_in_:
            raise InvalidArgument(f"X has {rows.shape[1]} columns, the fit had {self.n_features_in_}")
        ends, _ = _climb(self._surface, rows, as_whole(self.max_iter, "max_iter", 1))
        h = self._surface.bandwidth
        squared = np.stack([np.sum(((ends - c) / h) ** 2, axis=1) for c in self.cluster_centers_], axis=1)
        return np.asarray(np.argmin(squared, axis=1), dtype=np.int64)

    def fit_predict(self, X: ArrayLike, y: object = None) -> IntArray:
        """Fit and return `labels_`."""
        return self.fit(X).labels_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn's `clone` needs them."""
        return {name: getattr(self, name) for name in list(inspect.signature(MeanShift).parameters)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        known = list(self.get_params())
        for name, value in params.items():
            if name not in known:
                raise InvalidArgument(f"MeanShift has no parameter {name!r}; it has {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        shown = {"bandwidth": self.bandwidth, "bin_seeding": self.bin_seeding, "max_iter": self.max_iter}
        return f"MeanShift({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    def _bandwidth(self, rows: FloatArray) -> FloatArray:
        n, d = rows.shape
        if self.bandwidth is None:
            spread = rows.std(axis=0)
            h = spread * (4 / (d + 4)) ** (1 / (d + 6)) * float(n) ** (-1 / (d + 6))
            if not np.all(h > 0):
                raise InvalidArgument("a column holds one value only; give a bandwidth")
            return np.asarray(h)
        h = per_column(self.bandwidth, d, "bandwidth")
        if not np.all(np.isfinite(h) & (h > 0)):
            raise InvalidArgument(f"bandwidth must be finite and > 0, got {h.tolist()}")
        return h

    def _starts(self, rows: FloatArray, h: FloatArray) -> FloatArray:
        if self.bin_seeding:
            return np.unique(np.rint(rows / (_GRID_STEP * h)), axis=0) * _GRID_STEP * h
        if self.seeds is None:
            return rows
        seeds = _table(self.seeds, "seeds")
        if seeds.shape[1] != rows.shape[1]:
            raise InvalidArgument(f"seeds have {seeds.shape[1]} columns, the rows {rows.shape[1]}")
        return seeds


def _table(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape or not np.all(np.isfinite(array)):
        raise InvalidArgument(f"{name} must be a finite table (n, d) with a row, got shape {array.shape}")
    return array


def _surface(rows: FloatArray, h: FloatArray) -> LatticeSurface | DirectKernelSurface:
    d = rows.shape[1]
    low, high = rows.min(axis=0) - _MARGIN * h, rows.max(axis=0) + _MARGIN * h
    names = tuple(f"x{i + 1}" for i in range(d))
    frequencies = math.prod((_CUT / math.pi * ((high - low) / h + 6)).tolist())
    if d > MAX_LATTICE_DIMENSION or frequencies > _MOST_FREQUENCIES:
        return DirectKernelSurface(rows, names, low, high, h)
    design = LatticeDesign(names, low, high, h, 2, 0.5, cut=_CUT)
    total, sums = feature_sum(design, np.ascontiguousarray(rows.T))
    return LatticeSurface(design, sums / total, np.zeros(design.n_pairs), total, h, 2)


def _climb(
    surface: LatticeSurface | DirectKernelSurface, starts: FloatArray, max_steps: int
) -> tuple[FloatArray, int]:
    """Return where climbs from `starts` end, and the most steps that any took."""
    ends, most = [np.empty((0, starts.shape[1]))], 0
    for first in range(0, starts.shape[0], _AT_ONCE):
        climb = ascend(surface, starts[first : first + _AT_ONCE], max_steps=max_steps)
        ends.append(climb.ends)
        most = max(most, int(climb.steps.max()))
    return np.concatenate(ends), most
