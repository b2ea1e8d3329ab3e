"""Pictures of clusters: the surface with the centres on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..budget import PrivacySpent
from ..numerics.cluster_set import ClusterSet
from ..numerics.mode_set import ModeSearchDiagnostics, ModeSet
from ..numerics.surfaces import FloatArray
from .clustering_summary import doubtful
from .plots import modes_figure, plot_modes
from .results import DensityModesResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .clustering_results import ClusteringResults


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Picture(DensityModesResults):
    """Clusters as the pictures of modes take them."""

    noun: ClassVar[str] = "centre"
    subject: ClassVar[str] = "clusters"

    fitted: ClusterSet | None = None

    def fitted_curve(self, axis: int, at: FloatArray) -> FloatArray | None:
        """Return the density of the fitted clusters along one coordinate; None where none were fitted."""
        clusters = self.fitted
        if clusters is None or not clusters.count:
            return None
        variances = (
            clusters.shapes[:, axis, axis]
            if clusters.own_shapes
            else np.full(clusters.count, clusters.covariance[axis, axis])
        )
        away = (at[:, None] - clusters.centres[:, axis]) ** 2 / variances
        return np.asarray(np.exp(-0.5 * away) / np.sqrt(2 * np.pi * variances) @ clusters.shares)


def plot_clusters(
    result: ClusteringResults,
    *,
    ax: Axes | None = None,
    columns: Sequence[str] | None = None,
    level: float = 0.95,
    whole: tuple[float, float] | None = None,
) -> Axes:
    """Draw the released surface and the centres, numbered by share, with the regions of their error.

    One coordinate: the density of the fitted clusters, the released density faint behind it (for modes: the
    released density with its noise); two: filled contours; three or more: the marginals of every column and
    pair. Centres that are not to be relied on are drawn hollow.

    Parameters
    ----------
    result : ClusteringResults
        It must hold its surface.
    ax, columns, level
        As in `plots.plot_modes`.
    whole : (float, float), optional
        Epsilon and delta for the title, where the release is a step of several.
    """
    return plot_modes(_picture(result, whole), ax=ax, columns=columns, level=level)


def clusters_figure(
    result: ClusteringResults, *, columns: Sequence[str] | None = None, level: float = 0.95
) -> Figure:
    """Return the picture of `plot_clusters` as a figure that pyplot does not know of."""
    return modes_figure(_picture(result), columns=columns, level=level)


def _at_cost(privacy: PrivacySpent | None, whole: tuple[float, float] | None) -> PrivacySpent | None:
    """Return the statement at the epsilon and delta of the whole, for the title."""
    if privacy is None or whole is None:
        return privacy
    return replace(privacy, epsilon=whole[0], delta=whole[1])


def _picture(result: ClusteringResults, whole: tuple[float, float] | None = None) -> _Picture:
    clusters = result.cluster_set
    k, d = clusters.centres.shape
    unknown, no = np.full(k, np.nan), np.zeros(k, dtype=np.bool_)
    solid = ~np.array(doubtful(result), dtype=np.bool_)
    modes = ModeSet(
        locations=clusters.centres,
        densities=unknown,
        covariance_privacy=clusters.covariance_privacy,
        covariance_sampling=clusters.covariance_sampling,
        covariance_bias=np.zeros((k, d, d)),
        mass=clusters.shares,
        height_z=unknown,
        persistence=unknown,
        persistence_z=unknown,
        curvature_z=unknown,
        reliable=solid,
        refined=no,
        significant=solid,
        on_face=np.zeros((k, d), dtype=np.bool_),
        diagnostics=ModeSearchDiagnostics(k, 0, 0, 0, np.nan, np.nan, np.nan, (), 0, True, k),
    )
    return _Picture(
        coordinates=result.coordinates,
        facts=result.facts,
        surface=result.surface,
        privacy=_at_cost(result.privacy, whole),
        mode_set=modes,
        fitted=clusters if np.isfinite(clusters.covariance).all() else None,
    )
