"""The noise: exact discrete Gaussian from fresh entropy. Statistical tests fail once in a million runs."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pydpmode.errors import InvalidArgument
from pydpmode.privacy import noise
from pydpmode.privacy.noise import discrete_gaussian, fresh_seed, processors, simulated_gaussian

STRICT = 1e-6


def mass(scale: float, k: np.ndarray) -> np.ndarray:
    """Return the exact probabilities of integers k."""
    every = np.arange(-60 * math.ceil(scale), 60 * math.ceil(scale) + 1)
    weight = np.exp(-(every.astype(float) ** 2) / (2 * scale**2))
    return np.asarray(np.exp(-(k.astype(float) ** 2) / (2 * scale**2)) / weight.sum())


@pytest.mark.parametrize("scale", [0.4, 1.3, 6.0])
def test_small_scales_have_the_exact_probabilities(scale: float) -> None:
    n = 6000
    draws = discrete_gaussian(n, scale)
    assert draws.dtype == np.int64
    reach = math.ceil(6 * scale)
    values = np.arange(-reach, reach + 1)
    expected = n * mass(scale, values)
    usable = expected > 5
    counts = np.array([(draws == v).sum() for v in values])
    chi2 = ((counts - expected)[usable] ** 2 / expected[usable]).sum()
    assert stats.chi2.sf(chi2, usable.sum()) > STRICT
    assert np.abs(draws).max() <= math.ceil(8 * scale) + 8


@pytest.mark.parametrize("scale", [1e3 + 0.123, 2.0**33])
def test_large_scales_have_the_moments_of_a_normal(scale: float) -> None:
    n = 6000
    z = discrete_gaussian(n, scale) / scale
    limit = stats.norm.isf(STRICT / 2)
    assert abs(z.mean()) < limit / math.sqrt(n)
    assert abs((z**2).mean() - 1) < limit * math.sqrt(2 / n)
    assert abs((z**3).mean()) < limit * math.sqrt(15 / n)
    assert abs((z**4).mean() - 3) < 1.2 * limit * math.sqrt(96 / n)
    assert stats.kstest(z, "norm").pvalue > STRICT
    # Neighbours in the vector share nothing.
    assert abs((z[:-1] * z[1:]).mean()) < limit / math.sqrt(n)


def test_the_lowest_digits_are_even() -> None:
    """A sampler in floating point would leave a pattern there."""
    draws = discrete_gaussian(6000, 2.0**40 + 1)
    counts = np.bincount(draws % 16, minlength=16)
    assert stats.chisquare(counts).pvalue > STRICT


@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, 1025, 4097])
def test_any_length_comes_back_whole(length: int) -> None:
    draws = discrete_gaussian(length, 1e6)
    assert draws.shape == (length,)
    assert draws.dtype == np.int64
    assert len(np.unique(draws)) >= 0.9 * length


def test_a_scale_at_the_edge_fits_in_64_bits() -> None:
    draws = discrete_gaussian(200, 2.0**57)
    assert np.abs(draws.astype(float)).max() < 2.0**61
    assert draws.astype(float).std() == pytest.approx(2.0**57, rel=0.4)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**58])
def test_other_scales_are_refused(scale: float) -> None:
    with pytest.raises(InvalidArgument, match="noise scale must be in"):
        discrete_gaussian(3, scale)


def test_two_calls_differ() -> None:
    assert not np.array_equal(discrete_gaussian(50, 1e9), discrete_gaussian(50, 1e9))
    assert len({fresh_seed() for _ in range(20)}) >= 19


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_draws_its_own() -> None:
    discrete_gaussian(5, 1e12)
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 and later warn of forks while threads live; the child only draws and leaves.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(write, discrete_gaussian(20, 1e12).tobytes() + fresh_seed().to_bytes(4, "little"))
        finally:
            os._exit(0)
    mine, seed = discrete_gaussian(20, 1e12), fresh_seed()
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    theirs = np.frombuffer(data[:160], dtype=np.int64)
    assert len(theirs) == 20
    assert not set(theirs) & set(mine)
    assert int.from_bytes(data[160:], "little") != seed


# A thread that just gives back its generator holds a lock of the process: one forked then would hang.
@pytest.mark.parametrize("length", [5, 2000])
def test_draws_wait_until_their_threads_have_ended(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: set[int] = set()
    waited: list[set[int]] = []
    sampler = noise._sampler(1e12)

    def watched(zeros: list[int]) -> list[int]:
        ran.add(threading.get_native_id())
        return list(sampler(zeros))

    monkeypatch.setattr(noise, "_sampler", lambda scale: watched)
    monkeypatch.setattr(noise, "_wait_until_ended", waited.append)
    with ThreadPoolExecutor(1) as pool:
        assert len(pool.submit(discrete_gaussian, length, 1e12).result()) == length
        assert pool.submit(threading.get_native_id).result() not in ran
    assert waited == [ran]
    ran.clear()
    discrete_gaussian(5, 1e12)
    assert ran == {threading.get_native_id()}
    assert len(waited) == 1


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs the list of threads")
def test_a_thread_that_has_not_ended_is_waited_for() -> None:
    thread = threading.Thread(target=time.sleep, args=(0.2,))
    thread.start()
    assert thread.native_id is not None
    noise._wait_until_ended({thread.native_id})
    assert not os.path.exists(f"/proc/self/task/{thread.native_id}")


def test_the_global_state_of_numpy_and_python_plays_no_part() -> None:
    draws = []
    for _ in range(2):
        np.random.seed(7)  # noqa: NPY002
        before = np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002
        draws.append(discrete_gaussian(20, 1e9))
        simulated_gaussian(20, 1e9, 3)
        after = np.random.get_state(legacy=False)["state"]["key"]  # noqa: NPY002
        np.testing.assert_array_equal(before, after)
    assert not np.array_equal(*draws)


def test_simulated_noise_is_reproducible_and_whole() -> None:
    one, again, other = (simulated_gaussian(4000, 1e5, s) for s in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert one.dtype == np.int64
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.1
    assert one.std() == pytest.approx(1e5, rel=0.05)
    # Frozen, so that a published simulation can be repeated.
    np.testing.assert_array_equal(simulated_gaussian(4, 1000.0, 0), KNOWN)


KNOWN: Any = [126, -132, 640, 105]


def test_the_number_of_processors_is_what_this_process_may_use() -> None:
    assert 1 <= processors() <= (os.cpu_count() or 1)
