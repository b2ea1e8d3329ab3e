"""A released density surface: the one private object, and everything that can be read from it.

All methods are post-processing of the released vector: they cost no privacy.
"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..budget import PrivacySpent
from ..errors import InvalidArgument, SurfaceFileError
from ..numerics.designs import Design, LatticeDesign, design_from_dict
from ..numerics.sampling import negative_mass, sample_surface
from ..numerics.spectral_surfaces import LatticeSurface, RandomFeatureSurface, spectral_surface
from ..numerics.surfaces import FieldNoise, FloatArray, Roughness
from .coordinates import Coordinate
from .number_text import spread_text

FORMAT = "pydpmode.surface"
FORMAT_VERSION = 1


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedSurface:
    """A density surface released under differential privacy.

    The guarantee is `privacy.statement()`. Everything here is a function of the released vector and
    of public parameters alone, so it may be saved, published and evaluated without limit.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
        Public frequencies and weights.
    vector : (1 + 2M,) array
        The released vector: total, cosine part, sine part, each weighted by the root of its weight.
    privacy : PrivacySpent
        What was spent and under which assumptions.
    surface : LatticeSurface or RandomFeatureSurface
        The vector as a surface (perhaps at another bandwidth, or a marginal).
    coordinates : tuple of Coordinate
        How each coordinate came from a column of the user's table.
    """

    design: Design
    vector: FloatArray
    privacy: PrivacySpent
    surface: LatticeSurface | RandomFeatureSurface
    coordinates: tuple[Coordinate, ...]

    @classmethod
    def from_vector(
        cls,
        design: Design,
        vector: FloatArray,
        privacy: PrivacySpent,
        coordinates: tuple[Coordinate, ...] | None = None,
    ) -> Self:
        """Make a surface of a released vector.

        Raises
        ------
        InvalidArgument
            When the vector's length does not fit the design or an entry is not finite.
        """
        stored = np.array(vector, dtype=np.float64)
        if stored.shape != (1 + 2 * design.n_pairs,) or not np.all(np.isfinite(stored)):
            raise InvalidArgument(f"the released vector must hold {1 + 2 * design.n_pairs} finite numbers")
        stored.setflags(write=False)
        total = _usable_total(stored[0] / np.sqrt(design.zero_weight), privacy.n_units)
        root = np.sqrt(design.pair_weights)
        m = design.n_pairs
        phi = np.asarray((stored[1 : m + 1] + 1j * stored[m + 1 :]) / (root * total), dtype=np.complex128)
        variance = privacy.noise_scale**2 / (design.pair_weights * total**2)
        known = coordinates or tuple(Coordinate.plain(c) for c in design.columns)
        return cls(design, stored, privacy, spectral_surface(design, phi, variance, total), known)

    # -- the surface contract -----------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the d coordinates."""
        return self.surface.columns

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return self.surface.dimension

    @property
    def lower(self) -> FloatArray:
        """Lower corner of the public box, (d,)."""
        return self.surface.lower

    @property
    def upper(self) -> FloatArray:
        """Upper corner of the public box, (d,)."""
        return self.surface.upper

    @property
    def bandwidth(self) -> FloatArray:
        """Bandwidth of the reading, (d,), in the columns' units."""
        return self.surface.bandwidth

    @property
    def order(self) -> int:
        """Order of the reading kernel."""
        return self.surface.order

    @property
    def n_effective(self) -> float:
        """Released number of units (at most the public one), at least 1: for sampling errors."""
        return self.surface.n_effective

    @property
    def noise(self) -> FieldNoise:
        """Privacy noise of density, gradient and Hessian."""
        return self.surface.noise

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise of the density, the same everywhere."""
        return float(np.sqrt(self.surface.noise.value))

    @property
    def noise_length(self) -> FloatArray:
        """Correlation length of the noise per coordinate, (d,)."""
        return self.surface.noise_length

    @property
    def roughness(self) -> Roughness:
        """Kernel integrals for the sampling error."""
        return self.surface.roughness

    def density(self, points: FloatArray) -> FloatArray:
        """Return the density at `points` (m, d). Negative values are noise."""
        return self.surface.density(points)

    def gradient(self, points: FloatArray) -> FloatArray:
        """Return the gradient at `points` (m, d)."""
        return self.surface.gradient(points)

    def hessian(self, points: FloatArray) -> FloatArray:
        """Return the Hessian at `points` (m, d)."""
        return self.surface.hessian(points)

    def derivatives(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return density, gradient and Hessian at `points` (m, d)."""
        return self.surface.derivatives(points)

    def density_on_grid(self, axes: Sequence[FloatArray]) -> FloatArray:
        """Return the density on the product grid of `axes`."""
        return self.surface.density_on_grid(axes)

    def at_bandwidth(self, bandwidth: FloatArray | float) -> Self:
        """Return the same release read at another bandwidth: free."""
        return replace(self, surface=self.surface.at_bandwidth(bandwidth))

    # -- more readings ------------------------------------------------------------------------

    @property
    def total(self) -> float:
        """Released number of units, as noisy as it came (may exceed the public number)."""
        return float(self.vector[0] / np.sqrt(self.design.zero_weight))

    @property
    def total_sd(self) -> float:
        """Standard deviation of the privacy noise of `total`."""
        return float(self.privacy.noise_scale / np.sqrt(self.design.zero_weight))

    def integrate(self, lower: FloatArray | Sequence[float], upper: FloatArray | Sequence[float]) -> float:
        """Return the share of the mass in the box from `lower` to `upper`, both (d,).

        Infinite ends mean the public box's own. May fall outside [0, 1] by noise.
        """
        return self.surface.integrate(
            np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        )

    def marginal(self, columns: Sequence[str] | str) -> Self:
        """Return the surface of fewer columns: free.

        Raises
        ------
        UnknownColumn
            When a name is not a column of the surface, or is given twice.
        """
        axes = self.surface.axes_of(columns)
        kept = tuple(self.coordinates[a] for a in axes)
        return replace(self, surface=self.surface.marginal(columns), coordinates=kept)

    def sample(self, n: int, seed: int | None = None) -> FloatArray:
        """Return n synthetic points (n, d) drawn from `max(p, 0)`, renormalised: free.

        `seed` makes the draw reproducible; it does not touch the privacy noise. `negative_mass`
        says how much of the surface was cut off.
        """
        return sample_surface(self.surface, n, seed)

    @cached_property
    def _negative_mass(self) -> float:
        return negative_mass(self.surface)

    def negative_mass(self) -> float:
        """Return the integral of `max(-p, 0)` over the box: a plain measure of the noise."""
        return self._negative_mass

    # -- files --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary holding the release and how it is read."""
        kept = list(self.surface.columns)
        return {
            "type": "released",
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "design": self.design.to_dict(),
            "privacy": self.privacy.to_dict(),
            "vector": base64.b64encode(self.vector.astype("<f8").tobytes()).decode("ascii"),
            "columns": kept,
            "coordinates": [dataclasses.asdict(c) for c in self.coordinates],
            # Random features: of all columns, since a marginal depends on how the others were read.
            "bandwidth": self.surface.read_bandwidth.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`.

        Raises
        ------
        SurfaceFileError
            When the dictionary is not a released surface of a version this package reads.
        """
        if "surface" in data and "kind" in data:
            # A saved result holds its surface.
            return cls.from_dict(data["surface"] or {})
        try:
            if data["format"] != FORMAT or int(data["version"]) > FORMAT_VERSION:
                raise SurfaceFileError(
                    f"this is not a surface that this version reads (format {data['format']!r}, "
                    f"version {data['version']!r}); allowed: {FORMAT!r} up to version {FORMAT_VERSION}"
                )
            vector = np.frombuffer(base64.b64decode(data["vector"], validate=True), dtype="<f8")
            out = cls.from_vector(
                design_from_dict(data["design"]),
                vector.astype(np.float64),
                PrivacySpent.from_dict(data["privacy"]),
            )
            return out._read_as(
                tuple(str(c) for c in data["columns"]),
                np.array(data["bandwidth"], dtype=np.float64),
                tuple(Coordinate.from_dict(c) for c in data["coordinates"]),
            )
        except SurfaceFileError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
            raise SurfaceFileError(
                f"the surface file is damaged or incomplete ({type(problem).__name__}); copy it again"
            ) from problem

    def _read_as(
        self, columns: tuple[str, ...], bandwidth: FloatArray, coordinates: tuple[Coordinate, ...]
    ) -> Self:
        """Return the reading that a file describes: columns, bandwidth and coordinates as written."""
        if tuple(c.name for c in coordinates) != columns:
            raise InvalidArgument("columns and coordinates do not fit each other")
        out = self
        is_lattice = isinstance(out.surface, LatticeSurface)
        if is_lattice and columns != out.columns:
            out = out.marginal(columns)
        if bandwidth.shape != out.bandwidth.shape:
            raise InvalidArgument("bandwidth must have one entry per column")
        if not np.array_equal(out.bandwidth, bandwidth):
            out = out.at_bandwidth(bandwidth)
        if columns != out.columns:
            out = out.marginal(columns)
        if columns != out.columns:
            raise InvalidArgument("columns must be in the order of the design")
        return replace(out, coordinates=coordinates)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the release to one JSON file (gzip-compressed when the name ends in .gz).

        The file holds the released vector and public parameters only; it may be published.
        """
        target = Path(path)
        text = json.dumps(self.to_dict(), allow_nan=False)
        if target.suffix == ".gz":
            with gzip.open(target, "wt", encoding="utf-8") as file:
                file.write(text)
        else:
            target.write_text(text, encoding="utf-8")
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote.

        Raises
        ------
        SurfaceFileError
            When the file is not a released surface.
        """
        target = Path(path)
        try:
            if target.suffix == ".gz":
                with gzip.open(target, "rt", encoding="utf-8") as file:
                    data = json.load(file)
            else:
                data = json.loads(target.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise
        except (ValueError, OSError, EOFError, zlib.error, RecursionError) as problem:
            raise SurfaceFileError(
                f"{target.name} is not a released surface (not JSON); give a file that save() wrote"
            ) from problem
        if not isinstance(data, dict):
            raise SurfaceFileError(f"{target.name} is not a released surface; give a file that save() wrote")
        return cls.from_dict(data)

    def __repr__(self) -> str:
        kind = "SIMULATED, not private" if self.privacy.simulated else self.privacy.statement()
        widths = ", ".join(
            f"{c.name}: {spread_text(c.kind, h)}"
            for c, h in zip(self.coordinates, self.bandwidth, strict=True)
        )
        features = "lattice" if isinstance(self.design, LatticeDesign) else "random"
        return (
            f"ReleasedSurface({', '.join(self.columns)}; bandwidth {widths}; "
            f"{self.design.n_pairs} {features} frequencies; {kind})"
        )


def _usable_total(total: float, n_units: int | None) -> float:
    """Return a total to divide by: the released one, at most the public number, at least 1."""
    return float(max(min(total, n_units) if n_units is not None else total, 1.0))


def load_surface(path: str | os.PathLike[str]) -> ReleasedSurface:
    """Read a released surface that `ReleasedSurface.save` wrote.

    Models can be fitted on it at no further cost: `DensityModes(load_surface(path)).fit()`.
    """
    return ReleasedSurface.load(path)
