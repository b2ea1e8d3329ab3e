from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.mode_candidates import search_grid
from pydpmode.numerics.mode_errors import curvature_z_scores, location_covariances, total_variance
from pydpmode.numerics.mode_seeking import ascend, assign_basins, find_modes
from pydpmode.numerics.mode_set import ModeSet
from pydpmode.numerics.surfaces import Surface

FloatArray = NDArray[np.float64]
Make = Callable[..., Any]

FOUR = np.array([[3.0, 3.0], [3.0, -3.0], [-3.0, 3.0], [-3.0, -3.0]])
PEAK = 1 / (2 * np.pi)


def sorted_rows(array: FloatArray) -> FloatArray:
    return array[np.lexsort(array.round(6).T)]


def assert_sound(modes: ModeSet, surface: Any) -> None:
    """Everything that must hold of any answer: shapes, order, no NaN, counts that add up."""
    k, d = modes.count, surface.lower.size
    assert modes.locations.shape == modes.on_face.shape == (k, d)
    assert modes.covariance_privacy.shape == modes.covariance_sampling.shape == (k, d, d)
    for each in fields(modes):
        if each.name != "diagnostics":
            array = getattr(modes, each.name)
            assert array.shape[0] == k
            if not each.name.startswith("covariance"):
                assert not np.isnan(array.astype(float)).any(), each.name
    assert np.all(np.diff(modes.densities) <= 0)
    assert np.all((modes.locations >= surface.lower) & (modes.locations <= surface.upper))
    assert np.all(modes.significant[modes.reliable])
    if k:
        assert modes.mass.sum() == pytest.approx(1.0)
        assert np.all(modes.mass >= 0)
        assert np.isposinf(modes.persistence[0])
        assert np.isposinf(modes.persistence_z[0])
        assert np.all(np.isfinite(modes.persistence[1:]))
    found = modes.diagnostics
    assert found.candidates == k + found.dropped_by_height + found.dropped_by_persistence + found.merged
    ints = (found.candidates, found.dropped_by_height, found.merged, found.newton_steps, found.requested)
    assert all(type(number) is int for number in ints)


def test_four_gaussians_without_noise(mixture: Make) -> None:
    surface = mixture(FOUR, lower=-8, upper=8, n_effective=5000)
    modes = find_modes(surface)
    assert_sound(modes, surface)
    np.testing.assert_allclose(sorted_rows(modes.locations), sorted_rows(FOUR), atol=1e-6)
    np.testing.assert_allclose(modes.densities, PEAK / 4, rtol=1e-4)
    np.testing.assert_allclose(modes.mass, 0.25, atol=0.01)
    assert modes.reliable.all()
    assert modes.diagnostics.all_converged
    assert modes.diagnostics.height_threshold == 0.0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_modes_are_maxima_to_high_precision(mixture: Make, d: int) -> None:
    rng = np.random.default_rng(d)
    centres = np.vstack([np.zeros(d), 2.6 * np.eye(d)[0], rng.uniform(-4, -3, d)])
    surface = mixture(centres, weights=[0.5, 0.3, 0.2], sd=0.9, bandwidth=0.7, lower=-6, upper=6)
    modes = find_modes(surface)
    assert_sound(modes, surface)
    assert modes.count == 3
    _, gradient, hessian = surface.derivatives(modes.locations)
    assert np.max(np.abs(gradient)) < 1e-9
    assert np.linalg.eigvalsh(hessian).max() < 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
def test_answers_do_not_depend_on_units(mixture: Make, scale: float) -> None:
    units = np.array([scale, 1.0])
    plain = mixture(FOUR, lower=-8, upper=8, noise_sd=0.003, n_effective=4000)
    moved = mixture(
        FOUR * units,
        sd=units,
        bandwidth=units,
        lower=-8 * units,
        upper=8 * units,
        noise_sd=0.003 / scale,
        n_effective=4000,
    )
    one, two = find_modes(plain), find_modes(moved)
    np.testing.assert_allclose(sorted_rows(two.locations / units), sorted_rows(one.locations), atol=1e-5)
    for name, tolerance in (("height_z", 1e-4), ("curvature_z", 1e-4), ("mass", 0.01)):
        np.testing.assert_allclose(np.sort(getattr(two, name)), np.sort(getattr(one, name)), rtol=tolerance)
    assert two.diagnostics.noise_cells == pytest.approx(one.diagnostics.noise_cells)


