"""What fails while rows are read carries none of them: not in its text, its frames, or earlier errors."""

from __future__ import annotations

import gzip
import logging
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from audits import onlooker, stand_in_device
from pydpmode.cli import main
from pydpmode.errors import ReadingFailed, UnsupportedSource
from pydpmode.privacy import bounds, devices, grams, grouped_release, private_data, quantiles
from pydpmode.privacy.row_errors import reading_rows

CANARIES = (271.8281828459045, 314.1592653589793, 161.8033988749895)
BOUNDS = {"value": (100.0, 400.0)}
PACKAGE = str(Path(dpm.__file__).parent)


def table() -> pd.DataFrame:
    values = np.random.default_rng(0).uniform(150, 320, 1500)
    values[:3] = CANARIES
    return pd.DataFrame({"value": values})


def chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__]
    return found


def blobs_of(trace: TracebackType | None) -> list[bytes]:
    """Return every variable of the package's frames, as text and as bytes."""
    out = []
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_filename.startswith(PACKAGE):
            for value in frame.f_locals.values():
                out.append(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
        trace = trace.tb_next
    return out


def assert_no_canary(error: BaseException) -> None:
    blobs = [b for one in chain(error) for b in blobs_of(one.__traceback__)]
    # With the source lines and all variables, as an error tracker would send them.
    blobs += ["".join(traceback.format_exception(one)).encode() for one in chain(error)]
    blobs += [repr(one.args).encode() for one in chain(error)]
    for value in CANARIES:
        for mark in (np.float64(value).tobytes(), repr(value)[:8].encode()):
            assert not any(mark in blob for blob in blobs)


def plain(*_: Any, **__: Any) -> Any:
    raise MemoryError


def chained(_: Any, values: np.ndarray, *__: Any) -> Any:
    first = float(values[0, 0])
    try:
        raise KeyError(first)
    except KeyError as problem:
        raise ValueError(f"cannot use {first}") from problem


def implicit(_: Any, values: np.ndarray, *__: Any) -> Any:
    first = float(values[0, 0])
    try:
        return {}[first]
    except KeyError:
        raise MemoryError from None


FIT: dict[str, dict[str, Any]] = {
    "surface": {},
    "private": {"bandwidth": "private"},
    "grams": {"mechanism": "grams"},
}


@pytest.mark.parametrize(
    ("kind", "owner", "name", "broken"),
    [
        ("surface", grouped_release, "feature_sum", plain),
        ("surface", grouped_release, "feature_sum", chained),
        ("surface", grouped_release, "feature_sum", implicit),
        ("surface", private_data, "add_noise", plain),
        ("surface", bounds, "clip_block", plain),
        ("private", quantiles, "exponential_draw", plain),
        ("private", private_data, "cell_weights", plain),
        ("grams", grams, "_noise", plain),
        ("grams", grams, "stabilised_score", plain),
    ],
)
def test_a_failure_anywhere_in_a_pass(
    kind: str, owner: Any, name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, broken)
    study = dpm.PrivateData(table(), bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-6))
    with pytest.raises((MemoryError, ReadingFailed)) as caught:
        dpm.DensityModes(study, **FIT[kind]).fit(epsilon=0.5)
    assert_no_canary(caught.value)
    assert chain(caught.value) == [caught.value]
    assert [entry.status for entry in study.ledger.entries()] == ["charged, unfinished"]


@pytest.mark.parametrize("kind", [ValueError, MemoryError])
def test_a_device_that_fails_with_rows_on_it(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def to_device(values: Any) -> Any:
        # Made-up points, before the charge, go through.
        if np.any(np.asarray(values) == CANARIES[0]):
            raise kind(f"cannot copy {CANARIES[0]}")
        return stand_in_device.on_device(values)

    monkeypatch.setattr(devices, "cupy_module", lambda: stand_in_device.module({"asarray": to_device}))
    study = dpm.PrivateData(table(), bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-6), device="cuda")
    with pytest.raises((MemoryError, ReadingFailed)) as caught:
        dpm.DensityModes(study).fit(epsilon=0.5)
    assert_no_canary(caught.value)
    assert chain(caught.value) == [caught.value]
    assert [entry.status for entry in study.ledger.entries()] == ["charged, unfinished"]


def test_the_text_of_another_librarys_error_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_release, "feature_sum", chained)
    with pytest.raises(
        ReadingFailed, match="ValueError while rows were read; its text is withheld"
    ) as caught:
        dpm.DensityModes(table(), bounds=BOUNDS).fit(epsilon=0.5, delta=1e-6)
    assert_no_canary(caught.value)


def test_own_errors_and_interrupts_keep_their_kind() -> None:
    # The operating system's errors have a number.
    for problem in (FileNotFoundError(2, "said so"), PermissionError(13, "said so")):
        own = (UnsupportedSource, MemoryError, KeyboardInterrupt, SystemExit)
        for error in (problem, *(kind("said so") for kind in own)):

            def fail(error: BaseException = error) -> None:
                raise error

            with pytest.raises(type(error), match="said so"):
                reading_rows(fail)


