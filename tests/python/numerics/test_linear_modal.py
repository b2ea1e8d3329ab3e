"""Linear modal regression off a surface: exact sums and derivatives, lines that least squares misses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pydpmode import errors
from pydpmode.numerics import linear_scan
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.kernel_surface import KernelSurface
from pydpmode.numerics.linear_modal import fit_linear_modes
from pydpmode.numerics.plane_integral import JointSpectrum, PlaneIntegral, Rectangle, interval_moments
from pydpmode.numerics.spectral_surfaces import LatticeSurface

TRUE = np.array([1.0, 2.0])


def contaminated(n: int, seed: int) -> np.ndarray:
    """A line with a fifth of the rows in a cloud far below its upper end."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2, 2, n)
    y = TRUE[0] + TRUE[1] * x + 0.7 * generator.standard_normal(n)
    away = generator.uniform(size=n) < 0.2
    x = np.where(away, generator.uniform(1, 2, n), x)
    y = np.where(away, generator.uniform(-10, -4, n), y)
    return np.column_stack([x, y])


def surface(rows: np.ndarray, h: list[float], noise: float = 0.0, seed: int = 0, **box: list[float]):
    """A kernel surface of the rows with white noise on the released entries, as a release has it."""
    d = rows.shape[1]
    low, high = box.get("low", [-2.5] * (d - 1) + [-12.0]), box.get("high", [2.5] * (d - 1) + [12.0])
    plain = KernelSurface.from_points(rows, h, low, high)
    return with_noise(plain, noise, seed) if noise else plain


def with_noise(plain: LatticeSurface, noise: float, seed: int) -> LatticeSurface:
    """Add noise of standard deviation `noise` (in records) to the feature sums."""
    generator = np.random.default_rng(seed)
    variance = noise**2 / (plain.n_effective**2 * 2 * plain.design.pair_weights)
    parts = generator.standard_normal((2, plain.phi.size)) * np.sqrt(variance)
    return replace(plain, phi=plain.phi + parts[0] + 1j * parts[1], part_variance=variance)


def kernel(u: np.ndarray, order: int) -> np.ndarray:
    series = {2: 1.0, 4: (3 - u**2) / 2, 6: (15 - 10 * u**2 + u**4) / 8}[order]
    return series * np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi)


def whole_window(joint: JointSpectrum) -> tuple[Rectangle, ...]:
    pad = 3.5 * joint.bandwidth[:-1]
    return (Rectangle(joint.lower[:-1] - pad, joint.upper[:-1] + pad),)


@pytest.mark.parametrize("order", [2, 4, 6])
@pytest.mark.parametrize("p", [1, 2])
def test_the_integral_is_the_mean_kernel_of_the_residuals(p: int, order: int) -> None:
    generator = np.random.default_rng(order + p)
    x = generator.uniform(-2, 2, size=(60, p))
    y = 1 + x @ np.array([2.0, -1.0])[:p] + generator.standard_normal(60)
    h = np.array([0.4] * p + [0.9])
    joint = JointSpectrum.of(surface(np.column_stack([x, y]), h.tolist()), p)
    plane = np.array([0.8, 1.7, -0.7])[: p + 1]
    s = 1.6
    integral = PlaneIntegral(joint, s, whole_window(joint), h[:-1], order)
    residual = y - plane[0] - x @ plane[1:]
    direct = np.mean(kernel(residual / s, order)) / s
    assert integral.at(plane).value == pytest.approx(direct, abs=2e-4 * kernel(np.zeros(1), order)[0] / s)


def test_the_integral_is_the_surface_summed_along_the_line() -> None:
    rows = contaminated(200, 1)
    plain = surface(rows, [0.4, 0.9], noise=3.0)
    joint = JointSpectrum.of(plain, 1)
    plane = np.array([0.5, 1.5])
    s = float(np.hypot(0.9, 1.5 * 0.4))  # the response is then read at its own bandwidth
    window = Rectangle(np.array([-1.3]), np.array([2.1]))
    x = np.linspace(-1.3, 2.1, 4001)
    density = plain.density(np.column_stack([x, plane[0] + plane[1] * x]))
    middle = density.sum() - (density[0] + density[-1]) / 2
    value = PlaneIntegral(joint, s, (window,), joint.bandwidth[:-1]).at(plane).value
    assert value == pytest.approx(middle * (x[1] - x[0]), rel=1e-4)


