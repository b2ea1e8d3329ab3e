"""Find the modes of any surface, judge each against the surface's own noise, and measure its error.

Knows nothing of privacy: a released surface and a plain kernel density estimate go through the
same code, the second with noise zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import index

import numpy as np

from ..budget import as_number
from ..errors import InvalidArgument
from .basins import assign_basins, sampled_shares
from .mode_ascent import Ascent, ascend
from .mode_candidates import (
    FIRST_STEP,
    GRID_DIMENSIONS,
    Candidates,
    grid_candidates,
    noise_lengths,
    point_candidates,
    search_grid,
)
from .mode_errors import cells_ratio, curvature_z_scores, location_covariances, safe_ratio, total_variance
from .mode_merging import MergedPoints, merge_by_radius, merge_by_ward
from .mode_refinement import lattice_reading, refine_modes
from .mode_set import BoolArray, IntArray, ModeSearchDiagnostics, ModeSet
from .persistence import drain, elder_tree
from .ridges import survive_on_ridges
from .significance import Look, check_look, check_rate, height_rate, height_threshold, persistence_threshold
from .surfaces import FloatArray, Surface

__all__ = ["Ascent", "ascend", "assign_basins", "find_modes"]

HEIGHT_IN_SDS = 3.0  # of the total (privacy and sampling) error of the height
_EDGE_BANDWIDTHS = 1.5
_RELIABLE_CURVATURE = 5.0  # noise sds below which linearised intervals undercover
_SAME_PEAK = 0.05  # bandwidths: ends closer than this are one peak, whatever number is asked for
_SPARE = 8  # candidates refined beyond the number asked for, in case some meet


@dataclass(frozen=True)
class _Rule:
    """What the caller asked for, checked, and the thresholds that follow from the surface."""

    n_modes: int | None
    rate: float
    merge_radius: float
    noise_sd: float
    level: float  # in noise sds, from the expected Euler characteristic
    look: Look

    @property
    def height(self) -> float:
        return self.level * self.noise_sd


@dataclass(frozen=True)
class _Verdicts:
    """How each candidate fares against the thresholds."""

    high: BoolArray
    lasting: BoolArray
    persistence_z: FloatArray


@dataclass(frozen=True)
class _Chosen:
    """The candidates that became modes: one representative each, and where all the others went."""

    ends: FloatArray  # (k, d)
    steps: IntArray
    converged: BoolArray
    mode_of: IntArray  # (candidates,) number of the mode that each candidate's basin belongs to
    significant: BoolArray
    kept: BoolArray  # (candidates,) whether it is a mode or merged into one


def find_modes(
    surface: Surface,
    *,
    n_modes: int | None = None,
    false_mode_rate: float = 0.05,
    grid_step: float | None = None,
    merge_radius: float | None = None,
    max_grid: int = 2_000_000,
    refine: bool = True,
    look: Look = "only",
    starts: FloatArray | None = None,
) -> ModeSet:
    """Find the modes of a surface, with errors, basin masses and the evidence for each.

    A local maximum is a mode when its height exceeds what the surface's noise reaches anywhere in
    the box (expected Euler characteristic) and three total standard deviations, and its persistence
    exceeds what noise reaches over the island that it stands on, and one total standard deviation.
    The highest maximum is kept in any case; `significant` says whether it passed. Maxima at or
    below zero are never modes.

    Up to three dimensions the maxima are those of a grid over the box. From four on they are the
    ends of ascents from a public point set, and saddles are those of paths between them that start
    straight and climb.

    Parameters
    ----------
    surface : Surface
        Released or not, in one to eight dimensions.
    n_modes : int, optional
        Return so many modes instead: the most persistent ones (in standard deviations), grouped
        by Ward's criterion in four dimensions and more without `starts`. Fewer, when there are fewer maxima.
    false_mode_rate : float
        Chance that noise alone passes the height threshold. Persistence is always held at 5%.
    grid_step : float, optional
        Step of the search grid in bandwidths, 0.4 by default.
    merge_radius : float, optional
        Modes closer than this, in bandwidths, are one: 1 by default, and only identical ones
        when `n_modes` is given.
    max_grid : int
        Most nodes of the search grid. A box that needs more gets a coarser grid, flagged in the
        diagnostics when its step exceeds `h / 1.5`.
    refine : bool
        Sharpen the locations, and make their errors hold the smoothing bias, by a fit to the
        surface's coefficients (one to three dimensions; see `mode_refinement`). Height, mass and
        curvature stay those of the surface. Without it a location is the surface's own maximum, and
        its interval is for the maximum of the smoothed density.
    look : {"only", "widest", "narrower"}
        Which reading of a ladder this is, when several of one release are searched: the thresholds
        are then higher, so that the rate holds for all together. See `scale_choice`.
    starts : (m, d) array, optional
        From four dimensions on: climb from here instead of from public points. For centres that were fitted
        to the same release, which find the peaks in a fraction of the time.

    Returns
    -------
    ModeSet
        Highest mode first; no modes when no maximum is above zero.

    Raises
    ------
    InvalidArgument
        If a parameter is outside what is allowed.
    """
    rule = _rule(surface, n_modes, false_mode_rate, merge_radius, check_look(look))
    step = FIRST_STEP if grid_step is None else _positive(grid_step, "grid_step")
    candidates = _candidates(surface, rule, step, _whole(max_grid, "max_grid"), starts)
    verdicts = _judge(surface, rule, candidates)
    if candidates.count == 0 or not candidates.heights[0] > 0:
        nothing = _diagnose(surface, rule, candidates, verdicts, None)
        return _no_modes(surface.lower.size, nothing)
    chosen = _choose(surface, rule, candidates, verdicts, by_ward=candidates.grid is None and starts is None)
    diagnostics = _diagnose(surface, rule, candidates, verdicts, chosen)
    modes = _measure(surface, candidates, chosen, diagnostics)
    return _refined(surface, modes) if refine else modes


def _rule(surface: Surface, n_modes: object, rate: object, merge_radius: object, look: Look) -> _Rule:
    wanted = None if n_modes is None else _whole(n_modes, "n_modes")
    if merge_radius is None:
        radius = 1.0 if wanted is None else _SAME_PEAK
    else:
        radius = as_number(merge_radius, "merge_radius")
        if not radius >= 0:
            raise InvalidArgument(f"merge_radius must be at least 0 bandwidths, got {radius}; try 1")
    lengths = (surface.upper - surface.lower) / noise_lengths(surface)
    rate = check_rate(rate)
    return _Rule(
        n_modes=wanted,
        rate=rate,
        merge_radius=radius,
        noise_sd=math.sqrt(max(surface.noise.value, 0.0)),
        level=height_threshold(lengths, height_rate(rate, look)),
        look=look,
    )


def _whole(value: object, name: str) -> int:
    """Return a whole number of at least 1, or refuse."""
    if isinstance(value, bool | np.bool_):
        raise InvalidArgument(f"{name} must be a whole number, got a boolean")
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise InvalidArgument(f"{name} must be a whole number, got {type(value).__name__}") from error
    if number < 1:
        raise InvalidArgument(f"{name} must be at least 1, got {number}")
    return number


def _positive(value: object, name: str) -> float:
    number = as_number(value, name)
    if not 0 < number < math.inf:
        raise InvalidArgument(f"{name} must be positive and finite, got {number}; try 0.4")
    return number


def _candidates(
    surface: Surface, rule: _Rule, step: float, max_grid: int, starts: FloatArray | None
) -> Candidates:
    if surface.lower.size <= GRID_DIMENSIONS:
        return grid_candidates(surface, search_grid(surface, step=step, max_nodes=max_grid))
    return point_candidates(
        surface,
        worth_joining=lambda heights: _high(surface, rule, heights),
        at_least=1 if rule.n_modes is None else (3 if starts is None else 1) * rule.n_modes,
        starts=starts,
    )


def _high(surface: Surface, rule: _Rule, heights: FloatArray) -> BoolArray:
    """Say which heights noise alone would rarely reach."""
    error = np.sqrt(total_variance(surface, heights))
    return np.asarray((heights > 0) & (heights >= rule.height) & (heights >= HEIGHT_IN_SDS * error))


def _judge(surface: Surface, rule: _Rule, candidates: Candidates) -> _Verdicts:
    error = np.sqrt(total_variance(surface, candidates.heights))
    persistence = candidates.heights - candidates.deaths
    score = safe_ratio(persistence, error)
    score[~np.isfinite(persistence)] = np.inf
    cells = candidates.cells * cells_ratio(surface, candidates.heights)
    needed = persistence_threshold(cells, surface.lower.size, rule.look)
    high, lasting = _high(surface, rule, candidates.heights), score >= needed
    if candidates.grid is not None:
        lasting = survive_on_ridges(surface, candidates, lasting, persistence, rule.look)
    return _Verdicts(high, lasting, score)


def _choose(
    surface: Surface, rule: _Rule, candidates: Candidates, verdicts: _Verdicts, *, by_ward: bool
) -> _Chosen:
    """Refine the candidates that pass (or rank first), and merge those that meet."""
    significant = verdicts.high & verdicts.lasting
    if rule.n_modes is None:
        pool = np.flatnonzero(significant | (np.arange(candidates.count) == 0))
    else:
        pool = _ranked(candidates, verdicts, rule.n_modes)
    climb = ascend(surface, candidates.points[pool])
    scaled = climb.ends / surface.bandwidth
    heights = surface.density(climb.ends)
    groups = merge_by_radius(scaled, heights, rule.merge_radius)
    if rule.n_modes is not None:
        groups = _limit(groups, scaled, heights, pool, rule.n_modes, by_ward)
    best = groups.representatives
    used = groups.labels >= 0
    target = candidates.neighbours.copy()
    target[pool[used]] = pool[best[groups.labels[used]]]
    number = np.full(candidates.count, -1, dtype=np.int64)
    number[pool[best]] = np.arange(best.size)
    kept = np.zeros(candidates.count, dtype=np.bool_)
    kept[pool[used]] = True
    passed = np.zeros(best.size, dtype=np.bool_)
    np.logical_or.at(passed, groups.labels[used], significant[pool[used]])
    return _Chosen(
        ends=climb.ends[best],
        steps=candidates.steps[pool[best]] + climb.steps[best],
        converged=climb.converged[best],
        mode_of=number[drain(target, pool[best])],
        significant=passed,
        kept=kept,
    )


def _ranked(candidates: Candidates, verdicts: _Verdicts, n_modes: int) -> IntArray:
    """Return the candidates above zero, the most persistent first, with some to spare."""
    order = np.argsort(-verdicts.persistence_z, kind="stable")
    order = order[candidates.heights[order] > 0]
    return order[: n_modes + _SPARE if candidates.grid is not None else 3 * n_modes]


def _limit(
    groups: MergedPoints,
    scaled: FloatArray,
    heights: FloatArray,
    pool: IntArray,
    n_modes: int,
    by_ward: bool,
) -> MergedPoints:
    """Cut the groups down to `n_modes`: by rank on a grid (label -1 for the rest), else by Ward."""
    best = groups.representatives
    if groups.count <= n_modes:
        return groups
    if by_ward:
        wards = merge_by_ward(scaled[best], n_modes, heights[best])
        return MergedPoints(wards.labels[groups.labels], best[wards.representatives], wards.centres)
    rank = np.full(groups.count, pool.size)
    np.minimum.at(rank, groups.labels, np.arange(pool.size))
    first = np.sort(np.argsort(rank, kind="stable")[:n_modes])
    number = np.full(groups.count, -1, dtype=np.int64)
    number[first] = np.arange(first.size)
    return MergedPoints(number[groups.labels], best[first], groups.centres[first])


def _measure(
    surface: Surface, candidates: Candidates, chosen: _Chosen, diagnostics: ModeSearchDiagnostics
) -> ModeSet:
    """Describe every mode, highest first."""
    density, _, hessian = surface.derivatives(chosen.ends)
    deaths = _deaths_among_modes(candidates, chosen.mode_of, density)
    if candidates.mass is None:
        mass = sampled_shares(surface, chosen.ends, density, hessian)
    else:
        mass = _shares(candidates.mass, chosen.mode_of, density.size)
    error = np.sqrt(total_variance(surface, density))
    persistence = np.maximum(density - deaths, 0.0)
    persistence_z = safe_ratio(persistence, error)
    persistence_z[np.isinf(persistence)] = np.inf
    on_face = (chosen.ends <= surface.lower) | (chosen.ends >= surface.upper)
    privacy, sampling = location_covariances(surface, density, hessian, on_face)
    curvature_z = curvature_z_scores(surface, hessian)
    known = np.isfinite(privacy).all(axis=(1, 2)) & np.isfinite(sampling).all(axis=(1, 2))
    steep = curvature_z >= _RELIABLE_CURVATURE
    # The kernel spills mass over a face: closer than this a mode sits where the edge put it.
    room = np.minimum(chosen.ends - surface.lower, surface.upper - chosen.ends) / surface.bandwidth
    inside = (room >= _EDGE_BANDWIDTHS).all(axis=1)
    reliable = steep & known & chosen.significant & chosen.converged & inside
    order = np.argsort(-density, kind="stable")
    return ModeSet(
        locations=chosen.ends[order],
        densities=density[order],
        covariance_privacy=privacy[order],
        covariance_sampling=sampling[order],
        covariance_bias=np.zeros_like(privacy),
        mass=mass[order],
        height_z=safe_ratio(density, error)[order],
        persistence=persistence[order],
        persistence_z=persistence_z[order],
        curvature_z=curvature_z[order],
        reliable=reliable[order],
        refined=np.zeros(density.size, dtype=np.bool_),
        significant=chosen.significant[order],
        on_face=on_face[order],
        diagnostics=diagnostics,
    )


def _refined(surface: Surface, modes: ModeSet) -> ModeSet:
    """Replace locations and their errors by refined ones, where the surface allows it.

    Modes on a face of the box stay where they are.
    """
    inside = np.flatnonzero(~modes.on_face.any(axis=1))
    inner = lattice_reading(surface)
    better = refine_modes(surface if inner is None else inner.in_reading_units(), modes.locations[inside])
    if better is None:
        return modes
    moved = inside[better.refined]
    parts = {
        name: getattr(modes, name).copy()
        for name in ("locations", "covariance_privacy", "covariance_sampling", "refined", "reliable")
    }
    for name in ("locations", "covariance_privacy", "covariance_sampling"):
        parts[name][moved] = getattr(better, name)[better.refined]
    parts["refined"][inside] = True
    parts["reliable"][inside] &= better.checked
    bias = modes.covariance_bias.copy()
    bias[inside] = better.covariance_bias
    return replace(modes, covariance_bias=bias, **parts)


def _shares(candidate_mass: FloatArray, mode_of: IntArray, count: int) -> FloatArray:
    """Return each mode's share of the mass of all basins; equal shares when there is none."""
    mass = np.zeros(count)
    np.add.at(mass, mode_of, candidate_mass)
    whole = float(mass.sum())
    return mass / whole if whole > 0 else np.full(count, 1.0 / count)


