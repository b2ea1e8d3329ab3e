"""Tables that are streamed: the same sums as in memory, one pass, bounded memory, nothing told."""

from __future__ import annotations

import decimal
import io
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import pydpmode as dpm
from pydpmode.errors import (
    DuplicateColumns,
    EmptyData,
    InvalidArgument,
    MissingDependency,
    NonNumericColumn,
    UnknownColumn,
    UnsupportedSource,
)
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy import private_data
from pydpmode.privacy.arrow_columns import order_fingerprint
from pydpmode.privacy.features import ZERO_WEIGHT
from pydpmode.privacy.grouped_release import DeclaredLevels
from pydpmode.privacy.private_data import PrivateData
from pydpmode.privacy.progress import progress_bar
from pydpmode.privacy.sources import open_source
from pydpmode.privacy.stream_sources import BATCH_ROWS, BatchTable

ROOT = Path(__file__).resolve().parents[3]
BUDGET = dpm.Budget(5.0, 1e-5)
BOUNDS = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
N = 1000
# A relation lives as long as its connection.
DUCKDB = duckdb.connect()
LAZY = hasattr(pl.LazyFrame, "collect_batches")


def table(n: int = N) -> pa.Table:
    rng = np.random.default_rng(5)
    a = rng.uniform(-0.1, 1.1, n)
    a[::50] = np.nan
    b = pa.array(rng.uniform(size=n).astype("f4"), mask=np.arange(n) % 33 == 0)
    return pa.table(
        {"a": a, "b": b, "who": [f"p{i % 41}" for i in range(n)], "w": np.arange(n) % 3, "b2": rng.random(n)}
    )


def parquet_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    whole = table()
    for part, start in enumerate(range(0, N, 300)):
        import pyarrow.parquet

        pyarrow.parquet.write_table(whole.slice(start, 300), folder / f"part{part}.parquet")
    return folder


def short_batches() -> pa.RecordBatchReader:
    whole = table()
    return pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches(max_chunksize=77))


SOURCES: dict[str, Any] = {
    "parquet folder": parquet_folder,
    "data set in memory": lambda _: ds.dataset(table()),
    "data set of a folder": lambda tmp_path: ds.dataset(parquet_folder(tmp_path)),
    "reader": lambda _: dpm.RowStream(short_batches(), n_rows=N),
    "scanner": lambda _: dpm.RowStream(ds.dataset(table()).scanner(), n_rows=N),
    "function": lambda _: dpm.RowStream(short_batches),
    "query": lambda _: DUCKDB.from_arrow(table()),
}
if LAZY:
    SOURCES["lazy frame"] = lambda _: pl.from_arrow(table()).lazy()
    SOURCES["lazy scan"] = lambda tmp_path: pl.scan_parquet(parquet_folder(tmp_path) / "*.parquet")


def design_of(study: PrivateData) -> tuple[LatticeDesign, list[Any]]:
    coordinates = [study.coordinate(name) for name in ("a", "b")]
    lower, upper = study.box(coordinates)
    return LatticeDesign(("a", "b"), lower, upper, [0.1, 0.1], 2, ZERO_WEIGHT[study.adjacency]), coordinates


def exact_sum(data: Any, **knobs: Any) -> tuple[np.ndarray, Any]:
    study = PrivateData(data, bounds=BOUNDS, budget=BUDGET, **knobs)
    design, coordinates = design_of(study)
    plan = study.plan(design, epsilon=1.0, delta=1e-6)
    return study._lattice_sum(plan, coordinates), plan


def release(study: PrivateData, **knobs: Any) -> Any:
    design, coordinates = design_of(study)
    return study.release_surface(design, coordinates, epsilon=1.0, delta=1e-6, **knobs)


# -- the same numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCES)
def test_a_stream_has_the_sum_of_the_table_in_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_data, "BLOCK_ROWS", 128)
    wanted, in_memory = exact_sum(table(), weights="w", max_weight=2)
    got, streamed = exact_sum(SOURCES[name](tmp_path), weights="w", max_weight=2)
    np.testing.assert_array_equal(got, wanted)
    # Where a query puts a row may depend on other rows: then every block counts for the margin.
    if name != "parquet folder":
        assert streamed.sensitivity.arithmetic > 5 * in_memory.sensitivity.arithmetic
        assert streamed.sensitivity.rounding == 8 * in_memory.sensitivity.rounding


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in ("reader", "scanner")])
def test_persons_of_a_stream_that_can_be_read_again(name: str, tmp_path: Path) -> None:
    knobs: dict[str, Any] = {"unit": "person", "person": "who"}
    wanted, _ = exact_sum(table(), **knobs)
    got, _ = exact_sum(SOURCES[name](tmp_path), **knobs)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", SOURCES)
