"""The released surface: exact files, damaged files, readings, and nothing of the rows but the vector."""

from __future__ import annotations

import copy
import gzip
import json
import math
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydpmode.budget import PrivacySpent
from pydpmode.errors import InvalidArgument, SurfaceFileError, UnknownColumn
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.surfaces import Surface
from pydpmode.results.coordinates import Coordinate
from pydpmode.results.released_surface import ReleasedSurface, load_surface

NAMES = ("age", "wage", "score", "days", "pulse")


def spent(n: int | None, sigma: float = 4.0, **changes: Any) -> PrivacySpent:
    fields: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "adjacency": "replace" if n is not None else "add_remove",
        "unit": "row",
        "mechanism": "surface (discrete Gaussian)",
        "sensitivity": 1.01,
        "noise_scale": sigma,
        "n_units": n,
        "bounds": {"age": (0.0, 5.0)},
    }
    return PrivacySpent(**{**fields, **changes})


def design_of(d: int) -> Design:
    box = NAMES[:d], np.zeros(d), np.full(d, 5.0), np.full(d, 0.8)
    return LatticeDesign(*box) if d <= 3 else RandomDesign(*box, n_pairs=400, frequency_seed=3)


def release(
    d: int, *, n: int = 3000, public: bool = True, noise: float = 4.0, seed: int = 0
) -> ReleasedSurface:
    """Return a release of n records around (1.5, ..., 1.5), by hand."""
    design = design_of(d)
    rng = np.random.default_rng(seed)
    x = rng.normal(1.5, 0.6, (d, n)).clip(0, 5)
    total, sums = feature_sum(design, x)
    root = np.sqrt(design.pair_weights)
    vector = np.concatenate([[math.sqrt(design.zero_weight) * total], root * sums.real, root * sums.imag])
    vector = vector + rng.normal(size=vector.size) * noise
    first = Coordinate("age", "log_of", "log") if d == 5 else Coordinate.plain("age")
    coordinates = (first, *(Coordinate.plain(c) for c in NAMES[1:d]))
    return ReleasedSurface.from_vector(
        design, vector, spent(n if public else None, sigma=max(noise, 1e-9)), coordinates
    )


READINGS: dict[str, Callable[[], ReleasedSurface]] = {
    "1": lambda: release(1),
    "2": lambda: release(2),
    "3": lambda: release(3, n=500),
    "5": lambda: release(5),
    "2, wider": lambda: release(2).at_bandwidth(np.array([0.9, 1.1])),
    "3, marginal": lambda: release(3).marginal(["age", "score"]),
    "3, marginal, wider": lambda: release(3).marginal(["wage", "score"]).at_bandwidth(np.array([1.0, 0.7])),
    "3, wider, marginal": lambda: release(3).at_bandwidth(np.array([0.9, 1.0, 1.1])).marginal("wage"),
    "5, marginal": lambda: release(5).marginal(["age", "days"]),
    "5, wider, marginal": lambda: release(5).at_bandwidth(1.0).marginal(["age", "days"]),
    "5, marginal, wider, marginal": lambda: (
        release(5).marginal(["age", "days", "pulse"]).at_bandwidth(np.array([1.0, 0.7, 0.9])).marginal("days")
    ),
    "private n": lambda: release(2, public=False),
}


def points_in(surface: ReleasedSurface, n: int = 20) -> np.ndarray:
    unit = np.random.default_rng(1).uniform(size=(n, surface.dimension))
    return surface.lower + unit * (surface.upper - surface.lower)


def assert_same(one: ReleasedSurface, other: ReleasedSurface) -> None:
    """Bit for bit: vector, readings, noise, statement, coordinates."""
    points = points_in(one)
    np.testing.assert_array_equal(one.vector, other.vector)
    for a, b in zip(one.derivatives(points), other.derivatives(points), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.noise.hessian, other.noise.hessian)
    np.testing.assert_array_equal(one.bandwidth, other.bandwidth)
    assert one.privacy == other.privacy
    assert one.coordinates == other.coordinates
    assert one.columns == other.columns
    assert one.n_effective == other.n_effective
    assert one.to_dict() == other.to_dict()
    assert repr(one) == repr(other)


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".surface"])
def test_a_file_brings_back_every_bit(name: str, suffix: str, tmp_path: Path) -> None:
    surface = READINGS[name]()
    path = surface.save(tmp_path / f"one{suffix}")
    assert path.exists()
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == (suffix == ".json.gz")
    assert_same(surface, load_surface(path))
    assert_same(surface, ReleasedSurface.load(str(path)))


@pytest.mark.parametrize("name", ["2, wider", "5, wider, marginal"])
def test_pickle_and_copies_bring_back_every_bit(name: str) -> None:
    surface = READINGS[name]()
    assert_same(surface, pickle.loads(pickle.dumps(surface)))
    assert_same(surface, copy.deepcopy(surface))


