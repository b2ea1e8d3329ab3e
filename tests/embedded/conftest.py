"""R embedded in Python. These tests need R, rpy2 and the installed R package; `make test-r` brings them.

Without them the tests are skipped; the continuous integration sets DPMODE_REQUIRE_R, and they fail.
"""

from __future__ import annotations

import os

import pytest

from pydpmode.errors import MissingDependency
from r_bridge import Bridge, connect


@pytest.fixture(scope="session")
def bridge() -> Bridge:
    try:
        return connect()
    except MissingDependency as problem:
        if os.environ.get("DPMODE_REQUIRE_R"):
            raise
        pytest.skip(str(problem))
