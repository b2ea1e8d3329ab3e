"""The non-private partial mean shift: against the textbook iteration and the conditional density itself."""

from __future__ import annotations

import numpy as np
import pytest

from pydpmode import datasets, errors
from pydpmode.numerics.evaluation import missed_branch_rate, oracle_modal_loss
from pydpmode.numerics.partial_mean_shift import PartialMeanShift


def conditional_density(x, y, at, grid, h_x, h_y):
    """The kernel estimate of p(grid | at), by its definition."""
    weights = np.exp(-0.5 * np.sum(((at - x) / h_x) ** 2, axis=1))
    kernel = np.exp(-0.5 * ((grid[:, None] - y) / h_y) ** 2) / (h_y * np.sqrt(2 * np.pi))
    return kernel @ weights / weights.sum()


def textbook(x, y, at, start, h_x, h_y):
    """Algorithm 1 of Chen et al.: shift the response to the weighted mean until it stands still."""
    weights = np.exp(-0.5 * np.sum(((at - x) / h_x) ** 2, axis=1))
    for _ in range(3000):
        both = weights * np.exp(-0.5 * ((start - y) / h_y) ** 2)
        new = float(both @ y / both.sum())
        if abs(new - start) < 1e-9:
            break
        start = new
    return start


@pytest.mark.parametrize("p", [1, 2])
def test_modes_are_the_local_maxima_of_the_conditional_density(p: int) -> None:
    generator = np.random.default_rng(p)
    n = 400
    x = generator.uniform(size=(n, p))
    y = np.where(generator.uniform(size=n) < 0.4, 2.0, 0.0) + x[:, 0] + 0.3 * generator.standard_normal(n)
    h_x, h_y = np.full(p, 0.12), 0.2
    fit = PartialMeanShift(h_x, h_y, merge=0.0).fit(x, y)
    queries = generator.uniform(0.1, 0.9, size=(8, p))
    found = fit.conditional_modes(queries)
    grid = np.arange(y.min() - 1, y.max() + 1, 5e-4)
    assert found.counts.max() > 1
    for i, at in enumerate(queries):
        density = conditional_density(x, y, at, grid, h_x, h_y)
        peaks = np.flatnonzero((density[1:-1] > density[:-2]) & (density[1:-1] > density[2:])) + 1
        peaks = peaks[np.argsort(-density[peaks])]
        k = found.counts[i]
        assert k == peaks.size
        np.testing.assert_allclose(found.modes[i, :k], grid[peaks], atol=5e-4)
        np.testing.assert_allclose(found.density[i, :k], density[peaks], rtol=1e-5)
        np.testing.assert_allclose(fit.conditional_density(at[None], grid[::50])[0], density[::50], rtol=1e-9)


def test_every_response_climbs_to_one_of_the_modes() -> None:
    table, _ = datasets.sinusoid(300, seed=3)
    x, y = table[["x"]].to_numpy(), table["y"].to_numpy()
    fit = PartialMeanShift(0.06, 0.12, merge=0.0).fit(x, y)
    for at in (0.1, 0.5, 0.83):
        modes = fit.predict([[at]])[0]
        near = y[np.abs(x[:, 0] - at) < 0.15]
        ends = np.array([textbook(x, y, np.array([at]), start, 0.06, 0.12) for start in near])
        assert np.abs(ends[:, None] - modes[np.isfinite(modes)]).min(axis=1).max() < 1e-5


def test_likelihood_bandwidths_find_both_branches() -> None:
    table, truth = datasets.sinusoid(1200, seed=5)
    fit = PartialMeanShift(rule="likelihood", min_height=0.3).fit(table["x"], table["y"])
    reference = PartialMeanShift().fit(table["x"], table["y"])
    assert fit.bandwidth_y_ < reference.bandwidth_y_
    at = np.linspace(0.05, 0.95, 60)
    modes = fit.predict(at)
    assert oracle_modal_loss(modes, truth.at(at)) < 0.01
    assert missed_branch_rate(modes, truth.at(at), radius=0.3) < 0.05


