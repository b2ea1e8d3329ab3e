"""Fitted modal regressions: branches of conditional modes, read from one released surface."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from ..budget import PrivacySpent
from ..errors import InvalidArgument
from ..numerics.conditional_regions import (
    conditional_density,
    conditional_mean,
    highest_density_regions,
    modal_residual_scale,
    surface_sd,
)
from ..numerics.linear_modal import LinearModalFit
from ..numerics.modal_branches import BranchesAt, BranchSet, branches_at
from ..numerics.surfaces import FloatArray, Surface
from .base_results import Results, SurfaceFacts, normal_quantile, number_from, read_arrays
from .coordinates import Coordinate
from .grouped_surface import GroupedSurface, Level
from .regression_frames import (
    NO_BRANCH,
    OK,
    NewRows,
    predictor_columns,
    read_new_rows,
    response_columns,
    shown_columns,
)
from .regression_linear import (
    coefficient_errors,
    coefficient_index,
    coefficients,
    covariance_table,
    fit_from_dict,
    line_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

_BRANCH_ARRAYS: Mapping[str, str] = {
    "estimate": "k",
    "density": "k",
    "curvature": "k",
    "slope": "kp",
    "variance_privacy": "k",
    "variance_sampling": "k",
    "snr": "k",
    "mass": "k",
    "certified": "k",
    "total": "c",
}
_OWN_NAMES = (
    *("branch", "estimate", "std_error", "privacy", "sampling", "lower", "upper", "share", "snr"),
    *("certified", "row", "interval", "status", "mean"),
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModalRegressionResults(Results):
    """Branches of conditional modes with their errors, shares and the privacy they cost.

    Everything is a function of one released surface of predictors and response: prediction anywhere costs
    nothing more. Estimates are in the coordinate's units (`log(wage)`), and for logarithms on the
    column's own scale beside it. Fields beyond those of `Results`:

    Parameters
    ----------
    response : int
        Position of the response among the coordinates.
    branch_sets : tuple of BranchSet
        One per level of `by` (one without it).
    residual_scales : tuple of float
        Spread around the nearest branch, per level.
    by : str or None
        The grouping column.
    levels : tuple
        Its declared levels.
    linear : tuple of LinearModalFit
        With `kind="linear"`: the modal line (or plane) of each level; then `params`, `std_errors`,
        `conf_int`, `predict`, `summary` and `plot` are of the lines. The branches are there all the same.
    """

    kind: ClassVar[str] = "modal_regression"

    response: int
    branch_sets: tuple[BranchSet, ...]
    residual_scales: tuple[float, ...] = ()
    by: str | None = None
    levels: tuple[Level, ...] = ()
    linear: tuple[LinearModalFit, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.branch_sets) != max(len(self.levels), 1):
            raise InvalidArgument("a modal regression needs one set of branches per level")
        if self.linear and len(self.linear) != len(self.branch_sets):
            raise InvalidArgument("a linear modal regression needs one line per level")

    @classmethod
    def from_branches(
        cls,
        branch_sets: Sequence[BranchSet],
        surface: Surface | GroupedSurface,
        response: int,
        *,
        linear: Sequence[LinearModalFit] = (),
        coordinates: Sequence[Coordinate] | None = None,
        bandwidth_rule: str = "",
        warnings: Sequence[str] = (),
        label: str | None = None,
    ) -> ModalRegressionResults:
        """Build the result of a branch search; the privacy statement is the surface's own.

        Parameters
        ----------
        branch_sets : sequence of BranchSet
            One per surface.
        surface : Surface or GroupedSurface
        response : int
        linear : sequence of LinearModalFit
            One per surface, with `kind="linear"`.
        coordinates : sequence of Coordinate, optional
            Plain numeric columns when omitted.
        bandwidth_rule, warnings, label
            As in `DensityModesResults.from_modes`.
        """
        privacy: PrivacySpent | None = getattr(surface, "privacy", None)
        given = coordinates if coordinates is not None else [Coordinate.plain(c) for c in surface.columns]
        grouped = isinstance(surface, GroupedSurface)
        parts: Sequence[Surface] = surface.surfaces if isinstance(surface, GroupedSurface) else [surface]
        scales = [modal_residual_scale(s, response, b) for s, b in zip(parts, branch_sets, strict=True)]
        held: Any = surface
        return cls(
            coordinates=tuple(given),
            facts=SurfaceFacts.from_surface(held),
            surface=held,
            privacy=privacy,
            bandwidth_rule=bandwidth_rule,
            warnings=tuple(warnings),
            label=label if label is not None else ("" if privacy is None else privacy.label),
            response=response,
            branch_sets=tuple(branch_sets),
            residual_scales=tuple(scales),
            by=held.column if grouped else None,
            levels=held.levels if grouped else (),
            linear=tuple(linear),
        )

    # -- names

    @property
    def response_coordinate(self) -> Coordinate:
        """The coordinate whose conditional modes these are."""
        return self.coordinates[self.response]

    @property
    def predictors(self) -> tuple[Coordinate, ...]:
        """The other coordinates."""
        return tuple(c for i, c in enumerate(self.coordinates) if i != self.response)

    @property
    def formula(self) -> str:
        """The regression in words: `log(wage) ~ age`."""
        return f"{self.response_coordinate.name} ~ {' + '.join(c.name for c in self.predictors)}"

    # -- tables

    @property
    def branches(self) -> pd.DataFrame:
        """Every branch on the public grid of predictor values, one row per point and branch.

        Columns: the level (with `by`), the predictors on their own scales, branch (1 holds the
        largest share), estimate, std_error and its parts privacy and sampling, lower and upper (95%),
        share (of the conditional mass in the mode's basin), snr (density over its standard
        deviation), certified (told from noise at the false-branch rate); for a logarithm the estimate
        and its ends on the column's scale too.
        """
        return self._frame(0.95)

    def _frame(self, level: float) -> pd.DataFrame:
        half = normal_quantile(level)
        parts = []
        for value, found in self._groups():
            error = np.sqrt(found.variance_privacy + found.variance_sampling)
            lower, upper = found.estimate - half * error, found.estimate + half * error
            columns: dict[str, Any] = {} if self.by is None else {self.by: np.full(found.branch.size, value)}
            columns |= predictor_columns(self.predictors, found.points(), (*_OWN_NAMES, *columns))
            columns |= {
                "branch": found.branch + 1,
                "estimate": found.estimate,
                "std_error": error,
                "privacy": np.sqrt(found.variance_privacy),
                "sampling": np.sqrt(found.variance_sampling),
                "lower": lower,
                "upper": upper,
                "share": found.conditional_share(),
                "snr": found.snr,
                "certified": found.certified,
            }
            columns |= response_columns(self.response_coordinate, found.estimate, lower, upper)
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    @property
    def params(self) -> pd.Series[float]:
        """The estimates of `branches`, indexed by (level,) predictors and branch; or the coefficients."""
        if self.linear:
            return coefficients(self.linear, self._terms)
        frame = self.branches
        return frame.set_index(self._keys(frame))["estimate"]

    @property
    def std_errors(self) -> pd.DataFrame:
        """Standard errors by source, for the rows of `params`: privacy, sampling, total.

        They are for the conditional mode of the density smoothed at the bandwidth shown.
        """
        if self.linear:
            return coefficient_errors(self.linear, self._terms)
        frame = self.branches
        keyed = frame.set_index(self._keys(frame))[["privacy", "sampling", "std_error"]]
        return keyed.rename(columns={"std_error": "total"})

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return pointwise intervals for the rows of `params`.

        Parameters
        ----------
        level : float
            Coverage of each, in (0, 1), for the conditional mode of the smoothed density.
        """
        if self.linear:
            half = normal_quantile(level) * self.std_errors["total"]
            return pd.DataFrame({"lower": self.params - half, "upper": self.params + half})
        frame = self._frame(level)
        return frame.set_index(self._keys(frame))[["lower", "upper"]]

    def cov_params(self, level: Level | None = None, *, source: str = "total") -> pd.DataFrame:
        """Return the covariance of the coefficients of a line (`kind="linear"`).

        Parameters
        ----------
        level : level of `by`, optional
            Which line.
        source : {"total", "privacy", "sampling"}
            Which part of the error.

        Raises
        ------
        InvalidArgument
            When there are no lines, or no such level or source.
        """
        if not self.linear:
            raise InvalidArgument("branches have no common covariance; see std_errors, or fit kind='linear'")
        if (self.by is None) != (level is None) or (level is not None and level not in self.levels):
            raise InvalidArgument(f"level must be one of {list(self.levels) or [None]}, got {level!r}")
        return covariance_table(self.linear[0 if level is None else self.levels.index(level)], source)

    @property
    def _terms(self) -> pd.Index[Any]:
        return coefficient_index(self.linear, self.by, self.levels)

    def _keys(self, frame: pd.DataFrame) -> list[str]:
        names = list(frame.columns)
        return names[: names.index("branch") + 1]

    @property
    def mass(self) -> pd.Series[float]:
        """Share of all records in the basins of each branch, by (level,) branch."""
        pieces = {}
        for value, found in self._groups():
            for number, share in enumerate(found.shares().tolist(), start=1):
                pieces[number if self.by is None else (value, number)] = share
        out = pd.Series(pieces, name="mass", dtype=float)
        out.index.names = ["branch"] if self.by is None or not pieces else [self.by, "branch"]
        return out

    @property
    def residual_scale(self) -> float | pd.Series[float]:
        """Spread of the response around the nearest branch (1.4826 median distance), per level with `by`."""
        if self.by is None:
            return self.residual_scales[0]
        return pd.Series(self.residual_scales, index=pd.Index(self.levels, name=self.by), name="scale")

    @property
    def diagnostics(self) -> pd.Series[Any]:
        """How the fit went, one fact per entry; all of it is a function of the release alone."""
        facts: dict[str, Any] = {
            "kind": "linear" if self.linear else "branches",
            "branches": sum(found.count for found in self.branch_sets),
            "certified_branches": sum(int(found.certified_branches().sum()) for found in self.branch_sets),
            "false_branch_rate": self.branch_sets[0].false_branch_rate,
            "grid_points": int(np.prod(self.branch_sets[0].shape)),
            "records": self.facts.n_records,
            "bandwidth_rule": self.bandwidth_rule,
            **{f"bandwidth[{c}]": float(h) for c, h in zip(self.columns, self.facts.bandwidth, strict=True)},
            "kernel_order": self.facts.order,
            "density_noise_sd": self.facts.noise_sd,
            "negative_mass": self.negative_mass,
            "private": self.privacy is not None and not self.simulated,
            "simulated": self.simulated,
            "warnings": len(self.warnings),
        }
        return pd.Series(facts, name="value", dtype=object).rename_axis("fact")

    # -- prediction

    def predict(self, new: Any, *, level: float = 0.95, certified_only: bool = False) -> pd.DataFrame:
        """Return the conditional modes at new predictor values, one row per (row of `new`, branch).

        The answer is a function of the release and of `new` alone.

        Parameters
        ----------
        new : DataFrame or array
            The predictors (and the grouping column), matched by name (a dictionary of columns will do);
            of an array in the order of `predictors`. Other columns are ignored.
        level : float
            Coverage of the pointwise intervals, in (0, 1).
        certified_only : bool
            Leave out what is not told from noise.

        Returns
        -------
        DataFrame
            With the index of `new`, repeated where a row has several branches: row (position in `new`),
            branch, estimate, lower, upper, share, certified, status; for logarithms also the
            column's own scale. A row without any has one line of NaN, and its status says why:
            "missing", "outside the box", "unknown level" (with one warning) or "no branch" (nothing
            stands out there).

        Raises
        ------
        UnknownColumn, DuplicateColumns, NonNumericColumn, InvalidArgument
            When `new` does not have the predictors, in numbers.
        """
        half = normal_quantile(level)
        rows = self._new_rows(new)
        parts = []
        for group, found in enumerate(self.branch_sets):
            chosen = found.certified_only() if certified_only else found
            own = rows.usable(group)
            if self.linear and own.size:
                parts.append(line_rows(self.linear[group], rows.points[own], own, half))
            elif chosen.count and own.size:
                parts.append(_long(branches_at(chosen, rows.points[own]), own, half))
        columns = ("row", "branch", "estimate", "lower", "upper", "share", "certified")
        table = {name: np.concatenate([part[name] for part in parts] or [np.empty(0)]) for name in columns}
        return self._answer(pd.DataFrame(table), rows, ("estimate", "lower", "upper", "share"))

    def predict_region(self, new: Any, *, level: float = 0.95) -> pd.DataFrame:
        """Return prediction regions: where the response of a new record lies, at a level.

        The intervals of highest conditional density that hold `level` of the conditional mass; more
        than one where the density has several modes. They are read from the smoothed surface, so that
        they are a little wide (their coverage is measured in docs/regression.md).

        Parameters
        ----------
        new : DataFrame or array
            As in `predict`.
        level : float
            In (0, 1).

        Returns
        -------
        DataFrame
            With the index of `new`: row, interval (from 1, upwards), lower, upper, status.
        """
        normal_quantile(level)
        rows = self._new_rows(new)
        lines: list[tuple[int, int, float, float]] = []
        low, high = (float(side[self.response]) for side in (self.facts.lower, self.facts.upper))
        for group, surface in enumerate(self._surfaces()):
            own = rows.usable(group)
            if own.size:
                read = conditional_density(surface, self.response, rows.points[own])
                sd = surface_sd(surface)
                for row, found in zip(own.tolist(), highest_density_regions(read, level, sd), strict=True):
                    lines += [(row, k, max(a, low), min(b, high)) for k, (a, b) in enumerate(found, 1)]
        frame = pd.DataFrame(lines, columns=["row", "interval", "lower", "upper"])
        return self._answer(frame, rows, ("lower", "upper"))

    def mean_curve(self, new: Any = None) -> pd.DataFrame:
        """Return the conditional mean of the response from the same release, for contrast.

        Parameters
        ----------
        new : DataFrame or array, optional
            Where; on the grid of `branches` when omitted.

        Returns
        -------
        DataFrame
            The predictors (and level) and `mean`, NaN where nothing is known. For a logarithm the
            column's own scale holds the exponential of the mean of logarithms.
        """
        if new is not None:
            rows = self._new_rows(new)
            mean = np.full(rows.points.shape[0], np.nan)
            for group, surface in enumerate(self._surfaces()):
                own = rows.usable(group)
                if own.size:
                    mean[own] = self._mean(surface, rows.points[own])
            columns = predictor_columns(self.predictors, rows.points, _OWN_NAMES) | {"mean": mean}
            columns |= shown_columns(self.response_coordinate, mean)
            return pd.DataFrame(columns, index=rows.index)
        parts = []
        for (value, found), surface in zip(self._groups(), self._surfaces(), strict=True):
            points = np.stack([m.ravel() for m in np.meshgrid(*found.axes, indexing="ij")], axis=1)
            columns = {} if self.by is None else {self.by: np.full(points.shape[0], value)}
            columns |= predictor_columns(self.predictors, points, (*_OWN_NAMES, *columns))
            mean = self._mean(surface, points)
            columns |= {"mean": mean, **shown_columns(self.response_coordinate, mean)}
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def _mean(self, surface: Surface, points: FloatArray) -> FloatArray:
        return conditional_mean(conditional_density(surface, self.response, points), surface_sd(surface))

    def _new_rows(self, new: Any) -> NewRows:
        others = [i for i in range(len(self.coordinates)) if i != self.response]
        lower, upper = self.facts.lower[others], self.facts.upper[others]
        return read_new_rows(new, self.predictors, lower, upper, self.by, self.levels)

    def _answer(self, table: pd.DataFrame, rows: NewRows, floats: Sequence[str]) -> pd.DataFrame:
        """Return a long table with the index of the new data and a line for each row without an entry."""
        counter = "branch" if "branch" in table.columns else "interval"
        there = table["row"].to_numpy(dtype=np.int64)
        absent = np.setdiff1d(np.arange(len(rows.index)), there)
        row = np.concatenate([there, absent])
        number = np.concatenate([table[counter].to_numpy(dtype=np.int64), np.zeros(absent.size, np.int64)])
        order = np.lexsort((number, row))
        values = {c: _padded(table[c].to_numpy(dtype=float), absent.size)[order] for c in floats}
        numbers = pd.array(number[order], dtype="Int64")
        numbers[number[order] == 0] = pd.NA
        out: dict[str, Any] = {"row": row[order], counter: numbers, **values}
        if "certified" in table.columns:
            flags = table["certified"].to_numpy(dtype=float) > 0
            out["certified"] = np.concatenate([flags, np.zeros(absent.size, dtype=bool)])[order]
        status = rows.status.copy()
        status[absent[status[absent] == OK]] = NO_BRANCH
        out["status"] = status[row[order]]
        out |= response_columns(
            self.response_coordinate, values.get("estimate"), values["lower"], values["upper"]
        )
        return pd.DataFrame(out, index=rows.index[row[order]])

    # -- pictures and words

    def summary(self, level: float = 0.95) -> Summary:
        """Return a statsmodels `Summary`: `as_text`, `as_html`, `as_latex`, `as_csv`.

        Parameters
        ----------
        level : float
            Coverage of the intervals, in (0, 1).
        """
        from .regression_summary import modal_regression_summary

        return modal_regression_summary(self, level)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        predictor: str | None = None,
        at: Mapping[str, float] | None = None,
        level: float = 0.95,
        certified_only: bool = False,
    ) -> Axes:
        """Draw the branches with bands, over the released density and the mean where there is a surface.

        See `pydpmode.results.regression_plots.plot_branches`.
        """
        from .regression_plots import plot_branches

        return plot_branches(
            self, ax=ax, predictor=predictor, at=at, level=level, certified_only=certified_only
        )

    def __repr__(self) -> str:
        certified = sum(int(found.certified_branches().sum()) for found in self.branch_sets)
        total = sum(found.count for found in self.branch_sets)
        what = f"modal regression {self.formula}" + ("" if self.by is None else f" by {self.by}")
        what += f", {total} branch{'' if total == 1 else 'es'} ({certified} certified)"
        return self._told(
            what, ".summary(), .branches, .predict(new), .predict_region(new), .plot(), .save(path)"
        )

    # -- inside

    def _groups(self) -> Iterator[tuple[Level | None, BranchSet]]:
        return zip(self.levels or (None,), self.branch_sets, strict=True)

    def _surfaces(self) -> list[Surface]:
        held: Any = self.surface
        if held is None:
            raise InvalidArgument(
                "this needs the surface, and the result has none: it was saved without it (save with "
                "surface=True), or made with mechanism='grams'"
            )
        return list(held.surfaces) if isinstance(held, GroupedSurface) else [held]

    def drawn(self, group: int) -> tuple[Surface | None, BranchSet]:
        """Return the surface (where there is one) and the branches of one level, by its position."""
        return None if self.surface is None else self._surfaces()[group], self.branch_sets[group]

    def _own_dict(self) -> dict[str, Any]:
        return {
            "response": self.response,
            "by": self.by,
            "levels": list(self.levels),
            "residual_scales": list(self.residual_scales),
            "branch_sets": [dataclasses.asdict(found) for found in self.branch_sets],
            "linear": [dataclasses.asdict(fit) for fit in self.linear],
        }

    @classmethod
    def _own_fields(cls, data: Mapping[str, Any], dimension: int) -> dict[str, Any]:
        return {
            "response": int(data["response"]),
            "by": None if data["by"] is None else str(data["by"]),
            "levels": tuple(data["levels"]),
            "residual_scales": tuple(number_from(v) for v in data["residual_scales"]),
            "branch_sets": tuple(_branch_set(stored, dimension - 1) for stored in data["branch_sets"]),
            "linear": tuple(fit_from_dict(stored) for stored in data["linear"]),
        }


