"""The one door between R and Python: `dispatch(name, args)` takes and returns plain data.

An error comes back as data, and the R side raises it as a classed condition: what is raised inside a
function that R calls would be lost under rpy2, and lose its class under reticulate. The same door serves
both bridges, so that R code is the same under both.
"""

from __future__ import annotations

import gzip
import inspect
import json
import platform
import sys
import sysconfig
import warnings
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pydpmode
from pydpmode import datasets
from pydpmode.budget import Budget
from pydpmode.errors import InvalidArgument, PydpmodeError
from pydpmode.models.density_modes import DensityModes
from pydpmode.privacy.grams_options import GramsOptions
from pydpmode.privacy.private_data import PrivateData
from pydpmode.results.coordinates import points_of
from pydpmode.results.released_surface import ReleasedSurface
from pydpmode.results.results import DensityModesResults, load_results

from . import clusters, regression, transforms
from . import describe as tables
from .arguments import plain
from .r_words import in_r_words
from .requests import checked, handles, options_of, preview_of, source_of, surface_from
from .wire import RList, decode, encode

Operation = Callable[..., Any]
Reply = dict[str, Any]

# Raised to the other side as data; KeyboardInterrupt becomes R's interrupt.
_IGNORED = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)
_DESIGNS = ("four_gaussians", "five_t", "three_levels", "sinusoid")


def dispatch(name: str, args: Mapping[str, Any]) -> Reply:
    """Do one operation and return plain data, whatever happens.

    Parameters
    ----------
    name : str
        Name of an operation; `operations()` lists them.
    args : mapping
        Its arguments by name, in plain Python data (see `arguments.plain`).

    Returns
    -------
    dict
        `ok`; `value`, or `error` with the exception's `classes` (most special first) and `message`; and
        `warnings`, a list of the same.
    """
    reply: Reply = {"ok": False, "value": None, "error": None}
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for category in _IGNORED:
                warnings.simplefilter("ignore", category)
            if name not in _OPERATIONS:
                raise InvalidArgument(f"there is no operation {name!r}")
            reply |= {"ok": True, "value": _OPERATIONS[name](**checked(args))}
    except BaseException as problem:
        reply["error"] = _as_data(type(problem), str(problem))
    reply["warnings"] = [_as_data(w.category, str(w.message)) for w in caught]
    return reply


def dispatch_bytes(content: bytes | bytearray | memoryview) -> bytearray:
    """Do one operation that R serialized as list(name, args), and return the reply as R unserializes it.

    Never raises an exception: what goes wrong in the codec comes back as data too.
    """
    try:
        request = decode(content)
        name, args = plain(request.items[0]), request.items[1]
        reply = dispatch(str(name), _named(args))
        return bytearray(encode(reply))
    except BaseException as problem:
        error = _as_data(type(problem), str(problem))
        return bytearray(encode({"ok": False, "value": None, "error": error, "warnings": []}))


def library_folder() -> str:
    """Return the folder of this Python's shared library, which R hides from child processes."""
    return str(sysconfig.get_config_var("LIBDIR") or "")


def operations() -> tuple[str, ...]:
    """Return the names of all operations."""
    return tuple(_OPERATIONS)


def _named(args: RList) -> dict[str, Any]:
    return {name: plain(item) for name, item in zip(args.names or (), args.items, strict=True)}


def _as_data(category: type[BaseException], message: str) -> dict[str, Any]:
    stop = {Exception, BaseException, object}
    return {
        "classes": [c.__name__ for c in category.__mro__ if c not in stop],
        "message": in_r_words(message),
    }


# ------------------------------------------------------------------------------- the session


def _versions() -> Reply:
    """Which Python this is, and which versions are at work."""
    return {
        "pydpmode": pydpmode.__version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "package": str(pydpmode.__file__),
        "session": handles.session,
        **{name: metadata.version(name) for name in ("numpy", "scipy", "pandas", "opendp")},
    }


def _echo(value: Any = None) -> Any:
    """Return the argument: a test of the codec."""
    return value


def _budget(epsilon: Any = None, delta: Any = None) -> Reply:
    budget = Budget(epsilon, delta)
    return {"epsilon": budget.epsilon, "delta": budget.delta}


def _budget_split(epsilon: float, delta: float, shares: Any) -> list[Reply]:
    given = shares if isinstance(shares, list) else [shares]
    parts = Budget(epsilon, delta).split(*given)
    return [{"epsilon": part.epsilon, "delta": part.delta} for part in parts]


