"""Attacks on the sensitivity of DP-GRAMS: no pair of neighbours moves a round by more than its bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.optimize import minimize

from pydpmode.numerics.correlated_noise import Whitening, roughness_integrals, shift_factors
from pydpmode.numerics.score_kernels import ScoreKernel
from pydpmode.privacy import grams
from pydpmode.privacy.bounds import ClippedBlock
from pydpmode.privacy.grams_calibration import score_sensitivity
from pydpmode.privacy.grams_options import GramsOptions
from pydpmode.privacy.grams_plan import GramsPlan, plan_grams

SHARE = 0.2


def shift(kernel: ScoreKernel, points: np.ndarray, one: np.ndarray, two: np.ndarray | None) -> np.ndarray:
    """How replacing record `one` by `two` (None: a missing one) moves the sums at `points`: (1 + d, k)."""
    moved = kernel.sums(points, one[:, None])
    return moved if two is None else moved - kernel.sums(points, two[:, None])


def scaled_norm(kernel: ScoreKernel, points: np.ndarray, one: np.ndarray, two: np.ndarray | None) -> float:
    """The shift in the covariance's own norm, values and gradients scaled as in a release."""
    bounds = kernel.shift_bounds(True)
    white = Whitening.correlated(points).forward
    moved = shift(kernel, points, one, two) @ white.T
    value, slope = float(np.sum(moved[0] ** 2)), float(np.sum(moved[1:] ** 2))
    return SHARE * value / bounds[0] ** 2 + (1 - SHARE) * slope / bounds[1] ** 2


