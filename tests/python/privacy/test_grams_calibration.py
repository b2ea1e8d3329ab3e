"""Noise of DP-GRAMS: composition against dp_accounting, the published formulas, and refusals."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp

from pydpmode import Budget, GramsOptions, errors
from pydpmode.numerics.score_kernels import ScoreKernel
from pydpmode.privacy.grams_calibration import (
    draws_mu,
    published_epsilon,
    published_ratio,
    rdp_epsilon,
    score_sensitivity,
)
from pydpmode.privacy.grams_plan import GramsPlan, check_offered, plan_grams
from pydpmode.privacy.ledger import Ledger

N = 5000


def plan(epsilon: float = 1.0, delta: float = 1e-6, d: int = 2, n: int = N, **options: Any) -> GramsPlan:
    return plan_grams(
        GramsOptions(**options),
        columns=tuple("xyz"[:d]),
        lower=np.full(d, -8.0),
        upper=np.full(d, 8.0),
        bandwidth=np.full(d, 0.8),
        records=n,
        block=2**17,
        epsilon=epsilon,
        delta=delta,
    )


def composed(p: GramsPlan, share_of_draw: float) -> float:
    """Epsilon of all rounds and draws by dp_accounting, each draw pure DP at a share of its epsilon."""
    step = 1e-4
    ratio = p.noise_scale / p.sensitivity.total
    whole = pld.from_gaussian_mechanism(ratio, value_discretization_interval=step)
    whole = whole.self_compose(p.rounds.number)
    draw = common.DifferentialPrivacyParameters(share_of_draw * p.epsilon_draw, 0)
    one = pld.from_privacy_parameters(draw, value_discretization_interval=step)
    whole = whole.compose(one.self_compose(p.rounds.ascents))
    return float(whole.get_epsilon_for_delta(p.delta))


@pytest.mark.parametrize(
    ("epsilon", "options"),
    [(1.0, {"k": 6, "T": 4}), (0.5, {"k": 3, "T": 3, "eps_init": 0.4}), (5.0, {"k": 8, "T": 5})],
)
def test_the_stated_epsilon_against_dp_accounting(epsilon: float, options: dict[str, Any]) -> None:
    """Exponential draws cost more than randomised response at half their epsilon, less than at the whole."""
    p = plan(epsilon, **options)
    low, high = composed(p, 0.5), composed(p, 1.0)
    assert low <= epsilon * (1 + 1e-3)
    assert high >= epsilon * (1 - 1e-3)
    # Tight: within two percent of what is stated, unless the starts take a large share.
    assert low >= (0.9 if options.get("eps_init") else 0.98) * epsilon


def test_draws_as_one_gaussian_dominate_dp_accounting() -> None:
    for epsilon_draw, number in ((0.02, 40), (0.3, 5), (1.5, 1)):
        mu = draws_mu(epsilon_draw, number)
        parameters = common.DifferentialPrivacyParameters(epsilon_draw / 2, 0)
        exact = pld.from_privacy_parameters(parameters, value_discretization_interval=1e-4)
        exact = exact.self_compose(number) if number > 1 else exact
        gaussian = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
        for level in (0.0, 0.05, 0.2, 0.5):
            assert exact.get_delta_for_epsilon(level) <= gaussian.get_delta_for_epsilon(level) + 1e-4


def test_the_charge_is_accepted_by_a_ledger_of_exactly_this_budget() -> None:
    for options in ({}, {"accountant": "rdp", "m": 500, "T": 2, "k": 3}, {"accountant": "published", "k": 1}):
        ledger = Ledger.open(None, Budget(1.0, 1e-6), "replace", "row")
        charge = plan(**options).charge("grams", False)
        assert charge.epsilon == 1.0
        ledger.charge(charge)
        assert ledger.spent() <= 1.0 + 1e-9
        assert not ledger.would_fit(dataclasses.replace(charge, label="again"))


def test_half_the_budget_leaves_room_for_more() -> None:
    ledger = Ledger.open(None, Budget(1.0, 1e-6), "replace", "row")
    for number in range(3):
        ledger.charge(plan(0.5).charge(f"look {number}", False))
    assert ledger.spent() < 1.0


def test_minibatches_against_the_renyi_accountant() -> None:
    p = plan(accountant="rdp", m=600, T=3, k=4)
    accountant = rdp.RdpAccountant(None, privacy_accountant.NeighboringRelation.REPLACE_ONE)
    noisy = dp_event.GaussianDpEvent(p.noise_scale / p.sensitivity.total)
    accountant.compose(dp_event.SampledWithoutReplacementDpEvent(N, 600, noisy), 3)
    # Four draws of bounded range, each epsilon^2/8-zCDP: Renyi divergence alpha epsilon^2/8.
    accountant.compose(dp_event.GaussianDpEvent(2 / p.epsilon_draw), 4)
    spent = accountant.get_epsilon(p.delta)
    assert 0.98 <= spent <= 1.0 + 1e-6
    # Without sampling it is the Gaussian's own Renyi curve.
    accountant = rdp.RdpAccountant(None, privacy_accountant.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_event.GaussianDpEvent(4.0))
    assert rdp_epsilon(4.0, 1e-6, 1, 1.0, 1e-9, 1) == pytest.approx(accountant.get_epsilon(1e-6), rel=0.01)


def test_a_minibatch_pays_more_noise_at_equal_privacy() -> None:
    full, batch = plan(T=3, k=4), plan(accountant="rdp", m=590, T=3, k=4)
    assert batch.ascent.gradient_sd > 1.2 * full.ascent.gradient_sd


def test_noise_is_the_same_for_any_number_of_correlated_ascents() -> None:
    few, many = plan(k=5).ascent, plan(k=200).ascent
    assert many.gradient_sd == pytest.approx(few.gradient_sd, rel=0.01)
    # (The same privacy per start, so that the rounds have the same share.)
    one, four = plan(k=1, eps_init=0.01).ascent, plan(k=4, noise="independent", eps_init=0.01).ascent
    assert four.gradient_sd == pytest.approx(2 * one.gradient_sd, rel=0.01)
    # One ascent has its own, smaller, bound.
    assert one.gradient_sd < 0.5 * few.gradient_sd


def test_shares_of_density_and_gradient() -> None:
    low, high = plan(density_share=0.1).ascent, plan(density_share=0.4).ascent
    assert low.density_sd / high.density_sd == pytest.approx(2.0, rel=1e-3)
    assert high.gradient_sd / low.gradient_sd == pytest.approx(math.sqrt(0.9 / 0.6), rel=1e-3)


def test_defaults_follow_from_public_facts() -> None:
    p = plan()
    assert (p.rounds.number, p.rounds.batch, p.rounds.ascents) == (9, N, 43)
    assert p.epsilon_draw * p.rounds.ascents == pytest.approx(0.1)
    assert p.suppression == pytest.approx(16 / 0.8 / 5 / math.sqrt(math.log(N)))
    assert p.ascent.floor == pytest.approx(max((0.8 / 16) ** 2, 3 * p.ascent.density_sd))
    assert p.ascent.clip == pytest.approx(2 * p.ascent.floor)
    assert p.finish == "regression"
    given = plan(p_floor=0.01, A=0.05, T=3, k=2, rho_init=4.0, eta=0.5)
    assert (given.ascent.floor, given.ascent.clip) == pytest.approx((0.01 * 0.64, 0.05 * 0.64))
    assert (given.suppression, given.ascent.step) == (4.0, 0.5)
    assert plan(accountant="published", k=1).rounds.batch == math.ceil(N / math.log(N))
    assert plan(accountant="published", k=1).finish == "iterates"


# -- the published calibration -------------------------------------------------------------------------


def test_the_published_formulas_by_hand() -> None:
    epsilon, delta, rounds, m, n = 0.9, 1e-6, 9, 588, 5000
    per_round = min(
        math.log(1 + (math.e - 1) * m / n),
        epsilon / (2 * math.sqrt(2 * rounds * math.log(2 / delta))),
        math.sqrt(epsilon / (4 * rounds)),
    )
    assert published_epsilon(epsilon, delta, rounds, m / n) == pytest.approx(per_round)
    by_hand = math.sqrt(2 * math.log(2.5 * m * rounds / (n * delta))) / math.log(
        1 + n / m * (math.exp(per_round) - 1)
    )
    assert published_ratio(epsilon, delta, rounds, m / n) == pytest.approx(by_hand)
    p = plan(accountant="published", k=1, T=rounds, m=m)
    floor, clip = p.ascent.floor, p.ascent.clip
    peak = 1 / (2 * math.pi)
    by_hand_s = 2 * peak * math.exp(-0.5) / floor + peak * clip / floor**2
    assert score_sensitivity(ScoreKernel("gaussian", 2), clip, floor) == pytest.approx(by_hand_s)
    assert p.noise_scale == pytest.approx(by_hand_s / m * by_hand, rel=1e-5)
    many = plan(accountant="published", k=9, T=rounds, m=m, noise="independent")
    assert many.noise_scale == pytest.approx(3 * p.noise_scale, rel=1e-5)


def test_the_published_rounds_meet_their_budget_by_advanced_composition() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        for rounds in (1, 9, 50):
            one = published_epsilon(epsilon, 1e-6, rounds, 0.1)
            total = one * math.sqrt(2 * rounds * math.log(2 / 1e-6)) + rounds * one * math.expm1(one)
            assert total <= epsilon


def test_the_unsound_combination_is_refused_with_the_reason() -> None:
    with pytest.raises(errors.InvalidArgument, match="that bound is false"):
        plan(accountant="published", k=2)
    with pytest.raises(errors.InvalidArgument, match="where-we-differ"):
        plan(accountant="published")
    assert plan(accountant="published", k=1).rounds.ascents == 1
    assert plan(accountant="published", noise="independent").length == 2 * 43


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"m": 100}, "accountant='rdp'"),
        ({"m": N + 1, "accountant": "rdp"}, "at most the number of records"),
        ({"kernel": "legendre4"}, "noise='independent'"),
        ({"accountant": "published", "k": 1, "finish": "regression"}, "finish='iterates'"),
        ({"kernel": "legendre4", "noise": "independent", "finish": "regression"}, "finish='iterates'"),
        ({"candidates": [[0.0, 9.0]]}, "inside the public bounds"),
        ({"candidates": [[0.0]]}, "one column per coordinate"),
        ({"eps_init": 0.999, "k": 1, "T": 1}, "smaller share"),
        ({"T": 0}, "T must be"),
        ({"k": 1.5}, "k must be"),
        ({"eta": -1.0}, "eta must be"),
        ({"eps_init": 1.0}, "eps_init must be"),
        ({"density_share": 0.0}, "density_share must be"),
        ({"noise": "white"}, "noise must be one of"),
        ({"accountant": "rényi"}, "accountant must be one of"),
        ({"finish": "mean"}, "finish must be one of"),
        ({"candidates": [["a"]]}, "candidates must be"),
        ({"candidates": [[math.nan, 0.0]]}, "finite"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(errors.InvalidArgument, match=told):
        plan(**options)


@pytest.mark.parametrize(
    ("adjacency", "unit", "weighted", "told"),
    [
        ("add_remove", "row", False, "adjacency='replace'"),
        ("replace", "person", False, "protects rows"),
        ("replace", "row", True, "no weights"),
    ],
)
def test_what_has_no_proof_is_not_offered(adjacency: Any, unit: Any, weighted: bool, told: str) -> None:
    check_offered("replace", "row", False)
    with pytest.raises(errors.InvalidArgument, match=told):
        check_offered(adjacency, unit, weighted)