def _dataset(name: str, n: int | None = None, seed: int | None = None) -> Any:
    if name == "wages":
        return datasets.wages()
    if name not in _DESIGNS:
        raise InvalidArgument(f"there is no data set {name!r}; there are {['wages', *_DESIGNS]}")
    if n is None or seed is None:
        raise InvalidArgument(f"{name} is simulated: give n and seed, such as n = 1000, seed = 1")
    table, _ = getattr(datasets, name)(n, seed)
    return table


def _signatures() -> Reply:
    """Names of the arguments of every Python entry, so that a test can tell what R does not reach."""
    entries: dict[str, Any] = {
        "PrivateData": PrivateData.__init__,
        "DensityModes": DensityModes.__init__,
        "DensityModes.fit": DensityModes.fit,
        "DensityModes.preview": DensityModes.preview,
        "GramsOptions": GramsOptions,
        **regression.SIGNATURES,
        **clusters.SIGNATURES,
        **transforms.SIGNATURES,
    }
    return {
        name: [p for p in inspect.signature(entry).parameters if p != "self"]
        for name, entry in entries.items()
    }


# ------------------------------------------------------------------------------- private tables


def _open(data: Any, bounds: Any, epsilon: Any, delta: Any, options: Mapping[str, Any]) -> Reply:
    study = PrivateData(data, bounds=bounds, budget=Budget(epsilon, delta), **options_of(options))
    return {"id": handles.keep(study), "session": handles.session, **_study_facts(study)}


def _study(id: str, session: str) -> Reply:
    return _study_facts(handles.find(id, session))


def _study_facts(study: PrivateData) -> Reply:
    return {
        "columns": list(study.columns),
        "bounds": {name: list(pair) for name, pair in study.bounds.items()},
        "kinds": {name: study.coordinate(name).kind for name in study.bounds},
        "epsilon": study.budget.epsilon,
        "delta": study.budget.delta,
        "epsilon_left": study.ledger.remaining(),
        "epsilon_spent": study.ledger.spent(),
        "adjacency": study.adjacency,
        "unit": study.unit,
        "n_units": study.n_units,
        "ledger": study.ledger.path,
        "n_releases": len(study.ledger.entries()),
    }


def _close(id: str, session: str) -> None:
    handles.drop(id, session)


def _ledger(id: str, session: str) -> Reply:
    ledger = handles.find(id, session).ledger
    return {"table": ledger.table(), "text": repr(ledger)}


# ------------------------------------------------------------------------------- fits


def _fit_density_modes(data: Any, options: Mapping[str, Any], fit: Mapping[str, Any]) -> Reply:
    return tables.describe(DensityModes(source_of(data), **options_of(options)).fit(**checked(fit)))


def _preview_density_modes(data: Any, options: Mapping[str, Any], preview: Mapping[str, Any]) -> Reply:
    return preview_of(DensityModes(source_of(data), **options_of(options)).preview(**checked(preview)))


# ------------------------------------------------------------------------------- results, again


def _describe(state: str, level: float = 0.95) -> Reply:
    return transforms.describe(transforms.from_state(state), level)


def _read(path: str) -> Reply:
    content = _content_of(path)
    if isinstance(content, dict) and content.get("type") == "released":
        return tables.describe_surface(ReleasedSurface.load(path))
    if transforms.is_transform(content):
        return transforms.describe(transforms.from_state(json.dumps(content)))
    return transforms.describe(load_results(path))


