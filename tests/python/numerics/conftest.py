"""A Surface whose density, derivatives and noise are known in closed form, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from pydpmode.numerics.surfaces import FieldNoise, Roughness

FloatArray = NDArray[np.float64]


def kernel_noise(variance: float, length: FloatArray) -> FieldNoise:
    """Return the moments of a field with covariance `variance * exp(-sum t^2 / (2 length^2))`."""
    inverse = np.diag(1.0 / np.square(length))
    pairs = (
        np.einsum("ab,ce->abce", inverse, inverse)
        + np.einsum("ac,be->abce", inverse, inverse)
        + np.einsum("ae,bc->abce", inverse, inverse)
    )
    return FieldNoise(variance, variance * inverse, variance * pairs, -variance * inverse)


@dataclass(frozen=True)
class MixtureSurface:
    """A mixture of axis-aligned Gaussians plus a draw of a stationary Gaussian field.

    `noise_sd` is what the surface states about its noise and, when `seed` is given, the size of
    the drawn field (random Fourier features; covariance Gaussian with length `noise_length`).
    """

    weights: FloatArray
    means: FloatArray
    sds: FloatArray
    bandwidth: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_effective: float = 1e12
    noise_sd: float = 0.0
    seed: int | None = None
    offset: float = 0.0
    features: int = 1000
    order: int = 2
    calls: list[int] = field(default_factory=list)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"x{a}" for a in range(self.lower.size))

    @property
    def noise_length(self) -> FloatArray:
        return self.bandwidth

    @property
    def noise(self) -> FieldNoise:
        if self.noise_sd == 0:
            return FieldNoise.none(self.lower.size)
        return kernel_noise(self.noise_sd**2, self.bandwidth)

    @property
    def roughness(self) -> Roughness:
        value = float(np.prod(1.0 / (np.sqrt(4 * np.pi) * self.bandwidth)))
        return Roughness(value, np.diag(value / (2 * np.square(self.bandwidth))))

    def density(self, points: FloatArray) -> FloatArray:
        return self.derivatives(points)[0]

    def gradient(self, points: FloatArray) -> FloatArray:
        return self.derivatives(points)[1]

    def hessian(self, points: FloatArray) -> FloatArray:
        return self.derivatives(points)[2]

    def derivatives(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        self.calls.append(points.shape[0])
        x, d = np.asarray(points, float), self.lower.size
        precision = 1.0 / np.square(self.sds)
        away = x[:, None, :] - self.means
        height = self.weights / np.prod(np.sqrt(2 * np.pi) * self.sds, axis=1)
        part = height * np.exp(-0.5 * np.sum(np.square(away) * precision, axis=2))
        slope = -away * precision
        value = part.sum(axis=1) + self.offset
        gradient = np.einsum("mk,mka->ma", part, slope)
        hessian = np.einsum("mk,mka,mkb->mab", part, slope, slope)
        hessian -= np.einsum("mk,ka,ab->mab", part, precision, np.eye(d))
        if self.seed is not None and self.noise_sd > 0:
            rng = np.random.default_rng(self.seed)
            waves = rng.standard_normal((self.features, d)) / self.bandwidth
            phase = x @ waves.T + rng.uniform(0, 2 * np.pi, self.features)
            size = self.noise_sd * np.sqrt(2.0 / self.features)
            cosine, sine = size * np.cos(phase), size * np.sin(phase)
            value = value + cosine.sum(axis=1)
            gradient -= sine @ waves
            hessian -= np.einsum("mf,fa,fb->mab", cosine, waves, waves, optimize=True)
        return value, gradient, hessian

    def density_on_grid(self, axes: Sequence[FloatArray]) -> FloatArray:
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        flat = nodes.reshape(-1, len(axes))
        parts = [self.density(block) for block in np.array_split(flat, max(1, flat.shape[0] // 4000))]
        return np.concatenate(parts).reshape(nodes.shape[:-1])

    def at_bandwidth(self, bandwidth: FloatArray) -> MixtureSurface:
        return replace(self, bandwidth=np.asarray(bandwidth, float))


def mixture(
    means: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    sd: ArrayLike = 1.0,
    bandwidth: ArrayLike = 1.0,
    lower: ArrayLike = -6.0,
    upper: ArrayLike = 6.0,
    n_effective: float = 1e12,
    noise_sd: float = 0.0,
    seed: int | None = None,
    offset: float = 0.0,
    features: int = 1000,
) -> MixtureSurface:
    """Return a mixture surface; scalars stand for the same in every coordinate."""
    centres = np.atleast_2d(np.asarray(means, float))
    k, d = centres.shape
    return MixtureSurface(
        weights=np.full(k, 1.0 / k) if weights is None else np.asarray(weights, float),
        means=centres,
        sds=np.broadcast_to(np.asarray(sd, float), (k, d)).copy(),
        bandwidth=np.broadcast_to(np.asarray(bandwidth, float), (d,)).copy(),
        lower=np.broadcast_to(np.asarray(lower, float), (d,)).copy(),
        upper=np.broadcast_to(np.asarray(upper, float), (d,)).copy(),
        n_effective=n_effective,
        noise_sd=noise_sd,
        seed=seed,
        offset=offset,
        features=features,
    )


@pytest.fixture(name="mixture")
def _mixture() -> Callable[..., MixtureSurface]:
    return mixture
