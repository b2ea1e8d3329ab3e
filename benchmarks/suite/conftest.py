"""Options of the suite, the data of the case that is running, the medians of this run, and what is told."""

from __future__ import annotations

import os

# One thread for BLAS: threads that wait for work cost processor time too.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .cases import Case, Work
from .every_case import CASES
from .ratios import Medians, ratios, table, write

MEDIANS = pytest.StashKey[Medians]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the suite's options."""
    group = parser.getgroup("suite")
    group.addoption("--smoke", action="store_true", help="small data, every run once, nothing timed")
    group.addoption("--results", type=Path, help="write seconds and ratios to this CSV file")


def pytest_configure(config: pytest.Config) -> None:
    """Start without medians."""
    config.stash[MEDIANS] = {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run case after case, so that only one has its data in memory; in a smoke test drop what only times."""
    order = {case.name: number for number, case in enumerate(CASES)}
    items.sort(key=lambda item: order[case_of(item).name])
    if config.getoption("smoke"):
        dropped = [item for item in items if not in_smoke_test(item)]
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]


def case_of(item: Any) -> Case:
    """Return the case of a test."""
    case: Case = item.callspec.params["case"]
    return case


def in_smoke_test(item: Any) -> bool:
    """Whether a test says something of small data: every run is made once, and one case goes on to timing."""
    case = case_of(item)
    return case.few > 0 and (
        item.originalname == "test_same_work" or (case is CASES[0] and not is_ratio(item))
    )


def is_ratio(item: Any) -> bool:
    """Whether a test compares times."""
    return bool(item.originalname == "test_ratio")


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Callable[[Case], Work]:
    """Return what makes the data of a case, and keeps them until the next case."""
    latest: dict[str, Work] = {}

    def made(case: Case) -> Work:
        if case.name not in latest:
            latest.clear()
            rows = case.few if pytestconfig.getoption("smoke") else case.rows
            latest[case.name] = case.make(rows, tmp_path_factory.mktemp("case"))
        return latest[case.name]

    return made


@pytest.fixture
def medians(pytestconfig: pytest.Config) -> Medians:
    """Return the median seconds of this run, by case and run; to be added to."""
    return pytestconfig.stash[MEDIANS]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the ratios, and write them where asked."""
    found = ratios(CASES, config.stash[MEDIANS])
    if not found:
        return
    terminalreporter.section("seconds and ratios to peers")
    terminalreporter.write_line(table(found))
    path = config.getoption("results")
    if path:
        write(found, path)
        terminalreporter.write_line(f"Written: {path}")
