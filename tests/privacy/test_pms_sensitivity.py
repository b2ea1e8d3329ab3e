"""Attacks on the sensitivity of DP-PMS: no replaced response moves a round by more than its bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.correlated_noise import Whitening
from pydpmode.privacy import pms
from pydpmode.privacy.bounds import ClippedBlock
from pydpmode.privacy.grams import R, RowPass
from pydpmode.privacy.grams_options import GramsOptions
from pydpmode.privacy.pms_plan import PmsPlan, PmsRequest, public_design
from pydpmode.results.coordinates import Coordinate

N = 80
RESPONSE = Coordinate("y", "y", "identity", "number")


def make_plan(options: GramsOptions, x: np.ndarray, starts: str = "grid", epsilon: float = 1.0) -> PmsPlan:
    p = x.shape[1]
    request = PmsRequest(
        response=RESPONSE,
        predictors=x,
        names=tuple(f"x{a}" for a in range(p)),
        bandwidth=np.array([0.1] * p + [0.8]),
        epsilon=epsilon,
        delta=1e-6,
        options=options,
        starts=starts,
    )
    return request.plan(np.array([-4.0]), np.array([4.0]), x.shape[0], 2**17)


def passes(y: np.ndarray, weights: np.ndarray | None, size: int) -> RowPass:
    def each(one: Callable[[ClippedBlock, int], R]) -> Iterator[R]:
        for first in range(0, y.size, size):
            part = slice(first, first + size)
            yield one(ClippedBlock(y[None, part], None if weights is None else weights[part]), first)

    return each


def lattice_sums(plan: PmsPlan, each: RowPass, here: np.ndarray) -> np.ndarray:
    """What one round would release without its noise, in lattice steps of the white vector."""
    none = np.zeros(plan.length, dtype=np.int64)
    if plan.accountant == "published":
        return pms._noisy_scores(plan, each, here, None, none) / plan.noise.lattice
    density, gradient = pms._noisy_statistics(plan, each, here, None, none)
    scale = np.array(plan.calibration.scales)[:, None]
    out = []
    for g, y in enumerate(here):
        independent = Whitening.independent(y.size)
        white = Whitening.correlated(y[:, None]) if plan.rounds.correlated else independent
        sums = np.stack([density[g], gradient[g]]) * plan.design.totals[g] * plan.rounds.fraction
        out.append(np.rint(scale * (sums @ white.forward.T) / plan.noise.lattice))
    return np.array(out)


@pytest.mark.parametrize(
    "options",
    [
        GramsOptions(k=6),
        GramsOptions(k=1),
        GramsOptions(k=6, noise="independent"),
        GramsOptions(k=4, kernel="gaussian4"),
        GramsOptions(k=3, kernel="legendre4", noise="independent"),
        GramsOptions(k=4, noise="independent", accountant="published", m=N),
    ],
    ids=lambda o: f"{o.kernel}-{o.noise}-{o.accountant}-{o.k}",
)
@pytest.mark.parametrize("p", [1, 2])
def test_neighbours_move_a_round_by_no_more_than_its_sensitivity(options: GramsOptions, p: int) -> None:
    generator = np.random.default_rng(p)
    x = generator.uniform(size=(N, p)) * (1.0 if p == 1 else 0.5)
    plan = make_plan(options, x)
    allowed = plan.sensitivity.total / plan.noise.lattice
    heaviest = np.argsort(-np.sum(plan.design.weights**2, axis=0))
    most = 0.0
    for trial in range(36):
        y = generator.uniform(-4, 4, size=N) * (trial % 3 > 0)
        other, weights = y.copy(), np.ones(N)
        place = int(heaviest[trial % 5]) if trial % 2 else int(generator.integers(N))
        spread = generator.choice([0.0, 0.3, 1.0, 3.0])
        here = generator.normal(size=(plan.design.grid.shape[0], plan.each)) * spread + plan.size / 2
        near = float(here[plan.design.cells[place], 0]) * 0.8 - 4
        y[place] = near + 0.8 * generator.normal()
        other[place] = near - 0.8 * generator.normal()
        if trial % 4 == 3:
            weights[place] = 0.0
        one = lattice_sums(plan, passes(y, None, 33), here)
        two = lattice_sums(plan, passes(other, weights, 33), here)
        most = max(most, float(np.linalg.norm(one - two)) / allowed)
    assert (0.02 if options.accountant == "published" else 0.2) < most <= 1


def test_the_overlap_is_the_largest_joint_weight_and_near_one_for_the_default_grid() -> None:
    x = np.random.default_rng(1).uniform(size=(400, 1))
    design = public_design(x, np.array([0.05, 0.3]), 400)
    direct = np.exp(-0.5 * (design.grid[:, 0, None] - x[:, 0] / 0.05) ** 2)
    most = np.sum(direct**2, axis=0).max()
    assert design.overlap(9, True) == pytest.approx(np.sqrt(most), rel=1e-6)
    assert design.overlap(9, False) == pytest.approx(np.sqrt(9 * most), rel=1e-6)
    assert 0.9 < design.overlap(9, True) < 1.1


def test_rows_without_predictors_count_nowhere() -> None:
    x = np.random.default_rng(2).uniform(size=(60, 1))
    x[7] = np.nan
    design = public_design(x, np.array([0.1, 0.3]), 60)
    assert design.cells[7] == -1
    assert not design.weights[:, 7].any()


def test_a_start_depends_on_the_responses_of_its_own_cell_alone() -> None:
    generator = np.random.default_rng(3)
    x = generator.uniform(size=(N, 1))
    plan = make_plan(GramsOptions(k=3), x, starts="dap", epsilon=50.0)
    y = generator.uniform(-4, 4, size=N)
    other = y.copy()
    cell = plan.design.cells[5]
    other[5] = -other[5]
    one, two = (pms._starts(plan, passes(v, None, 50), np.random.default_rng(9)) for v in (y, other))
    away = np.arange(plan.design.grid.shape[0]) < cell  # cells drawn before share the random stream
    np.testing.assert_array_equal(one[away], two[away])
    assert plan.charge("", False).draws == ((plan.epsilon_draw, 3),)
    assert plan.epsilon_draw == pytest.approx(0.1 * 50 / 3)


def test_public_starts_cost_nothing_and_the_charge_holds() -> None:
    x = np.random.default_rng(4).uniform(size=(N, 1))
    plan = make_plan(GramsOptions(), x)
    drawn = make_plan(GramsOptions(), x, starts="dap")
    assert plan.charge("", False).draws == ()
    assert plan.noise_scale < drawn.noise_scale
    assert plan.charge("", False).epsilon == 1.0
    assert make_plan(GramsOptions(accountant="rdp", m=40), x).charge("", False).delta == 1e-6


def test_correlated_noise_costs_the_same_for_any_number_of_ascents() -> None:
    x = np.random.default_rng(5).uniform(size=(N, 1))
    few, many = make_plan(GramsOptions(k=2), x), make_plan(GramsOptions(k=30), x)
    assert many.noise_scale == pytest.approx(few.noise_scale, rel=1e-6)
    wide, wider = (make_plan(GramsOptions(k=k, noise="independent"), x) for k in (2, 8))
    assert wider.noise_scale == pytest.approx(2 * wide.noise_scale, rel=1e-6)


def test_unsound_or_ill_fitting_requests_are_refused() -> None:
    x = np.random.default_rng(6).uniform(size=(N, 1))
    with pytest.raises(InvalidArgument, match="not differentially"):
        make_plan(GramsOptions(accountant="published"), x)
    with pytest.raises(InvalidArgument, match="every round over all records"):
        make_plan(GramsOptions(m=10), x)
    with pytest.raises(InvalidArgument, match="at most the number of records"):
        make_plan(GramsOptions(m=N + 1, accountant="rdp"), x)
    with pytest.raises(InvalidArgument, match="finish"):
        make_plan(GramsOptions(kernel="legendre4", noise="independent", finish="regression"), x)
    with pytest.raises(InvalidArgument, match="starts"):
        make_plan(GramsOptions(), x, starts="random")
    with pytest.raises(InvalidArgument, match="one public row per record"):
        public_design(x, np.array([0.1, 0.3]), N + 1)
    with pytest.raises(InvalidArgument, match="bandwidths"):
        public_design(x, np.array([-0.1, 0.3]), N)
    with pytest.raises(InvalidArgument, match="no row has all predictors"):
        public_design(np.full((N, 1), np.nan), np.array([0.1, 0.3]), N)
    with pytest.raises(InvalidArgument, match="near any value of grid"):
        public_design(x, np.array([0.1, 0.3]), N, [50.0])
    with pytest.raises(InvalidArgument, match="grid must be finite"):
        public_design(x, np.array([0.1, 0.3]), N, [[0.1, 0.2]])
    with pytest.raises(InvalidArgument, match="cells of two bandwidths"):
        public_design(x, np.array([1e-6, 0.3]), N)
    with pytest.raises(InvalidArgument, match="candidates"):
        make_plan(GramsOptions(candidates=[[9.0]]), x)
