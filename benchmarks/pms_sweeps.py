"""How sensitive DP-PMS is to minibatch, clipping and step size, as the paper's sweeps ask.

    python benchmarks/pms_sweeps.py            # two minutes; writes results/pms_sweeps.csv
    python benchmarks/pms_sweeps.py --quick    # three settings, three runs, nothing written

The two regression designs of pms_tables.py, n = 1000 and 1200, epsilon = 1, delta = 1e-5, starts by the
binned conditional DAP; one knob is moved at a time, as in grams_sweeps.py:

eta     step in squared bandwidths of the response (1 is the mean-shift step, the default)
clip    A as a multiple of its default, 2 p_floor, at the median predictor value
m       minibatch as a share of n, Renyi accounting (1: the full batch, by the same accounting)

`loss`, `found` and `seconds` as in pms_tables.py, whose rows these are.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from grams_sweeps import KNOBS
from pms_tables import (
    DELTA,
    DESIGNS,
    REPORTING_SEED,
    RUNS,
    Score,
    bandwidths,
    described,
    private_modes,
    scored,
)
from result_files import write_rows

from pydpmode import Budget, GramsOptions, PrivateData
from pydpmode.privacy.pms_plan import PmsRequest

SIZES, EPSILON = {"three levels": 1000, "sinusoid": 1200}, 1.0
RESULTS = Path(__file__).parent / "results" / "pms_sweeps.csv"


def default_clip(name: str) -> float:
    """Return the median over predictor values of the default A: a function of public facts."""
    simulate, box = DESIGNS[name]
    n = SIZES[name]
    table, _ = simulate(n, REPORTING_SEED)
    widths = bandwidths(n, EPSILON, box[1] - box[0])
    request = PmsRequest(
        response=PrivateData(table[["y"]], bounds={"y": box}, budget=Budget(1.0, DELTA)).coordinate("y"),
        predictors=table["x"].to_numpy()[:, None],
        names=("x",),
        bandwidth=widths,
        epsilon=EPSILON,
        delta=DELTA,
    )
    plan = request.plan(np.array(box[:1]), np.array(box[1:]), n, n)
    return float(np.median(plan.calibration.clips)) / float(widths[-1])


def options_for(name: str, knob: str, value: float) -> GramsOptions:
    """Return the options with one knob moved."""
    if knob == "eta":
        return GramsOptions(eta=value)
    if knob == "m":
        return GramsOptions(m=round(value * SIZES[name]), accountant="rdp")
    return GramsOptions(A=value * default_clip(name))


def row(name: str, knob: str, value: float, runs: int) -> dict[str, object]:
    """Run one setting."""
    simulate, box = DESIGNS[name]
    options = options_for(name, knob, value)
    private_modes(
        simulate(SIZES[name], 0)[0], box, EPSILON, 0, options=options
    )  # warm: calibrations are kept
    told: list[Score] = []
    for seed in range(REPORTING_SEED, REPORTING_SEED + runs):
        table, truth = simulate(SIZES[name], seed)
        told.append(
            scored(
                lambda t=table, s=seed: private_modes(t, box, EPSILON, s, options=options),
                truth.at(table["x"].to_numpy()),
            )
        )
    setting: dict[str, object] = {"design": name, "n": SIZES[name], "epsilon": EPSILON}
    return setting | {"knob": knob, "value": value, "runs": runs} | described(np.array(told))


def main() -> None:
    """Run the sweeps and write their table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three settings; nothing is written")
    quick = parser.parse_args().quick
    rows = []
    for name in list(DESIGNS)[:1] if quick else DESIGNS:
        for knob, values in KNOBS.items():
            for value in values[1:2] if quick else values:
                rows.append(row(name, knob, value, 3 if quick else RUNS))
                print("  ".join(f"{key} {told}" for key, told in rows[-1].items()), flush=True)
    if quick:
        return
    write_rows(RESULTS, rows)


if __name__ == "__main__":
    main()
