"""Centres where the mass is, for clusters whose shapes differ so much that the best fit passes over some.

The fit of K clusters of one shape weighs a cluster by the square of its share: where two large clusters are
not Gaussian, it may spend its centres on their shapes and leave a smaller one, far away, without any. It then
leaves a clear bump in the residual. Only then the sketch is described by many narrow atoms, as many as stand
out of the noise, and K-means of these, which weighs by mass, says whether the fit has left mass far from
every centre. If so the fit starts anew from there, and stays at the nearest optimum. Post-processing of the
release.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .cluster_candidates import Candidates, box_candidates, nonnegative_weights
from .cluster_fit import ClusterFit, Prior, refit
from .cluster_number import filter_variances
from .cluster_sketch import ClusterSketch
from .mode_set import BoolArray, IntArray
from .surfaces import FloatArray

_CLEAR = 6.0  # standard deviations of the residual's bump, from which the fit is doubted
_ATOM = 5.0  # standard deviations of an atom
_MOST_ATOMS = 80
_AT_ONCE, _APART = 4, 3.0  # atoms added between refits of the masses, and their distance in working units
_BOX_POINTS = 2048
_WIDTH = 0  # number of the atoms' trial width: the narrowest
_FAR = 1.25  # ratio of mean squared distances to the nearest centre
_STARTS, _LLOYD = 20, 50
_SEED = 20_260_731  # of the starts of K-means: public, the same for everyone


def reseat(
    sketch: ClusterSketch, prior: Prior, found: Candidates, fit: ClusterFit
) -> tuple[ClusterFit, Candidates]:
    """Return the fit, or a better spread one where it leaves mass far from every centre.

    Returns
    -------
    fit : ClusterFit
    found : Candidates
        The trial centres, with those over the whole box where the fit is another one.
    """
    if clearest_bump(sketch, found.joined(box_candidates(sketch, prior)), fit) < _CLEAR:
        return fit, found
    wide = found.joined(box_candidates(sketch, prior, _BOX_POINTS))
    points, masses = atoms(sketch, wide)
    k = fit.clusters.count
    if masses.size <= k:
        return fit, found
    own = masses.sum() * float(np.sum(np.exp(2 * wide.log_widths[_WIDTH])))
    centres, least = weighted_kmeans(points, masses, k)
    if _cost(points, masses, fit.clusters.centres) + own < _FAR * (least + own):
        return fit, found
    nearest = _nearest(points, centres)
    weights = np.array([masses[nearest == j].sum() for j in range(k)])
    return refit(sketch, prior, replace(fit.clusters, weights=weights, centres=centres)), wide


def clearest_bump(sketch: ClusterSketch, found: Candidates, fit: ClusterFit) -> float:
    """Return the residual's largest matched filter in standard deviations, of sampling as well."""
    widths = np.arange(found.energies.size)
    scores = found.correlations(np.repeat(fit.residual[None], widths.size, axis=0), widths)
    return float(np.max(scores / np.sqrt(filter_variances(sketch, found, fit.clusters))))


def atoms(sketch: ClusterSketch, found: Candidates) -> tuple[FloatArray, FloatArray]:
    """Return places (m, d) and masses (m,) of narrow atoms that describe the sketch."""
    rows = np.zeros((0, sketch.target.size))
    chosen: list[int] = []
    masses = np.zeros(0)
    residual = sketch.target
    least = _ATOM * np.sqrt(found.energies[_WIDTH])
    while len(chosen) < _MOST_ATOMS:
        scores = found.correlations(residual[None], np.array([_WIDTH]))[:, 0]
        scores[chosen] = -np.inf
        new = _clear_of_each_other(found.points, scores, least)
        if not new:
            break
        chosen += new
        rows = np.vstack([rows, *(found.image(number, _WIDTH)[None] for number in new)])
        masses = nonnegative_weights(rows, sketch.target.ravel())
        residual = sketch.target - (masses @ rows).reshape(2, -1)
    kept = masses > 0
    return found.points[chosen][kept], masses[kept]


def _clear_of_each_other(points: FloatArray, scores: FloatArray, least: float) -> list[int]:
    """Return the best few points with a score above the least, apart by more than their images' reach."""
    left = np.array(scores)
    new: list[int] = []
    while len(new) < _AT_ONCE and left.max() >= least:
        new.append(int(np.argmax(left)))
        left[_squares(points, points[new[-1:]])[:, 0] < _APART**2] = -np.inf
    return new


def weighted_kmeans(points: FloatArray, masses: FloatArray, k: int) -> tuple[FloatArray, float]:
    """Return the K centres of least total squared distance, and that distance."""
    random = np.random.default_rng(_SEED)
    best, least = points[:k], np.inf
    for _ in range(_STARTS):
        centres = points[_seeds(points, masses, k, random)]
        for _ in range(_LLOYD):
            nearest = _nearest(points, centres)
            moved = np.array([_mean(points, masses, nearest == j, centres[j]) for j in range(k)])
            if np.array_equal(moved, centres):
                break
            centres = moved
        cost = _cost(points, masses, centres)
        if cost < least:
            best, least = centres, cost
    return best, least


def _seeds(points: FloatArray, masses: FloatArray, k: int, random: np.random.Generator) -> list[int]:
    """Return k-means++ starts."""
    chosen = [int(random.choice(masses.size, p=masses / masses.sum()))]
    while len(chosen) < k:
        away = masses * _squares(points, points[chosen]).min(axis=1)
        total = away.sum()
        share = away / total if total > 0 else np.full(masses.size, 1 / masses.size)
        chosen.append(int(random.choice(masses.size, p=share)))
    return chosen


def _mean(points: FloatArray, masses: FloatArray, members: BoolArray, otherwise: FloatArray) -> FloatArray:
    if not members.any():
        return otherwise
    return np.asarray(np.average(points[members], axis=0, weights=masses[members]))


def _squares(points: FloatArray, centres: FloatArray) -> FloatArray:
    return np.asarray(((points[:, None, :] - centres) ** 2).sum(axis=2))


def _nearest(points: FloatArray, centres: FloatArray) -> IntArray:
    return np.asarray(np.argmin(_squares(points, centres), axis=1))


def _cost(points: FloatArray, masses: FloatArray, centres: FloatArray) -> float:
    return float(masses @ _squares(points, centres).min(axis=1))
