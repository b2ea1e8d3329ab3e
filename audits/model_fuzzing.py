"""Hostile tables and options for every model: a fit is refused before its charge, or whole and sane.

Tables of few rows, one value, far outliers, missing and infinite cells, in units from 1e-150 to 1e150;
bandwidths from a thousandth of the box to thirty boxes; budgets from next to nothing to next to no noise.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

import pydpmode as dpm
from pydpmode.errors import PydpmodeError
from pydpmode.results.base_results import Results

from .fuzzing import Tally, attempt

_NAMES = ("a", "b", "c", "d", "e")
_EPSILONS = (0.01, 0.1, 1.0, 1.0, 1.0, 10.0, 300.0)
_DELTAS = (1e-12, 1e-6, 1e-6, 1e-3, 0.3)
_UNITS = (*[1.0] * 30, *[1e-9, 1e9, 1e-100, 1e100] * 3, 1e-150, 1e150)
_OFFSETS = (0.0, 0.0, 0.0, 1.0, -30.0, 1e6)  # in widths of the box
_ODD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0)
LIMIT = 120.0  # seconds: bandwidths of a hundredth of the box in three columns are slow
_PICTURES = 0.1  # of the results are drawn
# Bandwidths in widths of the box.
_WIDTHS = (0.001, 0.01, 0.03, 0.03, 0.1, 0.1, 0.3, 0.3, 1.0, 1.0, 30.0)


def table(r: random.Random, columns: int) -> tuple[pd.DataFrame, dict[str, tuple[float, float]]]:
    """Return a table and public bounds, which need not fit it."""
    generator = np.random.default_rng(r.randrange(2**32))
    n = r.choice((0, *[1, 2, 5, 40] * 3, *[300, 2000] * 6))
    data, bounds = {}, {}
    common = generator.normal(size=n)
    for name in _NAMES[:columns]:
        unit = r.choice(_UNITS)
        low = r.choice(_OFFSETS) * unit
        bounds[name] = (low, low + unit)
        data[name] = low + unit * _shape(r, generator, n, common)
        for _ in range(r.choice((0, 0, 0, 1, 3)) * bool(n)):
            data[name][r.randrange(n)] = r.choice(_ODD)
    return pd.DataFrame(data), bounds


def _shape(
    r: random.Random, generator: np.random.Generator, n: int, common: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return values for a box from 0 to 1."""
    kind = r.randrange(8)
    if kind == 0:
        return np.full(n, r.choice((0.0, 0.5, 1.0, 7.0)))
    if kind == 1:
        return generator.uniform(size=n)
    if kind == 2:
        return 0.25 + 0.5 * generator.integers(0, 2, n) + 0.02 * generator.normal(size=n)
    if kind == 3:
        return 0.5 + 0.05 * generator.standard_cauchy(n)
    if kind == 4:
        return generator.integers(0, r.choice((2, 3, 50)), n) / 10
    if kind == 5:
        return np.exp(-5 * generator.uniform(size=n))
    if kind == 6:
        return np.asarray(0.5 + 0.1 * common)  # one column a copy of another
    return 0.5 + r.choice((1e-12, 0.01, 0.15)) * generator.normal(size=n)


def _bandwidth(
    r: random.Random, bounds: dict[str, tuple[float, float]], rules: Sequence[str]
) -> dict[str, Any]:
    if r.random() < 0.5:
        return {}
    if r.random() < 0.5:
        return {"bandwidth": r.choice(rules)}
    return {"bandwidth": {name: r.choice(_WIDTHS) * (high - low) for name, (low, high) in bounds.items()}}


