from __future__ import annotations

import csv
import dataclasses
import html.parser
import io
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statsmodels.iolib.summary import Summary

from pydpmode.results.number_text import date_text, duration_text, limits_text, number_text, plain, shorten
from pydpmode.results.results import DensityModesResults
from pydpmode.results.summary_tables import doubts

GOLDEN = Path(__file__).parent / "golden"
CASES = ["wages", "simulated", "baseline", "nothing_found", "times", "one_column", "five_columns"]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, DensityModesResults]:
    return request.param, request.getfixturevalue(request.param)


def test_text_is_as_agreed(case: tuple[str, DensityModesResults]) -> None:
    """To change the text on purpose: PYDPMODE_UPDATE_GOLDEN=1 pytest ..., and read the difference."""
    name, result = case
    text = result.summary().as_text() + "\n"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("PYDPMODE_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_text_fits_the_page(case: tuple[str, DensityModesResults]) -> None:
    lines = case[1].summary().as_text().split("\n")
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)
    rules = {len(line) for line in lines if set(line) in ({"="}, {"-"})}
    assert len(rules) == 1


def test_it_is_a_statsmodels_summary(wages: DensityModesResults) -> None:
    summary = wages.summary()
    assert isinstance(summary, Summary)
    assert str(summary) == summary.as_text() == repr(summary)


def test_level_changes_the_interval(wages: DensityModesResults) -> None:
    text = wages.summary(0.9).as_text()
    assert "[0.05" in text
    assert "0.95]" in text
    assert "90% intervals" in text


def test_simulated_noise_cannot_be_missed(simulated: DensityModesResults) -> None:
    summary = simulated.summary()
    for form in (summary.as_text(), summary.as_html(), summary.as_latex(), summary.as_csv()):
        assert "SIMULATED" in form
        assert form.count("NOT PRIVATE") >= 3
    assert "differentially private for" not in summary.as_text()


def test_no_mode_is_said_plainly(nothing_found: DensityModesResults) -> None:
    text = nothing_found.summary().as_text()
    assert "No mode was found" in text
    assert "What helps" in text


def test_warnings_and_statements_of_the_user_are_shown(wages: DensityModesResults) -> None:
    assert wages.privacy is not None
    told = dataclasses.replace(
        wages, privacy=dataclasses.replace(wages.privacy, notes=("The bandwidth came from the data.",))
    )
    text = told.summary().as_text()
    assert "The bandwidth came from the data." in text
    assert "Warning: delta is not below 1/n" in text


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"on_face": np.array([[False, True], [False, False]])}, "on a bound: mode 1 (upper log(wage))"),
        (
            {"covariance_privacy": np.full((2, 2, 2), math.nan)},
            "no downward curvature in every direction: mode 1",
        ),
        (
            {"curvature_z": np.array([4.96, 9.0])},
            "curvature below 5 times its noise, where intervals cover too rarely: mode 1 (4.9)",
        ),
        (
            {"significant": np.array([False, True])},
            "not told from noise at a false-mode rate of 0.05: mode 1",
        ),
        ({}, "smoothing bias not shown to be small against the standard error: mode 1"),
        ({"converged": False}, "the search did not converge: mode 1"),
    ],
)
def test_doubts_are_explained(wages: DensityModesResults, change: dict[str, Any], reason: str) -> None:
    locations = np.array([[38.0, math.log(300000)], [57.0, 9.0]])
    change = dict(change)
    search = dataclasses.replace(
        wages.mode_set.diagnostics, all_converged=bool(change.pop("converged", True))
    )
    modes = dataclasses.replace(
        wages.mode_set,
        locations=locations,
        diagnostics=search,
        **{"reliable": np.array([False, True]), **change},
    )
    modes = dataclasses.replace(modes, curvature_z=change.get("curvature_z", np.array([9.0, 9.0])))
    notes = list(doubts(dataclasses.replace(wages, mode_set=modes)))
    assert notes == [f"? Intervals that cannot be relied on: {reason}."]


