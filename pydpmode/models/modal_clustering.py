"""Clusters of the records of a table, under differential privacy: centres, shares and their errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ..budget import Adjacency, Budget, check_epsilon
from ..errors import ClusterLimit, InvalidArgument, LowSignal
from ..numerics.bandwidth import BandwidthSpec, check_bandwidth
from ..numerics.cluster_bandwidth import cluster_bandwidth
from ..numerics.cluster_number import CLEAR
from ..numerics.cluster_set import ClusterSet, fit_clusters, mode_starts
from ..numerics.cluster_sketch import MOST_FREQUENCIES
from ..numerics.designs import MAX_LATTICE_DIMENSION
from ..numerics.mode_seeking import find_modes
from ..numerics.scale_choice import choose_reading
from ..numerics.surfaces import Surface
from ..privacy.accounting import gaussian_mu
from ..privacy.bounds import Bounds
from ..privacy.features import ZERO_WEIGHT
from ..privacy.private_data import PrivateData
from ..results.clustering_results import ClusteringResults
from ..results.released_surface import ReleasedSurface
from .cluster_preview import cluster_table
from .durations import in_seconds
from .preview import Preview, plan_preview
from .surface_design import SurfaceRequest
from .surface_model import (
    SurfaceModel,
    check_seed,
    rate_inside,
    refuse_spending,
    warn,
    warn_delta,
    warn_features,
    warn_log_bounds,
    warn_unusable,
    whole,
)

Centres = Literal["fit", "modes"]

# Random features of a fit: it uses the drawn frequencies as they are, so more only lower the sensitivity.
_FEATURES = 3072
_RULE = "clusters (public)"
# Modes in 4 and more columns: narrower than for a fit, which undoes the smoothing.
_MODES_FACTOR = 0.7
MOST_FITTED = 50  # clusters: the time of a fit grows with the square of their number and more


def checked_number(n_clusters: object, centres: Centres) -> int | None:
    """Return a number of clusters, or None where it is to be found; refuse one whose fit would not end."""
    number = whole("n_clusters", n_clusters)
    if number is not None and number > MOST_FITTED and centres == "fit":
        raise InvalidArgument(
            f"n_clusters = {number} is more than the {MOST_FITTED} that are fitted together; use "
            "centres='modes', which has no such limit, or fewer"
        )
    return number


class ModalClustering(SurfaceModel):
    """Clusters in 1 to 8 numeric columns, from one release of their density surface.

    Centres are either those of a mixture of Gaussian clusters of one common shape (four or more columns: of
    own shapes and one volume) that is fitted to the released vector itself (`centres="fit"`: a likelihood
    fit, which undoes the smoothing of the kernel), or modes of the released surface (`centres="modes"`).
    Both are post-processing of the one release, as are shares, standard errors and the assignment of new
    points.

    Parameters
    ----------
    data : DataFrame, array, table or path; PrivateData; or a released surface
        As in `DensityModes`. On a surface a fit costs nothing more.
    columns : sequence of str, optional
        Columns to use, 1 to 8; all columns with bounds when omitted.
    bounds : mapping of str to (low, high), optional
        PUBLIC bounds per column, on the original scale; only with a table. About three standard deviations
        to each side of the mean serve best.
    n_clusters : int, optional
        Number of clusters, at most 50 for "fit"; found when omitted: clusters are added while the release
        shows more than noise and each stands out of it. What is found are Gaussian pieces, up to 30, which
        need not be groups.
    centres : {"fit", "modes"}
        What a centre is. "fit" (default) was the more accurate in every cell measured
        (docs/clustering.md); "modes" are peaks of the density and make no assumption on shape.
    bandwidth : str, float, sequence or mapping, optional
        Of the release. When omitted: for "fit" the rule of `numerics.cluster_bandwidth`, and for "modes"
        that of `DensityModes`. Otherwise as in `DensityModes`.
    log : str or sequence of str
        Columns to be taken on the natural-log scale.
    false_split_rate : float
        With an unknown number: chance that pure noise adds a cluster, for "fit" and for "modes" (0.03).
    n_features : int, optional
        Number of random frequencies when there are 4 or more columns, at most 20,000 for "fit". Of a surface
        released with more a fit uses the 20,000 of lowest norm.
    public_transform : str, optional
        States that the columns given were made from the records by a fixed function, row by row, that was
        NOT learned from these rows (a scaler or a PCA fitted to other, public data): say which. The statement
        is kept with the result. If the transform was in fact learned from these rows, the guarantee does not
        cover what was learned; use the private preprocessing instead.

    Raises
    ------
    MissingBounds, InvalidBounds, UnknownColumn, DuplicateColumns, NonNumericColumn, EmptyData
        When table, columns and bounds do not fit together. No row is read.
    InvalidArgument
        On any other parameter out of range.

    Notes
    -----
    Guarantee of `fit`: (epsilon, delta)-DP for replacing one record (or as the `PrivateData` says), given
    public bounds: one Gaussian mechanism, see `privacy.features.exact_sensitivity` and docs/guarantee.md.
    Labels of the private rows themselves are NOT covered: each is a function of the centres and of its row.

    The fit is compressive clustering (Keriven, Tremblay, Traonmilin & Gribonval 2017; under privacy:
    Chatalic, Schellekens, Houssiau, de Montjoye, Jacques & Gribonval 2022) of a sketch whose noise is known.

    Examples
    --------
    >>> from pydpmode import ModalClustering, datasets
    >>> data, truth = datasets.four_gaussians(5000, seed=1)
    >>> model = ModalClustering(data, bounds={"x": (-8, 8), "y": (-8, 8)}, n_clusters=4)
    >>> res = model.fit(epsilon=1.0, delta=1e-6, seed=1)   # a seed only to make this example repeatable
    >>> sorted(res.centres.round().astype(int).values.tolist())
    [[-3, -3], [-3, 3], [3, -3], [3, 3]]
    """

    def __init__(
        self,
        data: Any,
        columns: Sequence[str] | str | None = None,
        *,
        bounds: Bounds | None = None,
        n_clusters: int | None = None,
        centres: Centres = "fit",
        bandwidth: BandwidthSpec | None = None,
        log: str | Sequence[str] = (),
        false_split_rate: float = 0.03,
        n_features: int | None = None,
        public_transform: str | None = None,
    ) -> None:
        self._names = (columns,) if isinstance(columns, str) else None if columns is None else tuple(columns)
        self._log = (log,) if isinstance(log, str) else tuple(log)
        if centres not in ("fit", "modes"):
            raise InvalidArgument(f"centres must be 'fit' or 'modes', got {centres!r}")
        self._centres: Centres = centres
        self._by_rule = bandwidth is None
        self._bandwidth = "ladder" if bandwidth is None else check_bandwidth(in_seconds(bandwidth))
        self._resolution, self._order = None, 2
        self._n_clusters = checked_number(n_clusters, centres)
        self._n_features = whole("n_features", n_features)
        if centres == "fit" and (self._n_features or 0) > MOST_FREQUENCIES:
            raise InvalidArgument(
                f"n_features = {self._n_features} is more than the {MOST_FREQUENCIES} that a fit of clusters "
                "uses, and each adds noise; leave it out"
            )
        self._rate = rate_inside(false_split_rate, "false_split_rate", 0.03)
        self._notes = _transform_note(public_transform)
        self._released: ReleasedSurface | None = None
        if self._attach(data, bounds):
            if self._notes:
                raise InvalidArgument("a surface carries its notes; state public_transform at its release")
            self._surface = self._read_surface(data)

    # -- fitting --------------------------------------------------------------------------------

    def fit(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        label: str | None = None,
        seed: int | None = None,
    ) -> ClusteringResults:
        """Release the density surface and find its clusters.

        Parameters
        ----------
        epsilon : float
            Privacy loss of this release, > 0. No default. Omit it on a surface, which costs nothing.
        delta : float
            In (0, 1), well below 1/n. On a `PrivateData` the budget's delta when omitted.
        label : str, optional
            Label in the ledger.
        seed : int, optional
            For tests and papers only: reproducible noise. The result is then marked as simulated and is
            NOT private.

        Returns
        -------
        ClusteringResults

        Raises
        ------
        InvalidBudget, BudgetExceeded
            As in `DensityModes.fit`.
        InvalidArgument
            When more clusters are asked for than there are records. Nothing is read or charged.
        """
        sink: list[str] = []
        if self._surface is not None:
            refuse_spending(epsilon, delta, seed, "clustering")
            return self._search(self._surface, "as released", label, sink)
        check_epsilon(epsilon)
        check_seed(seed)
        with self._cell.one_at_a_time():
            study, budget = self._open(epsilon, delta)
            request, rule = self._plan(study, budget, seed, None)
            self._check_count(study)
            request.design()
            warn_delta(study, budget, sink)
            warn_log_bounds(study, request.coordinates, sink)
            name = label or f"clusters of {', '.join(c.name for c in request.coordinates)}"
            surface = self._release(study, request, budget, name, seed, self._notes)
        self._released = surface
        if self._centres == "modes":
            warn_features(surface, sink)
        warn_unusable(surface, sink)
        return self._search(surface, rule, label, sink)

    def preview(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        n: int | None = None,
        spread: Mapping[str, float] | None = None,
    ) -> Preview:
        """Tell cost and noise of a release, in the columns' units, without reading a row.

        Parameters
        ----------
        epsilon, delta, n, spread
            As in `DensityModes.preview`. `spread` is that of a cluster. With centres="fit" the chance to be
            found, the evidence and the errors are those of the fit: the cluster stands alone, is Gaussian and
            has the clusters' common width; with a known number it counts as found when it is clear of noise.
        """
        if self._surface is not None:
            raise InvalidArgument("this surface is already released; there is nothing to plan")
        check_epsilon(epsilon)
        with self._cell.one_at_a_time():
            study, budget = self._open(epsilon, delta)
        count = whole("n", n) or study.n_planning
        request, rule = self._plan(study, budget, 0, count)
        fitted, rate = self._centres == "fit", self._rate if self._n_clusters is None else None
        plan = plan_preview(
            request,
            study,
            budget,
            count,
            in_seconds(spread or {}),
            subject="cluster" if fitted else "cluster (a mode)",
            judge=(lambda design, sigma, wide: cluster_table(design, sigma, budget, count, wide, rate))
            if fitted
            else None,
        )
        return replace(plan, bandwidth_rule=rule)

    @property
    def released(self) -> ReleasedSurface | None:
        """The surface that `fit` released, even if the search on it then failed; None before."""
        return self._released

    def __repr__(self) -> str:
        if self._surface is not None:
            return f"ModalClustering(on a surface of {', '.join(self._surface.columns)})"
        names = self._names or (self._study.columns if self._study is not None else "all columns with bounds")
        return f"ModalClustering({names}; n_clusters {self._n_clusters}, centres {self._centres!r})"

    # -- parts ----------------------------------------------------------------------------------

    def _plan(
        self, study: PrivateData, budget: Budget, seed: int | None, n: int | None
    ) -> tuple[SurfaceRequest, str]:
        """Return what to release, and the bandwidth rule in words. Reads no row."""
        coordinates = self._coordinates(study)
        request = self._request(study, coordinates, budget.epsilon, seed, n)
        many = len(coordinates) > MAX_LATTICE_DIMENSION
        if self._centres == "fit" and many and self._n_features is None:
            request = replace(request, n_features=_FEATURES)
        if not self._by_rule or (self._centres == "modes" and not many):
            return request, request.choice().rule
        widths = cluster_bandwidth(
            request.upper - request.lower,
            n=n if n is not None else study.n_planning,
            noise_scale=_noise_scale(budget, study.adjacency),
            n_clusters=self._n_clusters,
        )
        if self._centres == "modes":
            widths = _MODES_FACTOR * widths
        return replace(request, bandwidth=widths.tolist()), _RULE

    def _check_count(self, study: PrivateData) -> None:
        n, wanted = study.n_units, self._n_clusters
        if n is not None and wanted is not None and wanted > n:
            raise InvalidArgument(f"n_clusters = {wanted} is more than the {n} {study.unit}s")

    def _search(self, surface: Surface, rule: str, label: str | None, sink: list[str]) -> ClusteringResults:
        if self._centres == "fit":
            clusters = fit_clusters(surface, self._n_clusters, false_split_rate=self._rate)
        else:
            reading = choose_reading(surface, n_modes=self._n_clusters, false_mode_rate=self._rate)
            surface, rule = reading.surface, reading.words(rule)
            modes = find_modes(
                surface,
                n_modes=self._n_clusters,
                false_mode_rate=self._rate,
                look=reading.look,
                starts=mode_starts(surface, self._n_clusters),
            )
            clusters = ClusterSet.from_modes(modes)
        faint = int(np.sum(~(clusters.significance >= CLEAR)))
        if surface.noise.value > 0 and faint:
            warn(
                LowSignal,
                f"{faint} of {clusters.count} clusters cannot be told from noise; use more epsilon, more "
                "records, narrower bounds, a wider bandwidth or fewer clusters",
                sink,
            )
        if clusters.at_limit:
            warn(
                ClusterLimit,
                f"the search for the number of clusters ended at {clusters.count}, the most it looks for, "
                "with more to show; groups are not of one Gaussian shape: give n_clusters, or use "
                "centres='modes'",
                sink,
            )
        return ClusteringResults.from_clusters(
            clusters,
            surface,
            centres_kind=self._centres,
            bandwidth_rule=rule,
            warnings=tuple(sink),
            label=label,
            n_clusters_requested=self._n_clusters,
        )


def _noise_scale(budget: Budget, adjacency: Adjacency) -> float:
    """Return about what the noise of a release is, in records: public."""
    sensitivity = 1.05 if adjacency == "replace" else 1.0
    visible = math.sqrt(1 - ZERO_WEIGHT[adjacency])
    return float(sensitivity / visible / gaussian_mu(budget.epsilon, budget.delta))


def _transform_note(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    if not isinstance(text, str) or not text.strip():
        raise InvalidArgument(
            "public_transform must say in words which public transform made the columns, such as "
            "'PCA of the 1970 census'; apply the transform first and give its output as data"
        )
    return (
        f"Public transform, as stated by the user: {text.strip()}. The columns were made from the records "
        "row by row, by a function that was not learned from them.",
    )
