"""What every density surface offers, whether it was released under privacy or not.

Mode seeking, plots and standard errors use this contract alone, so that the same code runs on
a released surface and on a plain kernel density estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class FieldNoise:
    """Second moments, at any one point, of the stationary noise field added to a surface.

    All zero for a surface without noise. In the units of the density and of the columns.

    Parameters
    ----------
    value : float
        Variance of the density.
    gradient : (d, d) array
        Covariance of the gradient; independent of value and Hessian at the same point.
    hessian : (d, d, d, d) array
        `hessian[a, b, c, e]` is the covariance of the entries (a, b) and (c, e) of the Hessian.
    value_hessian : (d, d) array
        Covariance of the density with the entry (a, b) of the Hessian: minus `gradient`.
    """

    value: float
    gradient: FloatArray
    hessian: FloatArray
    value_hessian: FloatArray

    @classmethod
    def none(cls, dimension: int) -> FieldNoise:
        """Return the noise of a surface that has none."""
        d = dimension
        return cls(0.0, np.zeros((d, d)), np.zeros((d, d, d, d)), np.zeros((d, d)))


@dataclass(frozen=True)
class Roughness:
    """Integrals of the squared kernel, scaled by the bandwidth: they set the sampling variance.

    Parameters
    ----------
    value : float
        Integral of `K_h^2`, in density units: sampling variance of the density is about
        `(value * p - p^2) / n`.
    gradient : (d, d) array
        Integral of `grad K_h grad K_h^T`: sampling covariance of the gradient is about
        `gradient * p / n`.
    """

    value: float
    gradient: FloatArray


@runtime_checkable
class Surface(Protocol):
    """A smooth density estimate on a box, with its derivatives and the noise it carries.

    Attributes
    ----------
    columns : tuple of str
        Names of the d coordinates.
    lower, upper : (d,) arrays
        The public box, in the columns' units.
    bandwidth : (d,) array
        Standard deviation of the smoothing kernel per coordinate, in the columns' units.
    order : int
        Order of the kernel (2 or 4).
    n_effective : float
        Number of records that the surface averages over (released or public), for sampling error.
    noise : FieldNoise
        Privacy noise of density, gradient and Hessian.
    noise_length : (d,) array
        Correlation length of the noise field per coordinate, in the columns' units: the cells to
        count when asking how many independent chances for a false peak the box holds.
    roughness : Roughness
        Kernel integrals for the sampling error.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the d coordinates."""
        ...

    @property
    def lower(self) -> FloatArray:
        """Lower corner of the box, (d,)."""
        ...

    @property
    def upper(self) -> FloatArray:
        """Upper corner of the box, (d,)."""
        ...

    @property
    def bandwidth(self) -> FloatArray:
        """Bandwidth per coordinate, (d,)."""
        ...

    @property
    def order(self) -> int:
        """Order of the kernel."""
        ...

    @property
    def n_effective(self) -> float:
        """Number of records averaged over."""
        ...

    @property
    def noise(self) -> FieldNoise:
        """Privacy noise of density, gradient and Hessian."""
        ...

    @property
    def noise_length(self) -> FloatArray:
        """Correlation length of the noise per coordinate, (d,)."""
        ...

    @property
    def roughness(self) -> Roughness:
        """Kernel integrals for the sampling error."""
        ...

    def density(self, points: FloatArray) -> FloatArray:
        """Return the density at `points` (m, d): shape (m,). May be negative by noise."""
        ...

    def gradient(self, points: FloatArray) -> FloatArray:
        """Return the gradient at `points` (m, d): shape (m, d)."""
        ...

    def hessian(self, points: FloatArray) -> FloatArray:
        """Return the Hessian at `points` (m, d): shape (m, d, d)."""
        ...

    def derivatives(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return density, gradient and Hessian together, cheaper than one by one."""
        ...

    def density_on_grid(self, axes: Sequence[FloatArray]) -> FloatArray:
        """Return the density on the product grid of d sorted `axes`, shape (len(axes[0]), ...)."""
        ...

    def at_bandwidth(self, bandwidth: FloatArray) -> Self:
        """Return the same surface read at another bandwidth (d,). Post-processing: free."""
        ...
