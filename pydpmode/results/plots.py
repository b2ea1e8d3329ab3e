"""Pictures of a surface and its modes. Matplotlib is imported when a picture is asked for.

Every picture is post-processing of the release: it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument, MissingDependency, UnknownColumn
from ..numerics.surfaces import FloatArray, Surface
from .axis_ticks import set_log_ticks
from .coordinates import Coordinate
from .mode_labels import number_mode
from .number_text import cost_text, shorten, time_unit
from .trace_plots import PAIRS_TITLE, TRACE_PAIRS_TITLE, draw_trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .results import DensityModesResults

# Okabe and Ito's palette: told apart by readers with any common colour vision, and in print.
_CURVE = "#0072B2"
_MODE = "#D55E00"
_PALETTE = "YlGnBu"
_FITTED, _RAW = "fitted clusters", "released density, smoothed, with noise"
_DOT = 0.015  # of an axis: about what a mode's dot covers
_LEVELS = 14
_GRID_1D = 601
_GRID_2D = 161
_GRID_PAIRS = 61
_DAY = 86400.0
_UNIT_WORDS = {"d": "day", "h": "hour", "min": "minute", "s": "second", "ms": "millisecond"}


@dataclass(frozen=True)
class _Scale:
    """How one coordinate is drawn: `shown = (value - origin) / unit`, with its ticks and label."""

    label: str
    set_ticks: Callable[[Any], None]
    unit: float = 1.0
    origin: float = 0.0
    unit_name: str = ""

    def shown(self, values: FloatArray | float) -> Any:
        return (np.asarray(values, dtype=float) - self.origin) / self.unit


@dataclass(frozen=True)
class _View:
    """What one panel needs: one or two coordinates of the surface, and the modes seen in them."""

    result: DensityModesResults
    surface: Surface | None
    axes: tuple[int, ...]
    scales: tuple[_Scale, ...]
    level: float

    def limits(self, position: int) -> tuple[float, float]:
        j = self.axes[position]
        return float(self.result.facts.lower[j]), float(self.result.facts.upper[j])

    def modes(self) -> FloatArray:
        return np.asarray(self.result.mode_set.locations[:, self.axes])

    def covariance(self, source: str, mode: int) -> FloatArray:
        modes = self.result.mode_set
        matrix = modes.covariance_privacy[mode]
        if source == "total":
            matrix = matrix + modes.covariance_sampling[mode] + modes.covariance_bias[mode]
        return np.asarray(matrix[np.ix_(self.axes, self.axes)])


# ------------------------------------------------------------------------------- public


def plot_modes(
    result: DensityModesResults,
    *,
    ax: Axes | None = None,
    columns: Sequence[str] | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw a density surface and its modes.

    One coordinate: the curve with a pointwise band for its noise, modes with their intervals.
    Two: filled contours of the positive part, modes numbered, with ellipses for their location
    (solid: total error; dashed: privacy noise alone). Three or more: the marginals of every column
    and of every pair. Modes whose intervals are not reliable are drawn hollow. Axes of logarithms
    carry the original column's values.

    Parameters
    ----------
    result : DensityModesResults
        What to draw; it must hold its surface.
    ax : matplotlib Axes, optional
        Where to draw one or two coordinates. Without it a new pyplot figure is made; with it
        pyplot is not touched, and the legend is left to you: `ax.legend()`.
    columns : sequence of str, optional
        Which coordinates (or original columns); all when omitted.
    level : float
        Coverage of band, intervals and ellipses, in (0, 1).

    Returns
    -------
    matplotlib Axes
        The (first) panel; the whole picture is its `.figure`.

    Raises
    ------
    MissingDependency
        When matplotlib is not installed.
    InvalidArgument
        When the result was loaded without its surface, or `ax` is given for three or more columns.
    UnknownColumn
        When `columns` names something else.
    """
    chosen = _chosen(result, columns)
    if ax is not None:
        if len(chosen) > 2:
            raise InvalidArgument(
                f"a pairs plot of {len(chosen)} columns makes its own figure; "
                "leave ax out, or choose one or two columns=[...]"
            )
        _draw_panel(_view(result, chosen, level), ax, alone=False)
        return ax
    pyplot = matplotlib_part("pyplot")
    figure = pyplot.figure(figsize=_size(len(chosen)), layout="constrained")
    return _draw(result, chosen, level, figure)