def test_errors_match_their_formulas(mixture: Make) -> None:
    surface = mixture([[0.5, -0.5]], sd=[1.0, 2.0], bandwidth=[0.8, 1.1], noise_sd=0.002, n_effective=900.0)
    modes = find_modes(surface)
    assert modes.count == 1
    p = PEAK / 2
    inverse = -np.diag([1.0, 4.0]) / p
    privacy = np.diag(0.002**2 / np.array([0.8, 1.1]) ** 2)
    kernel = 1 / (4 * np.pi * 0.8 * 1.1)
    sampling = np.diag(kernel / 2 / np.array([0.8, 1.1]) ** 2) * p / 900
    np.testing.assert_allclose(
        modes.covariance_privacy[0], inverse @ privacy @ inverse, rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(
        modes.covariance_sampling[0], inverse @ sampling @ inverse, rtol=1e-6, atol=1e-12
    )
    variance = 0.002**2 + (kernel * p - p * p) / 900
    assert modes.height_z[0] == pytest.approx(p / np.sqrt(variance))
    # Bends least, in bandwidths, along the second axis: curvature p h^2 / 4, noise sqrt(3) sd.
    assert modes.curvature_z[0] == pytest.approx(p * 1.1**2 / 4 / (np.sqrt(3) * 0.002))


def test_curvature_is_that_of_the_flattest_direction_off_the_axes(mixture: Make) -> None:
    surface = mixture([[0.0, 0.0]], noise_sd=0.01)
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    hessian = turn @ np.diag([-5.0, -2.0]) @ turn.T
    np.testing.assert_allclose(
        curvature_z_scores(surface, hessian[None]), [2.0 / (np.sqrt(3) * 0.01)], rtol=1e-9
    )


def test_covariance_is_nan_where_the_curvature_is_not_definite(mixture: Make) -> None:
    surface = mixture([[0.0, 0.0]], noise_sd=0.01, n_effective=100.0)
    hessians = np.array([np.diag([-1.0, 1.0]), np.zeros((2, 2)), np.diag([-1.0, -1.0])])
    privacy, sampling = location_covariances(surface, np.ones(3), hessians, np.zeros((3, 2), bool))
    assert np.isnan(privacy[:2]).all()
    assert np.isnan(sampling[:2]).all()
    assert np.isfinite(privacy[2]).all()


def test_total_variance_never_goes_below_the_noise(mixture: Make) -> None:
    surface = mixture([[0.0]], noise_sd=0.1, n_effective=50.0)
    variance = total_variance(surface, np.array([-5.0, 0.0, 0.1, 1e6]))
    assert variance[2] > 0.01
    np.testing.assert_allclose(variance[[0, 1, 3]], 0.01)


def test_a_hill_of_noise_is_dropped_and_a_clear_one_kept(mixture: Make) -> None:
    clear = mixture([[0.0], [5.0]], weights=[0.8, 0.2], lower=-10, upper=10, noise_sd=0.008)
    faint = mixture([[0.0], [5.0]], weights=[0.95, 0.05], lower=-10, upper=10, noise_sd=0.008)
    assert find_modes(clear).count == 2
    modes = find_modes(faint)
    assert modes.count == 1
    assert modes.diagnostics.dropped_by_height == 1
    assert modes.mass[0] == 1.0


def test_a_low_saddle_is_asked_for(mixture: Make) -> None:
    two_close = mixture([[-1.15], [1.15]], lower=-10, upper=10, noise_sd=0.01)
    modes = find_modes(two_close)
    assert modes.count == 1
    assert modes.diagnostics.dropped_by_persistence == 1
    assert find_modes(two_close, n_modes=2).significant.tolist() == [True, False]
    assert find_modes(mixture([[-1.15], [1.15]], lower=-10, upper=10), merge_radius=0.5).count == 2


def test_sampling_error_alone_sets_the_thresholds_without_noise(mixture: Make) -> None:
    centres = [[0.0], [6.0]]
    many = mixture(centres, weights=[0.97, 0.03], lower=-10, upper=10, bandwidth=0.5, n_effective=5000.0)
    few = mixture(centres, weights=[0.97, 0.03], lower=-10, upper=10, bandwidth=0.5, n_effective=100.0)
    assert find_modes(many).count == 2
    assert find_modes(few).count == 1


@pytest.mark.parametrize("d", [1, 2])
def test_one_hill_with_noise_has_one_mode(mixture: Make, d: int) -> None:
    counts = []
    for seed in range(40 if d == 1 else 15):
        noise_sd = (2 * np.pi) ** (-d / 2) / 8
        surface = mixture(np.zeros((1, d)), sd=1.5, noise_sd=noise_sd / 1.5**d, seed=seed)
        counts.append(find_modes(surface).count)
    assert np.mean(np.array(counts) > 1) <= 0.1
    assert min(counts) == 1


def test_pure_noise_gives_at_most_one_mode_that_is_not_significant(mixture: Make) -> None:
    significant = 0
    for seed in range(30):
        surface = mixture([[0.0, 0.0]], weights=[0.0], lower=-5, upper=5, noise_sd=1.0, seed=seed)
        modes = find_modes(surface)
        assert_sound(modes, surface)
        significant += int(modes.significant.any())
    assert significant <= 4


@pytest.mark.parametrize("d", [1, 2, 3])
def test_number_asked_for(mixture: Make, d: int) -> None:
    centres = 3.0 * np.vstack([np.zeros(d), np.eye(d)[0], -np.eye(d)[0]])
    surface = mixture(centres, weights=[0.5, 0.3, 0.2], lower=-6, upper=6)
    for asked, count in ((1, 1), (2, 2), (3, 3), (9, 3)):
        modes = find_modes(surface, n_modes=asked)
        assert_sound(modes, surface)
        assert modes.count == count
        assert modes.diagnostics.requested == asked
    np.testing.assert_allclose(find_modes(surface, n_modes=2).locations[:, 0], [0.0, 3.0], atol=0.1)
    assert find_modes(surface).diagnostics.requested == 0


def test_close_modes_merge_within_the_radius(mixture: Make) -> None:
    surface = mixture([[-1.2], [1.2]], bandwidth=3.0)
    assert find_modes(surface, grid_step=0.05).count == 1
    assert find_modes(surface, grid_step=0.05).diagnostics.merged == 1
    assert find_modes(surface, grid_step=0.05, merge_radius=0.0).count == 2
    assert find_modes(surface, grid_step=0.05, n_modes=2).count == 2


def test_highest_mode_has_infinite_persistence_after_refinement_too(mixture: Make) -> None:
    # Equal hills, the second off the grid: the highest node is not on the higher hill.
    surface = mixture([[-3.0], [3.1]], weights=[0.4995, 0.5005], lower=-6, upper=6)
    modes = find_modes(surface)
    assert_sound(modes, surface)
    assert modes.locations[0, 0] == pytest.approx(3.1, abs=1e-3)


@pytest.mark.parametrize("centre", [[-7.0, 0.0], [-7.0, 9.0]])
def test_mode_on_a_face(mixture: Make, centre: list[float]) -> None:
    surface = mixture([centre], sd=2.0, noise_sd=1e-4, n_effective=1e4)
    modes = find_modes(surface)
    assert_sound(modes, surface)
    face = np.abs(np.array(centre)) > 6
    np.testing.assert_array_equal(modes.on_face[0], face)
    np.testing.assert_allclose(modes.locations[0], np.clip(centre, -6, 6), atol=1e-6)
    assert not modes.reliable[0]
    assert modes.diagnostics.all_converged
    assert np.isnan(modes.covariance_privacy[0][face]).all()
    assert np.isfinite(np.diag(modes.covariance_privacy[0])[~face]).all()


def test_face_maximum_of_a_tilted_hill_satisfies_the_optimality_condition(mixture: Make) -> None:
    surface = mixture([[-7.0, 2.0], [-5.0, -1.0]], sd=[2.0, 1.5], lower=-6, upper=6)
    modes = find_modes(surface)
    best = minimize(
        lambda x: -surface.density(x[None])[0],
        [-5.5, 0.5],
        bounds=[(-6, 6)] * 2,
        jac=lambda x: -surface.gradient(x[None])[0],
    )
    np.testing.assert_allclose(modes.locations[0], best.x, atol=1e-3)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("noise_sd", [0.0, 0.1])
def test_constant_surface(mixture: Make, d: int, noise_sd: float) -> None:
    surface = mixture(np.zeros((1, d)), weights=[0.0], offset=0.01, noise_sd=noise_sd, n_effective=100.0)
    modes = find_modes(surface)
    assert_sound(modes, surface)
    assert modes.count == 1
    assert not modes.reliable[0]


@pytest.mark.parametrize("d", [1, 3, 4])
@pytest.mark.parametrize("n_modes", [None, 3])
def test_nothing_above_zero_gives_no_modes(mixture: Make, d: int, n_modes: int | None) -> None:
    for offset, weights in ((-5.0, [1.0]), (0.0, [0.0])):
        surface = mixture(np.zeros((1, d)), weights=weights, offset=offset, noise_sd=0.1, n_effective=10.0)
        modes = find_modes(surface, n_modes=n_modes)
        assert_sound(modes, surface)
        assert modes.count == 0
        assert modes.locations.shape == (0, d)


@pytest.mark.parametrize("n_effective", [0.0, -12.5])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_no_records_gives_one_unreliable_mode(mixture: Make, n_effective: float, d: int) -> None:
    centres = np.vstack([np.zeros(d), np.full(d, 3.0)])
    surface = mixture(centres, noise_sd=0.01, n_effective=n_effective)
    modes = find_modes(surface)
    assert_sound(modes, surface)
    assert modes.count == 1
    assert not modes.reliable.any()
    assert not modes.significant.any()
    assert modes.height_z[0] == 0.0


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_box_much_smaller_than_the_bandwidth(mixture: Make, d: int) -> None:
    surface = mixture(np.full((1, d), 0.003), bandwidth=2.0, lower=-0.01, upper=0.01, n_effective=100.0)
    modes = find_modes(surface)
    assert_sound(modes, surface)
    assert modes.count == 1
    np.testing.assert_allclose(modes.locations[0], 0.003, atol=1e-4)


def test_tiny_densities_do_not_underflow(mixture: Make) -> None:
    surface = mixture(
        np.zeros((1, 3)), sd=1e30, bandwidth=1e30, lower=-5e30, upper=5e30, noise_sd=1e-93, n_effective=1e4
    )
    modes = find_modes(surface)
    assert_sound(modes, surface)
    assert modes.reliable.all()
    assert np.sqrt(modes.covariance_privacy[0, 0, 0]) < 1e30


def test_wide_box_coarsens_the_grid_and_says_so(mixture: Make) -> None:
    surface = mixture([[0.0, 0.0]], lower=-40, upper=40)
    fine = find_modes(surface).diagnostics
    assert fine.grid_shape == (201, 201)
    assert not fine.coarse_grid
    wider = find_modes(surface, max_grid=20_000).diagnostics
    assert np.prod(wider.grid_shape) <= 20_000
    assert not wider.coarse_grid
    assert find_modes(surface, max_grid=5000).diagnostics.coarse_grid
    assert find_modes(surface, grid_step=0.8).diagnostics.coarse_grid


@pytest.mark.parametrize("max_nodes", [1, 1000, 10**6])
def test_grid_reaches_both_faces_and_keeps_to_its_limits(mixture: Make, max_nodes: int) -> None:
    surface = mixture(np.zeros((1, 3)), lower=[-1, -50, 0], upper=[1, 50, 1e-3])
    grid = search_grid(surface, max_nodes=max_nodes)
    assert np.prod(grid.shape) <= max(max_nodes, 9**3)
    for axis, low, high in zip(grid.axes, surface.lower, surface.upper, strict=True):
        assert (axis[0], axis[-1]) == (low, high)
    assert max_nodes < 10**6 or np.all(grid.step <= 0.4 + 1e-12)


def test_mass_of_a_dropped_peak_goes_to_its_neighbour(mixture: Make) -> None:
    surface = mixture([[-5.0], [5.0], [7.6]], weights=[0.5, 0.42, 0.08], lower=-10, upper=10, noise_sd=0.012)
    modes = find_modes(surface)
    assert modes.count == 2
    np.testing.assert_allclose(modes.mass, [0.5, 0.5], atol=0.02)


@pytest.mark.parametrize("d", [4, 5, 8])
def test_many_dimensions(mixture: Make, d: int) -> None:
    centres = np.vstack([np.zeros(d), 4.0 * np.eye(d)[0], -4.0 * np.eye(d)[1]])
    surface = mixture(centres, weights=[0.5, 0.3, 0.2], lower=-6, upper=6, n_effective=1e7)
    modes = find_modes(surface)
    assert_sound(modes, surface)
    assert modes.count == 3
    np.testing.assert_allclose(modes.locations, centres, atol=0.01)
    np.testing.assert_allclose(modes.mass, [0.5, 0.3, 0.2], atol=0.03)
    assert modes.diagnostics.grid_shape == ()
    again = find_modes(surface)
    np.testing.assert_array_equal(modes.locations, again.locations)
    assert find_modes(surface, n_modes=2).count == 2
    assert find_modes(surface, n_modes=20).count == 3


def test_noise_in_four_dimensions_makes_no_modes(mixture: Make) -> None:
    # A broad hill: its noisy top has several peaks above the height threshold.
    peak = (2 * np.pi) ** -2 / 2.5**4
    for seed in (0, 5):
        surface = mixture(np.zeros((1, 4)), sd=2.5, noise_sd=peak / 6, seed=seed)
        modes = find_modes(surface)
        assert_sound(modes, surface)
        assert modes.count == 1
        assert modes.diagnostics.dropped_by_persistence > 0


def test_ascent_from_everywhere_ends_in_maxima(mixture: Make) -> None:
    surface = mixture(FOUR, lower=-8, upper=8)
    starts = np.random.default_rng(0).uniform(-8, 8, (300, 2))
    ends, steps, converged = ascend(surface, starts)
    assert converged.all()
    assert steps.max() < 40
    _, gradient, _ = surface.derivatives(ends)
    assert np.abs(gradient).max() < 1e-8
    assert np.all(surface.density(ends) >= surface.density(starts) - 1e-12)


def test_ascent_takes_few_evaluations(mixture: Make) -> None:
    surface = mixture(FOUR, lower=-8, upper=8)
    surface.calls.clear()
    _, steps, _ = ascend(surface, FOUR + 0.15)
    assert len(surface.calls) == steps.max() + 1 <= 5


def test_ascent_uphill_through_noise_below_zero(mixture: Make) -> None:
    surface = mixture([[0.0]], lower=-30, upper=30, noise_sd=0.02, seed=3, n_effective=100.0)
    starts = np.linspace(-30, 30, 61)[:, None]
    ends, _, converged = ascend(surface, starts)
    assert converged.all()
    assert np.all(surface.density(ends) >= surface.density(starts) - 1e-9)


def test_ascent_gives_up_after_max_steps_and_takes_no_starts(mixture: Make) -> None:
    surface = mixture([[0.0, 0.0]])
    ends, steps, converged = ascend(surface, [[4.0, 4.0], [0.0, 0.0]], max_steps=1)
    assert converged.tolist() == [False, True]
    assert steps.tolist() == [1, 0]
    assert np.linalg.norm(ends[0]) < np.linalg.norm([4.0, 4.0])
    ends, steps, converged = ascend(surface, np.empty((0, 2)))
    assert (ends.shape, steps.shape, converged.shape) == ((0, 2), (0,), (0,))
    with pytest.raises(InvalidArgument, match="shape"):
        ascend(surface, [1.0, 2.0])


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_points_go_to_their_basins(mixture: Make, d: int) -> None:
    centres = 3.0 * np.vstack([np.eye(d)[0], -np.eye(d)[0]])
    surface = mixture(centres, weights=[0.6, 0.4], lower=-6, upper=6, n_effective=1e5)
    modes = find_modes(surface)
    rng = np.random.default_rng(d)
    points = rng.normal(size=(400, d)) * 0.8 + centres[rng.integers(0, 2, 400)]
    labels = assign_basins(surface, modes.locations, points)
    clear = np.abs(points[:, 0]) > 0.6
    np.testing.assert_array_equal(labels[clear], np.where(points[clear, 0] > 0, 0, 1))


def test_basins_of_dropped_peaks_and_of_moved_or_shared_modes(mixture: Make) -> None:
    surface = mixture([[-5.0], [5.0], [8.5]], weights=[0.5, 0.42, 0.08], lower=-12, upper=12)
    points = np.array([[-9.0], [4.0], [8.5], [99.0]])
    assert assign_basins(surface, [[-5.0], [5.0]], points).tolist() == [0, 1, 1, 1]
    assert assign_basins(surface, [[-4.3], [5.9]], points).tolist() == [0, 1, 1, 1]
    assert assign_basins(surface, [[-6.0], [-4.0], [5.0]], points).tolist() == [0, 2, 2, 2]
    assert assign_basins(surface, [[5.0], [8.5]], points).tolist() == [0, 0, 1, 1]
    assert assign_basins(surface, [[5.0]], points).tolist() == [0, 0, 0, 0]
    assert assign_basins(surface, np.empty((0, 1)), points).tolist() == [-1] * 4
    with pytest.raises(InvalidArgument, match="points"):
        assign_basins(surface, [[5.0]], [1.0])


def test_masses_agree_with_assigned_points(mixture: Make) -> None:
    surface = mixture(FOUR, weights=[0.4, 0.3, 0.2, 0.1], lower=-8, upper=8)
    modes = find_modes(surface)
    rng = np.random.default_rng(1)
    points = FOUR[rng.choice(4, 20000, p=[0.4, 0.3, 0.2, 0.1])] + rng.normal(size=(20000, 2))
    share = np.bincount(assign_basins(surface, modes.locations, points), minlength=4) / 20000
    np.testing.assert_allclose(share, modes.mass, atol=0.015)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_modes", 0),
        ("n_modes", -1),
        ("n_modes", 2.5),
        ("n_modes", True),
        ("n_modes", "two"),
        ("false_mode_rate", 0.0),
        ("false_mode_rate", 1.0),
        ("false_mode_rate", float("nan")),
        ("grid_step", 0.0),
        ("grid_step", float("inf")),
        ("grid_step", float("nan")),
        ("merge_radius", -0.1),
        ("merge_radius", float("nan")),
        ("max_grid", 0),
        ("max_grid", 1.5),
    ],
)
def test_bad_parameters_are_named(mixture: Make, name: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match=name):
        find_modes(mixture([[0.0]]), **{name: value})  # type: ignore[arg-type]


