"""Thin scikit-learn estimators: `DPModes`, `DPModalClustering` and `DPModalRegressor`.

What a fit costs. `epsilon` and `delta` are parameters, without a default. Each `fit` on an array or data
frame spends its whole (epsilon, delta) on the rows it is given and keeps no record. Cloning an estimator
copies the parameter, not a budget, but FITTING twice on the same rows costs twice: a cross-validation over 5
folds with 10 candidates fits each row 40 times. And its SCORES are computed from the rows that are held out,
without noise: they, and the choice of a candidate by them, are covered by no guarantee unless those rows are
public. To have a study guarded, give `budget=` and `ledger=` (a file): every fit of the estimator and of all
its clones, also in other processes, is charged there before a row is read, and refused when the budget is
used up. Or pass a `PrivateData` as X, whose ledger guards it.

What is kept. A fitted estimator holds the released result and nothing else of X: it may be pickled and
published. There is no `labels_`: labels of the private rows are one value per row. `predict` and
`fit_predict` return them for local use; they are not covered by the guarantee.

`random_state` makes the noise reproducible. The result is then simulated and NOT private.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from .budget import Budget
from .errors import DuplicateColumns, InvalidArgument, MissingBounds, MissingDependency
from .models.density_modes import DensityModes
from .models.modal_clustering import ModalClustering
from .models.modal_regression import ModalRegression
from .numerics.designs import MAX_LATTICE_DIMENSION
from .privacy.bounds import Bounds
from .privacy.memory_sources import column_of, is_polars, number_or_nan
from .privacy.private_data import PrivateData

try:
    from sklearn.base import BaseEstimator, ClusterMixin, RegressorMixin
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:  # pragma: no cover - scikit-learn is an optional dependency
    raise MissingDependency(
        "pydpmode.sklearn needs scikit-learn 1.6 or later: pip install 'pydpmode[sklearn]'"
    ) from error

if TYPE_CHECKING:
    from .results.clustering_results import ClusteringResults
    from .results.regression_results import ModalRegressionResults
    from .results.results import DensityModesResults

__all__ = ["DPModalClustering", "DPModalRegressor", "DPModes"]


class _PrivateEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type stubs
    """What the estimators share: opening X behind its bounds and its budget."""

    epsilon: float | None
    delta: float | None
    bounds: Bounds | None
    budget: Budget | None
    ledger: str | PathLike[str] | None
    random_state: int | None

    def _study(self, X: Any) -> PrivateData:
        """Return X behind one door; refuse by shape, names and dtype alone."""
        if isinstance(X, PrivateData):
            if self.bounds is not None or self.budget is not None or self.ledger is not None:
                raise InvalidArgument("X is a PrivateData: it has its bounds, budget and ledger already")
            # A frame without rows: the names and the number of columns, for later checks of new data.
            validate_data(self, _empty_frame(X.columns), skip_check_array=True)
            return X
        X = self._table(X)
        return PrivateData(X, bounds=self._bounds(), budget=self._total(), ledger=self.ledger)

    def _table(self, X: Any) -> Any:
        """Return X as an array or frame; refuse by shape, names and dtype alone."""
        if isinstance(X, list):
            X = _from_list(X, self.bounds)
        elif hasattr(X, "__array__") and not hasattr(X, "shape"):
            # Text stays text, and is refused by its dtype below: an error of NumPy's would quote it.
            X = np.asarray(X)
        _check_table(X, type(self).__name__)
        validate_data(self, X, skip_check_array=True)
        return X

    def _total(self) -> Budget:
        """Return the budget of a fit, or of the study that a ledger file guards."""
        if (self.budget is None) != (self.ledger is None):
            raise InvalidArgument(
                "budget= and ledger= go together: the ledger is a file that guards the budget"
            )
        return Budget(self.epsilon, self.delta) if self.budget is None else self.budget  # type: ignore[arg-type]

    def _bounds(self) -> Bounds:
        """Return the bounds of each column; one pair is for all of them."""
        if self.bounds is None:
            raise MissingBounds(
                "public bounds are missing: give bounds=(low, high) for all columns, one pair per column, or "
                "a mapping; they are never taken from the data, because that would reveal the extreme rows"
            )
        if isinstance(self.bounds, tuple | list) and _is_pair(self.bounds):
            return [tuple(self.bounds)] * self.n_features_in_  # type: ignore[return-value]
        return self.bounds

    def _many(self) -> bool:
        return int(self.n_features_in_) > MAX_LATTICE_DIMENSION

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        if isinstance(self.random_state, bool) or not isinstance(self.random_state, Integral):
            raise InvalidArgument(
                "random_state must be None (private noise) or a whole number (simulated, NOT private), "
                f"got {type(self.random_state).__name__}"
            )
        return int(self.random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None
        return tags


class _PrivateClusterer(ClusterMixin, _PrivateEstimator):  # type: ignore[misc]
    """Assigns new rows to what was found."""

    def _assign(self, X: Any) -> npt.NDArray[np.int64]:
        check_is_fitted(self, "result_")
        if isinstance(X, PrivateData):
            raise InvalidArgument("labels of private rows are not released; predict takes new data")
        new = validate_data(self, X, reset=False, dtype="numeric", ensure_all_finite="allow-nan")
        labels = self.result_.predict(new)
        return np.asarray(labels.to_numpy(dtype=np.int64, na_value=0) - 1)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the number of the nearest centre for each row, from 0; -1 where a value is missing.

        Parameters
        ----------
        X : (n, d) array or data frame
            New data. Labels of the private rows themselves are not covered by the guarantee.
        """
        return self._assign(X)

    def fit_predict(self, X: Any, y: object = None) -> npt.NDArray[np.int64]:
        """Fit, and return the label of each row of X: for local use, NOT covered by the guarantee."""
        return self.fit(X)._assign(X)  # type: ignore[no-any-return]


