"""The kernels of DP-GRAMS: sums, derivatives, suprema."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pydpmode import errors
from pydpmode.numerics.score_kernels import CHUNK, KERNELS, ScoreKernel

CASES = list(itertools.product(KERNELS, (1, 2, 3)))


def at(kernel: ScoreKernel, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Value (m,) and gradient (m, d) of the kernel itself: one record at zero."""
    sums = kernel.sums(points, np.zeros((kernel.dimension, 1)))
    return sums[0], sums[1:].T


@pytest.mark.parametrize(("name", "d"), CASES)
def test_suprema_hold_and_are_reached(name: str, d: int) -> None:
    kernel = ScoreKernel(name, d)
    generator = np.random.default_rng(0)
    points = generator.uniform(-4 if kernel.smooth else -1, 4 if kernel.smooth else 1, size=(60_000, d))
    edge = 1 - 1e-9
    along = np.zeros((2001, d))
    along[:, 0] = np.linspace(0, 5, 2001) if kernel.smooth else np.linspace(0, edge, 2001)
    value, gradient = at(kernel, np.concatenate([points, along]))
    length = np.linalg.norm(gradient, axis=1)
    assert value.max() == pytest.approx(kernel.supremum, rel=1e-6)
    assert kernel.infimum - 1e-12 <= value.min() <= kernel.infimum + 1e-4 * kernel.supremum
    assert length.max() <= kernel.gradient_supremum * (1 + 1e-12)
    assert length.max() == pytest.approx(kernel.gradient_supremum, rel=1e-5)


@pytest.mark.parametrize(("name", "d"), CASES)
def test_gradients_are_those_of_the_values(name: str, d: int) -> None:
    kernel = ScoreKernel(name, d)
    generator = np.random.default_rng(1)
    # Inside the support: the Legendre kernel jumps at its edge.
    points = generator.uniform(-0.9, 0.9, size=(50, d))
    step = 1e-6
    for a in range(d):
        shift = step * np.eye(d)[a]
        numeric = (at(kernel, points + shift)[0] - at(kernel, points - shift)[0]) / (2 * step)
        np.testing.assert_allclose(numeric, at(kernel, points)[1][:, a], atol=1e-7)


@pytest.mark.parametrize(("name", "d"), [("gaussian", 2), ("gaussian4", 2), ("legendre4", 2)])
def test_kernels_have_their_order(name: str, d: int) -> None:
    kernel = ScoreKernel(name, d)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    reach = 9.0 if kernel.smooth else 1.0
    points = np.stack([m.ravel() for m in np.meshgrid(reach * nodes, reach * nodes)], axis=1)
    value = at(kernel, points)[0] * np.outer(reach * weights, reach * weights).ravel()
    assert value.sum() == pytest.approx(1)
    second = float(value @ points[:, 0] ** 2)
    assert second == pytest.approx(1.0 if kernel.order == 2 else 0.0, abs=1e-9)


def test_sums_run_over_chunks_and_weights() -> None:
    kernel = ScoreKernel("gaussian", 2)
    generator = np.random.default_rng(2)
    rows, points = generator.normal(size=(2, 2 * CHUNK + 5)), generator.normal(size=(3, 2))
    weights = (generator.random(rows.shape[1]) < 0.5).astype(float)
    single = sum(w * kernel.sums(points, r[:, None]) for w, r in zip(weights, rows.T, strict=True))
    np.testing.assert_allclose(kernel.sums(points, rows, weights), single, rtol=1e-11)
    np.testing.assert_allclose(kernel.sums(points, rows), kernel.sums(points, rows, np.ones(rows.shape[1])))


def test_bounds_by_noise() -> None:
    kernel = ScoreKernel("gaussian", 2)
    assert kernel.shift_bounds(False) == (kernel.supremum, 2 * kernel.gradient_supremum)
    from_table = (1.45064 * 0.038861792**0.5, 1.54 * 0.070957836**0.5)
    np.testing.assert_allclose(kernel.shift_bounds(True), from_table, rtol=1e-4)
    with pytest.raises(errors.InvalidArgument, match="jumps"):
        ScoreKernel("legendre4", 2).shift_bounds(True)
    with pytest.raises(errors.InvalidArgument, match="kernel must be one of"):
        ScoreKernel("flat", 2)  # type: ignore[arg-type]


def test_the_constants_of_the_published_calibration() -> None:
    """Legendre order 4: range 1.875 and 2.109, largest slope 3.75 and 4.219."""
    for d, spread, slope in ((1, 1.875, 3.75), (2, 2.109, 4.219)):
        kernel = ScoreKernel("legendre4", d)
        assert kernel.supremum - kernel.infimum == pytest.approx(spread, abs=5e-4)
        assert kernel.gradient_supremum == pytest.approx(slope, abs=5e-4)