def modes_figure(
    result: DensityModesResults, *, columns: Sequence[str] | None = None, level: float = 0.95
) -> Figure:
    """Return the picture of `plot_modes` as a figure that pyplot does not know of.

    For files and servers: `modes_figure(result).savefig("modes.png")` needs no display and leaves
    nothing open.

    Parameters
    ----------
    result, columns, level
        As in `plot_modes`.
    """
    chosen = _chosen(result, columns)
    figure: Figure = matplotlib_part("figure").Figure(figsize=_size(len(chosen)), layout="constrained")
    _draw(result, chosen, level, figure)
    return figure


# --------------------------------------------------------------------------- the pictures


def _draw(result: DensityModesResults, chosen: tuple[int, ...], level: float, figure: Figure) -> Axes:
    if len(chosen) > 2:
        return _draw_pairs(result, chosen, level, figure)
    ax = figure.add_subplot()
    _draw_panel(_view(result, chosen, level), ax, alone=True)
    return ax


def _draw_panel(view: _View, ax: Axes, *, alone: bool) -> None:
    if view.surface is None and view.result.trace is None:
        raise InvalidArgument(
            "the surface cannot be reduced to these columns, so it cannot be drawn in them; plot all columns"
        )
    if len(view.axes) == 1:
        _draw_curve(view, ax)
        ax.set_ylabel(_density_label(view))
    else:
        filled = _draw_contours(view, ax, _GRID_2D)
        ax.set_ylabel(view.scales[1].label)
        for handle in _ellipse_legend(view, _regions_seen(view)):
            ax.add_line(handle)
        if alone and filled is not None:
            bar = ax.figure.colorbar(filled, ax=ax, label=_density_label(view))
            bar.ax.ticklabel_format(style="sci", scilimits=(-3, 4), useMathText=True)
    ax.set_xlabel(view.scales[0].label)
    ax.set_title(_title(view.result), fontsize="medium")
    handles, labels = ax.get_legend_handles_labels()
    if alone and handles:
        ax.figure.legend(
            handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize="small"
        )
    if view.result.simulated:
        watermark(ax.transAxes, ax.text, 17)


def _draw_curve(view: _View, ax: Axes, *, small: bool = False) -> None:
    """Draw the curve, its bands, and the modes with their intervals."""
    low, high = view.limits(0)
    x = np.linspace(low, high, _GRID_1D)
    scale = view.scales[0]
    at = scale.shown(x)
    modes = view.modes()[:, 0]
    heights = np.zeros_like(modes)
    if view.surface is not None:
        p = view.surface.density_on_grid([x])
        heights = view.surface.density(modes[:, None]) * scale.unit if modes.size else heights
        bands = [
            (_normal(view.level) * sd * scale.unit, alpha, label) for sd, alpha, label in _bands(view, p)
        ]
        p = p * scale.unit
        fitted = _fitted_curve(view, x)
        if fitted is None:
            for z, alpha, label in bands:
                ax.fill_between(at, p - z, p + z, color=_CURVE, alpha=alpha, lw=0, label=label)
            ax.plot(at, p, color=_CURVE, lw=1.0 if small else 1.6, label="density")
        else:
            ax.plot(at, p, color="0.6", lw=0.7, label=_RAW)
            ax.plot(at, fitted * scale.unit, color=_CURVE, lw=1.0 if small else 1.6, label=_FITTED)
            heights = np.interp(modes, x, fitted) * scale.unit
    elif view.result.trace is not None:
        heights = draw_trace(view.result.trace, ax, view.axes, view.scales, view.result.mode_set.densities)
    ax.axhline(0.0, color="0.5", lw=0.6)
    _draw_mode_intervals(view, ax, heights, small)
    ax.set_xlim(*scale.shown(np.array([low, high])))
    scale.set_ticks(ax.xaxis)