def test_a_stream_says_its_schema_without_being_read(name: str, tmp_path: Path) -> None:
    data = SOURCES[name](tmp_path)
    opened = open_source(data)
    assert opened.names == ("a", "b", "who", "w", "b2")
    assert [opened.kind(column) for column in ("a", "b", "w")] == ["number"] * 3
    with pytest.raises(NonNumericColumn, match="who"):
        opened.kind("who")
    with pytest.raises(UnknownColumn, match="did you mean 'who'"):
        opened.kind("whom")
    # Looking at it took nothing away.
    assert open_source(data, columns=["b", "a"]).n_rows == N
    assert sum(block.shape[1] for block in open_source(data).blocks(["a"], 100)) == N


def test_a_model_takes_a_stream() -> None:
    fitted = [
        dpm.DensityModes(data, ["a", "b"], bounds=BOUNDS).fit(epsilon=2.0, delta=1e-6, seed=1)
        for data in (table(), dpm.RowStream(short_batches(), n_rows=N))
    ]
    # Below one block the margin is the same too, so the noise is.
    np.testing.assert_array_equal(fitted[0].surface.vector, fitted[1].surface.vector)


def test_times_and_long_batches() -> None:
    n = BATCH_ROWS + 5
    seconds = np.arange(n).astype("datetime64[s]")
    one = pa.table({"t": seconds})
    reader = pa.RecordBatchReader.from_batches(one.schema, one.to_batches())
    blocks = list(open_source(dpm.RowStream(reader, n_rows=n)).blocks(["t"], BATCH_ROWS))
    assert [block.shape for block in blocks] == [(1, BATCH_ROWS), (1, 5)]
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1)[0], np.arange(n))


# -- once and never again ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["reader", "scanner"])
def test_a_reader_that_is_used_up_is_refused_before_the_charge(kind: str, tmp_path: Path) -> None:
    data = SOURCES[kind](tmp_path)
    study = PrivateData(data, bounds=BOUNDS, budget=BUDGET)
    release(study)
    before = study.ledger.entries()
    with pytest.raises(UnsupportedSource, match=r"has been read already.*Nothing was charged"):
        release(study)
    # Also through another object, and whatever is put around the reader.
    for again in (data, dpm.RowStream(data._source, n_rows=N)):
        other = PrivateData(again, bounds=BOUNDS, budget=BUDGET)
        with pytest.raises(UnsupportedSource, match="has been read already"):
            release(other)
        assert other.ledger.entries() == ()
    assert study.ledger.entries() == before


def test_no_release_is_charged_without_that_check() -> None:
    source = Path(private_data.__file__).read_text(encoding="utf-8")
    assert source.count("_ledger.charge(") == 1


def test_a_reader_does_not_serve_what_takes_two_passes() -> None:
    stream = dpm.RowStream(short_batches(), n_rows=N)
    study = PrivateData(stream, bounds=BOUNDS, budget=BUDGET)
    scaled = dpm.DensityModes(study, ["a", "b"], bandwidth="private")
    with pytest.raises(UnsupportedSource, match="takes 2 passes"):
        scaled.fit(epsilon=1.0)
    with pytest.raises(InvalidArgument, match="grams"):
        dpm.DensityModes(study, ["a", "b"], bandwidth=0.1, mechanism="grams").fit(epsilon=1.0)
    persons = PrivateData(
        short_batches(),
        bounds=BOUNDS,
        budget=BUDGET,
        unit="person",
        person="who",
        adjacency="add_remove",
    )
    with pytest.raises(UnsupportedSource, match="takes 2 passes"):
        release(persons)
    with pytest.raises(UnsupportedSource, match="where persons are the unit"):
        PrivateData(short_batches(), bounds=BOUNDS, budget=BUDGET, unit="person", person="who")
    assert study.ledger.entries() == persons.ledger.entries() == ()
    release(study)


