"""Points drawn from a surface: shares, moments, what is cut off, and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.designs import LatticeDesign, RandomDesign
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.kernel_surface import KernelSurface
from pydpmode.numerics.sampling import grid_axes, negative_mass, sample_surface
from pydpmode.numerics.spectral_surfaces import LatticeSurface, RandomFeatureSurface, spectral_surface


def two_bumps(d: int, n: int = 4000) -> np.ndarray:
    """Return 70% of the points around -2 and 30% around 2, on every axis."""
    rng = np.random.default_rng(d)
    centre = np.where(np.arange(n) < 0.7 * n, -2.0, 2.0)[:, None]
    return np.asarray(rng.normal(centre, 0.5, (n, d)))


def lattice(d: int, h: float = 0.3) -> LatticeSurface:
    surface = KernelSurface.from_points(two_bumps(d), h, -5, 5)
    assert isinstance(surface, LatticeSurface)
    return surface


def random_surface(n_pairs: int = 4096) -> RandomFeatureSurface:
    d = 4
    design = RandomDesign(tuple("abcd"), np.full(d, -4.0), np.full(d, 4.0), np.full(d, 1.5), n_pairs=n_pairs)
    total, sums = feature_sum(design, np.ascontiguousarray(two_bumps(d, 2000).T))
    surface = spectral_surface(design, sums / total, np.zeros(n_pairs), total)
    assert isinstance(surface, RandomFeatureSurface)
    return surface


@pytest.mark.parametrize("d", [1, 2, 3])
def test_shares_and_moments_of_a_lattice(d: int) -> None:
    surface, n = lattice(d), 20_000
    points = sample_surface(surface, n, 1)
    assert points.shape == (n, d)
    assert np.all((points >= surface.lower) & (points <= surface.upper))
    share = float(np.mean(points[:, 0] < 0))
    assert abs(share - 0.7) < 5 * math.sqrt(0.21 / n)
    left = points[points[:, 0] < 0]
    # Kernel variance and the cell's width come on top of the variance of the data.
    np.testing.assert_allclose(left.mean(axis=0), -2, atol=0.05)
    np.testing.assert_allclose(left.std(axis=0), math.sqrt(0.25 + 0.09), rtol=0.05)
    assert negative_mass(surface) < 0.01


@pytest.mark.parametrize("d", [1, 2])
def test_counts_in_boxes_follow_the_integrals(d: int) -> None:
    surface, n = lattice(d), 20_000
    points = sample_surface(surface, n, 3)
    edges = np.linspace(-5, 5, 6)
    counts, _ = np.histogramdd(points, [edges] * d)
    corners = np.stack([m.ravel() for m in np.meshgrid(*[np.arange(5)] * d, indexing="ij")], axis=1)
    shares = np.array([surface.integrate(edges[c], edges[c + 1]) for c in corners]).clip(0)
    expected = n * shares / shares.sum()
    large = expected > 50
    chi2 = float(((counts.ravel() - expected)[large] ** 2 / expected[large]).sum())
    assert large.sum() >= 2
    assert stats.chi2.sf(chi2, large.sum()) > 1e-5


def test_shares_and_moments_of_random_features() -> None:
    points = sample_surface(random_surface(), 1500, 1)
    assert points.shape == (1500, 4)
    assert np.all((points >= -4) & (points <= 4))
    # The estimate it stands for: the data plus a kernel, inside the box. The surface knows it up to
    # one over the root of the number of features, and the cut at zero adds to that.
    smooth = np.tile(two_bumps(4, 2000), (20, 1))
    smooth = smooth + 1.5 * np.random.default_rng(0).normal(size=smooth.shape)
    truth = smooth[np.all(np.abs(smooth) <= 4, axis=1)]
    np.testing.assert_allclose(points.mean(axis=0), truth.mean(axis=0), atol=0.25)
    np.testing.assert_allclose(np.cov(points.T), np.cov(truth.T), atol=0.7)
    for low in (True, False):
        share, expected = (float(np.mean(np.all((x < 0) == low, axis=1))) for x in (points, truth))
        assert share == pytest.approx(expected, abs=0.06)


def test_a_marginal_of_random_features_can_be_sampled() -> None:
    marginal = random_surface(1024).marginal(["b", "d"])
    points = sample_surface(marginal, 1000, 1)
    assert points.shape == (1000, 2)
    expected = marginal.integrate([-4, -4], [0, 0]) / marginal.integrate([-4, -4], [4, 4])  # type: ignore[arg-type]
    assert float(np.mean(np.all(points < 0, axis=1))) == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("make", [lambda: lattice(2), lambda: random_surface(256)], ids=["lattice", "random"])
def test_a_seed_makes_the_draw_and_only_the_draw_reproducible(make: Any) -> None:
    surface = make()
    one, again, other = (sample_surface(surface, 50, s) for s in (5, 5, 6))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    assert not np.array_equal(sample_surface(surface, 50, None), sample_surface(surface, 50, None))


def test_no_points_are_fine_and_odd_numbers_are_not() -> None:
    assert sample_surface(lattice(2), 0, 1).shape == (0, 2)
    assert sample_surface(random_surface(64), 0, 1).shape == (0, 4)
    assert sample_surface(lattice(1), np.int64(3), np.int64(1)).shape == (3, 1)  # type: ignore[arg-type]
    for n in (-1, 1.5, True, "3", None, math.nan):
        with pytest.raises(InvalidArgument, match="n must be"):
            sample_surface(lattice(1), n, 1)  # type: ignore[arg-type]
    for seed in (-1, 1.5, True, "3"):
        with pytest.raises(InvalidArgument, match="seed must be"):
            sample_surface(lattice(1), 3, seed)  # type: ignore[arg-type]


def wave(height: float) -> LatticeSurface:
    """Return the surface `1/V + height cos(w x)` with one wave of frequency index 3."""
    design = LatticeDesign(("a",), [0.0], [8.0], [1.0])
    weights = design.read_weights(design.bandwidth, 2)
    phi = np.zeros(design.n_pairs, dtype=complex)
    phi[2] = height / weights[2]
    return LatticeSurface(design, phi, np.zeros(design.n_pairs), 10.0, design.bandwidth, 2)


def test_negative_mass_of_a_known_wave() -> None:
    surface = wave(0.3)
    x = np.linspace(0, 8, 200_001)
    p = 1 / surface.design.volume + 0.3 * np.cos(surface.design.frequencies[2, 0] * x)  # type: ignore[union-attr]
    np.testing.assert_allclose(surface.density(x), p, atol=1e-12)
    assert negative_mass(surface) == pytest.approx(float(np.maximum(-p, 0).mean() * 8), rel=0.02)
    assert negative_mass(wave(0.01)) == 0


def test_negative_parts_are_never_drawn() -> None:
    surface = wave(0.3)
    points = sample_surface(surface, 2000, 1)
    # A cell is drawn by its midpoint's density: allow its edges.
    assert float(surface.density(points).min()) > -0.05
    assert float(np.mean(surface.density(points) > 0)) > 0.98


def test_a_surface_that_is_nowhere_positive_is_refused() -> None:
    surface = wave(0.0)
    phi = surface.phi.copy()
    nothing = LatticeSurface(surface.design, phi, surface.part_variance, 1.0, surface.bandwidth, 2)
    object.__setattr__(nothing, "density_on_grid", lambda axes: -np.ones([len(a) for a in axes]))
    with pytest.raises(InvalidArgument, match="nowhere positive"):
        sample_surface(nothing, 5, 1)


def test_negative_mass_of_random_features_is_what_the_density_says() -> None:
    surface = random_surface(256)
    unit = np.random.default_rng(0).uniform(size=(10_000, 4))
    values = surface.density(surface.lower + unit * (surface.upper - surface.lower))
    assert negative_mass(surface) == pytest.approx(float(np.maximum(-values, 0).mean() * 8**4), rel=0.1)
    assert negative_mass(surface) > 0.05


def test_grid_axes_are_cell_midpoints_inside_the_box() -> None:
    surface = lattice(2)
    for axis, low, high in zip(grid_axes(surface, 6.0, 50), surface.lower, surface.upper, strict=True):
        step = (high - low) / len(axis)
        np.testing.assert_allclose(np.diff(axis), step)
        assert axis[0] == pytest.approx(low + step / 2)
        assert len(axis) == 50
