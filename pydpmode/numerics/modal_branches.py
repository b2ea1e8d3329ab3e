"""Branches of conditional modes: modal regression read from one density surface.

At each value of the predictors the conditional modes are the local maxima of `y -> p(x, y)` (partial mean
shift in the response, Einbeck & Tutz 2006; Chen et al. 2016). They are found on a grid, linked into
branches across the predictors, and told from noise. Nothing here knows of privacy: the surface says how
noisy it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InvalidArgument
from .branch_linking import link_peaks
from .conditional_peaks import BoolArray, IntArray, Peaks, Slices, edge_ratio, find_peaks, read_slices
from .significance import check_rate, height_threshold, persistence_quantile
from .surfaces import FloatArray, Surface

MAX_PREDICTORS = 3
# What a peak must reach: share of the highest peak of its slice, height in noise standard deviations, and
# height over the highest value nearby (see `edge_ratio`).
LEAST_RELATIVE, LEAST_HEIGHT, EDGE = 0.5, 2.0, 0.65
# A lower peak counts as well when it stands so many standard deviations above the valley beside it.
CLEAR_VALLEY = 6.0
# Peaks at neighbouring predictor values are linked when they are at most so many bandwidths apart.
_GAP = 2.0
# A branch that nowhere reaches this height, in noise standard deviations, is not shown at all.
_LEAST_TOP = 3.0
# Branches with a valley shallower than this, in standard deviations, are one ridge with noise on it.
_SHALLOW = 1.5
# Where two branches lie over the same predictors, the valley between them must be this many times as deep as
# noise makes it; by benchmarks/false_branches.py.
_VALLEY_FACTOR = 0.72
# The arrays of a `BranchSet` with one entry per node.
_PER_NODE = (
    *("branch", "point", "estimate", "density", "curvature", "slope"),
    *("variance_privacy", "variance_sampling", "snr", "mass", "certified"),
)


@dataclass(frozen=True, eq=False)
class BranchSet:
    """Branches of conditional modes on a grid of predictor values.

    Arrays of length k have one entry per node (a branch at one point of the grid), sorted by branch and
    then by grid point.

    Parameters
    ----------
    axes : tuple of p arrays
        The grid of each predictor.
    branch : (k,) int array
        Number of the branch, from 0; branch 0 holds the largest share.
    point : (k,) int array
        Point of the product grid, last predictor fastest.
    estimate, density, curvature : (k,) arrays
        Conditional mode; joint density there and its second derivative along the response (negative).
    slope : (k, p) array
        Of the branch along each predictor.
    variance_privacy, variance_sampling : (k,) arrays
        Of the estimate, as the mode of the smoothed density.
    snr : (k,) array
        Density over its standard deviation, privacy and sampling.
    mass : (k,) array
        Density mass of the mode's basin in the response, per unit of the predictors.
    certified : (k,) bool array
        Whether the node is part of a branch that is told from noise.
    total : (c,) array
        Density of the predictors at every point of the grid.
    false_branch_rate : float
    """

    axes: tuple[FloatArray, ...]
    branch: IntArray
    point: IntArray
    estimate: FloatArray
    density: FloatArray
    curvature: FloatArray
    slope: FloatArray
    variance_privacy: FloatArray
    variance_sampling: FloatArray
    snr: FloatArray
    mass: FloatArray
    certified: BoolArray
    total: FloatArray
    false_branch_rate: float

    @property
    def count(self) -> int:
        """Number of branches."""
        return int(self.branch.max()) + 1 if self.branch.size else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the predictors' grid."""
        return tuple(a.size for a in self.axes)

    def points(self) -> FloatArray:
        """Return the predictors at each node, (k, p)."""
        index = np.unravel_index(self.point, self.shape)
        return np.stack([axis[i] for axis, i in zip(self.axes, index, strict=True)], axis=1)

    def conditional_share(self) -> FloatArray:
        """Return the share of each node's basin in the conditional mass, (k,); NaN where unknown."""
        total = self.total[self.point]
        share = np.divide(self.mass, total, out=np.zeros_like(self.mass), where=total > 0)
        return np.clip(share, 0.0, 1.0)

    def shares(self) -> FloatArray:
        """Return the share of all mass in the basins of each branch, (count,); NaN where unknown."""
        whole = float(self.total.sum())
        held = np.bincount(self.branch, weights=self.mass, minlength=self.count)
        return np.clip(held / whole, 0.0, 1.0) if whole > 0 else np.zeros(self.count)

    def certified_branches(self) -> BoolArray:
        """Return whether each branch is certified anywhere, (count,)."""
        return np.bincount(self.branch, weights=self.certified, minlength=self.count) > 0

    def take(self, keep: BoolArray) -> BranchSet:
        """Return some of the nodes, branches numbered again by share."""
        return number_branches(replace(self, **{name: getattr(self, name)[keep] for name in _PER_NODE}))

    def certified_only(self) -> BranchSet:
        """Return the certified nodes alone."""
        return self.take(self.certified)


