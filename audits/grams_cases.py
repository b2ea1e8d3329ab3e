"""Audits of DP-GRAMS: starts, one round, many correlated ascents, minibatches, the published noise."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pydpmode.numerics.correlated_noise import Whitening, shift_factors
from pydpmode.numerics.noisy_trace import NoisyTrace
from pydpmode.numerics.score_kernels import ScoreKernel
from pydpmode.privacy import grams, grams_calibration
from pydpmode.privacy.bounds import ClippedBlock
from pydpmode.privacy.grams_options import GramsOptions
from pydpmode.privacy.grams_plan import GramsPlan, plan_grams

from .cases import AuditCase, FloatArray, dealt_noise, planted

EPSILON, DELTA = 1.0, 0.05
# The box in bandwidths, and its middle.
SIDE, MIDDLE = 12.0, 6.0
Rows = tuple[float, ...]
Plant = Callable[[], AbstractContextManager[Any]]


def make_plan(options: GramsOptions, records: int, epsilon: float, delta: float) -> GramsPlan:
    """Return a plan in one column whose box and bandwidth make lengths bandwidths."""
    return plan_grams(
        options,
        columns=("x",),
        lower=np.zeros(1),
        upper=np.full(1, SIDE),
        bandwidth=np.ones(1),
        records=records,
        block=2**17,
        epsilon=epsilon,
        delta=delta,
    )


def passes(rows: Rows) -> grams.RowPass:
    """Return one block of clipped rows, as `PrivateData` hands them out."""

    def each(one: Callable[[ClippedBlock, int], grams.R]) -> Iterator[grams.R]:
        yield one(ClippedBlock(np.array([rows]), None), 0)

    return each


def scores(
    runs: int,
    seed: int | None,
    *,
    tables: tuple[Rows, Rows],
    options: GramsOptions,
    epsilon: float = EPSILON,
    delta: float = DELTA,
    plant: Plant = nullcontext,
    noise_share: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Return the log-likelihood ratio of all rounds of each release, at the positions it went through."""
    with plant():
        plan = make_plan(options, len(tables[0]), epsilon, delta)
        noise = dataclasses.replace(plan.ascent.noise, scale=plan.noise_scale * noise_share)
        plan = dataclasses.replace(plan, ascent=dataclasses.replace(plan.ascent, noise=noise))

        @functools.lru_cache(maxsize=64)
        def means(place: bytes, side: int) -> Sequence[tuple[float, FloatArray]]:
            return _means(plan, np.frombuffer(place).reshape(-1, 1), tables[side])

        first, second = (
            np.array([_log_ratio(plan, trace, means) for trace in _traces(plan, rows, runs, seed, side)])
            for side, rows in enumerate(tables)
        )
    return first, second


def _traces(plan: GramsPlan, rows: Rows, runs: int, seed: int | None, side: int) -> Iterator[NoisyTrace]:
    if seed is not None:
        yield from (grams.run_grams(plan, passes(rows), (seed * 2 + side) * 10**6 + i) for i in range(runs))
        return
    scale = plan.noise_scale / plan.ascent.noise.lattice
    with dealt_noise(grams, plan.length, scale, runs * plan.rounds.number, None):
        yield from (grams.run_grams(plan, passes(rows), None) for _ in range(runs))


def _log_ratio(plan: GramsPlan, trace: NoisyTrace, means: Callable[[bytes, int], Any]) -> float:
    total = 0.0
    for t in range(plan.rounds.number):
        seen = _released(plan, trace, t)
        # To a millionth of a bandwidth: ascents that stand still are looked up, not computed again.
        place = np.round(trace.positions[t], 6).tobytes()
        for side, sign in ((0, -1), (1, 1)):
            logs = [
                math.log(share) - np.sum((seen - mean) ** 2) / (2 * plan.noise_scale**2)
                for share, mean in means(place, side)
            ]
            total += sign * float(np.logaddexp.reduce(logs))
    return total


def _released(plan: GramsPlan, trace: NoisyTrace, t: int) -> FloatArray:
    """Return what one round released, in the units of its noise."""
    if plan.accountant == "published":
        return np.asarray(trace.scores[t])
    stacked = np.concatenate([trace.densities[t][None], trace.gradients[t].T]) * plan.rounds.batch
    return _whitened(plan, trace.positions[t], stacked)


def _whitened(plan: GramsPlan, here: FloatArray, sums: FloatArray) -> FloatArray:
    k, d = here.shape
    white = Whitening.correlated(here) if plan.rounds.correlated else Whitening.independent(k)
    scale = np.array([plan.ascent.scales[0], *[plan.ascent.scales[1]] * d])[:, None]
    return np.asarray(scale * (sums @ white.forward.T))


def _means(plan: GramsPlan, here: FloatArray, rows: Rows) -> Sequence[tuple[float, FloatArray]]:
    """Return (probability, release without noise) of one round, for each minibatch of one or all rows."""
    if plan.rounds.batch == len(rows):
        batches, shares = [rows], [1.0]
    else:
        values, counts = np.unique(rows, return_counts=True)
        batches, shares = [(value,) for value in values], list(counts / len(rows))
    out = []
    for batch, share in zip(batches, shares, strict=True):
        sums = plan.rounds.kernel.sums(here, np.array([batch]))
        if plan.accountant == "published":
            mean = sums / plan.rounds.batch
            score = grams.stabilised_score(mean[0], mean[1:].T, plan.ascent.clip, plan.ascent.floor)
            out.append((share, score))
        else:
            out.append((share, _whitened(plan, here, sums)))
    return out


