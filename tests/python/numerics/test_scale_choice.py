"""Which bandwidth of a ladder is read: the most modes, then the least noise; plain surfaces as they are."""

from __future__ import annotations

import numpy as np
import pytest

from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.kernel_surface import KernelSurface
from pydpmode.numerics.mode_seeking import find_modes
from pydpmode.numerics.scale_choice import ReadingChoice, choose_reading, ladder_readings
from pydpmode.numerics.spectral_surfaces import LatticeSurface, spectral_surface

SCALES, MASSES = (1.0, 0.5, 0.25, 0.125), (0.4, 0.3, 0.2, 0.1)


def released(
    x: np.ndarray, h: float, sigma: float, seed: int, scales: tuple[float, ...] = SCALES
) -> LatticeSurface:
    """Return the ladder of records on [-5, 5] with noise of scale sigma per released entry."""
    masses = MASSES if len(scales) > 1 else (1.0,)
    design = LatticeDesign(("x",), [-5.0], [5.0], [h], scales=scales, masses=masses)
    total, sums = feature_sum(design, np.ascontiguousarray(x[None, :]))
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((2, design.n_pairs)) * sigma / np.sqrt(design.pair_weights)
    phi = (sums + noise[0] + 1j * noise[1]) / total
    surface = spectral_surface(design, phi, sigma**2 / (design.pair_weights * total**2), total)
    assert isinstance(surface, LatticeSurface)
    return surface


def two_peaks(gap: float, n: int = 5000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(0, gap / 5, n) + gap * rng.integers(0, 2, n)


def test_readings_go_down_by_the_root_of_two() -> None:
    np.testing.assert_allclose(ladder_readings(SCALES), 2.0 ** (-np.arange(6, -1, -1) / 2))
    assert ladder_readings((1.0,)) == (1.0,)
    assert ladder_readings((1.0, 0.5)) == pytest.approx((0.5, 0.5**0.5, 1.0))
    assert ladder_readings((1.0, 0.98)) == (1.0,)


def test_a_surface_of_one_bandwidth_is_left_alone() -> None:
    for surface in (
        released(two_peaks(1.0), 0.3, 4.0, 1, (1.0,)),
        KernelSurface.from_points(two_peaks(1.0)[:, None], 0.3, -5, 5),
    ):
        choice = choose_reading(surface)
        assert choice.surface is surface
        assert choice.look == "only"
        assert choice.words("rule") == "rule"


def test_a_chosen_reading_is_left_alone_and_asked_for_as_much() -> None:
    chosen = choose_reading(released(two_peaks(1.0), 1.0, 4.0, 1)).surface
    again = choose_reading(chosen)
    assert again.surface is chosen
    assert again.look == "narrower"


def test_peaks_that_the_widest_bandwidth_hides_are_read_at_a_narrower_one() -> None:
    surface = released(two_peaks(1.0), 1.0, 4.0, 1)
    assert find_modes(surface).count == 1
    choice = choose_reading(surface)
    modes = find_modes(choice.surface, look=choice.look)
    assert choice.look == "narrower"
    assert choice.ratio <= 0.5
    assert modes.count == 2
    np.testing.assert_allclose(np.sort(modes.locations.ravel()), [0.0, 1.0], atol=0.1)
    assert "read at" in choice.words("ladder (public)")
    assert choice.ratios == ladder_readings(SCALES)
    assert max(choice.significant) == choice.significant[choice.ratios.index(choice.ratio)] == 2


@pytest.mark.parametrize("seed", range(4))
def test_one_hill_is_read_at_the_widest_bandwidth(seed: int) -> None:
    x = np.random.default_rng(seed).normal(0, 1, 5000)
    choice = choose_reading(released(x, 0.6, 4.0, seed))
    assert choice.ratio == 1.0
    assert choice.look == "widest"
    assert choice.words("ladder (public)") == "ladder (public)"


def test_of_readings_that_show_as_many_the_widest_is_taken() -> None:
    choice = choose_reading(released(two_peaks(3.0), 0.4, 4.0, 1))
    assert choice.significant.count(2) > 1
    assert choice.ratio == 1.0


def test_a_number_of_modes_that_is_reached_is_enough() -> None:
    surface = released(two_peaks(1.0), 1.0, 4.0, 1)
    assert choose_reading(surface, n_modes=1).ratio == 1.0
    assert choose_reading(surface, n_modes=2).ratio == choose_reading(surface).ratio
    # More than there are: as many as can be told from noise.
    assert choose_reading(surface, n_modes=9).ratio == choose_reading(surface).ratio


def test_noise_alone_rarely_shows_anything_at_any_bandwidth() -> None:
    """Two records under noise of fifty: a mode is said to be significant at most at the false-mode rate."""
    seen = 0
    for seed in range(60):
        choice = choose_reading(released(np.array([0.1, -0.2]), 1.0, 50.0, seed))
        assert isinstance(choice, ReadingChoice)
        modes = find_modes(choice.surface, look=choice.look)
        assert modes.count <= 1 or modes.significant.all()
        seen += bool(modes.significant.any())
    # Nine or more of sixty would come once in a thousand at .05.
    assert seen <= 8