def _modes(r: random.Random) -> tuple[dpm.PrivateData, Any]:
    study, bounds = _study(r, r.choice((1, 1, 1, 2, 2, 3, 4, 5)))
    options: dict[str, Any] = _bandwidth(r, bounds, ("reference", "ladder", "private"))
    if r.random() < 0.2:
        options["n_modes"] = r.choice((1, 2, 7))
    if r.random() < 0.1:
        options["mechanism"] = "grams"
        options["grams"] = dpm.GramsOptions(T=r.choice((1, 3)), k=r.choice((1, 4)))
    if r.random() < 0.1:
        options["order"] = r.choice((4, 6))
    if r.random() < 0.1:
        options["resolution"] = {"a": r.choice((0.001, 0.1, 2.0)) * (bounds["a"][1] - bounds["a"][0])}
    return study, dpm.DensityModes(study, **options)


def _clusters(r: random.Random) -> tuple[dpm.PrivateData, Any]:
    study, bounds = _study(r, r.choice((1, 2, 2, 3, 4, 5)))
    options: dict[str, Any] = _bandwidth(r, bounds, ("reference",))
    if r.random() < 0.8:
        options["n_clusters"] = r.choice((1, 2, 4, 9))
    if r.random() < 0.2:
        options["centres"] = "modes"
    return study, dpm.ModalClustering(study, **options)


def _regression(r: random.Random) -> tuple[dpm.PrivateData, Any]:
    columns = r.choice((2, 2, 2, 3, 4))
    study, bounds = _study(r, columns)
    options: dict[str, Any] = _bandwidth(r, bounds, ("reference", "regression"))
    if r.random() < 0.3:
        options["kind"] = "linear"
    return study, dpm.ModalRegression(study, "a", list(_NAMES[1:columns]), **options)


def _transform(r: random.Random) -> tuple[dpm.PrivateData, Any]:
    columns = r.choice((1, 2, 3, 5))
    study, _ = _study(r, columns)
    if columns == 1 or r.random() < 0.4:
        return study, dpm.PrivateScaler(study)
    common: dict[str, Any] = {
        "n_components": r.randrange(1, columns + 1),
        "radius": r.choice(("private", "private", 0.001, 0.7, 100.0)),
        "centre": r.choice(("private", "box")),
        "whiten": r.random() < 0.5,
    }
    if r.random() < 0.5:
        return study, dpm.PrivatePCA(study, **common)
    return study, dpm.PrivateClusteringPipeline(study, n_clusters=r.choice((1, 3, None)), **common)


def _study(r: random.Random, columns: int) -> tuple[dpm.PrivateData, dict[str, tuple[float, float]]]:
    frame, bounds = table(r, columns)
    adjacency = r.choice(("replace", "replace", "add_remove"))
    guess = {"n_guess": r.choice((1, 300, 10**6))} if adjacency == "add_remove" and r.random() < 0.9 else {}
    study = dpm.PrivateData(
        frame,
        bounds=bounds,
        budget=dpm.Budget(r.choice(_EPSILONS), r.choice(_DELTAS)),
        adjacency=adjacency,
        **guess,
        outside=r.choice(("clip", "clip", "ignore")),
    )
    return study, bounds


_MODELS: tuple[Callable[[random.Random], tuple[dpm.PrivateData, Any]], ...] = (
    _modes,
    _clusters,
    _regression,
    _transform,
)


def fit_or_refuse(r: random.Random) -> bool:
    """Fit a model; return False when it was refused before a charge, raise when the result is not sane."""
    study: dpm.PrivateData | None = None
    try:
        study, model = r.choice(_MODELS)(r)
        budget = study.budget
        if hasattr(model, "preview") and r.random() < 0.3:
            str(model.preview(budget.epsilon, budget.delta))
        result = model.fit(budget.epsilon, budget.delta, seed=r.randrange(1000))
    except PydpmodeError as refusal:
        if study is not None and study.ledger.entries():
            raise RuntimeError(f"refused after the charge: {refusal}") from refusal
        return False
    stated = result.privacy.epsilon if isinstance(result, Results) else result.epsilon
    if not study.ledger.entries() or not 0 < stated <= budget.epsilon * (1 + 1e-9):
        raise RuntimeError("the ledger does not hold what the result says was spent")
    _check(result, study.bounds)
    if hasattr(result, "plot") and r.random() < _PICTURES:
        _draw(result)
    return True


