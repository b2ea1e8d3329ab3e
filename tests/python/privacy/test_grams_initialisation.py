"""Private starts: exact draws, their probabilities on neighbours, suppression and minibatches."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from pydpmode import errors
from pydpmode.privacy import grams_initialisation as dap
from pydpmode.privacy.grams_initialisation import StartCandidates, draw_starts, exponential_draw


class Seeded:
    """Stands in for the module `secrets`, so that the exact sampler can be tested reproducibly."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def randbelow(self, limit: int) -> int:
        return self.random.randrange(limit)

    def SystemRandom(self) -> random.Random:
        return self.random


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dap, "secrets", Seeded(1))


def probabilities(counts: np.ndarray, epsilon: float) -> np.ndarray:
    weights = np.exp(0.5 * epsilon * (counts - counts.max()))
    return weights / weights.sum()


def agrees(observed: np.ndarray, expected: np.ndarray) -> bool:
    return stats.chisquare(observed, expected * observed.sum()).pvalue > 1e-3


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(4)])
def test_exact_coins(exponent: Fraction) -> None:
    heads = sum(dap._bernoulli_exp(exponent.numerator, exponent.denominator) for _ in range(20_000))
    p = math.exp(-exponent)
    assert abs(heads - 20_000 * p) <= 4 * math.sqrt(20_000 * p * (1 - p)) + 1e-9


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.7])
def test_draws_have_the_exact_probabilities(epsilon: float) -> None:
    counts = np.array([0, 3, 3, 7, 10, 2])
    drawn = np.bincount([exponential_draw(counts, epsilon) for _ in range(20_000)], minlength=6)
    assert agrees(drawn, probabilities(counts, epsilon))


def test_simulated_draws_have_the_same_probabilities() -> None:
    counts, generator = np.array([0, 3, 3, 7, 10, 2]), np.random.default_rng(1)
    drawn = np.bincount([exponential_draw(counts, 0.3, generator) for _ in range(20_000)], minlength=6)
    assert agrees(drawn, probabilities(counts, 0.3))


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("epsilon", [0.4, 1.0])
def test_draw_frequencies_on_neighbours_keep_their_epsilon(epsilon: float) -> None:
    """The worst neighbours of a count vector: one candidate loses the record, another gains it."""
    one, two = np.array([5, 5, 5]), np.array([6, 4, 5])
    draws = 40_000
    first, second = (
        np.bincount([exponential_draw(c, epsilon) for _ in range(draws)], minlength=3) / draws
        for c in (one, two)
    )
    ratios = np.log(first / second)
    noise = 4 * np.sqrt((1 - first) / (first * draws) + (1 - second) / (second * draws))
    assert np.all(np.abs(ratios) <= epsilon + noise)
    # Bounded range: the log-ratios lie in an interval of length epsilon, and here they fill it.
    assert ratios.max() - ratios.min() == pytest.approx(epsilon, abs=2 * noise.max())


def test_exact_probabilities_on_all_small_neighbours_keep_their_epsilon() -> None:
    epsilon, worst, widest = 0.7, 0.0, 0.0
    for base in itertools.product(range(3), repeat=3):
        for change in itertools.product((-1, 0, 1), repeat=3):
            neighbour = np.array(base) + change
            if neighbour.min() < 0:
                continue
            ratio = np.log(probabilities(np.array(base), epsilon) / probabilities(neighbour, epsilon))
            worst = max(worst, float(np.abs(ratio).max()))
            widest = max(widest, float(ratio.max() - ratio.min()))
    assert 0.75 * epsilon < worst <= epsilon * (1 + 1e-12)
    assert widest == pytest.approx(epsilon)


def neighbours_of(points: np.ndarray, rows: np.ndarray, radius: float) -> np.ndarray:
    distance = np.linalg.norm(points[:, None, :] - rows.T[None], axis=2)
    return np.count_nonzero(distance <= radius, axis=1)


