"""What a summary says of a DP-GRAMS release: its rounds, and why errors may be missing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from .number_text import MISSING, plain

if TYPE_CHECKING:
    from .results import DensityModesResults

_CLEAR_CURVATURE = 5.0

Facts = list[tuple[str, str]]


def trace_facts(result: DensityModesResults) -> tuple[Facts, Facts]:
    """Return the facts of a DP-GRAMS release in two columns, all as released."""
    search = result.mode_set.diagnostics
    facts = {} if result.trace is None else result.trace.facts()
    left = [
        ("Starts", f"{facts['ascents']} of {facts['candidate_starts']}"),
        ("Rounds", f"{facts['rounds']} ({facts['noise']})"),
        ("Starts dropped, too low", str(search.dropped_by_height)),
        ("Starts dropped, shallow", str(search.dropped_by_persistence)),
        ("Starts merged", str(search.merged)),
    ]
    right = [
        ("False-mode rate", plain(search.false_mode_rate, 3)),
        ("Least height of a mode", _short(search.height_threshold)),
        ("Noise sd of one density", _short(facts["density_noise_sd_per_round"])),
        ("Clipped, floored", f"{_percent(facts['share_clipped'])}, {_percent(facts['share_floored'])}"),
        ("First, last move", f"{facts['mean_move_first_round']:.2f}, {facts['mean_move_last_round']:.2f} h"),
    ]
    return left, right


def trace_error_note(result: DensityModesResults, level: float) -> str:
    """Say what standard errors cover, or why there are none."""
    common = "A trace does not cover the box, so there are no shares. Height z: height over its error."
    if result.trace is None or result.trace.finish == "iterates":
        return (
            "No standard errors: the merged ends of noisy ascents carry the noise of all rounds, and the "
            f"curvature that it would have to be divided by was not released. {common}"
        )
    return (
        f"Standard errors and {100 * level:g}% intervals cover the privacy noise of all rounds and the "
        "sampling of the records, for the modes of the density smoothed at the bandwidth shown. Smoothing "
        f"bias is not in them. {common}"
    )


def trace_doubts(result: DensityModesResults) -> Iterator[str]:
    """Say which modes cannot be relied on, by reason."""
    modes = result.mode_set
    if result.trace is None or result.trace.finish == "iterates":
        if not modes.significant.all():
            yield "No ascent ended clearly above the noise: these modes are where noise led them."
        return
    doubtful = np.flatnonzero(~modes.reliable)
    flat = np.asarray(modes.curvature_z < _CLEAR_CURVATURE)
    face = np.asarray(modes.on_face.any(axis=1))
    reasons = (
        (f"curvature below {_CLEAR_CURVATURE:g} times its noise", flat),
        ("on a bound", face),
        (
            f"not told from noise at a false-mode rate of {modes.diagnostics.false_mode_rate:g}",
            ~modes.significant,
        ),
    )
    told = [
        f"{reason}: {', '.join(str(m + 1) for m in doubtful.tolist() if flags[m])}"
        for reason, flags in reasons
        if flags[doubtful].any()
    ]
    if told:
        yield f"? Intervals that cannot be relied on, by mode: {'; '.join(told)}."


def _short(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else MISSING


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if math.isfinite(share) else MISSING
