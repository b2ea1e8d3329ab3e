"""Audits of one density surface: lattices, ladders, random features, persons, weights, missing rows."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import pydpmode as dpm
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.privacy import features, surface_release
from pydpmode.privacy.block_work import BlockWork
from pydpmode.privacy.bounds import ClippedBlock
from pydpmode.privacy.grouped_release import DeclaredLevels
from pydpmode.privacy.private_data import PrivateData
from pydpmode.privacy.surface_release import ReleasePlan, add_noise

from .cases import AuditCase, FloatArray, dealt_noise, planted

# A large delta puts the best threshold where some thousand releases can see it.
EPSILON, DELTA = 1.0, 0.05
# A box of three bandwidths on a torus of six: the opposite end is as far away as can be.
SIDE = 3.0
Plant = Callable[[], AbstractContextManager[Any]]


def table(*rows: tuple[float, ...], **more: list[float]) -> pd.DataFrame:
    """Return a data frame of the columns x1, x2, ... and whatever else is named."""
    return pd.DataFrame(list(rows), columns=[f"x{j + 1}" for j in range(len(rows[0]))]).assign(**more)


def lattice(d: int, cut: float, zero_weight: float = 0.5) -> LatticeDesign:
    """Return a lattice over the box [0, 3]^d with bandwidth 1."""
    names = tuple(f"x{j + 1}" for j in range(d))
    box = (np.zeros(d), np.full(d, SIDE), np.ones(d))
    return LatticeDesign(names, *box, 2, zero_weight, 0.5, cut)


def small_ladder() -> LatticeDesign:
    """Return a ladder in a small box: its wide scale alone decides how far two records are apart."""
    box = (np.zeros(1), np.full(1, 1.75), np.ones(1))
    return LatticeDesign(("x1",), *box, 2, 0.5, 0.5, 3.0, scales=(1.0, 0.1), masses=(0.97, 0.03))


def four_columns() -> RandomDesign:
    """Return random features on the box [0, 3]^4 with bandwidth 1/2."""
    names = tuple(f"x{j + 1}" for j in range(4))
    return RandomDesign(names, np.zeros(4), np.full(4, SIDE), np.full(4, 0.5), 2, 0.5, 1024, 5)


def exact_sums(
    tables: tuple[pd.DataFrame, pd.DataFrame],
    design: Design,
    options: dict[str, Any],
    groups: DeclaredLevels | None = None,
) -> tuple[ReleasePlan, list[NDArray[np.int64]]]:
    """Return the public plan, the same for both neighbours, and the two sums before noise."""
    sums, plans = [], []
    for rows in tables:
        bounds = {c: (lo, up) for c, lo, up in zip(design.columns, design.lower, design.upper, strict=True)}
        study = PrivateData(rows, bounds=bounds, budget=dpm.Budget(EPSILON, DELTA), **options)
        count = 1 if groups is None else groups.count
        plans.append(study.plan(design, epsilon=EPSILON, delta=DELTA, groups=count))
        sums.append(study._lattice_sum(plans[-1], [study.coordinate(c) for c in design.columns], groups))
    if (plans[0].noise_scale, plans[0].step) != (plans[1].noise_scale, plans[1].step):
        raise RuntimeError("neighbouring tables got different plans")
    return plans[0], sums


def scores(
    runs: int,
    seed: int | None,
    *,
    tables: tuple[pd.DataFrame, pd.DataFrame],
    design: Callable[[], Design],
    options: dict[str, Any] | None = None,
    plant: Plant = nullcontext,
    noise_share: float = 1.0,
    seeded: bool = False,
    groups: DeclaredLevels | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the position of each release along the line between the two exact sums.

    The likelihood ratio of Gaussian noise depends on nothing else. `seeded`: many entries, of which real
    draws would take an hour; the noise is NumPy's, and the sampler is audited by the other cases.
    """
    with plant():
        plan, sums = exact_sums(tables, design(), options or {}, groups)
    plan = dataclasses.replace(plan, noise_scale=plan.noise_scale * noise_share)
    line = (sums[1] - sums[0]) * plan.step
    line = line / (line @ line)
    out = []
    for side, exact in enumerate(sums):
        used = (1 if seeded else None) if seed is None else seed
        deal = dealt_noise(
            surface_release, plan.length, plan.noise_scale / plan.step, runs, used and used + side
        )
        start = sums[0] * plan.step
        if seeded:
            released = (
                add_noise(plan, exact, seed=10**6 * (used or 1) + side * runs + i) for i in range(runs)
            )
            out.append(np.array([(vector - start) @ line for vector in released]))
            continue
        with deal:
            out.append(np.array([(add_noise(plan, exact, None) - start) @ line for _ in range(runs)]))
    return out[0], out[1]


# -- planted faults --------------------------------------------------------------------------------------


def ceiling_ignored() -> AbstractContextManager[Any]:
    """Use weights as they are in the table, without the public ceiling."""

    def unclipped(
        self: BlockWork[Any], raw: FloatArray, votes: FloatArray | None = None, first: int = 0
    ) -> Any:
        weights = votes if self.max_weight is None else raw[-1] / self.max_weight
        return self.one(ClippedBlock(raw if self.max_weight is None else raw[:-1], weights), first)

    return planted((BlockWork, "__call__", unclipped))


def persons_by_rows() -> AbstractContextManager[Any]:
    """Give a person one vote for each of her rows."""
    return planted((PrivateData, "_votes", lambda self: np.ones(self._rows.n_rows)))


