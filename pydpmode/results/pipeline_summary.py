"""Summary of a clustering pipeline: what each step cost, and the clusters in scores and in columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..numerics.surfaces import FloatArray
from .clustering_summary import EVIDENCE, doubts, nothing, shares_block
from .number_text import cost_text, shorten, value_text
from .pipeline_results import PipelineResults
from .preprocessing_summary import SIMULATED
from .summary_tables import NAME_WIDTH, Block, ReleaseSummary, facts_block, used_label

_COLUMNS_SHOWN = 8


def pipeline_summary(result: PipelineResults, level: float = 0.95) -> ReleaseSummary:
    """Return the summary of a clustering pipeline."""
    blocks = [Block([[SIMULATED]], "c")] if result.simulated else []
    first = result.privacy[0]
    verb = "replacing" if first.adjacency == "replace" else "adding or removing"
    left = [
        (used_label(first), f"{result.clustering.facts.n_records:.0f}"),
        ("Columns", str(len(result.columns))),
        ("Components", str(len(result.components.names))),
        ("Clusters", str(result.n_clusters)),
    ]
    if result.label:
        left.insert(0, ("Label", shorten(result.label, NAME_WIDTH)))
    right = [
        ("Epsilon", f"{cost_text(result.epsilon)} (all releases)"),
        ("Delta", cost_text(result.delta)),
        ("Protects against", f"{verb} one {first.unit}"),
        ("Values outside bounds", "clipped" if first.outside == "clip" else "ignored"),
    ]
    blocks += [facts_block(left, right), _steps(result)]
    if result.n_clusters:
        blocks += [shares_block(result.clustering), _clusters(result, level), _columns(result)]
    else:
        blocks.append(nothing())
    angles = ", ".join(f"{angle:.0f}" for angle in result.components.angles)
    notes = [
        f"Components: the noise turns them by {angles} degrees (root mean square).",
        "Errors of centres are of the clusters alone; those of the released centre and components come on "
        "top (components.location_errors, components.angles).",
        replace(first, epsilon=result.epsilon, delta=result.delta).statement(),
        *([EVIDENCE] if result.clustering.centres_kind == "fit" else []),
        *doubts(result.clustering),
        *result.components.warnings,
        *result.clustering.warnings,
        *result.warnings,
    ]
    title = "Private clusters of many columns"
    return ReleaseSummary(
        title + (", simulated noise (NOT PRIVATE)" if result.simulated else ""), blocks, notes
    )


def _steps(result: PipelineResults) -> Block:
    rows = [
        [name, spent.mechanism, f"{100 * share:.0f}%", f"{spent.epsilon:.4g}", f"{spent.noise_scale:.4g}"]
        for (name, share), spent in zip(result.budget_shares.items(), result.privacy, strict=True)
    ]
    return Block(rows, "llrrr", ("step", "mechanism", "share", "epsilon", "noise scale"))


def _clusters(result: PipelineResults, level: float) -> Block:
    table = result.clustering
    at, errors = (
        table.centres.to_numpy(),
        table.std_errors["total"].to_numpy().reshape(-1, len(table.columns)),
    )
    limits = table.conf_int(level).to_numpy().reshape(*at.shape, 2)
    texts = [
        value_text("number", errors[:, k], at[:, k], float(table.facts.bandwidth[k]) / 20)
        for k in range(at.shape[1])
    ]
    rows = [
        [
            f"{number + 1}" if k == 0 else "",
            name,
            texts[k].value(float(at[number, k])),
            texts[k].error(float(errors[number, k])),
            *(texts[k].value(float(limit)) for limit in limits[number, k]),
        ]
        for number in range(result.n_clusters)
        for k, name in enumerate(table.columns)
    ]
    tail = (1 - level) / 2
    headers = ("cluster", "score", "centre", "s.e.", f"[{tail:.3g}", f"{1 - tail:.4g}]")
    return Block(rows, "llrrrr", headers)


def _centre_texts(result: PipelineResults, j: int, values: FloatArray) -> list[str]:
    kind = result.components.coordinates[j].kind
    if kind == "number":
        return [f"{value:.4g}" for value in values]
    text = value_text(kind, result.std_errors.to_numpy(dtype=float)[:, j], values, 1.0)
    return [text.value(float(value)) for value in values]


def _columns(result: PipelineResults) -> Block:
    """Return the centres in the columns that differ most between clusters, in the user's order."""
    centres = result.centres.to_numpy(dtype=float)
    spread = centres.std(axis=0) / result.components.scale
    shown = np.sort(np.argsort(-spread, kind="stable")[:_COLUMNS_SHOWN])
    texts = [_centre_texts(result, j, centres[:, j]) for j in shown.tolist()]
    rows = [[str(i + 1), *row] for i, row in enumerate(zip(*texts, strict=True))]
    names = [shorten(result.columns[j], 9) for j in shown]
    return Block(rows, "l" + "r" * len(shown), ("cluster", *names))
