"""The scikit-learn twins: its own checks, clones, pipelines, and what a fit costs."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import pydpmode as dpm
from pydpmode import datasets
from pydpmode.errors import BudgetExceeded, InvalidArgument, InvalidBudget, MissingBounds, NonNumericColumn
from pydpmode.sklearn import DPModalClustering, DPModalRegressor, DPModes

TWINS = (DPModes, DPModalClustering)

# scikit-learn's checks that cannot pass here, and why.
EXPECTED_FAILURES = {
    "check_dtype_object": "dtypes are the public schema: object columns are refused, since converting them "
    "would raise an error that tells of a value",
    "check_clustering": "it needs labels_, one value per private row, which a fitted estimator must not hold",
}

# These fit a regression on 4 to 10 predictors: more than it takes.
MORE_THAN_THREE = (
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_estimators_dtypes",
    "check_regressors_train",
    "check_regressor_data_not_an_array",
    "check_regressors_no_decision_function",
    "check_regressors_int",
)


def expected_failures(estimator: Any) -> dict[str, str]:
    if not isinstance(estimator, DPModalRegressor):
        return EXPECTED_FAILURES
    why = "a modal regression takes one to three predictors"
    kept = {"check_dtype_object": EXPECTED_FAILURES["check_dtype_object"]}
    return kept | dict.fromkeys(MORE_THAN_THREE, why)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        DPModes(epsilon=1.0, delta=1e-3, bounds=(-10.0, 10.0), bandwidth=4.0, n_features=1024),
        DPModalClustering(
            epsilon=1.0, delta=1e-3, bounds=(-10.0, 10.0), bandwidth=4.0, n_features=1024, n_clusters=2
        ),
        DPModalRegressor(
            epsilon=1.0,
            delta=1e-3,
            bounds=(-10.0, 10.0),
            target_bounds=(-10.0, 10.0),
            bandwidth=4.0,
            n_features=512,
        ),
    ],
    expected_failed_checks=expected_failures,
)
def test_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def centres_of(model: Any) -> np.ndarray:
    return np.asarray(model.modes_ if isinstance(model, DPModes) else model.cluster_centers_)


@pytest.fixture(scope="module")
def four() -> pd.DataFrame:
    return datasets.four_gaussians(3000, seed=1)[0]


def test_a_twin_gives_what_the_model_gives(four: pd.DataFrame) -> None:
    box = {"x": (-8, 8), "y": (-8, 8)}
    modes = DPModes(epsilon=1.0, delta=1e-6, bounds=(-8, 8), random_state=1).fit(four)
    direct = dpm.DensityModes(four, bounds=box).fit(1.0, 1e-6, seed=1)
    np.testing.assert_array_equal(modes.modes_, direct.mode_set.locations)
    clusters = DPModalClustering(1.0, 1e-6, bounds=box, n_clusters=4, random_state=1).fit(four)
    straight = dpm.ModalClustering(four, bounds=box, n_clusters=4).fit(1.0, 1e-6, seed=1)
    np.testing.assert_array_equal(clusters.cluster_centers_, straight.centres.to_numpy())


@pytest.mark.parametrize("twin", TWINS)
def test_new_rows_get_the_nearest_centre(twin: Any, four: pd.DataFrame) -> None:
    model = twin(epsilon=1.0, delta=1e-6, bounds=(-8, 8), random_state=1).fit(four)
    centres = centres_of(model)
    assert centres.shape == (4, 2)
    assert model.feature_names_in_.tolist() == ["x", "y"]
    labels = model.predict(pd.DataFrame({"x": [3.0, -3.0, np.nan], "y": [3.0, -3.0, 0.0]}))
    assert labels[0] != labels[1]
    assert labels[2] == -1
    np.testing.assert_allclose(centres[labels[0]], [3, 3], atol=0.5)


@pytest.mark.parametrize("twin", TWINS)
def test_a_clone_copies_parameters_and_no_budget(twin: Any, four: pd.DataFrame, tmp_path: Path) -> None:
    guarded = twin(epsilon=0.6, bounds=(-8, 8), budget=dpm.Budget(1.0, 1e-6), ledger=tmp_path / "study.jsonl")
    first, second = clone(guarded), clone(guarded)
    assert first.get_params() == guarded.get_params()
    first.fit(four)
    second.set_params(epsilon=0.7).fit(four)
    with pytest.raises(BudgetExceeded):
        clone(guarded).fit(four)
    study = dpm.PrivateData(
        four, bounds={"x": (-8, 8)}, budget=dpm.Budget(1.0, 1e-6), ledger=tmp_path / "study.jsonl"
    )
    assert len(study.ledger.entries()) == 2
    assert study.ledger.spent() <= 1.0


@pytest.mark.parametrize("twin", TWINS)
def test_private_data_as_x_is_guarded_by_its_ledger(twin: Any, four: pd.DataFrame) -> None:
    study = dpm.PrivateData(four, bounds={"x": (-8, 8), "y": (-8, 8)}, budget=dpm.Budget(1.0, 1e-6))
    model = twin(epsilon=0.8).fit(study)
    assert model.feature_names_in_.tolist() == ["x", "y"]
    with pytest.raises(BudgetExceeded):
        clone(model).fit(study)
    with pytest.raises(InvalidArgument, match="already"):
        twin(epsilon=0.1, bounds=(-8, 8)).fit(study)
    with pytest.raises(InvalidArgument, match="labels of private rows"):
        model.predict(study)


@pytest.mark.parametrize("twin", TWINS)
def test_in_a_pipeline_with_a_public_transform(twin: Any, four: pd.DataFrame) -> None:
    halve = FunctionTransformer(lambda x: x / 2)
    chain = make_pipeline(halve, twin(epsilon=1.0, delta=1e-6, bounds=(-4, 4), random_state=1))
    labels = chain.fit_predict(four.to_numpy())
    assert set(labels) == {0, 1, 2, 3}
    np.testing.assert_array_equal(chain.predict(four.to_numpy()), labels)


@pytest.mark.parametrize("twin", TWINS)
def test_a_fitted_estimator_holds_no_row(twin: Any, four: pd.DataFrame) -> None:
    table = four.copy()
    table.iloc[5, 0] = 1.2345678901234567
    model = twin(epsilon=1.0, delta=1e-6, bounds=(-8, 8)).fit(table)
    stored = pickle.dumps(model)
    assert np.float64(1.2345678901234567).tobytes() not in stored
    assert not hasattr(model, "labels_")
    assert not model.result_.simulated
    np.testing.assert_array_equal(centres_of(pickle.loads(stored)), centres_of(model))


@pytest.mark.parametrize("twin", TWINS)
def test_what_is_refused_and_in_which_words(twin: Any, four: pd.DataFrame) -> None:
    with pytest.raises(InvalidBudget, match="epsilon is missing"):
        twin(delta=1e-6, bounds=(-8, 8)).fit(four)
    with pytest.raises(InvalidBudget, match="delta is missing"):
        twin(epsilon=1.0, bounds=(-8, 8)).fit(four)
    with pytest.raises(MissingBounds, match="public bounds are missing"):
        twin(epsilon=1.0, delta=1e-6).fit(four)
    with pytest.raises(InvalidArgument, match="go together"):
        twin(epsilon=1.0, delta=1e-6, bounds=(-8, 8), budget=dpm.Budget(1.0, 1e-6)).fit(four)
    with pytest.raises(InvalidArgument, match="random_state must be None"):
        twin(epsilon=1.0, delta=1e-6, bounds=(-8, 8), random_state=np.random.RandomState(0)).fit(four)
    with pytest.raises(NonNumericColumn) as caught:
        twin(epsilon=1.0, delta=1e-6, bounds=(-8, 8)).fit(np.array([["canary", "1"], ["2", "3"]]))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "odd",
    [
        *(["canary", 1.0], [None, 1.0], [10**400, 1.0], [1.0], [1.0, 2.0, 3.0], "canary", 7),
        *([[1.0], [2.0, 3.0]], [np.zeros(2), 1.0], np.zeros((2, 2)), np.array(1.0)),
    ],
)
@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
def test_one_odd_row_of_a_list_changes_no_error(odd: Any) -> None:
    """A list has no dtype: it would be that of one private cell."""
    rows: list[Any] = np.random.default_rng(0).normal(size=(300, 2)).tolist()
    for place in (0, 150):
        changed = [*rows[:place], odd, *rows[place + 1 :]]
        for twin in TWINS:
            model = twin(epsilon=1.0, delta=1e-4, bounds=[(-4, 4)] * 2, random_state=1).fit(changed)
            assert model.n_features_in_ == 2
    y = [row[1] for row in rows]
    y[3] = odd
    model = DPModalRegressor(1.0, 1e-4, bounds=[(-4, 4)], target_bounds=(-4, 4), random_state=1)
    model.fit([row[:1] for row in rows], y)


@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
def test_the_width_of_a_list_is_that_of_the_bounds() -> None:
    """A vote of the rows would turn half of them into missing ones where one row changes its outcome."""
    rows = [[0.1, 0.2]] * 10 + [[0.1, 0.2, 0.3]] * 10
    for last in ([0.1, 0.2], [0.1, 0.2, 0.3], 0.1, "x"):
        for twin in TWINS:
            with pytest.raises(InvalidArgument, match="one pair per column"):
                twin(epsilon=1.0, delta=1e-3, bounds=(0, 1)).fit([*rows, last])
        wide = DPModes(1.0, 1e-3, bounds=[(0, 1)] * 3, bandwidth=0.3, random_state=1).fit([*rows, last])
        assert wide.n_features_in_ == 3


CELLS = [0.123, 0.456, 0.789]
KINDS: dict[str, Any] = {
    "NumPy": lambda x: x[:, None],
    "matrix": lambda x: np.asmatrix(x).T,
    "masked": lambda x: np.ma.array(x[:, None]),
    "pandas": lambda x: pd.DataFrame({"income": x}),
    "pandas with numbers for names": lambda x: pd.DataFrame(x[:, None]),
    "polars": lambda x: pl.DataFrame({"income": x}),
    "Arrow": lambda x: pa.table({"income": x}),
}


@pytest.mark.parametrize("estimator", [DPModes, DPModalClustering, DPModalRegressor])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_names_are_names_and_not_rows(estimator: Any, kind: str, tmp_path: Path) -> None:
    """Whatever kind of table: a library's list of columns may hold the columns themselves."""
    x = np.round(np.random.default_rng(0).uniform(0, 1, 400), 3)
    x[:3] = CELLS
    more = {"target_bounds": (-2, 2)} if estimator is DPModalRegressor else {"bandwidth": 0.3}
    y = (np.sin(6 * x),) if estimator is DPModalRegressor else ()
    budget, ledger = dpm.Budget(2.0, 1e-4), tmp_path / "study.jsonl"
    model = estimator(2.0, 1e-4, bounds=(0, 1), budget=budget, ledger=ledger, random_state=1, **more)
    model.fit(KINDS[kind](x), *y)
    name = {"pandas": "income", "polars": "income", "Arrow": "income"}.get(kind)
    columns = [name or ("0" if kind.startswith("pandas") else "x1"), *(["y"] if y else [])]
    assert list(model.result_.columns) == columns
    result = model.result_
    texts = [repr(result), str(result.summary()), json.dumps(result.to_dict()["coordinates"])]
    for text in [*texts, ledger.read_text()]:
        assert not any(str(cell) in text for cell in CELLS)


