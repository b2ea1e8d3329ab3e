"""The packaged wages, and the simulated designs against their definitions."""

from __future__ import annotations

import hashlib
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from pydpmode import datasets
from pydpmode.errors import InvalidArgument

SIMULATORS = [datasets.four_gaussians, datasets.five_t, datasets.three_levels, datasets.sinusoid]
NAMES = [simulator.__name__ for simulator in SIMULATORS]

T_CENTRES = np.array([(0, 0), (6, 0), (-6, 0), (0, 6), (0, -6)], dtype=float)
T_DEGREES = (15, 6, 10, 8, 20)
T_SCALES = (0.1, 0.9, 1.3, 1.0, 0.4)


def test_wages_are_the_published_figures() -> None:
    wages = datasets.wages()
    assert list(wages.columns) == ["age", "wage"]
    assert [str(dtype) for dtype in wages.dtypes] == ["int64", "int64"]
    assert len(wages) == 178_122
    assert (wages["age"].min(), wages["age"].max()) == (15, 85)
    assert (wages["wage"].min(), wages["wage"].max()) == (1, 1_404_108)
    digest = hashlib.sha256(wages.to_numpy("<i8").tobytes()).hexdigest()
    assert digest == "5a58af3ac6a1f6c18d914bfb4d76c1b237f8164046ba0b91ccab818262e3a929"
    readme = datasets.wages_path().with_name("README.md").read_text(encoding="utf-8")
    assert digest in readme
    assert "CC0" in readme


def test_wages_path_is_a_small_parquet_file() -> None:
    path = datasets.wages_path()
    assert isinstance(path, Path)
    assert path.stat().st_size < 600_000
    pd.testing.assert_frame_equal(pd.read_parquet(path), datasets.wages())


def test_each_call_gives_a_fresh_table_and_truth() -> None:
    first, second = datasets.wages(), datasets.wages()
    first.iloc[0, 0] = -1
    assert second.iloc[0, 0] != -1
    _, truth = datasets.four_gaussians(5, seed=1)
    truth[:] = 0
    assert np.all(np.abs(datasets.four_gaussians(5, seed=1)[1]) == 3)


@pytest.mark.parametrize("simulator", SIMULATORS, ids=NAMES)
def test_the_seed_decides_the_draw(simulator: Any) -> None:
    first, again, other = simulator(50, 1)[0], simulator(50, seed=1)[0], simulator(50, seed=2)[0]
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)
    by_generator = simulator(50, np.random.default_rng(1))[0]
    pd.testing.assert_frame_equal(first, by_generator)
    sequence = simulator(50, np.random.SeedSequence(1))[0]
    pd.testing.assert_frame_equal(first, sequence)


@pytest.mark.parametrize("simulator", SIMULATORS, ids=NAMES)
def test_global_random_state_is_left_alone(simulator: Any) -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (the point is the global state)
    simulator(20, seed=1)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("simulator", SIMULATORS, ids=NAMES)
@pytest.mark.parametrize("n", [1, 2, 3, 7, np.int64(10)])
def test_number_of_rows(simulator: Any, n: int) -> None:
    data, _ = simulator(n, seed=0)
    assert data.shape == (n, 2)
    assert list(data.columns) == ["x", "y"]
    assert np.isfinite(data.to_numpy()).all()


@pytest.mark.parametrize("simulator", SIMULATORS, ids=NAMES)
@pytest.mark.parametrize("n", [0, -5, 2.0, True, "10", None, np.array([3, 4])])
def test_a_bad_number_of_rows_is_refused(simulator: Any, n: Any) -> None:
    with pytest.raises(InvalidArgument, match="n must be a whole number >= 1, got"):
        simulator(n, seed=0)


@pytest.mark.parametrize("simulator", SIMULATORS, ids=NAMES)
@pytest.mark.parametrize("seed", [None, -1, 1.5, True, "one"])
def test_a_bad_seed_is_refused(simulator: Any, seed: Any) -> None:
    with pytest.raises(InvalidArgument, match="seed must be a whole number >= 0"):
        simulator(10, seed)


def test_four_gaussians_are_what_they_say() -> None:
    data, truth = datasets.four_gaussians(40_000, seed=3)
    assert {tuple(row) for row in truth} == set(itertools.product((3.0, -3.0), repeat=2))
    points = data.to_numpy()
    quadrant = [np.all(np.sign(points) == np.sign(centre), axis=1) for centre in truth]
    shares = [mask.mean() for mask in quadrant]
    assert shares == pytest.approx([0.25] * 4, abs=0.01)  # sd .0022
    for centre, mask in zip(truth, quadrant, strict=True):
        # 0.27% of a component lies beyond an axis: it moves mean and variance by less than .02.
        assert points[mask].mean(axis=0) == pytest.approx(centre, abs=0.04)
        assert np.cov(points[mask].T) == pytest.approx(np.eye(2), abs=0.06)


