"""Numbers beside the modes of a picture, kept inside the axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..numerics.surfaces import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

_RIGHT, _TOP = 0.95, 0.93


def number_mode(
    ax: Axes,
    number: int,
    at: tuple[float, float],
    mode: FloatArray,
    limits: Sequence[tuple[float, float]],
    color: str,
    *,
    small: bool = False,
) -> Annotation:
    """Write a mode's number above and right of it; below or left near the top or right end of the box.

    Parameters
    ----------
    ax : matplotlib Axes
    number : int
    at : (float, float)
        Where the mode is drawn.
    mode : (2,) array
        The mode in its coordinates' units.
    limits : two pairs of float
        Ends of the box in these units.
    color : str
    small : bool
        For a small panel.
    """
    right, top = (
        (float(value) - low) / (high - low) > end
        for value, (low, high), end in zip(mode, limits, (_RIGHT, _TOP), strict=True)
    )
    part = 0.5 if small else 1.0
    return ax.annotate(
        str(number),
        at,
        (part * (-8 if right else 8), part * (-7 if top else 7)),
        fontsize="small" if small else None,
        textcoords="offset points",
        ha="right" if right else "left",
        va="top" if top else "bottom",
        color=color,
        weight="bold",
        zorder=6,
    )
