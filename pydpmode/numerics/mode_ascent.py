"""Climb a surface from many starts at once: mean shift far away, Newton near the top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidArgument
from .mode_set import BoolArray, IntArray
from .surfaces import FloatArray, Surface

# All in bandwidths, or relative to the density at the point (at least the floor).
_LAST_STEP = 1e-6  # a Newton step this short leaves an error of about its square
_FLAT = 1e-10  # a gradient this small is zero
_LOOSE_FLAT = 1e-6  # what the gradient must be below to call a stalled climb finished
_SLACK = 1e-9  # fall of the density that is put down to rounding in the surface
_SHORTEST_TRIAL = 1e-8  # share of the step below which a climb has stalled
_LARGEST_GROWTH = 1e12  # how far repeated mean-shift steps may stretch, before the cap of h
_LEAST_CURVATURE = 1e-12  # curvature below this share of the density is flat: no Newton step
_DEFINITE = 1e-6  # least curvature, as a share of the largest, that Newton's step may divide by


class Ascent(NamedTuple):
    """Where climbs ended: `ends` (m, d), `steps` (m,) taken and whether each `converged` (m,)."""

    ends: FloatArray
    steps: IntArray
    converged: BoolArray


@dataclass
class _State:
    """The climbs under way: place, derivatives there, and how bold the next step is."""

    place: FloatArray
    value: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    trial: FloatArray
    growth: FloatArray


def ascend(
    surface: Surface, starts: ArrayLike, *, max_steps: int = 200, floor: float | None = None
) -> Ascent:
    """Climb the surface from every start to a maximum inside the box or on its faces.

    Where the Hessian is negative definite the step is Newton's, elsewhere the mean-shift step
    `h^2 grad p / max(p, floor)`; both are shortened to at most one bandwidth per axis, projected
    to the box, and shortened further until the density does not fall. A coordinate on a face
    whose gradient points out of the box is held there (the Karush-Kuhn-Tucker condition).
    All climbs share one call of `surface.derivatives` per step.

    Parameters
    ----------
    surface : Surface
        What to climb.
    starts : (m, d) array
        In the columns' units; projected to the box first.
    max_steps : int
        Steps after which a climb is given up as not converged.
    floor : float, optional
        Least density in the mean-shift step, positive. By default three noise standard
        deviations, or a millionth of the uniform density where there is no noise.

    Returns
    -------
    Ascent
        A tuple `(ends, steps, converged)`. A climb has converged when the gradient along the free
        coordinates vanishes: at a flat point or a saddle too, so look at the Hessian at the end.
    """
    lower, upper = surface.lower, surface.upper
    place = np.array(starts, dtype=np.float64)
    if place.ndim != 2 or place.shape[1] != lower.shape[0]:
        raise InvalidArgument(f"starts must have shape (m, {lower.shape[0]}), got {place.shape}")
    place = np.clip(place, lower, upper)
    count = place.shape[0]
    steps, converged = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    if count == 0:
        return Ascent(place, steps, converged)
    low = default_floor(surface) if floor is None else floor
    state = _State(place, *surface.derivatives(place), np.ones(count), np.ones(count))
    active = np.arange(count)
    for step in range(max_steps + 1):
        move, newton, flat = _plan(surface, state, active, low)
        longest = np.max(np.abs(move), axis=1)
        last = newton & (longest <= _LAST_STEP)
        finished = flat | last
        stalled = ~finished & (state.trial[active] < _SHORTEST_TRIAL)
        stop = finished | stalled
        state.place[active[last]] = np.clip(
            state.place[active[last]] + move[last] * surface.bandwidth, lower, upper
        )
        converged[active[finished]] = True
        converged[active[stalled]] = _nearly_flat(surface, state, active[stalled], low)
        steps[active] = step
        active, move, newton = active[~stop], move[~stop], newton[~stop]
        if active.size == 0 or step == max_steps:
            break
        _advance(surface, state, active, move, newton, low)
    return Ascent(state.place, steps, converged)


def default_floor(surface: Surface) -> float:
    """Return three noise standard deviations, never zero."""
    volume = float(np.prod(surface.upper - surface.lower))
    return max(3.0 * float(np.sqrt(max(surface.noise.value, 0.0))), 1e-6 / volume)


def _held(surface: Surface, place: FloatArray, gradient: FloatArray) -> BoolArray:
    """Return the coordinates that sit on a face with the gradient pointing out of the box."""
    held = ((place <= surface.lower) & (gradient <= 0)) | ((place >= surface.upper) & (gradient >= 0))
    return np.asarray(held, dtype=np.bool_)


def _free_gradient(surface: Surface, state: _State, chosen: IntArray) -> tuple[FloatArray, BoolArray]:
    """Return the gradient in bandwidths, zero along held coordinates, and which those are."""
    gradient = state.gradient[chosen]
    held = _held(surface, state.place[chosen], gradient)
    return np.where(held, 0.0, gradient * surface.bandwidth), held


def _nearly_flat(surface: Surface, state: _State, chosen: IntArray, floor: float) -> BoolArray:
    """Say whether stalled climbs may count as finished."""
    gradient, _ = _free_gradient(surface, state, chosen)
    scale = np.maximum(np.abs(state.value[chosen]), floor)
    return np.asarray(np.max(np.abs(gradient), axis=1) <= _LOOSE_FLAT * scale, dtype=np.bool_)


def _plan(
    surface: Surface, state: _State, active: IntArray, floor: float
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Return the next step in bandwidths, whether it is Newton's, and whether the climb is over."""
    h = surface.bandwidth
    gradient, held = _free_gradient(surface, state, active)
    scale = np.maximum(np.abs(state.value[active]), floor)
    flat = np.max(np.abs(gradient), axis=1) <= _FLAT * scale
    curvature = -state.hessian[active] * h[:, None] * h
    any_held = held[:, :, None] | held[:, None, :]
    largest = np.max(np.abs(np.where(any_held, 0.0, curvature)), axis=(1, 2))
    largest = np.where(largest > 0, largest, 1.0)
    # A held coordinate gets a neutral row and column, so that one batch of eigenvalues serves all.
    neutral = np.eye(h.size) * largest[:, None, None]
    eigenvalues, vectors = np.linalg.eigh(np.where(any_held, neutral, curvature))
    newton = eigenvalues[:, 0] > np.maximum(_DEFINITE * largest, _LEAST_CURVATURE * scale)
    safe = np.where(newton[:, None], eigenvalues, 1.0)
    along = np.einsum("mab,ma->mb", vectors, gradient) / safe
    newton_move = np.einsum("mab,mb->ma", vectors, along)
    shift = gradient / np.maximum(state.value[active], floor)[:, None] * state.growth[active, None]
    move = np.where(newton[:, None], newton_move, shift)
    longest = np.max(np.abs(move), axis=1)
    move = move / np.maximum(longest, 1.0)[:, None]
    return np.where(held, 0.0, move), newton, np.asarray(flat, dtype=np.bool_)


def _advance(
    surface: Surface, state: _State, active: IntArray, move: FloatArray, newton: BoolArray, floor: float
) -> None:
    """Try the step; take it where the density does not fall, else try a shorter one next time."""
    place = state.place[active]
    step = move * surface.bandwidth * state.trial[active, None]
    target = np.clip(place + step, surface.lower, surface.upper)
    value, gradient, hessian = surface.derivatives(target)
    scale = np.maximum(np.abs(state.value[active]), floor)
    accepted = value >= state.value[active] - _SLACK * scale
    taken = active[accepted]
    state.place[taken] = target[accepted]
    state.value[taken] = value[accepted]
    state.gradient[taken] = gradient[accepted]
    state.hessian[taken] = hessian[accepted]
    state.trial[taken] = 1.0
    state.trial[active[~accepted]] *= 0.25
    grown = np.minimum(state.growth[active] * 2.0, _LARGEST_GROWTH)
    shrunk = np.maximum(state.growth[active] * 0.25, 1.0)
    state.growth[active] = np.where(accepted, np.where(newton, 1.0, grown), shrunk)
