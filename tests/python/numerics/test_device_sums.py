"""Sums on a device, with NumPy in CuPy's place: the numbers, their error, memory, and what is missing."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from audits import stand_in_device
from pydpmode.errors import InvalidArgument, MissingDependency
from pydpmode.numerics.compiled_trig import TRIG_ERROR
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.numerics.device_sums import (
    GROUP,
    DeviceSums,
    cupy_module,
    lattice_factors,
    numpy_module,
    turn_scale,
)
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.privacy.devices import sums_rounded_once
from pydpmode.privacy.features import device_tolerance

NAMES = tuple("abcde")


def design_of(d: int, bandwidth: float = 0.9) -> Design:
    box = NAMES[:d], np.linspace(-3, -1, d), np.linspace(2, 5, d), np.full(d, bandwidth)
    return LatticeDesign(*box) if d <= 3 else RandomDesign(*box, n_pairs=257, frequency_seed=3)


def points_of(design: Design, n: int, seed: int = 0) -> np.ndarray:
    inside = np.random.default_rng(seed).uniform(size=(design.dimension, n))
    return design.lower[:, None] + (design.upper - design.lower)[:, None] * inside


def norm(design: Design, total: float, sums: np.ndarray) -> float:
    return float(np.sqrt(design.zero_weight * total**2 + np.sum(design.pair_weights * np.abs(sums) ** 2)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, GROUP, 2 * GROUP + 77])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_the_sums_are_those_of_the_transform(d: int, n: int, weighted: bool) -> None:
    design = design_of(d)
    x = points_of(design, n)
    weights = np.random.default_rng(1).uniform(size=n) if weighted else None
    total, sums = DeviceSums(stand_in_device.module()).feature_sum(design, x, weights)
    wanted_total, wanted = feature_sum(design, x, weights, 1e-12)
    assert total == pytest.approx(wanted_total, rel=1e-14)
    assert norm(design, total - wanted_total, sums - wanted) < 2e-12 * n


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_error_is_within_the_proved_bound_at_points_whose_errors_add_up(d: int) -> None:
    design = design_of(d, 1.6)
    every = np.arange(design.n_pairs)
    for x in (np.repeat(points_of(design, 1), 3000, axis=1), points_of(design, 3000), design.upper[:, None]):
        total, sums = DeviceSums(numpy_module()).feature_sum(design, x)
        error = norm(design, total - x.shape[1], sums - sums_rounded_once(design, x, None, every))
        assert error <= device_tolerance(design, x.shape[1]) * x.shape[1]


def test_the_bound_grows_as_its_parts_do() -> None:
    u = 2.0**-53
    one, three = device_tolerance(design_of(1), 2**17), device_tolerance(design_of(3), 2**17)
    depth = GROUP + 2 * 2**17 / GROUP + 8
    assert one == pytest.approx(math.sqrt(2) * depth * u + 2 * math.sqrt(2) * TRIG_ERROR, rel=0.02)
    assert three == pytest.approx(2 * depth * u + 3 * math.sqrt(2) * TRIG_ERROR, rel=0.02)
    # Phases of random frequencies are rounded before their cosines are taken.
    wide = RandomDesign(NAMES[:4], np.zeros(4), np.full(4, 1e6), np.ones(4), n_pairs=64)
    assert device_tolerance(wide, 1) > 1e-10 > device_tolerance(design_of(4), 1)


def test_no_phase_is_rounded_however_large_the_frequency() -> None:
    """A hundred thousand frequencies in one dimension: phases of 1e5 turns, to the last bit."""
    design = LatticeDesign(("a",), [0.0], [1.0], [1.5e-5])
    assert design.n_pairs > 40_000
    x = np.array([[0.1, 0.7390851332151607, 1.0]])
    last = np.arange(design.n_pairs - 50, design.n_pairs)
    _, sums = DeviceSums(numpy_module()).feature_sum(design, x)
    exact = sums_rounded_once(design, x, None, last)
    assert np.max(np.abs(sums[last] - exact)) < 1e-14
    # The reference against whole numbers of any size.
    k, m = int(design.pair_index[-1]), int(np.rint(x[0, 1] * turn_scale(design)[0]))
    angle = math.tau * ((k * m) % 2**53) / 2**53
    one = sums_rounded_once(design, x[:, 1:2], None, last[-1:])[0]
    assert one == pytest.approx(complex(math.cos(angle), math.sin(angle)), abs=1e-15)


@pytest.mark.parametrize("half", [3, 8, 9, 24, 25, 26])
def test_one_column_as_two_factors_reaches_every_frequency(half: int) -> None:
    design = LatticeDesign(("a",), [0.0], [half * 2 * math.pi / 4.5 - 9 + 1e-9], [1.0]) if half > 7 else None
    design = design or LatticeDesign(
        ("a",), [0.0], [1.0], [1.0], read_ratio=0.6, cut=2 * math.pi * half / 4.6
    )
    assert design.half_sizes[0] == half
    high, low = lattice_factors(design)
    reached = {a * high.step + b for a in range(high.count) for b in range(low.count)}
    assert set(range(half + 1)) <= reached
    assert high.step == low.count


def test_rows_are_taken_in_turn_when_the_memory_is_small() -> None:
    """The sums do not depend on how many rows are on the device at once, and no array is larger than said."""
    design = design_of(3)
    x, weights = points_of(design, 9000), np.linspace(0, 1, 9000)
    whole = DeviceSums(stand_in_device.module()).feature_sum(design, x, weights)
    sizes: list[int] = []

    def empty(shape: tuple[int, ...]) -> np.ndarray:
        sizes.append(8 * math.prod(shape))
        return stand_in_device.on_device(np.empty(shape))

    small = 80 * 2**20
    parts = DeviceSums(stand_in_device.module({"empty": empty}, free=small))
    parts.check_memory(design)
    total, sums = parts.feature_sum(design, x, weights)
    assert total == pytest.approx(whole[0], rel=1e-14)
    assert norm(design, total - whole[0], sums - whole[1]) < 1e-13 * 9000
    # Three arrays a turn; more than one turn.
    assert len(sizes) > 3
    assert max(sizes) < small / 2


def test_too_little_memory_is_refused_before_anything_else() -> None:
    sums = DeviceSums(stand_in_device.module(free=2**20))
    with pytest.raises(InvalidArgument, match=r"need \d+ MiB .* and 0 MiB may be used"):
        sums.check_memory(design_of(3))


def test_no_rows_is_zero() -> None:
    design = design_of(2)
    total, sums = DeviceSums(stand_in_device.module()).feature_sum(design, np.empty((2, 0)))
    assert total == 0
    assert not sums.any()


def test_the_stand_in_refuses_arrays_of_the_host() -> None:
    here, there = np.ones(3), stand_in_device.on_device(np.ones(3))
    for mixed in (
        lambda: there + here,
        lambda: np.matmul(here, there),
        lambda: stand_in_device.to_host(here),
    ):
        with pytest.raises(TypeError):
            mixed()


def test_a_device_without_memory_tells_no_size() -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError("Out of memory allocating 123,456 bytes")

    sums = DeviceSums(stand_in_device.module({"matmul": full}))
    with pytest.raises(MemoryError, match="the device ran out of memory") as caught:
        sums.feature_sum(design_of(2), points_of(design_of(2), 5))
    assert "123" not in str(caught.value)


def test_without_cupy_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingDependency, match=r"pip install 'pydpmode\[cuda\]'"):
        cupy_module()


def test_cupy_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", stand_in_device.cupy_of_numpy(devices=0))
    with pytest.raises(InvalidArgument, match="finds no CUDA device"):
        cupy_module()


def test_cupy_is_called_by_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", stand_in_device.cupy_of_numpy())
    module = cupy_module()
    assert module.free_memory() == 2**30 + 2**20
    design = design_of(4)
    x = points_of(design, 300)
    assert np.allclose(DeviceSums(module).feature_sum(design, x)[1], feature_sum(design, x)[1], atol=1e-11)


@pytest.mark.cuda
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_on_a_gpu(d: int) -> None:
    """Run where CuPy finds a CUDA device; elsewhere NumPy runs the same lines, above."""
    try:
        module = cupy_module()
    except (MissingDependency, InvalidArgument) as problem:
        pytest.skip(str(problem))
    design = design_of(d)
    x = points_of(design, 20_000)
    weights = np.random.default_rng(1).uniform(size=20_000)
    total, sums = DeviceSums(module).feature_sum(design, x, weights)
    plain_total, plain = DeviceSums(numpy_module()).feature_sum(design, x, weights)
    error = norm(design, total - plain_total, sums - plain)
    assert error <= 2 * device_tolerance(design, 20_000) * weights.sum()
