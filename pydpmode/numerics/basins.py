"""Say which mode each of many points belongs to, and how much mass each mode holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidArgument
from .mode_ascent import ascend
from .mode_candidates import GRID_DIMENSIONS, SearchGrid, nearest, public_points, search_grid
from .mode_set import IntArray
from .persistence import drain, grid_persistence
from .spectral_surfaces import coarse_reading
from .surfaces import FloatArray, Surface

_SHARE_POINTS = 1024  # around all modes together
_FEWEST_AROUND_A_MODE = 64
_CLIMB_STEPS, _CLIMB_ROUNDS = 4, 25
_ARRIVED = 0.5  # bandwidths from a mode: a climb that is so near goes there
_NARROWEST_SPREAD, _WIDEST_SPREAD = 0.5, 5.0  # bandwidths


def assign_basins(
    surface: Surface, modes: ArrayLike, points: ArrayLike, *, max_grid: int = 2_000_000
) -> IntArray:
    """Assign points to the modes whose basins they lie in.

    Up to three dimensions the basins are those of the search grid, peaks that are no mode drained
    into their neighbours, and a point takes the basin of its nearest node: as in the basin masses,
    and in linear time for any number of points. From four dimensions on every point climbs the
    surface and takes the mode nearest to where it ends.

    Parameters
    ----------
    surface : Surface
        On which the modes were found.
    modes : (k, d) array
        Locations of the modes. They need not be exact maxima: a mode claims the basin it lies in,
        and modes in the same basin share it by distance in bandwidths.
    points : (m, d) array
        Points outside the box count as the nearest point of the box.
    max_grid : int
        Most nodes of the grid.

    Returns
    -------
    (m,) int array
        Row of `modes`, or -1 when there are no modes.

    Raises
    ------
    InvalidArgument
        If the shapes do not fit the surface.
    """
    d = surface.lower.size
    centres, places = _check(modes, d, "modes"), _check(points, d, "points")
    if centres.shape[0] == 0:
        return np.full(places.shape[0], -1, dtype=np.int64)
    places = np.clip(places, surface.lower, surface.upper)
    if centres.shape[0] == 1:
        return np.zeros(places.shape[0], dtype=np.int64)
    if d > GRID_DIMENSIONS:
        return _by_climbing(surface, centres, places)
    return _by_grid(surface, centres, places, max_grid)


def _by_climbing(surface: Surface, centres: FloatArray, places: FloatArray) -> IntArray:
    """Climb until a centre is near; the rest, after a full climb's steps, take the nearest centre."""
    label = np.full(places.shape[0], -1, dtype=np.int64)
    active, place = np.arange(places.shape[0]), places
    surface = coarse_reading(surface)
    for _ in range(_CLIMB_ROUNDS):
        climb = ascend(surface, place, max_steps=_CLIMB_STEPS)
        place = climb.ends
        closest = nearest(place, centres, surface.bandwidth)
        away = np.sqrt(np.sum(np.square((place - centres[closest]) / surface.bandwidth), axis=1))
        # At the top of a peak that is no mode a climb is over as well.
        arrived = (away < _ARRIVED) | climb.converged
        label[active[arrived]] = closest[arrived]
        active, place = active[~arrived], place[~arrived]
        if active.size == 0:
            return label
    label[active] = nearest(place, centres, surface.bandwidth)
    return label


