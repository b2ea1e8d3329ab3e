"""Whether recorded values stand on a grid: ages in whole years, weights in whole kilograms.

The density of such values is a comb, and a narrow enough bandwidth shows a mode at every tooth. The comb is
plain in the characteristic function: with a share c of the values on multiples of s, it is c times as large
around `2 pi/s` as around 0, where that of a smooth density with many s in its spread has long vanished.
(Around one atom, as where values pile up at a bound, it is flat instead.) So the released coefficients tell
the step, at no cost, and readings narrower than about the step are left out.

A density that truly has a dozen or more equally spaced modes looks the same; then the bandwidth must be
given in numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .spectral_surfaces import LatticeSurface
from .surfaces import FloatArray

# Steps in four standard deviations of the data, and the share of the values that must stand on the grid: of
# few steps nearly all, or they could be modes.
_FEW_STEPS, _MOST_OF_ALL = 7.0, 0.5
_MANY_STEPS, _LEAST_SHARE = 12.0, 0.04
# How far the peak must stand out above what lies half-way to it.
_CONTRAST = 3.0
_NOISE_SDS = 5.0
# A comb read at this many steps has teeth of 2 exp(-2 pi^2 .75^2) = 3e-5 of the density.
SAFE_STEPS = 0.75
# A box is never spread wider than uniform on its torus.
_UNIFORM_SPREAD = 1 / math.sqrt(12)


def heaping_steps(surface: LatticeSurface) -> FloatArray:
    """Return the step of the grid that values stand on, (d,), in the coordinates' units; 0 for none.

    Post-processing of a release. Steps finer than about 1.4 of the narrowest bandwidth cannot be seen, and
    make no modes at it.
    """
    return np.array([_axis_step(surface.marginal([column])) for column in surface.columns])


def _axis_step(axis: LatticeSurface) -> float:
    """Return the step along the only axis of a marginal surface."""
    h = float(axis.design.bandwidth[0])
    frequencies = np.abs(axis.design.frequencies[:, 0]) / h
    order = np.argsort(frequencies)
    size = np.abs(axis.phi)[order]
    # Real and imaginary part have this variance each.
    noise = np.sqrt(2 * axis.part_variance)[order]
    frequencies = frequencies[order]
    spread = _spread(frequencies[0], float(size[0]))
    steps = 4 * spread * frequencies / (2 * math.pi)
    needed = np.where(steps >= _MANY_STEPS, _LEAST_SHARE, _MOST_OF_ALL)
    high = (steps >= _FEW_STEPS) & (size >= np.maximum(needed, _NOISE_SDS * noise))
    for k in np.flatnonzero(high & _peaks(size)):
        between = size[(frequencies > 0.35 * frequencies[k]) & (frequencies < 0.65 * frequencies[k])]
        stands_out = between.size and size[k] >= _CONTRAST * float(np.median(between))
        if stands_out and not _is_harmonic(size, int(k), int(np.floor(steps[k] / 2))):
            # A side lobe may come first: take the highest nearby.
            near = np.flatnonzero((frequencies >= frequencies[k]) & (frequencies <= 1.3 * frequencies[k]))
            top = float(frequencies[near[np.argmax(size[near])]])
            half = float(frequencies[0]) / 2
            return _roundest(2 * math.pi / (top + half), 2 * math.pi / (top - half))
    return 0.0


def _roundest(low: float, high: float) -> float:
    """Return the number with the fewest digits in an interval: steps are round, frequencies known so well."""
    middle = (low + high) / 2
    place = math.floor(math.log10(middle))
    for digits in range(6):
        unit = 10.0 ** (place - digits)
        for count in (round(middle / unit), round(middle / (5 * unit)) * 5):
            if low <= count * unit <= high:
                return count * unit
    return middle


def _is_harmonic(size: FloatArray, k: int, most: int) -> bool:
    """Say whether entry k repeats a lower peak: the grid, or the modes, then stand that much wider apart."""
    for divisor in range(2, most + 1):
        centre = (k + 1) / divisor - 1  # entry k is the frequency k + 1 of the lattice
        low, high = max(math.floor(centre), 0), min(math.ceil(centre) + 1, size.size)
        if float(np.max(size[low:high])) >= size[k] and centre >= 1:
            return True
    return False


def _peaks(size: FloatArray) -> NDArray[np.bool_]:
    """Say which entries are not below their neighbours."""
    padded = np.concatenate([[np.inf], size, [0.0]])
    return np.asarray((padded[1:-1] >= padded[:-2]) & (padded[1:-1] >= padded[2:]))


def _spread(frequency: float, size: float) -> float:
    """Return about the standard deviation of the data, from the lowest frequency's coefficient."""
    side = 2 * math.pi / frequency
    widest = _UNIFORM_SPREAD * side
    if size >= 1:
        # Noise hides a spread that is tiny beside the box.
        return widest / 100
    return min(math.sqrt(-2 * math.log(max(size, 1e-300))) / frequency, widest)
