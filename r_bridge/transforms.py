"""Private preprocessing at the door: scalers, components and clusters of their scores as plain data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from pydpmode.budget import PrivacySpent
from pydpmode.errors import InvalidArgument
from pydpmode.models.clustering_pipeline import PrivateClusteringPipeline
from pydpmode.models.preprocessing import PrivatePCA, PrivateScaler
from pydpmode.results.base_results import Results
from pydpmode.results.pipeline_results import PipelineResults
from pydpmode.results.preprocessing import PCAResults, ReleasedTransform, ScalerResults

from . import describe as tables
from .r_words import in_r_words
from .requests import checked, source_of

Transform = ReleasedTransform | PipelineResults
Reply = dict[str, Any]

_READERS: Mapping[str, Callable[[Mapping[str, Any]], Transform]] = MappingProxyType(
    {
        ScalerResults.FORMAT: ScalerResults.from_dict,
        PCAResults.FORMAT: PCAResults.from_dict,
        "pydpmode clustering pipeline": PipelineResults.from_dict,
    }
)


def from_state(state: str) -> Results | Transform:
    """Rebuild a result of any kind, released transforms included, from its JSON text.

    Raises
    ------
    SurfaceFileError
        When the text is not a result of this package, or of a later version.
    """
    content = json.loads(state)
    reader = _READERS.get(str(content.get("format"))) if isinstance(content, dict) else None
    return tables.from_state(state) if reader is None else reader(content)


def is_transform(content: object) -> bool:
    """Return whether a parsed JSON text is a released transform or a clustering pipeline."""
    return isinstance(content, Mapping) and content.get("format") in _READERS


def describe(result: Results | Transform, level: float = 0.95) -> Reply:
    """Return a result of any kind as plain data; see `describe.describe`."""
    if isinstance(result, Results):
        return tables.describe(result, level)
    if isinstance(result, PipelineResults):
        shared = _shared(result, result.components, level)
        return {**_pipeline_tables(result, level), **shared, "n_records": result.clustering.facts.n_records}
    own = _scaler_tables(result) if isinstance(result, ScalerResults) else _pca_tables(result)
    return {**own, **_shared(result, result, level)}


def summary_of(result: Results | Transform, level: float) -> Any:
    """Return the summary at a level; those of transforms have no intervals."""
    return result.summary() if isinstance(result, ReleasedTransform) else result.summary(level)


def _shared(result: Transform, transform: ReleasedTransform, level: float) -> Reply:
    return {
        "level": level,
        "coordinates": tables.coordinate_table(transform.coordinates),
        "location": transform.location,
        "scale": transform.scale,
        "privacy": _privacy_of(result),
        "n_records": transform.records,
        "has_surface": isinstance(result, PipelineResults) and result.clustering.surface is not None,
        "warnings": [in_r_words(text) for text in _warnings_of(result)],
        "label": result.label,
        "simulated": result.simulated,
        "summary": summary_of(result, level).as_text(),
        "state": json.dumps(result.to_dict(), allow_nan=False),
    }


def _warnings_of(result: Transform) -> list[str]:
    if isinstance(result, PipelineResults):
        return [*result.components.warnings, *result.clustering.warnings, *result.warnings]
    return list(result.warnings)


def _privacy_of(result: Transform) -> Reply:
    """Return the statement for all releases together, and what each of them cost."""
    spent = result.privacy
    whole: PrivacySpent = replace(spent[0], epsilon=result.epsilon, delta=result.delta)
    found = tables.privacy_of(whole) or {}
    if len(spent) > 1:
        found |= {"mechanism": " + ".join(dict.fromkeys(one.mechanism for one in spent))}
        found |= {"sensitivity": np.nan, "noise_scale": np.nan}
    releases = pd.DataFrame(
        {
            "release": pd.Series([one.label for one in spent], dtype=object),
            "mechanism": pd.Series([one.mechanism for one in spent], dtype=object),
            "epsilon": [one.epsilon for one in spent],
            "delta": [one.delta for one in spent],
            "sensitivity": [one.sensitivity for one in spent],
            "noise_scale": [one.noise_scale for one in spent],
        }
    )
    return {**found, "releases": releases}


def _scaler_tables(result: ScalerResults) -> Reply:
    errors = result.std_errors.reset_index(drop=True)
    table = pd.DataFrame(
        {
            "term": pd.Series(list(result.columns), dtype=object),
            "location": result.location,
            "scale": result.scale,
            **{name: errors[name] for name in errors.columns},
            "lower_quartile": result.quartiles[:, 0],
            "median": result.quartiles[:, 1],
            "upper_quartile": result.quartiles[:, 2],
            "floored": result.floored.astype(bool),
        }
    )
    return {"kind": "scaler", "estimates": table}


def _pca_tables(result: Any) -> Reply:
    errors = result.std_errors
    table = pd.DataFrame(
        {
            "component": np.arange(1, len(result.names) + 1, dtype=np.int32),
            "name": pd.Series(list(result.names), dtype=object),
            "variance": result.explained_variance,
            "proportion": result.explained_variance_ratio,
            "std_error": errors["total"].to_numpy(),
            "se_privacy": errors["privacy"].to_numpy(),
            "se_sampling": errors["sampling"].to_numpy(),
            "angle": result.angles,
            "clear": result.clear.astype(bool),
        }
    )
    return {
        "kind": "principal_components",
        "estimates": table,
        "loadings": result.components,
        "radius": result.radius,
        "location_errors": result.location_errors,
        "whiten": result.whiten,
    }


def _pipeline_tables(result: PipelineResults, level: float) -> Reply:
    """Return the centres in the original columns; components and clusters are results of their own."""
    k, d = result.n_clusters, len(result.columns)
    clusters = result.clustering
    by_cluster = {
        "share": clusters.shares["share"],
        "share_se": clusters.shares["total"],
        "found_again": clusters.stability["found_again"],
        "significance": clusters.stability["significance"],
    }
    centres = result.centres
    table = pd.DataFrame(
        {
            "mode": np.repeat(np.arange(1, k + 1, dtype=np.int32), d),
            "term": pd.Series(list(result.columns) * k, dtype=object),
            "estimate": centres.to_numpy(dtype=np.float64).ravel(),
            "std_error": result.std_errors.to_numpy(dtype=np.float64).ravel(),
            **{name: np.repeat(column.to_numpy(), d) for name, column in by_cluster.items()},
        }
    )
    original = centres.reset_index(drop=True)
    original.insert(0, "cluster", np.arange(1, k + 1, dtype=np.int32))
    return {
        "kind": "clustering_pipeline",
        "estimates": table,
        "original": original,
        "n_clusters": k,
        "shares": dict(result.budget_shares),
        "components": describe(result.components, level),
        "clusters": tables.describe(clusters, level),
    }


# ------------------------------------------------------------------------------- operations


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a model; a released scaler in place of a centre or a scale as itself."""
    found = checked(options)
    for name in ("centre", "scale"):
        given = found.get(name)
        if isinstance(given, Mapping) and set(given) == {"scaler state"}:
            scaler = from_state(given["scaler state"])
            if not isinstance(scaler, ScalerResults):
                raise InvalidArgument(f"{name} must be a scaler that was released, or numbers by column")
            found[name] = scaler
    return found


