"""A black-box audit: an attacker who knows everything but one unit, against 10,000 real releases a side.

For worst neighbours the attacker projects each release on the line that joins the two exact sums (the
likelihood ratio of Gaussian noise depends on nothing else), picks the best threshold on one half of the
releases and counts both kinds of error on the other. Clopper-Pearson bounds on the two rates give a lower
bound on epsilon at the stated delta. It must stay below the stated epsilon, and above it when the noise
is halved: an audit that cannot find a violation proves nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pydpmode as dpm
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.privacy import surface_release
from pydpmode.privacy.noise import discrete_gaussian
from pydpmode.privacy.surface_release import ReleasePlan, add_noise

# A large delta puts the worst threshold where 10,000 releases can see it.
EPSILON, DELTA = 1.0, 0.05
RELEASES = 10_000
# Chance of a false alarm, by each of the two bounds of a direction.
ALPHA = 1e-5
SIDE = 3.0


def frame(*values: tuple[float, ...], person: list[int] | None = None) -> pd.DataFrame:
    table = pd.DataFrame([list(v) for v in values], columns=[f"x{j + 1}" for j in range(len(values[0]))])
    return table if person is None else table.assign(person=person)


def lattice(columns: tuple[str, ...], cut: float, zero_weight: float) -> LatticeDesign:
    """A box of three bandwidths on a torus of six: the opposite end is as far as can be."""
    d = len(columns)
    return LatticeDesign(columns, np.zeros(d), np.full(d, SIDE), np.ones(d), 2, zero_weight, 0.5, cut)


CASES: dict[str, tuple[pd.DataFrame, pd.DataFrame, Design, dict[str, Any]]] = {
    "replace, one row": (frame((0.0,)), frame((SIDE,)), lattice(("x1",), 3.5, 0.5), {}),
    "replace, a present row by a missing one": (
        frame((1.0,), (2.0,)),
        frame((1.0,), (math.nan,)),
        lattice(("x1",), 3.0, 0.9),
        {},
    ),
    "replace, two columns": (
        frame((1.0, 1.0), (0.0, 0.0), (2.0, 2.0)),
        frame((1.0, 1.0), (3.0, 0.0), (2.0, 2.0)),
        lattice(("x1", "x2"), 1.6, 0.5),
        {},
    ),
    "add or remove, at the front": (
        frame((0.0,)),
        frame((1.5,), (0.0,)),
        lattice(("x1",), 3.0, 0.1),
        {"adjacency": "add_remove", "n_max": 2},
    ),
    "replace, a person of one row by one of three": (
        frame((0.0,), (1.0,), (2.0,), person=[7, 8, 8]),
        frame((SIDE,), (1.0,), (SIDE,), (2.0,), (SIDE,), person=[9, 8, 9, 8, 9]),
        lattice(("x1",), 3.5, 0.5),
        {"unit": "person", "person": "person"},
    ),
}
FOUR = frame((0.0,) * 4), frame((SIDE,) * 4)
FOUR_COLUMNS = tuple(FOUR[0].columns)


def exact_sums(
    tables: tuple[pd.DataFrame, pd.DataFrame], design: Design, options: dict[str, Any]
) -> tuple[ReleasePlan, list[np.ndarray]]:
    """Return the public plan, the same for both neighbours, and the two sums before noise."""
    sums, plans = [], []
    for table in tables:
        study = dpm.PrivateData(
            table,
            bounds=dict.fromkeys(design.columns, (0.0, SIDE)),
            budget=dpm.Budget(EPSILON, DELTA),
            **options,
        )
        plans.append(study.plan(design, epsilon=EPSILON, delta=DELTA))
        sums.append(study._lattice_sum(plans[-1], [study.coordinate(c) for c in design.columns]))
    assert plans[0].noise_scale == plans[1].noise_scale
    assert plans[0].step == plans[1].step
    return plans[0], sums


def shift(plan: ReleasePlan, sums: list[np.ndarray]) -> float:
    return float(np.linalg.norm((sums[1] - sums[0]).astype(float)) * plan.step)


def scores(
    plan: ReleasePlan, sums: list[np.ndarray], release: Callable[[np.ndarray, int], np.ndarray]
) -> list[np.ndarray]:
    """Return the position of each release along the line between the sums, 0 and 1 at its ends."""
    start = sums[0] * plan.step
    line = (sums[1] - sums[0]) * plan.step
    line = line / (line @ line)
    return [
        np.array([(release(exact, side * RELEASES + i) - start) @ line for i in range(RELEASES)])
        for side, exact in enumerate(sums)
    ]


def epsilon_from_counts(hits: int, false: int, n: int) -> float:
    """Lower bound on epsilon: `P <= e^epsilon Q + delta` at the ends of the two confidence intervals."""
    p = stats.beta.ppf(ALPHA, hits, n - hits + 1) if hits else 0.0
    q = stats.beta.ppf(1 - ALPHA, false + 1, n - false)
    return math.log((p - DELTA) / q) if p > DELTA else -math.inf


def bound_beyond(threshold: float, p: np.ndarray, q: np.ndarray) -> float:
    hits, false = (int(np.count_nonzero(values > threshold)) for values in (p, q))
    return epsilon_from_counts(hits, false, len(p))


def audited_epsilon(at_zero: np.ndarray, at_one: np.ndarray) -> float:
    """Return the larger lower bound of the two directions, thresholds chosen on the first halves."""
    half = len(at_zero) // 2
    found = []
    for p, q in ((at_one, at_zero), (1 - at_zero, 1 - at_one)):
        grid = np.quantile(np.concatenate([p[:half], q[:half]]), np.linspace(0.3, 0.98, 60))
        tried = [bound_beyond(threshold, p[:half], q[:half]) for threshold in grid]
        found.append(bound_beyond(grid[int(np.argmax(tried))], p[half:], q[half:]))
    return max(found)


def in_bulk(plan: ReleasePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the real noise of all releases at once: a call has a fixed cost of a millisecond."""
    scale = plan.noise_scale / plan.step
    pool: Iterator[np.ndarray] = iter(
        discrete_gaussian(2 * RELEASES * plan.length, scale).reshape(-1, plan.length)
    )

    def dealt(length: int, wanted: float) -> np.ndarray:
        assert length == plan.length
        assert wanted == scale
        return next(pool)

    monkeypatch.setattr(surface_release, "discrete_gaussian", dealt)