@pytest.mark.parametrize(
    ("refined", "said"),
    [
        ([True, True], "(bias), for the modes of the density itself. Share"),
        (
            [False, False],
            "for the modes of the density smoothed at the bandwidth shown. Smoothing bias is",
        ),
        (
            [True, False],
            "itself; for mode 2, of the density smoothed at the bandwidth shown, whose",
        ),
    ],
)
def test_the_note_says_what_intervals_cover(
    wages: DensityModesResults, refined: list[bool], said: str
) -> None:
    modes = dataclasses.replace(wages.mode_set, refined=np.array(refined))
    summary = dataclasses.replace(wages, mode_set=modes).summary()
    assert said in " ".join(summary.notes)
    assert ("bias" in summary.as_text().split("estimate")[1].split("\n")[0]) is any(refined)


def test_modes_with_one_doubt_share_a_note(wages: DensityModesResults) -> None:
    modes = dataclasses.replace(
        wages.mode_set,
        reliable=np.array([False, False]),
        curvature_z=np.array([4.0, 3.0]),
        significant=np.array([True, False]),
    )
    (note,) = doubts(dataclasses.replace(wages, mode_set=modes))
    assert "too rarely: modes 1 (4.0), 2 (3.0); not told from noise" in note
    assert note.endswith("mode 2.")


def test_no_doubt_no_note(five_columns: DensityModesResults) -> None:
    assert list(doubts(five_columns)) == []


def test_coordinates_held_by_a_face_are_no_lack_of_curvature(wages: DensityModesResults) -> None:
    covariance = wages.mode_set.covariance_privacy.copy()
    covariance[0, 1, :] = covariance[0, :, 1] = math.nan
    modes = dataclasses.replace(
        wages.mode_set,
        covariance_privacy=covariance,
        on_face=np.array([[False, True], [False, False]]),
        reliable=np.array([False, True]),
    )
    held = dataclasses.replace(wages, mode_set=modes)
    assert "downward" not in next(doubts(held))
    assert "--" in held.summary().as_text()


def test_modes_that_clipping_may_have_made_are_pointed_out(wages: DensityModesResults) -> None:
    locations = wages.mode_set.locations.copy()
    locations[1, 1] = math.log(1000) + 0.1
    near = dataclasses.replace(wages, mode_set=dataclasses.replace(wages.mode_set, locations=locations))
    said = "Within a bandwidth of a bound: mode 2 (lower log(wage))"
    assert said in near.summary().as_text().replace("\n    ", " ")
    assert "Within a bandwidth" not in wages.summary().as_text()
    assert near.privacy is not None
    ignored = dataclasses.replace(near, privacy=dataclasses.replace(near.privacy, outside="ignore"))
    assert "Within a bandwidth" not in ignored.summary().as_text()


# ---------------------------------------------------------------------- the other formats


