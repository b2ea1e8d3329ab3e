"""The trace of a DP-GRAMS release: what every round made public, and nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..budget import PrivacySpent
from ..errors import InvalidArgument
from ..numerics.noisy_trace import NoisyTrace
from ..numerics.surfaces import FloatArray
from .coordinates import Coordinate

if TYPE_CHECKING:
    import pandas as pd

_KERNELS = {
    "gaussian": "Gaussian",
    "gaussian4": "Gaussian, order 4",
    "legendre4": "Legendre, order 4",
}


@dataclass(frozen=True, eq=False)
class ReleasedTrace:
    """Starts, rounds and noise of one DP-GRAMS release, in the columns' units.

    Covered by `privacy`: whatever is computed from it is post-processing.

    Parameters
    ----------
    trace : NoisyTrace
        In bandwidths from the lower corner.
    coordinates : tuple of Coordinate
    lower, upper, bandwidth : (d,) arrays
        Public box, and the unit of the trace.
    kernel, accountant, finish : str
        As in `GramsOptions`.
    candidates : int
        Number of public candidate starts.
    privacy : PrivacySpent
    """

    trace: NoisyTrace
    coordinates: tuple[Coordinate, ...]
    lower: FloatArray
    upper: FloatArray
    bandwidth: FloatArray
    kernel: str
    accountant: str
    finish: str
    candidates: int
    privacy: PrivacySpent

    def __post_init__(self) -> None:
        object.__setattr__(self, "coordinates", tuple(self.coordinates))
        if self.kernel not in _KERNELS:
            raise InvalidArgument(f"kernel must be one of {list(_KERNELS)}, got {self.kernel!r}")
        for name in ("lower", "upper", "bandwidth"):
            value = np.array(getattr(self, name), dtype=np.float64)
            if value.shape != (self.trace.dimension,):
                raise InvalidArgument(f"{name} must have one number per coordinate, got shape {value.shape}")
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return tuple(c.name for c in self.coordinates)

    @property
    def order(self) -> int:
        """Order of the kernel."""
        return 2 if self.kernel == "gaussian" else 4

    @property
    def kernel_name(self) -> str:
        """The kernel in words."""
        return _KERNELS[self.kernel]

    @property
    def positions(self) -> FloatArray:
        """Where the ascents were: (T + 1, k, d), starts first."""
        return np.asarray(self.lower + self.trace.positions * self.bandwidth)

    @property
    def densities(self) -> FloatArray:
        """Released density at the first T positions, (T, k); NaN when only scores were released."""
        return np.asarray(self.trace.densities / np.prod(self.bandwidth))

    @property
    def density_sd(self) -> float:
        """Noise standard deviation of one released density; NaN when only scores were released."""
        return float(self.trace.density_sd / np.prod(self.bandwidth))

    @property
    def gradient_sd(self) -> FloatArray:
        """Noise standard deviation of each component of a released gradient, (d,)."""
        return np.asarray(self.trace.gradient_sd / (np.prod(self.bandwidth) * self.bandwidth))

    def frame(self) -> pd.DataFrame:
        """Return the trace as a long table: ascent, round, one column per coordinate, density."""
        import pandas as pd

        rounds, ascents = self.trace.rounds, self.trace.count
        density = np.concatenate([self.densities, np.full((1, ascents), np.nan)])
        number, ascent = np.meshgrid(np.arange(rounds + 1), np.arange(1, ascents + 1), indexing="ij")
        table: dict[str, Any] = {"ascent": ascent.ravel(), "round": number.ravel()}
        places = self.positions.reshape(-1, len(self.columns))
        table |= {name: places[:, j] for j, name in enumerate(self.columns)}
        return pd.DataFrame({**table, "density": density.ravel()})

    def facts(self) -> dict[str, Any]:
        """Return how the rounds went, as released: nothing here was seen without noise."""
        trace = self.trace
        clipped, floored = trace.shares_clipped(), trace.shares_floored()
        if not trace.has_statistics:
            clipped, floored = np.full(trace.rounds, np.nan), np.full(trace.rounds, np.nan)
        return {
            "accountant": self.accountant,
            "finish": self.finish,
            "rounds": trace.rounds,
            "ascents": trace.count,
            "batch": int(trace.batch),
            "candidate_starts": self.candidates,
            "noise": "correlated" if trace.correlated else "independent",
            "density_noise_sd_per_round": self.density_sd,
            **{
                f"gradient_noise_sd_per_round[{c}]": float(v)
                for c, v in zip(self.columns, self.gradient_sd, strict=True)
            },
            "share_clipped": float(clipped.mean()),
            "share_floored": float(floored.mean()),
            "mean_move_first_round": float(trace.distances()[0]),
            "mean_move_last_round": float(trace.distances()[-1]),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of arrays and plain values."""
        out = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        out["trace"] = {f.name: getattr(self.trace, f.name) for f in dataclasses.fields(self.trace)}
        out["coordinates"] = [c.to_dict() for c in self.coordinates]
        out["privacy"] = self.privacy.to_dict()
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`, or from its JSON.

        Raises
        ------
        KeyError, TypeError, ValueError
            When an entry is missing or is not what `to_dict` writes.
        """
        stored = dict(data["trace"])
        trace: dict[str, Any] = {
            name: _floats(stored[name]) for name in ("positions", "densities", "gradients", "scores", "size")
        }
        for name in ("density_sd", "gradient_sd", "records", "batch", "step", "clip", "floor"):
            trace[name] = float(_floats(stored[name]))
        trace |= {name: bool(stored[name]) for name in ("correlated", "smooth")}
        trace["roughness"] = tuple(float(v) for v in stored["roughness"])
        return cls(
            trace=NoisyTrace(**trace),
            coordinates=tuple(Coordinate.from_dict(item) for item in data["coordinates"]),
            lower=_floats(data["lower"]),
            upper=_floats(data["upper"]),
            bandwidth=_floats(data["bandwidth"]),
            kernel=str(data["kernel"]),
            accountant=str(data["accountant"]),
            finish=str(data["finish"]),
            candidates=int(data["candidates"]),
            privacy=PrivacySpent.from_dict(data["privacy"]),
        )


def _floats(nested: float | Sequence[Any] | None) -> FloatArray:
    """Read an array back: null is NaN."""
    return np.array(nested, dtype=np.float64)