def test_the_number_of_rows_of_a_reader_is_stated_or_private() -> None:
    with pytest.raises(UnsupportedSource, match="does not say how many rows"):
        PrivateData(short_batches(), bounds=BOUNDS, budget=BUDGET)
    private = PrivateData(short_batches(), bounds=BOUNDS, budget=BUDGET, adjacency="add_remove")
    assert private.n_units is None
    assert release(private).total == pytest.approx(N * 0.95, rel=0.1)


@pytest.mark.parametrize("stated", [N - 1, N + 1, 10, 10 * N])
def test_another_number_of_rows_than_stated_fails(stated: int) -> None:
    study = PrivateData(dpm.RowStream(short_batches(), n_rows=stated), bounds=BOUNDS, budget=BUDGET)
    with pytest.raises(UnsupportedSource, match=f"than the {stated:,} that were stated"):
        release(study)
    assert [entry.status for entry in study.ledger.entries()] == ["charged, unfinished"]


def test_what_a_row_stream_is_made_of() -> None:
    with pytest.raises(UnsupportedSource, match="got list"):
        dpm.RowStream([1, 2])
    with pytest.raises(InvalidArgument, match="n_rows"):
        dpm.RowStream(short_batches(), n_rows=0)
    with pytest.raises(UnsupportedSource, match=r"must return a pyarrow\.RecordBatchReader, got Table"):
        open_source(dpm.RowStream(table))
    with pytest.raises(EmptyData):
        open_source(ds.dataset(table().slice(0, 0)))
    twice = DUCKDB.sql("select 1 as a, 2 as a")
    with pytest.raises(InvalidArgument, match="one name"):
        open_source(twice)
    with duckdb.connect() as closed:
        relation = closed.sql("select 1 as a")
    with pytest.raises(UnsupportedSource, match="keep its connection open"):
        open_source(relation)
    two = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int8()), ("a", pa.int8())]), [])
    with pytest.raises(DuplicateColumns):
        open_source(dpm.RowStream(two, n_rows=1))


def test_old_polars_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    if LAZY:
        monkeypatch.delattr(pl.LazyFrame, "collect_batches")
    with pytest.raises(MissingDependency, match=r"polars 1\.34 or newer"):
        open_source(pl.LazyFrame({"a": [1.0]}))


# -- nothing is told --------------------------------------------------------------------------------

CANARY = "314159.2653"


def broken_batches() -> pa.RecordBatchReader:
    schema = pa.schema([("a", pa.float64()), ("b", pa.float64())])

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"a": [0.5], "b": [0.5]}, schema=schema)
        raise ValueError(f"cannot convert {CANARY}")

    return pa.RecordBatchReader.from_batches(schema, batches())


def test_an_error_of_a_library_is_named_and_not_quoted() -> None:
    query = DUCKDB.sql(f"select cast(c as double) a, 0.5 b from (values ('1'), ('x{CANARY}')) t(c)")
    sources: dict[str, Any] = {"stream": dpm.RowStream(broken_batches), "query": query}
    if LAZY:
        text = pl.LazyFrame({"a": ["1", f"x{CANARY}"], "b": [0.5, 0.5]})
        sources["lazy frame"] = text.with_columns(pl.col("a").str.to_decimal(scale=1).cast(pl.Float64))
        sources["lazy frame"] = text.with_columns(pl.col("a").cast(pl.Float64))
    for what, data in sources.items():
        study = PrivateData(data, bounds=BOUNDS, budget=BUDGET, adjacency="add_remove")
        with pytest.raises(UnsupportedSource, match=f"this {what} failed") as caught:
            release(study)
        assert CANARY not in str(caught.value)
        assert [entry.status for entry in study.ledger.entries()] == ["charged, unfinished"]


def test_a_batch_of_another_schema_is_named() -> None:
    def open_pass(_: list[str]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"a": ["x"], "b": [0.5]})

    schema = pa.schema([("a", pa.float64()), ("b", pa.float64())])
    with pytest.raises(UnsupportedSource, match="column 'a' is double in the schema"):
        list(BatchTable("stream", schema, open_pass, count=1).blocks(["a"], 10))