def _deaths_among_modes(candidates: Candidates, mode_of: IntArray, density: FloatArray) -> FloatArray:
    """Return the level at which each mode meets a higher one, by its refined height.

    The death edges of all candidates span their merge tree, so the highest pass between two modes
    is on it; refined heights can only change who is the elder.
    """
    one, two = mode_of, mode_of[candidates.neighbours]
    between = one != two
    return elder_tree(density, one[between], two[between], candidates.deaths[between]).deaths


def _diagnose(
    surface: Surface, rule: _Rule, candidates: Candidates, verdicts: _Verdicts, chosen: _Chosen | None
) -> ModeSearchDiagnostics:
    grid = candidates.grid
    kept = np.zeros(candidates.count, dtype=np.bool_) if chosen is None else chosen.kept
    found = 0 if chosen is None else chosen.ends.shape[0]
    return ModeSearchDiagnostics(
        candidates=candidates.count,
        dropped_by_height=int(np.count_nonzero(~kept & ~verdicts.high)),
        dropped_by_persistence=int(np.count_nonzero(~kept & verdicts.high)),
        merged=int(np.count_nonzero(kept)) - found,
        noise_cells=float(np.prod((surface.upper - surface.lower) / noise_lengths(surface))),
        height_threshold=rule.height,
        false_mode_rate=rule.rate,
        grid_shape=() if grid is None else grid.shape,
        newton_steps=0 if chosen is None else int(chosen.steps.max()),
        all_converged=True if chosen is None else bool(chosen.converged.all()),
        requested=0 if rule.n_modes is None else rule.n_modes,
        coarse_grid=False if grid is None else grid.coarse,
    )


def _no_modes(dimension: int, diagnostics: ModeSearchDiagnostics) -> ModeSet:
    none = np.empty(0)
    return ModeSet(
        locations=np.empty((0, dimension)),
        densities=none,
        covariance_privacy=np.empty((0, dimension, dimension)),
        covariance_sampling=np.empty((0, dimension, dimension)),
        covariance_bias=np.empty((0, dimension, dimension)),
        mass=none,
        height_z=none,
        persistence=none,
        persistence_z=none,
        curvature_z=none,
        reliable=np.empty(0, dtype=np.bool_),
        refined=np.empty(0, dtype=np.bool_),
        significant=np.empty(0, dtype=np.bool_),
        on_face=np.empty((0, dimension), dtype=np.bool_),
        diagnostics=diagnostics,
    )
