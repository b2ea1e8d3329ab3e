"""Fit K Gaussian clusters of one common shape, or of own shapes, to a sketch, by penalised least squares.

Objective: half the squared residual in noise units, plus `sum_k |(c_k - m) / t|^2 / 2` (centres are thought
to be normal about the middle m with spread t, which keeps those that the release says little of from
running away), plus a weak ridge on the logarithm of the width. Minimised by Levenberg and Marquardt's method.

Shear: with `Prior.shear_freedom` the common covariance is `S L L^T S`, `L` unit lower triangular. Axes are
those of all the data, which clusters that are longer one way than the other need not share.

Own shapes: the covariance of cluster k is `S A_k A_k^T S`, `S` the common widths and `A_k` the identity plus
deviations (`shape_basis`), which the penalty takes to be normal about zero. Where the release says little of
shapes they stay common, whatever the noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from .cluster_sketch import ClusterSketch
from .mode_set import BoolArray
from .surfaces import FloatArray

_SMALL_GAIN = 0.02  # of the objective (half a chi-square): a step that gains less is the last
_LONGEST = 1.0  # step of a centre, in working units
_FATTEST = 0.5  # step of a log-width
_LEAST_WEIGHT, LARGEST_WEIGHT = 1e-4, 10.0  # the whole mass is 1, up to noise
NARROWEST, _WIDEST = 0.05, 2.0  # width, in spreads of all the data
_MOST_CHANGE = 0.3  # step of a deviation
_TRIALS = 6


@dataclass(frozen=True, eq=False)
class Clusters:
    """K clusters.

    Parameters
    ----------
    weights : (K,) array
        Mass of each, positive; not normalised.
    centres : (K, d) array
        In working units.
    log_widths : (d,) array
        Logarithms of the standard deviations that all clusters share, per axis.
    deviations : (K, B) array
        Of each cluster's shape from the common one, in `shape_basis`; without columns for a common shape.
    shear : (d (d - 1) / 2,) array
        What the common `L` has below its diagonal, row by row; empty where the axes are kept.
    """

    weights: FloatArray
    centres: FloatArray
    log_widths: FloatArray
    deviations: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    shear: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if self.deviations.size == 0:
            object.__setattr__(self, "deviations", np.zeros((self.weights.size, 0)))

    @property
    def count(self) -> int:
        """Number of clusters K."""
        return int(self.weights.size)

    def plus(self, weight: float, centre: FloatArray) -> Clusters:
        """Return these clusters and one more, of the common shape."""
        shapes = np.vstack([self.deviations, np.zeros((1, self.deviations.shape[1]))])
        centres = np.vstack([self.centres, centre])
        return replace(self, weights=np.append(self.weights, weight), centres=centres, deviations=shapes)

    def without(self, number: int) -> Clusters:
        """Return the clusters but one."""
        return self.only(np.arange(self.count) != number)

    def only(self, wanted: BoolArray) -> Clusters:
        """Return some of the clusters."""
        return replace(
            self,
            weights=self.weights[wanted],
            centres=self.centres[wanted],
            deviations=self.deviations[wanted],
        )

    def shaped(self) -> Clusters:
        """Return the same clusters with shapes of their own, not yet fitted."""
        count = len(shape_basis(self.log_widths.size))
        return replace(self, deviations=np.zeros((self.count, count)), shear=np.zeros(0))

    def sheared(self) -> Clusters:
        """Return the same clusters with a common shear that is to be fitted."""
        d = self.log_widths.size
        return replace(self, shear=np.zeros(d * (d - 1) // 2)) if self.shear.size == 0 else self

    @property
    def common(self) -> FloatArray:
        """The common `L`, (d, d)."""
        out = np.eye(self.log_widths.size)
        if self.shear.size:
            out[np.tril_indices(self.log_widths.size, -1)] = self.shear
        return out

    @property
    def common_variances(self) -> FloatArray:
        """Variances of the common shape along the axes, (d,)."""
        return np.asarray(np.exp(2 * self.log_widths) * np.sum(self.common**2, axis=1))

    @property
    def factors(self) -> FloatArray:
        """Roots `S A_k` of the clusters' covariances, (K, d, d)."""
        return np.asarray(np.exp(self.log_widths)[:, None] * _relative_factors(self))


