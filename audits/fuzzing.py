"""Hostile input for the readers and the command line: every input is read, or refused in the package's words.

Each fuzzer builds inputs from a seed out of pieces that are known to be awkward, mixed with damage at
random. An input is wrong when it raises anything but a `PydpmodeError`, takes too long, or is refused
after something was charged.
"""

from __future__ import annotations

import contextlib
import io
import random
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pydpmode as dpm
from pydpmode.budget import ADJACENCIES
from pydpmode.errors import PydpmodeError, ReadingFailed
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy.private_data import PrivateData

# Seconds that one input may take; a hang is a fault.
LIMIT = 30.0


@dataclass
class Tally:
    """What became of the inputs of one fuzzer."""

    name: str
    inputs: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not self.wrong

    def row(self) -> dict[str, object]:
        """Return a row for the table."""
        return {
            "input": self.name,
            "inputs": self.inputs,
            "read": self.inputs - self.refused - len(self.wrong),
            "refused": self.refused,
            "wrong": len(self.wrong),
        }

    def __str__(self) -> str:
        """Say how many of each, and the first of what went wrong."""
        counts = f"{self.inputs} inputs, {self.refused} refused, {len(self.wrong)} wrong"
        return f"{self.name}: {counts} {self.wrong[:3]}"


class TooLong(BaseException):
    """Not an Exception, so that nothing in between takes it for an ordinary failure."""


