"""A surface whose truth is known (a mixture of Gaussians) and results made by hand from it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pydpmode.budget import PrivacySpent
from pydpmode.numerics.mode_set import ModeSearchDiagnostics, ModeSet
from pydpmode.numerics.surfaces import FieldNoise, Roughness
from pydpmode.results import base_results
from pydpmode.results.results import Coordinate, DensityModesResults


@dataclass(frozen=True, eq=False)
class MixtureSurface:
    """A mixture of Gaussians with diagonal covariances, with the noise that is claimed for it."""

    columns: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    centres: np.ndarray
    scales: np.ndarray
    weights: np.ndarray
    bandwidth: np.ndarray
    noise_sd: float = 0.0
    privacy: PrivacySpent | None = None
    order: int = 2
    n_effective: float = 1000.0
    calls: list[str] = field(default_factory=list)

    @property
    def noise(self) -> FieldNoise:
        d = len(self.columns)
        return dataclasses.replace(FieldNoise.none(d), value=self.noise_sd**2)

    @property
    def noise_length(self) -> np.ndarray:
        return self.bandwidth

    @property
    def roughness(self) -> Roughness:
        d = len(self.columns)
        value = (4 * math.pi) ** (-d / 2) / float(np.prod(self.bandwidth))
        return Roughness(value, np.diag(value / (2 * self.bandwidth**2)))

    def density(self, points: np.ndarray) -> np.ndarray:
        z = (points[:, None, :] - self.centres) / self.scales
        norm = np.prod(self.scales * math.sqrt(2 * math.pi), axis=1)
        return np.exp(-0.5 * np.sum(z**2, axis=2)) @ (self.weights / norm)

    def density_on_grid(self, axes: Sequence[np.ndarray]) -> np.ndarray:
        mesh = np.meshgrid(*axes, indexing="ij")
        flat = np.stack([m.ravel() for m in mesh], axis=1)
        return self.density(flat).reshape(mesh[0].shape)

    def gradient(self, points: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def hessian(self, points: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def derivatives(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        raise NotImplementedError

    def at_bandwidth(self, bandwidth: np.ndarray) -> MixtureSurface:
        return dataclasses.replace(self, bandwidth=bandwidth)

    def marginal(self, columns: Sequence[str]) -> MixtureSurface:
        keep = [self.columns.index(c) for c in columns]
        return dataclasses.replace(
            self,
            columns=tuple(columns),
            lower=self.lower[keep],
            upper=self.upper[keep],
            centres=self.centres[:, keep],
            scales=self.scales[:, keep],
            bandwidth=self.bandwidth[keep],
        )

    def negative_mass(self) -> float:
        self.calls.append("negative_mass")
        return 0.0123

    def to_dict(self) -> dict[str, Any]:
        arrays = ("lower", "upper", "centres", "scales", "weights", "bandwidth")
        out: dict[str, Any] = {name: getattr(self, name).tolist() for name in arrays}
        privacy = None if self.privacy is None else self.privacy.to_dict()
        return out | {
            "type": "mixture",
            "columns": list(self.columns),
            "noise_sd": self.noise_sd,
            "privacy": privacy,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MixtureSurface:
        arrays = ("lower", "upper", "centres", "scales", "weights", "bandwidth")
        privacy = data["privacy"]
        return cls(
            columns=tuple(data["columns"]),
            noise_sd=data["noise_sd"],
            privacy=None if privacy is None else PrivacySpent.from_dict(privacy),
            **{name: np.array(data[name]) for name in arrays},
        )


def spent(bounds: Mapping[str, tuple[float, float]], **changes: Any) -> PrivacySpent:
    base = PrivacySpent(
        epsilon=1.0,
        delta=1e-6,
        adjacency="replace",
        unit="row",
        mechanism="surface (discrete Gaussian)",
        sensitivity=1.4142,
        noise_scale=5.974,
        n_units=178000,
        bounds=bounds,
    )
    return dataclasses.replace(base, **changes)


def mode_set(
    locations: Sequence[Sequence[float]],
    sd_privacy: Sequence[Sequence[float]],
    sd_sampling: Sequence[Sequence[float]],
    **changes: Any,
) -> ModeSet:
    """Return modes with diagonal covariances and unremarkable everything else."""
    at = np.array(locations, dtype=float)
    k, d = at.shape
    base: dict[str, Any] = {
        "locations": at,
        "densities": np.linspace(0.5, 0.25, k),
        "covariance_privacy": np.array([np.diag(np.square(s)) for s in sd_privacy]).reshape(k, d, d),
        "covariance_sampling": np.array([np.diag(np.square(s)) for s in sd_sampling]).reshape(k, d, d),
        "covariance_bias": np.array([np.diag(np.square(s) / 4) for s in sd_sampling]).reshape(k, d, d),
        "mass": np.linspace(0.7, 0.2, k) if k > 1 else np.full(k, 0.93),
        "height_z": np.linspace(45.23, 8.1, k),
        "persistence": np.r_[math.inf, np.full(max(k - 1, 0), 0.2)][:k],
        "persistence_z": np.r_[math.inf, np.full(max(k - 1, 0), 6.5)][:k],
        "curvature_z": np.full(k, 12.0),
        "reliable": np.ones(k, dtype=bool),
        "refined": np.ones(k, dtype=bool),
        "significant": np.ones(k, dtype=bool),
        "on_face": np.zeros((k, d), dtype=bool),
        "diagnostics": ModeSearchDiagnostics(
            candidates=17,
            dropped_by_height=9,
            dropped_by_persistence=4,
            merged=2,
            noise_cells=1234.5,
            height_threshold=0.0123,
            false_mode_rate=0.05,
            grid_shape=(60, 80)[:d],
            newton_steps=4,
            all_converged=True,
        ),
    }
    return ModeSet(**{**base, **changes})


def no_modes(d: int) -> ModeSet:
    template = mode_set([[0.0] * d], [[0.1] * d], [[0.1] * d])
    arrays = {
        f.name: getattr(template, f.name)[:0] for f in dataclasses.fields(ModeSet) if f.name != "diagnostics"
    }
    return dataclasses.replace(template, **arrays)


@pytest.fixture
def mixture_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let saved results bring their MixtureSurface back."""
    monkeypatch.setitem(base_results.SURFACE_READERS, "mixture", MixtureSurface.from_dict)


