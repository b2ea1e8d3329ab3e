"""The densities of the accuracy, limit and coverage studies, with their true modes.

Every density is a mixture of components with independent coordinates (the banana is bent
afterwards), so its modes are found by maximising the density itself: no kernel is in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

FloatArray = NDArray[np.float64]
# One component: weight, and per coordinate a frozen scipy.stats distribution.
Component = tuple[float, tuple[Any, ...]]


@dataclass(frozen=True)
class StudyDensity:
    """A density with known modes and a public box that fits it.

    Parameters
    ----------
    name : str
    lower, upper : float
        The box, the same in every coordinate.
    components : tuple of (weight, distributions per coordinate)
    bend : float
        The last coordinate is shifted by `bend * (x_1^2 - 1)`: a banana.
    """

    name: str
    lower: float
    upper: float
    components: tuple[Component, ...]
    bend: float = 0.0

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return len(self.components[0][1])

    def sample(self, n: int, seed: int) -> FloatArray:
        """Return n independent rows (n, d)."""
        random = np.random.default_rng(seed)
        which = random.choice(len(self.components), n, p=[w for w, _ in self.components])
        out = np.empty((n, self.dimension))
        for k, (_, parts) in enumerate(self.components):
            rows = np.flatnonzero(which == k)
            for j, part in enumerate(parts):
                out[rows, j] = part.rvs(rows.size, random_state=random)
        if self.bend:
            out[:, -1] += self.bend * (out[:, 0] ** 2 - 1)
        return out

    def density(self, points: FloatArray) -> FloatArray:
        """Return the density at `points` (m, d)."""
        at = np.array(np.atleast_2d(points), dtype=np.float64)
        if self.bend:
            at[:, -1] -= self.bend * (at[:, 0] ** 2 - 1)
        total = np.zeros(at.shape[0])
        for weight, parts in self.components:
            total += weight * np.prod([p.pdf(at[:, j]) for j, p in enumerate(parts)], axis=0)
        return total

    @cached_property
    def modes(self) -> FloatArray:
        """The modes (k, d), highest first, to about 1e-6."""
        found: list[FloatArray] = []
        for _, parts in self.components:
            start = np.array([_axis_mode(p) for p in parts])
            if self.bend:
                start[-1] += self.bend * (start[0] ** 2 - 1)
            best = optimize.minimize(
                lambda x: -float(self.density(x)[0]),
                start,
                method="Nelder-Mead",
                options={"xatol": 1e-7, "fatol": 1e-14, "maxiter": 4000},
            ).x
            if all(np.linalg.norm(best - other) > 1e-3 for other in found):
                found.append(best)
        places = np.array(found)
        return places[np.argsort(-self.density(places))]


def _axis_mode(part: Any) -> float:
    low, high = part.ppf([0.001, 0.999])
    grid = np.linspace(low, high, 2001)
    return float(grid[np.argmax(part.pdf(grid))])


def _gaussians(*parts: tuple[float, tuple[float, ...], float]) -> tuple[Component, ...]:
    return tuple((w, tuple(stats.norm(c, sd) for c in centre)) for w, centre, sd in parts)


def _all() -> dict[str, StudyDensity]:
    claw = [(0.5, (stats.norm(0, 1),))] + [(0.1, (stats.norm(j / 2 - 1, 0.1),)) for j in range(5)]
    t_parts = [
        (0.2, tuple(stats.t(df, c, s) for c in centre))
        for df, s, centre in zip(
            (15, 6, 10, 8, 20),
            (0.1, 0.9, 1.3, 1.0, 0.4),
            ((0, 0), (6, 0), (-6, 0), (0, 6), (0, -6)),
            strict=True,
        )
    ]
    every = (
        StudyDensity(
            "four_gaussians",
            -8,
            8,
            _gaussians(*((0.25, (a, b), 1.0) for a in (3.0, -3.0) for b in (3.0, -3.0))),
        ),
        StudyDensity("five_t", -12, 12, tuple(t_parts)),
        StudyDensity(
            "unequal_weights",
            -8,
            8,
            _gaussians((0.8, (-2.0, -2.0), 1.0), (0.15, (3.0, -1.0), 1.0), (0.05, (0.0, 4.0), 1.0)),
        ),
        StudyDensity(
            "unequal_scales",
            -8,
            8,
            _gaussians((0.3, (-4.0, 0.0), 0.5), (0.3, (0.0, 3.5), 1.0), (0.4, (3.5, -2.5), 1.6)),
        ),
        StudyDensity(
            "skewed",
            -8,
            8,
            (
                (0.6, (stats.skewnorm(6, -4, 2.5), stats.skewnorm(4, -4, 2))),
                (0.4, (stats.skewnorm(-5, 5, 2), stats.skewnorm(5, 2, 2))),
            ),
        ),
        StudyDensity(
            "heavy_tails",
            -15,
            15,
            tuple((0.5, (stats.t(3, c), stats.t(3, c))) for c in (-4.0, 4.0)),
        ),
        StudyDensity("banana", -7, 7, ((1.0, (stats.norm(0, 1.5), stats.norm(0, 0.8))),), bend=0.35),
        StudyDensity("gamma_2d", 0, 15, ((1.0, (stats.gamma(3), stats.gamma(4))),)),
        StudyDensity("gamma", 0, 14, ((1.0, (stats.gamma(3),)),)),
        StudyDensity(
            "asymmetric_bimodal", -4, 4, ((0.75, (stats.norm(0, 1),)), (0.25, (stats.norm(1.5, 1 / 3),)))
        ),
        StudyDensity("bimodal", -6, 6, ((0.6, (stats.norm(-2, 1),)), (0.4, (stats.norm(2, 0.8),)))),
        StudyDensity("claw", -4, 4, tuple(claw)),
        StudyDensity(
            "three_dimensions",
            -6,
            6,
            _gaussians(
                (0.4, (-2.5, 0.0, 0.0), 1.0), (0.35, (2.5, 1.5, 0.0), 1.0), (0.25, (0.5, -2.5, 2.0), 0.8)
            ),
        ),
    )
    return {density.name: density for density in every}


DENSITIES: dict[str, StudyDensity] = _all()