@pytest.mark.parametrize("p", [1, 2])
def test_derivatives_are_exact(p: int) -> None:
    generator = np.random.default_rng(3)
    rows = generator.uniform(-2, 2, size=(80, p + 1))
    h = [0.5] * p + [1.0]
    joint = JointSpectrum.of(surface(rows, h, noise=2.0), p)
    halves = (
        Rectangle(np.full(p, -2.0), np.full(p, -0.5)),
        Rectangle(np.full(p, -0.5), np.full(p, 1.7)),
    )
    integral = PlaneIntegral(joint, 1.3, halves, joint.bandwidth[:-1], 4)
    plane = np.array([0.3, 0.6, -0.4])[: p + 1]
    value = integral.at(plane)
    step = 1e-4
    for a, unit in enumerate(np.eye(p + 1) * step):
        up, down = integral.at(plane + unit), integral.at(plane - unit)
        assert (up.value - down.value) / (2 * step) == pytest.approx(value.gradient[a], rel=1e-5, abs=1e-9)
        slope = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(slope, value.hessian[a], rtol=1e-5, atol=1e-8)


def test_window_parts_add_up() -> None:
    joint = JointSpectrum.of(surface(contaminated(100, 2), [0.4, 0.9]), 1)
    ends = np.array([-2.0, 0.3, 1.9])
    parts = tuple(Rectangle(ends[i : i + 1], ends[i + 1 : i + 2]) for i in range(2))
    plane = np.array([0.2, 1.0])
    one = PlaneIntegral(joint, 1.1, (Rectangle(ends[:1], ends[2:]),), joint.bandwidth[:-1])
    two = PlaneIntegral(joint, 1.1, parts, joint.bandwidth[:-1])
    np.testing.assert_allclose(one.at(plane).hessian, two.at(plane).hessian, rtol=1e-10)
    np.testing.assert_allclose(one.predictor_moments(plane), two.predictor_moments(plane), rtol=1e-10)


def test_moments_of_an_interval_near_and_far_from_zero_frequency() -> None:
    theta = np.array([-30.0, -0.2, -1e-5, 0.0, 1e-3, 0.299, 0.301, 4.0])
    t, weight = np.polynomial.legendre.leggauss(200)
    t, weight = 0.4 + 1.6 * t, 1.6 * weight
    for power, value in enumerate(interval_moments(theta, -1.2, 2.0)):
        direct = np.exp(-1j * np.outer(theta, t)) @ (weight * t**power)
        np.testing.assert_allclose(value, direct, atol=1e-12)


def test_the_covariance_under_the_noise_is_exact() -> None:
    plain = surface(contaminated(300, 4), [0.5, 1.2])
    plane = np.array([0.9, 1.8])

    def gradient(noisy: LatticeSurface) -> tuple[np.ndarray, np.ndarray]:
        joint = JointSpectrum.of(noisy, 1)
        integral = PlaneIntegral(joint, 1.5, whole_window(joint), joint.bandwidth[:-1])
        value = integral.at(plane)
        return value.gradient, integral.noise_covariance(value.gradient_coefficients)

    draws = np.array([gradient(with_noise(plain, 5.0, seed))[0] for seed in range(600)])
    expected = gradient(with_noise(plain, 5.0, 0))[1]
    np.testing.assert_allclose(np.cov(draws.T), expected, rtol=0.15, atol=0.1 * expected.max())


