"""The clustering pipeline: one budget over centre, components and clusters, and the way back to columns."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import pydpmode as dpm
from pydpmode.errors import (
    BudgetExceeded,
    ClusterLimit,
    InvalidArgument,
    InvalidBudget,
    MissingBounds,
    SurfaceFileError,
)
from pydpmode.results.pipeline_results import PipelineResults

D = 6
MIDDLES = np.array([[0.0] * D, [4.0] * 3 + [0.0] * 3, [0.0] * 3 + [4.0] * 3])
COLUMNS = [f"c{j}" for j in range(D)]
BOUNDS = dict.fromkeys(COLUMNS, (-5.0, 9.0))


def rows(n: int = 4000) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, n)
    return pd.DataFrame(MIDDLES[labels] + random.normal(size=(n, D)), columns=COLUMNS), labels


def model(data: Any, **options: Any) -> dpm.PrivateClusteringPipeline:
    given = {"n_components": 2, "n_clusters": 3, **options}
    if not isinstance(data, dpm.PrivateData):
        given.setdefault("bounds", BOUNDS)
    return dpm.PrivateClusteringPipeline(data, **given)


@pytest.fixture(scope="module")
def fitted() -> PipelineResults:
    return model(rows()[0], radius=1.0).fit(2.0, 1e-6, seed=1, label="trial")


def nearest(centres: pd.DataFrame) -> np.ndarray:
    gaps = np.linalg.norm(centres.to_numpy()[:, None] - MIDDLES, axis=2)
    assert sorted(gaps.argmin(axis=1)) == [0, 1, 2]
    return np.asarray(gaps.min(axis=1))


def test_centres_come_back_to_the_columns(fitted: PipelineResults) -> None:
    assert list(fitted.centres.columns) == COLUMNS
    assert nearest(fitted.centres).max() < 0.6
    assert fitted.std_errors.shape == (3, D)
    assert (fitted.std_errors.to_numpy() > 0).all()
    assert fitted.mass.sum() == pytest.approx(1)
    table, labels = rows()
    found = fitted.predict(table).to_numpy(dtype=int)
    pairs = pd.crosstab(labels, found)
    assert pairs.max(axis=1).sum() / len(labels) > 0.97
    scores = fitted.transform(table.iloc[:3])
    assert list(scores.columns) == ["pc1", "pc2"]
    with pytest.raises(AttributeError, match="holds no rows"):
        _ = fitted.labels_


def test_the_picture_is_that_of_the_clusters(fitted: PipelineResults) -> None:
    figure = Figure()
    drawn = fitted.plot(ax=figure.subplots())
    own = fitted.clustering.plot(ax=Figure().subplots())
    assert drawn.get_xlabel() == own.get_xlabel()
    # The title has the cost of all steps together.
    assert "epsilon = 2," in drawn.get_title()
    assert "epsilon = 1.443," in own.get_title()
    one = fitted.plot(ax=Figure().subplots(), columns=fitted.clustering.columns[:1])
    assert one.get_xlabel() == fitted.clustering.columns[0]


def test_one_budget_over_the_steps() -> None:
    study = dpm.PrivateData(rows()[0], bounds=BOUNDS, budget=dpm.Budget(2.0, 1e-6))
    pipeline = model(study)
    assert pipeline.shares == pytest.approx(
        {"mean": 0.1 / 1.05, "radius": 0.05 / 1.05, "moments": 0.35 / 1.05, "clusters": 0.55 / 1.05}
    )
    found = pipeline.fit(2.0, seed=1)
    entries = study.ledger.entries()
    assert [(e.charge.label, e.status) for e in entries] == [
        ("pipeline: mean", "released"),
        ("pipeline: radius", "released"),
        ("pipeline: moments", "released"),
        ("pipeline: clusters", "released"),
    ]
    assert 0.99 * 2.0 < study.ledger.spent() <= 2.0
    assert sum(e.charge.epsilon for e in entries) > 2.0
    assert found.epsilon == pytest.approx(2.0, rel=0.005)
    assert found.epsilon <= 2.0
    assert len(found.privacy) == 4
    squared = np.array([e.charge.equivalent_mu**2 for e in entries])
    np.testing.assert_allclose(squared / squared.sum(), list(pipeline.shares.values()), rtol=0.01)
    with pytest.raises(BudgetExceeded):
        pipeline.fit(0.1, seed=1)
    assert len(study.ledger.entries()) == 4


def test_public_centre_and_shares() -> None:
    centre = dict.fromkeys(COLUMNS, 4 / 3)
    pipeline = model(rows()[0], radius=1.0, centre=centre, shares={"moments": 1, "clusters": 3})
    assert pipeline.shares == {"moments": 0.25, "clusters": 0.75}
    found = pipeline.fit(2.0, 1e-6, seed=1)
    assert nearest(found.centres).max() < 0.6
    assert len(found.privacy) == 2


def test_private_noise_and_whitening() -> None:
    found = model(rows()[0], radius=1.0, whiten=True).fit(3.0, 1e-6)
    assert nearest(found.centres).max() < 1.0
    assert not found.simulated
    assert "in 3 releases" in repr(found)


def test_persons_and_add_remove() -> None:
    table, _ = rows(1500)
    twice = pd.concat([table.assign(person=range(1500))] * 2, ignore_index=True)
    study = dpm.PrivateData(
        twice, bounds=BOUNDS, budget=dpm.Budget(3.0, 1e-6), unit="person", person="person"
    )
    found = model(study, radius=1.0).fit(3.0, seed=1)
    assert {spent.unit for spent in found.privacy} == {"person"}
    assert found.clustering.facts.n_records < 1700
    open_n = dpm.PrivateData(
        table, bounds=BOUNDS, budget=dpm.Budget(3.0, 1e-6), adjacency="add_remove", n_guess=1500
    )
    assert {s.adjacency for s in model(open_n, radius=1.0).fit(3.0, seed=1).privacy} == {"add_remove"}


def test_without_a_guess_of_n_nothing_is_charged() -> None:
    study = dpm.PrivateData(rows(200)[0], bounds=BOUNDS, budget=dpm.Budget(3.0, 1e-6), adjacency="add_remove")
    with pytest.raises(InvalidArgument, match="n_guess"):
        model(study).fit(1.0, seed=1)
    assert not study.ledger.entries()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_components": 7}, InvalidArgument, "in 1..6"),
        ({"n_clusters": 0}, InvalidArgument, "n_clusters"),
        ({"radius": None}, MissingBounds, "radius is missing"),
        ({"centres": "means"}, InvalidArgument, "'fit' or 'modes'"),
        ({"reach": 0.0}, InvalidArgument, "reach must be > 0"),
        ({"shares": {"clusters": 1.0}}, InvalidArgument, "must name the steps"),
        (
            {"radius": 1.0, "shares": {"mean": 1.0, "moments": 0.0, "clusters": 1.0}},
            InvalidArgument,
            "finite and > 0",
        ),
        ({"bounds": None}, MissingBounds, "public bounds are missing"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        model(rows(20)[0], **options)


def test_refused_before_the_first_charge() -> None:
    study = dpm.PrivateData(rows(30)[0], bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-6))
    with pytest.raises(InvalidArgument, match="more than the 30 rows"):
        model(study, n_clusters=31).fit(0.5)
    with pytest.raises(InvalidBudget, match="epsilon is missing"):
        model(study).fit()
    with pytest.raises(InvalidArgument, match="seed"):
        model(study).fit(0.5, seed=-1)
    with pytest.raises(BudgetExceeded, match="several releases"):
        model(study).fit(1.5)
    with pytest.raises(InvalidArgument, match="200 characters"):
        model(study).fit(0.5, label="x" * 195)
    assert not study.ledger.entries()


def test_summary_json_and_pickle(fitted: PipelineResults) -> None:
    text = fitted.summary().as_text()
    for part in ("NOT PRIVATE", "3 releases", "mean (simulated Gaussian)", "55%", "trial", "Clusters:"):
        assert part in text + repr(fitted)
    assert max(map(len, text.split("\n"))) <= 100
    again = PipelineResults.from_dict(json.loads(json.dumps(fitted.to_dict(surface=False), allow_nan=False)))
    pd.testing.assert_frame_equal(again.centres, fitted.centres)
    assert again.summary().as_text() == text
    copy = pickle.loads(pickle.dumps(fitted))
    pd.testing.assert_frame_equal(copy.centres, fitted.centres)
    assert dict(copy.budget_shares) == dict(fitted.budget_shares)
    pd.testing.assert_frame_equal(copy.shares, fitted.clustering.shares)
    with pytest.raises(SurfaceFileError, match="not a pydpmode clustering pipeline"):
        PipelineResults.from_dict(fitted.components.to_dict())
    with pytest.raises(SurfaceFileError, match="damaged"):
        PipelineResults.from_dict({**fitted.to_dict(surface=False), "shares": None})


def far_cluster() -> tuple[np.ndarray, np.ndarray]:
    """Return rows of four clusters, one far from the others, and the clusters' middles."""
    random = np.random.default_rng(3)
    labels = random.choice(4, 20_000, p=[0.4, 0.3, 0.2, 0.1])
    middles = random.normal(0, 4, (4, 8))
    return middles[labels] + random.standard_normal((20_000, 8)), middles


