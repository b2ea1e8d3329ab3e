"""The compiled sine and cosine: within the stated error, the same bits every time, the same sums as NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pydpmode.numerics import compiled_trig, feature_sums
from pydpmode.numerics.compiled_trig import (
    TRIG_ERROR,
    _sum_phases,
    has_compiler,
    phase_sums,
    within_reduction,
)
from pydpmode.numerics.designs import RandomDesign
from pydpmode.privacy.features import arithmetic_margin

needs_numba = pytest.mark.skipif(not has_compiler(), reason="numba is not installed")


def design(d: int = 4, pairs: int = 300) -> RandomDesign:
    names = tuple(f"x{i}" for i in range(d))
    return RandomDesign(names, np.zeros(d), np.full(d, 6.0), np.ones(d), n_pairs=pairs, frequency_seed=1)


def one_by_one(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    cosine, sine = np.zeros(x.size), np.zeros(x.size)
    _sum_phases(np.ones((1, 1)), np.ones(1), x[None, :], cosine, sine)
    return cosine, sine


def test_the_error_is_as_stated() -> None:
    """The code that is compiled, run as plain Python, against long doubles."""
    generator = np.random.default_rng(0)
    quarter = np.arange(-200, 200) * (math.pi / 4)
    wide = generator.uniform(-3e6, 3e6, 2000)
    x = np.concatenate([generator.uniform(-300, 300, 2000), quarter, wide, [0.0, 1e-300, -1e-9]])
    cosine, sine = one_by_one(x)
    exact = x.astype(np.longdouble)
    assert float(np.abs(cosine - np.cos(exact)).max()) < TRIG_ERROR
    assert float(np.abs(sine - np.sin(exact)).max()) < TRIG_ERROR
    assert float(np.abs(sine - np.sin(exact)).max()) > 1e-14  # the bound is not idle


def test_the_error_is_far_inside_the_margin() -> None:
    # Two neighbours, n records each: the margin is for both.
    for n in (1, 1000, 2**17):
        assert 2 * n * 2 * TRIG_ERROR < 0.3 * arithmetic_margin(n, n, 1e-12)


@needs_numba
def test_compiled_and_plain_sums_agree_and_repeat() -> None:
    generator = np.random.default_rng(1)
    z, w = generator.uniform(0, 6, (500, 4)), generator.normal(size=(4, 700))
    weights = generator.uniform(0, 1, 500)
    cosine, sine = phase_sums(z, weights, w)
    phase = z @ w
    assert np.abs(cosine - weights @ np.cos(phase)).max() < 500 * 1e-13
    assert np.abs(sine - weights @ np.sin(phase)).max() < 500 * 1e-13
    again = phase_sums(z, weights, w)
    assert np.array_equal(cosine, again[0])
    assert np.array_equal(sine, again[1])


@needs_numba
def test_the_pass_over_records_uses_it_for_large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = design()
    columns = np.random.default_rng(2).uniform(0, 6, (4, 400))
    weights = np.random.default_rng(3).uniform(0, 1, 400)
    calls = []

    def watched(*parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls.append(parts[0].shape)
        return phase_sums(*parts)

    monkeypatch.setattr(feature_sums, "phase_sums", watched)
    plain = [feature_sums.feature_sum(plan, columns, w)[1] for w in (None, weights)]
    assert calls == []
    monkeypatch.setattr(feature_sums, "WORTH_COMPILING", 1)
    fast = [feature_sums.feature_sum(plan, columns, w)[1] for w in (None, weights)]
    assert calls == [(400, 4)] * 2
    for one, other in zip(plain, fast, strict=True):
        assert np.abs(one - other).max() < 400 * 1e-13
    monkeypatch.setattr(feature_sums, "has_compiler", lambda: False)
    assert np.array_equal(feature_sums.feature_sum(plan, columns)[1], plain[0])


def test_the_reduction_is_checked_on_the_public_box() -> None:
    w = np.ones((2, 3))
    assert within_reduction(np.array([10.0, 10.0]), w)
    assert not within_reduction(np.array([1e6, 1e6]), w)


def test_where_compiled_code_cannot_be_kept_it_is_still_used(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    asked = []

    def njit(function, cache: bool = False, nogil: bool = False):
        asked.append(cache)
        if cache:
            raise RuntimeError("no locator available")
        return function

    monkeypatch.setattr(numba, "njit", njit)
    compiled_trig._compiled.cache_clear()
    try:
        assert compiled_trig._compiled() is _sum_phases
        assert asked == [True, False]
    finally:
        compiled_trig._compiled.cache_clear()
