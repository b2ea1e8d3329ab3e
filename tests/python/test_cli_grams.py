"""The command line with --mechanism grams."""

from __future__ import annotations

from pathlib import Path

import pytest

from pydpmode import datasets, load_results
from pydpmode.cli import EXIT_INPUT, main


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "four.csv"
    datasets.four_gaussians(3000, seed=1)[0].to_csv(path, index=False)
    return path


def run(table: Path, *more: str) -> int:
    bounds = ["--bounds", "x=-8:8", "--bounds", "y=-8:8"]
    spend = ["--epsilon", "2", "--delta", "1e-6", "--seed", "1", "--mechanism", "grams"]
    return main(["modes", str(table), *bounds, *spend, *more])


def test_a_run_prints_its_summary_and_saves_its_trace(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "r.json"
    assert run(table, "--grams", "T=5,k=30,eps_init=0.2", "--json", str(target)) == 0
    text = capsys.readouterr().out
    assert "grams (pld, correlated, T=5, k=30, m=3000)" in text
    assert "Starts:" in text
    res = load_results(target)
    assert res.trace.trace.positions.shape == (6, 30, 2)  # type: ignore[attr-defined]


def test_a_preview_spends_nothing(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(table, "--preview") == 0
    assert "Plan for DP-GRAMS on x, y" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--grams", "rounds=5"], "not NAME=VALUE"),
        (["--grams", "T"], "not NAME=VALUE"),
        (["--grams", "T=many"], "T must be"),
        (["--grams", "accountant=published"], "bound is false"),
        (["--surface", "s.json"], "releases no surface"),
        (["--adjacency", "add_remove"], "adjacency='replace'"),
        (["--order", "4"], "gaussian4"),
    ],
)
def test_what_does_not_fit_is_refused(
    table: Path, more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(table, *more) == EXIT_INPUT
    assert told in capsys.readouterr().err
