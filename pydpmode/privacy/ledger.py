"""The record of every release from one table, and the guard of its budget.

A charge is on the disk before a row is read. It is never refunded.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from ..budget import ADJACENCIES, UNITS, Adjacency, Budget, Unit, as_number, check_delta
from ..errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidBudget,
    LedgerDamaged,
    LedgerError,
    LedgerMismatch,
    PicklingRefused,
)
from .accounting import Charge, compose, total
from .event_log import Chain, Event, EventLog, FileLog, MemoryLog
from .privacy_filter import fits, largest_epsilon

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["released", "charged, unfinished"]

FORMAT = "pydpmode ledger"
VERSION = 1
DEFAULT_LOCK_TIMEOUT = 30.0
_NOTHING = "Nothing was read from the data or charged."
_COLUMNS = (
    "number",
    "label",
    "mechanism",
    "epsilon",
    "delta",
    "cumulative",
    "sum",
    "left",
    "status",
    "time",
)


@dataclass(frozen=True)
class Entry:
    """One charge in a ledger.

    Parameters
    ----------
    number : int
        1 for the first.
    id : str
    charge : Charge
    cumulative : float
        Epsilon of all charges up to this one at the budget's delta, tightly composed.
    sum : float
        The epsilons of all charges up to this one, added up.
    left : float
        Largest epsilon of one more Gaussian release at the budget's delta after this one.
    status : {"released", "charged, unfinished"}
        A charge without a release was interrupted; it counts all the same.
    time : str
        UTC time at which it was charged, for information only.
    """

    number: int
    id: str
    charge: Charge
    cumulative: float
    sum: float
    left: float
    status: Status
    time: str


class Ledger:
    """The record of every release from one table, and the guard of its budget.

    Use `Ledger.open`. A file ledger may be open in any number of threads and processes at once; each
    charge reads the whole file again under a lock. A ledger in memory belongs to one process.
    `copy` and `deepcopy` return the same ledger; pickling is refused.

    Notes
    -----
    The guarantee: all releases that were charged here before they read a row are together
    (budget.epsilon, budget.delta)-DP for the stated adjacency and unit, also when the choice of a
    release and of its epsilon depends on earlier results. The rule, and its proof, are in
    `pydpmode.privacy.privacy_filter`. Two ledgers over the same table do not know of each other: the
    total is then the sum of their budgets.

    Examples
    --------
    >>> from pydpmode.budget import Budget
    >>> from pydpmode.privacy.accounting import Charge, gaussian_mu
    >>> ledger = Ledger.open(None, Budget(1.0, 1e-6), "replace", "row")
    >>> entry = ledger.charge(Charge("first", "surface", 0.5, 1e-6, gaussian_mus=(gaussian_mu(0.5, 1e-6),)))
    >>> ledger.mark_released(entry)
    >>> round(ledger.remaining(), 2)
    0.84
    """

    def __init__(
        self, log: EventLog, budget: Budget, adjacency: Adjacency, unit: Unit, person: str | None = None
    ) -> None:
        self._person = person
        self._log = log
        self._budget = budget
        self._adjacency: Adjacency = adjacency
        self._unit: Unit = unit

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        budget: Budget,
        adjacency: Adjacency,
        unit: Unit,
        *,
        person: str | None = None,
        lock_timeout: float = DEFAULT_LOCK_TIMEOUT,
    ) -> Ledger:
        """Open a ledger, making the file if it is not there.

        Parameters
        ----------
        path : path or None
            JSON-lines file; None keeps the ledger in memory.
        budget : Budget
        adjacency : {"replace", "add_remove"}
        unit : {"row", "person"}
            These three must be what the file was made with.
        person : str, optional
            Column that identifies persons: one ledger counts one kind of person. Not checked when
            omitted.
        lock_timeout : float
            Seconds to wait for other processes.

        Raises
        ------
        LedgerMismatch
            When the file was made with another budget, adjacency or unit.
        LedgerDamaged
            When the file is not what was written.
        LedgerError
            When the file cannot be read, or a new one not be written.
        """
        _check_arguments(budget, adjacency, unit)
        timeout = as_number(lock_timeout, "lock_timeout")
        if not (math.isfinite(timeout) and timeout >= 0):
            raise InvalidArgument(f"lock_timeout must be a finite number of seconds >= 0, got {timeout!r}")
        log: EventLog = MemoryLog() if path is None else FileLog(path, timeout)
        ledger = cls(log, budget, adjacency, unit, person)
        with log.locked(to_write=False):
            is_new = not log.read().events
        if is_new:
            ledger._write_header()
        ledger._read()
        return ledger

    # -- public facts ---------------------------------------------------------------------------

    @property
    def budget(self) -> Budget:
        """The total budget."""
        return self._budget

    @property
    def adjacency(self) -> Adjacency:
        """Which tables are neighbours."""
        return self._adjacency

    @property
    def unit(self) -> Unit:
        """Whose contribution is protected."""
        return self._unit

    @property
    def path(self) -> str | None:
        """Path of the file, None in memory."""
        return str(self._log.path) if isinstance(self._log, FileLog) else None

    # -- charging -------------------------------------------------------------------------------

    def charge(self, charge: Charge) -> str:
        """Charge one release, before it reads a row, and return the id of its entry.

        Raises
        ------
        BudgetExceeded
            When the release does not fit. The ledger is as it was.
        LedgerError
            When the ledger cannot be trusted or written. The ledger is as it was.
        """
        _check_charge(charge)
        with self._log.locked():
            chain = self._log.read()
            history = [entry.charge for entry in self._entries(chain)]
            if not fits(history, charge, self._budget):
                raise BudgetExceeded(self._refusal(history, charge))
            entry_id = secrets.token_hex(8)
            self._log.append(self._event(history, charge, entry_id), chain)
        return entry_id

    def mark_released(self, entry_id: str) -> None:
        """Record that the release of an entry was made. Marking it again changes nothing.

        Raises
        ------
        LedgerError
            When there is no such entry, or the ledger cannot be written. The charge stands.
        """
        with self._log.locked():
            chain = self._log.read()
            known = {entry.id: entry.status for entry in self._entries(chain)}
            if entry_id not in known:
                raise LedgerError(
                    f"{self._log.name}: there is no entry with this id; pass what charge() returned"
                )
            if known[entry_id] != "released":
                self._log.append({"kind": "released", "id": entry_id, "time": _now()}, chain)

    # -- reading --------------------------------------------------------------------------------

    def would_fit(self, charge: Charge) -> bool:
        """Whether `charge` would be accepted now. Charges nothing."""
        _check_charge(charge)
        return fits(self._history(), charge, self._budget)

    def spent(self) -> float:
        """Return the epsilon of all charges so far, tightly composed at the budget's delta."""
        return compose(self._history(), self._budget.delta)

    def spent_with(self, charge: Charge) -> float:
        """Return what `spent` would be after `charge`, whether it fits or not. Charges nothing."""
        _check_charge(charge)
        return compose([*self._history(), charge], self._budget.delta)

    def remaining(self, *, delta: float | None = None) -> float:
        """Return the largest epsilon of one more Gaussian release, stated at `delta`.

        Parameters
        ----------
        delta : float, optional
            The budget's delta when omitted.

        Returns
        -------
        float
            0 when none fits.
        """
        level = self._budget.delta if delta is None else check_delta(delta)
        return largest_epsilon(self._history(), self._budget, delta=level)

    def entries(self) -> tuple[Entry, ...]:
        """Return all charges, oldest first."""
        return self._entries(self._read())

    def table(self) -> pd.DataFrame:
        """Return all charges as a data frame.

        Returns
        -------
        DataFrame
            number, label, mechanism, epsilon, delta, cumulative (all charges so far, tightly
            composed at the budget's delta), sum (their epsilons added up), left (largest epsilon of one
            more Gaussian release), status ("released" or "charged, unfinished") and time (UTC).
        """
        # Imported here: a ledger is charged far more often than shown.
        import pandas as pd

        return pd.DataFrame([_row(entry) for entry in self.entries()], columns=list(_COLUMNS))

    # -- one budget, one object -----------------------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Ledger:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PicklingRefused(
            "a ledger is never pickled: a copy would guard a second budget. Open the same ledger file in "
            "the other process: Ledger.open('study.jsonl', ...)"
        )

    def __repr__(self) -> str:
        verb = "replace one" if self._adjacency == "replace" else "add or remove one"
        place = self.path or "in memory"
        size = f"epsilon {self._budget.epsilon:g}, delta {self._budget.delta:g}"
        title = f"Ledger ({place}): {size}, {verb} {self._unit}"
        try:
            entries = self.entries()
        except LedgerError as problem:
            return f"{title}\n{problem}"
        if not entries:
            return f"{title}\nno releases yet"
        return f"{title}\n{_text_table(entries)}"

    # -- internals ------------------------------------------------------------------------------

    def _write_header(self) -> None:
        with self._log.locked():
            chain = self._log.read()
            # Another process may have been faster.
            if not chain.events:
                self._log.append({"kind": "header", **self._header(), "created": _now()}, chain)

    def _header(self) -> Event:
        return {
            "format": FORMAT,
            "version": VERSION,
            "budget": {"epsilon": self._budget.epsilon, "delta": self._budget.delta},
            "adjacency": self._adjacency,
            "unit": self._unit,
            "person": self._person,
        }

    def _read(self) -> Chain:
        with self._log.locked(to_write=False):
            chain = self._log.read()
        self._check_header(chain)
        return chain

    def _history(self) -> list[Charge]:
        return [entry.charge for entry in self._entries(self._read())]

    def _check_header(self, chain: Chain) -> None:
        expected = self._header()
        found = _known_header(self._log, chain)
        checked = ["budget", "adjacency", "unit", *(["person"] if self._person is not None else [])]
        different = [name for name in checked if found.get(name) != expected[name]]
        if different:
            what = "; ".join(f"{name} {found.get(name)!r}, now {expected[name]!r}" for name in different)
            raise LedgerMismatch(
                f"{self._log.name}: the ledger was made with {what}. Use the same values, or another file "
                f"for another study (the guarantees then add up). {_NOTHING}"
            )

    def _entries(self, chain: Chain) -> tuple[Entry, ...]:
        self._check_header(chain)
        released = {event["id"] for event in chain.events if event["kind"] == "released"}
        charges = [
            (line, event) for line, event in enumerate(chain.events, start=1) if event["kind"] == "charge"
        ]
        return tuple(
            self._entry(number, line, event, released)
            for number, (line, event) in enumerate(charges, start=1)
        )

    def _entry(self, number: int, line: int, event: Event, released: set[str]) -> Entry:
        try:
            return Entry(
                number=number,
                id=event["id"],
                charge=Charge.from_dict(event["charge"]),
                cumulative=event["cumulative_tight"],
                sum=event["cumulative_sum"],
                left=event["left"],
                status="released" if event["id"] in released else "charged, unfinished",
                time=event["time"],
            )
        except (KeyError, TypeError, InvalidArgument):
            raise LedgerDamaged(
                f"{self._log.name}, line {line}: this line is no charge of this package. Restore the file "
                f"from a backup. {_NOTHING}"
            ) from None

    def _event(self, history: Sequence[Charge], charge: Charge, entry_id: str) -> Event:
        charges = [*history, charge]
        return {
            "kind": "charge",
            "id": entry_id,
            "time": _now(),
            "charge": charge.to_dict(),
            "cumulative_tight": compose(charges, self._budget.delta),
            "cumulative_sum": total(charges, "epsilon"),
            "left": largest_epsilon(charges, self._budget, delta=self._budget.delta),
        }

    def _refusal(self, history: Sequence[Charge], charge: Charge) -> str:
        budget = self._budget
        spent = compose(history, budget.delta)
        after = compose([*history, charge], budget.delta)
        level = charge.delta or budget.delta
        most = largest_epsilon(
            history, budget, delta=level, extra_delta=charge.extra_delta, slack=charge.slack
        )
        advice = f"No Gaussian release at delta {level:g} fits any more: work with what has been released"
        if most > 0:
            advice = (
                f"The largest epsilon of a Gaussian release at delta {level:g} that still fits is "
                f"{_down(most)}: ask for that or less"
            )
        return (
            f"{charge.label!r} asks for epsilon {charge.epsilon:g} at delta {charge.delta:g}. The budget "
            f"is epsilon {budget.epsilon:g} at delta {budget.delta:g}; earlier releases ({len(history)}) "
            f"have spent {_up(spent)} of it, and with this one it would be {_up(after)}. {advice}. "
            f"{_NOTHING}"
        )


