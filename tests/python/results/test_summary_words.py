"""What a summary calls the number of records, and how it counts modes that noise explains."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {"x": random.normal(5, 1, 2000), "w": random.gamma(2, 0.5, 2000), "who": np.arange(2000) // 2}
    )


def summary(data: dpm.PrivateData) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpm.DensityModes(data, columns=["x"]).fit(1.0, 1e-6, seed=1).summary().as_text()


def test_weights_are_no_records_and_their_errors_a_bound(table: pd.DataFrame) -> None:
    study = dpm.PrivateData(
        table, bounds={"x": (0, 10)}, budget=dpm.Budget(1.0, 1e-6), weights="w", max_weight=5.0
    )
    text = summary(study)
    assert "Records used" not in text
    assert "Weighted count" in text
    assert "Sampling errors are at most those" in text


def test_persons_are_counted_as_persons(table: pd.DataFrame) -> None:
    study = dpm.PrivateData(
        table, bounds={"x": (0, 10)}, budget=dpm.Budget(1.0, 1e-6), unit="person", person="who"
    )
    assert "Persons used" in summary(study)


def test_a_peak_of_noise_is_not_counted_as_found(table: pd.DataFrame) -> None:
    rows = pd.DataFrame({"x": np.full(3000, np.nan)})
    text = summary(dpm.PrivateData(rows, bounds={"x": (0, 10)}, budget=dpm.Budget(1.0, 1e-6)))
    assert "1 (0 told from noise)" in text
    assert "(number found)" in summary(
        dpm.PrivateData(table, bounds={"x": (0, 10)}, budget=dpm.Budget(1.0, 1e-6))
    )


def test_a_bound_of_an_expression_at_zero_is_zero() -> None:
    data, _ = dpm.datasets.sinusoid(1000, seed=1)
    model = dpm.ModalRegression.from_formula("y ~ I(x / 10)", data, bounds={"x": (0, 1), "y": (-1, 2.5)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = model.fit(1.0, 1e-5, seed=1).summary().as_text()
    assert "e-3" not in text.replace("1e-3", "")
