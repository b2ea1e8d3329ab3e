"""Every branch that could depend on a row, compared between neighbours.

What an onlooker sees of a call, apart from the released numbers, is the same for both tables: shapes,
defaults, errors, warnings, progress, log lines, plans and the text of the ledger.
"""

from __future__ import annotations

import json
import logging
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from audits.onlooker import ledger_text, progress_told, remove_ledger
from pydpmode.errors import PydpmodeError
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy.private_data import PrivateData

N = 60
BOUNDS = {"x": (0.0, 10.0), "y": (0.0, 5.0)}
PLACE = 17

# What one row may hold, as it is written in each kind of table.
ROWS: dict[str, tuple[Any, Any]] = {
    "another": (1.5, 4.5),
    "the same as all": (5.0, 2.5),
    "missing": (math.nan, 2.0),
    "both missing": (math.nan, math.nan),
    "far outside": (1e300, -1e300),
    "infinite": (math.inf, -math.inf),
    "subnormal": (5e-324, -5e-324),
    "negative zero": (-0.0, -0.0),
}
CSV_CELLS = ("", "abc", '"q""uoted"', "1e999", "0x1F", "1,2", '"un\nclosed"', "é", "9" * 600)


def table() -> pd.DataFrame:
    generator = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "x": generator.uniform(1, 9, N),
            "y": generator.uniform(1, 4, N),
            "w": generator.uniform(0, 2, N),
            "who": np.arange(N) // 2,
        }
    )


def seen(data: Any, mechanism: str, caplog: pytest.LogCaptureFixture, ledger: Path, **knobs: Any) -> str:
    """Return everything that one call shows besides the released numbers, as one text."""
    caplog.clear()
    remove_ledger(ledger)
    shown: dict[str, Any] = {}
    with (
        progress_told() as told,
        caplog.at_level(logging.DEBUG),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        try:
            shown |= results(data, mechanism, ledger, knobs)
        except PydpmodeError as problem:
            shown["error"] = (type(problem).__name__, str(problem))
    shown["warnings"] = [(type(w.message).__name__, str(w.message)) for w in caught]
    shown["log"] = [(r.name, r.levelname, r.getMessage()) for r in caplog.records if "pydpmode" in r.name]
    shown["progress"] = told
    shown["ledger"] = ledger_text(ledger)
    return json.dumps(shown, default=repr, sort_keys=True)


def results(data: Any, mechanism: str, ledger: Path, knobs: dict[str, Any]) -> dict[str, Any]:
    study = PrivateData(data, bounds=BOUNDS, budget=dpm.Budget(2.0, 1e-3), ledger=ledger, **knobs)
    at = [study.coordinate("x"), study.coordinate("y")]
    box = study.box(at)
    spend: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-3, "seed": 4}
    shown: dict[str, Any] = {"public": (study.n_units, study.columns, study.bounds, repr(study))}
    zero = 0.5 if study.adjacency == "replace" else 0.1

    def design(_: Any = None) -> LatticeDesign:
        return LatticeDesign(("x", "y"), *box, np.array([2.0, 1.0]), 2, zero, 0.5, 2.5)

    if mechanism == "grams":
        options = dpm.GramsOptions(T=2, k=3)
        out: Any = study.release_grams(options, at, np.array([2.0, 1.0]), **spend)
        shown["shape"] = [a.shape for a in (out.trace.positions, out.trace.densities, out.trace.scores)]
    elif mechanism == "private":
        out = study.release_scaled_surface(design, at, **spend)
        shown["shape"] = (out.vector.shape, out.vector.dtype, out.design.to_dict())
    else:
        out = study.release_surface(design(), at, **spend)
        shown["shape"] = (out.vector.shape, out.vector.dtype, out.design.to_dict())
        assert np.all(np.isfinite(out.vector))
    shown["plan"] = str(study.plan(design(), epsilon=0.5, delta=1e-3).charge("", False))
    shown["privacy"] = out.privacy.to_dict()
    shown["after"] = repr(study)
    return shown