def test_outliers_that_ruin_least_squares() -> None:
    rows = contaminated(4000, 5)
    fit = fit_linear_modes(surface(rows, [0.25, 0.8], noise=8.0), 1)
    ols = np.linalg.lstsq(np.column_stack([np.ones(4000), rows[:, 0]]), rows[:, 1], rcond=None)[0]
    assert fit.converged
    assert abs(ols[1] - TRUE[1]) > 1
    np.testing.assert_allclose(fit.coefficients, TRUE, atol=0.15)
    assert np.all(np.abs(fit.coefficients - TRUE) < 4 * fit.standard_errors)
    ends = fit.conf_int(0.99)
    assert np.all((ends[:, 0] < fit.coefficients) & (fit.coefficients < ends[:, 1]))
    place, error = fit.predict(np.array([0.0, 1.0]))
    np.testing.assert_allclose(place, [fit.coefficients[0], fit.coefficients.sum()])
    assert error[0] == pytest.approx(fit.standard_errors[0])


def test_the_privacy_standard_errors_are_those_of_repeated_releases() -> None:
    plain = surface(contaminated(3000, 6), [0.3, 1.0])
    fits = [fit_linear_modes(with_noise(plain, 12.0, seed), 1) for seed in range(60)]
    spread = np.std([fit.coefficients for fit in fits], axis=0)
    told = np.median([np.sqrt(np.diag(fit.covariance_privacy)) for fit in fits], axis=0)
    np.testing.assert_allclose(told, spread, rtol=0.3)


def test_the_sampling_standard_errors_are_those_of_repeated_samples() -> None:
    fits = [fit_linear_modes(surface(contaminated(1500, seed), [0.25, 0.8]), 1) for seed in range(60)]
    spread = np.std([fit.coefficients for fit in fits], axis=0)
    told = np.median([np.sqrt(np.diag(fit.covariance_sampling)) for fit in fits], axis=0)
    np.testing.assert_allclose(told, spread, rtol=0.35)
    assert not np.any(fits[0].covariance_privacy)


def test_smoothing_over_the_predictor_does_not_flatten_the_slope() -> None:
    """A kernel a quarter of the data's width would take an eighth or more off the slope as it stands."""
    generator = np.random.default_rng(8)
    x = generator.uniform(-2, 2, 3000)
    rows = np.column_stack([x, 1 + 2 * x + 0.5 * generator.standard_normal(3000)])
    plain = surface(rows, [0.7, 1.5])
    fit = fit_linear_modes(plain, 1)
    np.testing.assert_allclose(fit.coefficients, TRUE, atol=0.06)


def test_the_response_may_come_first_and_the_box_may_be_wide() -> None:
    rows = contaminated(3000, 9)[:, ::-1]
    wide = surface(rows, [0.8, 0.3], low=[-12.0, -6.0], high=[12.0, 6.0])
    fit = fit_linear_modes(wide, 0)
    assert fit.predictors == ("x2",)
    assert fit.response == "x1"
    np.testing.assert_allclose(fit.coefficients, TRUE, atol=0.12)


def test_a_plane_over_two_predictors() -> None:
    generator = np.random.default_rng(10)
    x = generator.uniform(-2, 2, size=(3000, 2))
    y = 1 + x @ np.array([1.5, -1.0]) + 0.6 * generator.standard_normal(3000)
    y = np.where(generator.uniform(size=3000) < 0.2, generator.uniform(6, 11, 3000), y)
    fit = fit_linear_modes(surface(np.column_stack([x, y]), [0.5, 0.5, 1.2], noise=5.0), 2)
    assert fit.converged
    np.testing.assert_allclose(fit.coefficients, [1.0, 1.5, -1.0], atol=0.15)
    assert fit.covariance.shape == (3, 3)


def test_units_do_not_matter() -> None:
    rows = contaminated(1000, 11)
    one = fit_linear_modes(surface(rows, [0.3, 0.9]), 1)
    scale = np.array([1e3, 1e-2])
    box = {"low": [-2.5e3, -0.12], "high": [2.5e3, 0.12]}
    other = fit_linear_modes(surface(rows * scale, [300.0, 0.009], **box), 1)
    factor = np.array([1e-2, 1e-5])
    np.testing.assert_allclose(other.coefficients, one.coefficients * factor, rtol=1e-6)
    np.testing.assert_allclose(other.standard_errors, one.standard_errors * factor, rtol=1e-4)


