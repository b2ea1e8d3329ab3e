"""What every family of results shares: the guarantee, the surface, saving, and what is refused.

No row and no model is inside a result. Whatever it shows is a function of the release alone, so
showing, saving or publishing it costs no further privacy (post-processing: Dwork & Roth 2014,
Prop. 2.1). Results on a surface that was NOT released under privacy say so in their title, and
neither their pickle nor their JSON carries that surface.
"""

from __future__ import annotations

import dataclasses
import gzip
import html
import importlib
import json
import math
import os
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np

from ..budget import PrivacySpent, as_number
from ..errors import InvalidArgument, MissingDependency, SurfaceFileError
from ..numerics.surfaces import FloatArray, Surface
from .coordinates import Coordinate

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

    from .pipeline_results import PipelineResults
    from .preprocessing import ReleasedTransform

T = TypeVar("T")
FORMAT = "pydpmode results"
VERSION = 1

# Where to find the reader of each kind of result and of surface; named, not imported, so that
# opening one family does not load the others.
_FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "density_modes": "pydpmode.results.results:DensityModesResults",
        "modal_clustering": "pydpmode.results.clustering_results:ClusteringResults",
        "modal_regression": "pydpmode.results.regression_results:ModalRegressionResults",
    }
)
# Results that are no fits of one surface have formats of their own.
OTHER_FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "pydpmode scaler": "pydpmode.results.preprocessing:ScalerResults.from_dict",
        "pydpmode principal components": "pydpmode.results.preprocessing:PCAResults.from_dict",
        "pydpmode clustering pipeline": "pydpmode.results.pipeline_results:PipelineResults.from_dict",
    }
)
SURFACE_READERS: dict[str, str | Callable[[Mapping[str, Any]], Any]] = {
    "released": "pydpmode.results.released_surface:ReleasedSurface.from_dict",
    "grouped": "pydpmode.results.grouped_surface:GroupedSurface.from_dict",
}


