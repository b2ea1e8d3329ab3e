"""What surrounds a release: the ledger, the table of a summary, and reading CSV files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pydpmode import Budget, DensityModes, datasets
from pydpmode.privacy.accounting import Charge, gaussian_mu
from pydpmode.privacy.event_log import Chain, FileLog
from pydpmode.privacy.ledger import Ledger
from pydpmode.privacy.sources import open_source

from .cases import OURS, SEED, Case, Peer, Work

APPEND = "a plain JSON log"
SUMMARY = "statsmodels' summary of a regression"
PANDAS, ARROW = "pandas.read_csv", "pyarrow.csv.read_csv"
CHARGE = Charge("a release", "surface", 0.01, 1e-9, gaussian_mus=(gaussian_mu(0.01, 1e-9),))


def long_ledger(path: Path, lines: int) -> Ledger:
    """Return a ledger file of so many lines: a header, then charges and their releases in turn.

    The lines are written as the ledger would; only the sums over earlier charges, which are for display,
    are those of the first.
    """
    ledger = Ledger.open(path, Budget(1e4, 1e-3), "replace", "row")
    ledger.mark_released(ledger.charge(CHARGE))
    log = FileLog(path, 30.0)
    chain = log.read()
    pattern = chain.events[1:3]
    for number in range(3, lines):
        event = {**pattern[(number - 1) % 2], "id": f"{(number - 1) // 2:016x}"}
        log.append(event, chain)
        checksum = json.loads(path.read_bytes().splitlines()[-1])["checksum"]
        chain = Chain((*chain.events, event), (*chain.checksums, checksum), path.stat().st_size)
    return ledger


def plain_log(path: Path, other: Path) -> int:
    """Read a log, check its lines' sums, and add one line to another file for good: what any log must do."""
    count = 0
    for line in path.read_bytes().splitlines():
        hashlib.sha256(line).hexdigest()
        count += bool(json.loads(line))
    with other.open("ab") as file:
        file.write(json.dumps({"kind": "charge", "number": count}).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return count


def charges(lines: int, folder: Path) -> Work:
    """Return one charge to a ledger of so many lines."""
    ledger = long_ledger(folder / f"ledger{lines}.jsonl", lines)
    copy = folder / f"copy{lines}.jsonl"
    copy.write_bytes((folder / f"ledger{lines}.jsonl").read_bytes())

    def check(results: Mapping[str, Any]) -> None:
        assert ledger.entries()[-1].status == "charged, unfinished"
        assert results[APPEND] == lines

    runs = {
        OURS: lambda: ledger.charge(CHARGE),
        APPEND: lambda: plain_log(copy, folder / f"added{lines}.jsonl"),
    }
    return Work(runs, check)


def summary(n: int, _: Path) -> Work:
    """Return the text of a summary, beside the same of a regression with as many lines."""
    import statsmodels.api as sm

    rows = datasets.four_gaussians(n, seed=SEED)[0]
    result = DensityModes(rows, bounds=[(-8, 8)] * 2).fit(epsilon=2.0, delta=1e-6, seed=1)
    random = np.random.default_rng(SEED)
    regression = sm.OLS(random.normal(size=200), random.normal(size=(200, 8))).fit()

    def check(results: Mapping[str, Any]) -> None:
        assert all(len(text.splitlines()) > 15 for text in results.values())

    runs = {
        OURS: lambda: result.summary().as_text(),
        SUMMARY: lambda: regression.summary().as_text(),
    }
    return Work(runs, check)


def csv_pass(n: int, folder: Path) -> Work:
    """Return a pass over two of three columns of a CSV file, beside readers that may stop at one cell."""
    import pyarrow.csv

    random = np.random.default_rng(SEED)
    table = pd.DataFrame(random.normal(size=(n, 3)), columns=["x", "y", "z"])
    path = folder / "rows.csv"
    table.to_csv(path, index=False)
    wanted = ["x", "z"]

    def ours() -> np.ndarray:
        return np.hstack([block for block in open_source(path).blocks(wanted, 2**17)])

    def arrow() -> np.ndarray:
        options = pyarrow.csv.ConvertOptions(include_columns=wanted)
        read = pyarrow.csv.read_csv(
            path, convert_options=options, read_options=pyarrow.csv.ReadOptions(use_threads=False)
        )
        return np.stack([column.to_numpy() for column in read.columns])

    def check(results: Mapping[str, Any]) -> None:
        written = table[wanted].to_numpy().T
        assert np.array_equal(results[OURS], written)
        # Before its third version pandas rounded some numbers by more than half an ulp.
        assert all(np.allclose(values, written, rtol=1e-11, atol=0) for values in results.values())

    runs = {
        OURS: ours,
        PANDAS: lambda: pd.read_csv(path, usecols=wanted).to_numpy().T,
        ARROW: arrow,
    }
    return Work(runs, check)


CASES = (
    *(
        Case(
            f"ledger, a charge after {lines} lines",
            lines,
            few,
            charges,
            (Peer(APPEND, most),),
            rounds=9,
            waits=True,
        )
        for lines, few, most in ((3, 3, 12.0), (1001, 11, 15.0))
    ),
    Case("summary of four modes, as text", 5000, 2000, summary, (Peer(SUMMARY, 7.0),), rounds=9),
    Case("CSV file, 2 of 3 columns", 300_000, 1000, csv_pass, (Peer(PANDAS, 8.0), Peer(ARROW, 8.0))),
)