@dataclass(frozen=True, eq=False)
class BranchesAt:
    """The branches at given predictor values: (m, count) arrays, NaN where a branch is not there.

    Parameters
    ----------
    estimate, variance_privacy, variance_sampling, snr, share : (m, count) arrays
    certified : (m, count) bool array
    """

    estimate: FloatArray
    variance_privacy: FloatArray
    variance_sampling: FloatArray
    snr: FloatArray
    share: FloatArray
    certified: BoolArray


def find_branches(surface: Surface, response: int, *, false_branch_rate: float = 0.05) -> BranchSet:
    """Find the branches of conditional modes of one coordinate given the others.

    Parameters
    ----------
    surface : Surface
        Of two to four coordinates.
    response : int
        Position of the response among the surface's coordinates.
    false_branch_rate : float
        Chance that any certified branch is only noise.

    Returns
    -------
    BranchSet
        All branches that stand out at all; `certified` says which of them are told from noise.

    Raises
    ------
    InvalidArgument
        On another number of coordinates, or a rate outside (0, 1).
    """
    p = len(surface.columns) - 1
    if not 1 <= p <= MAX_PREDICTORS or not 0 <= response <= p:
        raise InvalidArgument(
            f"modal regression takes a response and 1 to {MAX_PREDICTORS} predictors, got {p} predictors"
        )
    rate = check_rate(false_branch_rate)
    slices = read_slices(surface, response)
    peaks = find_peaks(slices)
    peaks = peaks.take(_stands_out(slices, peaks))
    branch = link_peaks(peaks, slices.shape, _GAP * float(slices.bandwidth[-1]))
    top = np.zeros(branch.max(initial=-1) + 1)
    np.maximum.at(top, branch, _height_z(slices, peaks))
    shown = (_long_enough(slices, branch) & (top >= _LEAST_TOP))[branch]
    certified = (top[branch] >= height_threshold(slices.cells, rate)) & _inside(slices, peaks)
    shown &= certified | slices.known()[peaks.column]
    found = _branch_set(slices, peaks.take(shown), branch[shown], certified[shown], rate)
    found = found.take(_apart(slices, found, _SHALLOW, np.ones(found.count, dtype=np.bool_)))
    limit = valley_threshold(slices.cells)
    certain = _apart(slices, found, limit, found.certified_branches())
    return replace(found, certified=found.certified & certain)


def _height_z(slices: Slices, peaks: Peaks) -> FloatArray:
    """Return heights in standard deviations: of the privacy noise, or of sampling where there is none."""
    sd = slices.noise_sd if slices.noise_sd > 0 else slices.density_sd(peaks.height)
    return np.asarray(peaks.height / sd)


def _inside(slices: Slices, peaks: Peaks) -> BoolArray:
    """Return which peaks are a bandwidth inside the box: at a bound values beyond it may pile up."""
    margin = float(slices.bandwidth[-1])
    low, high = slices.responses[0] + margin, slices.responses[-1] - margin
    return np.asarray((peaks.response > low) & (peaks.response < high))


def _stands_out(slices: Slices, peaks: Peaks) -> BoolArray:
    """Return which peaks are high enough in their slice, above the noise, and no tail of the kernel."""
    clear = peaks.prominence >= CLEAR_VALLEY * slices.density_sd(peaks.height)
    high = (peaks.relative >= LEAST_RELATIVE) | clear
    return np.asarray(high & (_height_z(slices, peaks) >= LEAST_HEIGHT) & (edge_ratio(slices, peaks) >= EDGE))


def _long_enough(slices: Slices, branch: IntArray) -> BoolArray:
    """Return whether each branch covers at least one bandwidth of each predictor (as a volume)."""
    cell = math.prod(float(a[1] - a[0]) for a in slices.axes)
    return np.asarray(np.bincount(branch) * cell >= float(np.prod(slices.bandwidth[:-1])))


