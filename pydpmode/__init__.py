"""Modes of a density under differential privacy.

Private rows go in at one door, `PrivateData`; one released object comes out; every estimator works
on the released object alone.

Examples
--------
>>> import pydpmode as dpm
>>> people, truth = dpm.datasets.four_gaussians(2000, seed=1)
>>> truth.shape
(4, 2)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from . import errors
from .budget import Budget

if TYPE_CHECKING:
    from . import datasets
    from .models.clustering_pipeline import PrivateClusteringPipeline
    from .models.density_modes import DensityModes
    from .models.modal_clustering import ModalClustering
    from .models.modal_regression import ModalRegression
    from .models.preprocessing import PrivatePCA, PrivateScaler
    from .numerics.kernel_surface import KernelSurface
    from .numerics.mean_shift import MeanShift
    from .numerics.partial_mean_shift import PartialMeanShift
    from .privacy.grams_options import GramsOptions
    from .privacy.private_data import PrivateData
    from .privacy.stream_sources import RowStream
    from .results.released_surface import ReleasedSurface, load_surface
    from .results.results import load_results

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "DensityModes",
    "GramsOptions",
    "KernelSurface",
    "MeanShift",
    "ModalClustering",
    "ModalRegression",
    "PartialMeanShift",
    "PrivateClusteringPipeline",
    "PrivateData",
    "PrivatePCA",
    "PrivateScaler",
    "ReleasedSurface",
    "RowStream",
    "__version__",
    "datasets",
    "errors",
    "load_results",
    "load_surface",
]

# Public name -> module that defines it. Imported at first use (PEP 562), so that `import pydpmode`
# loads no numerical library; `datasets` is a module and stands for itself.
_LAZY = {
    "DensityModes": "models.density_modes",
    "GramsOptions": "privacy.grams_options",
    "KernelSurface": "numerics.kernel_surface",
    "MeanShift": "numerics.mean_shift",
    "ModalClustering": "models.modal_clustering",
    "ModalRegression": "models.modal_regression",
    "PartialMeanShift": "numerics.partial_mean_shift",
    "PrivateClusteringPipeline": "models.clustering_pipeline",
    "PrivateData": "privacy.private_data",
    "PrivatePCA": "models.preprocessing",
    "PrivateScaler": "models.preprocessing",
    "ReleasedSurface": "results.released_surface",
    "RowStream": "privacy.stream_sources",
    "datasets": "datasets",
    "load_results": "results.results",
    "load_surface": "results.released_surface",
}


# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{_LAZY[name]}")
        value = module if name == _LAZY[name] else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
