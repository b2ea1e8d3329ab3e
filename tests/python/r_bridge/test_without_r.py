"""Where rpy2 or R is missing: the door works, and `connect` says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pydpmode.errors import MissingDependency
from r_bridge import embedded

ROOT = Path(__file__).resolve().parents[3]


def test_connect_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rpy2", None)
    monkeypatch.setitem(sys.modules, "rpy2.rinterface", None)
    with pytest.raises(MissingDependency, match=r"r-base-core.*pydpmode\[r\]"):
        embedded._start_r()


def test_the_door_does_not_need_rpy2() -> None:
    code = "import sys, r_bridge.door; sys.exit(any(name.split('.')[0] == 'rpy2' for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert done.returncode == 0
