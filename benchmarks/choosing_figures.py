"""The figure of docs/choosing.md: how often a mode is found, and how precisely, by public facts alone.

    python benchmarks/choosing_figures.py [--quick]

No table is read: `DensityModes.preview` plans from the bounds, n and epsilon. Writes
docs/choosing-epsilon.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from pydpmode import DensityModes

DOCS = Path(__file__).parents[1] / "docs"
DELTA = 1e-8
SPREAD = 0.1
SHARE = 0.10
COLOURS = ("#3f51b5", "#00897b", "#e65100")


def planned(n: int, epsilon: float) -> tuple[float, float, float]:
    """Return (chance of finding a mode, its standard error, the part from privacy), spread 0.1, in 2-D."""
    model = DensityModes(np.zeros((1, 2)), bounds=[(0, 1), (0, 1)])
    plan = model.preview(epsilon=epsilon, delta=DELTA, n=n, spread={"x1": SPREAD, "x2": SPREAD})
    row = plan.modes.loc[SHARE]
    privacy, sampling = row["x1 s.e. privacy"], row["x1 s.e. sampling"]
    return float(row["found"]), float(np.hypot(privacy, sampling)), float(privacy)


def style(axis: plt.Axes, x: str, y: str, title: str) -> None:
    """Label an axis."""
    axis.set_xscale("log")
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_title(title, fontsize=10, loc="left")
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def epsilon_figure(points: int) -> None:
    """Draw both measures against epsilon, for three sizes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.2), layout="constrained")
    epsilons = np.geomspace(0.01, 10, points)
    for n, colour in zip((1_000, 10_000, 100_000), COLOURS, strict=True):
        found, error, privacy = np.array([planned(n, e) for e in epsilons]).T
        left.plot(epsilons, found, color=colour, label=f"n = {n:,}")
        seen = found > 0.1
        right.plot(epsilons[seen], error[seen] / SPREAD, color=colour, label=f"n = {n:,}")
        right.plot(epsilons[seen], privacy[seen] / SPREAD, color=colour, ls=":", lw=1)
    style(left, "epsilon", "probability", "The mode is found")
    style(right, "epsilon", "share of the mode's spread", "Standard error (dotted: from privacy alone)")
    right.set_yscale("log")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(DOCS / "choosing-epsilon.png", dpi=150)


def main() -> None:
    """Draw the figure."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="few points")
    points = 7 if arguments.parse_args().quick else 13
    epsilon_figure(points)


if __name__ == "__main__":
    main()
