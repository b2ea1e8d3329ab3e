"""Ratios of medians, and their ceilings."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .cases import OURS, Case, Peer

Medians = dict[tuple[str, str], float]
FIELDS = ("case", "rows", "seconds", "peer", "peer_seconds", "ratio", "most", "clock", "cores")


@dataclass(frozen=True)
class Ratio:
    """Our median over a peer's."""

    case: Case
    peer: Peer
    seconds: float
    peer_seconds: float

    @property
    def value(self) -> float:
        """How many times as long ours takes."""
        return self.seconds / self.peer_seconds

    @property
    def holds(self) -> bool:
        """Whether it is within its ceiling."""
        return self.value <= self.peer.most


def ratio(case: Case, peer: Peer, medians: Mapping[tuple[str, str], float]) -> Ratio | None:
    """Return a ratio, when both sides were timed."""
    ours, theirs = medians.get((case.name, OURS)), medians.get((case.name, peer.name))
    return None if ours is None or theirs is None else Ratio(case, peer, ours, theirs)


def ratios(cases: Sequence[Case], medians: Mapping[tuple[str, str], float]) -> list[Ratio]:
    """Return every ratio of this run."""
    every = (ratio(case, peer, medians) for case in cases for peer in case.peers)
    return [found for found in every if found is not None]


def table(found: Sequence[Ratio]) -> str:
    """Return the ratios as text."""
    lines = [f"{'':42}{'seconds':>9}  {'peer':42}{'seconds':>9}{'ratio':>8}{'most':>7}"]
    for r in found:
        lines.append(
            f"{r.case.name:42}{r.seconds:9.4f}  {r.peer.name:42}{r.peer_seconds:9.4f}{r.value:8.2f}"
            f"{r.peer.most:7g}{'' if r.holds else '  TOO SLOW'}"
        )
    return "\n".join(lines)


def write(found: Sequence[Ratio], path: Path) -> None:
    """Write seconds and ratios as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(FIELDS)
        for r in found:
            clock = "wall" if r.case.waits else "processor"
            seconds = (f"{value:.3g}" for value in (r.seconds, r.peer_seconds))
            ours, theirs = seconds
            numbers = (f"{r.value:.3g}", f"{r.peer.most:g}")
            out.writerow(
                [r.case.name, r.case.rows, ours, r.peer.name, theirs, *numbers, clock, os.cpu_count()]
            )
