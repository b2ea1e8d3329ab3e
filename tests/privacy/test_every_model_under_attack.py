"""Every model through its public door: no row in what comes out, nothing that differs between neighbours."""

from __future__ import annotations

import io
import json
import logging
import pickle
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from audits import onlooker
from pydpmode.errors import PydpmodeError, PydpmodeWarning

N = 600
CANARY_ROW = {"x": 7.182818284590452, "y": 2.685452001065306, "g": 2}
BOUNDS = {"x": (0.0, 10.0), "y": (0.0, 5.0)}
PLACE = 17
# What one row may hold instead, as far as a table of numbers allows it.
OTHER_ROWS: dict[str, dict[str, float]] = {
    "another": {"x": 2.0, "y": 4.5},
    "missing": {"x": np.nan, "y": np.nan},
    "far outside": {"x": 1e300, "y": -1e300},
    "infinite": {"x": np.inf, "y": -np.inf},
    "of another level": {"g": 1},
    "of no level": {"g": 9},
}
Job = Callable[[dpm.PrivateData, pd.DataFrame], Any]
SPEND: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-3, "seed": 4}


def table() -> pd.DataFrame:
    generator = np.random.default_rng(2)
    x = generator.uniform(1, 9, N)
    frame = pd.DataFrame({"x": x, "y": 1 + x / 5 + generator.normal(0, 0.3, N), "g": np.arange(N) % 3})
    frame.loc[PLACE] = CANARY_ROW
    return frame


def _public(frame: pd.DataFrame) -> np.ndarray:
    """Predictors of partial mean shift are public: the attacked row keeps its own."""
    x = frame["x"].to_numpy(copy=True)
    x[PLACE] = 4.0
    return x


JOBS: dict[str, Job] = {
    "modes": lambda s, f: dpm.DensityModes(s, columns=["x", "y"]).fit(**SPEND),
    "modes, reference bandwidth": lambda s, f: dpm.DensityModes(
        s, columns=["x"], bandwidth="reference", order=4
    ).fit(**SPEND),
    "modes, private bandwidth": lambda s, f: dpm.DensityModes(s, columns=["x"], bandwidth="private").fit(
        **SPEND
    ),
    "modes, grams": lambda s, f: dpm.DensityModes(
        s, columns=["x", "y"], mechanism="grams", grams=dpm.GramsOptions(T=2, k=4)
    ).fit(**SPEND),
    "regression": lambda s, f: dpm.ModalRegression.from_formula("y ~ x", s).fit(**SPEND),
    "regression of expressions": lambda s, f: dpm.ModalRegression.from_formula("I(y + 1) ~ sqrt(x)", s).fit(
        **SPEND
    ),
    "regression by levels": lambda s, f: dpm.ModalRegression.from_formula(
        "y ~ x", s, by="g", levels=[0, 1, 2]
    ).fit(**SPEND),
    "line": lambda s, f: dpm.ModalRegression.from_formula("y ~ x", s, kind="linear").fit(**SPEND),
    "partial mean shift": lambda s, f: dpm.ModalRegression.from_formula(
        "y ~ x", s, mechanism="grams", public_predictors=_public(f), grams=dpm.GramsOptions(T=2, k=4)
    ).fit(**SPEND),
    "clusters": lambda s, f: dpm.ModalClustering(s, ["x", "y"], n_clusters=2).fit(**SPEND),
    "clusters, number found": lambda s, f: dpm.ModalClustering(s, ["x", "y"]).fit(**SPEND),
    "clusters, modes": lambda s, f: dpm.ModalClustering(s, ["x", "y"], centres="modes").fit(**SPEND),
    "scaler": lambda s, f: dpm.PrivateScaler(s).fit(epsilon=1.0, delta=1e-3, seed=4),
    "principal components": lambda s, f: dpm.PrivatePCA(s, n_components=1, radius=2.0).fit(**SPEND),
    "pipeline": lambda s, f: dpm.PrivateClusteringPipeline(s, n_components=2, n_clusters=2).fit(**SPEND),
}


def opened(frame: pd.DataFrame, ledger: Path) -> dpm.PrivateData:
    onlooker.remove_ledger(ledger)
    return dpm.PrivateData(frame, bounds=BOUNDS, budget=dpm.Budget(2.0, 1e-2), ledger=ledger)