def narrowest_scale_only() -> AbstractContextManager[Any]:
    """Bound the sensitivity of a ladder by that of its narrowest scale alone."""
    original = features._lattice_oscillation_bound

    def single(design: LatticeDesign) -> float:
        return original(dataclasses.replace(design, scales=(min(design.scales),), masses=(1.0,)))

    return planted((features, "_lattice_oscillation_bound", single))


def missing_rows_only() -> AbstractContextManager[Any]:
    """Take sensitivity 1 under replacement: right for a missing row, wrong for two present ones."""
    return planted((surface_release, "exact_sensitivity", lambda *_: 1.0))


def one_level_only() -> AbstractContextManager[Any]:
    """Take the sensitivity of one level's surface for all: right for a row that stays in its level."""
    return planted((surface_release, "grouped_sensitivity", lambda own, *_: own))


_ONE_ROW = (table((0.0,)), table((SIDE,)))
_WEIGHTED = (table((0.0,), w=[5.0]), table((SIDE,), w=[1e6])), {"weights": "w", "max_weight": 1.0}
_PERSONS = (
    (
        table((0.0,), (1.0,), (2.0,), person=[7, 8, 8]),
        table((SIDE,), (1.0,), (SIDE,), (2.0,), (SIDE,), person=[9, 8, 9, 8, 9]),
    ),
    {"unit": "person", "person": "person"},
)
_ADDED = (
    (table((0.0,)), table((1.5,), (0.0,))),
    {"adjacency": "add_remove", "n_max": 2},
)
_LEVELS = {
    "tables": (table((0.0,), (1.0,), g=["a", "b"]), table((SIDE,), (1.0,), g=["b", "b"])),
    "groups": DeclaredLevels("g", ("a", "b")),
    # Little of the kernel is left to cancel between rows of one level.
    "design": lambda: lattice(1, 3.5, 0.9),
}


def _case(pair: str, fault: str = "", **what: Any) -> AuditCase:
    columns = what["tables"][0].columns.str.startswith("x").sum()
    # A fault must be found, so its test has as many runs as the long audit.
    quick = 40_000 if fault and not what.get("seeded") else 20_000
    named = f"surface{'s by level' * ('groups' in what)}, {columns} column{'s' * int(columns > 1)}"
    return AuditCase(named, pair, EPSILON, DELTA, functools.partial(scores, **what), fault, quick=quick)


CASES = [
    _case("one row replaced", tables=_ONE_ROW, design=lambda: lattice(1, 3.5)),
    _case(
        "a present row by a missing one",
        tables=(table((1.0,), (2.0,)), table((1.0,), (np.nan,))),
        design=lambda: lattice(1, 3.0, 0.9),
    ),
    _case(
        "one row replaced",
        tables=(
            table((1.0, 1.0), (0.0, 0.0), (2.0, 2.0)),
            table((1.0, 1.0), (3.0, 0.0), (2.0, 2.0)),
        ),
        design=lambda: lattice(2, 1.6),
    ),
    _case(
        "one row replaced",
        tables=(table((0.0, 0.0, 0.0)), table((SIDE, SIDE, SIDE))),
        design=lambda: lattice(3, 1.6),
    ),
    _case(
        "one row replaced",
        tables=(table((0.0,) * 4), table((SIDE,) * 4)),
        design=four_columns,
        seeded=True,
    ),
    _case("a ladder, one row replaced", tables=(table((0.0,)), table((1.75,))), design=small_ladder),
    _case(
        "one row added at the front", tables=_ADDED[0], options=_ADDED[1], design=lambda: lattice(1, 3.0, 0.1)
    ),
    _case(
        "a weight far above the ceiling",
        tables=_WEIGHTED[0],
        options=_WEIGHTED[1],
        design=lambda: lattice(1, 3.5),
    ),
    _case(
        "a person of one row by one of three",
        tables=_PERSONS[0],
        options=_PERSONS[1],
        design=lambda: lattice(1, 3.5),
    ),
    _case("one row moved to another level", **_LEVELS),
    _case("", "sensitivity of a row that stays in its level", plant=one_level_only, **_LEVELS),
    _case("", "noise halved", tables=_ONE_ROW, design=lambda: lattice(1, 3.5), noise_share=0.5),
    _case(
        "",
        "sensitivity of a missing row for present ones",
        tables=_ONE_ROW,
        design=lambda: lattice(1, 3.5),
        plant=missing_rows_only,
    ),
    _case(
        "",
        "ladder with the sensitivity of its narrowest scale",
        tables=(table((0.0,)), table((1.75,))),
        design=small_ladder,
        plant=narrowest_scale_only,
    ),
    _case(
        "",
        "bounds of the weights ignored",
        tables=(table((0.0,), w=[1.0]), table((SIDE,), w=[2.0])),
        options=_WEIGHTED[1],
        design=lambda: lattice(1, 3.5),
        plant=ceiling_ignored,
    ),
    _case(
        "",
        "a vote for each row of a person",
        tables=_PERSONS[0],
        options=_PERSONS[1],
        design=lambda: lattice(1, 3.5),
        plant=persons_by_rows,
    ),
    _case(
        "",
        "noise halved",
        tables=(table((0.0,) * 4), table((SIDE,) * 4)),
        design=four_columns,
        seeded=True,
        noise_share=0.5,
    ),
]
