"""Every exception and warning of the package.

Messages say what was got, what is allowed and what to do. They never contain a value
that was read from a private row: only parameters, column names, dtypes and public counts.
"""

from __future__ import annotations


class PydpmodeError(Exception):
    """Base class of every error that this package raises on purpose."""


class InvalidArgument(PydpmodeError, ValueError):
    """A parameter is outside what is allowed."""


class MissingBounds(InvalidArgument):
    """A column has no public bounds. They are never taken from the data."""


class InvalidBounds(InvalidArgument):
    """Bounds are reversed, equal, not finite or not a pair of numbers."""


class InvalidBudget(InvalidArgument):
    """Epsilon or delta is missing, not a finite number, or out of range."""


class UnknownColumn(InvalidArgument):
    """A named column is not in the data."""


class DuplicateColumns(InvalidArgument):
    """Two columns carry the same name, so that a name does not say which is meant."""


class NonNumericColumn(InvalidArgument, TypeError):
    """A used column is not numeric by its dtype. The message names column and dtype only."""


class EmptyData(InvalidArgument):
    """There are no rows."""


class UnsupportedSource(InvalidArgument, TypeError):
    """The object given as data is not a table that the package can read."""


class SurfaceFileError(InvalidArgument):
    """A file is not a released surface (or result) of this package, or is damaged."""


class BudgetExceeded(PydpmodeError):
    """A release would cost more privacy than is left. Nothing was read or charged."""


class LedgerError(PydpmodeError):
    """The ledger file cannot be trusted or used. Nothing was read or charged."""


class LedgerMismatch(LedgerError):
    """The ledger file was opened for another budget, adjacency or unit."""


class LedgerDamaged(LedgerError):
    """A line of the ledger file is truncated or is not what was written."""


class ReadingFailed(PydpmodeError, RuntimeError):
    """Another library failed while rows were read. Its text is withheld: it may quote a row."""


class PicklingRefused(PydpmodeError, TypeError):
    """Private rows are never pickled: a copy would carry a second, unguarded budget."""


class MissingDependency(PydpmodeError, ImportError):
    """An optional package is needed; the message names it and the extra that brings it."""


class PydpmodeWarning(UserWarning):
    """Base class of the package's warnings. Each is also stored on the result."""


class WeakDelta(PydpmodeWarning):
    """Delta is not below one over the number of records."""


class RaisedLowerBound(PydpmodeWarning):
    """A lower bound of 0 under a logarithm was replaced by a thousandth of the upper bound."""


class HeapedValues(PydpmodeWarning):
    """Values stand on a grid that the bandwidth is too narrow for: modes may be its teeth."""


class LowSignal(PydpmodeWarning):
    """The release is dominated by privacy noise; its modes cannot be relied on."""


class UnknownLevel(PydpmodeWarning):
    """New data have a level of the grouping column that was not declared: nothing is known of it."""


class CoarseFeatures(PydpmodeWarning):
    """Random features are too few: their read-off error is above the privacy noise."""


class ClusterLimit(PydpmodeWarning):
    """Clusters are at a limit: the most that are looked for, or the limits of the scores."""
