"""One table, one budget: whatever is copied, forked, pickled, refused or run in threads."""

from __future__ import annotations

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from pydpmode import errors

X = np.random.default_rng(0).normal(size=2000)


def model() -> dpm.DensityModes:
    return dpm.DensityModes(X, bounds=(-5, 5))


def test_a_refused_first_fit_opens_no_budget() -> None:
    fitted = model()
    for arguments in ({"epsilon": 50.0, "delta": 2.0}, {"epsilon": 50.0, "delta": 1e-6, "seed": -1}):
        with pytest.raises(errors.PydpmodeError):
            fitted.fit(**arguments)
    fitted.fit(epsilon=1.0, delta=1e-6, seed=1)
    with pytest.raises(errors.BudgetExceeded):
        fitted.fit(epsilon=0.5, delta=1e-6, seed=1)


def test_a_preview_opens_no_budget() -> None:
    fitted = model()
    fitted.preview(epsilon=10.0, delta=1e-6)
    fitted.fit(epsilon=1.0, delta=1e-6, seed=1)
    with pytest.raises(errors.BudgetExceeded):
        fitted.fit(epsilon=1.0, delta=1e-6, seed=1)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_share_the_budget(duplicate) -> None:
    fitted = model()
    other = duplicate(fitted)
    fitted.fit(epsilon=1.0, delta=1e-6, seed=1)
    with pytest.raises(errors.BudgetExceeded):
        other.fit(epsilon=1.0, delta=1e-6, seed=1)


def test_a_model_with_rows_is_not_pickled() -> None:
    with pytest.raises(errors.PicklingRefused):
        pickle.dumps(model())


def test_threads_share_the_budget() -> None:
    fitted = model()

    def attempt(seed: int) -> bool:
        try:
            fitted.fit(epsilon=1.0, delta=1e-6, seed=seed)
        except errors.BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(16))) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_opens_no_second_budget() -> None:
    fitted = model()
    child = os.fork()
    if child == 0:
        try:
            fitted.fit(epsilon=1.0, delta=1e-6, seed=1)
        except errors.LedgerError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_rows_without_an_identifier_count_nothing() -> None:
    data = pd.DataFrame({"id": [1.0, np.nan, 2.0, np.nan], "x": [0.5, 0.1, 0.5, 0.9]})
    study = dpm.PrivateData(
        data, bounds={"x": (0, 1)}, budget=dpm.Budget(1.0, 1e-6), unit="person", person="id"
    )
    assert study.n_units == 2
    with pytest.raises(errors.EmptyData):
        dpm.PrivateData(
            data.assign(id=np.nan),
            bounds={"x": (0, 1)},
            budget=dpm.Budget(1.0, 1e-6),
            unit="person",
            person="id",
        )


@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
def test_no_rows_are_a_private_number_under_add_remove() -> None:
    data = pd.DataFrame({"x": np.array([], dtype=float)})
    study = dpm.PrivateData(
        data, bounds={"x": (0, 1)}, budget=dpm.Budget(1.0, 1e-6), adjacency="add_remove", n_guess=100
    )
    res = dpm.DensityModes(study).fit(epsilon=1.0, seed=1)
    assert abs(res.surface.total) < 6 * res.surface.total_sd
    assert np.isfinite(res.surface.vector).all()


def test_one_ledger_counts_one_kind_of_person(tmp_path) -> None:
    data = pd.DataFrame({"id": [1, 2, 3], "house": [1, 1, 2], "x": [0.1, 0.2, 0.3]})
    common = {"bounds": {"x": (0, 1)}, "budget": dpm.Budget(1.0, 1e-6), "unit": "person"}
    ledger = tmp_path / "l.jsonl"
    dpm.PrivateData(data, person="id", ledger=ledger, **common)
    dpm.PrivateData(data, person="id", ledger=ledger, **common)
    with pytest.raises(errors.LedgerMismatch, match="person"):
        dpm.PrivateData(data, person="house", ledger=ledger, **common)


def test_the_numbers_of_a_design_cannot_be_changed() -> None:
    res = model().fit(epsilon=1.0, delta=1e-6, seed=1)
    design = res.surface.design
    for array in (design.pair_weights, design.frequencies, design.sides, design.lower, design.bandwidth):
        with pytest.raises(ValueError, match="read-only"):
            array *= 2


def test_the_sum_without_noise_is_in_no_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("pydpmode.privacy.surface_release.simulated_gaussian", broken)
    with pytest.raises(MemoryError) as caught:
        model().fit(epsilon=1.0, delta=1e-6, seed=1)
    trace = caught.value.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith("pydpmode"):
            for name, value in trace.tb_frame.f_locals.items():
                assert not (isinstance(value, np.ndarray) and value.size > 10 and name != "x"), name
        trace = trace.tb_next
