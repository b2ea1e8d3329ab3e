"""A privacy budget, and the statement of what a release has spent.

Both are plain values: they know nothing of rows, noise or files.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

from .errors import InvalidArgument, InvalidBudget

Adjacency = Literal["replace", "add_remove"]
Unit = Literal["row", "person"]
Outside = Literal["clip", "ignore"]
Device = Literal["cpu", "cuda"]

ADJACENCIES: tuple[Adjacency, ...] = ("replace", "add_remove")
UNITS: tuple[Unit, ...] = ("row", "person")

# In the name of a mechanism that protects responses alone, at predictors that are public.
PUBLIC_PREDICTORS = "public predictors"


def _is_bool(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def as_number(value: object, name: str, error: type[InvalidArgument] = InvalidArgument) -> float:
    """Return `value` as a float, or refuse: booleans, arrays, strings and None are no numbers.

    Parameters
    ----------
    value : object
        What the caller gave.
    name : str
        The parameter's name, for the message.
    error : type
        The exception class to raise.

    Raises
    ------
    InvalidArgument
        (or `error`) when `value` is not one real number.
    """
    if _is_bool(value) or not isinstance(value, Real):
        raise error(f"{name} must be one number, got {type(value).__name__}; give e.g. {name}=1.0")
    try:
        return float(value)
    except OverflowError:
        raise error(f"{name} is too large for a float64; give a number within +-1e308") from None


def as_whole(value: object, name: str, least: int, most: int | None = None) -> int:
    """Return `value` as an int within [least, most], or raise `InvalidArgument`. Whole floats are whole."""
    allowed = f">= {least}" if most is None else f"in {least}..{most}"
    if _is_bool(value) or not isinstance(value, Real):
        raise InvalidArgument(f"{name} must be a whole number {allowed}, got {type(value).__name__}")
    number = as_number(value, name)
    if not (math.isfinite(number) and number == int(number) and number >= least):
        raise InvalidArgument(f"{name} must be a whole number {allowed}, got {value!r}")
    whole = int(value)  # type: ignore[call-overload]
    if most is not None and whole > most:
        raise InvalidArgument(f"{name} must be a whole number {allowed}, got {value!r}")
    return int(whole)


def check_epsilon(epsilon: object) -> float:
    """Return epsilon as a float in (0, inf), or raise `InvalidBudget`.

    Raises
    ------
    InvalidBudget
        When epsilon is missing (there is no default), not a number, not finite or not positive.
    """
    if epsilon is None:
        raise InvalidBudget("epsilon is missing and has no default; give a number such as epsilon=1.0")
    value = as_number(epsilon, "epsilon", InvalidBudget)
    if not (math.isfinite(value) and value > 0):
        raise InvalidBudget(
            f"epsilon must be a finite number > 0, got {value!r}; common choices are 0.1 to 5"
        )
    return value


def check_delta(delta: object) -> float:
    """Return delta as a float in (0, 1), or raise `InvalidBudget`.

    Raises
    ------
    InvalidBudget
        When delta is missing, not a number, or not strictly between 0 and 1.
    """
    if delta is None:
        raise InvalidBudget(
            "delta is missing and has no default; give a number well below 1/n, such as delta=1e-6"
        )
    value = as_number(delta, "delta", InvalidBudget)
    if not 0 < value < 1:
        raise InvalidBudget(f"delta must be strictly between 0 and 1, got {value!r}; give e.g. delta=1e-6")
    return value


@dataclass(frozen=True)
class Budget:
    """A total privacy budget (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        Finite and > 0. There is no default.
    delta : float
        Strictly between 0 and 1; choose it well below one over the number of records.

    Raises
    ------
    InvalidBudget
        When either is missing or out of range.

    Examples
    --------
    >>> Budget(2.0, 1e-6)
    Budget(epsilon=2.0, delta=1e-06)
    >>> Budget(0.5, 1e-6) <= Budget(2.0, 1e-6)
    True
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))

    def __le__(self, other: Budget) -> bool:
        """Whether this budget is no larger than `other` in epsilon and in delta."""
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def split(self, *shares: float) -> tuple[Budget, ...]:
        """Split by basic composition: both epsilon and delta in proportion to `shares`.

        The parts' epsilons (and deltas) add up to this budget, so any mechanisms that
        meet the parts compose to at most this budget (Dwork & Roth 2014, Theorem 3.16).

        Examples
        --------
        >>> [round(part.epsilon, 6) for part in Budget(2.0, 1e-6).split(1, 3)]
        [0.5, 1.5]
        """
        numbers = [as_number(share, "share") for share in shares]
        if not numbers or any(not (math.isfinite(s) and s > 0) for s in numbers):
            raise InvalidArgument(
                "split needs one or more shares, each a finite number > 0, such as split(1, 3)"
            )
        # Relative to the largest first: neither the sum nor a product can overflow.
        relative = [s / max(numbers) for s in numbers]
        total = math.fsum(relative)
        return tuple(Budget(self.epsilon * (s / total), self.delta * (s / total)) for s in relative)


