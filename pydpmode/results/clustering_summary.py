"""The summary of clusters as statsmodels tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .number_text import MISSING, ValueText, plain, shorten, spread_text, value_text
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
    import pandas as pd

    from .clustering_results import ClusteringResults

_STABLE = 0.8  # share of noise draws below which a cluster is doubtful
_CLEAR = 3.0  # evidence in standard deviations
EVIDENCE = (
    "Evidence z: loss of fit without the cluster, in standard deviations of the noise. Again: share of "
    "repeated noise draws in which the cluster is found again."
)


def clustering_summary(result: ClusteringResults, level: float = 0.95) -> ReleaseSummary:
    """Return the summary of a `ClusteringResults`.

    Parameters
    ----------
    result : ClusteringResults
        What to show.
    level : float
        Coverage of the intervals, in (0, 1).
    """
    blocks = [banner()] if result.simulated else []
    blocks += [facts_block(_fit_facts(result), privacy_facts(result)), columns_block(result)]
    blocks += [shares_block(result), _centres_block(result, level)] if result.n_clusters else [nothing()]
    blocks.append(facts_block(*_diagnostic_facts(result)))
    return ReleaseSummary(clustering_title(result), blocks, list(_notes(result, level)))


def clustering_title(result: ClusteringResults) -> str:
    """Return the heading of summary and picture."""
    if result.privacy is None:
        return "Clusters (not private)"
    return "Clusters, simulated noise (NOT PRIVATE)" if result.simulated else "Private clusters"


def doubtful(result: ClusteringResults) -> list[bool]:
    """Say of each cluster whether it may be noise, or is not found again in other draws of it."""
    clusters = result.cluster_set
    trusted = (clusters.significance >= _CLEAR) & ~(clusters.stability < _STABLE)
    return [not bool(flag) for flag in trusted]


def nothing() -> Block:
    """Return the line that stands for tables of clusters where there are none."""
    return Block([["No cluster was found: no peak of the surface stands clear of the noise."]], "c")


def _fit_facts(result: ClusteringResults) -> list[tuple[str, str]]:
    spent, asked = result.privacy, result.n_clusters_requested
    rows = [("Label", fits(result.label, LEFT_WIDTH))] if result.label else []
    rows.append((used_label(spent), f"{result.facts.n_records:.0f}"))
    if spent is not None and spent.n_units is not None:
        rows.append((f"{spent.unit.capitalize()}s (public)", str(spent.n_units)))
    what = "fitted clusters" if result.centres_kind == "fit" else "modes of the density"
    return [
        *rows,
        ("Clusters", f"{result.n_clusters} ({'number found' if asked is None else f'{asked} asked for'})"),
        ("Centres", what),
        ("Bandwidth rule", fits(result.bandwidth_rule or "not stated", LEFT_WIDTH)),
    ]


def shares_block(result: ClusteringResults) -> Block:
    """Return share, evidence and stability of each cluster."""
    shares, clusters = result.shares, result.cluster_set
    known = bool(np.isfinite(shares["total"]).all())
    rows = []
    for k, doubt in enumerate(doubtful(result)):
        row = shares.iloc[k]
        parts = [f"{row[s]:.3f}" for s in ("total", "privacy", "sampling")] if known else []
        again = float(clusters.stability[k])
        rows.append(
            [
                f"{k + 1} {DOUBTFUL}" if doubt else f"{k + 1}",
                f"{row['share']:.3f}",
                *parts,
                z_text(float(clusters.significance[k])),
                MISSING if math.isnan(again) else f"{again:.1f}",
            ]
        )
    headers = ("cluster", "share", *(["s.e.", "privacy", "sampling"] if known else []), "evidence z", "again")
    return Block(rows, "l" + "r" * (len(headers) - 1), headers)


def _centres_block(result: ClusteringResults, level: float) -> Block:
    private = result.privacy is not None
    # Tables of all clusters, made once.
    errors, intervals = result.std_errors, result.conf_int(level)
    texts = [_coordinate_text(result, j, errors) for j in range(len(result.coordinates))]
    rows = [
        row
        for k in range(result.n_clusters)
        for row in _centre_rows(result, k, private, errors, intervals, texts)
    ]
    tail = (1 - level) / 2
    headers = (
        "cluster",
        "column",
        "centre",
        *(["s.e.", "privacy", "sampling"] if private else ["s.e."]),
        f"[{tail:.4g}",
        f"{1 - tail:.4g}]",
    )
    return Block(rows, "ll" + "r" * (len(headers) - 2), headers)


def _centre_rows(
    result: ClusteringResults,
    k: int,
    private: bool,
    errors: pd.DataFrame,
    intervals: pd.DataFrame,
    texts: Sequence[ValueText],
) -> Iterator[list[str]]:
    """Yield the lines of one cluster, from the tables of all."""
    errors, intervals = errors.loc[[k + 1]], intervals.loc[[k + 1]]
    for j, coordinate in enumerate(result.coordinates):
        text = texts[j]
        parts = ("total", "privacy", "sampling") if private else ("total",)
        yield [
            f"{k + 1}" if j == 0 else "",
            shorten(coordinate.name, NAME_WIDTH),
            text.value(float(result.cluster_set.centres[k, j])),
            *(text.error(float(errors.iloc[j][part])) for part in parts),
            *(text.value(float(intervals.iloc[j][side])) for side in ("lower", "upper")),
        ]


def _coordinate_text(result: ClusteringResults, j: int, errors: pd.DataFrame) -> ValueText:
    total = errors["total"].to_numpy()[j :: len(result.coordinates)]
    values = result.cluster_set.centres[:, j]
    return value_text(result.coordinates[j].kind, total, values, float(result.facts.bandwidth[j]) / 20)


def _diagnostic_facts(result: ClusteringResults) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    clusters = result.cluster_set
    left = [("Noise sd of the density", f"{result.facts.noise_sd:.3g}")]
    right = []
    if not math.isnan(clusters.evidence):
        left.append(("Evidence for one more", f"z = {clusters.evidence:.2f}"))
        right.append(("Evidence needed", f"z = {clusters.threshold:.2f}"))
    spread = np.sqrt(np.diag(clusters.covariance))
    if np.isfinite(spread).all() and len(spread) <= 3:
        told = ", ".join(spread_text(c.kind, v, 3) for c, v in zip(result.coordinates, spread, strict=True))
        right.append(("Spread within clusters", told))
    return left, right


def _notes(result: ClusteringResults, level: float) -> Iterator[str]:
    spent = result.privacy
    if spent is None:
        yield "NOT PRIVATE: no noise was added, so everything here follows the rows and nothing is protected."
    else:
        yield spent.statement()
    yield from long_facts(result)
    if result.centres_kind == "fit":
        own = result.cluster_set.own_shapes
        common, others = ("volume", "densities") if own else ("shape", "shapes")
        yield (
            f"Standard errors and {100 * level:g}% intervals hold the privacy noise and the sampling of the "
            f"records, for centres and shares of Gaussian clusters of one common {common}. Where clusters "
            f"have other {others}, such as one narrower than the rest, their means and shares differ from "
            "these, with many records by more than the standard errors."
        )
        yield EVIDENCE
        if result.n_clusters_requested is None:
            yield from _number_notes(result)
    else:
        yield (
            f"Standard errors and {100 * level:g}% intervals are those of modes of the surface; shares are "
            "the masses of their basins. Evidence z: persistence over its standard error."
        )
    yield from doubts(result)
    yield "Labels of the private rows themselves are not covered by the guarantee: keep them to yourself."
    if spent is not None:
        yield from spent.notes
    for warning in result.warnings:
        yield f"Warning: {warning}"


def doubts(result: ClusteringResults) -> Iterator[str]:
    """Yield which clusters are not to be relied on, if any."""
    numbers = [str(k + 1) for k, doubt in enumerate(doubtful(result)) if doubt]
    if numbers:
        yield (
            f"{DOUBTFUL} Not to be relied on: cluster{'s' if len(numbers) > 1 else ''} {', '.join(numbers)} "
            f"(evidence below {plain(_CLEAR)}, or found again in fewer than {100 * _STABLE:g}% of the draws)."
        )


def _number_notes(result: ClusteringResults) -> Iterator[str]:
    """Yield what a number of clusters that was found means."""
    clusters = result.cluster_set
    yield (
        "The number found is that of Gaussian pieces of one common shape that the release shows. They need "
        "not be groups: a group of another shape, or values piled at a bound, takes several."
    )
    if clusters.evidence > clusters.threshold and not clusters.at_limit:
        yield (
            "More is left than noise, where another piece of that shape did not stand: values piled at a "
            "bound, or clusters of unlike shapes."
        )
