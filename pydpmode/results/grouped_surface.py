"""Released surfaces of several groups: one per declared level of a column, from one release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..budget import PrivacySpent
from ..errors import InvalidArgument, SurfaceFileError
from ..numerics.surfaces import FieldNoise, FloatArray
from .coordinates import Coordinate
from .released_surface import ReleasedSurface

Level = str | int | float | bool


@dataclass(frozen=True, eq=False, repr=False)
class GroupedSurface:
    """One density surface per level of a grouping column, released together.

    Each surface is the density of its level's records (its total is the released number of them); the
    guarantee in `privacy` is that of all of them together.

    Parameters
    ----------
    column : str
        The grouping column.
    levels : tuple
        Its declared levels.
    surfaces : tuple of ReleasedSurface
        One per level.
    """

    column: str
    levels: tuple[Level, ...]
    surfaces: tuple[ReleasedSurface, ...]

    def __post_init__(self) -> None:
        if not self.surfaces or len(self.levels) != len(self.surfaces):
            raise InvalidArgument("a grouped surface needs one surface per level")
        if any(surface.privacy != self.privacy for surface in self.surfaces):
            raise InvalidArgument("the surfaces of a grouped surface state different costs of one release")

    def at(self, level: Level) -> ReleasedSurface:
        """Return the surface of one level.

        Raises
        ------
        InvalidArgument
            When the level was not declared.
        """
        if level not in self.levels:
            raise InvalidArgument(f"{level!r} is not a level of {self.column}: {list(self.levels)}")
        return self.surfaces[self.levels.index(level)]

    def items(self) -> Iterator[tuple[Level, ReleasedSurface]]:
        """Yield each level with its surface."""
        return zip(self.levels, self.surfaces, strict=True)

    @property
    def privacy(self) -> PrivacySpent:
        """What all surfaces together cost."""
        return self.surfaces[0].privacy

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """How each coordinate came from the user's columns."""
        return self.surfaces[0].coordinates

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return self.surfaces[0].columns

    @property
    def lower(self) -> FloatArray:
        """Lower corner of the box."""
        return self.surfaces[0].lower

    @property
    def upper(self) -> FloatArray:
        """Upper corner of the box."""
        return self.surfaces[0].upper

    @property
    def bandwidth(self) -> FloatArray:
        """Bandwidth of the reading."""
        return self.surfaces[0].bandwidth

    @property
    def order(self) -> int:
        """Order of the reading kernel."""
        return self.surfaces[0].order

    @property
    def n_effective(self) -> float:
        """Released number of records of all levels, at most the public number."""
        total = float(sum(surface.n_effective for surface in self.surfaces))
        return total if self.privacy.n_units is None else min(total, float(self.privacy.n_units))

    @property
    def noise(self) -> FieldNoise:
        """Privacy noise of the first level's density."""
        return self.surfaces[0].noise

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        return {
            "type": "grouped",
            "column": self.column,
            "levels": list(self.levels),
            "surfaces": [surface.to_dict() for surface in self.surfaces],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`.

        Raises
        ------
        SurfaceFileError
            When the dictionary is not a grouped surface.
        """
        try:
            parts = tuple(ReleasedSurface.from_dict(part) for part in data["surfaces"])
            return cls(str(data["column"]), tuple(data["levels"]), parts)
        except (KeyError, TypeError, InvalidArgument) as problem:
            raise SurfaceFileError(
                f"the grouped surface is damaged or incomplete ({problem}); copy it again"
            ) from problem

    def __repr__(self) -> str:
        return f"GroupedSurface({self.column}: {', '.join(map(str, self.levels))}; {self.surfaces[0]!r})"
