"""A budget and the statement of what was spent: validation, splitting, round trips."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydpmode.budget import Budget, PrivacySpent, as_number, as_whole, check_delta, check_epsilon
from pydpmode.errors import InvalidArgument, InvalidBudget, PydpmodeError

NOT_NUMBERS = [True, np.True_, "1", None, [1.0], (1.0,), np.array([1.0]), np.array(1.0), 1j, {"epsilon": 1}]


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_only_one_real_number_is_a_number(value: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"length must be one number, got .*; give e\.g\. length=1\.0"):
        as_number(value, "length")
    with pytest.raises(InvalidBudget):
        Budget(value, 1e-6)
    with pytest.raises(InvalidBudget):
        Budget(1.0, value)


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float32(2), np.int8(2), np.float64(2), Fraction(4, 2)], ids=repr
)
def test_every_kind_of_real_number_is_a_number(value: Any) -> None:
    assert as_number(value, "length") == 2.0
    assert type(as_number(value, "length")) is float
    assert Budget(value, 1e-6) == Budget(2.0, 1e-6)


def test_a_number_too_large_for_a_float_is_refused_by_the_package() -> None:
    with pytest.raises(InvalidBudget, match="too large"):
        Budget(10**400, 1e-6)
    with pytest.raises(InvalidArgument, match="too large"):
        as_whole(10**400, "n", 1)


@pytest.mark.parametrize("epsilon", [0, -0.0, -1, math.inf, -math.inf, math.nan])
def test_epsilon_is_finite_and_positive(epsilon: float) -> None:
    with pytest.raises(InvalidBudget, match="epsilon must be a finite number > 0, got"):
        check_epsilon(epsilon)
    with pytest.raises(InvalidBudget):
        Budget(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 1.5, math.inf, math.nan])
def test_delta_is_strictly_between_0_and_1(delta: float) -> None:
    with pytest.raises(InvalidBudget, match="delta must be strictly between 0 and 1, got"):
        check_delta(delta)
    with pytest.raises(InvalidBudget):
        Budget(1.0, delta)


def test_epsilon_and_delta_have_no_default() -> None:
    with pytest.raises(InvalidBudget, match="epsilon is missing and has no default"):
        check_epsilon(None)
    with pytest.raises(InvalidBudget, match="delta is missing and has no default"):
        check_delta(None)
    with pytest.raises(TypeError):
        Budget()  # type: ignore[call-arg]


def test_errors_of_a_budget_are_errors_of_the_package_and_value_errors() -> None:
    with pytest.raises(PydpmodeError):
        Budget(-1, 1e-6)
    with pytest.raises(ValueError, match="epsilon"):
        Budget(-1, 1e-6)


def test_a_budget_is_a_frozen_value() -> None:
    budget = Budget(1, 1e-6)
    with pytest.raises(AttributeError):
        budget.epsilon = 2.0  # type: ignore[misc]
    assert budget == Budget(1.0, 1e-6)
    assert hash(budget) == hash(Budget(1.0, 1e-6))
    assert type(budget.epsilon) is float


def test_comparison_needs_both_parts() -> None:
    assert Budget(0.5, 1e-7) <= Budget(1.0, 1e-6)
    assert not Budget(0.5, 1e-5) <= Budget(1.0, 1e-6)
    assert not Budget(1.5, 1e-7) <= Budget(1.0, 1e-6)


@given(
    st.floats(0.01, 100),
    st.floats(1e-12, 0.5),
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=6),
)
def test_the_parts_of_a_split_are_in_proportion_and_add_up(
    epsilon: float, delta: float, shares: list[float]
) -> None:
    parts = Budget(epsilon, delta).split(*shares)
    assert math.isclose(math.fsum(p.epsilon for p in parts), epsilon, rel_tol=1e-14)
    assert math.isclose(math.fsum(p.delta for p in parts), delta, rel_tol=1e-14)
    for part, share in zip(parts, shares, strict=True):
        assert math.isclose(part.epsilon / epsilon, share / math.fsum(shares), rel_tol=1e-13)


def test_enormous_shares_do_not_overflow() -> None:
    assert Budget(2.0, 1e-6).split(1e308, 1e308) == (Budget(1.0, 5e-7), Budget(1.0, 5e-7))


@pytest.mark.parametrize("shares", [(), (0,), (1, -1), (math.inf,), (math.nan, 1), (True,), ("1",)], ids=repr)
def test_shares_are_finite_and_positive(shares: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgument):
        Budget(1.0, 1e-6).split(*shares)


@pytest.mark.parametrize("value", [0, 2.5, math.nan, math.inf, -3, True, "3", None, np.array([3])], ids=repr)
def test_counts_are_whole_and_in_range(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="n must be"):
        as_whole(value, "n", 1)


def test_whole_numbers_of_any_kind_become_ints() -> None:
    for value in (3, 3.0, np.int64(3), np.float32(3)):
        assert as_whole(value, "n", 1) == 3
        assert type(as_whole(value, "n", 1)) is int
    # Beyond 2^53 no digit is lost on the way through a float.
    assert as_whole(2**60 + 1, "n", 1) == 2**60 + 1
    with pytest.raises(InvalidArgument, match=r"in 1\.\.5"):
        as_whole(6, "n", 1, 5)


# -- the statement that travels with a release ---------------------------------------------------


def spent(**changes: Any) -> PrivacySpent:
    fields: dict[str, Any] = {
        "epsilon": 0.5,
        "delta": 1e-6,
        "adjacency": "replace",
        "unit": "row",
        "mechanism": "surface (discrete Gaussian)",
        "sensitivity": 1.01,
        "noise_scale": 4.2,
        "n_units": 1000,
        "bounds": {"age": (15.0, 90.0), "wage": (0.1, 3e5)},
    }
    return PrivacySpent(**{**fields, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"adjacency": "add_remove", "n_units": None, "outside": "ignore"},
        {"unit": "person", "label": "first", "notes": ("a", "b")},
        {"max_weight": 7.5, "simulated": True, "mechanism": "surface (simulated Gaussian)"},
    ],
    ids=repr,
)
def test_a_statement_survives_json(changes: dict[str, Any]) -> None:
    one = spent(**changes)
    assert PrivacySpent.from_dict(json.loads(json.dumps(one.to_dict()))) == one


def test_the_sentence_says_what_holds() -> None:
    assert spent().statement() == (
        "(0.5, 1e-06)-differentially private for replacing one row, given that the bounds are public."
    )
    assert "adding or removing one person" in spent(adjacency="add_remove", unit="person").statement()
    assert spent(simulated=True).statement().startswith("NOT PRIVATE")
    assert spent(mechanism="pms (pld, T=4, public predictors)").statement() == (
        "(0.5, 1e-06)-differentially private for replacing one response, given that the bounds and the "
        "predictors of all rows are public: predictors are not protected."
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0.0},
        {"epsilon": "0.5"},
        {"delta": 1.0},
        {"sensitivity": math.nan},
        {"noise_scale": 0.0},
        {"noise_scale": -1.0},
        {"adjacency": "swap"},
        {"unit": "house"},
        {"n_units": 0},
        {"n_units": "1000"},
        {"simulated": 0},
        {"simulated": True},
        {"mechanism": "surface (simulated Gaussian)"},
        {"simulated": None},
        {"bounds": {"age": [15]}},
        {"bounds": None},
        {"surprise": 1},
    ],
    ids=repr,
)
def test_a_damaged_statement_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, LookupError, AttributeError)):
        PrivacySpent.from_dict({**spent().to_dict(), **changes})


@pytest.mark.parametrize("name", ["epsilon", "delta", "simulated", "noise_scale", "n_units", "bounds"])
def test_nothing_that_matters_is_filled_in(name: str) -> None:
    data = spent().to_dict()
    del data[name]
    with pytest.raises((KeyError, TypeError)):
        PrivacySpent.from_dict(data)
