"""How near the limit the modes are: beside the estimate without privacy, and beside an oracle.

The oracle is told a point a quarter of a bandwidth from every true mode and spends the whole budget
there: one Gaussian mechanism on the gradients and Hessians of the kernel sum at those points, then one
Newton step. Its sensitivity is the largest distance between the contributions of two records, found by a
grid over pairs of positions and then by ascent; the weight of the Hessians against the gradients is the one
that gives it the least error. It uses the same kernel and bandwidth as the release.

    python benchmarks/limit.py            # about five minutes
    python benchmarks/limit.py --quick    # two cells, ten runs, nothing written

Rows go to benchmarks/results/limit.csv. Root mean squared distances to the true modes in the columns'
units: `ours` (refined), `surface` (the released surface's own maxima), `open` and `open_surface` (the same
without privacy, at the same bandwidth), `oracle`. Ours and the surface's are over the modes found.
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from simulated_release import simulated_surface
from study_densities import DENSITIES, StudyDensity

from pydpmode.numerics.evaluation import match_modes
from pydpmode.numerics.kernel_surface import KernelSurface
from pydpmode.numerics.mode_seeking import find_modes
from pydpmode.privacy.gaussian import unit_noise_scale

FloatArray = NDArray[np.float64]

SEED = 400_000
DELTA = 1e-6
RUNS = 40
NAMES = ("four_gaussians", "five_t", "unequal_scales", "bimodal", "skewed", "three_dimensions")
CELLS = ((1000, 1.0), (1000, 5.0), (5000, 0.5), (5000, 1.0), (5000, 5.0), (20_000, 0.1), (20_000, 1.0))
OFFSET = 0.25  # bandwidths from the true mode to the point told
HESSIAN_WEIGHTS = (0.15, 0.3, 0.6, 1.0)
RESULTS = Path(__file__).parent / "results" / "limit.csv"


def contributions(points: FloatArray, records: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each record's gradients (m, k, d) and Hessians (m, k, d, d) at `points`, in bandwidths."""
    away = points[None, :, :] - records[:, None, :]
    value = np.exp(-0.5 * np.sum(away**2, axis=2))
    gradient = -away * value[:, :, None]
    outer = away[:, :, :, None] * away[:, :, None, :] - np.eye(points.shape[1])
    return gradient, outer * value[:, :, None, None]


def stacked(points: FloatArray, records: FloatArray, weight: float) -> FloatArray:
    """Return each record's contribution to the released vector: gradients and weighted Hessians."""
    gradient, hessian = contributions(points, records)
    upper = np.triu_indices(points.shape[1])
    parts = [gradient.reshape(len(records), -1), weight * hessian[:, :, *upper].reshape(len(records), -1)]
    return np.concatenate(parts, axis=1)


def sensitivity(points: FloatArray, weight: float) -> float:
    """Return the largest distance between the contributions of two records, or of one and none."""
    d = points.shape[1]
    step = 0.25 if d == 1 else 0.5
    offsets = np.arange(-3.0, 3.0 + step / 2, step)
    mesh = np.stack(np.meshgrid(*[offsets] * d, indexing="ij"), axis=-1).reshape(-1, d)
    records = np.concatenate([points[i] + mesh for i in range(len(points))])
    vectors = stacked(points, records, weight)
    norms = np.sum(vectors**2, axis=1)
    best, pair = 0.0, (0, 0)
    for start in range(0, len(records), 500):
        part = slice(start, start + 500)
        squared = norms[part, None] + norms - 2 * vectors[part] @ vectors.T
        i, j = np.unravel_index(int(np.argmax(squared)), squared.shape)
        if squared[i, j] > best:
            best, pair = float(squared[i, j]), (start + int(i), int(j))

    def short(both: FloatArray) -> float:
        one, other = stacked(points, both.reshape(2, d), weight)
        return -float(np.sum((one - other) ** 2))

    polished = -float(minimize(short, records[list(pair)].ravel(), method="BFGS").fun)
    return float(np.sqrt(max(best, polished, norms.max())))


def oracle_errors(
    x: FloatArray, told: FloatArray, true: FloatArray, weight: float, sigma: float, seed: int
) -> FloatArray:
    """Return the squared errors (k,) of one Newton step per mode, all in bandwidths."""
    random = np.random.default_rng(seed)
    k, d = told.shape
    gradient, hessian = np.zeros((k, d)), np.zeros((k, d, d))
    for start in range(0, len(x), 5000):
        g, h = contributions(told, x[start : start + 5000])
        gradient += g.sum(axis=0)
        hessian += h.sum(axis=0)
    gradient += sigma * random.standard_normal((k, d))
    upper = np.triu_indices(d)
    noise = sigma / weight * random.standard_normal((k, len(upper[0])))
    for i in range(k):
        hessian[i][upper] += noise[i]
        hessian[i].T[upper] = hessian[i][upper]
    out = np.empty(k)
    for i in range(k):
        place = told[i]
        if np.linalg.eigvalsh(hessian[i])[-1] < 0:
            move = -np.linalg.solve(hessian[i], gradient[i])
            place = place + move / max(1.0, float(np.linalg.norm(move)))
        out[i] = float(np.sum((place - true[i]) ** 2))
    return out


