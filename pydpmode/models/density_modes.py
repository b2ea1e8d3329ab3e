"""Modes of the joint density of a few numeric columns, under differential privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..budget import Budget, check_epsilon
from ..errors import (
    InvalidArgument,
    LowSignal,
)
from ..numerics.bandwidth import BandwidthChoice, BandwidthSpec, check_bandwidth
from ..numerics.kernels import check_order
from ..numerics.mode_seeking import find_modes
from ..numerics.scale_choice import choose_reading
from ..numerics.surfaces import Surface
from ..privacy.bounds import Bounds
from ..privacy.grams_options import GramsOptions
from ..privacy.private_data import PrivateData
from ..results.coordinates import Coordinate
from ..results.released_surface import ReleasedSurface
from ..results.released_trace import ReleasedTrace
from ..results.results import DensityModesResults
from .durations import in_seconds
from .grams_fit import (
    LOW_SIGNAL,
    GramsPreview,
    grams_options,
    modes_of_trace,
    one_bandwidth,
    preview_grams,
)
from .preview import Preview, plan_preview
from .surface_model import (
    SurfaceModel,
    check_seed,
    rate_inside,
    refuse_spending,
    warn,
    warn_delta,
    warn_features,
    warn_heaped,
    warn_log_bounds,
    warn_unusable,
    whole,
)

# Read-off error of random features, in privacy noise, above which a fit warns.
_COARSE = 2.0


class DensityModes(SurfaceModel):
    """Modes (local maxima) of the joint density of 1 to 8 numeric columns.

    The default mechanism releases the whole density surface once; modes, their standard errors,
    shares, pictures and synthetic points are post-processing of that one release.

    Parameters
    ----------
    data : DataFrame, array, table or path; PrivateData; or a surface
        A table: its budget is then what `fit` is given. A `PrivateData`: its ledger guards it. A
        `ReleasedSurface` (or any surface): fitting costs nothing more.
    columns : sequence of str, optional
        Columns to use, 1 to 8; all columns with bounds when omitted.
    bounds : mapping of str to (low, high), optional
        PUBLIC bounds per column, on the original scale; only with a table. See `PrivateData`.
    log : str or sequence of str
        Columns to be taken on the natural-log scale; give a lower bound > 0 (for 0
        a thousandth of the upper bound is taken, with a warning).
    bandwidth : "ladder", "reference", "private", "paper", float, sequence or mapping
        Smoothing bandwidth of the release. "ladder" (default): one release for several bandwidths, read
        where it shows the most modes. "private": the same, scaled to quartiles that are released within
        the same epsilon, for bounds that are many times too wide. The others are one bandwidth by public
        facts; see `numerics.bandwidth.choose_bandwidth` and docs/bandwidth.md. For dates a duration
        (`timedelta`, or seconds). A number that was chosen by looking at these rows is not covered by the
        guarantee.
    order : {2, 4}
        Order of the kernel.
    resolution : mapping of str to float, optional
        Public recording step per column (ages in whole years: 1): a floor on the bandwidth.
    n_modes : int, optional
        Number of modes to report; found by significance when omitted.
    false_mode_rate : float
        Chance that any further mode is only noise (0.05). The highest peak is always reported, marked when
        noise explains it.
    n_features : int, optional
        Number of random frequencies when there are 4 or more columns.
    mechanism : {"surface", "grams"}
        "grams": the published DP-GRAMS, made sound, instead of one surface: private starts and noisy
        ascents. Its results have no surface, so no basins, marginals or synthetic points. Rows under
        replacement only. It needs no frequency grid, and is there to be compared with the paper.
    grams : GramsOptions, optional
        Options of `mechanism="grams"`; the defaults use public facts only.

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

    Examples
    --------
    >>> from pydpmode import DensityModes, datasets
    >>> data, truth = datasets.four_gaussians(5000, seed=1)
    >>> model = DensityModes(data, bounds={"x": (-8, 8), "y": (-8, 8)})
    >>> res = model.fit(epsilon=1.0, delta=1e-6, seed=1)   # a seed only to make this example repeatable
    >>> res.n_modes
    4
    """

    def __init__(
        self,
        data: Any,
        columns: Sequence[str] | str | None = None,
        *,
        bounds: Bounds | None = None,
        log: str | Sequence[str] = (),
        bandwidth: BandwidthSpec = "ladder",
        order: int = 2,
        resolution: Mapping[str, float] | None = None,
        n_modes: int | None = None,
        false_mode_rate: float = 0.05,
        n_features: int | None = None,
        mechanism: Literal["surface", "grams"] = "surface",
        grams: GramsOptions | None = None,
    ) -> None:
        self._names = (columns,) if isinstance(columns, str) else None if columns is None else tuple(columns)
        self._log = (log,) if isinstance(log, str) else tuple(log)
        self._bandwidth, self._resolution = check_bandwidth(in_seconds(bandwidth)), in_seconds(resolution)
        if resolution is not None and not isinstance(resolution, Mapping):
            raise InvalidArgument(
                f"resolution must map columns to steps, such as {{'age': 1}}; got {type(resolution).__name__}"
            )
        self._released: ReleasedSurface | ReleasedTrace | None = None
        self._order = check_order(order)
        self._n_modes = whole("n_modes", n_modes)
        self._n_features = whole("n_features", n_features)
        self._false_mode_rate = rate_inside(false_mode_rate, "false_mode_rate", 0.05)
        self._grams = grams_options(mechanism, grams, order, n_features)
        if self._grams is not None:
            self._bandwidth = one_bandwidth(self._bandwidth)
        if self._attach(data, bounds):
            if self._grams is not None:
                raise InvalidArgument("a surface is already released; mechanism='grams' needs the rows")
            self._surface = self._read_surface(data)

    # -- fitting --------------------------------------------------------------------------------

    def fit(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        label: str | None = None,
        seed: int | None = None,
    ) -> DensityModesResults:
        """Release the density surface and find its modes.

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
        DensityModesResults

        Raises
        ------
        InvalidBudget
            When epsilon or delta is missing or out of range.
        BudgetExceeded
            When the budget does not hold it: nothing was read or charged. A table's budget is what the
            first `fit` is given, so a second `fit` is refused; use a `PrivateData` for several.
        """
        sink: list[str] = []
        if self._surface is not None:
            refuse_spending(epsilon, delta, seed, "fitting")
            return self._search(self._surface, "as released", label, sink)
        check_epsilon(epsilon)
        check_seed(seed)
        with self._cell.one_at_a_time():
            return self._fit_private(epsilon, delta, label, seed, sink)

    def _fit_private(
        self, epsilon: float | None, delta: float | None, label: str | None, seed: int | None, sink: list[str]
    ) -> DensityModesResults:
        study, budget = self._open(epsilon, delta)
        self._check_grams(study)
        coordinates = self._coordinates(study)
        request = self._request(study, coordinates, budget.epsilon, seed)
        request.design()  # refuses what cannot be released before anything is charged
        warn_delta(study, budget, sink)
        warn_log_bounds(study, coordinates, sink)
        name = label or f"density modes of {', '.join(c.name for c in coordinates)}"
        if self._grams is not None:
            return self._fit_grams(study, coordinates, request.choice(), budget, name, seed, sink)
        surface = self._release(study, request, budget, name, seed)
        self._released = surface
        warn_features(surface, sink)
        warn_unusable(surface, sink)
        return self._search(surface, request.choice().rule, label, sink)

    def preview(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        n: int | None = None,
        spread: Mapping[str, float] | None = None,
    ) -> Preview | GramsPreview:
        """Tell cost and noise of a release, in the columns' units, without reading a row.

        Parameters
        ----------
        epsilon, delta : float
            As in `fit`.
        n : int, optional
            Number of records to plan for; the public number when omitted.
        spread : mapping of str to float, optional
            Standard deviation of a mode's bump per coordinate (a tenth of the box when omitted).

        Returns
        -------
        Preview
            Its text is a short report; its fields are for programs.
        """
        if self._surface is not None:
            raise InvalidArgument("this surface is already released; there is nothing to plan")
        check_epsilon(epsilon)
        with self._cell.one_at_a_time():
            study, budget = self._open(epsilon, delta)
        self._check_grams(study)
        coordinates = self._coordinates(study)
        count = whole("n", n) or study.n_planning
        request = self._request(study, coordinates, budget.epsilon, 0, n=count)
        if self._grams is not None:
            return preview_grams(study, coordinates, request.choice(), self._grams, budget, self._n_modes)
        return plan_preview(request, study, budget, count, in_seconds(spread or {}))

    def __repr__(self) -> str:
        if self._surface is not None:
            return f"DensityModes(on a surface of {', '.join(self._surface.columns)})"
        names = self._names or (self._study.columns if self._study is not None else "all columns with bounds")
        return f"DensityModes({names}; bandwidth {self._bandwidth!r})"

    @property
    def released(self) -> ReleasedSurface | ReleasedTrace | None:
        """The surface (or trace) that `fit` released, even if the search on it then failed; None before."""
        return self._released

    # -- parts ----------------------------------------------------------------------------------

    def _fit_grams(
        self,
        study: PrivateData,
        coordinates: tuple[Coordinate, ...],
        choice: BandwidthChoice,
        budget: Budget,
        label: str,
        seed: int | None,
        sink: list[str],
    ) -> DensityModesResults:
        trace = study.release_grams(
            self._grams or GramsOptions(),
            coordinates,
            choice.values,
            epsilon=budget.epsilon,
            delta=budget.delta,
            n_modes=self._n_modes,
            label=label,
            seed=seed,
        )
        self._released = trace
        modes = modes_of_trace(trace, self._n_modes, self._false_mode_rate)
        if not modes.significant.any():
            warn(LowSignal, LOW_SIGNAL, sink)
        return DensityModesResults.from_trace(
            modes,
            trace,
            bandwidth_rule=choice.rule,
            warnings=tuple(sink),
            n_modes_requested=self._n_modes,
        )

    def _check_grams(self, study: PrivateData) -> None:
        if self._grams is not None:
            study.check_grams()

    def _search(self, surface: Surface, rule: str, label: str | None, sink: list[str]) -> DensityModesResults:
        reading = choose_reading(surface, n_modes=self._n_modes, false_mode_rate=self._false_mode_rate)
        warn_heaped(reading, sink)
        surface = reading.surface
        modes = find_modes(
            surface, n_modes=self._n_modes, false_mode_rate=self._false_mode_rate, look=reading.look
        )
        if surface.noise.value > 0 and not modes.significant.any():
            warn(LowSignal, LOW_SIGNAL, sink)
        return DensityModesResults.from_modes(
            modes,
            surface,
            coordinates=getattr(surface, "coordinates", None),
            bandwidth_rule=reading.words(rule),
            warnings=tuple(sink),
            label=label,
            n_modes_requested=self._n_modes,
        )