def read_header(path: str | os.PathLike[str]) -> tuple[Budget, Adjacency, Unit]:
    """Return the budget, adjacency and unit that a ledger file was made with. Writes nothing.

    Raises
    ------
    LedgerError
        When there is no such file, or it is damaged.
    """
    log = FileLog(path, DEFAULT_LOCK_TIMEOUT)
    if not log.path.is_file():
        raise LedgerError(f"{path}: there is no such ledger file; give the path of an existing one")
    with log.locked(to_write=False):
        found = _known_header(log, log.read())
    budget = Budget(found["budget"]["epsilon"], found["budget"]["delta"])
    adjacency: Adjacency = found["adjacency"]
    unit: Unit = found["unit"]
    _check_arguments(budget, adjacency, unit)
    return budget, adjacency, unit


def read_budget(path: str | os.PathLike[str]) -> Budget:
    """Return the budget that a ledger file was made with; see `read_header`."""
    return read_header(path)[0]


def _known_header(log: EventLog, chain: Chain) -> Event:
    """Return the header if it is one that this version understands."""
    found = chain.events[0] if chain.events else {}
    if found.get("kind") != "header" or found.get("format") != FORMAT:
        raise LedgerDamaged(
            f"{log.name}, line 1: the ledger does not start with its header: it was emptied or replaced. "
            f"Restore it from a backup. {_NOTHING}"
        )
    if found.get("version") != VERSION:
        raise LedgerError(
            f"{log.name}: written by another version of the package (format {found.get('version')!r}, this "
            f"one knows {VERSION}); use that version. {_NOTHING}"
        )
    return found