def _branch_set(
    slices: Slices, peaks: Peaks, branch: IntArray, certified: BoolArray, rate: float
) -> BranchSet:
    squared = _steady_curvature(slices, peaks, branch) ** 2
    density = peaks.height
    sampling = slices.gradient_roughness * np.maximum(density, 0.0) / slices.records
    found = BranchSet(
        axes=slices.axes,
        branch=branch,
        point=peaks.column,
        estimate=peaks.response,
        density=density,
        curvature=peaks.curvature,
        slope=_slopes(slices, peaks, branch),
        variance_privacy=slices.gradient_variance / squared,
        variance_sampling=sampling / squared,
        snr=density / slices.density_sd(density),
        mass=_basin_mass(slices, peaks),
        certified=certified,
        total=slices.density.sum(axis=1) * slices.step,
        false_branch_rate=rate,
    )
    return number_branches(found)


def _steady_curvature(slices: Slices, peaks: Peaks, branch: IntArray) -> FloatArray:
    """Return the curvature at each peak as the median along its branch, within a bandwidth (one predictor).

    At single points noise makes the curvature nearly zero now and then, and the error would explode.
    """
    out = np.array(peaks.curvature)
    if len(slices.axes) > 1:
        return out
    axis = slices.axes[0]
    reach = max(1, math.ceil(float(slices.bandwidth[0]) / float(axis[1] - axis[0])))
    for b in range(int(branch.max(initial=-1)) + 1):
        own = np.flatnonzero(branch == b)
        along = np.pad(peaks.curvature[own], reach, mode="reflect") if own.size > reach else None
        if along is not None:
            windows = np.lib.stride_tricks.sliding_window_view(along, 2 * reach + 1)
            out[own] = np.median(windows, axis=1)
    return out


def number_branches(found: BranchSet) -> BranchSet:
    """Return the same nodes with branches numbered by share and sorted."""
    if not found.branch.size:
        return found
    _, branch = np.unique(found.branch, return_inverse=True)
    held = np.bincount(branch.reshape(-1), weights=found.mass)
    rank = np.empty(held.size, dtype=np.int64)
    rank[np.argsort(-held, kind="stable")] = np.arange(held.size)
    number = rank[branch.reshape(-1)]
    order = np.lexsort((found.point, number))
    arrays = {name: getattr(found, name)[order] for name in _PER_NODE} | {"branch": number[order]}
    return replace(found, **arrays)


def _slopes(slices: Slices, peaks: Peaks, branch: IntArray) -> FloatArray:
    """Return the slope of each branch at its nodes, by differences to its neighbours on the grid."""
    shape = slices.shape
    index = np.stack(np.unravel_index(peaks.column, shape), axis=1)
    out = np.zeros((peaks.column.size, len(shape)))
    key = branch * slices.density.shape[0] + peaks.column
    order = np.argsort(key)
    for axis, grid in enumerate(slices.axes):
        stride = int(np.prod(shape[axis + 1 :], dtype=np.int64))
        rise, run = np.zeros(key.size), np.zeros(key.size)
        for sign in (-1, 1):
            inside = (index[:, axis] + sign >= 0) & (index[:, axis] + sign < shape[axis])
            place = np.searchsorted(key[order], key + sign * stride).clip(0, max(key.size - 1, 0))
            other = order[place]
            there = inside & (key[other] == key + sign * stride)
            rise += np.where(there, sign * (peaks.response[other] - peaks.response), 0.0)
            run += there * (grid[1] - grid[0])
        out[:, axis] = np.divide(rise, run, out=np.zeros_like(rise), where=run > 0)
    return out


def _basin_mass(slices: Slices, peaks: Peaks) -> FloatArray:
    """Return the mass between the valleys on either side of each peak, noise left in."""
    p, step = slices.density, slices.step
    cumulative = np.concatenate([np.zeros((p.shape[0], 1)), np.cumsum(p, axis=1)], axis=1) * step
    start, stop = np.zeros(peaks.column.size, dtype=np.int64), np.full(peaks.column.size, p.shape[1])
    for i in np.flatnonzero(peaks.column[1:] == peaks.column[:-1]).tolist():
        first, last = int(peaks.place[i]), int(peaks.place[i + 1])
        cut = first + int(np.argmin(p[peaks.column[i], first : last + 1]))
        stop[i], start[i + 1] = cut, cut
    return np.asarray(cumulative[peaks.column, stop] - cumulative[peaks.column, start])


