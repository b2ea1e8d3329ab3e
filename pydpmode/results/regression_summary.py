"""The summary of a modal regression as statsmodels tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..numerics.modal_branches import BranchSet, branches_at
from ..numerics.surfaces import FloatArray
from .base_results import normal_quantile
from .clean_values import clean_text, clean_values
from .number_text import plain, shorten, spread_text, value_text
from .regression_linear import INTERCEPT
from .summary_tables import (
    DOUBTFUL,
    LEFT_WIDTH,
    NAME_WIDTH,
    Block,
    ReleaseSummary,
    banner,
    columns_block,
    facts_block,
    fits,
    long_facts,
    privacy_facts,
    used_label,
    z_text,
)

if TYPE_CHECKING:
    from .regression_results import ModalRegressionResults

# Predictor values at which the summary shows the branches, by the number of predictors (per axis, about).
_SHOWN = {1: 9, 2: 3, 3: 2}


def modal_regression_summary(result: ModalRegressionResults, level: float = 0.95) -> ReleaseSummary:
    """Return the summary of a `ModalRegressionResults`.

    Parameters
    ----------
    result : ModalRegressionResults
    level : float
        Coverage of the intervals, in (0, 1).
    """
    blocks = [banner()] if result.simulated else []
    blocks += [facts_block(_fit_facts(result), privacy_facts(result)), columns_block(result)]
    blocks += _tables(result, level)
    blocks.append(facts_block(*_diagnostic_facts(result)))
    return ReleaseSummary(_title(result), blocks, list(_notes(result, level)))


def _tables(result: ModalRegressionResults, level: float) -> Iterator[Block]:
    for value, found in zip(result.levels or (None,), result.branch_sets, strict=True):
        if result.by is not None:
            yield Block([[f"{result.by} = {value}"]], "l")
        if result.linear:
            group = 0 if value is None else result.levels.index(value)
            yield _coefficients_block(result, group, level)
            continue
        chosen = found.certified_only() if found.certified.any() else found
        if chosen.count:
            yield _branches_block(result, chosen)
            yield _values_block(result, chosen, level)
        else:
            yield Block([["No branch was found: nothing stands clear of the noise."]], "c")


def _title(result: ModalRegressionResults) -> str:
    if result.privacy is None:
        return "Modal regression (not private)"
    if result.simulated:
        return "Modal regression, simulated noise (NOT PRIVATE)"
    return "Private modal regression"


def _fit_facts(result: ModalRegressionResults) -> list[tuple[str, str]]:
    facts, spent = result.facts, result.privacy
    rows = [("Label", fits(result.label, LEFT_WIDTH))] if result.label else []
    rows += [("Response", fits(result.response_coordinate.name, LEFT_WIDTH))]
    rows += [("Predictors", fits(", ".join(c.name for c in result.predictors), LEFT_WIDTH))]
    if result.by is not None:
        rows.append(("Groups", fits(f"{len(result.levels)} levels of {result.by}", LEFT_WIDTH)))
    rows.append((used_label(spent), f"{facts.n_records:.0f}"))
    if spent is not None and spent.n_units is not None:
        rows.append((f"{spent.unit.capitalize()}s (public)", str(spent.n_units)))
    rows.append(("Bandwidth rule", fits(result.bandwidth_rule or "not stated", LEFT_WIDTH)))
    return rows


def _coefficients_block(result: ModalRegressionResults, group: int, level: float) -> Block:
    """Return the coefficients of a modal line as statsmodels shows them."""
    fit = result.linear[group]
    half = normal_quantile(level)
    tail = (1 - level) / 2
    rows = []
    names = [INTERCEPT, *fit.predictors]
    for i, name in enumerate(names):
        at, total = float(fit.coefficients[i]), float(fit.standard_errors[i])
        text = value_text("number", [total], [at], abs(at) / 100 or 1.0)
        parts = [
            math.sqrt(max(float(c[i, i]), 0.0)) for c in (fit.covariance_privacy, fit.covariance_sampling)
        ]
        z = at / total if total > 0 else math.nan
        p = math.erfc(abs(z) / math.sqrt(2)) if math.isfinite(z) else math.nan
        rows.append(
            [
                *(shorten(name, NAME_WIDTH), text.value(at), text.error(total)),
                *(text.error(part) for part in parts),
                *(z_text(z), "--" if math.isnan(p) else f"{p:.3f}"),
                *(text.value(at - half * total), text.value(at + half * total)),
            ]
        )
    headers = ("", "coef", "std err", "privacy", "sampling", "z", "P>|z|", f"[{tail:.4g}", f"{1 - tail:.4g}]")
    return Block(rows, "l" + "r" * (len(headers) - 1), headers)


def _branches_block(result: ModalRegressionResults, found: BranchSet) -> Block:
    """Return one row per branch: where it runs, its share, and whether it is certified."""
    points, shares = found.points(), found.shares()
    rows = []
    for b in range(found.count):
        own = found.branch == b
        ends = []
        for coordinate, values, axis in zip(result.predictors, points[own].T, found.axes, strict=True):
            low, high = coordinate.back_number(np.array([values.min(), values.max()]))
            # All with the digits that tell a step of the grid; on a log scale each with its own.
            step = max(high - low, abs(high) / 100) / 20
            step = step if coordinate.maps_back else 4 * float(axis[1] - axis[0])
            text = value_text(coordinate.kind, [step], [low, high], 1.0)
            ends.append(f"{text.value(float(low))} to {text.value(float(high))}")
        sure = float(found.certified[own].mean())
        said = "yes" if sure > 0.5 else "in part" if sure > 0 else "no"
        rows.append([str(b + 1), *ends, _share_text(shares[b], 3), z_text(float(found.snr[own].max())), said])
    heads = [f"runs over {shorten(c.column, NAME_WIDTH)}" for c in result.predictors]
    headers = ("branch", *heads, "share", "largest snr", "certified")
    return Block(rows, "l" + "r" * (len(headers) - 1), headers)


def _share_text(share: float, digits: int) -> str:
    """Return a share; dashes where the release does not tell it."""
    return "--" if math.isnan(share) else f"{share:.{digits}f}"


def _values_block(result: ModalRegressionResults, found: BranchSet, level: float) -> Block:
    """Return the branches at a few predictor values."""
    half = normal_quantile(level)
    response = result.response_coordinate
    points = _shown_points(result)
    at = branches_at(found, points)
    error = np.sqrt(at.variance_privacy + at.variance_sampling)
    lower, upper = at.estimate - half * error, at.estimate + half * error
    scale = float(result.facts.bandwidth[result.response]) / 20
    text = value_text(response.kind, error.ravel(), at.estimate.ravel(), scale)
    rows = []
    for row, point in enumerate(points):
        there = np.flatnonzero(np.isfinite(at.estimate[row]))
        where = [clean_text(c, float(v)) for c, v in zip(result.predictors, point, strict=True)]
        for b in there[np.argsort(~at.certified[row, there], kind="stable")].tolist():
            parts = (
                error[row, b],
                *(math.sqrt(v[row, b]) for v in (at.variance_privacy, at.variance_sampling)),
            )
            cells = [
                f"{b + 1}" if at.certified[row, b] else f"{b + 1} {DOUBTFUL}",
                text.value(float(at.estimate[row, b])),
                *(text.error(float(part)) for part in parts),
                *(text.value(float(end[row, b])) for end in (lower, upper)),
                _share_text(at.share[row, b], 2),
            ]
            if response.maps_back:
                ends = response.back_number(np.array([at.estimate[row, b], lower[row, b], upper[row, b]]))
                back = value_text("number", [(ends[2] - ends[1]) / 4], ends, abs(ends[0]) / 100)
                cells.append(back.value(float(ends[0])))
            rows.append([*where, *cells])
            where = [""] * len(result.predictors)
    tail = (1 - level) / 2
    names = [shorten(c.column, NAME_WIDTH) for c in result.predictors]
    headers = (
        *(*names, "branch", "estimate", "s.e.", "privacy", "sampling", f"[{tail:.4g}", f"{1 - tail:.4g}]"),
        *("share", *([shorten(response.column, NAME_WIDTH)] if response.maps_back else [])),
    )
    aligns = "r" * len(names) + "l" + "r" * (len(headers) - len(names) - 1)
    return Block(rows, aligns, headers)


def _shown_points(result: ModalRegressionResults) -> FloatArray:
    """Return round predictor values, (m, p) in the coordinates' units."""
    predictors = [i for i in range(len(result.coordinates)) if i != result.response]
    count = _SHOWN[len(predictors)]
    axes = [
        clean_values(result.coordinates[i], float(result.facts.lower[i]), float(result.facts.upper[i]), count)
        for i in predictors
    ]
    return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)