@contextlib.contextmanager
def time_limit(seconds: float = LIMIT) -> Iterator[None]:
    """Raise when the block takes longer; where the system has no such timers, do nothing.

    Processor time, which other work on the machine does not lengthen, or ten times as long by the clock: a
    block that waits for ever uses no processor.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise TooLong

    timers = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds),
    )
    before = [(number, signal.signal(number, stop)) for number, _, _ in timers]
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for _, timer, _ in timers:
            signal.setitimer(timer, 0)
        for number, handler in before:
            signal.signal(number, handler)


def attempt(tally: Tally, seed: int, one: Callable[[], bool], limit: float = LIMIT) -> None:
    """Run one input; `one` returns False when it was refused and raises when something is wrong."""
    tally.inputs += 1
    try:
        with time_limit(limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tally.refused += not one()
    except TooLong:
        tally.wrong.append(f"input {seed}: still running after {limit:g} s")
    except Exception as problem:
        tally.wrong.append(f"input {seed}: {type(problem).__name__}: {problem}"[:300])


# -- tables in files -------------------------------------------------------------------------------------

_CELLS = (
    b"1", b"-1.5", b"1e5", b"1e999", b"-inf", b"nan", b"", b" ", b"abc", b'"2"', b'"', b'""', b"1_000",
    b"\xff\xfe", b"\x00", b"0x10", b"1,5", b"2020-01-31", b"2020-02-30T25:00", b"\xe2\x82\xac", b"9" * 600,
)  # fmt: skip
_ENDS = (b"\n", b"\r\n", b"\r", b"\n\n", b"")
_HEADERS = (
    b"a,b",
    b"a",
    b"b,a,c",
    b"a,a",
    b"1,2",
    b"",
    b'"a",b',
    b"a;b",
    b"\xef\xbb\xbfa,b",
    b" a ,b",
    b"a,b,",
)


def csv_bytes(r: random.Random) -> bytes:
    """Return a CSV file, more or less."""
    end = r.choice(_ENDS)
    lines = [r.choice(_HEADERS)]
    for _ in range(r.randrange(12)):
        lines.append(b",".join(r.choice(_CELLS) for _ in range(r.choice((1, 2, 2, 2, 2, 3)))))
    return _damaged(r, end.join(lines) + r.choice(_ENDS))


def _damaged(r: random.Random, data: bytes) -> bytes:
    text = bytearray(data)
    for _ in range(r.choice((0, 0, 1, 2, 5))):
        if not text:
            break
        place = r.randrange(len(text))
        action = r.randrange(4)
        if action == 0:
            text[place] = r.randrange(256)
        elif action == 1:
            del text[place : place + r.randrange(1, 9)]
        elif action == 2:
            text[place:place] = bytes(r.randrange(256) for _ in range(r.randrange(1, 9)))
        else:
            del text[place:]
    return bytes(text)


def parquet_bytes(r: random.Random) -> bytes:
    """Return a small Parquet file of odd columns, often damaged."""
    n = r.randrange(6)
    numbers = [r.choice((0.5, -1.0, float("nan"), float("inf"), 1e300, None)) for _ in range(n)]
    kinds: dict[str, Callable[[], pa.Array]] = {
        "double": lambda: pa.array(numbers, pa.float64()),
        "float": lambda: pa.array(numbers, pa.float32()),
        "half": lambda: pa.array(np.array([r.random() for _ in range(n)], dtype=np.float16)),
        "int": lambda: pa.array([r.choice((0, 1, 2**62, None)) for _ in range(n)], pa.int64()),
        "bool": lambda: pa.array([r.choice((True, None)) for _ in range(n)], pa.bool_()),
        "text": lambda: pa.array([r.choice(("x", "1", None)) for _ in range(n)], pa.string()),
        "date": lambda: pa.array([r.choice((0, 10**8, None)) for _ in range(n)], pa.int32()).cast(
            pa.date32()
        ),
        "time": lambda: pa.array([r.choice((0, 2**62, None)) for _ in range(n)], pa.timestamp("ns")),
        "null": lambda: pa.nulls(n),
        "list": lambda: pa.array([[1.0]] * n, pa.list_(pa.float64())),
        "category": lambda: pa.array(["u"] * n).dictionary_encode(),
        "decimal": lambda: pa.array([None] * n, pa.decimal128(10, 2)),
    }
    columns = {name: kinds[r.choice(list(kinds))]() for name in r.sample(["a", "b", "c"], r.randrange(1, 4))}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression=r.choice(("none", "snappy", "gzip")))
    return _damaged(r, sink.getvalue())


def read_or_refuse(path: Path, r: random.Random) -> bool:
    """Open a table and release from it; return False when it was refused before anything was charged."""
    adjacency = r.choice(ADJACENCIES)
    study: PrivateData | None = None
    try:
        study = PrivateData(
            path,
            bounds={"a": (0.0, 1.0), **({"b": (0.0, 2.0)} if r.random() < 0.3 else {})},
            budget=dpm.Budget(1.0, 1e-3),
            adjacency=adjacency,
            datetimes=("b",) if r.random() < 0.1 else (),
            outside=r.choice(("clip", "ignore")),
            **r.choice(({}, {}, {"unit": "person", "person": "b"}, {"weights": "b", "max_weight": 2.0})),
        )
        at = [study.coordinate("a")]
        box = study.box(at)
        zero = 0.5 if adjacency == "replace" else 0.1
        design = LatticeDesign(("a",), *box, np.full(1, 0.5), 2, zero, 0.5, 3.0)
        surface = study.release_surface(design, at, epsilon=1.0, delta=1e-3, seed=1)
    except ReadingFailed:
        raise
    except PydpmodeError:
        # A file that turns out to be damaged while it is read has been charged for: that is the promise.
        entries = study.ledger.entries() if study is not None else ()
        if any(entry.status == "released" for entry in entries):
            raise RuntimeError("refused after a release") from None
        return False
    if not np.all(np.isfinite(surface.vector)):
        raise RuntimeError("a released number is not finite")
    return True


def _fuzz_files(name: str, suffix: str, make: Callable[[random.Random], bytes], inputs: int) -> Tally:
    tally = Tally(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{suffix}"
        for seed in range(inputs):
            r = random.Random(seed)
            path.write_bytes(make(r))
            attempt(tally, seed, lambda r=r: read_or_refuse(path, r))  # type: ignore[misc]
    return tally


def fuzz_csv(inputs: int) -> Tally:
    """Read CSV files."""
    return _fuzz_files("CSV files", ".csv", csv_bytes, inputs)


def fuzz_parquet(inputs: int) -> Tally:
    """Read Parquet files."""
    return _fuzz_files("Parquet files", ".parquet", parquet_bytes, inputs)
