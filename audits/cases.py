"""The table of audits: every mechanism on its worst neighbours, and the faults that an audit must find.

A new mechanism is one more `AuditCase` in a module of its own and one more line in `all_cases`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pydpmode.privacy.noise import discrete_gaussian

from .attack import ALPHA, epsilon_lower_bound

FloatArray = NDArray[np.float64]
# With a seed nothing changes from run to run, so a false alarm cannot come and go.
SEEDED_ALPHA = 1e-3
# What a case needs: number of releases a side, and None for real noise or a seed for reproducible noise.
Scores = Callable[[int, int | None], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class AuditCase:
    """One mechanism on one pair of neighbours, as shipped or with a planted fault.

    Parameters
    ----------
    mechanism : str
        What is audited, for the table.
    pair : str
        The neighbours.
    epsilon, delta : float
        What the code states.
    scores : callable
        `scores(runs, seed)` returns the scores of `runs` releases of either table.
    fault : str
        What was planted; empty for the code as shipped.
    runs, quick : int
        Releases a side in the long audit and in the tests; 0 where the tests leave it out.
    power : float
        Share of epsilon that an audit of sound code must reach, so that it can find anything. 0 where the
        accounting is known to be loose.
    """

    mechanism: str
    pair: str
    epsilon: float
    delta: float
    scores: Scores
    fault: str = ""
    runs: int = 40_000
    quick: int = 20_000
    power: float = 0.25

    @property
    def name(self) -> str:
        """What to call it in tests and tables."""
        return f"{self.mechanism}: {self.fault or self.pair}"


@dataclass(frozen=True)
class Verdict:
    """What an audit found."""

    case: AuditCase
    runs: int
    bound: float

    @property
    def violated(self) -> bool:
        """Whether more privacy was lost than stated."""
        return self.bound > self.case.epsilon

    @property
    def as_it_should_be(self) -> bool:
        """Sound code is within its statement (and nearly reaches it); a fault is found."""
        if self.case.fault:
            return self.violated
        least = self.case.power * self.case.epsilon if self.case.power else -math.inf
        return least <= self.bound <= self.case.epsilon


def audit(case: AuditCase, runs: int, seed: int | None = None) -> Verdict:
    """Run one audit with `runs` releases a side; real noise without a seed."""
    first, second = case.scores(runs, seed)
    alpha = ALPHA if seed is None else SEEDED_ALPHA
    return Verdict(case, runs, epsilon_lower_bound(first, second, case.delta, alpha))


def all_cases() -> list[AuditCase]:
    """Return every audit, sound code first."""
    from . import door_cases, grams_cases, moment_cases, pms_cases, quartile_cases, surface_cases

    cases = [
        *surface_cases.CASES,
        *quartile_cases.CASES,
        *moment_cases.CASES,
        *grams_cases.CASES,
        *pms_cases.CASES,
        *door_cases.CASES,
    ]
    return sorted(cases, key=lambda case: bool(case.fault))


@contextlib.contextmanager
def planted(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Replace attributes (owner, name, value) for a while: how a fault is planted."""
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@contextlib.contextmanager
def dealt_noise(module: Any, length: int, scale: float, count: int, seed: int | None) -> Iterator[None]:
    """Let `module.discrete_gaussian` deal from noise that was drawn at once: a call costs a millisecond.

    The noise is the package's own, from the system's entropy; with a seed it is NumPy's, rounded.
    """
    whole = count * length
    if seed is None:
        noise = discrete_gaussian(whole, scale)
    else:
        noise = np.rint(np.random.default_rng(seed).standard_normal(whole) * scale).astype(np.int64)
    pool = iter(noise.reshape(count, length))

    def deal(wanted_length: int, wanted_scale: float) -> NDArray[np.int64]:
        if (wanted_length, wanted_scale) != (length, scale):
            raise RuntimeError("the mechanism asked for noise of another size than planned")
        return next(pool)

    with planted((module, "discrete_gaussian", deal)):
        yield