def _diagnostic_facts(result: ModalRegressionResults) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    facts = result.diagnostics
    negative = result.negative_mass
    scales = [s for s in result.residual_scales if math.isfinite(s)]
    kind = result.response_coordinate.kind
    spread = ", ".join(spread_text(kind, s, 3) for s in scales[:4]) + (", ..." if len(scales) > 4 else "")
    found = ("Branches", f"{facts['branches']} ({facts['certified_branches']} certified)")
    if result.linear:
        found = ("Maximum found", "yes" if all(fit.converged for fit in result.linear) else "NO")
    left = [
        found,
        ("Residual scale", spread or "--"),
        ("Points of the grid", str(facts["grid_points"])),
    ]
    right = [
        # A line is not tested against noise: the rate is of branches alone.
        *([] if result.linear else [("False-branch rate", plain(facts["false_branch_rate"], 3))]),
        ("Noise sd of the density", f"{sd:.3g}" if math.isfinite(sd := result.facts.noise_sd) else "--"),
        ("Negative mass", "--" if negative is None else f"{negative:.3g}"),
    ]
    return left, right


def _linear_notes(result: ModalRegressionResults, source: str, level: float) -> Iterator[str]:
    yield (
        f"The line with the most density along it (Yao & Li 2014). Standard errors and {100 * level:g}% "
        f"intervals cover {source}. They do not cover the bias that smoothing leaves in the intercept where "
        "errors are skewed: there its interval is too short for the true line."
    )
    if any(fit.unsmoothed for fit in result.linear):
        yield (
            "The errors are clearly not symmetric: the intercept is the mode of their density with the "
            "smoothing taken off, which leaves less of that bias."
        )
    if any(c.kind != "number" for c in result.coordinates):
        yield "Coefficients of dates and durations are per second, those of dates from 1970."
    if not all(fit.converged for fit in result.linear):
        yield (
            "No strict maximum was found, or a predictor hardly varies: the coefficients are the best of the "
            "search, have no errors, and must not be used."
        )
    yield from _last_notes(result)


