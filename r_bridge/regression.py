"""Modal regression at the door: its fit, its preview and its predictions as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from pydpmode.errors import InvalidArgument
from pydpmode.models.modal_regression import ModalRegression
from pydpmode.numerics.conditional_peaks import LEAST_TOTAL
from pydpmode.numerics.conditional_regions import conditional_density, surface_sd
from pydpmode.results.regression_results import ModalRegressionResults
from pydpmode.results.released_surface import ReleasedSurface

from . import describe as tables
from .requests import checked, options_of, preview_of, source_of


def _fit(data: Any, formula: str, options: Mapping[str, Any], fit: Mapping[str, Any]) -> dict[str, Any]:
    model = ModalRegression.from_formula(formula, source_of(data), **_options(options))
    return tables.describe(model.fit(**checked(fit)))


def _preview(
    data: Any, formula: str, options: Mapping[str, Any], preview: Mapping[str, Any]
) -> dict[str, Any]:
    model = ModalRegression.from_formula(formula, source_of(data), **_options(options))
    return preview_of(model.preview(**checked(preview)))


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    found = options_of(options)
    if "public_predictors" in found:
        found["public_predictors"] = np.asarray(found["public_predictors"], dtype=np.float64)
    if "levels" in found and not isinstance(found["levels"], list):
        found["levels"] = [found["levels"]]
    return found


def _predict(state: str, new: Any, what: str, level: float, certified_only: bool = False) -> pd.DataFrame:
    result = _regression_from(state)
    if what == "branches":
        answer = result.predict(new, level=level, certified_only=certified_only)
    elif what == "region":
        answer = result.predict_region(new, level=level)
    else:
        answer = result.mean_curve(new)
    # Rows of new data are counted from 1 in R.
    answer = answer.reset_index(drop=True)
    return answer.assign(row=answer["row"] + 1) if "row" in answer else answer


def _grid(state: str, points: int, group: Any = None) -> dict[str, Any]:
    """Density of a level over predictor and response, for pictures; NaN where nothing is known."""
    result = _regression_from(state)
    surface, _ = result.drawn(0 if group is None else result.levels.index(group))
    if surface is None:
        raise InvalidArgument("this result has no surface to draw")
    response = result.response
    axes = [np.linspace(lo, hi, points) for lo, hi in zip(surface.lower, surface.upper, strict=True)]
    if len(axes) != 2:
        raise InvalidArgument("a picture takes one predictor; use predict() along a line for more")
    density = surface.density_on_grid(axes)
    predictor = axes[1 - response]
    known = conditional_density(surface, response, predictor[:, None]).known
    if isinstance(surface, ReleasedSurface) and surface.total < LEAST_TOTAL * surface.total_sd:
        known = np.zeros_like(known)
    along = density if response == 1 else density.T
    return {
        "axes": [predictor, axes[response]],
        "density": np.where(known.astype(bool)[:, None], along, np.nan),
        "known": bool(known.any()),
        "noise_sd": surface_sd(surface),
    }


def _regression_from(state: str) -> ModalRegressionResults:
    result = tables.from_state(state)
    if not isinstance(result, ModalRegressionResults):
        raise InvalidArgument(f"this is a result of kind {result.kind!r}, not of a modal regression")
    return result


def _covariance(state: str, group: Any, source: str) -> Any:
    result = _regression_from(state)
    return result.cov_params(group, source=source).to_numpy()


OPERATIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "fit_modal_regression": _fit,
        "preview_modal_regression": _preview,
        "predict_regression": _predict,
        "covariance_regression": _covariance,
        "regression_grid": _grid,
    }
)

SIGNATURES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "ModalRegression.from_formula": ModalRegression.from_formula,
        "ModalRegression.fit": ModalRegression.fit,
        "ModalRegression.preview": ModalRegression.preview,
    }
)
