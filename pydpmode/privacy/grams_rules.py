"""What DP-GRAMS and DP-PMS decide by the same rules, from the options and the rounds."""

from __future__ import annotations

import math

from ..errors import InvalidArgument
from ..numerics.score_kernels import ScoreKernel
from ..numerics.trace_modes import Finish
from .grams_calibration import Rounds
from .grams_options import GramsOptions


def check_sound(options: GramsOptions, rounds: Rounds) -> None:
    """Refuse combinations that are not differentially private, or whose composition is not known.

    Raises
    ------
    InvalidArgument
        Before anything is charged.
    """
    if options.accountant == "published" and rounds.correlated:
        raise InvalidArgument(
            "accountant='published' with noise='correlated' and several ascents is not differentially "
            "private: the paper bounds the joint sensitivity of clipped and divided scores in the "
            "covariance's norm, and that bound is false (docs/where-we-differ.md has a counterexample). Use "
            "noise='independent', k=1, or accountant='pld', which adds the correlated noise before clipping"
        )
    if options.accountant == "pld" and rounds.batch < rounds.records:
        raise InvalidArgument(
            f"accountant='pld' takes every round over all records (m = {rounds.records}), got m = "
            f"{rounds.batch}: its composition knows nothing of sampling without replacement; use "
            "accountant='rdp'"
        )


def finish_of(options: GramsOptions, kernel: ScoreKernel) -> Finish:
    """Return how the ascents are read: as asked for, or by regression where densities are released.

    Raises
    ------
    InvalidArgument
        When a regression is asked for and there is nothing to regress.
    """
    able = kernel.smooth and options.accountant != "published"
    if options.finish is None:
        return "regression" if able else "iterates"
    if options.finish == "regression" and not able:
        raise InvalidArgument(
            "finish='regression' needs released densities and gradients of a differentiable kernel; with "
            "accountant='published' or kernel='legendre4' use finish='iterates'"
        )
    return options.finish


def statistic_scales(options: GramsOptions, rounds: Rounds) -> tuple[float, float]:
    """Return what densities and gradients are multiplied by, so that one record moves both by at most 1."""
    shift, share = rounds.kernel.shift_bounds(rounds.correlated), options.density_share
    return math.sqrt(share) / shift[0], math.sqrt(1 - share) / shift[1]