@dataclass(frozen=True)
class PrivacySpent:
    """What one release cost, and under which assumptions: the statement that travels with it.

    The guarantee: the released object is (epsilon, delta)-differentially private for
    `adjacency` of one `unit`, given that every entry of `bounds` is public.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of this release alone.
    adjacency : {"replace", "add_remove"}
        Neighbouring tables: one unit replaced (their number is public), or one added or removed.
    unit : {"row", "person"}
        Whose contribution is protected.
    mechanism : str
        For example "surface (discrete Gaussian)".
    sensitivity : float
        L2 sensitivity of the released vector, arithmetic and truncation terms included.
    noise_scale : float
        Standard deviation of the noise in each entry of the released vector.
    n_units : int or None
        The public number of units (None under add/remove, where it is private).
    bounds : mapping of str to (float, float)
        Public bounds per original column.
    outside : {"clip", "ignore"}
        What happened to values outside the bounds.
    max_weight : float or None
        Public ceiling of the weights, if weights were used.
    simulated : bool
        True when a seed made the noise reproducible: then NOTHING is private.
    label : str
        The label in the ledger.
    notes : tuple of str
        Statements the user made, such as that a bandwidth came from the data.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: Unit
    mechanism: str
    sensitivity: float
    noise_scale: float
    n_units: int | None
    bounds: Mapping[str, tuple[float, float]]
    outside: Outside = "clip"
    max_weight: float | None = None
    simulated: bool = False
    label: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def protects(self) -> str:
        """What one neighbour has otherwise than the other: "row", "person", or "response" alone."""
        return "response" if PUBLIC_PREDICTORS in self.mechanism else self.unit

    def statement(self) -> str:
        """Return the guarantee as one English sentence."""
        if self.simulated:
            return "NOT PRIVATE: the noise was drawn from a seed (simulated); never publish this release."
        verb = "replacing" if self.adjacency == "replace" else "adding or removing"
        given = "the bounds are public."
        if self.protects == "response":
            given = "the bounds and the predictors of all rows are public: predictors are not protected."
        return (
            f"({self.epsilon:g}, {self.delta:g})-differentially private for {verb} one {self.protects}, "
            f"given that {given}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        out = dataclasses.asdict(self)
        out["bounds"] = {name: [low, high] for name, (low, high) in self.bounds.items()}
        out["notes"] = list(self.notes)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PrivacySpent:
        """Rebuild from `to_dict`.

        Raises
        ------
        InvalidArgument, KeyError, TypeError, ValueError
            When an entry is missing or is not what `to_dict` writes: a statement of privacy is never
            completed by a default.
        """
        fields = dict(data)
        check_epsilon(data["epsilon"])
        check_delta(data["delta"])
        for name in ("sensitivity", "noise_scale"):
            if not 0 < as_number(data[name], name) < math.inf:
                raise InvalidArgument(f"{name} must be finite and > 0, got {data[name]!r}")
        if data["adjacency"] not in ADJACENCIES or data["unit"] not in UNITS:
            raise InvalidArgument("adjacency or unit is not one that this package knows")
        if data["n_units"] is not None and as_number(data["n_units"], "n_units") < 1:
            raise InvalidArgument("n_units must be at least 1, or None")
        if not isinstance(data["simulated"], bool):
            raise InvalidArgument("simulated must be true or false")
        if data["simulated"] != ("simulated" in str(data["mechanism"])):
            raise InvalidArgument("simulated is not what the mechanism says")
        fields["bounds"] = {str(k): (float(v[0]), float(v[1])) for k, v in data["bounds"].items()}
        fields["notes"] = tuple(data.get("notes", ()))
        return cls(**fields)
