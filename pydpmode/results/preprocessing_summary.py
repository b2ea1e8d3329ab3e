"""Summaries of released transforms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..budget import PrivacySpent
from ..numerics.surfaces import FloatArray
from .number_text import cost_text, duration_text, limits_text, shorten, value_text
from .preprocessing import PCAResults, ReleasedTransform, ScalerResults
from .summary_tables import NAME_WIDTH, Block, ReleaseSummary, facts_block, used_label

_LONGEST_TABLE = 40
SIMULATED = "*** SIMULATED: the noise came from a seed. NOT PRIVATE. Do not publish. ***"


def scaler_summary(result: ScalerResults) -> ReleaseSummary:
    """Return the summary of released locations and scales."""
    total = np.hypot(result.privacy_errors, result.sampling_errors)
    rows = [_scaler_row(result, j, total[j]) for j in range(min(len(result.columns), _LONGEST_TABLE))]
    headers = ("column", "location", "s.e.", "scale", "s.e.", "lower", "upper")
    notes = [
        "Location: released median. Scale: distance of the released quartiles / 1.349, the standard "
        "deviation of a normal column.",
        "Standard errors cover privacy noise and sampling, at the density of a normal column with these "
        "quartiles. In a column of several modes a median or quartile that falls between two of them can be "
        "off by many times its standard error.",
    ]
    if result.floored.any():
        names = [name for name, low in zip(result.columns, result.floored, strict=True) if low]
        notes.append(
            f"No spread was seen in {', '.join(names)}: the scale is a hundredth of the width of the bounds."
        )
    return _summary("Private location and scale", result, [Block(rows, "lrrrrrr", headers)], notes, [])


def _scaler_row(result: ScalerResults, j: int, errors: FloatArray) -> list[str]:
    """Return location and scale of a column with their errors, and its bounds."""
    kind, name = result.coordinates[j].kind, shorten(result.columns[j], NAME_WIDTH)
    numbers = (result.location[j], errors[0], result.scale[j], errors[1], *_bounds(result, j))
    if kind == "number":
        return [name, *(f"{v:.4g}" for v in numbers)]
    at, at_error, scale, scale_error, low, high = (float(v) for v in numbers)
    where = value_text(kind, [at_error], [at], scale / 20)
    spans = duration_text(scale_error, scale)
    shown = [where.value(at), where.error(at_error), spans.value(scale), spans.error(scale_error)]
    return [name, *shown, *limits_text(kind, low, high)]


def pca_summary(result: PCAResults) -> ReleaseSummary:
    """Return the summary of released components."""
    total = np.hypot(result.privacy_errors, result.sampling_errors)
    rows = [
        [
            name + ("" if result.clear[j] else " ?"),
            f"{result.explained_variance[j]:.4g}",
            f"{result.privacy_errors[j]:.2g}",
            f"{total[j]:.2g}",
            f"{100 * result.explained_variance_ratio[j]:.1f}%",
            f"{result.angles[j]:.0f}",
        ]
        for j, name in enumerate(result.names)
    ]
    headers = ("component", "variance", "privacy s.e.", "s.e.", "share", "angle error, degrees")
    notes = [
        f"Rows were clipped to distance {result.radius:.4g} from the location, in scales, before the second "
        "moments were released: variances are those of the clipped rows.",
        "The bias that the noise gives the largest eigenvalues is removed. Angle: how far the noise turns a "
        "component, root mean square; components of nearly equal variance turn into each other.",
    ]
    if not result.clear.all():
        notes.append("?: this variance is not above what noise alone gives; the direction means little.")
    facts = [
        ("Columns", str(len(result.columns))),
        ("Components", str(len(result.names))),
        ("Radius", f"{result.radius:.4g}"),
        ("Scores", "whitened" if result.whiten else "one scale"),
    ]
    return _summary("Private principal components", result, [Block(rows, "lrrrrr", headers)], notes, facts)


def _summary(
    title: str,
    result: ReleasedTransform,
    tables: list[Block],
    notes: Sequence[str],
    facts: list[tuple[str, str]],
) -> ReleaseSummary:
    blocks = [Block([[SIMULATED]], "c")] if result.simulated else []
    label = [("Label", shorten(result.label, NAME_WIDTH))] if result.label else []
    left = [*label, (used_label(result.privacy[0]), f"{result.records:.0f}"), *facts]
    blocks += [facts_block(left, _privacy_facts(result)), *tables]
    if len(result.privacy) > 1:
        blocks.insert(-len(tables), _releases(result.privacy))
    shown = title + (", simulated noise (NOT PRIVATE)" if result.simulated else "")
    whole = replace(result.privacy[0], epsilon=result.epsilon, delta=result.delta)
    return ReleaseSummary(shown, blocks, [*notes, whole.statement(), *result.warnings])


def _privacy_facts(result: ReleasedTransform) -> list[tuple[str, str]]:
    first = result.privacy[0]
    verb = "replacing" if first.adjacency == "replace" else "adding or removing"
    several = len(result.privacy) > 1
    return [
        ("Epsilon", cost_text(result.epsilon) + (" (all releases)" if several else "")),
        ("Delta", cost_text(result.delta)),
        ("Mechanism", f"{len(result.privacy)} releases" if several else first.mechanism),
        ("Protects against", f"{verb} one {first.unit}"),
        ("Values outside bounds", "clipped" if first.outside == "clip" else "ignored"),
    ]


def _releases(privacy: Sequence[PrivacySpent]) -> Block:
    rows = [
        [spent.mechanism, f"{spent.epsilon:.4g}", f"{spent.delta:.2g}", f"{spent.noise_scale:.4g}"]
        for spent in privacy
    ]
    return Block(rows, "lrrr", ("release", "epsilon", "delta", "noise scale"))


def _bounds(result: ReleasedTransform, j: int) -> tuple[float, float]:
    column = result.coordinates[j].column
    return result.privacy[0].bounds[column]
