"""Every case: its runs do the same work, are timed, and their ratios keep within the ceilings."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from .cases import Case, Peer, Work
from .every_case import CASES
from .ratios import Medians, ratio

Making = Callable[[Case], Work]


def missing(case: Case, side: str) -> str | None:
    """Return the module that a run lacks here."""
    return next((peer.needs for peer in case.peers if peer.name == side and not peer.is_there), None)


def timed() -> list[Any]:
    """Return every run of every case."""
    out = []
    for case in CASES:
        timer = time.perf_counter if case.waits else time.process_time
        mark = pytest.mark.benchmark(group=case.name, timer=timer)
        out += [pytest.param(case, side, marks=mark, id=f"{case.name}: {side}") for side in case.sides]
    return out


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_work(case: Case, work: Making) -> None:
    """All runs did the same work; this also loads libraries and compiles."""
    made = work(case)
    done = {side: made.runs[side]() for side in case.sides if not missing(case, side)}
    made.check(done)


@pytest.mark.parametrize(("case", "side"), timed())
def test_time(case: Case, side: str, work: Making, benchmark: Any, medians: Medians) -> None:
    """Time one run."""
    if module := missing(case, side):
        pytest.skip(f"{module} is not installed, or does not work here")
    benchmark.pedantic(work(case).runs[side], rounds=case.rounds, warmup_rounds=1)
    if benchmark.enabled:
        medians[case.name, side] = benchmark.stats.stats.median


@pytest.mark.parametrize(
    ("case", "peer"),
    [pytest.param(case, peer, id=f"{case.name}: {peer.name}") for case in CASES for peer in case.peers],
)
def test_ratio(case: Case, peer: Peer, medians: Medians) -> None:
    """Ours is within the ceiling."""
    found = ratio(case, peer, medians)
    if found is None:
        pytest.skip("one of the two was not timed")
    assert found.value <= peer.most, (
        f"{case.name}: {found.value:.2f} times {peer.name}, at most {peer.most:g}"
    )