def test_a_ladder_is_read_at_its_own_bandwidth() -> None:
    rows = contaminated(2000, 12)
    from pydpmode.numerics.feature_sums import feature_sum

    design = LatticeDesign(
        ("x", "y"),
        np.array([-2.5, -12.0]),
        np.array([2.5, 12.0]),
        np.array([0.6, 1.8]),
        scales=(1.0, 0.5),
        masses=(0.5, 0.5),
    )
    total, sums = feature_sum(design, np.ascontiguousarray(rows.T))
    ladder = LatticeSurface(
        design, sums / total, np.zeros(design.n_pairs), total, np.array([0.36, 1.08]), design.order
    )
    fit = fit_linear_modes(ladder, 1)
    plain = fit_linear_modes(surface(rows, [0.36, 1.08]), 1)
    np.testing.assert_allclose(fit.coefficients, plain.coefficients, atol=5e-3)


def test_nothing_but_noise_is_said_to_be_uncertain_or_not_to_converge() -> None:
    generator = np.random.default_rng(13)
    rows = np.column_stack([generator.uniform(-2.5, 2.5, 200), generator.uniform(-12, 12, 200)])
    fit = fit_linear_modes(surface(rows, [0.5, 1.5], noise=20.0), 1)
    assert not fit.converged or np.all(fit.standard_errors > 0.05)


def test_peaks_below_zero_are_compared_as_any() -> None:
    """Where one record lies under twenty times its noise, no plane need have a positive objective."""
    found = [
        fit_linear_modes(surface(contaminated(1, 14), [2.5, 12.0], noise=20.0, seed=seed), 1)
        for seed in (46, 52)
    ]
    assert all(fit.objective < 0 and np.isfinite(fit.coefficients).all() for fit in found)


def test_steep_planes_over_wide_kernels_stay_in_range() -> None:
    """Kernel and widening are 1e-500 and 1e+500 each; together they are the kernel of the response."""
    rows = np.random.default_rng(15).uniform(size=(50, 2))
    plain = surface(rows, [1.0, 0.03], low=[0.0, 0.0], high=[1.0, 1.0])
    joint = JointSpectrum.of(plain, 1)
    slope = -1.5
    s = float(np.hypot(0.03, slope * 1.0))
    value = PlaneIntegral(joint, s, whole_window(joint), np.array([1.0])).at(np.array([0.6, slope]))
    assert np.isfinite(value.value)
    assert np.isfinite(value.hessian).all()
    assert np.isfinite(fit_linear_modes(plain, 1).coefficients).all()


def test_a_scan_of_a_fine_bandwidth_is_coarser_and_ends_at_the_same_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = surface(contaminated(4000, 16), [0.1, 0.4])
    whole = fit_linear_modes(plain, 1)
    monkeypatch.setattr(linear_scan, "_MOST_WORK", 1e5)
    coarsened = linear_scan.scan_planes(JointSpectrum.of(plain, 1))[1]
    assert linear_scan.COARSER**coarsened > 2
    np.testing.assert_allclose(fit_linear_modes(plain, 1).coefficients, whole.coefficients, rtol=1e-6)


def test_bad_input_is_refused() -> None:
    rows = contaminated(50, 14)
    plain = surface(rows, [0.5, 1.5])
    with pytest.raises(errors.InvalidArgument, match="response"):
        fit_linear_modes(plain, 2)
    with pytest.raises(errors.InvalidArgument, match="one or two predictors"):
        fit_linear_modes(plain.marginal("x1"), 0)
    with pytest.raises(errors.InvalidArgument, match="starts"):
        fit_linear_modes(plain, 1, starts=0)
    fit = fit_linear_modes(plain, 1)
    with pytest.raises(errors.InvalidArgument, match="level"):
        fit.conf_int(1.0)
    with pytest.raises(errors.InvalidArgument, match="one column per predictor"):
        fit.predict(np.zeros((2, 3)))