class DPModes(_PrivateClusterer):
    """Modes of the density of 1 to 8 numeric columns, as a scikit-learn estimator; see `DensityModes`.

    Parameters
    ----------
    epsilon, delta : float
        Privacy of one fit; there are no defaults.
    bounds : pair, sequence of pairs, or mapping
        PUBLIC bounds: one pair for all columns, one per column, or {column: pair} for data frames.
    n_modes : int, optional
        Number of modes; found by significance when omitted.
    bandwidth : str, float, sequence or mapping
        As in `DensityModes`.
    false_mode_rate : float
        Chance that any further mode is only noise. The highest peak is always reported, marked when noise
        explains it.
    n_features : int, optional
        Number of random frequencies when there are 4 or more columns.
    budget, ledger : Budget and path, optional
        Guard all fits of this estimator and of its clones together; see the module.
    random_state : int, optional
        For tests and papers only: simulated noise, NOT private.

    Attributes
    ----------
    modes_ : (k, d) array
        The modes, highest density first.
    result_ : DensityModesResults
        All that was released: standard errors, shares, summary, plot.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        When X is a data frame.

    Notes
    -----
    Guarantee of `fit`: (epsilon, delta)-DP for replacing one record (or as a `PrivateData` says), given
    public bounds.

    Examples
    --------
    >>> from pydpmode import datasets
    >>> from pydpmode.sklearn import DPModes
    >>> X, truth = datasets.four_gaussians(5000, seed=1)
    >>> model = DPModes(epsilon=1.0, delta=1e-6, bounds=(-8, 8), random_state=1).fit(X)
    >>> len(model.modes_)
    4
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        bounds: Bounds | None = None,
        n_modes: int | None = None,
        bandwidth: Any = "ladder",
        false_mode_rate: float = 0.05,
        n_features: int | None = None,
        budget: Budget | None = None,
        ledger: str | PathLike[str] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_modes = n_modes
        self.bandwidth = bandwidth
        self.false_mode_rate = false_mode_rate
        self.n_features = n_features
        self.budget = budget
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Self:
        """Release the density surface of X and find its modes.

        Parameters
        ----------
        X : (n, d) array, data frame or PrivateData
        y : ignored

        Raises
        ------
        InvalidBudget, MissingBounds, BudgetExceeded, InvalidArgument
            Before anything is read or charged.
        """
        study = self._study(X)
        model = DensityModes(
            study,
            n_modes=self.n_modes,
            bandwidth=self.bandwidth,
            false_mode_rate=self.false_mode_rate,
            n_features=self.n_features if self._many() else None,
        )
        self.result_: DensityModesResults = model.fit(self.epsilon, self.delta, seed=self._seed())
        self.modes_ = self.result_.mode_set.locations.copy()
        return self


class DPModalClustering(_PrivateClusterer):
    """Clusters in 1 to 8 numeric columns, as a scikit-learn estimator; see `ModalClustering`.

    Parameters
    ----------
    epsilon, delta, bounds, budget, ledger, random_state
        As in `DPModes`.
    n_clusters : int, optional
        Number of clusters; found when omitted.
    centres : {"fit", "modes"}
        As in `ModalClustering`.
    bandwidth : str, float, sequence or mapping, optional
        As in `ModalClustering`.
    n_features : int, optional
        Number of random frequencies when there are 4 or more columns.
    public_transform : str, optional
        As in `ModalClustering`: states that X was made by a transform that was NOT learned from these rows. A
        scaler or PCA before this estimator in a pipeline IS learned from them: no guarantee covers it.

    Attributes
    ----------
    cluster_centers_ : (k, d) array
        The centres, the largest cluster first.
    result_ : ClusteringResults
    n_features_in_, feature_names_in_
        As in `DPModes`.

    Notes
    -----
    Guarantee of `fit`: (epsilon, delta)-DP for replacing one record (or as a `PrivateData` says), given
    public bounds.

    Examples
    --------
    >>> from pydpmode import datasets
    >>> from pydpmode.sklearn import DPModalClustering
    >>> X, truth = datasets.four_gaussians(5000, seed=1)
    >>> model = DPModalClustering(1.0, 1e-6, bounds=(-8, 8), n_clusters=4, random_state=1).fit(X)
    >>> model.cluster_centers_.shape
    (4, 2)
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        bounds: Bounds | None = None,
        n_clusters: int | None = None,
        centres: Literal["fit", "modes"] = "fit",
        bandwidth: Any = None,
        n_features: int | None = None,
        public_transform: str | None = None,
        budget: Budget | None = None,
        ledger: str | PathLike[str] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_clusters = n_clusters
        self.centres = centres
        self.bandwidth = bandwidth
        self.n_features = n_features
        self.public_transform = public_transform
        self.budget = budget
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Self:
        """Release the density surface of X and find its clusters; parameters, errors: see `DPModes.fit`."""
        study = self._study(X)
        model = ModalClustering(
            study,
            n_clusters=self.n_clusters,
            centres=self.centres,
            bandwidth=self.bandwidth,
            n_features=self.n_features if self._many() else None,
            public_transform=self.public_transform,
        )
        self.result_: ClusteringResults = model.fit(self.epsilon, self.delta, seed=self._seed())
        self.cluster_centers_ = self.result_.cluster_set.centres.copy()
        return self


