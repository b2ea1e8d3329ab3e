"""One DP-PMS release, planned: partial mean shift at a fixed PUBLIC design, with private responses.

Neighbouring tables differ in ONE RESPONSE; the predictors of all rows are public, and so is everything made
of them alone: which row lies in which cell of the predictors' space, and the weights

    w_gj = exp(-|(x_g - X_j)/h_x|^2 / 2)        of row j at the grid value x_g.

Sensitivity of a round. At x_g the ascents y_l, l in g, see `sum_j w_gj K(y_l - Y_j)` and its derivative in y
(lengths in h_y). Replacing the response of row j moves the values by `w_gj (K(y_l - Y_j) - K(y_l - Y_j'))`.

- Correlated noise: covariance `exp(-|y_l - y_r|)` between ascents at the SAME x_g, independent between
  different ones. The norm belonging to a block-diagonal covariance is the root of the sum of the blocks'
  squares, and in one block the shift is w_gj times the difference of two kernels: at most
  `w_gj c_0 sqrt(I_0)` (derivative: `w_gj c_1 sqrt(I_1)`) by Hall, Rinaldo & Wasserman (2013), whatever the
  number of ascents. Hence `Delta^2 <= max_j sum_g w_gj^2` in scaled units: the OVERLAP, a public number
  near 1 when the x_g are two bandwidths apart. The paper correlates over (x, y) together; blocks need no
  proof beyond that for one block, and no more noise.
- Independent noise: Euclidean, `Delta^2 <= max_j sum_g k_g w_gj^2`, k_g ascents at x_g.

Scores (accountant="published"). The statistics are divided by the public `W_g m/n`, `W_g = sum_j w_gj`, so
one score moves by at most `w_gj S_h n/(W_g m)` (clipping is 1-Lipschitz, the divisor is floored), and all of
them by `sqrt(max_j sum_g k_g (n w_gj/W_g)^2) S_h/m`; with independent noise only.

Starts. Each cell draws its starts from its own rows by the exponential mechanism; a response lies in one
cell, which its public predictors decide, so that the draws of different cells compose in parallel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..budget import PUBLIC_PREDICTORS, check_delta, check_epsilon
from ..errors import InvalidArgument
from ..numerics.correlated_noise import NUGGET
from ..numerics.score_kernels import ScoreKernel
from ..numerics.surfaces import FloatArray
from ..numerics.trace_modes import Finish
from ..results.coordinates import Coordinate
from .accounting import Charge
from .features import Sensitivity
from .grams_calibration import RoundNoise, Rounds, linear_noise, published_noise
from .grams_initialisation import StartCandidates
from .grams_options import Accountant, GramsOptions
from .grams_rules import check_sound, finish_of, statistic_scales

Starts = Literal["dap", "grid"]
STARTS: tuple[Starts, ...] = ("dap", "grid")

_SPACING = 2.0  # bandwidths between grid values of a predictor
_LARGEST_GRID = 2000
_STARTS_EACH = 12  # per grid value, when k is not given
_ROUNDS = 4  # when T is not given
_FLOOR_IN_SDS = 3.0
_CLIP_IN_FLOORS = 2.0
# Rows with a weight below this at a grid value do not count there (the weight is public).
LEAST_WEIGHT = 1e-12


@dataclass(frozen=True)
class PmsRounds(Rounds):
    """The shape of the rounds over all grid values; `ascents` counts all of them.

    Parameters
    ----------
    overlap : float
        Root of `max_j sum_g w_gj^2` (correlated), of `max_j sum_g k_g w_gj^2` (independent), or of
        `max_j sum_g k_g (n w_gj/W_g)^2` (scores).
    draws_each : int
        Starts drawn per cell.
    """

    overlap: float
    draws_each: int

    @property
    def base(self) -> float:
        """Norm by which one response moves the scaled statistics: the overlap."""
        return self.overlap

    @property
    def draws(self) -> int:
        """Number of starts that one response can influence: those of its cell."""
        return self.draws_each


@dataclass(frozen=True, eq=False)
class PublicDesign:
    """Predictors of all rows and the grid values at which modes are sought: public.

    Parameters
    ----------
    x : (n, p) array
        In bandwidths; rows with NaN count nowhere.
    grid : (G, p) array
        In bandwidths.
    cells : (n,) int array
        Grid value nearest to each row; -1 for rows with NaN.
    weights : (G, n) array
        `w_gj`.
    """

    x: FloatArray
    grid: FloatArray
    cells: NDArray[np.int64]
    weights: FloatArray

    @property
    def totals(self) -> FloatArray:
        """Sum of the weights at each grid value, (G,)."""
        return np.asarray(self.weights.sum(axis=1))

    @property
    def effective(self) -> FloatArray:
        """Effective number of rows at each grid value, `(sum w)^2 / sum w^2`, (G,)."""
        return np.asarray(self.totals**2 / np.sum(self.weights**2, axis=1))

    def overlap(self, ascents: int, correlated: bool) -> float:
        """Return the root of `max_j sum_g k_g w_gj^2`, `k_g` replaced by 1 under correlated noise."""
        most = float(np.sum(self.weights**2, axis=0).max())
        return math.sqrt(most * (1 if correlated else ascents)) * (1 + 1e-9)

    def score_overlap(self, ascents: int, batch: int) -> float:
        """Return the root of `max_j sum_g k_g (n w_gj/W_g)^2`.

        A little more: the margin for rounding in `published_noise` is for plain means over the batch.
        """
        count = self.weights.shape[1]
        most = float(np.sum((self.weights * (count / self.totals)[:, None]) ** 2, axis=0).max())
        margin = 1e-12 * batch * math.sqrt(ascents * self.grid.shape[0])
        return math.sqrt(most * ascents) * (1 + 1e-9 + margin)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Noise and limits of the rounds.

    Parameters
    ----------
    clips, floors : (G,) arrays
        A and p_floor per grid value, for the conditional density in units of 1/h_y.
    scales : (float, float)
        What values and derivatives are multiplied by before the noise.
    noise : RoundNoise
    density_sds, gradient_sds : (G,) arrays
        Noise of one conditional density and of its derivative; NaN for "published".
    """

    clips: FloatArray
    floors: FloatArray
    scales: tuple[float, float]
    noise: RoundNoise
    density_sds: FloatArray
    gradient_sds: FloatArray