RESPONSES: dict[str, Any] = {
    "boolean": lambda v: pd.Series(v, dtype="boolean"),
    "Int64": lambda v: pd.Series([None if e is None else int(e) for e in v], dtype="Int64"),
    "Arrow in pandas": lambda v: pd.Series(v, dtype="bool[pyarrow]"),
    "polars": lambda v: pl.Series(v, dtype=pl.Boolean),
    "Arrow": lambda v: pa.array(v, pa.bool_()),
    "frame": lambda v: pd.DataFrame({"z": pd.Series(v, dtype="boolean")}),
}


@pytest.mark.parametrize("kind", RESPONSES)
@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_one_missing_cell_decides_nothing(kind: str) -> None:
    """A conversion by values makes objects of truth values of which one is missing, and those are refused."""
    x = np.random.default_rng(0).uniform(0, 1, 200)
    cells: list[Any] = (x > 0.5).tolist()
    for missing in ([], [3]):
        for place in missing:
            cells[place] = None
        model = DPModalRegressor(2.0, 1e-3, bounds=(0, 1), target_bounds=(-1, 2), random_state=1)
        assert model.fit(x[:, None], RESPONSES[kind](cells)).n_features_in_ == 1
        two = pl.DataFrame({"x": x, "b": pl.Series(cells, dtype=pl.Boolean)})
        assert list(model.fit(two, x).result_.columns) == ["x", "b", "y"]


