"""What is said of branches before a release is what releases then show."""

from __future__ import annotations

import numpy as np
import pytest

from pydpmode.numerics.bandwidth import Ladder
from pydpmode.numerics.branch_detection import BranchPlan
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.detection import SurfacePlan
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.modal_branches import BranchSet, find_branches
from pydpmode.numerics.spectral_surfaces import spectral_surface

SD, ZERO, NOISE = 0.06, 0.5, 5.3  # NOISE: replacing one record at epsilon 1, delta 1e-5


def plan_of(n: int, h: tuple[float, float], *, noise: float = NOISE, stretch: float = 1.0) -> BranchPlan:
    surface = SurfacePlan(np.ones(2), np.array(h), Ladder(), 2, ZERO, noise, float(n))
    return BranchPlan(surface, SD, np.array([stretch]))


def released(plan: BranchPlan, share: float, seed: int) -> tuple[BranchSet, float]:
    """Return the branches of a simulated release, and the variance of the noise's slope along y."""
    n, h = int(plan.surface.n), plan.surface.bandwidth
    generator = np.random.default_rng([seed, n])
    y = np.where(generator.uniform(size=n) < share, 0.22, 0.82) + SD * generator.standard_normal(n)
    x = 0.5 + float(plan.stretch[0]) * (generator.uniform(size=n) - 0.5)
    design = LatticeDesign(("x", "y"), np.zeros(2), np.ones(2), h, 2, ZERO)
    total, sums = feature_sum(design, np.vstack([x, np.clip(y, 0, 1)]))
    white = generator.standard_normal((2, design.n_pairs)) * plan.surface.noise_scale
    noise = white / np.sqrt(design.pair_weights)
    variance = plan.surface.noise_scale**2 / (design.pair_weights * total**2)
    surface = spectral_surface(design, (sums + noise[0] + 1j * noise[1]) / total, variance, total)
    return find_branches(surface, 1), float(surface.noise.gradient[1, 1])


@pytest.mark.parametrize(
    ("n", "h", "share"),
    [
        (300, (0.088, 0.081), 1.0),
        (300, (0.088, 0.081), 0.5),
        (300, (0.088, 0.081), 0.25),
        (1000, (0.048, 0.063), 0.4),
        (1000, (0.048, 0.063), 0.1),
    ],
)
def test_the_chances_are_those_of_releases(n: int, h: tuple[float, float], share: float) -> None:
    plan, runs = plan_of(n, h), 40
    certified, seen, errors, said = [], [], [], 0.0
    for seed in range(runs):
        found, slope = released(plan, share, seed)
        mine = found.certified & (np.abs(found.estimate - 0.22) < 0.18)
        certified.append(bool(mine.any()))
        if mine.any():
            seen.append(np.unique(found.point[mine]).size / found.axes[0].size)
            errors.append(float(np.mean((found.estimate[mine] - 0.22) ** 2)))
        said = float(np.hypot(*plan.location_errors(share, slope)))
    assert plan.certified(share) == pytest.approx(np.mean(certified), abs=0.2)
    if len(seen) > runs / 4:
        assert plan.seen(share) == pytest.approx(np.mean(seen), abs=0.12)
    if share >= 0.4:
        # A branch that is seen over part of its length alone is seen where it is highest.
        assert 0.8 < np.sqrt(np.mean(errors)) / said < 1.4


def test_more_records_a_larger_share_and_less_noise_help() -> None:
    h = (0.06, 0.07)
    for better, worse in (
        (plan_of(2000, h), plan_of(600, h)),
        (plan_of(1000, h, noise=3.0), plan_of(1000, h, noise=9.0)),
        (plan_of(1000, h, stretch=0.5), plan_of(1000, h)),
    ):
        assert better.certified(0.25) * better.seen(0.25) > worse.certified(0.25) * worse.seen(0.25)
        assert better.location_errors(0.25, 1.0)[1] <= worse.location_errors(0.25, 1.0)[1]
    chances = [plan_of(700, h).certified(share) for share in (0.1, 0.25, 0.5, 1.0)]
    assert chances == sorted(chances)


def test_chances_stay_chances_at_the_ends() -> None:
    for n, noise in ((2, 1e4), (10**9, 1e-3)):
        plan = plan_of(n, (0.3, 0.2), noise=noise)
        for share in (1e-3, 0.5, 1.0):
            assert 0.0 <= plan.certified(share) <= 1.0
            assert 0.0 <= plan.seen(share) <= 1.0
    assert plan_of(10**9, (0.05, 0.05), noise=1e-3).seen(1.0) > 0.99


def test_two_predictors_have_a_ridge_of_two_dimensions() -> None:
    surface = SurfacePlan(np.ones(3), np.array([0.2, 0.2, 0.1]), Ladder(), 2, ZERO, NOISE, 3000.0)
    wide = BranchPlan(surface, SD, np.array([1.0, 1.0]))
    narrow = BranchPlan(surface, SD, np.array([0.5, 1.0]))
    assert narrow.height(1.0) > wide.height(1.0)
    assert 0.5 < wide.certified(1.0) <= narrow.certified(1.0) + 1e-9
