"""Fit a sum of Gaussian bumps to the coefficients of a lattice surface.

The released coefficients are a linear sketch of the data with independent noise of known variance:
a bump of widths s at c has the image `exp(i w.c - |s w|^2 / 2)`, so a weighted least squares fit is
a fit to the density itself and undoes the smoothing of the kernel. Bumps are added one at a time
where the residual stands clear of privacy and sampling noise (greedy pursuit), and all are refitted
by Levenberg and Marquardt's method after each. Working units as in `bump_mixtures`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .bump_mixtures import Bumps
from .designs import LatticeDesign
from .fourier_sums import ComplexArray, half_lattice_on_grid, too_large_for_products
from .mode_set import IntArray
from .spectral_surfaces import LatticeSurface
from .surfaces import FloatArray

_CUT = 3.5  # frequencies above it hold little but noise
_STEPS = (0.5, 0.5, 0.7)  # of the grid on which fields are read, in bandwidths, by dimension
_WIDTHS = np.array([0.3, 0.7, 1.2, 2.0])  # of new bumps
_NARROWEST, _WIDEST = np.log(0.15), np.log(4.0)
_BETWEEN_BUMPS, _BETWEEN_AXES = 0.5, 0.35  # ridge: sds of log-widths about their means
_CLEAR = 3.5  # sds by which a residual must stand out to earn a bump
_EXTRA_BUMPS = 6  # bumps beyond one per start
_LEAST_DENSITY = 0.05  # of a typical record's, in the sampling noise
_LEAST_WEIGHT = 1e-4
_SMALL_GAIN = 0.02  # of the objective (half a chi-square): a refit that gains less is done
_FIRST, _BETWEEN, _LAST = 8, 3, 10  # most refitting steps
_LONGEST = 1.0  # step of a centre
_FATTEST = 0.7  # step of a log-width


@dataclass(frozen=True, eq=False)
class Sketch:
    """The low frequencies of a lattice surface with the noise that weighs them.

    Parameters
    ----------
    surface : LatticeSurface
    kept : (M,) int array
        Positions of the frequencies among the surface's pairs.
    axes : tuple of arrays
        Working frequencies per axis of the cropped half lattice.
    flat : (M,) int array
        Flat positions of the kept frequencies in the cropped half lattice.
    """

    surface: LatticeSurface
    kept: IntArray
    axes: tuple[FloatArray, ...]
    flat: IntArray

    @classmethod
    def of(cls, surface: LatticeSurface) -> Sketch:
        """Crop the lattice of a surface."""
        design = surface.design
        if not isinstance(design, LatticeDesign):
            raise TypeError("a sketch needs a surface on a lattice")
        most = [
            min(int(j), int(_CUT * side / (2 * np.pi)))
            for j, side in zip(design.half_sizes, design.sides, strict=True)
        ]
        axes = [design.axis_frequencies[0][: most[0] + 1]]
        for a in range(1, design.dimension):
            middle = int(design.half_sizes[a])
            axes.append(design.axis_frequencies[a][middle - most[a] : middle + most[a] + 1])
        kept = np.flatnonzero(np.sum(design.frequencies**2, axis=1) <= _CUT**2)
        place = np.rint(design.frequencies[kept] * design.sides / (2 * np.pi)).astype(np.int64)
        place[:, 1:] += np.array(most[1:], dtype=np.int64)
        flat = np.ravel_multi_index(tuple(place.T), tuple(axis.size for axis in axes))
        return cls(surface, kept, tuple(axes), np.asarray(flat, dtype=np.int64))

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return len(self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the cropped half lattice."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def frequencies(self) -> FloatArray:
        """Working frequencies, (d, M)."""
        return np.ascontiguousarray(self.surface.design.frequencies[self.kept].T)

    @cached_property
    def squares(self) -> FloatArray:
        """Squared working frequencies per axis, (d, M)."""
        return self.frequencies**2

    @cached_property
    def phi(self) -> ComplexArray:
        """Released coefficients, (M,)."""
        return self.surface.phi[self.kept]

    @cached_property
    def privacy(self) -> FloatArray:
        """Variance of the privacy noise in each part of the coefficients, (M,)."""
        return self.surface.part_variance[self.kept]

    @cached_property
    def typical_density(self) -> float:
        """Smoothed density at a typical record times the volume of the torus: debiased `V int p p_h`."""
        power = np.abs(self.phi) ** 2 - 2 * self.privacy
        return 1 + 2 * max(float(np.exp(-0.5 * self.squares.sum(axis=0)) @ power), 0.0)

    @cached_property
    def root_weights(self) -> FloatArray:
        """One over the standard deviation that weighs each part of the coefficients, (M,).

        Privacy noise, and sampling noise as white noise of the strength that it has at a typical
        record. The latter grows like `exp(|w|^2 / 2)`: a fit to the smoothed density, as mode
        seeking on the surface is, nearly efficient where sampling dominates. (White sampling
        noise raised the error by a quarter in the tuning runs.)
        """
        n = max(self.surface.n_effective, 1.0)
        sampling = self.typical_density / (2 * n) * np.exp(0.5 * self.squares.sum(axis=0))
        return np.asarray(1 / np.sqrt(np.maximum(self.privacy + sampling, 1e-16)))

    @cached_property
    def grid(self) -> tuple[FloatArray, ...]:
        """Axes of the grid over the box on which fields are read."""
        step = _STEPS[self.dimension - 1]
        return tuple(
            np.linspace(0.0, width, int(np.ceil(width / step)) + 1) for width in self.surface.design.widths
        )

    @cached_property
    def _phases(self) -> list[ComplexArray]:
        pairs = zip(self.grid, self.axes, strict=True)
        return [np.exp(-1j * np.multiply.outer(points, axis)) for points, axis in pairs]

    def fields(self, coefficients: ComplexArray) -> FloatArray:
        """Return `Re sum_j c_j exp(-i w_j.x)` on the grid for each row of (q, M): shape (q, nodes)."""
        rows = coefficients.shape[0]
        dense = np.zeros((rows, int(np.prod(self.shape))), dtype=np.complex128)
        dense[:, self.flat] = coefficients
        value = dense.reshape(rows, *self.shape)
        if too_large_for_products(self.grid, self.axes):
            steps = [axis[-1] - axis[-2] for axis in self.axes]
            angles = [step * points for step, points in zip(steps, self.grid, strict=True)]
            return np.stack([half_lattice_on_grid(row, angles).ravel() for row in value])
        if self.dimension > 1:
            value = value @ self._phases[-1].T
        for axis in range(self.dimension - 2, 0, -1):
            value = np.moveaxis(np.tensordot(value, self._phases[axis], axes=([axis + 1], [1])), -1, axis + 1)
        value = value.reshape(rows, value.shape[1], -1)
        first = self._phases[0]
        real = np.ascontiguousarray(first.real) @ value.real - np.ascontiguousarray(first.imag) @ value.imag
        return np.asarray(real.reshape(rows, -1))

    def images(self, bumps: Bumps) -> ComplexArray:
        """Return the coefficients of bumps of weight one, (K, M)."""
        value = np.exp(1j * np.multiply.outer(bumps.centres[:, 0], self.axes[0]))
        for a in range(1, self.dimension):
            part = np.exp(1j * np.multiply.outer(bumps.centres[:, a], self.axes[a]))
            value = (value[:, :, None] * part[:, None, :]).reshape(bumps.count, -1)
        fading = np.exp(-0.5 * (np.exp(2 * bumps.log_widths) @ self.squares))
        return np.asarray(np.take(value, self.flat, axis=1) * fading)


@dataclass(frozen=True, eq=False)
class BumpFit:
    """A fitted sum of bumps.

    Parameters
    ----------
    sketch : Sketch
        What was fitted.
    bumps : Bumps
    residual : (M,) complex array
        Of the fit, in weighted units.
    steps : int
        Refitting steps taken.
    """

    sketch: Sketch
    bumps: Bumps
    residual: ComplexArray
    steps: int

    def responses(self) -> ComplexArray:
        """Return how the parameters move with the coefficients, (P, M): `d theta = Re(conj(R) d phi)`.

        Gauss and Newton's linearisation at the fit; parameters ordered as in `gradient_responses`.
        """
        jacobian = _jacobian(self.sketch, self.bumps, self.sketch.images(self.bumps))
        normal, _ = _normal_equations(jacobian, self.bumps)
        normal += np.diag(1e-9 * np.diag(normal) + 1e-12)
        moved = np.linalg.solve(normal, jacobian)
        return np.asarray(moved.view(np.complex128) * self.sketch.root_weights)


def fit_bumps(surface: LatticeSurface, starts: FloatArray, variances: FloatArray) -> BumpFit:
    """Fit a sum of bumps to the coefficients of a surface.

    Parameters
    ----------
    surface : LatticeSurface
        Released, or a plain kernel density estimate on a lattice.
    starts : (k, d) array
        First centres: the surface's modes, in working units.
    variances : (k,) array
        First squared widths, in squared working units.

    Returns
    -------
    BumpFit
        Starts whose bump lost its weight are gone. At most six bumps beyond one per start.
    """
    sketch = Sketch.of(surface)
    search = _Search(sketch)
    bumps, residual, steps = _first(sketch, starts, variances)
    most = starts.shape[0] + _EXTRA_BUMPS
    while bumps.count < most:
        found = search.largest(residual)
        if found is None:
            break
        weight, centre, log_width = found
        added = bumps.plus(np.array([weight]), centre[None, :], np.full((1, sketch.dimension), log_width))
        bumps, residual, taken = _refit(sketch, added, _BETWEEN)
        steps += taken
        kept = bumps.weights > _LEAST_WEIGHT
        if not kept.all():
            bumps = bumps.only(kept)
            residual = _residual(sketch, bumps)[0]
            if not kept[-1]:
                break
    if bumps.count:
        bumps, residual, taken = _refit(sketch, bumps, _LAST)
        steps += taken
    return BumpFit(sketch, bumps, residual, steps)


def _first(sketch: Sketch, starts: FloatArray, variances: FloatArray) -> tuple[Bumps, ComplexArray, int]:
    bumps = Bumps.none(sketch.dimension)
    if starts.shape[0] == 0:
        return bumps, sketch.phi * sketch.root_weights, 0
    log_widths = np.clip(0.5 * np.log(variances), np.log(_WIDTHS[0]), np.log(_WIDTHS[-1]))
    bumps = Bumps(np.ones(starts.shape[0]), starts, np.repeat(log_widths[:, None], sketch.dimension, axis=1))
    images = np.ascontiguousarray(sketch.images(bumps) * sketch.root_weights).view(np.float64)
    target = (sketch.phi * sketch.root_weights).view(np.float64)
    normal = images @ images.T
    normal += np.diag(1e-6 * np.diag(normal))
    weights = np.maximum(np.linalg.solve(normal, images @ target), 1e-3)
    return _refit(sketch, Bumps(weights, bumps.centres, bumps.log_widths), _FIRST)


class _Search:
    """Where a new bump would gain most: matched filters of four widths over a grid."""

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        root = sketch.root_weights
        fading = np.exp(-0.5 * np.multiply.outer(_WIDTHS**2, sketch.squares.sum(axis=0)))
        self.energy = np.sqrt(np.sum((fading * root) ** 2, axis=1))
        self.filters = fading * root / self.energy[:, None]
        power = (self.filters * root) ** 2
        smooth = np.exp(-0.5 * sketch.squares.sum(axis=0)) * sketch.phi
        local = np.maximum(1 + 2 * sketch.fields(smooth[None])[0], _LEAST_DENSITY * sketch.typical_density)
        n = max(sketch.surface.n_effective, 1.0)
        # The noise of a filter at a place: privacy's is the same everywhere, sampling's is local.
        self.sd = np.sqrt((power @ sketch.privacy)[:, None] + (power.sum(axis=1) / (2 * n))[:, None] * local)

    def largest(self, residual: ComplexArray) -> tuple[float, FloatArray, float] | None:
        """Return weight, centre and log-width of the clearest bump; None when none is clear of noise."""
        score = self.sketch.fields(self.filters * residual) / self.sd
        width, node = np.unravel_index(int(np.argmax(score)), score.shape)
        if not score[width, node] > _CLEAR:
            return None
        place = np.unravel_index(int(node), tuple(axis.size for axis in self.sketch.grid))
        centre = np.array([axis[i] for axis, i in zip(self.sketch.grid, place, strict=True)])
        weight = score[width, node] * self.sd[width, node] / self.energy[width]
        return float(weight), centre, float(np.log(_WIDTHS[width]))


def _residual(sketch: Sketch, bumps: Bumps) -> tuple[ComplexArray, ComplexArray]:
    """Return the weighted residual (M,) and the images (K, M)."""
    images = sketch.images(bumps)
    return (sketch.phi - bumps.weights @ images) * sketch.root_weights, images


def _penalty(bumps: Bumps) -> float:
    means = bumps.log_widths.mean(axis=1)
    between = float(np.sum((means - means.mean()) ** 2)) / _BETWEEN_BUMPS**2
    return between + float(np.sum((bumps.log_widths - means[:, None]) ** 2)) / _BETWEEN_AXES**2


def _penalty_matrix(bumps: Bumps) -> FloatArray:
    """Return the matrix of the ridge's quadratic form in the log-widths, axis after axis."""
    k, d = bumps.log_widths.shape
    mean = np.tile(np.eye(k) / d, (1, d))
    centred = mean - mean.mean(axis=0)
    rest = np.eye(k * d) - np.tile(mean, (d, 1))
    return np.asarray(centred.T @ centred / _BETWEEN_BUMPS**2 + rest.T @ rest / _BETWEEN_AXES**2)


