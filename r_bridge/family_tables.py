"""Tables of modal regressions and of clusters, as the R objects hold them.

Read off the results' own tables, by name: this module needs no family's class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def regression_tables(result: Any, level: float) -> dict[str, Any]:
    """Return the branches with intervals at a level, the shares, and what the regression is of."""
    return {
        "branches": result._frame(level),
        "mass": result.mass.reset_index(),
        "formula_text": result.formula,
        "response": result.response_coordinate.name,
        "predictors": [c.name for c in result.predictors],
        "by": result.by,
        "levels": list(result.levels),
        "residual_scale": list(result.residual_scales),
        "n_branches": [int(found.count) for found in result.branch_sets],
        "coefficients": _coefficients(result, level) if result.linear else None,
    }


def _coefficients(result: Any, level: float) -> pd.DataFrame:
    """Return the coefficients of the modal line, one row per (level and) term."""
    errors, interval = result.std_errors, result.conf_int(level)
    terms = errors.index
    if result.by is None:
        names = {"term": list(terms)}
    else:
        names = {result.by: [value for value, _ in terms], "term": [term for _, term in terms]}
    return pd.DataFrame(
        {
            **names,
            "estimate": result.params.to_numpy(),
            "std_error": errors["total"].to_numpy(),
            "privacy": errors["privacy"].to_numpy(),
            "sampling": errors["sampling"].to_numpy(),
            "lower": interval["lower"].to_numpy(),
            "upper": interval["upper"].to_numpy(),
        }
    )


def cluster_tables(result: Any, level: float) -> dict[str, Any]:
    """Return centres with errors, shares and stability, one row per cluster and coordinate."""
    # Here, because it loads statsmodels, which takes half a second.
    from pydpmode.results.clustering_summary import doubtful

    k, d = result.n_clusters, len(result.columns)
    errors, interval = result.std_errors, result.conf_int(level)
    shares, stability = result.shares, result.stability
    by_cluster = {
        "share": shares["share"],
        "share_se": shares["total"],
        "found_again": stability["found_again"],
        "significance": stability["significance"],
        "reliable": ~pd.Series(doubtful(result), dtype=bool),
    }
    table = pd.DataFrame(
        {
            "mode": np.repeat(np.arange(1, k + 1, dtype=np.int32), d),
            "term": pd.Series(list(result.columns) * k, dtype=object),
            "estimate": result.params.to_numpy().ravel(),
            "std_error": errors["total"].to_numpy(),
            "se_privacy": errors["privacy"].to_numpy(),
            "se_sampling": errors["sampling"].to_numpy(),
            "lower": interval["lower"].to_numpy(),
            "upper": interval["upper"].to_numpy(),
            **{name: np.repeat(column.to_numpy(), d) for name, column in by_cluster.items()},
        }
    )
    original = result.centres_original.copy()
    original.insert(0, "cluster", np.arange(1, k + 1, dtype=np.int32))
    return {
        "estimates": table,
        "original": original.reset_index(drop=True),
        "covariance": {str(i): result.cov_params(i).to_numpy() for i in range(1, k + 1)},
        "spread": result.spread.to_numpy(),
        "n_clusters": k,
        "centres_kind": result.centres_kind,
    }