@dataclass(frozen=True, eq=False)
class Prior:
    """What is thought of the clusters before the sketch is read.

    Parameters
    ----------
    middle, spread : (d,) arrays
        Mean and standard deviation of all the data, in working units.
    tightness : float
        Spread of the centres in units of `spread`.
    width : float
        Width of a cluster in units of `spread`, the middle of a wide ridge.
    width_freedom : float
        Standard deviation of the logarithm of the common width about `width`.
    axis_freedom : float
        Standard deviation of the log-widths of the axes about their common one; 0 keeps them in
        proportion to `spread`.
    shape_freedom : float
        Standard deviation of the deviations of own shapes.
    shear_freedom : float
        Standard deviation of the common shear; 0 keeps the axes.
    """

    middle: FloatArray
    spread: FloatArray
    tightness: float = 0.85
    width: float = 0.5
    width_freedom: float = 1.0
    axis_freedom: float = 0.0
    shape_freedom: float = 0.25
    shear_freedom: float = 0.0

    @property
    def centre_precision(self) -> FloatArray:
        """One over the variance of the centres per axis, (d,)."""
        return 1 / (self.tightness * self.spread) ** 2


@dataclass(frozen=True, eq=False)
class ClusterFit:
    """Fitted clusters with what is left of the sketch.

    Parameters
    ----------
    clusters : Clusters
    residual : (2, M) array
        In noise units.
    objective : float
    """

    clusters: Clusters
    residual: FloatArray
    objective: float


@lru_cache(maxsize=16)
def shape_basis(d: int) -> FloatArray:
    """Return the directions in which shapes deviate, (B, d, d) lower triangular matrices of norm one.

    They have trace zero, so that to first order all clusters keep one volume: a cluster free to be large
    takes the place of several.
    """
    out = []
    for i in range(1, d):
        diagonal = np.concatenate([np.ones(i), [-i], np.zeros(d - i - 1)])
        out.append(np.diag(diagonal / np.sqrt(i * (i + 1))))
    for row, column in zip(*np.tril_indices(d, -1), strict=True):
        below = np.zeros((d, d))
        below[row, column] = 1.0
        out.append(below)
    basis = np.array(out).reshape(-1, d, d)
    basis.setflags(write=False)
    return basis


def _relative_factors(clusters: Clusters) -> FloatArray:
    """Return `A_k`, (K, d, d)."""
    d = clusters.log_widths.size
    if clusters.deviations.shape[1] == 0:
        return np.broadcast_to(clusters.common, (clusters.count, d, d))
    return np.asarray(clusters.common + np.tensordot(clusters.deviations, shape_basis(d), axes=1))


def fading(sketch: ClusterSketch, clusters: Clusters) -> FloatArray:
    """Return how images of the common shape fade, over the noise's standard deviation, (M,)."""
    if clusters.shear.size == 0:
        exponent = np.exp(2 * clusters.log_widths) @ sketch.squares
    else:
        exponent = np.sum(_commonly_reached(sketch, clusters) ** 2, axis=0)
    return np.asarray(np.exp(-0.5 * exponent) * sketch.root)


def _commonly_reached(sketch: ClusterSketch, clusters: Clusters) -> FloatArray:
    """Return the frequencies in units of the common shape, `L^T S w`, (d, M)."""
    return np.asarray(clusters.common.T @ (np.exp(clusters.log_widths)[:, None] * sketch.frequencies))


def images(sketch: ClusterSketch, centres: FloatArray, fade: FloatArray) -> FloatArray:
    """Return the measurements of clusters of weight one whose images fade so, in noise units, (K, 2, M)."""
    phase = centres @ sketch.frequencies
    out = np.empty((centres.shape[0], 2, sketch.root.size))
    np.multiply(np.cos(phase), fade, out=out[:, 0])
    np.multiply(np.sin(phase), fade, out=out[:, 1])
    return out


def parts_of(sketch: ClusterSketch, clusters: Clusters) -> FloatArray:
    """Return the measurements of every cluster as if of weight one, in noise units, (K, 2, M)."""
    if clusters.deviations.shape[1] == 0:
        return images(sketch, clusters.centres, fading(sketch, clusters))
    reached = _reached(sketch, clusters)
    fade = np.exp(-0.5 * np.einsum("kjm,kjm->km", reached, reached)) * sketch.root
    phase = clusters.centres @ sketch.frequencies
    return np.stack([np.cos(phase) * fade, np.sin(phase) * fade], axis=1)