class DPModalRegressor(RegressorMixin, _PrivateEstimator):  # type: ignore[misc]
    """Modal regression on 1 to 3 predictors, as a scikit-learn estimator; see `ModalRegression`.

    `predict` gives one number a row, as scikit-learn expects: the branch with the largest share there. All
    branches, with their intervals and regions, are in `result_`.

    Parameters
    ----------
    epsilon, delta, bounds, budget, ledger, random_state
        As in `DPModes`; bounds are of the predictors.
    target_bounds : (low, high)
        PUBLIC bounds of y.
    bandwidth : str, float, sequence or mapping
        As in `ModalRegression`.
    n_features : int, optional
        Number of random frequencies with three predictors.

    Attributes
    ----------
    result_ : ModalRegressionResults
    n_features_in_, feature_names_in_
        As in `DPModes`.

    Notes
    -----
    Guarantee of `fit`: (epsilon, delta)-DP for replacing one record (a row of X and its y), given public
    bounds: predictors and response are protected alike.

    Examples
    --------
    >>> from pydpmode import datasets
    >>> from pydpmode.sklearn import DPModalRegressor
    >>> data, truth = datasets.sinusoid(2400, seed=1)
    >>> model = DPModalRegressor(1.0, 1e-5, bounds=(0, 1), target_bounds=(-1, 2.5), random_state=1)
    >>> model.fit(data[["x"]], data["y"]).predict(data[["x"]]).shape
    (2400,)
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        bounds: Bounds | None = None,
        target_bounds: tuple[float, float] | None = None,
        bandwidth: Any = "regression",
        n_features: int | None = None,
        budget: Budget | None = None,
        ledger: str | PathLike[str] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.bandwidth = bandwidth
        self.n_features = n_features
        self.budget = budget
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Release the joint density surface of X and y and find its branches.

        Parameters
        ----------
        X : (n, d) array or data frame, d <= 3
        y : (n,) array

        Raises
        ------
        InvalidBudget, MissingBounds, BudgetExceeded, InvalidArgument
            Before anything is read or charged.
        """
        if isinstance(X, PrivateData):
            raise InvalidArgument("with a PrivateData use ModalRegression, which names its response")
        X = self._table(X)
        if self.target_bounds is None:
            raise MissingBounds("public bounds of y are missing: give target_bounds=(low, high)")
        bounds = self._bounds()
        columns = _columns_of(X)
        names = list(columns)
        pairs = bounds if isinstance(bounds, Mapping) else dict(zip(names, bounds, strict=True))
        response = next(name for name in ("y", "response", "_y") if name not in names)
        study = PrivateData(
            {**columns, response: _response_of(y, X.shape[0])},
            bounds={**pairs, response: self.target_bounds},
            budget=self._total(),
            ledger=self.ledger,
        )
        model = ModalRegression(
            study,
            response,
            names,
            bandwidth=self.bandwidth,
            n_features=self.n_features if len(names) >= MAX_LATTICE_DIMENSION else None,
        )
        self.result_: ModalRegressionResults = model.fit(self.epsilon, self.delta, seed=self._seed())
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the estimate of the branch with the largest share for each row; NaN where there is none."""
        check_is_fitted(self, "result_")
        new = validate_data(self, X, reset=False, dtype="numeric", ensure_all_finite="allow-nan")
        table = self.result_.predict(new)
        # Branches without a share come first, so that the largest is what stays.
        best = (
            table.sort_values("share", na_position="first", kind="stable").groupby("row")["estimate"].last()
        )
        return np.asarray(best.reindex(range(len(new))), dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


def _columns_of(X: Any) -> dict[str, Any]:
    """Return a table's columns by name, each with the type it has: never converted by what its cells hold."""
    import pandas as pd

    if isinstance(X, np.ndarray):
        X = X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)  # a column of a matrix is a matrix
        return {f"x{j + 1}": X[:, j] for j in range(X.shape[1])}
    if isinstance(X, pd.DataFrame):
        names, columns = [str(label) for label in X.columns], [X.iloc[:, j] for j in range(X.shape[1])]
    elif is_polars(X, "DataFrame"):
        names, columns = X.columns, X.get_columns()
    elif type(X).__module__.partition(".")[0] == "pyarrow" and hasattr(X, "column_names"):
        names, columns = X.column_names, X.columns
    else:
        raise InvalidArgument(
            f"DPModalRegressor takes a NumPy array, a pandas or polars data frame or an Arrow table, got "
            f"{type(X).__name__}; use ModalRegression, which takes more"
        )
    if len(set(names)) < len(names):
        raise DuplicateColumns("two columns of X have the same name; rename one")
    return dict(zip(names, columns, strict=True))