def test_the_regressor_predicts_the_largest_branch(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    x = random.uniform(0, 1, 3000)
    y = 2 * x + np.where(random.random(3000) < 0.25, 2.0, 0.0) + 0.1 * random.normal(size=3000)
    model = DPModalRegressor(
        epsilon=1.0,
        bounds=[(0, 1)],
        target_bounds=(-1, 5),
        budget=dpm.Budget(1.2, 1e-6),
        ledger=tmp_path / "study.jsonl",
        random_state=1,
    )
    model.fit(x[:, None], y)
    np.testing.assert_allclose(model.predict([[0.2], [0.5], [0.8]]), [0.4, 1.0, 1.6], atol=0.2)
    assert model.score(x[:, None], y) > 0
    with pytest.raises(BudgetExceeded):
        clone(model).fit(x[:, None], y)
    assert np.float64(y[3]).tobytes() not in pickle.dumps(model)


def test_what_the_regressor_refuses() -> None:
    x, y = np.zeros((10, 1)), np.zeros(10)
    model = DPModalRegressor(1.0, 1e-3, bounds=(-1, 1))
    with pytest.raises(MissingBounds, match="target_bounds"):
        model.fit(x, y)
    model.set_params(target_bounds=(-1, 1))
    with pytest.raises(InvalidArgument, match="one number per row of X"):
        model.fit(x, y[:5])
    with pytest.raises(InvalidArgument, match="requires y"):
        model.fit(x, None)
    with pytest.raises(NonNumericColumn) as caught:
        model.fit(x, np.array(["canary"] * 10))
    assert "canary" not in str(caught.value)
