from __future__ import annotations

import dataclasses
import importlib
import math
import sys
from typing import Any

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.patches import Ellipse  # noqa: E402

from pydpmode.errors import InvalidArgument, MissingDependency, UnknownColumn  # noqa: E402
from pydpmode.results.axis_ticks import log_ticks  # noqa: E402
from pydpmode.results.plots import modes_figure, plot_modes  # noqa: E402
from pydpmode.results.results import DensityModesResults  # noqa: E402


@pytest.fixture(autouse=True)
def _no_figures_left() -> Any:
    yield
    pyplot.close("all")


def ax_on_its_own() -> Axes:
    return Figure().add_subplot()


def ellipses(ax: Axes) -> list[Ellipse]:
    return [patch for patch in ax.patches if isinstance(patch, Ellipse)]


def texts(figure: Any) -> str:
    figure.canvas.draw()
    return "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


@pytest.mark.parametrize(
    "name", ["wages", "simulated", "baseline", "nothing_found", "times", "one_column", "five_columns"]
)
def test_every_result_can_be_drawn(request: pytest.FixtureRequest, name: str) -> None:
    result = request.getfixturevalue(name)
    before = pyplot.get_fignums()
    figure = modes_figure(result)
    figure.canvas.draw()
    assert pyplot.get_fignums() == before
    assert ("SIMULATED" in texts(figure)) == (name == "simulated")
    d = len(result.columns)
    assert len(figure.axes) == {1: 1, 2: 2}.get(d, d * d)


def test_plot_makes_one_figure_and_returns_its_panel(wages: DensityModesResults) -> None:
    ax = wages.plot()
    assert isinstance(ax, Axes)
    assert pyplot.get_fignums() == [ax.figure.number]  # type: ignore[union-attr]
    assert ax.get_xlabel() == "age"
    assert ax.get_ylabel() == "wage (log scale)"
    assert "epsilon = 1" in ax.get_title()


def test_pyplot_is_left_alone_when_axes_are_given(
    wages: DensityModesResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyplot, "figure", lambda *a, **k: pytest.fail("pyplot was used"))
    ax = ax_on_its_own()
    assert plot_modes(wages, ax=ax) is ax
    assert ax.get_legend() is None
    assert any("privacy noise alone" in text for text in ax.get_legend_handles_labels()[1])
    assert len(ax.figure.axes) == 1


def test_ellipses_hold_the_joint_region(wages: DensityModesResults) -> None:
    ax = ax_on_its_own()
    plot_modes(wages, ax=ax, level=0.9)
    solid, dashed = ellipses(ax)[:2]
    radius = math.sqrt(-2 * math.log(0.1))
    sizes = sorted([solid.width / 2, solid.height / 2])
    wanted = [math.hypot(0.0034, 0.0021, 0.00105), math.hypot(0.21, 0.11, 0.055)]
    np.testing.assert_allclose(sizes, [radius * size for size in wanted])
    np.testing.assert_allclose(
        sorted([dashed.width / 2, dashed.height / 2]), [radius * 0.0034, radius * 0.21]
    )
    np.testing.assert_allclose(solid.center, [38.2134, 10.66271])
    assert solid.get_linestyle() != dashed.get_linestyle()


def test_ellipses_lie_along_the_correlation(wages: DensityModesResults) -> None:
    angle = math.radians(30)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    covariance = turn @ np.diag([4.0, 0.25]) @ turn.T
    modes = dataclasses.replace(
        wages.mode_set,
        covariance_privacy=np.array([covariance] * 2),
        covariance_sampling=np.zeros((2, 2, 2)),
        covariance_bias=np.zeros((2, 2, 2)),
    )
    ax = ax_on_its_own()
    plot_modes(dataclasses.replace(wages, mode_set=modes), ax=ax)
    drawn = ellipses(ax)[0]
    assert drawn.width / drawn.height == pytest.approx(4.0)
    assert drawn.angle % 180 == pytest.approx(30.0)


def test_unknown_covariance_draws_no_ellipse(wages: DensityModesResults) -> None:
    modes = dataclasses.replace(wages.mode_set, covariance_privacy=np.full((2, 2, 2), math.nan))
    ax = ax_on_its_own()
    plot_modes(dataclasses.replace(wages, mode_set=modes), ax=ax)
    assert ellipses(ax) == []


def test_baselines_have_one_ellipse_a_mode(baseline: DensityModesResults) -> None:
    ax = ax_on_its_own()
    plot_modes(baseline, ax=ax)
    assert len(ellipses(ax)) == 2
    assert "not private" in ax.get_title()


def test_doubtful_modes_are_hollow(wages: DensityModesResults) -> None:
    ax = ax_on_its_own()
    plot_modes(wages, ax=ax)
    points = [line for line in ax.lines if len(line.get_xdata()) == 1]
    assert [line.get_markerfacecolor() == "white" for line in points] == [False, True]


def test_the_band_is_that_of_the_noise(one_column: DensityModesResults) -> None:
    ax = ax_on_its_own()
    plot_modes(one_column, ax=ax, level=0.95)
    wide, narrow = (c.get_paths()[0].get_extents() for c in ax.collections[:2])
    assert wide.height > narrow.height
    curve = next(line for line in ax.lines if line.get_label() == "density")
    x, y = curve.get_data()
    np.testing.assert_allclose(y, one_column.surface.density(np.asarray(x)[:, None]))  # type: ignore[union-attr]
    # The narrow band is the privacy noise alone: 1.96 sd on either side, everywhere.
    assert narrow.y1 == pytest.approx(y.max() + 1.959964 * 9e-4)


