"""DP-PMS: noisy partial mean shift at fixed public predictor values (the paper's Algorithm 4, made sound).

Each round adds noise to the LINEAR statistics of the responses, weighted sums of the kernel and of its
derivative at the ascents; see `pms_plan` for their sensitivity. Clipping, dividing, stepping and merging
follow the noise. Under "published" the noise goes on the clipped and divided scores instead, as in the paper.

Guarantee: (epsilon, delta)-DP for replacing one RESPONSE. Predictors are public.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..budget import PrivacySpent
from ..numerics.correlated_noise import Whitening
from ..numerics.kernels import squared_kernel_integrals
from ..numerics.noisy_trace import NoisyTrace
from ..numerics.surfaces import FloatArray
from ..results.released_partial_traces import ReleasedPartialTraces
from .bounds import ClippedBlock
from .grams import RowPass, stabilised_score
from .grams_initialisation import draw_batch, draw_starts
from .noise import discrete_gaussian, simulated_gaussian
from .pms_plan import PmsPlan, PmsRequest

PREDICTORS_NOTE = "The predictors are public: the guarantee covers the responses alone"

Batch = NDArray[np.bool_] | None


@dataclass
class _Log:
    """What the rounds release: lists over rounds of (G, k) arrays."""

    positions: list[FloatArray]
    densities: list[FloatArray]
    gradients: list[FloatArray]
    scores: list[FloatArray]


def run_pms(plan: PmsPlan, each_block: RowPass, seed: int | None) -> tuple[NoisyTrace, ...]:
    """Draw starts and run the rounds: at most 1 + T passes over the responses. Charge the ledger first.

    (plan.epsilon, plan.delta)-DP for replacing one response, given public bounds and predictors.

    Parameters
    ----------
    plan : PmsPlan
    each_block : RowPass
        Blocks of the response alone, (1, b), with the number of their first row.
    seed : int or None
        Makes everything reproducible: simulated then, NOT private.

    Returns
    -------
    tuple of NoisyTrace
        One per grid value, of one coordinate: the response, in bandwidths from its lower bound; densities are
        conditional ones.
    """
    shape = plan.rounds
    generator = None if seed is None else np.random.default_rng(np.random.SeedSequence(seed))
    here = _starts(plan, each_block, generator)
    log = _Log([here], [], [], [])
    for _ in range(shape.number):
        batch = None if shape.batch == shape.records else draw_batch(shape.records, shape.batch, generator)
        noise = _noise(plan, generator)
        if plan.accountant == "published":
            density, gradient = np.full(here.shape, np.nan), np.full(here.shape, np.nan)
            score = _noisy_scores(plan, each_block, here, batch, noise)
        else:
            density, gradient = _noisy_statistics(plan, each_block, here, batch, noise)
            score = _scores(plan, density, gradient)
        here = np.clip(here + plan.step * score, 0.0, plan.size)
        log.positions.append(here)
        log.densities.append(density)
        log.gradients.append(gradient)
        log.scores.append(score)
    return tuple(_trace(plan, log, g) for g in range(here.shape[0]))


def released_traces(
    plan: PmsPlan,
    traces: tuple[NoisyTrace, ...],
    request: PmsRequest,
    spent: PrivacySpent,
) -> ReleasedPartialTraces:
    """Return traces and plan as the object that may be published."""
    return ReleasedPartialTraces(
        traces=traces,
        grid=plan.design.grid * plan.bandwidth[:-1],
        predictors=tuple(request.names),
        response=request.response,
        lower=float(plan.lower[0]),
        upper=float(plan.upper[0]),
        bandwidth=plan.bandwidth,
        kernel=plan.rounds.kernel.name,
        accountant=plan.accountant,
        finish=plan.finish,
        starts=plan.starts,
        privacy=spent,
    )


def _starts(plan: PmsPlan, each_block: RowPass, generator: np.random.Generator | None) -> FloatArray:
    """Return starts, (G, k)."""
    grid = plan.design.grid.shape[0]
    if plan.starts == "grid":
        return np.tile((np.arange(plan.each) + 0.5) / plan.each * plan.size, (grid, 1))

    def one(block: ClippedBlock, first: int) -> NDArray[np.int64]:
        cells = plan.design.cells[first : first + block.values.shape[1]]
        rows = _in_bandwidths(plan, block)
        out = np.zeros((grid, plan.candidates.count), dtype=np.int64)
        for cell in np.unique(cells[cells >= 0]).tolist():
            mine = cells == cell
            weights = None if block.weights is None else block.weights[mine]
            out[cell] = plan.candidates.counts(rows[None, mine], weights)
        return out

    counts = np.zeros((grid, plan.candidates.count), dtype=np.int64)
    for part in each_block(one):
        counts += part
    drawn = [
        draw_starts(
            plan.candidates,
            cell,
            number=plan.each,
            epsilon_draw=plan.epsilon_draw,
            suppression=plan.suppression,
            generator=generator,
        )
        for cell in counts
    ]
    return np.array([plan.candidates.points[d, 0] for d in drawn])


def _noisy_statistics(
    plan: PmsPlan, each_block: RowPass, here: FloatArray, batch: Batch, noise: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """Return noisy conditional densities and their derivatives at `here`, both (G, k)."""
    white = [
        Whitening.correlated(y[:, None]) if plan.rounds.correlated else Whitening.independent(y.size)
        for y in here
    ]
    scale = np.array(plan.calibration.scales)[:, None]

    def one(block: ClippedBlock, first: int) -> NDArray[np.int64]:
        sums = _sums(plan, block, first, here, batch)
        lattice = np.empty(sums.shape, dtype=np.int64)
        for g, map_ in enumerate(white):
            lattice[g] = np.rint(scale * (sums[g] @ map_.forward.T) / plan.noise.lattice)
        return lattice

    exact = np.zeros((here.shape[0], 2, here.shape[1]), dtype=np.int64)
    for part in each_block(one):
        exact += part
    released = (exact + noise.reshape(exact.shape)) * plan.noise.lattice
    weight = plan.design.totals * plan.rounds.fraction
    out = np.empty(exact.shape)
    for g, map_ in enumerate(white):
        out[g] = released[g] / scale @ map_.factor.T / weight[g]
    return out[:, 0], out[:, 1]


def _noisy_scores(
    plan: PmsPlan, each_block: RowPass, here: FloatArray, batch: Batch, noise: NDArray[np.int64]
) -> FloatArray:
    """Return noisy scores (G, k) at `here`: the published mechanism."""
    sums = np.zeros((here.shape[0], 2, here.shape[1]))
    for part in each_block(lambda block, first: _sums(plan, block, first, here, batch)):
        sums += part
    means = sums / (plan.design.totals * plan.rounds.fraction)[:, None, None]
    exact = _scores(plan, means[:, 0], means[:, 1])
    lattice = np.rint(exact / plan.noise.lattice).astype(np.int64)
    return np.asarray((lattice + noise.reshape(here.shape)) * plan.noise.lattice, dtype=np.float64)


def _sums(plan: PmsPlan, block: ClippedBlock, first: int, here: FloatArray, batch: Batch) -> FloatArray:
    """Return weighted sums of the kernel and of its derivative over a block, (G, 2, k)."""
    rows = _in_bandwidths(plan, block)
    part = slice(first, first + rows.size)
    own = plan.design.weights[:, part]
    if block.weights is not None:
        own = own * block.weights
    if batch is not None:
        own = own * batch[part]
    out = np.empty((here.shape[0], 2, here.shape[1]))
    for g, y in enumerate(here):
        # Which rows have weight is public.
        near = np.flatnonzero(plan.design.weights[g, part])
        out[g] = plan.rounds.kernel.sums(y[:, None], rows[None, near], own[g, near])
    return out


def _scores(plan: PmsPlan, density: FloatArray, gradient: FloatArray) -> FloatArray:
    return np.array(
        [
            stabilised_score(p, s[:, None], float(clip), float(floor))[:, 0]
            for p, s, clip, floor in zip(
                density, gradient, plan.calibration.clips, plan.calibration.floors, strict=True
            )
        ]
    )


def _in_bandwidths(plan: PmsPlan, block: ClippedBlock) -> FloatArray:
    return np.asarray((block.values[0] - plan.lower[0]) / plan.bandwidth[-1])


def _noise(plan: PmsPlan, generator: np.random.Generator | None) -> NDArray[np.int64]:
    scale = plan.noise_scale / plan.noise.lattice
    if generator is None:
        return discrete_gaussian(plan.length, scale)
    return simulated_gaussian(plan.length, scale, int(generator.integers(2**63)))


def _trace(plan: PmsPlan, log: _Log, g: int) -> NoisyTrace:
    kernel = plan.rounds.kernel
    # (9 - 15 u^2)/8 on [-1, 1]: its square integrates to 9/8, the square of its slope to 75/8.
    roughness = squared_kernel_integrals(kernel.order, 1) if kernel.smooth else (1.125, 9.375)
    effective = float(plan.design.effective[g])
    return NoisyTrace(
        positions=np.array([p[g] for p in log.positions])[:, :, None],
        densities=np.array([p[g] for p in log.densities]),
        gradients=np.array([p[g] for p in log.gradients])[:, :, None],
        scores=np.array([p[g] for p in log.scores])[:, :, None],
        density_sd=float(plan.calibration.density_sds[g]),
        gradient_sd=float(plan.calibration.gradient_sds[g]),
        correlated=plan.rounds.correlated,
        size=np.array([plan.size]),
        records=effective,
        batch=effective * plan.rounds.fraction,
        smooth=kernel.smooth,
        roughness=roughness,
        step=plan.step,
        clip=float(plan.calibration.clips[g]),
        floor=float(plan.calibration.floors[g]),
    )
