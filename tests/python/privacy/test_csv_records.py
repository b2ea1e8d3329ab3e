"""CSV: what a record is, and what a cell is, whatever stands beside it."""

from __future__ import annotations

import csv
import datetime
import io
import math
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pydpmode.errors import EmptyData, UnknownColumn, UnsupportedSource
from pydpmode.models.density_modes import DensityModes
from pydpmode.privacy import csv_records
from pydpmode.privacy.sources import open_source

pa = pytest.importorskip("pyarrow")

NAN, INF = math.nan, math.inf
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def write(tmp_path):
    """Return a function that writes bytes (or text) to a file and returns its path."""

    def write_file(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(params=[1, 2, 3, 7, 1 << 20])
def chunk(request, monkeypatch):
    """Read CSV files in chunks of so many bytes."""
    monkeypatch.setattr(csv_records, "_CHUNK", request.param)
    return request.param


def values(table, columns=None, rows=1000):
    return np.hstack(list(table.blocks(columns or table.names, rows)))


def same(got, wanted):
    np.testing.assert_array_equal(got, np.atleast_2d(np.asarray(wanted, dtype=float)))


# -- records -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "a", "b"),
    [
        ("a,b\n1,2\n3,4", [1, 3], [2, 4]),
        ("a,b\r\n1,2\r\n3,4\r\n", [1, 3], [2, 4]),
        ("a,b\r1,2\r3,4\r", [1, 3], [2, 4]),
        ("\ufeffa,b\n1,2\n", [1], [2]),
        ('"a","b"\n"1","2"\n', [1], [2]),
        ('a,b\n"1\n",2\n3," 4\r\n"\n', [1, 3], [2, 4]),
        ('a,b\n"x""y\n,z",2\n3,4\n', [NAN, 3], [2, 4]),
        ("a,b\n1\n1,2,3\n,\n\n5,6\n", [NAN, NAN, NAN, NAN, 5], [NAN, NAN, NAN, NAN, 6]),
        ('a,b\n5" pipe,2\n3,4"\n7,8\n', [NAN, 3, 7], [2, NAN, 8]),
        ('a,b\n"1"2,3\n4,5\n', [NAN, 4], [3, 5]),
        ('a,b\n1,2\n3,"4\n5,6\n', [1, NAN], [2, NAN]),
        ("a,b\n1,2\n\n\n", [1, NAN, NAN], [2, NAN, NAN]),
        (b"a,b\n\xff\xfe,2\n3,\x00\n5,6\n", [NAN, 3, 5], [2, NAN, 6]),
    ],
)
def test_records(write, chunk, content, a, b):
    table = open_source(write(content))
    assert table.n_rows == len(a)
    same(values(table), [a, b])


def test_an_empty_line_is_a_missing_record_of_one_column(write, chunk):
    table = open_source(write('a\n1\n\n3\n""\n\n'))
    assert table.n_rows == 5
    same(values(table), [1, NAN, 3, NAN, NAN])


@given(
    content=st.one_of(st.binary(max_size=200), st.text(alphabet='",\r\n a1.eé', max_size=60).map(str.encode)),
    size=st.integers(1, 9),
)
@FUZZ
def test_any_bytes_are_read_without_a_crash_and_one_row_a_record(tmp_path, content, size):
    path = tmp_path / "fuzz.csv"
    path.write_bytes(b"a,b\n" + content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "_CHUNK", size)
        # The standard library's reader is the reference for what a record and a field are.
        wanted = list(csv.reader(io.StringIO(content.decode("latin-1"), newline="")))
        if not wanted:
            with pytest.raises(EmptyData):
                open_source(path)
            return
        table = open_source(path)
        assert table.n_rows == len(wanted)
        got = values(table, rows=3)
        assert got.shape == (2, len(wanted))
        whole = np.array([len(record) == 2 for record in wanted])
        assert np.isnan(got[:, ~whole]).all()
        codes = table.codes("a")
        assert codes.shape == (len(wanted),)
        keys = [record[0].strip(" \t\n\v\f\r") if len(record) == 2 else "" for record in wanted]
        for key, code, ok in zip(keys, codes, whole, strict=True):
            # Bytes after a closing quote are not unquoted here: compare the plain keys only.
            if ok and key and '"' not in key and content.count(b'"') == 0:
                assert [k == key for k in keys] == (codes == code).tolist()


