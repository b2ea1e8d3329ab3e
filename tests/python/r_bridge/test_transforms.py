"""Scalers, principal components and pipelines at the door, without R."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pydpmode import PrivateClusteringPipeline, PrivatePCA, PrivateScaler, datasets
from r_bridge.door import dispatch
from r_bridge.transforms import describe, from_state

BOX = {"x": [-8.0, 8.0], "y": [-8.0, 8.0]}
BOUNDS = {"x": (-8.0, 8.0), "y": (-8.0, 8.0)}
FIT: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "seed": 1.0}


def points(n: int = 800) -> pd.DataFrame:
    return datasets.four_gaussians(n, seed=1)[0]


def done(operation: str, **args: Any) -> Any:
    reply = dispatch(operation, args)
    assert reply["ok"], reply["error"]
    return reply["value"]


def test_a_scaler_at_the_door_is_the_scaler_in_python() -> None:
    found = done("fit_scaler", data=points(), options={"bounds": BOX}, fit=FIT)
    direct = PrivateScaler(points(), bounds=BOUNDS).fit(epsilon=2.0, delta=1e-5, seed=1)
    assert found["estimates"]["location"].tolist() == direct.location.tolist()
    assert found["estimates"]["scale_total"].tolist() == direct.std_errors["scale_total"].tolist()
    assert json.loads(found["state"]) == direct.to_dict()
    assert found["privacy"]["epsilon"] == 2.0
    assert len(found["privacy"]["releases"]) == 1


def test_a_released_scaler_centres_and_scales_components() -> None:
    scaler = done("fit_scaler", data=points(), options={"bounds": BOX}, fit=FIT)
    given = {"scaler state": scaler["state"]}
    options = {"bounds": BOX, "n_components": 2.0, "radius": 0.7, "centre": given, "scale": given}
    found = done("fit_principal_components", data=points(), options=options, fit=FIT)
    assert found["location"].tolist() == scaler["estimates"]["location"].tolist()
    assert found["scale"].tolist() == scaler["estimates"]["scale"].tolist()
    wrong = {**options, "centre": {"scaler state": found["state"]}}
    reply = dispatch("fit_principal_components", {"data": points(), "options": wrong, "fit": FIT})
    assert reply["error"]["classes"][0] == "InvalidArgument"


def test_points_go_there_and_back() -> None:
    new = pd.DataFrame({"x": [1.0, -2.0], "y": [0.5, 3.0]}, index=[7, 8])
    options = {"bounds": BOX, "n_components": 2, "radius": 0.7}
    found = done("fit_principal_components", data=points(), options=options, fit=FIT)
    direct = PrivatePCA(points(), bounds=BOUNDS, n_components=2, radius=0.7)
    scores = done("transform", state=found["state"], new=new)
    expected = direct.fit(epsilon=2.0, delta=1e-5, seed=1).transform(new)
    assert np.array_equal(scores.to_numpy(), expected.to_numpy())
    assert list(scores.index) == [0, 1]
    back = done("transform", state=found["state"], new=scores, inverse=True)
    np.testing.assert_allclose(back.to_numpy(), new.to_numpy(), atol=1e-12)


def test_a_pipeline_is_described_with_its_parts() -> None:
    model = PrivateClusteringPipeline(points(), bounds=BOUNDS, n_components=2, n_clusters=4)
    direct = model.fit(epsilon=2.0, delta=1e-5, seed=1)
    options = {"bounds": BOX, "n_components": 2, "n_clusters": 4.0}
    found = done("fit_clustering_pipeline", data=points(), options=options, fit=FIT)
    assert found["estimates"]["estimate"].tolist() == direct.centres.to_numpy().ravel().tolist()
    assert found["components"]["kind"] == "principal_components"
    assert found["clusters"]["kind"] == "modal_clustering"
    assert found["privacy"]["releases"]["epsilon"].tolist() == [one.epsilon for one in direct.privacy]
    assert found["n_records"] == direct.clustering.facts.n_records
    narrow = done("describe", state=found["state"], level=0.5)
    widths = [d["clusters"]["estimates"].eval("upper - lower") for d in (narrow, found)]
    assert (widths[0] < widths[1]).all()
    labels = done("predict", state=found["state"], new=points(20), options={})
    assert labels.tolist() == direct.predict(points(20)).tolist()


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_results_are_written_and_read(ending: str, tmp_path: Path) -> None:
    found = done("fit_scaler", data=points(), options={"bounds": BOX}, fit=FIT)
    path = str(tmp_path / f"scaler{ending}")
    done("write", state=found["state"], path=path)
    again = done("read", path=path)
    assert again["state"] == found["state"]
    assert again["kind"] == "scaler"


def test_summaries_are_rendered_in_every_format() -> None:
    state = done("fit_scaler", data=points(), options={"bounds": BOX}, fit=FIT)["state"]
    text = done("render", state=state, level=0.9, format="text")
    assert text == describe(from_state(state))["summary"]
    assert "<table" in done("render", state=state, level=0.9, format="html")


def test_other_results_are_no_transforms() -> None:
    modes = done("fit_density_modes", data=points(), options={"columns": ["x"], "bounds": BOX}, fit=FIT)
    reply = dispatch("transform", {"state": modes["state"], "new": points(5)})
    assert reply["error"]["classes"][0] == "InvalidArgument"
    reply = dispatch("describe", {"state": '{"format": "pydpmode scaler", "version": 99}'})
    assert reply["error"]["classes"][0] == "SurfaceFileError"
