"""`%%R` cells: the same R functions in a notebook, with this Python as their door."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from pydpmode import DensityModes, datasets
from pydpmode.results.results import DensityModesResults
from r_bridge import Bridge, from_r

CELL = """
fit <- dpmode::dp_modes(~ x + y, dpmode::dp_data("four_gaussians", n = 800, seed = 1),
  bounds = list(x = c(-8, 8), y = c(-8, 8)), epsilon = 2, delta = 1e-5, seed = 1
)
at <- unname(coef(fit))
"""


@pytest.fixture
def shell(bridge: Bridge) -> Any:
    if not os.environ.get("DPMODE_REQUIRE_R"):
        pytest.importorskip("IPython", reason="IPython runs the cells: pip install 'pydpmode[r-test]'")
    from IPython.core.interactiveshell import InteractiveShell
    from rpy2.ipython import rmagic

    # Not `instance()`: no history file, and nothing left behind for other tests.
    shell = InteractiveShell()
    shell.register_magics(rmagic.RMagics(shell))
    return shell


def in_python() -> DensityModesResults:
    table = datasets.four_gaussians(800, seed=1)[0]
    model = DensityModes(table, ["x", "y"], bounds={"x": (-8, 8), "y": (-8, 8)})
    return model.fit(epsilon=2.0, delta=1e-5, seed=1)


# rpy2 3.5 publishes what a cell shows the way that IPython has deprecated.
@pytest.mark.filterwarnings("ignore:The .source. parameter:DeprecationWarning")
def test_a_cell_fits_what_python_fits(bridge: Bridge, shell: Any) -> None:
    shell.run_cell_magic("R", "-o at", CELL)
    direct = in_python()
    assert np.array_equal(np.asarray(shell.user_ns["at"]), direct.params.to_numpy())
    found = from_r(bridge.eval("fit"))
    assert isinstance(found, DensityModesResults)
    assert found.to_dict() == direct.to_dict()
    assert from_r(bridge.eval("dpmode:::session$bridge")) == "rpy2"


@pytest.mark.filterwarnings("ignore:The .source. parameter:DeprecationWarning")
def test_a_cell_prints_and_raises(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell_magic("R", "", CELL + "\nprint(fit)")
    assert "NOT PRIVATE" in capsys.readouterr().out
    shell.run_cell_magic("R", "-o why", "why <- class(tryCatch(residuals(fit), error = identity))[[1]]")
    assert list(shell.user_ns["why"]) == ["dpmode_NotReleased"]


@pytest.mark.filterwarnings("ignore:The .source. parameter:DeprecationWarning")
def test_a_cell_takes_a_table_from_python(shell: Any) -> None:
    shell.user_ns["width"] = 8.0
    shell.run_cell_magic(
        "R",
        "-i width -o n",
        """
        box <- list(x = c(-width, width), y = c(-width, width))
        table <- dpmode::dp_data("four_gaussians", n = 800, seed = 1)
        n <- nobs(dpmode::dp_scale(~., table, box, epsilon = 1, delta = 1e-5, seed = 1))
        """,
    )
    assert list(shell.user_ns["n"]) == [800.0]
