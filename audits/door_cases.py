"""Audits through the door: a table, its ledger and everything up to the released object, each time anew."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pandas as pd

import pydpmode as dpm
from pydpmode.numerics.designs import Design, LatticeDesign
from pydpmode.privacy import private_data
from pydpmode.privacy.private_data import PrivateData
from pydpmode.results.released_surface import ReleasedSurface

from .cases import AuditCase, FloatArray, planted

EPSILON, DELTA = 1.0, 0.05
SIDE = 3.0
FIRST, SECOND = (np.array([0.0, 0.4, 0.9]), np.array([0.0, 0.4, SIDE]))
Plant = Callable[[], AbstractContextManager[Any]]


def _design(lower: FloatArray, upper: FloatArray, bandwidth: float) -> LatticeDesign:
    box = (lower, upper, np.full(1, bandwidth))
    return LatticeDesign(("x",), *box, 2, 0.5, 0.5, 3.5)


def _open(rows: FloatArray) -> PrivateData:
    return PrivateData(
        pd.DataFrame({"x": rows}), bounds={"x": (0.0, SIDE)}, budget=dpm.Budget(EPSILON, DELTA)
    )


def _surface(rows: FloatArray, seed: int | None) -> ReleasedSurface:
    study = _open(rows)
    at = [study.coordinate("x")]
    return study.release_surface(_design(*study.box(at), 1.0), at, epsilon=EPSILON, delta=DELTA, seed=seed)


def _scaled(rows: FloatArray, seed: int | None) -> ReleasedSurface:
    """Release quartiles, then a surface whose bandwidth follows them."""
    study = _open(rows)
    at = [study.coordinate("x")]
    lower, upper = study.box(at)

    def design(quartiles: FloatArray | None) -> Design:
        spread = 0.5 if quartiles is None else float(np.clip(quartiles[0, 1] - quartiles[0, 0], 0.5, 1.0))
        return _design(lower, upper, spread)

    return study.release_scaled_surface(design, at, epsilon=EPSILON, delta=DELTA, seed=seed)


def _position(surface: ReleasedSurface) -> float:
    """Return the log-likelihood ratio of the surface alone, given its (released) design."""
    design = surface.design
    means = []
    for rows in (FIRST, SECOND):
        phase = np.outer((rows - design.lower[0]) / design.bandwidth[0], design.frequencies[:, 0])
        root = np.sqrt(design.pair_weights)
        parts = [[math.sqrt(design.zero_weight) * len(rows)], root * np.cos(phase).sum(axis=0)]
        means.append(np.concatenate([*parts, root * np.sin(phase).sum(axis=0)]))
    middle = surface.vector - (means[0] + means[1]) / 2
    return float(middle @ (means[1] - means[0])) / surface.privacy.noise_scale**2


def _upper_bound(surface: ReleasedSurface) -> float:
    return float(surface.upper[0])


def scores(
    runs: int,
    seed: int | None,
    *,
    release: Callable[[FloatArray, int | None], ReleasedSurface],
    score: Callable[[ReleasedSurface], float],
    plant: Plant = nullcontext,
) -> tuple[FloatArray, FloatArray]:
    """Return the scores of whole releases, each from a table that is opened anew."""
    with plant():
        first, second = (
            np.array([score(release(rows, None if seed is None else i + side * runs)) for i in range(runs)])
            for side, rows in enumerate((FIRST, SECOND))
        )
    return first, second


def bounds_from_rows() -> AbstractContextManager[Any]:
    """Take the bounds from the rows instead of from the user."""

    def read(_: Any, source: Any, *__: Any) -> dict[str, tuple[float, float]]:
        rows = next(source.blocks(["x"], 100))[0]
        return {"x": (float(rows.min()), float(rows.max()))}

    return planted((private_data, "read_bounds", read))


def _case(pair: str, fault: str = "", *, runs: int, quick: int, **what: Any) -> AuditCase:
    return AuditCase(
        "the door, " + what.pop("what"),
        pair,
        EPSILON,
        DELTA,
        functools.partial(scores, **what),
        fault,
        runs,
        quick,
        power=0.0,
    )


CASES = [
    _case("one row replaced", what="surface", release=_surface, score=_position, runs=10_000, quick=0),
    _case(
        "one row replaced",
        what="quartiles and surface",
        release=_scaled,
        score=_position,
        runs=10_000,
        quick=0,
    ),
    _case(
        "",
        "bounds taken from the rows",
        what="surface",
        release=_surface,
        score=_upper_bound,
        runs=200,
        quick=120,
        plant=bounds_from_rows,
    ),
]