def test_one_bandwidth_given_and_the_other_by_rule() -> None:
    table, _ = datasets.sinusoid(300, seed=6)
    fit = PartialMeanShift(bandwidth_y=0.2, rule="likelihood").fit(table["x"], table["y"])
    assert fit.bandwidth_y_ == 0.2
    assert 0 < fit.bandwidth_x_[0] < 0.3


def test_close_modes_are_merged_and_low_ones_left_out() -> None:
    x, y = np.zeros(30), np.repeat([0.0, 2.4, 9.0], [15, 12, 3])
    everything = PartialMeanShift(1.0, 1.0).fit(x, y).predict([0.0])
    np.testing.assert_allclose(everything, [[0.1, 2.3, 9.0]], atol=0.25)
    assert PartialMeanShift(1.0, 1.0, merge=3.0).fit(x, y).predict([0.0]).shape == (1, 2)
    assert PartialMeanShift(1.0, 1.0, min_height=0.5).fit(x, y).predict([0.0]).shape == (1, 2)


def test_units_do_not_matter() -> None:
    table, _ = datasets.three_levels(300, seed=8)
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    one = PartialMeanShift().fit(x, y).predict([0.2, 0.5])
    other = PartialMeanShift().fit(1e6 * x, 1e-6 * y).predict([2e5, 5e5])
    np.testing.assert_allclose(other, 1e-6 * one, rtol=1e-6)


def test_far_from_the_records_and_at_outliers() -> None:
    x, y = np.array([0.0, 0.1, 0.2, 50.0]), np.array([1.0, 1.1, 0.9, 1e6])
    fit = PartialMeanShift(0.5, 0.5).fit(x, y)
    modes = fit.predict([0.1, 20.0, 50.0])
    np.testing.assert_allclose(modes[:, 0], [1.0, np.nan, 1e6], atol=1e-3)
    assert np.isnan(fit.conditional_density([20.0], [1.0])).all()
    assert np.isnan(fit.predict([20.0])).all()


def test_bad_input_is_refused() -> None:
    x, y = np.arange(4.0), np.arange(4.0)
    with pytest.raises(errors.InvalidArgument, match="not fitted"):
        PartialMeanShift().predict(x)
    with pytest.raises(errors.InvalidArgument, match="one finite response"):
        PartialMeanShift().fit(x, y[:3])
    with pytest.raises(errors.InvalidArgument, match="finite table"):
        PartialMeanShift().fit([np.nan, 1.0], [1.0, 2.0])
    with pytest.raises(errors.InvalidArgument, match="rule"):
        PartialMeanShift(rule="silverman").fit(x, y)
    with pytest.raises(errors.InvalidArgument, match="> 0"):
        PartialMeanShift(-1.0).fit(x, y)
    with pytest.raises(errors.InvalidArgument, match="> 0"):
        PartialMeanShift().fit(x, np.ones(4))
    with pytest.raises(errors.InvalidArgument, match="min_height"):
        PartialMeanShift(min_height=2).fit(x, y)
    with pytest.raises(errors.InvalidArgument, match="merge"):
        PartialMeanShift(merge=-1).fit(x, y)
    with pytest.raises(errors.InvalidArgument, match="columns"):
        PartialMeanShift(1.0, 1.0).fit(x, y).predict([[1.0, 2.0]])
    with pytest.raises(errors.InvalidArgument, match="no parameter"):
        PartialMeanShift().set_params(bandwith_x=1)


def test_it_clones_like_scikit_learn() -> None:
    fit = PartialMeanShift(0.1, merge=2.0).set_params(min_height=0.25)
    copy = PartialMeanShift(**fit.get_params())
    assert copy.get_params() == fit.get_params()
    assert repr(copy) == "PartialMeanShift(bandwidth_x=0.1, bandwidth_y=None, rule='reference')"
