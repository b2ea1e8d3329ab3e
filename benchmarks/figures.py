"""The paper's figures that are cheap to redraw, from seeded releases and from the CSVs; docs/figures/*.png.

    python benchmarks/figures.py            # a minute
    python benchmarks/figures.py --quick    # fewer runs, nothing written

surface-modes     released surfaces of four Gaussians and five t components with their modes (its Figure 1)
grams-run         one run of DP-GRAMS: private starts, ascents, modes
runs-grid         modes of twenty releases of one data set, for three n by three epsilons
privacy-utility   error against epsilon from benchmarks/results/ and benchmarks/paper/, with standard errors
branches          modal regression on its two designs, one release each
digits-pca        digits in two principal components, true and private centres
"""

from __future__ import annotations

import argparse
import io
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import clustering_tables as study
import matplotlib.pyplot as plt
import numpy as np
from accuracy import DELTA, EPSILONS, REPORTING_SEED
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from PIL import Image
from scipy.optimize import linear_sum_assignment
from simulated_grams import simulated_grams
from simulated_release import reported_modes, simulated_surface
from study_densities import DENSITIES, FloatArray, StudyDensity
from tables_page import Row, read

from pydpmode import ModalClustering, ModalRegression, datasets

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
LARGEST = 150_000  # bytes
SEED = REPORTING_SEED
PAPER, OURS, GRAMS, PLAIN, TRUE = "#7f7f7f", "#D55E00", "#0072B2", "#009E73", "black"
PALETTE = "YlGnBu"


def tidy(axis: Axes, title: str = "") -> None:
    """Set a small title and take away the frame's upper and right side."""
    axis.set_title(title, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)


def legend_below(figure: Figure, axis: Axes, columns: int) -> None:
    """Put the legend of one panel below all."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9, numpoints=1
    )


def contours(
    axis: Axes, density: StudyDensity, values: Callable[[FloatArray], FloatArray], alpha: float = 0.75
) -> None:
    """Fill contours of a density over its box, nothing where it is almost none."""
    line = np.linspace(density.lower, density.upper, 161)
    x, y = np.meshgrid(line, line)
    p = np.maximum(values(np.column_stack([x.ravel(), y.ravel()])), 0).reshape(x.shape)
    levels = np.linspace(0.03, 1, 11) * p.max()
    axis.contourf(x, y, p, levels=levels, cmap=PALETTE, alpha=alpha)
    axis.set(xlim=(density.lower, density.upper), ylim=(density.lower, density.upper), aspect="equal")
    ticks = FixedLocator(list(range(-12, 13, 4)))
    axis.xaxis.set_major_locator(ticks)
    axis.yaxis.set_major_locator(ticks)


def true_modes(axis: Axes, density: StudyDensity) -> None:
    """Mark the true modes."""
    axis.plot(
        *density.modes.T, "*", ms=11, mfc="white", mec=TRUE, mew=1.1, ls="", label="true modes", zorder=5
    )


def surface_modes(quick: bool) -> Figure:
    """Draw the released surface and its modes, for both densities."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.5), layout="constrained")
    n, epsilon = 2000, 1.0
    for axis, (name, title) in zip(
        axes, (("four_gaussians", "Four Gaussians"), ("five_t", "Five t components")), strict=True
    ):
        density = DENSITIES[name]
        x = density.sample(n, SEED)
        surface = simulated_surface(x, density.lower, density.upper, epsilon, DELTA, SEED)
        reading, modes = reported_modes(surface)
        contours(axis, density, reading.surface.density)
        true_modes(axis, density)
        axis.plot(*modes.locations.T, "o", ms=5, color=OURS, ls="", label="modes of the release", zorder=6)
        tidy(axis, f"{title}, n = {n}, epsilon = {epsilon:g}")
    legend_below(figure, axes[0], 2)
    return figure