def verdict(plan: ReleasePlan, sums: list[np.ndarray], monkeypatch: pytest.MonkeyPatch) -> float:
    in_bulk(plan, monkeypatch)
    return audited_epsilon(*scores(plan, sums, lambda exact, _: add_noise(plan, exact, None)))


@pytest.mark.parametrize("case", CASES)
def test_the_stated_epsilon_survives_real_releases(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, design, options = CASES[case]
    plan, sums = exact_sums((before, after), design, options)
    # The neighbours are as far apart as any can be, to a few per cent: else the audit has no teeth.
    assert 0.9 * plan.sensitivity.total < shift(plan, sums) <= plan.sensitivity.total
    found = verdict(plan, sums, monkeypatch)
    assert 0.25 * EPSILON < found <= EPSILON


def test_halved_noise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, design, options = CASES["replace, one row"]
    plan, sums = exact_sums((before, after), design, options)
    weak = dataclasses.replace(plan, noise_scale=plan.noise_scale / 2)
    assert verdict(weak, sums, monkeypatch) > 1.2 * EPSILON


@pytest.mark.parametrize(("share", "sound"), [(1.0, True), (0.5, False)])
def test_random_features(share: float, sound: bool) -> None:
    """Four columns: seeded noise, since 20 million exact draws would take minutes."""
    lower, upper = np.zeros(4), np.full(4, SIDE)
    design = RandomDesign(FOUR_COLUMNS, lower, upper, np.full(4, 0.5), 2, 0.5, 1024, 5)
    plan, sums = exact_sums(FOUR, design, {})
    assert 0.9 * plan.sensitivity.total < shift(plan, sums) <= plan.sensitivity.total
    used = dataclasses.replace(plan, noise_scale=plan.noise_scale * share)
    found = audited_epsilon(*scores(used, sums, lambda exact, i: add_noise(used, exact, i)))
    assert (found <= EPSILON) is sound
