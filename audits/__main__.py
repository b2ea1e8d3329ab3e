"""`make audit`: black-box audits of every mechanism and every planted fault, then fuzzing.

    python -m audits                   # real noise; about an hour on two cores
    python -m audits --resume          # go on after an interruption: keep the rows that are there
    python -m audits --quick           # the numbers of the tests, nothing written
    python -m audits --only quartiles  # some of the cases, nothing written

Rows go to benchmarks/results/audit.csv: the largest epsilon that could be shown to be lost, beside the
stated one. The exit status is 1 when a bound exceeds a statement, or when a planted fault is not found.
"""

from __future__ import annotations

import os

# Before NumPy: small matrices gain nothing from threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import csv
import sys
import time
from pathlib import Path

from .cases import Verdict, all_cases, audit
from .fuzzers import FUZZERS

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"
QUICK_SEED = 7
FUZZ_INPUTS, FUZZ_QUICK = 20_000, 500
SLOWER = {"fuzz models": 10}  # times: so many fewer inputs


def main() -> int:
    """Run the audits and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m audits", description="Attack the shipped code.")
    parser.add_argument("--quick", action="store_true", help="the numbers of the tests; nothing is written")
    parser.add_argument("--only", default="", help="cases whose name holds this text; nothing is written")
    parser.add_argument("--resume", action="store_true", help="keep the rows that are there already")
    chosen = parser.parse_args()
    whole = not (chosen.quick or chosen.only)
    target = RESULTS / "audit.csv" if whole else None
    good = _audits(chosen.quick, chosen.only, target, _read(target) if target and chosen.resume else [])
    fuzzed = RESULTS / "fuzzing.csv"
    rows = _fuzz(
        FUZZ_QUICK if chosen.quick else FUZZ_INPUTS, chosen.only, _read(fuzzed) if chosen.resume else []
    )
    if whole:
        _write(fuzzed, rows)
    return 0 if good and not any(int(str(row["wrong"])) for row in rows) else 1


def _audits(quick: bool, only: str, target: Path | None, done: list[dict[str, str]]) -> bool:
    """Run the cases; rows are written as they come. Return whether all is as it should be."""
    good = True
    rows: list[dict[str, object]] = [dict(row) for row in done]
    known = {(row["mechanism"], row["neighbours"], row["planted_fault"]) for row in done}
    for case in all_cases():
        runs = case.quick if quick else case.runs
        if only not in case.name or runs == 0 or (case.mechanism, case.pair, case.fault) in known:
            continue
        start = time.perf_counter()
        verdict = audit(case, runs, QUICK_SEED if quick else None)
        good &= verdict.as_it_should_be
        rows.append(_row(verdict))
        if target is not None:
            _write(target, rows)
        mark = "ok" if verdict.as_it_should_be else "WRONG"
        seconds = time.perf_counter() - start
        print(f"{mark:5s} {verdict.bound:6.3f} of {case.epsilon:g}  {seconds:6.1f}s  {case.name}", flush=True)
    return good and all(row["as_it_should_be"] == "True" for row in done)


def _fuzz(inputs: int, only: str, done: list[dict[str, str]]) -> list[dict[str, object]]:
    """Run the fuzzers; what has been clean over as many inputs is not run again."""
    kept = {row["input"]: row for row in done if row["wrong"] == "0"}
    rows: list[dict[str, object]] = []
    for name, (fuzz, what) in FUZZERS.items():
        if only not in name:
            continue
        number = inputs // SLOWER.get(name, 1)
        if what in kept and int(kept[what]["inputs"]) >= number:
            rows.append(dict(kept[what]))
            continue
        tally = fuzz(number)
        rows.append(tally.row())
        print(f"{'ok' if tally.clean else 'WRONG':5s} {tally}", flush=True)
    return rows


def _row(verdict: Verdict) -> dict[str, object]:
    case = verdict.case
    return {
        "mechanism": case.mechanism,
        "neighbours": case.pair,
        "planted_fault": case.fault,
        "epsilon_stated": case.epsilon,
        "delta": case.delta,
        "runs_a_side": verdict.runs,
        "epsilon_at_least": f"{verdict.bound:.3f}",
        "as_it_should_be": verdict.as_it_should_be,
    }


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
