"""R's `ks::kms` on rows from Python, where R and its package ks are there. Not private.

Rows go to R and modes come back through CSV files in a temporary folder: benchmarks/ks_modes.R.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

SCRIPT = Path(__file__).with_name("ks_modes.R")
LIMIT = 300.0  # seconds of the clock for one run
MOST = 1000  # rows of a clustering: more are sampled
PLUG_IN_COLUMNS = 4  # in more, the plug-in bandwidth takes hours

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class KernelModes:
    """Modes (k, d), the cluster of every row from 0, and processor seconds in R."""

    modes: FloatArray
    labels: NDArray[np.int64]
    seconds: float


@cache
def why_not() -> str | None:
    """Return why ks cannot be used here; None where it can."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        return "ks::kms is skipped: R is not here (apt-get install r-base-core r-cran-ks)"
    asked = 'quit(status = if (requireNamespace("ks", quietly = TRUE)) 0 else 3)'
    if subprocess.run([rscript, "-e", asked], capture_output=True, check=False).returncode:
        return "ks::kms is skipped: R has no package ks (apt-get install r-cran-ks)"
    return None


def kernel_modes(rows: FloatArray, *, seed: int = 0, most: int | None = None) -> KernelModes | None:
    """Return what `ks::kms` finds with its own bandwidth; None, and why is printed, where it cannot run.

    With `most`, no more rows than that are drawn at random for it, and every other row gets the cluster of
    the nearest row drawn.
    """
    reason = why_not()
    if reason:
        print(reason, flush=True)
        return None
    chosen = np.arange(len(rows))
    if most is not None and len(rows) > most:
        chosen = np.sort(np.random.default_rng(seed).choice(len(rows), most, replace=False))
    selector = "plug-in" if rows.shape[1] <= PLUG_IN_COLUMNS else "normal-scale"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "rows.csv"
        np.savetxt(source, rows[chosen], delimiter=",")
        try:
            subprocess.run(
                ["Rscript", str(SCRIPT), str(source), folder, selector],  # noqa: S607 found on the path
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                check=True,
                capture_output=True,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            print(f"ks::kms: over {LIMIT:g} s on {len(chosen)} rows, {rows.shape[1]} columns", flush=True)
            return None
        read = {name: np.loadtxt(Path(folder) / f"{name}.csv", delimiter=",") for name in ("modes", "labels")}
        seconds = float((Path(folder) / "seconds.txt").read_text(encoding="utf-8"))
    nearest = cKDTree(rows[chosen]).query(rows)[1]
    labels = read["labels"].astype(np.int64) - 1
    return KernelModes(read["modes"].reshape(-1, rows.shape[1]), labels[nearest], seconds)
