"""What a release would cost and how noisy it would be, in the columns' units, before any row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..numerics.designs import Design
from ..numerics.kernels import squared_kernel_integrals
from ..numerics.spectral_surfaces import spectral_surface
from ..numerics.surfaces import FieldNoise, FloatArray

SHARES = (0.5, 0.25, 0.1, 0.05)


@dataclass(frozen=True, eq=False)
class Preview:
    """The plan of a release. Nothing has been read or charged.

    Parameters
    ----------
    columns : tuple of str
    bandwidth : Series
        Per coordinate, in its units.
    bandwidth_rule : str
    epsilon, delta : float
        What the release would cost.
    epsilon_before, epsilon_after : float
        Spent by earlier releases, and by all together with this one (tight composition).
    epsilon_budget : float
    n : int
        Public number of units (or the guess).
    density_noise_sd : float
        Standard deviation of the privacy noise of the density.
    total_noise_sd : float
        Standard deviation of the privacy noise of the released number of units.
    modes : DataFrame
        For a Gaussian bump that holds a `share` of the data with spread `spread` per coordinate:
        height over its total standard deviation (`height_z`; above about 5 it is found), and the
        standard error of its location per coordinate, privacy and sampling.
    n_values : int
        Numbers released.
    """

    columns: tuple[str, ...]
    bandwidth: pd.Series[float]
    bandwidth_rule: str
    epsilon: float
    delta: float
    epsilon_before: float
    epsilon_after: float
    epsilon_budget: float
    n: int
    density_noise_sd: float
    total_noise_sd: float
    modes: pd.DataFrame
    n_values: int

    @property
    def fits(self) -> bool:
        """Whether the budget holds the release."""
        return self.epsilon_after <= self.epsilon_budget * (1 + 1e-9)

    def __str__(self) -> str:
        widths = ", ".join(f"{c} {h:.4g}" for c, h in self.bandwidth.items())
        lines = [
            f"Plan for {', '.join(self.columns)}: nothing read, nothing charged",
            f"  cost            epsilon {self.epsilon:g}, delta {self.delta:g}",
            f"  budget          epsilon {self.epsilon_before:.4g} spent, {self.epsilon_after:.4g} after "
            f"this release, of {self.epsilon_budget:g}{'' if self.fits else '  DOES NOT FIT'}",
            f"  bandwidth       {widths} ({self.bandwidth_rule})",
            f"  records         {self.n:,}; their released number would be off by "
            f"{self.total_noise_sd:.3g} (sd)",
            f"  density noise   {self.density_noise_sd:.3g} (sd at any point)",
            "  what a mode that holds a share of the records would look like:",
        ]
        table = self.modes.to_string(float_format=lambda v: f"{v:.3g}")
        return "\n".join(lines + ["    " + line for line in table.splitlines()])

    __repr__ = __str__


def bump_table(
    design: Design, noise_scale: float, n: int, spread: FloatArray
) -> tuple[FieldNoise, pd.DataFrame]:
    """Return the noise of the planned surface and the error of a Gaussian bump's mode by its share.

    Parameters
    ----------
    design : LatticeDesign or RandomDesign
    noise_scale : float
        Noise standard deviation per released entry.
    n : int
    spread : (d,) array
        Standard deviation of the bump per coordinate.
    """
    variance = noise_scale**2 / (design.pair_weights * n**2)
    noise = spectral_surface(design, np.zeros(design.n_pairs, dtype=complex), variance, float(n)).noise
    h = design.bandwidth
    wide = spread**2 + h**2
    value, gradient = squared_kernel_integrals(design.order, design.dimension)
    scale = float(np.prod(h))
    rows = []
    for share in SHARES:
        height = share * float(np.prod(2 * math.pi * wide) ** -0.5)
        sampling = max(value / scale * height - height**2, 0.0) / n
        curvature = height / wide
        row = {"share": share, "height_z": height / math.sqrt(noise.value + sampling)}
        for a, name in enumerate(design.columns):
            row[f"{name} s.e. privacy"] = math.sqrt(noise.gradient[a, a]) / curvature[a]
            row[f"{name} s.e. sampling"] = (
                math.sqrt(height * gradient / (scale * h[a] ** 2) / n) / curvature[a]
            )
        rows.append(row)
    return noise, pd.DataFrame(rows).set_index("share")
