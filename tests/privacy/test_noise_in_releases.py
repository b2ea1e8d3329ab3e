"""The noise of whole releases: its law, its entropy in copies of the process, and what it hides."""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pydpmode as dpm
from audits.shared_noise import release, released_vector
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy import noise, surface_release
from pydpmode.privacy.grams_initialisation import exponential_draw
from pydpmode.privacy.noise import discrete_gaussian
from pydpmode.privacy.quantiles import WEIGHT_BITS


def law(scale: float, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers within `reach` and their exact probabilities."""
    k = np.arange(-reach, reach + 1)
    weights = [math.exp(-(int(i) ** 2) / (2 * scale**2)) for i in k]
    return k, np.array(weights) / math.fsum(weights)


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_the_discrete_law_by_chi_square(scale: float) -> None:
    k, p = law(scale, math.ceil(12 * scale))
    drawn = discrete_gaussian(30_000, scale)
    counts = np.array([np.count_nonzero(drawn == i) for i in k])
    assert counts.sum() == len(drawn)
    usual = p * len(drawn) >= 5
    seen = [*counts[usual], counts[~usual].sum()]
    expected = [*(p[usual] * len(drawn)), p[~usual].sum() * len(drawn)]
    statistic = sum((a - b) ** 2 / b for a, b in zip(seen, expected, strict=True) if b > 1e-9)
    assert stats.chi2.sf(statistic, len(seen) - 1) > 1e-6


@pytest.mark.parametrize("scale", [2.0**31 + 0.3, 2.0**57])
def test_large_scales_by_kolmogorov_and_smirnov(scale: float) -> None:
    """At these scales the discrete law and the normal one differ by less than 1e-10."""
    drawn = discrete_gaussian(20_000, scale) / scale
    assert stats.kstest(drawn, "norm").pvalue > 1e-6


def test_the_noise_of_a_release_has_the_stated_law() -> None:
    """Released minus exact, over many releases, in steps of the lattice."""
    study = dpm.PrivateData(np.linspace(0, 3, 25), bounds=(0, 3), budget=dpm.Budget(1.0, 1e-6))
    design = LatticeDesign(("x1",), *study.box([study.coordinate("x1")]), np.ones(1), 2, 0.5, 0.5, 3.0)
    plan = study.plan(design, epsilon=1.0, delta=1e-6)
    exact = study._lattice_sum(plan, [study.coordinate("x1")])
    vectors = np.array([surface_release.add_noise(plan, exact, None) for _ in range(600)])
    residue = (vectors / plan.step - exact) * plan.step / plan.noise_scale
    assert stats.kstest(residue.ravel(), "norm").pvalue > 1e-6
    # Entries and releases are independent: no correlation between neighbours in either direction.
    for one, two in ((residue[:-1], residue[1:]), (residue[:, :-1], residue[:, 1:])):
        assert abs(np.corrcoef(one.ravel(), two.ravel())[0, 1]) < 6 / math.sqrt(one.size)


# -- entropy in copies of the process --------------------------------------------------------------------


def all_different(vectors: list[bytes]) -> bool:
    numbers = [set(np.frombuffer(v).tolist()) for v in vectors]
    return all(not (a & b) for i, a in enumerate(numbers) for b in numbers[:i])


def test_threads_and_process_pools_draw_their_own() -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(released_vector, range(8)))
    # A pool of new processes, and of forked ones: they start with the same memory.
    for way in ("spawn", "fork"):
        if way not in multiprocessing.get_all_start_methods():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            with ProcessPoolExecutor(2, multiprocessing.get_context(way)) as pool:
                found += list(pool.map(released_vector, range(4)))
    assert all_different(found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_of_one_process_draw_their_own_starts_and_batches() -> None:
    pipes = []
    counts = np.zeros(10**6, dtype=np.int64)
    for _ in range(3):
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                os.write(write, np.array([exponential_draw(counts, 1.0) for _ in range(5)]).tobytes())
            finally:
                os._exit(0)
        os.close(write)
        pipes.append((read, child))
    drawn = []
    for read, child in pipes:
        with os.fdopen(read, "rb") as pipe:
            drawn.append(set(np.frombuffer(pipe.read(), dtype=np.int64).tolist()))
        os.waitpid(child, 0)
    drawn.append({exponential_draw(counts, 1.0) for _ in range(5)})
    assert all(len(d) == 5 for d in drawn)
    assert all(not (a & b) for i, a in enumerate(drawn) for b in drawn[:i])


@pytest.mark.parametrize("mechanism", ["surface", "private", "grams"])
@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
def test_global_generators_are_neither_read_nor_changed(mechanism: str) -> None:
    rows = np.linspace(-2, 2, 300)
    knobs: dict[str, Any] = {"private": {"bandwidth": "private"}, "grams": {"mechanism": "grams"}}.get(
        mechanism, {}
    )
    found = []
    for _ in range(2):
        np.random.seed(11)  # noqa: NPY002
        random.seed(11)
        before = np.random.get_state(legacy=False)["state"]["key"].copy(), random.getstate()  # noqa: NPY002
        model = dpm.DensityModes(rows, bounds=(-3, 3), n_modes=1, **knobs)
        model.fit(epsilon=2.0, delta=1e-4)
        after = np.random.get_state(legacy=False)["state"]["key"], random.getstate()  # noqa: NPY002
        assert np.array_equal(before[0], after[0])
        assert before[1] == after[1]
        out: Any = model.released
        found.append(out.trace.densities if mechanism == "grams" else out.vector)
    assert found[0].shape != found[1].shape or not np.any(found[0] == found[1])


# -- the lattice: no low-order bit of a row survives -----------------------------------------------------

MAGNITUDES = [1.0, 1e-40, 1e15, 1e40]


@pytest.mark.parametrize("size", MAGNITUDES)
@pytest.mark.parametrize("kind", ["last bit", "tiny against huge", "subnormal"])
def test_neighbours_that_differ_in_the_last_bit(size: float, kind: str) -> None:
    """What is added to is the same integers, and what is released are whole steps: nothing below remains."""
    rows = np.linspace(0.1, 0.9, 40) * size
    other = rows.copy()
    if kind == "last bit":
        other[7] = np.nextafter(other[7], np.inf)
    elif kind == "tiny against huge":
        rows[7], other[7] = size, size * 2.0**60
    else:
        rows[7], other[7] = 0.0, 5e-324
    sums, vectors = [], []
    for table in (rows, other):
        study = dpm.PrivateData(table, bounds=(0.0, size), budget=dpm.Budget(1.0, 1e-6))
        box = study.box([study.coordinate("x1")])
        design = LatticeDesign(("x1",), *box, np.full(1, size / 4), 2, 0.5, 0.5, 3.0)
        plan = study.plan(design, epsilon=1.0, delta=1e-6)
        sums.append(study._lattice_sum(plan, [study.coordinate("x1")]))
        vectors.append(release(study, size / 4))
    assert np.array_equal(sums[0], sums[1])
    for vector in vectors:
        steps = vector / plan.step
        assert np.array_equal(steps, np.rint(steps))
        assert math.frexp(plan.step)[0] == 0.5


def test_the_lowest_digits_are_uniform_whatever_the_rows() -> None:
    """The released integers modulo 256 are uniform, for a table of one value and for its neighbour."""
    for rows in (np.zeros(50), np.r_[np.zeros(49), 1.0], np.full(50, 1 / 3)):
        study = dpm.PrivateData(rows, bounds=(0.0, 1.0), budget=dpm.Budget(1.0, 1e-6))
        box = study.box([study.coordinate("x1")])
        design = LatticeDesign(("x1",), *box, np.full(1, 0.25), 2, 0.5, 0.5, 3.0)
        plan = study.plan(design, epsilon=1.0, delta=1e-6)
        exact = study._lattice_sum(plan, [study.coordinate("x1")])
        drawn = np.array([surface_release.add_noise(plan, exact, None) for _ in range(700)])
        low = np.rint(drawn / plan.step).astype(np.int64).ravel() % 16
        counts = np.bincount(low, minlength=16)
        assert stats.chisquare(counts).pvalue > 1e-6


def test_weights_of_quartiles_are_whole() -> None:
    """A fraction of a vote is rounded down to whole multiples: sums and utilities are exact."""
    assert WEIGHT_BITS >= 16
    assert noise.LARGEST_SCALE <= 2.0**58
