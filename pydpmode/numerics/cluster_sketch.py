"""A released surface as a sketch of the data: linear measurements with white noise of known size.

The coefficients of a released surface are averages of `exp(+i w_j.z)` over the records plus independent
noise. A Gaussian cluster of standard deviation s at c has the closed-form image
`exp(-s^2 |w|^2 / 2) exp(i w.c)`, so fitting clusters to the coefficients is a likelihood fit that undoes
the smoothing of the kernel ("compressive clustering": Keriven, Tremblay, Traonmilin & Gribonval 2017).
It works alike on a lattice and on random frequencies. Working units: lengths in released bandwidths from
the lower corner of the box.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from .designs import LatticeDesign, RandomDesign
from .spectral_surfaces import LatticeSurface, RandomFeatureSurface
from .surfaces import FloatArray

# A lattice is cropped: at frequency w a cluster of the kernel's own width has exp(-|w|^2) of its power
# left, and the weights fade as well.
_CUT = 3.0
# Squared frequency in units of a cluster's width at which 1e-7 of its image is left.
_VANISHED = 32.0
_WORTH_CROPPING = 0.5
# Trial centres times frequencies must fit into memory, so those of lowest norm are taken, which say most of
# clusters. A lattice has more at fine bandwidths only, random frequencies when asked to.
MOST_FREQUENCIES = 20_000
# Surfaces without noise: their coefficients are measured as exactly as sampling allows.
_LEAST_VARIANCE = 1e-16


@dataclass(frozen=True, eq=False)
class ClusterSketch:
    """M complex measurements, each part divided by the standard deviation of its noise.

    Parameters
    ----------
    frequencies : (d, M) array
        In working units.
    target : (2, M) array
        Real and imaginary parts of the coefficients over the noise's standard deviation.
    root : (M,) array
        One over that standard deviation.
    lower, unit, widths : (d,) arrays
        Lower corner and working unit in the columns' units; box widths in working units.
    n : float
        Records averaged over.
    rotation : (d, d) array
        Orthogonal: working coordinates are `rotation.T @ z`, z in bandwidths from the lower corner.
    """

    frequencies: FloatArray
    target: FloatArray
    root: FloatArray
    lower: FloatArray
    unit: FloatArray
    widths: FloatArray
    n: float
    rotation: FloatArray

    @classmethod
    def of(cls, surface: Any) -> ClusterSketch:
        """Take the measurements of a released surface (or of its inner spectral surface).

        Raises
        ------
        InvalidArgument
            When the surface has no coefficients, or is a marginal of a surface on random frequencies.
        """
        inner = getattr(surface, "surface", surface)
        if not isinstance(inner, LatticeSurface | RandomFeatureSurface):
            raise InvalidArgument(
                "centres='fit' needs the coefficients of a released surface; use centres='modes' on a "
                f"{type(inner).__name__}"
            )
        design = inner.design
        if isinstance(design, RandomDesign) and inner.dimension != design.dimension:
            raise InvalidArgument(
                "clusters cannot be fitted to a marginal of a surface on random frequencies; fit all of its "
                "columns, or use centres='modes'"
            )
        w, phi, variance = design.frequencies, inner.phi, inner.part_variance
        if isinstance(design, LatticeDesign):
            kept = np.flatnonzero(np.sum(w**2, axis=1) <= _CUT**2)
            w, phi, variance = w[kept], phi[kept], variance[kept]
        if variance.size > MOST_FREQUENCIES:
            lowest = np.argsort(np.sum(w**2, axis=1), kind="stable")[:MOST_FREQUENCIES]
            w, phi, variance = w[lowest], phi[lowest], variance[lowest]
        n = max(float(inner.n_effective), 1.0)
        noise = np.where(variance > 0, variance, 0.5 / n)
        root = 1 / np.sqrt(np.maximum(noise, _LEAST_VARIANCE))
        return cls(
            frequencies=np.ascontiguousarray(w.T),
            target=np.stack([phi.real * root, phi.imag * root]),
            root=root,
            lower=inner.lower,
            unit=design.bandwidth,
            widths=design.widths,
            n=n,
            rotation=np.eye(inner.dimension),
        )

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return int(self.frequencies.shape[0])

    @cached_property
    def squares(self) -> FloatArray:
        """Squared frequencies per axis, (d, M)."""
        return self.frequencies**2

    @cached_property
    def squared_norms(self) -> FloatArray:
        """Squared norms of the frequencies, (M,)."""
        return np.asarray(self.squares.sum(axis=0))

    @property
    def middle(self) -> FloatArray:
        """Middle of the box, (d,)."""
        return np.asarray(0.5 * self.widths @ self.rotation)

    def with_target(self, target: FloatArray) -> ClusterSketch:
        """Return the same measurements with other values (2, M)."""
        return replace(self, target=target)

    def cropped(self, widths: FloatArray) -> ClusterSketch:
        """Return the measurements that clusters of these widths (d,), in working units, or wider ones reach.

        At the other ones their images vanish. Where few would go the sketch is returned as it is.
        """
        reached = widths**2 @ self.squares <= _VANISHED
        if np.count_nonzero(reached) > _WORTH_CROPPING * reached.size or not reached.any():
            return self
        return replace(
            self,
            frequencies=np.ascontiguousarray(self.frequencies[:, reached]),
            target=np.ascontiguousarray(self.target[:, reached]),
            root=self.root[reached],
        )

    def turned(self, rotation: FloatArray) -> ClusterSketch:
        """Return the same measurements in coordinates `rotation.T @` the present ones."""
        return replace(
            self,
            frequencies=np.ascontiguousarray(rotation.T @ self.frequencies),
            rotation=self.rotation @ rotation,
        )

    def inside(self, points: FloatArray) -> FloatArray:
        """Return points (k, d) moved into the box."""
        return np.asarray(np.clip(points @ self.rotation.T, 0.0, self.widths) @ self.rotation)

    def to_columns(self, points: FloatArray) -> FloatArray:
        """Return points (k, d) in the columns' units."""
        return np.asarray(self.lower + points @ self.rotation.T * self.unit)

    def from_columns(self, points: FloatArray) -> FloatArray:
        """Return points (k, d), given in the columns' units, in working coordinates."""
        return np.asarray((points - self.lower) / self.unit @ self.rotation)
