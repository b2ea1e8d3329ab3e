"""Fit clusters to a surface: the whole way from the release to centres, shares, errors and stability."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from .cluster_bandwidth import SCALE_SHARE
from .cluster_candidates import Candidates, at_points, candidates, greedy
from .cluster_errors import ClusterErrors, cluster_errors
from .cluster_fit import NARROWEST, ClusterFit, Clusters, Prior, refit, shape_basis
from .cluster_number import MOST_CLUSTERS, fit_unknown
from .cluster_pilot import pilot
from .cluster_reseat import reseat
from .cluster_search import fit_known
from .cluster_sketch import ClusterSketch
from .mode_candidates import GRID_DIMENSIONS, nearest
from .mode_set import IntArray, ModeSet
from .surfaces import FloatArray

_AXIS_FREEDOM, _SHEAR_FREEDOM = 0.2, 0.3
# Columns from which clusters get shapes of their own, and how many deviations at most: beyond, the search
# would take too long.
_SHAPE_DIMENSIONS, _MOST_DEVIATIONS, _SHAPE_STEPS = 4, 400, 12
_SHARE_SD = 0.5  # the largest standard deviation that a number between 0 and 1 can have
_OWN = 0.5  # part of a cluster's own shape in the distances to its centre
_MODE_STARTS, _SPARE_STARTS, _START_STEPS = 16, 3, 4


@dataclass(frozen=True, eq=False)
class ClusterSet:
    """K clusters in the columns' units, the largest share first.

    Parameters
    ----------
    centres : (K, d) array
    shares, share_privacy, share_sampling : (K,) arrays
        Shares of the records, and their standard errors by source (NaN where not known).
    covariance_privacy, covariance_sampling : (K, d, d) arrays
        Of the centres, by source.
    covariance : (d, d) array
        Of the records of a cluster about its centre, the mean over clusters; NaN where not fitted.
    shapes : (K, d, d) array
        The same of every cluster; NaN where clusters are not told apart by shape.
    significance : (K,) array
        Evidence for the cluster, in standard deviations.
    stability : (K,) array
        Share of repeated noise draws in which it is found again; NaN where not known.
    evidence, threshold : float
        What was left for one more cluster, and what it would have had to exceed; NaN for a known number.
        Evidence above the threshold is left where another cluster of the common shape did not stand.
    """

    centres: FloatArray
    shares: FloatArray
    share_privacy: FloatArray
    share_sampling: FloatArray
    covariance_privacy: FloatArray
    covariance_sampling: FloatArray
    covariance: FloatArray
    shapes: FloatArray
    significance: FloatArray
    stability: FloatArray
    evidence: float = math.nan
    threshold: float = math.nan

    @property
    def count(self) -> int:
        """Number of clusters K."""
        return int(self.shares.size)

    @property
    def own_shapes(self) -> bool:
        """Whether clusters were fitted shapes of their own."""
        return bool(np.isfinite(self.shapes).all())

    @property
    def at_limit(self) -> bool:
        """Whether the search for the number ended at the most clusters it looks for, with more to show."""
        return self.count >= MOST_CLUSTERS and self.evidence > self.threshold

    @classmethod
    def from_modes(cls, modes: ModeSet) -> ClusterSet:
        """Return the modes of a surface as centres, their basins' masses as shares."""
        order = np.argsort(-modes.mass, kind="stable")
        unknown = np.full(order.size, np.nan)
        d = modes.locations.shape[1]
        # The highest mode never dies, and is judged by its height.
        evidence = np.where(np.isfinite(modes.persistence_z), modes.persistence_z, modes.height_z)
        return cls(
            centres=modes.locations[order],
            shares=modes.mass[order],
            share_privacy=unknown,
            share_sampling=unknown,
            covariance_privacy=modes.covariance_privacy[order],
            covariance_sampling=(modes.covariance_sampling + modes.covariance_bias)[order],
            covariance=np.full((d, d), np.nan),
            shapes=np.full((order.size, d, d), np.nan),
            # The highest mode never dies, and is judged by its height.
            significance=evidence[order],
            stability=unknown,
        )