def _fitted_curve(view: _View, x: FloatArray) -> FloatArray | None:
    """Return the density of fitted clusters along the only coordinate of a view, for pictures of them."""
    curve = getattr(view.result, "fitted_curve", None)
    return curve(view.axes[0], x) if callable(curve) else None


def _bands(view: _View, p: FloatArray) -> list[tuple[FloatArray, float, str]]:
    """Return (sd, opacity, label) of each band around the curve, the widest first."""
    surface = view.surface
    if surface is None:
        return []
    noise = np.full_like(p, max(float(surface.noise.value), 0.0))
    positive = np.maximum(p, 0.0)
    sampling = np.maximum(surface.roughness.value * positive - positive**2, 0.0)
    total = np.sqrt(noise + sampling / surface.n_effective)
    percent = f"{100 * view.level:g}%"
    if view.result.privacy is None:
        return [(total, 0.3, f"{percent} pointwise, sampling")]
    return [
        (total, 0.18, f"{percent} pointwise, privacy and sampling"),
        (np.sqrt(noise), 0.3, f"{percent} pointwise, privacy noise alone"),
    ]


def _draw_mode_intervals(view: _View, ax: Axes, heights: FloatArray, small: bool) -> None:
    scale = view.scales[0]
    z = _normal(view.level)
    reliable = view.result.mode_set.reliable
    seen = set()
    for number, (mode, height) in enumerate(zip(view.modes()[:, 0], heights, strict=True)):
        half = z * math.sqrt(max(float(view.covariance("total", number)[0, 0]), 0.0)) / scale.unit
        solid = bool(reliable[number])
        label = _mode_label(view, solid) if solid not in seen else None
        seen.add(solid)
        at = float(scale.shown(mode))
        ax.vlines(at, 0, height, color=_MODE, lw=0.8, ls=":")
        ax.errorbar(
            at,
            height,
            xerr=half if math.isfinite(half) else None,
            color=_MODE,
            marker="o",
            ms=3.5 if small else 5.5,
            mfc=_MODE if solid else "white",
            capsize=0 if small else 3,
            lw=1.2,
            ls="none",
            label=label,
            zorder=4,
        )
        if not small:
            place = (mode - view.limits(0)[0]) / (view.limits(0)[1] - view.limits(0)[0])
            side = "left" if place < 0.02 else "right" if place > 0.98 else "center"
            shift = {"left": 4, "right": -4, "center": 0}[side]
            ax.annotate(
                str(number + 1), (at, height), (shift, 7), textcoords="offset points", ha=side, color=_MODE
            )
    if not small:
        ax.margins(y=0.12)


def _draw_contours(view: _View, ax: Axes, nodes: int, *, small: bool = False) -> Any:
    """Draw filled contours of max(p, 0), and the modes with their ellipses."""
    limits = [view.limits(0), view.limits(1)]
    grids = [np.linspace(low, high, nodes) for low, high in limits]
    shown = [scale.shown(grid) for scale, grid in zip(view.scales, grids, strict=True)]
    filled = None
    if view.surface is not None:
        p = np.maximum(view.surface.density_on_grid(grids), 0.0) * view.scales[0].unit * view.scales[1].unit
        top = float(p.max())
        if top > 0:
            levels = matplotlib_part("ticker").MaxNLocator(_LEVELS).tick_values(0.0, top)
            filled = ax.contourf(shown[0], shown[1], p.T, levels=levels, colors=_colours(len(levels) - 1))
    if view.result.trace is not None:
        draw_trace(view.result.trace, ax, view.axes, view.scales)
    for number in range(view.result.n_modes):
        _draw_mode(view, ax, number, small)
    ax.set_xlim(shown[0][0], shown[0][-1])
    ax.set_ylim(shown[1][0], shown[1][-1])
    view.scales[0].set_ticks(ax.xaxis)
    view.scales[1].set_ticks(ax.yaxis)
    return filled


