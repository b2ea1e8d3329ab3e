"""The non-private surface: the same estimate by frequencies (d <= 3) and by direct sums (any d)."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from pydpmode.errors import InvalidArgument, PicklingRefused
from pydpmode.numerics.kernel_surface import DirectKernelSurface, KernelSurface
from pydpmode.numerics.kernels import ORDERS, kernel_peak, kernel_shape
from pydpmode.numerics.spectral_surfaces import LatticeSurface
from pydpmode.numerics.surfaces import Surface

# Largest change of one record's kernel by the cut in frequency, relative to its peak (documented).
CUT_ERROR = {2: 2e-4, 4: 1e-3, 6: 3e-3}


def normal(d: int, n: int = 150, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).clip(-4, 4)


def by_definition(x: np.ndarray, points: np.ndarray, h: np.ndarray, order: int) -> np.ndarray:
    d = x.shape[1]
    t2 = (((points[:, None] - x) / h) ** 2).sum(axis=2)
    return kernel_peak(order, d) * kernel_shape(order, d, t2).mean(axis=1) / float(np.prod(h))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_by_frequencies(d: int, order: int) -> None:
    h = np.array([0.5, 0.7, 0.6])[:d]
    for x in (normal(d), np.zeros((1, d))):
        surface = KernelSurface.from_points(x, h, -4, 4, order=order)
        assert isinstance(surface, LatticeSurface)
        points = np.concatenate([normal(d, 300, 1), x[:20]])
        error = np.abs(surface.density(points) - by_definition(x, points, h, order)).max()
        assert error <= CUT_ERROR[order] * kernel_peak(order, d) / float(np.prod(h))
        assert surface.n_effective == len(x)
        assert surface.noise.value == 0
        np.testing.assert_array_equal(surface.noise_length, h)


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("d", [4, 6, 8])
def test_by_direct_sums(d: int, order: int) -> None:
    h = np.linspace(0.5, 1.2, d)
    x, points = normal(d), normal(d, 30, 1)
    surface = KernelSurface.from_points(x, h, -4, 4, order=order)
    assert isinstance(surface, DirectKernelSurface)
    np.testing.assert_allclose(surface.density(points), by_definition(x, points, h, order), rtol=1e-11)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("order", [2, 4])
def test_both_ways_agree_with_all_derivatives(d: int, order: int) -> None:
    h = np.array([0.5, 0.7, 0.6])[:d]
    x, points = normal(d), normal(d, 20, 1)
    direct = DirectKernelSurface(x, tuple("abc"[:d]), np.full(d, -4.0), np.full(d, 4.0), h, order)
    fourier = KernelSurface.from_points(x, h, -4, 4, order=order)
    # Each derivative takes the frequencies near the cut more seriously.
    for power, (one, other) in enumerate(
        zip(fourier.derivatives(points), direct.derivatives(points), strict=True)
    ):
        tolerance = CUT_ERROR[order] * 3**power * np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)
    assert fourier.roughness.value == pytest.approx(direct.roughness.value)
    np.testing.assert_allclose(fourier.roughness.gradient, direct.roughness.gradient)
    other_h = 1.3 * h
    np.testing.assert_allclose(
        fourier.at_bandwidth(other_h).density(points),
        direct.at_bandwidth(other_h).density(points),
        rtol=0,
        atol=1e-4 * float(direct.density(points).max()),
    )
    axes = [np.linspace(-1, 1, 4)] * d
    np.testing.assert_allclose(fourier.density_on_grid(axes), direct.density_on_grid(axes), rtol=0.01)


@pytest.mark.parametrize("order", [2, 4])
def test_derivatives_of_direct_sums_by_differences(order: int) -> None:
    h = np.array([0.9, 1.0, 1.2, 0.8])
    surface = KernelSurface.from_points(normal(4), h, -4, 4, order=order)
    points = normal(4, 8, 2)
    value, gradient, hessian = surface.derivatives(points)
    unit = float(np.abs(value).max())
    for a in range(4):
        step = np.eye(4)[a] * 1e-4
        slope = (surface.density(points + step) - surface.density(points - step)) / 2e-4
        np.testing.assert_allclose(gradient[:, a], slope, atol=1e-6 * unit, rtol=0)
        bend = (surface.gradient(points + step) - surface.gradient(points - step)) / 2e-4
        np.testing.assert_allclose(hessian[:, a, :], bend, atol=1e-6 * unit, rtol=0)


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    surface = KernelSurface.from_points(normal(4), 1.0, -4, 4)
    points = normal(4, 10, 2)
    whole = surface.hessian(points)
    monkeypatch.setattr("pydpmode.numerics.kernel_surface._PAIRS", 1)
    np.testing.assert_allclose(surface.hessian(points), whole, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 4])
def test_rows_outside_go_to_the_bound_and_incomplete_rows_are_left_out(d: int) -> None:
    x = normal(d, 20)
    odd = x.copy()
    odd[0], odd[1], odd[2] = np.inf, -np.inf, 1e300
    odd[3, 0] = np.nan
    moved = np.delete(odd.clip(-4, 4), 3, axis=0)
    points = normal(d, 10, 1)
    one = KernelSurface.from_points(odd, 0.7, -4, 4)
    np.testing.assert_allclose(
        one.density(points), KernelSurface.from_points(moved, 0.7, -4, 4).density(points), rtol=1e-9
    )
    assert one.n_effective == 19


def test_the_callers_array_is_left_alone_and_may_be_read_only() -> None:
    x = normal(2, 30)
    x[0, 0] = 99.0
    before = x.copy()
    x.setflags(write=False)
    KernelSurface.from_points(x, 0.5, -4, 4).density(np.zeros((1, 2)))
    KernelSurface.from_points(np.asfortranarray(x)[::2], 0.5, -4, 4)
    np.testing.assert_array_equal(x, before)


def test_one_dimension_needs_no_second_axis() -> None:
    surface = KernelSurface.from_points([0.0, 1.0, 2.0], 0.5, -4, 4)
    assert surface.columns == ("x1",)
    assert surface.density(np.array([1.0]))[0] > 0
    named = KernelSurface.from_points(normal(2), 0.5, -4, 4, columns=["age", "wage"])
    assert named.columns == ("age", "wage")


@pytest.mark.parametrize("d", [2, 4])
@pytest.mark.parametrize(
    "changes",
    [
        {"bandwidth": 0.0},
        {"bandwidth": -1.0},
        {"bandwidth": math.nan},
        {"bandwidth": [1.0, 1.0, 1.0]},
        {"lower": 4.0},
        {"lower": 5.0},
        {"upper": math.nan},
        {"upper": [[4.0]]},
        {"order": 3},
        {"order": True},
        {"columns": ["a"]},
        {"points": np.full((3, 2), np.nan)},
        {"points": np.empty((0, 2))},
        {"points": np.empty((3, 0))},
        {"points": np.zeros((2, 2, 2))},
        {"points": 1.0},
    ],
    ids=lambda c: f"{next(iter(c))}={np.asarray(next(iter(c.values()))).tolist()}"[:40],
)
def test_what_does_not_fit_is_refused(d: int, changes: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"points": normal(d), "bandwidth": 1.0, "lower": -4.0, "upper": 4.0}
    with pytest.raises(InvalidArgument):
        KernelSurface.from_points(**{**fields, **changes})


def test_order_6_is_for_three_columns_at_most() -> None:
    with pytest.raises(InvalidArgument, match="orders 2 and 4"):
        KernelSurface.from_points(normal(4), 1.0, -4, 4, order=6)


def test_direct_sums_hold_rows_and_are_never_written_or_shown() -> None:
    x = normal(4)
    x[0] = 1.2345678
    surface = KernelSurface.from_points(x, 1.0, -4, 4)
    assert isinstance(surface, DirectKernelSurface)
    for refuse in (lambda: pickle.dumps(surface), surface.to_dict):
        with pytest.raises(PicklingRefused) as caught:
            refuse()
        assert "1.2345" not in str(caught.value)
    assert "1.2345" not in repr(surface)
    assert "not private" in repr(surface)


def test_both_meet_the_contract() -> None:
    for d in (2, 4):
        surface = KernelSurface.from_points(normal(d), 1.0, -4, 4)
        assert isinstance(surface, Surface)
        assert not math.isnan(surface.roughness.value)
    with pytest.raises(PicklingRefused):
        copy.deepcopy(KernelSurface.from_points(normal(4), 1.0, -4, 4))
