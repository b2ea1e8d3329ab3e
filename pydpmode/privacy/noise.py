"""The noise: exact discrete Gaussian from the operating system's entropy, and a marked stand-in.

The discrete Gaussian with integer scale `s` puts weight proportional to `exp(-k^2/(2 s^2))` on each
integer k (Canonne, Kamath & Steinke 2020). OpenDP samples it exactly, without floating-point
arithmetic, so no low-order bit of the data survives in a release.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument

_SMALLEST_CHUNK = 512
_LONGEST_END = 5.0  # seconds
# Above this a sum of noise and data could leave 64-bit integers.
LARGEST_SCALE = 2.0**58


def discrete_gaussian(length: int, scale: float) -> NDArray[np.int64]:
    """Draw `length` independent exact discrete Gaussian integers from fresh entropy.

    Parameters
    ----------
    length : int
    scale : float
        Standard deviation in integers, > 0 and below 2^58.

    Raises
    ------
    InvalidArgument
        When the scale is out of range.
    """
    if not 0 < scale < LARGEST_SCALE:
        raise InvalidArgument(f"the noise scale must be in (0, 2^58) integers, got {scale!r}")
    sampler = _sampler(float(scale))
    workers = min(processors(), max(1, length // _SMALLEST_CHUNK))
    if workers == 1 and threading.current_thread() is threading.main_thread():
        return np.array(sampler([0] * length), dtype=np.int64)
    sizes = [length // workers + (i < length % workers) for i in range(workers)]
    # The sampler runs outside Python's lock and draws each entry from the system's entropy.
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(lambda size: (threading.get_native_id(), sampler([0] * size)), sizes))
    _wait_until_ended({thread for thread, _ in parts})
    return np.array([value for _, part in parts for value in part], dtype=np.int64)


def _wait_until_ended(threads: set[int]) -> None:
    """Wait until the system has ended threads that Python has joined, at most some seconds.

    At its end a thread gives back what the sampler's random generator keeps for it, under a lock of the whole
    process. Python may call it joined before that. A process forked in between would find the lock taken for
    ever, and hang at its first draw.
    """
    limit = time.monotonic() + _LONGEST_END
    for thread in threads:
        while os.path.exists(f"/proc/self/task/{thread}") and time.monotonic() < limit:
            time.sleep(1e-4)


def simulated_gaussian(length: int, scale: float, seed: int) -> NDArray[np.int64]:
    """Draw reproducible rounded Gaussian integers. For tests and papers only: NOT private.

    Parameters
    ----------
    length : int
    scale : float
        Standard deviation in integers.
    seed : int
        Seed of a NumPy PCG64 generator made for this call.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    return np.rint(generator.standard_normal(length) * scale).astype(np.int64)


def fresh_seed() -> int:
    """Return 32 bits of system entropy, for public draws such as random frequencies."""
    return int.from_bytes(os.urandom(4), "little")


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


@lru_cache(maxsize=16)
def _sampler(scale: float) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return dp.m.make_gaussian(*space, scale=scale)
