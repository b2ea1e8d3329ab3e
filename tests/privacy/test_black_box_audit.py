"""A black-box audit: an attacker who knows everything but one unit, against thousands of releases a side.

The cases, and how releases become a lower bound on epsilon, are in audits/. Every mechanism must stay
within what it states, and every planted fault must be found: an audit that cannot find a violation
proves nothing. `make audit` runs the same table longer, with the package's own noise throughout.
"""

from __future__ import annotations

import numpy as np
import pytest

from audits.attack import epsilon_lower_bound
from audits.cases import AuditCase, all_cases, audit
from audits.surface_cases import CASES as SURFACES
from pydpmode.privacy.gaussian import gaussian_mu

QUICK = [case for case in all_cases() if case.quick]
REAL_RUNS = 10_000


def name(case: AuditCase) -> str:
    return case.name


@pytest.mark.parametrize("case", [c for c in QUICK if not c.fault], ids=name)
def test_the_stated_epsilon_survives(case: AuditCase) -> None:
    verdict = audit(case, case.quick, seed=7)
    assert verdict.bound <= case.epsilon
    # The audit has teeth: on sound code it comes near enough to find one that is not.
    assert verdict.bound >= case.power * case.epsilon or not case.power


@pytest.mark.parametrize("case", [c for c in QUICK if c.fault], ids=name)
def test_every_planted_fault_is_found(case: AuditCase) -> None:
    assert audit(case, case.quick, seed=7).bound > case.epsilon


# Those whose noise is drawn in about a second: one column, one scale.
REAL = [c for c in SURFACES if not c.fault and "1 column" in c.name and "ladder" not in c.name]


@pytest.mark.parametrize("case", REAL, ids=name)
def test_real_noise_from_the_systems_entropy(case: AuditCase) -> None:
    assert 0.2 * case.epsilon < audit(case, REAL_RUNS).bound <= case.epsilon


def test_real_noise_halved_is_found() -> None:
    case = next(c for c in SURFACES if c.fault == "noise halved")
    assert audit(case, REAL_RUNS).bound > case.epsilon


def test_a_new_mechanism_is_one_more_line_of_the_table() -> None:
    kinds = {case.mechanism.split(",")[0] for case in all_cases()}
    assert kinds >= {"surface", "quartiles", "grams", "the door"}
    for kind in ("surface", "quartiles", "grams", "the door"):
        mine = [case for case in all_cases() if case.mechanism.startswith(kind)]
        assert any(case.fault for case in mine)
        assert any(not case.fault for case in mine)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (2.0, 1e-3)])
def test_the_bound_never_exceeds_a_known_epsilon_and_nearly_reaches_it(epsilon: float, delta: float) -> None:
    """Two Gaussians whose epsilon is known exactly."""
    mu = gaussian_mu(epsilon, delta)
    generator = np.random.default_rng(3)
    found = [
        epsilon_lower_bound(generator.normal(size=10_000), generator.normal(size=10_000) + mu, delta)
        for _ in range(50)
    ]
    assert 0.4 * epsilon < float(np.median(found))
    assert max(found) <= epsilon


def test_nothing_to_tell_apart_gives_no_epsilon() -> None:
    same = np.arange(1000.0)
    assert epsilon_lower_bound(same, same, 0.05) < 0
    assert epsilon_lower_bound(np.zeros(1000), np.zeros(1000), 0.05) == -np.inf
