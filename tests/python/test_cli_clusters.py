"""The command `pydpmode clusters`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from pydpmode.cli import main


@pytest.fixture
def table(tmp_path: Path) -> Path:
    generator = np.random.default_rng(1)
    x = np.array([[-2.0, -2.0], [2.0, 2.0]])[generator.integers(0, 2, 1500)]
    frame = pd.DataFrame(x + 0.6 * generator.normal(size=(1500, 2)), columns=["a", "b"])
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    return path


BOUNDS = ["--bounds", "a=-5:5", "--bounds", "b=-5:5"]
SPEND = ["--epsilon", "1", "--delta", "1e-6", "--seed", "1", "--no-progress"]


def test_clusters_of_a_file(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, picture, surface = tmp_path / "c.json", tmp_path / "c.png", tmp_path / "s.json.gz"
    files = ["--json", str(out), "--plot", str(picture), "--surface", str(surface)]
    assert main(["clusters", str(table), "--columns", "a,b", *BOUNDS, "--k", "2", *SPEND, *files]) == 0
    text = capsys.readouterr().out
    assert "2 asked for" in text
    result = dpm.load_results(out)
    assert result.n_clusters == 2
    assert np.sort(result.centres["a"].to_numpy()) == pytest.approx([-2, 2], abs=0.2)
    assert picture.stat().st_size > 5000
    # The saved surface is clustered again at no cost, the number found.
    assert main(["clusters", str(surface)]) == 0
    assert "2 (number found)" in capsys.readouterr().out


def test_options_reach_the_model(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--centres", "modes", "--bandwidth", "0.8", "--public-transform", "a table of 1970"]
    assert main(["clusters", str(table), *BOUNDS, *options, *SPEND]) == 0
    text = capsys.readouterr().out
    assert "modes of the density" in text
    assert "1970" in text
    assert "given by the user" in text


def test_preview_and_refusals(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clusters", str(table), *BOUNDS, "--k", "2", *SPEND, "--preview"]) == 0
    assert "nothing read, nothing charged" in capsys.readouterr().out
    assert main(["clusters", str(table), *BOUNDS, "--k", "2"]) == 2
    assert "--epsilon is missing" in capsys.readouterr().err
    assert main(["clusters", str(table), *BOUNDS, "--k", "0", *SPEND]) == 2
    assert "n_clusters" in capsys.readouterr().err
