from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.kernel_surface import DirectKernelSurface, KernelSurface
from pydpmode.numerics.mode_refinement import lattice_reading, refine_modes
from pydpmode.numerics.mode_seeking import find_modes
from pydpmode.numerics.spectral_surfaces import LatticeSurface, spectral_surface

FloatArray = NDArray[np.float64]
CENTRES = np.array([[-2.0, -1.0], [2.0, 1.5]])


def sample(n: int, seed: int, scales: tuple[float, float] = (1.0, 0.8)) -> FloatArray:
    random = np.random.default_rng(seed)
    which = random.integers(2, size=n)
    return CENTRES[which] + np.array(scales)[which, None] * random.standard_normal((n, 2))


def noisy(x: FloatArray, sd: float, seed: int, bandwidth: float = 0.9) -> LatticeSurface:
    """Return the kernel surface of `x` with noise like a release's: sd over the root of the weights."""
    plain = KernelSurface.from_points(x, bandwidth, [-6, -6], [6, 6])
    assert isinstance(plain, LatticeSurface)
    assert isinstance(plain.design, LatticeDesign)
    part = sd / np.sqrt(plain.design.pair_weights)
    random = np.random.default_rng(seed)
    noise = random.standard_normal(part.size) + 1j * random.standard_normal(part.size)
    surface = spectral_surface(plain.design, plain.phi + part * noise, part**2, float(len(x)))
    assert isinstance(surface, LatticeSurface)
    return surface


def nearest(modes: FloatArray) -> FloatArray:
    """Return the row nearest to each centre."""
    away = np.linalg.norm(modes[None, :, :] - CENTRES[:, None, :], axis=2)
    return modes[away.argmin(axis=1)]


@pytest.fixture(scope="module")
def runs() -> list[dict[str, FloatArray]]:
    """Seventy noisy surfaces: errors and covariances of refined modes, in the order of CENTRES."""
    out = []
    for seed in range(70):
        surface = noisy(sample(1500, seed), 4e-3, seed)
        plain = find_modes(surface, refine=False)
        assert plain.count == 2
        better = refine_modes(surface, plain.locations)
        assert better is not None
        order = [int(np.argmin(np.linalg.norm(plain.locations - c, axis=1))) for c in CENTRES]
        out.append(
            {
                "refined": better.locations[order] - CENTRES,
                "surface": plain.locations[order] - CENTRES,
                "privacy": better.covariance_privacy[order],
                "sampling": better.covariance_sampling[order],
                "bias": better.covariance_bias[order],
                "checked": better.checked[order],
            }
        )
    return out


def stack(runs: list[dict[str, FloatArray]], name: str) -> FloatArray:
    return np.stack([r[name] for r in runs])


def test_refined_modes_are_nearer_than_the_surface_s(runs: list[dict[str, FloatArray]]) -> None:
    refined, surface = (np.mean(stack(runs, name) ** 2) for name in ("refined", "surface"))
    assert refined < 0.7 * surface


def test_stated_covariances_are_those_seen(runs: list[dict[str, FloatArray]]) -> None:
    seen = np.mean(stack(runs, "refined") ** 2, axis=0)
    total = stack(runs, "privacy") + stack(runs, "sampling")
    stated = np.median(np.diagonal(total, axis1=2, axis2=3), axis=0)
    # Seventy squares of a normal: relative error .17.
    np.testing.assert_allclose(seen, stated, rtol=0.5)


def test_intervals_cover_about_as_often_as_they_say(runs: list[dict[str, FloatArray]]) -> None:
    total = stack(runs, "privacy") + stack(runs, "sampling") + stack(runs, "bias")
    half = 1.96 * np.sqrt(np.diagonal(total, axis1=2, axis2=3))
    covered = np.abs(stack(runs, "refined")) <= half
    assert 0.91 < covered[stack(runs, "checked").astype(bool)].mean() < 0.99


