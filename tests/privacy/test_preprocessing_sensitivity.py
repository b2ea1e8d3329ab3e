"""Attacks on the sensitivity of the moments and quantiles: no neighbours move a sum by more than its bound.

What is attacked is the sum that a release adds its noise to, as the code computes it: the statistic's own
`block`, on whole tables of neighbours, with weights, persons and missing values.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import pydpmode as dpm
from pydpmode import errors
from pydpmode.numerics.moments import Ball
from pydpmode.privacy.accounting import Charge, compose_delta
from pydpmode.privacy.bounds import ClippedBlock
from pydpmode.privacy.gaussian import gaussian_mu
from pydpmode.privacy.preprocessing import (
    MomentStatistic,
    moment_margin,
    plan_moments,
    plan_quantile_draws,
    spread_weights,
)
from pydpmode.privacy.quantiles import CELLS
from pydpmode.privacy.shares import joined, split_by_noise

BOX = [(-3.0, 3.0)] * 3
BALL = Ball(np.array([0.5, 0.0, -0.5]), np.array([1.0, 0.5, 2.0]), 1.2)


def study(rows: Any, adjacency: Any = "replace", **options: Any) -> dpm.PrivateData:
    bounds = {f"x{j + 1}": BOX[j] for j in range(3)}
    table = pd.DataFrame(rows, columns=[f"x{j + 1}" for j in range(3)]) if isinstance(rows, list) else rows
    return dpm.PrivateData(table, bounds=bounds, budget=dpm.Budget(1, 1e-6), adjacency=adjacency, **options)


def statistic(adjacency: Any, order: Any, ball: Ball = BALL) -> MomentStatistic:
    data = study([[0.0, 0.0, 0.0]], adjacency)
    coordinates = [data.coordinate(c) for c in data.columns]
    return plan_moments(data, coordinates, ball, order, epsilon=0.5, delta=1e-6)


def exact_sum(data: dpm.PrivateData, order: Any) -> np.ndarray:
    """The sum before noise, through the real path: sources, clipping, votes, weights, blocks."""
    coordinates = [data.coordinate(c) for c in data.columns]
    plan = plan_moments(data, coordinates, BALL, order, epsilon=0.5, delta=1e-6)
    parts = list(data._each_block(coordinates, plan.block))
    return np.sum(parts, axis=0) if parts else np.zeros(1)


@pytest.mark.parametrize(("adjacency", "order"), list(itertools.product(("replace", "add_remove"), (1, 2))))
def test_no_search_beats_the_bound_and_it_is_nearly_reached(adjacency: str, order: int) -> None:
    """Random starts, then hill climbing over a pair of rows and their weights together."""
    plan = statistic(adjacency, order)
    generator = np.random.default_rng(order)

    def shift(v: np.ndarray) -> float:
        rows, weights = np.clip(v[:6].reshape(3, 2), -3, 3), np.clip(v[6:], 0, 1)
        if adjacency == "add_remove":
            weights = weights * [1, 0]
        one, two = (plan.block(ClippedBlock(rows[:, [k]], weights[[k]]), 0) for k in (0, 1))
        return -float(np.linalg.norm(one - two))

    trials = np.column_stack([generator.uniform(-3, 3, (300, 6)), generator.choice([0, 0.5, 1], (300, 2))])
    values = np.array([shift(v) for v in trials])
    best = values.min()
    for v in trials[np.argsort(values)[:3]]:
        best = min(best, minimize(shift, v, method="Nelder-Mead", options={"maxfev": 1500}).fun)
    assert -best <= plan.sensitivity.exact * (1 + 1e-12)
    assert -best > 0.995 * plan.sensitivity.exact


@pytest.mark.parametrize("order", [1, 2])
def test_a_missing_row_costs_exactly_as_much_as_a_replaced_one(order: Any) -> None:
    present = exact_sum(study([[3.0, 3.0, 3.0], [0.0, 0.0, 0.0]]), order)
    missing = exact_sum(study([[math.nan, 3.0, 3.0], [0.0, 0.0, 0.0]]), order)
    bound = statistic("replace", order).sensitivity.exact
    np.testing.assert_allclose(np.linalg.norm(present - missing), bound, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_values_no_row_should_have_do_no_more(order: Any) -> None:
    wild = [math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, math.nan]
    bound = statistic("replace", order).sensitivity.exact
    sums = [exact_sum(study([[a, b, 1.0], [0.0, 0.0, 0.0]]), order) for a in wild for b in wild]
    assert np.isfinite(sums).all()
    furthest = max(np.linalg.norm(one - two) for one, two in itertools.combinations(sums, 2))
    assert 0.5 * bound < furthest <= bound * (1 + 1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_a_person_with_many_rows_has_one_vote(order: Any) -> None:
    generator = np.random.default_rng(7)
    bound = statistic("replace", order).sensitivity.exact
    names = ["x1", "x2", "x3"]
    others = pd.DataFrame(generator.uniform(-3, 3, (5, 3)), columns=names).assign(person=range(1, 6))
    furthest = 0.0
    for _ in range(60):
        sums = []
        for _ in range(2):
            own = pd.DataFrame(generator.choice([-3.0, 3.0, math.nan, 0.5], (8, 3), p=[0.4, 0.4, 0.1, 0.1]))
            own = own.set_axis(names, axis=1).assign(person=0)
            table = pd.concat([own, others], ignore_index=True)
            sums.append(exact_sum(study(table, unit="person", person="person"), order))
        furthest = max(furthest, float(np.linalg.norm(sums[0] - sums[1])))
    assert 0.2 * bound < furthest <= bound * (1 + 1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_weights_never_do_more_than_whole_rows(order: Any) -> None:
    bound = statistic("replace", order).sensitivity.exact
    names = ["x1", "x2", "x3", "w"]
    sums = [
        exact_sum(
            study(
                pd.DataFrame([[*row, w], [0.0, 0.0, 0.0, 1.0]], columns=names), weights="w", max_weight=2.0
            ),
            order,
        )
        for row in ((3.0, -3.0, 3.0), (-3.0, 3.0, -3.0), (3.0, 3.0, 3.0))
        for w in (0.0, 0.7, 2.0, 1e300, -5.0, math.nan, math.inf)
    ]
    furthest = max(np.linalg.norm(one - two) for one, two in itertools.combinations(sums, 2))
    assert 0.9 * bound < furthest <= bound * (1 + 1e-12)


def test_the_margin_covers_the_arithmetic_of_large_sums() -> None:
    """The same rows in another order, in single sums and in blocks, against exact sums."""
    generator = np.random.default_rng(3)
    rows = generator.uniform(-3, 3, (3, 20_000))
    plan = statistic("replace", 2)
    margin = moment_margin(plan.sensitivity.exact, 20_000, 3)
    unit = BALL.unit(rows)
    pairs = [(i, j) for i in range(3) for j in range(i, 3)]
    exact = [math.fsum(unit[i] * unit[j]) * (1.0 if i == j else math.sqrt(2.0)) for i, j in pairs] + [
        float(rows.shape[1])
    ]
    for order in (np.arange(20_000), generator.permutation(20_000)):
        found = plan.block(ClippedBlock(rows[:, order].copy(), None), 0)
        assert np.linalg.norm(found - exact) <= margin / 2

    assert np.sqrt(np.einsum("ij,ij->j", unit, unit)).max() <= 1 + 11 * 2.0**-53


@pytest.mark.parametrize("with_ball", [False, True])
def test_a_row_moves_a_quantiles_utility_by_at_most_its_denominator(with_ball: bool) -> None:
    data = study([[0.0, 0.0, 0.0]])
    coordinates = [data.coordinate(c) for c in data.columns]
    ball = BALL if with_ball else None
    plan = plan_quantile_draws(data, coordinates, epsilon=1, delta=1e-6, probabilities=((1, 4),), ball=ball)
    generator = np.random.default_rng(1)
    largest = 0.0
    for _ in range(40):
        both = []
        common = generator.uniform(-3, 3, (3, 6))
        for _ in range(2):
            own = generator.uniform(-3, 3, (3, 1))
            weights = np.append(np.ones(6), generator.choice([0.0, 0.5, 1.0]))
            counts = plan.block(ClippedBlock(np.hstack([common, own]), weights), 0)
            spread = spread_weights(counts)
            assert (spread.sum(axis=1) == counts.sum(axis=1)).all()
            below = np.cumsum(spread, axis=1)
            both.append(-np.abs(4 * below - 1 * below[:, -1:]) / 2**20)
        largest = max(largest, float(np.abs(both[0] - both[1]).max()))
    assert 2 < largest <= 4 + 1e-9
    assert plan.plan.draws == (1 if with_ball else 3)


def test_spread_weights_stay_whole_and_near() -> None:
    counts = np.zeros((2, CELLS), dtype=np.int64)
    counts[0, [0, 5, CELLS - 1]] = 2**20
    counts[1, 1000] = 3 * 2**20
    spread = spread_weights(counts)
    assert spread.sum(axis=1).tolist() == [3 * 2**20, 3 * 2**20]
    assert spread[1, 1000 - 32 : 1000 + 32].tolist() == [3 * 2**14] * 64
    assert spread[0, 100:-100].sum() == 0
    assert (spread >= 0).all()


def test_a_distance_depends_on_its_own_row_alone_to_the_last_bit() -> None:
    """A row at an edge of a cell must not change cells because another row comes or goes."""
    generator = np.random.default_rng(11)
    rows = generator.normal(size=(7, 400))
    ball = Ball(np.zeros(7), np.ones(7), 1.0)
    together = ball.distances(rows)
    for k in range(rows.shape[1]):
        assert ball.distances(rows[:, k : k + 1])[0] == together[k]
        assert ball.distances(rows[:, k : k + 3])[0] == together[k]


def test_a_ball_so_small_that_squares_vanish_is_refused() -> None:
    """Where squares underflow a point outside seems inside, and would count more than one row may."""
    with pytest.raises(errors.InvalidArgument, match="at least 1e-100"):
        Ball(np.zeros(2), np.ones(2), 1e-180)
    data = study([[0.0, 0.0, 0.0]])
    with pytest.raises(errors.InvalidArgument, match="at least 1e-100"):
        dpm.PrivatePCA(data, n_components=1, radius=1e-180).fit(epsilon=0.5)
    assert data.ledger.entries() == ()
    smallest = Ball(np.zeros(2), np.ones(2), 1e-100)
    sizes = 10.0 ** np.arange(-300, 101, 4)
    lengths = np.linalg.norm(smallest.unit(np.array([sizes, sizes])), axis=0)
    assert lengths.max() <= 1 + 11 * 2.0**-53


def test_several_releases_cost_no_more_than_is_stated_of_them_together() -> None:
    """Also when the last one has a failure probability, as random features do."""
    delta = 1e-6
    parts = split_by_noise(dpm.Budget(1.0, delta), (0.1, 0.05, 0.35, 0.55))
    failures = (0.0, 0.0, 0.0, 1e-3 * delta)
    charges = [
        Charge(
            label="step",
            mechanism="surface",
            epsilon=part.epsilon,
            delta=delta,
            gaussian_mus=(gaussian_mu(part.epsilon, delta, extra_delta=failure),),
            extra_delta=failure,
        )
        for part, failure in zip(parts, failures, strict=True)
    ]
    together = joined(parts)
    assert compose_delta(charges, together.epsilon) <= together.delta
    assert 0.999 < together.epsilon <= 1.0


@pytest.mark.parametrize("value", [0.0, 1.5, -1.5])
def test_an_expression_whose_range_overflows_is_refused_whatever_the_rows_hold(value: float) -> None:
    """Such a range has an infinite width: rows at its end would have no cell, and end the release."""
    data = dpm.PrivateData(
        np.full((5, 1), value), columns=["x"], bounds={"x": (-1.5, 1.5)}, budget=dpm.Budget(1, 1e-6)
    )
    with pytest.raises(errors.InvalidBounds, match="overflows"):
        data.expression("x * 1e308")
    assert data.ledger.entries() == ()