def grams_run(quick: bool) -> Figure:
    """Draw starts, ascents and modes of one run of DP-GRAMS."""
    density = DENSITIES["four_gaussians"]
    n, epsilon = 5000, 1.0
    x = density.sample(n, SEED)
    run = simulated_grams(x, density.lower, density.upper, epsilon, DELTA, SEED)
    paths = run.lower + run.bandwidth * run.trace.positions
    figure, axes = plt.subplots(1, 3, figsize=(10.6, 4.1), layout="constrained", sharey=True)
    for axis in axes:
        contours(axis, density, density.density)
    axes[0].plot(*paths[0].T, "o", ms=4, color=GRAMS, ls="", label="starts", clip_on=False)
    tidy(axes[0], f"{paths.shape[1]} starts, drawn privately")
    axes[1].plot(paths[..., 0], paths[..., 1], "-", color=GRAMS, lw=0.8, clip_on=False)
    axes[1].plot(*paths[-1].T, "o", ms=3, color=TRUE, ls="", label="ends", clip_on=False)
    tidy(axes[1], f"{paths.shape[0] - 1} noisy rounds")
    true_modes(axes[2], density)
    axes[2].plot(*run.modes().locations.T, "o", ms=5, color=OURS, ls="", label="modes of the trace", zorder=6)
    tidy(axes[2], "modes read off all rounds")
    handles = [h for axis in axes for h in axis.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def runs_grid(quick: bool) -> Figure:
    """Draw the modes of many releases of one data set, over n and epsilon."""
    density, runs = DENSITIES["four_gaussians"], 4 if quick else 20
    sizes, epsilons = (700, 2000, 5000), (0.25, 0.5, 1.0)
    figure, axes = plt.subplots(3, 3, figsize=(7.6, 8.0), layout="constrained", sharex=True, sharey=True)
    for i, n in enumerate(sizes):
        x = density.sample(n, SEED)
        for j, epsilon in enumerate(epsilons):
            axis, exact = axes[i, j], 0
            contours(axis, density, density.density, 0.35)
            for seed in range(SEED, SEED + runs):
                surface = simulated_surface(x, density.lower, density.upper, epsilon, DELTA, seed)
                modes = reported_modes(surface)[1].locations
                exact += len(modes) == len(density.modes)
                axis.plot(*modes.T, "o", ms=3.5, color=OURS, alpha=0.6, mew=0, ls="")
            axis.plot(*density.modes.T, "+", ms=9, color=TRUE, mew=0.8, ls="")
            axis.set(xlim=(-6.5, 6.5), ylim=(-6.5, 6.5))
            tidy(axis, f"n = {n}, epsilon {epsilon:g}: {exact} of {runs}")
            axis.title.set_fontsize(9)
    dots = axes[0, 0].plot([], [], "o", ms=4, color=OURS, ls="", label="modes of one release")
    stars = axes[0, 0].plot([], [], "+", ms=9, color=TRUE, ls="", label="true modes")
    figure.legend(handles=[*dots, *stars], loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def curve(axis: Axes, rows: list[Row], value: str, error: str, label: str, colour: str, mark: str) -> None:
    """Draw one column of a CSV against epsilon with two standard errors."""
    if not rows:
        return
    at = [float(r["epsilon"]) for r in rows]
    mean = np.array([float(r[value]) for r in rows])
    spread = 2 * np.array([float(r[error] or "nan") for r in rows])
    low = np.minimum(spread, 0.9 * mean)  # a bar must not reach zero on a logarithmic axis
    axis.errorbar(
        at, mean, yerr=[low, spread], color=colour, marker=mark, ms=4, lw=1.3, capsize=2, label=label
    )


def level(axis: Axes, rows: list[Row], value: str, label: str, colour: str, style: str = ":") -> None:
    """Draw the level of something without privacy."""
    if rows:
        axis.axhline(float(rows[0][value]), color=colour, ls=style, lw=1.3, label=label)


def modes_panel(axis: Axes, density: str, n: str, title: str) -> None:
    """Draw Table 2 or 3 at one n."""
    here = {"density": density, "n": n}

    def pick(name: str, **keys: str) -> list[Row]:
        return [r for r in read(name) if all(r[k] == v for k, v in (here | keys).items())]

    curve(axis, pick("paper/modes"), "mse", "standard_error", "paper's private method", PAPER, "s")
    curve(axis, pick("results/grams_tables", method="grams"), "mse", "mse_se", "grams", GRAMS, "^")
    curve(axis, pick("results/mode_peers", method="ladder"), "mse", "mse_se", "surface", OURS, "o")
    level(axis, pick("paper/modes"), "mse_mean_shift", "paper, not private", PAPER)
    level(axis, pick("results/mode_peers", method="mean_shift"), "mse", "ours, not private", PLAIN, "--")
    axis.set(yscale="log", ylabel="mean squared error")
    tidy(axis, title)


def regression_panel(axis: Axes, design: str, n: str, title: str) -> None:
    """Draw Table 4 or 5 at one n."""
    spaced = design.replace("_", " ")
    theirs, ours = (
        [r for r in read(name) if r["design"] == design and r["n"] == n]
        for name in ("paper/regression", "results/regression_tables")
    )
    pms = [r for r in read("results/pms_tables") if r["design"] == spaced and r["n"] == n]
    curve(axis, theirs, "loss", "loss_se", "paper's private method", PAPER, "s")
    curve(axis, [r for r in pms if r["method"] == "dap"], "loss", "loss_se", "grams", GRAMS, "^")
    curve(axis, ours, "loss", "loss_se", "surface", OURS, "o")
    level(axis, theirs, "loss_pms", "paper, not private", PAPER)
    level(axis, [r for r in pms if r["method"] == "plain"], "loss", "ours, not private", PLAIN, "--")
    axis.set(yscale="log", ylabel="oracle loss")
    tidy(axis, title)


def blobs_panel(axis: Axes, n: str, title: str) -> None:
    """Draw Table 6 at one n."""
    theirs = [r for r in read("paper/clusters") if r["table"] == "blobs" and r["n"] == n]
    ours = [r for r in read("results/clustering_blobs") if r["n"] == n]
    curve(
        axis,
        [r for r in theirs if r["method"] == "DP-GRAMS-C"],
        "ari",
        "ari_se",
        "paper's private method",
        PAPER,
        "s",
    )
    curve(
        axis, [r for r in ours if r["method"] == "dp_kmeans"], "ari", "ari_se", "diffprivlib", "#CC79A7", "v"
    )
    curve(axis, [r for r in ours if r["method"] == "fit"], "ari", "ari_se", "surface", OURS, "o")
    level(axis, [r for r in ours if r["method"] == "kmeans"], "ari", "ours, not private", PLAIN, "--")
    axis.set(ylim=(0, 1), ylabel="adjusted Rand index")
    tidy(axis, title)


def digits_panel(axis: Axes) -> None:
    """Draw digits end to end, and the paper's Table 7."""
    theirs = [r for r in read("paper/clusters") if r["table"] == "digits" and r["method"] == "DP-GRAMS-C"]
    curve(axis, theirs, "ari", "ari_se", "paper's private method", PAPER, "s")
    ours = read("results/clustering_digits")
    curve(
        axis, [r for r in ours if r["method"] == "dp_kmeans"], "ari", "ari_se", "diffprivlib", "#CC79A7", "v"
    )
    curve(axis, [r for r in ours if r["method"] == "fit"], "ari", "ari_se", "surface", OURS, "o")
    level(axis, [r for r in ours if r["method"] == "kmeans"], "ari", "ours, not private", PLAIN, "--")
    axis.set(ylim=(0, 0.6), ylabel="adjusted Rand index")
    tidy(axis, "Table 7: digits")


def privacy_utility(quick: bool) -> Figure:
    """Draw error against epsilon for every table, from the CSVs."""
    figure, axes = plt.subplots(2, 3, figsize=(10.4, 6.6), layout="constrained")
    modes_panel(axes[0, 0], "four_gaussians", "2000", "Table 2: four Gaussians, n = 2000")
    modes_panel(axes[0, 1], "five_t", "2000", "Table 3: five t, n = 2000")
    blobs_panel(axes[0, 2], "1000", "Table 6: blobs, n = 1000")
    regression_panel(axes[1, 0], "three_levels", "1000", "Table 4: three levels, n = 1000")
    regression_panel(axes[1, 1], "sinusoid", "1200", "Table 5: sinusoid, n = 1200")
    digits_panel(axes[1, 2])
    seen: dict[str, object] = {}
    for axis in axes.flat:
        ticks = sorted({round(float(x), 6) for line in axis.get_lines() for x in line.get_xdata()} & TICKS)
        axis.set(xscale="log", xlabel="epsilon")
        axis.xaxis.set_major_locator(FixedLocator(ticks))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xticklabels([f"{t:g}" for t in ticks])
        axis.grid(alpha=0.25)
        seen |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(seen.values(), seen.keys(), loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    return figure


TICKS = {*EPSILONS, 0.2, 0.25, 2.5}


def branches(quick: bool) -> Figure:
    """Draw the branches of one release of each regression design over its rows."""
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    plans = (
        (datasets.three_levels, (0.0, 4.0), "Three levels", 2000),
        (datasets.sinusoid, (-1.0, 2.5), "Sinusoid", 2400),
    )
    for axis, (draw, box, title, n) in zip(axes, plans, strict=True):
        data, truth = draw(n, seed=SEED)
        model = ModalRegression.from_formula("y ~ x", data=data, bounds={"x": (0, 1), "y": box})
        found = model.fit(epsilon=1.0, delta=1e-5, seed=SEED)
        grid = np.linspace(0.002, 0.998, 250)
        curves = found.predict(data.iloc[:0].reindex(range(grid.size)).assign(x=grid))
        axis.scatter(data["x"], data["y"], s=3, color="0.8", lw=0, label="rows (private)", rasterized=True)
        told = truth.at(grid)
        axis.plot(grid, told, color=TRUE, lw=1, ls="--", label="true modes")
        for _, one in curves[curves["certified"].astype(bool)].groupby("branch"):
            at = grid[one["row"].to_numpy(int)]
            axis.fill_between(at, one["lower"], one["upper"], color=OURS, alpha=0.25, lw=0)
            axis.plot(at, one["estimate"], color=OURS, lw=1.6, label="certified branches, 95% bands")
        axis.set(xlabel="x", ylabel="y", ylim=box)
        tidy(axis, f"{title}, n = {n}, epsilon = 1")
    handles, labels = axes[0].get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(
        once.values(),
        once.keys(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
        markerscale=3,
    )
    return figure


def digits_pca(quick: bool) -> Figure:
    """Draw digits, true class means and the centres of one release in two components."""
    data = study.digits()
    model = ModalClustering(data.rows, bounds=[(-study.BOUND, study.BOUND)] * 6, n_clusters=data.count)
    found = model.fit(epsilon=1.0, delta=1e-5, seed=study.REPORTING_SEED)
    centres, labels = found.centres.to_numpy(), found.predict(data.rows).to_numpy(int) - 1
    # Each cluster takes the colour of the class that it is matched with.
    shared = np.array([[np.sum((labels == k) & (data.labels == c)) for c in range(10)] for k in range(10)])
    labels = linear_sum_assignment(shared, maximize=True)[1][labels]
    figure, axes = plt.subplots(1, 2, figsize=(9.4, 4.9), layout="constrained", sharex=True, sharey=True)
    for axis, by, title in (
        (axes[0], data.labels, "Coloured by digit"),
        (axes[1], labels, "Coloured by cluster, epsilon = 1"),
    ):
        axis.scatter(*data.rows[:, :2].T, c=by, cmap="tab10", s=5, lw=0, alpha=0.55, rasterized=True)
        tidy(axis, title)
        axis.set(xlabel="component 1", ylabel="component 2" if axis is axes[0] else "", aspect="equal")
        stars = axis.plot(
            *data.centres[:, :2].T, "*", ms=12, mfc="white", mec=TRUE, ls="", label="class means"
        )
        dots = axis.plot(*centres[:, :2].T, "o", ms=7, mfc=OURS, mec="white", ls="", label="private centres")
    figure.legend(handles=[*stars, *dots], loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "surface-modes": surface_modes,
    "grams-run": grams_run,
    "runs-grid": runs_grid,
    "privacy-utility": privacy_utility,
    "branches": branches,
    "digits-pca": digits_pca,
}


def small_png(figure: Figure) -> bytes:
    """Return a PNG of at most 256 colours."""
    drawn, packed = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, dpi=140, bbox_inches="tight", pad_inches=0.08)
    image = Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(packed, format="png", optimize=True)
    return packed.getvalue()


def main() -> None:
    """Draw the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs; nothing is written")
    parser.add_argument("--only", nargs="+", choices=list(FIGURES), default=list(FIGURES))
    options = parser.parse_args()
    for name in options.only:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            figure = FIGURES[name](options.quick)
        picture = small_png(figure)
        plt.close(figure)
        size = len(picture)
        print(f"{name}.png: {size / 1000:.0f} kB", flush=True)
        if size > LARGEST:
            raise SystemExit(f"{name}.png has {size} bytes, more than {LARGEST}")
        if not options.quick:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{name}.png").write_bytes(picture)


if __name__ == "__main__":
    main()
