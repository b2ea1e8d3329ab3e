"""What a plan promises of a mode is what a release then shows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pydpmode.numerics.bandwidth import LADDERS, Ladder
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.detection import SurfacePlan
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.mode_seeking import find_modes
from pydpmode.numerics.scale_choice import choose_reading
from pydpmode.numerics.spectral_surfaces import LatticeSurface, spectral_surface

ZERO = 0.5


def plan_of(d: int, ladder: Ladder, n: float = 2000.0, order: int = 2, sigma: float = 4.0) -> SurfacePlan:
    return SurfacePlan(np.full(d, 14.0), np.full(d, 1.0), ladder, order, ZERO, sigma, n)


def released(plan: SurfacePlan, x: np.ndarray, seed: int) -> LatticeSurface:
    d = plan.dimension
    design = LatticeDesign(
        tuple("abc"[:d]),
        np.zeros(d),
        plan.widths,
        plan.bandwidth,
        plan.order,
        ZERO,
        scales=plan.ladder.scales,
        masses=plan.ladder.masses,
    )
    total, sums = feature_sum(design, np.ascontiguousarray(x.T))
    white = np.random.default_rng([seed, 7]).standard_normal((2, design.n_pairs))
    noise = white * plan.noise_scale / np.sqrt(design.pair_weights)
    variance = plan.noise_scale**2 / (design.pair_weights * total**2)
    surface = spectral_surface(design, (sums + noise[0] + 1j * noise[1]) / total, variance, total)
    assert isinstance(surface, LatticeSurface)
    return surface


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("plain", [True, False])
def test_the_planned_noise_is_the_noise_of_the_lattice(d: int, order: int, plain: bool) -> None:
    plan = plan_of(d, Ladder() if plain else LADDERS[d], order=order)
    surface = released(plan, np.full((2000, d), 7.0), 1)
    for ratio in plan.readings:
        reading = surface.at_bandwidth(plan.bandwidth * ratio)
        variance, length = plan.noise(ratio)
        # The zero frequency, a third of a one-dimensional spectrum here, is left out of both.
        assert variance == pytest.approx(reading.noise.value, rel=0.03)
        assert length == pytest.approx(float(reading.noise_length[0]), rel=0.03)


def test_more_helps_and_a_larger_share_is_easier() -> None:
    spread = np.full(2, 0.7)
    chances = [
        plan_of(2, LADDERS[2]).detection_probability(share, spread) for share in (0.005, 0.02, 0.1, 0.5)
    ]
    assert chances == sorted(chances)
    assert chances[0] < 0.2
    assert chances[-1] > 0.99
    records = [plan_of(2, LADDERS[2], n).detection_probability(0.05, spread) for n in (500, 2000, 8000)]
    assert records == sorted(records)
    noises = [plan_of(2, LADDERS[2], sigma=s).detection_probability(0.05, spread) for s in (40.0, 4.0, 0.4)]
    assert noises == sorted(noises)


@pytest.mark.parametrize(
    ("d", "plain", "n", "spread"),
    [(1, True, 600, 0.5), (1, False, 600, 0.5), (2, True, 900, 0.7), (2, False, 900, 0.7)],
)
def test_a_mode_is_found_as_often_as_planned(d: int, plain: bool, n: int, spread: float) -> None:
    """A bump apart from a larger one: its share for a chance of .5 and of .9, against simulated releases."""
    plan = plan_of(d, Ladder() if plain else LADDERS[d], float(n))
    shares = np.geomspace(0.02, 0.5, 60)
    chances = np.array([plan.detection_probability(s, np.full(d, spread)) for s in shares])
    runs = 60 if plain else 30
    for wanted in (0.5, 0.95):
        share = float(np.interp(wanted, chances, shares))
        found = 0
        for run in range(runs):
            rng = np.random.default_rng([run, d, n])
            small = rng.random(n) < share
            x = np.where(small[:, None], rng.normal(11, spread, (n, d)), rng.normal(4, 1.2, (n, d)))
            choice = choose_reading(released(plan, np.clip(x, 0, 14), run))
            modes = find_modes(choice.surface, look=choice.look, refine=False)
            near = np.linalg.norm(modes.locations - 11, axis=1) < 2
            found += bool(np.any(near & modes.significant))
        # The formula takes one saddle and the best reading alone, so it may err by a tenth.
        assert abs(found / runs - wanted) < 0.1 + 3 * math.sqrt(wanted * (1 - wanted) / runs)
