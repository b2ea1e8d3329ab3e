"""Which frequencies a spectral surface is known at, and with which weights: all public.

Working units: `z_a = (x_a - lower_a) / bandwidth_a`; frequencies `w` belong to `z`.
One record x has the feature vector

    Phi(x) = ( sqrt(g_0), sqrt(g_j) cos(w_j.z), sqrt(g_j) sin(w_j.z) )_j ,   g_0 + sum_j g_j = 1,

of Euclidean norm exactly 1. `LatticeDesign` (d <= 3) takes the dual lattice of a torus around the
box; `RandomDesign` (d >= 4) draws its frequencies once, from the kernel's own spectrum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..budget import as_whole
from ..errors import InvalidArgument
from .kernels import check_order, spectrum
from .surfaces import FloatArray

MAX_LATTICE_DIMENSION = 3
MAX_DIMENSION = 8
MAX_PAIRS = 500_000
DEFAULT_CUT = 4.5
DEFAULT_READ_RATIO = 1.5


def _frozen(array: FloatArray) -> FloatArray:
    """Return the array read-only: a sensitivity was computed for exactly these numbers."""
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class _Box:
    columns: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    bandwidth: FloatArray
    order: int = 2
    zero_weight: float = 0.5

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "bandwidth"):
            value = np.array(getattr(self, name), dtype=np.float64)
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        check_order(self.order)
        if not len(self.columns) == self.lower.size == self.upper.size == self.bandwidth.size:
            raise InvalidArgument("columns, lower, upper and bandwidth must have one entry per coordinate")
        if not (
            np.all(np.isfinite(self.lower))
            and np.all(np.isfinite(self.upper))
            and np.all(self.lower < self.upper)
        ):
            raise InvalidArgument("each lower bound must be finite and below its upper bound")
        if not (np.all(np.isfinite(self.bandwidth)) and np.all(self.bandwidth > 0)):
            raise InvalidArgument(
                f"bandwidth must be finite and > 0, got {self.bandwidth.tolist()}; try 0.1 * the box width"
            )
        if not 0 < self.zero_weight < 1:
            raise InvalidArgument(f"zero_weight must be in (0, 1), got {self.zero_weight!r}")
        self._check_units()

    def _check_units(self) -> None:
        """Refuse units in which the variance of the Hessian would overflow or underflow."""
        with np.errstate(over="ignore"):
            sides_fit = bool(np.all(np.isfinite(self.widths)))
        logs = np.log10(self.bandwidth)
        if not sides_fit or 2 * (abs(float(logs.sum())) + 2 * float(np.abs(logs).max())) > 280:
            raise InvalidArgument(
                f"bandwidth {self.bandwidth.tolist()} is too small or too large for float64 arithmetic in "
                f"{self.dimension} columns; rescale the columns' units"
            )

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return len(self.columns)

    @property
    def widths(self) -> FloatArray:
        """Box widths in bandwidths, (d,)."""
        return (self.upper - self.lower) / self.bandwidth


@dataclass(frozen=True, eq=False)
class LatticeDesign(_Box):
    """Frequencies of a torus around the box, cut at `|w| <= cut` (d = 1, 2, 3).

    Parameters
    ----------
    columns : tuple of str
    lower, upper : (d,) arrays
        The public box, in the columns' units.
    bandwidth : (d,) array
        Bandwidth `h0` of the release, in the columns' units.
    order : {2, 4, 6}
        Order of the kernel whose spectrum the weights follow.
    zero_weight : float
        Weight `g_0` of the zero frequency (the number of records).
    read_ratio : float
        Largest ratio `h / h0` at which the surface will be read. The torus side is the box plus
        `6 * read_ratio` bandwidths, so wrap-around stays below `exp(-18)`.
    cut : float
        Largest frequency norm, times the narrowest of `scales`.
    scales, masses : tuples of float
        A ladder: the weights are a mixture of the kernel's spectra at `scales` times the bandwidth, each in
        (0, 1], so that the surface can be read well at all of them. Component s holds the share `masses[s]`
        of the weight. One scale, 1, is the plain design.

    Raises
    ------
    InvalidArgument
        When the box is so many bandwidths wide that the lattice would be too large.
    """

    read_ratio: float = DEFAULT_READ_RATIO
    cut: float = DEFAULT_CUT
    scales: tuple[float, ...] = (1.0,)
    masses: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.dimension <= MAX_LATTICE_DIMENSION:
            raise InvalidArgument(f"a lattice design has 1 to 3 columns, got {self.dimension}")
        if not (0.5 <= self.read_ratio <= 100 and 1 <= self.cut <= 8):
            raise InvalidArgument(
                f"read_ratio must be in [0.5, 100] and cut in [1, 8], got {self.read_ratio!r}, {self.cut!r}"
            )
        self._check_ladder()
        if 2 * np.pi / self.sides.max() > self.largest_frequency:
            raise InvalidArgument(f"no frequency is below cut={self.cut!r}; give a larger cut or read_ratio")
        # In floating point: the whole numbers would not fit when the box is absurdly wide.
        most = np.maximum(np.floor(self.largest_frequency * self.sides / (2 * np.pi)), 1)
        expected = float(np.prod(2 * most + 1)) / 2
        if not expected <= 2 * MAX_PAIRS:
            widths = ", ".join(f"{c}: {w:.0f}" for c, w in zip(self.columns, self.widths, strict=True))
            raise InvalidArgument(
                f"the box is too many bandwidths wide ({widths}): about {expected:.2g} frequencies, "
                f"at most {2 * MAX_PAIRS:.2g} are allowed; give a larger bandwidth or narrower bounds"
            )

    def _check_ladder(self) -> None:
        scales, masses = (tuple(float(v) for v in part) for part in (self.scales, self.masses))
        object.__setattr__(self, "scales", scales)
        object.__setattr__(self, "masses", masses)
        if not (
            len(scales) == len(masses) >= 1
            and all(0.01 <= s <= 1 for s in scales)
            and all(m > 0 for m in masses)
            and abs(math.fsum(masses) - 1) <= 1e-9
        ):
            raise InvalidArgument(
                "scales must be in [0.01, 1] and masses positive with sum 1, one for each scale; "
                f"got {scales} and {masses}"
            )

    @property
    def largest_frequency(self) -> float:
        """Largest frequency norm in working units: `cut` over the narrowest scale."""
        return self.cut / min(self.scales)

    @property
    def mixture(self) -> tuple[tuple[float, float], ...]:
        """Pairs (scale s, coefficient c) with `kappa_mix(w) = sum c kappa(s w)`, `sum c = 1`.

        A spectrum at scale s has `s^-d` times the mass of the one at scale 1, so `c` is in proportion to
        the mass times `s^d`.
        """
        parts = [m * s**self.dimension for s, m in zip(self.scales, self.masses, strict=True)]
        return tuple((s, part / math.fsum(parts)) for s, part in zip(self.scales, parts, strict=True))

    def _pair_spectrum(self) -> FloatArray:
        """Return the (mixed) spectrum at the pairs, relative to its value 1 at zero."""
        squared = self._squared_frequencies.ravel()[self.pair_index]
        total = np.zeros(squared.size)
        for scale, coefficient in self.mixture:
            total += coefficient * spectrum(self.order, squared * scale**2)
        return total

    @cached_property
    def sides(self) -> FloatArray:
        """Torus sides in bandwidths, (d,)."""
        return _frozen(self.widths + 6 * self.read_ratio)

    @cached_property
    def half_sizes(self) -> NDArray[np.int64]:
        """Largest integer frequency J per axis, (d,); at least 1."""
        sizes = np.maximum(np.floor(self.largest_frequency * self.sides / (2 * np.pi)), 1).astype(np.int64)
        sizes.setflags(write=False)
        return sizes

    @property
    def half_shape(self) -> tuple[int, ...]:
        """Shape of the stored half lattice: `k_0 = 0..J_0`, the other axes `-J..J`."""
        sizes = [int(j) for j in self.half_sizes]
        return (sizes[0] + 1, *(2 * j + 1 for j in sizes[1:]))

    @cached_property
    def axis_frequencies(self) -> tuple[FloatArray, ...]:
        """Working-unit frequencies along each axis of the half lattice."""
        first = np.arange(self.half_sizes[0] + 1)
        rest = [np.arange(-j, j + 1) for j in self.half_sizes[1:]]
        return tuple(
            _frozen(2 * np.pi * k / side) for k, side in zip([first, *rest], self.sides, strict=True)
        )

    @cached_property
    def _squared_frequencies(self) -> FloatArray:
        total = np.zeros(self.half_shape)
        for axis, w in enumerate(self.axis_frequencies):
            total += np.expand_dims(w**2, tuple(a for a in range(self.dimension) if a != axis))
        return total

    @cached_property
    def pair_index(self) -> NDArray[np.int64]:
        """Flat positions in the half lattice of one of each pair +-w inside the cut, zero excluded."""
        keep = self._squared_frequencies <= self.largest_frequency**2
        # On the plane k_0 = 0 both signs are present: keep the lexicographically positive one.
        centre = np.zeros(self.half_shape, dtype=bool)
        size = int(np.prod(self.half_shape[1:], dtype=np.int64))
        plane = np.zeros(size, dtype=bool)
        plane[size // 2 + 1 :] = True
        centre[0] = plane.reshape(self.half_shape[1:])
        centre[1:] = True
        index = np.flatnonzero(keep & centre)
        index.setflags(write=False)
        return index

    @property
    def n_pairs(self) -> int:
        """Number of frequency pairs M; the released vector has `1 + 2 M` entries."""
        return int(self.pair_index.size)

    @cached_property
    def frequencies(self) -> FloatArray:
        """Working-unit frequencies of the pairs, (M, d)."""
        grid = np.unravel_index(self.pair_index, self.half_shape)
        return _frozen(np.stack([w[i] for w, i in zip(self.axis_frequencies, grid, strict=True)], axis=1))

    @cached_property
    def natural_zero_weight(self) -> float:
        """Weight of the zero frequency when the weights follow the spectrum everywhere."""
        return float(1 / (1 + 2 * math.fsum(self._pair_spectrum())))

    @cached_property
    def pair_weights(self) -> FloatArray:
        """Weights `g_j` of the pairs, (M,), proportional to the kernel's spectrum; sum `1 - zero_weight`."""
        pairs = self._pair_spectrum()
        return _frozen(pairs * ((1 - self.zero_weight) / math.fsum(pairs)))

    def read_weights(self, bandwidth: FloatArray, order: int) -> FloatArray:
        """Return `a_j` with `p(x) = 1/V + sum_j a_j Re(phi_j exp(-i w_j.z))`, in density units, (M,)."""
        ratio = bandwidth / self.bandwidth
        return np.asarray(2 * spectrum(order, ((self.frequencies * ratio) ** 2).sum(axis=1)) / self.volume)

    @property
    def volume(self) -> float:
        """Volume of the torus in the columns' units."""
        return float(np.prod(self.sides * self.bandwidth))

    def subset(self, axes: Sequence[int]) -> LatticeDesign:
        """Return the design of the marginal on `axes` (increasing)."""
        pick = list(axes)
        return LatticeDesign(
            tuple(self.columns[a] for a in pick),
            self.lower[pick],
            self.upper[pick],
            self.bandwidth[pick],
            self.order,
            self.zero_weight,
            self.read_ratio,
            self.cut,
            self.scales,
            self.masses,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as a JSON-ready dictionary."""
        plain = {**_box_dict(self), "kind": "lattice", "read_ratio": self.read_ratio, "cut": self.cut}
        if self.scales == (1.0,):
            return plain
        return {**plain, "scales": list(self.scales), "masses": list(self.masses)}


@dataclass(frozen=True, eq=False)
class RandomDesign(_Box):
    """Frequencies drawn once from the kernel's spectrum (d = 4 to 8; any d works).

    The draw is made from `frequency_seed`, independently of the data; it is public and stored.
    Standard normal frequencies have the density proportional to the Gaussian spectrum.

    Parameters
    ----------
    columns, lower, upper, bandwidth, order, zero_weight
        As in `LatticeDesign`.
    n_pairs : int
        Number D of frequencies.
    frequency_seed : int
        Seed of the public draw. For a release it must be drawn afresh (`privacy.noise.fresh_seed`): the bound
        on the sensitivity holds for almost all draws, and not for one that was chosen.
    """

    n_pairs: int = 4096
    frequency_seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.dimension <= MAX_DIMENSION:
            raise InvalidArgument(f"at most {MAX_DIMENSION} columns are supported, got {self.dimension}")
        object.__setattr__(self, "n_pairs", as_whole(self.n_pairs, "n_pairs", 1, MAX_PAIRS))
        object.__setattr__(
            self, "frequency_seed", as_whole(self.frequency_seed, "frequency_seed", 0, 2**32 - 1)
        )

    @cached_property
    def frequencies(self) -> FloatArray:
        """Working-unit frequencies, (D, d)."""
        # The legacy generator's stream is frozen by NumPy's policy: a published surface must
        # mean the same frequencies under every version.
        generator = np.random.RandomState(self.frequency_seed)
        return _frozen(generator.standard_normal((self.n_pairs, self.dimension)))

    @cached_property
    def pair_weights(self) -> FloatArray:
        """Weights `g_j = (1 - g_0)/D` of the pairs, (D,)."""
        return _frozen(np.full(self.n_pairs, (1 - self.zero_weight) / self.n_pairs))

    def read_weights(self, bandwidth: FloatArray, order: int) -> FloatArray:
        """Return `a_j` with `p(x) = sum_j a_j Re(phi_j exp(-i w_j.z))`, in density units, (D,).

        Importance weights: kernel spectrum at the reading bandwidth over the sampling density.
        """
        ratio = bandwidth / self.bandwidth
        if np.any(ratio < 1 / math.sqrt(2) + 0.05):
            raise InvalidArgument("random features cannot be read below 0.76 times the released bandwidth")
        squared = (self.frequencies**2).sum(axis=1)
        read = spectrum(order, ((self.frequencies * ratio) ** 2).sum(axis=1))
        scale = (2 * math.pi) ** (-self.dimension / 2) / (self.n_pairs * float(np.prod(self.bandwidth)))
        return np.asarray(scale * read * np.exp(squared / 2))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as a JSON-ready dictionary."""
        return {
            **_box_dict(self),
            "kind": "random",
            "n_pairs": self.n_pairs,
            "frequency_seed": self.frequency_seed,
        }


Design = LatticeDesign | RandomDesign


def _box_dict(design: _Box) -> dict[str, Any]:
    return {
        "columns": list(design.columns),
        "lower": design.lower.tolist(),
        "upper": design.upper.tolist(),
        "bandwidth": design.bandwidth.tolist(),
        "order": design.order,
        "zero_weight": design.zero_weight,
    }


def design_from_dict(data: dict[str, Any]) -> Design:
    """Rebuild a design from its `to_dict`."""
    box = (
        tuple(str(c) for c in data["columns"]),
        np.array(data["lower"], dtype=np.float64),
        np.array(data["upper"], dtype=np.float64),
        np.array(data["bandwidth"], dtype=np.float64),
        int(data["order"]),
        float(data["zero_weight"]),
    )
    if data["kind"] == "lattice":
        ladder = (tuple(float(v) for v in data.get(name, (1.0,))) for name in ("scales", "masses"))
        return LatticeDesign(*box, float(data["read_ratio"]), float(data["cut"]), *ladder)
    if data["kind"] == "random":
        return RandomDesign(*box, int(data["n_pairs"]), int(data["frequency_seed"]))
    raise InvalidArgument(f"unknown kind of design {data['kind']!r}; allowed are 'lattice' and 'random'")
