"""The command `pydpmode regression`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from pydpmode.cli import EXIT_INPUT, main

SPEND = ["--epsilon", "2", "--delta", "1e-5", "--seed", "1", "--no-progress"]
BOUNDS = ["--bounds", "x=0:1", "--bounds", "y=-1:2.5"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    data = dpm.datasets.sinusoid(1200, seed=3)[0]
    target = tmp_path / "waves.csv"
    data.assign(side=np.where(np.arange(1200) % 2 == 0, "a", "b"), code=np.arange(1200) % 3).to_csv(
        target, index=False
    )
    return str(target)


def test_summary_result_and_picture(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, picture, surface = (str(tmp_path / name) for name in ("r.json", "r.png", "s.json"))
    options = ["--json", target, "--plot", picture, "--surface", surface]
    assert main(["regression", table, "y ~ x", *BOUNDS, *SPEND, *options]) == 0
    printed = capsys.readouterr().out
    assert "Modal regression" in printed
    assert "certified" in printed
    assert Path(picture).stat().st_size > 10_000
    back = dpm.load_results(target)
    assert back.kind == "modal_regression"
    assert main(["regression", surface, "y ~ x"]) == 0
    assert "as released" in capsys.readouterr().out


@pytest.mark.parametrize(("by", "levels"), [("side", "a,b"), ("code", "0,1,2")])
def test_groups(table: str, by: str, levels: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["regression", table, "y ~ x", *BOUNDS, *SPEND, "--by", by, "--levels", levels]
    assert main(command) == 0
    assert f"{by} = " in capsys.readouterr().out


def test_a_line_and_a_preview(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regression", table, "y ~ x", *BOUNDS, *SPEND, "--kind", "linear"]) == 0
    assert "Intercept" in capsys.readouterr().out
    assert main(["regression", table, "y ~ I(x * 2)", *BOUNDS, *SPEND, "--preview"]) == 0
    said = capsys.readouterr().out
    assert "nothing read" in said
    assert "a branch that holds this share" in said
    assert "a mode that holds" not in said


@pytest.mark.parametrize(
    "options",
    [
        ["y ~ scale(x)", *BOUNDS, *SPEND],
        ["y ~ x", "--bounds", "x=0:1", *SPEND],
        ["y ~ x", *BOUNDS, "--delta", "1e-5"],
        ["y ~ x", *BOUNDS, *SPEND, "--by", "side"],
        ["y ~ x", *BOUNDS, *SPEND, "--by", "side", "--levels", "a,b", "--surface", "s.json"],
    ],
)
def test_wrong_input_ends_with_its_code(
    table: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["regression", table, *options]) == EXIT_INPUT
    assert "error" in capsys.readouterr().err


def test_the_wage_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = dpm.datasets.wages().iloc[::20]
    target = tmp_path / "w.parquet"
    pd.DataFrame(frame).to_parquet(target)
    bounds = ["--bounds", "age=15:90", "--bounds", "wage=1000:300000"]
    assert main(["regression", str(target), "log(wage) ~ age", *bounds, *SPEND]) == 0
    assert "wage" in capsys.readouterr().out
