"""Audits of DP-PMS: one response replaced, seen from several public predictor values at once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from pydpmode.numerics.correlated_noise import Whitening
from pydpmode.numerics.noisy_trace import NoisyTrace
from pydpmode.privacy import pms
from pydpmode.privacy.grams_options import GramsOptions
from pydpmode.privacy.pms_plan import PmsPlan, PmsRequest, PublicDesign, Starts
from pydpmode.results.coordinates import Coordinate

from .cases import AuditCase, FloatArray, dealt_noise, planted
from .grams_cases import MIDDLE, SIDE, Rows, passes

EPSILON, DELTA = 1.0, 0.05
# Two rows at each place, in bandwidths. A row at 0 has weight at all of the grid: the overlap is near 2.
PREDICTORS = np.repeat([0.0, -1.0, 1.0], 2)
GRID = np.arange(-1.0, 1.01, 0.4)
_OTHERS = (MIDDLE,) * (PREDICTORS.size - 1)
TURNED: tuple[Rows, Rows] = ((MIDDLE - 1, *_OTHERS), (MIDDLE + 1, *_OTHERS))
Plant = Callable[[], AbstractContextManager[Any]]


def make_plan(options: GramsOptions, starts: Starts) -> PmsPlan:
    """Return a plan with one predictor; bandwidths of 1 make lengths bandwidths."""
    request = PmsRequest(
        response=Coordinate("y", "y", "identity", "number"),
        predictors=PREDICTORS[:, None],
        names=("x",),
        bandwidth=np.ones(2),
        epsilon=EPSILON,
        delta=DELTA,
        options=options,
        grid=GRID[:, None],
        starts=starts,
    )
    return request.plan(np.zeros(1), np.full(1, SIDE), PREDICTORS.size, 2**17)


def scores(
    runs: int,
    seed: int | None,
    *,
    options: GramsOptions,
    starts: Starts = "grid",
    tables: tuple[Rows, Rows] = TURNED,
    plant: Plant = nullcontext,
    noise_share: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Return the log-likelihood ratio of all rounds of each release, at the positions it went through."""
    with plant():
        plan = make_plan(options, starts)
        noise = dataclasses.replace(plan.noise, scale=plan.noise_scale * noise_share)
        plan = dataclasses.replace(plan, calibration=dataclasses.replace(plan.calibration, noise=noise))
        first, second = (
            np.array([_log_ratio(plan, traces, tables) for traces in _releases(plan, rows, runs, seed, side)])
            for side, rows in enumerate(tables)
        )
    return first, second


def _releases(
    plan: PmsPlan, rows: Rows, runs: int, seed: int | None, side: int
) -> Iterator[tuple[NoisyTrace, ...]]:
    if seed is not None:
        yield from (pms.run_pms(plan, passes(rows), (seed * 2 + side) * 10**6 + i) for i in range(runs))
        return
    scale = plan.noise_scale / plan.noise.lattice
    with dealt_noise(pms, plan.length, scale, runs * plan.rounds.number, None):
        yield from (pms.run_pms(plan, passes(rows), None) for _ in range(runs))


def _log_ratio(plan: PmsPlan, traces: tuple[NoisyTrace, ...], tables: tuple[Rows, Rows]) -> float:
    total = 0.0
    for g, trace in enumerate(traces):
        for t in range(plan.rounds.number):
            here = trace.positions[t]
            # Divided by public weights after the noise: multiplied by them again, the noise is white.
            sums = np.stack([trace.densities[t], trace.gradients[t][:, 0]]) * plan.design.totals[g]
            seen = _whitened(plan, here, sums)
            own = plan.design.weights[g]
            for rows, sign in zip(tables, (-1, 1), strict=True):
                mean = _whitened(plan, here, plan.rounds.kernel.sums(here, np.array([rows]), own))
                total -= sign * float(np.sum((seen - mean) ** 2)) / (2 * plan.noise_scale**2)
    return total


def _whitened(plan: PmsPlan, here: FloatArray, sums: FloatArray) -> FloatArray:
    white = Whitening.correlated(here) if plan.rounds.correlated else Whitening.independent(len(here))
    return np.asarray(np.array(plan.calibration.scales)[:, None] * (sums @ white.forward.T))


# -- planted faults --------------------------------------------------------------------------------------


def nearest_value_only() -> AbstractContextManager[Any]:
    """Take each response as if it moved the statistics at one grid value alone, its nearest."""

    def overlap(self: PublicDesign, ascents: int, correlated: bool) -> float:
        most = float(np.max(self.weights))
        return float(most * np.sqrt(1 if correlated else ascents))

    return planted((PublicDesign, "overlap", overlap))


_ONE = GramsOptions(T=1, k=1, density_share=0.01)
# The ascents of the public grid are a bandwidth apart, and follow each other's noise.
_ROUNDS = GramsOptions(T=3, k=12, density_share=0.5)
_DRAWN = GramsOptions(T=1, k=1, density_share=0.01, eps_init=0.1, candidates=((MIDDLE,),))


def _case(what: str, fault: str = "", *, runs: int = 10_000, quick: int, **more: Any) -> AuditCase:
    pair = "" if fault else "one response to the other side"
    run = functools.partial(scores, **more)
    return AuditCase(f"partial mean shift, {what}", pair, EPSILON, DELTA, run, fault, runs, quick)


CASES = [
    _case("one ascent at each of six values", quick=3_000, options=_ONE),
    _case("three rounds of twelve ascents", quick=0, options=_ROUNDS),
    _case("drawn starts", quick=0, options=_DRAWN, starts="dap"),
    _case(
        "one ascent at each of six values",
        "a response counted at its nearest value alone",
        quick=3_000,
        options=_ONE,
        plant=nearest_value_only,
    ),
]
