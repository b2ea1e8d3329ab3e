from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from pydpmode.errors import InvalidArgument
from pydpmode.numerics import significance
from pydpmode.numerics.bandwidth import LADDERS
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.mode_candidates import grid_candidates, search_grid
from pydpmode.numerics.persistence import grid_persistence
from pydpmode.numerics.scale_choice import ladder_readings
from pydpmode.numerics.significance import (
    LEAST_PERSISTENCE,
    Look,
    check_look,
    expected_euler_characteristic,
    height_rate,
    height_threshold,
    persistence_quantile,
    persistence_threshold,
)
from pydpmode.numerics.spectral_surfaces import LatticeSurface

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "persistence_quantiles.csv"


def smooth_field(rng: np.random.Generator, nodes: tuple[int, ...], step: float) -> np.ndarray:
    """A unit field with covariance exp(-t^2/2), by convolving white noise with its kernel's root."""
    reach = int(np.ceil(5 / step))
    kernel = np.exp(-np.square(np.arange(-reach, reach + 1) * step))
    field = rng.standard_normal([n + 2 * reach for n in nodes])
    for axis in range(len(nodes)):
        field = np.apply_along_axis(np.convolve, axis, field, kernel / np.linalg.norm(kernel), "valid")
    return field


def test_euler_characteristic_in_two_dimensions_by_hand() -> None:
    u, a, b = 2.3, 7.0, 11.0
    tail = math.exp(-u * u / 2)
    by_hand = a * b * u * tail / (2 * math.pi) ** 1.5 + (a + b) * tail / (2 * math.pi) + norm.sf(u)
    assert float(expected_euler_characteristic(u, [a, b])) == pytest.approx(by_hand, rel=1e-12)


def test_euler_characteristic_in_three_dimensions_has_the_surface_and_edge_terms() -> None:
    u, side = 2.7, 4.0
    tail = math.exp(-u * u / 2)
    by_hand = (
        side**3 * (u * u - 1) * tail / (2 * math.pi) ** 2
        + 3 * side**2 * u * tail / (2 * math.pi) ** 1.5
        + 3 * side * tail / (2 * math.pi)
        + norm.sf(u)
    )
    assert float(expected_euler_characteristic(u, [side] * 3)) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("d", range(1, 9))
def test_flat_directions_do_not_count(d: int) -> None:
    lengths = np.zeros(d)
    lengths[0] = 3.0
    assert float(expected_euler_characteristic(1.5, lengths)) == pytest.approx(
        float(expected_euler_characteristic(1.5, [3.0]))
    )


@pytest.mark.parametrize("d", range(1, 9))
@pytest.mark.parametrize("rate", [0.001, 0.05, 0.5])
def test_threshold_is_the_last_level_with_that_rate(d: int, rate: float) -> None:
    lengths = np.full(d, 6.0)
    u = height_threshold(lengths, rate)
    assert float(expected_euler_characteristic(u, lengths)) == pytest.approx(rate, rel=1e-6)
    assert np.all(expected_euler_characteristic(np.linspace(u + 1e-6, u + 20, 300), lengths) <= rate)


def test_threshold_grows_with_the_box_and_starts_at_the_normal_quantile() -> None:
    assert height_threshold([0.0], 0.05) == pytest.approx(norm.isf(0.05), abs=1e-9)
    levels = [height_threshold([side, side]) for side in (0.1, 1, 10, 100, 1e6)]
    assert np.all(np.diff(levels) > 0)
    assert height_threshold([1e9] * 8) < 40


@pytest.mark.parametrize(("nodes", "step"), [((120,), 0.25), ((36, 36), 0.25)])
def test_noise_rarely_passes_the_threshold(nodes: tuple[int, ...], step: float) -> None:
    rng, runs = np.random.default_rng(8), 400
    u = height_threshold([(n - 1) * step for n in nodes], 0.05)
    passed = np.mean([smooth_field(rng, nodes, step).max() > u for _ in range(runs)])
    # Binomial sd .011 at .05; the grid sees slightly less than the field has.
    assert 0.02 <= passed <= 0.08


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, math.nan, True, "0.05", None])
def test_bad_rates_are_refused(rate: object) -> None:
    with pytest.raises(InvalidArgument, match="false_mode_rate"):
        height_threshold([1.0], rate)  # type: ignore[arg-type]


@pytest.mark.parametrize("lengths", [[-1.0], [math.nan], [math.inf], [[1.0]]])
def test_bad_lengths_are_refused(lengths: list[float]) -> None:
    with pytest.raises(InvalidArgument, match="lengths"):
        expected_euler_characteristic(2.0, lengths)


def test_table_is_what_the_committed_simulation_gave() -> None:
    with RESULTS.open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if int(row["dimension"]) <= 3]
    table = {
        (dimension, cells): quantile
        for dimension in significance._CELLS
        for cells, quantile in zip(
            significance._CELLS[dimension], significance._QUANTILES[dimension], strict=True
        )
    }
    assert {(int(r["dimension"]), float(r["cells"])) for r in rows} == set(table)
    for row in rows:
        key = (int(row["dimension"]), float(row["cells"]))
        assert abs(float(row["quantile_95"]) - table[key]) <= 0.0051


