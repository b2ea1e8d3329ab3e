"""How far clusters lie from the middle, in standard deviations of rows clipped at a quartile of distances.

    python benchmarks/score_limits.py      # seconds; nothing written

Made-up mixtures of 3 to 8 clusters of unit spread in 4 to 60 columns, three components, no privacy noise: the
geometry alone that the limits of the scores of `PrivateClusteringPipeline` are chosen by.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MIXTURES, ROWS, COMPONENTS = 400, 4000, 3
LEAST_SHARE = 0.03


def mixture(seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return rows, the middles of the clusters, and their shares."""
    random = np.random.default_rng(seed)
    count, columns = (3, 4, 6, 8)[seed % 4], (4, 8, 20, 60)[seed // 4 % 4]
    shares = random.dirichlet(np.full(count, (5.0, 1.5)[seed // 16 % 2]))
    labels = random.choice(count, ROWS, p=shares)
    middles = random.normal(0, 4, (count, columns))
    return middles[labels] + random.standard_normal((ROWS, columns)), middles, shares


def farthest(seed: int) -> tuple[float, float]:
    """Return the farthest centre in standard deviations of the clipped rows, and these over the rows' own."""
    rows, middles, shares = mixture(seed)
    away = rows - rows.mean(axis=0)
    length = np.linalg.norm(away, axis=1)
    clipped = away * np.minimum(1.0, np.quantile(length, 0.25) / length)[:, None]
    values, vectors = np.linalg.eigh(clipped.T @ clipped / ROWS)
    leading, spread = vectors[:, -COMPONENTS:], float(np.sqrt(values[-1]))
    scores = np.abs((middles - rows.mean(axis=0)) @ leading)[shares >= LEAST_SHARE]
    return float(scores.max()) / spread, spread / float((away @ leading[:, -1]).std())


def main() -> None:
    """Print in how many mixtures a centre is beyond each limit."""
    found = np.array([farthest(seed) for seed in range(MIXTURES)])
    for limit in (3, 4, 5, 6):
        print(f"beyond {limit}: {100 * np.mean(found[:, 0] > limit):.2f}%")
    low, middle, high = np.quantile(found[:, 1], [0.1, 0.5, 0.9])
    print(f"spread of clipped rows over that of rows: {middle:.2f} ({low:.2f} to {high:.2f} in four of five)")


if __name__ == "__main__":
    main()
