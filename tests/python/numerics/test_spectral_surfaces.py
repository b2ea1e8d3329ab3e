"""Surfaces read from Fourier coefficients: against direct sums, finite differences and quadrature."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pydpmode.errors import InvalidArgument, UnknownColumn
from pydpmode.numerics import fourier_sums
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.kernel_surface import DirectKernelSurface
from pydpmode.numerics.kernels import ORDERS, kernel_peak, kernel_shape
from pydpmode.numerics.spectral_surfaces import (
    LatticeSurface,
    RandomFeatureSurface,
    coarse_reading,
    spectral_surface,
)
from pydpmode.numerics.surfaces import Surface

NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")
BANDWIDTH = np.array([0.6, 1.5, 0.2])
LOWER = np.array([-3.0, 10.0, 0.0])
UPPER = np.array([2.0, 19.0, 1.3])


def records(d: int, n: int = 80, seed: int = 0) -> np.ndarray:
    """Return points (n, d) all over the box, corners included."""
    unit = np.random.default_rng(seed).uniform(size=(n, d))
    unit[0], unit[1] = 0.0, 1.0
    return LOWER[:d] + unit * (UPPER - LOWER)[:d]


def lattice_of(
    x: np.ndarray, order: int = 2, cut: float = 8.0, names: tuple[str, ...] = NAMES
) -> LatticeSurface:
    """Return the surface of records with a cut so far out that truncation is below rounding."""
    d = x.shape[1]
    design = LatticeDesign(names[:d], LOWER[:d], UPPER[:d], BANDWIDTH[:d], order, cut=cut)
    return surface_of(design, x)


def surface_of(design: Design, x: np.ndarray) -> Any:
    total, sums = feature_sum(design, np.ascontiguousarray(x.T))
    return spectral_surface(design, sums / total, np.zeros(design.n_pairs), total)


def direct(x: np.ndarray, points: np.ndarray, h: np.ndarray, order: int = 2) -> np.ndarray:
    """Return the kernel density estimate by its definition."""
    t2 = (((points[:, None] - x) / h) ** 2).sum(axis=2)
    d = x.shape[1]
    return kernel_peak(order, d) * kernel_shape(order, d, t2).mean(axis=1) / np.prod(h)


def scale(order: int, h: np.ndarray) -> float:
    return kernel_peak(order, len(h)) / float(np.prod(h))


def noisy(design: Design, seed: int, sd: float = 0.05) -> Any:
    """Return a surface whose coefficients are noise alone."""
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(2, design.n_pairs)) * sd * np.sqrt(noise_shape(design))
    return spectral_surface(design, parts[0] + 1j * parts[1], sd**2 * noise_shape(design), 100.0)


def noise_shape(design: Design) -> np.ndarray:
    return 1 / (design.pair_weights * design.n_pairs)


# -- density --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_density_is_the_direct_sum(d: int, order: int) -> None:
    x = records(d)
    surface = lattice_of(x, order)
    points = np.concatenate([records(d, 60, 1), x[:10]])
    np.testing.assert_allclose(
        surface.density(points),
        direct(x, points, BANDWIDTH[:d], order),
        rtol=0,
        atol=1e-10 * scale(order, BANDWIDTH[:d]),
    )


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_default_cut_moves_one_record_little(d: int) -> None:
    x = records(d)[2:3]
    points = records(d, 300, 2)
    error = np.abs(lattice_of(x, cut=4.5).density(points) - direct(x, points, BANDWIDTH[:d])).max()
    assert error <= 2e-4 * scale(2, BANDWIDTH[:d])


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("ratio", [0.76, 1.0, 1.5])
def test_another_bandwidth_is_the_direct_sum_at_that_bandwidth(d: int, ratio: float) -> None:
    x, points = records(d), records(d, 40, 1)
    h = BANDWIDTH[:d] * ratio
    surface = lattice_of(x, cut=8.0).at_bandwidth(h)
    np.testing.assert_array_equal(surface.bandwidth, h)
    # Wrap-around at 1.5: opposite ends of the box are 6 bandwidths apart.
    tolerance = 3e-7 if ratio == 1.5 else 1e-7
    np.testing.assert_allclose(
        surface.density(points), direct(x, points, h), atol=tolerance * scale(2, h), rtol=0
    )


def test_bandwidths_may_differ_by_column() -> None:
    x, points = records(2), records(2, 40, 1)
    h = BANDWIDTH[:2] * np.array([0.8, 1.4])
    np.testing.assert_allclose(
        lattice_of(x).at_bandwidth(h).density(points), direct(x, points, h), atol=1e-7 * scale(2, h), rtol=0
    )


@pytest.mark.parametrize("factor", [0.7, 1.6, 0.0, -1.0, math.nan, math.inf])
def test_other_bandwidths_are_refused(factor: float) -> None:
    surface = lattice_of(records(2))
    with pytest.raises(InvalidArgument, match="bandwidth"):
        surface.at_bandwidth(BANDWIDTH[:2] * factor)


def test_a_bandwidth_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="one number or one per column"):
        lattice_of(records(2)).at_bandwidth(np.ones(3))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_grid_is_the_points(d: int) -> None:
    surface = lattice_of(records(d), 4)
    axes = [np.linspace(LOWER[a], UPPER[a], 7 + a) for a in range(d)]
    mesh = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    grid = surface.density_on_grid(axes)
    assert grid.shape == tuple(len(a) for a in axes)
    np.testing.assert_allclose(
        grid.ravel(), surface.density(mesh), rtol=0, atol=1e-12 * scale(4, BANDWIDTH[:d])
    )


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_grid_over_a_large_lattice_is_the_same(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    surface = lattice_of(records(d), 4)
    axes = [np.linspace(LOWER[a], UPPER[a], 7 + a) for a in range(d)]
    by_products = surface.density_on_grid(axes)
    monkeypatch.setattr(fourier_sums, "LARGEST_PHASES", 1)
    monkeypatch.setattr(fourier_sums, "_POINTS_AT_ONCE", 50)
    by_transform = surface.density_on_grid(axes)
    assert not np.array_equal(by_transform, by_products)
    np.testing.assert_allclose(by_transform, by_products, rtol=0, atol=1e-8 * scale(4, BANDWIDTH[:d]))


def test_many_points_in_chunks_are_each_point_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    surface = lattice_of(records(2))
    points = records(2, 50, 3)
    whole = surface.derivatives(points)
    monkeypatch.setattr("pydpmode.numerics.spectral_surfaces._CHUNK", 1)
    for one, other in zip(whole, surface.derivatives(points), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


# -- derivatives ----------------------------------------------------------------------------------


def check_derivatives(surface: Surface, points: np.ndarray) -> None:
    """Compare gradient and Hessian with central differences of the density and of the gradient."""
    h = surface.bandwidth
    d = len(h)
    unit = float(np.abs(surface.density(points)).max())
    value, gradient, hessian = surface.derivatives(points)
    np.testing.assert_allclose(value, surface.density(points), rtol=1e-12, atol=1e-13 * unit)
    np.testing.assert_allclose(gradient, surface.gradient(points), rtol=1e-10, atol=1e-13 * unit / h.min())
    np.testing.assert_allclose(hessian, surface.hessian(points), rtol=1e-9, atol=1e-12 * unit / h.min() ** 2)
    np.testing.assert_array_equal(hessian, np.swapaxes(hessian, 1, 2))
    for a in range(d):
        step = np.zeros(d)
        step[a] = 1e-4 * h[a]
        slope = (surface.density(points + step) - surface.density(points - step)) / (2e-4 * h[a])
        np.testing.assert_allclose(gradient[:, a], slope, rtol=0, atol=2e-6 * unit / h[a])
        bend = (surface.gradient(points + step) - surface.gradient(points - step)) / (2e-4 * h[a])
        for b in range(d):
            np.testing.assert_allclose(hessian[:, a, b], bend[:, b], rtol=0, atol=2e-6 * unit / (h[a] * h[b]))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_lattice_derivatives(d: int, order: int) -> None:
    check_derivatives(lattice_of(records(d), order, cut=4.5), records(d, 9, 4))


@pytest.mark.parametrize("kept", [("a",), ("c",), ("a", "c"), ("b", "c")], ids=str)
def test_derivatives_of_a_lattice_marginal(kept: tuple[str, ...]) -> None:
    surface = noisy(LatticeDesign(NAMES[:3], LOWER, UPPER, BANDWIDTH), 3).marginal(kept)
    axes = ["abc".index(c) for c in kept]
    check_derivatives(surface, records(3, 9, 4)[:, axes])


@pytest.mark.parametrize("kept", [NAMES[:4], ("b", "d"), ("a",)], ids=str)
@pytest.mark.parametrize("order", [2, 4])
def test_random_feature_derivatives_marginals_too(kept: tuple[str, ...], order: int) -> None:
    design = random_design(4, 300, order=order)
    surface = surface_of(design, cube(4)).marginal(kept)
    assert surface.columns == kept
    check_derivatives(surface, cube(len(kept), 9, 5))


# -- integrals and marginals ------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
def test_integrals_against_quadrature(d: int) -> None:
    surface = noisy(LatticeDesign(NAMES[:d], LOWER[:d], UPPER[:d], BANDWIDTH[:d], 4), 1)
    a = LOWER[:d] + 0.13 * (UPPER - LOWER)[:d]
    b = LOWER[:d] + 0.71 * (UPPER - LOWER)[:d]
    nodes, weights = np.polynomial.legendre.leggauss(40)
    axes = [(b[i] + a[i]) / 2 + nodes * (b[i] - a[i]) / 2 for i in range(d)]
    values = surface.density_on_grid(axes)
    for i in range(d):
        values = np.tensordot(weights * (b[i] - a[i]) / 2, values, axes=([0], [0]))
    assert surface.integrate(a, b) == pytest.approx(float(values), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("kept", [NAMES[:4], ("b", "d")], ids=str)
def test_random_feature_integrals_against_quadrature(kept: tuple[str, ...]) -> None:
    surface = surface_of(random_design(4, 200), cube(4)).marginal(kept)
    d = len(kept)
    nodes, weights = np.polynomial.legendre.leggauss(14)
    mesh = np.stack([m.ravel() for m in np.meshgrid(*[2 + nodes] * d, indexing="ij")], axis=1)
    weight = np.prod(np.meshgrid(*[weights] * d, indexing="ij"), axis=0).ravel()
    expected = float(weight @ surface.density(mesh))
    assert surface.integrate(np.full(d, 1.0), np.full(d, 3.0)) == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_the_torus_holds_all_mass_and_the_box_nearly_all() -> None:
    x = records(2)
    x = LOWER[:2] + 0.4 * (UPPER - LOWER)[:2] + 0.2 * (x - LOWER[:2])
    surface = lattice_of(x)
    everything = surface.integrate(np.full(2, -np.inf), np.full(2, np.inf))
    assert everything == pytest.approx(1, abs=0.05)
    assert surface.integrate(LOWER[:2], UPPER[:2]) == everything
    assert surface.integrate(LOWER[:2] - 99, UPPER[:2] + 99) == everything
    assert surface.integrate(LOWER[:2], LOWER[:2]) == 0


@pytest.mark.parametrize(
    "corner", [([0, math.nan], [1, 11]), ([1, 12], [1, 11]), ([0], [1]), ([0] * 3, [1] * 3)]
)
def test_bad_corners_are_refused(corner: Any) -> None:
    surface = lattice_of(records(2))
    if len(corner[0]) == 1:
        corner = (np.zeros((1, 1)), corner[1])
    with pytest.raises(InvalidArgument):
        surface.integrate(*map(np.array, corner))


SUBSETS = [s for k in (1, 2, 3) for s in itertools.permutations("abc", k)]


@pytest.mark.parametrize("kept", SUBSETS, ids="".join)
def test_a_marginal_is_the_surface_of_the_kept_columns(kept: tuple[str, ...]) -> None:
    """Exact: the same coefficients as if the other columns had never been there."""
    x = records(3)
    marginal = lattice_of(x, 2, 4.5).marginal(kept)
    axes = sorted("abc".index(c) for c in kept)
    assert marginal.columns == tuple("abc"[a] for a in axes)
    alone = surface_of(LatticeDesign(marginal.columns, LOWER[axes], UPPER[axes], BANDWIDTH[axes]), x[:, axes])
    np.testing.assert_allclose(marginal.phi, alone.phi, atol=2e-11)
    points = records(3, 30, 1)[:, axes]
    np.testing.assert_allclose(
        marginal.density(points), alone.density(points), rtol=0, atol=1e-10 * scale(2, BANDWIDTH[axes])
    )
    np.testing.assert_allclose(
        marginal.density(points),
        direct(x[:, axes], points, BANDWIDTH[axes]),
        rtol=0,
        atol=2e-4 * scale(2, BANDWIDTH[axes]),
    )


def test_a_marginal_integrates_the_others_out() -> None:
    """Over the whole torus, which is the box and its pad."""
    surface = noisy(LatticeDesign(NAMES[:2], LOWER[:2], UPPER[:2], BANDWIDTH[:2]), 5)
    points = records(2, 8, 6)
    side = surface.design.sides[1] * BANDWIDTH[1]
    cells = 200
    along = LOWER[1] + side * (np.arange(cells) + 0.5) / cells
    by_sum = surface.density_on_grid([np.sort(points[:, 0]), along]).sum(axis=1) * side / cells
    np.testing.assert_allclose(
        surface.marginal("a").density(np.sort(points[:, :1], axis=0)), by_sum, rtol=1e-9, atol=1e-11
    )


def test_marginal_and_bandwidth_commute_and_marginals_nest() -> None:
    surface = noisy(LatticeDesign(NAMES[:3], LOWER, UPPER, BANDWIDTH), 2)
    h = BANDWIDTH * np.array([0.9, 1.2, 1.4])
    points = records(3, 20, 1)[:, [0, 2]]
    one = surface.marginal(["a", "c"]).at_bandwidth(h[[0, 2]])
    other = surface.at_bandwidth(h).marginal(["c", "a"])
    np.testing.assert_allclose(one.density(points), other.density(points), rtol=1e-12)
    np.testing.assert_allclose(one.noise.gradient, other.noise.gradient, rtol=1e-12)
    nested = one.marginal("c")
    straight = surface.marginal("c").at_bandwidth(h[2])
    np.testing.assert_allclose(nested.density(points[:, 1]), straight.density(points[:, 1]), rtol=1e-12)
    assert nested.noise.value == pytest.approx(straight.noise.value, rel=1e-12)


@pytest.mark.parametrize("columns", [[], ["z"], ["a", "a"], "ab", ["a", "z"]], ids=repr)
def test_unknown_columns_are_refused(columns: Any) -> None:
    with pytest.raises(UnknownColumn, match="this surface has the columns"):
        lattice_of(records(2)).marginal(columns)


@pytest.mark.parametrize("shape", [(3, 3), (2, 1), (2, 2, 1), (3,)])
def test_points_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgument, match="points must have shape"):
        lattice_of(records(2)).density(np.zeros(shape))


def test_one_point_and_one_column_may_be_one_dimensional() -> None:
    surface = lattice_of(records(2))
    assert surface.density(np.array([-1.0, 12.0])).shape == (1,)
    assert lattice_of(records(1)).density(np.zeros(5)).shape == (5,)
    assert surface.density(np.empty((0, 2))).shape == (0,)


# -- random features --------------------------------------------------------------------------------


def random_design(d: int, n_pairs: int, seed: int = 3, order: int = 2) -> RandomDesign:
    return RandomDesign(
        NAMES[:d], np.zeros(d), np.full(d, 5.0), np.ones(d), order, n_pairs=n_pairs, frequency_seed=seed
    )


def cube(d: int, n: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(2.5, 0.7, size=(n, d)).clip(0, 5)


@pytest.mark.parametrize("d", [4, 5, 6, 7, 8])
@pytest.mark.parametrize("order", [2, 4])
def test_random_features_approach_the_direct_sum(d: int, order: int) -> None:
    x, points = cube(d), cube(d, 50, 1)
    truth = DirectKernelSurface(x, NAMES[:d], np.zeros(d), np.full(d, 5.0), np.ones(d), order).density(points)
    assert truth.max() > 0
    errors = []
    for n_pairs in (500, 8000):
        surface = surface_of(random_design(d, n_pairs, order=order), x)
        errors.append(float(np.sqrt(np.mean((surface.density(points) - truth) ** 2))))
    # Sixteen times the features: a quarter of the error, up to its own randomness.
    assert errors[1] < 0.5 * errors[0]
    if order == 2:
        # With records and points alike, one feature's real part has variance below 1.
        assert errors[1] < 4 / math.sqrt(8000) * scale(2, np.ones(d))


def test_random_features_at_a_wider_bandwidth() -> None:
    x, points = cube(4), cube(4, 50, 1)
    surface = surface_of(random_design(4, 20_000), x).at_bandwidth(1.3)
    truth = direct(x, points, np.full(4, 1.3))
    np.testing.assert_allclose(surface.density(points), truth, atol=0.03 * truth.max(), rtol=0)


def test_a_random_marginal_at_another_bandwidth_keeps_the_others() -> None:
    surface = surface_of(random_design(4, 300), cube(4))
    kept = surface.marginal(["b", "d"]).at_bandwidth(np.array([1.2, 0.9]))
    np.testing.assert_array_equal(kept.bandwidth, [1.2, 0.9])
    np.testing.assert_array_equal(kept.read_bandwidth, [1, 1.2, 1, 0.9])
    wide = surface.at_bandwidth(1.2).marginal(["b", "d"])
    np.testing.assert_array_equal(wide.read_bandwidth, np.full(4, 1.2))
    np.testing.assert_array_equal(wide.marginal("d").read_bandwidth, np.full(4, 1.2))
    for factor in (0.7, -1, math.nan, math.inf):
        with pytest.raises(InvalidArgument):
            surface.at_bandwidth(factor)


@pytest.mark.parametrize("order", ORDERS)
def test_the_coarse_reading_is_the_surface_in_single_precision(order: int) -> None:
    surface = noisy(random_design(5, 900, order=order), 4)
    coarse = coarse_reading(surface)
    points = cube(5, 40, seed=2)
    for exact, rough in zip(surface.derivatives(points), coarse.derivatives(points), strict=True):
        assert np.abs(rough - exact).max() < 2e-5 * np.abs(exact).max()
        assert not np.array_equal(rough, exact)


@pytest.mark.parametrize("unit", [1e-15, 1e15])
def test_the_coarse_reading_knows_units_beyond_single_precision(unit: float) -> None:
    """Second derivatives of a density in five columns of units of 1e-15 are of the order of 1e105."""
    plain = noisy(random_design(5, 900), 4)
    scaled = replace(plain, design=rescaled(plain.design, unit), read_bandwidth=plain.read_bandwidth * unit)
    points = cube(5, 40, seed=2)
    found = coarse_reading(scaled).derivatives(points * unit)
    for power, (one, other) in enumerate(zip(found, coarse_reading(plain).derivatives(points), strict=True)):
        np.testing.assert_allclose(
            one * unit ** (5 + power), other, rtol=1e-4, atol=1e-5 * np.abs(other).max()
        )


def rescaled(design: RandomDesign, unit: float) -> RandomDesign:
    return replace(
        design, lower=design.lower * unit, upper=design.upper * unit, bandwidth=design.bandwidth * unit
    )


def test_a_lattice_is_its_own_coarse_reading() -> None:
    surface = lattice_of(records(2))
    assert coarse_reading(surface) is surface


def test_the_density_on_a_product_is_the_density() -> None:
    surface: RandomFeatureSurface = surface_of(random_design(4, 300), cube(4))
    known, axis = cube(3, 5, 7), np.linspace(0, 5, 6)
    points = np.array([[*k, a] for k in known for a in axis])
    np.testing.assert_allclose(
        surface.density_on_product(known, axis).ravel(), surface.density(points), rtol=1e-9, atol=1e-14
    )
    axes = [np.linspace(0, 5, 2)] * 4
    mesh = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    np.testing.assert_allclose(
        surface.density_on_grid(axes).ravel(), surface.density(mesh), rtol=1e-9, atol=1e-14
    )


# -- ladders -------------------------------------------------------------------------------------------


def ladder_of(d: int, order: int = 2) -> LatticeSurface:
    """Return the surface of records from a ladder, each coefficient with noise of its own."""
    scales, masses = ((1.0, 0.5), (0.6, 0.4)) if d == 3 else ((1.0, 0.5, 0.25), (0.5, 0.3, 0.2))
    design = LatticeDesign(
        NAMES[:d], LOWER[:d], UPPER[:d], BANDWIDTH[:d], order, cut=5.0, scales=scales, masses=masses
    )
    total, sums = feature_sum(design, np.ascontiguousarray(records(d).T))
    variance = 1e-4 / design.pair_weights
    surface = spectral_surface(design, sums / total, variance, total)
    assert isinstance(surface, LatticeSurface)
    return surface


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("ratio", [1.4, 1.0, 0.7, 0.5])
def test_a_ladder_is_read_at_all_its_bandwidths(d: int, ratio: float) -> None:
    surface, x = ladder_of(d), records(d)
    h = BANDWIDTH[:d] * ratio
    points = records(d, 40, 3)
    wanted = direct(x, points, h)
    np.testing.assert_allclose(surface.at_bandwidth(h).density(points), wanted, atol=2e-4 * scale(2, h))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("ratio", [1.0, 0.7, 0.5])
def test_reading_units_change_nothing_but_the_units(d: int, order: int, ratio: float) -> None:
    reading = ladder_of(d, order).at_bandwidth(BANDWIDTH[:d] * ratio)
    same = reading.in_reading_units()
    h = BANDWIDTH[:d] * ratio
    np.testing.assert_allclose(same.design.bandwidth, h)
    np.testing.assert_allclose(same.bandwidth, reading.bandwidth)
    assert same.design.n_pairs <= reading.design.n_pairs
    points = records(d, 30, 5)
    # What is left out is beyond the cut of a plain release; order 4 has more there, and derivatives more.
    pairs = zip(same.derivatives(points), reading.derivatives(points), (1e-3, 4e-3, 2e-2), strict=True)
    for one, other, share in pairs:
        np.testing.assert_allclose(one, other, atol=share * np.abs(other).max())
    for name, rtol in (("value", 1e-3), ("gradient", 6e-3)):
        np.testing.assert_allclose(
            getattr(same.noise, name), getattr(reading.noise, name), rtol=rtol, atol=1e-12
        )
    np.testing.assert_allclose(same.noise_length, reading.noise_length, rtol=6e-3)


def test_a_surface_of_one_bandwidth_is_its_own_reading() -> None:
    plain = lattice_of(records(2))
    assert plain.in_reading_units() is plain
    assert not plain.is_ladder
    ladder = ladder_of(2)
    assert ladder.is_ladder
    assert ladder.ladder_scales == (1.0, 0.5, 0.25)
    assert not ladder.at_bandwidth(BANDWIDTH[:2] / 2).is_ladder
    uneven = ladder.at_bandwidth(BANDWIDTH[:2] * [1.0, 0.5])
    assert uneven.in_reading_units() is uneven


def test_a_ladder_is_refused_below_its_narrowest_bandwidth_and_above_its_widest() -> None:
    ladder = ladder_of(1)
    ladder.at_bandwidth(BANDWIDTH[:1] * 0.25 * 0.77)
    for ratio in (0.25 * 0.75, 1.6):
        with pytest.raises(InvalidArgument, match=r"can be read at bandwidths a: 0\.114 to 0\.9"):
            ladder.at_bandwidth(BANDWIDTH[:1] * ratio)


def test_the_noise_of_a_ladder_against_draws() -> None:
    """Variance of the density at a point over draws of the coefficients' noise, at three readings."""
    design = ladder_of(1).design
    assert isinstance(design, LatticeDesign)
    variance = 1e-4 / design.pair_weights
    rng = np.random.default_rng(8)
    values = []
    for _ in range(1500):
        white = rng.standard_normal((2, design.n_pairs)) * np.sqrt(variance)
        noise = LatticeSurface(design, white[0] + 1j * white[1], variance, 1.0, design.bandwidth, 2)
        for ratio in (1.0, 0.5, 0.25):
            values.append(noise.at_bandwidth(design.bandwidth * ratio).density(np.array([[0.1]]))[0])
    measured = np.var(np.reshape(values, (1500, 3)), axis=0)
    stated = [noise.at_bandwidth(design.bandwidth * ratio).noise.value for ratio in (1.0, 0.5, 0.25)]
    np.testing.assert_allclose(measured, stated, rtol=0.15)