def _wage_surface(privacy: PrivacySpent | None) -> MixtureSurface:
    return MixtureSurface(
        columns=("age", "log(wage)"),
        lower=np.array([15.0, math.log(1000)]),
        upper=np.array([90.0, math.log(300000)]),
        centres=np.array([[38.0, 10.66], [58.0, 9.1]]),
        scales=np.array([[9.0, 0.6], [7.0, 0.5]]),
        weights=np.array([0.75, 0.25]),
        bandwidth=np.array([1.8734, 0.1512]),
        noise_sd=0.0 if privacy is None else 3.1e-4,
        privacy=privacy,
        n_effective=177901.6,
    )


def _wage_modes() -> ModeSet:
    return mode_set(
        [[38.2134, 10.66271], [57.81, 9.0831]],
        [[0.21, 0.0034], [1.31, 0.041]],
        [[0.11, 0.0021], [0.74, 0.022]],
        reliable=np.array([True, False]),
        curvature_z=np.array([14.2, 3.1]),
        mass=np.array([0.7412, 0.2377]),
    )


WAGE_COORDINATES = (Coordinate("age", "age"), Coordinate("log(wage)", "wage", "log"))


@pytest.fixture
def wages() -> DensityModesResults:
    """Two modes of (age, log(wage)), private, the second one doubtful."""
    privacy = spent({"age": (15.0, 90.0), "wage": (1000.0, 300000.0)}, label="age by wage")
    return DensityModesResults.from_modes(
        _wage_modes(),
        _wage_surface(privacy),
        coordinates=WAGE_COORDINATES,
        bandwidth_rule="reference",
        warnings=("delta is not below 1/n",),
    )


