"""Fit clusters to a surface: the whole way from the release to centres, shares, errors and stability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from .cluster_bandwidth import SCALE_SHARE
from .cluster_candidates import candidates, greedy
from .cluster_errors import ClusterErrors, cluster_errors
from .cluster_fit import Prior, refit
from .cluster_number import fit_unknown
from .cluster_pilot import pilot
from .cluster_reseat import reseat
from .cluster_search import fit_known
from .cluster_sketch import ClusterSketch
from .mode_candidates import GRID_DIMENSIONS
from .mode_set import IntArray, ModeSet
from .surfaces import FloatArray

_AXIS_FREEDOM = 0.2
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
        Of the records of any one cluster about its centre; NaN where not fitted.
    significance : (K,) array
        Evidence for the cluster, in standard deviations.
    stability : (K,) array
        Share of repeated noise draws in which it is found again; NaN where not known.
    evidence, threshold : float
        What was left for one more cluster, and what it would have had to exceed; NaN for a known number.
    """

    centres: FloatArray
    shares: FloatArray
    share_privacy: FloatArray
    share_sampling: FloatArray
    covariance_privacy: FloatArray
    covariance_sampling: FloatArray
    covariance: FloatArray
    significance: FloatArray
    stability: FloatArray
    evidence: float = math.nan
    threshold: float = math.nan

    @property
    def count(self) -> int:
        """Number of clusters K."""
        return int(self.shares.size)

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
            # The highest mode never dies, and is judged by its height.
            significance=evidence[order],
            stability=unknown,
        )


def fit_clusters(
    surface: Any, n_clusters: int | None = None, *, false_split_rate: float = 0.03
) -> ClusterSet:
    """Fit Gaussian clusters of a common shape to the coefficients of a surface.

    Parameters
    ----------
    surface : ReleasedSurface, LatticeSurface or RandomFeatureSurface
    n_clusters : int, optional
        Their number; found when omitted.
    false_split_rate : float
        Chance that pure noise would add a cluster.
    """
    sketch, middle, spread = pilot_of(surface)
    prior = Prior(middle, spread, axis_freedom=_AXIS_FREEDOM)
    found = candidates(surface, sketch, prior)
    evidence = threshold = math.nan
    reseated = False
    if n_clusters is None:
        fit, evidence, threshold = fit_unknown(sketch, prior, found, false_split_rate)
    else:
        best = fit_known(sketch, prior, found, n_clusters)
        fit, found = reseat(sketch, prior, found, best)
        reseated = fit is not best
    errors = cluster_errors(sketch, prior, found, fit, reseated=reseated)
    clusters = fit.clusters
    order = np.argsort(-clusters.weights, kind="stable")
    turn = sketch.unit[:, None] * sketch.rotation
    return ClusterSet(
        centres=sketch.to_columns(clusters.centres)[order],
        shares=(clusters.weights / clusters.weights.sum())[order],
        **_errors(errors, turn, order),
        covariance=turn * np.exp(2 * clusters.log_widths) @ turn.T,
        evidence=evidence,
        threshold=threshold,
    )


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
    return pilot(sketch, SCALE_SHARE * sketch.widths)


def _errors(errors: ClusterErrors, turn: FloatArray, order: IntArray) -> dict[str, FloatArray]:
    return {
        "share_privacy": np.sqrt(errors.share_privacy)[order],
        "share_sampling": np.sqrt(errors.share_sampling)[order],
        "covariance_privacy": (turn @ errors.privacy @ turn.T)[order],
        "covariance_sampling": (turn @ errors.sampling @ turn.T)[order],
        "significance": errors.significance[order],
        "stability": errors.stability[order],
    }
