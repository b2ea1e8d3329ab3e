"""The plain, non-private kernel density surface, on the same contract as a released one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidArgument, PicklingRefused
from .designs import MAX_LATTICE_DIMENSION, LatticeDesign
from .feature_sums import feature_sum
from .kernels import check_order, kernel_peak, squared_kernel_integrals
from .spectral_surfaces import LatticeSurface, as_points, per_column
from .surfaces import FieldNoise, FloatArray, Roughness

# Pairs (evaluation point, record) held at once by the direct sums: 2e6 doubles are 16 MB.
_PAIRS = 2_000_000


class KernelSurface:
    """Make a plain kernel density estimate as a surface. It is NOT private: it follows the rows.

    Use it as the non-private baseline: `DensityModes(KernelSurface.from_points(...)).fit()`.
    """

    @staticmethod
    def from_points(
        points: ArrayLike,
        bandwidth: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        *,
        columns: Sequence[str] | None = None,
        order: int = 2,
    ) -> LatticeSurface | DirectKernelSurface:
        """Return the kernel density estimate of `points` on the box.

        Parameters
        ----------
        points : (n, d) array
            In the columns' units; values outside the box are moved to it, NaN rows left out.
        bandwidth : float or (d,) array
            Standard deviation of the Gaussian kernel per coordinate.
        lower, upper : float or (d,) array
            The box.
        columns : sequence of str, optional
            Names of the coordinates; `x1, x2, ...` when omitted.
        order : {2, 4, 6}
            Kernel order; d >= 4 has orders 2 and 4.

        Returns
        -------
        Surface
            With noise zero. The direct sum itself for d >= 4. For d <= 3 each record's kernel is cut
            off in frequency, which moves it by at most 2e-4 (order 2), 1e-3 (order 4) or 3e-3
            (order 6) of its peak.

        Raises
        ------
        InvalidArgument
            On shapes, bounds or bandwidths that do not fit, or when there is no complete row.
        """
        x = np.asarray(points, dtype=np.float64)
        x = x[:, None] if x.ndim == 1 else x
        if x.ndim != 2 or x.shape[1] == 0:
            raise InvalidArgument(f"points must be an (n, d) array, got shape {x.shape}")
        d = x.shape[1]
        low, high, h = (
            per_column(v, d, name)
            for v, name in ((lower, "lower"), (upper, "upper"), (bandwidth, "bandwidth"))
        )
        if not np.all(low < high):
            raise InvalidArgument("each lower bound must be a number below its upper bound")
        names = tuple(columns) if columns is not None else tuple(f"x{i + 1}" for i in range(d))
        if len(names) != d:
            raise InvalidArgument(f"columns has {len(names)} names, the points have {d} coordinates")
        complete = np.clip(x[~np.isnan(x).any(axis=1)], low, high)
        if complete.shape[0] == 0:
            raise InvalidArgument("there is no complete row to smooth")
        if d <= MAX_LATTICE_DIMENSION:
            return _lattice_kernel_surface(complete, h, low, high, names, check_order(order))
        return DirectKernelSurface(complete, names, low, high, h, check_order(order))


def _lattice_kernel_surface(
    x: FloatArray, h: FloatArray, low: FloatArray, high: FloatArray, names: tuple[str, ...], order: int
) -> LatticeSurface:
    design = LatticeDesign(names, low, high, h, order, 0.5)
    total, sums = feature_sum(design, np.ascontiguousarray(x.T))
    return LatticeSurface(design, sums / total, np.zeros(design.n_pairs), total, design.bandwidth, order)


@dataclass(frozen=True, eq=False, repr=False)
class DirectKernelSurface:
    """A kernel density estimate by direct sums over its records (any d). Not private.

    Parameters
    ----------
    points : (n, d) array
    columns : tuple of str
    lower, upper, bandwidth : (d,) arrays
    order : {2, 4}
    """

    points: FloatArray
    columns: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    bandwidth: FloatArray
    order: int = 2

    def __post_init__(self) -> None:
        if self.order not in (2, 4):
            raise InvalidArgument(f"direct sums have kernel orders 2 and 4, got {self.order}")
        if not (np.all(np.isfinite(self.bandwidth)) and np.all(self.bandwidth > 0)):
            raise InvalidArgument(f"bandwidth must be finite and > 0, got {self.bandwidth.tolist()}")

    def __repr__(self) -> str:
        return (
            f"DirectKernelSurface({self.points.shape[0]} records, columns {list(self.columns)}; not private)"
        )

    def __reduce__(self) -> NoReturn:
        raise PicklingRefused(
            "this surface holds rows; release one with DensityModes(...).fit to save or send it"
        )

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return len(self.columns)

    @property
    def n_effective(self) -> float:
        """Number of records."""
        return float(self.points.shape[0])

    @property
    def noise(self) -> FieldNoise:
        """Zero: nothing was added."""
        return FieldNoise.none(self.dimension)

    @property
    def noise_length(self) -> FloatArray:
        """The bandwidth."""
        return self.bandwidth

    @cached_property
    def roughness(self) -> Roughness:
        """Integrals of the squared kernel and of its squared gradient."""
        value, gradient = squared_kernel_integrals(self.order, self.dimension)
        scale = float(np.prod(self.bandwidth))
        return Roughness(value / scale, np.diag(gradient / (scale * self.bandwidth**2)))

    def density(self, points: FloatArray) -> FloatArray:
        """Return the density at `points` (m, d)."""
        return self._evaluate(points, 0)[0]

    def gradient(self, points: FloatArray) -> FloatArray:
        """Return the gradient at `points` (m, d)."""
        return self._evaluate(points, 1)[1]

    def hessian(self, points: FloatArray) -> FloatArray:
        """Return the Hessian at `points` (m, d)."""
        return self._evaluate(points, 2)[2]

    def derivatives(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return density, gradient and Hessian at `points` (m, d)."""
        return self._evaluate(points, 2)

    def density_on_grid(self, axes: Sequence[FloatArray]) -> FloatArray:
        """Return the density on the product grid of `axes`."""
        mesh = np.meshgrid(*axes, indexing="ij")
        return self.density(np.stack([m.ravel() for m in mesh], axis=1)).reshape(mesh[0].shape)

    def at_bandwidth(self, bandwidth: FloatArray | float) -> Self:
        """Return the estimate at another bandwidth."""
        return replace(self, bandwidth=per_column(bandwidth, self.dimension, "bandwidth"))

    def to_dict(self) -> dict[str, Any]:
        """Refuse: it would write the rows."""
        raise PicklingRefused("this surface holds rows and cannot be written; release one to save it")

    def _evaluate(self, points: FloatArray, degree: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        x = as_points(points, self.dimension)
        m, d = x.shape
        p, g, hess = np.zeros(m), np.zeros((m, d)), np.zeros((m, d, d))
        chunk = max(1, _PAIRS // max(1, self.points.shape[0] * d))
        for start in range(0, m, chunk):
            part = slice(start, min(m, start + chunk))
            t = (x[part, None, :] - self.points[None, :, :]) / self.bandwidth
            value, first, second = self._radial((t**2).sum(axis=2))
            p[part] = value.sum(axis=1)
            if degree >= 1:
                g[part] = 2 * np.einsum("mn,mnd->md", first, t) / self.bandwidth
            if degree >= 2:
                scaled = np.einsum("mn,mna,mnb->mab", second, t, t, optimize=True) * 4
                scaled += 2 * first.sum(axis=1)[:, None, None] * np.eye(d)
                hess[part] = scaled / np.multiply.outer(self.bandwidth, self.bandwidth)
        scale = kernel_peak(self.order, d) / (self.points.shape[0] * float(np.prod(self.bandwidth)))
        return p * scale, g * scale, hess * scale

    def _radial(self, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the kernel over its peak and its first two derivatives in `s = |t|^2`."""
        e = np.exp(-s / 2)
        if self.order == 2:
            return e, -e / 2, e / 4
        top = 1 + self.dimension / 2
        a = (top - s / 2) / top
        return a * e, (-0.5 / top - a / 2) * e, (0.5 / top + a / 4) * e