def _content_of(path: str) -> Any:
    raw = Path(path).read_bytes()
    try:
        return json.loads(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
    except (ValueError, OSError, EOFError):
        return None  # load_results says what is wrong with it


def _write(state: str, path: str) -> None:
    content = json.loads(state)
    if content.get("type") == "released":
        ReleasedSurface.from_dict(content).save(path)
    elif transforms.is_transform(content):
        _write_transform(state, path)
    else:
        tables.from_state(state).save(path)


def _write_transform(state: str, path: str) -> None:
    content = state.encode()
    # No time stamp in the archive: the same result gives the same bytes.
    Path(path).write_bytes(gzip.compress(content, mtime=0) if path.endswith(".gz") else content)


def _render(state: str, level: float, format: str) -> str:
    summary = transforms.summary_of(transforms.from_state(state), level)
    writers = {
        "text": summary.as_text,
        "html": summary.as_html,
        "latex": summary.as_latex,
        "csv": summary.as_csv,
    }
    if format not in writers:
        raise InvalidArgument(f"format must be one of {list(writers)}, got {format!r}")
    return str(writers[format]())


def _predict(state: str, new: pd.DataFrame, options: Mapping[str, Any]) -> Any:
    found: Any = transforms.from_state(state)
    answer = found.predict(new, **checked(options))
    return answer.reset_index(drop=True)


def _covariance(state: str, mode: Any, source: str) -> Any:
    result: Any = tables.from_state(state)
    return result.cov_params(mode, source=source).to_numpy()


def _trace(state: str) -> Any:
    result = tables.from_state(state)
    trace = result.trace if isinstance(result, DensityModesResults) else None
    return None if trace is None else trace.frame()


# ------------------------------------------------------------------------------- surfaces


def _surface_of(state: str, columns: Any = None, bandwidth: Any = None, group: Any = None) -> Reply:
    surface = surface_from(state, group)
    surface = surface if columns is None else surface.marginal(columns)
    if bandwidth is not None:
        surface = surface.at_bandwidth(_per_coordinate(bandwidth, surface))
    return tables.describe_surface(surface)


def _per_coordinate(value: Any, surface: ReleasedSurface) -> Any:
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in surface.columns]
        if unknown or len(value) != surface.dimension:
            raise InvalidArgument(f"one number per coordinate is needed: {list(surface.columns)}")
        value = [value[name] for name in surface.columns]
    return np.asarray(value, dtype=np.float64) if isinstance(value, list) else value


def _surface_at(state: str, new: pd.DataFrame) -> Reply:
    surface = surface_from(state)
    points, _ = points_of(new, surface.coordinates)
    density, gradient, hessian = surface.derivatives(points)
    return {"density": density, "gradient": gradient, "hessian": hessian.reshape(len(points), -1)}


def _surface_grid(state: str, points: int, columns: Any = None) -> Reply:
    """Density on a regular grid over the box, for pictures: axes in the coordinates' units."""
    surface = surface_from(state)
    surface = surface if columns is None else surface.marginal(columns)
    axes = [np.linspace(lo, hi, points) for lo, hi in zip(surface.lower, surface.upper, strict=True)]
    if len(axes) > 2:
        raise InvalidArgument("a picture takes one or two coordinates; name them in columns")
    return {"axes": axes, "density": surface.density_on_grid(axes), "noise_sd": surface.noise_sd}


def _surface_sample(state: str, n: int, seed: int | None = None, original: bool = True) -> pd.DataFrame:
    surface = surface_from(state)
    points = surface.sample(n, seed)
    if not original:
        return pd.DataFrame(points, columns=list(surface.columns))
    return pd.DataFrame({c.column: c.back(points[:, j]) for j, c in enumerate(surface.coordinates)})


def _surface_share(state: str, lower: Any, upper: Any) -> float:
    """Share of the density in a box whose ends are in the users' columns' units."""
    surface = surface_from(state)
    ends = []
    for given, missing in ((lower, -np.inf), (upper, np.inf)):
        named = {k: [v] for k, v in given.items()}
        unknown = [name for name in named if name not in {c.column for c in surface.coordinates}]
        if unknown:
            raise InvalidArgument(f"the surface has no columns {unknown}; it has {list(surface.columns)}")
        row = [
            points_of(pd.DataFrame({c.column: named[c.column]}), [c])[0][0, 0]
            if c.column in named
            else missing
            for c in surface.coordinates
        ]
        ends.append(row)
    return surface.integrate(*ends)


_OPERATIONS: dict[str, Operation] = {
    **regression.OPERATIONS,
    **clusters.OPERATIONS,
    **transforms.OPERATIONS,
    "versions": _versions,
    "echo": _echo,
    "signatures": _signatures,
    "budget": _budget,
    "budget_split": _budget_split,
    "dataset": _dataset,
    "open": _open,
    "study": _study,
    "close": _close,
    "ledger": _ledger,
    "fit_density_modes": _fit_density_modes,
    "preview_density_modes": _preview_density_modes,
    "describe": _describe,
    "read": _read,
    "write": _write,
    "render": _render,
    "predict": _predict,
    "covariance": _covariance,
    "trace": _trace,
    "surface_of": _surface_of,
    "surface_at": _surface_at,
    "surface_grid": _surface_grid,
    "surface_sample": _surface_sample,
    "surface_share": _surface_share,
}

__all__ = ["PydpmodeError", "dispatch", "dispatch_bytes", "operations"]
