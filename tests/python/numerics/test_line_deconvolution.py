"""The mode of the errors about a line, with the smoothing of the surface taken off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pydpmode.numerics.kernel_surface import KernelSurface
from pydpmode.numerics.line_deconvolution import UnsmoothedHeight, unsmoothed_height
from pydpmode.numerics.linear_modal import LinearModalFit, fit_linear_modes
from pydpmode.numerics.plane_integral import JointSpectrum, PlaneIntegral, Rectangle
from pydpmode.numerics.spectral_surfaces import LatticeSurface

H = np.array([0.1, 0.6])
LEVEL = np.array([0.0, 0.0])


def released(errors: np.ndarray, noise: float, seed: int, h: np.ndarray = H) -> LatticeSurface:
    """A surface of rows about a level line, with white noise on the released entries, in records."""
    generator = np.random.default_rng(seed)
    rows = np.column_stack([generator.uniform(-2, 2, errors.size), errors])
    plain = KernelSurface.from_points(rows, h.tolist(), [-2.5, -6.0], [2.5, 9.0])
    variance = noise**2 / (plain.n_effective**2 * 2 * plain.design.pair_weights)
    parts = generator.standard_normal((2, plain.phi.size)) * np.sqrt(variance)
    return replace(plain, phi=plain.phi + parts[0] + 1j * parts[1], part_variance=variance)


def integral(surface: LatticeSurface) -> PlaneIntegral:
    joint = JointSpectrum.of(surface, 1)
    return PlaneIntegral(joint, float(H[1]), (Rectangle(joint.lower[:-1], joint.upper[:-1]),), H[:-1])


def heights(surface: LatticeSurface) -> tuple[float, UnsmoothedHeight]:
    """Return the height of the smoothed objective's maximum, and the unsmoothed one in its place."""
    q = integral(surface)
    plane = LEVEL + np.array([0.3, 0.0])
    for _ in range(50):
        value = q.at(plane)
        plane[0] += value.gradient[0] / abs(value.hessian[0, 0])
    found = unsmoothed_height(q, plane, q.at(plane))
    assert found is not None
    return float(plane[0]), found._replace(offset=found.offset + float(plane[0]))


def gamma(n: int, seed: int) -> np.ndarray:
    """Errors whose mode is zero, with a long tail upwards."""
    return np.random.default_rng(seed).gamma(3.0, 0.8, n) - 1.6


def test_the_profile_is_the_objective_at_other_heights() -> None:
    q = integral(released(gamma(400, 1), 3.0, 1))
    offsets = np.array([-0.7, 0.0, 1.3])
    values, coefficients = q.profile(LEVEL, offsets)
    direct = [q.at(LEVEL + np.array([o, 0.0])).value for o in offsets]
    np.testing.assert_allclose(values, direct, rtol=1e-10)
    assert coefficients.shape == (3, q.joint.phi.size)


def test_the_mode_of_skewed_errors_is_found_within_its_error() -> None:
    smooth, sharp, error = [], [], []
    for seed in range(12):
        place, found = heights(released(gamma(8000, seed), 4.0, seed))
        smooth.append(place)
        sharp.append(found.offset)
        error.append(np.sqrt(found.privacy + found.sampling))
    assert np.sqrt(np.mean(np.square(sharp))) < 0.65 * np.sqrt(np.mean(np.square(smooth)))
    assert np.mean(np.abs(sharp) < 1.96 * np.array(error)) >= 0.75
    assert np.mean(error) < 0.3


def test_both_sources_count_and_fall_with_what_makes_them() -> None:
    few, many = (heights(released(gamma(n, 3), 4.0, 3))[1] for n in (2000, 32_000))
    assert many.sampling < few.sampling
    assert many.privacy < few.privacy
    quiet = heights(released(gamma(2000, 3), 0.0, 3))[1]
    assert quiet.privacy == 0.0
    assert quiet.sampling > 0.0


def fitted(errors: np.ndarray, noise: float, seed: int) -> LinearModalFit:
    return fit_linear_modes(released(errors, noise, seed, np.array([0.1, 1.1])), 1)


@pytest.mark.parametrize("law", ["normal", "t"])
def test_symmetric_errors_are_left_to_the_kernels(law: str) -> None:
    for seed in range(4):
        generator = np.random.default_rng(seed)
        errors = generator.standard_normal(4000) if law == "normal" else generator.standard_t(3, 4000)
        assert not fitted(errors, 6.0, seed).unsmoothed


def test_a_clear_skew_moves_the_intercept_and_widens_its_interval() -> None:
    fits = [fitted(np.random.default_rng(seed).gamma(2.0, 1.0, 4000) - 1, 6.0, seed) for seed in range(4)]
    used = [fit for fit in fits if fit.unsmoothed]
    assert len(used) >= 3
    for fit in used:
        assert abs(fit.coefficients[0]) < 0.3  # the kernels leave .3 to .6
        assert np.all(np.linalg.eigvalsh(fit.covariance) > 0)
        assert fit.kernel_order == 2
