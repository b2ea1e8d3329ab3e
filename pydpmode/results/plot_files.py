"""Writing a result's picture to a file: what can be written is known before anything is spent."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidArgument, MissingDependency

if TYPE_CHECKING:
    from .clustering_results import ClusteringResults
    from .regression_results import ModalRegressionResults
    from .results import DensityModesResults

SUFFIXES = (".png", ".pdf", ".svg")
_DPI = 150


def check_plot_target(path: str | os.PathLike[str]) -> None:
    """Refuse a picture that could not be written, without drawing it.

    Raises
    ------
    InvalidArgument
        When the name does not end in .png, .pdf or .svg.
    MissingDependency
        When matplotlib is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidArgument(f"a picture's name must end in one of {', '.join(SUFFIXES)}, got {str(path)!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingDependency("pictures need matplotlib; install it with: pip install 'pydpmode[plot]'")


def save_plot(
    result: DensityModesResults | ClusteringResults | ModalRegressionResults, path: str | os.PathLike[str]
) -> Path:
    """Draw `result` and write the picture to `path` (.png, .pdf or .svg)."""
    from .clustering_plots import clusters_figure
    from .plots import modes_figure
    from .regression_plots import regression_figure
    from .regression_results import ModalRegressionResults
    from .results import DensityModesResults

    check_plot_target(path)
    target = Path(path)
    if isinstance(result, ModalRegressionResults):
        figure = regression_figure(result)
    else:
        figure = modes_figure(result) if isinstance(result, DensityModesResults) else clusters_figure(result)
    figure.savefig(target, dpi=_DPI)
    return target
