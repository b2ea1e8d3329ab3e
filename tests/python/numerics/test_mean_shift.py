"""The non-private baseline: against textbook mean shift, and scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest

from pydpmode import MeanShift, datasets, errors


def textbook(x: np.ndarray, h: float) -> np.ndarray:
    ends = x / h
    rows = x / h
    for _ in range(400):
        weights = np.exp(-0.5 * np.sum((ends[:, None] - rows[None]) ** 2, axis=2))
        new = weights @ rows / weights.sum(axis=1, keepdims=True)
        if np.abs(new - ends).max() < 1e-5:
            break
        ends = new
    return ends * h


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_every_point_ends_where_textbook_mean_shift_ends(d: int) -> None:
    generator = np.random.default_rng(d)
    x = np.concatenate([generator.normal(c, 1.0, size=(150, d)) for c in (-3.0, 3.0)])
    ends = textbook(x, 0.8)
    fit = MeanShift(0.8).fit(x)
    centre = fit.cluster_centers_[fit.labels_]
    apart = np.linalg.norm(ends - centre, axis=1)
    # Modes closer than a bandwidth are merged; each other end is its centre.
    assert np.mean(apart < 1e-2) > 0.9
    assert np.all(apart < 0.8 * 1.05)
    assert fit.n_features_in_ == d
    assert fit.labels_.shape == (300,)


def test_four_gaussians_by_default() -> None:
    table, truth = datasets.four_gaussians(2000, seed=3)
    fit = MeanShift().fit(table)
    distance = np.linalg.norm(fit.cluster_centers_[:, None] - np.asarray(truth)[None], axis=2)
    assert fit.cluster_centers_.shape == (4, 2)
    assert distance.min(axis=0).max() < 0.3
    assert np.bincount(fit.labels_).min() > 400


def test_starts_from_a_grid_and_from_chosen_points_find_the_same_modes() -> None:
    table, _ = datasets.four_gaussians(1000, seed=4)
    everywhere = MeanShift(0.8).fit(table)
    grid = MeanShift(0.8, bin_seeding=True).fit(table)
    np.testing.assert_allclose(grid.cluster_centers_, everywhere.cluster_centers_, atol=1e-5)
    assert np.mean(grid.labels_ == everywhere.labels_) > 0.99
    chosen = MeanShift(0.8, seeds=[[2.5, 2.5], [3.2, 3.0]]).fit(table)
    assert chosen.cluster_centers_.shape == (1, 2)
    assert not chosen.labels_.any()


def test_prediction_climbs() -> None:
    table, _ = datasets.four_gaussians(1000, seed=5)
    fit = MeanShift(0.8).fit(table)
    np.testing.assert_array_equal(fit.predict(table), fit.labels_)
    np.testing.assert_array_equal(fit.predict(fit.cluster_centers_), np.arange(4))
    np.testing.assert_array_equal(MeanShift(0.8).fit_predict(table), fit.labels_)


def test_a_wide_box_of_outliers_falls_back_to_direct_sums() -> None:
    generator = np.random.default_rng(6)
    x = np.concatenate([generator.normal(size=(200, 2)), [[5e4, 5e4]]])
    fit = MeanShift(0.8).fit(x)
    assert fit.cluster_centers_.shape[0] >= 2
    assert fit.labels_[-1] != fit.labels_[0]


def test_parameters_follow_scikit_learn() -> None:
    model = MeanShift(0.5, bin_seeding=True)
    assert model.get_params() == {"bandwidth": 0.5, "seeds": None, "bin_seeding": True, "max_iter": 300}
    assert model.set_params(bandwidth=0.7).bandwidth == 0.7
    assert "0.7" in repr(model)
    with pytest.raises(errors.InvalidArgument, match="no parameter 'radius'"):
        model.set_params(radius=1)


@pytest.mark.parametrize(
    ("model", "x", "told"),
    [
        (MeanShift(), np.ones((5, 2)), "one value only"),
        (MeanShift(-1.0), np.eye(3), "bandwidth must be"),
        (MeanShift(1.0), np.full((3, 2), np.nan), "finite"),
        (MeanShift(1.0), np.zeros((0, 2)), "with a row"),
        (MeanShift(1.0, seeds=[[1.0]]), np.eye(3), "seeds have 1 columns"),
        (MeanShift(1.0, seeds=np.eye(3), bin_seeding=True), np.eye(3), "not both"),
        (MeanShift(1.0, max_iter=0), np.eye(3), "max_iter"),
    ],
)
def test_what_does_not_fit_is_refused(model: MeanShift, x: np.ndarray, told: str) -> None:
    with pytest.raises(errors.InvalidArgument, match=told):
        model.fit(x)


def test_prediction_needs_a_fit_and_its_columns() -> None:
    with pytest.raises(errors.InvalidArgument, match="not fitted"):
        MeanShift(1.0).predict(np.eye(2))
    with pytest.raises(errors.InvalidArgument, match="the fit had 3"):
        MeanShift(1.0).fit(np.eye(3)).predict(np.eye(2))
