"""Private quartiles: what one unit can do, what draws and surface cost together, the one charge."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

import pydpmode as dpm
from pydpmode.budget import ADJACENCIES
from pydpmode.errors import BudgetExceeded, InvalidArgument
from pydpmode.numerics.bandwidth import choose_bandwidth
from pydpmode.numerics.designs import LatticeDesign, RandomDesign
from pydpmode.privacy.bounds import clip_block
from pydpmode.privacy.private_data import PrivateData
from pydpmode.privacy.quantiles import (
    CELLS,
    QUARTILES,
    WEIGHT_BITS,
    QuantilePlan,
    cell_weights,
    draw_quantiles,
    plan_quantiles,
    reserved,
)
from pydpmode.privacy.surface_release import ReleasePlan, plan_release
from pydpmode.results.coordinates import Coordinate

LOWER, UPPER = np.array([0.0, -10.0]), np.array([100.0, 10.0])
UNIT = 2**WEIGHT_BITS


def counted(rows: np.ndarray, weights: np.ndarray | None = None, outside: Any = "clip") -> np.ndarray:
    block = clip_block(
        np.array(rows.T, order="C"),
        [Coordinate.plain("age"), Coordinate.plain("score")],
        LOWER,
        UPPER,
        outside,
        None if weights is None else weights.copy(),
    )
    return cell_weights(block, LOWER, UPPER)


def utilities(counts: np.ndarray, a: int, b: int) -> np.ndarray:
    """Return the utilities of all edges by the formula of the module, (d, CELLS + 1)."""
    below = np.concatenate([np.zeros((len(counts), 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
    return -np.abs(b * below - a * below[:, -1:])


# -- one unit -----------------------------------------------------------------------------------------

ODD = [-1e308, 1e308, math.inf, -math.inf, math.nan, 0.0, 100.0, 10.0, -10.0, 99.99999999999999, 5e-324]
VALUES = st.one_of(st.sampled_from(ODD), st.floats(-20, 120))
WEIGHTS = st.one_of(st.sampled_from([0.0, 1.0, math.nan, 7.0, -3.0, 1 / 3]), st.floats(0, 1))


@settings(max_examples=60)
@given(
    st.data(),
    st.sampled_from(["clip", "ignore"]),
    st.booleans(),
    st.sampled_from([*QUARTILES, (1, 2), (1, 10)]),
)
def test_one_row_moves_a_utility_by_at_most_b(data: Any, outside: Any, weighted: bool, quantile: Any) -> None:
    """Replaced by another or by a missing one, added or removed; with weights clipped to [0, 1]."""
    a, b = quantile
    n = data.draw(st.integers(1, 5))
    rows = np.array(data.draw(st.lists(VALUES, min_size=2 * n + 2, max_size=2 * n + 2))).reshape(n + 1, 2)
    weights = None
    if weighted:
        drawn = data.draw(st.lists(WEIGHTS, min_size=n + 1, max_size=n + 1))
        weights = np.clip(np.array(drawn), 0.0, 1.0)
    changed = rows[:n].copy()
    changed[-1] = rows[n]
    ours = None if weights is None else weights[:n]
    theirs = None if weights is None else np.append(weights[: n - 1], weights[n])
    fewer = None if weights is None else weights[: n - 1]
    base = utilities(counted(rows[:n], ours, outside), a, b)
    for other in (counted(changed, theirs, outside), counted(rows[: n - 1], fewer, outside)):
        assert np.abs(base - utilities(other, a, b)).max() <= b * UNIT


@settings(max_examples=30)
@given(st.data())
def test_a_person_moves_a_utility_by_at_most_b(data: Any) -> None:
    """Rows of a person weigh 1/rows each, rounded down: together never more than one."""
    people = [
        np.array(data.draw(st.lists(VALUES, min_size=2 * k, max_size=2 * k))).reshape(k, 2)
        for k in (data.draw(st.integers(1, 6)), data.draw(st.sampled_from([1, 3, 7, 1000])) // 10 + 1)
    ]
    for a, b in QUARTILES:
        one, other = (utilities(counted(p, np.full(len(p), 1 / len(p))), a, b) for p in people)
        nobody = np.zeros_like(one)
        for first, second in ((one, other), (one, nobody), (other, nobody)):
            assert np.abs(first - second).max() <= b * UNIT


def test_the_bound_on_a_utility_is_attained() -> None:
    low, high = (utilities(counted(np.array([[v, 0.0]])), 1, 4)[0] for v in (0.0, 100.0))
    many = utilities(counted(np.full((10, 2), 100.0)), 1, 4)[0]
    more = utilities(counted(np.vstack([np.full((9, 2), 100.0), [[0.0, 0.0]]])), 1, 4)[0]
    assert np.abs(many - more).max() == 4 * UNIT
    assert np.abs(low - high).max() <= 4 * UNIT


def test_counts_are_whole_and_the_same_in_any_order_and_blocks() -> None:
    rng = np.random.default_rng(4)
    rows, weights = rng.uniform(-20, 120, (5000, 2)), rng.uniform(size=5000)
    rows[::7] = math.nan
    whole = counted(rows, weights)
    order = rng.permutation(5000)
    parts = sum(counted(rows[part], weights[part]) for part in np.array_split(order, 7))
    assert whole.dtype == np.int64
    np.testing.assert_array_equal(parts, whole)
    # A row that misses one column counts in none.
    present = np.isfinite(rows).all(axis=1)
    np.testing.assert_array_equal(whole.sum(axis=1), np.floor(weights * UNIT)[present].sum())


# -- the cost of draws and surface together -----------------------------------------------------------


@cache
def lattice(d: int, order: int = 2) -> LatticeDesign:
    return LatticeDesign(tuple("abc"[:d]), np.zeros(d), np.full(d, 12.0), np.ones(d), order)


def planned(
    design: Any, epsilon: float, delta: float, adjacency: Any = "replace", **knobs: Any
) -> ReleasePlan:
    n = knobs.pop("n", 10_000)
    return plan_release(
        design,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        units_per_sum=min(n, 2**17),
        depth=min(n, 2**17),
        roundings=1,
        largest_total=max(n, 2**17),
        **knobs,
    )


def quantile_plan(
    d: int, epsilon: float, delta: float, share: float = 0.1
) -> tuple[QuantilePlan, ReleasePlan]:
    reserve = reserved(planned(lattice(d), epsilon, delta))
    return plan_quantiles(np.zeros(d), np.full(d, 12.0), reserve, share=share), reserve


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (5.0, 1e-9)])
def test_draws_and_surface_cost_at_most_the_stated_epsilon_by_dp_accounting(
    d: int, epsilon: float, delta: float
) -> None:
    """Each draw as the worst pair of bounded range, and as pure DP of half its range in the total."""
    plan, reserve = quantile_plan(d, epsilon, delta)
    assert plan.draws == 2 * d
    both = pld.from_gaussian_mechanism(1 / plan.surface_mu, value_discretization_interval=1e-4)
    # Randomised response with log-odds of half the range: the worst that an exact draw can do.
    half = common.DifferentialPrivacyParameters(plan.epsilon_draw / 2, 0)
    for _ in range(plan.draws):
        both = both.compose(pld.from_privacy_parameters(half, value_discretization_interval=1e-4))
    spent = (
        both.get_delta_for_epsilon(epsilon - reserve.slack) * math.exp(reserve.slack) + reserve.extra_delta
    )
    assert spent <= delta
    # And not wasteful: at 1.1 times less epsilon it would be too much.
    assert both.get_delta_for_epsilon(epsilon / 1.1) > delta


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_an_exponential_mechanism_with_the_worst_utilities_is_covered(d: int, epsilon: float) -> None:
    """The exact law of one draw on neighbours whose utilities move by +-b, against the Gaussian counted."""
    plan, _ = quantile_plan(d, epsilon, 1e-6)
    rng = np.random.default_rng(d)
    for _ in range(20):
        u = rng.uniform(-30, 0, 50)
        v = u + rng.choice([-1.0, 1.0], 50)
        laws = [np.exp(plan.epsilon_draw * w / 2) for w in (u, v)]
        p, q = (law / law.sum() for law in laws)
        logs = np.log(p / q)
        assert logs.max() - logs.min() <= plan.epsilon_draw * (1 + 1e-12)
        assert np.abs(logs).max() <= plan.epsilon_draw * (1 + 1e-12)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_the_share_is_of_the_squared_noise_budget(share: float) -> None:
    plan, reserve = quantile_plan(2, 1.0, 1e-6, share)
    plain = planned(lattice(2), 1.0, 1e-6)
    assert plan.surface_mu == pytest.approx(plain.mu * math.sqrt(1 - share), rel=1e-5)
    assert reserve.slack >= plain.slack
    charge = plan.charge(reserve, "both", False)
    assert charge.bounded_range
    assert charge.draws == ((plan.epsilon_draw, 4),)
    assert (charge.epsilon, charge.delta) == (1.0, 1e-6)


@pytest.mark.parametrize(
    ("share", "probabilities"), [(0.0, QUARTILES), (1.0, QUARTILES), (0.1, ((0, 4),)), (0.1, ((4, 4),))]
)
def test_odd_plans_are_refused(share: float, probabilities: Any) -> None:
    reserve = reserved(planned(lattice(1), 1.0, 1e-6))
    with pytest.raises(InvalidArgument, match="inside"):
        plan_quantiles(np.zeros(1), np.ones(1), reserve, share=share, probabilities=probabilities)


@settings(max_examples=60)
@given(
    st.integers(1, 5),
    st.floats(0, 8).map(lambda p: int(10**p)),
    st.floats(-2, 1.5).map(lambda p: 10**p),
    st.floats(-12, -3).map(lambda p: 10**p),
    st.lists(st.floats(0, 1), min_size=10, max_size=10),
    st.sampled_from(ADJACENCIES),
)
def test_what_was_charged_holds_whatever_the_quartiles(
    d: int, n: int, epsilon: float, delta: float, places: list[float], adjacency: Any
) -> None:
    """After the charge nothing may fail, or budget would be lost: the reserve covers every design."""
    widths = np.array([1.0, 30.0, 1e-3, 1.0, 5.0])[:d]
    names = tuple("abcde")[:d]

    def design_for(quartiles: np.ndarray | None) -> Any:
        choice = choose_bandwidth(
            "private",
            columns=names,
            lower=np.zeros(d),
            upper=widths,
            n=n,
            epsilon=epsilon,
            quartiles=quartiles,
        )
        if d > 3:
            return RandomDesign(names, np.zeros(d), widths, choice.values, n_pairs=1024)
        ladder = choice.ladder
        box = names, np.zeros(d), widths, choice.values
        return LatticeDesign(*box, scales=ladder.scales, masses=ladder.masses)

    drawn = widths[:, None] * np.array(places).reshape(5, 2)[:d]
    largest, design = design_for(None), design_for(drawn)
    if largest.n_pairs + design.n_pairs > 60_000:
        return
    reserve = reserved(planned(largest, epsilon, delta, adjacency, n=n))
    plan = plan_quantiles(np.zeros(d), widths, reserve)
    held = plan.held(planned(design, epsilon, delta, adjacency, n=n, mu=plan.surface_mu), reserve)
    assert held.mu <= plan.surface_mu


def test_a_plan_beyond_the_reserve_is_refused() -> None:
    plan, reserve = quantile_plan(1, 1.0, 1e-6)
    with pytest.raises(InvalidArgument, match="nothing more was read"):
        plan.held(planned(lattice(1), 1.0, 1e-6, mu=plan.surface_mu * 1.01), reserve)


# -- the draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, 5])
def test_quartiles_of_many_records_are_close(seed: int | None) -> None:
    rng = np.random.default_rng(2)
    rows = np.stack([rng.normal(40, 8, 20_000), rng.uniform(-10, 10, 20_000)], axis=1)
    plan, _ = quantile_plan(2, 1.0, 1e-6)
    plan = QuantilePlan(LOWER, UPPER, plan.probabilities, plan.epsilon_draw, plan.surface_mu)
    drawn = draw_quantiles(plan, [counted(rows[:9000]), counted(rows[9000:])], seed)
    np.testing.assert_allclose(drawn[0], 40 + 8 * 0.6745 * np.array([-1, 1]), atol=0.6)
    np.testing.assert_allclose(drawn[1], [-5, 5], atol=0.6)
    # A draw is one of the public edges: nothing of a record's digits is left in it.
    edges = (drawn - LOWER[:, None]) / (UPPER - LOWER)[:, None] * CELLS
    np.testing.assert_allclose(edges, np.rint(edges), atol=1e-6)


def test_a_draw_has_the_law_of_the_exponential_mechanism() -> None:
    """Three records on four edges that matter: frequencies against exp(epsilon u / 2b)."""
    plan = QuantilePlan(np.zeros(1), np.ones(1), ((1, 2),), 4.0, 1.0)
    counts = np.zeros((1, CELLS), np.int64)
    counts[0, [CELLS // 4, CELLS // 2, 3 * CELLS // 4]] = UNIT
    drawn = np.array([draw_quantiles(plan, [counts], None)[0, 0] for _ in range(1500)])
    u = utilities(counts, 1, 2)[0] / UNIT
    law = np.exp(4.0 * u / (2 * 2))
    law /= law.sum()
    where = np.arange(CELLS + 1) / CELLS
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.1)):
        expected = law[(where >= low) & (where < high)].sum()
        measured = np.mean((drawn >= low) & (drawn < high))
        assert abs(measured - expected) < 4.5 * math.sqrt(expected * (1 - expected) / drawn.size)


# -- the whole release --------------------------------------------------------------------------------


def table(n: int = 4000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"x": rng.normal(0, 1, n), "y": rng.normal(2, 0.5, n), "who": rng.integers(0, 3000, n)}
    )


QUARTERS = np.array([[-1.0, 1.0]])
BOX = {"x": (-40.0, 40.0), "y": (-40.0, 40.0)}


def study_of(frame: pd.DataFrame, **knobs: Any) -> PrivateData:
    return PrivateData(frame, bounds=BOX, budget=dpm.Budget(2.0, 1e-5), **knobs)


@pytest.mark.parametrize(
    "knobs",
    [{}, {"adjacency": "add_remove", "n_guess": 4000, "n_max": 10_000}, {"unit": "person", "person": "who"}],
)
def test_one_charge_for_both_and_a_bandwidth_that_fits_the_data(
    knobs: dict[str, Any], tmp_path: Path
) -> None:
    study = study_of(table(), ledger=tmp_path / "ledger.jsonl", **knobs)
    result = dpm.DensityModes(study, ["x", "y"], bandwidth="private").fit(epsilon=1.0, delta=1e-6)
    (entry,) = study.ledger.entries()
    assert entry.status == "released"
    assert entry.charge.mechanism == "quartiles and surface"
    assert (entry.charge.epsilon, entry.charge.delta) == (1.0, 1e-6)
    assert result.privacy is not None
    assert result.privacy.epsilon == 1.0
    assert result.privacy.mechanism == "quartiles, surface (discrete Gaussian)"
    assert result.bandwidth_rule.startswith("private (quartiles)")
    widest = result.surface.surface.design.bandwidth
    public = choose_bandwidth(
        "reference", columns=("x", "y"), lower=np.full(2, -40.0), upper=np.full(2, 40.0), n=4000, epsilon=1.0
    ).values
    # The bounds are twenty times too wide, and the columns' spreads are 1 and .5.
    assert np.all(widest < public / 4)
    assert result.n_modes == 1
    np.testing.assert_allclose(result.modes.to_numpy()[0], [0.0, 2.0], atol=0.4)


def test_the_charge_is_before_the_first_read_and_stays_when_reading_fails(monkeypatch: Any) -> None:
    study = study_of(table())
    seen: list[list[str]] = []
    blocks = type(study._rows).blocks

    def looked_at(self: Any, names: Any, rows: int) -> Any:
        seen.append([entry.status for entry in study.ledger.entries()])
        if len(seen) == state["fail_at"]:
            raise OSError(5, "the disk went away")
        return blocks(self, names, rows)

    monkeypatch.setattr(type(study._rows), "blocks", looked_at)
    state = {"fail_at": 0}
    model = dpm.DensityModes(study, ["x"], bandwidth="private")
    model.fit(epsilon=0.5, delta=1e-6)
    # Two passes, one charge.
    assert seen == [["charged, unfinished"]] * 2
    for number in (3, 5):
        state["fail_at"] = number
        with pytest.raises(OSError, match="the disk went away"):
            model.fit(epsilon=0.1, delta=1e-6)
    assert [e.status for e in study.ledger.entries()] == ["released", *["charged, unfinished"] * 2]


def test_a_refusal_reads_and_charges_nothing(monkeypatch: Any) -> None:
    study = study_of(table())
    monkeypatch.setattr(type(study._rows), "blocks", None)
    with pytest.raises(BudgetExceeded):
        dpm.DensityModes(study, ["x"], bandwidth="private").fit(epsilon=3.0, delta=1e-6)
    with pytest.raises(InvalidArgument):
        dpm.DensityModes(study, ["x"], bandwidth="private").fit(epsilon=1.0, delta=1e-6, seed=-1)
    assert not study.ledger.entries()


def test_missing_rows_do_not_count() -> None:
    frame = table()
    holes = frame.copy()
    holes.loc[::2, "x"] = math.nan
    surfaces = [
        dpm.DensityModes(study_of(f), ["x", "y"], bandwidth="private")
        .fit(epsilon=1.0, delta=1e-6, seed=1)
        .surface
        for f in (frame, holes)
    ]
    full, half = (s.surface.design.bandwidth for s in surfaces)
    np.testing.assert_allclose(half, full, rtol=0.2)


def test_weights_move_the_quartiles() -> None:
    frame = table()
    # All the weight near the centre: the spread of what counts is a quarter.
    frame["w"] = np.where(np.abs(frame["x"]) < 0.3, 1.0, 0.0)
    plain, weighted = (
        dpm.DensityModes(study_of(frame, **knobs), ["x"], bandwidth="private")
        .fit(epsilon=1.9, delta=1e-6, seed=3)
        .surface.surface.design.bandwidth[0]
        for knobs in ({}, {"weights": "w", "max_weight": 1.0})
    )
    assert weighted < 0.5 * plain


def test_the_shape_of_a_release_follows_from_its_quartiles_alone() -> None:
    """Two tables with the same drawn quartiles have releases of the same length and noise scale."""
    surfaces = []
    for seed in (0, 1):
        frame = pd.DataFrame({"x": np.random.default_rng(seed).normal(seed, 1, 3000)})
        study = PrivateData(frame, bounds={"x": (-40, 40)}, budget=dpm.Budget(2.0, 1e-5))
        model = dpm.DensityModes(study, bandwidth="private")
        request = model._request(study, model._coordinates(study), 1.0, 0)
        surfaces.append(
            study.release_scaled_surface(
                lambda drawn, ask=request.design: ask(None if drawn is None else QUARTERS),
                model._coordinates(study),
                epsilon=1.0,
                delta=1e-6,
            )
        )
    assert surfaces[0].vector.size == surfaces[1].vector.size
    assert surfaces[0].privacy.noise_scale == surfaces[1].privacy.noise_scale