def dressed(frame: pd.DataFrame, source: str, folder: Path) -> Any:
    if source == "frame":
        return frame
    if source == "lists":
        return {name: [None if v != v else v for v in frame[name].tolist()] for name in frame}
    path = folder / f"t.{source}"
    frame.to_csv(path, index=False) if source == "csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(
    ("mechanism", "source"),
    [
        ("surface", "frame"),
        ("surface", "lists"),
        ("surface", "csv"),
        ("surface", "parquet"),
        ("private", "frame"),
        ("grams", "frame"),
    ],
)
def test_one_row_replaced(
    row: str, source: str, mechanism: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = tmp_path / "l.jsonl"
    other = table()
    other.loc[PLACE, ["x", "y"]] = ROWS[row]
    for outside in ("clip", "ignore"):
        texts = [
            seen(dressed(t, source, tmp_path), mechanism, caplog, ledger, outside=outside)
            for t in (table(), other)
        ]
        assert texts[0] == texts[1]
        assert "error" not in json.loads(texts[0])


@pytest.mark.parametrize("cell", CSV_CELLS)
@pytest.mark.parametrize(
    "knobs", [{}, {"weights": "w", "max_weight": 1.5}, {"unit": "person", "person": "who"}]
)
def test_one_cell_of_a_file(
    cell: str, knobs: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Cells that other readers stumble over; the identifier of a person stays, as her number is public."""
    ledger = tmp_path / "l.jsonl"
    path = tmp_path / "t.csv"
    lines = table().to_csv(index=False).splitlines()
    texts = []
    for position in (None, 0, 2):
        fields = lines[PLACE].split(",")
        if position is not None:
            fields[position] = cell
        path.write_text("\n".join([*lines[:PLACE], ",".join(fields), *lines[PLACE + 1 :]]) + "\n")
        # A record of another number of fields keeps its place; its person loses a row, not her vote.
        texts.append(seen(path, "surface", caplog, ledger, **knobs))
    assert texts[0] == texts[1] == texts[2]
    assert "error" not in json.loads(texts[0])


@pytest.mark.parametrize(
    "knobs", [{}, {"weights": "w", "max_weight": 1.5}, {"unit": "person", "person": "who"}]
)
@pytest.mark.parametrize("source", ["frame", "csv", "parquet"])
@pytest.mark.parametrize("rows", [N, 1])
def test_one_unit_added_or_removed(
    knobs: dict[str, Any], source: str, rows: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Under add/remove even the last row may go: an empty table looks like any other."""
    ledger = tmp_path / "l.jsonl"
    whole = table().head(rows)
    gone = whole["who"] == whole["who"].iloc[-1] if "person" in knobs else whole.index == rows - 1
    texts = [
        seen(
            dressed(t, source, tmp_path),
            "surface",
            caplog,
            ledger,
            adjacency="add_remove",
            n_guess=N,
            **knobs,
        )
        for t in (whole, whole[~gone])
    ]
    assert texts[0] == texts[1]
    assert "error" not in json.loads(texts[0])


@pytest.mark.parametrize("what", ["too little budget", "a column without bounds", "a bad seed"])
def test_a_refusal_is_the_same_for_neighbours(
    what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = table()
    other.loc[PLACE, ["x", "y"]] = (math.nan, math.inf)
    texts = []
    for frame in (table(), other):
        study = PrivateData(frame, bounds={"x": (0, 10)}, budget=dpm.Budget(0.5, 1e-3))
        at = [study.coordinate("x")]
        design = LatticeDesign(("x",), *study.box(at), np.array([2.0]), 2, 0.5, 0.5, 2.5)
        spend: dict[str, Any] = {"epsilon": 0.1, "delta": 1e-3}
        if what == "too little budget":
            spend["epsilon"] = 1.0
        elif what == "a bad seed":
            spend["seed"] = -1
        else:
            at = [study.coordinate("y")]
        with pytest.raises(PydpmodeError) as caught:
            study.release_surface(design, at, **spend)
        texts.append((type(caught.value), str(caught.value), len(study.ledger.entries())))
    assert texts[0] == texts[1]
    assert texts[0][2] == 0