def _jacobian(sketch: Sketch, bumps: Bumps, images: ComplexArray) -> NDArray[np.float64]:
    """Return the derivatives of the weighted coefficients, real and imaginary parts in turn: (P, 2M)."""
    d, k = sketch.dimension, bumps.count
    out = np.empty((1 + 2 * d, k, sketch.flat.size), dtype=np.complex128)
    np.multiply(images, sketch.root_weights, out=out[0])
    weighted = bumps.weights[:, None] * out[0]
    squared = np.exp(2 * bumps.log_widths)
    for a in range(d):
        np.multiply(weighted, 1j * sketch.frequencies[a], out=out[1 + a])
        np.multiply(weighted, np.multiply.outer(-squared[:, a], sketch.squares[a]), out=out[1 + d + a])
    return out.reshape((1 + 2 * d) * k, -1).view(np.float64)


def _normal_equations(jacobian: FloatArray, bumps: Bumps) -> tuple[FloatArray, FloatArray]:
    """Return the normal matrix with the ridge (P, P), and the ridge's gradient in the log-widths."""
    normal = jacobian @ jacobian.T
    penalty = _penalty_matrix(bumps)
    size = penalty.shape[0]
    normal[-size:, -size:] += penalty
    return normal, penalty @ bumps.log_widths.T.ravel()