def _check(result: Any, bounds: dict[str, tuple[float, float]]) -> None:
    _check_text(result)
    if not isinstance(result, Results):
        _check_transform(result, bounds)
        return
    _check_numbers(result, bounds)
    new = _new_rows(bounds)
    predicted = result.predict(new)
    if len(predicted) < len(new):
        raise RuntimeError("predict lost rows")
    if isinstance(predicted, pd.DataFrame) and "status" in predicted.columns:
        _check_predictions(predicted[predicted["status"] == "ok"], *bounds["a"], line=bool(result.linear))


def _check_text(result: Any) -> None:
    result.summary().as_text()
    written = json.dumps(result.to_dict())
    if json.dumps(type(result).from_dict(json.loads(written)).to_dict()) != written:
        raise RuntimeError("a saved result is not the same when it is read again")


def _check_numbers(result: Any, bounds: dict[str, tuple[float, float]]) -> None:
    """Raise unless locations lie in the box, errors are not below zero, and shares are shares."""
    for name in ("modes", "centres"):
        located = getattr(result, name, None)
        if located is None:
            continue
        values = located.to_numpy(dtype=float)
        low, high = np.array([bounds[c.column] for c in result.coordinates]).T
        slack = 1e-9 * (high - low)
        if not np.all((values >= low - slack) & (values <= high + slack)):
            raise RuntimeError(f"{name} outside of the box")
    for name in ("shares", "stability"):
        found = getattr(result, name, None)
        numbers = np.zeros(0) if found is None else found.to_numpy(dtype=float)[:, 0]
        if np.any(numbers < -1e-9) or np.any(numbers > 1 + 1e-9):
            raise RuntimeError(f"{name} not between 0 and 1: {numbers}")
    if np.any(result.std_errors.select_dtypes("number").to_numpy(dtype=float) < 0):
        raise RuntimeError("a standard error below zero")
    interval = result.conf_int()
    if (interval["lower"] > interval["upper"]).any():
        raise RuntimeError("an interval the wrong way round")


def _check_transform(result: Any, bounds: dict[str, tuple[float, float]]) -> None:
    """Raise unless rows are taken to finite numbers, missing ones to missing ones."""
    there = np.asarray(result.transform(_new_rows(bounds)), dtype=float)
    if not np.isfinite(there[:3]).all() or not np.isnan(there[3]).any():
        raise RuntimeError("a transform of rows in the box that is not finite")


def _check_predictions(known: pd.DataFrame, low: float, high: float, *, line: bool) -> None:
    slack = 1e-9 * (high - low)
    if not line and not known["estimate"].between(low - slack, high + slack).all():
        raise RuntimeError("a conditional mode outside of the box")
    known = known.dropna(subset=["lower", "upper"])
    if not ((known["lower"] <= known["estimate"]) & (known["estimate"] <= known["upper"])).all():
        raise RuntimeError("an interval does not hold its estimate")


def _draw(result: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    result.plot()
    with io.BytesIO() as picture:
        pyplot.gcf().savefig(picture, dpi=30)
    pyplot.close("all")


def _new_rows(bounds: dict[str, tuple[float, float]]) -> pd.DataFrame:
    middle = {name: (low + high) / 2 for name, (low, high) in bounds.items()}
    low, high = ({name: pair[i] for name, pair in bounds.items()} for i in (0, 1))
    return pd.DataFrame([middle, low, high, dict.fromkeys(bounds, np.nan)])


def fuzz_models(inputs: int) -> Tally:
    """Fit models to tables."""
    tally = Tally("fits of models")
    for seed in range(inputs):
        attempt(tally, seed, lambda s=seed: fit_or_refuse(random.Random(s)), LIMIT)  # type: ignore[misc]
    return tally
