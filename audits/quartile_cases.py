"""Audits of the private quartiles: the exponential mechanism over the edges of public cells."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from pydpmode.privacy import quantiles
from pydpmode.privacy.bounds import ClippedBlock
from pydpmode.privacy.quantiles import QUARTILES, QuantilePlan, cell_weights, draw_quantiles

from .cases import AuditCase, FloatArray, planted

# Fewer cells than in the package: a draw then takes microseconds, and its law is of the same form.
CELLS = 64
EPSILON_DRAW = 1.0
LOW, HIGH = np.zeros(1), np.ones(1)
# The pair that tells most, out of a search over tables of up to twelve records; the last one moves.
FIRST = (0.3, 0.3, 0.05, 0.05, 0.0)
SECOND = (0.3, 0.3, 0.05, 0.05, 0.999)


def plan(epsilon_draw: float = EPSILON_DRAW) -> QuantilePlan:
    """Return two draws, each of `epsilon_draw`, on the interval [0, 1]."""
    return QuantilePlan(LOW, HIGH, QUARTILES, epsilon_draw, 1.0)


def law(rows: tuple[float, ...], quantile: tuple[int, int], epsilon_draw: float, cells: int) -> FloatArray:
    """Return the probabilities that the module states for one draw, edge by edge."""
    a, b = quantile
    below = np.array([sum(np.floor(r * cells) < e for r in rows) for e in range(cells + 1)])
    logs = -epsilon_draw / (2 * b) * np.abs(b * below - a * len(rows))
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def scores(runs: int, seed: int | None, *, used: float = EPSILON_DRAW) -> tuple[FloatArray, FloatArray]:
    """Return the log-likelihood ratio of both draws of each release, under the law in use."""
    with planted((quantiles, "CELLS", CELLS)):
        weights = [cell_weights(ClippedBlock(np.array([rows]), None), LOW, HIGH) for rows in (FIRST, SECOND)]
        drawn = [_draws(plan(used), counts, runs, seed, side) for side, counts in enumerate(weights)]
    ratios = [np.log(law(SECOND, q, used, CELLS)) - np.log(law(FIRST, q, used, CELLS)) for q in QUARTILES]
    first, second = (
        sum((r[np.rint(edges[:, k] * CELLS).astype(int)] for k, r in enumerate(ratios)), np.zeros(runs))
        for edges in drawn
    )
    return first, second


def _draws(used: QuantilePlan, counts: np.ndarray, runs: int, seed: int | None, side: int) -> FloatArray:
    seeds: Callable[[int], int | None] = (
        (lambda i: None) if seed is None else (lambda i: (seed * 2 + side) * 10**6 + i)
    )
    return np.array([draw_quantiles(used, [counts], seeds(i))[0] for i in range(runs)])


_STATED = 2 * EPSILON_DRAW
CASES = [
    AuditCase(
        "quartiles, two draws", "one row from end to end", _STATED, 0.0, scores, runs=20_000, quick=10_000
    ),
    AuditCase(
        "quartiles, two draws",
        "",
        _STATED,
        0.0,
        functools.partial(scores, used=4 * EPSILON_DRAW),
        fault="utility scaled as if its sensitivity were 1",
        runs=20_000,
        quick=10_000,
    ),
    AuditCase(
        "quartiles, two draws",
        "",
        _STATED,
        0.0,
        functools.partial(scores, used=2 * EPSILON_DRAW),
        fault="the 2 in exp(epsilon u / 2 sensitivity) left out",
        runs=20_000,
        quick=10_000,
    ),
]
