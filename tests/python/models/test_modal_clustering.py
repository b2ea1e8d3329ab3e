"""ModalClustering: the whole way from a table to clusters, and what is refused on it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from pydpmode import datasets, errors
from pydpmode.models import modal_clustering
from pydpmode.numerics import cluster_set
from pydpmode.numerics.kernel_surface import KernelSurface

BOX = {"x": (-8.0, 8.0), "y": (-8.0, 8.0)}
TRUTH = np.array([[-3, -3], [-3, 3], [3, -3], [3, 3]], dtype=float)


@pytest.fixture(scope="module")
def four() -> pd.DataFrame:
    return datasets.four_gaussians(5000, seed=1)[0]


@pytest.fixture(scope="module")
def fitted(four: pd.DataFrame) -> Any:
    return fit(four, bounds=BOX, n_clusters=4)


def fit(data: Any, *, seed: int = 1, epsilon: float = 1.0, delta: float = 1e-6, **options: Any) -> Any:
    return dpm.ModalClustering(data, **options).fit(epsilon=epsilon, delta=delta, seed=seed)


def separated(d: int, n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(d)
    centres = 3.0 * np.vstack([np.zeros(d), np.eye(d)])[:3] - 1.0
    return centres[generator.integers(0, len(centres), n)] + 0.5 * generator.normal(size=(n, d)), centres


def farthest(res: Any, truth: np.ndarray) -> float:
    at = res.centres.to_numpy()
    return float(np.linalg.norm(at[:, None] - truth, axis=2).min(axis=0).max())


def test_four_clusters_with_honest_errors(fitted: Any) -> None:
    order = np.lexsort(fitted.centres.to_numpy().round().T[::-1])
    errors_of = fitted.std_errors["total"].to_numpy().reshape(4, 2)
    z = (fitted.centres.to_numpy()[order] - TRUTH) / errors_of[order]
    assert np.abs(z).max() < 4
    assert np.abs((fitted.shares["share"] - 0.25) / fitted.shares["total"]).max() < 4
    assert fitted.shares["share"].sum() == pytest.approx(1)
    assert (fitted.stability["found_again"] == 1).all()
    assert np.sqrt(np.diag(fitted.spread)) == pytest.approx([1, 1], abs=0.15)


def test_the_number_is_found(four: pd.DataFrame) -> None:
    res = fit(four, bounds=BOX)
    assert res.n_clusters == 4
    assert res.n_clusters_requested is None
    assert res.diagnostics["evidence_for_one_more"] < res.diagnostics["evidence_needed"]


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_fits_in_all_dimensions(d: int) -> None:
    x, truth = separated(d)
    res = fit(x, bounds=[(-4, 4)] * d, n_clusters=len(truth), epsilon=2.0)
    assert farthest(res, truth) < 0.25


@pytest.mark.filterwarnings("ignore::pydpmode.errors.CoarseFeatures")
@pytest.mark.parametrize("d", [2, 5])
def test_modes_as_centres(d: int) -> None:
    x, truth = separated(d)
    res = fit(x, bounds=[(-4, 4)] * d, n_clusters=len(truth), centres="modes", epsilon=2.0)
    assert farthest(res, truth) < 0.5
    assert res.shares["total"].isna().all()
    assert np.isfinite(res.std_errors.to_numpy()).all()


def test_wide_and_shifted_bounds_cost_little() -> None:
    x, truth = separated(2)
    res = fit(x, bounds=[(-6, 24), (-20, 10)], n_clusters=3, epsilon=2.0)
    assert farthest(res, truth) < 0.4


@pytest.mark.filterwarnings("ignore::pydpmode.errors.LowSignal")
def test_one_correlated_gaussian_is_one_cluster() -> None:
    counts = []
    for seed in range(8):
        a, b = np.random.default_rng(seed).normal(size=(2, 2000))
        x = np.column_stack([a + b, a - 0.5 * b])
        counts.append(fit(x, bounds=[(-5, 5)] * 2, epsilon=2.0, seed=seed).n_clusters)
    assert counts.count(1) >= 7


def test_predict_matches_names_in_any_order(four: pd.DataFrame, fitted: Any) -> None:
    rows = four.iloc[:200]
    labels = fitted.predict(rows)
    pd.testing.assert_series_equal(fitted.predict(rows[["y", "x"]]), labels)
    pd.testing.assert_series_equal(fitted.predict(rows.assign(z="text")), labels)
    at = fitted.centres.to_numpy()
    own = np.linalg.norm(rows.to_numpy()[:, None] - at, axis=2).argmin(axis=1) + 1
    assert (labels.to_numpy(int) == own).all()
    basins = fitted.predict(rows, method="basin").to_numpy(int)
    assert (basins == own).mean() > 0.9
    with pytest.raises(errors.UnknownColumn, match="'y'"):
        fitted.predict(rows[["x"]])
    with pytest.raises(errors.InvalidArgument, match="method"):
        fitted.predict(rows, method="own")
    assert fitted.predict(rows.assign(x=np.nan)).isna().all()


def test_labels_are_refused_with_the_reason(fitted: Any) -> None:
    with pytest.raises(AttributeError, match="private row"):
        _ = fitted.labels_
    assert not hasattr(fitted, "fittedvalues")


def test_a_study_is_charged_once_and_a_surface_costs_nothing(four: pd.DataFrame, tmp_path: Any) -> None:
    study = dpm.PrivateData(four, bounds=BOX, budget=dpm.Budget(1.0, 1e-6))
    first = dpm.ModalClustering(study, n_clusters=4).fit(epsilon=0.6, seed=1)
    assert list(study.ledger.table()["label"]) == ["clusters of x, y"]
    loaded = dpm.load_surface(first.surface.save(tmp_path / "four.json.gz"))
    again = dpm.ModalClustering(loaded, n_clusters=4).fit()
    pd.testing.assert_frame_equal(again.centres, first.centres)
    assert again.privacy == first.privacy
    assert dpm.ModalClustering(loaded, centres="modes").fit().n_clusters == 4
    with pytest.raises(errors.BudgetExceeded):
        dpm.ModalClustering(study, n_clusters=4).fit(epsilon=0.9, seed=1)
    with pytest.raises(errors.InvalidArgument, match="costs nothing"):
        dpm.ModalClustering(loaded).fit(epsilon=1.0)


def test_a_real_release_is_private_and_says_so(four: pd.DataFrame) -> None:
    # Rows and epsilon enough for any draw of the noise: none warns of low signal.
    res = dpm.ModalClustering(four, bounds=BOX, n_clusters=4).fit(epsilon=5.0, delta=1e-6)
    assert not res.privacy.simulated
    text = res.summary().as_text()
    assert text.startswith(" " * 10)
    assert "Private clusters" in text
    assert "SIMULATED" not in text


def test_public_transform_is_kept_with_the_result(four: pd.DataFrame) -> None:
    res = fit(four, bounds=BOX, n_clusters=4, public_transform="scaled by the 1970 census")
    assert any("1970 census" in note for note in res.privacy.notes)
    assert "1970 census" in res.summary().as_text()
    with pytest.raises(errors.InvalidArgument, match="in words"):
        dpm.ModalClustering(four, bounds=BOX, public_transform=np.sqrt)  # type: ignore[arg-type]


def test_preview_reads_nothing(four: pd.DataFrame) -> None:
    study = dpm.PrivateData(four, bounds=BOX, budget=dpm.Budget(1.0, 1e-6))
    model = dpm.ModalClustering(study, n_clusters=4)
    plan = model.preview(epsilon=1.0)
    assert study.ledger.entries() == ()
    assert plan.bandwidth_rule.startswith("clusters")
    res = model.fit(epsilon=1.0, seed=1)
    assert res.surface.bandwidth == pytest.approx(plan.bandwidth.to_numpy())


def test_a_fit_that_would_not_end_is_refused_before_the_charge(four: pd.DataFrame) -> None:
    study = dpm.PrivateData(four, bounds=BOX, budget=dpm.Budget(1.0, 1e-6))
    with pytest.raises(errors.InvalidArgument, match="more than the 50 that are fitted together"):
        dpm.ModalClustering(study, n_clusters=51)
    with pytest.raises(errors.InvalidArgument, match="more than the 50"):
        dpm.PrivateClusteringPipeline(study, n_components=2, n_clusters=51)
    with pytest.raises(errors.InvalidArgument, match="leave it out"):
        dpm.ModalClustering(study, n_features=20_001)
    assert dpm.ModalClustering(study, n_clusters=51, centres="modes") is not None
    assert not study.ledger.entries()


def test_preview_is_of_the_fit() -> None:
    """A twentieth of the rows at epsilon .5: the chance is that of being found in repeated fits."""
    centres = np.repeat([[3.0, 3.0], [7.0, 7.0], [2.5, 7.5]], [2375, 2375, 250], axis=0)
    box = {"x": (0.0, 10.0), "y": (0.0, 10.0)}
    hits, away = 0, []
    for seed in range(12):
        x = pd.DataFrame(np.random.default_rng(seed).normal(centres, 0.8), columns=["x", "y"])
        gaps = fit(x, bounds=box, epsilon=0.5, seed=seed).centres.to_numpy() - centres[-1]
        nearest = gaps[np.linalg.norm(gaps, axis=1).argmin()]
        if np.linalg.norm(nearest) < 1.2:
            hits += 1
            away.append(nearest)
    wide = {"x": 0.8, "y": 0.8}
    plan = dpm.ModalClustering(x, bounds=box).preview(0.5, 1e-6, spread=wide)
    row = plan.modes.loc[0.05]
    assert hits / 12 == pytest.approx(row["found"], abs=0.25)
    stated = np.hypot(row["x s.e. privacy"], row["x s.e. sampling"])
    assert 0.6 < np.sqrt(np.mean(np.square(away))) / stated < 1.6
    again = dpm.ModalClustering(x, bounds=box).preview(float(row["epsilon for .9"]), 1e-6, spread=wide)
    assert again.modes.loc[0.05, "found"] == pytest.approx(0.9, abs=0.06)
    assert "a cluster that holds" in str(plan)
    modes = dpm.ModalClustering(x, bounds=box, centres="modes").preview(0.5, 1e-6)
    assert "a cluster (a mode) that holds" in str(modes)
    assert "height_z" in modes.modes


def test_the_limit_of_the_search_is_said(four: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_set, "MOST_CLUSTERS", 4)
    found = fit(four, bounds=BOX)
    text = " ".join(found.summary().as_text().split())
    assert "need not be groups" in text
    assert "More is left" not in text
    full = replace(found.cluster_set, evidence=9.0)
    monkeypatch.setattr(modal_clustering, "fit_clusters", lambda *_, **__: full)
    with pytest.warns(errors.ClusterLimit, match="ended at 4"):
        res = fit(four, bounds=BOX)
    assert "ended at 4" in " ".join(res.warnings)
    monkeypatch.setattr(cluster_set, "MOST_CLUSTERS", 30)
    assert "More is left" in " ".join(fit(four, bounds=BOX).summary().as_text().split())


def test_add_remove_and_a_plain_surface(four: pd.DataFrame) -> None:
    study = dpm.PrivateData(
        four, bounds=BOX, budget=dpm.Budget(1.0, 1e-6), adjacency="add_remove", n_guess=4000, n_max=10**6
    )
    res = dpm.ModalClustering(study, n_clusters=4).fit(epsilon=1.0, seed=1)
    assert farthest(res, TRUTH) < 0.3
    plain = KernelSurface.from_points(four.to_numpy(), 0.8, -8, 8, columns=["x", "y"])
    assert dpm.ModalClustering(plain, centres="modes").fit().n_clusters == 4
    without = dpm.ModalClustering(plain, n_clusters=4).fit()
    assert without.privacy is None
    assert farthest(without, TRUTH) < 0.15
    assert "not private" in without.summary().as_text()


# -- bad input ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
@pytest.mark.parametrize(
    "data",
    [
        np.random.default_rng(0).normal(size=(3, 5)),
        np.zeros((500, 2)),
        np.column_stack([np.linspace(-2, 2, 800)] * 3),
        np.column_stack([np.zeros(600), np.random.default_rng(1).normal(size=600)]),
        np.repeat([[0.5, -0.5]], 400, axis=0),
        np.full((300, 2), np.nan),
        np.array([[np.inf, -np.inf], [0.0, 1.0]] * 50),
    ],
    ids=["n < d", "constant", "collinear", "one constant column", "duplicates", "all missing", "infinite"],
)
@pytest.mark.parametrize("centres", ["fit", "modes"])
def test_odd_data_give_finite_clusters_inside_the_box(data: np.ndarray, centres: Any) -> None:
    d = data.shape[1]
    res = fit(data, bounds=[(-3, 3)] * d, n_clusters=2, centres=centres, epsilon=2.0)
    at = res.centres.to_numpy()
    assert np.isfinite(at).all()
    assert (np.abs(at) <= 3 + 1e-9).all()
    assert res.summary().as_text()


def test_what_is_refused_before_anything_is_read(four: pd.DataFrame) -> None:
    with pytest.raises(errors.InvalidArgument, match="more than the 10 rows"):
        fit(four.iloc[:10], bounds=BOX, n_clusters=11)
    with pytest.raises(errors.InvalidArgument, match="centres"):
        dpm.ModalClustering(four, bounds=BOX, centres="means")  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidArgument, match="n_clusters"):
        dpm.ModalClustering(four, bounds=BOX, n_clusters=0)
    with pytest.raises(errors.InvalidArgument, match="false_split_rate"):
        dpm.ModalClustering(four, bounds=BOX, false_split_rate=1.0)
    with pytest.raises(errors.MissingBounds):
        dpm.ModalClustering(four)
    with pytest.raises(errors.UnknownColumn):
        dpm.ModalClustering(four, ["x", "z"], bounds=BOX)
    with pytest.raises(errors.InvalidBudget):
        dpm.ModalClustering(four, bounds=BOX).fit()


def test_noise_is_pointed_out() -> None:
    x = np.random.default_rng(0).uniform(-3, 3, size=(40, 2))
    with pytest.warns(errors.LowSignal, match="told from noise") as caught:
        res = fit(x, bounds=[(-3, 3)] * 2, n_clusters=3, epsilon=0.05)
    assert len(caught) == 1
    assert any("noise" in text for text in res.warnings)
    assert "?" in res.summary().as_text()


def test_copies_share_one_budget(four: pd.DataFrame) -> None:
    import copy

    model = dpm.ModalClustering(four, bounds=BOX, n_clusters=4)
    model.fit(epsilon=1.0, delta=1e-6, seed=1)
    with warnings.catch_warnings(), pytest.raises(errors.BudgetExceeded):
        copy.deepcopy(model).fit(epsilon=1.0, delta=1e-6, seed=1)
