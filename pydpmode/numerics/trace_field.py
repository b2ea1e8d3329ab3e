"""A smooth field through noisy densities and gradients: Gaussian-process regression on a trace.

Every number that enters is already noisy, with a known covariance, so this is plain estimation. The
prior is a stationary field with a squared-exponential covariance. A kernel density is the kernel
smoothed over records, so a covariance narrower than the kernel with itself (`sqrt 2` bandwidths) is
impossible; wider ones are chosen by marginal likelihood when the density is smoother than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from .noisy_trace import NoisyTrace
from .surfaces import FloatArray

_LENGTHS = (math.sqrt(2.0), 2.0, 2.0 * math.sqrt(2.0))  # bandwidths
_WIDER = 4.0  # factor on the prior variance that is tried for the best length
_MOST_VALUES = 4000  # of the regression; earlier rounds are left out beyond it
_JITTERS = (1e-10, 1e-8, 1e-6, 1e-4)  # of each statistic's variance
_AT_ONCE = 4096  # points whose values are computed together
_APART = 0.25  # bandwidths between the gradients that a curvature's error is taken from


@dataclass(frozen=True, eq=False)
class TraceField:
    """Posterior of the density around the ascents, in bandwidth units.

    Use `TraceField.fit(trace)`.

    Parameters
    ----------
    points : (m, d) array
        Where statistics were seen.
    length, variance : float
        Of the prior: correlation length in bandwidths, and the square of the density's size.
    cholesky : (m (1+d), m (1+d)) array
        Of the covariance of everything seen: values first, then each component of the gradients.
    weights : (m (1+d),) array
        Of the posterior mean.
    """

    points: FloatArray
    length: float
    variance: float
    cholesky: FloatArray
    weights: FloatArray

    @classmethod
    def fit(cls, trace: NoisyTrace) -> Self:
        """Fit the field to a trace that has densities and gradients."""
        from scipy.linalg import solve_triangular  # imported here: slow to import

        d = trace.dimension
        most = max(1, _MOST_VALUES // (trace.count * (1 + d)))
        rounds = range(max(0, trace.rounds - most), trace.rounds)
        points = trace.positions[rounds.start : rounds.stop].reshape(-1, d)
        seen = np.concatenate(
            [
                trace.densities[rounds.start :].ravel(),
                *(trace.gradients[rounds.start :, :, a].ravel() for a in range(d)),
            ]
        )
        noise = _noise(trace, rounds)
        density = trace.densities[rounds.start :]
        size = max(float(np.mean(density**2)) - trace.density_sd**2, 0.1 * trace.density_sd**2)
        size = max(size, np.finfo(float).tiny ** 0.5)

        @cache
        def solve(length: float, variance: float) -> tuple[float, FloatArray, FloatArray]:
            lower = _cholesky(_covariance(points, points, length, variance) + noise)
            half = solve_triangular(lower, seen, lower=True)
            return -0.5 * float(half @ half) - float(np.log(np.diag(lower)).sum()), lower, half

        length = max(_LENGTHS, key=lambda tried: solve(tried, size)[0])
        variance = max((size, _WIDER * size), key=lambda tried: solve(length, tried)[0])
        _, lower, half = solve(length, variance)
        return cls(points, length, variance, lower, solve_triangular(lower.T, half, lower=False))

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return int(self.points.shape[1])

    def derivatives(self, at: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the posterior mean of density, gradient and Hessian at `at` (q, d)."""
        count, d = self.points.shape
        square = self.length**2
        first, others = self.weights[:count], self.weights[count:].reshape(d, count).T
        offset = (at[:, None, :] - self.points[None]) / square
        k = self.variance * np.exp(-0.5 * square * np.sum(offset**2, axis=2))
        # The mean is sum_n k (w_n + offset.W_n); differentiate the product.
        inner = k * (first + np.einsum("qna,na->qn", offset, others))
        value = inner.sum(axis=1)
        gradient = -np.einsum("qn,qna->qa", inner, offset) + k @ others / square
        cross = -np.einsum("qn,qna,nb->qab", k, offset, others, optimize=True) / square
        hessian = np.einsum("qn,qna,qnb->qab", inner, offset, offset, optimize=True)
        hessian += cross + np.swapaxes(cross, 1, 2) - np.eye(d) * (value / square)[:, None, None]
        return value, gradient, hessian

    def values(self, at: FloatArray) -> FloatArray:
        """Return the posterior mean of the density at `at` (q, d), (q,): cheaper than `derivatives`."""
        count, d = self.points.shape
        square = self.length**2
        others = self.weights[count:].reshape(d, count).T / square
        first = self.weights[:count] - np.sum(self.points * others, axis=1)
        # The mean is sum_n k (w_n + (x - X_n).W_n): one matrix product.
        columns = np.column_stack([first, others])
        out = np.empty(at.shape[0])
        for start in range(0, at.shape[0], _AT_ONCE):
            part = at[start : start + _AT_ONCE]
            half = np.sum(part**2, axis=1)[:, None] / 2 + np.sum(self.points**2, axis=1) / 2
            k = np.exp(np.minimum(part @ self.points.T - half, 0.0) / square)
            product = k @ columns
            out[start : start + _AT_ONCE] = product[:, 0] + np.sum(part * product[:, 1:], axis=1)
        return out * self.variance

    def covariance(self, at: FloatArray) -> FloatArray:
        """Return the posterior covariance of (values, gradient components) at `at` (q, d): q (1+d) square."""
        from scipy.linalg import solve_triangular

        cross = _covariance(self.points, at, self.length, self.variance)
        half = solve_triangular(self.cholesky, cross, lower=True)
        prior = _covariance(at, at, self.length, self.variance)
        return np.asarray(prior - half.T @ half)

    def value_variance(self, at: FloatArray) -> FloatArray:
        """Return the posterior variance of the density at `at` (q, d), (q,)."""
        return np.maximum(np.diag(self.covariance(at))[: at.shape[0]], 0.0)

    def drop_variance(self, top: FloatArray, bottom: FloatArray) -> float:
        """Return the posterior variance of the difference of the density at two points (d,)."""
        both = self.covariance(np.array([top, bottom]))[:2, :2]
        return max(float(both[0, 0] + both[1, 1] - 2 * both[0, 1]), 0.0)

    def gradient_covariance(self, at: FloatArray) -> FloatArray:
        """Return the posterior covariance of the gradient at one point (d,), (d, d)."""
        return self.covariance(at[None])[1:, 1:]

    def curvature_variance(self, at: FloatArray, direction: FloatArray) -> float:
        """Return the posterior variance of the second derivative at a point along a unit direction.

        From the gradients a quarter bandwidth apart: the field is smooth on that scale.
        """
        ends = np.array([at + _APART / 2 * direction, at - _APART / 2 * direction])
        joint = self.covariance(ends)
        d = self.dimension
        # Rows: two values, then each component at both ends.
        pick = np.zeros((1 + d, 2))
        pick[1:, 0], pick[1:, 1] = direction / _APART, -direction / _APART
        flat = pick.ravel()
        return max(float(flat @ joint @ flat), 0.0)

    def climb(self, starts: FloatArray, size: FloatArray, *, steps: int = 60) -> FloatArray:
        """Climb the posterior mean from `starts` (q, d) inside the box [0, size]; return the ends."""
        place = np.array(starts, dtype=np.float64)
        low = 0.02 * math.sqrt(self.variance)
        for _ in range(steps):
            value, gradient, hessian = self.derivatives(place)
            curvature, axes = np.linalg.eigh(-hessian)
            # Newton's step with the signs of the curvatures made positive: uphill everywhere.
            bend = np.maximum(np.abs(curvature), 0.05 * np.maximum(value, low)[:, None])
            move = np.einsum("qab,qb->qa", axes, np.einsum("qab,qa->qb", axes, gradient) / bend)
            length = np.linalg.norm(move, axis=1, keepdims=True)
            move *= np.minimum(1.0, 0.5 / np.maximum(length, 1e-300))
            new = np.clip(place + move, 0.0, size)
            moved = float(np.max(np.abs(new - place), initial=0.0))
            place = new
            if moved < 1e-7:
                break
        return place


