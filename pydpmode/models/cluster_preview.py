"""Whether a fit of clusters would find one of a given share, and how well, before any row is read."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from ..budget import Budget
from ..numerics.cluster_bandwidth import SCALE_SHARE
from ..numerics.cluster_candidates import at_points
from ..numerics.cluster_fit import Prior
from ..numerics.cluster_number import CLEAR, noise_threshold
from ..numerics.cluster_sketch import ClusterSketch
from ..numerics.designs import Design
from ..numerics.mode_candidates import public_points
from ..numerics.spectral_surfaces import spectral_surface
from ..numerics.surfaces import FloatArray
from ..privacy.accounting import gaussian_mu
from .preview import SHARES, enough

_POINTS = 1024  # trial centres that noise is looked for at
_DRAWS = 512
_SEED = 20_260_801  # of the simulated records: public, the same for everyone
_MEDIAN = 0.5


def cluster_table(
    design: Design, noise_scale: float, budget: Budget, n: int, spread: FloatArray, rate: float | None
) -> pd.DataFrame:
    """Return, by share, what the fit would make of a Gaussian cluster that is well apart from the others.

    Its evidence is the matched filter that the search for clusters uses, with the cluster's own width, over
    its deviation by privacy noise and sampling. A number to be found adds the cluster when that exceeds the
    search's own threshold. With a known number it counts as found when it is above the median of the largest
    filter of pure noise, and above what marks a cluster as doubtful. Standard errors are those of the fit.
    The evidence that a fit states (`stability`) leaves sampling out, and is somewhat larger.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
        Of the release; other epsilons and numbers of records are judged with the same.
    noise_scale : float
        Noise standard deviation per released entry.
    budget : Budget
        Of the release.
    n : int
    spread : (d,) array
        Standard deviation of the cluster per coordinate.
    rate : float or None
        Chance that noise adds a cluster; None for a known number.
    """
    sketch = _sketch(design, noise_scale, n)
    wide = spread / sketch.unit
    energy = float(np.sum(np.exp(-(wide**2) @ sketch.squares) * sketch.root**2))
    phase, filters = _records(sketch, wide)
    second = float(np.mean((np.cos(phase) @ filters) ** 2))
    needed = _needed(sketch, rate)
    mu = gaussian_mu(budget.epsilon, budget.delta)

    def evidence(epsilon: float, count: float) -> list[float]:
        precision = (count / n * gaussian_mu(epsilon, budget.delta) / mu) ** 2
        clear, scatter = precision * energy, precision**2 * second / count
        return [share * clear / math.sqrt(clear + share * scatter) if clear else 0.0 for share in SHARES]

    def above(epsilon: float, count: float) -> list[float]:
        return [z - needed for z in evidence(epsilon, count)]

    now = evidence(budget.epsilon, float(n))
    chance = {"found": [0.5 * math.erfc((needed - z) / math.sqrt(2)) for z in now]}
    table = pd.DataFrame(chance | enough(above, budget.epsilon, n), index=pd.Index(SHARES, name="share"))
    table["evidence_z"] = now
    privacy, sampling = _errors(sketch, phase, wide)
    for a, name in enumerate(design.columns):
        table[f"{name} s.e. privacy"] = privacy[:, a]
        table[f"{name} s.e. sampling"] = sampling[:, a]
    return table


def _sketch(design: Design, noise_scale: float, n: float) -> ClusterSketch:
    variance = noise_scale**2 / (design.pair_weights * n**2)
    return ClusterSketch.of(spectral_surface(design, np.zeros(design.n_pairs, complex), variance, float(n)))


def _needed(sketch: ClusterSketch, rate: float | None) -> float:
    """Return the evidence from which a cluster counts as found, trial centres over the whole box."""
    unit = public_points(np.zeros(sketch.dimension), np.ones(sketch.dimension), _POINTS)
    found = at_points(unit * sketch.widths, sketch, Prior(sketch.middle, SCALE_SHARE * sketch.widths))
    if rate is None:
        return max(CLEAR, noise_threshold(sketch, found, _MEDIAN))
    return noise_threshold(sketch, found, rate)


def _records(sketch: ClusterSketch, wide: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return phases of records drawn from the cluster about its centre (draws, M), and its filter (M,)."""
    places = np.random.default_rng(_SEED).standard_normal((_DRAWS, sketch.dimension)) * wide
    return places @ sketch.frequencies, _filter(sketch, wide)


def _filter(sketch: ClusterSketch, wide: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * (wide**2 @ sketch.squares)) * sketch.root**2)


def _errors(sketch: ClusterSketch, phase: FloatArray, wide: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return standard errors of the centre by share and column, privacy and sampling, in columns' units."""
    # Well apart from others the centre is orthogonal to weight and width: sines against cosines.
    filters = _filter(sketch, wide)
    power = np.exp(-(wide**2) @ sketch.squares) * sketch.root**2
    information = (sketch.frequencies * power) @ sketch.frequencies.T
    pulls = np.sin(phase) @ (filters * sketch.frequencies).T
    # What the fit thinks of a centre before the release bounds its error where that says next to nothing.
    prior = np.diag(Prior(sketch.middle, SCALE_SHARE * sketch.widths).centre_precision)
    privacy, sampling = [], []
    for share in SHARES:
        inverse = np.linalg.inv(share**2 * information + prior)
        privacy.append(np.sqrt(np.diag(inverse)))
        sampling.append(np.sqrt(np.mean((pulls @ inverse) ** 2, axis=0) * share**3 / sketch.n))
    return np.array(privacy) * sketch.unit, np.array(sampling) * sketch.unit
