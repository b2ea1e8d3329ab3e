"""The preview of a regression with groups: that of one level of the release that holds all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from pydpmode.errors import LowSignal
from pydpmode.models.modal_regression import ModalRegression
from pydpmode.results.grouped_surface import GroupedSurface

BOUNDS = {"x": (0.0, 1.0), "y": (-1.0, 4.0)}


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_preview_with_groups_is_of_one_level(adjacency: str) -> None:
    levels = ["one", "two", "three"]
    generator = np.random.default_rng(2)
    x = generator.uniform(0, 1, 3000)
    y = np.where(generator.random(3000) < 0.5, 1.0, 2.0) + 0.2 * generator.standard_normal(3000)
    rows = pd.DataFrame({"x": x, "y": y, "g": np.resize(levels, 3000)})
    guess = len(rows) if adjacency == "add_remove" else None
    study = dpm.PrivateData(
        rows, bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-5), adjacency=adjacency, n_guess=guess
    )
    model = ModalRegression(study, "y", "x", by="g", levels=levels)
    plan = model.preview(1.0)
    assert (plan.by, plan.n_levels, plan.n) == ("g", 3, len(rows))
    result = model.fit(1.0, seed=1)
    assert isinstance(result.surface, GroupedSurface)
    noises = [part.noise_sd for part in result.surface.surfaces]
    # Released numbers of records are off by a few: so is the noise of each level's density.
    assert plan.density_noise_sd == pytest.approx(float(np.median(noises)), rel=0.05)
    assert plan.total_noise_sd == pytest.approx(result.surface.surfaces[0].total_sd, rel=1e-6)
    text = str(plan)
    assert "Plan for x, y by g:" in text
    assert f"equal shares of 3 levels of g\n                  ({len(rows) / 3:,.0f} each" in text
    assert "a branch that holds this share of its level's records" in text


def test_preview_without_groups_says_nothing_of_levels() -> None:
    rows = pd.DataFrame({"x": [0.5] * 1000, "y": [1.0] * 1000})
    plan = ModalRegression(rows, "y", "x", bounds=BOUNDS).preview(1.0, 1e-5)
    assert (plan.by, plan.n_levels, plan.n_per_level) == (None, 1, 1000)
    assert "level" not in str(plan)
    assert "records         1,000; their released number would be off" in str(plan)


def test_preview_of_lines_with_groups_is_what_a_level_shows() -> None:
    generator = np.random.default_rng(1)
    x = generator.uniform(0, 1, 4000)
    y = 1.5 + 0.4 * generator.standard_normal(4000)
    rows = pd.DataFrame({"x": x, "y": y, "g": np.resize(["one", "two"], 4000)})
    model = ModalRegression(rows, "y", "x", bounds=BOUNDS, by="g", levels=["one", "two"], kind="linear")
    plan = model.preview(1.0, 1e-5, spread={"y": 0.4})
    fit = model.fit(1.0, 1e-5, seed=1)
    # The rate of false branches says nothing of a line.
    assert "False-branch rate" not in fit.summary().as_text()
    errors = fit.std_errors.xs("x", level=-1)
    assert plan.line is not None
    assert "share of its level's records" in str(plan)
    for source in ("privacy", "sampling"):
        told = float(plan.line.loc[1.0, f"slope x s.e. {source}"])
        assert float(errors[source].mean()) == pytest.approx(told, rel=0.25)


def test_a_level_without_a_line_is_drawn_without_one() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from pydpmode.results.regression_plots import regression_figure

    generator = np.random.default_rng(1)
    x = generator.uniform(0, 1, 3000)
    y = 1.5 + 0.4 * generator.standard_normal(3000)
    rows = pd.DataFrame({"x": x, "y": y, "g": "one"})
    model = ModalRegression(rows, "y", "x", bounds=BOUNDS, by="g", levels=["one", "none"], kind="linear")
    with pytest.warns(LowSignal, match="'none' holds"):
        fit = model.fit(1.0, 1e-5, seed=1)
    assert [line.converged for line in fit.linear] == [True, False]
    one, none = regression_figure(fit).axes[:2]
    assert any("modal line" in str(line.get_label()) for line in one.lines)
    assert not any("modal line" in str(line.get_label()) for line in none.lines)
