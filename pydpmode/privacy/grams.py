"""DP-GRAMS: private starts, then T rounds of noisy kernel statistics at k ascents.

Guarantee. Each round is one Gaussian mechanism on sums over records (or, "published", on scores), at points
that depend on earlier outputs only; see `grams_calibration` for the sensitivities and the composition.
Whatever follows a round's noise, the step included, is post-processing.

Correlated noise is made white first: with M the inverse of the Cholesky factor L of the covariance at the
(public) positions, `M F` gets exact discrete noise on a lattice and is multiplied back by L. The
Euclidean norm of `M (F - F')` IS the covariance's norm of `F - F'`, so nothing else is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..budget import PrivacySpent
from ..numerics.correlated_noise import Whitening
from ..numerics.kernels import squared_kernel_integrals
from ..numerics.noisy_trace import NoisyTrace
from ..numerics.surfaces import FloatArray
from ..results.coordinates import Coordinate
from ..results.released_trace import ReleasedTrace
from .bounds import ClippedBlock
from .grams_initialisation import draw_batch, draw_starts
from .grams_plan import GramsPlan
from .noise import discrete_gaussian, simulated_gaussian

R = TypeVar("R")


class RowPass(Protocol):
    """One pass over the clipped rows: apply a function to each block and the number of its first row."""

    def __call__(self, one: Callable[[ClippedBlock, int], R]) -> Iterator[R]:
        """Yield the function's value for each block, in order."""
        ...


def run_grams(plan: GramsPlan, each_block: RowPass, seed: int | None) -> NoisyTrace:
    """Draw starts and run the rounds: 1 + T passes over the rows. Charge the ledger first.

    (plan.epsilon, plan.delta)-DP for replacing one row, given public bounds.

    Parameters
    ----------
    plan : GramsPlan
    each_block : RowPass
    seed : int or None
        Makes everything reproducible: the trace is then simulated, NOT private.
    """
    shape, ascent = plan.rounds, plan.ascent
    generator = None if seed is None else np.random.default_rng(np.random.SeedSequence(seed))
    here = _starts(plan, each_block, generator)
    positions, densities, gradients, scores = [here], [], [], []
    for _ in range(shape.number):
        batch = None if shape.batch == shape.records else draw_batch(shape.records, shape.batch, generator)
        noise = _noise(plan, generator)
        if plan.accountant == "published":
            density, gradient = np.full(here.shape[0], np.nan), np.full(here.shape, np.nan)
            score = _noisy_scores(plan, each_block, here, batch, noise)
        else:
            density, gradient = _noisy_statistics(plan, each_block, here, batch, noise)
            score = stabilised_score(density, gradient, ascent.clip, ascent.floor)
        here = np.clip(here + ascent.step * score, 0.0, plan.size)
        positions.append(here)
        densities.append(density)
        gradients.append(gradient)
        scores.append(score)
    return NoisyTrace(
        positions=np.array(positions),
        densities=np.array(densities),
        gradients=np.array(gradients),
        scores=np.array(scores),
        density_sd=ascent.density_sd,
        gradient_sd=ascent.gradient_sd,
        correlated=shape.correlated,
        size=plan.size,
        records=float(shape.records),
        batch=float(shape.batch),
        smooth=shape.kernel.smooth,
        roughness=_roughness(plan),
        step=ascent.step,
        clip=ascent.clip,
        floor=ascent.floor,
    )


def released_trace(
    plan: GramsPlan, trace: NoisyTrace, coordinates: Sequence[Coordinate], spent: PrivacySpent
) -> ReleasedTrace:
    """Return a trace and its plan as the object that may be published."""
    return ReleasedTrace(
        trace=trace,
        coordinates=tuple(coordinates),
        lower=plan.lower,
        upper=plan.upper,
        bandwidth=plan.bandwidth,
        kernel=plan.rounds.kernel.name,
        accountant=plan.accountant,
        finish=plan.finish,
        candidates=plan.candidates.count,
        privacy=spent,
    )


def stabilised_score(density: FloatArray, gradient: FloatArray, clip: float, floor: float) -> FloatArray:
    """Return `clip_A(gradient) / max(density, floor)`, equation (1) of the paper: (k, d)."""
    length = np.linalg.norm(gradient, axis=1)
    shrink = clip / np.maximum(length, clip)
    return np.asarray(gradient * (shrink / np.maximum(density, floor))[:, None])