def _colours(count: int) -> list[Any]:
    """Return `count` colours, from white for almost nothing to dark."""
    palette = matplotlib_part("cm").ScalarMappable(cmap=_PALETTE)
    palette.set_clim(0.0, 1.0)
    return ["white", *(palette.to_rgba(x) for x in np.linspace(0.0, 1.0, max(count - 1, 1)))][:count]


def _draw_mode(view: _View, ax: Axes, number: int, small: bool) -> None:
    halo = [
        matplotlib_part("patheffects").withStroke(linewidth=2.2 if not small else 1.4, foreground="white")
    ]
    x, y = (float(s.shown(v)) for s, v in zip(view.scales, view.modes()[number], strict=True))
    solid = bool(view.result.mode_set.reliable[number])
    for source, style in _ellipse_styles(view):
        patch = _ellipse(view, number, source)
        if patch is not None:
            patch.set(fill=False, edgecolor=_MODE, linestyle=style, linewidth=0.8 if small else 1.2)
            if source == "total":
                patch.set_path_effects(halo)
            ax.add_patch(patch)
    size = 2.0 if small else 3.0
    ax.plot(
        x,
        y,
        "o",
        ms=size if solid else size + 1,
        mfc=_MODE if solid else "white",
        mec=_MODE,
        mew=1.1,
        zorder=5,
    )
    ends = (view.limits(0), view.limits(1))
    text = number_mode(ax, number + 1, (x, y), view.modes()[number], ends, _MODE, small=small)
    text.set_path_effects(halo)


def _ellipse_styles(view: _View) -> list[tuple[str, str]]:
    private = view.result.privacy is not None
    return [("total", "-"), ("privacy", (0, (2.5, 1.5)))] if private else [("total", "-")]  # type: ignore[list-item]


def _ellipse(view: _View, number: int, source: str) -> Any:
    """Return the joint region of a mode's two coordinates, or None where it is not known."""
    units = np.array([scale.unit for scale in view.scales])
    covariance = view.covariance(source, number) / np.outer(units, units)
    if not np.isfinite(covariance).all():
        return None
    values, vectors = np.linalg.eigh(covariance)
    # The chi-square quantile with two degrees of freedom.
    radii = np.sqrt(np.maximum(values, 0.0) * (-2 * math.log1p(-view.level)))
    x, y = (float(s.shown(v)) for s, v in zip(view.scales, view.modes()[number], strict=True))
    angle = math.degrees(math.atan2(vectors[1, 1], vectors[0, 1]))
    patches = matplotlib_part("patches")
    return patches.Ellipse((x, y), 2 * radii[1], 2 * radii[0], angle=angle, zorder=4)


def _regions_seen(view: _View) -> bool:
    """Return whether the region of any mode is wider than its dot."""
    widths = np.array([high - low for low, high in (view.limits(0), view.limits(1))])
    across = 2 * math.sqrt(-2 * math.log1p(-view.level))
    variances = [np.diag(view.covariance("total", number)) for number in range(view.result.n_modes)]
    return any(bool((across * np.sqrt(np.maximum(v, 0.0)) > _DOT * widths).any()) for v in variances)


def _ellipse_legend(view: _View, regions: bool) -> list[Any]:
    """Return empty lines that stand for modes in a legend, and for ellipses where regions can be seen."""
    line = matplotlib_part("lines").Line2D
    percent = f"{100 * view.level:g}% region"
    texts = {"total": f"{percent}, total error", "privacy": f"{percent}, privacy noise alone"}
    if view.result.privacy is None:
        texts["total"] = f"{percent}, sampling and bias"
    if not view.result.n_modes:
        return []
    entries = [
        line([], [], color=_MODE, ls=style, lw=1.3, label=texts[source])
        for source, style in _ellipse_styles(view)
        if regions
    ]
    for solid in sorted({bool(flag) for flag in view.result.mode_set.reliable}, reverse=True):
        fill = _MODE if solid else "white"
        label = _mode_label(view, solid)
        if solid and not regions:
            label += f", {percent} within the dot"
        entries.append(line([], [], color=_MODE, marker="o", ls="none", ms=5, mfc=fill, label=label))
    return entries


