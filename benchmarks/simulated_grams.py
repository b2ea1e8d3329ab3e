"""A DP-GRAMS trace with seeded noise, made without `PrivateData`: for simulation studies only.

The same plan, rounds and reading as a real release; only the ledger, the row source and the exact
samplers are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pydpmode.numerics.bandwidth import choose_bandwidth
from pydpmode.numerics.mode_set import ModeSet
from pydpmode.numerics.noisy_trace import NoisyTrace
from pydpmode.numerics.spectral_surfaces import per_column
from pydpmode.numerics.surfaces import FloatArray
from pydpmode.numerics.trace_modes import Finish, find_trace_modes
from pydpmode.privacy.bounds import ClippedBlock
from pydpmode.privacy.grams import R, run_grams
from pydpmode.privacy.grams_options import GramsOptions
from pydpmode.privacy.grams_plan import plan_grams


@dataclass(frozen=True)
class SimulatedGrams:
    """A simulated trace and its units."""

    trace: NoisyTrace
    lower: FloatArray
    bandwidth: FloatArray
    finish: Finish

    def modes(self, *, n_modes: int | None = None, finish: Finish | None = None) -> ModeSet:
        """Return the modes read off the trace."""
        return find_trace_modes(
            self.trace, self.lower, self.bandwidth, n_modes=n_modes, finish=finish or self.finish
        )


def simulated_grams(
    x: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    epsilon: float,
    delta: float,
    seed: int,
    options: GramsOptions | None = None,
    bandwidth: ArrayLike | None = None,
    n_modes: int | None = None,
) -> SimulatedGrams:
    """Return what DP-GRAMS with seeded noise releases of the rows `x` (n, d).

    Parameters
    ----------
    x : (n, d) array
    lower, upper : float or (d,) array
        The public box; rows outside are moved to it.
    epsilon, delta : float
    seed : int
        Of starts and noise.
    options : GramsOptions, optional
    bandwidth : float or (d,) array, optional
        The default rule's when omitted.
    n_modes : int, optional
        The number of modes, when the number of ascents shall follow it.
    """
    points = np.asarray(x, dtype=np.float64)
    points = points[:, None] if points.ndim == 1 else points
    n, d = points.shape
    columns = tuple(f"x{i + 1}" for i in range(d))
    low, high = per_column(lower, d, "lower"), per_column(upper, d, "upper")
    h = (
        choose_bandwidth("reference", columns=columns, lower=low, upper=high, n=n, epsilon=epsilon).values
        if bandwidth is None
        else per_column(bandwidth, d, "bandwidth")
    )
    plan = plan_grams(
        options or GramsOptions(),
        columns=columns,
        lower=low,
        upper=high,
        bandwidth=h,
        records=n,
        block=2**17,
        epsilon=epsilon,
        delta=delta,
        n_modes=n_modes,
    )
    block = ClippedBlock(np.ascontiguousarray(np.clip(points, low, high).T), None)

    def one_block(one: Callable[[ClippedBlock, int], R]) -> Iterator[R]:
        yield one(block, 0)

    trace = run_grams(plan, one_block, seed)
    return SimulatedGrams(trace, low, h, plan.finish)