def _starts(plan: GramsPlan, each_block: RowPass, generator: np.random.Generator | None) -> FloatArray:
    def one(block: ClippedBlock, _: int) -> NDArray[np.int64]:
        return plan.candidates.counts(_in_bandwidths(plan, block.values), block.weights)

    counts = np.zeros(plan.candidates.count, dtype=np.int64)
    for part in each_block(one):
        counts += part
    drawn = draw_starts(
        plan.candidates,
        counts,
        number=plan.rounds.ascents,
        epsilon_draw=plan.epsilon_draw,
        suppression=plan.suppression,
        generator=generator,
    )
    return np.array(plan.candidates.points[drawn])


def _noisy_statistics(
    plan: GramsPlan,
    each_block: RowPass,
    here: FloatArray,
    batch: NDArray[np.bool_] | None,
    noise: NDArray[np.int64],
) -> tuple[FloatArray, FloatArray]:
    """Return noisy densities (k,) and gradients (k, d) at `here`."""
    k, d = here.shape
    white = Whitening.correlated(here) if plan.rounds.correlated else Whitening.independent(k)
    scale = np.array([plan.ascent.scales[0], *[plan.ascent.scales[1]] * d])[:, None]

    def one(block: ClippedBlock, first: int) -> NDArray[np.int64]:
        sums = plan.rounds.kernel.sums(here, *_chosen(plan, block, first, batch))
        lattice = np.rint(scale * (sums @ white.forward.T) / plan.ascent.noise.lattice)
        return np.asarray(lattice, dtype=np.int64)

    exact = np.zeros((1 + d, k), dtype=np.int64)
    for part in each_block(one):
        exact += part
    released = (exact + noise.reshape(exact.shape)) * plan.ascent.noise.lattice
    statistics = released / scale @ white.factor.T / plan.rounds.batch
    return statistics[0], np.ascontiguousarray(statistics[1:].T)


def _noisy_scores(
    plan: GramsPlan,
    each_block: RowPass,
    here: FloatArray,
    batch: NDArray[np.bool_] | None,
    noise: NDArray[np.int64],
) -> FloatArray:
    """Return noisy scores (k, d) at `here`: the published mechanism."""
    k, d = here.shape
    sums = np.zeros((1 + d, k))
    for part in each_block(
        lambda block, first: plan.rounds.kernel.sums(here, *_chosen(plan, block, first, batch))
    ):
        sums += part
    means = sums / plan.rounds.batch
    exact = stabilised_score(means[0], means[1:].T, plan.ascent.clip, plan.ascent.floor)
    lattice = np.rint(exact / plan.ascent.noise.lattice).astype(np.int64)
    return np.asarray((lattice + noise.reshape(k, d)) * plan.ascent.noise.lattice, dtype=np.float64)


def _chosen(
    plan: GramsPlan, block: ClippedBlock, first: int, batch: NDArray[np.bool_] | None
) -> tuple[FloatArray, FloatArray | None]:
    """Return the rows of a block that this round looks at, in bandwidths, and their weights."""
    rows, weights = _in_bandwidths(plan, block.values), block.weights
    if batch is None:
        return rows, weights
    here = batch[first : first + rows.shape[1]]
    return rows[:, here], None if weights is None else weights[here]


def _in_bandwidths(plan: GramsPlan, values: FloatArray) -> FloatArray:
    return np.asarray((values - plan.lower[:, None]) / plan.bandwidth[:, None])


def _noise(plan: GramsPlan, generator: np.random.Generator | None) -> NDArray[np.int64]:
    scale = plan.noise_scale / plan.ascent.noise.lattice
    if generator is None:
        return discrete_gaussian(plan.length, scale)
    return simulated_gaussian(plan.length, scale, int(generator.integers(2**63)))


def _roughness(plan: GramsPlan) -> tuple[float, float]:
    """Return the integrals of the squared kernel and of one component of its squared gradient."""
    d = plan.rounds.kernel.dimension
    if plan.rounds.kernel.smooth:
        return squared_kernel_integrals(plan.rounds.kernel.order, d)
    # (9 - 15 u^2)/8 on [-1, 1]: its square integrates to 9/8, the square of its slope to 75/8.
    return 1.125**d, 9.375 * 1.125 ** (d - 1)