def _draw_pairs(result: DensityModesResults, chosen: tuple[int, ...], level: float, figure: Figure) -> Axes:
    """Draw the marginal of each column on the diagonal and of each pair below it."""
    d = len(chosen)
    grid = figure.subplots(d, d, squeeze=False)
    for row in range(d):
        for column in range(d):
            ax = grid[row, column]
            if column > row:
                ax.set_axis_off()
                continue
            own = (chosen[row],) if row == column else (chosen[column], chosen[row])
            view = _view(result, own, level)
            if row == column:
                _draw_curve(view, ax, small=True)
                ax.set_yticks([])
            else:
                _draw_contours(view, ax, _GRID_PAIRS, small=True)
            _label_outer(ax, view, row, column, d)
    first: Axes = grid[0, 0]
    figure.suptitle(_title(result), fontsize="medium")
    pairs = [_view(result, (first, last), level) for first, last in combinations(chosen, 2)]
    entries = [*_curve_legend(result), *_ellipse_legend(pairs[0], any(map(_regions_seen, pairs)))]
    if entries:
        figure.legend(
            handles=entries,
            loc="upper right",
            bbox_to_anchor=(0.99, 0.93),
            frameon=False,
            fontsize="small",
            title=PAIRS_TITLE.format(result.noun) if result.trace is None else TRACE_PAIRS_TITLE,
            title_fontsize="small",
        )
    if result.simulated:
        watermark(figure.transFigure, figure.text, 30)
    return first


def _curve_legend(result: DensityModesResults) -> list[Any]:
    """Return the lines of a legend for the curves of fitted clusters, for pictures of them."""
    if getattr(result, "fitted", None) is None:
        return []
    line = matplotlib_part("lines").Line2D
    return [line([], [], color=_CURVE, lw=1.0, label=_FITTED), line([], [], color="0.6", lw=0.7, label=_RAW)]


def _label_outer(ax: Axes, view: _View, row: int, column: int, d: int) -> None:
    ax.tick_params(labelsize="x-small")
    if row == d - 1:
        ax.set_xlabel(view.scales[0].label, fontsize="small")
        for text in ax.get_xticklabels():
            text.set_rotation(0)
    else:
        ax.tick_params(labelbottom=False)
    if column == 0 and row > 0:
        ax.set_ylabel(view.scales[-1].label, fontsize="small")
    elif column > 0 or row == 0:
        ax.tick_params(labelleft=False)


# --------------------------------------------------------------------------------- pieces


def matplotlib_part(module: str) -> Any:
    """Return a module of matplotlib, or say how to install it."""
    import importlib

    try:
        return importlib.import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise MissingDependency(
            "plot() needs matplotlib: pip install 'pydpmode[plot]' (or pip install matplotlib)"
        ) from error


def _normal(level: float) -> float:
    from .base_results import normal_quantile

    return normal_quantile(level)


def _chosen(result: DensityModesResults, columns: Sequence[str] | None) -> tuple[int, ...]:
    """Return the positions of the coordinates to draw; check that there is a surface to draw."""
    matplotlib_part("figure")
    if result.surface is None and result.trace is None:
        raise InvalidArgument(
            "this result was saved or pickled without its surface, so there is nothing to draw; "
            "save it with surface=True (released surfaces only)"
        )
    if columns is None:
        return tuple(range(len(result.coordinates)))
    wanted = [columns] if isinstance(columns, str) else list(columns)
    names = list(result.columns)
    originals = [coordinate.column for coordinate in result.coordinates]
    chosen = []
    for name in wanted:
        if name not in names and name not in originals:
            raise UnknownColumn(f"the surface has no column {name!r}; it has {', '.join(map(repr, names))}")
        chosen.append(names.index(name) if name in names else originals.index(name))
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidArgument(f"columns must name one or more different columns, got {wanted!r}")
    return tuple(chosen)