def start_scores(
    runs: int, seed: int | None, *, options: GramsOptions, plant: Plant = nullcontext
) -> tuple[FloatArray, FloatArray]:
    """Return how much nearer the released starts are to the second table's own row than to the first's."""
    tables = ((3.0, 3.0, 3.0), (3.0, 3.0, 9.0))
    with plant():
        plan = make_plan(options, 3, EPSILON, DELTA)
        first, second = (
            np.array([_nearness(trace) for trace in _traces(plan, rows, runs, seed, side)])
            for side, rows in enumerate(tables)
        )
    return first, second


def _nearness(trace: NoisyTrace) -> float:
    starts = trace.positions[0][:, 0]
    return float(np.abs(starts - 3.0).min() - np.abs(starts - 9.0).min())


# -- planted faults --------------------------------------------------------------------------------------


def one_record_for_two() -> AbstractContextManager[Any]:
    """Leave the factor of about sqrt 2 for replacement out of the correlated sensitivity."""
    original = ScoreKernel.shift_bounds

    def smaller(self: ScoreKernel, correlated: bool) -> tuple[float, float]:
        bounds = original(self, correlated)
        factors = shift_factors(self.dimension, self.order) if correlated else (1.0, 1.0)
        return bounds[0] / factors[0], bounds[1] / factors[1]

    return planted((ScoreKernel, "shift_bounds", smaller))


def amplified_twice() -> AbstractContextManager[Any]:
    """Claim the amplification of the minibatch twice: as if m/n of m/n of the rows were looked at."""
    original = grams_calibration._rdp_ratio

    def twice(epsilon: float, delta: float, rounds: int, fraction: float, *rest: Any) -> float:
        return original(epsilon, delta, rounds, fraction**2, *rest)

    return planted((grams_calibration, "_rdp_ratio", twice))


def starts_from_rows() -> AbstractContextManager[Any]:
    """Start the ascents at rows of the table, as a mean shift without privacy does."""

    def starts(plan: GramsPlan, each: grams.RowPass, _: Any) -> FloatArray:
        rows: NDArray[np.float64] = np.concatenate(list(each(lambda block, _: block.values)), axis=1)
        return np.resize(rows.T, (plan.rounds.ascents, 1)) + 0.0

    return planted((grams, "_starts", starts))


# One ascent between two records, a bandwidth from each: the gradient moves by nearly its bound.
_ONE = GramsOptions(T=1, k=1, candidates=((MIDDLE,),), density_share=0.01, eps_init=0.01)
_TURNED = ((MIDDLE, MIDDLE - 1), (MIDDLE, MIDDLE + 1))
# Ascents every .4 bandwidths: together they see nearly all of what a record can move.
_GRID = tuple((float(x),) for x in np.arange(3.0, 9.01, 0.4))
_MANY = GramsOptions(
    T=1, k=len(_GRID), candidates=_GRID, rho_init=0.1, density_share=0.99, eps_init=0.01, eta=1e-9
)
_APART = ((5.0, 1.0), (7.2, 1.0))
_BATCHES = GramsOptions(
    T=40, k=1, m=1, candidates=((MIDDLE,),), density_share=0.01, eps_init=0.01, eta=1e-9, accountant="rdp"
)
_FIVE = ((*[MIDDLE] * 4, MIDDLE - 1), (*[MIDDLE] * 4, MIDDLE + 1))
_PUBLISHED = GramsOptions(
    T=1, k=1, candidates=((MIDDLE,),), eps_init=0.01, accountant="published", noise="independent", m=2
)
_STARTS = GramsOptions(T=1, k=4, eps_init=0.5)


def _case(
    what: str,
    pair: str,
    fault: str = "",
    *,
    runs: int = 10_000,
    quick: int = 3_000,
    power: float = 0.25,
    **more: Any,
) -> AuditCase:
    run = functools.partial(scores, **more)
    return AuditCase(f"grams, {what}", pair, EPSILON, DELTA, run, fault, runs, quick, power)


CASES = [
    _case("one ascent", "a record to the other side", tables=_TURNED, options=_ONE),
    _case("sixteen correlated ascents", "a record moved", tables=_APART, options=_MANY, quick=3_000),
    _case(
        "three rounds",
        "a record to the other side",
        tables=_TURNED,
        options=dataclasses.replace(_ONE, T=3, eta=1e-9),
    ),
    # Renyi accounting of sampling without replacement is loose: no audit can come near its epsilon.
    _case(
        "minibatches of one", "a record to the other side", tables=_FIVE, options=_BATCHES, quick=0, power=0.0
    ),
    # So are the published formulas.
    _case(
        "published noise",
        "a record to the other side",
        tables=_TURNED,
        options=_PUBLISHED,
        quick=2_000,
        power=0.0,
    ),
    AuditCase(
        "grams, starts",
        "one of three records moved",
        EPSILON,
        DELTA,
        functools.partial(start_scores, options=_STARTS),
        runs=10_000,
        quick=2_000,
        power=0.0,
    ),
    _case("one ascent", "", "noise halved", tables=_TURNED, options=_ONE, noise_share=0.5),
    _case(
        "sixteen correlated ascents",
        "",
        "sqrt 2 of the sensitivity missing",
        tables=_APART,
        options=_MANY,
        quick=4_000,
        plant=one_record_for_two,
    ),
    _case(
        "minibatches of one",
        "",
        "amplification claimed twice",
        tables=_FIVE,
        options=_BATCHES,
        runs=3_000,
        quick=2_400,
        plant=amplified_twice,
    ),
    AuditCase(
        "grams, starts",
        "",
        EPSILON,
        DELTA,
        functools.partial(start_scores, options=_STARTS, plant=starts_from_rows),
        fault="start points taken from rows",
        runs=400,
        quick=200,
    ),
]