@dataclass(frozen=True, eq=False)
class SurfaceFacts:
    """What a result must know of its surface even when the surface is not at hand.

    Parameters
    ----------
    lower, upper, bandwidth : (d,) arrays
        In the units of the coordinates.
    order : int
        Order of the kernel.
    n_records : float
        Records that the surface averages over: a released total, or a public number.
    noise_sd : float
        Privacy noise of the density at a point (0 without noise), in density units.
    negative_mass : float or None
        Integral of the negative part of the surface; None when not (yet) computed.
    """

    lower: FloatArray
    upper: FloatArray
    bandwidth: FloatArray
    order: int
    n_records: float
    noise_sd: float
    negative_mass: float | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "bandwidth"):
            object.__setattr__(self, name, frozen_copy(np.asarray(getattr(self, name), dtype=float)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # NumPy forgets the read-only flag in a pickle

    @classmethod
    def from_surface(cls, surface: Surface) -> SurfaceFacts:
        """Read the facts off a surface."""
        return cls(
            lower=surface.lower,
            upper=surface.upper,
            bandwidth=surface.bandwidth,
            order=int(surface.order),
            n_records=float(surface.n_effective),
            noise_sd=math.sqrt(max(float(surface.noise.value), 0.0)),
        )


class _Refused:
    """An attribute that other packages' results have and that cannot exist here."""

    def __init__(self, why: str) -> None:
        self._why = why
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"{type(instance).__name__} has no {self._name}: {self._why}")


_NO_ROWS = (
    "it would be one value per private row, and a result holds no rows. "
    "What was released is in .modes, .std_errors and .surface."
)
_NO_LIKELIHOOD = (
    "a likelihood is a sum over the private rows and was not released. "
    "Compare fits by .diagnostics, or by their standard errors."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Results:
    """What every family of results shares.

    Parameters
    ----------
    coordinates : tuple of Coordinate
        One per coordinate of the surface, in its order.
    facts : SurfaceFacts
        What the summary needs of the surface.
    surface : Surface or None
        The surface; None when the result was loaded from a file without it.
    privacy : PrivacySpent or None
        The guarantee; None when the surface was not released under privacy.
    bandwidth_rule : str
        How the bandwidth was chosen, in words.
    warnings : tuple of str
        Every warning given during the fit.
    label : str
        The user's label of the fit.
    """

    kind: ClassVar[str] = ""

    coordinates: tuple[Coordinate, ...]
    facts: SurfaceFacts
    surface: Surface | None = None
    privacy: PrivacySpent | None = None
    bandwidth_rule: str = ""
    warnings: tuple[str, ...] = ()
    label: str = ""

    resid = _Refused(_NO_ROWS)
    fittedvalues = _Refused(_NO_ROWS)
    llf = _Refused(_NO_LIKELIHOOD)
    aic = _Refused(_NO_LIKELIHOOD)
    bic = _Refused(_NO_LIKELIHOOD)

    def __post_init__(self) -> None:
        object.__setattr__(self, "coordinates", tuple(self.coordinates))
        object.__setattr__(self, "warnings", tuple(self.warnings))
        if len(self.coordinates) != self.facts.lower.size:
            raise InvalidArgument(
                f"coordinates must name each of the surface's {self.facts.lower.size} coordinates, "
                f"got {len(self.coordinates)}"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coordinates, such as ("age", "log(wage)")."""
        return tuple(coordinate.name for coordinate in self.coordinates)

    @property
    def simulated(self) -> bool:
        """Whether a seed made the noise: then nothing here is private."""
        return self.privacy is not None and self.privacy.simulated

    @property
    def negative_mass(self) -> float | None:
        """Integral of the surface's negative part: a plain measure of the noise; None if unknown.

        Computed when asked for, because it takes a second in many dimensions.
        """
        if self.facts.negative_mass is not None:
            return self.facts.negative_mass
        compute = getattr(self.surface, "negative_mass", None)
        return float(compute()) if callable(compute) else None

    def summary(self, level: float = 0.95) -> Summary:
        """Return a statsmodels `Summary`: `as_text`, `as_html`, `as_latex`, `as_csv`."""
        raise NotImplementedError

    def _told(self, what: str, onwards: str) -> str:
        """Return a representation: what was found, what it cost, and how to go on."""
        if self.privacy is None:
            cost = "not private"
        else:
            spent = self.privacy
            cost = f"epsilon={spent.epsilon:g}, delta={spent.delta:g}, {spent.adjacency} one {spent.protects}"
            cost += ", SIMULATED: NOT PRIVATE" if spent.simulated else ""
        return f"<{type(self).__name__}: {what}; {cost}>\nGo on with {onwards}"

    def _repr_html_(self) -> str:
        try:
            return str(self.summary().as_html())
        except MissingDependency:
            return f"<pre>{html.escape(repr(self))}</pre>"

    # -- saving

    def to_dict(self, *, surface: bool = True) -> dict[str, Any]:
        """Return a dictionary that JSON can hold: no NaN, no infinity, every float exact.

        Parameters
        ----------
        surface : bool
            Whether to include the released surface (most of the size). A surface that was not
            released under privacy is a function of the rows and is never included.
        """
        released = self.surface if surface and self.privacy is not None else None
        writer = getattr(released, "to_dict", None)
        shared = {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "coordinates": [coordinate.to_dict() for coordinate in self.coordinates],
            "facts": dataclasses.asdict(self.facts) | {"negative_mass": self.negative_mass},
            "privacy": None if self.privacy is None else self.privacy.to_dict(),
            "bandwidth_rule": self.bandwidth_rule,
            "warnings": list(self.warnings),
            "label": self.label,
            **self._own_dict(),
            "surface": None if writer is None else writer(),
        }
        return cast("dict[str, Any]", _json_ready(shared))

    def _own_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def _own_fields(cls, data: Mapping[str, Any], dimension: int) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a result from `to_dict`.

        Raises
        ------
        SurfaceFileError
            When `data` is not a result of this kind, is of a later version, or is damaged.
        """
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise SurfaceFileError(f"this is not a result of pydpmode (no format {FORMAT!r})")
        if data.get("version") != VERSION:
            raise SurfaceFileError(
                f"this result has format version {data.get('version')!r}; this pydpmode reads version "
                f"{VERSION}. Update pydpmode, or save the result again"
            )
        if data.get("kind") != cls.kind:
            raise SurfaceFileError(
                f"this is a result of kind {data.get('kind')!r}, not {cls.kind!r}; "
                "load_results() reads any kind"
            )
        try:
            return cls(**_shared_fields(data), **cls._own_fields(data, len(data["coordinates"])))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, SurfaceFileError):
                raise
            raise SurfaceFileError(
                f"the result is damaged: {type(error).__name__} while reading it ({error})"
            ) from error

    def save(self, path: str | os.PathLike[str], *, surface: bool = True) -> None:
        """Write the result to one JSON file; `load_results` reads it back, every float exact.

        Parameters
        ----------
        path : str or path
            The file, compressed when its name ends in .gz. It is replaced as a whole, never
            half-written.
        surface : bool
            Whether to include the released surface, so that plots and basins work after loading.
        """
        write_json(path, self.to_dict(surface=surface))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a result that `save` wrote."""
        return load_as(cls, path)

    # -- copies

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self.privacy is None:
            state["surface"] = None  # it holds a function of the rows
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a result's dictionary to one file, compressed for .gz: as a whole, never half-written."""
    text = json.dumps(content, allow_nan=False).encode()
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"cannot write {str(target)!r}: its folder does not exist")
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        # No time stamp in the archive: the same result gives the same bytes.
        partial.write_bytes(gzip.compress(text, mtime=0) if target.suffix == ".gz" else text)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def load_as(wanted: type[T], path: str | os.PathLike[str]) -> T:
    """Read a result that `save` wrote, which must be of the type that is wanted."""
    result: object = load_results(path)
    if not isinstance(result, wanted):
        raise SurfaceFileError(f"{os.fspath(path)} holds {type(result).__name__}, not {wanted.__name__}")
    return result


def load_results(path: str | os.PathLike[str]) -> Results | ReleasedTransform | PipelineResults:
    """Read any result that `save` wrote; the file says which kind it is.

    Besides fits, those of `PrivateScaler`, `PrivatePCA` and `PrivateClusteringPipeline`.

    Raises
    ------
    SurfaceFileError
        When the file is not a result of this package, is of a later version, or is damaged.
    FileNotFoundError
        When there is no such file.
    """
    name = os.fspath(path)
    try:
        content = Path(path).read_bytes()
        data = json.loads(gzip.decompress(content) if name.endswith(".gz") else content)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SurfaceFileError(f"{name} is not a result of pydpmode: it is not valid JSON") from error
    own = OTHER_FORMATS.get(str(data.get("format"))) if isinstance(data, Mapping) else None
    if own is not None:
        return cast("ReleasedTransform | PipelineResults", _named(own)(data))
    if not _is_known(data):
        raise SurfaceFileError(f"{name} is not a result of pydpmode that this version knows")
    return results_from_dict(data)


def results_from_dict(data: Mapping[str, Any]) -> Results:
    """Rebuild a result of any kind from its `to_dict`.

    Raises
    ------
    SurfaceFileError
        When `data` is not a result of this package, is of a later version, or is damaged.
    """
    if not _is_known(data):
        raise SurfaceFileError("this is not a result of pydpmode that this version knows")
    family = cast("type[Results]", _named(_FAMILIES[data["kind"]]))
    return family.from_dict(data)


def _is_known(data: object) -> bool:
    kind = data.get("kind") if isinstance(data, Mapping) and data.get("format") == FORMAT else None
    return isinstance(kind, str) and kind in _FAMILIES


# ------------------------------------------------------------------------------- helpers


def frozen_copy(values: FloatArray) -> Any:
    """Return a read-only copy."""
    copy = np.array(values)
    copy.setflags(write=False)
    return copy


def number_from(value: Any) -> float:
    """Read back a float that `to_dict` wrote: null is NaN, "Infinity" is infinity."""
    return math.nan if value is None else float(value)


def array_from(nested: Any, shape: tuple[int, ...], flags: bool) -> Any:
    """Read back an array of floats (or flags) that `to_dict` wrote as nested lists."""
    flat = nested
    for _ in shape[1:]:
        flat = [item for row in flat for item in row]
    if flags:
        return np.array([bool(item) for item in flat], dtype=bool).reshape(shape)
    return np.array([number_from(item) for item in flat], dtype=float).reshape(shape)


def read_arrays(
    stored: Mapping[str, Any],
    shapes: Mapping[str, str],
    sizes: Mapping[str, int],
    flags: Collection[str] = (),
) -> dict[str, Any]:
    """Read back the arrays of a set: shapes are letters for `sizes`, and `flags` hold True and False."""
    return {
        name: array_from(stored[name], tuple(sizes[letter] for letter in shape), name in flags)
        for name, shape in shapes.items()
    }


def checked_arrays(
    held: object, what: str, shapes: Mapping[str, str], sizes: Mapping[str, int], flags: Collection[str] = ()
) -> dict[str, Any]:
    """Return read-only copies of the arrays of a set, or refuse shapes that do not fit together."""
    arrays = {}
    for name, letters in shapes.items():
        array = np.asarray(getattr(held, name), dtype=bool if name in flags else float)
        shape = tuple(sizes[letter] for letter in letters)
        if array.shape != shape:
            raise InvalidArgument(f"{what}.{name} must have shape {shape}, got {array.shape}")
        arrays[name] = frozen_copy(array)
    return arrays


def normal_quantile(level: object) -> float:
    """Two-sided normal quantile of a coverage."""
    value = as_number(level, "level")
    if not 0 < value < 1:
        raise InvalidArgument(f"level must be strictly between 0 and 1, got {value!r}; give e.g. level=0.95")
    return NormalDist().inv_cdf((1 + value) / 2)


def _named(reader: str | Callable[..., Any]) -> Callable[..., Any]:
    if callable(reader):
        return reader
    module, _, path = reader.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return cast("Callable[..., Any]", found)


def _json_ready(value: Any) -> Any:
    """Turn arrays into lists, NaN into null and infinities into strings; floats stay exact."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): _json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def _shared_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    facts = data["facts"]
    d = len(data["coordinates"])
    negative = facts["negative_mass"]
    stored = data.get("surface")
    surface = None
    if stored is not None:
        if stored.get("type") not in SURFACE_READERS:
            raise SurfaceFileError(f"the result holds a surface of unknown type {stored.get('type')!r}")
        surface = _named(SURFACE_READERS[stored["type"]])(stored)
    privacy = None if data["privacy"] is None else PrivacySpent.from_dict(data["privacy"])
    if surface is not None and privacy != surface.privacy:
        raise SurfaceFileError(
            "the result and the surface in it state different costs: one was edited; copy the file again"
        )
    return {
        "coordinates": tuple(Coordinate.from_dict(item) for item in data["coordinates"]),
        "facts": SurfaceFacts(
            lower=array_from(facts["lower"], (d,), False),
            upper=array_from(facts["upper"], (d,), False),
            bandwidth=array_from(facts["bandwidth"], (d,), False),
            order=int(facts["order"]),
            n_records=number_from(facts["n_records"]),
            noise_sd=number_from(facts["noise_sd"]),
            negative_mass=None if negative is None else number_from(negative),
        ),
        "surface": surface,
        "privacy": privacy,
        "bandwidth_rule": str(data["bandwidth_rule"]),
        "warnings": tuple(str(text) for text in data["warnings"]),
        "label": str(data["label"]),
    }
