"""Fitted results: frozen values that hold a released surface and what was read from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd

from ..budget import PrivacySpent
from ..numerics.mode_candidates import nearest
from ..numerics.mode_set import IntArray, ModeSearchDiagnostics, ModeSet
from ..numerics.surfaces import FloatArray, Surface
from .assignment import basin_of, check_method, label_rows
from .base_results import Results, SurfaceFacts, checked_arrays, load_results, number_from, read_arrays
from .coordinates import Coordinate
from .located_results import LocatedResults
from .released_trace import ReleasedTrace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

__all__ = ["Coordinate", "DensityModesResults", "Results", "SurfaceFacts", "load_results"]

Source = Literal["total", "privacy", "sampling", "bias"]

# Shapes of the arrays of a ModeSet, k modes in d dimensions.
_MODE_SHAPES: Mapping[str, str] = MappingProxyType(
    {
        "locations": "kd",
        "densities": "k",
        "covariance_privacy": "kdd",
        "covariance_sampling": "kdd",
        "covariance_bias": "kdd",
        "mass": "k",
        "height_z": "k",
        "persistence": "k",
        "persistence_z": "k",
        "curvature_z": "k",
        "reliable": "k",
        "refined": "k",
        "significant": "k",
        "on_face": "kd",
    }
)
_MODE_FLAGS = ("reliable", "refined", "significant", "on_face")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DensityModesResults(LocatedResults[Source]):
    """Modes of a density surface with their errors, shares and the privacy they cost.

    Everything is in the units of the coordinates (`columns`); `modes_original` maps back to the
    user's columns. Tables are fresh data frames on every access: changing one changes nothing here.
    Fields beyond those of `Results`:

    Parameters
    ----------
    mode_set : ModeSet
        The modes, highest first.
    n_modes_requested : int or None
        The number of modes that the user asked for; None when it was found.
    trace : ReleasedTrace or None
        With `mechanism="grams"`: what the rounds released. There is no surface then.
    """

    kind: ClassVar[str] = "density_modes"
    item: ClassVar[str] = "mode"
    noun: ClassVar[str] = "mode"  # what pictures call what they mark, and what they show
    subject: ClassVar[str] = "modes of the density"

    mode_set: ModeSet
    n_modes_requested: int | None = None
    trace: ReleasedTrace | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mode_set", _checked_modes(self.mode_set, len(self.coordinates)))

    @classmethod
    def from_modes(
        cls,
        mode_set: ModeSet,
        surface: Surface,
        *,
        coordinates: Sequence[Coordinate] | None = None,
        bandwidth_rule: str = "",
        warnings: Sequence[str] = (),
        label: str | None = None,
        n_modes_requested: int | None = None,
    ) -> DensityModesResults:
        """Build the result of a mode search.

        The privacy statement is taken from the surface (`surface.privacy`), never from the caller:
        a result cannot claim another guarantee than its release has.

        Parameters
        ----------
        mode_set : ModeSet
            From the search on `surface`.
        surface : Surface
            The surface that was searched.
        coordinates : sequence of Coordinate, optional
            One per surface coordinate; plain numeric columns when omitted.
        bandwidth_rule : str
            How the bandwidth was chosen, in words.
        warnings : sequence of str
            Every warning given on the way.
        label : str, optional
            The user's label; the ledger's label when omitted.
        n_modes_requested : int, optional
            The number of modes asked for; as the search says when omitted.
        """
        privacy: PrivacySpent | None = getattr(surface, "privacy", None)
        given = coordinates if coordinates is not None else [Coordinate.plain(c) for c in surface.columns]
        if n_modes_requested is None:
            n_modes_requested = mode_set.diagnostics.requested or None
        if label is None:
            label = "" if privacy is None else privacy.label
        return cls(
            coordinates=tuple(given),
            facts=SurfaceFacts.from_surface(surface),
            surface=surface,
            privacy=privacy,
            bandwidth_rule=bandwidth_rule,
            warnings=tuple(warnings),
            label=label,
            mode_set=mode_set,
            n_modes_requested=n_modes_requested,
        )

    @classmethod
    def from_trace(
        cls,
        mode_set: ModeSet,
        trace: ReleasedTrace,
        *,
        bandwidth_rule: str = "",
        warnings: Sequence[str] = (),
        label: str | None = None,
        n_modes_requested: int | None = None,
    ) -> DensityModesResults:
        """Build the result of a DP-GRAMS release: the privacy statement is the trace's.

        Parameters
        ----------
        mode_set : ModeSet
            From the trace.
        trace : ReleasedTrace
        bandwidth_rule, warnings, label, n_modes_requested
            As in `from_modes`.
        """
        facts = SurfaceFacts(
            lower=trace.lower,
            upper=trace.upper,
            bandwidth=trace.bandwidth,
            order=trace.order,
            n_records=trace.trace.records,
            noise_sd=trace.density_sd,
        )
        return cls(
            coordinates=trace.coordinates,
            facts=facts,
            privacy=trace.privacy,
            bandwidth_rule=bandwidth_rule,
            warnings=tuple(warnings),
            label=trace.privacy.label if label is None else label,
            mode_set=mode_set,
            n_modes_requested=n_modes_requested,
            trace=trace,
        )

    # -- what was found

    @property
    def n_modes(self) -> int:
        """Number of modes k."""
        return self.mode_set.count

    @property
    def params(self) -> pd.DataFrame:
        """The modes, k x d, in the units of the coordinates; rows "mode" 1..k, highest first."""
        return self._place_table()

    @property
    def modes(self) -> pd.DataFrame:
        """The modes: same as `params`."""
        return self.params

    @property
    def modes_original(self) -> pd.DataFrame:
        """The modes with 95% intervals, taken back to the original columns; see `back_transformed`."""
        return self.back_transformed()

    def back_transformed(self, level: float = 0.95) -> pd.DataFrame:
        """Return modes and intervals in the original columns: dates as dates, logs undone.

        A back-transformed mode is the mode of the density of, say, log(wage), shown as a wage. It is
        not the mode of the density of wage, which lies elsewhere.

        Parameters
        ----------
        level : float
            Coverage of each interval, in (0, 1).

        Returns
        -------
        DataFrame
            Rows "mode" 1..k; columns (original column, "estimate" | "lower" | "upper").
        """
        lower, upper = self._ends(level)
        names = [c.column for c in self.coordinates] if self._names_are_unique() else list(self.columns)
        parts = {
            (names[j], what): coordinate.back(values[:, j])
            for j, coordinate in enumerate(self.coordinates)
            for what, values in (("estimate", self._places()), ("lower", lower), ("upper", upper))
        }
        frame = pd.DataFrame(dict(enumerate(parts.values())), index=self._numbers())
        frame.columns = pd.MultiIndex.from_tuples(list(parts), names=["column", "value"])
        return frame

    @property
    def std_errors(self) -> pd.DataFrame:
        """Standard errors by source, one row per (mode, column): privacy, sampling, bias, total.

        `privacy` and `sampling` are the spread over repeated releases and samples; `bias` is the size
        of the smoothing bias that is thought to be left in the location. `total` joins all three (root
        of the sum of squares) and makes the intervals. Where `refined` is False, no bias is known and
        the location is that of the smoothed density's mode.
        """
        return self._error_table("privacy", "sampling", "bias", "total")

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals for each coordinate of each mode: location and `total` standard error.

        For refined modes (one to three columns, inside the box) they are for the mode of the density
        itself, smoothing bias included; for others, for the mode of the smoothed density.

        Parameters
        ----------
        level : float
            Coverage of each interval on its own, in (0, 1).

        Returns
        -------
        DataFrame
            One row per (mode, column): lower, upper, and whether the interval is reliable. An
            unreliable one covers less often than it says: see `summary()` for the reason.

        Raises
        ------
        InvalidArgument
            When `level` is not in (0, 1).
        """
        lower, upper = self._ends(level)
        return pd.DataFrame(
            {
                "lower": lower.ravel(),
                "upper": upper.ravel(),
                "reliable": np.repeat(self.mode_set.reliable, len(self.columns)),
            },
            index=self._pairs(),
        )

    def cov_params(self, mode: int = 1, *, source: Source = "total") -> pd.DataFrame:
        """Return the d x d covariance of one mode's location.

        Parameters
        ----------
        mode : int
            Its number, from 1.
        source : {"total", "privacy", "sampling", "bias"}
            Which part of the error.

        Raises
        ------
        InvalidArgument
            When there is no such mode or source.
        """
        return self._covariance_table(mode, source)

    @property
    def mass(self) -> pd.Series[float]:
        """Share of the density in each mode's basin."""
        return pd.Series(self.mode_set.mass.copy(), index=self._numbers(), name="mass")

    @property
    def density(self) -> pd.Series[float]:
        """Height of the surface at each mode, per unit of the coordinates."""
        return pd.Series(self.mode_set.densities.copy(), index=self._numbers(), name="density")

    @property
    def reliable(self) -> pd.Series[bool]:
        """Whether the intervals of each mode can be relied on."""
        return pd.Series(self.mode_set.reliable.copy(), index=self._numbers(), name="reliable")

    @property
    def significant(self) -> pd.Series[bool]:
        """Whether each mode can be told from noise; others are kept when asked for, or highest."""
        return pd.Series(self.mode_set.significant.copy(), index=self._numbers(), name="significant")

    @property
    def refined(self) -> pd.Series[bool]:
        """Whether each mode's errors hold the smoothing bias: its interval is for the density itself."""
        return pd.Series(self.mode_set.refined.copy(), index=self._numbers(), name="refined")

    @property
    def diagnostics(self) -> pd.Series[Any]:
        """How the fit went, one fact per entry; all of it is a function of the release alone."""
        search = dataclasses.asdict(self.mode_set.diagnostics)
        for name in ("grid_shape", "requested"):
            search.pop(name, None)
        facts: dict[str, Any] = {
            "modes": self.n_modes,
            "modes_requested": self.n_modes_requested,
            "unreliable_modes": int(np.sum(~self.mode_set.reliable)),
            "refined_modes": int(np.sum(self.mode_set.refined)),
            "insignificant_modes": int(np.sum(~self.mode_set.significant)),
            "records": self.facts.n_records,
            "bandwidth_rule": self.bandwidth_rule,
            **{f"bandwidth[{c}]": float(h) for c, h in zip(self.columns, self.facts.bandwidth, strict=True)},
            "kernel_order": self.facts.order,
            "density_noise_sd": self.facts.noise_sd,
            "negative_mass": self.negative_mass,
            **search,
            **self._trace_facts(),
            "private": self.privacy is not None and not self.simulated,
            "simulated": self.simulated,
            "warnings": len(self.warnings),
        }
        return pd.Series(facts, name="value", dtype=object).rename_axis("fact")

    def _trace_facts(self) -> dict[str, Any]:
        if self.trace is None:
            return {}
        search = self.mode_set.diagnostics
        kept = search.candidates - search.dropped_by_height - search.dropped_by_persistence
        return {"ascents_kept": kept, **self.trace.facts()}

    # -- what can be done with it

    def predict(self, new: Any, *, method: Literal["nearest", "basin"] = "nearest") -> pd.Series[Any]:
        """Return the number of the mode that each row of `new` belongs to.

        The answer is a function of the release and of `new` only. When `new` holds the private rows
        themselves the labels describe those rows, and are NOT covered by the guarantee.

        Parameters
        ----------
        new : DataFrame or array
            A data frame is matched by name (original columns, or coordinates such as "log(wage)");
            other columns are ignored. An array has one column per coordinate, in the order of
            `columns` and in the units of the original columns; a 1-D array is n points of one column.
            Values outside the box count as at its boundary.
        method : {"nearest", "basin"}
            Nearest mode, distances in bandwidths; or the mode whose basin the point lies in: where
            ascent on the surface leads to.

        Returns
        -------
        Series of Int64
            Mode numbers from 1 with the index of `new`; <NA> where a value is missing, and everywhere
            when there are no modes.

        Raises
        ------
        UnknownColumn, DuplicateColumns, NonNumericColumn, InvalidArgument
            When `new` does not have the columns, in numbers.
        """
        check_method(method)
        assign = self._nearest if method == "nearest" else self._basins
        return label_rows(new, self.coordinates, self.facts, self.n_modes, assign, "mode")

    def _nearest(self, points: FloatArray) -> IntArray:
        return nearest(points, self.mode_set.locations, self.facts.bandwidth)

    def _basins(self, points: FloatArray) -> IntArray:
        return basin_of(self.surface, self.mode_set.locations, points)

    def summary(self, level: float = 0.95) -> Summary:
        """Return a statsmodels `Summary`: `as_text`, `as_html`, `as_latex`, `as_csv`.

        Parameters
        ----------
        level : float
            Coverage of the intervals, in (0, 1).
        """
        from .summary_tables import density_modes_summary

        return density_modes_summary(self, level)

    def plot(
        self, *, ax: Axes | None = None, columns: Sequence[str] | None = None, level: float = 0.95
    ) -> Axes:
        """Draw the surface and its modes; see `pydpmode.results.plots.plot_modes`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw one or two coordinates; a new pyplot figure when omitted.
        columns : sequence of str, optional
            Which coordinates; all when omitted. Three or more give a pairs plot.
        level : float
            Coverage of band, intervals and ellipses.

        Returns
        -------
        matplotlib Axes
            The (first) panel; `.figure` is the figure it is in.
        """
        from .plots import plot_modes

        return plot_modes(self, ax=ax, columns=columns, level=level)

    def __repr__(self) -> str:
        count = f"{self.n_modes} mode{'' if self.n_modes == 1 else 's'}"
        what = f"{count} of the density of ({', '.join(self.columns)})"
        return self._told(what, ".summary(), .modes, .conf_int(), .plot(), .predict(new), .save(path)")

    # -- inside

    def _places(self) -> FloatArray:
        return self.mode_set.locations

    def _names_are_unique(self) -> bool:
        return len({coordinate.column for coordinate in self.coordinates}) == len(self.coordinates)

    def _covariances(self) -> Mapping[str, FloatArray]:
        modes = self.mode_set
        return {
            "privacy": modes.covariance_privacy,
            "sampling": modes.covariance_sampling,
            "bias": modes.covariance_bias,
        }

    def _own_dict(self) -> dict[str, Any]:
        modes = {name: getattr(self.mode_set, name) for name in _MODE_SHAPES}
        modes["diagnostics"] = dataclasses.asdict(self.mode_set.diagnostics)
        trace = None if self.trace is None else self.trace.to_dict()
        return {"modes": modes, "n_modes_requested": self.n_modes_requested, "trace": trace}

    @classmethod
    def _own_fields(cls, data: Mapping[str, Any], dimension: int) -> dict[str, Any]:
        stored = data["modes"]
        sizes = {"k": len(stored["densities"]), "d": dimension}
        arrays = read_arrays(stored, _MODE_SHAPES, sizes, _MODE_FLAGS)
        diagnostics = _search_diagnostics(stored["diagnostics"])
        wanted = data.get("n_modes_requested")
        return {
            "mode_set": ModeSet(**arrays, diagnostics=diagnostics),
            "n_modes_requested": None if wanted is None else int(wanted),
            "trace": None if data.get("trace") is None else ReleasedTrace.from_dict(data["trace"]),
        }


def _checked_modes(modes: ModeSet, dimension: int) -> ModeSet:
    """Return a read-only copy of `modes`, or refuse shapes that do not fit together."""
    sizes = {"k": modes.count, "d": dimension}
    return dataclasses.replace(modes, **checked_arrays(modes, "mode_set", _MODE_SHAPES, sizes, _MODE_FLAGS))


def _search_diagnostics(stored: Mapping[str, Any]) -> ModeSearchDiagnostics:
    readers: dict[str, Callable[[Any], Any]] = {
        "int": int,
        "float": number_from,
        "bool": bool,
        "tuple[int, ...]": lambda items: tuple(int(item) for item in items),
    }
    fields = dataclasses.fields(ModeSearchDiagnostics)
    return ModeSearchDiagnostics(**{f.name: readers[str(f.type)](stored[f.name]) for f in fields})