def test_a_file_is_plain_json_without_nan_and_says_what_it_is(tmp_path: Path) -> None:
    data = json.loads(release(2).save(tmp_path / "s.json").read_text(encoding="utf-8"))
    assert data["format"] == "pydpmode.surface"
    assert data["privacy"]["epsilon"] == 1.0
    assert data["columns"] == ["age", "wage"]


# -- damaged files --------------------------------------------------------------------------------------


def change(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    out = copy.deepcopy(data)
    *parents, last = path.split("/")
    target: Any = out
    for name in parents:
        target = target[int(name) if isinstance(target, list) else name]
    if value is ...:
        del target[last]
    else:
        target[int(last) if isinstance(target, list) else last] = value
    return out


DAMAGES = [
    ("format", "other"),
    ("version", 2),
    ("version", "x"),
    ("version", math.inf),
    ("vector", "AAAA"),
    ("vector", "!"),
    ("vector", 7),
    ("design/kind", "sobol"),
    ("design/n_pairs", 0),
    ("design/lower", [9, 9]),
    ("design/bandwidth", [0.8, 0.8, 0.8]),
    ("design/order", 3),
    ("design/zero_weight", 0),
    ("design/cut", 1e300),
    ("design/read_ratio", -5),
    ("privacy/epsilon", "one"),
    ("privacy/noise_scale", -1.0),
    ("privacy/noise_scale", math.nan),
    ("privacy/n_units", 0),
    ("privacy/simulated", 0),
    ("privacy/simulated", ...),
    ("privacy/adjacency", "swap"),
    ("privacy/bounds", {"age": [1]}),
    ("privacy/surprise", 1),
    ("columns", ["age", "money"]),
    ("columns", []),
    ("columns", ["wage", "age"]),
    ("columns", 3),
    ("coordinates", []),
    ("coordinates/0/transform", "sqrt"),
    ("coordinates/0/name", "wage"),
    ("coordinates/1/surprise", 1),
    ("bandwidth", [0.8]),
    ("bandwidth", 0.8),
    ("bandwidth", [0.8, math.nan]),
    ("bandwidth", [0.8, 80.0]),
    ("bandwidth", ["wide", 1]),
    *[(name, ...) for name in ("format", "version", "design", "privacy", "vector", "columns", "bandwidth")],
]


@pytest.mark.parametrize(("path", "value"), DAMAGES, ids=str)
def test_damaged_entries_are_refused(path: str, value: Any) -> None:
    data = change(release(2).to_dict() if path != "design/n_pairs" else release(5).to_dict(), path, value)
    with pytest.raises(SurfaceFileError):
        ReleasedSurface.from_dict(data)


def test_a_vector_that_is_not_finite_is_refused() -> None:
    surface = release(1)
    vector = surface.vector.copy()
    vector[3] = math.nan
    with pytest.raises(InvalidArgument, match="finite numbers"):
        ReleasedSurface.from_vector(surface.design, vector, surface.privacy)
    with pytest.raises(InvalidArgument, match="must hold"):
        ReleasedSurface.from_vector(surface.design, vector[:-1], surface.privacy)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b"null", b"\xff\xfe\x00", b"[" * 100_000, b"a,b\n1,2\n", b"\x1f\x8b\x08"],
    ids=lambda c: repr(c[:8]),
)
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_other_files_are_refused(content: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"other{suffix}"
    path.write_bytes(content)
    with pytest.raises(SurfaceFileError, match="other"):
        load_surface(path)


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(keep: float, tmp_path: Path) -> None:
    for suffix in (".json", ".json.gz"):
        path = release(1).save(tmp_path / f"one{suffix}")
        content = path.read_bytes()
        path.write_bytes(content[: int(keep * len(content))])
        with pytest.raises(SurfaceFileError):
            load_surface(path)


@given(st.integers(0, 10**9), st.integers(0, 255), st.booleans())
def test_a_changed_byte_gives_a_surface_or_the_packages_error(place: int, byte: int, packed: bool) -> None:
    content = json.dumps(release(1, n=5).to_dict()).encode()
    content = gzip.compress(content, mtime=0) if packed else content
    changed = bytearray(content)
    changed[place % len(content)] = byte
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("one.json.gz" if packed else "one.json")
        path.write_bytes(bytes(changed))
        try:
            surface = load_surface(path)
        except SurfaceFileError as problem:
            assert str(problem)  # noqa: PT017
        else:
            assert surface.vector.shape == (1 + 2 * surface.design.n_pairs,)


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_surface(tmp_path / "nowhere.json")


# -- what it depends on --------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 5])
def test_nothing_but_the_vector_depends_on_the_rows(d: int) -> None:
    one, other = release(d, seed=1).to_dict(), release(d, seed=2).to_dict()
    assert one.pop("vector") != other.pop("vector")
    assert one == other


def test_a_surface_is_a_function_of_its_vector_alone() -> None:
    surface = release(2)
    again = ReleasedSurface.from_vector(surface.design, surface.vector, surface.privacy, surface.coordinates)
    assert_same(surface, again)
    with pytest.raises(ValueError, match="read-only"):
        surface.vector[0] = 0
    assert "array" not in repr(surface)
    assert surface.privacy.statement() in repr(surface)
    simulated = ReleasedSurface.from_vector(surface.design, surface.vector, spent(3000, simulated=True))
    assert "SIMULATED, not private" in repr(simulated)


# -- readings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
def test_without_noise_it_is_the_kernel_density_estimate(d: int) -> None:
    surface = release(d, noise=0.0)
    x = np.random.default_rng(0).normal(1.5, 0.6, (d, 3000)).clip(0, 5)
    points = points_in(surface)
    t2 = (((points[:, :, None] - x[None]) / 0.8) ** 2).sum(axis=1)
    truth = np.exp(-t2 / 2).mean(axis=1) / (math.sqrt(2 * math.pi) * 0.8) ** d
    np.testing.assert_allclose(surface.density(points), truth, atol=1e-4 * truth.max())
    assert surface.total == pytest.approx(3000)
    assert surface.n_effective == pytest.approx(3000)
    assert surface.negative_mass() == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("name", ["2", "3, marginal", "5, marginal", "2, wider"])
def test_it_meets_the_contract(name: str) -> None:
    surface = READINGS[name]()
    assert isinstance(surface, Surface)
    points = points_in(surface, 4)
    value, gradient, hessian = surface.derivatives(points)
    d = surface.dimension
    assert (value.shape, gradient.shape, hessian.shape) == ((4,), (4, d), (4, d, d))
    np.testing.assert_allclose(value, surface.density(points), rtol=1e-9)
    np.testing.assert_allclose(gradient, surface.gradient(points), rtol=1e-9)
    np.testing.assert_allclose(hessian, surface.hessian(points), rtol=1e-9)
    axes = [np.linspace(low, high, 3) for low, high in zip(surface.lower, surface.upper, strict=True)]
    assert surface.density_on_grid(axes).shape == (3,) * d
    assert surface.noise_sd == pytest.approx(math.sqrt(surface.noise.value))
    assert surface.order == 2
    assert surface.total_sd == pytest.approx(4 / math.sqrt(0.5))
    assert np.all(surface.noise_length > 0)
    assert surface.roughness.value > 0
    assert tuple(c.name for c in surface.coordinates) == surface.columns


def test_integrals_and_marginals() -> None:
    surface = release(2)
    inf = math.inf
    # The rest is kernel mass outside the box: the records lie 2.5 sd from one face.
    assert surface.integrate([-inf, -inf], [inf, inf]) == pytest.approx(0.88, abs=0.06)
    assert surface.marginal("age").integrate([-inf], [inf]) == pytest.approx(0.94, abs=0.04)
    assert surface.marginal("age").coordinates == surface.coordinates[:1]
    assert surface.marginal(["wage", "age"]).columns == ("age", "wage")
    for columns in ("income", [], ["age", "age"]):
        with pytest.raises(UnknownColumn):
            surface.marginal(columns)
    with pytest.raises(InvalidArgument):
        surface.integrate([0], [1, 1])


def test_samples_follow_the_surface() -> None:
    surface = release(2, n=20_000)
    points = surface.sample(20_000, seed=1)
    whole = surface.integrate([0, 0], [5, 5])
    share = surface.integrate([0, 0], [1.5, 5]) / whole
    assert float(np.mean(points[:, 0] < 1.5)) == pytest.approx(share, abs=0.02)
    np.testing.assert_allclose(points.mean(axis=0), 1.65, atol=0.1)
    np.testing.assert_array_equal(points, surface.sample(20_000, seed=1))
    with pytest.raises(InvalidArgument):
        surface.sample(-1)


def test_more_noise_means_more_negative_mass() -> None:
    quiet, loud = release(2, noise=1.0), release(2, noise=800.0)
    assert quiet.negative_mass() < 0.1 < loud.negative_mass()
    assert loud.negative_mass() == loud.negative_mass()


@pytest.mark.parametrize(
    ("total", "n", "used"), [(90.0, 100, 90), (130.0, 100, 100), (-5.0, 100, 1), (130.0, None, 130)]
)
def test_the_total_to_divide_by_is_at_most_public_and_at_least_one(
    total: float, n: int | None, used: float
) -> None:
    design = design_of(1)
    vector = np.zeros(1 + 2 * design.n_pairs)
    vector[0] = total * math.sqrt(design.zero_weight)
    surface = ReleasedSurface.from_vector(design, vector, spent(n))
    assert surface.n_effective == pytest.approx(used)
    assert surface.total == pytest.approx(total)
    assert np.all(np.isfinite(surface.density(np.array([1.0, 2.0]))))