def _view(result: DensityModesResults, axes: tuple[int, ...], level: float) -> _View:
    _normal(level)  # refuses a level outside (0, 1)
    surface: Surface | None = result.surface
    if axes != tuple(range(len(result.coordinates))):
        marginal = getattr(surface, "marginal", None)
        surface = marginal([result.columns[j] for j in axes]) if callable(marginal) else None
    scales = tuple(axis_scale(result, j) for j in axes)
    return _View(result, surface, axes, scales, level)


def axis_scale(result: Any, j: int) -> _Scale:
    """Return how a coordinate of a result is drawn."""
    coordinate = result.coordinates[j]
    low, high = float(result.facts.lower[j]), float(result.facts.upper[j])
    if coordinate.kind == "datetime":
        return _date_scale(coordinate)
    if coordinate.kind == "timedelta":
        name, unit = time_unit((high - low) / 4)
        return _Scale(f"{_short(coordinate.name)} ({name})", _plain_ticks, unit, unit_name=_UNIT_WORDS[name])
    if coordinate.transform == "log":
        label = f"{_short(coordinate.column)} (log scale)"
        return _Scale(label, lambda axis: set_log_ticks(axis, low, high))
    return _Scale(_short(coordinate.name), _plain_ticks)


def _date_scale(coordinate: Coordinate) -> _Scale:
    dates = matplotlib_part("dates")
    # Matplotlib counts days from an epoch that users may have changed.
    start = float(dates.date2num(np.datetime64(0, "s")))

    def set_ticks(axis: Any) -> None:
        locator = dates.AutoDateLocator(minticks=3, maxticks=7)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))

    return _Scale(_short(coordinate.name), set_ticks, _DAY, -start * _DAY, "day")


def _short(name: str) -> str:
    return shorten(name, 24)


def _plain_ticks(axis: Any) -> None:
    return None


def _density_label(view: _View) -> str:
    """Say of what the density is, because on a log scale it is not that of the column itself."""
    names = shorten(", ".join(view.result.coordinates[j].name for j in view.axes), 40)
    units = [scale.unit_name for scale in view.scales if scale.unit_name]
    of = f"({names})" if len(view.axes) > 1 else names
    return f"density of {of}" + (f", per {' and '.join(units)}" if units else "")


def _mode_label(view: _View, solid: bool) -> str:
    noun = view.result.noun
    if len(view.axes) == 1:
        percent = f"{100 * view.level:g}% interval"
        return f"{noun}, {percent}" if solid else f"{noun}, {percent} not reliable"
    return noun if solid else f"{noun}, region not reliable"


def _title(result: DensityModesResults) -> str:
    if result.privacy is None:
        return f"{result.subject.capitalize()} (not private)"
    cost = f"epsilon = {cost_text(result.privacy.epsilon)}, delta = {cost_text(result.privacy.delta)}"
    if result.simulated:
        return f"SIMULATED noise, NOT PRIVATE ({cost})"
    return f"Private {result.subject}, {cost}"


def watermark(transform: Any, write: Callable[..., Any], size: float) -> None:
    """Write across a picture that its noise is simulated."""
    write(
        0.5,
        0.5,
        "SIMULATED\nNOT PRIVATE",
        transform=transform,
        fontsize=size,
        rotation=25,
        ha="center",
        va="center",
        color="black",
        alpha=0.22,
        weight="bold",
        zorder=10,
    )


def _size(d: int) -> tuple[float, float]:
    return {1: (6.8, 4.6), 2: (6.8, 5.6)}.get(d, (1.9 * d + 0.6, 1.9 * d))
