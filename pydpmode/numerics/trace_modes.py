"""Modes from the trace of noisy ascents: filter, merge, and measure what can be measured.

Two ways to finish. "iterates" is the published one: the ends of the ascents, filtered by their
density and merged. "regression" reads a smooth field through everything the trace holds (all rounds, not
the last alone), climbs that, and has standard errors. Both look at the trace only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from ..errors import InvalidArgument
from .mode_errors import safe_ratio
from .mode_merging import MergedPoints, merge_by_radius, merge_by_ward
from .mode_set import BoolArray, IntArray, ModeSearchDiagnostics, ModeSet
from .noisy_trace import NoisyTrace
from .surfaces import FloatArray
from .trace_field import TraceField

Finish = Literal["regression", "iterates"]
FINISHES: tuple[Finish, ...] = ("regression", "iterates")

_HEIGHT_IN_SDS = 3.0
_ARRIVED = 0.7  # of the highest density in a group: below it an ascent is still on its way
_PERSISTENCE_IN_SDS = 2.0  # of the difference between a mode and its saddle
_SAME_PEAK = 0.05  # bandwidths: climbs that end closer are one peak
_RELIABLE_CURVATURE = 5.0
_PATH_POINTS = 11
_WAYPOINT_SPACING = 0.75  # bandwidths between the points that paths may go through
_LONGEST_PIECE = 2.0
_MOST_WAYPOINTS = 60


@dataclass(frozen=True)
class _Peaks:
    """Candidate modes of the field, highest first, in bandwidth units."""

    places: FloatArray
    heights: FloatArray
    height_sds: FloatArray
    persistence: FloatArray
    persistence_z: FloatArray
    members: IntArray  # ascents that end there


def find_trace_modes(
    trace: NoisyTrace,
    lower: FloatArray,
    bandwidth: FloatArray,
    *,
    n_modes: int | None = None,
    false_mode_rate: float = 0.05,
    finish: Finish = "regression",
) -> ModeSet:
    """Find the modes that noisy ascents lead to.

    Parameters
    ----------
    trace : NoisyTrace
        In bandwidth units.
    lower, bandwidth : (d,) arrays
        Origin and unit of the trace, in the columns' units.
    n_modes : int, optional
        Number of modes to report; fewer when fewer are found. Found by radius merging otherwise.
    false_mode_rate : float
        Chance that pure noise at any of the k T points that were looked at passes the height filter.
    finish : {"regression", "iterates"}
        See the module. "regression" needs densities, gradients and a differentiable kernel.

    Returns
    -------
    ModeSet
        Highest first, in the columns' units. Basin masses are NaN: a trace does not cover the box.
        With "iterates" standard errors are NaN too, because no curvature was released.

    Raises
    ------
    InvalidArgument
        When the trace does not hold what `finish` needs.
    """
    if finish not in FINISHES:
        raise InvalidArgument(f"finish must be one of {list(FINISHES)}, got {finish!r}")
    if finish == "regression" and not (trace.has_statistics and trace.smooth):
        raise InvalidArgument(
            "finish='regression' needs released densities and gradients of a differentiable kernel; "
            "use finish='iterates'"
        )
    level = height_level(trace.count * trace.rounds, false_mode_rate)
    if finish == "iterates":
        found = _from_iterates(trace, n_modes, level, false_mode_rate)
    else:
        found = _from_field(trace, n_modes, level, false_mode_rate)
    return _in_units(found, lower, bandwidth)


def height_level(count: int, false_mode_rate: float) -> float:
    """Return the height, in standard deviations, that noise at any of `count` points rarely reaches."""
    return max(_HEIGHT_IN_SDS, NormalDist().inv_cdf(1 - false_mode_rate / count))


# -- the published finish ------------------------------------------------------------------------------


def _from_iterates(trace: NoisyTrace, n_modes: int | None, level: float, rate: float) -> ModeSet:
    ends = trace.positions[-1]
    if trace.has_statistics:
        density, noise = trace.late_densities()
        sds = np.sqrt(noise**2 + _sampling_variance(trace, density))
        keep = (density > 0) & (density >= level * sds)
    else:
        density, sds = np.full(trace.count, math.nan), np.full(trace.count, math.nan)
        keep = np.ones(trace.count, dtype=np.bool_)
    significant = bool(keep.any())
    if not significant:
        keep = density == density.max()
    kept = np.flatnonzero(keep)
    weights = np.nan_to_num(density[kept])
    merged = _merge(ends[kept], weights, n_modes)
    groups = [_arrived(kept[merged.labels == g], density) for g in range(merged.count)]
    centres = np.array([ends[g].mean(axis=0) for g in groups])
    heights = np.array([density[g].mean() for g in groups])
    # Noise at one mode is all but the same for its ascents: the mean is no better than one of them.
    errors = np.array([sds[g].mean() for g in groups])
    moved = np.linalg.norm(np.diff(trace.positions[-2:, kept], axis=0)[0], axis=1)
    order = np.argsort(-np.nan_to_num(heights), kind="stable")
    k, d = order.size, trace.dimension
    nothing = np.full((k, d, d), math.nan)
    return ModeSet(
        locations=centres[order],
        densities=heights[order],
        covariance_privacy=nothing,
        covariance_sampling=nothing,
        covariance_bias=np.zeros((k, d, d)),
        mass=np.full(k, math.nan),
        height_z=(heights / errors)[order],
        persistence=np.full(k, math.nan),
        persistence_z=np.full(k, math.nan),
        curvature_z=np.full(k, math.nan),
        reliable=np.zeros(k, dtype=np.bool_),
        refined=np.zeros(k, dtype=np.bool_),
        significant=np.full(k, significant, dtype=np.bool_),
        on_face=_on_face(centres[order], trace.size),
        diagnostics=_diagnostics(
            trace,
            dropped_by_height=trace.count - kept.size,
            merged=kept.size - k,
            threshold=level * trace.late_densities()[1],
            rate=rate,
            converged=bool(np.median(moved) < 1.0),
            requested=n_modes,
        ),
    )


def _arrived(group: IntArray, density: FloatArray) -> IntArray:
    """Return a group without ascents that are still far down the flank (all, when no density is known)."""
    near = density[group] >= _ARRIVED * density[group].max()
    return group[near] if near.any() else group


def _merge(points: FloatArray, weights: FloatArray, n_modes: int | None) -> MergedPoints:
    """Merge by the paper's two rules: radius of one bandwidth, or Ward when the number is given."""
    if n_modes is None:
        return merge_by_radius(points, weights, 1.0)
    return merge_by_ward(points, n_modes, weights)


