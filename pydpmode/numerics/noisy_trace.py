"""What noisy ascents leave behind: where they were, and the noisy kernel statistics seen there.

Everything is in bandwidth units with the origin at the lower corner of the box. Knows nothing of
privacy: the noise is described by its moments.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..errors import InvalidArgument
from .correlated_noise import noise_covariance
from .surfaces import FloatArray


@dataclass(frozen=True, eq=False)
class NoisyTrace:
    """k ascents over T rounds.

    Parameters
    ----------
    positions : (T + 1, k, d) array
        Starts, and where each round ended.
    densities : (T, k) array
        Noisy kernel density at the first T positions; NaN when only scores were seen.
    gradients : (T, k, d) array
        Noisy gradient there; NaN likewise.
    scores : (T, k, d) array
        Stabilised score of each step, `clip_A(gradient)/max(density, floor)`.
    density_sd, gradient_sd : float
        Noise standard deviation of a density and of one component of a gradient; NaN likewise.
    correlated : bool
        Whether the noise of one round is correlated over points by `exp(-|x - y|)`. Rounds are independent.
    size : (d,) array
        Sides of the box.
    records, batch : float
        Records in all, and those behind each round's statistics.
    smooth : bool
        Whether the kernel is differentiable, so that gradients are those of the densities.
    roughness : (float, float)
        Integrals of the squared kernel and of one component of its squared gradient.
    step, clip, floor : float
        `eta`, `A` and `p_floor` of the ascent.
    """

    positions: FloatArray
    densities: FloatArray
    gradients: FloatArray
    scores: FloatArray
    density_sd: float
    gradient_sd: float
    correlated: bool
    size: FloatArray
    records: float
    batch: float
    smooth: bool
    roughness: tuple[float, float]
    step: float
    clip: float
    floor: float

    def __post_init__(self) -> None:
        rounds, count, d = self.scores.shape
        shapes = {
            "positions": (rounds + 1, count, d),
            "densities": (rounds, count),
            "gradients": (rounds, count, d),
            "size": (d,),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidArgument(f"{name} must have shape {shape}, got {getattr(self, name).shape}")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                copy = np.array(value, dtype=np.float64)
                copy.setflags(write=False)
                object.__setattr__(self, field.name, copy)

    @property
    def rounds(self) -> int:
        """Number of rounds T."""
        return int(self.scores.shape[0])

    @property
    def count(self) -> int:
        """Number of ascents k."""
        return int(self.scores.shape[1])

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return int(self.scores.shape[2])

    @property
    def has_statistics(self) -> bool:
        """Whether densities and gradients were seen, not scores alone."""
        return bool(np.isfinite(self.densities).all())

    def late_densities(self) -> tuple[FloatArray, float]:
        """Return each ascent's mean density over the second half of the rounds, (k,), and its noise sd."""
        late = max(self.rounds // 2, 1)
        return self.densities[-late:].mean(axis=0), self.density_sd / late**0.5

    def correlation(self, number: int) -> FloatArray:
        """Return the correlation of round `number`'s noise over the k points, (k, k)."""
        return noise_covariance(self.positions[number]) if self.correlated else np.eye(self.count)

    # -- diagnostics: functions of what was released ------------------------------------------------

    def shares_clipped(self) -> FloatArray:
        """Return the share of ascents whose noisy gradient was longer than A, per round, (T,)."""
        return np.asarray((np.linalg.norm(self.gradients, axis=2) > self.clip).mean(axis=1))

    def shares_floored(self) -> FloatArray:
        """Return the share of ascents whose noisy density was below the floor, per round, (T,)."""
        return np.asarray((self.densities < self.floor).mean(axis=1))

    def distances(self) -> FloatArray:
        """Return the mean length of each round's move in bandwidths, (T,)."""
        return np.asarray(np.linalg.norm(np.diff(self.positions, axis=0), axis=2).mean(axis=1))
