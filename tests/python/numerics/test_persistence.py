from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from pydpmode.numerics import persistence as module
from pydpmode.numerics.persistence import drain, elder_tree, grid_persistence

FloatArray = NDArray[np.float64]


def neighbours(shape: tuple[int, ...], place: tuple[int, ...]) -> list[tuple[int, ...]]:
    around = []
    for offset in product((-1, 0, 1), repeat=len(shape)):
        other = tuple(p + o for p, o in zip(place, offset, strict=True))
        if any(offset) and all(0 <= q < n for q, n in zip(other, shape, strict=True)):
            around.append(other)
    return around


def brute_force(values: FloatArray) -> dict[int, tuple[float, float, int]]:
    """Flat index of each maximum -> (height, death, nodes of its island {>= death}), one node at a time."""
    flat = values.ravel()
    order = sorted(range(flat.size), key=lambda i: (-flat[i], i))
    leader: dict[int, int] = {}
    death: dict[int, float] = {}
    members: dict[int, set[int]] = {}

    def find(node: int) -> int:
        while leader[node] != node:
            node = leader[node]
        return node

    islands: dict[int, int] = {}
    waiting: list[int] = []
    for step, node in enumerate(order):
        leader[node], members[node] = node, {node}
        place = tuple(int(i) for i in np.unravel_index(node, values.shape))
        for other in neighbours(values.shape, place):
            index = int(np.ravel_multi_index(other, values.shape))
            if index not in leader:
                continue
            one, two = find(node), find(index)
            if one == two:
                continue
            elder, younger = sorted((one, two), key=lambda i: (-flat[i], i))
            if younger != node:
                death[younger] = float(flat[node])
                waiting.append(younger)
            leader[younger] = elder
            members[elder] |= members.pop(younger)
        is_last_of_level = step + 1 == len(order) or flat[order[step + 1]] < flat[node]
        if is_last_of_level:
            islands.update({root: len(members[find(root)]) for root in waiting})
            waiting = []
    top = find(order[0])
    death[top], islands[top] = -np.inf, flat.size
    return {root: (float(flat[root]), death[root], islands[root]) for root in death}


def as_dict(values: FloatArray) -> dict[int, tuple[float, float, int]]:
    found = grid_persistence(values)
    return {
        int(node): (float(height), float(death), int(size))
        for node, height, death, size in zip(
            found.maxima, found.heights, found.deaths, found.sizes, strict=True
        )
    }


def positive(peaks: dict[int, tuple[float, float, int]]) -> dict[int, tuple[float, float, int]]:
    return {node: facts for node, facts in peaks.items() if facts[0] > facts[1]}


shapes = st.sampled_from([(1,), (17,), (6, 7), (1, 9), (9, 5), (3, 4, 5), (4, 4, 4), (3, 1, 6)])


@settings(max_examples=60)
@given(shape=shapes, seed=st.integers(0, 10**6))
def test_agrees_with_brute_force_without_ties(shape: tuple[int, ...], seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(shape)
    assert as_dict(values) == brute_force(values)


@settings(max_examples=60)
@given(shape=shapes, seed=st.integers(0, 10**6), levels=st.integers(1, 4))
def test_agrees_with_brute_force_on_plateaus_but_for_persistence_zero(
    shape: tuple[int, ...], seed: int, levels: int
) -> None:
    values = np.random.default_rng(seed).integers(0, levels, shape).astype(float)
    ours, theirs = positive(as_dict(values)), positive(brute_force(values))
    # Which node stands for a flat summit differs; heights, deaths and islands do not.
    assert sorted(ours.values()) == sorted(theirs.values())


def test_sparse_saddles_give_the_same_answer_as_the_dense_table(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).standard_normal((30, 30))
    dense = grid_persistence(values)
    monkeypatch.setattr(module, "_DENSE_MAXIMA", 3)
    sparse = grid_persistence(values)
    for name in ("maxima", "deaths", "sizes", "parents", "neighbours", "labels"):
        np.testing.assert_array_equal(getattr(dense, name), getattr(sparse, name))


def test_two_hills_by_hand() -> None:
    found = grid_persistence(np.array([0.0, 5.0, 1.0, 2.0, 3.0, 0.5, 4.0]))
    np.testing.assert_array_equal(found.maxima, [1, 6, 4])
    np.testing.assert_array_equal(found.deaths, [-np.inf, 0.5, 1.0])
    np.testing.assert_array_equal(found.sizes, [7, 6, 4])
    np.testing.assert_array_equal(found.parents, [0, 0, 0])
    # The peak at node 6 drains into the basin of node 4, though its component's summit is node 1.
    np.testing.assert_array_equal(found.neighbours, [0, 2, 0])
    np.testing.assert_array_equal(found.labels, [0, 0, 0, 2, 2, 1, 1])


def test_diagonal_neighbours_touch() -> None:
    values = np.array([[3.0, 0.0], [0.0, 2.0]])
    assert grid_persistence(values).count == 1


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 3, 3)])
def test_constant_array_has_one_maximum_at_the_first_node(shape: tuple[int, ...]) -> None:
    found = grid_persistence(np.full(shape, 2.5))
    np.testing.assert_array_equal(found.maxima, [0])
    assert np.isposinf(found.persistence[0])
    assert found.sizes[0] == np.prod(shape)
    assert not found.labels.any()


