"""ClusteringResults: tables, files, refusals, summary and picture."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import pydpmode as dpm
from pydpmode import errors
from pydpmode.results.clustering_plots import clusters_figure
from pydpmode.results.clustering_results import ClusteringResults
from pydpmode.results.plot_files import save_plot

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def result() -> Any:
    generator = np.random.default_rng(1)
    wage = np.exp(np.where(np.arange(2500) % 2, 9.0, 11.0) + 0.3 * generator.normal(size=2500))
    frame = pd.DataFrame({"age": generator.normal(45, 8, 2500), "wage": wage})
    model = dpm.ModalClustering(
        frame, bounds={"age": (10, 80), "wage": (1000, 300_000)}, log="wage", n_clusters=2
    )
    return model.fit(epsilon=2.0, delta=1e-6, seed=1, label="ages and wages")


@pytest.fixture(scope="module")
def many() -> Any:
    generator = np.random.default_rng(1)
    x = np.repeat(2.0 * np.eye(4)[:2], 800, axis=0) + 0.5 * generator.normal(size=(1600, 4))
    return dpm.ModalClustering(x, bounds=[(-4, 4)] * 4, n_clusters=2).fit(epsilon=2.0, delta=1e-6, seed=1)


def test_tables(result: Any) -> None:
    assert result.columns == ("age", "log(wage)")
    assert list(result.centres.index) == [1, 2]
    pd.testing.assert_frame_equal(result.params, result.centres)
    assert list(result.std_errors.columns) == ["privacy", "sampling", "total"]
    total = np.hypot(result.std_errors["privacy"], result.std_errors["sampling"])
    assert result.std_errors["total"].to_numpy() == pytest.approx(total.to_numpy())
    interval = result.conf_int(0.9)
    half = (interval["upper"] - interval["lower"]) / 2
    assert (half / result.std_errors["total"]).to_numpy() == pytest.approx(1.6449, abs=1e-3)
    assert result.mass.sum() == pytest.approx(1)
    original = result.centres_original
    assert list(original.columns) == ["age", "wage"]
    assert np.log(original["wage"]).to_numpy() == pytest.approx(result.centres["log(wage)"].to_numpy())
    assert np.sqrt(result.cov_params(1).loc["age", "age"]) == pytest.approx(
        result.std_errors.loc[(1, "age"), "total"]
    )
    assert result.spread.loc["age", "age"] > 0
    changed = result.centres
    changed.iloc[0, 0] = np.nan
    assert not result.centres.isna().any().any()


def test_files_and_copies_hold_every_float(result: Any, tmp_path: Any) -> None:
    for name in ("c.json", "c.json.gz"):
        result.save(tmp_path / name)
        again = dpm.load_results(tmp_path / name)
        assert isinstance(again, ClusteringResults)
        pd.testing.assert_frame_equal(again.centres, result.centres, check_exact=True)
        pd.testing.assert_frame_equal(again.std_errors, result.std_errors, check_exact=True)
        assert again.to_dict() == result.to_dict()
        assert again.summary().as_text() == result.summary().as_text()
    assert copy.deepcopy(result) is result
    assert pickle.loads(pickle.dumps(result)).to_dict() == result.to_dict()
    bare = ClusteringResults.from_dict(result.to_dict(surface=False))
    with pytest.raises(errors.InvalidArgument, match="surface"):
        bare.predict(pd.DataFrame({"age": [40.0], "wage": [9000.0]}), method="basin")
    damaged = result.to_dict()
    damaged["centres_kind"] = "means"
    with pytest.raises(errors.SurfaceFileError, match="damaged"):
        ClusteringResults.from_dict(damaged)
    with pytest.raises(errors.SurfaceFileError, match="density_modes"):
        dpm.load_results(tmp_path / "c.json").from_dict({**result.to_dict(), "kind": "density_modes"})


def test_predict_takes_original_columns(result: Any) -> None:
    rows = pd.DataFrame({"wage": [np.exp(9.0), np.exp(11.0), np.nan], "age": [45.0, 45.0, 45.0]})
    labels = result.predict(rows)
    near = (result.centres["log(wage)"] - 9.0).abs().idxmin()
    assert labels[0] == near
    assert labels[1] == 3 - near
    assert labels[2] is pd.NA
    assert result.predict(rows.iloc[:2], method="basin").tolist() == labels[:2].tolist()
    assert result.predict(rows.iloc[:2][["age", "wage"]].to_numpy()).tolist() == labels[:2].tolist()


def test_shapes_of_clusters(result: Any, many: Any) -> None:
    for k in range(1, result.n_clusters + 1):
        pd.testing.assert_frame_equal(result.shapes.loc[k], result.spread, check_names=False)
    own = many.shapes.to_numpy().reshape(2, 4, 4)
    assert (np.linalg.eigvalsh(own) > 0).all()
    mean = np.tensordot(many.mass.to_numpy(), own, axes=1)
    assert mean == pytest.approx(many.spread.to_numpy())
    assert "one common volume" in " ".join(many.summary().as_text().split())
    assert "one common shape" in " ".join(result.summary().as_text().split())
    stored = many.to_dict()
    again = ClusteringResults.from_dict(stored)
    pd.testing.assert_frame_equal(again.shapes, many.shapes, check_exact=True)
    rows = np.random.default_rng(0).normal(size=(200, 4))
    assert again.predict(rows).tolist() == many.predict(rows).tolist()
    # A file written before clusters had shapes: the nearest centre in bandwidths, as then.
    old = {**stored, "clusters": {k: v for k, v in stored["clusters"].items() if k != "shapes"}}
    before = ClusteringResults.from_dict(old)
    common = before.shapes.to_numpy().reshape(2, 4, 4)
    assert common == pytest.approx(np.stack([many.spread.to_numpy()] * 2))
    gap = (rows[:, None] - before.centres.to_numpy()) / before.facts.bandwidth
    plain = np.square(gap).sum(axis=2).argmin(axis=1)
    assert before.predict(rows).tolist() == (plain + 1).tolist()


def test_refusals(result: Any) -> None:
    with pytest.raises(errors.InvalidArgument, match="1 to 2"):
        result.cov_params(3)
    with pytest.raises(errors.InvalidArgument, match="source"):
        result.cov_params(1, source="bias")
    with pytest.raises(errors.InvalidArgument, match="level"):
        result.conf_int(1.0)
    with pytest.raises(AttributeError, match="abels of your own"):
        _ = result.labels_
    with pytest.raises(AttributeError, match="likelihood"):
        _ = result.llf


def test_summary_in_every_form(result: Any) -> None:
    summary = result.summary()
    text = summary.as_text()
    for part in ("ages and wages", "2 asked for", "clusters (public)", "log(wage)", "NOT PRIVATE"):
        assert part in text
    assert max(len(line) for line in text.splitlines()) <= 110
    assert "<table" in summary.as_html()
    assert "\\begin{tabular}" in summary.as_latex()
    assert "evidence z" in summary.as_csv()
    assert "2 clusters" in repr(result)
    assert result.diagnostics["clusters"] == 2


@pytest.mark.parametrize("panels", [1, 2, 4])
def test_pictures(result: Any, many: Any, panels: int, tmp_path: Any) -> None:
    if panels == 4:
        figure = clusters_figure(many)
        assert len(figure.axes) == 16
        assert "clusters" in save_plot(many, tmp_path / "clusters.png").name
    else:
        figure = clusters_figure(result, columns=list(result.columns)[:panels])
        assert "centre" in " ".join(t.get_text() for t in figure.legends[0].get_texts())
    ax = result.plot(columns=list(result.columns)[:1])
    assert ax.get_xlabel() == "age"
    matplotlib.pyplot.close("all")


def lines_of(ax: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in ax.get_lines()}


def test_one_coordinate_shows_the_fitted_clusters(result: Any) -> None:
    ax = Figure().subplots()
    result.plot(ax=ax, columns=["log(wage)"])
    drawn = lines_of(ax)["fitted clusters"]
    x, y = np.asarray(drawn.get_xdata(), dtype=float), np.asarray(drawn.get_ydata(), dtype=float)
    assert y.min() >= 0
    assert np.sum(y) * (x[1] - x[0]) == pytest.approx(1, abs=0.02)
    assert sum((y[1:-1] > y[:-2]) & (y[1:-1] > y[2:])) == 2
    assert "released density, smoothed, with noise" in lines_of(ax)
    # Modes have no fitted density.
    modes = dataclasses.replace(
        result,
        cluster_set=dataclasses.replace(result.cluster_set, covariance=np.full((2, 2), np.nan)),
        centres_kind="modes",
    )
    plain = Figure().subplots()
    modes.plot(ax=plain, columns=["log(wage)"])
    assert "fitted clusters" not in lines_of(plain)
    assert "density" in lines_of(plain)


def test_the_curve_of_own_shapes(many: Any) -> None:
    ax = Figure().subplots()
    many.plot(ax=ax, columns=[many.columns[0]])
    drawn = lines_of(ax)["fitted clusters"]
    height = np.interp(many.centres.iloc[:, 0], drawn.get_xdata(), drawn.get_ydata())
    variances = many.cluster_set.shapes[:, 0, 0]
    assert (height >= many.mass / np.sqrt(2 * np.pi * variances) - 1e-3).all()


def test_a_pairs_picture_has_numbers_and_few_marks(result: Any) -> None:
    frame = pd.DataFrame(np.random.default_rng(2).normal(0, 1, (2000, 3)), columns=["a", "b", "c"])
    frame["b"] = np.exp(frame["b"] / 2 + 11)
    model = dpm.ModalClustering(
        frame, bounds={"a": (-4, 4), "b": (5000, 500_000), "c": (-4, 4)}, log="b", n_clusters=1
    )
    figure = clusters_figure(model.fit(epsilon=2.0, delta=1e-6, seed=1))
    figure.canvas.draw()
    panels = [ax for ax in figure.axes if ax.get_xlabel() == "b (log scale)" and ax.get_ylabel() == ""]
    (panel,) = [ax for ax in panels if any(text.get_text() == "1" for text in ax.texts)]
    boxes = [text.get_window_extent() for text in panel.get_xticklabels()]
    assert len(boxes) == 2
    assert boxes[0].x1 < boxes[1].x0


def test_regions_within_the_dot_are_not_explained(result: Any) -> None:
    ax = Figure().subplots()
    result.plot(ax=ax)
    assert any("95% region, total error" in text for text in ax.get_legend_handles_labels()[1])
    clusters = result.cluster_set
    tiny = {name: getattr(clusters, name) * 1e-6 for name in ("covariance_privacy", "covariance_sampling")}
    sure = dataclasses.replace(result, cluster_set=dataclasses.replace(clusters, **tiny))
    ax = Figure().subplots()
    sure.plot(ax=ax)
    assert ax.get_legend_handles_labels()[1] == ["centre, 95% region within the dot"]
