"""A column of few values beside a continuous one: noise along its ridges must not pass for modes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from pydpmode.numerics import mode_seeking
from pydpmode.numerics.kernel_surface import KernelSurface
from pydpmode.numerics.mode_seeking import find_modes
from pydpmode.numerics.ridges import narrow_axes

BOUNDS = {"flag": (0.0, 1.0), "x": (0.0, 100.0)}


def two_values(seed: int, n: int, share: float) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame({"flag": (random.random(n) < share).astype(float), "x": random.normal(50, 10, n)})


def four_groups(seed: int, n: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    middle = np.array([[0.25, 25.0], [0.25, 75.0], [0.75, 25.0], [0.75, 75.0]])[random.integers(0, 4, n)]
    at = middle + random.normal(size=(n, 2)) * (0.08, 8.0)
    return pd.DataFrame(at, columns=["flag", "x"])


def count(table: pd.DataFrame, seed: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpm.errors.PydpmodeWarning)
        return dpm.DensityModes(table, bounds=BOUNDS).fit(1.0, 1e-6, seed=seed).n_modes


def test_the_axis_of_few_values_is_narrow() -> None:
    rows = two_values(0, 3000, 0.5).to_numpy()
    surface = KernelSurface.from_points(rows, np.array([0.05, 5.0]), lower=[-1, 0], upper=[2, 100])
    at = find_modes(surface, n_modes=2, refine=False).locations
    assert sorted(np.round(at[:, 0])) == [0, 1]
    assert narrow_axes(surface, at).tolist() == [[True, False]] * 2


def test_no_axis_of_a_smooth_density_is_narrow() -> None:
    rows = four_groups(0, 3000).to_numpy()
    surface = KernelSurface.from_points(rows, np.array([0.05, 5.0]), lower=[0, 0], upper=[1, 100])
    assert not narrow_axes(surface, find_modes(surface, refine=False).locations).any()


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_false_modes_along_ridges_are_rare(share: float) -> None:
    found = np.array([count(two_values(500 + k, 5000, share), k) for k in range(40)])
    assert found.min() == 2
    # Without the rules of ridges a fifth of the fits and more have a false mode; the rate is 5%.
    assert (found > 2).sum() <= 6


def test_two_modes_on_a_ridge_are_found() -> None:
    random = np.random.default_rng(30)
    table = two_values(3, 5000, 0.5)
    table["x"] = np.where(random.random(5000) < 0.5, 30.0, 70.0) + random.normal(0, 6, 5000)
    assert count(table, 1) == 4


def test_smooth_densities_keep_their_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [four_groups(k, 2000) for k in range(8)]
    with_rules = [count(table, k) for k, table in enumerate(tables)]
    monkeypatch.setattr(mode_seeking, "survive_on_ridges", lambda *given: given[2])
    assert [count(table, k) for k, table in enumerate(tables)] == with_rules
