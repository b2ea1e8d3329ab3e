"""What a DP-PMS release made public: one trace of noisy ascents per predictor value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..budget import PrivacySpent
from ..errors import InvalidArgument
from ..numerics.noisy_trace import NoisyTrace
from ..numerics.surfaces import FloatArray
from .coordinates import Coordinate

_ARRAYS = ("positions", "densities", "gradients", "scores", "size")
_NUMBERS = ("density_sd", "gradient_sd", "records", "batch", "step", "clip", "floor")


@dataclass(frozen=True, eq=False)
class ReleasedPartialTraces:
    """Starts, rounds and noise of one DP-PMS release.

    Covered by `privacy`, which protects RESPONSES: predictors are public.

    Parameters
    ----------
    traces : tuple of NoisyTrace
        One per grid value, of one coordinate: the response, in bandwidths from its lower bound.
    grid : (G, p) array
        Public predictor values, in their units.
    predictors : tuple of str
    response : Coordinate
    lower, upper : float
        Public bounds of the response, in the units of its coordinate.
    bandwidth : (p + 1,) array
        Of the predictors, then of the response.
    kernel, accountant, finish, starts : str
    privacy : PrivacySpent
    """

    traces: tuple[NoisyTrace, ...]
    grid: FloatArray
    predictors: tuple[str, ...]
    response: Coordinate
    lower: float
    upper: float
    bandwidth: FloatArray
    kernel: str
    accountant: str
    finish: str
    starts: str
    privacy: PrivacySpent

    def __post_init__(self) -> None:
        object.__setattr__(self, "traces", tuple(self.traces))
        object.__setattr__(self, "predictors", tuple(self.predictors))
        p = len(self.predictors)
        for name, shape in (("grid", (len(self.traces), p)), ("bandwidth", (p + 1,))):
            value = np.array(getattr(self, name), dtype=np.float64)
            if value.shape != shape:
                raise InvalidArgument(f"{name} must have shape {shape}, got {value.shape}")
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of arrays and plain values."""
        out = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        out["traces"] = [{f.name: getattr(t, f.name) for f in dataclasses.fields(t)} for t in self.traces]
        out["response"] = self.response.to_dict()
        out["privacy"] = self.privacy.to_dict()
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`, or from its JSON (null is NaN).

        Raises
        ------
        KeyError, TypeError, ValueError
            When an entry is missing or is not what `to_dict` writes.
        """
        plain = {name: data[name] for name in ("kernel", "accountant", "finish", "starts")}
        return cls(
            traces=tuple(_trace(item) for item in data["traces"]),
            grid=np.array(data["grid"], dtype=np.float64),
            predictors=tuple(str(name) for name in data["predictors"]),
            response=Coordinate(**data["response"]),
            lower=float(data["lower"]),
            upper=float(data["upper"]),
            bandwidth=np.array(data["bandwidth"], dtype=np.float64),
            privacy=PrivacySpent.from_dict(data["privacy"]),
            **{name: str(value) for name, value in plain.items()},
        )


def _trace(stored: Mapping[str, Any]) -> NoisyTrace:
    parts: dict[str, Any] = {name: np.array(stored[name], dtype=np.float64) for name in _ARRAYS}
    parts |= {name: float(np.array(stored[name], dtype=np.float64)) for name in _NUMBERS}
    parts |= {name: bool(stored[name]) for name in ("correlated", "smooth")}
    value, slope = (float(v) for v in stored["roughness"])
    return NoisyTrace(**parts, roughness=(value, slope))