def test_only_one_maximum_of_a_flat_top_persists() -> None:
    values = np.zeros((9, 9))
    values[2:6, 3:8] = 1.0
    found = grid_persistence(values)
    assert np.isposinf(found.persistence[0])
    assert np.all(found.persistence[1:] == 0)


def test_nothing_to_find() -> None:
    for values in (np.full((3, 4), np.nan), np.empty((0, 3)), np.empty(0)):
        found = grid_persistence(values)
        assert found.count == 0
        assert found.labels.shape == values.shape
        assert np.all(found.labels == -1)


def test_nodes_that_are_not_finite_are_left_out() -> None:
    found = grid_persistence(np.array([1.0, 2.0, np.nan, 4.0, np.inf, 3.0]))
    np.testing.assert_array_equal(found.heights, [4.0, 3.0, 2.0])
    np.testing.assert_array_equal(found.labels, [2, 2, -1, 0, -1, 1])
    assert np.isneginf(found.deaths).all()


def test_floor_leaves_low_nodes_out_and_bounds_persistence_below() -> None:
    values = np.array([0.0, 5.0, 1.0, 3.0, -2.0, 4.0, 0.0])
    free, cut = grid_persistence(values), grid_persistence(values, floor=0.0)
    assert free.persistence[1] == 6.0
    assert cut.persistence[1] == 4.0
    assert cut.labels[4] == -1
    assert cut.persistence[2] == free.persistence[2] == 2.0
    assert cut.sizes[0] == 6


@pytest.mark.parametrize("floor", [-1.0, 0.0, 0.5])
def test_floor_changes_nothing_above_it(floor: float) -> None:
    values = gaussian_filter(np.random.default_rng(3).standard_normal((60, 60)), 2.0)
    values /= values.std()
    free, cut = as_dict(values), grid_persistence(values, floor=floor)
    for node, death, size in zip(cut.maxima, cut.deaths, cut.sizes, strict=True):
        if free[int(node)][1] >= floor:
            assert (death, size) == free[int(node)][1:]


def test_every_node_climbs_to_the_maximum_of_its_basin() -> None:
    values = gaussian_filter(np.random.default_rng(1).standard_normal((25, 31)), 1.5)
    found = grid_persistence(values)
    for node in range(values.size):
        place = tuple(int(i) for i in np.unravel_index(node, values.shape))
        while True:

            def slope(other: tuple[int, ...], here: tuple[int, ...] = place) -> float:
                return float(values[other] - values[here]) / float(np.linalg.norm(np.subtract(other, here)))

            best = max(neighbours(values.shape, place), key=slope)
            if values[best] <= values[place]:
                break
            place = best
        assert np.ravel_multi_index(place, values.shape) == found.maxima[found.labels.ravel()[node]]


def test_drain_ends_in_kept_summits() -> None:
    values = gaussian_filter(np.random.default_rng(2).standard_normal((80, 80)), 2.0)
    found = grid_persistence(values)
    kept = np.flatnonzero(found.persistence > 0.1)
    owner = drain(found.neighbours, kept)
    assert set(owner) == set(kept.tolist())
    np.testing.assert_array_equal(owner[kept], kept)


def test_drained_basins_are_connected() -> None:
    values = gaussian_filter(np.random.default_rng(4).standard_normal((70, 70)), 2.0)
    found = grid_persistence(values)
    kept = np.flatnonzero(found.persistence > 0.12)
    merged = drain(found.neighbours, kept)[found.labels]
    assert kept.size > 2
    for mode in kept:
        inside = np.where(merged == mode, 1.0, 0.0)
        assert grid_persistence(inside, floor=0.5).persistence[1:].sum() == 0


def test_input_is_not_changed_and_any_dtype_is_read() -> None:
    values = np.arange(12, dtype=np.int8).reshape(3, 4)
    values.flags.writeable = False
    assert grid_persistence(values).maxima.tolist() == [11]


def test_elder_tree_prefers_the_highest_of_repeated_saddles_and_ignores_loops() -> None:
    heights = np.array([3.0, 5.0, 4.0])
    first, second = np.array([0, 1, 2, 2, 1]), np.array([1, 0, 1, 2, 2])
    tree = elder_tree(heights, first, second, np.array([1.0, 2.0, 0.0, 9.0, 0.5]))
    np.testing.assert_array_equal(tree.deaths, [2.0, -np.inf, 0.5])
    np.testing.assert_array_equal(tree.parents, [1, 1, 1])


def test_elder_tree_joins_what_no_saddle_joins_at_the_lowest_level() -> None:
    none = np.empty(0, dtype=np.int64)
    tree = elder_tree(np.array([1.0, 2.0]), none, none, np.empty(0), lowest=-7.0)
    np.testing.assert_array_equal(tree.deaths, [-7.0, -np.inf])
    np.testing.assert_array_equal(tree.parents, [1, 1])
