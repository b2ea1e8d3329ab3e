"""Search for the best fit of clusters to a sketch: several starts, then swaps; known or unknown number."""

from __future__ import annotations

import numpy as np

from .cluster_candidates import Candidates, greedy, weight_of
from .cluster_fit import ClusterFit, Clusters, Prior, parts_of, refit
from .cluster_sketch import ClusterSketch
from .surfaces import FloatArray

_FIRST = 8  # refitting steps of every start
_WORTH = 0.1  # of the objective: a swap must gain so much
_FAILED_SWAPS = 3  # in a row, one atom each, before the search ends


def fit_known(sketch: ClusterSketch, prior: Prior, found: Candidates, count: int) -> ClusterFit:
    """Return the best fit of `count` clusters found."""
    widths = np.arange(found.energies.size)
    targets = np.repeat(sketch.target[None], widths.size, axis=0)
    starts = [refit(sketch, prior, start, _FIRST) for start in greedy(found, targets, widths, count)]
    starts.sort(key=lambda fit: fit.objective)
    best = min((refit(sketch, prior, fit.clusters) for fit in starts[:2]), key=lambda fit: fit.objective)
    return swap(sketch, prior, found, best)


def swap(sketch: ClusterSketch, prior: Prior, found: Candidates, fit: ClusterFit) -> ClusterFit:
    """Move one cluster at a time to where the residual is largest, while the objective falls."""
    failed = 0
    while failed < min(_FAILED_SWAPS, fit.clusters.count):
        order = np.argsort(losses(sketch, fit), kind="stable")
        rest = fit.clusters.without(int(order[failed]))
        rest_fit = refit(sketch, prior, rest, 3)
        trial = refit(sketch, prior, grow(found, rest_fit), 12)
        if trial.objective < fit.objective - _WORTH:
            fit, failed = refit(sketch, prior, trial.clusters), 0
        else:
            failed += 1
    return fit


def grow(found: Candidates, fit: ClusterFit) -> Clusters:
    """Return the clusters of a fit and one more, where the residual has the clearest bump."""
    width = nearest_width(found, fit.clusters)
    scores = found.correlations(fit.residual[None], np.array([width]))[:, 0]
    best = int(np.argmax(scores))
    weight = weight_of(float(scores[best] / found.energies[width]))
    return fit.clusters.plus(weight, found.points[best])


def nearest_width(found: Candidates, clusters: Clusters) -> int:
    """Return the number of the trial width nearest to the clusters' own."""
    return int(np.argmin(np.abs(found.log_widths.mean(axis=1) - clusters.log_widths.mean())))


def losses(sketch: ClusterSketch, fit: ClusterFit) -> FloatArray:
    """Return how much the objective rises when each cluster goes and the others' weights are refitted.

    At most by what the cluster itself adds: images that are nearly zero, or nearly one another's sums, make
    the refitted weights arbitrary, but not the rise.
    """
    clusters = fit.clusters
    parts = parts_of(sketch, clusters).reshape(clusters.count, -1)
    gram = parts @ parts.T
    own = np.diag(gram).copy()
    gram[np.diag_indices_from(gram)] *= 1 + 1e-9
    inverse = np.linalg.pinv(gram)
    return np.asarray(0.5 * clusters.weights**2 * np.minimum(1 / np.maximum(np.diag(inverse), 1e-300), own))