def fit_clusters(
    surface: Any,
    n_clusters: int | None = None,
    *,
    false_split_rate: float = 0.03,
    own_shapes: bool = True,
) -> ClusterSet:
    """Fit Gaussian clusters to the coefficients of a surface.

    They are found with a common shape; from four columns on each is then fitted a shape of its own, of
    about the common volume (`cluster_fit.shape_basis`).

    Parameters
    ----------
    surface : ReleasedSurface, LatticeSurface or RandomFeatureSurface
    n_clusters : int, optional
        Their number; found when omitted.
    false_split_rate : float
        Chance that pure noise would add a cluster.
    own_shapes : bool
        False keeps the common shape in four and more columns as well.
    """
    sketch, middle, spread = pilot_of(surface)
    prior = Prior(
        middle,
        spread,
        axis_freedom=_AXIS_FREEDOM,
        # Of a known number in more columns the shapes are the clusters' own, about axes of the data.
        shear_freedom=_SHEAR_FREEDOM if n_clusters is None or sketch.dimension < _SHAPE_DIMENSIONS else 0.0,
    )
    found = candidates(surface, sketch, prior)
    evidence = threshold = math.nan
    reseated = False
    if n_clusters is None:
        fit, evidence, threshold = fit_unknown(sketch, prior, found, false_split_rate)
    else:
        best = fit_known(sketch, prior, found, n_clusters)
        fit, found = reseat(sketch, prior, found, best)
        reseated = fit is not best
    d = sketch.dimension
    few = fit.clusters.count * len(shape_basis(d)) <= _MOST_DEVIATIONS
    if own_shapes and few and d >= _SHAPE_DIMENSIONS:
        if fit.clusters.shear.size:
            sketch, prior, found, fit = along_axes(sketch, prior, found, fit)
        fit = refit(sketch, prior, fit.clusters.shaped(), _SHAPE_STEPS)
    errors = cluster_errors(sketch, prior, found, fit, reseated=reseated)
    clusters = fit.clusters
    order = np.argsort(-clusters.weights, kind="stable")
    turn = sketch.unit[:, None] * sketch.rotation
    roots = (turn @ clusters.factors)[order]
    shapes = roots @ roots.transpose(0, 2, 1)
    shares = (clusters.weights / clusters.weights.sum())[order]
    common = clusters.deviations.shape[1] == 0
    return ClusterSet(
        centres=sketch.to_columns(clusters.centres)[order],
        shares=shares,
        **_errors(errors, turn, order),
        covariance=np.asarray(np.tensordot(shares, shapes, axes=1)),
        shapes=np.full_like(shapes, np.nan) if common else shapes,
        evidence=evidence,
        threshold=threshold,
    )


def along_axes(
    sketch: ClusterSketch, prior: Prior, found: Candidates, fit: ClusterFit
) -> tuple[ClusterSketch, Prior, Candidates, ClusterFit]:
    """Return all in coordinates along the axes of the clusters' common shape, instead of the data's."""
    clusters = fit.clusters
    root = np.exp(clusters.log_widths)[:, None] * clusters.common
    variances, axes = np.linalg.eigh(root @ root.T)
    turned = sketch.turned(axes)
    spread = np.sqrt(prior.spread**2 @ axes**2)
    prior = replace(prior, middle=prior.middle @ axes, spread=spread, shear_freedom=0.0)
    plain = Clusters(clusters.weights, clusters.centres @ axes, 0.5 * np.log(variances))
    return turned, prior, at_points(found.points @ axes, turned, prior), refit(turned, prior, plain, 1)


def nearest_cluster(clusters: ClusterSet, points: FloatArray, scale: FloatArray) -> IntArray:
    """Return the number of the nearest centre to each point (m, d), from 0.

    Distances are Euclidean in units of `scale` (d,); where clusters have own shapes, Mahalanobis's, of the
    matrix halfway between the cluster's own covariance and a ball of the clusters' mean variance.
    """
    if not clusters.own_shapes:
        return nearest(points, clusters.centres, scale)
    shapes = clusters.shapes / np.multiply.outer(scale, scale)
    mean = np.tensordot(clusters.shares, shapes, axes=1)
    ball = np.trace(mean) / scale.size * np.eye(scale.size)
    roots = np.linalg.cholesky(_OWN * shapes + (1 - _OWN) * ball)
    apart = [
        np.sum(np.square(np.linalg.solve(root, ((points - centre) / scale).T)), axis=0)
        for root, centre in zip(roots, clusters.centres, strict=True)
    ]
    return np.asarray(np.argmin(apart, axis=0))


def mode_starts(surface: Any, n_clusters: int | None) -> FloatArray | None:
    """Return where to climb for the modes of a surface of four or more dimensions: fitted centres and more.

    None in fewer dimensions, where a grid sees every mode, and for a surface without coefficients.
    """
    if surface.lower.size <= GRID_DIMENSIONS:
        return None
    try:
        sketch, middle, spread = pilot_of(surface)
    except InvalidArgument:
        return None
    prior = Prior(middle, spread, axis_freedom=_AXIS_FREEDOM)
    found = candidates(surface, sketch, prior)
    count = _MODE_STARTS if n_clusters is None else n_clusters + _SPARE_STARTS
    widths = np.arange(found.energies.size)
    targets = np.repeat(sketch.target[None], widths.size, axis=0)
    starts = greedy(found, targets, widths, count)
    return sketch.to_columns(
        np.concatenate([refit(sketch, prior, s, _START_STEPS).clusters.centres for s in starts])
    )


def pilot_of(surface: Any) -> tuple[ClusterSketch, FloatArray, FloatArray]:
    """Return the sketch of a surface, turned to the data's axes, and the data's mean and spread there."""
    sketch = ClusterSketch.of(surface)
    turned, middle, spread = pilot(sketch, SCALE_SHARE * sketch.widths)
    return turned.cropped(NARROWEST * spread), middle, spread


def _errors(errors: ClusterErrors, turn: FloatArray, order: IntArray) -> dict[str, FloatArray]:
    return {
        "share_privacy": np.minimum(np.sqrt(errors.share_privacy), _SHARE_SD)[order],
        "share_sampling": np.minimum(np.sqrt(errors.share_sampling), _SHARE_SD)[order],
        "covariance_privacy": (turn @ errors.privacy @ turn.T)[order],
        "covariance_sampling": (turn @ errors.sampling @ turn.T)[order],
        "significance": errors.significance[order],
        "stability": errors.stability[order],
    }
