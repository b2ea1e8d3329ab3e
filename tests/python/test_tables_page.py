"""docs/tables.md is what the CSVs give, and says so where they give nothing."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture
def tables() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location(
        "benchmark_tables_page", ROOT / "benchmarks" / "tables_page.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_the_page_is_what_the_csvs_give(tables: ModuleType) -> None:
    told = (DOCS / "tables.md").read_text(encoding="utf-8")
    assert told == tables.page(), "run: python benchmarks/tables.py --page"


def test_every_figure_of_the_paper_is_on_the_page(tables: ModuleType) -> None:
    page = tables.page()
    for source, measures in {
        "modes": ("mse", "mse_mean_shift"),
        "regression": ("loss", "loss_pms"),
        "clusters": ("ari", "nmi", "mse"),
        "one_run": ("ari", "nmi", "mse"),
    }.items():
        for row in tables.read(f"paper/{source}"):
            for measure in measures:
                digits = 6 if source == "one_run" else 3
                assert f"| {tables.number(row[measure], digits)}" in page


def test_cells_without_a_csv_say_so(
    tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "paper").symlink_to(ROOT / "benchmarks" / "paper")
    monkeypatch.setattr(tables, "HERE", tmp_path)
    row = tables.modes("four_gaussians").splitlines()[2].split(" | ")
    assert row[:2] == ["| 700", "0.1"]
    assert row[2] == "0.738 (0.098)"
    assert row[3:7] == ["not run"] * 4
    assert row[8] == "not run |"
    assert tables.clusters_made("mnist") == "It was not run: no CSV."


@pytest.mark.parametrize(
    ("text", "digits", "told"),
    [
        ("0.000174", 3, "0.000174"),
        ("9.772e-05", 3, "0.0000977"),
        ("227.8", 3, "228"),
        ("0.120", 6, "0.120"),
        ("0.0090", 3, "0.0090"),
        ("0", 3, "0"),
        ("nan", 3, "none"),
    ],
)
def test_numbers_have_no_digit_that_the_csv_has_not(
    tables: ModuleType, text: str, digits: int, told: str
) -> None:
    assert tables.number(text, digits) == told


def test_seeds_are_those_in_the_sources(tables: ModuleType) -> None:
    accuracy = (ROOT / "benchmarks" / "accuracy.py").read_text(encoding="utf-8")
    assert "TUNING_SEED, REPORTING_SEED = 70_000, 200_000" in accuracy
    assert tables.constant("accuracy.py") == "200000"
    assert tables.constant("pms_tables.py") == "200000"  # imported from accuracy.py
    assert tables.constant("regression_tables.py", "RUNS") == "20"


def test_pictures_are_there_and_small() -> None:
    pictures = re.findall(r"\]\((figures/[^)]+\.png)\)", (DOCS / "tables.md").read_text(encoding="utf-8"))
    assert {Path(p).name for p in pictures} == {p.name for p in (DOCS / "figures").glob("*.png")}
    assert all((DOCS / p).stat().st_size < 150_000 for p in pictures)
