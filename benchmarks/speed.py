"""Time of a whole fit in two dimensions against named peers, on the same data in the same run.

    make bench                    (or: python benchmarks/speed.py [--quick])

Writes benchmarks/results/speed.csv. Every figure is a ratio of wall times; the seconds beside it
only say on what scale. Peers are given their own best case: no private fit is timed with a warm
cache that the peer does not have, and MeanShift gets its bandwidth for free.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "speed.csv"
SEED = 20261130
BOUNDS = (-8.0, 8.0)


def timed(function: Callable[[], object], repeats: int) -> float:
    """Return the median wall time in seconds, of single calls: ours and the peers' alike.

    A pause before each lets the threads of the call before fall asleep; linear-algebra libraries keep
    theirs spinning for a while, which would take a core from the next call.
    """
    times = []
    for _ in range(repeats):
        time.sleep(0.3)
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def sample(n: int) -> np.ndarray:
    """Return n points of the paper's four Gaussians, as a plain array."""
    from pydpmode import datasets

    return np.ascontiguousarray(datasets.four_gaussians(n, seed=SEED)[0].to_numpy())


def private_fit(x: np.ndarray) -> None:
    """Run the whole private fit, everything included: checks, release, search, standard errors."""
    from pydpmode import DensityModes

    DensityModes(x, bounds=[BOUNDS, BOUNDS]).fit(epsilon=1.0, delta=1e-8)


def bare_transform(x: np.ndarray) -> Callable[[], object]:
    """Return FINUFFT's own type-1 transform with the lattice and tolerance of the fit, inputs ready."""
    import finufft

    from pydpmode.numerics.bandwidth import choose_bandwidth
    from pydpmode.numerics.designs import LatticeDesign
    from pydpmode.numerics.feature_sums import FAST_TOLERANCE

    lower, upper = np.full(2, BOUNDS[0]), np.full(2, BOUNDS[1])
    columns = ("x1", "x2")
    h = choose_bandwidth("reference", columns=columns, lower=lower, upper=upper, n=len(x), epsilon=1.0).values
    design = LatticeDesign(columns, lower, upper, h)
    angles = [np.ascontiguousarray(a) for a in (2 * np.pi * (x - lower) / h / design.sides).T]
    shape = tuple(int(2 * j + 1) for j in design.half_sizes)
    strengths = np.ones(len(x), np.complex128)
    return lambda: finufft.nufft2d1(*angles, strengths, shape, isign=1, eps=FAST_TOLERANCE)


def peak_memory(n: int) -> float:
    """Return the peak memory of a fit beyond the input, in MB, measured in a process of its own."""
    code = (
        "import numpy as np\n"
        "from pydpmode import DensityModes\n"
        "g = np.random.default_rng(0)\n"
        f"DensityModes(g.normal(size=(1000, 2)), bounds=[(-8, 8)] * 2).fit(epsilon=1.0, delta=1e-6)\n"
        f"x = np.empty(({n}, 2))\n"
        f"for i in range(0, {n}, 2**17): x[i:i + 2**17] = g.normal(size=x[i:i + 2**17].shape)\n"
        # Forget the peak so far (Linux): what counts is the peak during the fit.
        "def peak():\n"
        "    return next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmHWM'))\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "before = peak()\n"
        "DensityModes(x, bounds=[(-8, 8)] * 2).fit(epsilon=1.0, delta=1e-8)\n"
        "print((peak() - before) / 1024)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(out.stdout)


def import_ratio() -> float:
    """Return the time to import the package over the time to import pandas and scipy."""

    def seconds(statement: str) -> float:
        best = np.inf
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            best = min(best, time.perf_counter() - start)
        return best

    return seconds("import pydpmode") / seconds("import pandas, scipy")


def main() -> None:
    """Measure and write the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="leave out 10 million rows")
    quick = arguments.parse_args().quick
    warnings.simplefilter("ignore")
    from diffprivlib.models import KMeans
    from sklearn.cluster import MeanShift

    private_fit(sample(1000))
    rows: list[tuple[str, int, float, float, str]] = []

    x = sample(100_000)
    ours = timed(lambda: private_fit(x), 7)
    peer = timed(lambda: MeanShift(bandwidth=1.0, bin_seeding=True).fit(x), 1)
    rows.append(("sklearn MeanShift(bin_seeding=True)", len(x), ours, peer, "times faster, at least 20"))

    x = sample(1_000_000)
    ours = timed(lambda: private_fit(x), 7)
    peer = timed(lambda: KMeans(4, epsilon=1.0, bounds=BOUNDS).fit(x), 3)
    rows.append(("diffprivlib KMeans(4)", len(x), ours, peer, "times faster, at least 20"))

    if not quick:
        x = sample(10_000_000)
        bare = bare_transform(x)
        bare()
        ours = timed(lambda: private_fit(x), 3)
        peer = timed(bare, 3)
        rows.append(
            (
                "bare FINUFFT transform",
                len(x),
                ours,
                peer,
                f"of it; at most 1.5 times plus 0.1 s: {1.5 * peer + 0.1:.2f} s",
            )
        )

    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["peer", "n", "fit_seconds", "peer_seconds", "peer_over_fit", "wanted"])
        for name, n, own, other, wanted in rows:
            table.writerow([name, n, f"{own:.4f}", f"{other:.4f}", f"{other / own:.2f}", wanted])
        if not quick:
            table.writerow(
                ["peak memory beyond the input, MB", 10**7, f"{peak_memory(10**7):.0f}", "", "", "below 500"]
            )
        table.writerow(["import over pandas and scipy", "", f"{import_ratio():.2f}", "", "", "at most 1.5"])
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
