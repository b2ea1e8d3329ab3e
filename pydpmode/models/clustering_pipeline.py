"""Centring, principal components and clustering of many columns inside one privacy budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..budget import Budget, as_number, as_whole, check_epsilon
from ..errors import ClusterLimit, InvalidArgument
from ..numerics.cluster_number import CLEAR
from ..numerics.designs import MAX_DIMENSION
from ..privacy.bounds import Bounds
from ..privacy.private_data import PrivateData
from ..privacy.shares import joined, split_by_noise
from ..results.clustering_results import ClusteringResults
from ..results.coordinates import Coordinate
from ..results.pipeline_results import PipelineResults
from ..results.preprocessing import SCORE_REACH
from .modal_clustering import Centres, ModalClustering, checked_number
from .preprocessing import (
    Centre,
    Radius,
    Scale,
    check_centre,
    check_radius,
    check_scale,
    check_simulated,
    check_whole,
    pca_shares,
    release_components,
)
from .private_source import PrivateSource
from .surface_design import SurfaceRequest
from .surface_model import check_seed, warn, warn_delta

# Share of the squared noise budget of the release that is clustered; of the others see `preprocessing`.
CLUSTER_SHARE = 0.55
# Standard deviations to each side that the bandwidth rule takes a box to have.
_RULE_REACH = 3.0
# A centre within so many standard errors of a limit is at it.
_NEAR = 2.0


class PrivateClusteringPipeline:
    """Clusters of rows with many columns: private centre, private components, private clusters.

    The rows are centred at their released mean, projected on released principal components of clipped rows,
    and the scores are clustered by `ModalClustering`. One epsilon covers it all; each step is in the ledger.

    Parameters
    ----------
    data : table or PrivateData
        A table: its budget is then what `fit` is given. A `PrivateData`: its ledger guards it.
    columns : sequence of str, optional
        Number columns; all columns with bounds when omitted.
    bounds : mapping of str to (low, high), optional
        PUBLIC bounds per column; only with a table.
    n_components : int
        1 to 8.
    radius : float or "private"
        As in `PrivatePCA`: a PUBLIC distance from the centre, in scales, beyond which rows are clipped before
        their second moments are released. "private" (default) releases a quartile of the distances for it.
    n_clusters : int, optional
        Found when omitted.
    centre, scale
        As in `PrivatePCA`.
    whiten : bool
        Whether the scores of each component are brought to unit variance; off by default, since it gives
        noisy components the weight of clear ones.
    centres : {"fit", "modes"}
        As in `ModalClustering`.
    reach : float
        Scores are clipped at so many released standard deviations of their component (whitened), or of the
        first: 5 when omitted. Those are of CLIPPED rows, which lie closer together than the rows do, so
        that a far cluster may be 4 or 5 of them away. `fit` warns where a centre is at the limit: give a
        larger one then. It does not change the bandwidth, and noise grows little with it; the time of a
        fit grows, in three components most.
    shares : mapping, optional
        Shares of the squared noise budget: the default is mean .10, radius .05, moments .35, clusters .55, in
        proportion; steps that nothing is released in take nothing.

    Raises
    ------
    MissingBounds, InvalidBounds, UnknownColumn, NonNumericColumn, EmptyData, InvalidArgument
        Before anything is read or charged.

    Notes
    -----
    Guarantee of `fit`: (epsilon, delta)-DP for replacing one record (or as the `PrivateData` says), given
    public bounds. Each step is one release with parameters that are public or come from earlier steps, and
    Gaussian releases compose exactly (`privacy.shares`).

    The published clustering standardises and fits PCA to the private rows for free; no guarantee covers
    that. Columns that were made by a transform learned from OTHER data go to `ModalClustering` with
    `public_transform=`.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> middle = np.array([[0.0] * 10, [4.0] * 5 + [0.0] * 5, [0.0] * 5 + [4.0] * 5])
    >>> rows = middle[random.integers(0, 3, 5000)] + random.normal(size=(5000, 10))
    >>> model = PrivateClusteringPipeline(rows, bounds=[(-5, 9)] * 10, n_components=2, n_clusters=3)
    >>> res = model.fit(epsilon=2.0, delta=1e-6, seed=1)
    >>> sorted(res.centres.mean(axis=1).round().astype(int).tolist())
    [0, 2, 2]
    """

    def __init__(
        self,
        data: Any,
        columns: Sequence[str] | str | None = None,
        *,
        bounds: Bounds | None = None,
        n_components: int,
        radius: Radius | None = "private",
        n_clusters: int | None = None,
        centre: Centre = "private",
        scale: Scale = "box",
        whiten: bool = False,
        centres: Centres = "fit",
        reach: float = SCORE_REACH,
        shares: dict[str, float] | None = None,
    ) -> None:
        self._source = PrivateSource(data, columns, bounds)
        names = self._source.names
        self._count = as_whole(n_components, "n_components", 1, min(len(names), MAX_DIMENSION))
        self._radius, self._centre = check_radius(radius), check_centre(centre, names)
        self._scale, self._whiten = check_scale(scale, names), bool(whiten)
        if centres not in ("fit", "modes"):
            raise InvalidArgument(f"centres must be 'fit' or 'modes', got {centres!r}")
        self._centres: Centres = centres
        self._n_clusters = checked_number(n_clusters, centres)
        self._reach = as_number(reach, "reach")
        if not 0 < self._reach < 1e6:
            raise InvalidArgument(
                f"reach must be > 0, in standard deviations, got {reach!r}; try {SCORE_REACH:g}"
            )
        self._shares = _check_shares(shares, self._centre, self._radius)

    @property
    def shares(self) -> dict[str, float]:
        """Share of the squared noise budget of each step, in order; they sum to 1."""
        return dict(self._shares)

    def fit(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        label: str | None = None,
        seed: int | None = None,
    ) -> PipelineResults:
        """Release centre, components and clusters.

        Parameters
        ----------
        epsilon, delta : float
            Of all steps together. No default epsilon. On a `PrivateData` the budget's delta when omitted.
        label : str, optional
            Start of the labels in the ledger.
        seed : int, optional
            For tests and papers only: the result is then simulated and NOT private.

        Raises
        ------
        InvalidBudget, BudgetExceeded, InvalidArgument
            Before anything is read or charged.
        """
        check_epsilon(epsilon)
        check_seed(seed)
        check_simulated(seed, self._centre, self._scale)
        sink: list[str] = []
        with self._source.cell.one_at_a_time():
            study, budget = self._source.open(epsilon, delta)
            coordinates = [study.coordinate(c) for c in self._source.names]
            if (
                self._n_clusters is not None
                and study.n_units is not None
                and self._n_clusters > study.n_units
            ):
                raise InvalidArgument(
                    f"n_clusters = {self._n_clusters} is more than the {study.n_units} {study.unit}s"
                )
            _ = study.n_planning  # refuses here when the clustering would, before the first charge
            parts = dict(zip(self._shares, split_by_noise(budget, list(self._shares.values())), strict=True))
            name = label or "pipeline"
            check_whole(study, budget, name, [c.name for c in coordinates])
            study.try_device(self._count)
            warn_delta(study, budget, sink)
            last = parts.pop("clusters")
            pca = release_components(
                study,
                coordinates,
                parts,
                count=self._count,
                radius=self._radius,
                centre=self._centre,
                scale=self._scale,
                whiten=self._whiten,
                label=name,
                seed=seed,
            )
            clustering = _ScoreClustering(
                study,
                pca.score_coordinates(self._reach),
                n_clusters=self._n_clusters,
                centres=self._centres,
                reach=self._reach,
            ).fit(
                last.epsilon,
                last.delta,
                label=f"{name}: clusters",
                seed=None if seed is None else seed + 3 * 2**32,
            )
        _warn_at_limit(clustering, self._reach, sink)
        together = joined([*parts.values(), last])
        return PipelineResults(
            components=pca,
            clustering=clustering,
            budget_shares=dict(self._shares),
            epsilon=together.epsilon,
            delta=together.delta,
            warnings=tuple(sink),
            label=label or "",
        )


class _ScoreClustering(ModalClustering):
    """`ModalClustering` of released scores that are clipped at `reach` standard deviations."""

    def __init__(
        self,
        study: PrivateData,
        coordinates: tuple[Coordinate, ...],
        *,
        n_clusters: int | None,
        centres: Centres,
        reach: float,
    ) -> None:
        self._given, self._reach = coordinates, reach
        super().__init__(study, [c.name for c in coordinates], n_clusters=n_clusters, centres=centres)

    def _check_columns(self, known: Sequence[str]) -> None:
        """Nothing to check: the coordinates are not columns of the table."""

    def _coordinates(self, study: PrivateData) -> tuple[Coordinate, ...]:
        return self._given

    def _plan(
        self, study: PrivateData, budget: Budget, seed: int | None, n: int | None
    ) -> tuple[SurfaceRequest, str]:
        """Return what to release, its bandwidth that of a box of three standard deviations to each side.

        The rule takes a box for six of them; here they are known, and limits that are farther out, so that
        no cluster is cut off, are no reason to smooth more.
        """
        request, rule = super()._plan(study, budget, seed, n)
        if not isinstance(request.bandwidth, list):
            return request, rule
        part = min(1.0, _RULE_REACH / self._reach)
        return replace(request, bandwidth=[part * width for width in request.bandwidth]), rule


def _warn_at_limit(found: ClusteringResults, reach: float, sink: list[str]) -> None:
    """Warn of centres within two standard errors, or their cluster's spread, of a limit of the scores."""
    near = _at_limit(found)
    if not near.any():
        return
    names = [found.columns[j] for j in np.flatnonzero(near.any(axis=0))]
    numbers = [str(k + 1) for k in np.flatnonzero(near.any(axis=1))]
    whose = (
        f"centre of cluster {numbers[0]} lies"
        if len(numbers) == 1
        else f"centres of clusters {', '.join(numbers)} lie"
    )
    warn(
        ClusterLimit,
        f"the {whose} at the limit of the scores ({', '.join(names)}): rows beyond it count as at it, so "
        "centre and share can be off by much more than the standard errors; "
        f"give a larger reach= (it was {reach:g}), or leave out columns with far values",
        sink,
    )


