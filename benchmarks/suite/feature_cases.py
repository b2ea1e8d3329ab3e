"""The pass over records in four to eight columns, beside the plain ways to the same sums."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pydpmode import RowStream
from pydpmode.numerics.designs import RandomDesign
from pydpmode.numerics.feature_sums import feature_sum

from .cases import OURS, SEED, Case, Peer, Run, Work
from .release_cases import HIGH, LOW, SPENT, batches_of, names, opened, rows_of

PAIRS = 3072
# Enough records for the compiled pass (where numba is installed), and too few for it.
MANY, FEWER, FEW = 10_000, 6000, 300
BLOCKS = (64, 256, 1024, 4096)
NUMPY = "NumPy in blocks"
NUMEXPR = "numexpr in blocks"
NUMBA = "a plain numba loop"


def random_design(dimension: int) -> RandomDesign:
    """Return the frequencies."""
    box = ([LOW] * dimension, [HIGH] * dimension, [1.2] * dimension)
    return RandomDesign(names(dimension), *box, n_pairs=PAIRS)


def numpy_sum(z: np.ndarray, frequencies: np.ndarray, weights: np.ndarray | None, block: int) -> np.ndarray:
    """Return the sums by BLAS phases, and NumPy's cosines and sines of a block at a time."""
    total = np.zeros(frequencies.shape[1], complex)
    for start in range(0, len(z), block):
        phase = z[start : start + block] @ frequencies
        part = np.ones(len(phase)) if weights is None else weights[start : start + block]
        total += part @ np.cos(phase) + 1j * (part @ np.sin(phase))
    return total


def best_block(z: np.ndarray, frequencies: np.ndarray) -> int:
    """Return the block size at which NumPy is fastest here."""

    def seconds(block: int) -> float:
        start = time.process_time()
        numpy_sum(z, frequencies, None, block)
        return time.process_time() - start

    seconds(BLOCKS[0])
    return min(BLOCKS, key=seconds)


def numexpr_sum(z: np.ndarray, frequencies: np.ndarray, weights: np.ndarray | None, block: int) -> np.ndarray:
    """Return the sums with numexpr's cosines and sines."""
    import numexpr

    numexpr.set_num_threads(1)
    total = np.zeros(frequencies.shape[1], complex)
    for start in range(0, len(z), block):
        phase = z[start : start + block] @ frequencies
        part = np.ones(len(phase)) if weights is None else weights[start : start + block]
        cosine, sine = numexpr.evaluate("cos(phase)"), numexpr.evaluate("sin(phase)")
        total += part @ cosine + 1j * (part @ sine)
    return total


@functools.cache
def _loop() -> Any:
    import numba

    def sums(z, frequencies, weights, cosine, sine):  # type: ignore[no-untyped-def]
        for i in range(z.shape[0]):
            for j in range(frequencies.shape[1]):
                phase = 0.0
                for a in range(z.shape[1]):
                    phase += z[i, a] * frequencies[a, j]
                cosine[j] += weights[i] * math.cos(phase)
                sine[j] += weights[i] * math.sin(phase)

    return numba.njit(sums, fastmath=True)


def numba_sum(z: np.ndarray, frequencies: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the sums by the loop that one would write first."""
    cosine, sine = np.zeros(frequencies.shape[1]), np.zeros(frequencies.shape[1])
    _loop()(z, frequencies, np.ones(len(z)) if weights is None else weights, cosine, sine)
    return cosine + 1j * sine


def plain_ways(design: RandomDesign, rows: np.ndarray, weights: np.ndarray | None) -> dict[str, Run]:
    """Return the peers, points scaled and frequencies turned beforehand."""
    z = np.ascontiguousarray((rows - design.lower) / design.bandwidth)
    turned = np.ascontiguousarray(design.frequencies.T)
    block = best_block(z[: len(z) // 4], turned)
    return {
        NUMPY: functools.partial(numpy_sum, z, turned, weights, block),
        NUMEXPR: functools.partial(numexpr_sum, z, turned, weights, block),
        NUMBA: functools.partial(numba_sum, z, turned, weights),
    }


def check_sums(results: Mapping[str, Any]) -> None:
    """Check that all gave the same sums."""
    total, sums = results[OURS]
    for name, value in results.items():
        if name != OURS:
            assert np.allclose(sums, value, rtol=0, atol=1e-9 * total), name


def one_block(dimension: int, weighted: bool, n: int, _: Path) -> Work:
    """Return the pass over one block of records, as a release makes it."""
    design, rows = random_design(dimension), rows_of(n, dimension)
    weights = np.random.default_rng(SEED + 1).uniform(size=n) if weighted else None
    columns = np.ascontiguousarray(rows.T)
    runs = {OURS: lambda: feature_sum(design, columns, weights), **plain_ways(design, rows, weights)}
    return Work(runs, check_sums)


def streamed(n: int, _: Path) -> Work:
    """Return a whole release from record batches in six columns: charge, pass, exact noise."""
    design, rows = random_design(6), rows_of(n, 6)
    schema, batches = batches_of(rows)
    study = opened(RowStream(lambda: pa.RecordBatchReader.from_batches(schema, batches), n_rows=n), 6)
    coordinates = [study.coordinate(c) for c in design.columns]
    runs = {
        OURS: lambda: study.release_surface(design, coordinates, **SPENT),
        NUMPY: plain_ways(design, rows, None)[NUMPY],
    }

    def check(results: Mapping[str, Any]) -> None:
        surface = results[OURS]
        weighted = np.sqrt(design.pair_weights) * results[NUMPY]
        noise = (surface.vector[1:] - np.concatenate([weighted.real, weighted.imag])) / (
            surface.privacy.noise_scale
        )
        assert abs(np.sqrt(np.mean(noise**2)) - 1) < 6 / np.sqrt(2 * noise.size)

    return Work(runs, check)


def plain(most: float) -> tuple[Peer, ...]:
    """Return the peers with one ceiling."""
    return Peer(NUMPY, most), Peer(NUMEXPR, most, "numexpr"), Peer(NUMBA, most, "numba")


# Without numba the compiled cases are NumPy's too, and fail: the extra `bench` has it.
CASES = (
    *(
        Case(
            f"sums in {d} columns, compiled",
            MANY,
            FEW * (d == 4),
            functools.partial(one_block, d, False),
            plain(0.5),
            rounds=3,
        )
        for d in range(4, 9)
    ),
    Case(
        "sums in 6 columns, compiled, weights",
        MANY,
        FEW,
        functools.partial(one_block, 6, True),
        plain(0.5),
        rounds=3,
    ),
    Case(
        "sums in 6 columns, by NumPy",
        FEWER,
        FEW,
        functools.partial(one_block, 6, False),
        plain(2.0),
        rounds=3,
    ),
    Case("release, 6 columns, record batches", MANY, FEW, streamed, (Peer(NUMPY, 0.5),), rounds=3),
)
