"""Standard errors of fitted clusters from the known noise, and how stable each is.

At the fit the parameters move with the sketch by `N^-1 J`, `J` the derivatives of the fitted measurements in
noise units and `N` the normal matrix with the prior's precision. Privacy noise is white with variance one
there, so `N^-1` is the covariance given the release: the inverse Fisher information, with what the prior
knows where the release says little. Sampling of the records adds `N^-1 J C J^T N^-1 / n`, `C` the covariance
of one record's measurements, taken over points drawn from the fitted clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cluster_candidates import Candidates, box_candidates, greedy
from .cluster_fit import ClusterFit, Clusters, Prior, derivatives, normal_equations, parts_of, refit
from .cluster_search import losses
from .cluster_sketch import ClusterSketch
from .mode_candidates import GRID_DIMENSIONS
from .surfaces import FloatArray

_NOTHING = 1e-6  # evidence, in standard deviations
_DRAWS = 1024
_REDRAWS = 10
_STEPS = 5
_SEED = 20_260_730  # of the simulated points and noise: public, the same for everyone


@dataclass(frozen=True, eq=False)
class ClusterErrors:
    """Errors of K clusters, in working units.

    Parameters
    ----------
    privacy, sampling : (K, d, d) arrays
        Covariances of the centres.
    share_privacy, share_sampling : (K,) arrays
        Variances of the shares.
    significance : (K,) array
        Root of twice the rise of the objective without the cluster: its evidence in standard deviations.
    stability : (K,) array
        Share of repeated noise draws in which the cluster is found again.
    """

    privacy: FloatArray
    sampling: FloatArray
    share_privacy: FloatArray
    share_sampling: FloatArray
    significance: FloatArray
    stability: FloatArray


def cluster_errors(
    sketch: ClusterSketch, prior: Prior, found: Candidates, fit: ClusterFit, *, reseated: bool = False
) -> ClusterErrors:
    """Return the errors of a fit; `reseated`: it is one that the search alone passes over."""
    clusters = fit.clusters
    k, d = clusters.centres.shape
    parts = parts_of(sketch, clusters)
    jacobian = derivatives(sketch, clusters, parts)
    normal, _ = normal_equations(jacobian, prior, clusters)
    # A cluster whose image vanishes (a kernel far narrower than it) is known to no accuracy at all.
    privacy = np.linalg.inv(normal + np.diag(1e-9 * np.diag(normal) + 1e-12))
    moves = privacy @ (jacobian @ _record_features(sketch, clusters).T)
    sampling = np.cov(moves) / sketch.n
    place = np.arange(k)[:, None] + k * (1 + np.arange(d))
    to_shares = _share_derivatives(clusters.weights)
    significance = np.sqrt(2 * losses(sketch, fit))
    again = _stability(sketch, prior, found, clusters, parts, reseated)
    return ClusterErrors(
        privacy=privacy[place[:, :, None], place[:, None, :]],
        sampling=sampling[place[:, :, None], place[:, None, :]],
        share_privacy=np.einsum("ij,jk,ik->i", to_shares, privacy[:k, :k], to_shares),
        share_sampling=np.einsum("ij,jk,ik->i", to_shares, sampling[:k, :k], to_shares),
        significance=significance,
        # Where every image vanishes, each search ends at the same place: nothing is found there.
        stability=np.where(significance > _NOTHING, again, 0.0),
    )


def _share_derivatives(weights: FloatArray) -> FloatArray:
    whole = float(weights.sum())
    return np.asarray((np.eye(weights.size) - weights[:, None] / whole) / whole)


def _record_features(sketch: ClusterSketch, clusters: Clusters) -> FloatArray:
    """Return the measurements, in noise units, of points drawn from the clusters: (draws, 2M)."""
    generator = np.random.default_rng(_SEED)
    shares = clusters.weights / clusters.weights.sum()
    label = generator.choice(clusters.count, size=_DRAWS, p=shares)
    noise = generator.standard_normal((_DRAWS, sketch.dimension))
    noise = np.einsum("nij,nj->ni", clusters.factors[label], noise)
    phase = sketch.inside(clusters.centres[label] + noise) @ sketch.frequencies
    phase = phase.astype(np.float32)  # a sample's covariance needs no more, and takes a third of the time
    return np.concatenate([np.cos(phase) * sketch.root, np.sin(phase) * sketch.root], axis=1)


def _stability(
    sketch: ClusterSketch,
    prior: Prior,
    found: Candidates,
    clusters: Clusters,
    parts: FloatArray,
    reseated: bool,
) -> FloatArray:
    """Return the share of noise draws, added to the fitted clusters, in which each is found again.

    Found again: a centre of the new fit lies within half the distance to the nearest other cluster, or, for
    one cluster alone, within one spread of all the data. Reseated clusters start the new fit as well, and the
    better of both counts.
    """
    generator = np.random.default_rng(_SEED + 1)
    noise = generator.standard_normal((_REDRAWS, *sketch.target.shape))
    targets = np.tensordot(clusters.weights, parts, axes=1) + noise
    # Filters of the clusters' own shape: those of trial widths go astray where it is unlike the data's. And
    # in few dimensions starts over the whole box, since the others lie where all the data seem to.
    if sketch.dimension <= GRID_DIMENSIONS:
        found = found.joined(box_candidates(sketch, prior))
    matched = found.shaped_as(sketch, clusters)
    starts = greedy(matched, targets, np.zeros(_REDRAWS, dtype=np.int64), clusters.count)
    apart = np.sqrt(((clusters.centres[:, None] - clusters.centres) ** 2).sum(axis=2))
    apart[np.diag_indices_from(apart)] = np.inf
    reach = np.minimum(0.5 * apart.min(axis=1), float(np.linalg.norm(prior.spread)))
    again = np.zeros(clusters.count)
    for target, start in zip(targets, starts, strict=True):
        redrawn = sketch.with_target(target)
        fits = [refit(redrawn, prior, at, _STEPS) for at in ((start, clusters) if reseated else (start,))]
        new = min(fits, key=lambda fit: fit.objective).clusters.centres
        distance = np.sqrt(((clusters.centres[:, None] - new) ** 2).sum(axis=2)).min(axis=1)
        again += distance <= reach
    return again / _REDRAWS