def _reached(sketch: ClusterSketch, clusters: Clusters) -> FloatArray:
    """Return the frequencies in units of every cluster's shape, `A_k^T S w`, (K, d, M)."""
    return np.asarray(clusters.factors.transpose(0, 2, 1) @ sketch.frequencies)


def evaluate(sketch: ClusterSketch, prior: Prior, clusters: Clusters) -> tuple[ClusterFit, FloatArray]:
    """Return the fit that these clusters are, and their images (K, 2, M)."""
    parts = parts_of(sketch, clusters)
    residual = sketch.target - np.tensordot(clusters.weights, parts, axes=1)
    flat = residual.ravel()
    value = 0.5 * float(flat @ flat) + _penalty(prior, clusters)
    return ClusterFit(clusters, residual, value), parts


def refit(sketch: ClusterSketch, prior: Prior, start: Clusters, most: int = 30) -> ClusterFit:
    """Take at most so many of Levenberg and Marquardt's steps; the objective never rises."""
    if prior.shear_freedom > 0 and start.deviations.shape[1] == 0:
        start = start.sheared()
    fit, parts = evaluate(sketch, prior, start)
    damping = 1e-2
    for _ in range(most):
        clusters = fit.clusters
        jacobian = derivatives(sketch, clusters, parts)
        normal, pull = normal_equations(jacobian, prior, clusters)
        slope = jacobian @ fit.residual.ravel() - pull
        scale = np.diag(normal).copy()
        for _ in range(_TRIALS):
            step = np.asarray(np.linalg.solve(normal + np.diag(damping * scale + 1e-9), slope))
            trial, trial_parts = evaluate(sketch, prior, _moved(clusters, step, sketch, prior))
            if trial.objective <= fit.objective:
                break
            damping *= 8
        else:
            break
        gain = fit.objective - trial.objective
        fit, parts = trial, trial_parts
        damping = max(damping / 8, 1e-7)
        if gain < _SMALL_GAIN:
            break
    return fit


def derivatives(sketch: ClusterSketch, clusters: Clusters, parts: FloatArray) -> FloatArray:
    """Return the derivatives of the fitted measurements, (P, 2M).

    Parameters in the order: weights; centres, axis after axis; log-widths; shear; deviations, one of the
    basis after the other.
    """
    d, k = sketch.dimension, clusters.count
    m = sketch.root.size
    shapes, shears = clusters.deviations.shape[1], clusters.shear.size
    out = np.empty((k + k * d + d + shears + k * shapes, 2, m))
    out[:k] = parts
    weighted = clusters.weights[:, None, None] * parts
    turned = np.stack([-weighted[:, 1], weighted[:, 0]], axis=1)
    for a in range(d):
        np.multiply(turned, sketch.frequencies[a], out=out[k + a * k : k + (a + 1) * k])
    if shapes:
        _shape_derivatives(sketch, clusters, weighted, out[k + k * d :])
    elif shears:
        _shear_derivatives(sketch, clusters, weighted.sum(axis=0), out[k + k * d :])
    else:
        whole = weighted.sum(axis=0)
        squared = np.exp(2 * clusters.log_widths)
        np.multiply(whole, (-squared[:, None] * sketch.squares)[:, None], out=out[k + k * d :])
    return out.reshape(-1, 2 * m)


def _shear_derivatives(sketch: ClusterSketch, clusters: Clusters, whole: FloatArray, out: FloatArray) -> None:
    """Fill in the derivatives by log-widths and shear of `exp(-|u|^2 / 2)`, `u = L^T S w`."""
    d = sketch.dimension
    scaled = np.exp(clusters.log_widths)[:, None] * sketch.frequencies
    reached = _commonly_reached(sketch, clusters)
    along = -scaled * (clusters.common @ reached)
    np.multiply(whole, along[:, None], out=out[:d])
    for place, (i, j) in enumerate(zip(*np.tril_indices(d, -1), strict=True)):
        np.multiply(whole, -scaled[i] * reached[j], out=out[d + place])


