"""Whether values stand on a grid: found where they do, and not where densities merely have many modes."""

from __future__ import annotations

import numpy as np
import pytest

from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.heaping import heaping_steps
from pydpmode.numerics.scale_choice import choose_reading
from pydpmode.numerics.spectral_surfaces import LatticeSurface

LADDER = {"scales": (1.0, 0.5, 0.25, 0.125), "masses": (0.4, 0.3, 0.2, 0.1)}


def surface(x: np.ndarray, low: float, high: float, bandwidth: float, sigma: float = 4.2) -> LatticeSurface:
    """Return a ladder with noise of a release at epsilon 1."""
    design = LatticeDesign(("x",), np.array([low]), np.array([high]), np.array([bandwidth]), 2, 0.5, **LADDER)
    values = np.clip(x, low, high)[None]
    total, sums = feature_sum(design, values, None, 1e-12)
    n = float(total)
    random = np.random.default_rng(5)
    variance = sigma**2 / (n**2 * design.pair_weights)
    noise = random.standard_normal((2, design.n_pairs)) * np.sqrt(variance / 2)
    return LatticeSurface(design, sums / n + noise[0] + 1j * noise[1], variance, n, design.bandwidth, 2)


RANDOM = np.random.default_rng(11)
NORMAL = RANDOM.normal(50, 10, 50_000)


@pytest.mark.parametrize(
    ("x", "step"),
    [
        (np.round(NORMAL), 1.0),
        (np.floor(NORMAL) + 0.25, 1.0),
        (np.where(RANDOM.random(50_000) < 0.3, np.round(NORMAL), NORMAL), 1.0),
        (np.round(NORMAL / 2) * 2, 2.0),
        (np.round(NORMAL / 5) * 5, 5.0),
    ],
)
def test_a_grid_is_found_with_its_step(x: np.ndarray, step: float) -> None:
    assert heaping_steps(surface(x, 0, 100, 3.2))[0] == pytest.approx(step, rel=0.03)


def bumps(count: int, sd: float) -> np.ndarray:
    return RANDOM.integers(0, count, 50_000) * 10.0 + 25 + RANDOM.normal(0, sd, 50_000)


def claw() -> np.ndarray:
    narrow = RANDOM.integers(0, 5, 50_000) * 0.5 - 1 + RANDOM.normal(0, 0.1, 50_000)
    return np.where(RANDOM.random(50_000) < 0.5, RANDOM.normal(0, 1, 50_000), narrow) * 10 + 50


@pytest.mark.parametrize(
    "x",
    [
        NORMAL,
        claw(),
        bumps(2, 0.4),
        bumps(5, 1.5),
        bumps(5, 0.4),
        RANDOM.uniform(0, 100, 50_000),
        np.minimum(RANDOM.exponential(40, 50_000), 60),
        np.full(50_000, 37.0),
        np.where(RANDOM.random(50_000) < 0.5, 20.0, 80.0),
        RANDOM.standard_t(2, 50_000) * 5 + 50,
    ],
    ids=["normal", "claw", "two", "five", "narrow five", "uniform", "piled", "constant", "two atoms", "t2"],
)
def test_what_is_no_grid_is_none(x: np.ndarray) -> None:
    assert heaping_steps(surface(x, 0, 100, 3.2))[0] == 0


def test_noise_is_no_grid() -> None:
    for seed in range(20):
        x = np.random.default_rng(seed).normal(50, 10, 40)
        assert heaping_steps(surface(x, 0, 100, 8.0, sigma=40.0))[0] == 0


def test_readings_narrower_than_the_step_are_left_out() -> None:
    whole = choose_reading(surface(np.round(NORMAL), 0, 100, 3.2))
    assert whole.heaped[0][0] == "x"
    assert whole.surface.bandwidth[0] >= 0.75
    assert min(whole.ratios) * 3.2 >= 0.74
    assert whole.coarse == ()
    assert max(whole.significant) == 1
    # The step is beyond what can be read: said, not hidden.
    coarse = choose_reading(surface(np.round(NORMAL / 5) * 5, 0, 100, 2.0))
    assert coarse.ratio == 1
    assert dict(coarse.coarse)["x"] == pytest.approx(5.0, rel=0.03)