def test_the_bar_shows_rows_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr("sys.stderr", shown)
    with progress_bar(10**9, True) as bar:
        bar.update(2 * 10**8)
        time.sleep(0.15)
        bar.update(3 * 10**8)
    told = re.search(r"500M/1\.00G \[(\d\d):(\d\d)<(\d\d):(\d\d)", shown.getvalue())
    assert told is not None
    passed, left = (60 * int(told[k]) + int(told[k + 1]) for k in (1, 3))
    # Half is done: what is left takes as long as it has taken, up to whole seconds.
    assert left <= 2 * passed + 1
    shown.seek(0)
    shown.truncate()
    stream = dpm.RowStream(short_batches, n_rows=N)
    release(PrivateData(stream, bounds=BOUNDS, budget=BUDGET, progress=True))
    assert "0.00/1.00k" in shown.getvalue()
    shown.seek(0)
    shown.truncate()
    for progress in (None, False):
        release(PrivateData(stream, bounds=BOUNDS, budget=BUDGET, progress=progress))
    assert shown.getvalue() == ""


# -- in a process of its own ------------------------------------------------------------------------

STREAM = """
import signal, sys, time
import numpy as np, pyarrow as pa
import pydpmode as dpm

# A shell's background jobs, and their children, are started with interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def stream(n, rows=2**17, pause=None):
    schema = pa.schema([("a", pa.float64()), ("b", pa.float64())])
    def batches():
        for start in range(0, n, rows):
            i = np.arange(start, min(start + rows, n), dtype=np.float64)
            yield pa.record_batch([pa.array(i * 0.618 % 1), pa.array(i * 0.7548 % 1)], schema=schema)
            if pause is not None and start:
                print("reading", flush=True)
                time.sleep(pause)
    return dpm.RowStream(pa.RecordBatchReader.from_batches(schema, batches()), n_rows=n)

def study(data, **knobs):
    return dpm.PrivateData(data, bounds={"a": (0, 1), "b": (0, 1)}, budget=dpm.Budget(5.0, 1e-5), **knobs)
"""