def worst(centres: pd.DataFrame, middles: np.ndarray) -> float:
    return float(np.linalg.norm(centres.to_numpy()[:, None] - middles, axis=2).min(axis=0).max())


@pytest.mark.filterwarnings("error::pydpmode.errors.ClusterLimit")
def test_a_far_cluster_is_within_the_limits_of_the_scores() -> None:
    table, middles = far_cluster()
    found = dpm.PrivateClusteringPipeline(table, bounds=[(-15, 15)] * 8, n_components=3, n_clusters=4).fit(
        1.0, 1e-6, seed=3
    )
    assert worst(found.centres, middles) < 0.8
    assert not found.warnings
    wide = found.clustering.coordinates[0].limits
    assert wide is not None
    assert wide[1] == pytest.approx(5 * np.sqrt(found.components.explained_variance[0]))


def test_a_centre_at_the_limit_of_the_scores_is_told() -> None:
    table, middles = far_cluster()
    narrow = dpm.PrivateClusteringPipeline(
        table, bounds=[(-15, 15)] * 8, n_components=3, n_clusters=4, reach=3.0
    )
    with pytest.warns(ClusterLimit, match=r"the centre of cluster 3 lies at the limit of the scores \(pc1\)"):
        found = narrow.fit(1.0, 1e-6, seed=3)
    assert worst(found.centres, middles) > 1
    assert "larger reach= (it was 3)" in found.warnings[0]
    assert "larger reach=" in " ".join(found.summary().as_text().split())


