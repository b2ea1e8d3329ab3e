"""The density of a joint surface integrated along a line or plane, exactly, with its derivatives.

For predictors x and a response y, and a plane `y = b_0 + b.(x - m)` (m the centre of the box of x),

    Q(b_0, b) = int_window p(x, b_0 + b.(x - m)) dx ,

the smoothed objective of linear modal regression (Yao & Li 2014). On the Fourier lattice each frequency
(w, v), v along y, contributes its coefficient times `prod_a int exp(-i (w_a + b_a v) t) dt`, so that Q is a
finite sum and no quadrature is needed.

The kernel. A product kernel with bandwidths h (predictors) and g (response), integrated over all x, is a
kernel in the residual `y - b_0 - b.(x - m)` of bandwidth `s(b)^2 = g^2 + sum_a b_a^2 h_a^2`: smoothing over
x does to Q what errors in x do to least squares, and would pull slopes to zero by `Var x/(Var x + h^2)`.
So s is held FIXED here, g follows from it, `g(b)^2 = s^2 - sum_a b_a^2 h_a^2`, and

    Q(b_0, b) = mean_i K_s(Y_i - b_0 - b.(X_i - m))

exactly, up to kernel mass outside the window and the noise. `K_s` may have order 2, 4 or 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from .designs import LatticeDesign
from .fourier_sums import ComplexArray
from .mode_set import BoolArray
from .spectral_surfaces import LatticeSurface
from .surfaces import FloatArray

# Below this argument spherical Bessel functions are summed as series: the closed forms cancel.
_SMALL = 0.3
_STEEPEST = 300.0  # exponent at a plane far steeper than the one that the residual bandwidth is for
# Frequencies with a kernel below this hold nothing.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class JointSpectrum:
    """Fourier coefficients of a joint surface, the response last.

    Parameters
    ----------
    columns : tuple of str
    lower, upper, bandwidth : (d,) arrays
        The public box, and the bandwidth of the reading.
    reach : (d,) array
        How far beyond the box the surface is good for: farther out it repeats its other end.
    frequencies : (M, d) array
        In radians per unit of each coordinate.
    phi : (M,) complex array
    part_variance : (M,) array
        Of the noise in each part of phi.
    volume, records : float
        Of the torus, in the columns' units; and behind the surface.
    """

    columns: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    bandwidth: FloatArray
    reach: FloatArray
    frequencies: FloatArray
    phi: ComplexArray
    part_variance: FloatArray
    volume: float
    records: float

    @classmethod
    def of(cls, surface: LatticeSurface, response: int) -> Self:
        """Take a lattice surface's coefficients, without those that the reading kernel wipes out."""
        design = surface.design
        if not isinstance(design, LatticeDesign):
            raise TypeError("a lattice surface is needed")
        order = [*(a for a in range(surface.dimension) if a != response), response]
        scaled = design.frequencies / design.bandwidth
        kept = _let_through(scaled, surface.read_bandwidth)
        return cls(
            tuple(surface.columns[a] for a in order),
            surface.lower[order],
            surface.upper[order],
            surface.read_bandwidth[order],
            (3 * design.read_ratio * design.bandwidth)[order],
            scaled[kept][:, order],
            surface.phi[kept],
            surface.part_variance[kept],
            design.volume,
            surface.n_effective,
        )

    def wider(self, factor: float) -> Self:
        """Return the same read at a wider bandwidth, without the frequencies that this wipes out."""
        bandwidth = factor * self.bandwidth
        kept = _let_through(self.frequencies, bandwidth)
        return replace(
            self,
            bandwidth=bandwidth,
            frequencies=self.frequencies[kept],
            phi=self.phi[kept],
            part_variance=self.part_variance[kept],
        )

    @property
    def predictors(self) -> int:
        """Number of predictors p."""
        return len(self.columns) - 1

    @property
    def centre(self) -> FloatArray:
        """Centre m of the predictors' box, (p,)."""
        return np.asarray((self.lower + self.upper)[:-1] / 2)

    @property
    def half_widths(self) -> FloatArray:
        """Half the sides of the predictors' box, (p,)."""
        return np.asarray((self.upper - self.lower)[:-1] / 2)


def _let_through(frequencies: FloatArray, bandwidth: FloatArray) -> BoolArray:
    """Return which frequencies (M, d) the sharpest kernel that is used, of .75 of the bandwidth, leaves."""
    exponent = 0.5 * np.sum((0.75 * frequencies * bandwidth) ** 2, axis=1)
    return np.asarray(exponent < -math.log(_NEGLIGIBLE))


class Rectangle(NamedTuple):
    """A box of predictors: `lower` and `upper`, both (p,)."""

    lower: FloatArray
    upper: FloatArray


