"""Linear modal regression read off a joint surface: post-processing, no record is looked at.

The coefficients maximise the density integrated along the line or plane (`PlaneIntegral`), the smoothed
objective of Yao & Li (2014, "A new regression model: modal linear regression", Scand. J. Statist. 41).
Starts come from a public grid of slopes and heights, Newton's method with exact derivatives does the rest.

Bandwidth. The kernel over residuals has bandwidth `s = c sqrt(h_y^2 + sum_a b_a^2 h_a^2)`, h the surface's.
A symmetric kernel leaves slopes alone where the errors do not depend on x, but moves the height towards the
longer tail. So slopes come from the plain kernel (c = 1, order 2) and the height, given the slopes, may
come from a sharper one (c below 1, orders 4 and 6), which moves it less and has more noise: of a short list
the one is taken whose estimated squared error is least, its bias being judged by the sharpest that has a
clear maximum, and believed only beyond three standard errors. The noise of such differences is known, because
all come from one surface. Where even that is too smooth the height is the mode of the error density with the
smoothing taken off (`line_deconvolution`), if that is more than two of its standard errors away. What bias
is left is not in the standard errors.

Standard errors. With gradient g and Hessian H of the objective, `Cov = H^-1 Cov(g) H^-1`. The privacy part of
Cov(g) is exact: g is linear in the released entries. The sampling part is `E K_s'(r)^2 x x^T / n` for
residuals taken as Gaussian about the plane, with the spread that height and curvature of the objective show.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from ..budget import as_number, as_whole
from ..errors import InvalidArgument
from .fourier_sums import ComplexArray
from .line_deconvolution import UnsmoothedHeight, unsmoothed_height
from .linear_scan import COARSER, scan_planes
from .plane_integral import JointSpectrum, PlaneIntegral, PlaneValue, Rectangle
from .spectral_surfaces import LatticeSurface
from .surfaces import FloatArray

MAX_PREDICTORS = 2

# (c, order) from smooth to sharp.
KERNELS: tuple[tuple[float, int], ...] = ((1.0, 2), (1.0, 4), (0.85, 4), (0.75, 4), (0.75, 6))
_STARTS = 6
_FEWEST_STARTS, _MOST_CLIMBED = 2, 240_000  # starts times frequencies: fewer starts at very fine bandwidths
_MARGIN = 3.5  # bandwidths beyond the box that the window and the response may reach
_STRIPS = 12  # of the window, with two predictors
_ROUNDS = 4  # residual bandwidth and window follow the plane
_NEWTON_STEPS = 60
_TIGHT = 1e-8  # residual bandwidths
_RIVAL = 0.7  # share of the best objective at which a start is compared on equal terms
_LEAST_SPREAD = 0.3  # of the errors, in residual bandwidths
_CLEAR = 5.0  # noise standard deviations that the curvature of a sharper kernel must reach
_DOUBT = 3.0  # standard errors that a bias must exceed to be believed
_LEAST_PREDICTOR_SPREAD = 1.5  # of a predictor on the surface, in bandwidths; the kernel alone has 1
_CLEARLY_MOVED = 2.0  # standard errors between the height by deconvolution and that by a kernel
_FARTHEST_MOVE = 2.0  # residual bandwidths between estimates with smooth and sharp kernels


@dataclass(frozen=True, eq=False)
class LinearModalFit:
    """Intercept and slopes of the modal line or plane, in the coordinates' units.

    Parameters
    ----------
    predictors : tuple of str
    response : str
    coefficients : (p + 1,) array
        Intercept, then one slope per predictor.
    covariance_privacy, covariance_sampling : (p + 1, p + 1) arrays
        Of the coefficients, by source; NaN when no maximum was found.
    objective : float
        Density along the plane, integrated over the predictors: about the density of the errors at zero.
    residual_bandwidth : float
        Bandwidth s of the kernel over residuals.
    kernel_order : int
    converged : bool
        Whether the plane is a strict maximum of the objective and every predictor varies.
    starts : int
        Local maxima of the scan that were refined.
    unsmoothed : bool
        Whether the height is the mode of the estimated error density (`line_deconvolution`), far enough from
        that of the smoothed one to be believed.
    """

    predictors: tuple[str, ...]
    response: str
    coefficients: FloatArray
    covariance_privacy: FloatArray
    covariance_sampling: FloatArray
    objective: float
    residual_bandwidth: float
    kernel_order: int
    converged: bool
    starts: int
    unsmoothed: bool = False

    def __post_init__(self) -> None:
        for name in ("coefficients", "covariance_privacy", "covariance_sampling"):
            value = np.array(getattr(self, name), dtype=np.float64)
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the coefficients from privacy noise and sampling together."""
        return np.asarray(self.covariance_privacy + self.covariance_sampling)

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of the coefficients, (p + 1,)."""
        return np.sqrt(np.diag(self.covariance))

    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Return lower and upper ends of intervals for the coefficients, (p + 1, 2).

        They do not allow for the smoothing bias that is left in the height of skewed errors.
        """
        share = as_number(level, "level")
        if not 0 < share < 1:
            raise InvalidArgument(f"level must be strictly between 0 and 1, got {share!r}")
        reach = NormalDist().inv_cdf((1 + share) / 2) * self.standard_errors
        return np.column_stack([self.coefficients - reach, self.coefficients + reach])

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the plane at `x` (m, p) and its standard errors, both (m,)."""
        points = np.asarray(x, dtype=np.float64)
        points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2 or points.shape[1] != len(self.predictors):
            raise InvalidArgument(
                f"x must be (m, {len(self.predictors)}), one column per predictor, got shape {points.shape}"
            )
        rows = np.column_stack([np.ones(points.shape[0]), points])
        variance = np.einsum("mi,ij,mj->m", rows, self.covariance, rows)
        return rows @ self.coefficients, np.sqrt(variance)


@dataclass(frozen=True, eq=False)
class _Peak:
    """A maximum of the objective: where (heights at the centre), what was maximised, and its derivatives."""

    plane: FloatArray
    integral: PlaneIntegral
    value: PlaneValue
    converged: bool

    @property
    def scale(self) -> FloatArray:
        """How far each coefficient moves for a shift by a residual bandwidth at the edge of the box."""
        return _scale(self.integral)


@dataclass(frozen=True, eq=False)
class _Height:
    """The height of the plane at the centre, by one kernel, and the objective of that kernel there."""

    place: float
    peak: _Peak


def fit_linear_modes(
    surface: LatticeSurface, response: int, *, starts: int = _STARTS, near: FloatArray | None = None
) -> LinearModalFit:
    """Fit the modal line (one predictor) or plane (two) of one coordinate given the others.

    Post-processing of the surface: carries its guarantee, at no further cost.

    Parameters
    ----------
    surface : LatticeSurface
        Joint surface of two or three coordinates, private or not, read at any bandwidth.
    response : int
        Position of the response among the coordinates.
    starts : int
        Most local maxima of the scan that are refined.
    near : (p + 1,) array, optional
        Height at the centre of the predictors' box and slopes, to start from this plane alone.

    Raises
    ------
    InvalidArgument
        When the surface has one coordinate only, or `response` is not one of its positions.
    """
    number = as_whole(starts, "starts", 1)
    joint = _joint(surface, response)
    p = joint.predictors
    found = _refined_starts(joint, number) if near is None else [_refine(joint, near)]
    best = replace(chosen := _best_start(found), converged=chosen.converged and _varies(surface, response))
    height = _choose_height(best) if best.converged else _Height(float(best.plane[0]), best)
    sharp = _unsmoothed(best, height) if best.converged else None
    # From a height at the centre of the box to an intercept at zero.
    back = np.eye(p + 1)
    back[0, 1:] = -joint.centre
    nothing = np.full((p + 1, p + 1), np.nan)
    privacy, sampling = _covariances(best, height) if best.converged else (nothing, nothing)
    place, kernel = height.place, height.peak.integral
    if sharp is not None:
        kernel = best.integral
        place = float(best.plane[0]) + sharp.offset
        privacy = _with_height(best, privacy, sharp.privacy)
        sampling = _with_height(best, sampling, sharp.sampling)
    return LinearModalFit(
        predictors=joint.columns[:-1],
        response=joint.columns[-1],
        coefficients=back @ np.concatenate([[place], best.plane[1:]]),
        covariance_privacy=back @ privacy @ back.T,
        covariance_sampling=back @ sampling @ back.T,
        objective=best.value.value,
        residual_bandwidth=kernel.residual_bandwidth,
        kernel_order=kernel.order,
        converged=best.converged,
        starts=len(found),
        unsmoothed=sharp is not None,
    )


def _varies(surface: LatticeSurface, response: int) -> bool:
    """Say whether every predictor has a spread of its own beyond that of the kernel: else no slope is known.

    The released spread of a marginal is that of the data and of the kernel together; what is within three
    standard deviations of the noise is left out.
    """
    for axis, name in enumerate(surface.columns):
        if axis == response:
            continue
        at = np.linspace(surface.lower[axis], surface.upper[axis], 401)
        marginal = surface.marginal([name])
        density = marginal.density(at[:, None])
        density = np.where(density > 3 * math.sqrt(marginal.noise.value), density, 0.0)
        total = float(density.sum())
        if total <= 0:
            return False
        centre = float(density @ at) / total
        spread = math.sqrt(float(density @ (at - centre) ** 2) / total)
        if spread < _LEAST_PREDICTOR_SPREAD * float(surface.bandwidth[axis]):
            return False
    return True


# -- starts ------------------------------------------------------------------------------------------


def _refined_starts(joint: JointSpectrum, number: int) -> list[_Peak]:
    planes, coarsened = scan_planes(joint)
    affordable = max(_FEWEST_STARTS, _MOST_CLIMBED // joint.phi.size)
    return [_refine(joint, plane, coarsened) for plane in planes[: min(number, affordable)]]


def _best_start(found: list[_Peak]) -> _Peak:
    """Return the highest peak; rivals of different tilt are compared at one residual bandwidth."""
    usable = [peak for peak in found if peak.converged] or found
    usable = sorted(usable, key=lambda peak: -peak.value.value)
    highest = usable[0].value.value
    # Below zero where the release holds nothing but noise.
    least = highest - (1 - _RIVAL) * abs(highest)
    rivals = [peak for peak in usable if peak.value.value >= least]
    widest = max(peak.integral.residual_bandwidth for peak in rivals)
    return max(
        rivals, key=lambda peak: replace(peak.integral, residual_bandwidth=widest).at(peak.plane).value
    )


# -- climbing ----------------------------------------------------------------------------------------


def _refine(joint: JointSpectrum, plane: FloatArray, coarsened: int = 0) -> _Peak:
    """Climb from `plane`; window and residual bandwidth follow it until they fit it.

    First with the wider kernel with which the plane was found, then with narrower ones.
    """
    for power in range(coarsened, 0, -1):
        plane = _climbed(joint.wider(COARSER**power), plane, 1).plane
    return _climbed(joint, plane, _ROUNDS)


def _climbed(joint: JointSpectrum, plane: FloatArray, rounds: int) -> _Peak:
    h = joint.bandwidth
    for _ in range(rounds):
        s = math.sqrt(float(h[-1] ** 2 + np.sum((plane[1:] * h[:-1]) ** 2)))
        rectangles = tuple(_window(joint, plane))
        integral = PlaneIntegral(joint, s, rectangles, h[:-1])
        peak = _newton(integral, plane)
        moved = float(np.max(np.abs((peak.plane - plane) / peak.scale)))
        plane = peak.plane
        if moved < 1e-3 or not peak.converged:
            break
    return peak


def _scale(integral: PlaneIntegral) -> FloatArray:
    return integral.residual_bandwidth / np.concatenate([[1.0], integral.joint.half_widths])


def _newton(integral: PlaneIntegral, plane: FloatArray) -> _Peak:
    """Maximise with exact derivatives; negative curvatures are made positive, falls are cut short."""
    scale = _scale(integral)
    here, value = plane, integral.at(plane)
    converged = False
    for _ in range(_NEWTON_STEPS):
        curvature, axes = np.linalg.eigh(-value.hessian * np.outer(scale, scale))
        least = 1e-3 * max(float(np.abs(curvature).max()), 1e-300)
        move = axes @ ((axes.T @ (value.gradient * scale)) / np.maximum(np.abs(curvature), least))
        longest = float(np.max(np.abs(move)))
        move *= min(1.0, 0.5 / max(longest, 1e-300))
        if longest < _TIGHT:
            converged = bool(curvature[0] > 0)
            break
        for _ in range(30):
            tried = integral.at(here + move * scale)
            if tried.value >= value.value - 1e-13 * abs(value.value):
                break
            move *= 0.3
        else:
            break
        here, value = here + move * scale, tried
    return _Peak(here, integral, value, converged)


def _window(joint: JointSpectrum, plane: FloatArray) -> Iterator[Rectangle]:
    """Yield boxes of predictors above which the plane is inside the box of the response, or just outside.

    With two predictors the first is cut into strips. Beyond its box by more than some bandwidths the surface,
    which lives on a torus, repeats itself.
    """
    pad = np.minimum(_MARGIN * joint.bandwidth, joint.reach)
    low, high, centre = joint.lower - pad, joint.upper + pad, joint.centre
    if joint.predictors == 1:
        ends = _inside(low, high, centre, plane[0], plane[1], 0)
        yield Rectangle(np.array([ends[0]]), np.array([ends[1]]))
        return
    edges = np.linspace(low[0], high[0], _STRIPS + 1)
    strips = []
    for left, right in itertools.pairwise(edges):
        height = plane[0] + plane[1] * ((left + right) / 2 - centre[0])
        strips.append((left, right, *_inside(low, high, centre, height, plane[2], 1)))
    # Neighbours with the same ends are one rectangle.
    for ends, group in itertools.groupby(strips, key=lambda strip: strip[2:]):
        parts = list(group)
        yield Rectangle(np.array([parts[0][0], ends[0]]), np.array([parts[-1][1], ends[1]]))


def _inside(
    low: FloatArray, high: FloatArray, centre: FloatArray, height: float, slope: float, axis: int
) -> tuple[float, float]:
    """Return the ends of the interval where `height + slope (x - m)` is between the ends of the response."""
    first, last = float(low[axis]), float(high[axis])
    if abs(slope) * (last - first) > 1e-9 * float(high[-1] - low[-1]):
        ends = sorted(float(centre[axis] + (end - height) / slope) for end in (low[-1], high[-1]))
        first, last = max(first, ends[0]), min(last, ends[1])
    elif not low[-1] <= height <= high[-1]:
        last = first
    return first, max(first, last)


# -- kernel and errors -----------------------------------------------------------------------------------


def _choose_height(smooth: _Peak) -> _Height:
    """Return the height whose estimated squared error is least over the list of kernels."""
    found = [_Height(float(smooth.plane[0]), smooth)]
    s = smooth.integral.residual_bandwidth
    for sharpness, order in KERNELS[1:]:
        sharper = replace(
            smooth.integral,
            residual_bandwidth=sharpness * s,
            bandwidth=sharpness * smooth.integral.bandwidth,
            order=order,
        )
        height = _climb_height(sharper, np.array([found[-1].place, *smooth.plane[1:]]))
        if height is None or abs(height.place - found[0].place) > _FARTHEST_MOVE * s:
            break
        # Where the curvature is not clear of its own noise, the noise chooses the place.
        if -height.peak.value.hessian[0, 0] < _CLEAR * _bend_error(smooth, height.peak):
            break
        found.append(height)
    sharpest = found[-1]
    losses = []
    for height in found:
        bias = (height.place - sharpest.place) ** 2 - _DOUBT**2 * _height_variance(smooth, height, sharpest)
        losses.append(max(bias, 0.0) + _height_variance(smooth, height, None))
    return found[int(np.argmin(losses))]


def _unsmoothed(smooth: _Peak, height: _Height) -> UnsmoothedHeight | None:
    """Return the height by deconvolution where it is clearly another and the kernels were not sharp enough.

    The sharpest kernel is taken where there is little noise. It is better then: deconvolution goes too far
    where errors end abruptly.
    """
    integral = height.peak.integral
    s = smooth.integral.residual_bandwidth
    if integral.residual_bandwidth <= KERNELS[-1][0] * s * (1 + 1e-9):
        return None
    found = unsmoothed_height(smooth.integral, smooth.plane, smooth.value)
    if found is None:
        return None
    moved = abs(float(smooth.plane[0]) + found.offset - height.place)
    clear = moved > _CLEARLY_MOVED * math.sqrt(found.privacy + found.sampling)
    return found if clear and abs(found.offset) <= _FARTHEST_MOVE * s else None


def _with_height(smooth: _Peak, covariance: FloatArray, variance: float) -> FloatArray:
    """Return a covariance with another variance of the height, given slopes that it follows as before."""
    out = covariance.copy()
    follows = -smooth.value.hessian[0, 1:] / smooth.value.hessian[0, 0]
    out[0, 1:] = out[1:, 0] = out[1:, 1:] @ follows
    out[0, 0] = variance + float(follows @ out[1:, 1:] @ follows)
    return out


def _climb_height(integral: PlaneIntegral, plane: FloatArray) -> _Height | None:
    """Return the nearest maximum over heights at fixed slopes, or None when Newton's method finds none."""
    s = integral.residual_bandwidth
    here = plane.copy()
    for _ in range(_NEWTON_STEPS):
        value = integral.at(here)
        slope, bend = float(value.gradient[0]), float(value.hessian[0, 0])
        move = float(np.clip(slope / max(abs(bend), 1e-3 * abs(value.value) / s**2), -0.3 * s, 0.3 * s))
        if abs(move) < _TIGHT * s:
            return _Height(float(here[0]), _Peak(here, integral, value, True)) if bend < 0 else None
        here[0] += move
    return None


