"""Audits of the second moments of rows clipped to a ball, with the number of rows beside them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

import pydpmode as dpm
from pydpmode.numerics.moments import Ball
from pydpmode.privacy import preprocessing
from pydpmode.privacy.preprocessing import MomentStatistic, plan_moments
from pydpmode.privacy.private_data import PrivateData

from .cases import AuditCase, FloatArray, dealt_noise, planted

EPSILON, DELTA = 1.0, 0.05
BOX = (-3.0, 3.0)
BALL = Ball(np.zeros(2), np.ones(2), 1.0)
# The first row turns by a right angle, or goes missing; it is far outside of the ball.
FIRST, TURNED, MISSING = (np.array([row, (0.5, 0.5)]) for row in ((3.0, 0.0), (0.0, 3.0), (np.nan, 3.0)))
Plant = Callable[[], AbstractContextManager[Any]]


def _exact(rows: FloatArray, adjacency: Any) -> tuple[MomentStatistic, FloatArray]:
    study = PrivateData(
        rows, bounds=[BOX, BOX], budget=dpm.Budget(EPSILON, DELTA), adjacency=adjacency, **_limit(adjacency)
    )
    at = [study.coordinate(c) for c in study.columns]
    plan = plan_moments(study, at, BALL, 2, epsilon=EPSILON, delta=DELTA)
    return plan, np.sum(list(study._each_block(at, plan.block)), axis=0)


def _limit(adjacency: str) -> dict[str, Any]:
    return {"n_max": 10} if adjacency == "add_remove" else {}


def scores(
    runs: int,
    seed: int | None,
    *,
    tables: tuple[FloatArray, FloatArray],
    adjacency: str = "replace",
    plant: Plant = nullcontext,
) -> tuple[FloatArray, FloatArray]:
    """Return the position of each release along the line between the two exact sums."""
    with plant():
        (plan, first), (_, second) = (_exact(rows, adjacency) for rows in tables)
    line = (second - first) / float((second - first) @ (second - first))
    value, one = plan.factors
    scale = plan.noise.scale / plan.noise.step
    out = []
    for side, exact in enumerate((first, second)):
        with dealt_noise(preprocessing, len(exact), scale, runs, None if seed is None else seed + side):
            drawn = [plan.finish([exact], None) for _ in range(runs)]
        vectors = np.array([[*(m.sums * value), m.total * one] for m in drawn])
        out.append((vectors - first) @ line)
    return out[0], out[1]


def not_clipped() -> AbstractContextManager[Any]:
    """Leave rows outside of the ball where they are."""
    return planted((Ball, "unit", lambda self, values: self.scaled(values) / self.radius))


def _case(pair: str, fault: str = "", **what: Any) -> AuditCase:
    quick = 40_000 if fault else 20_000
    named = "second moments, 2 columns"
    return AuditCase(named, pair, EPSILON, DELTA, functools.partial(scores, **what), fault, quick=quick)


CASES = [
    _case("one row turned by a right angle", tables=(FIRST, TURNED)),
    _case("a present row by a missing one", tables=(FIRST, MISSING)),
    _case("one row added", tables=(FIRST[1:], FIRST), adjacency="add_remove"),
    _case("", "rows outside of the ball not clipped", tables=(FIRST, TURNED), plant=not_clipped),
]
