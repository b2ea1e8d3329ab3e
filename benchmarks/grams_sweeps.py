"""How sensitive `grams` is to minibatch, clipping and step size, as the paper's sweeps ask.

    python benchmarks/grams_sweeps.py            # some minutes; writes results/grams_sweeps.csv
    python benchmarks/grams_sweeps.py --quick    # three settings, three runs, nothing written

Four Gaussians and five t components, n = 2000, epsilon = 1, delta = 1e-6; one knob is moved at a time:

eta     step in squared bandwidths (1 is the mean-shift step, the default)
clip    A as a multiple of its default, 2 p_floor
m       minibatch as a share of n, Renyi accounting (1: the full batch, by the same accounting)

`mse` is equation (14) of the paper; `exact`, `missed`, `false` as in accuracy.py; `seconds`: processor time.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

from accuracy import DELTA, PAPER, REPORTING_SEED, RUNS, describe, mean_and_error
from simulated_grams import SimulatedGrams, simulated_grams
from study_densities import DENSITIES, StudyDensity

from pydpmode import GramsOptions
from pydpmode.numerics.mode_set import ModeSet

N, EPSILON = 2000, 1.0
KNOBS = {
    "eta": (0.25, 0.5, 1.0, 1.5, 2.0),
    "clip": (0.1, 0.5, 1.0, 2.0, 10.0),
    "m": (0.1, 0.2, 0.5, 1.0),
}
RESULTS = Path(__file__).parent / "results" / "grams_sweeps.csv"
FIELDS = ("density", "n", "epsilon", "knob", "value", "runs", "mse", "mse_se", "exact", "missed", "false")
FIELDS += ("seconds", "seconds_se")


def one_run(density: StudyDensity, seed: int, options: GramsOptions | None = None) -> SimulatedGrams:
    """Return one simulated run of DP-GRAMS."""
    x = density.sample(N, seed)
    return simulated_grams(x, density.lower, density.upper, EPSILON, DELTA, seed, options)


def options_for(density: StudyDensity, knob: str, value: float) -> GramsOptions:
    """Return the options with one knob moved."""
    if knob == "eta":
        return GramsOptions(eta=value)
    if knob == "m":
        return GramsOptions(m=round(value * N), accountant="rdp")
    # The default is a public number: the same for every data set of this size.
    default = one_run(density, 0)
    return GramsOptions(A=value * default.trace.clip / float(default.bandwidth.prod()))


def row(name: str, knob: str, value: float, runs: int) -> dict[str, object]:
    """Run one setting."""
    density = DENSITIES[name]
    options = options_for(density, knob, value)
    found: list[ModeSet] = []
    seconds = []
    for seed in range(REPORTING_SEED, REPORTING_SEED + runs):
        start = time.process_time()
        found.append(one_run(density, seed, options).modes())
        seconds.append(time.process_time() - start)
    told, took = describe(found, density), mean_and_error(seconds)
    setting: dict[str, object] = {"density": name, "n": N, "epsilon": EPSILON, "knob": knob, "value": value}
    return (
        setting
        | {"runs": runs}
        | {key: f"{told[key]:.4g}" for key in ("mse", "mse_se", "exact", "missed", "false")}
        | {"seconds": f"{took[0]:.3g}", "seconds_se": f"{took[1]:.2g}"}
    )


def main() -> None:
    """Run the sweeps and write their table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three settings; nothing is written")
    quick = parser.parse_args().quick
    rows = []
    for name in PAPER[:1] if quick else PAPER:
        for knob, values in KNOBS.items():
            for value in values[1:2] if quick else values:
                rows.append(row(name, knob, value, 3 if quick else RUNS))
                print("  ".join(f"{key} {rows[-1][key]}" for key in FIELDS), flush=True)
    if quick:
        return
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
