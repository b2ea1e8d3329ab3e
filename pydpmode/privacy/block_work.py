"""What is done to one block of raw rows: here, in a thread, or where the rows are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from ..budget import Outside
from ..numerics.surfaces import FloatArray
from ..results.coordinates import Coordinate
from .bounds import ClippedBlock, coordinate_block, used_columns

R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class BlockWork(Generic[R]):
    """Clip a block to the public box, and apply a function to it. Holds no row: it may be sent away.

    Parameters
    ----------
    coordinates : sequence of Coordinate
    bounds : mapping of str to (low, high)
        Public bounds of the columns that they are made of.
    outside : {"clip", "ignore"}
    max_weight : float or None
        Public ceiling of the weights, when the last row of a raw block holds weights.
    one : callable
        Called with a clipped block and the number of its first row.
    """

    coordinates: Sequence[Coordinate]
    bounds: Mapping[str, tuple[float, float]]
    outside: Outside
    max_weight: float | None
    one: Callable[[ClippedBlock, int], R]

    def __call__(self, raw: FloatArray, votes: FloatArray | None = None, first: int = 0) -> R:
        """Return what `one` makes of a raw block (columns, rows), which is overwritten.

        `votes` are the rows' shares of their persons' votes, when persons are protected.
        """
        # Silent also where the user has told NumPy to raise: an error would tell of a value.
        with np.errstate(all="ignore"):
            weights = votes
            if self.max_weight is not None:
                # Clipped before the division: no weight may overflow.
                weights = np.clip(raw[-1], 0.0, self.max_weight) / self.max_weight
                raw = raw[:-1]
            names = used_columns(self.coordinates)
            block = coordinate_block(raw, names, self.coordinates, self.bounds, self.outside, weights)
            return self.one(block, first)


def in_threads(
    blocks: Iterable[FloatArray],
    work: BlockWork[R],
    votes: FloatArray | None,
    workers: int,
    seen: Callable[[int], None],
) -> Iterator[R]:
    """Yield `work` of each block, in order; several blocks at a time.

    `votes` are the votes of all rows, when persons are protected; `seen` is told the rows of each block.
    """
    pending: deque[Future[R]] = deque()
    first = 0
    with ThreadPoolExecutor(workers) as pool:
        for raw in blocks:
            rows = raw.shape[1]
            pending.append(
                pool.submit(work, raw, None if votes is None else votes[first : first + rows], first)
            )
            first += rows
            seen(rows)
            # A short queue bounds the memory: reading waits for summing.
            if len(pending) > workers + 1:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
