"""Frequencies and weights: the lattice by brute force, the random draw frozen, absurd boxes refused."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydpmode.errors import InvalidArgument
from pydpmode.numerics.designs import (
    Design,
    LatticeDesign,
    RandomDesign,
    design_from_dict,
)
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.kernels import ORDERS, spectrum

NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")


def lattice(d: int, *, order: int = 2, **knobs: Any) -> LatticeDesign:
    lower, upper = np.array([-1.0, 0.0, 5.0])[:d], np.array([4.0, 9.0, 6.0])[:d]
    return LatticeDesign(NAMES[:d], lower, upper, np.array([1.0, 3.0, 0.25])[:d], order, **knobs)


def random_design(d: int, n_pairs: int = 64, seed: int = 1, **knobs: Any) -> RandomDesign:
    return RandomDesign(
        NAMES[:d], np.zeros(d), np.full(d, 8.0), np.ones(d), n_pairs=n_pairs, frequency_seed=seed, **knobs
    )


def all_frequencies(design: LatticeDesign) -> np.ndarray:
    """Return every lattice frequency inside the cut, zero excluded, by brute force."""
    reach = [int(design.cut * side / (2 * math.pi)) + 1 for side in design.sides]
    whole = itertools.product(*[range(-j, j + 1) for j in reach])
    w = np.array([k for k in whole if any(k)]) * (2 * np.pi / design.sides)
    return w[(w**2).sum(axis=1) <= design.cut**2]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_one_of_each_pair_of_frequencies_inside_the_cut(d: int) -> None:
    design = lattice(d)
    both = np.concatenate([design.frequencies, -design.frequencies])
    expected = all_frequencies(design)
    assert len(both) == len(expected)
    assert {tuple(w) for w in both.round(9)} == {tuple(w) for w in expected.round(9)}
    assert design.n_pairs == len(design.frequencies) == len(design.pair_weights)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_torus_holds_the_box_and_the_pad(d: int) -> None:
    design = lattice(d, read_ratio=1.25)
    np.testing.assert_allclose(
        design.sides, (design.upper - design.lower) / design.bandwidth + 6 * 1.25, rtol=1e-15
    )
    assert design.volume == pytest.approx(float(np.prod(design.sides * design.bandwidth)))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("zero_weight", [0.1, 0.5])
def test_weights_follow_the_spectrum_and_sum_to_one(order: int, d: int, zero_weight: float) -> None:
    design = lattice(d, order=order, zero_weight=zero_weight)
    weights = design.pair_weights
    assert math.fsum(weights) + zero_weight == pytest.approx(1, abs=1e-14)
    assert weights.min() > 0
    kappa = spectrum(order, (design.frequencies**2).sum(axis=1))
    np.testing.assert_allclose(weights / weights[0], kappa / kappa[0], rtol=1e-12)
    everywhere = 1 + spectrum(order, (all_frequencies(design) ** 2).sum(axis=1)).sum()
    assert design.natural_zero_weight == pytest.approx(1 / everywhere, rel=1e-12)


@pytest.mark.parametrize(
    "design", [lattice(1), lattice(2), lattice(3, order=4), random_design(5)], ids=["1", "2", "3", "random"]
)
def test_a_record_has_norm_one_wherever_it_is(design: Design) -> None:
    for place in (design.lower, design.upper, 0.3 * design.lower + 0.7 * design.upper):
        total, sums = feature_sum(design, place[:, None])
        norm2 = design.zero_weight * total**2 + float(design.pair_weights @ np.abs(sums) ** 2)
        assert norm2 == pytest.approx(1, abs=5e-12)


def test_marginal_designs_keep_the_torus_of_their_columns() -> None:
    design = lattice(3, order=4, zero_weight=0.2, read_ratio=2.0, cut=3.0)
    for axes in ([0], [1, 2], [0, 2], [0, 1, 2]):
        part = design.subset(axes)
        assert part.columns == tuple(NAMES[a] for a in axes)
        np.testing.assert_array_equal(part.sides, design.sides[axes])
        assert (part.order, part.zero_weight, part.read_ratio, part.cut) == (4, 0.2, 2.0, 3.0)


@pytest.mark.parametrize(
    "design",
    [lattice(2, order=6, zero_weight=0.3, read_ratio=1.1, cut=5.0), random_design(4, 32, 7, order=4)],
    ids=["lattice", "random"],
)
def test_a_design_survives_json(design: Design) -> None:
    again = design_from_dict(json.loads(json.dumps(design.to_dict())))
    assert type(again) is type(design)
    assert again.to_dict() == design.to_dict()
    np.testing.assert_array_equal(again.frequencies, design.frequencies)
    np.testing.assert_array_equal(again.pair_weights, design.pair_weights)


def test_an_unknown_kind_of_design_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="unknown kind"):
        design_from_dict({**lattice(1).to_dict(), "kind": "sobol"})


def test_random_frequencies_are_frozen_and_standard_normal() -> None:
    """A published surface holds the seed alone: these numbers may never change."""
    known = [[1.62434536366, -0.61175641365, -0.52817175226, -1.07296862216]]
    np.testing.assert_allclose(random_design(4, 1, 1).frequencies, known, rtol=1e-11)
    np.testing.assert_array_equal(random_design(4, 64, 1).frequencies[:1], random_design(4, 1, 1).frequencies)
    assert not np.allclose(random_design(4, 64, 2).frequencies, random_design(4, 64, 1).frequencies)
    w = random_design(5, 20_000, 3).frequencies
    np.testing.assert_allclose(w.mean(axis=0), 0, atol=5 / math.sqrt(20_000))
    np.testing.assert_allclose(w.T @ w / 20_000, np.eye(5), atol=5 * math.sqrt(2 / 20_000))


def test_random_weights_are_equal_and_sum_to_one() -> None:
    design = random_design(6, 100, zero_weight=0.1)
    np.testing.assert_allclose(design.pair_weights, 0.9 / 100, rtol=1e-15)


def test_random_features_refuse_to_be_read_too_narrow() -> None:
    design = random_design(4)
    with pytest.raises(InvalidArgument, match=r"below 0\.76"):
        design.read_weights(np.array([0.7, 1, 1, 1]), 2)
    assert np.all(design.read_weights(np.full(4, 0.78), 2) > 0)


def test_arrays_of_a_design_are_its_own_and_read_only() -> None:
    lower = np.zeros(1)
    design = LatticeDesign(("a",), lower, np.ones(1), np.full(1, 0.1))
    lower[0] = -7
    assert design.lower[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        design.lower[0] = 1


ABSURD = [
    {"bandwidth": [0.0]},
    {"bandwidth": [-1.0]},
    {"bandwidth": [math.nan]},
    {"bandwidth": [math.inf]},
    {"bandwidth": [1e-300]},
    {"bandwidth": [1e300]},
    {"bandwidth": [1e-9]},
    {"lower": [1.0]},
    {"lower": [2.0]},
    {"lower": [-math.inf]},
    {"upper": [math.nan]},
    {"lower": [-1e308], "upper": [1e308]},
    {"lower": [-1e308], "upper": [7e307], "bandwidth": [1e307]},
    {"lower": [-1e308], "upper": [7e307]},
    {"lower": [0.0], "upper": [5e-324], "bandwidth": [5e-324]},
    {"bandwidth": [0.1, 0.1]},
    {"order": 3},
    {"zero_weight": 0.0},
    {"zero_weight": 1.0},
    {"zero_weight": math.nan},
    {"read_ratio": math.nan},
    {"read_ratio": -1.0},
    {"read_ratio": math.inf},
    {"cut": 0.001},
    {"cut": 40.0},
    {"cut": math.nan},
    {"cut": 1.0, "read_ratio": 0.5, "bandwidth": [1.0]},
]


@pytest.mark.parametrize("changes", ABSURD, ids=repr)
def test_absurd_lattices_are_refused_by_the_package_without_a_warning(changes: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"lower": [0.0], "upper": [1.0], "bandwidth": [0.1]}
    with pytest.raises(InvalidArgument):
        LatticeDesign(("a",), **{**fields, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"n_pairs": 0},
        {"n_pairs": 1.5},
        {"n_pairs": True},
        {"n_pairs": 10**9},
        {"frequency_seed": -1},
        {"frequency_seed": 2**32},
        {"frequency_seed": "a"},
        {"bandwidth": [1e-300] * 4},
        {"bandwidth": [1e200] * 4},
    ],
    ids=repr,
)
def test_absurd_random_designs_are_refused(changes: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"lower": [0.0] * 4, "upper": [1.0] * 4, "bandwidth": [0.2] * 4}
    with pytest.raises(InvalidArgument):
        RandomDesign(NAMES[:4], **{**fields, **changes})


def test_a_lattice_has_at_most_three_columns_and_a_random_design_eight() -> None:
    with pytest.raises(InvalidArgument, match="1 to 3 columns"):
        LatticeDesign(NAMES[:4], np.zeros(4), np.ones(4), np.full(4, 0.5))
    with pytest.raises(InvalidArgument, match="at most 8"):
        RandomDesign((*NAMES, "i"), np.zeros(9), np.ones(9), np.full(9, 0.5))


def test_too_many_frequencies_are_refused_with_the_widths() -> None:
    with pytest.raises(InvalidArgument, match=r"too many bandwidths wide \(a: 10000, b: 10000\)"):
        LatticeDesign(("a", "b"), np.zeros(2), np.ones(2), np.full(2, 1e-4))


@given(
    st.integers(1, 3).flatmap(
        lambda d: st.tuples(
            st.lists(st.floats(-1e12, 1e12), min_size=d, max_size=d),
            st.lists(st.floats(1e-12, 1e12), min_size=d, max_size=d),
            st.lists(st.floats(1e-3, 1e3), min_size=d, max_size=d),
        )
    )
)
def test_a_design_is_refused_or_works(box: tuple[list[float], list[float], list[float]]) -> None:
    lower, widths, ratios = (np.array(part) for part in box)
    try:
        design = LatticeDesign(NAMES[: len(lower)], lower, lower + widths, widths * ratios)
        if design.n_pairs > 20_000:
            return
    except InvalidArgument:
        return
    assert design.n_pairs >= 1
    assert math.fsum(design.pair_weights) == pytest.approx(0.5, abs=1e-13)
    assert np.all(np.isfinite(design.read_weights(design.bandwidth, 2)))


# -- ladders -------------------------------------------------------------------------------------------

SCALES, MASSES = (1.0, 0.5, 0.25), (0.5, 0.3, 0.2)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_a_ladder_is_the_mixture_of_its_scales(d: int, order: int) -> None:
    """The weights of one scale alone, times its share, at frequencies in that scale's own units."""
    scales, masses = (SCALES[:2], (0.6, 0.4)) if d == 3 else (SCALES, MASSES)
    design = lattice(d, order=order, scales=scales, masses=masses)
    squared = (design.frequencies**2).sum(axis=1)
    expected = sum(m * s**d * spectrum(order, squared * s**2) for s, m in zip(scales, masses, strict=True))
    expected *= 0.5 / expected.sum()
    np.testing.assert_allclose(design.pair_weights, expected, rtol=1e-12)
    assert np.sqrt(squared.max()) <= design.cut / min(scales)
    # Each scale holds its share of the weight: the sum over a lattice is nearly the integral.
    whole = [
        m * s**d * float(spectrum(order, squared * s**2).sum()) for s, m in zip(scales, masses, strict=True)
    ]
    if order == 2:
        np.testing.assert_allclose(np.array(whole) / sum(whole), masses, atol=0.04)


