"""What a release would cost and how noisy it would be, in the columns' units, before any row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from ..budget import Budget, as_number
from ..errors import InvalidArgument, UnknownColumn
from ..numerics.designs import Design
from ..numerics.detection import SurfacePlan
from ..numerics.kernels import squared_kernel_integrals
from ..numerics.spectral_surfaces import spectral_surface
from ..numerics.surfaces import FieldNoise, FloatArray
from ..privacy.accounting import gaussian_mu
from ..privacy.private_data import PrivateData
from ..privacy.quantiles import SCALE_SHARE
from ..results.coordinates import Kind
from ..results.number_text import span_text, time_unit
from .surface_design import SurfaceRequest

SHARES = (0.5, 0.25, 0.1, 0.05)
Subject = Literal["mode", "cluster", "cluster (a mode)"]
# From the design of a release and the noise per released entry to a table by share.
Judge = Callable[[Design, float, FloatArray], pd.DataFrame]
CHANCES = ("found", "certified", "seen")
_NINETY = 1.2816  # standard normal quantile at .9
_SEARCHED = 37  # values tried in six decades


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanFacts:
    """What is known of a surface release before it is made. Nothing has been read or charged.

    Parameters
    ----------
    columns : tuple of str
    bandwidth : Series
        Per coordinate, in its units.
    bandwidth_rule : str
    epsilon, delta : float
        What the release would cost.
    epsilon_before, epsilon_after : float
        Spent by earlier releases, and by all together with this one (tight composition).
    epsilon_budget : float
    n : int
        Public number of units (or the guess).
    density_noise_sd : float
        Standard deviation of the privacy noise of the density.
    total_noise_sd : float
        Standard deviation of the privacy noise of the released number of units.
    n_values : int
        Numbers released.
    kinds : tuple of {"number", "datetime", "timedelta"}
        What the coordinates are, for printing; of times, bandwidths and errors are in seconds.
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
    density_noise_sd: float
    total_noise_sd: float
    n_values: int
    kinds: tuple[Kind, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the budget holds the release."""
        return self.epsilon_after <= self.epsilon_budget * (1 + 1e-9)

    @property
    def times(self) -> set[str]:
        """Coordinates that are dates or durations."""
        return {c for c, kind in zip(self.columns, self.kinds, strict=False) if kind != "number"}

    def _groups_text(self) -> str:
        return ""

    def _records_text(self) -> str:
        return f"{self.n:,}; their released number"

    def lines(self) -> list[str]:
        """Return what every plan says, as lines of text."""
        widths = ", ".join(
            f"{c} {span_text(h) if c in self.times else f'{h:.4g}'}" for c, h in self.bandwidth.items()
        )
        return [
            f"Plan for {', '.join(self.columns)}{self._groups_text()}: nothing read, nothing charged",
            f"  cost            epsilon {self.epsilon:g}, delta {self.delta:g}",
            f"  budget          epsilon {self.epsilon_before:.4g} spent, {self.epsilon_after:.4g} after "
            f"this release, of {self.epsilon_budget:g}{'' if self.fits else '  DOES NOT FIT'}",
            f"  bandwidth       {widths} ({self.bandwidth_rule})",
            f"  records         {self._records_text()} would be off by {self.total_noise_sd:.3g} (sd)",
            f"  density noise   {self.density_noise_sd:.3g} (sd at any point)",
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class Preview(PlanFacts):
    """The plan of a release of modes or clusters.

    Parameters
    ----------
    modes : DataFrame
        For a Gaussian bump that holds a `share` of the data with spread `spread` per coordinate, well apart
        from the others: the probability that it is `found`; the smallest epsilon at this n, and the smallest
        n at this epsilon, with which it is found with probability .9 (infinite when there is none); its
        height over its total standard deviation (`height_z`), and the standard error of its location per
        coordinate, privacy and sampling. Height and errors are those of the (widest) bandwidth. For clusters
        that are fitted, chance and errors are those of the fit (`models.cluster_preview`), and `evidence_z`
        takes the place of `height_z`.
    subject : {"mode", "cluster", "cluster (a mode)"}
        What the table is about.
    """

    modes: pd.DataFrame
    subject: Subject = "mode"

    def __str__(self) -> str:
        head = f"  a {self.subject} that holds this share of the records, well apart from the others:"
        return "\n".join([*self.lines(), head, *table_lines(self.modes, self.times)])

    __repr__ = __str__


def table_lines(table: pd.DataFrame, times: set[str]) -> list[str]:
    """Return a table of a plan as indented lines: probabilities, whole numbers, durations of dates."""
    return ["    " + line for line in _table_text(table, times).splitlines()]


def _table_text(modes: pd.DataFrame, times: set[str]) -> str:
    shown = {}
    for name in map(str, modes.columns):
        column = name.removesuffix(" s.e. privacy").removesuffix(" s.e. sampling")
        if name in CHANCES:
            texts = [
                f"{v:.2f}" if 0.005 <= v <= 0.995 else "<.01" if v < 0.5 else ">.99" for v in modes[name]
            ]
        elif name == "n for .9":
            texts = [f"{v:,.0f}" if math.isfinite(v) else "--" for v in modes[name]]
        elif column != name and column in times:
            texts = [f"{v / time_unit(v)[1]:.3g} {time_unit(v)[0]}" for v in modes[name]]
        else:
            texts = [f"{v:.3g}" if math.isfinite(v) else "--" for v in modes[name]]
        shown[name] = texts
    index = [f"{share:.2f}" if isinstance(share, float) else str(share) for share in modes.index]
    return pd.DataFrame(shown, index=index).rename_axis(columns=str(modes.index.name)).to_string()


def plan_preview(
    request: SurfaceRequest,
    study: PrivateData,
    budget: Budget,
    n: int,
    spread: Mapping[str, float],
    *,
    subject: Subject = "mode",
    judge: Judge | None = None,
) -> Preview:
    """Return the preview of a surface release. Reads no row and charges nothing.

    Parameters
    ----------
    request : SurfaceRequest
    study : PrivateData
    budget : Budget
        Of the release.
    n : int
        Number of records to plan for.
    spread : mapping of str to float
        Standard deviation of a mode's bump by coordinate; a tenth of the box where missing.
    subject : {"mode", "cluster", "cluster (a mode)"}
    judge : callable, optional
        From the design, the noise per entry and the spread (d,) to the table by share, in place of that of
        modes.
    """
    # What the quartiles will be is not known: planned as if the bounds fitted.
    private = request.bandwidth == "private"
    request = replace(request, bandwidth="ladder") if private else request
    choice, design = request.choice(), request.design()
    wide = spread_of(spread, design)
    plan = study.plan(design, epsilon=budget.epsilon, delta=budget.delta)
    sigma = plan.noise_scale / math.sqrt(1 - SCALE_SHARE) if private else plan.noise_scale
    noise, table = bump_table(design, sigma, n, wide)
    if judge is None:
        found = _detection(request, sigma, plan.sensitivity.total, budget, n, wide)
        table = pd.concat([found, table], axis=1)
    else:
        table = judge(design, sigma, wide)
    before, after = study.ledger.spent(), study.ledger.spent_with(plan.charge("preview", False))
    return Preview(
        columns=design.columns,
        bandwidth=pd.Series(choice.values, index=list(design.columns)),
        bandwidth_rule=f"{choice.rule}, as if the bounds fitted" if private else choice.rule,
        epsilon=budget.epsilon,
        delta=budget.delta,
        epsilon_before=before,
        epsilon_after=after,
        epsilon_budget=study.budget.epsilon,
        n=n,
        density_noise_sd=math.sqrt(noise.value),
        total_noise_sd=sigma / math.sqrt(design.zero_weight),
        modes=table,
        subject=subject,
        n_values=plan.length,
        kinds=tuple(c.kind for c in request.coordinates),
    )


def spread_of(spread: Mapping[str, float], design: Design) -> FloatArray:
    """Return the stated standard deviations per coordinate, a tenth of the box where there is none."""
    wide = 0.1 * (design.upper - design.lower)
    for name, value in spread.items():
        if name not in design.columns:
            raise UnknownColumn(f"spread names {name!r}; the columns are {list(design.columns)}")
        wide[design.columns.index(name)] = as_number(value, f"spread of {name}")
    if not np.all(np.isfinite(wide) & (wide >= 0)):
        raise InvalidArgument(f"spread must be finite and >= 0, got {dict(spread)!r}")
    return wide


def _detection(
    request: SurfaceRequest, sigma: float, sensitivity: float, budget: Budget, n: int, spread: FloatArray
) -> pd.DataFrame:
    """Return, by share, the probability of being found and what would make it .9."""
    # What the noise scale is beside sensitivity over mu: 1, or a little more where quartiles are paid for.
    dearer = sigma * gaussian_mu(budget.epsilon, budget.delta) / sensitivity

    def evidence(epsilon: float, count: float) -> list[float]:
        asked = replace(request, epsilon=epsilon, n=round(count))
        choice = asked.choice()
        scale = dearer * sensitivity / gaussian_mu(epsilon, budget.delta)
        surface = SurfacePlan(
            asked.upper - asked.lower,
            choice.values,
            choice.ladder,
            asked.order,
            asked.zero_weight,
            scale,
            count,
        )
        return [surface.evidence(share, spread) for share in SHARES]

    now = evidence(budget.epsilon, float(n))
    chance = {"found": [0.5 * math.erfc(-z / math.sqrt(2)) for z in now]}
    return pd.DataFrame(chance | enough(evidence, budget.epsilon, n), index=pd.Index(SHARES, name="share"))


def enough(evidence: Callable[[float, float], list[float]], epsilon: float, n: int) -> dict[str, list[float]]:
    """Return the smallest epsilon at this n, and the smallest n at this epsilon, with chance .9.

    Parameters
    ----------
    evidence : callable
        From epsilon and n to the normal quantiles of the chances, one per row of the table.
    epsilon : float
    n : int
    """
    epsilons = epsilon * np.geomspace(1e-3, 1e3, _SEARCHED)
    counts = np.maximum(n * np.geomspace(1e-3, 1e3, _SEARCHED), 2.0)
    by_epsilon = np.array([evidence(float(e), float(n)) for e in epsilons])
    by_count = np.array([evidence(epsilon, float(c)) for c in counts])
    least = [_first(counts, column) for column in by_count.T]
    return {
        "epsilon for .9": [_first(epsilons, column) for column in by_epsilon.T],
        "n for .9": [math.ceil(x) if math.isfinite(x) else math.inf for x in least],
    }


def _first(values: FloatArray, evidence: FloatArray) -> float:
    """Return where the evidence first reaches a probability of .9, interpolated on a log scale."""
    above = np.flatnonzero(evidence >= _NINETY)
    if above.size == 0:
        return math.inf
    k = int(above[0])
    if k == 0:
        return float(values[0])
    share = (_NINETY - evidence[k - 1]) / (evidence[k] - evidence[k - 1])
    return float(values[k - 1] * (values[k] / values[k - 1]) ** share)


def bump_table(
    design: Design, noise_scale: float, n: int, spread: FloatArray
) -> tuple[FieldNoise, pd.DataFrame]:
    """Return the noise of the planned surface and the error of a Gaussian bump's mode by its share.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
    noise_scale : float
        Noise standard deviation per released entry.
    n : int
    spread : (d,) array
        Standard deviation of the bump per coordinate.
    """
    variance = noise_scale**2 / (design.pair_weights * n**2)
    noise = spectral_surface(design, np.zeros(design.n_pairs, dtype=complex), variance, float(n)).noise
    h = design.bandwidth
    wide = spread**2 + h**2
    value, gradient = squared_kernel_integrals(design.order, design.dimension)
    scale = float(np.prod(h))
    rows = []
    for share in SHARES:
        height = share * float(np.prod(2 * math.pi * wide) ** -0.5)
        sampling = max(value / scale * height - height**2, 0.0) / n
        curvature = height / wide
        row = {"share": share, "height_z": height / math.sqrt(noise.value + sampling)}
        for a, name in enumerate(design.columns):
            row[f"{name} s.e. privacy"] = math.sqrt(noise.gradient[a, a]) / curvature[a]
            row[f"{name} s.e. sampling"] = (
                math.sqrt(height * gradient / (scale * h[a] ** 2) / n) / curvature[a]
            )
        rows.append(row)
    return noise, pd.DataFrame(rows).set_index("share")
