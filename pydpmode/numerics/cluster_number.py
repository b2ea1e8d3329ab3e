"""How many clusters a sketch shows: clusters are added while the residual stands out of the noise.

The largest matched filter over all trial centres and widths is compared with a high quantile of the same
maximum in simulated pure noise. A single Gaussian of any shape is fitted first, so that one correlated
cluster is not taken for two.
"""

from __future__ import annotations

import math

import numpy as np

from .cluster_candidates import Candidates
from .cluster_fit import ClusterFit, Clusters, Prior, refit
from .cluster_search import fit_known
from .cluster_sketch import ClusterSketch
from .surfaces import FloatArray

MOST_CLUSTERS = 30
_DRAWS = 200
_SEED = 20_260_729  # of the simulated noise: public, the same for everyone
_STEPS = 12


def noise_threshold(sketch: ClusterSketch, found: Candidates, rate: float) -> float:
    """Return what the largest matched filter of pure noise exceeds with probability `rate`."""
    noise = np.random.default_rng(_SEED).standard_normal((_DRAWS, 2, sketch.root.size))
    largest = np.full(_DRAWS, -np.inf)
    for width in range(found.energies.size):
        scores = found.correlations(noise, np.full(_DRAWS, width)) / math.sqrt(found.energies[width])
        largest = np.maximum(largest, scores.max(axis=0))
    return float(np.quantile(largest, 1 - rate))


def filter_variances(sketch: ClusterSketch, found: Candidates, clusters: Clusters) -> FloatArray:
    """Return the variance of every matched filter, privacy and sampling noise together, (c, w).

    The filter of a record at distance t is `R prod_a (1 + s_a^2)^(-1/2) exp(-t_a^2 / (2 (1 + s_a^2)))`, `R`
    the summed squared precision, for weights that follow a Gaussian spectrum; its second moment over the
    fitted clusters is a closed form, and its sampling variance at most that over n.
    """
    whole = float(np.sum(sketch.root**2))
    shares = clusters.weights / clusters.weights.sum()
    own = np.exp(2 * clusters.log_widths)
    squared = (found.points[:, None, :] - clusters.centres) ** 2
    out = np.empty((found.points.shape[0], found.energies.size))
    for j, log_widths in enumerate(found.log_widths):
        wide = 1 + np.exp(2 * log_widths)
        spread = 0.5 * wide + own
        factor = whole**2 * float(np.prod(np.sqrt(0.5 * wide / spread) / wide))
        second = factor * (np.exp(-0.5 * (squared @ (1 / spread))) @ shares)
        out[:, j] = found.energies[j] + second / sketch.n
    return out


def fit_unknown(
    sketch: ClusterSketch, prior: Prior, found: Candidates, rate: float, most: int = MOST_CLUSTERS
) -> tuple[ClusterFit, float, float]:
    """Add clusters while the residual stands out of the noise.

    Returns
    -------
    fit : ClusterFit
    evidence : float
        The largest matched filter left, in standard deviations.
    threshold : float
        What it had to exceed for one more cluster.
    """
    threshold = noise_threshold(sketch, found, rate)
    loose = Prior(prior.middle, prior.spread, prior.tightness, 1.0, axis_freedom=2.0)
    one = Clusters(np.ones(1), prior.middle[None], np.log(prior.spread))
    fit = refit(sketch, loose, one)
    evidence, grown = clearest(sketch, found, fit)
    first = True
    while evidence > threshold and fit.clusters.count < most:
        fit = fit_known(sketch, prior, found, 2) if first else refit(sketch, prior, grown, _STEPS)
        first = False
        evidence, grown = clearest(sketch, found, fit)
        if evidence <= threshold:
            better = fit_known(sketch, prior, found, fit.clusters.count)
            if better.objective < fit.objective:
                fit = better
                evidence, grown = clearest(sketch, found, fit)
    return fit, evidence, threshold


def clearest(sketch: ClusterSketch, found: Candidates, fit: ClusterFit) -> tuple[float, Clusters]:
    """Return the residual's largest matched filter in noise sds, and the fit with a cluster there."""
    widths = np.arange(found.energies.size)
    scores = found.correlations(np.repeat(fit.residual[None], widths.size, axis=0), widths)
    z = scores / np.sqrt(filter_variances(sketch, found, fit.clusters))
    place, width = np.unravel_index(int(np.argmax(z)), z.shape)
    weight = max(float(scores[place, width] / found.energies[width]), 1e-3)
    return float(z[place, width]), fit.clusters.plus(weight, found.points[place])