def told_points(density: StudyDensity, bandwidth: FloatArray) -> FloatArray:
    """Return a point near each true mode, in fixed directions, in bandwidths."""
    random = np.random.default_rng(SEED)
    directions = random.standard_normal(density.modes.shape)
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return density.modes / bandwidth + OFFSET * directions


def squared_errors(found: FloatArray, density: StudyDensity, far: float) -> list[float]:
    """Return the squared distances of the true modes that were found."""
    return [float(v) for v in match_modes(found, density.modes).squared_distances if v < far**2]


def cell(density: StudyDensity, n: int, epsilon: float, runs: int) -> dict[str, float | str]:
    """Run one density at one n and epsilon."""
    names = ("ours", "surface", "open", "open_surface")
    errors: dict[str, list[float]] = {name: [] for name in names}
    oracle: dict[float, list[float]] = {w: [] for w in HESSIAN_WEIGHTS}
    scale = unit_noise_scale(epsilon, DELTA)
    sigmas: dict[float, float] = {}
    h = told = np.zeros(0)
    for run in range(runs):
        x = density.sample(n, SEED + run)
        released = simulated_surface(
            x, density.lower, density.upper, epsilon, DELTA, SEED + run, bandwidth="reference"
        )
        if not sigmas:
            h = released.bandwidth
            told = told_points(density, h)
            sigmas = {w: scale * sensitivity(told, w) for w in HESSIAN_WEIGHTS}
        plain = KernelSurface.from_points(x, h, released.lower, released.upper)
        for name, surface, refine in (
            ("ours", released, True),
            ("surface", released, False),
            ("open", plain, True),
            ("open_surface", plain, False),
        ):
            errors[name] += squared_errors(find_modes(surface, refine=refine).locations, density, 2 * h.max())
        clipped = np.clip(x, density.lower, density.upper) / h
        for w in HESSIAN_WEIGHTS:
            squared = oracle_errors(clipped, told, density.modes / h, w, sigmas[w], SEED + run)
            oracle[w] += [float(v) for v in squared * np.mean(h**2)]
    best = min(HESSIAN_WEIGHTS, key=lambda w: float(np.mean(oracle[w])))
    root = {name: float(np.sqrt(np.mean(values))) for name, values in errors.items()}
    root["oracle"] = float(np.sqrt(np.mean(oracle[best])))
    ratio = root["ours"] / root["oracle"]
    relative = [
        float(np.std(v)) / (2 * float(np.mean(v)) * np.sqrt(len(v))) for v in (errors["ours"], oracle[best])
    ]
    return {
        "density": density.name,
        "n": n,
        "epsilon": epsilon,
        "runs": runs,
        "bandwidth": float(h[0]),
        "found": len(errors["ours"]) / (runs * len(density.modes)),
        **root,
        "hessian_weight": best,
        "ours_over_oracle": ratio,
        "ours_over_oracle_se": ratio * float(np.hypot(*relative)),
        "surface_over_oracle": root["surface"] / root["oracle"],
        "ours_over_open": root["ours"] / root["open"],
        "ours_over_open_surface": root["ours"] / root["open_surface"],
    }


def main() -> None:
    """Run the benchmark and write its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two cells with ten runs; nothing is written")
    options = parser.parse_args()
    rows = []
    for name in NAMES[:1] if options.quick else NAMES:
        for n, epsilon in CELLS[:2] if options.quick else CELLS:
            row = cell(DENSITIES[name], n, epsilon, 10 if options.quick else RUNS)
            rows.append(row)
            print(
                f"{name:16s} {n:6d} {epsilon:4} found {row['found']:.2f} ours {row['ours']:.4f} "
                f"surface {row['surface']:.4f} open {row['open']:.4f} {row['open_surface']:.4f} "
                f"oracle {row['oracle']:.4f} (weight {row['hessian_weight']}) "
                f"ours/oracle {row['ours_over_oracle']:.2f} ({row['ours_over_oracle_se']:.2f}) "
                f"surface/oracle {row['surface_over_oracle']:.2f}",
                flush=True,
            )
    if options.quick:
        return
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
