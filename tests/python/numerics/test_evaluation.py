from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.evaluation import (
    false_modes,
    match_modes,
    missed_branch_rate,
    missed_modes,
    mode_mse,
    oracle_modal_loss,
    summarise_errors,
)


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 5))
def test_mse_is_equation_14_by_brute_force(seed: int, k_hat: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    found, truth = rng.normal(size=(k_hat, 2)), rng.normal(size=(k, 2))
    small, large = (found, truth) if k_hat <= k else (truth, found)
    best = min(
        sum(float(np.sum(np.square(small[i] - large[j]))) for i, j in enumerate(chosen))
        for chosen in permutations(range(len(large)), len(small))
    )
    assert mode_mse(found, truth) == pytest.approx(best / max(k, k_hat))


def test_mse_does_not_depend_on_order_and_divides_by_the_larger_count() -> None:
    truth = np.array([[0.0, 0.0], [10.0, 0.0]])
    assert mode_mse(truth[::-1] + np.array([0.0, 1.0]), truth) == pytest.approx(1.0)
    assert mode_mse([[0.0, 1.0]], truth) == pytest.approx(0.5)
    assert mode_mse([[0.0, 1.0], [10.0, 0.0], [50.0, 0.0]], truth) == pytest.approx(1 / 3)


def test_silence_is_not_a_perfect_score() -> None:
    assert math.isnan(mode_mse(np.empty((0, 2)), [[0.0, 0.0]]))
    assert math.isnan(mode_mse([], [[0.0, 0.0]]))
    assert mode_mse([], []) == 0.0
    assert mode_mse([], [[0.0, 0.0]], charge=4.0) == 4.0


def test_charged_error_counts_missing_extra_and_hopeless_modes() -> None:
    truth = [[0.0], [10.0]]
    assert mode_mse([[1.0]], truth, charge=9.0) == pytest.approx((1 + 9) / 2)
    assert mode_mse([[1.0], [10.0], [20.0]], truth, charge=9.0) == pytest.approx((1 + 0 + 9) / 3)
    assert mode_mse([[1.0], [90.0]], truth, charge=9.0) == pytest.approx((1 + 9) / 2)


def test_matching_reports_pairs() -> None:
    match = match_modes([[5.0], [0.1]], [[0.0], [5.2], [9.0]])
    assert dict(zip(match.estimated.tolist(), match.true.tolist(), strict=True)) == {0: 1, 1: 0}
    np.testing.assert_allclose(np.sort(match.squared_distances), [0.01, 0.04])
    assert (match.n_estimated, match.n_true) == (2, 3)


def test_missed_and_false_modes_pair_one_to_one() -> None:
    truth = [[0.0], [1.0]]
    assert missed_modes([[0.5], [9.0]], truth, radius=0.6) == 1
    assert false_modes([[0.5], [9.0]], truth, radius=0.6) == 1
    # The nearest pairing overall would leave one estimate out; two pairs within the radius exist.
    assert missed_modes([[0.9], [1.7]], truth, radius=1.0) == 0
    assert false_modes([], truth, radius=1.0) == 0
    assert missed_modes([], truth, radius=1.0) == 2


def test_summary_of_runs() -> None:
    truth = np.array([[0.0, 0.0], [4.0, 0.0]])
    runs = [truth + np.array([0.0, 0.1]), truth[:1], np.vstack([truth, [[9.0, 9.0]]]), np.empty((0, 2))]
    summary = summarise_errors(runs, truth, radius=1.0)
    errors = np.array([0.01, 0.0, 0.0])
    assert summary.runs == 4
    assert summary.mse == pytest.approx(errors.mean())
    assert summary.mse_standard_error == pytest.approx(errors.std(ddof=1) / math.sqrt(3))
    assert summary.median_squared_error == 0.0
    assert summary.exact_count_rate == 0.25
    assert summary.missed_rate == pytest.approx(3 / 8)
    assert summary.false_rate == pytest.approx(1 / 6)
    assert summary.false_run_rate == 0.25
    assert summary.silent_rate == 0.25


def test_oracle_loss_is_the_distance_to_the_nearest_branch() -> None:
    modes = np.array([[0.0, 2.0], [0.0, np.nan], [1.0, 3.0]])
    assert oracle_modal_loss([0.5, -0.5, 2.75], modes) == pytest.approx((0.25 + 0.25 + 0.0625) / 3)
    branches = np.array([[0.1, 1.8], [np.nan, np.nan], [1.0, np.nan]])
    assert oracle_modal_loss(branches, modes) == pytest.approx((0.01 + 0.04 + 0.0) / 3)
    assert math.isnan(oracle_modal_loss([np.nan] * 3, modes))


def test_missed_branches() -> None:
    modes = np.array([[0.0, 2.0], [0.0, np.nan]])
    assert missed_branch_rate([0.1, np.nan], modes, radius=0.2) == pytest.approx(2 / 3)
    assert missed_branch_rate(np.array([[0.1, 2.1], [0.0, 0.0]]), modes, radius=0.2) == 0.0
    assert math.isnan(missed_branch_rate([0.0], [np.nan], radius=1.0))


def test_bad_arguments() -> None:
    with pytest.raises(InvalidArgument, match="columns"):
        mode_mse([[0.0, 1.0]], [[0.0]])
    with pytest.raises(InvalidArgument, match="finite"):
        mode_mse([[np.nan]], [[0.0]])
    with pytest.raises(InvalidArgument, match="charge"):
        mode_mse([[0.0]], [[0.0]], charge=-1.0)
    with pytest.raises(InvalidArgument, match="radius"):
        missed_modes([[0.0]], [[0.0]], radius=0.0)
    with pytest.raises(InvalidArgument, match="no runs"):
        summarise_errors([], [[0.0]], radius=1.0)
    with pytest.raises(InvalidArgument, match="one row"):
        oracle_modal_loss([0.0, 1.0], [[0.0]])
    with pytest.raises(InvalidArgument, match="at least one number"):
        oracle_modal_loss([0.0], [np.nan])
