"""Pictures of the ascents of a DP-GRAMS release: starts, paths and, in one column, densities seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..numerics.surfaces import FloatArray
from .released_trace import ReleasedTrace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PATH = "#56B4E9"
_START = "#999999"

PAIRS_TITLE = "marginal densities, with the {}s\nof the joint density projected"
TRACE_PAIRS_TITLE = "ascents from private starts (grey), and the\njoint density released on the way"


class Scale(Protocol):
    """How one coordinate is drawn."""

    @property
    def unit(self) -> float:
        """Length of one shown unit."""
        ...

    def shown(self, values: FloatArray | float) -> Any:
        """Return values as they are drawn."""
        ...


def draw_trace(
    trace: ReleasedTrace,
    ax: Axes,
    axes: Sequence[int],
    scales: Sequence[Scale],
    heights: FloatArray | None = None,
) -> FloatArray:
    """Draw the ascents in one or two coordinates.

    One: the released densities against where they were seen, with their noise. Two: the path of each
    ascent from its start (grey) on.

    Parameters
    ----------
    trace : ReleasedTrace
    ax : matplotlib Axes
    axes : sequence of int
        One or two coordinates.
    scales : sequence of Scale
        How they are drawn.
    heights : (k,) array, optional
        Densities at the modes.

    Returns
    -------
    (k,) array
        `heights` in the picture's units, zero where they are not known.
    """
    places = [np.asarray(s.shown(trace.positions[:, :, j])) for s, j in zip(scales, axes, strict=True)]
    if len(places) == 2:
        ax.plot(places[0], places[1], color=_PATH, lw=0.8, alpha=0.6)
        ax.plot([], [], color=_PATH, lw=0.8, label="ascent")
        ax.plot(places[0][0], places[1][0], ".", color=_START, ms=4, label="private start")
        return np.zeros(0 if heights is None else heights.size)
    unit = scales[0].unit
    seen = np.nan_to_num(trace.densities) * unit
    ax.plot(places[0][:-1], seen, ".", color=_PATH, ms=3, alpha=0.6)
    ax.plot([], [], ".", color=_PATH, label="density released on the way")
    ax.plot(places[0][0], np.zeros(places[0].shape[1]), "|", color=_START, ms=7, label="private start")
    if np.isfinite(trace.density_sd):
        ax.axhspan(-trace.density_sd * unit, trace.density_sd * unit, color="0.9", zorder=0)
    return np.nan_to_num(np.zeros(0) if heights is None else heights) * unit
