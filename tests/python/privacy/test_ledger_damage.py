"""A ledger file that belongs to another study, or is not what was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pydpmode.budget import Budget
from pydpmode.errors import LedgerDamaged, LedgerError, LedgerMismatch
from pydpmode.privacy import event_log
from pydpmode.privacy.accounting import Charge, gaussian_mu
from pydpmode.privacy.ledger import Ledger

BUDGET = Budget(1.0, 1e-6)


def gaussian(epsilon: float) -> Charge:
    return Charge("look", "surface", epsilon, 1e-6, gaussian_mus=(gaussian_mu(epsilon, 1e-6),))


def opened(path: Path) -> Ledger:
    return Ledger.open(path, BUDGET, "replace", "row")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.jsonl"


MISMATCHES = [
    (Budget(2.0, 1e-6), "replace", "row", "budget"),
    (Budget(1.0, 1e-7), "replace", "row", "budget"),
    (BUDGET, "add_remove", "row", "adjacency"),
    (BUDGET, "replace", "person", "unit"),
]


class TestMismatch:
    @pytest.mark.parametrize(("budget", "adjacency", "unit", "named"), MISMATCHES)
    def test_another_study(self, path: Path, budget: Budget, adjacency: str, unit: str, named: str) -> None:
        opened(path)
        before = path.read_bytes()
        with pytest.raises(LedgerMismatch, match=named):
            Ledger.open(path, budget, adjacency, unit)  # type: ignore[arg-type]
        assert path.read_bytes() == before

    def test_a_later_format(self, path: Path) -> None:
        header = {"kind": "header", "format": "pydpmode ledger", "version": 2}
        path.write_bytes(event_log._line(header, "")[0])
        with pytest.raises(LedgerError, match="another version"):
            opened(path)

    @pytest.mark.parametrize("event", [{"kind": "charge", "id": "a"}, {"kind": "header", "format": "x"}])
    def test_a_line_of_something_else(self, path: Path, event: dict[str, str]) -> None:
        opened(path)
        log = event_log.FileLog(path, 1.0)
        if event["kind"] == "header":
            path.write_bytes(event_log._line(event, "")[0])
            path.with_name("study.jsonl.head").unlink()
        else:
            log.append(event, log.read())
        with pytest.raises(LedgerDamaged, match=r"line 1|line 2"):
            opened(path).entries()


def edit(old: bytes, new: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [line.replace(old, new) for line in lines]


def other_last_digit(line: bytes) -> bytes:
    body, digit, end = line[:-4], line[-4:-3], line[-3:]
    return body + (b"1" if digit == b"0" else b"0") + end


# Five lines: the header, two charges, each released. Damage -> the line that is named.
DAMAGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int]] = {
    "truncated in a line": (lambda lines: [*lines[:4], lines[4][:-9]], 5),
    "last newline lost": (lambda lines: [*lines[:4], lines[4][:-1]], 5),
    "last line lost": (lambda lines: lines[:4], 5),
    "all but the header lost": (lambda lines: lines[:1], 2),
    "emptied": (lambda lines: [], 1),
    "first line lost": (lambda lines: lines[1:], 1),
    "middle line lost": (lambda lines: [*lines[:1], *lines[2:]], 2),
    "reordered": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
    "repeated": (lambda lines: [*lines, lines[-1]], 6),
    "charge repeated": (lambda lines: [*lines[:2], lines[1], *lines[2:]], 3),
    "epsilon edited": (edit(b'"epsilon":0.125', b'"epsilon":0.001'), 2),
    "budget edited": (edit(b'"epsilon":1.0', b'"epsilon":9.0'), 1),
    "label edited": (edit(b"look", b"Look"), 2),
    "checksum edited": (lambda lines: [*lines[:2], other_last_digit(lines[2]), *lines[3:]], 3),
    "checksum removed": (lambda lines: [*lines[:4], lines[4].split(b',"checksum"')[0] + b"}\n"], 5),
    "blank line": (lambda lines: [*lines[:3], b"\n", *lines[3:]], 4),
    "Windows line ends": (edit(b"\n", b"\r\n"), 1),
    "spaces": (edit(b":", b": "), 1),
    "binary": (lambda lines: [*lines[:2], b"\x00\xff\xfe\n", *lines[3:]], 3),
    "forged line": (lambda lines: [*lines, b'{"kind":"charge"}\n'], 6),
    "another file": (lambda lines: [b"age,wage\n", b"31,50000\n"], 1),
}


class TestDamage:
    @pytest.fixture
    def written(self, path: Path) -> Path:
        book = opened(path)
        for epsilon in (0.125, 0.25):
            book.mark_released(book.charge(gaussian(epsilon)))
        return path

    @pytest.mark.parametrize("name", DAMAGES)
    def test_damage_is_found_by_all_and_nothing_is_charged(self, written: Path, name: str) -> None:
        watching = opened(written)
        change, number = DAMAGES[name]
        whole = written.read_bytes()
        damaged = b"".join(change(whole.splitlines(keepends=True)))
        assert damaged != whole
        written.write_bytes(damaged)
        expected = rf"line {number}\b.*Nothing was read"
        with pytest.raises(LedgerDamaged, match=expected):
            opened(written)
        for use in (
            lambda: watching.charge(gaussian(0.01)),
            watching.entries,
            watching.remaining,
            lambda: watching.mark_released("a"),
            lambda: watching.would_fit(gaussian(0.01)),
        ):
            with pytest.raises(LedgerDamaged, match=expected):
                use()
        assert written.read_bytes() == damaged

    def test_a_deleted_file_is_missed(self, written: Path) -> None:
        written.unlink()
        with pytest.raises(LedgerDamaged, match="5 lines were written"):
            opened(written)
        assert not written.exists()

    def test_lines_lost_together_with_the_head_are_missed_by_who_saw_them(self, written: Path) -> None:
        watching = opened(written)
        lines = written.read_bytes().splitlines(keepends=True)
        written.write_bytes(b"".join(lines[:3]))
        written.with_name("study.jsonl.head").unlink()
        with pytest.raises(LedgerDamaged, match="5 lines were written"):
            watching.charge(gaussian(0.01))

    def test_a_file_moved_without_its_head_is_accepted(self, written: Path) -> None:
        moved = written.with_name("moved.jsonl")
        written.rename(moved)
        assert len(opened(moved).entries()) == 2

    def test_a_damaged_head(self, written: Path) -> None:
        written.with_name("study.jsonl.head").write_bytes(b"")
        with pytest.raises(LedgerDamaged, match="number of lines"):
            opened(written)

    def test_a_replaced_ledger_is_noticed(self, written: Path, tmp_path: Path) -> None:
        other = tmp_path / "other.jsonl"
        for _ in range(5):
            opened(other).charge(gaussian(0.01))
        written.write_bytes(other.read_bytes())
        with pytest.raises(LedgerDamaged, match="replaced"):
            opened(written)

    @given(st.data())
    @settings(max_examples=40)
    def test_any_changed_byte_is_found(
        self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
    ) -> None:
        path = tmp_path_factory.mktemp("ledger") / "study.jsonl"
        opened(path).charge(gaussian(0.125))
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(bytes(content))
        with pytest.raises(LedgerDamaged):
            opened(path)

    def test_messages_hold_no_content(self, written: Path) -> None:
        written.write_bytes(b"CANARY-31,CANARY-50000\n")
        with pytest.raises(LedgerDamaged) as caught:
            opened(written)
        assert "CANARY" not in str(caught.value)

    def test_lines_are_json(self, written: Path) -> None:
        kinds = [json.loads(line)["kind"] for line in written.read_text().splitlines()]
        assert kinds == ["header", "charge", "released", "charge", "released"]


def test_a_device_is_no_ledger(tmp_path) -> None:
    for path in ("/dev/null", "/dev/full", str(tmp_path)):
        with pytest.raises(LedgerError, match="not a regular file"):
            Ledger.open(path, Budget(1.0, 1e-6), "replace", "row")
