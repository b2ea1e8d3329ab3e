"""What modal regression does with a DP-PMS release: conditional modes per grid value, and curves between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..errors import InvalidArgument
from ..numerics.mode_set import ModeSet
from ..numerics.surfaces import FloatArray
from ..numerics.trace_modes import Finish, find_trace_modes
from ..privacy.pms_plan import PmsRequest
from ..privacy.private_data import PrivateData
from ..results.released_partial_traces import ReleasedPartialTraces

_SAME_BRANCH = 2.0  # bandwidths of the response between the modes of neighbouring grid values
_NEAR = 2.0  # bandwidths of the predictors beyond which a value is too far from the grid


@dataclass(frozen=True, eq=False)
class PmsFit:
    """Conditional modes from one DP-PMS release.

    Parameters
    ----------
    released : ReleasedPartialTraces
        Everything that was made public.
    modes : tuple of ModeSet
        Per grid value, highest first, in the response's units; at least one each, `significant` says whether
        it stands clear of the noise.
    """

    released: ReleasedPartialTraces
    modes: tuple[ModeSet, ...]

    def frame(self) -> pd.DataFrame:
        """Return a long table: grid value, branch number, estimate, standard errors, density, significant."""
        rows = []
        for x, found in zip(self.released.grid, self.modes, strict=True):
            place = dict(zip(self.released.predictors, x.tolist(), strict=True))
            for j in range(found.count):
                private, sampled = found.covariance_privacy[j, 0, 0], found.covariance_sampling[j, 0, 0]
                rows.append(
                    {
                        **place,
                        "mode": j + 1,
                        "estimate": float(found.locations[j, 0]),
                        "se_privacy": float(np.sqrt(private)),
                        "se_sampling": float(np.sqrt(sampled)),
                        "density": float(found.densities[j]),
                        "height_z": float(found.height_z[j]),
                        "significant": bool(found.significant[j]),
                    }
                )
        return pd.DataFrame(rows)

    def predict(self, x: ArrayLike, *, significant_only: bool = False) -> FloatArray:
        """Return conditional modes at `x` (m, p) or (m,): (m, r), NaN where there are fewer.

        With one predictor, modes of the two neighbouring grid values that are mutually nearest and within two
        bandwidths are one branch, and joined by a straight line; a mode without a partner is carried to the
        middle between the values. With more predictors: the modes of the nearest grid value. NaN more than
        two bandwidths from every grid value, and for NaN.
        """
        p = len(self.released.predictors)
        points = np.asarray(x, dtype=np.float64)
        points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2 or points.shape[1] != p:
            raise InvalidArgument(f"x must be (m, {p}), one column per predictor, got shape {points.shape}")
        modes = [m.locations[m.significant if significant_only else slice(None), 0] for m in self.modes]
        scaled, grid = (v / self.released.bandwidth[:-1] for v in (points, self.released.grid))
        reach = _SAME_BRANCH * float(self.released.bandwidth[-1])
        if p == 1:
            return _padded([_interpolated(float(v[0]), grid[:, 0], modes, reach) for v in scaled])
        return _padded([_nearest(v, grid, modes) for v in scaled])


def fit_pms(
    study: PrivateData,
    request: PmsRequest,
    *,
    false_mode_rate: float = 0.05,
    label: str = "",
    seed: int | None = None,
    notes: Sequence[str] = (),
) -> PmsFit:
    """Release DP-PMS at public predictors and find the conditional modes.

    (request.epsilon, request.delta)-DP for replacing one RESPONSE, given public bounds and predictors.

    Parameters
    ----------
    study : PrivateData
        Holds the response.
    request : PmsRequest
    false_mode_rate : float
        Chance that noise passes for a mode, per grid value.
    label, seed, notes
        As in `PrivateData.release_surface`.
    """
    released = study.release_pms(request, label=label, seed=seed, notes=notes)
    return modes_of_traces(released, false_mode_rate)


def modes_of_traces(released: ReleasedPartialTraces, false_mode_rate: float = 0.05) -> PmsFit:
    """Return the conditional modes of released traces: the fixed-radius clean-up, per grid value.

    Post-processing: free. Ascents that ended in noise are dropped by their released density, the others
    merged within one bandwidth of the response; see `numerics.trace_modes`.
    """
    finish: Finish = "regression" if released.finish == "regression" else "iterates"
    lower, h = np.array([released.lower]), released.bandwidth[-1:]
    found = [
        find_trace_modes(trace, lower, h, false_mode_rate=false_mode_rate, finish=finish)
        for trace in released.traces
    ]
    return PmsFit(released, tuple(found))


# -- parts -----------------------------------------------------------------------------------------------


def _interpolated(x: float, grid: FloatArray, modes: list[FloatArray], reach: float) -> FloatArray:
    """Return the modes at x from those of the grid values on both sides."""
    order = np.argsort(grid, kind="stable")
    right = int(np.searchsorted(grid[order], x))
    sides = [int(order[i]) for i in (right - 1, right) if 0 <= i < grid.size]
    sides = [i for i in sides if abs(grid[i] - x) <= _NEAR * (1 + 1e-9)]
    if not sides:
        return np.empty(0)
    if len(sides) == 1:
        return modes[sides[0]]
    one, two = (modes[i] for i in sides)
    share = (x - grid[sides[0]]) / (grid[sides[1]] - grid[sides[0]])
    apart = np.abs(one[:, None] - two)
    if apart.size == 0:
        return one if share <= 0.5 else two
    best_two, best_one = apart.argmin(axis=1), apart.argmin(axis=0)
    own = np.arange(one.size)
    paired = (best_one[best_two] == own) & (apart[own, best_two] <= reach)
    joined = (1 - share) * one[paired] + share * two[best_two[paired]]
    if share <= 0.5:
        return np.concatenate([joined, one[~paired]])
    alone = np.ones(two.size, dtype=np.bool_)
    alone[best_two[paired]] = False
    return np.concatenate([joined, two[alone]])


def _nearest(x: FloatArray, grid: FloatArray, modes: list[FloatArray]) -> FloatArray:
    distance = np.linalg.norm(grid - x, axis=1)
    if not np.isfinite(distance).all() or distance.min() > _NEAR * (1 + 1e-9):
        return np.empty(0)
    return modes[int(distance.argmin())]


def _padded(parts: list[FloatArray]) -> FloatArray:
    most = max((part.size for part in parts), default=0)
    out = np.full((len(parts), max(most, 1)), np.nan)
    for row, part in zip(out, parts, strict=True):
        row[: part.size] = part
    return out
