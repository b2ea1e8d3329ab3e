"""Tables of a linear modal regression: coefficients, their errors, and predictions along the line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import InvalidArgument
from ..numerics.linear_modal import LinearModalFit
from ..numerics.surfaces import FloatArray
from .base_results import array_from, number_from
from .grouped_surface import Level

INTERCEPT = "Intercept"


def coefficient_index(
    fits: Sequence[LinearModalFit], by: str | None, levels: Sequence[Level]
) -> pd.Index[Any]:
    """Return the index of coefficient tables: (level,) term."""
    terms = [INTERCEPT, *fits[0].predictors]
    if by is None:
        return pd.Index(terms, name="term")
    return pd.MultiIndex.from_product([list(levels), terms], names=[by, "term"])


def coefficients(fits: Sequence[LinearModalFit], index: pd.Index[Any]) -> pd.Series[float]:
    """Return the coefficients."""
    return pd.Series(np.concatenate([fit.coefficients for fit in fits]), index=index, name="estimate")


def coefficient_errors(fits: Sequence[LinearModalFit], index: pd.Index[Any]) -> pd.DataFrame:
    """Return standard errors by source: privacy, sampling, total."""
    parts = {
        "privacy": [fit.covariance_privacy for fit in fits],
        "sampling": [fit.covariance_sampling for fit in fits],
        "total": [fit.covariance for fit in fits],
    }
    return pd.DataFrame(
        {name: np.concatenate([np.sqrt(np.diag(c)) for c in found]) for name, found in parts.items()},
        index=index,
    )


def covariance_table(fit: LinearModalFit, source: str) -> pd.DataFrame:
    """Return the covariance of one line's coefficients.

    Raises
    ------
    InvalidArgument
        When there is no such source.
    """
    known = {
        "total": fit.covariance,
        "privacy": fit.covariance_privacy,
        "sampling": fit.covariance_sampling,
    }
    if source not in known:
        raise InvalidArgument(f"source must be one of {list(known)}, got {source!r}")
    names = [INTERCEPT, *fit.predictors]
    return pd.DataFrame(known[source].copy(), index=names, columns=names)


def line_rows(
    fit: LinearModalFit, points: FloatArray, rows: NDArray[np.int64], half: float
) -> dict[str, FloatArray]:
    """Return predictions along the line as columns of a long frame; the line is branch 1."""
    estimate, error = fit.predict(points)
    return {
        "row": rows,
        "branch": np.ones(rows.size),
        "estimate": estimate,
        "lower": estimate - half * error,
        "upper": estimate + half * error,
        "share": np.full(rows.size, np.nan),
        "certified": np.full(rows.size, fit.converged),
    }


def fit_from_dict(stored: Mapping[str, Any]) -> LinearModalFit:
    """Rebuild a fit from the dictionary of its fields."""
    k = len(stored["coefficients"])
    return LinearModalFit(
        predictors=tuple(str(name) for name in stored["predictors"]),
        response=str(stored["response"]),
        coefficients=array_from(stored["coefficients"], (k,), False),
        covariance_privacy=array_from(stored["covariance_privacy"], (k, k), False),
        covariance_sampling=array_from(stored["covariance_sampling"], (k, k), False),
        objective=number_from(stored["objective"]),
        residual_bandwidth=number_from(stored["residual_bandwidth"]),
        kernel_order=int(stored["kernel_order"]),
        converged=bool(stored["converged"]),
        starts=int(stored["starts"]),
        unsmoothed=bool(stored.get("unsmoothed", False)),
    )
