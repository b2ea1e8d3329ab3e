"""The Python scripts beside the vignettes run, and each vignette has one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

VIGNETTES = Path(__file__).resolve().parents[2] / "vignettes"
SCRIPTS = sorted(VIGNETTES.glob("*.py"))


def test_each_vignette_has_a_script() -> None:
    names = {path.stem.replace("-", "_") for path in VIGNETTES.glob("*.Rmd")}
    assert names == {path.stem for path in SCRIPTS}
    assert names


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_runs_without_a_warning(script: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(script)]
    environment = os.environ | {"PYTHONPATH": str(VIGNETTES.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert list(tmp_path.iterdir()) == []