def _bend_error(smooth: _Peak, peak: _Peak) -> float:
    """Return the standard error, privacy and sampling, of the second derivative along the height."""
    private = peak.integral.bend_noise(peak.value) ** 2
    bend = np.gradient(_slope_kernel(peak, smooth), _residuals(smooth))
    return math.sqrt(private + _record_mean(smooth, bend * bend) / smooth.integral.joint.records)


def _height_influence(smooth: _Peak, height: _Height) -> ComplexArray:
    """Return the coefficients with which the released entries move a height, slopes included, (M,)."""
    slopes = -np.linalg.solve(smooth.value.hessian, smooth.value.gradient_coefficients)[1:]
    value = height.peak.value
    through_slopes = value.hessian[0, 1:] @ slopes
    return np.asarray(-(value.gradient_coefficients[0] + through_slopes) / value.hessian[0, 0])


def _height_variance(smooth: _Peak, one: _Height, two: _Height | None) -> float:
    """Return the variance of a height, or of the difference of two, slopes being at their centre."""
    influence = _height_influence(smooth, one)
    kernels, signs = [_slope_kernel(one.peak, smooth)], [1.0]
    bends = [float(one.peak.value.hessian[0, 0])]
    if two is not None:
        influence = influence - _height_influence(smooth, two)
        kernels.append(_slope_kernel(two.peak, smooth))
        signs.append(-1.0)
        bends.append(float(two.peak.value.hessian[0, 0]))
    private = float(smooth.integral.noise_covariance(influence[None])[0, 0])
    total = sum(
        (sign / bend * kernel for sign, bend, kernel in zip(signs, bends, kernels, strict=True)),
        np.zeros_like(kernels[0]),
    )
    return private + _record_mean(smooth, total * total) / smooth.integral.joint.records