class PlaneValue(NamedTuple):
    """Q at one plane: value, gradient (q,), Hessian (q, q); and the gradient's coefficients (q, M)."""

    value: float
    gradient: FloatArray
    hessian: FloatArray
    gradient_coefficients: ComplexArray


@dataclass(frozen=True, eq=False)
class PlaneIntegral:
    """Q for one window and one kernel of fixed bandwidth in the residual.

    Parameters
    ----------
    joint : JointSpectrum
    residual_bandwidth : float
        s, in units of the response.
    rectangles : tuple of Rectangle
        The window: disjoint boxes in the predictors' units.
    bandwidth : (p,) array
        h: of the kernel over predictors.
    order : {2, 4, 6}
        Of the kernel in the residual.
    """

    joint: JointSpectrum
    residual_bandwidth: float
    rectangles: tuple[Rectangle, ...]
    bandwidth: FloatArray
    order: int = 2

    @cached_property
    def _frequencies(self) -> tuple[FloatArray, FloatArray]:
        frequencies = self.joint.frequencies
        return np.ascontiguousarray(frequencies[:, :-1].T), np.ascontiguousarray(frequencies[:, -1])

    @cached_property
    def _base(self) -> ComplexArray:
        """Return weight, kernel over predictors, phase at the centre, and the residual kernel's series."""
        w, v = self._frequencies
        across = np.sum((w.T * self.bandwidth) ** 2, axis=1) / 2
        along = (self.residual_bandwidth * v) ** 2 / 2
        series = {2: 1.0, 4: 1 + along, 6: 1 + along + along**2 / 2}[self.order]
        phase = self.joint.half_widths @ w
        return np.asarray(2 / self.joint.volume * np.exp(-across - 1j * phase) * series)

    @property
    def _constant(self) -> float:
        area = sum(float(np.prod(r.upper - r.lower)) for r in self.rectangles)
        return area / self.joint.volume

    def at(self, plane: FloatArray) -> PlaneValue:
        """Return Q and its derivatives at a plane `(b_0, b_1, ..., b_p)`, b_0 the height at the centre."""
        common = self._common(plane)
        v = self._frequencies[1]
        p = plane.size - 1
        turn = -1j * v
        widening = [plane[1 + a] * self.bandwidth[a] ** 2 * v**2 for a in range(p)]
        zeroth, first, second = self._moments(plane)
        by_slope = [turn * first[a] + widening[a] * zeroth for a in range(p)]
        gradient = np.array([turn * zeroth, *by_slope]) * common
        hessian = np.empty((p + 1, p + 1))
        phi = common * self.joint.phi

        def entry(terms: ComplexArray) -> float:
            return float(np.real(terms @ phi))

        hessian[0, 0] = entry(turn**2 * zeroth)
        for a in range(p):
            hessian[0, 1 + a] = hessian[1 + a, 0] = entry(turn * by_slope[a])
            for b in range(a, p):
                terms = turn**2 * second[a][b] + turn * (widening[a] * first[b] + widening[b] * first[a])
                terms = terms + widening[a] * widening[b] * zeroth
                if a == b:
                    terms = terms + (self.bandwidth[a] * v) ** 2 * zeroth
                hessian[1 + a, 1 + b] = hessian[1 + b, 1 + a] = entry(terms)
        value = self._constant + entry(zeroth)
        return PlaneValue(value, np.real(gradient @ self.joint.phi), hessian, gradient)

    def profile(self, plane: FloatArray, offsets: FloatArray) -> tuple[FloatArray, ComplexArray]:
        """Return Q at heights moved by `offsets` (R,), the window kept, and its coefficients (R, M)."""
        common = self._common(plane) * self._moments(plane)[0]
        coefficients = common * np.exp(-1j * np.outer(offsets, self._frequencies[1]))
        return self._constant + np.real(coefficients @ self.joint.phi), coefficients

    def predictor_moments(self, plane: FloatArray) -> FloatArray:
        """Return the mean of `(1, x - m)(1, x - m)^T` over the density along the plane, (q, q).

        The density along a plane has spread by the kernel; what that adds to the squares is taken off.
        """
        common = self._common(plane) * self.joint.phi
        p = plane.size - 1
        zeroth, first, second = self._moments(plane)
        out = np.empty((p + 1, p + 1))
        out[0, 0] = np.real(common @ zeroth)
        for a in range(p):
            out[0, 1 + a] = out[1 + a, 0] = np.real(common @ first[a])
            for b in range(p):
                out[1 + a, 1 + b] = np.real(common @ second[a][b])
        for rectangle in self.rectangles:
            out += _uniform_moments(rectangle, self.joint.centre) / self.joint.volume
        out /= out[0, 0]
        pull = self.bandwidth**2 * plane[1:] / self.residual_bandwidth
        out[1:, 1:] -= np.diag(self.bandwidth**2) - np.outer(pull, pull)
        return out

    def noise_covariance(self, one: ComplexArray, two: ComplexArray | None = None) -> FloatArray:
        """Return the covariance, under the surface's noise, of `Re(one @ phi)` and `Re(two @ phi)`."""
        other = one if two is None else two
        return np.asarray(np.real((one * self.joint.part_variance) @ np.conj(other).T))

    def bend_noise(self, value: PlaneValue) -> float:
        """Return the noise standard deviation of the second derivative along the height."""
        v = self._frequencies[1]
        coefficients = -1j * v * value.gradient_coefficients[:1]
        return math.sqrt(float(self.noise_covariance(coefficients)[0, 0]))

    def _common(self, plane: FloatArray) -> ComplexArray:
        v = self._frequencies[1]
        wide = float(np.sum((plane[1:] * self.bandwidth) ** 2))
        height = plane[0] - self.joint.lower[-1]
        # In one exponent: for steep planes each part by itself leaves the range of floating point.
        narrowing = np.minimum(0.5 * (wide - self.residual_bandwidth**2) * v**2, _STEEPEST)
        return np.asarray(self._base * np.exp(-1j * v * height + narrowing))

    def _moments(
        self, plane: FloatArray
    ) -> tuple[ComplexArray, list[ComplexArray], list[list[ComplexArray]]]:
        """Return the integrals of 1, t_a and t_a t_b times `exp(-i (w + b v).t)` over the window."""
        w, v = self._frequencies
        p = plane.size - 1
        zeroth: ComplexArray = np.zeros(v.size, dtype=np.complex128)
        first = [np.zeros_like(zeroth) for _ in range(p)]
        second = [[np.zeros_like(zeroth) for _ in range(p)] for _ in range(p)]
        for rectangle in self.rectangles:
            ends = rectangle.lower - self.joint.centre, rectangle.upper - self.joint.centre
            axes = [
                interval_moments(w[a] + plane[1 + a] * v, float(ends[0][a]), float(ends[1][a]))
                for a in range(p)
            ]
            zeroth = zeroth + _product(axes, [0] * p)
            for a in range(p):
                first[a] = first[a] + _product(axes, [int(c == a) for c in range(p)])
                for b in range(p):
                    second[a][b] = second[a][b] + _product(axes, [(c == a) + (c == b) for c in range(p)])
        return zeroth, first, second


