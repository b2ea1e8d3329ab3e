"""One table of cases, three ways: Python, R through reticulate, R inside Python. To the last bit."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from r_bridge import Bridge

PARITY = Path(__file__).resolve().parents[1] / "parity"

Numbers = dict[str, dict[str, list[str]]]


def load_cases() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parity_cases", PARITY / "cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CASES = load_cases()
NAMES = [case["name"] for case in CASES.cases()]


@pytest.fixture(scope="session")
def from_reticulate(bridge: Bridge, tmp_path_factory: pytest.TempPathFactory) -> Numbers:
    out = tmp_path_factory.mktemp("parity") / "numbers.json"
    environment = os.environ | {"DPMODE_PARITY_OUT": str(out), "RETICULATE_PYTHON": sys.executable}
    command = ["Rscript", str(PARITY / "run_cases.R"), str(PARITY / "cases.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: Numbers = json.loads(out.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="session")
def from_embedded(bridge: Bridge) -> Numbers:
    bridge.eval(f"source('{PARITY / 'run_cases.R'}')")
    found: dict[str, Any] = bridge.from_r(bridge.eval(f"run_cases('{PARITY / 'cases.json'}')"))
    return {
        case: {name: v if isinstance(v, list) else [v] for name, v in numbers.items()}
        for case, numbers in found.items()
    }


@pytest.fixture(scope="session")
def from_python() -> Numbers:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return {case["name"]: CASES.python_numbers(case) for case in CASES.cases()}


def test_the_table_is_the_generated_one() -> None:
    assert json.loads((PARITY / "cases.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(CASES.cases())
    )


@pytest.mark.parametrize("name", NAMES)
def test_numbers_agree_to_the_last_bit(
    name: str, from_python: Numbers, from_reticulate: Numbers, from_embedded: Numbers
) -> None:
    assert len(from_python[name]["estimate"]) > 0
    assert from_reticulate[name] == from_python[name]
    assert from_embedded[name] == from_python[name]
