"""Sums of Gaussian bumps: value, derivatives, how they move with the parameters, and their modes.

Everything is in working units: lengths in released bandwidths from the lower corner of the box,
densities as mass per unit of working volume.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .mode_set import BoolArray
from .surfaces import FloatArray

_CLIMB_STEPS = 100
_CLIMB_TOLERANCE = 1e-6
_NEWTON_RADIUS = 0.3  # longest Newton step that is trusted
_TINY = 1e-300


@dataclass(frozen=True)
class Bumps:
    """K Gaussian bumps, their axes those of the coordinates.

    Parameters
    ----------
    weights : (K,) array
        Mass of each, positive.
    centres : (K, d) array
    log_widths : (K, d) array
        Logarithms of the standard deviations.
    """

    weights: FloatArray
    centres: FloatArray
    log_widths: FloatArray

    @property
    def count(self) -> int:
        """Number of bumps K."""
        return int(self.weights.size)

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return int(self.centres.shape[1])

    @classmethod
    def none(cls, dimension: int) -> Bumps:
        """Return no bumps."""
        return cls(np.zeros(0), np.zeros((0, dimension)), np.zeros((0, dimension)))

    def plus(self, weights: FloatArray, centres: FloatArray, log_widths: FloatArray) -> Bumps:
        """Return these bumps and more."""
        return Bumps(
            np.concatenate([self.weights, weights]),
            np.concatenate([self.centres, centres]),
            np.concatenate([self.log_widths, log_widths]),
        )

    def only(self, wanted: BoolArray) -> Bumps:
        """Return some of the bumps."""
        return Bumps(self.weights[wanted], self.centres[wanted], self.log_widths[wanted])

    def squared_widths(self, smoothing: FloatArray) -> FloatArray:
        """Return the variances of the bumps smoothed by a Gaussian of widths `smoothing` (d,)."""
        return np.asarray(np.exp(2 * self.log_widths) + smoothing**2)

    def on_grid(self, axes: Sequence[FloatArray], smoothing: FloatArray) -> FloatArray:
        """Return the smoothed density on the product grid of `axes`, flat."""
        variance = self.squared_widths(smoothing)
        value = self.weights[:, None] * _profile(axes[0], self.centres[:, :1], variance[:, :1])
        for a in range(1, self.dimension):
            part = _profile(axes[a], self.centres[:, a : a + 1], variance[:, a : a + 1])
            value = (value[:, :, None] * part[:, None, :]).reshape(self.count, -1)
        return np.asarray(value.sum(axis=0))


def _profile(axis: FloatArray, centre: FloatArray, variance: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * np.square(axis - centre) / variance) / np.sqrt(2 * math.pi * variance))


class Reading(NamedTuple):
    """A smoothed sum of bumps at m points.

    `gradient` (m, d) and `hessian` (m, d, d) of the sum; `parts` (m, K) the value of every bump;
    `slopes` (m, K, d) the gradient of its logarithm; `variance` (K, d).
    """

    gradient: FloatArray
    hessian: FloatArray
    parts: FloatArray
    slopes: FloatArray
    variance: FloatArray


def read_bumps(bumps: Bumps, points: FloatArray, smoothing: FloatArray) -> Reading:
    """Return the sum of bumps smoothed by `smoothing` (d,), with derivatives, at `points` (m, d)."""
    variance = bumps.squared_widths(smoothing)
    away = points[:, None, :] - bumps.centres
    slopes = -away / variance
    scale = bumps.weights / np.sqrt(np.prod(2 * math.pi * variance, axis=1))
    parts = scale * np.exp(0.5 * np.sum(slopes * away, axis=2))
    weighted = parts[:, :, None] * slopes
    hessian = np.swapaxes(weighted, 1, 2) @ slopes
    diagonal = np.arange(points.shape[1])
    hessian[:, diagonal, diagonal] -= parts @ (1 / variance)
    return Reading(weighted.sum(axis=1), hessian, parts, slopes, variance)


def climb_bumps(bumps: Bumps, starts: FloatArray, smoothing: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Climb the smoothed sum of bumps from `starts` (m, d): mean shift, Newton near the top.

    The mean-shift step `(sum q_k / v_k)^-1 grad` never lowers a sum of Gaussian bumps (it is an EM
    step: Carreira-Perpinan 2007).

    Returns
    -------
    ends : (m, d) array
    peaks : (m,) bool array
        Whether the end is a strict maximum and the climb converged.
    """
    place = np.array(starts)
    steep = np.zeros(place.shape[0], dtype=np.bool_)
    move = np.full(place.shape, np.inf)
    for _ in range(_CLIMB_STEPS):
        at = read_bumps(bumps, place, smoothing)
        move = at.gradient / (at.parts @ (1 / at.variance) + _TINY)
        eigenvalues = np.linalg.eigvalsh(at.hessian)
        steep = eigenvalues[:, -1] < 1e-3 * eigenvalues[:, 0]
        safe = np.where(steep[:, None, None], at.hessian, -np.eye(place.shape[1]))
        newton = -np.linalg.solve(safe, at.gradient[:, :, None])[:, :, 0]
        near = steep & (np.max(np.abs(newton), axis=1) < _NEWTON_RADIUS)
        move = np.where(near[:, None], newton, move)
        place = place + move
        if np.max(np.abs(move), initial=0.0) < _CLIMB_TOLERANCE:
            break
    settled = np.max(np.abs(move), axis=1, initial=0.0) < 100 * _CLIMB_TOLERANCE
    return place, np.asarray(steep & settled)


def gradient_responses(bumps: Bumps, at: Reading) -> FloatArray:
    """Return how the gradient at m points moves with the parameters, (m, d, (1 + 2d) K).

    Parameters in the order of `bump_fit`: all weights, all centres of axis 1, of axis 2, ..., all
    log-widths of axis 1, ...
    """
    m, count, d = at.slopes.shape
    slopes, parts = at.slopes, at.parts[:, :, None]
    inverse = 1 / at.variance
    own = 2 * np.exp(2 * bumps.log_widths)
    out = np.empty((m, d, 1 + 2 * d, count))
    out[:, :, 0] = np.swapaxes(slopes * parts / bumps.weights[:, None], 1, 2)
    for b in range(d):
        along = slopes[:, :, b : b + 1]
        moved = -slopes * along
        moved[:, :, b] += inverse[:, b]
        out[:, :, 1 + b] = np.swapaxes(moved * parts, 1, 2)
        widened = slopes * (0.5 * (along**2 - inverse[:, b : b + 1]))
        widened[:, :, b] -= slopes[:, :, b] * inverse[:, b]
        out[:, :, 1 + d + b] = np.swapaxes(widened * parts * own[:, b : b + 1], 1, 2)
    return out.reshape(m, d, -1)