def interval_moments(theta: FloatArray, low: float, high: float) -> tuple[ComplexArray, ...]:
    """Return `int_low^high t^n exp(-i theta t) dt` for n = 0, 1, 2.

    About the middle these are spherical Bessel functions: `int_{-1}^1 P_n(t) exp(-ixt) dt = 2 (-i)^n j_n(x)`.
    """
    middle, half = (low + high) / 2, (high - low) / 2
    j0, j1, j2 = _spherical_bessel(theta * half)
    phase = np.exp(-1j * theta * middle)
    a0 = 2 * half * j0 * phase
    a1 = -2j * half**2 * j1 * phase
    a2 = 2 / 3 * half**3 * (j0 - 2 * j2) * phase
    return a0, a1 + middle * a0, a2 + 2 * middle * a1 + middle**2 * a0


def _spherical_bessel(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    near = np.flatnonzero(np.abs(x) < _SMALL)
    safe = x.copy()
    safe[near] = 1.0
    sine, cosine = np.sin(safe), np.cos(safe)
    j0 = sine / safe
    j1 = (j0 - cosine) / safe
    j2 = 3 * j1 / safe - j0
    t = x[near]
    q = t * t
    j0[near] = 1 - q / 6 * (1 - q / 20 * (1 - q / 42 * (1 - q / 72)))
    j1[near] = t / 3 * (1 - q / 10 * (1 - q / 28 * (1 - q / 54 * (1 - q / 88))))
    j2[near] = q / 15 * (1 - q / 14 * (1 - q / 36 * (1 - q / 66 * (1 - q / 104))))
    return j0, j1, j2


def _product(axes: list[tuple[ComplexArray, ...]], powers: list[int]) -> ComplexArray:
    out = axes[0][powers[0]]
    for axis, power in zip(axes[1:], powers[1:], strict=True):
        out = out * axis[power]
    return out


def _uniform_moments(rectangle: Rectangle, centre: FloatArray) -> FloatArray:
    """Return the integral of `(1, x - m)(1, x - m)^T` over a rectangle."""
    sides = rectangle.upper - rectangle.lower
    middle = np.concatenate([[1.0], (rectangle.lower + rectangle.upper) / 2 - centre])
    spread = np.diag(np.concatenate([[0.0], sides**2 / 12]))
    return np.asarray(float(np.prod(sides)) * (np.outer(middle, middle) + spread))