def written(rows):
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["a", "b", "id"])
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", errors="surrogatepass")


TRUTH = st.sampled_from(["True", "False", "TRUE", "false", " true", "Truthful"])
CELL = st.one_of(
    TRUTH, st.text(max_size=12), st.text(alphabet='",\r\n\t 1e', max_size=8), st.floats().map(repr)
)


@given(
    rows=st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=8),
    odd=st.tuples(CELL, CELL, CELL),
    data=st.data(),
)
@FUZZ
def test_the_values_of_one_record_never_change_another(tmp_path, rows, odd, data):
    place = data.draw(st.integers(0, len(rows) - 1))
    path = tmp_path / "neighbour.csv"
    read = []
    for table_rows in (rows, [*rows[:place], odd, *rows[place + 1 :]]):
        path.write_bytes(written(table_rows))
        table = open_source(path)
        assert table.n_rows == len(rows)
        read.append((values(table, ["a", "b"], rows=2), table.codes("id")))
    others = np.arange(len(rows)) != place
    same(read[0][0][:, others], read[1][0][:, others])
    first, second = (codes[others] for _, codes in read)
    np.testing.assert_array_equal(first[:, None] == first, second[:, None] == second)


@given(
    rows=st.lists(st.tuples(st.floats(), st.floats(allow_nan=False), st.integers()), min_size=1, max_size=20),
    per_block=st.integers(1, 9),
)
@FUZZ
def test_numbers_survive_a_round_trip(tmp_path, rows, per_block):
    path = tmp_path / "numbers.csv"
    path.write_bytes(written([(repr(a), repr(b), c) for a, b, c in rows]))
    blocks = list(open_source(path).blocks(["a", "b", "id"], per_block))
    assert [block.shape[1] for block in blocks[:-1]] == [per_block] * (len(blocks) - 1)
    same(np.hstack(blocks), np.array([(a, b, float(c)) for a, b, c in rows]).T)


# -- cells --------------------------------------------------------------------------------------

NUMBER_CELLS = {
    "1": 1.0,
    "-1.5": -1.5,
    "+3": 3.0,
    "1e5": 1e5,
    "1E+05": 1e5,
    "1.e-2": 0.01,
    ".5": 0.5,
    "5.": 5.0,
    "007": 7.0,
    " 12 ": 12.0,
    "\t12": 12.0,
    '" 12"': 12.0,
    "inf": INF,
    "-Infinity": -INF,
    "+INF": INF,
    "1e400": INF,
    "-1e400": -INF,
    "1e-400": 0.0,
    "9" * 400: INF,
    "0." + "0" * 400 + "1": 0.0,
    "1" + "0" * 45 + "e-45": 1.0,
    "0.1000000000000000055511151231257827021181583404541015625": 0.1,
    "179769313486231570814527423731704356798070e267": 1.797693134862315708e308,
    "True": 1.0,
    "False": 0.0,
    "TRUE": 1.0,
    "FALSE": 0.0,
    "true": 1.0,
    "fAlSe": 0.0,
    " true ": 1.0,
    '"False"': 0.0,
}
MISSING_CELLS = [
    *(
        "",
        " ",
        "nan",
        "NaN",
        "-nan",
        "NA",
        "null",
        "None",
        "?",
        "-",
        "+",
        ".",
        "e5",
        "1e",
        "1_000",
        "1 000",
        "0x10",
    ),
    *(
        "1,5",
        "1d5",
        "12kg",
        "$3",
        "--3",
        "+-3",
        "nan(ab)",
        "infin",
        "T",
        "F",
        "yes",
        "truee",
        "+true",
        "True False",
        "٣",
        "½",
        "1\u00a0",
        "2020-01-01",
        "1\x00",
    ),
    *("1" * 513, " " * 600 + "1", '1"', "1;2"),
]