def sampled_shares(
    surface: Surface, modes: FloatArray, density: FloatArray, hessian: FloatArray
) -> FloatArray:
    """Return each mode's share of the positive part of the surface, without a grid.

    Importance sampling with public points: a quarter uniform over the box, the others normal around
    each mode with the spread that its curvature implies. Points go to modes as in `assign_basins`.

    Parameters
    ----------
    surface : Surface
        Of four dimensions or more (works in any).
    modes, density, hessian : (k, d), (k,) and (k, d, d) arrays
        Locations, heights and curvatures of the modes, k at least 1.

    Returns
    -------
    (k,) array
        Adds to one. Equal shares when the sample meets no mass.
    """
    k = modes.shape[0]
    if k == 1:
        return np.ones(1)
    from scipy.special import ndtri  # imported here: slow to import

    spreads = _spreads(surface, density, hessian)
    around = max(2 ** int(np.log2(_SHARE_POINTS / k)), _FEWEST_AROUND_A_MODE)
    normal = ndtri(public_points(np.zeros(modes.shape[1]), np.ones(modes.shape[1]), around))
    parts = [
        mode + normal @ spread.T * surface.bandwidth for mode, spread in zip(modes, spreads, strict=True)
    ]
    uniform = public_points(surface.lower, surface.upper, k * normal.shape[0] // 3)
    points = np.concatenate([*parts, uniform])
    points = points[np.all((points >= surface.lower) & (points <= surface.upper), axis=1)]
    widths = (surface.upper - surface.lower) / surface.bandwidth
    chance = np.full(points.shape[0], uniform.shape[0] / float(np.prod(widths)))
    for mode, spread in zip(modes, spreads, strict=True):
        away = np.linalg.solve(spread, ((points - mode) / surface.bandwidth).T)
        scale = normal.shape[0] / float(np.prod(np.sqrt(2 * np.pi) * np.diag(spread)))
        chance += scale * np.exp(-0.5 * np.sum(np.square(away), axis=0))
    weight = np.maximum(surface.density(points), 0.0) / chance
    points, weight = points[weight > 0], weight[weight > 0]
    mass = np.bincount(assign_basins(surface, modes, points), weights=weight, minlength=k)
    whole = float(mass.sum())
    return mass / whole if whole > 0 else np.full(k, 1.0 / k)


def _spreads(surface: Surface, density: FloatArray, hessian: FloatArray) -> FloatArray:
    """Return Cholesky factors, in bandwidths, of the normal that matches each mode's curvature."""
    h = surface.bandwidth
    relative = -hessian * h[:, None] * h / np.maximum(density, np.finfo(float).tiny)[:, None, None]
    eigenvalues, vectors = np.linalg.eigh(relative)
    variance = 1.0 / np.clip(eigenvalues, _WIDEST_SPREAD**-2, _NARROWEST_SPREAD**-2)
    return np.linalg.cholesky(np.einsum("kab,kb,kcb->kac", vectors, variance, vectors))


def _check(points: ArrayLike, dimension: int, name: str) -> FloatArray:
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise InvalidArgument(f"{name} must have shape (m, {dimension}), got {array.shape}")
    return array


def _by_grid(surface: Surface, modes: FloatArray, points: FloatArray, max_grid: int) -> IntArray:
    grid = search_grid(surface, max_nodes=max_grid)
    found = grid_persistence(surface.density_on_grid(grid.axes))
    labels = np.maximum(found.labels, 0)
    basin_of_mode = labels[_nearest_nodes(surface, grid, modes)]
    # The highest peak stays a basin of its own even when no mode claims it: nearest mode there.
    drained = drain(found.neighbours, np.append(basin_of_mode, 0))
    basin = drained[labels[_nearest_nodes(surface, grid, points)]]
    claimants = np.bincount(basin_of_mode, minlength=found.count)
    only = np.full(found.count, -1, dtype=np.int64)
    only[basin_of_mode] = np.arange(modes.shape[0])
    label = only[basin]
    for shared in np.unique(basin[claimants[basin] != 1]):
        inside = basin == shared
        rivals = np.flatnonzero(basin_of_mode == shared)
        rivals = rivals if rivals.size else np.arange(modes.shape[0])
        label[inside] = rivals[nearest(points[inside], modes[rivals], surface.bandwidth)]
    return label


def _nearest_nodes(surface: Surface, grid: SearchGrid, points: FloatArray) -> tuple[IntArray, ...]:
    """Return the grid indices of the node nearest to each point of the box."""
    sizes = np.array(grid.shape)
    share = (np.clip(points, surface.lower, surface.upper) - surface.lower) / (surface.upper - surface.lower)
    nodes = np.rint(share * (sizes - 1)).astype(np.int64)
    return tuple(nodes.T)
