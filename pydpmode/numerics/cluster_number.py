"""How many clusters a sketch shows: clusters are added while the residual stands out of the noise.

The largest matched filter over all trial centres and widths is compared with a high quantile of the same
maximum in simulated pure noise. A single Gaussian of any shape is fitted first, so that one correlated
cluster is not taken for two.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .cluster_candidates import Candidates, box_candidates, weight_of
from .cluster_fit import ClusterFit, Clusters, Prior, refit
from .cluster_search import fit_known, losses, nearest_width
from .cluster_sketch import ClusterSketch
from .surfaces import FloatArray

MOST_CLUSTERS = 30
_DRAWS = 200
_SEED = 20_260_729  # of the simulated noise: public, the same for everyone
_STEPS = 12
_SOUGHT_ANEW = 6  # clusters up to which each number is also sought from the start: there is no way back
CLEAR = 3.0  # evidence in standard deviations below which a cluster may be noise
_CLEAR_AFAR = 6.0  # standard deviations of a bump beyond the trial centres, from which it is looked at
_GIVEN_UP = 3  # places where an addition did not stand, before the growth ends
_NEAR = 2.0  # widths of a cluster: so far about such a place no other is tried
_DROPS = 3  # clusters tried for dropping, from the least clear


def noise_threshold(sketch: ClusterSketch, found: Candidates, rate: float) -> float:
    """Return what the largest matched filter of pure noise exceeds with probability `rate`."""
    noise = np.random.default_rng(_SEED).standard_normal((_DRAWS, 2, sketch.root.size))
    largest = np.full(_DRAWS, -np.inf)
    for width in range(found.energies.size):
        scores = found.correlations(noise, np.full(_DRAWS, width)) / math.sqrt(found.energies[width])
        largest = np.maximum(largest, scores.max(axis=0))
    return float(np.quantile(largest, 1 - rate))


def filter_variances(
    sketch: ClusterSketch, found: Candidates, clusters: Clusters, points: FloatArray | None = None
) -> FloatArray:
    """Return the variance of every matched filter, privacy and sampling noise together, (c, w).

    At all trial centres, or at some points (c, d).

    The filter of a record at distance t is `R prod_a (1 + s_a^2)^(-1/2) exp(-t_a^2 / (2 (1 + s_a^2)))`, `R`
    the summed squared precision, for weights that follow a Gaussian spectrum; its second moment over the
    fitted clusters is a closed form, and its sampling variance at most that over n.
    """
    whole = float(np.sum(sketch.root**2))
    shares = clusters.weights / clusters.weights.sum()
    own = clusters.common_variances
    points = found.points if points is None else points
    squared = (points[:, None, :] - clusters.centres) ** 2
    out = np.empty((points.shape[0], found.energies.size))
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
    """Add clusters while the residual stands out of the noise and each of them stands; then drop idle ones.

    An addition counts only when every cluster of the new fit is clear of the noise (`stands`). What clusters
    of one common shape cannot describe, such as a line of values at a bound, leaves a bump that no addition
    lowers: such a place is given up, and the next is tried. In the end clusters without which the fit,
    made anew, is no worse than noise can make it are dropped, the least clear first; and all but one where
    together they describe the release no better than that.

    Returns
    -------
    fit : ClusterFit
    evidence : float
        The largest matched filter left, in standard deviations.
    threshold : float
        What it had to exceed for one more cluster. Evidence above it is left where further clusters of the
        common shape did not stand, or where `most` were found.
    """
    threshold = noise_threshold(sketch, found, rate)
    loose = replace(prior, width=1.0, axis_freedom=2.0, shear_freedom=3 * prior.shear_freedom)
    one = Clusters(np.ones(1), prior.middle[None], np.log(prior.spread))
    alone = fit = refit(sketch, loose, one)
    given_up = np.zeros((0, sketch.dimension))
    searched = everywhere = False
    while fit.clusters.count < most and given_up.shape[0] < _GIVEN_UP:
        evidence, place, weight = clearest(sketch, found, fit, given_up)
        if evidence > threshold:
            larger = _larger(sketch, prior, found, fit, place, weight)
            if larger is None:
                given_up = np.vstack([given_up, place])
            else:
                fit, searched = larger, False
        elif searched or fit is alone:
            # Mass far from where all the data seem to lie: to be seen from there only, and clearly.
            box = None if everywhere else box_candidates(sketch, prior)
            if box is None or clearest(sketch, box, fit)[0] < max(_CLEAR_AFAR, threshold):
                break
            found, everywhere = found.joined(box), True
            threshold = noise_threshold(sketch, found, rate)
        else:
            better = fit_known(sketch, prior, found, fit.clusters.count)
            if better.objective < fit.objective and stands(sketch, better):
                fit = better
            searched = True
    fit = _without_idle(sketch, prior, found, fit, alone, threshold)
    if fit.clusters.count > 1:
        spurious = threshold**2 * _inflation(sketch, found, fit.clusters)
        if 2 * (alone.objective - fit.objective) < spurious * (fit.clusters.count - 1):
            fit = alone
    evidence, _, _ = clearest(sketch, found, fit)
    return fit, evidence, threshold


def _inflation(sketch: ClusterSketch, found: Candidates, clusters: Clusters) -> float:
    """Return by what sampling of the others multiplies the variance of a cluster's filter, the least of all.

    The objective knows of the privacy noise alone. In twice the objective, noise of both kinds can make up
    this times the squared threshold: much where every cluster lies among others, as the pieces of one do.
    """
    width = nearest_width(found, clusters)
    apart = np.sum((found.points - clusters.centres[:, None]) ** 2, axis=2)
    factors = []
    for number, place in enumerate(np.argmin(apart, axis=1)):
        others = clusters.without(number)
        share = float(others.weights.sum() / clusters.weights.sum())
        variance = filter_variances(sketch, found, others, found.points[[place]])[0, width]
        factors.append(1 + share * (float(variance / found.energies[width]) - 1))
    return min(factors)


def stands(sketch: ClusterSketch, fit: ClusterFit) -> bool:
    """Say whether the fit without any one of its clusters is clearly worse."""
    return bool(np.sqrt(2 * losses(sketch, fit)).min() >= CLEAR)


def _larger(
    sketch: ClusterSketch,
    prior: Prior,
    found: Candidates,
    fit: ClusterFit,
    place: FloatArray,
    weight: float,
) -> ClusterFit | None:
    """Return a fit of one cluster more of which all stand, or None."""
    count, trials = fit.clusters.count, []
    if count < _SOUGHT_ANEW:
        trials.append(fit_known(sketch, prior, found, count + 1))
    # One Gaussian for all the data is too wide a start for two.
    if count > 1:
        trials.append(refit(sketch, prior, fit.clusters.plus(weight, place), _STEPS))
    larger = min(trials, key=lambda one: one.objective)
    return larger if stands(sketch, larger) else None


def _without_idle(
    sketch: ClusterSketch,
    prior: Prior,
    found: Candidates,
    fit: ClusterFit,
    alone: ClusterFit,
    threshold: float,
) -> ClusterFit:
    """Drop clusters, the least clear first, while the fit made anew loses less than noise can make up."""
    dropped = True
    while dropped and fit.clusters.count > 1:
        dropped = False
        spurious = threshold**2 * _inflation(sketch, found, fit.clusters)
        for number in np.argsort(losses(sketch, fit), kind="stable")[:_DROPS]:
            fewer = refit(sketch, prior, fit.clusters.without(int(number)))
            if fewer.clusters.count == 1 and alone.objective < fewer.objective:
                fewer = alone
            if 2 * (fewer.objective - fit.objective) < spurious:
                fit, dropped = fewer, True
                break
    return fit


def clearest(
    sketch: ClusterSketch, found: Candidates, fit: ClusterFit, given_up: FloatArray | None = None
) -> tuple[float, FloatArray, float]:
    """Return the residual's largest matched filter in noise sds, where it is, and the mass it stands for.

    Places within two widths of those given up (g, d) are passed over.
    """
    widths = np.arange(found.energies.size)
    scores = found.correlations(np.repeat(fit.residual[None], widths.size, axis=0), widths)
    z = scores / np.sqrt(filter_variances(sketch, found, fit.clusters))
    wide = np.sqrt(fit.clusters.common_variances)
    for place in () if given_up is None else given_up:
        z[np.sum(((found.points - place) / wide) ** 2, axis=1) < _NEAR**2] = -np.inf
    best, width = np.unravel_index(int(np.argmax(z)), z.shape)
    weight = weight_of(float(scores[best, width] / found.energies[width]))
    return float(z[best, width]), found.points[best], weight
