"""The table of parity cases: models, options and data sets, each with one seed.

    python tests/parity/cases.py            writes tests/parity/cases.json

The same table is run by Python itself (`python_numbers`), by R through reticulate and by R inside Python
(run_cases.R); the numbers must agree to the last bit. Numbers travel as hexadecimal floats.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pydpmode import (
    Budget,
    DensityModes,
    GramsOptions,
    ModalClustering,
    ModalRegression,
    PrivateClusteringPipeline,
    PrivateData,
    PrivatePCA,
    PrivateScaler,
    datasets,
)

TABLE = Path(__file__).with_name("cases.json")

Case = dict[str, Any]

_SQUARE = {"x": [-8, 8], "y": [-8, 8]}
_WAGES = {"age": [15, 90], "wage": [1000, 300000]}
_GAUSSIANS = {"name": "four_gaussians", "n": 900, "seed": 3}


def cases() -> list[Case]:
    """Return every case: which data, which columns, which options, which private table."""
    found = [
        _case("wages", {"name": "wages"}, _WAGES, ["age", "wage"], log=["wage"], resolution={"age": 1}),
        _case("wages, one column", {"name": "wages"}, {"wage": [1000, 300000]}, ["wage"], log=["wage"]),
        _case("four Gaussians", _GAUSSIANS, _SQUARE, ["x", "y"]),
        _case(
            "five t", {"name": "five_t", "n": 900, "seed": 3}, {"x": [-12, 12], "y": [-12, 12]}, ["x", "y"]
        ),
        _case(
            "three levels",
            {"name": "three_levels", "n": 900, "seed": 3},
            {"x": [0, 1], "y": [0, 4]},
            ["x", "y"],
        ),
        _case("sinusoid", {"name": "sinusoid", "n": 900, "seed": 3}, {"x": [0, 1], "y": [-2, 4]}, ["x", "y"]),
    ]
    options: dict[str, dict[str, Any]] = {
        "bandwidth reference": {"bandwidth": "reference"},
        "bandwidth paper": {"bandwidth": "paper"},
        "bandwidth private": {"bandwidth": "private"},
        "bandwidth number": {"bandwidth": 0.8},
        "bandwidths by name": {"bandwidth": {"x": 0.8, "y": 1.1}},
        "order 4": {"order": 4, "bandwidth": 1.2},
        "resolution": {"resolution": {"x": 0.5}},
        "n_modes": {"n_modes": 3},
        "false_mode_rate": {"false_mode_rate": 0.2},
        "label": {"label": "parity"},
        "grams": {"mechanism": "grams"},
        "grams, options": {
            "mechanism": "grams",
            "grams": {
                "T": 5,
                "k": 6,
                "eta": 0.9,
                "eps_init": 0.2,
                "noise": "independent",
                "finish": "iterates",
            },
        },
        "grams, candidates": {
            "mechanism": "grams",
            "grams": {"candidates": [[3, 3], [-3, 3], [3, -3], [-3, -3], [0, 0]], "k": 4, "T": 4},
        },
    }
    found += [_case(name, _GAUSSIANS, _SQUARE, ["x", "y"], **given) for name, given in options.items()]
    found.append(
        _case(
            "features",
            {"name": "four columns", "n": 400, "seed": 3},
            {c: [-8, 8] for c in "abcd"},
            ["a", "b", "c", "d"],
            n_features=300,
            n_modes=1,
        )
    )
    private: dict[str, dict[str, Any]] = {
        "add_remove": {"adjacency": "add_remove", "n_guess": 900, "n_max": 100000},
        "persons": {"unit": "person", "person": "id"},
        "weights": {"weights": "w", "max_weight": 2},
        "outside": {"outside": "ignore"},
    }
    for name, given in private.items():
        case = _case(
            f"private table, {name}", {"name": "with persons", "n": 900, "seed": 3}, _SQUARE, ["x", "y"]
        )
        found.append({**case, "private": given})
    return found + regression_cases() + clustering_cases() + preprocessing_cases()


def regression_cases() -> list[Case]:
    """Return the cases of modal regression."""
    levels = {"name": "three_levels", "n": 900, "seed": 3}
    curves = {"name": "sinusoid", "n": 900, "seed": 3}
    bounds = {"x": [0, 1], "y": [-2, 4]}
    found = [
        _regression("regression, wages", {"name": "wages"}, _WAGES, "log(wage) ~ age", resolution={"age": 1}),
        _regression("regression, levels", levels, bounds, "y ~ x"),
        _regression("regression, sinusoid", curves, bounds, "y ~ x"),
        _regression("regression, two predictors", _GAUSSIANS, _SQUARE, "y ~ x", order=4, bandwidth=1.2),
        _regression(
            "regression, rate", curves, bounds, "y ~ x", false_branch_rate=0.2, bandwidth="reference"
        ),
        _regression(
            "regression, groups",
            {"name": "with persons", "n": 900, "seed": 3},
            _SQUARE,
            "y ~ x",
            by="group",
            levels=["even", "odd"],
        ),
    ]
    return found


def _regression(name: str, data: Case, bounds: Case, formula: str, **options: Any) -> Case:
    return {**_case(name, data, bounds, [], **options), "model": "regression", "formula": formula}


def clustering_cases() -> list[Case]:
    """Return the cases of modal clustering."""
    options: dict[str, dict[str, Any]] = {
        "four": {"n_clusters": 4},
        "number found": {},
        "modes": {"centres": "modes"},
        "bandwidth": {"n_clusters": 4, "bandwidth": 0.7},
        "rate": {"false_split_rate": 0.3},
        "public transform": {"n_clusters": 4, "public_transform": "divided by 2 in an earlier study"},
    }
    found = [
        _case(f"clusters, {name}", _GAUSSIANS, _SQUARE, ["x", "y"], **given)
        for name, given in options.items()
    ]
    return [{**case, "model": "clusters"} for case in found]


def preprocessing_cases() -> list[Case]:
    """Return the cases of scalers, principal components, and clusters of scores."""
    four = {"name": "four columns", "n": 900, "seed": 3}
    box = {c: [-8, 8] for c in "abcd"}
    columns = ["a", "b", "c", "d"]
    persons = {"unit": "person", "person": "id", "outside": "ignore"}
    with_persons = {"name": "with persons", "n": 900, "seed": 3}
    wages = {"name": "wages"}
    public = {"centre": dict.fromkeys("abcd", 0.5), "scale": dict(zip("abcd", (4, 4, 5, 5), strict=True))}
    scaled = [
        _case("scale, wages", wages, _WAGES, ["age", "wage"], log=["wage"]),
        {**_case("scale, persons", with_persons, _SQUARE, ["x", "y"], label="s"), "private": persons},
    ]
    components = [
        _case("components", four, box, columns, n_components=2, radius=0.7),
        _case("components, public", four, box, columns, n_components=1, radius=1, whiten=False, **public),
        _case("components, box", four, box, columns, n_components=3, radius="private", centre="box", scale=4),
        {
            **_case("components, persons", with_persons, _SQUARE, ["x", "y"], n_components=2, radius=1),
            "private": persons,
        },
    ]
    shares = {"mean": 1, "moments": 4, "clusters": 5}
    clusters = [
        _case("pipeline", four, box, columns, n_components=2, n_clusters=4),
        _case("pipeline, shares", four, box, columns, n_components=2, radius=0.7, shares=shares, reach=2.5),
        _case("pipeline, modes", four, box, columns, n_components=2, whiten=True, centres="modes", **public),
    ]
    return [
        *({**case, "model": "scale"} for case in scaled),
        *({**case, "model": "components"} for case in components),
        *({**case, "model": "pipeline"} for case in clusters),
    ]


def _case(name: str, data: Case, bounds: Case, columns: list[str], **options: Any) -> Case:
    return {
        "name": name,
        "model": "modes",
        "data": data,
        "bounds": bounds,
        "columns": columns,
        "options": options,
        "epsilon": 2,
        "delta": 1e-5,
        "seed": 11,
    }


def table_of(data: Case) -> pd.DataFrame:
    """Return the table of a case; the R side makes the same one from the packaged designs."""
    if data["name"] == "wages":
        return datasets.wages()
    if data["name"] == "with persons":
        table = datasets.four_gaussians(data["n"], data["seed"])[0]
        number = range(len(table))
        group = ["odd" if i % 2 else "even" for i in number]
        return table.assign(
            id=[f"p{i % 450}" for i in number], w=[0.5 + (i % 4) / 2 for i in number], group=group
        )
    if data["name"] == "four columns":
        one, two = (datasets.four_gaussians(data["n"], data["seed"] + i)[0] for i in (0, 1))
        return pd.DataFrame({"a": one["x"], "b": one["y"], "c": two["x"], "d": two["y"]})
    return getattr(datasets, data["name"])(data["n"], data["seed"])[0]


def python_numbers(case: Case) -> dict[str, list[str]]:
    """Fit one case in Python, and return its numbers as hexadecimal floats."""
    model, numbers = FAMILIES[case["model"]]
    table = table_of(case["data"])
    given: dict[str, Any] = {"bounds": {c: tuple(pair) for c, pair in case["bounds"].items()}}
    if "private" in case:
        table = PrivateData(table, budget=Budget(case["epsilon"], case["delta"]), **given, **case["private"])
        given = {}
    options = dict(case["options"])
    label = options.pop("label", None)
    fit = model(case, table, {**given, **options}).fit(
        epsilon=case["epsilon"], delta=case["delta"], seed=case["seed"], label=label
    )
    found = {**numbers(fit), **_shared(fit)}
    return {name: [hexadecimal(value) for value in values] for name, values in found.items()}


def _shared(fit: Any) -> dict[str, Any]:
    if isinstance(fit.privacy, tuple):
        clustered = getattr(fit, "clustering", None)
        return {
            "nobs": [fit.records if clustered is None else clustered.facts.n_records],
            "epsilon": [fit.epsilon],
            "epsilons": [spent.epsilon for spent in fit.privacy],
            "noise_scales": [spent.noise_scale for spent in fit.privacy],
        }
    return {
        "nobs": [fit.facts.n_records],
        "noise_sd": [fit.facts.noise_sd],
        "noise_scale": [fit.privacy.noise_scale],
    }


def _modes(case: Case, table: Any, options: dict[str, Any]) -> DensityModes:
    if "grams" in options:
        options["grams"] = GramsOptions(**options["grams"])
    return DensityModes(table, case["columns"], **options)


def _mode_numbers(fit: Any) -> dict[str, Any]:
    errors, interval = fit.std_errors, fit.conf_int(0.9)
    sources = ("privacy", "sampling", "bias", "total")
    return {
        "estimate": fit.params.to_numpy().ravel(),
        **{f"std_error_{source}": errors[source].to_numpy() for source in sources},
        "lower": interval["lower"].to_numpy(),
        "upper": interval["upper"].to_numpy(),
        "share": fit.mass.to_numpy(),
    }


def _regressions(case: Case, table: Any, options: dict[str, Any]) -> ModalRegression:
    return ModalRegression.from_formula(case["formula"], table, **options)


def _branch_numbers(fit: Any) -> dict[str, Any]:
    table, interval = fit.branches, fit.conf_int(0.9)
    names = ("branch", "estimate", "std_error", "privacy", "sampling", "share", "snr", "certified")
    return {
        **{name: table[name].to_numpy(dtype=float) for name in names},
        "lower": interval["lower"].to_numpy(),
        "upper": interval["upper"].to_numpy(),
        "mass": fit.mass.to_numpy(),
    }


def _clusters(case: Case, table: Any, options: dict[str, Any]) -> ModalClustering:
    return ModalClustering(table, case["columns"], **options)


def _cluster_numbers(fit: Any) -> dict[str, Any]:
    errors, interval = fit.std_errors, fit.conf_int(0.9)
    return {
        "estimate": fit.params.to_numpy().ravel(),
        **{f"std_error_{source}": errors[source].to_numpy() for source in ("privacy", "sampling", "total")},
        "lower": interval["lower"].to_numpy(),
        "upper": interval["upper"].to_numpy(),
        "share": fit.shares["share"].to_numpy(),
        "share_se": fit.shares["total"].to_numpy(),
        "found_again": fit.stability["found_again"].to_numpy(),
        "significance": fit.stability["significance"].to_numpy(),
    }


def _scaler(case: Case, table: Any, options: dict[str, Any]) -> PrivateScaler:
    return PrivateScaler(table, case["columns"], **options)


def _scaler_numbers(fit: Any) -> dict[str, Any]:
    both = np.column_stack([fit.location, fit.scale]).ravel()
    errors = fit.std_errors[["location_total", "scale_total"]].to_numpy().ravel()
    return {"estimate": both, "std_error": errors, "quartiles": fit.quartiles.ravel()}


def _components(case: Case, table: Any, options: dict[str, Any]) -> PrivatePCA:
    return PrivatePCA(table, case["columns"], **options)


def _component_numbers(fit: Any) -> dict[str, Any]:
    return {
        "estimate": fit.components.ravel(),
        "variance": fit.explained_variance,
        "proportion": fit.explained_variance_ratio,
        "std_error": fit.std_errors["total"].to_numpy(),
        "angle": fit.angles,
        "location": fit.location,
        "radius": [fit.radius],
    }


def _pipeline(case: Case, table: Any, options: dict[str, Any]) -> PrivateClusteringPipeline:
    return PrivateClusteringPipeline(table, case["columns"], **options)


def _pipeline_numbers(fit: Any) -> dict[str, Any]:
    centres = fit.centres
    return {
        "estimate": centres.to_numpy().ravel(),
        "std_error": fit.std_errors.to_numpy().ravel(),
        "share": fit.clustering.shares["share"].to_numpy(),
        "loadings": fit.components.components.ravel(),
        "scores": fit.transform(centres).to_numpy().ravel(),
        "labels": fit.predict(centres).to_numpy(dtype=float),
    }


# Name in the table -> how the model is made, and which of its numbers are compared.
FAMILIES: dict[str, tuple[Callable[..., Any], Callable[[Any], dict[str, Any]]]] = {
    "modes": (_modes, _mode_numbers),
    "regression": (_regressions, _branch_numbers),
    "clusters": (_clusters, _cluster_numbers),
    "scale": (_scaler, _scaler_numbers),
    "components": (_components, _component_numbers),
    "pipeline": (_pipeline, _pipeline_numbers),
}


def hexadecimal(value: float) -> str:
    """Return a float as text that names its bits; the same for NaN of any payload."""
    return "nan" if value != value else float(value).hex()


if __name__ == "__main__":
    TABLE.write_text(json.dumps(cases(), indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(cases())} cases written to {TABLE.name}\n")
