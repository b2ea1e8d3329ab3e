"""The whole of a modal regression: releases, predictions, groups, lines, files, and what is refused."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from pydpmode import errors
from pydpmode.models.modal_regression import ModalRegression
from pydpmode.results.grouped_surface import GroupedSurface
from pydpmode.results.regression_results import ModalRegressionResults

BOUNDS = {"x": (0, 1), "y": (-1, 2.5)}
CANARY = 0.123456789


@pytest.fixture(scope="module")
def waves() -> pd.DataFrame:
    return dpm.datasets.sinusoid(2400, seed=3)[0]


@pytest.fixture(scope="module")
def fitted(waves: pd.DataFrame) -> ModalRegressionResults:
    return ModalRegression(waves, "y", "x", bounds=BOUNDS).fit(epsilon=1.0, delta=1e-5, seed=1)


@pytest.fixture(scope="module")
def grouped(waves: pd.DataFrame) -> ModalRegressionResults:
    half = np.where(np.arange(len(waves)) % 2 == 0, "up", "down")
    frame = waves.assign(side=half, y=np.where(half == "up", waves.y, 1.5 - waves.y))
    model = ModalRegression(frame, "y", "x", bounds=BOUNDS, by="side", levels=["up", "down"])
    return model.fit(epsilon=2.0, delta=1e-5, seed=2)


# -- fitting


def test_branches_are_near_the_truth(fitted: ModalRegressionResults) -> None:
    truth = dpm.datasets.sinusoid(10, seed=1)[1]
    frame = fitted.branches[fitted.branches.certified]
    near = np.nanmin(np.abs(truth.at(frame.x) - frame.estimate.to_numpy()[:, None]), axis=1)
    assert np.sqrt(np.mean(near**2)) < 0.08
    assert set(frame.branch) == {1, 2}
    assert fitted.mass.loc[[1, 2]].to_numpy() == pytest.approx([0.5, 0.5], abs=0.06)
    assert fitted.residual_scale == pytest.approx(0.2, abs=0.08)


def test_tables_agree_with_each_other(fitted: ModalRegressionResults) -> None:
    frame = fitted.branches
    assert list(fitted.params.index.names) == ["x", "branch"]
    np.testing.assert_array_equal(fitted.params.to_numpy(), frame.estimate.to_numpy())
    squared = fitted.std_errors**2
    np.testing.assert_allclose(squared.privacy + squared.sampling, squared.total)
    wide, narrow = fitted.conf_int(0.99), fitted.conf_int(0.5)
    assert (wide.upper - wide.lower > narrow.upper - narrow.lower).all()
    np.testing.assert_allclose(fitted.conf_int(0.95).lower, frame.lower)


def test_intervals_cover_the_modes_of_the_smoothed_density() -> None:
    hits = []
    random = np.random.default_rng(5)
    for seed in range(60):
        x = random.uniform(size=2000)
        data = pd.DataFrame({"x": x, "y": 1 + 0.3 * random.standard_normal(2000)})
        model = ModalRegression(
            data, "y", "x", bounds={"x": (0, 1), "y": (-1, 3)}, bandwidth={"x": 0.2, "y": 0.25}
        )
        line = model.fit(epsilon=1.0, delta=1e-5, seed=seed).predict([0.5])
        hits.append(bool(line.lower.iloc[0] <= 1 <= line.upper.iloc[0]))
    assert np.mean(hits) > 0.85


def test_a_formula_and_names_are_the_same_model(waves: pd.DataFrame) -> None:
    options: dict[str, Any] = {"bounds": BOUNDS}
    first = ModalRegression(waves, "y", "x", **options).fit(1.0, 1e-5, seed=4)
    second = ModalRegression.from_formula("y ~ x", waves, **options).fit(1.0, 1e-5, seed=4)
    pd.testing.assert_frame_equal(first.branches, second.branches)
    assert first.formula == second.formula == "y ~ x"


def test_logarithms_and_expressions_are_shown_on_both_scales() -> None:
    random = np.random.default_rng(3)
    hours = random.uniform(10, 60, 3000)
    frame = pd.DataFrame(
        {"wage": np.exp(2 + 0.2 * random.standard_normal(3000)) * hours, "hours": hours, "age": hours}
    )
    bounds = {"wage": (10, 2000), "hours": (10, 60), "age": (10, 60)}
    plain = ModalRegression.from_formula("log(wage) ~ age", frame, bounds=bounds).fit(2.0, 1e-5, seed=1)
    shown = plain.branches
    np.testing.assert_allclose(shown.wage, np.exp(shown.estimate))
    np.testing.assert_allclose(shown.wage_lower, np.exp(shown.lower))
    rate = ModalRegression.from_formula("log(wage / hours) ~ I(age / 10)", frame, bounds=bounds)
    result = rate.fit(2.0, 1e-5, seed=1)
    assert result.formula == "log(wage / hours) ~ I(age / 10)"
    answer = result.predict(pd.DataFrame({"age": [35.0]}))
    assert answer.estimate.iloc[0] == pytest.approx(1.96, abs=0.25)


def test_two_and_three_predictors() -> None:
    random = np.random.default_rng(6)
    x = random.uniform(size=(6000, 3))
    y = 1 + x[:, 0] - x[:, 1] + 0.15 * random.standard_normal(6000)
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=y)
    bounds = {"a": (0, 1), "b": (0, 1), "c": (0, 1), "y": (-1, 3)}
    two = ModalRegression(frame, "y", ["a", "b"], bounds=bounds).fit(2.0, 1e-6, seed=1)
    answer = two.predict(pd.DataFrame({"b": [0.5, 0.3], "a": [0.5, 0.6]}))
    assert answer[answer.certified].estimate.to_numpy() == pytest.approx([1.0, 1.3], abs=0.12)
    assert {"a", "b"} <= set(two.branches.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.CoarseFeatures)
        model = ModalRegression(frame, "y", ["a", "b", "c"], bounds=bounds, n_features=1024)
        three = model.fit(4.0, 1e-6, seed=1)
    assert three.predict([[0.5, 0.5, 0.5]]).estimate.iloc[0] == pytest.approx(1.0, abs=0.2)


def test_a_ledger_guards_a_study_and_a_surface_costs_nothing(waves: pd.DataFrame, tmp_path: Path) -> None:
    study = dpm.PrivateData(waves, bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-5), ledger=tmp_path / "l.jsonl")
    model = ModalRegression(study, "y", "x")
    result = model.fit(epsilon=0.8, label="waves")
    assert model.released is result.surface
    assert "waves" in str(study.ledger)
    with pytest.raises(errors.BudgetExceeded):
        model.fit(epsilon=0.8)
    again = ModalRegression(result.surface, "y", "x").fit()
    pd.testing.assert_frame_equal(again.branches, result.branches)
    turned = ModalRegression(result.surface, "x", "y").fit()
    assert turned.formula == "x ~ y"
    with pytest.raises(errors.InvalidArgument, match="already released"):
        ModalRegression(result.surface, "y", "x").fit(epsilon=1.0)


def test_a_table_has_the_budget_of_its_first_fit(waves: pd.DataFrame) -> None:
    model = ModalRegression(waves, "y", "x", bounds=BOUNDS)
    model.fit(1.0, 1e-5, seed=1)
    with pytest.raises(errors.BudgetExceeded):
        model.fit(1.0, 1e-5, seed=1)


def test_preview_reads_nothing(waves: pd.DataFrame) -> None:
    study = dpm.PrivateData(waves, bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-5))
    plan = ModalRegression(study, "y", "x").preview(epsilon=0.5)
    assert "regression (public)" in str(plan)
    assert not study.ledger.entries()


def test_preview_speaks_of_branches_and_what_it_takes_to_find_them(waves: pd.DataFrame) -> None:
    model = ModalRegression(waves, "y", "x", bounds=BOUNDS)
    plan = model.preview(0.2, 1e-5, n=1500, spread={"y": 0.2})
    text = str(plan)
    assert "a branch that holds this share of the records" in text
    assert "mode" not in text
    assert plan.line is None
    assert plan.branches is not None
    assert list(plan.branches.columns) == [
        *("certified", "seen", "epsilon for .9", "n for .9", "height_z", "y s.e. privacy", "y s.e. sampling")
    ]
    half = plan.branches.loc[0.5]
    richer = model.preview(float(half["epsilon for .9"]), 1e-5, n=1500, spread={"y": 0.2}).branches
    longer = model.preview(0.2, 1e-5, n=int(half["n for .9"]), spread={"y": 0.2}).branches
    for table in (richer, longer):
        assert table is not None
        assert table.loc[0.5, "certified"] * table.loc[0.5, "seen"] == pytest.approx(0.9, abs=0.02)


def test_preview_is_what_a_fit_then_shows(waves: pd.DataFrame) -> None:
    model = ModalRegression(waves, "y", "x", bounds=BOUNDS)
    plan = model.preview(1.0, 1e-5, spread={"y": 0.2})
    result = model.fit(1.0, 1e-5, seed=3)
    np.testing.assert_allclose(plan.bandwidth.to_numpy(), result.facts.bandwidth)
    assert plan.density_noise_sd == pytest.approx(result.facts.noise_sd, rel=1e-3)
    assert plan.branches is not None
    found = result.branches[result.branches["certified"]]
    assert len(found)
    said = plan.branches.loc[0.5]
    assert float(said["certified"]) > 0.9
    for source in ("privacy", "sampling"):
        told = float(np.median(found[source]))
        assert told == pytest.approx(float(said[f"y s.e. {source}"]), rel=0.5)


def test_preview_of_a_line_has_its_standard_errors(waves: pd.DataFrame) -> None:
    model = ModalRegression(waves, "y", "x", bounds=BOUNDS, kind="linear")
    plan = model.preview(1.0, 1e-5, spread={"y": 0.4})
    assert plan.branches is None
    assert plan.line is not None
    assert "a level line" in str(plan)
    generator = np.random.default_rng(1)
    x = generator.uniform(*BOUNDS["x"], size=len(waves))
    middle = sum(BOUNDS["y"]) / 2
    level = pd.DataFrame({"x": x, "y": middle + 0.4 * generator.standard_normal(len(waves))})
    fit = ModalRegression(level, "y", "x", bounds=BOUNDS, kind="linear").fit(1.0, 1e-5, seed=1)
    errors = fit.std_errors.loc["x"]
    for source in ("privacy", "sampling"):
        assert float(plan.line.loc[1.0, f"slope x s.e. {source}"]) == pytest.approx(errors[source], rel=0.3)
    assert plan.line["slope x s.e. privacy"].is_monotonic_increasing


def test_a_line_says_what_its_errors_leave_out() -> None:
    generator = np.random.default_rng(1)
    x = generator.uniform(-2, 2, 5000)
    wide = {"x": (-2.5, 2.5), "y": (-12, 12)}
    for name, residuals in (
        ("normal", generator.standard_normal(5000)),
        ("gamma", generator.gamma(2, 1, 5000) - 1),
    ):
        table = pd.DataFrame({"x": x, "y": 1 + 2 * x + residuals})
        result = ModalRegression(table, "y", "x", bounds=wide, kind="linear").fit(1.0, 1e-5, seed=1)
        said = " ".join(result.summary().as_text().split())
        assert "bias that smoothing leaves in the intercept where errors are skewed" in said
        assert ("smoothing taken off" in said) == (name == "gamma") == result.linear[0].unsmoothed
        again = ModalRegressionResults.from_dict(result.to_dict())
        assert again.linear[0].unsmoothed == result.linear[0].unsmoothed


def test_noise_alone_certifies_nothing_and_says_so() -> None:
    random = np.random.default_rng(1)
    frame = pd.DataFrame(random.uniform(size=(60, 2)), columns=["x", "y"])
    model = ModalRegression(frame, "y", "x", bounds={"x": (0, 1), "y": (0, 1)})
    with pytest.warns(errors.LowSignal, match="certified"):
        result = model.fit(0.1, 1e-5, seed=1)
    assert not result.branches.certified.any()
    assert len(result.warnings) == 1
    assert "Not certified" in result.summary().as_text() or "No branch" in result.summary().as_text()


# -- prediction


def test_predictions_follow_the_index_and_blank_what_is_not_known(fitted: ModalRegressionResults) -> None:
    new = pd.DataFrame({"z": 0, "x": [0.5, np.nan, 1.5, 0.2]}, index=["d", "b", "c", "a"])
    answer = fitted.predict(new)
    assert list(dict.fromkeys(answer.index)) == ["d", "b", "c", "a"]
    assert answer.loc["d"].shape[0] == 2
    assert answer.loc["b", "status"] == "missing"
    assert np.isnan(answer.loc["b", "estimate"])
    assert answer.loc["c", "status"] == "outside the box"
    assert not answer.loc["c", "certified"]
    assert answer.row.tolist() == sorted(answer.row.tolist())
    turned = fitted.predict(new.iloc[::-1])
    pd.testing.assert_frame_equal(
        turned.loc[["a"]].drop(columns="row"), answer.loc[["a"]].drop(columns="row")
    )


def test_predictions_on_the_grid_are_the_branches(fitted: ModalRegressionResults) -> None:
    frame = fitted.branches
    expected = frame.sort_values(["x", "branch"]).estimate.to_numpy()
    x = frame[["x"]].drop_duplicates().sort_values("x")
    np.testing.assert_allclose(fitted.predict(x).estimate.to_numpy(), expected, atol=1e-9)


def test_no_rows_give_no_rows(fitted: ModalRegressionResults) -> None:
    empty = pd.DataFrame({"x": np.empty(0)}, index=pd.Index([], dtype=object))
    for answer in (fitted.predict(empty), fitted.predict_region(empty), fitted.mean_curve(empty)):
        assert len(answer) == 0


def test_arrays_and_wrong_new_data(fitted: ModalRegressionResults) -> None:
    assert fitted.predict(np.array([0.2, 0.5])).row.max() == 1
    with pytest.raises(errors.UnknownColumn):
        fitted.predict(pd.DataFrame({"z": [1.0]}))
    with pytest.raises(errors.NonNumericColumn):
        fitted.predict(pd.DataFrame({"x": ["a"]}))
    with pytest.raises(errors.InvalidArgument, match="level"):
        fitted.predict(np.array([0.2]), level=95)


def test_regions_cover_new_records(waves: pd.DataFrame, fitted: ModalRegressionResults) -> None:
    fresh = dpm.datasets.sinusoid(3000, seed=77)[0]
    regions = fitted.predict_region(fresh[["x"]], level=0.9)
    y = fresh.y.to_numpy()[regions.row]
    inside = (y >= regions.lower) & (y <= regions.upper)
    covered = inside.groupby(regions.row.to_numpy()).any()
    assert 0.85 < covered.mean() <= 1.0
    assert (regions.groupby("row").size() == 2).mean() > 0.5


def test_the_mean_curve_lies_between_the_branches(fitted: ModalRegressionResults) -> None:
    mean = fitted.mean_curve(pd.DataFrame({"x": [0.3, 0.5, 0.8]}))
    curve = 0.75 + 0.5 * np.sin(3 * np.pi * np.array([0.3, 0.5, 0.8]))
    np.testing.assert_allclose(mean["mean"], curve, atol=0.25)
    assert len(fitted.mean_curve()) == fitted.diagnostics["grid_points"]


# -- groups


def test_groups_have_their_own_branches_from_one_release(grouped: ModalRegressionResults) -> None:
    assert isinstance(grouped.surface, GroupedSurface)
    assert grouped.levels == ("up", "down")
    new = pd.DataFrame({"x": [0.5, 0.5], "side": ["up", "down"]})
    answer = grouped.predict(new)
    first = np.sort(answer[answer.row == 0].estimate)
    second = np.sort(answer[answer.row == 1].estimate)
    np.testing.assert_allclose(first, [-0.5, 1.0], atol=0.2)
    np.testing.assert_allclose(second, [0.5, 2.0], atol=0.2)
    assert grouped.privacy is not None
    assert grouped.privacy.sensitivity == pytest.approx(np.sqrt(2), abs=1e-2)
    assert "up, down" in grouped.summary().as_text()
    assert list(grouped.branches.columns[:3]) == ["side", "x", "branch"]
    edited = grouped.surface.to_dict()
    edited["surfaces"][1]["privacy"] |= {"epsilon": 0.01}
    with pytest.raises(errors.SurfaceFileError, match="different costs of one release"):
        GroupedSurface.from_dict(edited)
    assert grouped.mass.groupby(level=0).sum().to_numpy() == pytest.approx([1, 1], abs=0.15)


def test_an_unseen_level_gives_one_warning_and_nan(grouped: ModalRegressionResults) -> None:
    new = pd.DataFrame({"x": [0.5, 0.5, 0.5], "side": ["other", "else", None]})
    with pytest.warns(errors.UnknownLevel) as caught:
        answer = grouped.predict(new)
    assert len(caught) == 1
    assert answer.estimate.isna().all()
    assert answer.status.tolist() == ["unknown level", "unknown level", "missing"]
    with pytest.raises(errors.UnknownColumn, match="side"):
        grouped.predict(pd.DataFrame({"x": [0.5]}))


def test_rows_of_undeclared_levels_count_nothing(waves: pd.DataFrame) -> None:
    some = waves.assign(g=np.where(np.arange(len(waves)) < 600, "a", "z"))
    model = ModalRegression(some, "y", "x", bounds=BOUNDS, by="g", levels=["a", "b"])
    with pytest.warns(errors.LowSignal, match="level 'b' holds about"):
        surface = model.fit(4.0, 1e-5, seed=1).surface
    assert isinstance(surface, GroupedSurface)
    totals = [part.total for part in surface.surfaces]
    assert totals == pytest.approx([600, 0], abs=60)


# -- lines


def test_a_line_is_found_where_least_squares_is_biased() -> None:
    random = np.random.default_rng(2)
    x = random.uniform(size=4000)
    error = np.where(random.uniform(size=4000) < 0.6, 0.15, 0.0) * random.standard_normal(4000)
    y = 1 + 2 * x + error + np.where(random.uniform(size=4000) < 0.3, random.exponential(1.5, 4000), 0)
    frame = pd.DataFrame({"x": x, "y": y})
    model = ModalRegression.from_formula("y ~ x", frame, bounds={"x": (0, 1), "y": (0, 8)}, kind="linear")
    result = model.fit(1.0, 1e-5, seed=1)
    intercept = float(np.polyfit(x, y, 1)[1])
    assert abs(result.params["Intercept"] - 1) < 0.2 < intercept - 1
    assert result.params["x"] == pytest.approx(2.0, abs=0.2)
    assert (result.conf_int().lower < result.params).all()
    np.testing.assert_allclose(np.sqrt(np.diag(result.cov_params())), result.std_errors.total)
    assert "P>|z|" in result.summary().as_text()
    answer = result.predict(pd.DataFrame({"x": [0.5, 2.0]}))
    assert answer.estimate.iloc[0] == pytest.approx(result.params["Intercept"] + result.params["x"] / 2)
    assert answer.status.tolist() == ["ok", "outside the box"]


# -- the published mechanism


def test_the_published_mechanism_at_public_predictors(waves: pd.DataFrame, tmp_path: Path) -> None:
    model = ModalRegression(
        waves, "y", "x", bounds=BOUNDS, mechanism="grams", public_predictors=waves.x.to_numpy()
    )
    result = model.fit(2.0, 1e-5, seed=1)
    assert result.privacy is not None
    assert result.privacy.mechanism.startswith("pms")
    x = np.linspace(0.05, 0.95, 40)
    found = result.predict(x, certified_only=True).dropna(subset=["estimate"])
    truth = dpm.datasets.sinusoid(10, seed=1)[1].at(x[found.row])
    near = np.nanmin(np.abs(truth - found.estimate.to_numpy()[:, None]), axis=1)
    assert np.median(near) < 0.15
    assert found.row.nunique() > 30
    assert "public" in result.summary().as_text()
    result.save(tmp_path / "g.json")
    back = dpm.load_results(tmp_path / "g.json")
    assert isinstance(back, ModalRegressionResults)
    pd.testing.assert_frame_equal(back.branches, result.branches)
    with pytest.raises(errors.InvalidArgument, match="grams"):
        result.mean_curve()


# -- what may leave


def test_files_give_everything_back(
    fitted: ModalRegressionResults, grouped: ModalRegressionResults, tmp_path: Path
) -> None:
    for number, result in enumerate((fitted, grouped)):
        target = tmp_path / f"{number}.json.gz"
        result.save(target)
        back = dpm.load_results(target)
        assert isinstance(back, ModalRegressionResults)
        pd.testing.assert_frame_equal(back.branches, result.branches)
        pd.testing.assert_frame_equal(back.mean_curve(), result.mean_curve())
        assert back.summary().as_text() == result.summary().as_text()
        copy = pickle.loads(pickle.dumps(result))
        pd.testing.assert_frame_equal(copy.branches, result.branches)
    fitted.save(tmp_path / "small.json", surface=False)
    small = dpm.load_results(tmp_path / "small.json")
    assert isinstance(small, ModalRegressionResults)
    pd.testing.assert_frame_equal(small.predict([0.5]), fitted.predict([0.5]))
    with pytest.raises(errors.InvalidArgument, match="surface"):
        small.mean_curve()


@pytest.mark.parametrize("name", ["resid", "fittedvalues", "llf", "aic"])
def test_what_would_be_per_row_is_refused(fitted: ModalRegressionResults, name: str) -> None:
    with pytest.raises(AttributeError, match="private row"):
        getattr(fitted, name)


def test_pictures_show_branches_mean_and_mark(
    fitted: ModalRegressionResults, grouped: ModalRegressionResults
) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = fitted.plot()
    labels = ax.get_legend_handles_labels()[1]
    assert any("band" in label for label in labels)
    assert "mean of y" in labels
    assert "density of y given x, over its highest there" in labels
    assert any("NOT PRIVATE" in text.get_text() for text in ax.texts)
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 1), (-1, 2.5))
    first = grouped.plot()
    assert len(first.figure.axes) == 2
    own = pyplot.subplots()[1]
    assert fitted.plot(ax=own, certified_only=True) is own
    with pytest.raises(errors.InvalidArgument, match="ax"):
        grouped.plot(ax=own)
    with pytest.raises(errors.UnknownColumn):
        fitted.plot(predictor="z")
    pyplot.close("all")


# -- bad input

FRAME = pd.DataFrame({"x": [CANARY, 0.5, 0.7], "y": [0.1, 0.2, 0.3], "name": ["a", "b", "c"]})
GOOD = {"x": (0, 1), "y": (0, 1)}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, errors.MissingBounds),
        ({"bounds": {"x": (0, 1)}}, errors.UnknownColumn),
        ({"bounds": {"x": (1, 0), "y": (0, 1)}}, errors.InvalidBounds),
        ({"bounds": {**GOOD, "name": (0, 1)}}, errors.NonNumericColumn),
        ({"bounds": GOOD, "predictors": "y"}, errors.InvalidArgument),
        ({"bounds": GOOD, "predictors": []}, errors.InvalidArgument),
        ({"bounds": GOOD, "predictors": ["x"] * 4}, errors.InvalidArgument),
        ({"bounds": GOOD, "predictors": ["x", "x"]}, errors.InvalidArgument),
        ({"bounds": GOOD, "predictors": "z"}, errors.UnknownColumn),
        ({"bounds": GOOD, "response": "z"}, errors.UnknownColumn),
        ({"bounds": GOOD, "log": "z"}, errors.UnknownColumn),
        ({"bounds": GOOD, "bandwidth": "private"}, errors.InvalidArgument),
        ({"bounds": GOOD, "bandwidth": 0.0}, errors.InvalidArgument),
        ({"bounds": GOOD, "bandwidth": "silverman"}, errors.InvalidArgument),
        ({"bounds": GOOD, "kind": "cubic"}, errors.InvalidArgument),
        ({"bounds": GOOD, "false_branch_rate": 1.0}, errors.InvalidArgument),
        ({"bounds": GOOD, "by": "name"}, errors.InvalidArgument),
        ({"bounds": GOOD, "levels": ["a"]}, errors.InvalidArgument),
        ({"bounds": GOOD, "by": "name", "levels": []}, errors.InvalidArgument),
        ({"bounds": GOOD, "by": "name", "levels": "ab"}, errors.InvalidArgument),
        ({"bounds": GOOD, "by": "x", "levels": [0, 1]}, errors.InvalidArgument),
        ({"bounds": GOOD, "order": 3}, errors.InvalidArgument),
        ({"bounds": GOOD, "resolution": 1}, errors.InvalidArgument),
        ({"bounds": GOOD, "mechanism": "grams"}, errors.InvalidArgument),
        ({"bounds": GOOD, "mechanism": "dap"}, errors.InvalidArgument),
        ({"bounds": GOOD, "public_predictors": [1, 2, 3]}, errors.InvalidArgument),
    ],
)
def test_wrong_options_are_refused_without_a_row_value(
    options: dict[str, Any], error: type[Exception]
) -> None:
    given = {"response": "y", "predictors": "x", **options}
    with pytest.raises(error) as caught:
        ModalRegression(FRAME, **given)
    assert str(CANARY) not in str(caught.value)


def test_a_formula_in_the_place_of_the_response_is_pointed_to_its_door() -> None:
    with pytest.raises(errors.InvalidArgument, match=r"from_formula\('y ~ x', data"):
        ModalRegression(FRAME, "y ~ x", bounds=GOOD)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"by": "age", "levels": ["a", "b"]}, errors.UnknownColumn),
        ({"by": "z", "levels": ["a", "b"]}, errors.InvalidArgument),
        ({"bandwidth": [0.1, 0.1, 0.1]}, errors.InvalidArgument),
    ],
)
def test_what_only_the_release_can_see_is_refused_before_the_charge(
    options: dict[str, Any], error: type[Exception]
) -> None:
    study = dpm.PrivateData(FRAME.assign(z=1), bounds=GOOD, budget=dpm.Budget(1.0, 1e-6))
    with pytest.raises(error):
        ModalRegression(study, "y", "x", **options).fit(0.5)
    assert not study.ledger.entries()


@pytest.mark.parametrize(
    ("spend", "error"),
    [
        ({}, errors.InvalidBudget),
        ({"epsilon": 0}, errors.InvalidBudget),
        ({"epsilon": 1}, errors.InvalidBudget),
    ],
)
def test_there_is_no_default_budget(spend: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        ModalRegression(FRAME, "y", "x", bounds=GOOD).fit(**spend)


def test_odd_rows_are_input(waves: pd.DataFrame) -> None:
    odd = pd.concat(
        [waves, pd.DataFrame({"x": [np.nan, np.inf, -9.0, 0.5], "y": [0.0, 1.0, 2.0, -np.inf]})],
        ignore_index=True,
    )
    result = ModalRegression(odd, "y", "x", bounds=BOUNDS).fit(1.0, 1e-5, seed=1)
    assert np.isfinite(result.branches.estimate).all()


def made_up(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age = rng.uniform(18, 90, n)
    table = pd.DataFrame({"age": age, "sbp": 100 + 0.5 * age + rng.normal(0, 10, n)})
    return table.assign(same=5.0, sex=rng.choice(["m", "f"], n))


def test_a_predictor_that_does_not_vary_has_no_slope() -> None:
    bounds = {"same": (0, 10), "sbp": (80, 220)}
    for seed in range(3):
        model = dpm.ModalRegression.from_formula("sbp ~ same", made_up(), bounds=bounds, kind="linear")
        result = model.fit(epsilon=1.0, delta=1e-6, seed=seed)
        assert not result.linear[0].converged
        assert np.isnan(result.linear[0].standard_errors).all()
        assert "must not be used" in str(result.summary())


def test_a_level_that_is_not_in_the_data_is_said() -> None:
    bounds = {"age": (18, 90), "sbp": (80, 220)}
    model = dpm.ModalRegression.from_formula(
        "sbp ~ age", made_up(), bounds=bounds, by="sex", levels=["m", "fem"]
    )
    with pytest.warns(errors.LowSignal, match="level 'fem' holds about"):
        result = model.fit(epsilon=1.0, delta=1e-6, seed=1)
    assert any("'fem'" in text for text in result.warnings)


def test_names_without_bounds_get_a_hint() -> None:
    bounds = {"age": (18, 90), "sbp": (80, 220)}
    with pytest.raises(errors.UnknownColumn, match="did you mean 'age'"):
        dpm.ModalRegression.from_formula("sbp ~ agge", made_up(), bounds=bounds)
    with pytest.raises(errors.UnknownColumn, match="goes to by="):
        dpm.ModalRegression.from_formula("sbp ~ age + sex", made_up(), bounds=bounds)


def waits() -> pd.DataFrame:
    random = np.random.default_rng(6)
    age = random.uniform(15, 90, 3000)
    wait = pd.to_timedelta(20 + age / 10 + random.normal(0, 1, 3000), unit="min")
    return pd.DataFrame({"age": age, "wait": wait})


def test_a_response_of_durations_is_told_as_durations() -> None:
    bounds = {"age": (15, 90), "wait": (pd.Timedelta(0), pd.Timedelta(hours=1))}
    found = dpm.ModalRegression.from_formula("wait ~ age", waits(), bounds=bounds).fit(2.0, 1e-6, seed=1)
    there = found.predict({"age": [50.0]})
    assert abs(there["wait"][0] - pd.Timedelta(minutes=25)) < pd.Timedelta(minutes=1)
    assert there["wait"][0] == pd.Timedelta(seconds=there["estimate"][0]).round("us")
    assert there["wait_lower"][0] < there["wait"][0] < there["wait_upper"][0]
    assert found.mean_curve({"age": [50.0]})["wait"].dtype.kind == "m"
    told = found.summary().as_text()
    assert next(line for line in told.split("\n") if line.startswith("Residual scale")).split()[3] in (
        "min",
        "s",
    )


def test_the_summary_shows_round_predictor_values() -> None:
    bounds = {"age": (15, 90), "wait": (pd.Timedelta(0), pd.Timedelta(hours=1))}
    found = dpm.ModalRegression.from_formula("wait ~ age", waits(), bounds=bounds).fit(2.0, 1e-6, seed=1)
    lines = found.summary().as_text().split("\n")
    start = next(k for k, line in enumerate(lines) if line.startswith("age  branch"))
    shown = [line.split() for line in lines[start + 2 : start + 9]]
    assert [row[0] for row in shown] == ["20", "30", "40", "50", "60", "70", "80"]
    middle = found.predict({"age": [50.0]})["estimate"][0] / 60
    assert float(shown[3][2]) == pytest.approx(middle, abs=0.006)
