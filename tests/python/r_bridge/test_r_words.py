"""Messages in R's words: every text of the package that names an argument comes out as R has it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from r_bridge.door import dispatch
from r_bridge.r_words import in_r_words

ROOT = Path(__file__).resolve().parents[3]
# Texts that no R call can meet: other front ends, pictures, representations of Python objects, and sources
# of rows that R does not have.
ELSEWHERE = (
    *(
        "cli*.py",
        "sklearn.py",
        "*plots.py",
        "plot_files.py",
        "*summary*.py",
        "stream_sources.py",
        "dask_*.py",
    ),
    *("datasets.py", "mean_shift.py", "partial_mean_shift.py", "trace_modes.py", "designs.py"),
)
KEYWORD = re.compile(r"\b[A-Za-z_]\w*=")
QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)")
# What no user gives: in messages to those who write code with the parts of the package.
INTERNAL = {"extra_delta", "slack", "transform"}


@pytest.mark.parametrize(
    ("python", "r"),
    [
        ("give bounds={'age': (low, high)}; never", "give bounds = list(age = c(low, high)); never"),
        ("give resolution={'wage': 5} or", "give resolution = c(wage = 5) or"),
        ("bounds={'last wage': (0, 1)}", "bounds = list(`last wage` = c(0, 1))"),
        ("n_clusters = 7 is more than", "k = 7 is more than"),
        ("levels=['north', 'south'] or levels=[0, 1]", "levels = c('north', 'south') or levels = c(0, 1)"),
        ("by= and its public levels= go together", "by and its public levels go together"),
        ("got by='g' and levels=None", "got by = 'g' and levels = NULL"),
        ("must be in (0, 1), got 1.5", "must be in (0, 1), got 1.5"),
        ("read_ratio must be in [0.5, 100]", "read_ratio must be in [0.5, 100]"),
        ("must be one of ['a', 'b'], got 'c'", "must be one of 'a', 'b', got 'c'"),
        ("column 'n_clusters' is None here", "column 'n_clusters' is NULL here"),
        ("column 'x=1' and 'True'", "column 'x=1' and 'True'"),
        ("give grams=GramsOptions(kernel='gaussian4')", "give grams = grams_options(kernel = 'gaussian4')"),
        ("this PrivateData already has", "this private_data() already has"),
        ("got (1.0, np.float64(2.5))", "got c(1.0, 2.5)"),
        ("got (nan, -inf)", "got c(NA, -Inf)"),
        ("must be text, got float; give", "must be text, got a number; give"),
        ("a == b, x >= 1, p<=2", "a == b, x >= 1, p<=2"),
        (
            "the rows' order and a start's count; use unit='row'",
            "the rows' order and a start's count; use unit = 'row'",
        ),
    ],
)
def test_words(python: str, r: str) -> None:
    assert in_r_words(python) == r


def texts_of(file: Path) -> Iterator[str]:
    """The texts in a module's calls and returns, with samples in the place of what is filled in."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    bodies = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    inside = {id(n.body[0].value) for n in bodies if n.body and isinstance(n.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in ("__repr__", "__str__", "name"):
            inside |= {id(part) for part in ast.walk(node)}
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node)} - {id(node)}
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        if isinstance(node, ast.JoinedStr):
            yield "".join(sample(part) for part in node.values)


def sample(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    quoted = isinstance(part, ast.FormattedValue) and part.conversion == ord("r")
    return "'north'" if quoted else "7"


def messages() -> list[tuple[str, str]]:
    files = [
        f for f in (ROOT / "pydpmode").rglob("*.py") if not any(f.match(pattern) for pattern in ELSEWHERE)
    ]
    pairs = [(f.name, text) for f in sorted(files) for text in texts_of(f)]
    # Words in a row are told to someone; the rest are keys.
    told = [(name, text) for name, text in pairs if text.count(" ") >= 3]
    # R refuses other sources of rows by itself, and names its own.
    return [(name, text) for name, text in told if not text.startswith("a NumPy array of shape")]


def formals() -> set[str]:
    """Names of the arguments of all functions of the R package."""
    found: set[str] = set()
    for file in (ROOT / "R").glob("*.R"):
        text = file.read_text(encoding="utf-8")
        for start in re.finditer(r"<- function\(", text):
            depth, end = 1, start.end()
            while depth:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            inside = re.sub(r"\([^()]*\)", "", text[start.end() : end - 1])
            found |= set(re.findall(r"(?:^|,)\s*([\w.]+)", inside))
    return found


def test_no_message_keeps_pythons_words() -> None:
    told = [(name, in_r_words(text)) for name, text in messages()]
    assert sum(bool(KEYWORD.search(text)) for _, text in messages()) > 60
    wrong = [
        (name, text)
        for name, text in told
        if re.search(
            r"\b(True|False|None|n_clusters)\b|\{'|\['|DataFrame|pandas|dtype", QUOTED.sub("''", text)
        )
        or KEYWORD.search(QUOTED.sub("''", text))
    ]
    assert wrong == []


def test_every_argument_that_a_message_names_is_one_in_r() -> None:
    known = formals() | INTERNAL | {"age", "column", "north"}
    named = {
        (file, argument, text)
        for file, text in ((f, in_r_words(t)) for f, t in messages())
        for argument in re.findall(r"\b([a-z]\w*) = ", QUOTED.sub("''", text))
    }
    assert len(named) > 40
    assert [found for found in sorted(named) if found[1] not in known] == []


def test_errors_and_warnings_come_through_the_door_in_rs_words() -> None:
    reply = dispatch("budget", {"epsilon": None, "delta": 1e-6})
    assert (
        reply["error"]["message"]
        == "epsilon is missing and has no default; give a number such as epsilon = 1.0"
    )
    options = {"columns": ["a"]}
    reply = dispatch("fit_density_modes", {"data": {"a": [1.0, 2.0]}, "options": options, "fit": {}})
    assert "list(a = c(low, high))" in reply["error"]["message"]
    assert "command line" not in reply["error"]["message"]
