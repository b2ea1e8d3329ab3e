"""All fuzzers, by name."""

from __future__ import annotations

from collections.abc import Callable

from .command_fuzzing import fuzz_commands
from .formula_fuzzing import fuzz_formulas
from .fuzzing import Tally, fuzz_csv, fuzz_parquet
from .model_fuzzing import fuzz_models

# The fuzzer, and what its inputs are called in the table.
FUZZERS: dict[str, tuple[Callable[[int], Tally], str]] = {
    "fuzz CSV": (fuzz_csv, "CSV files"),
    "fuzz Parquet": (fuzz_parquet, "Parquet files"),
    "fuzz formulas": (fuzz_formulas, "formulas"),
    "fuzz commands": (fuzz_commands, "command lines"),
    "fuzz models": (fuzz_models, "fits of models"),
}