def _apart(slices: Slices, found: BranchSet, limit: float, asked: BoolArray) -> BoolArray:
    """Return which nodes belong to branches that stand apart from the larger ones among those asked for.

    Noise on one wide ridge makes several peaks. Two branches over the same predictors count as two only
    if somewhere the valley between them is `limit` standard deviations deep. Where it is not, the smaller
    branch goes when half of it lies over the larger one, and else the lower nodes of the two.
    """
    keep = asked[found.branch]
    kept: list[int] = []
    places = [_places(found, b) for b in range(found.count)]
    for b in np.flatnonzero(asked).tolist():
        shallow = [a for a in kept if _valley_depth(slices, places[a], places[b]) < limit]
        shared = [places[a].keys() & places[b].keys() for a in shallow]
        if any(2 * len(columns) >= len(places[b]) for columns in shared):
            keep[found.branch == b] = False
            continue
        kept.append(b)
        for a, columns in zip(shallow, shared, strict=True):
            for column in columns:
                lower = a if places[a][column][1] < places[b][column][1] else b
                keep[(found.branch == lower) & (found.point == column)] = False
    return keep


def valley_threshold(cells: FloatArray) -> float:
    """Return how deep a valley between two branches must be, in standard deviations.

    `cells` are the box sides in correlation lengths of the noise. Slices a correlation length apart
    are nearly independent; end to end they are one long slice, whose largest persistence is tabulated.
    """
    return _VALLEY_FACTOR * float(persistence_quantile(float(np.prod(np.maximum(cells, 1.0))), 1))


def _places(found: BranchSet, b: int) -> dict[int, tuple[float, float]]:
    own = found.branch == b
    values = zip(found.estimate[own].tolist(), found.density[own].tolist(), strict=True)
    return dict(zip(found.point[own].tolist(), values, strict=True))


def _valley_depth(
    slices: Slices, first: dict[int, tuple[float, float]], second: dict[int, tuple[float, float]]
) -> float:
    """Return the largest depth of the valley between two branches, in standard deviations; infinite apart."""
    deepest = -math.inf
    for column in first.keys() & second.keys():
        (y, height), (other, other_height) = first[column], second[column]
        ends = np.searchsorted(slices.responses, sorted((y, other)))
        between = slices.density[column, ends[0] : ends[1] + 1]
        lower = min(height, other_height)
        depth = (lower - float(between.min(initial=lower))) / float(slices.density_sd(np.array(lower)))
        deepest = max(deepest, depth)
    return deepest if deepest > -math.inf else math.inf


def branches_at(found: BranchSet, points: FloatArray) -> BranchesAt:
    """Evaluate branches between grid points: blended first-order expansions of the nodes around.

    Parameters
    ----------
    found : BranchSet
    points : (m, p) array
        Predictor values inside the grid.

    Returns
    -------
    BranchesAt
        A branch is there where it has a node at the nearest point of the grid.
    """
    m, p = points.shape
    table = np.full((found.count, int(np.prod(found.shape, dtype=np.int64))), -1)
    table[found.branch, found.point] = np.arange(found.branch.size)
    low, inside = [], []
    for axis, x in zip(found.axes, points.T, strict=True):
        place = np.clip((x - axis[0]) / (axis[1] - axis[0]), 0, axis.size - 1)
        cell = np.minimum(place.astype(np.int64), axis.size - 2)
        low.append(cell)
        inside.append(place - cell)
    nearest = np.ravel_multi_index(
        tuple(c + (t >= 0.5) for c, t in zip(low, inside, strict=True)), found.shape
    )
    home = table[:, nearest].T
    there = home >= 0
    known = found.points()
    weight, value = np.zeros(home.shape), np.zeros(home.shape)
    for corner in np.ndindex(*(2,) * p):
        flat = np.ravel_multi_index(tuple(c + k for c, k in zip(low, corner, strict=True)), found.shape)
        share = np.ones(m)
        for t, k in zip(inside, corner, strict=True):
            share = share * (t if k else 1 - t)
        node = table[:, flat].T
        usable = there & (node >= 0)
        i, b = np.nonzero(usable)
        n = node[i, b]
        guess = found.estimate[n] + np.sum(found.slope[n] * (points[i] - known[n]), axis=1)
        weight[i, b] += share[i]
        value[i, b] += share[i] * guess
    estimate = np.divide(value, weight, out=np.full(home.shape, np.nan), where=there & (weight > 0))
    shares = found.conditional_share()

    def of(values: FloatArray) -> FloatArray:
        taken = values[np.maximum(home, 0)] if values.size else np.zeros(home.shape)
        return np.where(there, taken, np.nan)

    certified = there & (found.certified[np.maximum(home, 0)] if found.branch.size else there)
    return BranchesAt(
        estimate,
        of(found.variance_privacy),
        of(found.variance_sampling),
        of(found.snr),
        of(shares),
        certified,
    )