def _last_notes(result: ModalRegressionResults) -> Iterator[str]:
    if result.privacy is not None:
        yield from result.privacy.notes
    for warning in result.warnings:
        yield f"Warning: {warning}"


def _notes(result: ModalRegressionResults, level: float) -> Iterator[str]:
    spent = result.privacy
    if spent is None:
        yield "NOT PRIVATE: no noise was added, so everything here follows the rows and nothing is protected."
    else:
        yield spent.statement()
    yield from long_facts(result)
    source = "the sampling of the records"
    source = source if spent is None else f"the privacy noise and {source}"
    if result.linear:
        yield from _linear_notes(result, source, level)
        return
    yield (
        f"Standard errors and {100 * level:g}% pointwise intervals cover {source}, for the conditional modes "
        "of the density smoothed at the bandwidth shown. Smoothing bias is not in them: it is largest where "
        "a branch bends or ends within a bandwidth. Share: part of the conditional mass in the mode's basin."
    )
    rate = result.branch_sets[0].false_branch_rate
    some = any(not found.certified.all() for found in result.branch_sets)
    if some and any(found.certified.any() for found in result.branch_sets):
        yield (
            f"Shown are certified branches: noise alone makes any in about {100 * rate:g}% of surfaces. "
            "`branches` and the picture hold the others as well, and what lies within a bandwidth of a bound "
            "of the response, where values beyond the bound pile up."
        )
    elif some:
        yield f"{DOUBTFUL} Not certified: noise alone makes such in more than {100 * rate:g}% of surfaces."
    if result.response_coordinate.maps_back:
        c = result.response_coordinate
        yield f"{c.column}: the mode of {c.name} taken back. The mode of {c.column} itself is lower."
    yield "Where no branch is listed nothing stands out: too few records, or none."
    yield from _last_notes(result)