def test_limits_do_not_change_the_bandwidth() -> None:
    near, far = (
        model(rows()[0], radius=1.0, reach=reach).fit(2.0, 1e-6, seed=1).clustering for reach in (3.0, 6.0)
    )
    np.testing.assert_allclose(far.facts.upper, 2 * near.facts.upper)
    np.testing.assert_allclose(far.facts.bandwidth, near.facts.bandwidth)


@pytest.mark.parametrize("name", ["pipeline.json", "pipeline.json.gz"])
def test_saved_and_loaded(fitted: PipelineResults, tmp_path: Path, name: str) -> None:
    fitted.save(tmp_path / name)
    again: Any = dpm.load_results(tmp_path / name)
    assert isinstance(again, PipelineResults)
    assert again.summary().as_text() == fitted.summary().as_text()
    assert again.clustering.surface is not None
    fitted.save(tmp_path / name, surface=False)
    assert PipelineResults.load(tmp_path / name).clustering.surface is None
    with pytest.raises(SurfaceFileError, match="holds PipelineResults, not PCAResults"):
        type(fitted.components).load(tmp_path / name)


def test_intervals_in_the_columns(fitted: PipelineResults) -> None:
    table = fitted.conf_int(0.9)
    assert table.index.names == fitted.clustering.conf_int().index.names
    assert [*table.loc[2].index] == COLUMNS
    np.testing.assert_allclose(table.mean(axis=1), fitted.centres.to_numpy().ravel())
    half = (table["upper"] - table["lower"]) / 2
    np.testing.assert_allclose(half, 1.6448536 * fitted.std_errors.to_numpy().ravel())
    with pytest.raises(InvalidArgument, match="level"):
        fitted.conf_int(1.5)


def test_the_summary_says_which_clusters_are_doubtful(fitted: PipelineResults) -> None:
    sure = " ".join(fitted.summary().as_text().split())
    assert "evidence z again" in sure
    assert "Not to be relied on" not in sure
    clusters = fitted.clustering.cluster_set
    faint = replace(clusters, significance=np.array([9.0, 2.0, 9.0]))
    found = replace(fitted, clustering=replace(fitted.clustering, cluster_set=faint))
    text = found.summary().as_text()
    assert any(line.split()[:2] == ["2", "?"] for line in text.split("\n"))
    assert "Not to be relied on: cluster 2 (evidence below 3" in " ".join(text.split())


def test_the_summary_has_the_columns_in_the_users_order() -> None:
    wide = rows()[0].assign(**{f"flat{j}": 0.01 * rows()[0]["c0"] for j in range(4)})
    names = ["flat0", "c5", "c0", "flat1", "c3", "c4", "c1", "flat2", "c2", "flat3"]
    bounds = {name: BOUNDS.get(name, (-5.0, 9.0)) for name in names}
    found = model(wide[names], bounds=bounds, radius=1.0).fit(4.0, 1e-6, seed=1)
    header = next(
        line for line in found.summary().as_text().split("\n") if {"cluster", "c5"} <= {*line.split()}
    )
    shown = header.split()[1:]
    assert len(shown) == 8
    assert shown == [name for name in names if name in shown]
    assert set(COLUMNS) <= set(shown)
