from __future__ import annotations

import numpy as np
import pytest

from pydpmode.numerics import fourier_sums
from pydpmode.numerics.bump_fit import BumpFit, Sketch, fit_bumps
from pydpmode.numerics.bump_mixtures import Bumps, climb_bumps, gradient_responses, read_bumps
from pydpmode.numerics.designs import LatticeDesign, RandomDesign
from pydpmode.numerics.spectral_surfaces import LatticeSurface, spectral_surface

WIDTHS = {1: (20.0,), 2: (16.0, 14.0), 3: (9.0, 8.0, 10.0)}


def design(d: int) -> LatticeDesign:
    columns = tuple(f"x{i}" for i in range(d))
    return LatticeDesign(columns, np.zeros(d), np.array(WIDTHS[d]), np.ones(d))


def two_bumps(d: int) -> Bumps:
    centres = np.array([np.array(WIDTHS[d]) * 0.3, np.array(WIDTHS[d]) * 0.7])
    return Bumps(np.array([0.6, 0.4]), centres, np.log(np.array([[0.9] * d, [0.6] * d])))


def surface_of(bumps: Bumps, d: int, *, sd: float = 0.0, n: float = 1e6, seed: int = 0) -> LatticeSurface:
    """Return the exact coefficients of bumps, with noise of one standard deviation in every part."""
    at = design(d)
    w = at.frequencies
    fading = np.exp(-0.5 * np.exp(2 * bumps.log_widths) @ (w**2).T)
    phi = bumps.weights @ (np.exp(1j * bumps.centres @ w.T) * fading)
    random = np.random.default_rng(seed)
    noise = random.standard_normal(phi.size) + 1j * random.standard_normal(phi.size)
    surface = spectral_surface(at, phi + sd * noise, np.full(phi.size, sd**2), n)
    assert isinstance(surface, LatticeSurface)
    return surface


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_sketch_lists_the_low_frequencies(d: int) -> None:
    surface = surface_of(two_bumps(d), d)
    sketch = Sketch.of(surface)
    norms = np.linalg.norm(surface.design.frequencies, axis=1)
    assert sketch.kept.size == np.count_nonzero(norms <= 3.5)
    mesh = np.stack([m.ravel() for m in np.meshgrid(*sketch.axes, indexing="ij")])
    np.testing.assert_allclose(mesh[:, sketch.flat], sketch.frequencies, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_fields_and_images_are_direct_sums(d: int) -> None:
    sketch = Sketch.of(surface_of(two_bumps(d), d))
    random = np.random.default_rng(1)
    c = random.standard_normal((2, sketch.kept.size)) + 1j * random.standard_normal((2, sketch.kept.size))
    fields = sketch.fields(c)
    points = np.stack([m.ravel() for m in np.meshgrid(*sketch.grid, indexing="ij")], axis=1)
    some = random.integers(len(points), size=7)
    direct = (c @ np.exp(-1j * points[some] @ sketch.frequencies).T).real
    np.testing.assert_allclose(fields[:, some], direct, atol=1e-9)
    np.testing.assert_allclose(two_bumps(d).weights @ sketch.images(two_bumps(d)), sketch.phi, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_fields_of_large_lattices_are_the_same(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = Sketch.of(surface_of(two_bumps(d), d))
    random = np.random.default_rng(2)
    c = random.standard_normal((2, sketch.kept.size)) + 1j * random.standard_normal((2, sketch.kept.size))
    by_products = sketch.fields(c)
    monkeypatch.setattr(fourier_sums, "LARGEST_PHASES", 1)
    monkeypatch.setattr(fourier_sums, "_POINTS_AT_ONCE", 1000)
    monkeypatch.setattr(np, "tensordot", None)
    np.testing.assert_allclose(sketch.fields(c), by_products, atol=1e-8)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_fit_without_noise_finds_the_bumps(d: int) -> None:
    true = two_bumps(d)
    fit = fit_bumps(surface_of(true, d), true.centres + 0.3, np.ones(2))
    order = np.argsort(fit.bumps.centres[:, 0])
    assert fit.bumps.count == 2
    np.testing.assert_allclose(fit.bumps.centres[order], true.centres, atol=0.01)
    np.testing.assert_allclose(fit.bumps.weights[order], true.weights, atol=0.01)
    np.testing.assert_allclose(np.exp(fit.bumps.log_widths[order]), np.exp(true.log_widths), atol=0.05)


@pytest.mark.parametrize("d", [1, 2])
def test_bumps_without_a_start_are_found(d: int) -> None:
    true = two_bumps(d)
    fit = fit_bumps(surface_of(true, d, sd=1e-3), true.centres[:1], np.ones(1))
    away = np.linalg.norm(fit.bumps.centres - true.centres[1], axis=1)
    assert away.min() < 0.1


def test_pure_noise_earns_a_bump_in_few_runs() -> None:
    counts = []
    for seed in range(40):
        surface = surface_of(Bumps.none(2), 2, sd=1e-2, n=1e9, seed=seed)
        counts.append(fit_bumps(surface, np.zeros((0, 2)), np.zeros(0)).bumps.count)
    # Some hundred places times four widths at 3.5 sds.
    assert np.mean(np.array(counts) > 0) < 0.4


def test_the_fit_never_worsens_and_stays_within_its_limits() -> None:
    surface = surface_of(two_bumps(2), 2, sd=5e-3, n=1000)
    fit = fit_bumps(surface, np.array([[4.0, 4.0]]), np.ones(1))
    start = np.linalg.norm(fit.sketch.phi * fit.sketch.root_weights)
    assert np.linalg.norm(fit.residual) < start
    assert 1 <= fit.bumps.count <= 7
    assert np.all(fit.bumps.weights > 0)
    assert np.all(fit.bumps.log_widths >= np.log(0.15) - 1e-12)


@pytest.mark.parametrize("d", [1, 2])
def test_responses_predict_how_a_mode_moves(d: int) -> None:
    """Refit after a small change of the coefficients: the mode moves as the linearisation says."""
    true = two_bumps(d)
    smoothing = np.full(d, 0.5)
    random = np.random.default_rng(4)
    before = surface_of(true, d, sd=0.0, n=1e5)
    change = 2e-5 * (random.standard_normal(before.phi.size) + 1j * random.standard_normal(before.phi.size))
    after = spectral_surface(before.design, before.phi + change, before.part_variance, 1e5)
    assert isinstance(after, LatticeSurface)
    fits: list[BumpFit] = [fit_bumps(s, true.centres, np.ones(2) * 0.7) for s in (before, after)]
    places = [climb_bumps(f.bumps, true.centres[:1], smoothing)[0] for f in fits]
    at = read_bumps(fits[0].bumps, places[0], smoothing)
    moved = -np.linalg.solve(at.hessian, gradient_responses(fits[0].bumps, at))
    filters = moved[0] @ fits[0].responses()
    predicted = (np.conj(filters) @ change[fits[0].sketch.kept]).real
    np.testing.assert_allclose(places[1][0] - places[0][0], predicted, rtol=0.1, atol=2e-5)


def test_random_features_have_no_sketch() -> None:
    d = RandomDesign(("a",), np.zeros(1), np.ones(1), np.full(1, 0.1), n_pairs=10)
    surface = spectral_surface(d, np.zeros(10, complex), np.ones(10), 10.0)
    with pytest.raises(TypeError, match="lattice"):
        Sketch.of(surface)  # type: ignore[arg-type]
