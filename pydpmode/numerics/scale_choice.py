"""At which of its bandwidths to read a ladder: the one that shows the most modes.

A persistence test bounds the number of modes from below (Donoho 1988: data can refute "at most k modes",
never "at least k"): a wide reading misses what it smooths away, a narrow one what drowns in its noise. So
the reading with the most significant modes is the most informative, and of several the widest, which
has the least noise. Searching several readings raises the thresholds (`look` in `find_modes`), so that the
chance of any false mode in any of them stays at the stated rate. Where values stand on a grid (`heaping`),
readings narrower than its step are left out. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .heaping import SAFE_STEPS, heaping_steps
from .mode_seeking import find_modes
from .significance import Look
from .spectral_surfaces import LatticeSurface
from .surfaces import FloatArray, Surface

# Ratio of neighbouring readings: modes change little over a factor of sqrt(2).
_STEP = math.sqrt(2.0)


@dataclass(frozen=True, eq=False)
class ReadingChoice:
    """The reading that was chosen, and what the others showed.

    Parameters
    ----------
    surface : Surface
        Read at the chosen bandwidth.
    look : {"only", "widest", "narrower"}
        Which reading it is, for the thresholds of `find_modes`; "only" where the surface is no ladder.
    ratios : tuple of float
        Their bandwidths over the widest, narrowest first.
    significant : tuple of int
        Significant modes that each showed.
    ratio : float
        Of the chosen one.
    heaped : tuple of (str, float)
        Columns whose values stand on a grid, with its step; see `heaping`.
    """

    surface: Surface
    look: Look
    ratios: tuple[float, ...] = (1.0,)
    significant: tuple[int, ...] = ()
    ratio: float = 1.0
    heaped: tuple[tuple[str, float], ...] = ()

    @property
    def coarse(self) -> tuple[tuple[str, float], ...]:
        """Those whose step even the bandwidth that was read is too narrow for."""
        h = dict(zip(self.surface.columns, self.surface.bandwidth, strict=True))
        return tuple((name, step) for name, step in self.heaped if h[name] < SAFE_STEPS * step)

    def words(self, rule: str) -> str:
        """Return the words of a bandwidth rule with the reading, where that is not the widest."""
        return rule if self.ratio == 1.0 else f"{rule}, read at {self.ratio:.2g} of the widest"


def _look(ratio: float) -> Look:
    return "widest" if ratio == 1.0 else "narrower"


def ladder_readings(scales: tuple[float, ...]) -> tuple[float, ...]:
    """Return the ratios at which such a ladder is read: steps of about sqrt(2), narrowest first."""
    narrowest = min(scales)
    steps = round(math.log(1 / narrowest) / math.log(_STEP))
    return tuple(float(narrowest ** (1 - k / steps)) for k in range(steps + 1)) if steps > 0 else (1.0,)


def choose_reading(
    surface: Any, *, n_modes: int | None = None, false_mode_rate: float = 0.05, grid_limit: int = 2_000_000
) -> ReadingChoice:
    """Choose the bandwidth at which a ladder shows the most modes.

    A surface of one bandwidth, or a ladder that is not read at its widest (as a chosen reading is), is
    returned as it is.

    Parameters
    ----------
    surface : Surface
        Perhaps a ladder: released, or the lattice surface itself, read at its widest bandwidth.
    n_modes : int, optional
        The number of modes wanted: a reading that shows so many is as good as one that shows more.
    false_mode_rate : float
        As in `find_modes`, for all readings together.
    grid_limit : int
        `max_grid` of the searches.
    """
    lattice = getattr(surface, "surface", surface)
    if not isinstance(lattice, LatticeSurface):
        return ReadingChoice(surface, "only")
    steps = heaping_steps(lattice)
    heaped = tuple((c, float(s)) for c, s in zip(lattice.columns, steps, strict=True) if s > 0)
    if len(lattice.ladder_scales) == 1:
        return ReadingChoice(surface, "only", heaped=heaped)
    if not lattice.is_ladder:
        # Somebody has chosen among the readings, perhaps by what they show.
        return ReadingChoice(surface, "narrower", heaped=heaped)
    widest: FloatArray = np.array(lattice.design.bandwidth)
    narrowest = min(float(np.max(SAFE_STEPS * steps / widest)), 1.0)
    ratios = tuple(r for r in ladder_readings(lattice.ladder_scales) if r >= narrowest * (1 - 1e-9))
    counts = []
    for ratio in ratios:
        reading = lattice.at_bandwidth(widest * ratio).in_reading_units()
        found = find_modes(
            reading,
            false_mode_rate=false_mode_rate,
            refine=False,
            look=_look(ratio),
            max_grid=grid_limit,
        )
        counts.append(int(np.count_nonzero(found.significant)))
    enough = max(counts) if n_modes is None else min(max(counts), n_modes)
    best = max(k for k, count in enumerate(counts) if count >= enough)
    ratio = ratios[best]
    chosen = surface.at_bandwidth(widest * ratio)
    return ReadingChoice(chosen, _look(ratio), ratios, tuple(counts), ratio, heaped)