def _moved(bumps: Bumps, step: FloatArray, widths: FloatArray) -> Bumps:
    """Return the bumps after a step, shortened and kept inside what is allowed."""
    k, d = bumps.centres.shape
    centre_step = np.clip(step[k : k + k * d].reshape(d, k).T, -_LONGEST, _LONGEST)
    width_step = np.clip(step[k + k * d :].reshape(d, k).T, -_FATTEST, _FATTEST)
    return Bumps(
        np.maximum(bumps.weights + step[:k], 1e-5),
        np.clip(bumps.centres + centre_step, -0.5, widths + 0.5),
        np.clip(bumps.log_widths + width_step, _NARROWEST, _WIDEST),
    )


def _objective(residual: ComplexArray, bumps: Bumps) -> float:
    parts = residual.view(np.float64)
    return 0.5 * float(parts @ parts) + 0.5 * _penalty(bumps)


def _refit(sketch: Sketch, bumps: Bumps, most: int) -> tuple[Bumps, ComplexArray, int]:
    """Take at most so many of Levenberg and Marquardt's steps; the objective never rises."""
    residual, images = _residual(sketch, bumps)
    now = _objective(residual, bumps)
    damping, taken = 1e-2, 0
    widths = sketch.surface.design.widths
    for _ in range(most):
        taken += 1
        jacobian = _jacobian(sketch, bumps, images)
        normal, pull = _normal_equations(jacobian, bumps)
        slope = jacobian @ residual.view(np.float64)
        slope[-pull.size :] -= pull
        scale = np.diag(normal).copy()
        for _ in range(6):
            step = np.asarray(np.linalg.solve(normal + np.diag(damping * scale + 1e-9), slope))
            trial = _moved(bumps, step, widths)
            trial_residual, trial_images = _residual(sketch, trial)
            then = _objective(trial_residual, trial)
            if then <= now:
                break
            damping *= 8
        else:
            break
        gain, now = now - then, then
        bumps, residual, images = trial, trial_residual, trial_images
        damping = max(damping / 8, 1e-7)
        if gain < _SMALL_GAIN:
            break
    return bumps, residual, taken


__all__ = ["BumpFit", "Sketch", "fit_bumps"]
