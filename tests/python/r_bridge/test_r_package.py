"""The R package beside the Python one: one version, one list of requirements, the same sources."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pydpmode

ROOT = Path(__file__).resolve().parents[3]


def description() -> dict[str, str]:
    text = (ROOT / "DESCRIPTION").read_text(encoding="utf-8")
    fields = re.split(r"\n(?=\S)", text.strip())
    return {name: " ".join(value.split()) for name, _, value in (field.partition(":") for field in fields)}


def test_versions_agree() -> None:
    assert description()["Version"] == pydpmode.__version__


def test_requirements_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = (ROOT / "inst" / "python-requirements.txt").read_text(encoding="utf-8").split("\n")
    assert [line for line in listed if line] == project["dependencies"]
    names = [re.split(r"[<>=~]", line)[0] for line in project["dependencies"]]
    missing = [name for name in names if name not in description()["SystemRequirements"]]
    assert missing == []


def test_the_package_carries_these_sources() -> None:
    for name in ("pydpmode", "r_bridge"):
        assert (ROOT / "inst" / "python" / name).resolve() == ROOT / name


def test_nothing_of_the_repository_is_in_the_r_package_by_accident() -> None:
    patterns = [re.compile(p, re.I) for p in (ROOT / ".Rbuildignore").read_text().split("\n") if p]
    kept = sorted(p.name for p in ROOT.iterdir() if not any(q.search(p.name) for q in patterns))
    allowed = {
        "DESCRIPTION",
        "LICENCE",
        "NAMESPACE",
        "NEWS.md",
        "R",
        "build",
        "inst",
        "man",
        "tests",
        "vignettes",
    }
    assert set(kept) <= allowed