def test_logs_are_labelled_with_original_values(wages: DensityModesResults) -> None:
    ax = ax_on_its_own()
    plot_modes(wages, ax=ax)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert "50,000" in labels
    np.testing.assert_allclose(np.exp(ax.get_yticks()), [float(t.replace(",", "")) for t in labels])


@pytest.mark.parametrize(
    ("low", "high", "gap"),
    [
        (1000, 300000, 0.06),
        (1000, 300000, 0.15),
        (1, 1e12, 0.06),
        (30, 70, 0.06),
        (0.002, 0.5, 0.15),
        (1.0, 1.2, 0.1),
    ],
)
def test_log_ticks_are_few_and_inside(low: float, high: float, gap: float) -> None:
    ticks = log_ticks(math.log(low), math.log(high), gap)
    assert 2 <= len(ticks) <= 1 + 1 / gap
    assert np.all((ticks >= low * (1 - 1e-6)) & (ticks <= high * (1 + 1e-6)))


def test_dates_are_dates(times: DensityModesResults) -> None:
    ax = ax_on_its_own()
    plot_modes(times, ax=ax)
    ax.figure.canvas.draw()
    start, end = matplotlib.dates.num2date(ax.get_xlim())
    assert (start.year, start.month, start.day) == (2020, 1, 1)
    assert (end.year, end.month, end.day) == (2020, 12, 31)
    assert any(text.get_text() in ("Apr", "May", "Mar") for text in ax.get_xticklabels())
    assert ax.get_ylabel() == "stay (d)"
    np.testing.assert_allclose(ax.get_ylim(), [0, 20])


def test_density_is_per_shown_unit(times: DensityModesResults) -> None:
    ax = ax_on_its_own()
    plot_modes(times, ax=ax, columns=["stay"])
    curve = next(line for line in ax.lines if line.get_label() == "density")
    x, y = curve.get_data()
    assert np.sum(y[1:] * np.diff(x)) == pytest.approx(1.0, abs=0.03)
    assert ax.get_ylabel() == "density of stay, per day"


def test_columns_are_chosen_by_either_name(wages: DensityModesResults) -> None:
    for name in ("wage", "log(wage)"):
        ax = ax_on_its_own()
        plot_modes(wages, ax=ax, columns=[name])
        assert ax.get_xlabel() == "wage (log scale)"
    ax = ax_on_its_own()
    plot_modes(wages, ax=ax, columns=["wage", "age"])
    assert ax.get_ylabel() == "age"
    assert ellipses(ax)[0].center == pytest.approx((10.66271, 38.2134))


def test_pairs_show_every_pair(five_columns: DensityModesResults) -> None:
    figure = modes_figure(five_columns, columns=["alpha_1", "b & c", "100%"])
    axes = np.array(figure.axes).reshape(3, 3)
    assert [ax.axison for ax in axes[0]] == [True, False, False]
    assert axes[2, 0].get_xlabel() == "alpha_1"
    assert axes[2, 0].get_ylabel() == "100%"
    assert len(ellipses(axes[2, 1])) == 4
    figure.canvas.draw()


def test_bad_requests_are_refused(wages: DensityModesResults, five_columns: DensityModesResults) -> None:
    with pytest.raises(UnknownColumn, match="no column 'x'"):
        plot_modes(wages, columns=["x"])
    with pytest.raises(InvalidArgument, match="different columns"):
        plot_modes(wages, columns=["age", "age"])
    with pytest.raises(InvalidArgument, match="different columns"):
        plot_modes(wages, columns=[])
    with pytest.raises(InvalidArgument, match="makes its own figure"):
        plot_modes(five_columns, ax=ax_on_its_own())
    with pytest.raises(InvalidArgument, match="level"):
        modes_figure(wages, level=1.0)
    with pytest.raises(InvalidArgument, match="without its surface"):
        plot_modes(dataclasses.replace(wages, surface=None))
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("corner", [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)])
def test_the_number_of_a_mode_at_a_bound_stays_inside_the_axes(
    wages: DensityModesResults, corner: tuple[float, float]
) -> None:
    lower, upper = (np.asarray(end) for end in (wages.facts.lower, wages.facts.upper))
    locations = wages.mode_set.locations.copy()
    locations[0] = lower + np.array(corner) * (upper - lower)
    modes = dataclasses.replace(wages.mode_set, locations=locations)
    figure = modes_figure(dataclasses.replace(wages, mode_set=modes))
    figure.canvas.draw()
    ax = figure.axes[0]
    first = next(text for text in ax.texts if text.get_text() == "1")
    inside, box = ax.get_window_extent(), first.get_window_extent()
    assert inside.x0 <= box.x0
    assert box.x1 <= inside.x1
    assert inside.y0 <= box.y0
    assert box.y1 <= inside.y1


def test_a_missing_matplotlib_is_named(wages: DensityModesResults, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without(name: str, *args: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MissingDependency, match=r"pydpmode\[plot\]"):
        wages.plot()


def test_results_do_not_load_matplotlib_or_statsmodels() -> None:
    import subprocess

    code = (
        "import sys, pydpmode.results.results as r; "
        "sys.exit(any(m in sys.modules for m in ('matplotlib', 'statsmodels')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
