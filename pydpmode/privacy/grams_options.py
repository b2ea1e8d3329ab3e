"""The knobs of DP-GRAMS, by the paper's names, with the paper's defaults where those are sound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..budget import as_number, as_whole
from ..errors import InvalidArgument
from ..numerics.score_kernels import KERNELS, KernelName
from ..numerics.trace_modes import FINISHES, Finish

Noise = Literal["correlated", "independent"]
Accountant = Literal["pld", "rdp", "published"]
NOISES: tuple[Noise, ...] = ("correlated", "independent")
ACCOUNTANTS: tuple[Accountant, ...] = ("pld", "rdp", "published")
LARGEST_COUNT = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class GramsOptions:
    """Options of `DensityModes(..., mechanism="grams")`. None means: by the public rule that is stated.

    Lengths are in bandwidths, so that one number serves columns of any unit. Every rule uses the box,
    the public number of records and the bandwidth only, so that no default costs budget. Values that were
    chosen by looking at the rows are not covered by the guarantee.

    Parameters
    ----------
    T : int, optional
        Rounds: `ceil(log n)`.
    m : int, optional
        Minibatch without replacement, new in every round. All n records by default (the paper:
        `ceil(n/log n)`, the default of accountant="published"): at equal privacy a minibatch has more noise.
    eta : float
        Step in squared bandwidths; 1 is the mean-shift step.
    A : float, optional
        Clipping length of the gradient per bandwidth, in density units: `2 p_floor`, so that no step is
        longer than 2 eta bandwidths.
    p_floor : float, optional
        Least density to divide by, in density units: the uniform density over the box, or three noise
        standard deviations of one round where that is more.
    kernel : {"gaussian", "gaussian4", "legendre4"}
        Gaussian; Gaussian-based of order 4; Legendre of order 4 on [-1, 1] (the paper's alternative;
        independent noise only).
    noise : {"correlated", "independent"}
        Over the k ascents of one round: correlated by `exp(-|x - y|/h)`, of the same size for any k; or
        independent, sqrt(k) times as large as for one (better for k up to about 4).
    accountant : {"pld", "rdp", "published"}
        "pld": tight composition of all rounds and draws, full batch. "rdp": minibatches without
        replacement, Renyi accounting. "published": the paper's formulas with noise on the clipped
        scores; sound for one ascent or with independent noise only.
    k : int, optional
        Ascents: `ceil(M log n)`, M the number of modes asked for, or 5.
    eps_init : float
        Share of epsilon for the starting points, in (0, 1).
    h_dap : float
        Radius within which a candidate start counts records, and spacing of the default grid.
    rho_init : float, optional
        Candidates this close to a chosen start leave the pool: `(log n)^(-1/d)` fifths of the box (the
        geometric mean over columns), the paper's rate.
    candidates : (N, d) sequence, optional
        PUBLIC candidate starts in the columns' units (logs for columns on the log scale), instead of the
        grid. A grid over many columns is too large: then they are needed.
    density_share : float
        Share of each round's squared privacy for densities; gradients get the rest.
    finish : {"regression", "iterates"}, optional
        How modes are read off the released trace; see `numerics.trace_modes`. "regression" uses all
        rounds and gives standard errors; "iterates" is the paper's. By default "regression" wherever
        densities and gradients of a differentiable kernel are released.
    """

    T: int | None = None
    m: int | None = None
    eta: float = 1.0
    A: float | None = None
    p_floor: float | None = None
    kernel: KernelName = "gaussian"
    noise: Noise = "correlated"
    accountant: Accountant = "pld"
    k: int | None = None
    eps_init: float = 0.1
    h_dap: float = 1.0
    rho_init: float | None = None
    candidates: Sequence[Sequence[float]] | None = None
    density_share: float = 0.2
    finish: Finish | None = None

    def __post_init__(self) -> None:
        for name, most in (("T", 10_000), ("m", None), ("k", LARGEST_COUNT)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_whole(getattr(self, name), name, 1, most))
        for name in ("eta", "A", "p_floor", "h_dap", "rho_init"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _positive(getattr(self, name), name))
        for name in ("eps_init", "density_share"):
            object.__setattr__(self, name, _share(getattr(self, name), name))
        for name, allowed in (("kernel", KERNELS), ("noise", NOISES), ("accountant", ACCOUNTANTS)):
            _choice(getattr(self, name), name, allowed)
        if self.finish is not None:
            _choice(self.finish, "finish", FINISHES)
        if self.candidates is not None:
            object.__setattr__(self, "candidates", _candidates(self.candidates))


def _positive(value: object, name: str) -> float:
    number = as_number(value, name)
    if not 0 < number < math.inf:
        raise InvalidArgument(f"{name} must be finite and > 0, got {number!r}")
    return number


def _share(value: object, name: str) -> float:
    number = as_number(value, name)
    if not 0 < number < 1:
        raise InvalidArgument(f"{name} must be strictly between 0 and 1, got {number!r}")
    return number


def _choice(value: object, name: str, allowed: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise InvalidArgument(f"{name} must be one of {list(allowed)}, got {value!r}")


def _candidates(value: Any) -> Any:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument("candidates must be numbers, one row per candidate start") from None
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[0] == 0 or not np.all(np.isfinite(array)):
        raise InvalidArgument(f"candidates must be a finite (N, d) array, got shape {array.shape}")
    array.setflags(write=False)
    return array