@pytest.mark.parametrize("size", [(7.3,), (5.0, 3.2), (2.2, 4.1, 3.0)], ids=lambda s: f"d={len(s)}")
def test_grid_counts_are_brute_force_counts(size: tuple[float, ...]) -> None:
    box = np.array(size)
    grid = StartCandidates.grid(box, 1.0)
    generator = np.random.default_rng(len(size))
    rows = generator.uniform(0, 1, size=(len(size), 400)) * box[:, None]
    rows[:, :5] = 0.0
    np.testing.assert_array_equal(grid.counts(rows), neighbours_of(grid.points, rows, 1.0))
    assert np.all((grid.points >= 0) & (grid.points <= box))
    # Every point of the box is within half a spacing of a node in each coordinate, or of the box's rim.
    assert np.all(np.diff(np.unique(grid.points[:, 0])) == pytest.approx(1.0))


def test_given_candidates_count_the_same_way() -> None:
    generator = np.random.default_rng(2)
    points, rows = generator.normal(size=(30, 2)), generator.normal(size=(2, 500))
    given = StartCandidates.given(points, 0.7)
    np.testing.assert_array_equal(given.counts(rows), neighbours_of(points, rows, 0.7))
    weights = (generator.random(500) < 0.6).astype(float)
    np.testing.assert_array_equal(
        given.counts(rows, weights), neighbours_of(points, rows[:, weights > 0], 0.7)
    )


@pytest.mark.parametrize("kind", ["grid", "given"])
def test_one_record_changes_every_count_by_at_most_one(kind: str) -> None:
    generator = np.random.default_rng(3)
    box = np.array([6.0, 5.0])
    made = StartCandidates.grid(box, 1.0)
    candidates = made if kind == "grid" else StartCandidates.given(made.points, 1.0)
    rows = generator.uniform(0, 1, size=(2, 60)) * box[:, None]
    before = candidates.counts(rows)
    for _ in range(200):
        other = rows.copy()
        # On nodes and half-way between them too, where a distance is exactly the radius.
        place = made.points[generator.integers(made.count)] + generator.choice([0.0, 0.5, 1.0], size=2)
        other[:, generator.integers(60)] = np.clip(place, 0, box)
        assert np.abs(candidates.counts(other) - before).max() <= 1


def test_drawn_starts_keep_apart_until_the_pool_is_empty() -> None:
    grid = StartCandidates.grid(np.array([9.0, 9.0]), 1.0)
    counts = np.arange(grid.count)
    generator = np.random.default_rng(4)
    drawn = draw_starts(grid, counts, number=200, epsilon_draw=0.1, suppression=2.5, generator=generator)
    assert drawn.shape == (200,)
    places = grid.points[drawn]
    pool = np.ones(grid.count, dtype=bool)
    refills = 0
    for number, place in zip(drawn, places, strict=True):
        if not pool.any():
            pool[:], refills = True, refills + 1
        assert pool[number]
        pool &= np.linalg.norm(grid.points - place, axis=1) > 2.5
    assert refills > 3


def test_a_pool_is_refilled_when_one_draw_empties_it() -> None:
    grid = StartCandidates.grid(np.array([1.0]), 1.0)
    drawn = draw_starts(
        grid, np.zeros(grid.count, dtype=np.int64), number=5, epsilon_draw=0.1, suppression=100.0
    )
    assert drawn.shape == (5,)


@pytest.mark.usefixtures("seeded")
def test_minibatches_are_uniform_subsets() -> None:
    drawn = np.array([dap.draw_batch(6, 2) for _ in range(6000)])
    assert np.all(drawn.sum(axis=1) == 2)
    pairs = drawn @ (2 ** np.arange(6))
    _, counts = np.unique(pairs, return_counts=True)
    assert counts.size == 15
    assert stats.chisquare(counts).pvalue > 1e-3
    assert dap.draw_batch(6, 2, np.random.default_rng(0)).sum() == 2


def test_too_many_candidates_are_refused() -> None:
    with pytest.raises(errors.InvalidArgument, match="give public candidates"):
        StartCandidates.grid(np.full(5, 20.0), 1.0)
    with pytest.raises(errors.InvalidArgument, match="at most 200,000"):
        StartCandidates.given(np.zeros((200_001, 1)), 1.0)