def quoted(cell):
    return f'"{cell}"' if "," in cell else cell


def test_cells_are_numbers_or_missing(write):
    cells = [*NUMBER_CELLS, *map(quoted, MISSING_CELLS)]
    table = open_source(write("a,b\n" + "".join(f"{cell},1\n" for cell in cells)))
    same(values(table, ["a"]), [*NUMBER_CELLS.values(), *([NAN] * len(MISSING_CELLS))])


@pytest.mark.parametrize("cell", [*NUMBER_CELLS, *MISSING_CELLS])
def test_a_cell_reads_the_same_whatever_is_beside_it(write, cell):
    alone = values(open_source(write(f"a,b\n{quoted(cell)},1\n")), ["a"])
    same(alone, NUMBER_CELLS.get(cell, NAN))


@pytest.mark.parametrize("words", [("True", "False"), ("TRUE", "FALSE"), ("true", "false")])
def test_truth_values_alone_are_a_column_of_numbers(write, chunk, words):
    yes, no = words
    table = open_source(write(f"a,b\n1,{yes}\n2,{no}\n3,\n4,maybe\n5,{yes}\n"))
    assert table.kind("b") == "number"
    same(values(table, ["b"], rows=2), [1, 0, NAN, NAN, 1])


@pytest.mark.parametrize("style", ["pandas", "R"])
def test_a_table_with_truth_values_is_released_as_with_ones_and_zeros(tmp_path, style):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"age": rng.normal(40, 10, 500), "member": rng.random(500) < 0.4})
    words = rows.assign(member=rows["member"].map({True: "TRUE", False: "FALSE"})) if style == "R" else rows
    words.to_csv(tmp_path / "words.csv", index=False)
    rows.assign(member=rows["member"].astype(int)).to_csv(tmp_path / "numbers.csv", index=False)
    bounds = {"age": (0, 100), "member": (0, 1)}
    found = [
        DensityModes(tmp_path / f"{name}.csv", bounds=bounds).fit(epsilon=2, delta=1e-5, seed=1)
        for name in ("words", "numbers")
    ]
    assert found[0].n_modes
    pd.testing.assert_frame_equal(found[0].modes, found[1].modes)
    assert found[0].warnings == found[1].warnings


def test_a_first_line_of_truth_values_is_no_header(write):
    with pytest.raises(UnsupportedSource, match="no header line"):
        open_source(write("True,False\nFalse,True\n"))


def test_an_older_arrow_that_reads_fewer_spellings_gives_the_same(write, monkeypatch):
    path = write("a,b\n" + "".join(f"{cell},1\n" for cell in NUMBER_CELLS))
    wanted = values(open_source(path), ["a"])

    class Refusing:
        """An array whose cast fails as the whole of a block does in Arrow."""

        def __init__(self, array):
            self._array = array

        def cast(self, dtype):
            raise pa.ArrowInvalid("no")

    class Pyarrow:
        def __getattr__(self, name):
            return getattr(pa, name)

        class Array:
            @staticmethod
            def from_buffers(dtype, length, buffers, **options):
                array = pa.Array.from_buffers(dtype, length, buffers, **options)
                return array if buffers[0] is None else Refusing(array)

    monkeypatch.setattr(csv_records, "import_pyarrow", Pyarrow)
    same(values(open_source(path), ["a"]), wanted)


DATE_CELLS = {
    "1970-01-02": 86400.0,
    "2020-02-29": 1582934400.0,
    "2020-01-01T12:00": 1577880000.0,
    "2020-01-01 12:00:00": 1577880000.0,
    "2020-01-01T12:00:00Z": 1577880000.0,
    "2020-01-01T12:00:00.250": 1577880000.25,
    "2020-01-01T12:00:00,5+01:00": 1577876400.5,
    " 2020-01-01T12:00-0530 ": 1577899800.0,
    "2020-01-01T12:00:00+02": 1577872800.0,
    "0001-01-01": -62135596800.0,
    "9999-12-31": 253402214400.0,
}
NOT_DATES = [
    "",
    "2020",
    "2020-1-1",
    "01/02/2020",
    "2019-02-29",
    "2020-13-01",
    "2020-00-01",
    "2020-01-00",
    "2020-01-32",
]
NOT_DATES += [
    "2020-01-01T24:00",
    "2020-01-01T12:60",
    "2020-01-01T12:00:60",
    "2020-01-01T12",
    "now",
    "1577880000",
    "é",
]
NOT_DATES += ["2020-01-01T12:00+24:00", "2020-01-01T12:00+01:60", "2020-01-01Z"]