def _at_limit(found: ClusteringResults) -> np.ndarray:
    """Say of each centre and score whether the centre is at a limit, (k, d). Post-processing.

    Not of clusters that may be noise: another warning tells of those, and their errors may be wide.
    """
    clusters, d = found.cluster_set, len(found.columns)
    errors = found.std_errors["total"].to_numpy(dtype=float).reshape(-1, d)
    variances = np.diagonal(clusters.shapes if clusters.own_shapes else clusters.covariance, 0, -2, -1)
    # Errors or spreads that are not known (NaN) say nothing.
    slack = np.fmax(_NEAR * errors, np.sqrt(np.maximum(variances, 0.0)))
    room = np.minimum(clusters.centres - found.facts.lower, found.facts.upper - clusters.centres)
    clear = ~(clusters.significance < CLEAR)
    return np.asarray(clear[:, None] & (room <= np.nan_to_num(slack, nan=0.0)))


def _check_shares(given: dict[str, float] | None, centre: Centre, radius: Radius) -> dict[str, float]:
    steps = {**pca_shares(centre, radius), "clusters": CLUSTER_SHARE}
    if given is not None:
        if set(given) != set(steps):
            raise InvalidArgument(f"shares must name the steps {list(steps)}, got {list(given)}")
        steps = {name: as_number(given[name], f"share of {name}") for name in steps}
        if not all(0 < share < float("inf") for share in steps.values()):
            raise InvalidArgument("every share must be finite and > 0")
    total = sum(steps.values())
    return {name: share / total for name, share in steps.items()}
