"""The stopping rule: sound against a user who looks first and chooses then."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pydpmode.budget import Budget
from pydpmode.privacy.accounting import Charge, compose, gaussian_delta, gaussian_epsilon, gaussian_mu
from pydpmode.privacy.privacy_filter import fits, largest_epsilon, limits_from, spent_mu

BUDGET = Budget(1.0, 1e-6)


def gaussian(epsilon: float, delta: float = 1e-6, extra: float = 0.0) -> Charge:
    mu = gaussian_mu(epsilon, delta, extra_delta=extra)
    return Charge("a", "surface", epsilon, delta, gaussian_mus=(mu,), extra_delta=extra)


def draw(epsilon: float) -> Charge:
    return Charge("a", "draw", epsilon, 0.0, draws=((epsilon, 1),))


def curve(level: np.ndarray, mu: float) -> np.ndarray:
    """Return the Gaussian delta at any real level."""

    def at(t: float) -> float:
        return gaussian_delta(t, mu) if t >= 0 else 1 - math.exp(t) + math.exp(t) * gaussian_delta(-t, mu)

    return np.array([at(float(t)) for t in level])


def response(level: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the delta of randomised response at any real level."""
    p = 1 / (1 + math.exp(-epsilon))
    return np.maximum(0, p - np.exp(level) * (1 - p)) + np.maximum(0, 1 - p - np.exp(level) * p)


def delta_of_looking_first(mu: float, replies: list[object]) -> float:
    """Delta of a Gaussian `mu` followed by whichever reply is worst after its privacy loss."""
    loss = np.linspace(mu**2 / 2 - 9 * mu, mu**2 / 2 + 9 * mu, 2001)
    weight = np.exp(-((loss - mu**2 / 2) ** 2) / (2 * mu**2))
    worst = np.max([reply(BUDGET.epsilon - loss) for reply in replies], axis=0)  # type: ignore[operator]
    return float(np.sum(weight * worst) / np.sum(weight))


def largest_draw(history: list[Charge]) -> float:
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(history, draw(middle), BUDGET) else (low, middle)
    return low


class TestAdaptiveUser:
    @pytest.mark.parametrize("first", [0.3, 0.6, 0.9])
    def test_the_worst_choice_after_a_look_stays_within_delta(self, first: float) -> None:
        history = [gaussian(first)]
        limits = limits_from(history[0], BUDGET)
        assert limits is not None
        left = math.sqrt(limits.mu**2 - history[0].mu ** 2)
        pure, failure = largest_draw(history), limits.extra_delta
        replies = [
            lambda level: np.maximum(0.0, 1 - np.exp(level)),
            lambda level: curve(level, left) + failure,
            lambda level: response(level, pure) + failure,
        ]
        assert pure > 0.03
        assert delta_of_looking_first(history[0].mu, replies) <= BUDGET.delta

    def test_the_smaller_of_two_compositions_would_not(self) -> None:
        # After (0.9, 1e-6): the rest of the tight budget, or a draw that basic composition allows.
        mu = gaussian_mu(0.9, 1e-6)
        left = math.sqrt(gaussian_mu(1.0, 1e-6) ** 2 - mu**2)
        tight = delta_of_looking_first(mu, [lambda level: curve(level, left)])
        either = delta_of_looking_first(
            mu, [lambda level: curve(level, left), lambda level: response(level, 0.1)]
        )
        assert tight == pytest.approx(1e-6, rel=1e-3)
        assert either > 1.001e-6

    @settings(max_examples=40)
    @given(
        st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(-9, -5), st.floats(0, 0.02)), max_size=12),
        st.lists(st.floats(0.001, 0.5), max_size=4),
    )
    def test_whatever_is_accepted_stays_within_the_budget(
        self, releases: list[tuple[float, float, float]], draws: list[float]
    ) -> None:
        charges = [gaussian(e, 10.0**power, share * 10.0**power) for e, power, share in releases]
        wanted = [c for pair in zip(charges, [draw(e) for e in draws], strict=False) for c in pair] or charges
        history: list[Charge] = []
        for charge in wanted:
            if fits(history, charge, BUDGET):
                history.append(charge)
        assert compose(history, BUDGET.delta) <= BUDGET.epsilon * (1 + 1e-6)
        if history and limits_from(history[0], BUDGET) and any(c.gaussian_mus for c in history):
            extra = sum(c.extra_delta for c in history)
            assert gaussian_delta(BUDGET.epsilon, spent_mu(history)) + extra <= BUDGET.delta * (1 + 1e-6)


