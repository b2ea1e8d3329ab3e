"""The page of evidence names only what exists, and every calibration carries its statement and source."""

from __future__ import annotations

import ast
import csv
import re
from pathlib import Path

import pytest

from audits import page
from audits.cases import all_cases

ROOT = Path(__file__).resolve().parents[2]
PRIVACY = ROOT / "pydpmode" / "privacy"
PAGE = (ROOT / "docs" / "evidence.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "`tests/" in line]
# Modules whose public functions decide how much noise there is, or what fits a budget.
CALIBRATING = (
    "accounting",
    "devices",
    "features",
    "gaussian",
    "grams",
    "grams_calibration",
    "grams_initialisation",
    "grams_plan",
    "grouped_release",
    "noise",
    "pms_plan",
    "preprocessing",
    "privacy_filter",
    "quantiles",
    "shares",
    "surface_release",
)
# A proof, or where it is found: a work and its year, or a word that begins an argument.
STATEMENT = re.compile(r"[A-Z]\w+ \(?(?:19|20)\d\d|et al\. (?:19|20)\d\d|[Pp]roof|[Gg]uarantee|[Ss]ensitivit")


def functions(path: Path) -> dict[str, str]:
    """Return the docstrings of the public functions and methods of a module."""
    found = {}
    module = ast.parse(path.read_text())
    inside = [member for owner in module.body if isinstance(owner, ast.ClassDef) for member in owner.body]
    for node in [*module.body, *inside]:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found[node.name] = ast.get_docstring(node) or ""
    return found


@pytest.mark.parametrize("module", CALIBRATING)
def test_every_calibration_has_a_statement_beside_it(module: str) -> None:
    path = PRIVACY / f"{module}.py"
    whole = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert STATEMENT.search(whole)
    for name, text in functions(path).items():
        assert text, f"{module}.{name} has no docstring"


NOTED = {
    "exact_sensitivity",
    "random_feature_deviation",
    "arithmetic_margin",
    "device_tolerance",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "unit_noise_scale",
    "discrete_gaussian_correction",
    "discrete_gaussian_slack",
    "combine_mu",
    "compose",
    "score_sensitivity",
    "draws_mu",
    "published_epsilon",
    "published_ratio",
    "fits",
    "draw_starts",
}


def test_the_functions_that_proofs_rest_on_argue_themselves() -> None:
    argument = re.compile(STATEMENT.pattern + r"|[Hh]ence|because|at most|dominat|exact")
    known: dict[str, str] = {}
    for module in CALIBRATING:
        known |= functions(PRIVACY / f"{module}.py")
    assert set(known) >= NOTED
    for name in NOTED:
        assert argument.search(known[name]), name
        assert len(known[name]) > 100, name


def test_every_private_module_that_calibrates_is_in_the_list() -> None:
    """A module that makes a charge or a sensitivity must be added above, and argue its case."""
    for path in PRIVACY.glob("*.py"):
        text = path.read_text()
        if re.search(r"gaussian_mu\(|Charge\(|Sensitivity\(", text) and path.stem != "ledger":
            assert path.stem in CALIBRATING, path.name


def test_the_table_names_only_what_exists() -> None:
    assert len(ROWS) >= 12
    everything: set[str] = set()
    for path in PRIVACY.glob("*.py"):
        everything |= set(functions(path))
    for row in ROWS:
        _, statement, where, test = (cell.strip() for cell in row.strip("|").split("|"))
        assert (ROOT / where.strip("`")).is_file(), where
        assert (ROOT / test.strip("`")).is_file(), test
        for name in re.findall(r"`(\w+)`", statement):
            assert name in everything, name


def test_the_page_shows_the_last_long_audit() -> None:
    assert page.page(PAGE) == PAGE
    with (page.RESULTS / "audit.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    shown = {(r["mechanism"], r["neighbours"], r["planted_fault"]) for r in rows}
    # Cases that are newer than the last long audit are in the next one; none is shown that is not run.
    assert shown <= {(c.mechanism, c.pair, c.fault) for c in all_cases()}
    assert len(shown) >= 20
    assert all(r["as_it_should_be"] == "True" for r in rows)
    sound = [r for r in rows if not r["planted_fault"]]
    assert all(float(r["epsilon_at_least"]) <= float(r["epsilon_stated"]) for r in sound)
    assert all(int(r["runs_a_side"]) >= 10_000 for r in sound)
    assert all(float(r["epsilon_at_least"]) > float(r["epsilon_stated"]) for r in rows if r["planted_fault"])


def test_fuzzing_found_nothing() -> None:
    with (page.RESULTS / "fuzzing.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(r["inputs"]) for r in rows) >= 10_000
    assert all(int(r["wrong"]) == 0 for r in rows)
