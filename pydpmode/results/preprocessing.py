"""Released transforms of columns: location and scale, and principal components.

No row is inside. They map public or new data, and centres, to their space and back; what that gives for the
private rows themselves is a function of those rows and is not covered by the guarantee.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from ..budget import PrivacySpent
from ..errors import InvalidArgument, SurfaceFileError
from ..numerics.surfaces import FloatArray
from .base_results import frozen_copy, load_as, number_from, write_json
from .coordinates import Coordinate, points_of

if TYPE_CHECKING:
    from .summary_tables import ReleaseSummary

VERSION = 1
# Standard deviations of clipped rows at which scores are clipped: rows themselves lie farther apart.
SCORE_REACH = 5.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReleasedTransform:
    """What released transforms share.

    Parameters
    ----------
    coordinates : tuple of Coordinate
        The columns that go in.
    location, scale : (d,) arrays
        Subtracted, and divided by, in the units of the coordinates.
    records : float
        Number of records it rests on: released, or public.
    privacy : tuple of PrivacySpent
        One statement for each release that went into it, in order.
    epsilon, delta : float
        All of these releases together.
    warnings : tuple of str
    label : str
    """

    FORMAT: ClassVar[str] = ""

    coordinates: tuple[Coordinate, ...]
    location: FloatArray
    scale: FloatArray
    records: float
    privacy: tuple[PrivacySpent, ...]
    epsilon: float
    delta: float
    warnings: tuple[str, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, item.name, frozen_copy(value))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that go in."""
        return tuple(c.name for c in self.coordinates)

    @property
    def simulated(self) -> bool:
        """Whether a seed made any of the noise: then nothing here is private."""
        return any(spent.simulated for spent in self.privacy)

    def summary(self) -> ReleaseSummary:
        """Return a statsmodels `Summary`: `as_text`, `as_html`, `as_latex`, `as_csv`."""
        raise NotImplementedError

    def _scaled(self, new: Any) -> tuple[FloatArray, pd.Index[Any]]:
        points, index = points_of(new, self.coordinates)
        return (points - self.location) / self.scale, index

    def _unscaled(self, points: FloatArray, index: Any = None) -> pd.DataFrame:
        values = self.location + points * self.scale
        return pd.DataFrame(
            {c.column: c.back(values[:, j]) for j, c in enumerate(self.coordinates)}, index=index
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        out: dict[str, Any] = {"format": self.FORMAT, "version": VERSION}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in ("coordinates", "privacy"):
                value = [part.to_dict() for part in value]
            elif isinstance(value, np.ndarray):
                value = _without_nan(value)
            elif isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, float) and math.isnan(value):
                value = None
            out[item.name] = value
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`.

        Raises
        ------
        SurfaceFileError
            When `data` is not what `to_dict` of this class writes.
        """
        if not isinstance(data, Mapping) or (data.get("format"), data.get("version")) != (
            cls.FORMAT,
            VERSION,
        ):
            raise SurfaceFileError(f"this is not a {cls.FORMAT} of this version of pydpmode")
        try:
            given = {item.name: data[item.name] for item in fields(cls)}
            given["coordinates"] = tuple(Coordinate.from_dict(part) for part in given["coordinates"])
            given["records"] = number_from(given["records"])
            given["privacy"] = tuple(PrivacySpent.from_dict(part) for part in given["privacy"])
            for name, value in given.items():
                if isinstance(value, list):
                    given[name] = tuple(value) if name == "warnings" else np.array(value, dtype=float)
            return cls(**given)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise SurfaceFileError(
                f"the {cls.FORMAT} is damaged: {type(problem).__name__} while reading it"
            ) from problem

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this to one JSON file, compressed when its name ends in .gz; `load_results` reads it back."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        return load_as(cls, path)

    def __repr__(self) -> str:
        return self.summary().as_text()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ScalerResults(ReleasedTransform):
    """Released location and scale of each column.

    Parameters
    ----------
    quartiles : (d, 3) array
        Released lower quartile, median and upper quartile, in the units of the coordinates.
    location, scale : (d,) arrays
        The median, and the distance of the quartiles over 1.349: the standard deviation of a normal column.
    privacy_errors, sampling_errors : (d, 2) arrays
        Standard errors of location and scale, at the density of a normal column: see Notes.
    floored : (d,) array
        1 where the quartiles were closer than a hundredth of the bounds' width, and the scale is that.

    Notes
    -----
    An exponential mechanism with `epsilon_draw` misses the rank of a quantile by a Laplace variable of
    scale `2/epsilon_draw`; a rank is worth `1/(n f)` of a column with density f there. f is taken from a
    normal column with the released quartiles. Columns of another shape have other errors; with several
    modes, where a quantile falls between two, the error can be many times the one stated.

    `privacy` holds the statement, with the bounds.
    """

    FORMAT: ClassVar[str] = "pydpmode scaler"

    quartiles: FloatArray
    privacy_errors: FloatArray
    sampling_errors: FloatArray
    floored: FloatArray

    @property
    def std_errors(self) -> pd.DataFrame:
        """Standard errors of location and scale: privacy, sampling and both, by column."""
        out = {}
        for k, name in enumerate(("location", "scale")):
            privacy, sampling = self.privacy_errors[:, k], self.sampling_errors[:, k]
            out[f"{name}_privacy"], out[f"{name}_sampling"] = privacy, sampling
            out[f"{name}_total"] = np.hypot(privacy, sampling)
        return pd.DataFrame(out, index=list(self.columns))

    def transform(self, new: Any) -> pd.DataFrame:
        """Return new or public data in scales from the location, one column per coordinate."""
        points, index = self._scaled(new)
        return pd.DataFrame(points, index=index, columns=list(self.columns))

    def inverse_transform(self, points: Any) -> pd.DataFrame:
        """Map points (rows, d) in scales, such as cluster centres, to the original columns."""
        array, index = _as_points(points, self.columns)
        return self._unscaled(array, index)

    def scaled_coordinates(self, reach: float = 4.0) -> tuple[Coordinate, ...]:
        """Return coordinates `(x - location)/scale`, clipped at `reach` scales, for a later release.

        Raises
        ------
        InvalidArgument
            For columns on a log scale or with dates: these have no affine coordinate.
        """
        return affine_coordinates(
            self.coordinates,
            tuple(f"{name} scaled" for name in self.columns),
            np.diag(1 / self.scale),
            -self.location / self.scale,
            np.full(len(self.columns), float(reach)),
            simulated=self.simulated,
        )

    def summary(self) -> ReleaseSummary:
        """Return a statsmodels `Summary`: location, scale and their errors by column."""
        from .preprocessing_summary import scaler_summary

        return scaler_summary(self)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PCAResults(ReleasedTransform):
    """Released principal components of rows clipped to a ball.

    Parameters
    ----------
    components : (k, d) array
        Orthonormal directions in scaled columns.
    explained_variance : (k,) array
        Mean square of the clipped rows along each, without the bias of the noise, in squared scales.
    explained_variance_ratio : (k,) array
        The same as a share of all columns together.
    privacy_errors, sampling_errors : (k,) arrays
        Standard errors of `explained_variance`; sampling as for normal columns.
    angles : (k,) array
        Angle, in degrees, by which the noise turns a component on average.
    clear : (k,) array
        1 where the eigenvalue is above what noise alone gives.
    radius : float
        Rows were clipped to it, in scales from the location.
    location_errors : (d,) array
        Privacy errors of the location; 0 where it is public.
    whiten : bool
        Whether scores are divided by the square roots of `explained_variance`.
    """

    FORMAT: ClassVar[str] = "pydpmode principal components"

    components: FloatArray
    explained_variance: FloatArray
    explained_variance_ratio: FloatArray
    privacy_errors: FloatArray
    sampling_errors: FloatArray
    angles: FloatArray
    clear: FloatArray
    radius: float
    location_errors: FloatArray
    whiten: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores: "pc1", "pc2", ..."""
        return tuple(f"pc{j + 1}" for j in range(len(self.components)))

    @property
    def loadings(self) -> pd.DataFrame:
        """The components as a frame: one row per component, one column per column."""
        return pd.DataFrame(self.components, index=list(self.names), columns=list(self.columns))

    @property
    def std_errors(self) -> pd.DataFrame:
        """Standard errors of the explained variances: privacy, sampling and both, by component."""
        total = np.hypot(self.privacy_errors, self.sampling_errors)
        out = {"privacy": self.privacy_errors, "sampling": self.sampling_errors, "total": total}
        return pd.DataFrame(out, index=list(self.names))

    @property
    def _units(self) -> FloatArray:
        return np.sqrt(self.explained_variance) if self.whiten else np.ones(len(self.components))

    def transform(self, new: Any) -> pd.DataFrame:
        """Return the scores of new or public data, one column per component."""
        points, index = self._scaled(new)
        scores = points @ self.components.T / self._units
        return pd.DataFrame(scores, index=index, columns=list(self.names))

    def inverse_transform(self, scores: Any) -> pd.DataFrame:
        """Map scores (rows, k), such as cluster centres, to the original columns."""
        array, index = _as_points(scores, self.names)
        return self._unscaled((array * self._units) @ self.components, index)

    def score_coordinates(self, reach: float = SCORE_REACH) -> tuple[Coordinate, ...]:
        """Return the scores as coordinates for a later release.

        Parameters
        ----------
        reach : float
            Scores are clipped at this many standard deviations of the CLIPPED rows: of their own component
            when whitened, else of the first.
        """
        rows = self.components / self.scale / self._units[:, None]
        limit = reach * (1.0 if self.whiten else math.sqrt(float(self.explained_variance[0])))
        limits = np.full(len(rows), limit)
        offsets = -rows @ self.location
        return affine_coordinates(
            self.coordinates, self.names, rows, offsets, limits, simulated=self.simulated
        )

    def summary(self) -> ReleaseSummary:
        """Return a statsmodels `Summary`: explained variances, their errors, angles."""
        from .preprocessing_summary import pca_summary

        return pca_summary(self)


def affine_coordinates(
    sources: tuple[Coordinate, ...],
    names: tuple[str, ...],
    rows: FloatArray,
    offsets: FloatArray,
    limits: FloatArray,
    *,
    simulated: bool,
) -> tuple[Coordinate, ...]:
    """Return `offsets + rows @ columns` as coordinates, each clipped at plus and minus its limit.

    `simulated`: whether these numbers come from a release with simulated noise.
    """
    odd = [c.name for c in sources if c.transform != "identity" or c.kind != "number"]
    if odd:
        raise InvalidArgument(
            f"{odd}: only plain number columns have affine coordinates; leave out log= and dates"
        )
    columns = [c.column for c in sources]
    return tuple(
        Coordinate.affine(
            name, columns, row, float(offset), limits=(-float(limit), float(limit)), simulated=simulated
        )
        for name, row, offset, limit in zip(names, rows, offsets, limits, strict=True)
    )


def _as_points(points: Any, names: tuple[str, ...]) -> tuple[FloatArray, Any]:
    array, index = points_of(points, tuple(Coordinate.plain(name) for name in names))
    return array, index


def _without_nan(values: FloatArray) -> Any:
    plain = values.astype(object)
    plain[np.isnan(values)] = None
    return plain.tolist()