# -- the finish that uses every round ------------------------------------------------------------------


def _from_field(trace: NoisyTrace, n_modes: int | None, level: float, rate: float) -> ModeSet:
    field = TraceField.fit(trace)
    peaks, flat = _peaks(trace, field)
    high = peaks.heights >= level * peaks.height_sds
    lasting = peaks.persistence_z >= _PERSISTENCE_IN_SDS
    passed = high & lasting & (peaks.heights > 0)
    if n_modes is None:
        chosen = np.flatnonzero(passed | (np.arange(passed.size) == 0))
        chosen = chosen[merge_by_radius(peaks.places[chosen], peaks.heights[chosen], 1.0).representatives]
    else:
        ranked = np.argsort(-peaks.persistence_z, kind="stable")
        chosen = np.sort(ranked[peaks.heights[ranked] > 0][:n_modes])
    if chosen.size == 0:
        chosen = np.arange(1)
    lost = np.setdiff1d(np.arange(passed.size), chosen)
    privacy, sampling, curvature_z = _errors(trace, field, peaks, chosen)
    on_face = _on_face(peaks.places[chosen], trace.size)
    known = np.isfinite(privacy).all(axis=(1, 2)) & np.isfinite(sampling).all(axis=(1, 2))
    steep = curvature_z >= _RELIABLE_CURVATURE
    return ModeSet(
        locations=peaks.places[chosen],
        densities=peaks.heights[chosen],
        covariance_privacy=privacy,
        covariance_sampling=sampling,
        covariance_bias=np.zeros_like(privacy),
        mass=np.full(chosen.size, math.nan),
        height_z=safe_ratio(peaks.heights[chosen], peaks.height_sds[chosen]),
        persistence=peaks.persistence[chosen],
        persistence_z=peaks.persistence_z[chosen],
        curvature_z=curvature_z,
        reliable=known & steep & passed[chosen] & ~on_face.any(axis=1),
        refined=np.zeros(chosen.size, dtype=np.bool_),
        significant=passed[chosen],
        on_face=on_face,
        diagnostics=_diagnostics(
            trace,
            dropped_by_height=int(peaks.members[lost][~high[lost]].sum()) + flat,
            dropped_by_persistence=int(peaks.members[lost][high[lost]].sum()),
            merged=int(peaks.members[chosen].sum()) - chosen.size,
            threshold=level * float(np.median(peaks.height_sds)),
            rate=rate,
            converged=True,
            requested=n_modes,
        ),
    )


