"""What is public of a table of private rows: names, bounds, budget, and how many units rules may count on."""

from __future__ import annotations

from ..budget import Adjacency, Budget, Unit
from ..errors import InvalidArgument
from .ledger import Ledger


class PublicFacts:
    """Facts that are known without looking at a row; `PrivateData` fills them in.

    Neither rows nor a way to them are here.
    """

    _bounds: dict[str, tuple[float, float]]
    _budget: Budget
    _ledger: Ledger
    _adjacency: Adjacency
    _unit: Unit
    _n_units: int | None
    _n_guess: int | None
    _n_max: int

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns with public bounds: those that can be used."""
        return tuple(self._bounds)

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Public bounds per column (seconds since 1970 for datetimes)."""
        return dict(self._bounds)

    @property
    def budget(self) -> Budget:
        """The total budget."""
        return self._budget

    @property
    def ledger(self) -> Ledger:
        """The record of every release: label, mechanism, epsilon, delta, cumulative, left."""
        return self._ledger

    @property
    def adjacency(self) -> Adjacency:
        """Which tables are neighbours."""
        return self._adjacency

    @property
    def unit(self) -> Unit:
        """Whose contribution is protected."""
        return self._unit

    @property
    def n_units(self) -> int | None:
        """Public number of rows (or persons); None under add/remove, where it is private."""
        return self._n_units

    @property
    def n_planning(self) -> int:
        """Number of units that rules may use: the public one, or `n_guess` under add/remove.

        Raises
        ------
        InvalidArgument
            Under add/remove without `n_guess`.
        """
        if self._n_units is not None:
            return self._n_units
        if self._n_guess is None:
            raise InvalidArgument(
                "under adjacency='add_remove' the number of rows is private; give a public n_guess= "
                "to PrivateData, or a bandwidth in numbers"
            )
        return self._n_guess

    @property
    def n_ceiling(self) -> int:
        """Largest number of units that the guarantee allows for: the public number, or `n_max`."""
        return self._n_max if self._n_units is None else self._n_units
