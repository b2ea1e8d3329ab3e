"""From releases of two neighbouring tables to a lower bound on epsilon.

The attacker knows everything but which of the two tables was used. Each release is turned into one
number, a score, that is larger the more it looks like the second table. If the mechanism is
(epsilon, delta)-DP, then `P(score > t) <= e^epsilon Q(score > t) + delta` for every threshold t and either
order of the tables. The threshold is chosen on the first half of the releases; on the second half
Clopper-Pearson intervals bound the two probabilities. The bound holds with probability `1 - 4 alpha`,
whatever the scores are: a bad score makes it weak, never wrong.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FloatArray = NDArray[np.float64]

# Chance of error of each of the four confidence bounds in one audit.
ALPHA = 1e-5
_THRESHOLDS = np.linspace(0.01, 0.995, 100)


def epsilon_lower_bound(first: FloatArray, second: FloatArray, delta: float, alpha: float = ALPHA) -> float:
    """Return a lower bound on epsilon at `delta` from scores of releases of either table.

    Parameters
    ----------
    first, second : (n,) arrays
        Scores of releases of the first and of the second table, in the order drawn.
    delta : float
        The stated delta.
    alpha : float
        Chance that one of the four confidence bounds fails.

    Returns
    -------
    float
        `-inf` when nothing can be told apart.
    """
    found = [_one_direction(second, first, delta, alpha), _one_direction(-first, -second, delta, alpha)]
    return max(found)


def _one_direction(p: FloatArray, q: FloatArray, delta: float, alpha: float) -> float:
    half = len(p) // 2
    grid = np.unique(np.quantile(np.concatenate([p[:half], q[:half]]), _THRESHOLDS, method="lower"))
    tried = [_beyond(t, p[:half], q[:half], delta, alpha) for t in grid]
    return _beyond(grid[int(np.argmax(tried))], p[half:], q[half:], delta, alpha)


def _beyond(threshold: float, p: FloatArray, q: FloatArray, delta: float, alpha: float) -> float:
    hits, false = (int(np.count_nonzero(values > threshold)) for values in (p, q))
    n = len(p)
    least = stats.beta.ppf(alpha, hits, n - hits + 1) if hits else 0.0
    most = stats.beta.ppf(1 - alpha, false + 1, n - false) if false < n else 1.0
    return math.log((least - delta) / most) if least > delta else -math.inf