def _shape_derivatives(
    sketch: ClusterSketch, clusters: Clusters, weighted: FloatArray, out: FloatArray
) -> None:
    """Fill in the derivatives by log-widths and deviations of `exp(-|u|^2 / 2)`, `u = A_k^T S w`."""
    d, k = sketch.dimension, clusters.count
    basis, factors = shape_basis(d), _relative_factors(clusters)
    scaled = np.exp(clusters.log_widths)[:, None] * sketch.frequencies
    reached = _reached(sketch, clusters)
    for a in range(d):
        slope = scaled[a] * np.einsum("kj,kjm->km", factors[:, a], reached)
        out[a] = -np.sum(weighted * slope[:, None], axis=0)
    for b, direction in enumerate(basis):
        slope = np.zeros((k, sketch.root.size))
        for i, j in zip(*np.nonzero(direction), strict=True):
            slope -= direction[i, j] * scaled[i] * reached[:, j]
        np.multiply(weighted, slope[:, None], out=out[d + b * k : d + (b + 1) * k])


def normal_equations(jacobian: FloatArray, prior: Prior, clusters: Clusters) -> tuple[FloatArray, FloatArray]:
    """Return the normal matrix with the penalty's second derivatives, and the penalty's gradient (P,)."""
    normal = jacobian @ jacobian.T
    k, d = clusters.centres.shape
    pull = np.zeros(normal.shape[0])
    at = slice(k, k + k * d)
    precision = np.repeat(prior.centre_precision, k)
    normal[np.arange(k, k + k * d), np.arange(k, k + k * d)] += precision
    pull[at] = precision * (clusters.centres - prior.middle).T.ravel()
    ridge = _width_matrix(prior, d)
    first, last = k + k * d + d, k + k * d + d + clusters.shear.size
    widths, shear, own = slice(k + k * d, first), np.arange(first, last), np.arange(last, normal.shape[0])
    normal[widths, widths] += ridge
    pull[widths] = ridge @ _relative_widths(prior, clusters)
    if shear.size:
        normal[shear, shear] += prior.shear_freedom**-2
        pull[shear] = clusters.shear / prior.shear_freedom**2
    normal[own, own] += prior.shape_freedom**-2
    pull[own] = clusters.deviations.T.ravel() / prior.shape_freedom**2
    return normal, pull


def _relative_widths(prior: Prior, clusters: Clusters) -> FloatArray:
    return np.asarray(clusters.log_widths - np.log(prior.width * prior.spread))


def _width_matrix(prior: Prior, d: int) -> FloatArray:
    mean = np.full((d, d), 1 / d)
    between = max(prior.axis_freedom, 1e-4) ** -2
    return np.asarray(mean / d / prior.width_freedom**2 + between * (np.eye(d) - mean))


def _penalty(prior: Prior, clusters: Clusters) -> float:
    away = (clusters.centres - prior.middle) ** 2 @ prior.centre_precision
    relative = _relative_widths(prior, clusters)
    ridge = float(relative @ _width_matrix(prior, relative.size) @ relative)
    strange = float(np.sum(clusters.deviations**2)) / prior.shape_freedom**2
    if clusters.shear.size:
        strange += float(np.sum(clusters.shear**2)) / prior.shear_freedom**2
    return 0.5 * (float(away.sum()) + ridge + strange)


def _moved(clusters: Clusters, step: FloatArray, sketch: ClusterSketch, prior: Prior) -> Clusters:
    """Return the clusters after a step, shortened and kept inside what is allowed."""
    k, d = clusters.centres.shape
    centre_step = np.clip(step[k : k + k * d].reshape(d, k).T, -_LONGEST, _LONGEST)
    width_step = np.clip(step[k + k * d : k + k * d + d], -_FATTEST, _FATTEST)
    last = k + k * d + d + clusters.shear.size
    shear_step = np.clip(step[k + k * d + d : last], -_MOST_CHANGE, _MOST_CHANGE)
    shape_step = step[last:].reshape(clusters.deviations.shape[1], k).T
    shape_step = np.clip(shape_step, -_MOST_CHANGE, _MOST_CHANGE)
    low, high = np.log(NARROWEST * prior.spread), np.log(_WIDEST * prior.spread)
    return Clusters(
        np.clip(clusters.weights + step[:k], _LEAST_WEIGHT, LARGEST_WEIGHT),
        sketch.inside(clusters.centres + centre_step),
        np.clip(clusters.log_widths + width_step, low, high),
        clusters.deviations + shape_step,
        clusters.shear + shear_step,
    )