class Panic(BaseException):
    """As the panics of libraries written in Rust: no Exception."""


@pytest.mark.parametrize(
    ("problem", "kind", "words"),
    [
        (OSError("CRC check failed 0x10f2c 271.8281"), ReadingFailed, "OSError while rows were read"),
        (gzip.BadGzipFile("Not a gzipped file (b'271.8281')"), ReadingFailed, "BadGzipFile while rows"),
        (Panic("failed for value 271.8281"), ReadingFailed, "Panic while rows were read"),
        (OSError(28, "No space left on device"), OSError, "No space left"),
    ],
)
def test_texts_of_libraries_are_withheld_whatever_their_kind(
    problem: BaseException, kind: type[BaseException], words: str
) -> None:
    def fail() -> None:
        raise problem

    with pytest.raises(kind, match=words) as caught:
        reading_rows(fail)
    assert "271.8281" not in str(caught.value)


@pytest.mark.parametrize("person", [False, True])
def test_what_does_not_fit_into_memory_does_not_tell_how_many_rows(
    person: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under add/remove the number of rows is private, and NumPy's error tells the shape."""

    def too_large(*_: Any, **__: Any) -> Any:
        # More than any machine has: NumPy's own error.
        return np.empty((271828182, 10**9))

    more = {"unit": "person", "person": "who"} if person else {}
    study = dpm.PrivateData(
        table().assign(who="x"),
        bounds=BOUNDS,
        budget=dpm.Budget(1.0, 1e-6),
        adjacency="add_remove",
        n_guess=1000,
        **more,
    )
    monkeypatch.setattr(
        *((private_data, "person_votes") if person else (grouped_release, "feature_sum")), too_large
    )
    with pytest.raises(MemoryError, match="memory ran out while rows were read") as caught:
        dpm.DensityModes(study).fit(epsilon=0.5)
    assert "271828182" not in str(caught.value)
    assert type(caught.value) is MemoryError
    assert not vars(caught.value)


class Shy(float):
    """A number that tells itself when it is read."""

    def __float__(self) -> float:
        raise RuntimeError(float.__repr__(self))


class Untouchable:
    def __init__(self, value: float) -> None:
        self.value = value

    def __hash__(self) -> int:
        raise ValueError(self.value)


def test_objects_that_tell_themselves() -> None:
    with pytest.raises(ReadingFailed) as caught:
        dpm.DensityModes([Shy(v) for v in table()["value"]], bounds=(100, 400)).fit(epsilon=1.0, delta=1e-6)
    assert "withheld" in str(caught.value)
    assert_no_canary(caught.value)
    persons = table().assign(who=[Untouchable(v) for v in table()["value"]])
    with pytest.raises(ReadingFailed) as caught:
        dpm.PrivateData(persons, bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-6), unit="person", person="who")
    assert "".join(traceback.format_exception(caught.value)).count("271.8281") == 0


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_damaged_files(adjacency: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    text = gzip.compress(table().to_csv(index=False).encode())
    path.write_bytes(text[: len(text) // 2])
    more = {"n_guess": 1500} if adjacency == "add_remove" else {}
    with pytest.raises(UnsupportedSource) as caught:
        dpm.PrivateData(path, bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-6), adjacency=adjacency, **more)
    assert_no_canary(caught.value)
    whole = tmp_path / "t.parquet"
    table().to_parquet(whole, row_group_size=100)
    data = bytearray(whole.read_bytes())
    data[4:404] = b"\x07" * 400
    whole.write_bytes(data)
    study = dpm.PrivateData(whole, bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-6), adjacency=adjacency, **more)
    with pytest.raises(UnsupportedSource) as caught:
        dpm.DensityModes(study).fit(epsilon=1.0)
    assert_no_canary(caught.value)


def test_a_half_made_object_can_be_shown() -> None:
    """Tools that show a traceback's variables must not fail on the object whose making failed."""
    made = dpm.PrivateData.__new__(dpm.PrivateData)
    assert repr(made) == "PrivateData(not opened)"


@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
@pytest.mark.parametrize("form", ["text", "html", "latex", "csv"])
def test_the_command_line_and_pictures_hold_no_row(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "t.csv"
    table().to_csv(data, index=False)

    def look() -> dict[str, bytes]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        caplog.clear()
        arguments = ["modes", str(data), "--bounds", "value=100:400", "--epsilon", "1", "--delta", "1e-6"]
        more = ["--format", form, "--plot", str(folder / "p.svg"), "--json", str(folder / "r.json")]
        more += ["--surface", str(folder / "s.json"), "--ledger", str(folder / "l.jsonl")]
        with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert main([*arguments, *more]) == 0
        shown = capsys.readouterr()
        texts = {"out": shown.out, "err": shown.err, "log": caplog.text}
        texts |= {f"warning {i}": str(w.message) for i, w in enumerate(caught)}
        blobs = {where: text.encode() for where, text in texts.items()}
        return blobs | {path.name: path.read_bytes() for path in folder.iterdir()}

    assert len(look()) > 7
    assert not onlooker.always_shown(look, CANARIES)
