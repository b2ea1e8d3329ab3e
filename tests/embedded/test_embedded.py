"""The R functions in an R that is embedded in Python: results, errors, warnings and interrupts both ways."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pydpmode import (
    DensityModes,
    PrivateClusteringPipeline,
    PrivateData,
    PrivatePCA,
    PrivateScaler,
    datasets,
    errors,
)
from pydpmode.results.results import DensityModesResults
from r_bridge import Bridge, RError, from_r, to_r

BOX = {"x": (-8.0, 8.0), "y": (-8.0, 8.0)}


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as at a terminal: in a job in the background it may be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def points(n: int = 800) -> pd.DataFrame:
    return datasets.four_gaussians(n, seed=1)[0]


def in_r(bridge: Bridge, **options: Any) -> Any:
    bounds = {name: list(pair) for name, pair in BOX.items()}
    given = {"epsilon": 2.0, "delta": 1e-5, "seed": 1, **options}
    return bridge.call("dp_modes", bridge.eval("~ x + y"), points(), bounds=bounds, **given)


def in_python() -> DensityModesResults:
    return DensityModes(points(), ["x", "y"], bounds=BOX).fit(epsilon=2.0, delta=1e-5, seed=1)


def test_reticulate_is_not_needed(bridge: Bridge) -> None:
    in_r(bridge)
    assert from_r(bridge.eval("dpmode:::session$bridge")) == "rpy2"
    assert from_r(bridge.eval("isNamespaceLoaded('reticulate') && reticulate::py_available()")) is False


def test_a_fit_in_r_is_the_fit_in_python(bridge: Bridge) -> None:
    fit, direct = in_r(bridge), in_python()
    assert tuple(fit.rclass) == ("dp_modes", "dp_result")
    found = from_r(fit)
    assert isinstance(found, DensityModesResults)
    pd.testing.assert_frame_equal(found.conf_int(), direct.conf_int(), check_exact=True)


def test_a_python_result_is_an_r_object(bridge: Bridge) -> None:
    direct = in_python()
    fit = to_r(direct)
    assert np.array_equal(np.array(from_r(bridge.call("coef", fit))), direct.params.to_numpy())
    intervals = np.array(from_r(bridge.call("confint", fit, level=0.9)))
    assert np.array_equal(intervals, direct.conf_int(0.9)[["lower", "upper"]].to_numpy())
    assert from_r(bridge.call("tidy", fit))["estimate"].tolist() == direct.params.to_numpy().ravel().tolist()
    assert from_r(to_r(direct)).to_dict() == direct.to_dict()
    assert direct.surface is not None
    assert from_r(to_r(direct.surface)).to_dict() == direct.surface.to_dict()


def test_a_result_that_is_not_private_does_not_travel(bridge: Bridge) -> None:
    from pydpmode import KernelSurface

    surface = KernelSurface.from_points(points(200).to_numpy(), 1.0, -8.0, 8.0)
    result = DensityModes(surface).fit()
    with pytest.raises(errors.InvalidArgument, match="not private"):
        to_r(result)


def test_data_frames_keep_what_other_converters_lose(bridge: Bridge) -> None:
    table = from_r(
        bridge.eval(
            "data.frame(i = c(1L, NA), s = c('a', NA), d = as.Date(c('2020-02-29', NA)), l = c(TRUE, NA))"
        )
    )
    assert table["i"].tolist()[0] == 1.0
    assert math.isnan(table["i"][1])
    assert table["s"].tolist() == ["a", None]
    assert table["d"][0] == pd.Timestamp("2020-02-29")
    assert table.isna().sum().tolist() == [1, 1, 1, 1]
    sent = bridge.call_object(bridge.eval("function(x) vapply(x, function(v) sum(is.na(v)), 0)"), table)
    assert from_r(sent) == {"i": 1.0, "s": 1.0, "d": 1.0, "l": 1.0}
    assert from_r(bridge.eval("2^40")) == 2.0**40


def test_errors_keep_their_python_class(bridge: Bridge) -> None:
    with pytest.raises(errors.InvalidBudget, match="epsilon"):
        in_r(bridge, epsilon=-1.0)
    with pytest.raises(errors.PydpmodeError, match="no residuals"):
        bridge.call("residuals", in_r(bridge))
    with pytest.raises(RError, match="plain R") as caught:
        bridge.eval("stop('plain R')")
    assert "simpleError" in caught.value.r_classes


def test_warnings_keep_their_python_class(bridge: Bridge) -> None:
    with pytest.warns(errors.WeakDelta, match="1/n"):
        in_r(bridge, delta=0.1)
    with pytest.warns(UserWarning, match="plain R"):
        bridge.eval("warning('plain R')")


def test_r_code_catches_them_as_conditions(bridge: Bridge) -> None:
    code = "tryCatch(dpmode::dp_budget(-1, 1e-6), dpmode_InvalidBudget = function(e) class(e))"
    assert from_r(bridge.eval(code))[-3:] == ["dpmode_error", "error", "condition"]


def test_a_private_table_opened_in_r_is_guarded_in_python(bridge: Bridge) -> None:
    budget = bridge.call("dp_budget", 1.0, 1e-5)
    study = bridge.call("private_data", points(), bounds={"x": [-8.0, 8.0]}, budget=budget)
    bridge.call("dp_modes", bridge.eval("~ x"), study, epsilon=0.4, label="from R")
    found = from_r(study)
    assert isinstance(found, PrivateData)
    DensityModes(found, ["x"]).fit(epsilon=0.4, label="from Python")
    assert from_r(bridge.call("ledger", study))["label"].tolist() == ["from R", "from Python"]


def eval_interrupted(bridge: Bridge, code: str, after: float) -> None:
    threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    bridge.eval(code)


# Many moments: between two sleeps R calls back into Python, where an exception would be lost.
@pytest.mark.parametrize("code", ["repeat Sys.sleep(0.003)", "repeat 1"])
def test_ctrl_c_reaches_r_code(bridge: Bridge, interruptible: None, code: str) -> None:
    for moment in range(20):
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            eval_interrupted(bridge, code, 0.05 + moment / 1000)
        assert time.monotonic() - start < 10
        assert from_r(bridge.eval("1 + 1")) == 2.0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_r_code_may_handle_an_interrupt(bridge: Bridge, interruptible: None) -> None:
    code = "{ tools::pskill(Sys.getpid(), tools::SIGINT); repeat Sys.sleep(0.003) }"
    handled = bridge.eval(f"tryCatch({code}, interrupt = function(e) 'handled')")
    assert from_r(handled) == "handled"


def test_ctrl_c_reaches_python_code_below_r(
    bridge: Bridge, interruptible: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(self: object, **_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)

    monkeypatch.setattr(DensityModes, "fit", endless)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        in_r(bridge)
    assert time.monotonic() - start < 10


def test_child_processes_have_their_own_libraries(bridge: Bridge) -> None:
    assert "R/lib" not in os.environ.get("LD_LIBRARY_PATH", "")


def test_released_transforms_travel_both_ways(bridge: Bridge) -> None:
    table, given = points(), {"epsilon": 2.0, "delta": 1e-5, "seed": 1}
    scaler = PrivateScaler(table, bounds=BOX).fit(**given)
    components = PrivatePCA(table, bounds=BOX, n_components=2, radius=0.7).fit(**given)
    pipeline = PrivateClusteringPipeline(table, bounds=BOX, n_components=2, n_clusters=4).fit(**given)
    classes = ("dp_scale", "dp_pca", "dp_pca_clusters")
    for result, name in zip((scaler, components, pipeline), classes, strict=True):
        there = to_r(result)
        assert tuple(there.rclass) == (name, "dp_result")
        back = from_r(there)
        assert type(back) is type(result)
        assert back.to_dict() == result.to_dict()
    loadings = np.array(from_r(bridge.call("coef", to_r(components))))
    assert np.array_equal(loadings, components.components)
    # A scaler that Python released is the centre of components in R.
    bounds = {column: list(pair) for column, pair in BOX.items()}
    options = {"n_components": 1, "radius": 0.7, "centre": to_r(scaler), **given}
    in_r_too = bridge.call("dp_pca", bridge.eval("~ x + y"), table, bounds=bounds, **options)
    assert from_r(in_r_too).location.tolist() == scaler.location.tolist()
