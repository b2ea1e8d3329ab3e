"""Private preprocessing: location and scale of columns, and principal components."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ..budget import Budget, PrivacySpent, as_number, as_whole
from ..errors import BudgetExceeded, InvalidArgument, LowSignal, MissingBounds
from ..numerics.moments import LEAST_RADIUS, Ball
from ..numerics.principal_components import Components, leading_components
from ..numerics.surfaces import FloatArray
from ..privacy.bounds import Bounds
from ..privacy.preprocessing import plan_moments, plan_quantile_draws, release
from ..privacy.private_data import PrivateData
from ..privacy.shares import joined, split_by_noise, whole_charge
from ..results.coordinates import Coordinate
from ..results.preprocessing import PCAResults, ScalerResults
from .private_source import PrivateSource

_QUARTILES = ((1, 4), (1, 2), (3, 4))
_NORMAL_IQR = 1.3489795003921634
# Density of the standard normal at its quartiles and median.
_NORMAL_DENSITY = np.array([0.31777657, 0.39894228, 0.31777657])
_SCALE_FLOOR = 0.01
# Shares of the squared noise budget of a PCA: the mean, the radius, the second moments.
MEAN_SHARE, RADIUS_SHARE, MOMENT_SHARE = 0.10, 0.05, 0.35

Centre = Literal["private", "box"] | Mapping[str, float] | ScalerResults
Scale = Literal["box"] | float | Mapping[str, float] | ScalerResults
Radius = float | Literal["private"]


class PrivateScaler:
    """Median and spread of each column, from quartiles that are released under differential privacy.

    Parameters
    ----------
    data : table or PrivateData
        A table: its budget is then what `fit` is given. A `PrivateData`: its ledger guards it.
    columns : sequence of str, optional
        All columns with bounds when omitted.
    bounds : mapping of str to (low, high), optional
        PUBLIC bounds per column; only with a table.
    log : str or sequence of str
        Columns on the natural-log scale.

    Raises
    ------
    MissingBounds, InvalidBounds, UnknownColumn, NonNumericColumn, EmptyData
        When table, columns and bounds do not fit together. No row is read.

    Notes
    -----
    Guarantee of `fit`: (epsilon, delta)-DP for replacing one record (or as the `PrivateData` says), given
    public bounds: three exact exponential mechanisms per column (`privacy.quantiles`), which share epsilon.
    One ledger entry. With many columns each draw has little of it: errors grow with the square root of
    their number.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(30, 5, size=(5000, 1))
    >>> res = PrivateScaler(rows, ["age"], bounds=[(0, 100)]).fit(epsilon=1.0, delta=1e-6, seed=1)
    >>> bool(abs(res.location[0] - 30) < 1), bool(abs(res.scale[0] - 5) < 1)
    (True, True)
    """

    def __init__(
        self,
        data: Any,
        columns: Sequence[str] | str | None = None,
        *,
        bounds: Bounds | None = None,
        log: str | Sequence[str] = (),
    ) -> None:
        self._source = PrivateSource(data, columns, bounds)
        self._log = (log,) if isinstance(log, str) else tuple(log)
        wrong = [name for name in self._log if name not in self._source.names]
        if wrong:
            raise InvalidArgument(f"log names {wrong}, which are not among {list(self._source.names)}")

    def fit(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        label: str | None = None,
        seed: int | None = None,
    ) -> ScalerResults:
        """Release the quartiles of every column.

        Parameters
        ----------
        epsilon, delta : float
            No default epsilon. On a `PrivateData` the budget's delta when omitted.
        label : str, optional
            Label in the ledger.
        seed : int, optional
            For tests and papers only: the result is then simulated and NOT private.

        Raises
        ------
        InvalidBudget, BudgetExceeded
            Nothing was read or charged.
        """
        with self._source.cell.one_at_a_time():
            study, budget = self._source.open(epsilon, delta)
            coordinates = [study.coordinate(c, log=c in self._log) for c in self._source.names]
            return release_scale(study, coordinates, budget, label=label, seed=seed)


def release_scale(
    study: PrivateData,
    coordinates: Sequence[Coordinate],
    budget: Budget,
    *,
    label: str | None = None,
    seed: int | None = None,
) -> ScalerResults:
    """Charge the ledger and release the quartiles of some coordinates; see `PrivateScaler`."""
    plan = plan_quantile_draws(
        study, coordinates, epsilon=budget.epsilon, delta=budget.delta, probabilities=_QUARTILES
    )
    name = label or _short_label("scale", coordinates)
    drawn, spent = release(study, plan, coordinates, label=name, seed=seed)
    quartiles = np.sort(drawn, axis=1)
    lower, upper = study.box(coordinates)
    floor = _SCALE_FLOOR * (upper - lower)
    spread = (quartiles[:, 2] - quartiles[:, 0]) / _NORMAL_IQR
    floored = spread <= floor
    scale = np.where(floored, floor, spread)
    sink = _no_spread([c.name for c in coordinates], floored)
    n = _known_number(study)
    privacy, sampling = _quartile_errors(scale, plan.plan.epsilon_draw, n)
    return ScalerResults(
        coordinates=tuple(coordinates),
        location=quartiles[:, 1],
        scale=scale,
        records=n,
        privacy=(spent,),
        epsilon=budget.epsilon,
        delta=budget.delta,
        warnings=sink,
        label=label or "",
        quartiles=quartiles,
        privacy_errors=privacy,
        sampling_errors=sampling,
        floored=floored.astype(float),
    )


def _quartile_errors(scale: FloatArray, epsilon_draw: float, n: float) -> tuple[FloatArray, FloatArray]:
    """Return the errors of location and scale, privacy and sampling, (d, 2) each, for normal columns."""
    # A Laplace variable of scale 2/epsilon in ranks, over n times the density.
    rank = 2 * math.sqrt(2.0) / epsilon_draw
    at_rank = 1 / (n * _NORMAL_DENSITY)
    privacy = rank * np.array([at_rank[1], math.hypot(at_rank[0], at_rank[2]) / _NORMAL_IQR])
    # Order statistics: p (1 - q)/(n f f'), p <= q.
    f = _NORMAL_DENSITY
    median = math.sqrt(0.25 / n) / f[1]
    iqr = math.sqrt((2 * 3 / 16 - 2 / 16) / n) / f[0] / _NORMAL_IQR
    return np.outer(scale, privacy), np.outer(scale, [median, iqr])


def _no_spread(names: Sequence[str], floored: np.ndarray) -> tuple[str, ...]:
    if not floored.any():
        return ()
    shown = [name for name, low in zip(names, floored, strict=True) if low]
    text = (
        f"no spread was seen in {shown[:8]}{' and others' if len(shown) > 8 else ''}: its released quartiles "
        "are closer than a hundredth of the bounds' width, which is taken as the scale; leave such a "
        "column out, or give narrower public bounds"
    )
    warnings.warn(text, LowSignal, stacklevel=4)
    return (text,)


class PrivatePCA:
    """Principal components of rows clipped to a ball, from second moments released once.

    Parameters
    ----------
    data, columns, bounds
        As in `PrivateScaler`; number columns only.
    n_components : int
        1 to the number of columns.
    radius : float or "private"
        Rows farther from the centre are moved to this distance along their ray. In units of `scale`, over
        all columns together; at most the farthest that the bounds allow. PUBLIC, chosen without looking at
        the rows: the noise grows with `radius^2`, and far rows count less when it is
        small. A value somewhat below the typical distance works best. "private" releases the lower quartile
        of the distances for it.
    centre : {"private", "box"}, mapping or ScalerResults
        "private": the mean is released first, within the same epsilon. "box": the middle of the bounds. A
        mapping {column: value} states a PUBLIC centre.
    scale : "box", number, mapping or ScalerResults
        What the columns are divided by: half the width of their bounds ("box"), or PUBLIC numbers.
    whiten : bool
        Whether scores have unit variance (of clipped rows).

    Raises
    ------
    MissingBounds
        Without bounds, or without a radius: neither is taken from the data.
    InvalidArgument
        When a parameter is out of range.

    Notes
    -----
    Guarantee of `fit`: (epsilon, delta)-DP for replacing one record (or as the `PrivateData` says), given
    public bounds: Gaussian mechanisms on the mean and on the second moments, each with a ledger entry
    (`privacy.preprocessing` has the proof). Of the squared noise budget the mean takes .10, a private radius
    .05 and the second moments .35, in proportion. Persons and weights are handled by the same proof.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> rows = random.normal(size=(5000, 1)) * [[3.0, 3.0, 0.0]] + random.normal(size=(5000, 3))
    >>> pca = PrivatePCA(rows, bounds=[(-10, 10)] * 3, n_components=1, radius=1.0, scale=5.0)
    >>> res = pca.fit(epsilon=1.0, delta=1e-6, seed=1)
    >>> np.abs(res.components[0]).round(1).tolist()
    [0.7, 0.7, 0.0]
    """

    def __init__(
        self,
        data: Any,
        columns: Sequence[str] | str | None = None,
        *,
        bounds: Bounds | None = None,
        n_components: int,
        radius: Radius | None = None,
        centre: Centre = "private",
        scale: Scale = "box",
        whiten: bool = True,
    ) -> None:
        self._source = PrivateSource(data, columns, bounds)
        names = self._source.names
        self._count = as_whole(n_components, "n_components", 1, len(names))
        self._radius = check_radius(radius)
        self._centre = check_centre(centre, names)
        self._scale = check_scale(scale, names)
        self._whiten = bool(whiten)

    def fit(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        label: str | None = None,
        seed: int | None = None,
    ) -> PCAResults:
        """Release the centre (if private), the radius (if private) and the second moments.

        Parameters and errors are those of `PrivateScaler.fit`. `epsilon` is for all of it together.
        """
        with self._source.cell.one_at_a_time():
            study, budget = self._source.open(epsilon, delta)
            coordinates = [study.coordinate(c) for c in self._source.names]
            check_simulated(seed, self._centre, self._scale)
            steps = pca_shares(self._centre, self._radius)
            parts = split_by_noise(budget, list(steps.values()))
            name = label or _short_label("components", coordinates)
            check_whole(study, budget, name, [c.name for c in coordinates])
            return release_components(
                study,
                coordinates,
                dict(zip(steps, parts, strict=True)),
                count=self._count,
                radius=self._radius,
                centre=self._centre,
                scale=self._scale,
                whiten=self._whiten,
                label=name,
                seed=seed,
            )


def pca_shares(centre: object, radius: Radius) -> dict[str, float]:
    """Return the releases of a PCA, in order, with their shares of the squared noise budget."""
    steps = {"mean": MEAN_SHARE} if isinstance(centre, str) and centre == "private" else {}
    if radius == "private":
        steps["radius"] = RADIUS_SHARE
    return {**steps, "moments": MOMENT_SHARE}


def check_whole(study: PrivateData, budget: Budget, label: str, columns: Sequence[str]) -> None:
    """Refuse several releases when not all of them fit: nothing has been read or charged."""
    # With the longest addition to the label, so that no later step is refused for its length.
    if not study.ledger.would_fit(whole_charge(budget, f"{label}: clusters", columns)):
        raise BudgetExceeded(
            f"{label!r} asks for epsilon {budget.epsilon:g} at delta {budget.delta:g} in several releases. "
            f"The budget is epsilon {study.budget.epsilon:g} at delta {study.budget.delta:g}, and epsilon "
            f"{study.ledger.remaining():.4g} of it is left. Ask for less. Nothing was read from the data or "
            "charged."
        )


def release_components(
    study: PrivateData,
    coordinates: Sequence[Coordinate],
    parts: Mapping[str, Budget],
    *,
    count: int,
    radius: Radius,
    centre: Centre,
    scale: Scale,
    whiten: bool,
    label: str,
    seed: int | None = None,
) -> PCAResults:
    """Charge and release the steps of a PCA, each with its own budget; see `PrivatePCA`."""
    lower, upper = study.box(coordinates)
    names = tuple(c.name for c in coordinates)
    scales = _scale_values(scale, names, lower, upper)
    middle = np.zeros(len(names)) if isinstance(centre, str) else _named_values(centre, names, "location")
    spent: list[PrivacySpent] = []
    errors = np.zeros(len(names))
    if isinstance(centre, str):
        middle = (lower + upper) / 2
    if not isinstance(radius, str):
        _check_reach(radius, middle, scales, lower, upper, "mean" in parts)
    if "mean" in parts:
        # The smallest ball that holds the whole box: nothing is clipped.
        wide = Ball(middle, scales, Ball(middle, scales, 1.0).reach(lower, upper))
        plan = plan_moments(
            study, coordinates, wide, 1, epsilon=parts["mean"].epsilon, delta=parts["mean"].delta
        )
        moments, one = release(study, plan, coordinates, label=f"{label}: mean", seed=seed)
        middle, errors = moments.mean(wide)
        middle = np.clip(middle, lower, upper)
        spent.append(one)
    if radius == "private":
        farthest = Ball(middle, scales, Ball(middle, scales, 1.0).reach(lower, upper))
        distances = plan_quantile_draws(
            study,
            coordinates,
            epsilon=parts["radius"].epsilon,
            delta=parts["radius"].delta,
            probabilities=((1, 4),),
            ball=farthest,
        )
        drawn, one = release(study, distances, coordinates, label=f"{label}: radius", seed=_next(seed, 1))
        radius = max(float(drawn[0, 0]), 1e-3 * farthest.radius)
        spent.append(one)
    ball = Ball(middle, scales, float(radius))
    cost = parts["moments"]
    square = plan_moments(study, coordinates, ball, 2, epsilon=cost.epsilon, delta=cost.delta)
    moments, one = release(study, square, coordinates, label=f"{label}: moments", seed=_next(seed, 2))
    matrix, noise = moments.second_moments(ball)
    spent.append(one)
    found = leading_components(matrix, noise, count)
    together = joined(list(parts.values()))
    return _as_results(
        found, ball, tuple(coordinates), moments.records, tuple(spent), together, errors, whiten, label
    )


def _check_reach(
    radius: float, middle: FloatArray, scales: FloatArray, lower: FloatArray, upper: FloatArray, moving: bool
) -> None:
    """Refuse a radius beyond the farthest point of the box: it clips nothing and only adds noise."""
    # A centre yet to be released may be anywhere in the box.
    reach = Ball(lower if moving else middle, scales, 1.0).reach(lower, upper)
    if radius > reach * (1 + 1e-9):
        raise InvalidArgument(
            f"radius = {radius:g} is more than {reach:.4g}, the farthest that a row within the bounds can be "
            "from the centre, in units of the scale; noise grows with its square: give a smaller radius, "
            "about a typical distance. Nothing was read from the data or charged"
        )


def _as_results(
    found: Components,
    ball: Ball,
    coordinates: tuple[Coordinate, ...],
    records: float,
    privacy: tuple[PrivacySpent, ...],
    together: Budget,
    errors: FloatArray,
    whiten: bool,
    label: str,
) -> PCAResults:
    total = max(found.total, float(found.variances.sum()))
    notes: tuple[str, ...] = ()
    if not found.clear.all():
        text = (
            f"only {int(found.clear.sum())} of {len(found.clear)} components are above the privacy noise: "
            "use fewer components, fewer columns, a smaller radius or a larger epsilon"
        )
        warnings.warn(text, LowSignal, stacklevel=4)
        notes = (text,)
    return PCAResults(
        coordinates=coordinates,
        location=ball.centre,
        scale=ball.scale,
        records=records,
        privacy=privacy,
        epsilon=together.epsilon,
        delta=together.delta,
        warnings=notes,
        label=label,
        components=found.vectors,
        explained_variance=found.variances,
        explained_variance_ratio=found.variances / total,
        privacy_errors=np.full(len(found.variances), found.noise_sd),
        sampling_errors=found.variances * math.sqrt(2 / records),
        angles=np.degrees(found.angles),
        clear=found.clear.astype(float),
        radius=ball.radius,
        location_errors=errors,
        whiten=whiten,
    )


def check_radius(radius: object) -> Radius:
    """Return a public radius or "private"; without one, refuse."""
    if radius is None:
        raise MissingBounds(
            "radius is missing: give a PUBLIC distance from the centre, in scales, beyond which rows are "
            "clipped, or radius='private' to release a quartile of the distances for it; it is never taken "
            "from the data"
        )
    if isinstance(radius, str):
        if radius != "private":
            raise InvalidArgument(f"radius must be a number > 0 or 'private', got {radius!r}")
        return "private"
    number = as_number(radius, "radius")
    if not LEAST_RADIUS <= number < math.inf:
        raise InvalidArgument(f"radius must be finite and at least {LEAST_RADIUS}, got {number!r}")
    return number


def check_simulated(seed: int | None, *given: object) -> None:
    """Refuse a centre or scale whose noise came from a seed in a release that is to be private."""
    if seed is None and any(isinstance(one, ScalerResults) and one.simulated for one in given):
        raise InvalidArgument(
            "the scaler given as centre or scale was fitted with seed=: it is simulated, NOT private, and so "
            "is what rests on it; fit the scaler without seed, or give seed= here as well"
        )


def check_centre(centre: Centre, names: Sequence[str]) -> Centre:
    """Check a centre against the columns."""
    if isinstance(centre, str):
        if centre not in ("private", "box"):
            raise InvalidArgument(f"centre must be 'private', 'box' or one number per column, got {centre!r}")
    else:
        _named_values(centre, names, "location")
    return centre


def check_scale(scale: Scale, names: Sequence[str]) -> Scale:
    """Check a scale against the columns."""
    if isinstance(scale, str):
        if scale != "box":
            raise InvalidArgument(f"scale must be 'box', a number or one per column, got {scale!r}")
    elif isinstance(scale, Mapping | ScalerResults):
        if not (_named_values(scale, names, "scale") > 0).all():
            raise InvalidArgument("scales must be > 0")
    elif not 0 < as_number(scale, "scale") < math.inf:
        raise InvalidArgument(f"scale must be finite and > 0, got {scale!r}")
    return scale


def _named_values(
    given: Mapping[str, float] | ScalerResults, names: Sequence[str], what: Literal["location", "scale"]
) -> FloatArray:
    """Return one number per column, by name."""
    if isinstance(given, ScalerResults):
        values: FloatArray = getattr(given, what)
        given = {name: float(value) for name, value in zip(given.columns, values, strict=True)}
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"a {what} must map columns to numbers, got {type(given).__name__}")
    missing = [name for name in names if name not in given]
    if missing:
        raise InvalidArgument(f"the {what} has no number for {missing}; give one for each of {list(names)}")
    out = np.array([as_number(given[name], f"{what} of {name}") for name in names])
    if not np.isfinite(out).all():
        raise InvalidArgument(f"every {what} must be finite")
    return out


def _scale_values(scale: Scale, names: Sequence[str], lower: FloatArray, upper: FloatArray) -> FloatArray:
    if isinstance(scale, str):
        return np.asarray((upper - lower) / 2)
    if isinstance(scale, Mapping | ScalerResults):
        return _named_values(scale, names, "scale")
    return np.full(len(names), float(scale))


def _known_number(study: PrivateData) -> float:
    """Return the public number of units to plan with, NaN without one."""
    try:
        return float(study.n_planning)
    except InvalidArgument:
        return math.nan


def _next(seed: int | None, step: int) -> int | None:
    return None if seed is None else int(seed) + step * 2**32


def _short_label(what: str, coordinates: Sequence[Coordinate]) -> str:
    names = ", ".join(c.name for c in coordinates[:4])
    more = f" and {len(coordinates) - 4} more" if len(coordinates) > 4 else ""
    return f"{what} of {names}{more}"[:180]
