"""All fuzzers, by name."""

from __future__ import annotations

from collections.abc import Callable

from .command_fuzzing import fuzz_commands
from .formula_fuzzing import fuzz_formulas
from .fuzzing import Tally, fuzz_csv, fuzz_parquet

FUZZERS: dict[str, Callable[[int], Tally]] = {
    "fuzz CSV": fuzz_csv,
    "fuzz Parquet": fuzz_parquet,
    "fuzz formulas": fuzz_formulas,
    "fuzz commands": fuzz_commands,
}
