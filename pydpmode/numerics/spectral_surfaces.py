"""Density surfaces known through (noisy) Fourier coefficients.

A spectral surface is `p(x) = constant + sum_j Re(c_j exp(-i w_j.z))`, `z = (x - lower)/h0`, with one
independent Gaussian error of known variance in the real and in the imaginary part of each
coefficient. Density, gradient, Hessian, integrals and the moments of the noise all follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidArgument, UnknownColumn
from .designs import DEFAULT_CUT, Design, LatticeDesign, RandomDesign
from .fourier_sums import (
    ComplexArray,
    box_factors,
    contract_phases,
    half_lattice_on_grid,
    too_large_for_products,
)
from .kernels import squared_kernel_integrals
from .surfaces import FieldNoise, FloatArray, Roughness

# Working memory for one chunk of evaluation, in complex numbers (64 MB).
_CHUNK = 4_000_000


def as_points(points: FloatArray, dimension: int) -> FloatArray:
    """Return `points` as an (m, d) float array; a 1-D array is m points of one coordinate."""
    array = np.asarray(points, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None] if dimension == 1 else array[None, :]
    if array.ndim != 2 or array.shape[1] != dimension:
        raise InvalidArgument(f"points must have shape (m, {dimension}), got {np.shape(points)}")
    return array


def per_column(value: ArrayLike, dimension: int, name: str) -> FloatArray:
    """Return one number per coordinate, (d,); one number stands for all."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (dimension,)):
        raise InvalidArgument(
            f"{name} must be one number or one per column ({dimension}), got shape {array.shape}"
        )
    return np.array(np.broadcast_to(array, (dimension,)))


