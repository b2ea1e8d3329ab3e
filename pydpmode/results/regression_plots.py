"""Pictures of a modal regression. Matplotlib is imported when a picture is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument, UnknownColumn
from ..numerics.conditional_regions import conditional_density, conditional_mean, surface_sd
from ..numerics.linear_modal import LinearModalFit
from ..numerics.modal_branches import BranchSet, branches_at
from ..numerics.surfaces import FloatArray, Surface
from .base_results import normal_quantile
from .number_text import cost_text, plain, shorten
from .plots import axis_scale, matplotlib_part, watermark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .regression_results import ModalRegressionResults

_BRANCH, _MEAN, _PALETTE = "#D55E00", "#333333", "YlGnBu"
_POINTS = 241
_MOST_COLUMNS = 3


def plot_branches(
    result: ModalRegressionResults,
    *,
    ax: Axes | None = None,
    predictor: str | None = None,
    at: Mapping[str, float] | None = None,
    level: float = 0.95,
    certified_only: bool = False,
) -> Axes:
    """Draw branches over the released conditional density, with bands, and the mean curve.

    Solid with a band: certified. Dotted: not certified. Dashed: the mean of the same release. The
    shading is the conditional density, scaled at each predictor value to its highest (blank where nothing is
    known). Without a surface (`mechanism="grams"`, or saved without it) there is neither mean nor shading.
    With several predictors one is drawn and the others are held; with groups there is a panel each.

    Parameters
    ----------
    result : ModalRegressionResults
    ax : matplotlib Axes, optional
        Where to draw (no groups); a new pyplot figure when omitted.
    predictor : str, optional
        Which predictor goes along the axis; the first when omitted.
    at : mapping of str to float, optional
        Values of the other predictors, on their own scales; the middle of the box when omitted.
    level : float
        Pointwise coverage of the bands.
    certified_only : bool
        Leave out what is not certified.

    Returns
    -------
    matplotlib Axes
        The (first) panel; the picture is its `.figure`.
    """
    if ax is not None:
        if result.by is not None and len(result.levels) > 1:
            raise InvalidArgument("a picture with one panel per level makes its own figure; leave ax out")
        _draw_panel(result, 0, ax, predictor, at, level, certified_only)
        return ax
    figure = matplotlib_part("pyplot").figure(figsize=_size(result), layout="constrained")
    return _draw(result, figure, predictor, at, level, certified_only)


def regression_figure(result: ModalRegressionResults, *, level: float = 0.95) -> Figure:
    """Return the picture of `plot_branches` as a figure that pyplot does not know of."""
    figure: Figure = matplotlib_part("figure").Figure(figsize=_size(result), layout="constrained")
    _draw(result, figure, None, None, level, False)
    return figure


def _size(result: ModalRegressionResults) -> tuple[float, float]:
    panels = len(result.branch_sets)
    columns = min(panels, _MOST_COLUMNS)
    rows = math.ceil(panels / columns)
    return (8.0, 5.6) if panels == 1 else (1.0 + 4.2 * columns, 0.8 + 3.8 * rows)


def _draw(
    result: ModalRegressionResults,
    figure: Figure,
    predictor: str | None,
    at: Mapping[str, float] | None,
    level: float,
    certified_only: bool,
) -> Axes:
    panels = len(result.branch_sets)
    columns = min(panels, _MOST_COLUMNS)
    rows = math.ceil(panels / columns)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for spare in axes[panels:]:
        spare.set_visible(False)
    for group in range(panels):
        _draw_panel(result, group, axes[group], predictor, at, level, certified_only)
        if result.by is not None:
            axes[group].set_title(f"{result.by} = {result.levels[group]}", fontsize="medium")
    if result.by is not None:
        figure.suptitle(_title(result), fontsize="medium")
    handles: dict[str, Any] = {}
    for panel in axes[:panels]:
        found, labels = panel.get_legend_handles_labels()
        handles |= {
            label: handle for handle, label in zip(found, labels, strict=True) if label not in handles
        }
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize="small",
    )
    first: Axes = axes[0]
    return first


def _draw_panel(
    result: ModalRegressionResults,
    group: int,
    ax: Axes,
    predictor: str | None,
    at: Mapping[str, float] | None,
    level: float,
    certified_only: bool,
) -> None:
    surface, found = result.drawn(group)
    axis, points, held = _line(result, predictor, at)
    along = points[:, axis]
    predictors = [i for i in range(len(result.coordinates)) if i != result.response]
    x_scale = axis_scale(result, predictors[axis])
    y_scale = axis_scale(result, result.response)
    if surface is not None:
        _shade(result, surface, ax, points, x_scale.shown(along), y_scale)
        of, given = shorten(result.response_coordinate.name, 20), shorten(result.predictors[axis].name, 20)
        ax.add_line(_shading_legend(f"density of {of} given {given}, over its highest there"))
    if result.linear:
        _draw_line(result.linear[group], ax, points, x_scale.shown(along), y_scale, level)
    else:
        chosen = found.certified_only() if certified_only else found
        _draw_branches(chosen, ax, points, x_scale.shown(along), y_scale, level)
    if surface is not None:
        mean = conditional_mean(conditional_density(surface, result.response, points), surface_sd(surface))
        ax.plot(
            x_scale.shown(along),
            y_scale.shown(mean),
            "--",
            color=_MEAN,
            linewidth=1.5,
            label=f"mean of {shorten(result.response_coordinate.name, 24)}",
        )
    low, high = _ends(result, result.response)
    ax.set_ylim(float(y_scale.shown(low)), float(y_scale.shown(high)))
    ax.set_xlim(float(x_scale.shown(along[0])), float(x_scale.shown(along[-1])))
    x_scale.set_ticks(ax.xaxis)
    y_scale.set_ticks(ax.yaxis)
    ax.set_xlabel(x_scale.label + (f"   ({held})" if held else ""))
    ax.set_ylabel(y_scale.label)
    if result.by is None:
        ax.set_title(_title(result), fontsize="medium")
    if result.simulated:
        watermark(ax.transAxes, ax.text, 17)


def _ends(result: ModalRegressionResults, i: int) -> tuple[float, float]:
    return float(result.facts.lower[i]), float(result.facts.upper[i])


def _line(
    result: ModalRegressionResults, predictor: str | None, at: Mapping[str, float] | None
) -> tuple[int, FloatArray, str]:
    """Return the axis that is drawn, points along it, and words for what is held."""
    names = [c.column for c in result.predictors]
    axis = 0
    if predictor is not None:
        known = {name: i for i, c in enumerate(result.predictors) for name in (c.column, c.name)}
        if predictor not in known:
            raise UnknownColumn(f"predictor must be one of {names}, got {predictor!r}")
        axis = known[predictor]
    unknown = [name for name in at or {} if name not in names]
    if unknown:
        raise UnknownColumn(f"at names {unknown}; the predictors are {names}")
    places = [i for i in range(len(result.coordinates)) if i != result.response]
    points = np.empty((_POINTS, len(places)))
    held = []
    for k, (i, coordinate) in enumerate(zip(places, result.predictors, strict=True)):
        low, high = _ends(result, i)
        if k == axis:
            points[:, k] = np.linspace(low, high, _POINTS)
            continue
        value = (low + high) / 2
        if at is not None and coordinate.column in at:
            value = float(coordinate.forward(np.array([float(at[coordinate.column])]))[0])
        points[:, k] = value
        shown = float(coordinate.back_number(np.array([value]))[0])
        held.append(f"{shorten(coordinate.column, 20)} = {plain(shown, 4)}")
    return axis, points, ", ".join(held)


def _shade(
    result: ModalRegressionResults,
    surface: Surface,
    ax: Axes,
    points: FloatArray,
    x: FloatArray,
    y_scale: Any,
) -> None:
    read = conditional_density(surface, result.response, points)
    low, high = _ends(result, result.response)
    inside = (read.responses >= low) & (read.responses <= high)
    p = np.maximum(read.density[:, inside], 0.0)
    top = p.max(axis=1, keepdims=True)
    shown = np.divide(p, top, out=np.zeros_like(p), where=top > 0)
    masked = np.ma.MaskedArray(shown, np.repeat(~read.known.astype(bool)[:, None], shown.shape[1], axis=1))
    ax.pcolormesh(
        x,
        y_scale.shown(read.responses[inside]),
        masked.T,
        cmap=_PALETTE,
        vmin=0,
        vmax=1.35,
        shading="nearest",
        rasterized=True,
    )


def _shading_legend(label: str) -> Any:
    """Return an empty line that stands for the shading in a legend."""
    colour = matplotlib_part("cm").ScalarMappable(cmap=_PALETTE).get_cmap()(0.6)
    return matplotlib_part("lines").Line2D(
        [], [], color=colour, marker="s", ms=8, linestyle="none", label=label
    )


def _draw_branches(
    found: BranchSet, ax: Axes, points: FloatArray, x: FloatArray, y_scale: Any, level: float
) -> None:
    if not found.count:
        return
    half = normal_quantile(level)
    at = branches_at(found, points)
    reach = half * np.sqrt(at.variance_privacy + at.variance_sampling)
    sure_label, doubt_label = f"mode, {100 * level:g}% band", "not certified"
    for b in range(found.count):
        sure = np.where(at.certified[:, b], at.estimate[:, b], np.nan)
        doubt = np.where(at.certified[:, b], np.nan, at.estimate[:, b])
        if np.isfinite(sure).any():
            ax.plot(x, y_scale.shown(sure), color=_BRANCH, linewidth=2.0, label=sure_label)
            ax.fill_between(
                x,
                y_scale.shown(sure - reach[:, b]),
                y_scale.shown(sure + reach[:, b]),
                color=_BRANCH,
                alpha=0.25,
                linewidth=0,
            )
            sure_label = "_nolegend_"
        if np.isfinite(doubt).any():
            ax.plot(x, y_scale.shown(doubt), ":", color=_BRANCH, linewidth=1.2, label=doubt_label)
            doubt_label = "_nolegend_"


def _draw_line(
    fit: LinearModalFit, ax: Axes, points: FloatArray, x: FloatArray, y_scale: Any, level: float
) -> None:
    if not fit.converged:
        # The best of a search that found no maximum: it has no errors and must not be used.
        return
    estimate, error = fit.predict(points)
    reach = normal_quantile(level) * error
    ax.plot(
        x, y_scale.shown(estimate), color=_BRANCH, linewidth=2.0, label=f"modal line, {100 * level:g}% band"
    )
    ends = y_scale.shown(estimate - reach), y_scale.shown(estimate + reach)
    ax.fill_between(x, *ends, color=_BRANCH, alpha=0.25, linewidth=0)


def _title(result: ModalRegressionResults) -> str:
    what = shorten(result.formula, 50)
    if result.privacy is None:
        return f"Modal regression {what} (not private)"
    cost = f"epsilon = {cost_text(result.privacy.epsilon)}, delta = {cost_text(result.privacy.delta)}"
    if result.simulated:
        return f"SIMULATED noise, NOT PRIVATE: {what} ({cost})"
    return f"Private modal regression {what}, {cost}"