@pytest.fixture
def simulated(wages: DensityModesResults) -> DensityModesResults:
    """The same with seeded noise."""
    assert wages.privacy is not None
    privacy = dataclasses.replace(wages.privacy, simulated=True)
    return dataclasses.replace(wages, privacy=privacy, surface=_wage_surface(privacy))


@pytest.fixture
def baseline() -> DensityModesResults:
    """The same modes on a surface that was not released."""
    return DensityModesResults.from_modes(
        _wage_modes(), _wage_surface(None), coordinates=WAGE_COORDINATES, bandwidth_rule="reference"
    )


@pytest.fixture
def nothing_found(wages: DensityModesResults) -> DensityModesResults:
    """A private release without modes."""
    return dataclasses.replace(wages, mode_set=no_modes(2))


@pytest.fixture
def times() -> DensityModesResults:
    """One mode of (visit, stay): a date and a duration."""
    day = 86400.0
    start = 18262 * day  # 2020-01-01
    privacy = spent({"visit": (start, start + 365 * day), "stay": (0.0, 20 * day)})
    surface = MixtureSurface(
        columns=("visit", "stay"),
        lower=np.array([start, 0.0]),
        upper=np.array([start + 365 * day, 20 * day]),
        centres=np.array([[start + 100 * day, 4.2 * day]]),
        scales=np.array([[40 * day, 2.0 * day]]),
        weights=np.array([1.0]),
        bandwidth=np.array([20 * day, 0.8 * day]),
        noise_sd=1e-15,
        privacy=privacy,
    )
    modes = mode_set([[start + 100.4 * day, 4.2 * day]], [[2 * day, 0.1 * day]], [[day, 0.05 * day]])
    return DensityModesResults.from_modes(
        modes,
        surface,
        coordinates=(
            Coordinate("visit", "visit", kind="datetime"),
            Coordinate("stay", "stay", kind="timedelta"),
        ),
        bandwidth_rule="a rule whose description is too long for its cell in the table",
    )


@pytest.fixture
def one_column() -> DensityModesResults:
    """Two modes of one column, the second on the upper bound."""
    privacy = spent(
        {"age": (15.0, 90.0)}, adjacency="add_remove", n_units=None, unit="person", max_weight=4.0
    )
    surface = MixtureSurface(
        columns=("age",),
        lower=np.array([15.0]),
        upper=np.array([90.0]),
        centres=np.array([[40.0], [88.0]]),
        scales=np.array([[8.0], [9.0]]),
        weights=np.array([0.8, 0.2]),
        bandwidth=np.array([2.0]),
        noise_sd=9e-4,
        privacy=privacy,
    )
    modes = mode_set(
        [[40.0], [90.0]],
        [[0.3], [1.0]],
        [[0.2], [0.5]],
        reliable=np.array([True, False]),
        on_face=np.array([[False], [True]]),
        densities=surface.density(np.array([[40.0], [90.0]])),
    )
    return DensityModesResults.from_modes(modes, surface)


@pytest.fixture
def five_columns() -> DensityModesResults:
    """Two modes in five dimensions, columns with awkward names."""
    names = ("alpha_1", "b & c", "100%", "<x>", "a very long column name that does not fit anywhere")
    surface = MixtureSurface(
        columns=names,
        lower=np.full(5, -6.0),
        upper=np.full(5, 6.0),
        centres=np.array([[2.0, 2, 2, 2, 2], [-2, -2, -2, -2, -2]]),
        scales=np.ones((2, 5)),
        weights=np.array([0.6, 0.4]),
        bandwidth=np.full(5, 0.7),
        noise_sd=1e-6,
        privacy=spent({n: (-6.0, 6.0) for n in names}),
    )
    modes = mode_set(surface.centres.tolist(), np.full((2, 5), 0.04).tolist(), np.full((2, 5), 0.02).tolist())
    plain = dataclasses.replace(
        modes, refined=np.zeros(2, dtype=bool), covariance_bias=np.zeros_like(modes.covariance_bias)
    )
    return DensityModesResults.from_modes(plain, surface)