def test_one_scale_is_the_plain_design() -> None:
    plain, same = lattice(2), lattice(2, scales=(1.0,), masses=(1.0,))
    np.testing.assert_array_equal(plain.pair_weights, same.pair_weights)
    assert "scales" not in plain.to_dict()


def test_a_ladder_survives_json_and_an_older_file_has_one_scale() -> None:
    design = lattice(2, scales=SCALES, masses=MASSES)
    again = design_from_dict(json.loads(json.dumps(design.to_dict())))
    assert isinstance(again, LatticeDesign)
    assert (again.scales, again.masses) == (SCALES, MASSES)
    np.testing.assert_array_equal(again.pair_weights, design.pair_weights)
    older = {k: v for k, v in design.to_dict().items() if k not in ("scales", "masses")}
    plain = design_from_dict(older)
    assert isinstance(plain, LatticeDesign)
    assert plain.scales == (1.0,)
    marginal = design.subset([1])
    assert (marginal.scales, marginal.masses) == (SCALES, MASSES)


@pytest.mark.parametrize(
    ("scales", "masses"),
    [
        ((), ()),
        ((1.0, 0.5), (1.0,)),
        ((1.0, 0.5), (0.5, 0.6)),
        ((1.0, 0.5), (1.0, 0.0)),
        ((2.0, 1.0), (0.5, 0.5)),
        ((1.0, 0.001), (0.5, 0.5)),
        ((1.0, math.nan), (0.5, 0.5)),
        ((1.0, 0.5), (math.nan, 0.5)),
    ],
)
def test_bad_ladders_are_refused(scales: tuple[float, ...], masses: tuple[float, ...]) -> None:
    with pytest.raises(InvalidArgument, match="scales must be"):
        lattice(1, scales=scales, masses=masses)
