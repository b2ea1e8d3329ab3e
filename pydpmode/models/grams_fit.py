"""What `DensityModes` does with a DP-GRAMS release, and what it would cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..budget import Budget
from ..errors import InvalidArgument
from ..numerics.bandwidth import BandwidthChoice, BandwidthSpec
from ..numerics.mode_set import ModeSet
from ..numerics.trace_modes import Finish, find_trace_modes
from ..privacy.grams_options import GramsOptions
from ..privacy.private_data import PrivateData
from ..results.coordinates import Coordinate
from ..results.released_trace import ReleasedTrace
from .preview import SHARES

LOW_SIGNAL = (
    "the release is mostly noise: no mode stands clear of it; use more epsilon, more records, "
    "narrower bounds or a larger bandwidth"
)


def grams_options(
    mechanism: object, grams: object, order: int, n_features: int | None
) -> GramsOptions | None:
    """Return the options of DP-GRAMS, or None for a surface; refuse what does not go together."""
    if mechanism not in ("surface", "grams"):
        raise InvalidArgument(f"mechanism must be 'surface' or 'grams', got {mechanism!r}")
    if grams is not None and not isinstance(grams, GramsOptions):
        raise InvalidArgument(f"grams must be GramsOptions(...), got {type(grams).__name__}")
    if mechanism == "surface":
        if grams is not None:
            raise InvalidArgument("grams= holds options of mechanism='grams'; give both")
        return None
    if order != 2 or n_features is not None:
        raise InvalidArgument(
            "order and n_features are for surfaces; with mechanism='grams' give "
            "grams=GramsOptions(kernel='gaussian4') for order 4"
        )
    return grams or GramsOptions()


def one_bandwidth(bandwidth: BandwidthSpec) -> BandwidthSpec:
    """Return a rule of one bandwidth: DP-GRAMS has no surface to be read at several."""
    if isinstance(bandwidth, str) and bandwidth == "private":
        raise InvalidArgument("bandwidth='private' is for surfaces; with mechanism='grams' give 'reference'")
    return "reference" if isinstance(bandwidth, str) and bandwidth == "ladder" else bandwidth


def modes_of_trace(released: ReleasedTrace, n_modes: int | None, false_mode_rate: float) -> ModeSet:
    """Return the modes of a released trace, in the columns' units. Post-processing: free.

    Parameters
    ----------
    released : ReleasedTrace
    n_modes : int, optional
        Number to report; found when omitted.
    false_mode_rate : float
        As in `DensityModes`.
    """
    finish: Finish = "regression" if released.finish == "regression" else "iterates"
    return find_trace_modes(
        released.trace,
        released.lower,
        released.bandwidth,
        n_modes=n_modes,
        false_mode_rate=false_mode_rate,
        finish=finish,
    )


@dataclass(frozen=True, eq=False)
class GramsPreview:
    """The plan of a DP-GRAMS release. Nothing has been read or charged.

    Parameters
    ----------
    columns : tuple of str
    bandwidth : Series
        Per coordinate, in its units.
    bandwidth_rule : str
    epsilon, delta : float
        What the release would cost.
    epsilon_before, epsilon_after : float
        Spent by earlier releases, and by all together with this one.
    epsilon_budget : float
    n, batch, rounds, ascents, candidates : int
        Records, records per round, rounds, ascents and public candidate starts.
    epsilon_start : float
        Privacy loss of one start.
    density_noise_sd : float
        Of one released density; NaN when only scores are released.
    modes : DataFrame
        For a Gaussian bump that holds a `share` of the records with standard deviation a tenth of the box:
        its height over the noise of one round, and over that of half the rounds together.
    """

    columns: tuple[str, ...]
    bandwidth: pd.Series[float]
    bandwidth_rule: str
    epsilon: float
    delta: float
    epsilon_before: float
    epsilon_after: float
    epsilon_budget: float
    n: int
    batch: int
    rounds: int
    ascents: int
    candidates: int
    epsilon_start: float
    density_noise_sd: float
    modes: pd.DataFrame

    @property
    def fits(self) -> bool:
        """Whether the budget holds the release."""
        return self.epsilon_after <= self.epsilon_budget * (1 + 1e-9)

    def __str__(self) -> str:
        widths = ", ".join(f"{c} {h:.4g}" for c, h in self.bandwidth.items())
        table = self.modes.to_string(float_format=lambda v: f"{v:.3g}")
        lines = [
            f"Plan for DP-GRAMS on {', '.join(self.columns)}: nothing read, nothing charged",
            f"  cost            epsilon {self.epsilon:g}, delta {self.delta:g}",
            f"  budget          epsilon {self.epsilon_before:.4g} spent, {self.epsilon_after:.4g} after "
            f"this release, of {self.epsilon_budget:g}{'' if self.fits else '  DOES NOT FIT'}",
            f"  bandwidth       {widths} ({self.bandwidth_rule})",
            f"  starts          {self.ascents} of {self.candidates:,} candidates, epsilon "
            f"{self.epsilon_start:.3g} each",
            f"  rounds          {self.rounds}, each over {self.batch:,} of {self.n:,} records",
            f"  density noise   {self.density_noise_sd:.3g} (sd in one round)",
            "  what a mode that holds a share of the records would look like:",
        ]
        return "\n".join(lines + ["    " + line for line in table.splitlines()])

    __repr__ = __str__


def preview_grams(
    study: PrivateData,
    coordinates: Sequence[Coordinate],
    choice: BandwidthChoice,
    options: GramsOptions,
    budget: Budget,
    n_modes: int | None,
) -> GramsPreview:
    """Plan a DP-GRAMS release without reading a row or charging anything."""
    plan = study.plan_grams(
        options,
        coordinates,
        choice.values,
        epsilon=budget.epsilon,
        delta=budget.delta,
        n_modes=n_modes,
    )
    shape = plan.rounds
    noise = plan.ascent.density_sd / float(np.prod(plan.bandwidth))
    wide = (0.1 * (plan.upper - plan.lower)) ** 2 + plan.bandwidth**2
    peak = float(np.prod(2 * math.pi * wide) ** -0.5)
    late = max(shape.number // 2, 1)
    rows = [
        {"share": s, "height_z_one_round": s * peak / noise, "height_z": s * peak / noise * late**0.5}
        for s in SHARES
    ]
    before = study.ledger.spent()
    return GramsPreview(
        columns=plan.columns,
        bandwidth=pd.Series(plan.bandwidth, index=list(plan.columns)),
        bandwidth_rule=choice.rule,
        epsilon=budget.epsilon,
        delta=budget.delta,
        epsilon_before=before,
        epsilon_after=study.ledger.spent_with(plan.charge("preview", False)),
        epsilon_budget=study.budget.epsilon,
        n=shape.records,
        batch=shape.batch,
        rounds=shape.number,
        ascents=shape.ascents,
        candidates=plan.candidates.count,
        epsilon_start=plan.epsilon_draw,
        density_noise_sd=noise,
        modes=pd.DataFrame(rows).set_index("share"),
    )
