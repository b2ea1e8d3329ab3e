"""From what the user asks to the design of a surface release: public facts, or released quartiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..budget import as_number
from ..errors import InvalidArgument, UnknownColumn
from ..numerics.bandwidth import BandwidthChoice, BandwidthSpec, choose_bandwidth
from ..numerics.designs import MAX_LATTICE_DIMENSION, Design, LatticeDesign, RandomDesign
from ..numerics.surfaces import FloatArray
from ..results.coordinates import Coordinate

# Random features by the public number of records: more records, less privacy noise, more features.
_FEATURES_SMALL, _FEATURES_LARGE, _LARGE_N = 4096, 8192, 50_000


@dataclass(frozen=True, eq=False)
class SurfaceRequest:
    """What a surface release is asked for, all public.

    Parameters
    ----------
    coordinates : sequence of Coordinate
    lower, upper : (d,) arrays
        Their box.
    n : int or None
        Number of records to plan for.
    epsilon : float
    bandwidth : str, number, sequence or mapping
        As `DensityModes` takes it.
    resolution : mapping of str to float, optional
        Recording step by column.
    order : {2, 4}
    zero_weight : float
        Weight of the zero frequency.
    n_features : int, optional
        Random frequencies, d >= 4.
    frequency_seed : int
        Of the public draw of random frequencies.
    """

    coordinates: Sequence[Coordinate]
    lower: FloatArray
    upper: FloatArray
    n: int | None
    epsilon: float
    bandwidth: BandwidthSpec
    resolution: Mapping[str, float] | None
    order: int
    zero_weight: float
    n_features: int | None
    frequency_seed: int

    def choice(self, quartiles: FloatArray | None = None) -> BandwidthChoice:
        """Return the bandwidth; `quartiles` (d, 2) are for the rule "private"."""
        return choose_bandwidth(
            _rename(self.bandwidth, self.coordinates),
            columns=tuple(c.name for c in self.coordinates),
            lower=self.lower,
            upper=self.upper,
            n=self.n,
            epsilon=self.epsilon,
            resolution=_steps(self.resolution, self.coordinates),
            quartiles=quartiles,
        )

    def design(self, quartiles: FloatArray | None = None) -> Design:
        """Return the design; for "private" without quartiles the largest that it may choose."""
        choice = self.choice(quartiles)
        names = tuple(c.name for c in self.coordinates)
        box = (names, self.lower, self.upper, choice.values, self.order, self.zero_weight)
        if len(names) > MAX_LATTICE_DIMENSION:
            large = self.n is not None and self.n >= _LARGE_N
            features = self.n_features or (_FEATURES_LARGE if large else _FEATURES_SMALL)
            return RandomDesign(*box, features, self.frequency_seed)
        if self.n_features is not None:
            raise InvalidArgument("n_features is for 4 or more columns; fewer use a lattice")
        return LatticeDesign(*box, scales=choice.ladder.scales, masses=choice.ladder.masses)


def _rename(spec: BandwidthSpec, coordinates: Sequence[Coordinate]) -> BandwidthSpec:
    """Let a mapping name coordinates by their column as well: `wage` for `log(wage)`."""
    if not isinstance(spec, Mapping):
        return spec
    by_column = {c.column: c.name for c in coordinates}
    return {by_column.get(name, name): value for name, value in spec.items()}


def _steps(
    resolution: Mapping[str, float] | None, coordinates: Sequence[Coordinate]
) -> dict[str, float] | None:
    """Return the recording step per coordinate; none on a log scale."""
    if resolution is None:
        return None
    by_column = {c.column: c for c in coordinates}
    out = {}
    for name, step in resolution.items():
        if name not in by_column:
            raise UnknownColumn(f"resolution names {name!r}; the columns are {list(by_column)}")
        c = by_column[name]
        # Relative steps shrink as values grow, so no one floor fits a log scale: leave it to the rule.
        out[c.name] = 0.0 if c.transform == "log" else as_number(step, f"resolution of {name}")
    return out
