"""Modal regression: the typical response at each value of the predictors, under differential privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..budget import Budget, as_number, check_epsilon
from ..errors import InvalidArgument, LowSignal, UnknownColumn
from ..formula import Formula, Term, parse_formula
from ..numerics.bandwidth import BandwidthSpec, check_bandwidth, choose_bandwidth
from ..numerics.kernels import check_order
from ..numerics.linear_modal import MAX_PREDICTORS as MAX_LINEAR_PREDICTORS
from ..numerics.linear_modal import LinearModalFit, fit_linear_modes
from ..numerics.modal_branches import MAX_PREDICTORS, find_branches
from ..numerics.regression_bandwidth import regression_bandwidth
from ..numerics.spectral_surfaces import LatticeSurface
from ..numerics.surfaces import FloatArray, Surface
from ..privacy.bounds import Bounds
from ..privacy.features import ZERO_WEIGHT
from ..privacy.grams_options import GramsOptions
from ..privacy.grouped_release import GROUPED_ZERO_WEIGHT, DeclaredLevels
from ..privacy.noise import fresh_seed
from ..privacy.private_data import PrivateData
from ..privacy.table_options import check_known
from ..results.coordinates import Coordinate
from ..results.grouped_surface import GroupedSurface, Level
from ..results.regression_results import ModalRegressionResults
from ..results.released_surface import ReleasedSurface
from .durations import in_seconds
from .pms_branches import fit_pms_branches
from .regression_preview import RegressionPreview, plan_regression, planning_mu
from .surface_design import SurfaceRequest
from .surface_model import (
    SurfaceModel,
    check_seed,
    is_surface,
    rate_inside,
    refuse_spending,
    warn,
    warn_delta,
    warn_empty_levels,
    warn_features,
    warn_log_bounds,
    warn_unusable,
    whole,
)

LOW_SIGNAL = (
    "no branch can be told from the noise: nothing here is certified; a larger epsilon, more records or "
    "narrower public bounds would help"
)


class ModalRegression(SurfaceModel):
    """Conditional modes of a response given one to three numeric predictors, from one release.

    The joint density of predictors and response is released once; the branches of conditional modes, their
    errors, predictions, prediction regions and the mean curve are post-processing of it. Predictors and
    response are protected alike.

    Parameters
    ----------
    data : DataFrame, array, table or path; PrivateData; or a surface
        As in `DensityModes`. An array's columns are the predictors, then the response. On a surface (a
        `ReleasedSurface`, or a `GroupedSurface` of an earlier fit with `by`) fitting costs nothing more.
    response : str
        The response column.
    predictors : str or sequence of str
        One to three predictor columns.
    bounds : mapping of str to (low, high)
        PUBLIC bounds per column, on the original scale; only with a table.
    log : str or sequence of str
        Columns (or the response) to be taken on the natural-log scale; results show both scales.
    by : str, optional
        A grouping column: one regression per declared level, at the privacy cost of one.
    levels : sequence of str, int, float or bool
        The PUBLIC levels of `by`, known without looking at the rows. Rows of no declared level count nothing.
    bandwidth : "regression", or as in `DensityModes`
        "regression" (default): by public facts alone, see `numerics.regression_bandwidth`. A number that was
        chosen by looking at these rows is not covered by the guarantee.
    resolution : mapping of str to float, optional
        Public recording step per column (ages in whole years: 1): a floor on the bandwidth.
    order : {2, 4}
        Order of the kernel.
    kind : {"branches", "linear"}
        Curves, wherever they bend; or the one line (plane, for two predictors) with the most density
        along it.
    false_branch_rate : float
        Chance that any certified branch is only noise (0.05).
    n_features : int, optional
        Number of random frequencies with three predictors.
    mechanism : {"surface", "grams"}
        "grams": the seed paper's DP-PMS, made sound: ascents at a grid of public predictor values. It
        protects the RESPONSES only, rows under replacement, and its result has no surface (no regions, no
        mean, no shares).
    public_predictors : array, optional
        With "grams": the predictor of each row, PUBLIC, in the rows' order.
    grams : GramsOptions, optional
        Options of "grams".

    Raises
    ------
    MissingBounds, InvalidBounds, UnknownColumn, NonNumericColumn, EmptyData, InvalidArgument
        When table, columns and bounds do not fit together, or the response is a predictor. No row is read.

    Notes
    -----
    Guarantee of `fit`: (epsilon, delta)-DP for replacing one record (or as the `PrivateData` says), given
    public bounds and levels: one Gaussian mechanism, see `privacy.features.exact_sensitivity` and
    `grouped_sensitivity`. With `mechanism="grams"` for replacing one RESPONSE alone, given public predictors.

    Examples
    --------
    >>> from pydpmode import ModalRegression, datasets
    >>> data, truth = datasets.sinusoid(2400, seed=1)
    >>> model = ModalRegression(data, "y", "x", bounds={"x": (0, 1), "y": (-1, 2.5)})
    >>> res = model.fit(epsilon=1.0, delta=1e-5, seed=1)   # a seed only to make this example repeatable
    >>> res.predict({"x": [0.5]})["estimate"].sort_values().round(1).tolist()
    [-0.5, 1.0]
    """

    def __init__(
        self,
        data: Any,
        response: str,
        predictors: Sequence[str] | str = (),
        *,
        bounds: Bounds | None = None,
        log: str | Sequence[str] = (),
        by: str | None = None,
        levels: Sequence[Level] | None = None,
        bandwidth: BandwidthSpec = "regression",
        resolution: Mapping[str, float] | None = None,
        order: int = 2,
        kind: Literal["branches", "linear"] = "branches",
        false_branch_rate: float = 0.05,
        n_features: int | None = None,
        mechanism: Literal["surface", "grams"] = "surface",
        public_predictors: ArrayLike | None = None,
        grams: GramsOptions | None = None,
    ) -> None:
        logs = (log,) if isinstance(log, str) else tuple(log)
        xs = (predictors,) if isinstance(predictors, str) else tuple(predictors)
        _check_named(response, xs)
        unknown = [c for c in logs if c not in (*xs, response)]
        if unknown:
            raise UnknownColumn(f"log names {unknown}, which are not among {[*xs, response]}")
        self._formula = Formula(_named_term(response, logs), tuple(_named_term(c, logs) for c in xs))
        self._set_options(bandwidth, resolution, order, kind, false_branch_rate, n_features)
        self._set_mechanism(mechanism, public_predictors, grams)
        self._set_data(data, bounds, by, levels)

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: Any,
        *,
        bounds: Bounds | None = None,
        by: str | None = None,
        levels: Sequence[Level] | None = None,
        bandwidth: BandwidthSpec = "regression",
        resolution: Mapping[str, float] | None = None,
        order: int = 2,
        kind: Literal["branches", "linear"] = "branches",
        false_branch_rate: float = 0.05,
        n_features: int | None = None,
        mechanism: Literal["surface", "grams"] = "surface",
        public_predictors: ArrayLike | None = None,
        grams: GramsOptions | None = None,
    ) -> Self:
        """Make a model of a formula such as `"log(wage) ~ age"`.

        Terms act row by row (`log`, `sqrt`, arithmetic inside `I(...)`, see `formula.parse_formula`);
        bounds are of the ORIGINAL columns. Names with spaces, dots or signs stand between back quotes.
        Other parameters as in the class.

        Raises
        ------
        InvalidArgument
            On a formula that is not of this form, or that calls what would be learned from the data.
        """
        model = cls.__new__(cls)
        model._formula = parse_formula(formula)
        model._set_options(bandwidth, resolution, order, kind, false_branch_rate, n_features)
        model._set_mechanism(mechanism, public_predictors, grams)
        model._set_data(data, bounds, by, levels)
        return model

    def _set_options(
        self,
        bandwidth: BandwidthSpec,
        resolution: Mapping[str, float] | None,
        order: int,
        kind: str,
        false_branch_rate: float,
        n_features: int | None,
    ) -> None:
        count = len(self._formula.predictors)
        if not 1 <= count <= MAX_PREDICTORS:
            raise InvalidArgument(f"ModalRegression takes 1 to {MAX_PREDICTORS} predictors, got {count}")
        used = [c for term in self._formula.predictors for c in term.columns]
        if len(set(self._formula.predictors)) < count:
            raise InvalidArgument(f"a predictor is named twice: {[t.text for t in self._formula.predictors]}")
        own = [c for c in self._formula.response.columns if c in used]
        if own:
            raise InvalidArgument(f"the response is made of {own}, which is among the predictors as well")
        if kind not in ("branches", "linear"):
            raise InvalidArgument(f"kind must be 'branches' or 'linear', got {kind!r}")
        if kind == "linear" and count > MAX_LINEAR_PREDICTORS:
            raise InvalidArgument(
                f"kind='linear' takes 1 or {MAX_LINEAR_PREDICTORS} predictors, got {count}; "
                "use kind='branches'"
            )
        self._kind = kind
        if resolution is not None and not isinstance(resolution, Mapping):
            raise InvalidArgument(
                f"resolution must map columns to steps, such as {{'age': 1}}; got {type(resolution).__name__}"
            )
        self._resolution = in_seconds(resolution)
        self._bandwidth = bandwidth if _is_rule(bandwidth) else check_bandwidth(in_seconds(bandwidth))
        if self._bandwidth == "private":
            raise InvalidArgument("bandwidth='private' is for DensityModes; use 'regression' or numbers")
        self._order, self._n_features = check_order(order), whole("n_features", n_features)
        self._rate = rate_inside(false_branch_rate, "false_branch_rate", 0.05)

    def _set_mechanism(self, mechanism: str, public: ArrayLike | None, grams: GramsOptions | None) -> None:
        if mechanism not in ("surface", "grams"):
            raise InvalidArgument(f"mechanism must be 'surface' or 'grams', got {mechanism!r}")
        if (mechanism == "grams") != (public is not None):
            raise InvalidArgument(
                "mechanism='grams' and public_predictors= (one PUBLIC value per row, in the rows' order) go "
                "together; give both or none"
            )
        if grams is not None and mechanism != "grams":
            raise InvalidArgument("grams= holds options of mechanism='grams'")
        if mechanism == "grams" and (self._kind != "branches" or len(self._formula.predictors) > 1):
            raise InvalidArgument("mechanism='grams' takes one predictor and kind='branches'")
        self._public, self._grams_options = public, grams

    def _set_data(self, data: Any, bounds: Bounds | None, by: str | None, levels: Any) -> None:
        terms = (*self._formula.predictors, self._formula.response)
        self._names = tuple(dict.fromkeys(c for term in terms for c in term.columns))
        self._log = ()
        self._released: ReleasedSurface | GroupedSurface | None = None
        if (by is None) != (levels is None):
            raise InvalidArgument(
                f"by= and its public levels= go together, got by={by!r} and levels={levels!r}; levels are "
                "never taken from the data"
            )
        self._groups = None if by is None else DeclaredLevels(by, levels)
        if by is not None and by in self._names:
            raise InvalidArgument(f"by={by!r} is in the regression itself; group by another column")
        if by is not None and self._public is not None:
            raise InvalidArgument("mechanism='grams' has no groups; leave by= and levels= out")
        if self._public is not None and (isinstance(data, GroupedSurface) or is_surface(data)):
            raise InvalidArgument("a surface is already released; mechanism='grams' needs the rows")
        if isinstance(data, GroupedSurface):
            data = self._levels_of(data)
        if self._attach(data, bounds):
            self._take_surface(data)

    def _check_columns(self, known: Sequence[str]) -> None:
        check_known(
            self._names or (),
            known,
            "; a column of texts or categories goes to by=, with its declared levels=",
        )

    # -- fitting --------------------------------------------------------------------------------

    def fit(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        label: str | None = None,
        seed: int | None = None,
    ) -> ModalRegressionResults:
        """Release the joint density and find the branches of conditional modes.

        Parameters
        ----------
        epsilon, delta, label, seed
            As in `DensityModes.fit`.

        Returns
        -------
        ModalRegressionResults

        Raises
        ------
        InvalidBudget, BudgetExceeded
            As in `DensityModes.fit`; nothing was read or charged.
        """
        sink: list[str] = []
        if self._given is not None:
            refuse_spending(epsilon, delta, seed, "fitting")
            return self._search(self._given, "as released", label, sink)
        check_epsilon(epsilon)
        check_seed(seed)
        with self._cell.one_at_a_time():
            return self._fit_private(epsilon, delta, label, seed, sink)

    def _fit_private(
        self, epsilon: float | None, delta: float | None, label: str | None, seed: int | None, sink: list[str]
    ) -> ModalRegressionResults:
        study, budget = self._open(epsilon, delta)
        coordinates = self._coordinates(study)
        request, rule = self._ask(study, coordinates, budget, seed)
        warn_delta(study, budget, sink)
        warn_log_bounds(study, [c for c in coordinates if c.transform == "log"], sink)
        name = label or f"modal regression {_words(coordinates)}"
        if self._public is not None:
            return fit_pms_branches(
                study,
                coordinates,
                self._public,
                request.choice().values,
                rule,
                budget,
                options=self._grams_options,
                rate=self._rate,
                label=name,
                seed=seed,
                warnings=sink,
            )
        surface: ReleasedSurface | GroupedSurface
        if self._groups is None:
            surface = self._release(study, request, budget, name, seed)
            warn_features(surface, sink)
            warn_unusable(surface, sink)
        else:
            surface = study.release_grouped_surfaces(
                request.design(),
                coordinates,
                self._groups,
                epsilon=budget.epsilon,
                delta=budget.delta,
                label=f"{name} by {self._groups.column}" if label is None else label,
                seed=seed,
            )
            warn_features(surface.surfaces[0], sink)
            warn_empty_levels(surface, sink)
        self._released = surface
        return self._search(surface, rule, label, sink)

    def preview(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        n: int | None = None,
        spread: Mapping[str, float] | None = None,
    ) -> RegressionPreview:
        """Tell cost and noise of a release and which branches it would find, without reading a row.

        Parameters
        ----------
        epsilon, delta, n
            As in `DensityModes.preview`. With `by` the n records are taken as equally many in each level, and
            noise and errors are those of one level.
        spread : mapping of str to float, optional
            Of the response: standard deviation about its branch (a tenth of the box when omitted). Of a
            predictor: standard deviation of the records, taken as evenly spread (over all of the box).
        """
        if self._given is not None:
            raise InvalidArgument("this surface is already released; there is nothing to plan")
        if self._public is not None:
            raise InvalidArgument("preview() plans surfaces; there is none with mechanism='grams'")
        check_epsilon(epsilon)
        with self._cell.one_at_a_time():
            study, budget = self._open(epsilon, delta)
        coordinates = self._coordinates(study)
        count = whole("n", n) or study.n_planning
        return plan_regression(
            lambda asked, records: self._ask(study, coordinates, asked, 0, n=records)[0],
            study,
            budget,
            count,
            in_seconds(spread or {}),
            kind=self._kind,
            rule=self._ask(study, coordinates, budget, 0, n=count)[1],
            rate=self._rate,
            groups=self._groups,
        )

    @property
    def released(self) -> ReleasedSurface | GroupedSurface | None:
        """The surface that `fit` released, even if the search on it then failed; None before."""
        return self._released

    def __repr__(self) -> str:
        terms = self._formula
        words = f"{terms.response.text} ~ {' + '.join(t.text for t in terms.predictors)}"
        by = "" if self._groups is None else f" by {self._groups.column}"
        return f"ModalRegression({words}{by}; bandwidth {self._bandwidth!r})"

    # -- parts ----------------------------------------------------------------------------------

    def _coordinates(self, study: PrivateData) -> tuple[Coordinate, ...]:
        terms = (*self._formula.predictors, self._formula.response)
        return tuple(_coordinate(study, term) for term in terms)

    def _ask(
        self,
        study: PrivateData,
        coordinates: tuple[Coordinate, ...],
        budget: Budget,
        seed: int | None,
        n: int | None = None,
    ) -> tuple[SurfaceRequest, str]:
        """Return what release is asked for, and the words for its bandwidth."""
        lower, upper = study.box(coordinates)
        bandwidth, rule = self._bandwidth, ""
        count = n if n is not None else study.n_planning if isinstance(bandwidth, str) else None
        if _is_rule(bandwidth) and count is not None:
            bandwidth, rule = self._rule(study, coordinates, lower, upper, count, budget)
        grouped = self._groups is not None and self._groups.count > 1
        zero = ZERO_WEIGHT[study.adjacency]
        request = SurfaceRequest(
            coordinates=coordinates,
            lower=lower,
            upper=upper,
            n=count,
            epsilon=budget.epsilon,
            bandwidth=bandwidth,
            resolution=self._resolution,
            order=self._order,
            zero_weight=min(zero, GROUPED_ZERO_WEIGHT) if grouped else zero,
            n_features=self._n_features,
            frequency_seed=fresh_seed() if seed is None else seed % 2**32,
        )
        return request, rule or request.choice().rule

    def _rule(
        self,
        study: PrivateData,
        coordinates: tuple[Coordinate, ...],
        lower: FloatArray,
        upper: FloatArray,
        n: int,
        budget: Budget,
    ) -> tuple[list[float], str]:
        """Return the bandwidths of the public rule, not below the recording steps, and its name."""
        groups = 1 if self._groups is None else self._groups.count
        mu = planning_mu(budget.epsilon, budget.delta)
        # Adding or removing one record is half of replacing it: the noise is smaller by sqrt 2.
        mu *= 1.0 if study.adjacency == "replace" else np.sqrt(2)
        values = regression_bandwidth(lower, upper, n=max(n / groups, 1.0), mu=float(mu))
        rule = "regression (public)"
        for i, coordinate in enumerate(coordinates):
            step = 0.0
            if self._resolution and coordinate.transform != "log":
                step = as_number(self._resolution.get(coordinate.column, 0.0), "resolution")
            if step > values[i]:
                values[i], rule = step, "regression (public), raised to the resolution"
        return values.tolist(), rule

    @property
    def _given(self) -> Surface | GroupedSurface | None:
        return self._grouped if self._grouped is not None else self._surface

    _grouped: GroupedSurface | None = None

    def _levels_of(self, data: GroupedSurface) -> Any:
        if self._groups is not None:
            raise InvalidArgument("this surface has its groups; leave by= and levels= out")
        self._grouped = data
        return data.surfaces[0]

    def _take_surface(self, data: Any) -> None:
        """Check that a released surface has exactly the terms, or reduce it to them."""
        if self._bounds is not None or self._groups is not None or self._n_features is not None:
            raise InvalidArgument(
                "a surface has its columns, bounds and groups; give only response, predictors and bandwidth"
            )
        if self._grouped is not None:
            parts = tuple(self._read(part) for part in self._grouped.surfaces)
            self._grouped = GroupedSurface(self._grouped.column, self._grouped.levels, parts)
        else:
            self._surface = self._read(data)

    def _read(self, data: Any) -> Any:
        given = getattr(data, "coordinates", None) or [Coordinate.plain(c) for c in data.columns]
        names = [_find(term, given) for term in (*self._formula.predictors, self._formula.response)]
        surface = data if set(names) == set(data.columns) else data.marginal(names)
        self._response_name = names[-1]
        if isinstance(self._bandwidth, str):
            if self._bandwidth not in ("regression", "ladder", "reference"):
                raise InvalidArgument("a surface is read at its own bandwidth, or at numbers close to it")
            return surface
        spec = choose_bandwidth(
            self._bandwidth,
            columns=surface.columns,
            lower=surface.lower,
            upper=surface.upper,
            n=None,
            epsilon=None,
        )
        return surface.at_bandwidth(spec.values)

    def _search(
        self, surface: Surface | GroupedSurface, rule: str, label: str | None, sink: list[str]
    ) -> ModalRegressionResults:
        parts: Sequence[Surface] = surface.surfaces if isinstance(surface, GroupedSurface) else [surface]
        response = len(surface.columns) - 1
        if self._given is not None:
            response = list(surface.columns).index(self._response_name)
        sets = [find_branches(part, response, false_branch_rate=self._rate) for part in parts]
        lines = [_line(part, response) for part in parts] if self._kind == "linear" else []
        if surface.noise.value > 0 and not lines and not any(found.certified.any() for found in sets):
            warn(LowSignal, LOW_SIGNAL, sink)
        return ModalRegressionResults.from_branches(
            sets,
            surface,
            response,
            linear=lines,
            coordinates=getattr(surface, "coordinates", None),
            bandwidth_rule=rule,
            warnings=tuple(sink),
            label=label,
        )


def _line(surface: Any, response: int) -> LinearModalFit:
    """Fit the modal line on a surface that is known by its frequencies."""
    inner = getattr(surface, "surface", surface)
    if not isinstance(inner, LatticeSurface):
        raise InvalidArgument(
            f"kind='linear' needs a released surface of 2 or 3 columns, got {type(inner).__name__}"
        )
    return fit_linear_modes(inner, response)


def _is_rule(bandwidth: object) -> bool:
    return isinstance(bandwidth, str) and bandwidth == "regression"


def _check_named(response: object, predictors: tuple[object, ...]) -> None:
    """Refuse a formula in the response's place, and a regression on nothing."""
    if isinstance(response, str) and "~" in response and not predictors:
        raise InvalidArgument(
            f"{response!r} is a formula; write ModalRegression.from_formula({response!r}, data, bounds=...)"
        )
    if not predictors:
        raise InvalidArgument("predictors is missing: name one to three columns, or use from_formula")


def _named_term(column: str, logs: Sequence[str]) -> Term:
    if not isinstance(column, str):
        raise InvalidArgument(f"response and predictors are column names, got {type(column).__name__}")
    return Term(
        f"log({column})" if column in logs else column, "log" if column in logs else "column", (column,)
    )


def _coordinate(study: PrivateData, term: Term) -> Coordinate:
    if term.kind == "expression":
        return study.expression(term.text)
    return study.coordinate(term.columns[0], log=term.kind == "log")


def _words(coordinates: Sequence[Coordinate]) -> str:
    return f"{coordinates[-1].name} ~ {' + '.join(c.name for c in coordinates[:-1])}"


def _find(term: Term, coordinates: Sequence[Coordinate]) -> str:
    """Return the name of the surface's coordinate that a term means."""
    for c in coordinates:
        if c.name == term.text or (term.kind != "expression" and c.column == term.columns[0]):
            if term.kind == "log" and c.transform != "log":
                continue
            return c.name
    raise UnknownColumn(
        f"the surface has no coordinate {term.text!r}; it has {[c.name for c in coordinates]}"
    )