def _branch_set(stored: Mapping[str, Any], p: int) -> BranchSet:
    sizes = {"k": len(stored["branch"]), "p": p, "c": len(stored["total"])}
    arrays = read_arrays(stored, _BRANCH_ARRAYS, sizes, ("certified",))
    return BranchSet(
        axes=tuple(np.array([number_from(v) for v in axis]) for axis in stored["axes"]),
        branch=np.array(stored["branch"], dtype=np.int64),
        point=np.array(stored["point"], dtype=np.int64),
        false_branch_rate=number_from(stored["false_branch_rate"]),
        **arrays,
    )


def _long(at: BranchesAt, rows: Any, half: float) -> dict[str, FloatArray]:
    """Return the branches that are there, row after row."""
    i, b = np.nonzero(np.isfinite(at.estimate))
    estimate = at.estimate[i, b]
    reach = half * np.sqrt(at.variance_privacy[i, b] + at.variance_sampling[i, b])
    return {
        "row": rows[i],
        "branch": b + 1,
        "estimate": estimate,
        "lower": estimate - reach,
        "upper": estimate + reach,
        "share": at.share[i, b],
        "certified": at.certified[i, b],
    }


def _padded(values: FloatArray, count: int) -> FloatArray:
    return np.concatenate([values, np.full(count, np.nan)])