def _cholesky(matrix: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor; nearly noiseless statistics get the least jitter that works."""
    from scipy.linalg import LinAlgError, cholesky

    diagonal = np.diag(matrix).copy()
    for share in _JITTERS:
        try:
            return np.asarray(cholesky(matrix + np.diag(share * diagonal), lower=True))
        except LinAlgError:
            continue
    return np.diag(np.sqrt(diagonal))


def _covariance(one: FloatArray, two: FloatArray, length: float, variance: float) -> FloatArray:
    """Return the prior covariance of (values, gradient components) at two sets of points."""
    d, n, m = one.shape[1], one.shape[0], two.shape[0]
    square = length**2
    offset = [(one[:, a, None] - two[:, a]) / square for a in range(d)]
    k = variance * np.exp(-0.5 * square * sum((o * o for o in offset[1:]), offset[0] * offset[0]))
    out = np.empty((n * (1 + d), m * (1 + d)))
    out[:n, :m] = k
    for a in range(d):
        rows, columns = slice((1 + a) * n, (2 + a) * n), slice((1 + a) * m, (2 + a) * m)
        slope = offset[a] * k
        out[rows, :m] = -slope
        out[:n, columns] = slope
        for b in range(a, d):
            block = -slope * offset[b]
            if a == b:
                block += k / square
            out[rows, (1 + b) * m : (2 + b) * m] = block
            # The block is symmetric in a and b.
            out[(1 + b) * n : (2 + b) * n, columns] = block
    return out


def _noise(trace: NoisyTrace, rounds: range) -> FloatArray:
    """Return the covariance of the noise of all statistics of some rounds."""
    d, k = trace.dimension, trace.count
    count = len(rounds) * k
    out = np.zeros((count * (1 + d), count * (1 + d)))
    for place, number in enumerate(rounds):
        here = place * k + np.arange(k)
        correlation = trace.correlation(number)
        out[np.ix_(here, here)] = trace.density_sd**2 * correlation
        for a in range(d):
            rows = (1 + a) * count + here
            out[np.ix_(rows, rows)] = trace.gradient_sd**2 * correlation
        if trace.batch < trace.records:
            everything = (np.arange(1 + d)[:, None] * count + here).ravel()
            out[np.ix_(everything, everything)] += _batch_noise(trace, number)
    return out


def _batch_noise(trace: NoisyTrace, number: int) -> FloatArray:
    """Return the covariance that a minibatch adds: that of a kernel density of so many records.

    The field `K * (records - density)` has covariance `p/m` times the kernel with itself, about a
    squared exponential of length sqrt 2 whose value at zero is the integral of the squared kernel.
    """
    at = trace.positions[number]
    square, _ = trace.roughness
    share = (1 - trace.batch / trace.records) / trace.batch
    level = np.sqrt(np.maximum(trace.densities[number], 0.0) * square * share)
    repeated = np.tile(level, 1 + trace.dimension)
    return _covariance(at, at, math.sqrt(2.0), 1.0) * np.outer(repeated, repeated)
