from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.mode_merging import MergedPoints, merge_by_radius, merge_by_ward


def test_radius_groups_around_the_weightiest_point_without_chaining() -> None:
    points = np.array([[0.0], [0.8], [1.6], [5.0]])
    merged = merge_by_radius(points, [1.0, 3.0, 2.0, 4.0], 1.0)
    np.testing.assert_array_equal(merged.representatives, [3, 1])
    np.testing.assert_array_equal(merged.labels, [1, 1, 1, 0])
    np.testing.assert_allclose(merged.centres, [[5.0], [0.8]])
    chain = merge_by_radius(points, [3.0, 2.0, 1.0, 4.0], 1.0)
    np.testing.assert_array_equal(chain.labels, [1, 1, 2, 0])


def test_radius_zero_joins_identical_points_only() -> None:
    merged = merge_by_radius([[1.0, 2.0], [1.0, 2.0], [1.0, 2.1]], [1.0, 1.0, 1.0], 0.0)
    np.testing.assert_array_equal(merged.labels, [0, 0, 1])
    np.testing.assert_array_equal(merged.representatives, [0, 2])


@given(st.integers(0, 10**6), st.floats(0.0, 3.0))
def test_radius_rule_properties(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(25, 3)), rng.integers(0, 5, 25).astype(float)
    merged = merge_by_radius(points, weights, radius)
    centre = points[merged.representatives]
    assert np.all(np.linalg.norm(points - centre[merged.labels], axis=1) <= radius + 1e-12)
    apart = np.linalg.norm(centre[:, None] - centre[None], axis=-1) + np.eye(merged.count) * 99
    assert np.all(apart > radius)
    assert np.all(weights <= weights[merged.representatives][merged.labels])


@pytest.mark.parametrize("d", [1, 4])
def test_ward_finds_tight_clusters(d: int) -> None:
    rng = np.random.default_rng(d)
    centres = np.arange(3)[:, None] * 10.0 * np.ones(d)
    truth = rng.permutation(np.repeat(np.arange(3), 7))
    points = centres[truth] + rng.normal(size=(21, d)) * 0.5
    merged = merge_by_ward(points, 3, weights=np.arange(21.0))
    assert merged.representatives[0] == 20
    for group in range(3):
        members = np.flatnonzero(merged.labels == group)
        assert np.unique(truth[members]).size == 1
        assert merged.representatives[group] == members.max()
        np.testing.assert_allclose(merged.centres[group], points[members].mean(axis=0))


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5, 6, 9])
def test_ward_gives_the_number_asked_for_even_of_identical_points(n_clusters: int) -> None:
    points = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [2.0]])
    merged = merge_by_ward(points, n_clusters)
    assert merged.count == min(n_clusters, 6)
    np.testing.assert_array_equal(np.unique(merged.labels), np.arange(merged.count))


def test_ward_is_deterministic_on_ties() -> None:
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    one, two = merge_by_ward(square, 2), merge_by_ward(square.copy(), 2)
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.labels[0] == 0


@pytest.mark.parametrize(
    "merge", [lambda p: merge_by_radius(p, np.empty(0), 1.0), lambda p: merge_by_ward(p, 3)]
)
def test_no_points(merge: object) -> None:
    merged = merge(np.empty((0, 2)))  # type: ignore[operator]
    assert isinstance(merged, MergedPoints)
    assert merged.count == 0
    assert merged.centres.shape == (0, 2)


def test_bad_arguments() -> None:
    with pytest.raises(InvalidArgument, match="radius"):
        merge_by_radius([[0.0]], [1.0], -1.0)
    with pytest.raises(InvalidArgument, match="radius"):
        merge_by_radius([[0.0]], [1.0], float("nan"))
    with pytest.raises(InvalidArgument, match="shapes"):
        merge_by_radius([[0.0]], [1.0, 2.0], 1.0)
    with pytest.raises(InvalidArgument, match="n_clusters"):
        merge_by_ward([[0.0]], 0)
