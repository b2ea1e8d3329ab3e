"""The modes found on a surface, with everything known about their error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .surfaces import FloatArray

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ModeSearchDiagnostics:
    """How a mode search went: counts and thresholds, all functions of the surface alone.

    Parameters
    ----------
    candidates : int
        Local maxima on the search grid (or endpoints of the ascents when d >= 4).
    dropped_by_height, dropped_by_persistence, merged : int
        Candidates that did not become modes, by reason.
    noise_cells : float
        Number of independent noise cells in the box.
    height_threshold : float
        Density below which a peak is taken for noise: `u * sd`, `u` from the expected Euler
        characteristic of the noise field at the chosen false-mode rate.
    false_mode_rate : float
        The rate that the thresholds are set for.
    grid_shape : tuple of int
        Shape of the search grid; empty when d >= 4.
    newton_steps : int
        Largest number of refinement steps any mode took.
    all_converged : bool
        Whether every mode's gradient vanished (or its mode lies on a face of the box).
    requested : int
        Number of modes asked for, 0 when it was left to the thresholds. Fewer are returned when
        the surface has fewer peaks.
    coarse_grid : bool
        Whether the box was too wide for a grid that sees every peak (step above `h / 1.5`).
    """

    candidates: int
    dropped_by_height: int
    dropped_by_persistence: int
    merged: int
    noise_cells: float
    height_threshold: float
    false_mode_rate: float
    grid_shape: tuple[int, ...]
    newton_steps: int
    all_converged: bool
    requested: int = 0
    coarse_grid: bool = False


@dataclass(frozen=True)
class ModeSet:
    """k modes of a d-dimensional surface, highest first.

    Parameters
    ----------
    locations : (k, d) array
        In the columns' units.
    densities : (k,) array
        Height of the surface at its own maximum, before any refinement of the location.
    covariance_privacy, covariance_sampling : (k, d, d) arrays
        Covariance of the location from the privacy noise and from sampling: linearised, `H^-1 G H^-1`
        where the location was not refined.
        NaN where the curvature is not negative definite, and along coordinates held by a face.
    covariance_bias : (k, d, d) array
        Second moment put down to the smoothing bias that is left; zero without refinement.
    mass : (k,) array
        Integral of the surface over each mode's basin, as a share of the whole.
    height_z : (k,) array
        Height over its total standard deviation (privacy and sampling).
    persistence : (k,) array
        Height above the highest saddle to a higher mode; infinite for the highest mode.
    persistence_z : (k,) array
        Persistence over the total standard deviation of the height.
    curvature_z : (k,) array
        Smallest curvature (largest eigenvalue of the Hessian in bandwidths, sign reversed) over
        the noise standard deviation of that curvature, infinite without noise; below 5 the
        linearised errors are not reliable.
    reliable : (k,) bool array
        Whether the intervals at this mode can be relied on: curvature clear of its noise,
        mode inside the box, significant, and the climb to it converged; on a lattice surface also
        every check of `mode_refinement.RefinedModes` (smoothing bias small, and seen to be).
    refined : (k,) bool array
        Whether the mode went through `mode_refinement`: its interval is then for the mode of the
        density, smoothing bias included, otherwise for the mode of the smoothed density.
    significant : (k,) bool array
        Whether the mode can be told from noise: height and persistence above both thresholds.
        Modes that cannot are kept when they are the highest or when their number was asked for.
    on_face : (k, d) bool array
        Whether the mode lies on the lower or upper face of the box in that coordinate.
    diagnostics : ModeSearchDiagnostics
        How the search went.
    """

    locations: FloatArray
    densities: FloatArray
    covariance_privacy: FloatArray
    covariance_sampling: FloatArray
    covariance_bias: FloatArray
    mass: FloatArray
    height_z: FloatArray
    persistence: FloatArray
    persistence_z: FloatArray
    curvature_z: FloatArray
    reliable: BoolArray
    refined: BoolArray
    significant: BoolArray
    on_face: BoolArray
    diagnostics: ModeSearchDiagnostics

    @property
    def count(self) -> int:
        """Number of modes k."""
        return int(self.locations.shape[0])