@dataclass(frozen=True, eq=False)
class PmsPlan:
    """Everything about one DP-PMS release that is known before a response is read.

    Parameters
    ----------
    columns : tuple of str
        The response alone: what is read.
    lower, upper : (1,) arrays
        Public bounds of the response, in its units.
    bandwidth : (p + 1,) array
        Of the predictors, then of the response.
    epsilon, delta : float
    design : PublicDesign
    rounds : PmsRounds
    accountant : {"pld", "rdp", "published"}
    each : int
        Ascents per grid value.
    starts : {"dap", "grid"}
    step : float
        eta.
    calibration : Calibration
    candidates : StartCandidates
    suppression, epsilon_draw : float
    finish : {"regression", "iterates"}
    """

    columns: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    bandwidth: FloatArray
    epsilon: float
    delta: float
    design: PublicDesign
    rounds: PmsRounds
    accountant: Accountant
    each: int
    starts: Starts
    step: float
    calibration: Calibration
    candidates: StartCandidates
    suppression: float
    epsilon_draw: float
    finish: Finish

    @property
    def noise(self) -> RoundNoise:
        """Noise of one round."""
        return self.calibration.noise

    @property
    def size(self) -> float:
        """Width of the response's box, in bandwidths."""
        return float((self.upper - self.lower)[0] / self.bandwidth[-1])

    @property
    def length(self) -> int:
        """Numbers released in one round."""
        return self.rounds.ascents * (1 if self.accountant == "published" else 2)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of one round, in the units of its noise."""
        return self.noise.sensitivity

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the noise in each entry of one round."""
        return self.noise.scale

    @property
    def mechanism(self) -> str:
        """What to call it in the ledger."""
        shape = self.rounds
        noise = "correlated" if shape.correlated else "independent"
        grid = self.design.grid.shape[0]
        return (
            f"pms ({self.accountant}, {noise}, T={shape.number}, k={grid}x{self.each}, m={shape.batch}, "
            f"{PUBLIC_PREDICTORS})"
        )

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
        draws = ((self.epsilon_draw, self.each),) if self.starts == "dap" else ()
        return Charge(
            label=label,
            mechanism=self.mechanism,
            epsilon=self.epsilon,
            delta=self.delta,
            gaussian_mus=(self.noise.mu,),
            draws=draws,
            extra_delta=self.noise.extra_delta,
            slack=self.noise.slack,
            bounded_range=True,
            columns=self.columns,
            simulated=simulated,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PmsRequest:
    """What a DP-PMS release is asked for.

    Parameters
    ----------
    response : Coordinate
    predictors : (n, p) array
        PUBLIC, in the order of the rows; rows with NaN count nowhere.
    names : sequence of str
        Of the predictors.
    bandwidth : (p + 1,) array
        Of the predictors, then of the response, in the coordinates' units.
    epsilon, delta : float
    options : GramsOptions
        As for DP-GRAMS, but: T is 4 and k, the ascents per grid value, 12 by default; h_dap and rho_init are
        in bandwidths of the response (rho_init 1), candidates are public responses, one per row; A and
        p_floor refer to the conditional density of the response.
    grid : (G, p) array, optional
        Predictor values to seek modes at; those where the rows' weights sum to less than 1 are left out. By
        default cells two bandwidths wide over the range of the predictors, those without rows left out.
    starts : {"dap", "grid"}
        Starts drawn by density (`eps_init` of epsilon), or `k` public ones evenly over the response's box,
        which cost nothing.
    """

    response: Coordinate
    predictors: ArrayLike
    names: Sequence[str]
    bandwidth: ArrayLike
    epsilon: float
    delta: float
    options: GramsOptions = field(default_factory=GramsOptions)
    grid: ArrayLike | None = None
    starts: Starts = "dap"

    def plan(self, lower: FloatArray, upper: FloatArray, records: int, block: int) -> PmsPlan:
        """Calibrate the release. Reads no response.

        Parameters
        ----------
        lower, upper : (1,) arrays
            Public bounds of the response.
        records, block : int
            Number of rows n, and the most that are summed before rounding.

        Raises
        ------
        InvalidArgument, InvalidBudget
            On shapes that do not fit, or a combination that is not sound; the message says why.
        """
        options = self.options
        if self.starts not in STARTS:
            raise InvalidArgument(f"starts must be one of {list(STARTS)}, got {self.starts!r}")
        bandwidth = np.asarray(self.bandwidth, dtype=np.float64)
        if bandwidth.shape != (len(self.names) + 1,):
            raise InvalidArgument(
                f"bandwidth must hold one number per predictor and one for the response "
                f"({len(self.names) + 1}), got shape {bandwidth.shape}"
            )
        # Charging checks them too, but only after the calibration, which would fail in other words.
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        design = public_design(self.predictors, bandwidth, records, self.grid)
        rounds = _rounds(options, design, self.starts, records, block)
        size = float((upper - lower)[0] / bandwidth[-1])
        calibrated = _calibrate(options, design, rounds, float(bandwidth[-1]), size, epsilon, delta)
        return PmsPlan(
            columns=(self.response.name,),
            lower=lower,
            upper=upper,
            bandwidth=bandwidth,
            epsilon=epsilon,
            delta=delta,
            design=design,
            rounds=rounds,
            accountant=options.accountant,
            each=rounds.ascents // design.grid.shape[0],
            starts=self.starts,
            step=options.eta,
            calibration=calibrated,
            candidates=_candidates(options, lower, upper, bandwidth),
            suppression=options.rho_init or 1.0,
            epsilon_draw=_epsilon_draw(options, rounds, epsilon),
            finish=finish_of(options, rounds.kernel),
        )


def public_design(
    predictors: ArrayLike, bandwidth: FloatArray, records: int, grid: ArrayLike | None = None
) -> PublicDesign:
    """Return cells and weights of public predictors. No response is involved.

    Raises
    ------
    InvalidArgument
        On shapes that do not fit, or when no row has all predictors.
    """
    p = bandwidth.size - 1
    x = np.asarray(predictors, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    if p < 1 or x.shape != (records, p):
        raise InvalidArgument(
            f"predictors must be one public row per record, ({records}, {p}), got shape {x.shape}"
        )
    if not (np.all(np.isfinite(bandwidth)) and np.all(bandwidth > 0)):
        raise InvalidArgument(f"bandwidths must be finite and > 0, got {bandwidth.tolist()}")
    scaled = x / bandwidth[:-1]
    complete = np.isfinite(scaled).all(axis=1)
    if not complete.any():
        raise InvalidArgument("no row has all predictors; give a design with finite rows")
    values = _own_grid(scaled[complete]) if grid is None else _given_grid(grid, bandwidth[:-1])
    squared = np.zeros((values.shape[0], records))
    for a in range(p):
        squared += np.square(values[:, a, None] - np.where(complete, scaled[:, a], np.nan))
    weights = np.where(complete, np.exp(-0.5 * squared), 0.0)
    weights[weights < LEAST_WEIGHT] = 0.0
    cells = np.where(complete, np.argmin(np.where(complete, squared, 0.0), axis=0), -1)
    seen = np.bincount(cells[complete], minlength=values.shape[0]) > 0
    # Empty cells of the default grid go; of given values those without the weight of one row.
    kept = seen if grid is None else weights.sum(axis=1) >= 1
    if not kept.any():
        raise InvalidArgument(
            "no row is near any value of grid; give values inside the range of the predictors"
        )
    number = np.cumsum(kept) - 1
    renumbered = np.where((cells >= 0) & kept[cells], number[cells], -1)
    return PublicDesign(scaled, values[kept], renumbered.astype(np.int64), weights[kept])


# -- parts -----------------------------------------------------------------------------------------------


def _rounds(
    options: GramsOptions, design: PublicDesign, starts: Starts, records: int, block: int
) -> PmsRounds:
    each = options.k or _STARTS_EACH
    log_n = math.log(max(records, 2))
    published = options.accountant == "published"
    correlated = options.noise == "correlated" and each > 1
    batch = options.m or (math.ceil(records / log_n) if published else records)
    rounds = PmsRounds(
        kernel=ScoreKernel(options.kernel, 1),
        records=records,
        number=options.T or _ROUNDS,
        batch=batch,
        ascents=each * design.grid.shape[0],
        correlated=correlated,
        block=block,
        overlap=design.score_overlap(each, batch) if published else design.overlap(each, correlated),
        draws_each=each if starts == "dap" else 0,
    )
    if rounds.batch > rounds.records:
        raise InvalidArgument(f"m must be at most the number of records {rounds.records}, got {rounds.batch}")
    check_sound(options, rounds)
    return rounds


def _epsilon_draw(options: GramsOptions, rounds: PmsRounds, epsilon: float) -> float:
    return options.eps_init * epsilon / max(rounds.draws_each, 1)


def _calibrate(
    options: GramsOptions,
    design: PublicDesign,
    rounds: PmsRounds,
    h: float,
    size: float,
    epsilon: float,
    delta: float,
) -> Calibration:
    uniform = np.full(design.grid.shape[0], 1 / size)
    if options.accountant == "published":
        floors, clips = _floors(options, h, uniform)
        share = 1 - options.eps_init if rounds.draws_each else 1.0
        # One noise scale for all: the lowest floor and the largest clip bound every score.
        scores = published_noise(
            rounds, floor=float(floors.min()), clip=float(clips.max()), epsilon=share * epsilon, delta=delta
        )
        unknown = np.full(uniform.size, np.nan)
        return Calibration(clips, floors, (1.0, 1.0), scores, unknown, unknown)
    scales = statistic_scales(options, rounds)
    noise = linear_noise(
        options.accountant,
        rounds,
        scales,
        epsilon=epsilon,
        delta=delta,
        epsilon_draw=_epsilon_draw(options, rounds, epsilon),
    )
    spread = noise.scale * math.sqrt(1 + NUGGET * rounds.correlated) / (design.totals * rounds.fraction)
    floors, clips = _floors(options, h, np.maximum(uniform, _FLOOR_IN_SDS * spread / scales[0]))
    return Calibration(clips, floors, scales, noise, spread / scales[0], spread / scales[1])


def _own_grid(scaled: FloatArray) -> FloatArray:
    low, high = scaled.min(axis=0), scaled.max(axis=0)
    counts = np.maximum(np.ceil((high - low) / _SPACING), 1)
    if float(np.prod(counts)) > _LARGEST_GRID:
        raise InvalidArgument(
            f"the predictors span {float(np.prod(counts)):,.0f} cells of two bandwidths (at most "
            f"{_LARGEST_GRID:,}); give a larger bandwidth or a grid"
        )
    axes = [a + (b - a) * (np.arange(int(n)) + 0.5) / n for a, b, n in zip(low, high, counts, strict=True)]
    return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)


def _given_grid(grid: ArrayLike, bandwidth: FloatArray) -> FloatArray:
    values = np.asarray(grid, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] != bandwidth.size or not np.all(np.isfinite(values)):
        raise InvalidArgument(
            f"grid must be finite predictor values (G, {bandwidth.size}), got shape {values.shape}"
        )
    if not 1 <= values.shape[0] <= _LARGEST_GRID:
        raise InvalidArgument(f"grid must hold 1 to {_LARGEST_GRID:,} values, got {values.shape[0]:,}")
    return values / bandwidth


def _floors(options: GramsOptions, h: float, least: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return p_floor and A per grid value, in bandwidth units: given ones, or the public rules."""
    floors = least if options.p_floor is None else np.full(least.size, options.p_floor * h)
    clips = _CLIP_IN_FLOORS * floors if options.A is None else np.full(least.size, options.A * h)
    return floors, clips


def _candidates(
    options: GramsOptions, lower: FloatArray, upper: FloatArray, bandwidth: FloatArray
) -> StartCandidates:
    h = bandwidth[-1:]
    if options.candidates is None:
        return StartCandidates.grid((upper - lower) / h, options.h_dap)
    points = np.asarray(options.candidates, dtype=np.float64)
    if points.shape[1] != 1 or np.any(points < lower) or np.any(points > upper):
        raise InvalidArgument("candidates must be one public response per row, inside the public bounds")
    return StartCandidates.given((points - lower) / h, options.h_dap)
