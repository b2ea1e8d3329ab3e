"""Some thousand hostile inputs; `make audit` tries tens of thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from audits.fuzzers import FUZZERS
from audits.fuzzing import Tally, TooLong, attempt, time_limit
from pydpmode import Budget, PrivateData
from pydpmode.errors import UnsupportedSource

DAMAGED = Path(__file__).parent / "damaged"
INPUTS = {
    "fuzz CSV": 1500,
    "fuzz Parquet": 1200,
    "fuzz formulas": 4000,
    "fuzz commands": 300,
    "fuzz models": 60,
}


@pytest.mark.parametrize("name", FUZZERS)
def test_hostile_input_is_read_or_refused(name: str) -> None:
    fuzz, what = FUZZERS[name]
    tally = fuzz(INPUTS[name])
    assert tally.name == what
    assert tally.wrong == []
    # Some get through and some do not: a fuzzer of which all is refused at the door tests the door only.
    assert tally.refused > 0
    assert tally.inputs - tally.refused > tally.inputs / 50


@pytest.mark.parametrize("path", sorted(DAMAGED.glob("*.parquet")), ids=lambda path: path.stem)
def test_damage_that_was_once_misread(path: Path) -> None:
    """Files that fuzzing found: refused in the package's words, whatever the version of pyarrow."""
    with pytest.raises(UnsupportedSource, match=r"not a readable Parquet file|do not add up"):
        PrivateData(path, bounds={"a": (0.0, 1.0)}, budget=Budget(1.0, 1e-3))


def test_the_damaged_files_are_there() -> None:
    assert len(list(DAMAGED.glob("*.parquet"))) == 3


def test_a_fuzzer_does_not_wait_for_ever() -> None:
    def busy() -> bool:
        while True:
            pass

    with pytest.raises(TooLong), time_limit(0.2):
        busy()


def test_a_fuzzer_sees_what_goes_wrong() -> None:
    tally = Tally("broken")
    attempt(tally, 1, lambda: 1 / 0 > 0)
    attempt(tally, 2, lambda: False)
    attempt(tally, 3, lambda: True)
    assert (tally.inputs, tally.refused) == (3, 1)
    assert tally.wrong == ["input 1: ZeroDivisionError: division by zero"]
    assert not tally.clean