def test_privacy_noise_alone_moves_modes_as_stated() -> None:
    """One sample, many noises: the spread about the mean is the privacy part."""
    x = sample(3000, 1)
    places, stated = [], []
    for seed in range(60):
        surface = noisy(x, 3e-3, seed)
        modes = find_modes(surface)
        order = [int(np.argmin(np.linalg.norm(modes.locations - c, axis=1))) for c in CENTRES]
        places.append(modes.locations[order])
        stated.append(np.diagonal(modes.covariance_privacy[order], axis1=1, axis2=2))
    np.testing.assert_allclose(np.var(places, axis=0), np.median(stated, axis=0), rtol=0.55)


def test_without_noise_there_is_no_privacy_part_and_bias_is_undone() -> None:
    # A skewed bump: the smoothed mode is pulled into the long side.
    x = np.random.default_rng(0).gamma(3.0, size=(40_000, 1))
    surface = KernelSurface.from_points(x, 0.6, [0], [15])
    plain, refined = find_modes(surface, refine=False), find_modes(surface)
    assert plain.locations[0, 0] > 2.1
    assert abs(refined.locations[0, 0] - 2) < 0.6 * abs(plain.locations[0, 0] - 2)
    assert refined.refined[0]
    assert refined.covariance_privacy[0, 0, 0] == 0
    assert refined.covariance_bias[0, 0, 0] > 0
    assert not refined.reliable[0]
    np.testing.assert_array_equal(refined.densities, plain.densities)
    np.testing.assert_array_equal(refined.mass, plain.mass)


def test_units_do_not_matter() -> None:
    x = sample(2000, 3)
    units = np.array([1e3, 1e-3])
    one = KernelSurface.from_points(x, 0.8, [-6, -6], [6, 6])
    two = KernelSurface.from_points(x * units, 0.8 * units, -6 * units, 6 * units)
    first, second = find_modes(one), find_modes(two)
    np.testing.assert_allclose(first.locations, second.locations / units, atol=1e-4)
    np.testing.assert_allclose(
        first.covariance_sampling, second.covariance_sampling / np.outer(units, units), rtol=1e-3, atol=1e-9
    )


def test_an_order_four_surface_is_refined_to_the_same_place() -> None:
    x = sample(20_000, 5)
    second = KernelSurface.from_points(x, 0.8, [-6, -6], [6, 6])
    fourth = KernelSurface.from_points(x, 0.8, [-6, -6], [6, 6], order=4)
    one, two = nearest(find_modes(second).locations), nearest(find_modes(fourth).locations)
    np.testing.assert_allclose(one, two, atol=0.02)


def test_another_reading_bandwidth_changes_little() -> None:
    surface = noisy(sample(20_000, 7), 5e-4, 7)
    one = nearest(find_modes(surface).locations)
    two = nearest(find_modes(surface.at_bandwidth(1.1)).locations)
    np.testing.assert_allclose(one, two, atol=0.03)


def test_modes_on_a_face_stay_there() -> None:
    x = np.abs(np.random.default_rng(0).standard_normal((5000, 1)))
    surface = KernelSurface.from_points(-x, 0.4, [-6], [0])
    plain, refined = find_modes(surface, refine=False), find_modes(surface)
    np.testing.assert_array_equal(refined.locations[refined.on_face], plain.locations[plain.on_face])
    assert not refined.refined[refined.on_face.any(axis=1)].any()


def test_modes_are_never_brought_together() -> None:
    random = np.random.default_rng(2)
    x = np.concatenate([random.normal(-1.3, 1, 3000), random.normal(1.3, 1, 3000)])[:, None]
    surface = KernelSurface.from_points(x, 0.4, [-6], [6])
    modes = find_modes(surface, n_modes=2)
    assert abs(modes.locations[0, 0] - modes.locations[1, 0]) > 1


def test_other_surfaces_are_left_alone() -> None:
    x = sample(200, 0)
    direct = DirectKernelSurface(x, ("a", "b"), np.full(2, -6.0), np.full(2, 6.0), np.full(2, 0.8))
    assert lattice_reading(direct) is None
    assert refine_modes(direct, CENTRES) is None
    assert not find_modes(direct).refined.any()
    lattice = KernelSurface.from_points(x, 0.8, [-6, -6], [6, 6])
    assert refine_modes(lattice, np.zeros((0, 2))) is None
    assert not find_modes(lattice, refine=False).refined.any()
