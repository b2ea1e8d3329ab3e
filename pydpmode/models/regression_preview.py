"""What a modal regression would cost and find, in the columns' units, before any row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import pandas as pd

from ..budget import Budget
from ..errors import InvalidArgument
from ..numerics.branch_detection import BranchPlan
from ..numerics.designs import Design
from ..numerics.detection import SurfacePlan
from ..numerics.linear_modal import LinearModalFit, fit_linear_modes
from ..numerics.spectral_surfaces import LatticeSurface, spectral_surface
from ..numerics.surfaces import FloatArray
from ..privacy.accounting import gaussian_mu
from ..privacy.grouped_release import DeclaredLevels
from ..privacy.private_data import PrivateData
from .preview import PlanFacts, enough, spread_of, table_lines
from .surface_design import SurfaceRequest

BRANCH_SHARES, LINE_SHARES = (1.0, 0.5, 0.25, 0.1), (1.0, 0.5, 0.25)
_NORMAL = NormalDist()
# A plan asks for the same ones again and again.
planning_mu = lru_cache(maxsize=512)(gaussian_mu)


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionPreview(PlanFacts):
    """The plan of a modal regression.

    Parameters
    ----------
    response : str
    branches : DataFrame or None
        For a branch that holds a `share` of the records, evenly along the predictors, the response normal
        about it with the stated `spread`, all others on one other branch, well apart: the chance that it is
        `certified` at all, and that it is then `seen` at one predictor value; the smallest epsilon at this n,
        and the smallest n at this epsilon, with which both together have a chance of .9 (infinite when there
        is none); its height over its total standard deviation (`height_z`); the standard error of the
        branch at one predictor value, privacy and sampling. None with kind="linear".
    line : DataFrame or None
        With kind="linear": standard errors, privacy and sampling, of the height (at the centre of the
        predictors' box) and the slopes of a level line with a `share` of the records about it, the others
        spread over the box, once the search has found it.
    by : str or None
        Grouping column. The levels are released together, and each has a density of its own: noise,
        chances and errors are then those of one level that holds an equal part of the n records, and the
        shares are of that level's records; `n for .9` counts all records.
    n_levels : int
        Number of levels, 1 without groups.
    """

    response: str
    branches: pd.DataFrame | None = None
    line: pd.DataFrame | None = None
    by: str | None = None
    n_levels: int = 1

    @property
    def n_per_level(self) -> float:
        """Records of each level, taken as equal; all of them without groups."""
        return self.n / self.n_levels

    def _groups_text(self) -> str:
        return "" if self.by is None else f" by {self.by}"

    def _records_text(self) -> str:
        if self.by is None:
            return super()._records_text()
        return (
            f"{self.n:,}, taken as equal shares of {self.n_levels} levels of {self.by}\n"
            f"{'':18}({self.n_per_level:,.0f} each: the noise and the table are of one level);\n"
            f"{'':18}the released number of each"
        )

    def __str__(self) -> str:
        lines = self.lines()
        whose = "the records" if self.by is None else "its level's records"
        if self.branches is not None:
            lines.append(
                f"  a branch that holds this share of {whose} all along, well apart from the others:"
            )
            lines += table_lines(self.branches, self.times)
        if self.line is not None:
            lines.append(f"  a level line with this share of {whose} about it, standard errors:")
            lines += table_lines(self.line, set())
        return "\n".join(lines)

    __repr__ = __str__


def plan_regression(
    ask: Callable[[Budget, int], SurfaceRequest],
    study: PrivateData,
    budget: Budget,
    n: int,
    spread: Mapping[str, float],
    *,
    kind: str,
    rule: str,
    rate: float,
    groups: DeclaredLevels | None = None,
) -> RegressionPreview:
    """Return the preview of a modal regression. Reads no row and charges nothing.

    Parameters
    ----------
    ask : callable
        What would be released with another budget and number of records.
    study : PrivateData
    budget : Budget
        Of the release.
    n : int
        Number of records to plan for.
    spread : mapping of str to float
        Of the response: standard deviation about its branch, a tenth of the box where missing. Of a
        predictor: standard deviation of the records, taken as evenly spread; over all of the box where
        missing.
    kind : {"branches", "linear"}
    rule : str
        Words for the bandwidth.
    rate : float
        False-branch rate.
    groups : DeclaredLevels, optional
        Levels that are released together, each taken to hold an equal part of the records.
    """
    levels = 1 if groups is None else groups.count
    per_level = n / levels
    request = ask(budget, n)
    design = request.design()
    wide = spread_of(spread, design)
    widths = (design.upper - design.lower)[:-1]
    named = np.array([name in spread for name in design.columns[:-1]])
    stretch = np.where(named, np.clip(math.sqrt(12) * wide[:-1], 1e-6 * widths, widths), widths)
    plan = study.plan(design, epsilon=budget.epsilon, delta=budget.delta, groups=levels)
    noise = spectral_surface(
        design,
        np.zeros(design.n_pairs, dtype=complex),
        plan.noise_scale**2 / (design.pair_weights * per_level**2),
        per_level,
    ).noise

    def planned(epsilon: float, count: float) -> BranchPlan:
        asked = ask(replace(budget, epsilon=epsilon), round(count))
        scale = plan.sensitivity.total / planning_mu(epsilon, budget.delta)
        return BranchPlan(_surface(asked, scale, count / levels), float(wide[-1]), stretch, rate)

    line = (
        _line_table(design, plan.noise_scale, per_level, float(wide[-1]), stretch)
        if kind == "linear"
        else None
    )
    branches = None
    if line is None:
        steep = float(noise.gradient[-1, -1])
        branches = _branch_table(planned, budget.epsilon, n, steep, design.columns[-1])
    return RegressionPreview(
        columns=design.columns,
        bandwidth=pd.Series(design.bandwidth, index=list(design.columns)),
        bandwidth_rule=rule,
        epsilon=budget.epsilon,
        delta=budget.delta,
        epsilon_before=study.ledger.spent(),
        epsilon_after=study.ledger.spent_with(plan.charge("preview", False)),
        epsilon_budget=study.budget.epsilon,
        n=n,
        density_noise_sd=math.sqrt(noise.value),
        total_noise_sd=plan.noise_scale / math.sqrt(design.zero_weight),
        n_values=plan.length,
        kinds=tuple(c.kind for c in request.coordinates),
        response=design.columns[-1],
        branches=branches,
        line=line,
        by=None if groups is None else groups.column,
        n_levels=levels,
    )


def _surface(request: SurfaceRequest, noise_scale: float, n: float) -> SurfacePlan:
    choice = request.choice()
    return SurfacePlan(
        request.upper - request.lower,
        choice.values,
        choice.ladder,
        request.order,
        request.zero_weight,
        noise_scale,
        n,
    )


def _branch_table(
    planned: Callable[[float, float], BranchPlan],
    epsilon: float,
    n: int,
    gradient_variance: float,
    response: str,
) -> pd.DataFrame:
    """Return what is said of branches by their share."""

    def evidence(at: float, count: float) -> list[float]:
        plan = planned(at, count)
        chances = [plan.certified(share) * plan.seen(share) for share in BRANCH_SHARES]
        return [_NORMAL.inv_cdf(min(max(chance, 1e-12), 1 - 1e-12)) for chance in chances]

    now = planned(epsilon, float(n))
    errors = [now.location_errors(share, gradient_variance) for share in BRANCH_SHARES]
    columns = {
        "certified": [now.certified(share) for share in BRANCH_SHARES],
        "seen": [now.seen(share) for share in BRANCH_SHARES],
        **enough(evidence, epsilon, n),
        "height_z": [now.height(share) / now.density_error(share) for share in BRANCH_SHARES],
        f"{response} s.e. privacy": [privacy for privacy, _ in errors],
        f"{response} s.e. sampling": [sampling for _, sampling in errors],
    }
    return pd.DataFrame(columns, index=pd.Index(BRANCH_SHARES, name="share"))


def _line_table(
    design: Design, noise_scale: float, n: float, spread: float, stretch: FloatArray
) -> pd.DataFrame:
    """Return the standard errors of a level line through the middle of the box, by its share of the records.

    They are what the fit says of the surface that such records would show without noise, when it is told of
    the noise. Records that are spread over the box add to the zero frequency alone.
    """
    h, middle = design.bandwidth, (design.upper - design.lower) / 2
    w = design.frequencies / h
    along = np.sinc(w[:, :-1] * stretch / (2 * math.pi)).prod(axis=1)
    phi = along * np.exp(-0.5 * (w[:, -1] * spread) ** 2 + 1j * (w @ middle))
    variance = noise_scale**2 / (design.pair_weights * n**2)
    level = np.zeros(design.dimension)
    level[0] = float((design.lower + design.upper)[-1] / 2)
    rows = []
    for share in LINE_SHARES:
        surface = spectral_surface(design, share * phi, variance, n)
        if not isinstance(surface, LatticeSurface):
            raise InvalidArgument("kind='linear' takes one or two predictors")
        rows.append(_line_row(fit_linear_modes(surface, design.dimension - 1, near=level), design))
    return pd.DataFrame(rows, index=pd.Index(LINE_SHARES, name="share"))


def _line_row(line: LinearModalFit, design: Design) -> dict[str, float]:
    """Return the standard errors of height at the centre and slopes."""
    centred = np.eye(line.coefficients.size)
    centred[0, 1:] = ((design.lower + design.upper) / 2)[:-1]
    out = {}
    for i, name in enumerate(("height", *(f"slope {name}" for name in line.predictors))):
        for source, covariance in (
            ("privacy", line.covariance_privacy),
            ("sampling", line.covariance_sampling),
        ):
            out[f"{name} s.e. {source}"] = math.sqrt(float(centred[i] @ covariance @ centred[i]))
    return out
