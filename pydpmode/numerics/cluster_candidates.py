"""Where clusters may start: points from public rules and from the release, and matched filters there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cluster_fit import LARGEST_WEIGHT, Clusters, Prior, fading
from .cluster_sketch import ClusterSketch
from .mode_ascent import ascend
from .mode_candidates import public_points
from .mode_set import IntArray
from .spectral_surfaces import coarse_reading
from .surfaces import FloatArray

WIDTHS = (0.2, 0.35, 0.5, 0.7)  # of trial clusters, in spreads of all the data
_POINTS = 2048
_CLIMBED, _CLIMB_STEPS = 150, 6
_WEIGHTS = (1e-3, LARGEST_WEIGHT)  # of a start
_SPREAD = 1.1  # of the points, in spreads of all the data


@dataclass(frozen=True, eq=False)
class Candidates:
    """Trial centres and their images in single precision: they only say where to start.

    Parameters
    ----------
    points : (c, d) array
        In working units.
    cosine, sine : (c, M) float32 arrays
    filters : (w, M) float32 array
        For each trial width, the fading of a cluster's image over the noise's standard deviation.
    energies : (w,) array
        Squared norms of the images.
    log_widths : (w, d) array
        The trial widths.
    """

    points: FloatArray
    cosine: NDArray[np.float32]
    sine: NDArray[np.float32]
    filters: NDArray[np.float32]
    energies: FloatArray
    log_widths: FloatArray

    def correlations(self, residuals: FloatArray, widths: IntArray) -> FloatArray:
        """Return inner products of the images with residuals (q, 2, M), each at its trial width: (c, q)."""
        filters = self.filters[widths]
        real = (filters * residuals[:, 0]).astype(np.float32)
        imaginary = (filters * residuals[:, 1]).astype(np.float32)
        return np.asarray(self.cosine @ real.T + self.sine @ imaginary.T, dtype=np.float64)

    def joined(self, other: Candidates) -> Candidates:
        """Return these trial centres and others of the same widths."""
        return replace(
            self,
            points=np.concatenate([self.points, other.points]),
            cosine=np.concatenate([self.cosine, other.cosine]),
            sine=np.concatenate([self.sine, other.sine]),
        )

    def shaped_as(self, sketch: ClusterSketch, clusters: Clusters) -> Candidates:
        """Return these trial centres with one trial shape, that which the clusters have in common."""
        fade = fading(sketch, clusters)[None]
        return replace(
            self,
            filters=fade.astype(np.float32),
            energies=_energies(fade),
            log_widths=clusters.log_widths[None],
        )

    def image(self, number: int, width: int) -> FloatArray:
        """Return the image of one trial centre at a trial width, (2M,)."""
        parts = [self.cosine[number] * self.filters[width], self.sine[number] * self.filters[width]]
        return np.concatenate(parts).astype(np.float64)


def candidates(surface: Any, sketch: ClusterSketch, prior: Prior) -> Candidates:
    """Return trial centres: points about the middle of the data, the densest of them after a short climb.

    Parameters
    ----------
    surface : Surface
        Whose sketch it is.
    sketch : ClusterSketch
    prior : Prior
    """
    from scipy.special import ndtri

    unit = public_points(np.zeros(sketch.dimension), np.ones(sketch.dimension), _POINTS)
    points = sketch.inside(prior.middle + _SPREAD * prior.spread * ndtri(unit))
    surface = coarse_reading(surface)
    density = surface.density(sketch.to_columns(points))
    best = np.argsort(-density, kind="stable")[:_CLIMBED]
    ends = ascend(surface, sketch.to_columns(points[best]), max_steps=_CLIMB_STEPS).ends
    points = np.concatenate([points, sketch.from_columns(ends)])
    return at_points(points, sketch, prior)


def box_candidates(sketch: ClusterSketch, prior: Prior, count: int = 1024) -> Candidates:
    """Return `count` trial centres evenly over the whole public box, for clusters far from the rest."""
    unit = public_points(np.zeros(sketch.dimension), np.ones(sketch.dimension), count)
    return at_points((unit * sketch.widths) @ sketch.rotation, sketch, prior)


def at_points(points: FloatArray, sketch: ClusterSketch, prior: Prior) -> Candidates:
    """Return trial centres at given points (c, d), in working units."""
    phase = points.astype(np.float32) @ sketch.frequencies.astype(np.float32)
    log_widths = np.log(np.multiply.outer(np.array(WIDTHS), prior.spread))
    fade = np.exp(-0.5 * (np.exp(2 * log_widths) @ sketch.squares)) * sketch.root
    return Candidates(
        points, np.cos(phase), np.sin(phase), fade.astype(np.float32), _energies(fade), log_widths
    )


def _energies(fade: FloatArray) -> FloatArray:
    """Return the squared norms of images that fade so, (w,)."""
    # Where the kernel is far narrower than a cluster its image vanishes.
    return np.asarray(np.maximum(np.sum(fade**2, axis=1), np.finfo(float).tiny))


def greedy(found: Candidates, targets: FloatArray, widths: IntArray, count: int) -> list[Clusters]:
    """Return `count` clusters for each target (q, 2, M), added one by one where the residual is largest.

    The weights of a target's clusters are refitted after each (orthogonal matching pursuit) and kept at
    zero or above. `widths` (q,) are numbers of trial widths.
    """
    q = widths.size
    chosen: list[list[int]] = [[] for _ in range(q)]
    rows = [np.zeros((0, targets[0].size)) for _ in range(q)]
    weights = [np.zeros(0) for _ in range(q)]
    residuals = np.array(targets)
    for _ in range(count):
        scores = found.correlations(residuals, widths)
        for j in range(q):
            scores[chosen[j], j] = -np.inf
            best = int(np.argmax(scores[:, j]))
            chosen[j].append(best)
            rows[j] = np.vstack([rows[j], found.image(best, int(widths[j]))])
            weights[j] = nonnegative_weights(rows[j], targets[j].ravel())
            residuals[j] = targets[j] - (weights[j] @ rows[j]).reshape(2, -1)
    return [
        Clusters(np.clip(weights[j], *_WEIGHTS), found.points[chosen[j]], found.log_widths[widths[j]])
        for j in range(q)
    ]


def weight_of(mass: float) -> float:
    """Return the weight with which a cluster of an estimated mass is started."""
    return min(max(mass, _WEIGHTS[0]), _WEIGHTS[1])


def nonnegative_weights(rows: FloatArray, target: FloatArray) -> FloatArray:
    """Return the least-squares weights of the rows (k, P), none below zero, by dropping negative ones."""
    gram, right = rows @ rows.T, rows @ target
    gram[np.diag_indices_from(gram)] *= 1 + 1e-6
    # An image that vanishes has no weight to fit.
    used = np.diagonal(gram) > np.finfo(float).tiny
    out = np.zeros(right.size)
    while used.any():
        part = np.linalg.solve(gram[np.ix_(used, used)], right[used])
        if (part >= 0).all():
            out[used] = part
            break
        used[np.flatnonzero(used)[part < 0]] = False
    return out
