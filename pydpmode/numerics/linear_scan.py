"""Where to start the search for modal planes: the objective on a grid of all planes through the box."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .mode_set import BoolArray
from .plane_integral import JointSpectrum
from .surfaces import FloatArray

# The scan of planes: bandwidths of the reading, largest tilt in box diagonals, by number of predictors.
_SCAN = {1: (1.0, 3.0), 2: (2.0, 1.5)}
_SCAN_STEP = 0.8  # residual bandwidths between neighbouring planes of the scan
_MOST_WORK, COARSER = 4e8, 1.5  # products of a scan; beyond it the grid is coarser by such factors


@dataclass(frozen=True, eq=False)
class Scan:
    """A public, even grid of planes: neighbours differ by less than a residual bandwidth at the box's edges.

    Planes may leave the torus here and come back at its other end; the refinement cuts such parts off.

    Parameters
    ----------
    joint : JointSpectrum
    wider : float
        Bandwidth of the scan over that of the reading.
    """

    joint: JointSpectrum
    wider: float

    @cached_property
    def bandwidth(self) -> FloatArray:
        """Bandwidths of the scan's kernel, predictors first, (p + 1,)."""
        return self.joint.bandwidth * self.wider

    @cached_property
    def kernel(self) -> FloatArray:
        """The kernel's transform at every frequency, (M,)."""
        return np.asarray(np.exp(-0.5 * np.sum((self.joint.frequencies * self.bandwidth) ** 2, axis=1)))

    @property
    def kept(self) -> BoolArray:
        """Frequencies that the kernel lets through, (M,)."""
        return np.asarray(self.kernel > 1e-4)

    @property
    def span(self) -> float:
        """Width of the response's box."""
        return float(self.joint.upper[-1] - self.joint.lower[-1])

    @cached_property
    def heights(self) -> FloatArray:
        """Heights of the planes at the middle of the box, from its lower end."""
        return np.linspace(0, self.span, math.ceil(self.span / (_SCAN_STEP * self.bandwidth[-1])) + 1)

    @cached_property
    def tilts(self) -> list[FloatArray]:
        """Slopes of the planes, by predictor."""
        steepest = _SCAN[self.joint.predictors][1] * self.span
        step = _SCAN_STEP * float(self.bandwidth[-1])
        return [_tilts(steepest / (2 * float(x)), step / float(x)) for x in self.joint.half_widths]

    @cached_property
    def work(self) -> float:
        """Number of products that the scan takes."""
        directions = math.prod(t.size for t in self.tilts)
        rates = np.unique(self.joint.frequencies[self.kept, -1]).size
        return directions * (float(np.count_nonzero(self.kept)) + rates * self.heights.size)

    def objective(self) -> FloatArray:
        """Return the objective on the grid: tilts by tilts by heights."""
        joint, kept, half = self.joint, self.kept, self.joint.half_widths
        w, v = joint.frequencies[kept, :-1], joint.frequencies[kept, -1]
        base = self.kernel[kept] * joint.phi[kept] * np.exp(-1j * (w @ half))
        rates, group = np.unique(v, return_inverse=True)
        waves = np.exp(-1j * np.outer(rates, self.heights))
        grid = np.empty((*(t.size for t in self.tilts), self.heights.size))
        for place in itertools.product(*(range(t.size) for t in self.tilts)):
            terms = base
            for a, index in enumerate(place):
                theta = w[:, a] + self.tilts[a][index] * v
                # The integral of `exp(-i theta t)` from -half to half.
                terms = terms * (2 * half[a] * np.sinc(theta * (half[a] / np.pi)))
            by_rate = np.bincount(group, terms.real) + 1j * np.bincount(group, terms.imag)
            grid[place] = np.real(by_rate @ waves)
        return grid


def scan_planes(joint: JointSpectrum) -> tuple[list[FloatArray], int]:
    """Return local maxima of the objective on a grid, highest first, and how often it was coarsened.

    A grid for a bandwidth of a small part of the box would take hours. It is then laid out for a kernel wider
    by powers of `COARSER`, from which the refinement goes down to the reading's.
    """
    scan = Scan(joint, _SCAN[joint.predictors][0])
    coarsened = 0
    while scan.work > _MOST_WORK:
        coarsened += 1
        scan = Scan(joint, _SCAN[joint.predictors][0] * COARSER**coarsened)
    low = joint.lower[-1]
    planes = [
        np.array([low + scan.heights[at[-1]], *(t[i] for t, i in zip(scan.tilts, at, strict=False))])
        for at in _local_maxima(scan.objective())
    ]
    return planes, coarsened


def _tilts(largest: float, step: float) -> FloatArray:
    number = math.ceil(largest / step)
    return np.linspace(-largest, largest, 2 * number + 1)


def _local_maxima(grid: FloatArray) -> list[tuple[int, ...]]:
    """Return the index of each node that no neighbour exceeds, highest first."""
    padded = np.pad(grid, 1, constant_values=-np.inf)
    peak = np.ones(grid.shape, dtype=np.bool_)
    for offset in itertools.product((0, 1, 2), repeat=grid.ndim):
        window = tuple(slice(o, o + n) for o, n in zip(offset, grid.shape, strict=True))
        peak &= grid >= padded[window]
    places = np.argwhere(peak)
    order = np.argsort(-grid[peak], kind="stable")
    return [tuple(int(i) for i in places[k]) for k in order]
