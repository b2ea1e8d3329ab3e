"""One DP-GRAMS release, planned: everything that is fixed before a row is read.

Sensitivities, noise and their sources are in `grams_calibration`, those of the starts in
`grams_initialisation`; nothing here depends on a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..budget import Adjacency, Unit
from ..errors import InvalidArgument
from ..numerics.correlated_noise import NUGGET
from ..numerics.score_kernels import ScoreKernel
from ..numerics.surfaces import FloatArray
from ..numerics.trace_modes import Finish
from .accounting import Charge
from .features import Sensitivity
from .grams_calibration import RoundNoise, Rounds, linear_noise, published_noise
from .grams_initialisation import StartCandidates
from .grams_options import LARGEST_COUNT, Accountant, GramsOptions
from .grams_rules import check_sound, finish_of, statistic_scales

# Modes to plan for when their number is not asked for.
_MODES = 5
_FLOOR_IN_SDS = 3.0
_CLIP_IN_FLOORS = 2.0


@dataclass(frozen=True)
class AscentPlan:
    """Steps and noise of the rounds, in bandwidth units.

    Parameters
    ----------
    step, clip, floor : float
        eta, A and p_floor.
    scales : (float, float)
        a and b: what densities and gradients are multiplied by before the noise; (1, 1) for scores.
    noise : RoundNoise
        Of one round: on the sums (not the means) of the scaled statistics, or on the scores.
    density_sd, gradient_sd : float
        Noise of one released density, and of one component of a gradient; NaN for "published".
    """

    step: float
    clip: float
    floor: float
    scales: tuple[float, float]
    noise: RoundNoise
    density_sd: float
    gradient_sd: float


@dataclass(frozen=True, eq=False)
class GramsPlan:
    """Everything about one DP-GRAMS release that is known before a row is read.

    Parameters
    ----------
    columns : tuple of str
    lower, upper, bandwidth : (d,) arrays
        Box and unit of length, in the columns' units. All else is in bandwidths.
    epsilon, delta : float
        The guarantee.
    rounds : Rounds
    accountant : {"pld", "rdp", "published"}
    ascent : AscentPlan
    candidates : StartCandidates
    suppression, epsilon_draw : float
        rho_init, and the privacy loss of one start.
    finish : {"regression", "iterates"}
    """

    columns: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    bandwidth: FloatArray
    epsilon: float
    delta: float
    rounds: Rounds
    accountant: Accountant
    ascent: AscentPlan
    candidates: StartCandidates
    suppression: float
    epsilon_draw: float
    finish: Finish

    @property
    def size(self) -> FloatArray:
        """Sides of the box in bandwidths, (d,)."""
        return np.asarray((self.upper - self.lower) / self.bandwidth)

    @property
    def length(self) -> int:
        """Numbers released in one round."""
        d = len(self.columns)
        return self.rounds.ascents * (d if self.accountant == "published" else 1 + d)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of one round, in the units of its noise."""
        return self.ascent.noise.sensitivity

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the noise in each entry of one round."""
        return self.ascent.noise.scale

    @property
    def mechanism(self) -> str:
        """What to call it in the ledger."""
        shape = self.rounds
        noise = "correlated" if shape.correlated else "independent"
        return f"grams ({self.accountant}, {noise}, T={shape.number}, k={shape.ascents}, m={shape.batch})"

    def charge(self, label: str, simulated: bool) -> Charge:
        """Return what the ledger records."""
        if self.accountant != "pld":
            return Charge.stated(
                label=label,
                mechanism=self.mechanism,
                epsilon=self.epsilon,
                delta=self.delta,
                columns=self.columns,
                simulated=simulated,
            )
        noise = self.ascent.noise
        return Charge(
            label=label,
            mechanism=self.mechanism,
            epsilon=self.epsilon,
            delta=self.delta,
            gaussian_mus=(noise.mu,),
            draws=((self.epsilon_draw, self.rounds.ascents),),
            extra_delta=noise.extra_delta,
            slack=noise.slack,
            bounded_range=True,
            columns=self.columns,
            simulated=simulated,
        )


def check_offered(adjacency: Adjacency, unit: Unit, weighted: bool, places_are_fixed: bool = True) -> None:
    """Refuse what `grams` has no proof for. Reads nothing.

    Raises
    ------
    InvalidArgument
        Under add/remove, with persons as units, with weights, or for rows that have no fixed places.
    """
    if not places_are_fixed:
        raise InvalidArgument(
            "mechanism='grams' deals the rows into batches by their places, and needs several passes: give a "
            "table in memory or CSV or Parquet files, not a stream, query or Dask table; or use "
            "mechanism='surface'"
        )
    if adjacency != "replace":
        raise InvalidArgument(
            "mechanism='grams' needs adjacency='replace': its rounds, thresholds and means use the number of "
            "records, which is private under add/remove; use mechanism='surface'"
        )
    if unit != "row":
        raise InvalidArgument(
            "mechanism='grams' protects rows: a person with many rows would move every start's count and "
            "every round by more than one row can; use mechanism='surface' with unit='person'"
        )
    if weighted:
        raise InvalidArgument(
            "mechanism='grams' has no weights: starts are drawn by counts of records; use mechanism='surface'"
        )


def plan_grams(
    options: GramsOptions,
    *,
    columns: tuple[str, ...],
    lower: FloatArray,
    upper: FloatArray,
    bandwidth: FloatArray,
    records: int,
    block: int,
    epsilon: float,
    delta: float,
    n_modes: int | None = None,
) -> GramsPlan:
    """Calibrate a DP-GRAMS release. Reads nothing.

    Parameters
    ----------
    options : GramsOptions
    columns : tuple of str
    lower, upper, bandwidth : (d,) arrays
    records : int
        The public number of records n.
    block : int
        Largest number of records summed before rounding to the lattice.
    epsilon, delta : float
        Already checked.
    n_modes : int, optional
        Number of modes asked for: it sets k.

    Raises
    ------
    InvalidArgument
        On a combination that is not sound, or does not fit the table; the message says why.
    """
    d = len(columns)
    log_n = math.log(max(records, 2))
    ascents = options.k or min(max(1, math.ceil((n_modes or _MODES) * log_n)), LARGEST_COUNT)
    rounds = Rounds(
        kernel=ScoreKernel(options.kernel, d),
        records=records,
        number=options.T or math.ceil(log_n),
        batch=_batch(options, records, log_n),
        ascents=ascents,
        # One ascent has nothing to be correlated with, and its Euclidean bound is the smaller one.
        correlated=options.noise == "correlated" and ascents > 1,
        block=block,
    )
    check_sound(options, rounds)
    size = (upper - lower) / bandwidth
    epsilon_draw = options.eps_init * epsilon / ascents
    if options.accountant == "published":
        ascent = _published(options, rounds, size, bandwidth, epsilon, delta)
    else:
        ascent = _linear(options, rounds, size, bandwidth, epsilon, delta, epsilon_draw)
    return GramsPlan(
        columns=columns,
        lower=lower,
        upper=upper,
        bandwidth=bandwidth,
        epsilon=epsilon,
        delta=delta,
        rounds=rounds,
        accountant=options.accountant,
        ascent=ascent,
        candidates=_start_candidates(options, lower, upper, bandwidth),
        suppression=options.rho_init or float(np.prod(size)) ** (1 / d) / 5 * log_n ** (-1 / d),
        epsilon_draw=epsilon_draw,
        finish=finish_of(options, rounds.kernel),
    )


# -- parts -----------------------------------------------------------------------------------------------


def _linear(
    options: GramsOptions,
    rounds: Rounds,
    size: FloatArray,
    bandwidth: FloatArray,
    epsilon: float,
    delta: float,
    epsilon_draw: float,
) -> AscentPlan:
    scales = statistic_scales(options, rounds)
    noise = linear_noise(
        options.accountant, rounds, scales, epsilon=epsilon, delta=delta, epsilon_draw=epsilon_draw
    )
    # Multiplying back by the Cholesky factor restores unit variance, the nugget apart.
    spread = noise.scale * math.sqrt(1 + NUGGET * rounds.correlated) / rounds.batch
    least = max(_uniform(size), _FLOOR_IN_SDS * spread / scales[0])
    floor, clip = _floor_and_clip(options, bandwidth, least)
    return AscentPlan(options.eta, clip, floor, scales, noise, spread / scales[0], spread / scales[1])


def _published(
    options: GramsOptions,
    rounds: Rounds,
    size: FloatArray,
    bandwidth: FloatArray,
    epsilon: float,
    delta: float,
) -> AscentPlan:
    floor, clip = _floor_and_clip(options, bandwidth, _uniform(size))
    share = (1 - options.eps_init) * epsilon
    noise = published_noise(rounds, floor=floor, clip=clip, epsilon=share, delta=delta)
    return AscentPlan(options.eta, clip, floor, (1.0, 1.0), noise, math.nan, math.nan)


def _uniform(size: FloatArray) -> float:
    """Return the uniform density over the box, in bandwidth units."""
    return 1 / float(np.prod(size))


def _floor_and_clip(options: GramsOptions, bandwidth: FloatArray, least: float) -> tuple[float, float]:
    """Return p_floor and A in bandwidth units: given ones, or the public rules."""
    volume = float(np.prod(bandwidth))
    floor = least if options.p_floor is None else options.p_floor * volume
    return floor, _CLIP_IN_FLOORS * floor if options.A is None else options.A * volume


def _batch(options: GramsOptions, records: int, log_n: float) -> int:
    if options.m is None:
        return math.ceil(records / log_n) if options.accountant == "published" else records
    if options.m > records:
        raise InvalidArgument(f"m must be at most the number of records {records}, got {options.m}")
    return options.m


def _start_candidates(
    options: GramsOptions, lower: FloatArray, upper: FloatArray, bandwidth: FloatArray
) -> StartCandidates:
    if options.candidates is None:
        return StartCandidates.grid((upper - lower) / bandwidth, options.h_dap)
    points = np.asarray(options.candidates, dtype=np.float64)
    if points.shape[1] != lower.size:
        raise InvalidArgument(
            f"candidates must have one column per coordinate ({lower.size}), got {points.shape[1]}"
        )
    if np.any(points < lower) or np.any(points > upper):
        raise InvalidArgument("candidates must lie inside the public bounds")
    return StartCandidates.given((points - lower) / bandwidth, options.h_dap)