def start(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STREAM + code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_a_stream_larger_than_its_memory() -> None:
    n = 8_000_000
    process = start(
        "dpm.DensityModes(study(stream(300_000)), bandwidth=0.1).fit(epsilon=1.0)\n"
        "def peak():\n"
        "    lines = open('/proc/self/status')\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith('VmHWM')) / 1024\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "before = peak()\n"
        f"result = dpm.DensityModes(study(stream({n})), bandwidth=0.1).fit(epsilon=1.0)\n"
        "print(result.privacy.n_units, peak() - before)\n"
    )
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    rows, grown = out.split()
    assert int(rows) == n
    # The table itself is 122 MB.
    assert float(grown) < 60


def test_ctrl_c_leaves_the_ledger_charged_and_unfinished(tmp_path: Path) -> None:
    ledger = tmp_path / "study.ledger"
    process = start(
        f"s = study(stream(10**9, rows=10**5, pause=0.2), ledger={str(ledger)!r})\n"
        "dpm.DensityModes(s, bandwidth=0.1).fit(epsilon=1.0, label='long')\n"
        "print('released', flush=True)\n"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err
    assert "released" not in out
    after = PrivateData(np.zeros((9, 2)), columns=["a", "b"], bounds=BOUNDS, budget=BUDGET, ledger=ledger)
    assert [(e.charge.label, e.status) for e in after.ledger.entries()] == [("long", "charged, unfinished")]
    assert after.ledger.remaining() < BUDGET.epsilon


@pytest.mark.parametrize("how", ["person", "texts", "numbers"])
def test_another_order_in_a_later_pass_is_refused(how: str) -> None:
    """Persons and levels are joined to rows by their order: in another they are those of other rows."""
    whole = table()
    turns = iter(range(100))

    def study(same: bool) -> PrivateData:
        def opened() -> pa.RecordBatchReader:
            turn = next(turns)
            shown = whole if same else whole.take(np.roll(np.arange(N), turn))
            return shown.to_reader(max_chunksize=70 + turn)

        person: dict[str, Any] = {"unit": "person", "person": "who"} if how == "person" else {}
        return PrivateData(
            dpm.RowStream(opened),
            bounds=BOUNDS,
            budget=BUDGET,
            adjacency="add_remove",
            n_guess=N,
            n_max=10 * N,
            **person,
        )

    def release(data: PrivateData) -> None:
        at = [data.coordinate("a")]
        names = tuple(c.name for c in at)
        design = LatticeDesign(names, *data.box(at), np.full(1, 0.2), 2, ZERO_WEIGHT["add_remove"])
        if how == "person":
            data.release_surface(design, at, epsilon=1.0, delta=1e-6)
        else:
            levels = DeclaredLevels(*(("who", ("p1", "p2")) if how == "texts" else ("w", (0, 1, 2))))
            data.release_grouped_surfaces(design, at, levels, epsilon=1.0, delta=1e-6)

    release(study(same=True))
    restless = study(same=False)
    with pytest.raises(UnsupportedSource, match="another order"):
        release(restless)
    # What joins nothing needs no order.
    if how != "person":
        dpm.DensityModes(restless, "a", bandwidth=0.2).fit(epsilon=1.0)


@pytest.mark.parametrize("latest", ["11:00:00", "24:00:00"])
def test_times_of_a_day_as_identifiers(latest: str) -> None:
    """24:00 is a time to DuckDB and not to Python: one such cell must not decide."""
    query = DUCKDB.sql(
        f"select 0.5::double a, 0.5::double b, t from (values (time '10:00:00'), (time '{latest}')) v(t)"
    )
    study = PrivateData(query, bounds=BOUNDS, budget=BUDGET, unit="person", person="t")
    assert study.n_units == 2
    release(study)


@pytest.mark.parametrize(
    "private", [{"adjacency": "add_remove", "n_guess": N}, {"unit": "person", "person": "who"}]
)
def test_a_private_number_of_rows_cannot_be_stated(private: dict[str, Any]) -> None:
    """A pass that fails unless the number is right would tell it exactly, for nothing."""
    for n in (N, N + 1):
        stream = dpm.RowStream(short_batches, n_rows=n)
        with pytest.raises(InvalidArgument, match=rf"RowStream\(n_rows={n}\) states the number of rows"):
            PrivateData(stream, bounds=BOUNDS, budget=BUDGET, **private)


def test_a_fingerprint_of_an_order_does_not_depend_on_the_batches() -> None:
    cells: list[Any] = [
        pa.array([3, None, 1, 2**40, 0]),
        pa.array([3.5, None, float("nan"), -0.0, 1.0]),
        pa.array([True, None, False, True, False]),
        pa.array(["a", None, "b", "", "a"]),
        pa.array(["a", None, "b", "", "a"]).dictionary_encode(),
        pa.array([1, None, 3, 4, 5], pa.timestamp("us")),
        pa.array([1, None, 3, 86_400_000_000, 5], pa.time64("us")),
        pa.array([1, None, 3, 86_400, 5], pa.time32("s")),
        pa.array([b"x", None, b"", b"y", b"z"]),
    ]
    for array in cells:
        once = order_fingerprint(array, 0)
        for cut in range(1, 5):
            parts = order_fingerprint(array[:cut], 0) + order_fingerprint(array[cut:], cut)
            assert parts % 2**64 == once
        assert order_fingerprint(array.take(pa.array([1, 0, 2, 3, 4])), 0) != once


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([2**60, 2**60 + 1, None, 0], pa.int64()),
        pa.array([2**64 - 1, 2**64 - 2, None, 0], pa.uint64()),
        pa.array([decimal.Decimal(10**30), decimal.Decimal(10**30 + 1), None, decimal.Decimal(0)]),
        pa.array([10**15, 10**15 + 1, None, 0], pa.timestamp("ns")),
        pa.array([0.5, 0.25, None, 0.0]),
        pa.array(["a\0b", "a\0c", None, ""]),
    ],
    ids=lambda ids: str(ids.type),
)
def test_orders_differ_where_any_two_rows_are_exchanged(ids: Any) -> None:
    """Whole numbers beyond 2^53 too, which are alike as floats; borders of batches change nothing."""
    whole = order_fingerprint(ids, 5)
    found = {whole % 2**64}
    for one, other in itertools.combinations(range(4), 2):
        place = list(range(4))
        place[one], place[other] = other, one
        found.add(order_fingerprint(ids.take(pa.array(place)), 5) % 2**64)
    assert len(found) == 7
    parts = order_fingerprint(ids[:2], 5) + order_fingerprint(ids[2:], 7)
    assert parts % 2**64 == whole % 2**64