def _covariances(smooth: _Peak, height: _Height) -> tuple[FloatArray, FloatArray]:
    """Return the covariances, from privacy noise and from sampling, of height and slopes."""
    q = smooth.plane.size
    inverse = -np.linalg.inv(smooth.value.hessian)
    value = height.peak.value
    # Rows: height and slopes; columns: gradient of the plain kernel, height component of the sharper one.
    linear = np.zeros((q, q + 1))
    linear[1:, :q] = inverse[1:]
    linear[0, q] = -1 / value.hessian[0, 0]
    linear[0, :q] = -value.hessian[0, 1:] @ inverse[1:] / value.hessian[0, 0]
    stacked = np.vstack([smooth.value.gradient_coefficients, value.gradient_coefficients[:1]])
    private = smooth.integral.noise_covariance(stacked)
    kernels = [_slope_kernel(smooth, smooth)] * q + [_slope_kernel(height.peak, smooth)]
    products = np.array([[_record_mean(smooth, one * two) for two in kernels] for one in kernels])
    place = [*range(q), 0]
    moments = smooth.integral.predictor_moments(smooth.plane)[np.ix_(place, place)]
    sampled = products * moments / smooth.integral.joint.records
    return np.asarray(linear @ private @ linear.T), np.asarray(linear @ sampled @ linear.T)