def _fit_scaler(data: Any, options: Mapping[str, Any], fit: Mapping[str, Any]) -> Reply:
    return describe(PrivateScaler(source_of(data), **_options(options)).fit(**checked(fit)))


def _fit_pca(data: Any, options: Mapping[str, Any], fit: Mapping[str, Any]) -> Reply:
    return describe(PrivatePCA(source_of(data), **_options(options)).fit(**checked(fit)))


def _fit_pipeline(data: Any, options: Mapping[str, Any], fit: Mapping[str, Any]) -> Reply:
    return describe(PrivateClusteringPipeline(source_of(data), **_options(options)).fit(**checked(fit)))


def _transform(state: str, new: Any, inverse: bool = False) -> pd.DataFrame:
    """Map new data to scaled columns or scores, or such points back to the original columns."""
    result = from_state(state)
    if not isinstance(result, ScalerResults | PCAResults | PipelineResults):
        raise InvalidArgument("this result is not a released transform")
    mapped = result.inverse_transform(new) if inverse else result.transform(new)
    return mapped.reset_index(drop=True)


OPERATIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "fit_scaler": _fit_scaler,
        "fit_principal_components": _fit_pca,
        "fit_clustering_pipeline": _fit_pipeline,
        "transform": _transform,
    }
)

SIGNATURES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "PrivateScaler": PrivateScaler.__init__,
        "PrivateScaler.fit": PrivateScaler.fit,
        "PrivatePCA": PrivatePCA.__init__,
        "PrivatePCA.fit": PrivatePCA.fit,
        "PrivateClusteringPipeline": PrivateClusteringPipeline.__init__,
        "PrivateClusteringPipeline.fit": PrivateClusteringPipeline.fit,
    }
)
