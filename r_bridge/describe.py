"""Results and surfaces as plain tables and values: what an R object of them holds.

The whole result travels as well, as the JSON text of `to_dict` (`state`): every float exact, and no Python
pointer kept. Whatever is asked of the R object later sends that text back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from pydpmode.budget import PrivacySpent
from pydpmode.results.base_results import Results, results_from_dict
from pydpmode.results.coordinates import Coordinate
from pydpmode.results.released_surface import ReleasedSurface
from pydpmode.results.results import DensityModesResults

from .family_tables import cluster_tables, regression_tables
from .r_words import in_r_words


def to_state(value: Results | ReleasedSurface) -> str:
    """Return a result or a surface as JSON text, every float exact."""
    return json.dumps(value.to_dict(), allow_nan=False)


def from_state(state: str) -> Results:
    """Rebuild a result from `to_state`.

    Raises
    ------
    SurfaceFileError
        When the text is not a result of this package, or of a later version.
    """
    return results_from_dict(json.loads(state))


def describe(result: Results, level: float = 0.95) -> dict[str, Any]:
    """Return a result as plain data: its tables, its facts, its printed summary and its state.

    Parameters
    ----------
    result : Results
        Of any family.
    level : float
        Coverage of the intervals in the tables and in the summary.
    """
    return {
        "kind": result.kind,
        "level": level,
        **_TABLES.get(result.kind, _other_tables)(result, level),
        "diagnostics": values(getattr(result, "diagnostics", {})),
        "privacy": privacy_of(result.privacy),
        "coordinates": coordinate_table(result.coordinates),
        "lower": result.facts.lower,
        "upper": result.facts.upper,
        "bandwidth": result.facts.bandwidth,
        "n_records": result.facts.n_records,
        "noise_sd": result.facts.noise_sd,
        "has_surface": result.surface is not None,
        "warnings": [in_r_words(text) for text in result.warnings],
        "label": result.label,
        "simulated": result.simulated,
        "summary": result.summary(level).as_text(),
        "state": to_state(result),
    }


def privacy_of(privacy: PrivacySpent | None) -> dict[str, Any] | None:
    """Return the statement of privacy as plain data, its sentence included."""
    return None if privacy is None else {**privacy.to_dict(), "statement": privacy.statement()}


def coordinate_table(coordinates: tuple[Coordinate, ...]) -> pd.DataFrame:
    """Return one row per coordinate: name, column, transform, kind."""
    return pd.DataFrame([c.to_dict() for c in coordinates], columns=["name", "column", "transform", "kind"])


def values(series: Mapping[str, Any] | pd.Series[Any]) -> dict[str, Any]:
    """Return named facts as plain values; None becomes NA."""
    return {str(name): np.nan if value is None else value for name, value in series.items()}


# ------------------------------------------------------------------------------- by family


def _density_modes(result: DensityModesResults, level: float) -> dict[str, Any]:
    interval = result.conf_int(level)
    errors = result.std_errors
    d = len(result.columns)
    by_mode = {
        "share": result.mass,
        "density": result.density,
        "height_z": pd.Series(result.mode_set.height_z),
        "significant": result.significant,
        "refined": result.refined,
    }
    table = pd.DataFrame(
        {
            "mode": np.repeat(np.arange(1, result.n_modes + 1, dtype=np.int32), d),
            "term": list(result.columns) * result.n_modes,
            "estimate": result.params.to_numpy().ravel(),
            "std_error": errors["total"].to_numpy(),
            "se_privacy": errors["privacy"].to_numpy(),
            "se_sampling": errors["sampling"].to_numpy(),
            "se_bias": errors["bias"].to_numpy(),
            "lower": interval["lower"].to_numpy(),
            "upper": interval["upper"].to_numpy(),
            "reliable": interval["reliable"].to_numpy(),
            **{name: np.repeat(np.asarray(column), d) for name, column in by_mode.items()},
        }
    )
    table["term"] = table["term"].astype(object)
    return {
        "estimates": table,
        "original": _original(result, level),
        "covariance": {str(k): result.cov_params(k).to_numpy() for k in range(1, result.n_modes + 1)},
        "n_modes": result.n_modes,
    }


def _original(result: DensityModesResults, level: float) -> pd.DataFrame:
    """Modes and intervals in the user's columns, one row per mode: wage, wage.lower, wage.upper, ..."""
    wide: Any = result.back_transformed(level)
    names = {"estimate": "", "lower": ".lower", "upper": ".upper"}
    flat: pd.DataFrame = wide.copy()
    flat.columns = pd.Index([f"{column}{names[what]}" for column, what in list(wide.columns)])
    flat.insert(0, "mode", np.arange(1, result.n_modes + 1, dtype=np.int32))
    return flat


def _other_tables(result: Any, level: float) -> dict[str, Any]:
    """Tables of a family that has no reader of its own here: what every result offers."""
    found: dict[str, Any] = {}
    for name in ("params", "std_errors", "mass", "branches", "centres"):
        table = getattr(result, name, None)
        if isinstance(table, pd.DataFrame | pd.Series):
            found[name] = table.reset_index()
    if hasattr(result, "conf_int"):
        found["conf_int"] = result.conf_int(level).reset_index()
    return found


_TABLES: Mapping[str, Callable[[Any, float], dict[str, Any]]] = MappingProxyType(
    {
        "density_modes": _density_modes,
        "modal_regression": regression_tables,
        "modal_clustering": cluster_tables,
    }
)


# ------------------------------------------------------------------------------- surfaces


def describe_surface(surface: ReleasedSurface) -> dict[str, Any]:
    """Return a released surface as plain data: its facts and its state."""
    return {
        "kind": "surface",
        "coordinates": coordinate_table(surface.coordinates),
        "lower": surface.lower,
        "upper": surface.upper,
        "bandwidth": surface.bandwidth,
        "order": surface.order,
        "noise_sd": surface.noise_sd,
        "total": surface.total,
        "total_sd": surface.total_sd,
        "negative_mass": surface.negative_mass(),
        "n_frequencies": surface.design.n_pairs,
        "privacy": privacy_of(surface.privacy),
        "simulated": surface.privacy.simulated,
        "state": to_state(surface),
    }
