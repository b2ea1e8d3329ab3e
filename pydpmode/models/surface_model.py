"""What every model of a density surface shares: where the surface comes from, and the checks before it.

The data are a table, a `PrivateData`, or a surface that is already released; a table's budget is opened by
the first release that is charged.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ..budget import Budget, as_number, as_whole, check_delta, check_epsilon
from ..errors import (
    CoarseFeatures,
    HeapedValues,
    InvalidArgument,
    InvalidBudget,
    LowSignal,
    PydpmodeWarning,
    RaisedLowerBound,
    UnknownColumn,
    WeakDelta,
)
from ..numerics.bandwidth import BandwidthSpec, choose_bandwidth
from ..numerics.designs import MAX_DIMENSION, MAX_LATTICE_DIMENSION
from ..numerics.scale_choice import ReadingChoice
from ..numerics.spectral_surfaces import RandomFeatureSurface
from ..numerics.surfaces import Surface
from ..privacy.bounds import Bounds, log_lower_bound
from ..privacy.features import ZERO_WEIGHT
from ..privacy.noise import fresh_seed
from ..privacy.private_data import PrivateData, check_table
from ..privacy.sources import takes_names
from ..privacy.table_options import check_known
from ..results.coordinates import Coordinate
from ..results.grouped_surface import GroupedSurface
from ..results.released_surface import ReleasedSurface
from .study_cell import StudyCell
from .surface_design import SurfaceRequest

# Read-off error of random features, in privacy noise, above which a fit warns.
_COARSE = 2.0


class SurfaceModel:
    """A model that reads one density surface; see `DensityModes` for its parameters."""

    _names: tuple[str, ...] | None
    _log: tuple[str, ...]
    _bandwidth: BandwidthSpec
    _resolution: Mapping[str, float] | None
    _order: int
    _n_features: int | None
    _bounds: Bounds | None
    _cell: StudyCell
    _surface: Surface | None

    def _attach(self, data: Any, bounds: Bounds | None) -> bool:
        """Take the data in; return whether they are a surface. Reads no row."""
        self._cell, self._bounds, self._surface = StudyCell(), bounds, None
        if isinstance(data, PrivateData):
            if bounds is not None:
                raise InvalidArgument("this PrivateData already has its bounds; do not give bounds= again")
            self._cell = StudyCell(study=data)
            self._check_columns(data.columns)
        elif is_surface(data):
            return True
        else:
            self._cell = StudyCell(table=data)
            self._check_columns(check_table(data, bounds, self._names))
        return False

    def _read_surface(self, data: Any) -> Surface:
        if (
            self._bounds is not None
            or self._log
            or self._n_features is not None
            or self._resolution is not None
        ):
            raise InvalidArgument(
                "a surface has its columns, bounds and scales; give only columns, bandwidth or n_modes"
            )
        surface: Any = data if self._names is None else data.marginal(self._names)
        if not isinstance(self._bandwidth, str):
            spec = choose_bandwidth(
                self._bandwidth,
                columns=surface.columns,
                lower=surface.lower,
                upper=surface.upper,
                n=None,
                epsilon=None,
            )
            surface = surface.at_bandwidth(spec.values)
        elif self._bandwidth not in ("ladder", "reference"):
            raise InvalidArgument("a surface is read at its own bandwidth, or at numbers close to it")
        out: Surface = surface
        return out

    def _check_columns(self, known: Sequence[str]) -> None:
        names = self._names if self._names is not None else tuple(known)
        check_known(names, known)
        if len(set(names)) != len(names):
            raise InvalidArgument(f"a column is named twice: {list(names)}")
        if not 1 <= len(names) <= MAX_DIMENSION:
            raise InvalidArgument(
                f"{type(self).__name__} takes 1 to {MAX_DIMENSION} columns, got {len(names)}"
            )
        wrong = [c for c in self._log if c not in names]
        if wrong:
            raise UnknownColumn(f"log names {wrong}, which are not among the columns {list(names)}")

    def _open(self, epsilon: float | None, delta: float | None) -> tuple[PrivateData, Budget]:
        """Return the private table and the (epsilon, delta) of this release."""
        if self._study is not None:
            total = self._study.budget.delta
            spend = check_delta(delta if delta is not None else total)
            if spend > total:
                raise InvalidBudget(
                    f"delta = {spend:g} is above the budget's delta {total:g}; "
                    "leave delta out to use the budget's"
                )
            return self._study, Budget(check_epsilon(epsilon), spend)
        budget = Budget(check_epsilon(epsilon), check_delta(delta))
        table = self._cell.table

        def make() -> PrivateData:
            names = _array_names(table, self._names)
            return PrivateData(table, bounds=self._bounds, budget=budget, columns=names)

        return self._cell.open_table(make), budget

    @property
    def _study(self) -> PrivateData | None:
        return self._cell.study

    def _coordinates(self, study: PrivateData) -> tuple[Coordinate, ...]:
        names = self._names if self._names is not None else study.columns
        return tuple(study.coordinate(c, log=c in self._log) for c in names)

    def _request(
        self,
        study: PrivateData,
        coordinates: Sequence[Coordinate],
        epsilon: float,
        seed: int | None,
        n: int | None = None,
    ) -> SurfaceRequest:
        lower, upper = study.box(coordinates)
        needed = isinstance(self._bandwidth, str) or len(coordinates) > MAX_LATTICE_DIMENSION
        return SurfaceRequest(
            coordinates=coordinates,
            lower=lower,
            upper=upper,
            n=n if n is not None else study.n_planning if needed else None,
            epsilon=epsilon,
            bandwidth=self._bandwidth,
            resolution=self._resolution,
            order=self._order,
            zero_weight=ZERO_WEIGHT[study.adjacency],
            n_features=self._n_features,
            frequency_seed=fresh_seed() if seed is None else seed % 2**32,
        )

    def _release(
        self,
        study: PrivateData,
        request: SurfaceRequest,
        budget: Budget,
        label: str,
        seed: int | None,
        notes: Sequence[str] = (),
    ) -> ReleasedSurface:
        """Charge the ledger and release the surface that is asked for."""
        if request.bandwidth == "private":
            return study.release_scaled_surface(
                request.design,
                request.coordinates,
                epsilon=budget.epsilon,
                delta=budget.delta,
                label=label,
                seed=seed,
                notes=notes,
            )
        return study.release_surface(
            request.design(),
            request.coordinates,
            epsilon=budget.epsilon,
            delta=budget.delta,
            label=label,
            seed=seed,
            notes=notes,
        )


def warn_delta(study: PrivateData, budget: Budget, sink: list[str]) -> None:
    """Warn when delta is not below one over the number of records."""
    n = study.n_units
    if n is not None and budget.delta >= 1 / n:
        warn(
            WeakDelta,
            f"delta = {budget.delta:g} is not below 1/n = {1 / n:.2g}: such a delta allows "
            "publishing a whole record now and then; choose one well below 1/n",
            sink,
        )


def warn(category: type[PydpmodeWarning], text: str, sink: list[str]) -> None:
    """Give a warning and keep its text for the result."""
    sink.append(text)
    warnings.warn(text, category, stacklevel=4)


def warn_log_bounds(study: PrivateData, coordinates: Sequence[Coordinate], sink: list[str]) -> None:
    """Warn where a lower bound of 0 was raised for a logarithm."""
    for c in coordinates:
        low, high = study.bounds[c.column] if c.transform == "log" else (1.0, 1.0)
        if low == 0:
            warn(
                RaisedLowerBound,
                f"{c.column}: a lower bound of 0 has no logarithm; {log_lower_bound(c.column, low, high):g} "
                f"(a thousandth of the upper bound) is used and smaller values count as that one; "
                "give the smallest value that matters instead",
                sink,
            )


def warn_features(surface: ReleasedSurface, sink: list[str]) -> None:
    """Warn when the read-off error of random features is above the privacy noise. Post-processing."""
    inner = surface.surface
    if not isinstance(inner, RandomFeatureSurface) or inner.read_off_ratio <= _COARSE:
        return
    wanted = inner.design.n_pairs * inner.read_off_ratio**2
    warn(
        CoarseFeatures,
        f"with {inner.design.n_pairs} random features the read-off error is {inner.read_off_ratio:.1f} times "
        "the privacy noise (both are in the standard errors); "
        f"about n_features={wanted:.0f} would bring it down to that",
        sink,
    )


def warn_empty_levels(surface: GroupedSurface, sink: list[str]) -> None:
    """Warn of declared levels that hold next to no rows: perhaps misspelt. Post-processing."""
    for level, part in zip(surface.levels, surface.surfaces, strict=True):
        if part.total < 3 * part.total_sd:
            warn(
                LowSignal,
                f"{surface.column}: the level {level!r} holds about {max(part.total, 0):.0f} of the rows "
                f"(released, +- {part.total_sd:.0f}), so nothing is known there; is it spelt as in the data?",
                sink,
            )


def warn_heaped(reading: ReadingChoice, sink: list[str]) -> None:
    """Warn where values stand on a grid that the bandwidth is too narrow for. Post-processing."""
    for name, step in reading.coarse:
        warn(
            HeapedValues,
            f"{name}: values stand on multiples of about {step:.3g}, and at this bandwidth modes may be the "
            f"grid's; give resolution={{{name!r}: {step:.3g}}} or a wider bandwidth",
            sink,
        )


def warn_unusable(surface: ReleasedSurface, sink: list[str]) -> None:
    """Warn when most records count nothing: missing, or outside with outside="ignore". Post-processing."""
    n = surface.privacy.n_units
    if n is None or surface.privacy.max_weight is not None:
        return
    if surface.total + 3 * surface.total_sd < n / 2:
        warn(
            LowSignal,
            f"only about {max(surface.total, 0):.0f} of {n} {surface.privacy.unit}s count (released, +- "
            f"{surface.total_sd:.0f}): the others are missing in a used column (in a CSV file a cell "
            "that is no number is missing; columns of dates must be named in datetimes=, on the command line "
            "--datetimes), or outside the bounds with outside='ignore'",
            sink,
        )


def whole(name: str, value: object) -> int | None:
    """Return a whole number of at least 1, or None."""
    return None if value is None else as_whole(value, name, 1)


def refuse_spending(epsilon: object, delta: object, seed: object, doing: str) -> None:
    """Refuse a budget or a seed for a surface that is released already."""
    if epsilon is not None or delta is not None or seed is not None:
        raise InvalidArgument(
            f"a surface is already released and {doing} it costs nothing; "
            "call fit() without epsilon, delta or seed"
        )


def rate_inside(value: object, name: str, default: float) -> float:
    """Return a rate strictly between 0 and 1."""
    rate = as_number(value, name)
    if not 0 < rate < 1:
        raise InvalidArgument(f"{name} must be in (0, 1), got {value!r}; the default is {default}")
    return rate


def check_seed(seed: object) -> None:
    """Refuse a seed that is not a whole number."""
    if seed is not None:
        as_whole(seed, "seed", 0)


def is_surface(data: object) -> bool:
    """Say whether `data` offer what a surface offers."""
    return all(
        hasattr(data, name) for name in ("derivatives", "density_on_grid", "noise_length", "roughness")
    )


def _array_names(table: Any, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return names for the columns of an unnamed table: `columns` then names them, when they fit."""
    if names is None or isinstance(table, str) or hasattr(table, "columns") or hasattr(table, "schema"):
        return None
    return names if takes_names(table) else None