@pytest.mark.parametrize(
    ("dimension", "cells", "earlier"),
    [(1, 6, 2.37), (1, 25, 4.17), (1, 200, 5.98), (2, 25, 2.26), (2, 144, 3.10), (2, 900, 3.77)],
)
def test_table_agrees_with_an_earlier_independent_simulation(
    dimension: int, cells: float, earlier: float
) -> None:
    assert float(persistence_quantile(cells, dimension)) == pytest.approx(earlier, abs=0.1)


@pytest.mark.parametrize(("dimension", "side"), [(1, 24.0), (2, 9.0), (3, 4.0)])
def test_quantile_against_a_fresh_simulation(dimension: int, side: float) -> None:
    rng, step = np.random.default_rng(17), 0.4
    nodes = (round(side / step) + 1,) * dimension
    threshold = float(persistence_quantile(side**dimension, dimension))
    runs = 200
    found = (grid_persistence(smooth_field(rng, nodes, step)).persistence[1:] for _ in range(runs))
    passed = np.mean([bool(np.any(p > threshold)) for p in found])
    assert passed <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)
    assert passed > 0


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 8])
def test_quantile_grows_with_cells_beyond_the_table_too(dimension: int) -> None:
    values = persistence_quantile(np.geomspace(1, 1e9, 200), dimension)
    assert np.all(np.diff(values) > 0)
    assert np.all(np.isfinite(values))
    assert np.max(np.diff(values)) < 0.35


LOOKS: tuple[Look, ...] = ("only", "widest", "narrower")


def test_quantile_at_the_edges() -> None:
    assert float(persistence_quantile(0.0, 2)) == 0.0
    # On no cells at all the quantile says nothing, and the least persistence of the dimension holds.
    for d, least in LEAST_PERSISTENCE.items():
        assert float(persistence_threshold(0.0, d)) == least
    assert float(persistence_threshold(0.0, 5)) == LEAST_PERSISTENCE[3]
    np.testing.assert_array_equal(
        persistence_quantile([50.0, 800.0], 5), persistence_quantile([50.0, 800.0], 3)
    )
    with pytest.raises(InvalidArgument, match="dimension"):
        persistence_quantile(10.0, 0)


# -- several looks at one release -----------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
def test_more_looks_ask_for_more(dimension: int) -> None:
    cells = np.geomspace(0.1, 1e4, 60)
    only, widest, narrower = (persistence_threshold(cells, dimension, k) for k in LOOKS)
    assert np.all(only <= widest)
    assert np.all(widest <= narrower)
    assert np.all(only >= persistence_quantile(cells, dimension))
    assert height_rate(0.05) == 0.05
    # One look at the widest reading and six narrower ones share the rate (Bonferroni).
    assert height_rate(0.05, "widest") + 6 * height_rate(0.05, "narrower") <= 0.05


@pytest.mark.parametrize("look", ["first", "", None, 1, True])
def test_unknown_looks_are_refused(look: Any) -> None:
    with pytest.raises(InvalidArgument, match="look must be one of"):
        check_look(look)


@pytest.mark.parametrize(("dimension", "width", "runs"), [(1, 18, 150), (2, 7, 120)])
def test_pure_noise_in_a_ladder_rarely_has_a_persistent_peak(dimension: int, width: int, runs: int) -> None:
    """Five in a hundred surfaces may have one in any reading; the seed is not that of the calibration."""
    ladder = LADDERS[dimension]
    box = np.zeros(dimension), np.full(dimension, float(width)), np.ones(dimension)
    design = LatticeDesign(tuple("abc"[:dimension]), *box, scales=ladder.scales, masses=ladder.masses)
    variance = 1 / design.pair_weights
    random = np.random.default_rng(3)
    false = np.zeros(2)
    for _ in range(runs):
        noise = random.standard_normal((2, design.n_pairs)) * np.sqrt(variance)
        surface = LatticeSurface(design, noise[0] + 1j * noise[1], variance, 1.0, design.bandwidth, 2)
        seen = []
        for ratio in ladder_readings(ladder.scales):
            reading = surface.at_bandwidth(design.bandwidth * ratio).in_reading_units()
            found = grid_candidates(reading, search_grid(reading))
            height = (found.heights - found.deaths)[1:] / math.sqrt(reading.noise.value)
            look: Look = "widest" if ratio == 1 else "narrower"
            seen.append(bool(np.any(height >= persistence_threshold(found.cells[1:], dimension, look))))
        false += any(seen), seen[-1]
    assert false[0] / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    # Not silent either: thresholds far too high would hide this.
    assert false[0] > 0
    assert false[1] <= false[0]
