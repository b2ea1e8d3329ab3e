"""What a clustering pipeline releases: components, clusters of their scores, and the way back to columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import pandas as pd

from ..budget import PrivacySpent
from ..errors import SurfaceFileError
from .base_results import load_as, normal_quantile, write_json
from .clustering_results import ClusteringResults
from .preprocessing import PCAResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .summary_tables import ReleaseSummary

FORMAT, VERSION = "pydpmode clustering pipeline", 1


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PipelineResults:
    """Clusters of many columns, with everything that was released on the way. No row is inside.

    Parameters
    ----------
    components : PCAResults
        The released centre and components.
    clustering : ClusteringResults
        The clusters of the scores.
    budget_shares : mapping of str to float
        Share of the squared noise budget that each step took.
    epsilon, delta : float
        All steps together.
    warnings : tuple of str
        Those of the pipeline itself; each step keeps its own.
    label : str
    """

    components: PCAResults
    clustering: ClusteringResults
    budget_shares: Mapping[str, float]
    epsilon: float
    delta: float
    warnings: tuple[str, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget_shares", MappingProxyType(dict(self.budget_shares)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that went in."""
        return self.components.columns

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.clustering.n_clusters

    @property
    def centres(self) -> pd.DataFrame:
        """Centres in the original columns, one row per cluster, the largest share first."""
        return self.inverse_transform(self.clustering.centres)

    @property
    def std_errors(self) -> pd.DataFrame:
        """Standard errors of `centres`, carried from the clusters' errors along the components.

        They do not cover the error of the released centre and components themselves: see
        `components.location_errors` and `components.angles`.
        """
        units = np.sqrt(self.components.explained_variance) if self.components.whiten else 1.0
        rows = (self.components.components.T * units) * self.components.scale[:, None]
        out = []
        for cluster in range(1, self.n_clusters + 1):
            covariance = self.clustering.cov_params(cluster).to_numpy()
            out.append(np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows)))
        return pd.DataFrame(out, index=self.clustering.centres.index, columns=list(self.columns))

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals for each column of each centre, from `std_errors`, which says what they leave out.

        Parameters
        ----------
        level : float
            Coverage of each interval on its own, in (0, 1).

        Returns
        -------
        DataFrame
            One row per (cluster, column): lower, upper.
        """
        half = normal_quantile(level) * self.std_errors.to_numpy(dtype=float)
        at = self.centres.to_numpy(dtype=float)
        rows = pd.MultiIndex.from_product(
            [range(1, self.n_clusters + 1), self.columns], names=["cluster", "column"]
        )
        return pd.DataFrame({"lower": (at - half).ravel(), "upper": (at + half).ravel()}, index=rows)

    @property
    def shares(self) -> pd.DataFrame:
        """Share of the records in each cluster, with standard errors: privacy, sampling, total."""
        return self.clustering.shares

    @property
    def mass(self) -> pd.Series[float]:
        """Share of the records in each cluster."""
        return self.clustering.mass

    @property
    def labels_(self) -> NoReturn:
        """Refused: labels of the private rows are not part of the release."""
        raise AttributeError(
            "there are no labels_: a label is one value per private row, and the result holds no rows. "
            "predict(rows) gives labels of your own private rows for local use, not covered by the guarantee"
        )

    @property
    def privacy(self) -> tuple[PrivacySpent, ...]:
        """The statement of each release, in order."""
        last = self.clustering.privacy
        return self.components.privacy + (() if last is None else (last,))

    @property
    def simulated(self) -> bool:
        """Whether a seed made any of the noise: then nothing here is private."""
        return any(spent.simulated for spent in self.privacy)

    def transform(self, new: Any) -> pd.DataFrame:
        """Return the scores of new or public data."""
        return self.components.transform(new)

    def inverse_transform(self, scores: Any) -> pd.DataFrame:
        """Map scores, such as cluster centres, to the original columns."""
        return self.components.inverse_transform(scores)

    def predict(self, new: Any) -> pd.Series[Any]:
        """Return the cluster of each row of `new`, given in the original columns.

        Labels of the private rows themselves are NOT covered by the guarantee.
        """
        return self.clustering.predict(self.transform(new))

    def summary(self, level: float = 0.95) -> ReleaseSummary:
        """Return a statsmodels `Summary`: the steps, the centres in scores, and the notes of each step."""
        from .pipeline_summary import pipeline_summary

        return pipeline_summary(self, level)

    def plot(
        self, *, ax: Axes | None = None, columns: Sequence[str] | None = None, level: float = 0.95
    ) -> Axes:
        """Draw the clusters on the released surface of the scores, as `ClusteringResults.plot` does.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw one or two components; a new pyplot figure when omitted.
        columns : sequence of str, optional
            Which components, by the names of `clustering.columns`; all when omitted.
        level : float
            Coverage of intervals and ellipses; they leave out the error of the components themselves.
        """
        from .clustering_plots import plot_clusters

        return plot_clusters(
            self.clustering, ax=ax, columns=columns, level=level, whole=(self.epsilon, self.delta)
        )

    def to_dict(self, *, surface: bool = True) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "components": self.components.to_dict(),
            "clustering": self.clustering.to_dict(surface=surface),
            "shares": dict(self.budget_shares),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "warnings": list(self.warnings),
            "label": self.label,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`.

        Raises
        ------
        SurfaceFileError
            When `data` is not what `to_dict` writes.
        """
        if not isinstance(data, Mapping) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
            raise SurfaceFileError(f"this is not a {FORMAT} of this version of pydpmode")
        try:
            return cls(
                components=PCAResults.from_dict(data["components"]),
                clustering=ClusteringResults.from_dict(data["clustering"]),
                budget_shares={str(k): float(v) for k, v in data["shares"].items()},
                epsilon=float(data["epsilon"]),
                delta=float(data["delta"]),
                warnings=tuple(data["warnings"]),
                label=str(data["label"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            if isinstance(problem, SurfaceFileError):
                raise
            raise SurfaceFileError(f"the {FORMAT} is damaged: {type(problem).__name__}") from problem

    def save(self, path: str | os.PathLike[str], *, surface: bool = True) -> None:
        """Write the result to one JSON file, compressed when its name ends in .gz; `load_results` reads it.

        Parameters
        ----------
        path : str or path
        surface : bool
            Whether to include the released surface of the scores, so that plots work after loading.
        """
        write_json(path, self.to_dict(surface=surface))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        return load_as(cls, path)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "budget_shares": dict(self.budget_shares)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def __repr__(self) -> str:
        cost = f"epsilon={self.epsilon:.4g}, delta={self.delta:g} in {len(self.privacy)} releases"
        cost += ", SIMULATED: NOT PRIVATE" if self.simulated else ""
        return (
            f"<{type(self).__name__}: {self.n_clusters} clusters of {len(self.columns)} columns; {cost}>\n"
            "Go on with .summary(), .centres, .shares, .components, .predict(new), .plot(), .save(path)"
        )