class TestExactBudget:
    @settings(max_examples=40)
    @given(
        st.floats(-4, 3).map(lambda power: 10.0**power),
        st.floats(-30, math.log10(0.5)).map(lambda power: 10.0**power),
        st.sampled_from([0.0, 1e-3, 0.1, 0.9]),
    )
    def test_one_release_of_the_whole_budget_fits_and_two_do_not(
        self, epsilon: float, delta: float, share: float
    ) -> None:
        budget = Budget(epsilon, delta)
        charge = gaussian(epsilon, delta, share * delta)
        assert fits([], charge, budget)
        assert not fits([charge], charge, budget)
        assert largest_epsilon([charge], budget, delta=delta) == 0.0

    @settings(max_examples=40)
    @given(st.floats(0.01, 5.0), st.floats(-9, -3), st.floats(0.05, 0.95))
    def test_what_is_left_fits_and_more_does_not(self, epsilon: float, power: float, share: float) -> None:
        budget = Budget(epsilon, 10.0**power)
        history = [gaussian(share * epsilon, budget.delta)]
        left = largest_epsilon(history, budget, delta=budget.delta)
        assert 0 < left < epsilon
        assert fits(history, gaussian(left, budget.delta), budget)
        assert not fits(history, gaussian(left * 1.001, budget.delta), budget)
        other = largest_epsilon(history, budget, delta=budget.delta / 100)
        assert fits(history, gaussian(other, budget.delta / 100), budget)

    def test_an_untouched_budget_is_all_left(self) -> None:
        assert largest_epsilon([], BUDGET, delta=1e-6) == 1.0
        assert largest_epsilon([], BUDGET, delta=1e-5) < 1.0
        assert largest_epsilon([], BUDGET, delta=1e-6, extra_delta=1e-6) == 0.0

    def test_many_small_releases_cost_their_square_root(self) -> None:
        history: list[Charge] = []
        while fits(history, gaussian(0.1), BUDGET):
            history.append(gaussian(0.1))
        assert len(history) == 73
        assert sum(c.epsilon for c in history) > 7

    def test_twenty_releases_with_random_features_fit_as_far_as_epsilon_goes(self) -> None:
        charge = gaussian(0.05, 1e-6, 1e-9)
        assert all(fits([charge] * done, charge, BUDGET) for done in range(20))


class TestDrawsAndStatedMechanisms:
    def test_draws_alone_add_up_exactly(self) -> None:
        assert fits([draw(0.5), draw(0.25)], draw(0.25), BUDGET)
        assert not fits([draw(0.5), draw(0.25)], draw(0.26), BUDGET)

    def test_a_large_first_draw_turns_to_sums(self) -> None:
        history = [draw(0.6)]
        assert limits_from(history[0], BUDGET) is None
        assert fits(history, gaussian(0.4), BUDGET)
        assert not fits(history, gaussian(0.41), BUDGET)
        assert not fits([*history, gaussian(0.2)], gaussian(0.1), BUDGET)
        assert largest_epsilon(history, BUDGET, delta=1e-6) == pytest.approx(0.4)
        assert largest_epsilon([*history, gaussian(0.2)], BUDGET, delta=1e-6) == 0.0

    def test_a_small_first_draw_keeps_tight_composition(self) -> None:
        history = [draw(0.05)]
        left = largest_epsilon(history, BUDGET, delta=1e-6)
        assert left > 0.95
        assert fits(history, gaussian(left), BUDGET)

    def test_mechanisms_known_by_their_statement_only(self) -> None:
        half = Charge.stated(label="a", mechanism="other", epsilon=0.5, delta=5e-7)
        assert fits([half], half, BUDGET)
        assert not fits([half, half], draw(0.001), BUDGET)

    def test_a_mixed_release_calibrated_as_a_whole(self) -> None:
        draws = ((0.01, 10),)
        rest = gaussian_mu(1.0, 1e-6) ** 2 - Charge("a", "m", 0.1, 0.0, draws=draws).equivalent_mu ** 2
        grams = Charge("a", "grams", 1.0, 1e-6, gaussian_mus=(math.sqrt(rest),), draws=draws)
        assert fits([], grams, BUDGET)
        assert gaussian_epsilon(1e-6, grams.mu) > 0.9
