"""Branches of conditional modes, on surfaces whose modes are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from pydpmode import KernelSurface, datasets
from pydpmode.errors import InvalidArgument
from pydpmode.numerics.branch_linking import link_peaks
from pydpmode.numerics.conditional_peaks import Peaks, Slices, edge_ratio, find_peaks
from pydpmode.numerics.conditional_regions import (
    conditional_density,
    conditional_mean,
    highest_density_regions,
    modal_residual_scale,
)
from pydpmode.numerics.modal_branches import branches_at, find_branches, valley_threshold
from pydpmode.numerics.regression_bandwidth import noise_units, regression_bandwidth
from pydpmode.numerics.surfaces import Surface


def kernel_surface(points: np.ndarray, bandwidth: list[float], bounds: list[tuple[float, float]]) -> Surface:
    lower, upper = np.array(bounds, dtype=float).T
    return KernelSurface.from_points(points, bandwidth, lower, upper)


@pytest.fixture(scope="module")
def two_waves() -> Surface:
    data, _ = datasets.sinusoid(6000, seed=3)
    return kernel_surface(data.to_numpy(), bandwidth=[0.03, 0.08], bounds=[(0, 1), (-1, 2.5)])


def slices_of(density: np.ndarray, noise: float = 0.0) -> Slices:
    c, g = density.shape
    return Slices(
        axes=(np.linspace(0, 1, c),),
        responses=np.linspace(0, 1, g),
        density=density,
        bandwidth=np.array([0.1, 0.05]),
        noise_sd=noise,
        gradient_variance=0.0,
        roughness=0.0,
        gradient_roughness=0.0,
        records=1e6,
        cells=np.array([10.0, 20.0]),
    )


def test_peaks_are_exact_for_parabolas_and_prominences_follow_the_valleys() -> None:
    y = np.linspace(0, 1, 101)
    heights, centres = (1.0, 2.0, 0.5), (0.203, 0.497, 0.8)
    row = np.max([h - 100 * (y - c) ** 2 for h, c in zip(heights, centres, strict=True)], axis=0)
    row = np.maximum(row, 0.0)
    peaks = find_peaks(slices_of(np.stack([row, row])))
    assert peaks.column.tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(peaks.response[:3], centres, atol=1e-9)
    np.testing.assert_allclose(peaks.height[:3], heights, atol=1e-9)
    np.testing.assert_allclose(peaks.curvature, -200, rtol=1e-6)
    np.testing.assert_allclose(peaks.prominence[:3], heights, atol=1e-9)  # the valleys are at zero
    np.testing.assert_allclose(peaks.relative[:3], [0.5, 1.0, 0.25], atol=1e-9)


def test_a_shallow_valley_leaves_little_prominence() -> None:
    y = np.linspace(0, 1, 201)
    row = norm.pdf(y, 0.4, 0.1) + 0.9 * norm.pdf(y, 0.65, 0.1)
    peaks = find_peaks(slices_of(row[None, :].repeat(2, axis=0)))
    first, second = peaks.height[:2]
    between = row[(y > 0.4) & (y < 0.65)].min()
    assert peaks.prominence[0] == pytest.approx(first)
    assert peaks.prominence[1] == pytest.approx(second - between, rel=1e-3)


def test_links_join_mutual_nearest_neighbours_and_no_two_of_one_slice() -> None:
    column = np.array([0, 0, 1, 1, 2, 2, 2])
    response = np.array([0.0, 1.0, 0.05, 1.02, 0.1, 0.9, 1.06])
    zeros = np.zeros(7)
    peaks = Peaks(column, column, response, zeros, zeros, zeros, zeros)
    branch = link_peaks(peaks, (3,), gap=0.2)
    assert branch[0] == branch[2] == branch[4]
    assert branch[1] == branch[3] == branch[6]
    assert branch[5] not in (branch[0], branch[1])
    assert np.unique(link_peaks(peaks, (3,), gap=0.01)).size == 7


def test_the_tail_of_a_kernel_is_told_from_data_that_fade_out() -> None:
    x = np.linspace(0, 1, 41)
    y = np.linspace(0, 1, 101)
    ridge = norm.pdf(y, 0.5, 0.1)
    ends = norm.cdf((0.5 - x) / 0.1)[:, None] * ridge  # data end at .5, bandwidth .1
    fades = np.exp(-2 * x)[:, None] * ridge
    for density, last in ((ends, 0.5), (fades, 1.0)):
        slices = slices_of(density)
        peaks = find_peaks(slices)
        kept = x[peaks.column[edge_ratio(slices, peaks) >= 0.65]]
        assert kept.max() == pytest.approx(last, abs=0.06)


def test_both_branches_of_a_non_private_surface_are_found(two_waves: Surface) -> None:
    found = find_branches(two_waves, 1).certified_only()
    assert found.count == 2
    x = np.linspace(0.05, 0.95, 60)
    at = branches_at(found, x[:, None])
    _, truth = datasets.sinusoid(10, seed=1)
    error = np.sort(at.estimate, axis=1) - np.sort(truth.at(x), axis=1)
    assert np.sqrt(np.mean(error**2)) < 0.04
    np.testing.assert_allclose(found.shares(), [0.5, 0.5], atol=0.03)
    np.testing.assert_allclose(np.nansum(at.share, axis=1), 1.0, atol=0.02)


def test_the_response_may_be_any_coordinate(two_waves: Surface) -> None:
    data, _ = datasets.sinusoid(6000, seed=3)
    turned = kernel_surface(data.to_numpy()[:, ::-1], bandwidth=[0.08, 0.03], bounds=[(-1, 2.5), (0, 1)])
    first, second = find_branches(two_waves, 1), find_branches(turned, 0)
    np.testing.assert_array_equal(first.point, second.point)
    np.testing.assert_allclose(first.estimate, second.estimate, atol=1e-9)


def test_two_predictors_give_a_surface_of_modes() -> None:
    random = np.random.default_rng(4)
    x = random.uniform(size=(20_000, 2))
    y = 1 + x[:, 0] - x[:, 1] + 0.15 * random.standard_normal(20_000)
    surface = kernel_surface(
        np.column_stack([x, y]), bandwidth=[0.1, 0.1, 0.08], bounds=[(0, 1), (0, 1), (-1, 3)]
    )
    found = find_branches(surface, 2).certified_only()
    assert found.count == 1
    points = random.uniform(0.15, 0.85, size=(50, 2))
    at = branches_at(found, points)
    np.testing.assert_allclose(at.estimate[:, 0], 1 + points[:, 0] - points[:, 1], atol=0.08)
    inside = np.all(np.abs(found.points() - 0.5) < 0.25, axis=1)
    np.testing.assert_allclose(np.median(found.slope[inside], axis=0), [1, -1], atol=0.1)


def test_sampling_errors_of_branches_are_those_of_repeated_samples() -> None:
    estimates, claimed = [], []
    for seed in range(60):
        random = np.random.default_rng(seed)
        x = random.uniform(size=1500)
        data = np.column_stack([x, 1 + 0.3 * random.standard_normal(1500)])
        surface = kernel_surface(data, bandwidth=[0.2, 0.15], bounds=[(0, 1), (-1, 3)])
        at = branches_at(find_branches(surface, 1), np.array([[0.5]]))
        estimates.append(float(at.estimate[0, 0]))
        claimed.append(float(np.sqrt(at.variance_sampling[0, 0])))
    assert np.std(estimates) == pytest.approx(np.mean(claimed), rel=0.25)


def test_no_branch_where_there_are_no_data(two_waves: Surface) -> None:
    data, _ = datasets.sinusoid(4000, seed=5)
    part = data[(data.x < 0.3) | (data.x > 0.7)].to_numpy()
    surface = kernel_surface(part, bandwidth=[0.02, 0.1], bounds=[(0, 1), (-1, 2.5)])
    at = branches_at(find_branches(surface, 1).certified_only(), np.array([[0.2], [0.5], [0.8]]))
    assert np.isfinite(at.estimate).any(axis=1).tolist() == [True, False, True]


def test_wrong_dimensions_and_rates_are_refused(two_waves: Surface) -> None:
    with pytest.raises(InvalidArgument, match="predictors"):
        find_branches(two_waves, 2)
    with pytest.raises(InvalidArgument, match="rate"):
        find_branches(two_waves, 1, false_branch_rate=0.0)


def test_mean_and_regions_are_those_of_a_normal_density() -> None:
    random = np.random.default_rng(2)
    data = np.column_stack([random.uniform(size=40_000), 1 + 0.4 * random.standard_normal(40_000)])
    surface = kernel_surface(data, bandwidth=[0.1, 0.05], bounds=[(0, 1), (-1, 3)])
    read = conditional_density(surface, 1, np.array([[0.5], [0.5]]))
    np.testing.assert_allclose(conditional_mean(read, 0.0), 1.0, atol=0.03)
    ((low, high),) = highest_density_regions(read, 0.9, 0.0)[0]
    assert (low, high) == pytest.approx((1 - 0.4 * 1.66, 1 + 0.4 * 1.66), abs=0.06)
    assert modal_residual_scale(surface, 1, find_branches(surface, 1)) == pytest.approx(0.4, abs=0.06)


def test_a_region_of_two_modes_has_two_intervals(two_waves: Surface) -> None:
    read = conditional_density(two_waves, 1, np.array([[0.3]]))
    regions = highest_density_regions(read, 0.8, 0.0)[0]
    assert len(regions) == 2
    assert regions[0][1] < regions[1][0]


def test_the_public_bandwidth_rule() -> None:
    lower, upper = np.array([0.0, 0.0]), np.array([2.0, 10.0])
    values = regression_bandwidth(lower, upper, n=1000, mu=0.25)
    m = noise_units(1000, 0.25)
    assert m == pytest.approx(1 / np.hypot(np.sqrt(2) / 250, 1.4 / 1000))
    assert values[0] == pytest.approx(2 * 0.65 * m**-0.5)
    assert values[1] == pytest.approx(10 * 0.18 * m**-0.2)
    tiny = regression_bandwidth(lower, upper, n=1, mu=0.01)
    np.testing.assert_allclose(tiny, [1.0, 2.0])
    with pytest.raises(InvalidArgument, match="records"):
        regression_bandwidth(lower, upper, n=0, mu=0.1)


def test_valleys_must_be_deeper_in_wider_boxes() -> None:
    assert 3 < valley_threshold(np.array([5.0, 5.0])) < valley_threshold(np.array([50.0, 50.0])) < 8