@pytest.mark.parametrize(
    ("name", "d", "count"),
    [("gaussian", 1, 1), ("gaussian", 1, 4), ("gaussian", 2, 2), ("gaussian", 2, 9), ("gaussian4", 2, 5)],
)
def test_no_search_beats_the_bound_in_the_covariances_norm(name: str, d: int, count: int) -> None:
    """Random starts, then hill climbing over point sets and pairs of records together."""
    kernel = ScoreKernel(name, d)
    generator = np.random.default_rng(count + 10 * d)

    def unpack(v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return v[: count * d].reshape(count, d), v[count * d : (count + 1) * d], v[(count + 1) * d :]

    def score(v: np.ndarray) -> float:
        return -scaled_norm(kernel, *unpack(v))

    trials = generator.normal(size=(400, (count + 2) * d)) * generator.choice([0.3, 1.0, 3.0], size=(400, 1))
    values = np.array([score(v) for v in trials])
    best = values.min()
    for v in trials[np.argsort(values)[:2]]:
        best = min(best, minimize(score, v, method="Nelder-Mead", options={"maxfev": 1200}).fun)
    assert -best <= 1
    # The search is a real one: with several points it comes close to the bound.
    assert -best > {1: 0.15, 2: 0.15, 4: 0.4, 5: 0.25, 9: 0.3}[count]


@pytest.mark.parametrize(("d", "step", "reach"), [(1, 0.1, 5.0), (2, 0.4, 2.8)])
def test_dense_points_nearly_reach_both_bounds(d: int, step: float, reach: float) -> None:
    kernel = ScoreKernel("gaussian", d)
    axes = [np.arange(-reach, reach + step, step)] * d
    points = np.stack([m.ravel() for m in np.meshgrid(*axes)], axis=1)
    white = Whitening.correlated(points).forward
    bounds = kernel.shift_bounds(True)
    value, slope = [], []
    for apart in np.linspace(0.5, 6, 23):
        ends = np.zeros((2, d))
        ends[:, 0] = apart / 2, -apart / 2
        moved = shift(kernel, points, *ends) @ white.T
        value.append(float(np.sum(moved[0] ** 2)) / bounds[0] ** 2)
        slope.append(float(np.sum(moved[1:] ** 2)) / bounds[1] ** 2)
    assert (0.95 if d == 1 else 0.8) < max(value) <= 1
    assert (0.9 if d == 1 else 0.55) < max(slope) <= 1


def test_a_missing_record_moves_less_than_a_replaced_one() -> None:
    kernel = ScoreKernel("gaussian", 2)
    generator = np.random.default_rng(3)
    for _ in range(200):
        points = generator.normal(size=(6, 2)) * 2
        assert scaled_norm(kernel, points, generator.normal(size=2), None) < 0.55


def counterexample(d: int, m: int) -> tuple[float, float]:
    """Squared joint shift of clipped scores over the paper's bound, and of (p, grad p) over ours."""
    kernel = ScoreKernel("gaussian", d)
    rows = np.zeros((2, d, m))
    rows[0, 0, -1], rows[1, 0, -1] = 1.5, -1.5
    points = np.zeros((2, d))
    points[:, 0] = 1.5 - 0.632 / m, 1.5 + 1.368 / m
    floor = (2 * math.pi) ** (-d / 2) * math.exp(-(1.5**2) / 2)
    clip = 1.5 * floor
    means = [kernel.sums(points, r) / m for r in rows]
    scores = [grams.stabilised_score(s[0], s[1:].T, clip, floor) for s in means]
    covariance = np.exp(-np.abs(points[:, None, 0] - points[None, :, 0]))
    moved = scores[0] - scores[1]
    i0, i1 = roughness_integrals(d)
    paper = 2 * math.sqrt(2) * (math.sqrt(i1) / floor + clip * math.sqrt(i0) / floor**2) / m
    theirs = float(np.sum(moved * np.linalg.solve(covariance, moved))) / paper**2
    c0, c1 = shift_factors(d)
    linear = means[0] - means[1]
    norms = np.einsum("ik,ik->i", linear, np.linalg.solve(covariance, linear.T).T)
    ours = max(norms[0] / (c0**2 * i0), norms[1:].sum() / (c1**2 * i1)) * m**2
    return theirs, float(ours)


@pytest.mark.parametrize(("d", "ratio"), [(1, 8.58), (2, 5.32)])
def test_the_papers_joint_bound_is_false_and_ours_holds(d: int, ratio: float) -> None:
    theirs, ours = counterexample(d, 1000)
    assert theirs == pytest.approx(ratio, abs=0.01)
    assert ours < 1
    # No constant repairs it: the ratio grows with m.
    assert counterexample(d, 10_000)[0] > 9 * theirs


# -- the code itself: integer sums of neighbours -------------------------------------------------------


def make_plan(options: GramsOptions, d: int, n: int, block: int = 2**17) -> GramsPlan:
    return plan_grams(
        options,
        columns=tuple(f"x{i}" for i in range(d)),
        lower=np.full(d, -4.0),
        upper=np.full(d, 4.0),
        bandwidth=np.full(d, 0.8),
        records=n,
        block=block,
        epsilon=1.0,
        delta=1e-6,
    )


def passes(rows: np.ndarray, weights: np.ndarray | None, size: int) -> grams.RowPass:
    def each(one: Callable[[ClippedBlock, int], grams.R]) -> Iterator[grams.R]:
        for first in range(0, rows.shape[1], size):
            part = slice(first, first + size)
            yield one(ClippedBlock(rows[:, part], None if weights is None else weights[part]), first)

    return each


def lattice_sums(plan: GramsPlan, each: grams.RowPass, here: np.ndarray) -> np.ndarray:
    """What one round would release without its noise, in lattice steps of the white vector."""
    k = here.shape[0]
    none = np.zeros(plan.length, dtype=np.int64)
    density, gradient = grams._noisy_statistics(plan, each, here, None, none)
    white = Whitening.correlated(here) if plan.rounds.correlated else Whitening.independent(k)
    scale = np.array([plan.ascent.scales[0], *[plan.ascent.scales[1]] * here.shape[1]])[:, None]
    stacked = np.concatenate([density[None], gradient.T]) * plan.rounds.batch
    return np.rint(scale * (stacked @ white.forward.T) / plan.ascent.noise.lattice)


@pytest.mark.parametrize(
    "options",
    [
        GramsOptions(k=7),
        GramsOptions(k=7, noise="independent"),
        GramsOptions(k=1),
        GramsOptions(k=5, kernel="gaussian4"),
        GramsOptions(k=3, kernel="legendre4", noise="independent"),
    ],
    ids=lambda o: f"{o.kernel}-{o.noise}-{o.k}",
)
@pytest.mark.parametrize("d", [1, 2])
def test_neighbours_move_a_round_by_no_more_than_its_sensitivity(options: GramsOptions, d: int) -> None:
    generator = np.random.default_rng(d)
    n = 90
    plan = make_plan(options, d, n)
    allowed = plan.sensitivity.total / plan.ascent.noise.lattice
    most = 0.0
    for trial in range(40):
        rows = generator.uniform(-4, 4, size=(d, n)) * (trial % 3 > 0)
        other, weights = rows.copy(), np.ones(n)
        place = generator.integers(n)
        here = generator.normal(size=(options.k, d)) * generator.choice([0.0, 0.2, 1.0, 3.0]) + plan.size / 2
        near = here[0] * 0.8 - 4
        rows[:, place] = near + 0.8 * generator.normal(size=d)
        other[:, place] = near - 0.8 * generator.normal(size=d)
        if trial % 4 == 3:
            weights[place] = 0.0
        one = lattice_sums(plan, passes(rows, None, 40), here)
        two = lattice_sums(plan, passes(other, weights, 40), here)
        most = max(most, float(np.linalg.norm(one - two)) / allowed)
    assert 0.1 < most <= 1


@pytest.mark.parametrize("name", ["gaussian", "legendre4"])
def test_one_score_moves_by_no_more_than_the_published_bound(name: str) -> None:
    kernel = ScoreKernel(name, 2)
    generator = np.random.default_rng(5)
    most = 0.0
    for _ in range(4000):
        m = int(generator.integers(1, 6))
        rows = generator.normal(size=(2, m)) * generator.choice([0.0, 0.5, 1.5])
        other = rows.copy()
        rows[:, 0], other[:, 0] = generator.normal(size=2), generator.normal(size=2)
        floor = kernel.supremum * generator.uniform(0.01, 0.5)
        clip = kernel.gradient_supremum * generator.uniform(0.05, 1)
        point = generator.normal(size=(1, 2)) * 0.7
        means = [kernel.sums(point, r) / m for r in (rows, other)]
        one, two = (grams.stabilised_score(s[0], s[1:].T, clip, floor) for s in means)
        bound = score_sensitivity(kernel, clip, floor) / m
        most = max(most, float(np.linalg.norm(one - two)) / bound)
    assert 0.2 < most <= 1
