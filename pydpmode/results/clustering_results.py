"""Fitted clusters: a frozen value that holds a released surface and what was read from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

import numpy as np
import pandas as pd

from ..budget import PrivacySpent
from ..numerics.cluster_set import ClusterSet, nearest_cluster
from ..numerics.mode_set import IntArray
from ..numerics.surfaces import FloatArray, Surface
from .assignment import basin_of, check_method, label_rows
from .base_results import SurfaceFacts, checked_arrays, number_from, read_arrays
from .coordinates import Coordinate
from .located_results import LocatedResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

Source = Literal["total", "privacy", "sampling"]

# Shapes of the arrays of a ClusterSet, k clusters in d dimensions.
_SHAPES: Mapping[str, str] = MappingProxyType(
    {
        "centres": "kd",
        "shares": "k",
        "share_privacy": "k",
        "share_sampling": "k",
        "covariance_privacy": "kdd",
        "covariance_sampling": "kdd",
        "covariance": "dd",
        "shapes": "kdd",
        "significance": "k",
        "stability": "k",
    }
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClusteringResults(LocatedResults[Source]):
    """Clusters with their errors, shares and the privacy they cost.

    Everything is in the units of the coordinates (`columns`); `centres_original` maps back to the user's
    columns. Tables are fresh data frames on every access. Fields beyond those of `Results`:

    Parameters
    ----------
    cluster_set : ClusterSet
        The clusters, the largest share first.
    centres_kind : {"fit", "modes"}
        What a centre is: of a cluster fitted to the released vector, or a mode of the surface.
    n_clusters_requested : int or None
        The number that the user asked for; None when it was found.
    """

    kind: ClassVar[str] = "modal_clustering"
    item: ClassVar[str] = "cluster"

    cluster_set: ClusterSet
    centres_kind: Literal["fit", "modes"] = "fit"
    n_clusters_requested: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "cluster_set", _checked(self.cluster_set, len(self.coordinates)))

    @classmethod
    def from_clusters(
        cls,
        cluster_set: ClusterSet,
        surface: Surface,
        *,
        centres_kind: Literal["fit", "modes"] = "fit",
        bandwidth_rule: str = "",
        warnings: Sequence[str] = (),
        label: str | None = None,
        n_clusters_requested: int | None = None,
    ) -> ClusteringResults:
        """Build the result of a fit: the privacy statement is the surface's, never the caller's.

        Parameters
        ----------
        cluster_set : ClusterSet
            From `surface`.
        surface : Surface
        centres_kind : {"fit", "modes"}
        bandwidth_rule, warnings, label
            As in `DensityModesResults.from_modes`.
        n_clusters_requested : int, optional
        """
        privacy: PrivacySpent | None = getattr(surface, "privacy", None)
        coordinates = getattr(surface, "coordinates", None) or [Coordinate.plain(c) for c in surface.columns]
        if label is None:
            label = "" if privacy is None else privacy.label
        return cls(
            coordinates=tuple(coordinates),
            facts=SurfaceFacts.from_surface(surface),
            surface=surface,
            privacy=privacy,
            bandwidth_rule=bandwidth_rule,
            warnings=tuple(warnings),
            label=label,
            cluster_set=cluster_set,
            centres_kind=centres_kind,
            n_clusters_requested=n_clusters_requested,
        )

    # -- what was found

    @property
    def n_clusters(self) -> int:
        """Number of clusters K."""
        return self.cluster_set.count

    @property
    def centres(self) -> pd.DataFrame:
        """Centres, one row per cluster, in the units of the coordinates."""
        return self._place_table()

    @property
    def params(self) -> pd.DataFrame:
        """The centres, under the name that statistical packages use."""
        return self.centres

    @property
    def centres_original(self) -> pd.DataFrame:
        """Centres taken back to the original columns (dates for dates; exp of a logarithm)."""
        at = self.cluster_set.centres
        parts = [(c.column, c.back(at[:, j])) for j, c in enumerate(self.coordinates)]
        frame = pd.DataFrame(dict(enumerate(v for _, v in parts)), index=self._numbers())
        frame.columns = pd.Index([name for name, _ in parts])
        return frame

    @property
    def shares(self) -> pd.DataFrame:
        """Share of the records in each cluster, with standard errors: privacy, sampling, total.

        For modes they are the masses of the basins, whose errors are not known (NaN).
        """
        clusters = self.cluster_set
        return pd.DataFrame(
            {
                "share": clusters.shares,
                "privacy": clusters.share_privacy,
                "sampling": clusters.share_sampling,
                "total": np.hypot(clusters.share_privacy, clusters.share_sampling),
            },
            index=self._numbers(),
        )

    @property
    def mass(self) -> pd.Series[float]:
        """Share of the records in each cluster."""
        return self.shares["share"].rename("mass")

    @property
    def std_errors(self) -> pd.DataFrame:
        """Standard errors of the centres by source, one row per (cluster, column): privacy, sampling, total.

        For a fit they are for the centres that the fit would have without noise and with all records in the
        world: where clusters are not of one Gaussian shape those differ from the clusters' means, and the
        shares from theirs.
        """
        return self._error_table("privacy", "sampling", "total")

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals for each coordinate of each centre: estimate and `total` standard error.

        Parameters
        ----------
        level : float
            Coverage of each interval on its own, in (0, 1).

        Returns
        -------
        DataFrame
            One row per (cluster, column): lower, upper.
        """
        lower, upper = self._ends(level)
        return pd.DataFrame({"lower": lower.ravel(), "upper": upper.ravel()}, index=self._pairs())

    def cov_params(self, cluster: int = 1, *, source: Source = "total") -> pd.DataFrame:
        """Return the d x d covariance of one centre.

        Parameters
        ----------
        cluster : int
            Its number, from 1.
        source : {"total", "privacy", "sampling"}
        """
        return self._covariance_table(cluster, source)

    @property
    def stability(self) -> pd.DataFrame:
        """How far each cluster can be trusted.

        `found_again`: share of repeated draws of the privacy noise in which the cluster is found again (NaN
        for modes). `significance`: evidence for it in standard deviations of the noise: for a fit the root
        of twice the loss of fit without it, for a mode its persistence.
        """
        clusters = self.cluster_set
        return pd.DataFrame(
            {"found_again": clusters.stability, "significance": clusters.significance}, index=self._numbers()
        )

    @property
    def spread(self) -> pd.DataFrame:
        """Fitted covariance of a cluster's records about its centre, mean over clusters (NaN for modes)."""
        names = list(self.columns)
        return pd.DataFrame(self.cluster_set.covariance.copy(), index=names, columns=names)

    @property
    def shapes(self) -> pd.DataFrame:
        """Fitted covariance of every cluster's records about its centre, one row per (cluster, column).

        In fewer than four columns (and where there are too many clusters for shapes of their own) clusters
        are fitted one common shape: it is then given for each, the same as `spread`. NaN for modes.
        """
        clusters = self.cluster_set
        values = (
            clusters.shapes if clusters.own_shapes else np.tile(clusters.covariance, (clusters.count, 1, 1))
        )
        return pd.DataFrame(
            values.reshape(-1, len(self.columns)).copy(), index=self._pairs(), columns=list(self.columns)
        )

    @property
    def labels_(self) -> NoReturn:
        """Refused: labels of the private rows are not part of the release."""
        raise AttributeError(
            "there are no labels_: a label is one value per private row, and the result holds no rows. "
            "Labels of new rows: predict(new). Labels of your own private rows: predict(rows), for local use "
            "only, since they are not covered by the guarantee"
        )

    @property
    def diagnostics(self) -> pd.Series[Any]:
        """How the fit went, one fact per entry; all of it is a function of the release alone."""
        clusters = self.cluster_set
        facts: dict[str, Any] = {
            "clusters": self.n_clusters,
            "clusters_requested": self.n_clusters_requested,
            "centres": self.centres_kind,
            "least_stability": float(np.min(clusters.stability, initial=1.0)),
            "evidence_for_one_more": clusters.evidence,
            "evidence_needed": clusters.threshold,
            "records": self.facts.n_records,
            "bandwidth_rule": self.bandwidth_rule,
            **{f"bandwidth[{c}]": float(h) for c, h in zip(self.columns, self.facts.bandwidth, strict=True)},
            "density_noise_sd": self.facts.noise_sd,
            "negative_mass": self.negative_mass,
            "private": self.privacy is not None and not self.simulated,
            "simulated": self.simulated,
            "warnings": len(self.warnings),
        }
        return pd.Series(facts, name="value", dtype=object).rename_axis("fact")

    # -- what can be done with it

    def predict(self, new: Any, *, method: Literal["nearest", "basin"] = "nearest") -> pd.Series[Any]:
        """Return the number of the cluster that each row of `new` belongs to.

        The answer is a function of the release and of `new` only. When `new` holds the private rows
        themselves the labels describe those rows, and are NOT covered by the guarantee.

        Parameters
        ----------
        new : DataFrame or array
            A data frame is matched by name, in any order (original columns, or coordinates such as
            "log(wage)"); other columns are ignored. An array has one column per coordinate, in the order of
            `columns`. Values outside the box count as at its boundary.
        method : {"nearest", "basin"}
            Nearest centre, distances in bandwidths or, where clusters were fitted own shapes (`shapes`),
            in distances that follow them; or the centre in whose basin of the surface the point lies.

        Returns
        -------
        Series of Int64
            Cluster numbers from 1 with the index of `new`; <NA> where a value is missing.

        Raises
        ------
        UnknownColumn, DuplicateColumns, NonNumericColumn, InvalidArgument
            When `new` does not have the columns, in numbers.
        """
        check_method(method)
        assign = self._nearest if method == "nearest" else self._basins
        return label_rows(new, self.coordinates, self.facts, self.n_clusters, assign, "cluster")

    def _nearest(self, points: FloatArray) -> IntArray:
        return nearest_cluster(self.cluster_set, points, self.facts.bandwidth)

    def _basins(self, points: FloatArray) -> IntArray:
        return basin_of(self.surface, self.cluster_set.centres, points)

    def summary(self, level: float = 0.95) -> Summary:
        """Return a statsmodels `Summary`: `as_text`, `as_html`, `as_latex`, `as_csv`.

        Parameters
        ----------
        level : float
            Coverage of the intervals, in (0, 1).
        """
        from .clustering_summary import clustering_summary

        return clustering_summary(self, level)

    def plot(
        self, *, ax: Axes | None = None, columns: Sequence[str] | None = None, level: float = 0.95
    ) -> Axes:
        """Draw the surface and the centres; see `pydpmode.results.clustering_plots.plot_clusters`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw one or two coordinates; a new pyplot figure when omitted.
        columns : sequence of str, optional
            Which coordinates; all when omitted. Three or more give a pairs plot.
        level : float
            Coverage of intervals and ellipses.
        """
        from .clustering_plots import plot_clusters

        return plot_clusters(self, ax=ax, columns=columns, level=level)

    def __repr__(self) -> str:
        count = f"{self.n_clusters} cluster{'' if self.n_clusters == 1 else 's'}"
        return self._told(
            f"{count} of ({', '.join(self.columns)})",
            ".summary(), .centres, .shares, .stability, .predict(new), .plot(), .save(path)",
        )

    # -- inside

    def _places(self) -> FloatArray:
        return self.cluster_set.centres

    def _covariances(self) -> Mapping[str, FloatArray]:
        clusters = self.cluster_set
        return {"privacy": clusters.covariance_privacy, "sampling": clusters.covariance_sampling}

    def _own_dict(self) -> dict[str, Any]:
        clusters = {name: getattr(self.cluster_set, name) for name in (*_SHAPES, "evidence", "threshold")}
        return {
            "clusters": clusters,
            "centres_kind": self.centres_kind,
            "n_clusters_requested": self.n_clusters_requested,
        }

    @classmethod
    def _own_fields(cls, data: Mapping[str, Any], dimension: int) -> dict[str, Any]:
        stored = data["clusters"]
        sizes = {"k": len(stored["shares"]), "d": dimension}
        # Results saved before clusters had shapes of their own lack them.
        unknown = np.full((sizes["k"], dimension, dimension), np.nan).tolist()
        arrays = read_arrays({"shapes": unknown, **stored}, _SHAPES, sizes)
        kind, wanted = data["centres_kind"], data.get("n_clusters_requested")
        if kind not in ("fit", "modes"):
            raise ValueError("unknown kind of centres")
        return {
            "cluster_set": ClusterSet(
                **arrays, evidence=number_from(stored["evidence"]), threshold=number_from(stored["threshold"])
            ),
            "centres_kind": kind,
            "n_clusters_requested": None if wanted is None else int(wanted),
        }


def _checked(clusters: ClusterSet, dimension: int) -> ClusterSet:
    """Return a read-only copy, or refuse shapes that do not fit together."""
    sizes = {"k": clusters.count, "d": dimension}
    return dataclasses.replace(clusters, **checked_arrays(clusters, "cluster_set", _SHAPES, sizes))