def test_declared_datetimes_are_seconds_or_missing(write):
    cells = [*DATE_CELLS, *NOT_DATES]
    table = open_source(write("t,b\n" + "".join(f"{quoted(cell)},1\n" for cell in cells)), datetimes=["t"])
    assert (table.kind("t"), table.kind("b")) == ("datetime", "number")
    same(values(table, ["t"]), [*DATE_CELLS.values(), *([NAN] * len(NOT_DATES))])
    same(values(table, ["b"]), np.ones(len(cells)))


def test_declared_datetimes_must_be_columns(write):
    with pytest.raises(UnknownColumn, match="'u'"):
        open_source(write("t,b\n1,2\n"), datetimes=["u"])


@given(st.lists(st.datetimes(datetime.datetime(1, 1, 1)), min_size=1, max_size=10))
@FUZZ
def test_datetimes_agree_with_the_standard_library(tmp_path, moments):
    path = tmp_path / "moments.csv"
    path.write_text("t\n" + "\n".join(moment.isoformat() for moment in moments))
    epoch = datetime.datetime(1970, 1, 1)
    wanted = [
        (moment - epoch) // datetime.timedelta(seconds=1) + moment.microsecond / 1e6 for moment in moments
    ]
    same(values(open_source(path, datetimes=["t"])), wanted)


def test_identifiers_of_a_csv_file(write, chunk):
    cells = ["p7", '"p7"', " p7 ", "", '""', '"a""b"', 'a"b', "é", "7", "07", "p7"]
    table = open_source(write("id,a\n" + "".join(f"{cell},1\n" for cell in cells) + "short\n"))
    assert table.codes("id").tolist() == [0, 0, 0, -1, -1, 1, 1, 2, 3, 4, 0, -1]


# -- size ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "junk", ["x" * 50, '"' + "x,\n" * 20 + '"', '"' + '""' * 30 + '"', "," * 50, 'x"' * 30]
)
def test_a_record_that_is_too_long_is_missing_and_keeps_its_place(write, chunk, junk, monkeypatch):
    monkeypatch.setattr(csv_records, "LONGEST_RECORD", 20)
    table = open_source(write(f"a,b\n1,2\n{junk},5\n3,4\n5,{junk}\n6,7\n"))
    assert table.n_rows == 5
    same(values(table)[:, [0, 2, 4]], [[1, 3, 6], [2, 4, 7]])
    # Missing by its own length, wherever the chunks of the file begin and end.
    assert np.isnan(values(table)[:, [1, 3]]).all()


@pytest.mark.parametrize("cell", ["x", '"', 'x"', ",", '""', "\n", "9", " "])
def test_a_hostile_file_takes_bounded_time_and_memory(write, cell):
    start = time.process_time()
    path = write("a,b\n1,2\n" + cell * (6_000_000 // len(cell)) + "\n3,4\n")
    table = open_source(path)
    tracemalloc.start()
    parts = 0
    for block in table.blocks(["a", "b"], 1 << 17):
        parts += block.shape[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert parts == table.n_rows
    assert peak < 400e6
    assert time.process_time() - start < 20


def test_memory_does_not_grow_with_the_file(write):
    line = b"".join(b"%d,%d.5\n" % (i % 90, i) for i in range(20000))
    peaks = []
    for repeats in (10, 40):
        table = open_source(write(b"a,b\n" + line * repeats))
        assert table.n_rows == 20000 * repeats
        tracemalloc.start()
        for _ in table.blocks(["a", "b"], 1 << 14):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 1e6