def assert_clean(blob: bytes, where: str) -> None:
    assert not onlooker.shows(blob, (CANARY_ROW["x"], CANARY_ROW["y"])), where


def shown(res: Any, folder: Path) -> dict[str, bytes]:
    """Return everything that a result can be turned into, as bytes."""
    blobs = {"pickle": pickle.dumps(res), "repr": repr(res).encode()}
    summary = res.summary()
    forms = ("as_text", "as_html", "as_latex", "as_csv")
    blobs |= {form: getattr(summary, form)().encode() for form in forms if hasattr(summary, form)}
    blobs["summary"] = str(summary).encode()
    if hasattr(res, "to_dict"):
        blobs["json"] = json.dumps(res.to_dict()).encode()
    if hasattr(res, "save"):
        res.save(folder / "r.json")
        blobs["file"] = (folder / "r.json").read_bytes()
    if hasattr(res, "plot"):
        res.plot()
        drawn = io.BytesIO()
        plt.savefig(drawn, format="svg")
        plt.close("all")
        blobs["picture"] = drawn.getvalue()
    return blobs


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
def test_nothing_that_comes_out_holds_a_row(job: str, tmp_path: Path, caplog: Any) -> None:
    frame = table()
    study = opened(frame, tmp_path / "l.jsonl")
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        res = JOBS[job](study, frame)
        blobs = shown(res, tmp_path)
    blobs["warnings"] = "".join(str(w.message) for w in caught).encode()
    blobs["log"] = caplog.text.encode()
    blobs["ledger"] = (tmp_path / "l.jsonl").read_bytes() + repr(study).encode()
    for where, blob in blobs.items():
        assert_clean(blob, f"{job}: {where}")
    for array in onlooker.reachable_arrays(res):
        assert_clean(array.tobytes(), f"{job}: an array of shape {array.shape}")


def test_the_search_finds_what_is_there() -> None:
    for hidden in ({"kept": table()["x"].to_numpy()}, {"kept": [table()["y"].to_numpy()]}):
        found = b"".join(array.tobytes() for array in onlooker.reachable_arrays(hidden))
        with pytest.raises(AssertionError):
            assert_clean(found, "an array")
    with pytest.raises(AssertionError):
        assert_clean(table().to_csv().encode(), "a file")


def outline(value: Any) -> Any:
    """Return names and types of a result's parts: what no released number decides."""
    if isinstance(value, dict):
        return {str(key): outline(part) for key, part in value.items()}
    return type(value).__name__


@pytest.mark.parametrize("row", OTHER_ROWS)
@pytest.mark.parametrize("job", JOBS)
def test_what_a_call_shows_is_the_same_for_neighbours(
    job: str, row: str, tmp_path: Path, caplog: Any
) -> None:
    """Errors, what is charged, log lines, progress, the ledger's text and the sizes of the release."""
    texts = []
    for change in ({}, OTHER_ROWS[row]):
        frame = table()
        for name, value in change.items():
            frame[name] = frame[name].astype(float) if name != "g" else frame[name]
            frame.loc[PLACE, name] = value
        texts.append(_onlooker(frame, job, tmp_path / "l.jsonl", caplog))
    assert texts[0] == texts[1]
    assert "error" not in json.loads(texts[0])


def _onlooker(frame: pd.DataFrame, job: str, ledger: Path, caplog: Any) -> str:
    caplog.clear()
    seen: dict[str, Any] = {}
    with (
        onlooker.progress_told() as told,
        caplog.at_level(logging.DEBUG),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        try:
            study = opened(frame, ledger)
            res = JOBS[job](study, frame)
            seen |= {"type": type(res).__name__, "outline": outline(res.to_dict()), "after": repr(study)}
        except PydpmodeError as problem:
            seen["error"] = "".join(traceback.format_exception_only(problem))
    # Warnings of the package follow from what was released; any other would come from the rows.
    seen["warnings"] = [str(w.message) for w in caught if not issubclass(w.category, PydpmodeWarning)]
    seen["log"] = [(r.name, r.levelname, r.getMessage()) for r in caplog.records if "pydpmode" in r.name]
    seen["progress"] = told
    seen["ledger"] = onlooker.ledger_text(ledger)
    return json.dumps(seen, default=repr, sort_keys=True)
