"""The door: every operation takes and returns plain data, and what goes wrong comes back as data."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pandas as pd
import pytest

from pydpmode import Budget, DensityModes, PrivateData, datasets
from r_bridge.arguments import plain
from r_bridge.door import dispatch, dispatch_bytes, handles, operations
from r_bridge.wire import decode, encode

BOX = {"x": [-8.0, 8.0], "y": [-8.0, 8.0]}


def table(n: int = 800) -> pd.DataFrame:
    data, _ = datasets.four_gaussians(n, seed=1)
    return data


def fitted(**fit: Any) -> dict[str, Any]:
    options = {"bounds": BOX, "columns": ["x", "y"]}
    reply = dispatch(
        "fit_density_modes",
        {"data": table(), "options": options, "fit": {"epsilon": 2.0, "delta": 1e-5, "seed": 1.0, **fit}},
    )
    assert reply["ok"], reply["error"]
    value: dict[str, Any] = reply["value"]
    return value


def test_a_fit_is_that_of_the_model() -> None:
    found = fitted()
    direct = DensityModes(table(), ["x", "y"], bounds={"x": (-8, 8), "y": (-8, 8)}).fit(
        epsilon=2.0, delta=1e-5, seed=1
    )
    assert found["estimates"]["estimate"].tolist() == direct.params.to_numpy().ravel().tolist()
    assert found["estimates"]["std_error"].tolist() == direct.std_errors["total"].tolist()
    assert found["summary"] == direct.summary().as_text()
    again = dispatch("describe", {"state": found["state"], "level": 0.5})["value"]
    assert again["estimates"]["lower"].tolist() == direct.conf_int(0.5)["lower"].tolist()


def test_every_reply_can_travel() -> None:
    state = fitted()["state"]
    surface = dispatch("surface_of", {"state": _surface(state), "columns": "x"})
    new = pd.DataFrame({"x": [0.0, 3.0], "y": [0.0, 3.0]})
    replies = [
        surface,
        dispatch("surface_at", {"state": _surface(state), "new": new}),
        dispatch("surface_grid", {"state": _surface(state), "points": 5.0}),
        dispatch("surface_sample", {"state": _surface(state), "n": 4.0, "seed": 1.0}),
        dispatch("surface_share", {"state": _surface(state), "lower": {"x": 0.0}, "upper": {"x": 8.0}}),
        dispatch("predict", {"state": state, "new": new, "options": {"method": "basin"}}),
        dispatch("covariance", {"state": state, "mode": 1.0, "source": "privacy"}),
        dispatch("render", {"state": state, "level": 0.9, "format": "csv"}),
        dispatch("trace", {"state": state}),
        dispatch("versions", {}),
        dispatch("signatures", {}),
        dispatch("dataset", {"name": "four_gaussians", "n": 10.0, "seed": 1.0}),
    ]
    for reply in replies:
        assert reply["ok"], reply["error"]
        decode(encode(reply))


def _surface(state: str) -> str:
    import json

    return json.dumps(json.loads(state)["surface"])


def test_errors_come_back_as_data_with_their_classes() -> None:
    reply = dispatch("budget", {"epsilon": -1.0, "delta": 1e-6})
    assert not reply["ok"]
    assert reply["error"]["classes"][:3] == ["InvalidBudget", "InvalidArgument", "PydpmodeError"]
    assert "epsilon" in reply["error"]["message"]
    assert dispatch("no such thing", {})["error"]["classes"][0] == "InvalidArgument"
    assert dispatch("budget", {"epsilon": float("nan")})["error"]["classes"][0] == "InvalidArgument"


def test_an_interrupt_comes_back_as_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DensityModes, "fit", interrupted)
    reply = dispatch("fit_density_modes", {"data": table(), "options": {"bounds": BOX}, "fit": {}})
    assert reply["error"]["classes"] == ["KeyboardInterrupt"]


def test_warnings_come_back_as_data() -> None:
    reply = dispatch(
        "fit_density_modes",
        {"data": table(), "options": {"bounds": BOX}, "fit": {"epsilon": 1.0, "delta": 0.1, "seed": 1}},
    )
    assert [w["classes"][:2] for w in reply["warnings"]] == [["WeakDelta", "PydpmodeWarning"]]


def test_bytes_never_raise() -> None:
    for content in (b"", b"B\n", encode(1), encode(["echo", 1])):
        reply = plain(decode(dispatch_bytes(content)))
        assert reply["ok"] is False
        assert reply["error"]["message"]
    reply = plain(decode(dispatch_bytes(encode(["echo", {"value": [1.5, 2.5]}]))))
    assert reply["ok"] is True
    assert reply["value"] == [1.5, 2.5]


def test_a_handle_is_good_in_its_session_only_and_is_forgotten() -> None:
    args = {"data": table(), "bounds": BOX, "epsilon": 1.0, "delta": 1e-5, "options": {}}
    opened = dispatch("open", args)["value"]
    handle = {"id": opened["id"], "session": opened["session"]}
    assert dispatch("study", handle)["value"]["n_units"] == 800
    assert dispatch("study", {**handle, "session": "other"})["error"]["classes"][0] == "StaleHandle"
    study = handles.find(**_renamed(handle))
    assert isinstance(study, PrivateData)
    fit = {"epsilon": 0.5, "label": "one"}
    options = {"columns": "x"}
    assert dispatch("fit_density_modes", {"data": handle, "options": options, "fit": fit})["ok"]
    assert dispatch("ledger", handle)["value"]["table"]["label"].tolist() == ["one"]
    refused = dispatch("fit_density_modes", {"data": handle, "options": options, "fit": {"epsilon": 9.0}})
    assert refused["error"]["classes"][0] == "BudgetExceeded"
    dispatch("close", handle)
    assert dispatch("study", handle)["error"]["classes"][0] == "StaleHandle"
    dispatch("close", handle)


def _renamed(handle: dict[str, str]) -> dict[str, str]:
    return {"name": handle["id"], "session": handle["session"]}


def test_no_row_is_in_a_reply() -> None:
    data = table()
    canary = 7.123456789012345
    data.loc[0, "x"] = canary
    reply = dispatch(
        "fit_density_modes",
        {"data": data, "options": {"bounds": BOX}, "fit": {"epsilon": 1.0, "delta": 1e-5}},
    )
    import struct

    assert struct.pack("<d", canary) not in encode(reply)
    assert repr(canary).encode() not in pickle.dumps(reply)


def test_every_operation_has_plain_parameters() -> None:
    assert len(operations()) == len(set(operations()))
    for name in operations():
        reply = dispatch(name, {"no_such_argument": 1})
        assert reply["error"]["classes"][0] == "TypeError", name


def test_budget_parts_add_up() -> None:
    parts = dispatch("budget_split", {"epsilon": 2.0, "delta": 1e-6, "shares": [1.0, 3.0]})["value"]
    assert [p["epsilon"] for p in parts] == [b.epsilon for b in Budget(2.0, 1e-6).split(1, 3)]


def test_the_list_of_signatures_is_that_of_the_models() -> None:
    found = dispatch("signatures", {})["value"]
    assert found["DensityModes"] == list(inspect.signature(DensityModes).parameters)