def _response_of(y: Any, n_rows: int) -> Any:
    """Return y as one column with the type it has; refuse by shape and dtype alone."""
    if y is None:
        raise InvalidArgument("DPModalRegressor requires y to be passed, but the target y is None")
    if isinstance(y, list | tuple):
        # Entry by entry: what is no number is missing.
        y = np.array([number_or_nan(value) for value in y])
    elif column_of(y) is None and not hasattr(y, "shape"):
        y = np.asarray(y)
    shape = (len(y),) if column_of(y) is not None else tuple(y.shape)
    if len(shape) == 2 and shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is taken as one",
            DataConversionWarning,
            stacklevel=3,
        )
        [y] = _columns_of(y).values()
    elif shape != (n_rows,):
        raise InvalidArgument(f"y must hold one number per row of X, got shape {shape}")
    if len(y) != n_rows:
        raise InvalidArgument(f"y must hold one number per row of X, got shape {shape}")
    return y


def _from_list(values: list[Any], bounds: Bounds | None) -> npt.NDArray[np.float64]:
    """Return a list of rows as an array as wide as there are bounds; what does not fit is missing.

    A list has neither dtype nor width. Taking the width from the rows, or refusing the list for one of them,
    would tell of that row.
    """
    if bounds is None or (isinstance(bounds, tuple | list) and _is_pair(bounds)):
        raise InvalidArgument(
            "Expected 2D array, got a list, which says neither how many columns it has nor their type. Give "
            "numpy.asarray(rows, dtype=float) or a data frame, or bounds with one pair per column; of single "
            "numbers, numpy.asarray(values, dtype=float).reshape(-1, 1)"
        )
    width = len(bounds)
    out = np.full((len(values), width), np.nan)
    for k, row in enumerate(values):
        # By its length alone: NumPy raises for some that are nested, and would tell of the row.
        is_row = isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim > 0)
        if is_row and len(row) == width:
            out[k] = [number_or_nan(value) for value in row]
    return out


def _is_pair(bounds: Sequence[Any]) -> bool:
    """Whether bounds are one pair, for all columns."""
    return len(bounds) == 2 and not any(isinstance(end, tuple | list | np.ndarray) for end in bounds)


def _check_table(X: Any, name: str) -> None:
    """Refuse what is no table of numbers, in scikit-learn's words and by public facts alone."""
    if hasattr(X, "nnz") and hasattr(X, "tocsr"):
        raise InvalidArgument(f"{name} does not take sparse data; give a dense array or a data frame")
    if not hasattr(X, "shape"):
        return
    shape = tuple(X.shape)
    dtype = getattr(X, "dtype", None)
    if dtype is not None and np.issubdtype(dtype, np.complexfloating):
        raise InvalidArgument("Complex data not supported; give real numbers")
    if len(shape) != 2:
        raise InvalidArgument(
            f"Expected 2D array, got {len(shape)}D array instead (shape={shape}). Reshape your data with "
            "X.reshape(-1, 1) if it has a single feature"
        )
    if shape[1] == 0:
        raise InvalidArgument(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required by {name}."
        )
    if shape[0] < 2:
        raise InvalidArgument(
            f"Found array with {shape[0]} sample(s) (shape={shape}) while a minimum of 2 is required "
            f"by {name}."
        )


def _empty_frame(columns: Sequence[str]) -> Any:
    import pandas as pd

    return pd.DataFrame(columns=list(columns), dtype=float)