def _error_spread(peak: _Peak) -> float:
    """Return the standard deviation of Gaussian errors with the peak's ratio of height to curvature."""
    s = peak.integral.residual_bandwidth
    total = -peak.value.value / float(peak.value.hessian[0, 0])
    return math.sqrt(max(total - s**2, (_LEAST_SPREAD * s) ** 2))


def _residuals(smooth: _Peak) -> FloatArray:
    return np.linspace(-8, 8, 1601) * max(smooth.integral.residual_bandwidth, _error_spread(smooth))


def _slope_kernel(peak: _Peak, smooth: _Peak) -> FloatArray:
    """Return the derivative of a peak's kernel on the common grid of residuals."""
    s = peak.integral.residual_bandwidth
    return _kernel(_residuals(smooth) / s, peak.integral.order)[1] / s**2


def _record_mean(smooth: _Peak, values: FloatArray) -> float:
    """Return the mean over records of a function of the residual, given on the common grid.

    Residuals near the plane are taken as Gaussian; their share is what the objective says.
    """
    s, r = smooth.integral.residual_bandwidth, _residuals(smooth)
    weight = np.exp(-0.5 * (r / _error_spread(smooth)) ** 2)
    height = float((_kernel(r / s, 2)[0] / s * weight).sum())
    return smooth.value.value * float((values * weight).sum()) / height


def _kernel(u: FloatArray, order: int) -> tuple[FloatArray, FloatArray]:
    """Return the Gaussian-based kernel of an order and its derivative, in bandwidths."""
    q = u * u
    gaussian = np.exp(-q / 2) / math.sqrt(2 * math.pi)
    if order == 2:
        return gaussian, -u * gaussian
    if order == 4:
        return (3 - q) / 2 * gaussian, (-(3 - q) / 2 - 1) * u * gaussian
    poly, slope = (15 - 10 * q + q * q) / 8, (-20 + 4 * q) / 8
    return poly * gaussian, (slope - poly) * u * gaussian


def _joint(surface: LatticeSurface, response: int) -> JointSpectrum:
    if not isinstance(surface, LatticeSurface) or not 2 <= surface.dimension <= MAX_PREDICTORS + 1:
        raise InvalidArgument(
            "a linear modal regression has one or two predictors: it needs a lattice surface of two or three "
            f"coordinates, got {type(surface).__name__} of {surface.dimension}"
        )
    return JointSpectrum.of(surface, as_whole(response, "response", 0, surface.dimension - 1))