@dataclass(frozen=True, eq=False)
class SpectralSurface:
    """A density surface read from Fourier coefficients, with the noise they carry.

    Use `spectral_surface(...)` to make one: it picks the class by the design.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
        Frequencies and weights: public.
    phi : (M,) complex array
        Characteristic-function coefficients `mean_i exp(+i w_j.z_i)`, noise included.
    part_variance : (M,) array
        Variance of the noise in the real and in the imaginary part of each coefficient.
    n_effective : float
        Records averaged over, for the sampling error.
    read_bandwidth : (d,) array
        Bandwidth of the reading, in the columns' units.
    read_order : {2, 4, 6}
        Order of the reading kernel.
    """

    design: Design
    phi: ComplexArray
    part_variance: FloatArray
    n_effective: float
    read_bandwidth: FloatArray
    read_order: int

    def __post_init__(self) -> None:
        for name in ("phi", "part_variance", "read_bandwidth"):
            value = np.array(getattr(self, name))
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    # -- what every surface has -------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the d coordinates."""
        return self.design.columns

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return len(self.columns)

    @property
    def lower(self) -> FloatArray:
        """Lower corner of the public box, (d,), in the columns' units."""
        return self.design.lower

    @property
    def upper(self) -> FloatArray:
        """Upper corner of the public box, (d,), in the columns' units."""
        return self.design.upper

    @property
    def bandwidth(self) -> FloatArray:
        """Bandwidth of the reading, (d,), in the columns' units."""
        return self.read_bandwidth

    @property
    def order(self) -> int:
        """Order of the reading kernel."""
        return self.read_order

    @property
    def _unit(self) -> FloatArray:
        """Length of the working unit per coordinate: the released bandwidth."""
        return self.design.bandwidth

    @cached_property
    def _scaled_frequencies(self) -> FloatArray:
        return self.design.frequencies / self.design.bandwidth

    @cached_property
    def _amplitudes(self) -> FloatArray | ComplexArray:
        return self.design.read_weights(self.read_bandwidth, self.read_order)

    @cached_property
    def _coefficients(self) -> ComplexArray:
        return self._amplitudes * self.phi

    @property
    def _constant(self) -> float:
        return 0.0

    @cached_property
    def noise(self) -> FieldNoise:
        """Privacy noise of density, gradient and Hessian: exact second moments of a stationary field.

        With `a_j` the reading weights and `u_j` the variance of each part of `phi_j`:
        `Var p = sum a^2 u`, `Cov grad = sum a^2 u w w^T`, and so on.
        """
        return self._moments(np.abs(self._amplitudes) ** 2 * self.part_variance)

    def _moments(self, power: FloatArray) -> FieldNoise:
        """Return the moments of the field with independent parts of variance `power` per frequency."""
        w = self._scaled_frequencies
        outer = (w[:, :, None] * w[:, None, :]).reshape(w.shape[0], -1)
        gradient = (power @ outer).reshape(self.dimension, self.dimension)
        hessian = (outer.T * power) @ outer
        d = self.dimension
        return FieldNoise(float(power.sum()), gradient, hessian.reshape(d, d, d, d), -gradient)

    @cached_property
    def noise_length(self) -> FloatArray:
        """Correlation length of the noise per coordinate: `sd(p) / sd(dp/dx_a)`, (d,)."""
        noise = self.noise
        if noise.value <= 0:
            return np.array(self.bandwidth)
        return np.asarray(np.sqrt(noise.value / np.diag(noise.gradient)))

    @cached_property
    def roughness(self) -> Roughness:
        """Integrals of the squared reading kernel and of its squared gradient."""
        value, gradient = squared_kernel_integrals(self.read_order, self.dimension)
        scale = float(np.prod(self.bandwidth))
        return Roughness(value / scale, np.diag(gradient / (scale * self.bandwidth**2)))

    # -- reading ----------------------------------------------------------------------------

    def density(self, points: FloatArray) -> FloatArray:
        """Return the density at `points` (m, d): shape (m,). May be negative by noise."""
        return self._evaluate(points, 0)[0]

    def gradient(self, points: FloatArray) -> FloatArray:
        """Return the gradient at `points` (m, d): shape (m, d)."""
        return self._evaluate(points, 1)[1]

    def hessian(self, points: FloatArray) -> FloatArray:
        """Return the Hessian at `points` (m, d): shape (m, d, d)."""
        return self._evaluate(points, 2)[2]

    def derivatives(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return density (m,), gradient (m, d) and Hessian (m, d, d) together."""
        return self._evaluate(points, 2)

    def _evaluate(self, points: FloatArray, degree: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        array = as_points(points, self.dimension)
        m, d = array.shape
        out = (np.empty(m), np.empty((m, d)), np.empty((m, d, d)))
        chunk = max(1, _CHUNK // self._numbers_per_point(degree))
        for start in range(0, m, chunk):
            part = slice(start, min(m, start + chunk))
            z = (array[part] - self.lower) / self._unit
            for target, values in zip(out, self._derivatives_at(z, degree), strict=False):
                target[part] = values
        return out

    def _numbers_per_point(self, degree: int) -> int:
        raise NotImplementedError

    def _derivatives_at(self, z: FloatArray, degree: int) -> list[FloatArray]:
        raise NotImplementedError

    def density_on_grid(self, axes: Sequence[FloatArray]) -> FloatArray:
        """Return the density on the product grid of `axes`, one sorted array per coordinate."""
        mesh = np.meshgrid(*[np.asarray(a, dtype=np.float64) for a in axes], indexing="ij")
        return self.density(np.stack([m.ravel() for m in mesh], axis=1)).reshape(mesh[0].shape)

    def at_bandwidth(self, bandwidth: FloatArray | float) -> Self:
        """Return the same surface read at another bandwidth. Post-processing: free.

        Parameters
        ----------
        bandwidth : float or (d,) array
            In the columns' units.

        Raises
        ------
        InvalidArgument
            When a bandwidth is not finite and > 0, below 0.76 times the (narrowest) released one (the
            noise would explode), or above `read_ratio` times it (opposite ends of the box would meet).
        """
        h = per_column(bandwidth, self.dimension, "bandwidth")
        if not (np.all(np.isfinite(h)) and np.all(h > 0)):
            raise InvalidArgument(f"bandwidth must be finite and > 0, got {h.tolist()}")
        ratio = h / self.design.bandwidth
        bottom, top = 0.76, np.inf
        if isinstance(self.design, LatticeDesign):
            bottom, top = 0.76 * min(self.design.scales), self.design.read_ratio
        if np.any(ratio < bottom - 1e-9) or np.any(ratio > top * (1 + 1e-9)):
            allowed = [
                f"{c}: {bottom * b:.4g} to {top * b:.4g}"
                for c, b in zip(self.columns, self.design.bandwidth, strict=True)
            ]
            raise InvalidArgument(
                f"this surface can be read at bandwidths {'; '.join(allowed)}; got {h.tolist()}"
            )
        return replace(self, read_bandwidth=h)

    def integrate(self, lower: FloatArray, upper: FloatArray) -> float:
        """Return the integral of the surface over the box from `lower` to `upper`, both (d,).

        Infinite ends mean the box's own. The result may fall outside [0, 1] by noise.
        """
        a, b = self._clipped_corners(lower, upper)
        return self._integral(a, b)

    def _clipped_corners(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        a = per_column(lower, self.dimension, "lower")
        b = per_column(upper, self.dimension, "upper")
        if np.any(np.isnan(a)) or np.any(np.isnan(b)) or np.any(a > b):
            raise InvalidArgument("each lower end must be a number at or below its upper end")
        return np.clip(a, self.lower, self.upper), np.clip(b, self.lower, self.upper)

    def _integral(self, a: FloatArray, b: FloatArray) -> float:
        factors = box_factors(self._scaled_frequencies, a - self.lower, b - self.lower)
        value = self._constant * float(np.prod(b - a))
        return value + float(np.real(np.sum(self._coefficients * factors.prod(axis=1))))

    def axes_of(self, columns: Sequence[str] | str) -> list[int]:
        """Return the positions of named columns, in the surface's own order."""
        names = [columns] if isinstance(columns, str) else list(columns)
        unknown = [c for c in names if c not in self.columns]
        if unknown or not names or len(set(names)) != len(names):
            raise UnknownColumn(f"this surface has the columns {list(self.columns)}, got {names}")
        return sorted(self.columns.index(c) for c in names)


@dataclass(frozen=True, eq=False)
class LatticeSurface(SpectralSurface):
    """A surface on a frequency lattice (d <= 3): separable, hence read by matrix products."""

    @property
    def _lattice(self) -> LatticeDesign:
        if not isinstance(self.design, LatticeDesign):
            raise TypeError("LatticeSurface needs a LatticeDesign")
        return self.design

    @property
    def is_ladder(self) -> bool:
        """Whether the release was made for several bandwidths and is read at the widest."""
        widest = np.array_equal(self.read_bandwidth, self._lattice.bandwidth)
        return len(self._lattice.scales) > 1 and widest

    @property
    def ladder_scales(self) -> tuple[float, ...]:
        """Scales of the release, in bandwidths."""
        return self._lattice.scales

    @property
    def _constant(self) -> float:
        return 1.0 / self._lattice.volume

    @cached_property
    def _dense(self) -> ComplexArray:
        dense = np.zeros(self._lattice.half_shape, dtype=np.complex128)
        dense.reshape(-1)[self._lattice.pair_index] = self._coefficients
        return dense

    def _numbers_per_point(self, degree: int) -> int:
        shape = self._lattice.half_shape
        return (degree + 1) * int(np.prod(shape[:-1], dtype=np.int64)) + 4 * sum(shape)

    def _derivatives_at(self, z: FloatArray, degree: int) -> list[FloatArray]:
        phases = []
        for axis, w in enumerate(self._lattice.axis_frequencies):
            base = np.exp(-1j * np.multiply.outer(z[:, axis], w))
            step = -1j * w / self._lattice.bandwidth[axis]
            phases.append(np.stack([base * step**power for power in range(degree + 1)]))
        table = contract_phases(self._dense, phases, degree)
        d = self.dimension
        unit = np.eye(d, dtype=int)
        out = [self._constant + table[tuple([0] * d)]]
        if degree >= 1:
            out.append(np.stack([table[tuple(unit[a])] for a in range(d)], axis=1))
        if degree >= 2:
            rows = [[table[tuple(unit[a] + unit[b])] for b in range(d)] for a in range(d)]
            out.append(np.moveaxis(np.array(rows), -1, 0))
        return out

    def density_on_grid(self, axes: Sequence[FloatArray]) -> FloatArray:
        """Return the density on the product grid of `axes`, by one matrix product per coordinate."""
        lattice = self._lattice
        axes = [np.asarray(axis, dtype=np.float64) for axis in axes]
        if too_large_for_products(axes, lattice.axis_frequencies):
            scale = 2 * np.pi / (lattice.sides * lattice.bandwidth)
            angles = [(a - low) * s for a, low, s in zip(axes, lattice.lower, scale, strict=True)]
            return np.asarray(self._constant + half_lattice_on_grid(self._dense, angles))
        value: ComplexArray = self._dense
        for axis in range(self.dimension - 1, 0, -1):
            z = (axes[axis] - lattice.lower[axis]) / lattice.bandwidth[axis]
            phase = np.exp(-1j * np.multiply.outer(lattice.axis_frequencies[axis], z))
            value = np.moveaxis(np.tensordot(value, phase, axes=([axis], [0])), -1, axis)
        z = (axes[0] - lattice.lower[0]) / lattice.bandwidth[0]
        angle = np.multiply.outer(z, lattice.axis_frequencies[0])
        flat = value.reshape(value.shape[0], -1)
        grid = np.cos(angle) @ np.ascontiguousarray(flat.real) + np.sin(angle) @ np.ascontiguousarray(
            flat.imag
        )
        return np.asarray(self._constant + grid.reshape(len(axes[0]), *value.shape[1:]))

    def in_reading_units(self) -> LatticeSurface:
        """Return the same reading with the reading bandwidth as working unit, without useless frequencies.

        Coefficients above `4.5` over the reading bandwidth hold nothing of the kernel (4e-5) and are left
        out. For code that takes the working unit for the bandwidth, and for speed. The surface itself is
        returned where nothing changes, or where the axes are read at different ratios.
        """
        lattice = self._lattice
        ratios = self.read_bandwidth / lattice.bandwidth
        ratio = float(ratios[0])
        if lattice.scales == (1.0,) or not np.allclose(ratios, ratio, rtol=1e-9):
            return self
        design = LatticeDesign(
            lattice.columns,
            lattice.lower,
            lattice.upper,
            lattice.bandwidth * ratio,
            lattice.order,
            lattice.zero_weight,
            lattice.read_ratio / ratio,
            # A little below what is there, so that rounding cannot ask for one frequency more.
            min(DEFAULT_CUT, lattice.largest_frequency * ratio * (1 - 1e-9)),
        )
        place = [np.array(p) for p in np.unravel_index(design.pair_index, design.half_shape)]
        for a in range(1, self.dimension):
            place[a] = place[a] + int(lattice.half_sizes[a]) - int(design.half_sizes[a])
        kept = np.searchsorted(lattice.pair_index, np.ravel_multi_index(tuple(place), lattice.half_shape))
        return LatticeSurface(
            design,
            self.phi[kept],
            self.part_variance[kept],
            self.n_effective,
            design.bandwidth,
            self.read_order,
        )

    def marginal(self, columns: Sequence[str] | str) -> LatticeSurface:
        """Return the exact marginal surface of the named columns. Post-processing: free."""
        axes = self.axes_of(columns)
        lattice = self._lattice
        grid = np.unravel_index(lattice.pair_index, lattice.half_shape)
        centres = [0 if a == 0 else int(lattice.half_sizes[a]) for a in range(self.dimension)]
        dropped = [a for a in range(self.dimension) if a not in axes]
        keep = (
            np.all([grid[a] == centres[a] for a in dropped], axis=0)
            if dropped
            else np.ones(lattice.n_pairs, bool)
        )
        design = lattice.subset(axes)
        # The kept axes' own half lattice lists the same frequencies: when axis 0 goes, the plane
        # k_0 = 0 held exactly the lexicographically positive half.
        place = []
        for position, a in enumerate(axes):
            offset = 0 if position == 0 else int(design.half_sizes[position])
            place.append(grid[a][keep] - centres[a] + offset)
        flat = np.ravel_multi_index(tuple(place), design.half_shape)
        order = np.searchsorted(flat, design.pair_index)
        return LatticeSurface(
            design,
            self.phi[keep][order],
            self.part_variance[keep][order],
            self.n_effective,
            self.read_bandwidth[axes],
            self.read_order,
        )


@dataclass(frozen=True, eq=False)
class RandomFeatureSurface(SpectralSurface):
    """A surface on random frequencies (d >= 4), or a marginal of one.

    Parameters
    ----------
    kept : tuple of int
        Axes of the design that are coordinates; the others are integrated over the box.
    single : bool
        Read in single precision: several times faster, and exact to about 1e-5 of the largest density.
    """

    kept: tuple[int, ...] = ()
    single: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.kept:
            object.__setattr__(self, "kept", tuple(range(self.design.dimension)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return tuple(self.design.columns[a] for a in self.kept)

    @property
    def lower(self) -> FloatArray:
        """Lower corner of the box of the kept coordinates."""
        return self.design.lower[list(self.kept)]

    @property
    def upper(self) -> FloatArray:
        """Upper corner of the box of the kept coordinates."""
        return self.design.upper[list(self.kept)]

    @property
    def bandwidth(self) -> FloatArray:
        """Reading bandwidth of the kept coordinates."""
        return self.read_bandwidth[list(self.kept)]

    @property
    def _unit(self) -> FloatArray:
        """Length of the working unit of the kept coordinates."""
        return self.design.bandwidth[list(self.kept)]

    @cached_property
    def _scaled_frequencies(self) -> FloatArray:
        return (self.design.frequencies / self.design.bandwidth)[:, list(self.kept)]

    @cached_property
    def _amplitudes(self) -> FloatArray | ComplexArray:
        weights: FloatArray | ComplexArray = self.design.read_weights(self.read_bandwidth, self.read_order)
        dropped = [a for a in range(self.design.dimension) if a not in self.kept]
        if dropped:
            w = (self.design.frequencies / self.design.bandwidth)[:, dropped]
            span = (self.design.upper - self.design.lower)[dropped]
            weights = weights * box_factors(w, np.zeros(len(dropped)), span).prod(axis=1)
        return weights

    @cached_property
    def noise(self) -> FieldNoise:
        """Noise of density, gradient and Hessian: privacy noise, and the read-off error of the features.

        A reading averages over D random frequencies, so its error is that of a sample mean: the
        variance over frequencies of `a_j Re(phi_j exp(-i w_j.z))`, about `sum_j |a_j phi_j|^2 / 2`,
        which holds the privacy noise `sum_j |a_j|^2 u_j` as well. Where it is not clearly above
        that (3 standard errors), the privacy noise alone is returned.
        """
        squared = np.abs(self._amplitudes) ** 2
        private = self._moments(squared * self.part_variance)
        everything = squared * np.abs(self.phi) ** 2 / 2
        allowance = 3 * private.value / np.sqrt(self.design.n_pairs)
        return self._moments(everything) if everything.sum() > private.value + allowance else private

    @cached_property
    def read_off_ratio(self) -> float:
        """Standard deviation of the features' read-off error over that of the privacy noise."""
        squared = np.abs(self._amplitudes) ** 2
        private = float((squared * self.part_variance).sum())
        everything = float((squared * np.abs(self.phi) ** 2).sum() / 2)
        return float(np.sqrt(max(everything - private, 0.0) / private)) if private > 0 else float("inf")

    @cached_property
    def _hessian_pairs(self) -> list[tuple[int, int]]:
        return [(a, b) for a in range(self.dimension) for b in range(a, self.dimension)]

    @cached_property
    def _tables(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Columns for value, gradient and Hessian, to be multiplied by cos and by sin of the phase.

        Third, the factors that the sums are to be multiplied by: in units far from 1 the columns would leave
        the range of single precision. Powers of two change no digit.
        """
        w, c = self._scaled_frequencies, self._coefficients
        cosine = [c.real, *(w.T * c.imag), *(-w[:, a] * w[:, b] * c.real for a, b in self._hessian_pairs)]
        sine = [c.imag, *(-w.T * c.real), *(-w[:, a] * w[:, b] * c.imag for a, b in self._hessian_pairs)]
        tables = np.stack(cosine, axis=1), np.stack(sine, axis=1)
        largest = np.max([np.abs(table).max(axis=0) for table in tables], axis=0)
        factors = np.ldexp(1.0, np.frexp(largest)[1]) if self.single else np.ones_like(largest)
        kind = np.float32 if self.single else np.float64
        cosine, sine = ((table / factors).astype(kind) for table in tables)
        return cosine, sine, factors

    def _numbers_per_point(self, degree: int) -> int:
        return 2 * self.design.n_pairs

    def _derivatives_at(self, z: FloatArray, degree: int) -> list[FloatArray]:
        d = self.dimension
        angle = (z * self._unit) @ self._scaled_frequencies.T
        width = {0: 1, 1: 1 + d, 2: 1 + d + len(self._hessian_pairs)}[degree]
        cosine, sine, factors = self._tables
        angle = angle.astype(cosine.dtype, copy=False)
        values = np.cos(angle) @ cosine[:, :width] + np.sin(angle) @ sine[:, :width]
        if self.single:
            values = values * factors[:width]
        out = [values[:, 0]]
        if degree >= 1:
            out.append(values[:, 1 : 1 + d])
        if degree >= 2:
            hessian = np.empty((z.shape[0], d, d))
            for column, (a, b) in enumerate(self._hessian_pairs):
                hessian[:, a, b] = hessian[:, b, a] = values[:, 1 + d + column]
            out.append(hessian)
        return out

    def at_bandwidth(self, bandwidth: FloatArray | float) -> Self:
        """Return the same surface with the kept coordinates read at another bandwidth: free."""
        full = np.array(self.read_bandwidth)
        full[list(self.kept)] = per_column(bandwidth, self.dimension, "bandwidth")
        if not (np.all(np.isfinite(full)) and np.all(full > 0)):
            raise InvalidArgument(f"bandwidth must be finite and > 0, got {np.asarray(bandwidth).tolist()}")
        self.design.read_weights(full, self.read_order)
        return replace(self, read_bandwidth=full)

    def density_on_grid(self, axes: Sequence[FloatArray]) -> FloatArray:
        """Return the density on the product grid of `axes`, by matrix products in blocks of rows."""
        *first, last = [np.asarray(a, dtype=np.float64) for a in axes]
        mesh = np.meshgrid(*first, indexing="ij")
        size = int(np.prod([a.size for a in first], dtype=np.int64))
        known = np.stack([m.ravel() for m in mesh], axis=1) if first else np.zeros((1, 0))
        rows = max(1, _CHUNK // self.design.n_pairs)
        parts = [self.density_on_product(known[i : i + rows], last) for i in range(0, size, rows)]
        return np.concatenate(parts).reshape(*(a.size for a in first), last.size)

    def density_on_product(self, known: FloatArray, axis: FloatArray) -> FloatArray:
        """Return the density at every (known_i, axis_g): (m, g), for `known` (m, d-1), `axis` (g,)."""
        w = self._scaled_frequencies
        last = np.exp(-1j * np.multiply.outer(axis - self.lower[-1], w[:, -1]))
        first = np.exp(-1j * ((known - self.lower[:-1]) @ w[:, :-1].T)) * self._coefficients
        return np.asarray((first @ last.T).real)

    def marginal(self, columns: Sequence[str] | str) -> RandomFeatureSurface:
        """Return the surface of the named columns, the others integrated over the box: free."""
        return replace(self, kept=tuple(self.kept[a] for a in self.axes_of(columns)))


def coarse_reading(surface: Any) -> Any:
    """Return a surface on random frequencies read in single precision; any other surface as it is.

    For work that compares heights which differ by noise: choosing starts, climbing, passes and basins.
    """
    inner = getattr(surface, "surface", surface)
    return replace(inner, single=True) if isinstance(inner, RandomFeatureSurface) else surface


def spectral_surface(
    design: Design,
    phi: ComplexArray,
    part_variance: FloatArray,
    n_effective: float,
) -> LatticeSurface | RandomFeatureSurface:
    """Return the surface of `design` with coefficients `phi`, read at the design's own bandwidth."""
    args = (design, phi, part_variance, n_effective, design.bandwidth, design.order)
    return RandomFeatureSurface(*args) if isinstance(design, RandomDesign) else LatticeSurface(*args)