def _peaks(trace: NoisyTrace, field: TraceField) -> tuple[_Peaks, int]:
    """Climb the field from every end; return its peaks, and how many climbs found none."""
    ends = field.climb(trace.positions[-1], trace.size)
    value, _, hessian = field.derivatives(ends)
    peaked = (np.linalg.eigvalsh(hessian)[:, -1] < 0) | _on_face(ends, trace.size).any(axis=1)
    if not peaked.any():
        peaked = value == value.max()
    merged = merge_by_radius(ends[peaked], value[peaked], _SAME_PEAK)
    places, heights = ends[peaked][merged.representatives], value[peaked][merged.representatives]
    sds = np.sqrt(field.value_variance(places) + _sampling_variance(trace, heights))
    persistence, bottoms = _persistence(field, places, heights, trace.positions)
    z = np.full(heights.size, math.inf)
    for i in np.flatnonzero(np.isfinite(persistence)).tolist():
        variance = field.drop_variance(places[i], bottoms[i])
        z[i] = safe_ratio(persistence[i], np.sqrt(variance + _sampling_variance(trace, heights[i])))
    members = np.bincount(merged.labels, minlength=merged.count)
    return _Peaks(places, heights, sds, persistence, z, members), int(np.count_nonzero(~peaked))


def _persistence(
    field: TraceField, places: FloatArray, heights: FloatArray, visited: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return each peak's height above its saddle to a higher one, and where that saddle is.

    The saddle is the best of all paths made of straight pieces between peaks and points that ascents
    have visited. Infinite for the highest peak.
    """
    stops = visited.reshape(-1, places.shape[1])
    spread = merge_by_radius(stops, field.values(stops), _WAYPOINT_SPACING).representatives
    nodes = np.concatenate([places, stops[spread[:_MOST_WAYPOINTS]]])
    one, two = np.triu_indices(nodes.shape[0], 1)
    apart = np.linalg.norm(nodes[one] - nodes[two], axis=1)
    # Two peaks are always joined directly; by way of other points in short pieces.
    used = (two < heights.size) | (apart <= _LONGEST_PIECE)
    one, two = one[used].astype(np.int64), two[used].astype(np.int64)
    share = np.linspace(0.0, 1.0, _PATH_POINTS)[:, None]
    path = nodes[one, None] + share * (nodes[two] - nodes[one])[:, None]
    value = field.values(path.reshape(-1, places.shape[1])).reshape(one.size, _PATH_POINTS)
    bottom = np.argmin(value, axis=1)
    rows = np.arange(one.size)
    return _deaths(heights, nodes.shape[0], one, two, value[rows, bottom], path[rows, bottom])


def _deaths(
    heights: FloatArray, nodes: int, one: IntArray, two: IntArray, passes: FloatArray, lowest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Join nodes along the highest passes first; when two peaks meet, the lower one ends there."""
    parent = list(range(nodes))
    peak = [i if i < heights.size else -1 for i in range(nodes)]

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    drop = np.full(heights.size, math.inf)
    place = np.zeros((heights.size, lowest.shape[1]))
    for edge in np.argsort(-passes, kind="stable").tolist():
        a, b = root(int(one[edge])), root(int(two[edge]))
        if a == b:
            continue
        if peak[a] >= 0 and peak[b] >= 0:
            younger = peak[a] if heights[peak[a]] < heights[peak[b]] else peak[b]
            drop[younger] = max(float(heights[younger] - passes[edge]), 0.0)
            place[younger] = lowest[edge]
            peak[a] = peak[a] + peak[b] - younger
        elif peak[b] >= 0:
            peak[a] = peak[b]
        parent[b] = a
    return drop, place


def _errors(
    trace: NoisyTrace, field: TraceField, peaks: _Peaks, chosen: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the location covariances from noise and from sampling, and the curvatures' z-scores."""
    d = trace.dimension
    privacy = np.full((chosen.size, d, d), math.nan)
    sampling, z = privacy.copy(), np.zeros(chosen.size)
    _, _, hessians = field.derivatives(peaks.places[chosen])
    for row, (number, hessian) in enumerate(zip(chosen.tolist(), hessians, strict=True)):
        place = peaks.places[number]
        values, vectors = np.linalg.eigh(-hessian)
        variance = field.curvature_variance(place, vectors[:, 0])
        z[row] = float(safe_ratio(values[:1], np.sqrt(np.array([variance])))[0])
        if values[0] <= 0 or _on_face(place[None], trace.size).any():
            continue
        inverse = np.linalg.inv(hessian)
        privacy[row] = inverse @ field.gradient_covariance(place) @ inverse
        share = max(float(peaks.heights[number]), 0.0) * trace.roughness[1] / trace.records
        sampling[row] = share * inverse @ inverse
    return privacy, sampling, z


# -- shared ----------------------------------------------------------------------------------------------


def _sampling_variance(trace: NoisyTrace, density: FloatArray) -> FloatArray:
    positive = np.maximum(density, 0.0)
    return np.asarray(np.maximum(positive * (trace.roughness[0] - positive), 0.0) / trace.records)


def _on_face(places: FloatArray, size: FloatArray) -> BoolArray:
    return np.asarray((places <= 0) | (places >= size), dtype=np.bool_)


def _diagnostics(
    trace: NoisyTrace,
    *,
    dropped_by_height: int,
    merged: int,
    threshold: float,
    rate: float,
    converged: bool,
    requested: int | None,
    dropped_by_persistence: int = 0,
) -> ModeSearchDiagnostics:
    return ModeSearchDiagnostics(
        candidates=trace.count,
        dropped_by_height=dropped_by_height,
        dropped_by_persistence=dropped_by_persistence,
        merged=merged,
        noise_cells=math.nan,
        height_threshold=threshold,
        false_mode_rate=rate,
        grid_shape=(),
        newton_steps=0,
        all_converged=converged,
        requested=0 if requested is None else requested,
    )


def _in_units(modes: ModeSet, lower: FloatArray, bandwidth: FloatArray) -> ModeSet:
    """Return the modes in the columns' units."""
    volume = float(np.prod(bandwidth))
    areas = np.multiply.outer(bandwidth, bandwidth)
    return replace(
        modes,
        locations=lower + modes.locations * bandwidth,
        densities=modes.densities / volume,
        covariance_privacy=modes.covariance_privacy * areas,
        covariance_sampling=modes.covariance_sampling * areas,
        persistence=modes.persistence / volume,
        diagnostics=replace(modes.diagnostics, height_threshold=modes.diagnostics.height_threshold / volume),
    )
