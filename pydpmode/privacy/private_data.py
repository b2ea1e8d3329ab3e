"""The one place where private rows are read.

`PrivateData` holds the rows, their public bounds and the budget. A release goes: check everything
(refuse here, and nothing has been read or charged), charge the ledger, read, add noise, mark the
entry released. There is no way to the rows around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..budget import Adjacency, Budget, Device, Outside, PrivacySpent, Unit
from ..errors import EmptyData, InvalidArgument, InvalidBudget, PicklingRefused
from ..numerics.designs import Design
from ..numerics.surfaces import FloatArray
from ..results.coordinates import Coordinate
from ..results.grouped_surface import GroupedSurface
from ..results.released_partial_traces import ReleasedPartialTraces
from ..results.released_surface import ReleasedSurface
from ..results.released_trace import ReleasedTrace
from .accounting import Charge
from .block_work import BlockWork, in_threads
from .bounds import Bounds, ClippedBlock, coordinate_box, read_bounds, used_columns
from .devices import check_device, open_device, refuse_device, try_device
from .features import device_tolerance
from .grams import RowPass, released_trace, run_grams
from .grams_options import GramsOptions
from .grams_plan import GramsPlan, check_offered, plan_grams
from .grouped_release import DeclaredLevels, group_sums
from .ledger import Ledger
from .noise import processors
from .pms import PREDICTORS_NOTE, released_traces, run_pms
from .pms_plan import PmsPlan, PmsRequest
from .preprocessing import Statistic
from .progress import progress_bar
from .public_facts import PublicFacts
from .quantiles import cell_weights, draw_quantiles, plan_quantiles, reserved
from .row_errors import reading_rows
from .sources import open_source
from .surface_release import ReleasePlan, add_noise, check_notes, check_request, plan_release, to_lattice
from .table_options import (
    check_count,
    check_neighbours,
    check_person,
    check_weights,
    person_votes,
)
from .table_options import check_table as check_table

# Rows summed in floating point before anything is rounded: 1 MB a column.
BLOCK_ROWS = 2**17
# Public ceiling of the number of units under add/remove, when the user states none.
DEFAULT_N_MAX = 10**8

R = TypeVar("R")


class PrivateData(PublicFacts):
    """Private rows behind one door: public bounds, a budget and a ledger.

    Parameters
    ----------
    data : DataFrame, array, Arrow table or data set, `RowStream`, lazy or Dask table, or path
        The private table; a 1-D array is n points of one column. Paths are of CSV or Parquet files. What
        is larger than memory is streamed; see docs/big-data.md.
    bounds : mapping of str to (low, high)
        PUBLIC bounds per column, in its units: known without looking at these rows. For arrays also
        one pair per column. Only columns with bounds can be used. Values outside are moved to the
        bound; see `outside`.
    budget : Budget
        Total privacy budget of all releases from these rows.
    ledger : path, optional
        JSON-lines file that records every release and is shared by all processes that open it.
        In memory when omitted.
    columns : sequence of str, optional
        Names of the columns of an array; `x1, x2, ...` when omitted.
    adjacency : {"replace", "add_remove"}
        Neighbouring tables: one unit replaced (the number of units is public; default), or one added
        or removed (it is private).
    unit : {"row", "person"}
        Whose contribution is protected. "person": the rows that share a value of the column `person`
        together count as one vote (their average), at the same sensitivity.
    person : str, optional
        Column that identifies persons; needed by `unit="person"`. Rows without an identifier count
        nothing.
    weights : str, optional
        Column of survey weights. A row then counts `weight / max_weight`.
    max_weight : float, optional
        PUBLIC ceiling of the weights; larger ones count as the ceiling.
    outside : {"clip", "ignore"}
        Values outside the bounds are moved to the bound, or their rows count nothing.
    n_guess : int, optional
        Under add/remove: a public guess of the number of units, for the bandwidth rule.
    n_max : int, optional
        Under add/remove: a public ceiling of the number of units (10^8). The guarantee is for tables up
        to it: it sets the margin for rounding errors. (Rows beyond it are counted all the same. Leaving them
        out would double what one row can do: where one goes, the next would move in.)
    datetimes : sequence of str
        Columns of a CSV file that hold dates or times.
    progress : bool, optional
        Show a progress bar on long passes; by default only at a terminal.
    device : {"cpu", "cuda"}
        Where the sums of a surface are computed; "cuda" needs CuPy and a GPU. See docs/big-data.md.

    Raises
    ------
    MissingBounds, InvalidBounds, UnknownColumn, DuplicateColumns, NonNumericColumn, EmptyData
        On a table or bounds that do not fit; by the schema, never by a value.
    LedgerMismatch, LedgerDamaged
        On a ledger file that belongs to another budget, or was changed.
    MissingDependency
        On device="cuda" without CuPy.

    Notes
    -----
    The guarantee: all releases together are (budget.epsilon, budget.delta)-differentially private
    for `adjacency` of one `unit`, given public bounds, also when later ones are chosen after seeing
    earlier ones. Each release is charged before the first row is read, and never refunded.

    Examples
    --------
    >>> import numpy as np
    >>> study = PrivateData(np.zeros((100, 2)), bounds=[(-1, 1), (0, 5)], budget=Budget(1.0, 1e-6))
    >>> study.columns, study.n_units
    (('x1', 'x2'), 100)
    """

    def __init__(
        self,
        data: Any,
        *,
        bounds: Bounds | None = None,
        budget: Budget,
        ledger: str | PathLike[str] | None = None,
        columns: Sequence[str] | None = None,
        adjacency: Adjacency = "replace",
        unit: Unit = "row",
        person: str | None = None,
        weights: str | None = None,
        max_weight: float | None = None,
        outside: Outside = "clip",
        n_guess: int | None = None,
        n_max: int | None = None,
        datetimes: Sequence[str] = (),
        progress: bool | None = None,
        device: Device = "cpu",
    ) -> None:
        if not isinstance(budget, Budget):
            raise InvalidBudget(f"budget must be a Budget(epsilon, delta), got {type(budget).__name__}")
        check_neighbours(data, adjacency, unit, outside)
        self._adjacency, self._unit, self._outside = adjacency, unit, outside
        self._budget = budget
        self._progress, self._device = progress, open_device(device, data)
        # Under add/remove the number of rows is private, and 0 is a number like any other.
        empty = adjacency == "add_remove"
        self._rows = reading_rows(
            lambda: open_source(data, columns=columns, datetimes=tuple(datetimes), allow_empty=empty)
        )
        self._bounds = read_bounds(bounds, self._rows)
        self._rows.check_columns(tuple(self._bounds))
        self._person = check_person(self._rows, unit, person)
        self._weights, self._max_weight = check_weights(self._rows, unit, weights, max_weight)
        self._n_guess = check_count("n_guess", n_guess)
        self._n_max = check_count("n_max", n_max) or DEFAULT_N_MAX
        if adjacency == "replace" and (n_guess is not None or n_max is not None):
            raise InvalidArgument(
                "n_guess and n_max are for adjacency='add_remove'; under 'replace' n is public"
            )
        self._n_units = reading_rows(self._count_units)
        self._ledger = Ledger.open(ledger, budget, adjacency, unit, person=person)

    # -- public facts ---------------------------------------------------------------------------

    def coordinate(self, column: str, *, log: bool = False) -> Coordinate:
        """Return the coordinate of a column, perhaps on the log scale. Reads no row."""
        self._rows.check_columns([column])
        kind = self._rows.kind(column)
        if log and kind != "number":
            raise InvalidArgument(f"{column}: a logarithm needs a number column, got {kind}")
        return Coordinate(f"log({column})" if log else column, column, "log" if log else "identity", kind)

    def expression(
        self, text: str, *, name: str | None = None, limits: tuple[float, float] | None = None
    ) -> Coordinate:
        """Return the coordinate of an expression of number columns, row by row. Reads no row.

        See `numerics.expressions`; `limits` are public, and must not come from the data.
        """
        coordinate = Coordinate.of_expression(text, name=name, limits=limits)
        self._rows.check_columns(coordinate.sources)
        for column in coordinate.sources:
            if self._rows.kind(column) != "number":
                raise InvalidArgument(f"{column}: an expression needs number columns")
        self.box([coordinate])
        return coordinate

    def box(self, coordinates: Sequence[Coordinate]) -> tuple[FloatArray, FloatArray]:
        """Return the public box of some coordinates as two (d,) arrays. Reads no row."""
        return coordinate_box(coordinates, self._bounds)

    def try_device(self, dimension: int) -> None:
        """Refuse a device that computes surfaces of so many columns otherwise. Reads no row."""
        try_device(self._device, dimension)

    # -- releases -------------------------------------------------------------------------------

    def plan(
        self, design: Design, *, epsilon: float, delta: float, mu: float | None = None, groups: int = 1
    ) -> ReleasePlan:
        """Calibrate a surface release without reading or charging anything; see `plan_release`."""
        n, device = self.n_ceiling, self._device
        by_block = self._unit == "row" and self._adjacency == "replace" and self._rows.places_are_fixed
        # A device may add in another order each time: no block's bits are sure to be those of a neighbour.
        by_block = by_block and device is None
        blocks = math.ceil(n / BLOCK_ROWS) + self._rows.parts - 1
        # A device's tolerance holds the sums within a block.
        depth = min(n, BLOCK_ROWS) if device is None else 0
        # A person may have any number of rows; sums of 131,072 blocks are allowed for.
        depth = 2 * BLOCK_ROWS if self._unit == "person" else depth
        return plan_release(
            design,
            epsilon=epsilon,
            delta=delta,
            adjacency=self._adjacency,
            units_per_sum=min(n, BLOCK_ROWS) if by_block else n,
            depth=depth,
            roundings=1 if by_block or self._unit == "person" else blocks,
            largest_total=max(n, BLOCK_ROWS),
            mu=mu,
            groups=groups,
            tolerance=None if device is None else device_tolerance(design, BLOCK_ROWS),
        )

    def release_surface(
        self,
        design: Design,
        coordinates: Sequence[Coordinate],
        *,
        epsilon: float,
        delta: float,
        label: str = "",
        seed: int | None = None,
        notes: Sequence[str] = (),
    ) -> ReleasedSurface:
        """Charge the ledger, read the rows once, and release the density surface of `design`.

        (epsilon, delta)-DP for `adjacency` of one `unit`, given public bounds: one Gaussian mechanism
        on a sum of vectors of norm at most 1 (`features.exact_sensitivity`).

        Raises
        ------
        BudgetExceeded
            When the release does not fit the budget.
        InvalidArgument, MissingBounds
            When the arguments do not fit each other or the bounds. In all these cases nothing has
            been read or charged.
        """
        self._check_request(design, coordinates, seed, notes)
        plan = self.plan(design, epsilon=epsilon, delta=delta)
        entry = self._charge(plan.charge(label, seed is not None))
        spent = self._spent(plan, coordinates, label, seed, notes)
        vector = self._noisy_sum(plan, coordinates, seed)
        self._ledger.mark_released(entry)
        return ReleasedSurface.from_vector(design, vector, spent, tuple(coordinates))

    def release_scaled_surface(
        self,
        design_for: Callable[[FloatArray | None], Design],
        coordinates: Sequence[Coordinate],
        *,
        epsilon: float,
        delta: float,
        label: str = "",
        seed: int | None = None,
        notes: Sequence[str] = (),
    ) -> ReleasedSurface:
        """Charge the ledger once, release the quartiles of every coordinate, then the surface of a design.

        (epsilon, delta)-DP together, for `adjacency` of one `unit`, given public bounds; two passes over
        the rows. `design_for` takes released quartiles (d, 2) in the coordinates' units, or None for the
        largest design it may choose; it must not fail. Raises as `release_surface` does.
        """
        largest = design_for(None)
        self._check_request(largest, coordinates, seed, notes)
        reserve = reserved(self.plan(largest, epsilon=epsilon, delta=delta))
        lower, upper = self.box(coordinates)
        quantiles = plan_quantiles(lower, upper, reserve)
        entry = self._charge(quantiles.charge(reserve, label, seed is not None), passes=2)
        counts = self._each_sum(coordinates, lambda block, _: cell_weights(block, lower, upper))
        design = design_for(reading_rows(lambda: draw_quantiles(quantiles, counts, seed)))
        self._check_request(design, coordinates, seed, notes)
        plan = quantiles.held(
            self.plan(design, epsilon=epsilon, delta=delta, mu=quantiles.surface_mu), reserve
        )
        spent = self._spent(plan, coordinates, label, seed, notes, "quartiles, surface")
        vector = self._noisy_sum(plan, coordinates, seed)
        self._ledger.mark_released(entry)
        return ReleasedSurface.from_vector(design, vector, spent, tuple(coordinates))

    def release_grouped_surfaces(
        self,
        design: Design,
        coordinates: Sequence[Coordinate],
        groups: DeclaredLevels,
        *,
        epsilon: float,
        delta: float,
        label: str = "",
        seed: int | None = None,
        notes: Sequence[str] = (),
    ) -> GroupedSurface:
        """Charge the ledger, read the rows once, and release one surface per declared level of a column.

        (epsilon, delta)-DP together: a record is in one level at most (`features.grouped_sensitivity`), and
        counts nothing where its level is not declared. Raises as `release_surface` does.
        """
        self._check_request(design, coordinates, seed, notes)
        groups.check(self._rows)
        plan = self.plan(design, epsilon=epsilon, delta=delta, groups=groups.count)
        entry = self._charge(plan.charge(label, seed is not None), passes=2)
        spent = self._spent(plan, coordinates, label, seed, (*notes, groups.words()))
        vector = self._noisy_sum(plan, coordinates, seed, groups)
        self._ledger.mark_released(entry)
        return groups.surfaces(plan, vector, spent, tuple(coordinates))

    def _noisy_sum(
        self,
        plan: ReleasePlan,
        coordinates: Sequence[Coordinate],
        seed: int | None,
        groups: DeclaredLevels | None = None,
    ) -> FloatArray:
        """Return the released vector of a release that has been charged."""
        # The sum without noise has no name here: a traceback's variables are often logged.
        return reading_rows(lambda: add_noise(plan, self._lattice_sum(plan, coordinates, groups), seed))

    def check_grams(self) -> None:
        """Refuse a table that DP-GRAMS has no proof for: not rows under replacement, or weighted."""
        refuse_device(self._device, "mechanism='grams'")
        check_offered(self._adjacency, self._unit, self._weights is not None, self._rows.places_are_fixed)

    def plan_grams(
        self,
        options: GramsOptions,
        coordinates: Sequence[Coordinate],
        bandwidth: FloatArray,
        *,
        epsilon: float,
        delta: float,
        n_modes: int | None = None,
    ) -> GramsPlan:
        """Calibrate a DP-GRAMS release without reading or charging anything.

        Raises InvalidArgument under add/remove, for persons, with weights, and on unsound options.
        """
        self.check_grams()
        lower, upper = self.box(coordinates)
        return plan_grams(
            options,
            columns=tuple(c.name for c in coordinates),
            lower=lower,
            upper=upper,
            bandwidth=bandwidth,
            records=self.n_planning,
            block=BLOCK_ROWS,
            epsilon=epsilon,
            delta=delta,
            n_modes=n_modes,
        )

    def release_grams(
        self,
        options: GramsOptions,
        coordinates: Sequence[Coordinate],
        bandwidth: FloatArray,
        *,
        epsilon: float,
        delta: float,
        n_modes: int | None = None,
        label: str = "",
        seed: int | None = None,
        notes: Sequence[str] = (),
    ) -> ReleasedTrace:
        """Charge the ledger, then release the starts and rounds of DP-GRAMS: 1 + T passes over the rows.

        (epsilon, delta)-DP for replacing one row, given public bounds; see `grams` and `grams_plan`. Raises
        as `release_surface` and `plan_grams` do: nothing has been read or charged then.
        """
        plan = self.plan_grams(options, coordinates, bandwidth, epsilon=epsilon, delta=delta, n_modes=n_modes)
        trace, spent = self._run_charged(
            plan, coordinates, lambda rows: run_grams(plan, rows, seed), label, seed, notes
        )
        return released_trace(plan, trace, coordinates, spent)

    def release_pms(
        self, request: PmsRequest, *, label: str = "", seed: int | None = None, notes: Sequence[str] = ()
    ) -> ReleasedPartialTraces:
        """Charge the ledger, then release the starts and rounds of DP-PMS at PUBLIC predictors.

        (epsilon, delta)-DP for replacing one RESPONSE; see `pms_plan`. Raises as `release_grams` does.
        """
        self.check_grams()
        plan = request.plan(*self.box([request.response]), self.n_planning, BLOCK_ROWS)
        told, where = (PREDICTORS_NOTE, *check_notes(notes)), [request.response]
        traces, spent = self._run_charged(
            plan, where, lambda rows: run_pms(plan, rows, seed), label, seed, told
        )
        return released_traces(plan, traces, request, spent)

    def _run_charged(
        self,
        plan: GramsPlan | PmsPlan | Statistic[Any],
        coordinates: Sequence[Coordinate],
        run: Callable[[RowPass], R],
        label: str,
        seed: int | None,
        notes: Sequence[str],
    ) -> tuple[R, PrivacySpent]:
        """Check, charge, run some passes over the rows, and mark the entry released."""
        self._check_request(plan, coordinates, seed, notes)
        entry = self._charge(plan.charge(label, seed is not None))
        value = reading_rows(lambda: run(lambda one: self._each_block(coordinates, one)))
        self._ledger.mark_released(entry)
        return value, self._spent(plan, coordinates, label, seed, notes)

    def release_statistic(
        self,
        statistic: Statistic[R],
        coordinates: Sequence[Coordinate],
        *,
        label: str = "",
        seed: int | None = None,
    ) -> tuple[R, PrivacySpent]:
        """Charge the ledger, read the rows once, and release a statistic; its module holds the proof."""
        return self._run_charged(
            statistic,
            coordinates,
            lambda rows: statistic.finish(rows(statistic.block), seed),
            label,
            seed,
            (),
        )

    def _charge(self, charge: Charge, *, passes: int = 1) -> str:
        """Charge the ledger, unless the rows cannot be read so often: then nothing is charged."""
        self._rows.check_passes(passes + (self._unit == "person"))
        return self._ledger.charge(charge)

    def _check_request(
        self,
        design: Design | GramsPlan | PmsPlan | Statistic[R],
        coordinates: Sequence[Coordinate],
        seed: object,
        notes: object,
    ) -> None:
        """Refuse what would fail, or void the guarantee, after the charge."""
        check_request(design, coordinates, self.box(coordinates), seed, notes)
        if self._device is not None and isinstance(design, Design):
            check_device(self._device, design)

    def _spent(
        self,
        plan: ReleasePlan | GramsPlan | PmsPlan | Statistic[R],
        coordinates: Sequence[Coordinate],
        label: str,
        seed: int | None,
        notes: Sequence[str],
        what: str = "surface",
    ) -> PrivacySpent:
        what = plan.mechanism if isinstance(plan, GramsPlan | PmsPlan) else what
        return PrivacySpent(
            epsilon=plan.epsilon,
            delta=plan.delta,
            adjacency=self._adjacency,
            unit=self._unit,
            mechanism=f"{what} ({'discrete' if seed is None else 'simulated'} Gaussian)",
            sensitivity=plan.sensitivity.total,
            noise_scale=plan.noise_scale,
            n_units=self._n_units,
            bounds={name: self._bounds[name] for c in coordinates for name in c.sources},
            outside=self._outside,
            max_weight=self._max_weight,
            simulated=seed is not None,
            label=label,
            notes=tuple(notes),
        )

    # -- reading rows: below this line only -------------------------------------------------------

    def _lattice_sum(
        self, plan: ReleasePlan, coordinates: Sequence[Coordinate], groups: DeclaredLevels | None = None
    ) -> NDArray[np.int64]:
        codes = None if groups is None else groups.codes(self._rows, BLOCK_ROWS)
        device = self._device
        if self._unit == "person":
            # A person's rows may lie in several blocks: nothing is rounded before they are together.
            total, sums = np.zeros(plan.groups), np.zeros((plan.groups, plan.design.n_pairs), complex)
            for part, part_sums in self._each_block(
                coordinates, lambda block, first: group_sums(plan, block, codes, first, device)
            ):
                total += part
                sums += part_sums
            return to_lattice(plan, total, sums)
        integers = np.zeros(plan.length, dtype=np.int64)

        def rounded(block: ClippedBlock, first: int) -> NDArray[np.int64]:
            return to_lattice(plan, *group_sums(plan, block, codes, first, device))

        # The levels of rows are looked up by the rows' numbers, which only one pass here knows.
        each = self._each_sum if codes is None else self._each_block
        for part_integers in each(coordinates, rounded):
            integers += part_integers
        return integers

    def _each_sum(
        self, coordinates: Sequence[Coordinate], one: Callable[[ClippedBlock, int], NDArray[np.int64]]
    ) -> Iterator[NDArray[np.int64]]:
        """Yield whole numbers that add up to the sum of `one` over all blocks.

        Where the rows lie on other machines they are added there. `one` must not depend on the number
        of the first row, and must hold neither rows nor this object.
        """
        names = self._names_read(coordinates)
        there = (
            self._rows.summed(names, BLOCK_ROWS, self._work(coordinates, one))
            if self._unit == "row"
            else None
        )
        yield from self._each_block(coordinates, one) if there is None else [there]

    def _each_block(
        self, coordinates: Sequence[Coordinate], one: Callable[[ClippedBlock, int], R]
    ) -> Iterator[R]:
        """Yield `one(block, number of its first row)` for each clipped block, in order."""
        work = self._work(coordinates, one)
        votes = self._votes() if self._unit == "person" else None
        # The number of a person's rows is private, so a bar over rows would tell something.
        n_rows = self._n_units if self._unit == "row" else None
        with progress_bar(n_rows, self._progress) as bar:
            raw = self._rows.blocks(self._names_read(coordinates), BLOCK_ROWS)
            yield from in_threads(raw, work, votes, processors(), bar.update)

    def _work(self, coordinates: Sequence[Coordinate], one: Callable[[ClippedBlock, int], R]) -> BlockWork[R]:
        bounds = {name: self._bounds[name] for name in used_columns(coordinates)}
        return BlockWork(tuple(coordinates), bounds, self._outside, self._max_weight, one)

    def _names_read(self, coordinates: Sequence[Coordinate]) -> list[str]:
        return [*used_columns(coordinates), *([self._weights] if self._weights is not None else [])]

    def _votes(self) -> FloatArray:
        """Return each row's share of its person's one vote, (n_rows,)."""
        if self._person is None:
            raise InvalidArgument("unit='person' needs person=")
        return person_votes(self._rows.codes(self._person))

    # -- checks at the door -----------------------------------------------------------------------

    def _count_units(self) -> int | None:
        """Return the public number of units: known to both neighbours under replacement."""
        if self._adjacency == "add_remove":
            return None
        if self._person is None:
            return self._rows.n_rows
        persons = int(self._rows.codes(self._person).max(initial=-1)) + 1
        if persons == 0:
            raise EmptyData(f"no row has an identifier in {self._person!r}; at least one person is needed")
        return persons

    # -- one object, one budget -------------------------------------------------------------------

    def __copy__(self) -> PrivateData:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> PrivateData:
        # A copy would carry a second, unguarded budget; cloning estimators must not multiply it.
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PicklingRefused(
            "PrivateData is never pickled: a copy would carry a second, unguarded budget. "
            "Open the same data with the same ledger file in the other process"
        )

    def __repr__(self) -> str:
        if not hasattr(self, "_ledger"):
            return "PrivateData(not opened)"
        units = "private number of" if self._n_units is None else f"{self._n_units:,}"
        left = self._ledger.remaining()
        return (
            f"PrivateData({units} {self._unit}s, columns {list(self.columns)}; "
            f"budget epsilon {self._budget.epsilon:g}, delta {self._budget.delta:g}; epsilon left {left:.4g})"
        )
