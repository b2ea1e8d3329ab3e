"""The benchmark suite runs, notices what is too slow, and docs/speed.md shows what its CSV holds."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.suite import page
from benchmarks.suite.cases import OURS
from benchmarks.suite.every_case import CASES
from benchmarks.suite.ratios import FIELDS, ratio, ratios, table, write
from benchmarks.suite.test_speed import test_ratio as check_ratio

ROOT = Path(__file__).parents[2]


def test_every_case_runs_on_small_data() -> None:
    command = [sys.executable, "-m", "pytest", "-c", "benchmarks/suite/pytest.ini", "benchmarks/suite"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, "--smoke", "--benchmark-disable"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    small = [case for case in CASES if case.few]
    # Each once, and the first goes on to every run's timing.
    assert f"{len(small) + len(CASES[0].sides)} passed" in done.stdout


def test_a_ratio_above_its_ceiling_fails() -> None:
    case, peer = CASES[0], CASES[0].peers[0]
    medians = {(case.name, OURS): 0.99 * peer.most, (case.name, peer.name): 1.0}
    check_ratio(case, peer, medians)
    assert "TOO SLOW" not in table(ratios(CASES, medians))
    medians[case.name, OURS] = 1.01 * peer.most
    with pytest.raises(AssertionError, match=f"at most {peer.most:g}"):
        check_ratio(case, peer, medians)
    assert table(ratios(CASES, medians)).endswith("TOO SLOW")


def test_what_was_not_timed_has_no_ratio() -> None:
    case, peer = CASES[0], CASES[0].peers[0]
    assert ratio(case, peer, {(case.name, OURS): 1.0}) is None
    assert ratios(CASES, {}) == []


def test_ratios_are_written_with_their_seconds(tmp_path: Path) -> None:
    case, peer = CASES[0], CASES[0].peers[0]
    write(ratios(CASES, {(case.name, OURS): 3.0, (case.name, peer.name): 2.0}), tmp_path / "suite.csv")
    with (tmp_path / "suite.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert tuple(row) == FIELDS
    assert (row["case"], row["seconds"], row["peer_seconds"], row["ratio"]) == (case.name, "3", "2", "1.5")
    assert row["cores"] == str(os.cpu_count())


def test_the_csv_is_of_these_cases_and_within_their_ceilings() -> None:
    with page.RESULTS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    told = {(row["case"], row["peer"]): row for row in rows}
    every = {(case.name, peer.name): (case, peer) for case in CASES for peer in case.peers}
    assert set(told) == set(every), "run: make bench-suite"
    for key, (case, peer) in every.items():
        row = told[key]
        assert float(row["most"]) == peer.most
        assert int(row["rows"]) == case.rows
        assert float(row["ratio"]) <= peer.most
        assert float(row["ratio"]) == pytest.approx(
            float(row["seconds"]) / float(row["peer_seconds"]), rel=0.02
        )


def test_the_page_is_what_the_csv_gives() -> None:
    told = page.PAGE.read_text(encoding="utf-8")
    assert told == page.page(told), "run: python -m benchmarks.suite.page"
    assert len(re.findall(r"<!-- suite\.csv -->", told)) == 1
