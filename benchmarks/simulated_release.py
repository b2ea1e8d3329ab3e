"""A released surface with seeded noise, made without `PrivateData`: for simulation studies only.

The same design, sensitivity, noise scale and reading as a real release; only the ledger, the row
source and the exact noise sampler are left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pydpmode.budget import Adjacency, Outside, PrivacySpent
from pydpmode.numerics.bandwidth import BandwidthChoice, Ladder, choose_bandwidth
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.mode_seeking import find_modes
from pydpmode.numerics.mode_set import ModeSet
from pydpmode.numerics.scale_choice import ReadingChoice, choose_reading
from pydpmode.numerics.spectral_surfaces import per_column
from pydpmode.numerics.surfaces import FloatArray
from pydpmode.privacy.bounds import ClippedBlock
from pydpmode.privacy.features import ZERO_WEIGHT
from pydpmode.privacy.quantiles import cell_weights, draw_quantiles, plan_quantiles, reserved
from pydpmode.privacy.surface_release import ReleasePlan, add_noise, plan_release, to_lattice
from pydpmode.results.released_surface import ReleasedSurface


def simulated_surface(
    x: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    epsilon: float,
    delta: float,
    seed: int,
    bandwidth: ArrayLike | str = "ladder",
    adjacency: Adjacency = "replace",
    outside: Outside = "clip",
    order: int = 2,
) -> ReleasedSurface:
    """Return the surface that a release of the rows `x` (n, d), d <= 3, with seeded noise would give.

    Parameters
    ----------
    x : (n, d) array
    lower, upper : float or (d,) array
        The public box.
    epsilon, delta : float
    seed : int
        Of the noise.
    bandwidth : str, float or (d,) array
        A rule of `DensityModes` (the default rule when omitted), or numbers.
    adjacency : {"replace", "add_remove"}
    outside : {"clip", "ignore"}
        What happens to rows outside the box.
    order : {2, 4, 6}
        Of the kernel.
    """
    points = np.asarray(x, dtype=np.float64)
    points = points[:, None] if points.ndim == 1 else points
    n, d = points.shape
    columns = tuple(f"x{i + 1}" for i in range(d))
    low, high = per_column(lower, d, "lower"), per_column(upper, d, "upper")
    weights = None
    if outside == "ignore":
        weights = np.all((points >= low) & (points <= high), axis=1).astype(np.float64)
    inside = np.ascontiguousarray(np.clip(points, low, high).T)

    def design(quartiles: FloatArray | None = None) -> LatticeDesign:
        if isinstance(bandwidth, str):
            choice = choose_bandwidth(
                bandwidth, columns=columns, lower=low, upper=high, n=n, epsilon=epsilon, quartiles=quartiles
            )
        else:
            choice = BandwidthChoice(per_column(bandwidth, d, "bandwidth"), "given", Ladder())
        ladder = choice.ladder
        box = (columns, low, high, choice.values, order, ZERO_WEIGHT[adjacency])
        return LatticeDesign(*box, scales=ladder.scales, masses=ladder.masses)

    def planned(design: LatticeDesign, mu: float | None = None) -> ReleasePlan:
        return plan_release(
            design,
            epsilon=epsilon,
            delta=delta,
            adjacency=adjacency,
            units_per_sum=min(n, 2**17),
            depth=min(n, 2**17),
            roundings=1,
            largest_total=max(n, 2**17),
            mu=mu,
        )

    plan = planned(design())
    if isinstance(bandwidth, str) and bandwidth == "private":
        quantiles = plan_quantiles(low, high, reserved(plan))
        drawn = draw_quantiles(quantiles, [cell_weights(ClippedBlock(inside, weights), low, high)], seed)
        plan = planned(design(drawn), quantiles.surface_mu)
    total, sums = feature_sum(plan.design, inside, weights, plan.tolerance)
    vector = add_noise(plan, to_lattice(plan, total, sums), seed)
    spent = PrivacySpent(
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        unit="row",
        mechanism="surface (simulated Gaussian)",
        sensitivity=plan.sensitivity.total,
        noise_scale=plan.noise_scale,
        n_units=n if adjacency == "replace" else None,
        bounds={c: (float(a), float(b)) for c, a, b in zip(columns, low, high, strict=True)},
        outside=outside,
        simulated=True,
    )
    return ReleasedSurface.from_vector(plan.design, vector, spent)


def reported_modes(
    surface: ReleasedSurface,
    *,
    n_modes: int | None = None,
    false_mode_rate: float = 0.05,
    refine: bool = True,
) -> tuple[ReadingChoice, ModeSet]:
    """Return the reading of a surface and the modes that a fit would report."""
    reading = choose_reading(surface, n_modes=n_modes, false_mode_rate=false_mode_rate)
    return reading, find_modes(
        reading.surface,
        n_modes=n_modes,
        false_mode_rate=false_mode_rate,
        refine=refine,
        look=reading.look,
    )