def _check_arguments(budget: object, adjacency: object, unit: object) -> None:
    if not isinstance(budget, Budget):
        raise InvalidBudget(f"budget must be a Budget(epsilon, delta), got {type(budget).__name__}")
    for name, value, allowed in (("adjacency", adjacency, ADJACENCIES), ("unit", unit, UNITS)):
        if value not in allowed:
            raise InvalidArgument(f"{name} must be one of {list(allowed)}, got {value!r}")


def _check_charge(charge: object) -> None:
    if not isinstance(charge, Charge):
        raise InvalidArgument(f"a ledger takes a Charge, got {type(charge).__name__}")


def _row(entry: Entry) -> dict[str, Any]:
    charge = entry.charge
    return {
        "number": entry.number,
        "label": charge.label,
        "mechanism": f"{charge.mechanism} (simulated)" if charge.simulated else charge.mechanism,
        "epsilon": charge.epsilon,
        "delta": charge.delta,
        "cumulative": entry.cumulative,
        "sum": entry.sum,
        "left": entry.left,
        "status": entry.status,
        "time": entry.time,
    }


def _text_table(entries: Sequence[Entry]) -> str:
    cells = [list(_COLUMNS)]
    for entry in entries:
        cells.append([_cell(value) for value in _row(entry).values()])
    widths = [max(len(line[i]) for line in cells) for i in range(len(_COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(value))
    return text if len(text) <= 40 else text[:37] + "..."


def _down(value: float) -> str:
    """Four significant digits, rounded down, so that the number given really fits."""
    return _rounded(value, math.floor)


def _up(value: float) -> str:
    return _rounded(value, math.ceil)


def _rounded(value: float, direction: Any) -> str:
    if not (math.isfinite(value) and value > 0):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    # A whole number of units shown exactly; a hair's breadth of rounding does not make it the next one.
    hair = 1e-9 if direction is math.ceil else -1e-9
    return f"{direction(value / unit - hair) * unit:.4g}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
