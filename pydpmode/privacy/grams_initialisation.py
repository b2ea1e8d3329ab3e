"""Starting points of DP-GRAMS: density-aware private initialisation (DAP) by the exponential mechanism.

The utility of a public candidate is the number of records within `h_DAP` of it. Replacing one record
changes every count by at most one, so a draw with weights `exp(epsilon_draw count / 2)` is
epsilon_draw-DP, and its log-ratios lie in an interval of length epsilon_draw ("bounded range"). After a
draw, candidates near it leave the pool; when none is left all return. The pool depends on earlier
draws only, so k draws compose.

Draws are exact: candidates are proposed uniformly and accepted with probability
`exp(-epsilon_draw (best - count)/2)`, decided in whole numbers (Canonne, Kamath & Steinke 2020, Algorithm 1)
with the operating system's entropy. No floating-point weight is ever compared.
"""

from __future__ import annotations

import itertools
import math
import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument
from ..numerics.surfaces import FloatArray

IntArray = NDArray[np.int64]

MOST_CANDIDATES = 200_000
# Distances held at once for user-given candidates: 4e6 doubles are 32 MB.
_PAIRS = 4_000_000


@dataclass(frozen=True, eq=False)
class StartCandidates:
    """Public candidate starts, in bandwidths from the lower corner of the box.

    Parameters
    ----------
    points : (N, d) array
    radius : float
        `h_DAP`: how far a candidate sees.
    shape : tuple of int or None
        Of the grid with spacing `radius` that they form; None for points given by the user.
    origin : (d,) array
        First node of the grid.
    """

    points: FloatArray
    radius: float
    shape: tuple[int, ...] | None
    origin: FloatArray

    @classmethod
    def grid(cls, size: FloatArray, radius: float) -> StartCandidates:
        """Return the grid of spacing `radius` that is centred in the box [0, size].

        Raises
        ------
        InvalidArgument
            When it would have more than 200,000 nodes.
        """
        shape = tuple(int(n) for n in np.floor(size / radius) + 1)
        if math.prod(shape) > MOST_CANDIDATES:
            raise InvalidArgument(
                f"the grid of candidate starts would have {math.prod(shape):,} nodes (at most "
                f"{MOST_CANDIDATES:,}); give public candidates=, a larger h_dap, or fewer columns"
            )
        origin = (size - (np.array(shape) - 1) * radius) / 2
        axes = [first + radius * np.arange(n) for first, n in zip(origin, shape, strict=True)]
        mesh = np.meshgrid(*axes, indexing="ij")
        return cls(np.stack([m.ravel() for m in mesh], axis=1), radius, shape, origin)

    @classmethod
    def given(cls, points: FloatArray, radius: float) -> StartCandidates:
        """Return candidates that the user gave, (N, d), in bandwidths."""
        if points.shape[0] > MOST_CANDIDATES:
            raise InvalidArgument(
                f"candidates must be at most {MOST_CANDIDATES:,}, got {points.shape[0]:,}; leave some out"
            )
        return cls(points, radius, None, np.zeros(points.shape[1]))

    @property
    def count(self) -> int:
        """Number of candidates N."""
        return int(self.points.shape[0])

    def counts(self, rows: FloatArray, weights: FloatArray | None = None) -> IntArray:
        """Return how many records lie within `radius` of each candidate, (N,).

        Each record is judged by itself, so that replacing it changes nothing but its own 0 or 1.

        Parameters
        ----------
        rows : (d, b) array
            Records, in bandwidths from the lower corner.
        weights : (b,) array, optional
            Records of weight 0 (missing, or left out) do not count.
        """
        if weights is not None:
            rows = rows[:, weights > 0]
        return self._grid_counts(rows) if self.shape is not None else self._pair_counts(rows)

    def _grid_counts(self, rows: FloatArray) -> IntArray:
        shape = np.array(self.shape)
        place = (rows - self.origin[:, None]) / self.radius
        nearest = np.clip(np.rint(place), 0, shape[:, None] - 1).astype(np.int64)
        total = np.zeros(self.count, dtype=np.int64)
        # A node two steps from the nearest one is at least 1.5 radii away.
        for offset in itertools.product((-1, 0, 1), repeat=shape.size):
            node = nearest + np.array(offset)[:, None]
            # Added axis by axis: a reduction may add in another order where there is one record only.
            squared = sum(np.square(place - node), np.zeros(rows.shape[1]))
            near = squared <= 1.0
            near &= np.all((node >= 0) & (node < shape[:, None]), axis=0)
            flat = np.ravel_multi_index(tuple(node[:, near]), tuple(shape))
            total += np.bincount(flat, minlength=self.count)
        return total

    def _pair_counts(self, rows: FloatArray) -> IntArray:
        total = np.zeros(self.count, dtype=np.int64)
        chunk = max(1, _PAIRS // self.count)
        for start in range(0, rows.shape[1], chunk):
            part = rows[:, start : start + chunk]
            squared = sum(
                (np.square(self.points[:, a, None] - part[a]) for a in range(rows.shape[0])),
                np.zeros((self.count, part.shape[1])),
            )
            total += np.count_nonzero(squared <= self.radius**2, axis=1)
        return total


def draw_starts(
    candidates: StartCandidates,
    counts: IntArray,
    *,
    number: int,
    epsilon_draw: float,
    suppression: float,
    generator: np.random.Generator | None = None,
) -> IntArray:
    """Draw `number` starts with suppression: (number * epsilon_draw, 0)-DP in the counts.

    Each draw is an exponential mechanism of sensitivity 1 (McSherry & Talwar 2007, Theorem 6) on a pool that
    depends on earlier draws alone, so that the draws compose.

    Parameters
    ----------
    candidates : StartCandidates
    counts : (N,) int array
        Records near each candidate.
    number : int
        k.
    epsilon_draw : float
        Privacy loss of one draw.
    suppression : float
        `rho_init`: candidates within this distance of a draw leave the pool, in bandwidths.
    generator : Generator, optional
        Makes the draws reproducible, for tests and papers: NOT private. Exact draws from fresh entropy
        when omitted.

    Returns
    -------
    (number,) int array
        Rows of `candidates.points`.
    """
    pool = np.ones(candidates.count, dtype=np.bool_)
    drawn = []
    for _ in range(number):
        if not pool.any():
            pool[:] = True
        choices = np.flatnonzero(pool)
        drawn.append(int(choices[exponential_draw(counts[choices], epsilon_draw, generator)]))
        distance = np.linalg.norm(candidates.points - candidates.points[drawn[-1]], axis=1)
        pool &= distance > suppression
    return np.array(drawn, dtype=np.int64)


def exponential_draw(counts: IntArray, epsilon: float, generator: np.random.Generator | None = None) -> int:
    """Draw one index with probability proportional to `exp(epsilon count / 2)`.

    Parameters
    ----------
    counts : (N,) int array
        Utilities of sensitivity 1.
    epsilon : float
        Privacy loss, > 0.
    generator : Generator, optional
        As in `draw_starts`.

    Notes
    -----
    Exact: the accepted proposal has probability proportional to its weight over the largest weight. The
    number of proposals depends on the counts: the time a draw takes is not part of the guarantee.
    """
    behind = int(counts.max()) - counts
    if generator is not None:
        weights = np.exp(-0.5 * epsilon * behind)
        return int(generator.choice(counts.size, p=weights / weights.sum()))
    numerator, denominator = float(epsilon).as_integer_ratio()
    gaps = behind.tolist()
    while True:
        index = secrets.randbelow(len(gaps))
        if _bernoulli_exp(numerator * gaps[index], 2 * denominator):
            return index


def _bernoulli_exp(numerator: int, denominator: int) -> bool:
    """Return True with probability exp(-numerator/denominator), exactly."""
    while numerator > denominator:
        if not _bernoulli_exp_below_one(1, 1):
            return False
        numerator -= denominator
    return _bernoulli_exp_below_one(numerator, denominator)


def _bernoulli_exp_below_one(numerator: int, denominator: int) -> bool:
    """Return True with probability exp(-x), x = numerator/denominator in [0, 1].

    The first trial k that fails, each succeeding with probability x/k, is odd with probability
    `1 - x + x^2/2! - ...`.
    """
    k = 1
    while secrets.randbelow(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def draw_batch(records: int, size: int, generator: np.random.Generator | None = None) -> NDArray[np.bool_]:
    """Return a uniformly random subset of `size` out of `records`, as a mask; the subset is secret."""
    chosen = np.zeros(records, dtype=np.bool_)
    if generator is not None:
        chosen[generator.choice(records, size, replace=False)] = True
    else:
        chosen[secrets.SystemRandom().sample(range(records), size)] = True
    return chosen
