"""DP-PMS and the plain partial mean shift on the paper's two regression designs (Tables 4 and 5).

    python benchmarks/pms_tables.py            # about ten minutes; writes results/pms_tables.csv
    python benchmarks/pms_tables.py --resume   # keeps the parts of that table that have all their runs
    python benchmarks/pms_tables.py --quick    # four cells, five runs, nothing written
    python benchmarks/pms_tables.py --tuning   # the seeds that rules were set on, nothing written

As in the paper: predictors public, one response replaced, delta = 1e-5, public box (0, 4) or (-1.5, 3), loss
(15) at the rows' own predictors. Every mode reported at a row's x counts, also where a branch has just ended,
which charges more than one mode per row would. The loss is kind to branches that are not found, so beside it
stands the share of (x, true branch) pairs with an estimate within .3. Bandwidths by the public rule of modal
regression. Methods:

dap     starts by the binned conditional DAP
grid    public starts over the response's box, at no cost
plain   partial mean shift without privacy, `PartialMeanShift(rule="likelihood", min_height=.3)`; the same
        for every epsilon

`seconds`: processor time of one fit with its predictions, seeded noise. A run's rows are the same for every
epsilon and method.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from accuracy import REPORTING_SEED, TUNING_SEED

from pydpmode import Budget, GramsOptions, PartialMeanShift, PrivateData, datasets
from pydpmode.models.pms_fit import fit_pms
from pydpmode.numerics.evaluation import missed_branch_rate, oracle_modal_loss
from pydpmode.numerics.surfaces import FloatArray
from pydpmode.privacy.gaussian import unit_noise_scale
from pydpmode.privacy.pms_plan import PmsRequest, Starts

EPSILONS, DELTA, RUNS = (0.1, 0.2, 0.5, 1.0), 1e-5, 20
METHODS: tuple[Starts, ...] = ("dap", "grid")
Score = tuple[float, float, float]  # loss, share found, seconds
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


def private_modes(
    table: pd.DataFrame,
    box: tuple[float, float],
    epsilon: float,
    seed: int,
    *,
    starts: Starts = "dap",
    options: GramsOptions | None = None,
) -> FloatArray:
    """Return what DP-PMS predicts at the rows' own x; noise from `seed`."""
    x = table["x"].to_numpy()
    study = PrivateData(table[["y"]], bounds={"y": box}, budget=Budget(2 * epsilon, 2 * DELTA))
    request = PmsRequest(
        response=study.coordinate("y"),
        predictors=x[:, None],
        names=("x",),
        bandwidth=bandwidths(x.size, epsilon, box[1] - box[0]),
        epsilon=epsilon,
        delta=DELTA,
        options=options or GramsOptions(),
        starts=starts,
    )
    return fit_pms(study, request, seed=seed).predict(x)


def plain_modes(table: pd.DataFrame) -> FloatArray:
    """Return what partial mean shift without privacy predicts at the rows' own x."""
    fit = PartialMeanShift(rule="likelihood", min_height=0.3).fit(table["x"].to_numpy(), table["y"])
    return fit.predict(table["x"].to_numpy())


def scored(predict: Callable[[], FloatArray], true: FloatArray) -> Score:
    """Return loss, share of branches found and processor seconds of one fit with its predictions."""
    start = time.process_time()
    modes = predict()
    seconds = time.process_time() - start
    return oracle_modal_loss(modes, true), 1 - missed_branch_rate(modes, true, radius=0.3), seconds


def one_run(name: str, n: int, epsilons: Sequence[float], seed: int) -> dict[tuple[float, str], Score]:
    """Return the scores by epsilon and method, all from the same rows."""
    simulate, box = DESIGNS[name]
    table, truth = simulate(n, seed)
    true = truth.at(table["x"].to_numpy())
    plain = scored(lambda: plain_modes(table), true)
    told: dict[tuple[float, str], Score] = {}
    for epsilon in epsilons:
        for starts in METHODS:
            told[epsilon, starts] = scored(
                lambda e=epsilon, s=starts: private_modes(table, box, e, seed, starts=s), true
            )
        told[epsilon, "plain"] = plain
    return told


def rows_of(name: str, n: int, epsilons: Sequence[float], runs: int, seed: int) -> list[dict[str, object]]:
    """Run one design at one n; one row per epsilon and method."""
    told = [one_run(name, n, epsilons, seed + run) for run in range(runs)]
    rows: list[dict[str, object]] = []
    for epsilon, method in told[0]:
        values = np.array([run[epsilon, method] for run in told])
        rows.append(
            {"design": name, "n": n, "epsilon": epsilon, "method": method, "runs": runs}
            | described(values)
            | {"paper_loss": PAPER[name][n][EPSILONS.index(epsilon)]}
        )
    return rows


def described(values: FloatArray) -> dict[str, str]:
    """Return means and standard errors of the scores of several runs."""
    spread = values.std(axis=0, ddof=1) / math.sqrt(values.shape[0])
    return (
        {"loss": f"{values[:, 0].mean():.4g}", "loss_se": f"{spread[0]:.2g}"}
        | {"found": f"{values[:, 1].mean():.3f}", "found_se": f"{spread[1]:.2g}"}
        | {"seconds": f"{values[:, 2].mean():.3g}", "seconds_se": f"{spread[2]:.2g}"}
    )


def finished(rows: list[dict[str, str]], name: str, n: int, runs: int) -> list[dict[str, str]]:
    """Return the rows of a design and n when all of them are there with this many runs, else none."""
    own = [r for r in rows if r["design"] == name and r["n"] == str(n) and r["runs"] == str(runs)]
    whole = len(own) == len(EPSILONS) * (len(METHODS) + 1) and all(r.get("seconds") for r in own)
    return own if whole else []


def write(rows: Sequence[Mapping[str, object]]) -> None:
    """Write what there is."""
    with OUTPUT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Run the study and write its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four cells with five runs; nothing is written")
    parser.add_argument("--tuning", action="store_true", help="the tuning seeds; nothing is written")
    parser.add_argument("--resume", action="store_true", help="keep what the table has with as many runs")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    seed = TUNING_SEED if options.tuning else REPORTING_SEED
    one_run("sinusoid", 200, (1.0,), TUNING_SEED)  # what is loaded once counts in no time
    if options.quick:
        for name, n, epsilon in QUICK:
            tell(rows_of(name, n, (epsilon,), 5, seed), 0.0)
        return
    kept = list(csv.DictReader(OUTPUT.open(encoding="utf-8"))) if options.resume else []
    rows: list[Mapping[str, object]] = []
    for name in DESIGNS:
        for n in PAPER[name]:
            start = time.perf_counter()
            new = finished(kept, name, n, options.runs) or rows_of(name, n, EPSILONS, options.runs, seed)
            rows += new
            tell(new, time.perf_counter() - start)
            if not options.tuning:
                write(rows)


def tell(rows: Sequence[Mapping[str, object]], seconds: float) -> None:
    """Print the rows of a design and n."""
    for r in rows:
        print(*r.values(), flush=True)
    print(f"[{seconds:.0f} s]", flush=True)


if __name__ == "__main__":
    main()