class Checker(html.parser.HTMLParser):
    """Fails on tags that are not closed in order; collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_html_is_well_formed(case: tuple[str, DensityModesResults]) -> None:
    result = case[1]
    checker = Checker()
    checker.feed(result.summary().as_html())
    checker.close()
    assert checker.open == []
    assert result._repr_html_() == result.summary().as_html()


def test_names_are_escaped_in_html(five_columns: DensityModesResults) -> None:
    page = five_columns.summary().as_html()
    assert "&lt;x&gt;" in page
    assert "<x>" not in page
    assert "b &amp; c" in page


def test_latex_is_well_formed(case: tuple[str, DensityModesResults]) -> None:
    latex = case[1].summary().as_latex()
    for name in set(re.findall(r"\\begin\{(\w+)\}", latex)):
        assert latex.count(f"\\begin{{{name}}}") == latex.count(f"\\end{{{name}}}")
    bare = re.sub(r"\\[{}]", "", latex)
    assert bare.count("{") == bare.count("}")
    for table in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", latex, re.DOTALL):
        rows = [line for line in table[1].split("\n") if line.endswith(r"\\")]
        assert rows
        assert all(len(re.findall(r"(?<!\\)&", row)) == len(table[0]) - 1 for row in rows)
    body = re.sub(r"^%.*$", "", latex, flags=re.MULTILINE)
    assert not re.search(r"(?<!\\)[%#$]", body)
    assert not re.search(r"(?<!\\)_", body)
    assert not re.search(r"[<>|~^]", body)


def test_headers_stand_above_their_columns_in_latex(case: tuple[str, DensityModesResults]) -> None:
    summary = case[1].summary()
    latex = summary.as_latex()
    # One tabular for each part, so that a header has the width of what is below it.
    assert latex.count(r"\begin{tabular}") == len(summary.tables)
    for table in re.findall(r"\\begin\{tabular\}(.*?)\\end\{tabular\}", latex, re.DOTALL):
        assert table.count(r"\toprule") == table.count(r"\bottomrule") == 1
        assert not re.search(r"\\midrule\s*\\bottomrule", table)
    if case[1].n_modes:
        assert r"& \textbf{{[}0.025} & \textbf{0.975]} &" in latex


def test_csv_holds_the_same_cells(case: tuple[str, DensityModesResults]) -> None:
    result = case[1]
    rows = list(csv.reader(io.StringIO(result.summary().as_csv())))
    assert [row[0] for row in rows if row][-1:] == ["note"]
    if result.n_modes:
        start = next(i for i, row in enumerate(rows) if row[:1] == ["mode"])
        names = [row[1] for row in rows[start + 1 : start + 1 + len(result.columns)] if "->" not in row[1]]
        assert names[0] == shorten(result.columns[0], 24)
        assert {len(row) for row in rows[start : start + 3]} == {len(rows[start])}


# ------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("number", "error", "text"),
    [
        (10.31274, 0.0034, "10.3127"),
        (52310.4, 1234.0, "52310"),
        (52310.4, 0.0, "52310.4"),
        (0.0, 0.5, "0.00"),
        (-0.0001, 0.1, "0.00"),
        (1.5e13, 2e9, "1.50000e+13"),
        (2.5e-12, 1e-13, "2.500e-12"),
        (math.nan, 1.0, "--"),
        (math.inf, 1.0, "inf"),
        (-math.inf, 1.0, "-inf"),
    ],
)
def test_numbers_have_the_digits_of_their_error(number: float, error: float, text: str) -> None:
    size = abs(number) if math.isfinite(number) else 1.0
    assert number_text(error, size).value(number) == text


def test_errors_are_never_shown_as_zero() -> None:
    style = number_text(0.21, 40.0)
    assert style.error(0.21) == "0.21"
    assert style.error(0.0001) == "<0.01"
    assert style.error(0.0) == "0.00"
    assert style.error(math.nan) == "--"
    assert number_text(1e-13, 2.5e-12).error(1e-13) == "1.0e-13"


@pytest.mark.parametrize(
    ("seconds", "error", "text"),
    [
        (1586511360.0, 2 * 86400.0, "2020-04-10"),
        (1586563199.0, 86400.0, "2020-04-11"),
        (1586511360.0, 3600.0, "2020-04-10 09:36"),
        (1586511360.4, 1.0, "2020-04-10 09:36:00"),
        (1586511360.4, 0.01, "2020-04-10 09:36:00.400"),
        (-1.0, 1.0, "1969-12-31 23:59:59"),
        (math.nan, 1.0, "--"),
        (1e30, 1.0, "--"),
    ],
)
def test_dates_have_the_digits_of_their_error(seconds: float, error: float, text: str) -> None:
    assert date_text(error).value(seconds) == text


def test_durations_name_their_unit() -> None:
    assert duration_text(3600.0, 4 * 86400.0).value(4.2 * 86400) == "4.200 d"
    assert duration_text(30.0, 7200.0).error(30.0) == "0.0083 h"
    assert date_text(2 * 86400.0).error(1.5 * 86400) == "1.5 d"


@pytest.mark.parametrize(
    ("kind", "low", "high", "texts"),
    [
        ("number", 0.0, 300000.0, ["0", "300000"]),
        ("number", -0.5, 1.25, ["-0.5", "1.25"]),
        ("number", -math.inf, 1e300, ["-inf", "1e+300"]),
        ("datetime", 0.0, 86400.0, ["1970-01-01", "1970-01-02"]),
        ("datetime", 0.0, 86460.0, ["1970-01-01 00:00", "1970-01-02 00:01"]),
        ("timedelta", 0.0, 5400.0, ["0 h", "1.5 h"]),
    ],
)
def test_bounds_lose_no_digit(kind: Any, low: float, high: float, texts: list[str]) -> None:
    assert limits_text(kind, low, high) == texts


def test_plain_numbers() -> None:
    assert plain(1e-6) == "1e-06"
    assert plain(2.0) == "2"
    assert plain(1234567.0) == "1234567"
    assert plain(math.nan) == "--"


def test_long_names_lose_their_middle() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 8) == "abc..ijk"
    assert len(shorten("x" * 99, 24)) == 24
