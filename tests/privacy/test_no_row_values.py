"""Nothing that leaves the door carries a row: results, files, texts, tracebacks and the ledger."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from audits import onlooker

# Three numbers that no computation on the others gives, as decimals and as the bytes of a double.
CANARIES = (271.8281828459045, 314.1592653589793, 161.8033988749895)


def assert_clean(blob: bytes, where: str) -> None:
    assert not onlooker.shows(blob, CANARIES), where


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    values = generator.uniform(150, 320, 1500)
    values[:3] = CANARIES
    return pd.DataFrame({"value": values})


BOUNDS = {"value": (100.0, 400.0)}


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
def test_results_and_files_are_clean(table: pd.DataFrame, seed: int | None, tmp_path) -> None:
    def look() -> dict[str, bytes]:
        res = dpm.DensityModes(table, bounds=BOUNDS).fit(epsilon=1.0, delta=1e-6, seed=seed)
        res.save(tmp_path / "r.json")
        res.surface.save(tmp_path / "s.json")
        summary = res.summary()
        texts = (summary.as_text(), summary.as_html(), summary.as_latex(), summary.as_csv())
        return {
            "pickle": pickle.dumps(res),
            "json": (tmp_path / "r.json").read_bytes(),
            "surface": (tmp_path / "s.json").read_bytes(),
            "vector": res.surface.vector.tobytes(),
            "dict": json.dumps(res.to_dict()).encode(),
            "repr": repr(res).encode() + repr(res.surface).encode() + repr(res.privacy).encode(),
            "texts": "".join(texts).encode(),
        }

    assert not onlooker.always_shown(look, CANARIES)


@pytest.mark.parametrize("leak", [np.array([1.0, CANARIES[0]]).tobytes(), b"at 271.828183 of"])
def test_a_leak_is_seen_and_chance_is_not(leak: bytes) -> None:
    by_chance = iter([b"1271.82813", b"7.5"])
    assert not onlooker.always_shown(lambda: {"text": next(by_chance)}, CANARIES)
    with_leak = iter([b"7.5" + leak, leak + b"8.5"])
    assert onlooker.always_shown(lambda: {"text": next(with_leak)}, CANARIES)


def test_no_array_reachable_from_a_result_holds_rows(table: pd.DataFrame) -> None:
    res = dpm.DensityModes(table, bounds=BOUNDS).fit(epsilon=1.0, delta=1e-6, seed=1)
    arrays = onlooker.reachable_arrays(res)
    assert any(a is res.surface.vector or a.base is res.surface.vector for a in arrays)
    for array in arrays:
        assert_clean(array.tobytes(), f"an array of shape {array.shape}")


def test_a_failure_while_reading_shows_no_row(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    study = dpm.PrivateData(table, bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-6))

    def broken(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("pydpmode.privacy.grouped_release.feature_sum", broken)
    with caplog.at_level(logging.DEBUG), pytest.raises(MemoryError) as caught:
        dpm.DensityModes(study).fit(epsilon=0.5)
    assert_clean("".join(traceback.format_exception(caught.value)).encode(), "traceback")
    assert_clean(caplog.text.encode(), "log")
    entry = study.ledger.entries()[0]
    assert "unfinished" in entry.status


def test_warnings_and_ledger_are_clean(table: pd.DataFrame, tmp_path) -> None:
    path = tmp_path / "l.jsonl"
    study = dpm.PrivateData(table.head(40), bounds=BOUNDS, budget=dpm.Budget(1.0, 0.1), ledger=path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dpm.DensityModes(study).fit(epsilon=0.01)
    assert caught
    assert_clean("".join(str(w.message) for w in caught).encode(), "warnings")
    assert_clean(path.read_bytes(), "ledger")
    assert_clean(repr(study).encode() + repr(study.ledger).encode(), "repr")


@pytest.mark.parametrize(
    "change",
    ["far", "missing", "infinite", "equal"],
)
def test_what_a_run_shows_does_not_depend_on_one_row(table: pd.DataFrame, change: str) -> None:
    """Shapes, warnings and the ledger are the same for neighbours; only the released vector differs."""
    other = table.copy()
    other.loc[7, "value"] = {"far": 1e9, "missing": np.nan, "infinite": -np.inf, "equal": 100.0}[change]
    shown = []
    for data in (table, other):
        study = dpm.PrivateData(data, bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-6))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            res = dpm.DensityModes(study).fit(epsilon=1.0, seed=3)
        entries = study.ledger.table().drop(columns="time")
        shown.append((len(caught), res.surface.vector.shape, res.privacy, entries.to_csv(), study.n_units))
        vector = res.surface.vector
        shown[-1] += (vector.dtype, res.surface.bandwidth.tolist())
    assert shown[0] == shown[1]