def t_mixture_cells(x_edges: list[float], y_edges: list[float]) -> np.ndarray:
    """Return the exact probability of every cell under independent coordinates within a component."""
    cells = []
    for (x, y), degrees, scale in zip(T_CENTRES, T_DEGREES, T_SCALES, strict=True):
        along_x = np.diff(stats.t.cdf((np.array(x_edges) - x) / scale, degrees))
        along_y = np.diff(stats.t.cdf((np.array(y_edges) - y) / scale, degrees))
        cells.append(np.outer(along_x, along_y))
    return np.mean(cells, axis=0)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_five_t_follows_its_exact_distribution(seed: int) -> None:
    data, truth = datasets.five_t(60_000, seed=seed)
    assert np.array_equal(truth, T_CENTRES)
    # Edges around every centre at the scale of its component, and far out for the tails.
    x_edges = [-np.inf, -10, -7.3, -6, -4.7, -2, -0.3, -0.1, 0, 0.1, 0.3, 2, 5.1, 6, 6.9, 9, np.inf]
    y_edges = [-np.inf, -7.5, -6.4, -6, -5.6, -4.5, -2, -0.3, -0.1, 0, 0.1, 0.3, 2, 5, 6, 7, 10, np.inf]
    expected = len(data) * t_mixture_cells(x_edges, y_edges).ravel()
    bins = [np.clip(edges, -1e6, 1e6) for edges in (x_edges, y_edges)]
    observed = np.histogram2d(data["x"], data["y"], bins=bins)[0].ravel()
    assert observed.sum() == len(data)
    big = expected >= 5
    observed = np.append(observed[big], observed[~big].sum())
    expected = np.append(expected[big], expected[~big].sum())
    assert len(expected) > 100
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_five_t_truth_is_within_a_thousandth_of_the_mixture_modes() -> None:
    _, truth = datasets.five_t(1, seed=0)

    def minus_log_density(z: np.ndarray) -> float:
        parts = [
            np.prod(stats.t.pdf((z - centre) / scale, degrees) / scale)
            for centre, degrees, scale in zip(T_CENTRES, T_DEGREES, T_SCALES, strict=True)
        ]
        return -float(np.log(np.mean(parts)))

    for centre in truth:
        options = {"xatol": 1e-8, "fatol": 1e-14}
        found = optimize.minimize(minus_log_density, centre + 0.01, method="Nelder-Mead", options=options)
        assert found.x == pytest.approx(centre, abs=1e-3)


@pytest.mark.parametrize("n", [3000, 3001, 3002])
def test_three_levels_have_their_counts_and_intervals(n: int) -> None:
    data, truth = datasets.three_levels(n, seed=5)
    # The levels are five standard deviations apart: rounding y tells nearly every component.
    component = 3 - np.clip(np.rint(data["y"]).astype(int), 1, 3)
    third = n // 3
    assert np.bincount(component, minlength=3) == pytest.approx([third, third, n - 2 * third], abs=25)
    intervals = [(branch.low, branch.high) for branch in truth.branches]
    assert intervals == [(0.0, 0.5), (0.4, 0.7), (0.6, 1.0)]
    for branch in truth.branches:
        near = data[(data["y"] - branch.level).abs() < 0.3]
        inside = near.loc[near["x"].between(branch.low, branch.high), "x"]
        assert len(inside) > 0.99 * len(near)
        assert stats.kstest(inside, stats.uniform(branch.low, branch.high - branch.low).cdf).pvalue > 1e-3
        assert near["y"].mean() == pytest.approx(branch.level, abs=0.03)
    residual = data["y"] - (3 - component)
    assert residual.std() == pytest.approx(0.2, abs=0.01)


def test_three_levels_truth_says_which_branch_exists() -> None:
    _, truth = datasets.three_levels(3, seed=1)
    nan = np.nan
    x = [0.0, 0.4, 0.5, 0.55, 0.6, 0.7, 1.0]
    expected = [
        [3, nan, nan],
        [3, 2, nan],
        [3, 2, nan],
        [nan, 2, nan],
        [nan, 2, 1],
        [nan, 2, 1],
        [nan, nan, 1],
    ]
    np.testing.assert_array_equal(truth.at(x), np.array(expected, dtype=float))
    assert np.isfinite(truth.at(np.linspace(0, 1, 501))).any(axis=1).all()
    assert np.isnan(truth.at([-0.01, 1.01, nan])).all()


def test_sinusoid_has_two_halves_around_the_curves() -> None:
    data, truth = datasets.sinusoid(20_001, seed=6)
    x, y = data["x"].to_numpy(), data["y"].to_numpy()
    wave = 0.5 * np.sin(3 * np.pi * x)
    np.testing.assert_allclose(truth.at(x), np.column_stack([1.5 + wave, wave]), rtol=0, atol=1e-12)
    upper = y - wave > 0.75  # five standard deviations from either curve
    assert upper.sum() == 10_000
    residual = np.where(upper, y - 1.5 - wave, y - wave)
    assert stats.kstest(residual, stats.norm(0, 0.15).cdf).pvalue > 1e-3
    assert stats.kstest(x, stats.uniform.cdf).pvalue > 1e-3


@pytest.mark.parametrize("simulator", [datasets.three_levels, datasets.sinusoid])
def test_regression_rows_come_in_random_order(simulator: Any) -> None:
    data, _ = simulator(3000, seed=7)
    position = np.arange(len(data))
    assert abs(np.corrcoef(position, data["y"])[0, 1]) < 0.08
    assert abs(np.corrcoef(position, data["x"])[0, 1]) < 0.08


def test_modal_truth_is_a_plain_frozen_value() -> None:
    _, truth = datasets.sinusoid(2, seed=1)
    assert pickle.loads(pickle.dumps(truth)) == truth
    with pytest.raises(AttributeError):
        truth.branches = ()  # type: ignore[misc]
    assert truth.at(0.5).shape == (1, 2)
    with pytest.raises(InvalidArgument, match="one-dimensional, got 2 dimensions"):
        truth.at(np.zeros((2, 2)))
