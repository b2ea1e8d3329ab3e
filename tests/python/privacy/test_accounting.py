"""The Gaussian curve against exact values, and composition against independent code."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant, common, privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from pydpmode.errors import InvalidArgument, InvalidBudget
from pydpmode.privacy import accounting
from pydpmode.privacy.accounting import (
    Charge,
    combine_mu,
    compose,
    compose_delta,
    discrete_gaussian_correction,
    discrete_gaussian_slack,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    unit_noise_scale,
)

# (epsilon, mu, delta), from the two-term formula in 120 digits.
EXACT = [
    (0.0, 1e-06, 3.9894228040141604e-7),
    (0.0, 1.0, 0.38292492254802621),
    (0.0001, 1e-05, 7.4749339918537527e-30),
    (0.0001, 0.001, 0.00035095286201566588),
    (0.01, 0.002, 1.0745921569149032e-10),
    (0.5, 0.1, 6.8565824558387371e-9),
    (1.0, 0.2367, 9.996190577823362e-7),
    (1.0, 0.49999, 0.0068287322438978057),
    (1.0, 0.5, 0.0068295949831145754),
    (1.0, 0.50001, 0.0068304577902747288),
    (1.0, 3.0, 0.78760074136038453),
    (10.0, 1.5, 3.1991654350984822e-10),
    (100.0, 12.0, 0.0079946722986068856),
    (1000.0, 35.0, 6.5414576711822139e-29),
    (1000.0, 50.0, 0.99999968032650774),
    (3.0, 20.0, 1.0),
]

# (epsilon, mu, draws, delta): randomised responses and one Gaussian, in 120 digits.
EXACT_MIXTURES = [
    (0.4, 0.3, ((0.2, 3), (0.5, 1)), 0.14251030871561095),
    (2.0, 0.3, ((0.2, 3), (0.5, 1)), 1.8647490678738799e-5),
    (1e-12, 0.3, ((0.2, 3),), 0.18291639108633782),
    (0.5, 0.0, ((0.2, 3), (0.5, 1)), 0.092750769866337678),
    (3.0, 0.7, ((0.01, 10),), 5.8763588431197415e-6),
]

epsilons = st.floats(-4, 3).map(lambda power: 10.0**power)
deltas = st.floats(-30, math.log10(0.5)).map(lambda power: 10.0**power)
mus = st.floats(-8, 3).map(lambda power: 10.0**power)


def gaussian(epsilon: float, delta: float) -> Charge:
    return Charge("a", "surface", epsilon, delta, gaussian_mus=(gaussian_mu(epsilon, delta),))


def draws_only(epsilon: float, count: int, *, bounded_range: bool = False) -> Charge:
    draws = ((epsilon, count),)
    return Charge("a", "draws", epsilon * count, 0.0, draws=draws, bounded_range=bounded_range)


class TestGaussianCurve:
    @pytest.mark.parametrize(("epsilon", "mu", "exact"), EXACT)
    def test_exact_values_never_below(self, epsilon: float, mu: float, exact: float) -> None:
        got = gaussian_delta(epsilon, mu)
        assert exact * (1 - 2e-16) <= got <= exact * (1 + 2e-11)

    @given(epsilons, mus, st.floats(1e-6, 2))
    def test_monotone(self, epsilon: float, mu: float, step: float) -> None:
        here = gaussian_delta(epsilon, mu)
        assert 0 < here <= 1
        assert gaussian_delta(epsilon * (1 + step), mu) <= here
        assert gaussian_delta(epsilon, mu * (1 + step)) >= here

    @pytest.mark.parametrize("mu", [0.0, 5e-324, 1e-300, 1e-8, 1.0, 1e8, 1e149, 1e150, 1e300])
    @pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-9, 1.0, 1e9, 1e300])
    def test_extremes_stay_probabilities(self, epsilon: float, mu: float) -> None:
        assert 0 <= gaussian_delta(epsilon, mu) <= 1
        assert (gaussian_delta(epsilon, mu) == 0) is (mu == 0)

    @pytest.mark.parametrize("mu", [0.05, 0.3, 0.49, 0.51, 1.0, 3.0])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_agrees_with_dp_accounting(self, epsilon: float, mu: float) -> None:
        grid = privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-3)
        theirs = grid.get_delta_for_epsilon(epsilon)
        # Theirs is rounded up on a grid, and loses masses below 1e-20.
        assert gaussian_delta(epsilon, mu) == pytest.approx(theirs, rel=1e-3, abs=1e-13)

    def test_agrees_with_the_gaussian_event(self) -> None:
        accountant = PLDAccountant()
        accountant.compose(GaussianDpEvent(unit_noise_scale(1.0, 1e-6)), 4)
        assert accountant.get_epsilon(1e-6) == pytest.approx(
            gaussian_epsilon(1e-6, 2 * gaussian_mu(1.0, 1e-6)), rel=1e-4
        )


class TestCalibration:
    def test_known_value(self) -> None:
        assert unit_noise_scale(1.0, 1e-6) == pytest.approx(4.2247, abs=5e-5)

    @settings(max_examples=40)
    @given(epsilons, deltas)
    def test_noise_scale_is_safe_and_tight(self, epsilon: float, delta: float) -> None:
        scale = unit_noise_scale(epsilon, delta)
        assert gaussian_delta(epsilon, 1 / scale) <= delta
        assert gaussian_delta(epsilon, (1 + 1e-9) / scale) > delta

    @settings(max_examples=40)
    @given(epsilons, deltas)
    def test_epsilon_inverts_mu(self, epsilon: float, delta: float) -> None:
        back = gaussian_epsilon(delta, gaussian_mu(epsilon, delta))
        # At delta near 1/2 and a tiny epsilon, epsilon hardly matters: compare on its natural scale.
        assert back == pytest.approx(epsilon, rel=1e-9, abs=1e-10)

    @given(deltas, mus)
    def test_epsilon_is_safe(self, delta: float, mu: float) -> None:
        epsilon = gaussian_epsilon(delta, mu)
        assert gaussian_delta(epsilon, mu) <= delta
        assert epsilon == 0 or gaussian_delta(epsilon * (1 - 1e-6), mu) > delta * (1 - 1e-9)

    @settings(max_examples=40)
    @given(epsilons, deltas, st.floats(0.0, 0.9), st.floats(0.0, 0.9))
    def test_extra_terms_are_paid_for(
        self, epsilon: float, delta: float, extra_share: float, slack_share: float
    ) -> None:
        extra, slack = extra_share * delta, slack_share * min(epsilon, 1.0)
        mu = gaussian_mu(epsilon, delta, extra_delta=extra, slack=slack)
        assert math.exp(slack) * gaussian_delta(epsilon - slack, mu) + extra <= delta
        assert mu <= gaussian_mu(epsilon, delta)
        scale = unit_noise_scale(epsilon, delta, extra_delta=extra, slack=slack)
        assert 1 / scale <= mu

    def test_epsilon_without_noise_left(self) -> None:
        assert gaussian_epsilon(1e-6, 0.2, extra_delta=1e-6) == math.inf
        assert gaussian_epsilon(1e-6, 0.0) == 0.0
        assert gaussian_epsilon(1e-6, 1e200) == math.inf

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            (lambda: gaussian_mu(1.0, 1e-6, extra_delta=1e-6), InvalidBudget),
            (lambda: gaussian_mu(1.0, 1e-6, slack=1.0), InvalidBudget),
            (lambda: gaussian_mu(0.0, 1e-6), InvalidBudget),
            (lambda: gaussian_mu(1.0, 0.0), InvalidBudget),
            (lambda: unit_noise_scale(math.nan, 1e-6), InvalidBudget),
            (lambda: gaussian_delta(-1.0, 1.0), InvalidArgument),
            (lambda: gaussian_delta(1.0, math.inf), InvalidArgument),
            (lambda: gaussian_delta(1.0, True), InvalidArgument),
            (lambda: gaussian_epsilon(1.0, 1.0), InvalidBudget),
            (lambda: discrete_gaussian_correction(1.0, 0, 1e9), InvalidArgument),
            (lambda: discrete_gaussian_slack(3, 1.0, 1.0), InvalidArgument),
        ],
    )
    def test_bad_parameters(self, call: object, error: type[Exception]) -> None:
        with pytest.raises(error):
            call()  # type: ignore[operator]


class TestDiscreteGaussian:
    """Against the discrete Gaussian itself, summed over the integers."""

    @staticmethod
    def weights(sigma: float, shift: int = 0) -> np.ndarray:
        z = np.arange(-int(40 * sigma), int(40 * sigma) + 1)
        mass = np.exp(-((z - shift) ** 2) / (2 * sigma**2))
        return np.asarray(mass / mass.sum())

    @staticmethod
    def rounded(sigma: float) -> np.ndarray:
        edges = (np.arange(-int(40 * sigma), int(40 * sigma) + 2) - 0.5) / sigma
        cdf = np.array([0.5 * math.erfc(-edge / math.sqrt(2)) for edge in edges])
        return np.diff(cdf)

    @pytest.mark.parametrize("sigma", [2.0, 4.0, 11.5])
    def test_correction_covers_the_distance_to_the_rounded_one(self, sigma: float) -> None:
        p, r = self.weights(sigma), self.rounded(sigma)
        assert np.abs(p - r).sum() / 2 <= discrete_gaussian_correction(0.0, 1, sigma) / 2
        pair, rounded_pair = np.outer(p, p), np.outer(r, r)
        assert np.abs(pair - rounded_pair).sum() / 2 <= discrete_gaussian_correction(0.0, 2, sigma) / 2

    @pytest.mark.parametrize(("sigma", "shift"), [(4.0, 1), (6.0, 2), (20.0, 9), (50.0, 60)])
    @pytest.mark.parametrize("epsilon", [0.01, 0.2, 1.0, 3.0])
    def test_both_bounds_hold(self, sigma: float, shift: int, epsilon: float) -> None:
        p, q = self.weights(sigma, shift), self.weights(sigma)
        actual = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
        mu = shift / sigma
        assert actual <= gaussian_delta(epsilon, mu) + discrete_gaussian_correction(epsilon, 1, sigma)
        slack, extra = discrete_gaussian_slack(1, sigma, mu, tail=1e-9)
        shifted = gaussian_delta(epsilon - slack, mu) if slack < epsilon else 1.0
        assert actual <= math.exp(slack) * shifted + extra

    def test_negligible_on_the_lattice_in_use(self) -> None:
        slack, extra = discrete_gaussian_slack(10_000, 2.0**30, 40.0)
        assert slack < 2e-15
        assert extra == 1e-40
        assert discrete_gaussian_correction(1.0, 10_000, 2.0**30) < 1e-17
        assert discrete_gaussian_correction(1000.0, 10_000, 2.0**30) == math.inf


class TestCharge:
    def test_json_round_trip(self) -> None:
        charge = Charge(
            'Ünïcode "quoted"\n',
            "grams",
            2.0,
            1e-6,
            gaussian_mus=(0.1, 0.2),
            draws=((0.01, 20), (0.1, 1)),
            extra_delta=1e-9,
            slack=1e-15,
            bounded_range=True,
            columns=("age", "wage"),
            simulated=True,
        )
        assert Charge.from_dict(json.loads(json.dumps(charge.to_dict()))) == charge
        assert charge.mu == pytest.approx(math.sqrt(0.05))
        assert charge.pure_epsilon == pytest.approx(0.3)

    @pytest.mark.parametrize(
        "changes",
        [
            {"label": "x" * 201},
            {"label": 3},
            {"mechanism": "x" * 201},
            {"epsilon": 0.0},
            {"epsilon": math.inf},
            {"delta": 1.0},
            {"delta": -1e-9},
            {"gaussian_mus": (-0.1,)},
            {"gaussian_mus": ()},
            {"draws": ((0.1, 0),)},
            {"draws": ((0.1, 1.5),)},
            {"draws": ((-0.1, 1),)},
            {"draws": ((0.1,),)},
            {"extra_delta": 1.0},
            {"slack": math.nan},
        ],
    )
    def test_bad_fields(self, changes: dict[str, object]) -> None:
        with pytest.raises(InvalidArgument):
            replace(gaussian(1.0, 1e-6), **changes)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "changes",
        [
            {"gaussian_mus": (gaussian_mu(1.0, 1e-6) * (1 + 1e-6),)},
            {"gaussian_mus": (gaussian_mu(1.0, 1e-6),) * 2},
            {"extra_delta": 1e-9},
            {"draws": ((0.1, 1),)},
            {"epsilon": 0.999},
        ],
    )
    def test_a_statement_that_the_parts_do_not_meet_is_refused(self, changes: dict[str, object]) -> None:
        with pytest.raises(InvalidArgument, match="more than the stated"):
            replace(gaussian(1.0, 1e-6), **changes)  # type: ignore[arg-type]

    def test_draws_may_be_stated_tightly(self) -> None:
        # 100 draws of 0.01 and a Gaussian: less than 1 + 0.5 by far.
        parts = {"gaussian_mus": (gaussian_mu(0.5, 1e-7),), "draws": ((0.01, 100),)}
        tight = compose([Charge("a", "m", 1.5, 1e-6, **parts)], 1e-6)  # type: ignore[arg-type]
        assert tight < 0.9
        assert Charge("a", "m", tight, 1e-6, **parts).epsilon == tight  # type: ignore[arg-type]

    def test_stated_mechanisms(self) -> None:
        charge = Charge.stated(label="a", mechanism="other", epsilon=0.5, delta=1e-7)
        assert compose([charge], 1e-7) == pytest.approx(0.5, rel=1e-12)
        assert compose_delta([charge], 0.5) == pytest.approx(1e-7)

    @given(st.floats(-3, 1.5).map(lambda power: 10.0**power), st.floats(0.0, 3.0))
    def test_a_draw_is_dominated_by_its_gaussian(self, epsilon: float, level: float) -> None:
        mu = draws_only(epsilon, 1).equivalent_mu
        p = 1 / (1 + math.exp(-epsilon))
        exact = max(0.0, p - math.exp(level) * (1 - p)) + max(0.0, 1 - p - math.exp(level) * p)
        assert exact <= gaussian_delta(level, mu) * (1 + 1e-9) + 1e-12

    @given(st.floats(-2, 1.0).map(lambda power: 10.0**power), st.floats(0.0, 1.0), st.floats(0.0, 3.0))
    def test_an_exponential_mechanism_is_dominated(self, epsilon: float, place: float, level: float) -> None:
        mu = draws_only(epsilon, 1, bounded_range=True).equivalent_mu
        # Two outcomes with log-ratios top and top - epsilon.
        top = place * epsilon
        q = -math.expm1(top - epsilon) / (math.exp(top) - math.exp(top - epsilon))
        p = q * math.exp(top)
        exact = max(0.0, p - math.exp(level) * q) + max(0.0, (1 - p) - math.exp(level) * (1 - q))
        assert exact <= gaussian_delta(level, mu) * (1 + 1e-9) + 1e-12


class TestCompose:
    def test_nothing_costs_nothing(self) -> None:
        assert compose([], 1e-6) == 0.0
        assert compose_delta([], 1.0) == 0.0

    @settings(max_examples=40)
    @given(epsilons, deltas)
    def test_one_charge_at_its_own_delta(self, epsilon: float, delta: float) -> None:
        assert compose([gaussian(epsilon, delta)], delta) <= epsilon * (1 + 1e-9)

    @settings(max_examples=40)
    @given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6), st.floats(-12, -2))
    def test_gaussians_compose_as_one(self, parts: list[float], power: float) -> None:
        delta = 10.0**power
        charges = [gaussian(epsilon, delta) for epsilon in parts]
        together = gaussian_epsilon(delta, combine_mu(charge.mu for charge in charges))
        assert compose(charges, delta) == pytest.approx(together, rel=1e-12)
        assert max(parts) * (1 - 1e-9) <= compose(charges, delta)
        assert compose(charges, len(parts) * delta) <= sum(parts) * (1 + 1e-9)

    @pytest.mark.parametrize(("epsilon", "mu", "draws", "exact"), EXACT_MIXTURES)
    def test_exact_mixtures(
        self, epsilon: float, mu: float, draws: tuple[tuple[float, int], ...], exact: float
    ) -> None:
        charge = Charge("a", "m", 5.0, 1e-4, gaussian_mus=(mu,), draws=draws)
        got = accounting._tight_delta([charge], epsilon)
        assert exact * (1 - 1e-11) <= got <= exact * (1 + 2e-10)
        assert compose_delta([charge], epsilon) <= got

    @pytest.mark.parametrize(
        ("mu", "draws"), [(0.2, ((0.05, 10),)), (0.5, ((0.3, 2), (0.1, 4))), (0.0, ((0.02, 50),))]
    )
    def test_mixtures_against_dp_accounting(self, mu: float, draws: tuple[tuple[float, int], ...]) -> None:
        step = 1e-4
        grid = privacy_loss_distribution.identity(value_discretization_interval=step)
        if mu:
            grid = privacy_loss_distribution.from_gaussian_mechanism(
                1 / mu, value_discretization_interval=step
            )
        for epsilon, count in draws:
            one = privacy_loss_distribution.from_privacy_parameters(
                common.DifferentialPrivacyParameters(epsilon, 0), value_discretization_interval=step
            )
            grid = grid.compose(one.self_compose(count))
        charge = Charge("a", "m", 8.0, 1e-4, gaussian_mus=(mu,), draws=draws)
        ours = compose([charge], 1e-6)
        theirs = grid.get_epsilon_for_delta(1e-6)
        assert ours <= theirs * (1 + 1e-9)
        assert ours == pytest.approx(theirs, rel=5e-3)

    def test_many_kinds_of_draws_on_the_grid(self, monkeypatch: pytest.MonkeyPatch) -> None:
        charge = Charge("a", "m", 8.0, 1e-4, gaussian_mus=(0.3,), draws=((0.1, 3), (0.123, 4), (0.07, 1)))
        exact = compose([charge], 1e-6)
        monkeypatch.setattr(accounting, "_MAX_OUTCOMES", 1)
        assert exact <= compose([charge], 1e-6) <= exact * 1.001

    def test_draws_never_need_more_than_their_sum(self) -> None:
        assert compose([draws_only(0.5, 1), draws_only(0.25, 2)], 1e-9) == pytest.approx(1.0, rel=1e-6)

    def test_bounded_range_is_used(self) -> None:
        wide = compose([draws_only(0.05, 400)], 1e-6)
        narrow = compose([draws_only(0.05, 400, bounded_range=True)], 1e-6)
        assert narrow < 0.75 * wide

    def test_failures_add(self) -> None:
        charge = Charge("a", "m", 1.0, 1e-6, gaussian_mus=(gaussian_mu(1.0, 9e-7),), extra_delta=1e-7)
        assert compose([charge] * 11, 1e-6) == math.inf
        assert compose([charge] * 2, 1e-6) == pytest.approx(
            gaussian_epsilon(8e-7, math.sqrt(2) * charge.mu), rel=1e-9
        )

    @settings(max_examples=25)
    @given(
        st.lists(
            st.tuples(st.floats(0.0, 0.5), st.floats(0.01, 0.5), st.integers(1, 4)), min_size=1, max_size=3
        ),
        st.floats(0.1, 3.0),
    )
    def test_delta_and_epsilon_agree(self, parts: list[tuple[float, float, int]], level: float) -> None:
        charges = [
            Charge("a", "m", 30.0, 1e-3, gaussian_mus=(mu,), draws=((draw, count),))
            for mu, draw, count in parts
        ]
        delta = compose_delta(charges, level)
        if 1e-12 < delta < 0.9:
            assert compose(charges, delta) <= level * (1 + 1e-9)
        for fewer in itertools.combinations(charges, len(charges) - 1):
            assert compose(fewer, 1e-5) <= compose(charges, 1e-5) * (1 + 1e-9)


def test_dp_accounting_is_not_imported_for_nothing() -> None:
    code = (
        "import sys; from pydpmode.privacy import ledger, accounting as a; "
        "a.compose([a.Charge('a', 'm', 1.0, 1e-6, gaussian_mus=(0.1,), draws=((0.1, 5),))], 1e-6); "
        "print('dp_accounting' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
