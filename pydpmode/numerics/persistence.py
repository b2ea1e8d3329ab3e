"""Local maxima of a gridded surface, their basins, and how long each survives (persistence).

Lower the water level from the top of the surface: islands appear at local maxima and grow
together at saddles. When two islands meet, the one with the lower summit dies (elder rule);
its persistence is its height above the level at which it died. Noise makes short-lived islands,
modes make long-lived ones.

Everything is exact for the grid graph in which a node touches all `3^d - 1` neighbours, and
vectorised over nodes: only one short Python loop runs, over the maxima.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .mode_set import IntArray
from .surfaces import FloatArray

# Up to this many maxima the saddles are collected in a dense table (at most 18 MB), which is
# several times faster than sorting the pairs.
_DENSE_MAXIMA = 1500


@dataclass(frozen=True)
class ElderTree:
    """How k summits joined as the level fell.

    Parameters
    ----------
    deaths : (k,) array
        Level at which each summit's component met one with a higher summit; `-inf` for the highest.
    parents : (k,) int array
        Summit of the component that it joined; the highest is its own parent.
    neighbours : (k,) int array
        Summit whose own basin lies across the saddle (a member of the parent's component).
        The edges `(i, neighbours[i])` form a maximum spanning tree of the saddles.
    events : (k - 1, 2) int array
        The two components joined at each event, in order: below k a single summit, else
        `k + event`.
    event_levels : (k - 1,) array
        Level of each event, not increasing.
    event_of : (k,) int array
        The event at which each summit died; -1 for the highest.
    """

    deaths: FloatArray
    parents: IntArray
    neighbours: IntArray
    events: IntArray
    event_levels: FloatArray
    event_of: IntArray


@dataclass(frozen=True)
class Persistence:
    """The k local maxima of a gridded surface, highest first.

    Parameters
    ----------
    maxima : (k,) int array
        Flat (C order) index of each maximum in the grid.
    heights : (k,) array
        Value at each maximum.
    deaths : (k,) array
        Value at the saddle where its island met a higher one; `-inf` for the highest.
    persistence : (k,) array
        `heights - deaths`; infinite for the highest.
    sizes : (k,) int array
        Number of nodes of the component `{values >= death}` that holds the maximum: the size of
        the merged island when it died. All nodes considered, for the highest.
    parents, neighbours : (k,) int arrays
        See `ElderTree`.
    labels : int array, shape of the grid
        The maximum that steepest ascent from each node leads to; -1 for nodes not considered.
    """

    maxima: IntArray
    heights: FloatArray
    deaths: FloatArray
    persistence: FloatArray
    sizes: IntArray
    parents: IntArray
    neighbours: IntArray
    labels: IntArray

    @property
    def count(self) -> int:
        """Number of local maxima k."""
        return int(self.maxima.shape[0])


def grid_persistence(values: ArrayLike, *, floor: float | None = None) -> Persistence:
    """Find the local maxima of a d-dimensional grid, their basins and their persistence.

    Ties are broken by flat index: of two equal nodes the one with the lower index counts as the
    higher, so that a constant array has one maximum, at its first node. A flat top may have
    several; all but one have persistence zero.

    Parameters
    ----------
    values : array of any shape
        Surface on a product grid. Nodes that are not finite are left out.
    floor : float, optional
        Leave out nodes below this value. Islands that have not met above it are taken to meet at
        it, so their persistence is then a lower bound.

    Returns
    -------
    Persistence
        Highest maximum first. Empty when no node is left.
    """
    grid = np.asarray(values, dtype=np.float64)
    if grid.ndim == 0:
        grid = grid.reshape(1)
    considered = np.isfinite(grid)
    if floor is not None:
        considered &= grid >= floor
    grid = np.where(considered, grid, -np.inf)
    maxima, labels = _basins(grid, considered)
    heights = grid.ravel()[maxima]
    first, second, levels = _saddles(grid, labels, maxima.size)
    lowest = -np.inf if floor is None else float(floor)
    tree = elder_tree(heights, first, second, levels, lowest=lowest)
    sizes = _merged_sizes(grid, labels, tree)
    return Persistence(
        maxima=maxima,
        heights=heights,
        deaths=tree.deaths,
        persistence=heights - tree.deaths,
        sizes=sizes,
        parents=tree.parents,
        neighbours=tree.neighbours,
        labels=labels,
    )


def elder_tree(
    heights: FloatArray,
    first: IntArray,
    second: IntArray,
    levels: FloatArray,
    *,
    lowest: float = -np.inf,
) -> ElderTree:
    """Apply the elder rule to summits joined by saddles.

    Parameters
    ----------
    heights : (k,) array
        Height of each summit, in any order; of equal ones the first counts as the higher.
    first, second : (m,) int arrays
        The two summits of each saddle.
    levels : (m,) array
        Height of each saddle.
    lowest : float
        Level at which components that no saddle joins are taken to meet.

    Returns
    -------
    ElderTree
        Death level, parent and neighbour of every summit, and the order of the joins.
    """
    k = heights.shape[0]
    age = np.empty(k, dtype=np.int64)
    age[np.argsort(-heights, kind="stable")] = np.arange(k)
    ages = age.tolist()
    deaths = np.full(k, -np.inf)
    parents, neighbours = np.arange(k), np.arange(k)
    event_of = np.full(k, -1, dtype=np.int64)
    events: list[tuple[int, int]] = []
    event_levels: list[float] = []
    leader, summit, component = list(range(k)), list(range(k)), list(range(k))

    def find(node: int) -> int:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    def join(a: int, b: int, level: float) -> None:
        elder, younger = find(a), find(b)
        if elder == younger:
            return
        across = a
        if ages[summit[elder]] > ages[summit[younger]]:
            elder, younger, across = younger, elder, b
        dying = summit[younger]
        deaths[dying], parents[dying], neighbours[dying] = level, summit[elder], across
        event_of[dying] = len(events)
        events.append((component[elder], component[younger]))
        event_levels.append(level)
        leader[younger] = elder
        component[elder] = k + len(events) - 1

    for a, b, level in _spanning_edges(k, first, second, levels):
        join(a, b, level)
    by_age = np.argsort(age)
    for other in by_age[1:].tolist():
        if find(other) != find(int(by_age[0])):
            join(int(by_age[0]), other, lowest)
    return ElderTree(
        deaths=deaths,
        parents=parents,
        neighbours=neighbours,
        events=np.array(events, dtype=np.int64).reshape(-1, 2),
        event_levels=np.array(event_levels, dtype=np.float64),
        event_of=event_of,
    )


def drain(neighbours: IntArray, kept: IntArray) -> IntArray:
    """Say which kept summit each summit's basin belongs to once the others are given up.

    A summit that is not kept drains over its death saddle into the basin across it, and on
    from there until a kept one is reached.

    Parameters
    ----------
    neighbours : (k,) int array
        From `Persistence` or `ElderTree`.
    kept : (m,) int array
        The summits kept. Must hold the highest, or basins that only drain to it keep its label.

    Returns
    -------
    (k,) int array
        Index of a kept summit for every summit.
    """
    target = neighbours.copy()
    target[kept] = kept
    return _follow(target)


def _offsets(dimension: int) -> Iterator[tuple[int, ...]]:
    """Yield the neighbour offsets that come later in C order: half of them all."""
    for offset in product((-1, 0, 1), repeat=dimension):
        if offset > (0,) * dimension:
            yield offset


def _pair_views(offset: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return slices that line every node up with its neighbour at `offset`."""
    here = tuple(slice(None, -1) if o > 0 else slice(1, None) if o < 0 else slice(None) for o in offset)
    there = tuple(slice(1, None) if o > 0 else slice(None, -1) if o < 0 else slice(None) for o in offset)
    return here, there


def _strides(shape: tuple[int, ...]) -> IntArray:
    """Return the flat index distance between neighbours along each axis."""
    return np.cumprod((1, *shape[:0:-1]), dtype=np.int64)[::-1]


def _follow(target: IntArray) -> IntArray:
    """Follow pointers to their fixed points, doubling the stride each round."""
    while True:
        further = target[target]
        if np.array_equal(further, target):
            return target
        target = further


def _basins(grid: FloatArray, considered: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return maxima (highest first) and, for every node, the maximum that it climbs to."""
    uphill = _uphill(grid)
    roots = _follow(uphill)
    flat, inside = grid.ravel(), considered.ravel()
    maxima = np.flatnonzero((roots == np.arange(roots.size)) & inside)
    maxima = maxima[np.argsort(-flat[maxima], kind="stable")]
    number = np.full(roots.size, -1, dtype=np.int64)
    number[maxima] = np.arange(maxima.size)
    labels = np.where(inside, number[roots], -1).reshape(grid.shape)
    return maxima, labels


def _uphill(grid: FloatArray) -> IntArray:
    """Point every node at its steepest higher neighbour, or at itself."""
    strides = _strides(grid.shape)
    steepest = np.zeros(grid.shape)
    move = np.zeros(grid.shape, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        for offset in _offsets(grid.ndim):
            here, there = _pair_views(offset)
            jump = int(np.dot(offset, strides))
            rise = (grid[there] - grid[here]) * (1.0 / np.sqrt(np.sum(np.square(offset))))
            _improve(steepest[here], move[here], rise, jump)
            np.negative(rise, out=rise)
            _improve(steepest[there], move[there], rise, -jump)
    uphill = np.arange(grid.size) + move.ravel()
    _break_ties(grid, uphill, np.flatnonzero(move.ravel() == 0))
    return uphill


def _improve(steepest: FloatArray, move: IntArray, rise: FloatArray, jump: int) -> None:
    """Record `jump` in place where it climbs more steeply than what was known."""
    better = rise > steepest
    np.copyto(steepest, rise, where=better)
    np.copyto(move, jump, where=better)


def _break_ties(grid: FloatArray, uphill: IntArray, summits: IntArray) -> None:
    """Point summits at an equal neighbour of lower index, in place: plateaus get one owner."""
    strides, flat = _strides(grid.shape), grid.ravel()
    place = np.stack(np.unravel_index(summits, grid.shape), axis=-1)
    upper = np.array(grid.shape)
    free = np.ones(summits.size, dtype=bool)
    for offset in _offsets(grid.ndim):
        neighbour = place - np.array(offset)
        inside = free & np.all((neighbour >= 0) & (neighbour < upper), axis=1)
        chosen = np.flatnonzero(inside)
        other = summits[chosen] - int(np.dot(offset, strides))
        equal = flat[other] == flat[summits[chosen]]
        uphill[summits[chosen[equal]]] = other[equal]
        free[chosen[equal]] = False


def _saddles(grid: FloatArray, labels: IntArray, count: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the highest pass between every two touching basins."""
    empty = np.empty(0, dtype=np.int64)
    if count < 2:
        return empty, empty, np.empty(0)
    dense = count <= _DENSE_MAXIMA
    table = np.full(count * count if dense else 0, -np.inf)
    keys: list[IntArray] = []
    passes: list[FloatArray] = []
    for offset in _offsets(grid.ndim):
        key, level = _touching(grid, labels, offset, count)
        if dense:
            np.maximum.at(table, key, level)
        else:
            key, level = _highest_per_key(key, level)
            keys.append(key)
            passes.append(level)
    if dense:
        pairs = np.flatnonzero(table > -np.inf)
        return pairs // count, pairs % count, table[pairs]
    pairs, levels = _highest_per_key(np.concatenate(keys), np.concatenate(passes))
    return pairs // count, pairs % count, levels


def _touching(
    grid: FloatArray, labels: IntArray, offset: tuple[int, ...], count: int
) -> tuple[IntArray, FloatArray]:
    """Return basin pair (as one number) and level of all edges at `offset` that join two basins."""
    here, there = _pair_views(offset)
    label_here, label_there = labels[here], labels[there]
    border = label_here != label_there
    one, two = label_here[border], label_there[border]
    level = np.minimum(grid[here][border], grid[there][border])
    inside = (one >= 0) & (two >= 0)
    if not inside.all():
        one, two, level = one[inside], two[inside], level[inside]
    return np.minimum(one, two) * count + np.maximum(one, two), level


def _highest_per_key(key: IntArray, level: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the distinct keys, sorted, and the highest level of each."""
    if key.size == 0:
        return key, level
    order = np.argsort(key, kind="stable")
    key, level = key[order], level[order]
    starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    return key[starts], np.maximum.reduceat(level, starts)


def _spanning_edges(
    count: int, first: IntArray, second: IntArray, levels: FloatArray
) -> Iterator[tuple[int, int, float]]:
    """Yield the saddles of a maximum spanning forest, highest first."""
    if levels.size == 0:
        return
    from scipy.sparse import csr_matrix  # imported here: slow to import
    from scipy.sparse.csgraph import minimum_spanning_tree

    order = np.lexsort((second, first, -levels))
    first, second, levels = first[order], second[order], levels[order]
    # Ranks as weights: distinct, positive, so that ties and zero levels cannot matter. Only the
    # first of several saddles between one pair may enter, or the sparse matrix would add them.
    pair = np.minimum(first, second) * count + np.maximum(first, second)
    keep = np.sort(np.unique(pair, return_index=True)[1])
    keep = keep[first[keep] != second[keep]]
    graph = csr_matrix((keep + 1.0, (first[keep], second[keep])), shape=(count, count))
    chosen = np.sort(minimum_spanning_tree(graph).data.astype(np.int64)) - 1
    yield from zip(first[chosen].tolist(), second[chosen].tolist(), levels[chosen].tolist(), strict=True)


def _merged_sizes(grid: FloatArray, labels: IntArray, tree: ElderTree) -> IntArray:
    """Count, for every maximum, the nodes of the component in which it died.

    A node enters the tree of joins at the first event, on the way down from its basin, whose
    level it reaches; the nodes of a component are then those of its whole subtree.
    """
    k = tree.deaths.shape[0]
    inside = labels.ravel() >= 0
    sizes = np.full(k, int(np.count_nonzero(inside)), dtype=np.int64)
    n_events = tree.event_levels.size
    if n_events == 0:
        return sizes
    values, leaf = grid.ravel(), labels.ravel()
    if not inside.all():
        values, leaf = values[inside], leaf[inside]
    entered = _entry_events(values, leaf, tree)
    count = np.bincount(entered, minlength=n_events + 1)[:n_events].tolist()
    for event, (one, two) in enumerate(tree.events.tolist()):
        count[event] += sum(count[part - k] for part in (one, two) if part >= k)
    # Components that meet at one level are one component {values >= level}: count it whole.
    joined_by = _joined_by(k, tree.events)
    levels = tree.event_levels.tolist()
    for event in range(n_events - 1, -1, -1):
        later = int(joined_by[k + event])
        if later < n_events and levels[later] == levels[event]:
            count[event] = count[later]
    dead = tree.event_of >= 0
    sizes[dead] = np.array(count, dtype=np.int64)[tree.event_of[dead]]
    return sizes


def _joined_by(count: int, events: IntArray) -> IntArray:
    """Return, for every component, the event that joined it; the number of events for none."""
    n_events = events.shape[0]
    joined = np.full(count + n_events + 1, n_events, dtype=np.int64)
    joined[events.ravel()] = np.repeat(np.arange(n_events), 2)
    return joined


def _entry_events(values: FloatArray, leaf: IntArray, tree: ElderTree) -> IntArray:
    """Return the first event at or below each node's value that its component takes part in."""
    count, n_events = tree.deaths.shape[0], tree.event_levels.size
    joined = _joined_by(count, tree.events)
    level = np.append(tree.event_levels, -np.inf)
    entered = joined[leaf]
    low = np.flatnonzero(level[entered] > values)
    # Binary lifting over the chain of events, for the nodes below their basin's first event.
    current, height = entered[low], values[low]
    after = joined[count:]
    jumps = [after]
    while np.any(jumps[-1] < n_events):
        jumps.append(jumps[-1][jumps[-1]])
    for jump in reversed(jumps):
        further = jump[current]
        current = np.where(level[further] > height, further, current)
    entered[low] = after[current]
    return entered
