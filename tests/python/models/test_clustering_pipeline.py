"""The clustering pipeline: one budget over centre, components and clusters, and the way back to columns."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import pydpmode as dpm
from pydpmode.errors import BudgetExceeded, InvalidArgument, InvalidBudget, MissingBounds, SurfaceFileError
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
    assert (drawn.get_xlabel(), drawn.get_title()) == (own.get_xlabel(), own.get_title())
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
    study = dpm.PrivateData(rows(50)[0], bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-6))
    with pytest.raises(InvalidArgument, match="more than the 50 rows"):
        model(study, n_clusters=51).fit(0.5)
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
    assert dict(copy.shares) == dict(fitted.shares)
    with pytest.raises(SurfaceFileError, match="not a pydpmode clustering pipeline"):
        PipelineResults.from_dict(fitted.components.to_dict())
    with pytest.raises(SurfaceFileError, match="damaged"):
        PipelineResults.from_dict({**fitted.to_dict(surface=False), "shares": None})


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