def test_numpy_integers_are_whole_numbers(mixture: Make) -> None:
    assert find_modes(mixture(FOUR, lower=-8, upper=8), n_modes=np.int64(3)).count == 3  # type: ignore[arg-type]


def test_the_test_surface_is_a_surface_with_true_derivatives(mixture: Make) -> None:
    surface = mixture(FOUR, sd=1.3, noise_sd=0.01, seed=4)
    assert isinstance(surface, Surface)
    x, step = np.random.default_rng(0).uniform(-4, 4, (20, 2)), 1e-5
    _, gradient, hessian = surface.derivatives(x)
    for a in range(2):
        move = step * np.eye(2)[a]
        slope = (surface.density(x + move) - surface.density(x - move)) / (2 * step)
        bend = (surface.gradient(x + move) - surface.gradient(x - move)) / (2 * step)
        np.testing.assert_allclose(gradient[:, a], slope, atol=1e-7)
        np.testing.assert_allclose(hessian[:, :, a], bend, atol=1e-7)


def test_search_is_fast_beyond_the_surface_itself(mixture: Make) -> None:
    surface = mixture(FOUR, lower=-50, upper=50, noise_sd=0.003, seed=2, n_effective=5000.0, features=100)

    class Stored:
        """The same surface with its grid remembered, so that only the search is timed."""

        def __init__(self) -> None:
            self.grid: dict[tuple[int, ...], FloatArray] = {}

        def __getattr__(self, name: str) -> Any:
            return getattr(surface, name)

        def density_on_grid(self, axes: tuple[FloatArray, ...]) -> FloatArray:
            key = tuple(axis.size for axis in axes)
            if key not in self.grid:
                self.grid[key] = surface.density_on_grid(axes)
            return self.grid[key]

    stored = Stored()
    assert find_modes(stored).diagnostics.grid_shape == (251, 251)  # type: ignore[arg-type]
    times = []
    for _ in range(5):
        start = time.perf_counter()
        find_modes(stored)  # type: ignore[arg-type]
        times.append(time.perf_counter() - start)
    # About 0.025 s; the bound leaves room for a busy machine.
    assert min(times) < 0.25
