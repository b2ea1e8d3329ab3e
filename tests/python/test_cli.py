"""The command line, as a subprocess on the packaged data and in this process for the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from pydpmode import datasets
from pydpmode.cli import main, parse_bounds

WAGES = str(datasets.wages_path())
SPEND = ["--epsilon", "1", "--delta", "1e-6"]
MAIN_JOB = ["modes", WAGES, "--columns", "age,wage", "--bounds", "age=15:90", "--bounds", "wage=1000:300000"]
CANARY = 48151623.42


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pydpmode", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_main_job_on_the_packaged_wages(tmp_path: Path) -> None:
    picture, result, ledger = (tmp_path / name for name in ("w.png", "w.json", "w.jsonl"))
    done = run(
        *MAIN_JOB,
        "--log",
        "wage",
        *SPEND,
        "--plot",
        str(picture),
        "--json",
        str(result),
        "--ledger",
        str(ledger),
    )
    assert done.returncode == 0, done.stderr
    assert "Private modes of the density" in done.stdout
    assert "replacing one row" in done.stdout
    assert done.stderr == ""
    assert picture.read_bytes()[:4] == b"\x89PNG"
    loaded = dpm.load_results(result)
    assert loaded.columns == ("age", "log(wage)")
    assert not loaded.privacy.simulated
    assert 25 < loaded.modes.iloc[0, 0] < 32
    assert 9.9 < loaded.modes.iloc[0, 1] < 10.7


def test_a_lower_bound_of_zero_under_a_logarithm(capsys: pytest.CaptureFixture[str]) -> None:
    bounds = ["--bounds", "age=15:90", "--bounds", "wage=0:300000"]
    code = main(["modes", WAGES, "--columns", "age,wage", *bounds, "--log", "wage", *SPEND])
    out = capsys.readouterr()
    assert code == 0
    assert "a lower bound of 0 has no logarithm" in out.err


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["modes", "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert "example:" in text
    assert "--bounds age=15:90" in text
    assert "PUBLIC" in text


@pytest.mark.parametrize("command", ["modes", "clusters", "regression"])
def test_help_ends_with_the_guarantee_and_names_every_kind_of_file(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = capsys.readouterr().out
    last = " ".join(text.rstrip().split("\n\n")[-1].split())
    assert last.startswith("Guarantee: given the public bounds, all that is written is (epsilon, delta)-")
    assert last.endswith("NOT private.")
    assert "a folder of Parquet files" in " ".join(text.split())


@pytest.mark.parametrize("command", ["ledger", "wages"])
def test_every_command_says_what_it_does(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    described = capsys.readouterr().out.split("\n\n")[1]
    assert described.startswith(("Show a ledger file", "Print the path"))


@pytest.mark.parametrize("form", ["text", "html", "latex", "csv"])
def test_forms_of_the_summary(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MAIN_JOB, *SPEND, "--seed", "1", "--format", form]) == 0
    assert "age" in capsys.readouterr().out


def test_a_ledger_is_shared_shown_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = str(tmp_path / "l.jsonl")
    assert main([*MAIN_JOB, *SPEND, "--ledger", ledger, "--budget", "2", "--label", "first"]) == 0
    # The budget of an existing ledger need not be repeated.
    assert (
        main([*MAIN_JOB, "--epsilon", "0.5", "--delta", "1e-6", "--ledger", ledger, "--label", "second"]) == 0
    )
    before = Path(ledger).read_bytes()
    assert main([*MAIN_JOB, "--epsilon", "1.9", "--delta", "1e-6", "--ledger", ledger]) == 3
    assert Path(ledger).read_bytes() == before
    assert main(["ledger", ledger]) == 0
    text = capsys.readouterr().out
    assert "first" in text
    assert "second" in text


def test_a_saved_surface_costs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    surface = str(tmp_path / "s.json.gz")
    assert main([*MAIN_JOB, *SPEND, "--surface", surface]) == 0
    assert main(["modes", surface, "--columns", "age"]) == 0
    assert main(["modes", surface, "--epsilon", "1"]) == 2
    assert "costs nothing" in capsys.readouterr().err


def test_preview_spends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = tmp_path / "l.jsonl"
    assert main([*MAIN_JOB, *SPEND, "--ledger", str(ledger), "--preview"]) == 0
    assert "nothing read, nothing charged" in capsys.readouterr().out
    assert "charge" not in "".join(line for line in ledger.read_text().splitlines()[1:])


@pytest.fixture
def table(tmp_path: Path) -> str:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"a": generator.normal(size=800), "b": generator.normal(size=800), "t": "text"})
    frame.loc[0, "a"] = CANARY
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*SPEND], "bounds"),
        (["--bounds", "a=-5:5", "--delta", "1e-6"], "--epsilon is missing"),
        (["--bounds", "a=-5:5", "--epsilon", "1"], "--delta is missing"),
        (["--bounds", "a=-5:5", "--epsilon", "0", "--delta", "1e-6"], "epsilon must be"),
        (["--bounds", "a=-5:5", "--epsilon", "nan", "--delta", "1e-6"], "epsilon must be"),
        (["--bounds", "a=-5:5", "--epsilon", "1", "--delta", "2"], "delta must be"),
        (["--bounds", "a=5:-5", *SPEND], "below"),
        (["--bounds", "a=5", *SPEND], "NAME=LOW:HIGH"),
        (["--bounds", "a=-5:5", "--bounds", "a=-5:5", *SPEND], "twice"),
        (["--bounds", "c=-5:5", *SPEND], "c"),
        (["--bounds", "a=-5:5", "--columns", "a,b", *SPEND], "b"),
        (["--bounds", "a=-5:5", "--log", "a", *SPEND], "logarithm"),
        (["--bounds", "a=-5:5", "--bandwidth", "x=1", *SPEND], "bandwidth"),
        (["--bounds", "a=-5:5", "--resolution", "a", *SPEND], "resolution"),
        (["--bounds", "a=-5:5", "--plot", "picture.gif", *SPEND], ".png"),
        (["--bounds", "a=-5:5", "--json", "/no/such/folder/r.json", *SPEND], "does not exist"),
        (["--bounds", "a=-5:5", "--budget", "2", *SPEND], "--ledger"),
        (["--bounds", "a=-5:5", "--weights", "b", *SPEND], "max_weight"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], said: str, table: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = main(["modes", table, *arguments])
    out = capsys.readouterr()
    assert code == 2
    assert said in out.err
    assert out.out == ""
    assert "4815" not in out.err
    assert "Traceback" not in out.err


def test_outputs_are_checked_before_anything_is_spent(table: str, tmp_path: Path) -> None:
    ledger = tmp_path / "l.jsonl"
    common = ["modes", table, "--bounds", "a=-5:5", *SPEND, "--ledger", str(ledger)]
    assert main([*common, "--plot", str(tmp_path / "p.gif")]) == 2
    assert not ledger.exists() or "charge" not in "".join(ledger.read_text().splitlines()[1:])


@pytest.mark.parametrize("option", ["--json", "--surface", "--plot"])
def test_an_output_that_is_no_file_costs_nothing(
    option: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "l.jsonl"
    common = ["modes", table, "--bounds", "a=-5:5", *SPEND, "--ledger", str(ledger)]
    folder = tmp_path / "folder.png"
    folder.mkdir()
    for target in ("", ".", str(folder)):
        assert main([*common, option, target]) == 2
        assert "names a folder" in capsys.readouterr().err
    assert '"kind":"charge"' not in ledger.read_text()


@pytest.mark.parametrize(
    "more",
    [["--json", "r\0.json"], ["--plot", "p\0.png"], ["--ledger", "l\0.jsonl"], ["--n-guess", "9" * 30]],
    ids=["json", "plot", "ledger", "n_guess"],
)
def test_names_with_null_characters_and_counts_beyond_reason(
    more: list[str], table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    adjacency = ["--adjacency", "add_remove"] if more[0] == "--n-guess" else []
    arguments = ["modes", table, "--bounds", "x=-8:8", "--epsilon", "1", "--delta", "1e-6"]
    assert main([*arguments, *adjacency, *more]) in (2, 4)
    shown = capsys.readouterr()
    assert "error" in shown.err
    assert "internal" not in shown.err
    assert not shown.out


def test_files_that_are_no_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in (("a.csv", ""), ("a.parquet", "no"), ("a.xlsx", "no"), ("s.json", "{}")):
        path = tmp_path / name
        path.write_text(content)
        assert main(["modes", str(path), "--bounds", "a=0:1", *SPEND]) == 2
    assert main(["modes", str(tmp_path / "none.csv"), "--bounds", "a=0:1", *SPEND]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_damaged_ledger_has_its_own_code(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "l.jsonl"
    common = ["modes", table, "--bounds", "a=-5:5", "--ledger", str(ledger)]
    assert main([*common, "--epsilon", "0.3", "--delta", "1e-6", "--budget", "2"]) == 0
    ledger.write_text(ledger.read_text()[:-20])
    assert main([*common, "--epsilon", "0.3", "--delta", "1e-6"]) == 4
    assert "ledger" in capsys.readouterr().err


def test_an_unexpected_error_shows_no_message(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"cell {CANARY}")

    monkeypatch.setattr("pydpmode.models.density_modes.find_modes", broken)
    assert main(["modes", table, "--bounds", "a=-5:5", *SPEND]) == 1
    err = capsys.readouterr().err
    assert "RuntimeError" in err
    assert "4815" not in err


def test_an_interrupt_leaves_the_entry_charged(
    table: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pydpmode.privacy.grouped_release.feature_sum", stop)
    ledger = tmp_path / "l.jsonl"
    assert main(["modes", table, "--bounds", "a=-5:5", *SPEND, "--ledger", str(ledger)]) == 130
    assert main(["ledger", str(ledger)]) == 0
    assert "unfinished" in capsys.readouterr().out


def test_a_device_that_is_not_there(
    table: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    ledger = tmp_path / "l.jsonl"
    asked = ["modes", table, "--bounds", "a=-5:5", *SPEND, "--ledger", str(ledger), "--device"]
    assert main([*asked, "cuda"]) == 2
    assert "needs CuPy" in capsys.readouterr().err
    assert not ledger.exists()
    assert main([*asked, "cpu"]) == 0


def test_version_and_wages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert main(["wages"]) == 0
    assert capsys.readouterr().out.strip().endswith(WAGES)


def test_bounds_of_times() -> None:
    assert parse_bounds(["when=2020-01-01:2020-12-31"]) == {"when": ("2020-01-01", "2020-12-31")}
    assert parse_bounds(["when=2020-01-01T00:00..2020-12-31T12:00"])["when"] == (
        "2020-01-01T00:00",
        "2020-12-31T12:00",
    )
    assert parse_bounds(["a=b=-1:1e3"]) == {"a=b": (-1.0, 1000.0)}


def test_the_json_holds_no_row(table: str, tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    assert main(["modes", table, "--bounds", "a=-5:5", *SPEND, "--json", str(target)]) == 0
    text = target.read_text()
    assert "48151623" not in text
    assert "rows" not in json.loads(text)


def test_a_reader_that_goes_away_is_no_error_of_ours() -> None:
    command = f"{sys.executable} -m pydpmode modes --help | head -c 1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert "internal error" not in done.stderr


@pytest.fixture
def diary(tmp_path: Path) -> str:
    days = np.datetime64("2024-01-01") + np.random.default_rng(0).normal(150, 20, 900).astype(int)
    path = tmp_path / "diary.csv"
    pd.DataFrame({"day": days.astype(str)}).to_csv(path, index=False)
    return str(path)


def test_dates_of_a_csv_file_want_an_option(diary: str, capsys: pytest.CaptureFixture[str]) -> None:
    job = ["modes", diary, "--columns", "day", "--bounds", "day=2024-01-01:2024-12-31", *SPEND]
    assert main(job) != 0
    assert "(on the command line --datetimes NAME)" in capsys.readouterr().err
    assert main([*job, "--datetimes", "day"]) == 0
    assert "2024-0" in capsys.readouterr().out
    assert main(["modes", diary, "--columns", "day", "--bounds", "day=0:100", *SPEND]) == 0
    assert "columns of dates must be named in datetimes=" in capsys.readouterr().err


def test_a_bound_that_is_no_date_either_gets_no_advice_on_dates(
    diary: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["modes", diary, "--columns", "day", "--bounds", "day=low:high", *SPEND]) != 0
    assert "datetimes" not in capsys.readouterr().err
