"""DP-PMS and the plain partial mean shift on the paper's two regression designs (Tables 4 and 5).

    python benchmarks/pms_tables.py            # about ten minutes; writes results/pms_tables.csv
    python benchmarks/pms_tables.py --quick    # four cells, five runs, nothing written
    python benchmarks/pms_tables.py --tuning   # the seeds that rules were set on, nothing written

As in the paper: predictors public, one response replaced, delta = 1e-5, public box (0, 4) or (-1.5, 3), loss
(15) at the rows' own predictors. Every mode reported at a row's x counts, also where a branch has just ended,
which charges more than one mode per row would. The loss is kind to branches that are not found, so beside it
stands the share of (x, true branch) pairs with an estimate within .3. Bandwidths by the public rule of modal
regression. Methods:

dap     starts by the binned conditional DAP
grid    public starts over the response's box, at no cost
plain   partial mean shift without privacy, `PartialMeanShift(rule="likelihood", min_height=.3)`
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from accuracy import REPORTING_SEED, TUNING_SEED

from pydpmode import Budget, PartialMeanShift, PrivateData, datasets
from pydpmode.models.pms_fit import fit_pms
from pydpmode.numerics.evaluation import missed_branch_rate, oracle_modal_loss
from pydpmode.numerics.surfaces import FloatArray
from pydpmode.privacy.gaussian import unit_noise_scale
from pydpmode.privacy.pms_plan import PmsRequest, Starts

EPSILONS, DELTA, RUNS = (0.1, 0.2, 0.5, 1.0), 1e-5, 20
OUTPUT = Path(__file__).parent / "results" / "pms_tables.csv"

DESIGNS: dict[str, tuple[Callable[..., tuple[pd.DataFrame, datasets.ModalTruth]], tuple[float, float]]] = {
    "three levels": (datasets.three_levels, (0.0, 4.0)),
    "sinusoid": (datasets.sinusoid, (-1.5, 3.0)),
}
# The losses of DP-PMS in the paper, by n and then epsilon.
PAPER = {
    "three levels": {
        200: (1.3397, 0.9565, 0.7605, 0.3653),
        500: (0.7823, 0.8034, 0.4760, 0.1402),
        1000: (0.7579, 0.7279, 0.1743, 0.0066),
        2000: (0.6380, 0.2213, 0.0130, 0.000174),
    },
    "sinusoid": {
        200: (3.5963, 0.5476, 0.1388, 0.1102),
        600: (0.1642, 0.1020, 0.0642, 0.0551),
        1200: (0.0975, 0.0571, 0.0469, 0.0438),
        2400: (0.0453, 0.0429, 0.0426, 0.0417),
    },
}
QUICK = (
    ("three levels", 2000, 0.5),
    ("three levels", 500, 1.0),
    ("sinusoid", 2400, 0.2),
    ("sinusoid", 600, 1.0),
)


def bandwidths(n: int, epsilon: float, width_y: float) -> FloatArray:
    """Return the public rule of modal regression for x on (0, 1)."""
    units = n / (math.sqrt(2) * unit_noise_scale(epsilon, DELTA))
    effective = (units**-2 + (1.4 / n) ** 2) ** -0.5
    shares = (min(0.5, 0.8 * effective**-0.5), min(max(0.18 * effective**-0.2, 0.02), 0.2))
    return np.array([shares[0], shares[1] * width_y])


def one_run(name: str, n: int, epsilon: float, seed: int) -> dict[str, tuple[float, float]]:
    """Return loss and share of branches found, by method."""
    simulate, box = DESIGNS[name]
    table, truth = simulate(n, seed)
    x = table["x"].to_numpy()
    true = truth.at(x)

    def private(starts: Starts) -> FloatArray:
        study = PrivateData(table[["y"]], bounds={"y": box}, budget=Budget(2 * epsilon, 2 * DELTA))
        request = PmsRequest(
            response=study.coordinate("y"),
            predictors=x[:, None],
            names=("x",),
            bandwidth=bandwidths(n, epsilon, box[1] - box[0]),
            epsilon=epsilon,
            delta=DELTA,
            starts=starts,
        )
        return fit_pms(study, request, seed=seed).predict(x)

    plain = PartialMeanShift(rule="likelihood", min_height=0.3).fit(x, table["y"])
    found = {"dap": private("dap"), "grid": private("grid"), "plain": plain.predict(x)}
    return {
        method: (oracle_modal_loss(modes, true), 1 - missed_branch_rate(modes, true, radius=0.3))
        for method, modes in found.items()
    }


def cell(name: str, n: int, epsilon: float, runs: int, seed: int) -> list[dict[str, object]]:
    """Run one cell; one row per method."""
    told = [one_run(name, n, epsilon, seed + run) for run in range(runs)]
    rows: list[dict[str, object]] = []
    for method in told[0]:
        values = np.array([run[method] for run in told])
        spread = values.std(axis=0, ddof=1) / math.sqrt(runs)
        rows.append(
            {"design": name, "n": n, "epsilon": epsilon, "method": method, "runs": runs}
            | {"loss": f"{np.nanmean(values[:, 0]):.4g}", "loss_se": f"{spread[0]:.2g}"}
            | {"found": f"{values[:, 1].mean():.3f}", "found_se": f"{spread[1]:.2g}"}
            | {"paper_loss": PAPER[name][n][EPSILONS.index(epsilon)]}
        )
    return rows


def main() -> None:
    """Run the study and write its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four cells with five runs; nothing is written")
    parser.add_argument("--tuning", action="store_true", help="the tuning seeds; nothing is written")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    every = [(name, n, e) for name in DESIGNS for n in PAPER[name] for e in EPSILONS]
    rows: list[dict[str, object]] = []
    for name, n, epsilon in QUICK if options.quick else every:
        start = time.perf_counter()
        runs = 5 if options.quick else options.runs
        new = cell(name, n, epsilon, runs, TUNING_SEED if options.tuning else REPORTING_SEED)
        rows += new
        told = ", ".join(f"{r['method']} {r['loss']} ({r['found']})" for r in new)
        print(f"{name} n={n} eps={epsilon} paper {new[0]['paper_loss']}: {told}  "
              f"[{time.perf_counter() - start:.0f} s]", flush=True)  # fmt: skip
    if options.quick or options.tuning:
        return
    with OUTPUT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
