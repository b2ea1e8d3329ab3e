"""The ledger: what it lets through, and what happens when files, processes and disks misbehave."""

from __future__ import annotations

import copy
import errno
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import filelock
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pydpmode.budget import Budget
from pydpmode.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidBudget,
    LedgerDamaged,
    LedgerError,
    PicklingRefused,
)
from pydpmode.privacy import event_log, ledger
from pydpmode.privacy.accounting import Charge, compose, gaussian_delta, gaussian_mu
from pydpmode.privacy.ledger import Ledger, read_budget, read_header

BUDGET = Budget(1.0, 1e-6)


def gaussian(epsilon: float, delta: float = 1e-6, label: str = "look") -> Charge:
    return Charge(label, "surface", epsilon, delta, gaussian_mus=(gaussian_mu(epsilon, delta),))


def opened(path: Path | None, budget: Budget = BUDGET) -> Ledger:
    return Ledger.open(path, budget, "replace", "row")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.jsonl"


@pytest.fixture(params=["memory", "file"])
def any_ledger(request: pytest.FixtureRequest, path: Path) -> Ledger:
    return opened(path if request.param == "file" else None)


SCRIPT = """
import os, signal, sys
from pydpmode.budget import Budget
from pydpmode.errors import BudgetExceeded
from pydpmode.privacy import event_log
from pydpmode.privacy.accounting import Charge, gaussian_mu
from pydpmode.privacy.ledger import Ledger
ledger = Ledger.open(sys.argv[1], Budget(1.0, 1e-6), "replace", "row")
def gaussian(epsilon):
    return Charge("look", "surface", epsilon, 1e-6, gaussian_mus=(gaussian_mu(epsilon, 1e-6),))
"""


def start(path: Path, body: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT + body, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(path: Path, body: str) -> tuple[int, str]:
    process = start(path, body)
    output, errors = process.communicate(timeout=60)
    return process.returncode, output + errors


class TestCharging:
    @pytest.mark.parametrize(
        ("epsilon", "delta"), [(1e-4, 1e-30), (1e-4, 0.5), (0.3, 1e-5), (1.0, 1e-6), (7.0, 1e-9), (1e3, 1e-6)]
    )
    def test_the_exact_budget_fits_once(self, epsilon: float, delta: float) -> None:
        book = opened(None, Budget(epsilon, delta))
        charge = gaussian(epsilon, delta)
        assert book.would_fit(charge)
        book.charge(charge)
        assert not book.would_fit(charge)
        assert book.remaining() == 0.0
        with pytest.raises(BudgetExceeded, match="No Gaussian release"):
            book.charge(charge)
        assert len(book.entries()) == 1

    def test_a_refusal_says_what_to_do_and_changes_nothing(self, any_ledger: Ledger) -> None:
        any_ledger.charge(gaussian(0.5))
        before = any_ledger.entries()
        with pytest.raises(BudgetExceeded) as caught:
            any_ledger.charge(gaussian(0.9, label="wages"))
        text = str(caught.value)
        assert "'wages' asks for epsilon 0.9 at delta 1e-06" in text
        assert "have spent 0.5 of it" in text
        assert "Nothing was read" in text
        advised = float(text.split("still fits is ")[1].split(":")[0])
        assert any_ledger.entries() == before
        assert advised == pytest.approx(any_ledger.remaining(), rel=1e-3)
        any_ledger.charge(gaussian(advised))

    def test_tight_and_summed_costs(self, any_ledger: Ledger) -> None:
        for _ in range(9):
            any_ledger.charge(gaussian(0.1))
        last = any_ledger.entries()[-1]
        assert last.sum == pytest.approx(0.9)
        assert last.cumulative == pytest.approx(compose([gaussian(0.1)] * 9, 1e-6))
        assert last.cumulative < 0.4
        assert any_ledger.spent() == last.cumulative
        assert last.left == any_ledger.remaining()
        assert any_ledger.spent_with(gaussian(5.0)) > 5.0
        # The same noise, stated at a smaller delta, has a larger epsilon.
        assert any_ledger.remaining(delta=1e-9) > any_ledger.remaining()

    @given(st.lists(st.floats(0.0, 1.5), min_size=1, max_size=6))
    @settings(max_examples=25)
    def test_epsilons_chosen_from_what_is_left(self, shares: list[float]) -> None:
        # The next epsilon depends on everything before; shares above 1 ask for too much.
        book = opened(None)
        for share in shares:
            asked = max(1e-4, share * book.remaining())
            if book.would_fit(gaussian(asked)):
                book.charge(gaussian(asked))
            else:
                assert asked > book.remaining() * (1 - 1e-9)
        spent = math.hypot(*(entry.charge.mu for entry in book.entries()))
        assert gaussian_delta(1.0, spent) <= 1e-6 * (1 + 1e-8)

    def test_released_and_unfinished(self, any_ledger: Ledger) -> None:
        first, _second = any_ledger.charge(gaussian(0.1)), any_ledger.charge(gaussian(0.2))
        any_ledger.mark_released(first)
        any_ledger.mark_released(first)
        assert [entry.status for entry in any_ledger.entries()] == ["released", "charged, unfinished"]
        with pytest.raises(LedgerError, match="no entry"):
            any_ledger.mark_released("0" * 16)

    def test_not_a_charge(self, any_ledger: Ledger) -> None:
        with pytest.raises(InvalidArgument, match="takes a Charge"):
            any_ledger.charge(0.5)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ((None, 1.0, "replace", "row"), InvalidBudget),
            ((None, BUDGET, "swap", "row"), InvalidArgument),
            ((None, BUDGET, "replace", "household"), InvalidArgument),
        ],
    )
    def test_bad_arguments(self, arguments: tuple[object, ...], error: type[Exception]) -> None:
        with pytest.raises(error):
            Ledger.open(*arguments)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="lock_timeout"):
            Ledger.open(None, BUDGET, "replace", "row", lock_timeout=-1)


class TestShowing:
    def test_table(self, any_ledger: Ledger) -> None:
        assert list(any_ledger.table().columns) == [
            "number",
            "label",
            "mechanism",
            "epsilon",
            "delta",
            "cumulative",
            "sum",
            "left",
            "status",
            "time",
        ]
        assert len(any_ledger.table()) == 0
        any_ledger.mark_released(any_ledger.charge(gaussian(0.25)))
        any_ledger.charge(
            Charge("b", "surface", 0.25, 1e-6, gaussian_mus=gaussian(0.25).gaussian_mus, simulated=True)
        )
        table = any_ledger.table()
        assert table["number"].tolist() == [1, 2]
        assert table["mechanism"].tolist() == ["surface", "surface (simulated)"]
        assert table["status"].tolist() == ["released", "charged, unfinished"]
        assert (table["cumulative"] <= table["sum"] * (1 + 1e-9)).all()
        assert table["left"].is_monotonic_decreasing

    def test_repr(self, path: Path) -> None:
        book = opened(path)
        assert "no releases yet" in repr(book)
        book.charge(gaussian(0.25, label="one\nline " + "x" * 100))
        lines = repr(book).splitlines()
        assert len(lines) == 3
        assert "epsilon 1, delta 1e-06, replace one row" in lines[0]
        assert "one\\nline" in lines[2]
        path.write_text("gone\n")
        assert "line 1" in repr(book)

    @pytest.mark.parametrize("label", ["", 'a "b" \\ \n\r\0', "é" * 200, "\ud800", "<script>", "\u2028"])
    def test_labels_are_text_and_nothing_else(self, path: Path, label: str) -> None:
        opened(path).charge(gaussian(0.1, label=label))
        assert opened(path).entries()[0].charge.label == label
        assert path.read_bytes().count(b"\n") == 2

    def test_header_can_be_read_without_knowing_it(self, path: Path) -> None:
        Ledger.open(path, Budget(2.0, 1e-7), "add_remove", "person")
        assert read_header(path) == (Budget(2.0, 1e-7), "add_remove", "person")
        assert read_budget(str(path)) == Budget(2.0, 1e-7)
        with pytest.raises(LedgerError, match="no such ledger file"):
            read_header(path.with_name("other.jsonl"))

    def test_clock_changes_do_not_matter(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        times = iter(f"{2030 - i}-01-01T00:00:00+00:00" for i in range(20))
        monkeypatch.setattr(ledger, "_now", lambda: next(times))
        book = opened(path)
        for label in ("first", "second", "third"):
            book.mark_released(book.charge(gaussian(0.1, label=label)))
        assert [entry.charge.label for entry in opened(path).entries()] == ["first", "second", "third"]
        assert [entry.number for entry in book.entries()] == [1, 2, 3]


class TestOneBudget:
    def test_copies_are_the_same_ledger(self, any_ledger: Ledger) -> None:
        assert copy.copy(any_ledger) is any_ledger
        assert copy.deepcopy({"a": [any_ledger]})["a"][0] is any_ledger

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_pickling_is_refused(self, any_ledger: Ledger, protocol: int) -> None:
        with pytest.raises(PicklingRefused, match="second budget"):
            pickle.dumps(any_ledger, protocol)

    def test_one_file_under_two_names(self, path: Path) -> None:
        link = path.with_name("link.jsonl")
        link.symlink_to(path)
        opened(link).charge(gaussian(0.9))
        assert not opened(path).would_fit(gaussian(0.9))
        assert not link.with_name("link.jsonl.lock").exists()

    def test_two_hard_links_never_overspend(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """They have two locks, so that the second to write finds that the file has grown."""
        opened(path).charge(gaussian(0.1))
        other = path.with_name("other.jsonl")
        os.link(path, other)
        one, two = opened(path), opened(other)
        append, told = event_log.FileLog.append, list[str]()

        def after_the_other(self: event_log.FileLog, event: Any, chain: Any) -> None:
            monkeypatch.undo()
            told.append(two.charge(gaussian(0.8)))
            append(self, event, chain)

        monkeypatch.setattr(event_log.FileLog, "append", after_the_other)
        with pytest.raises(LedgerError, match="another name of the file"):
            one.charge(gaussian(0.8))
        assert told
        assert [entry.charge.epsilon for entry in opened(path).entries()] == [0.1, 0.8]
        with pytest.raises(BudgetExceeded):
            one.charge(gaussian(0.8))

    def test_threads_never_overspend(self, any_ledger: Ledger) -> None:
        accepted: list[str] = []

        def spend() -> None:
            for _ in range(8):
                try:
                    accepted.append(any_ledger.charge(gaussian(0.25)))
                except BudgetExceeded:
                    return

        threads = [threading.Thread(target=spend) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        alone = opened(None)
        while alone.would_fit(gaussian(0.25)):
            alone.charge(gaussian(0.25))
        assert len(accepted) == len(any_ledger.entries()) == len(alone.entries()) > 4

    def test_processes_never_overspend(self, path: Path) -> None:
        body = """
for _ in range(30):
    try:
        ledger.mark_released(ledger.charge(gaussian(0.25)))
    except BudgetExceeded:
        break
    print("charged")
"""
        processes = [start(path, body) for _ in range(3)]
        outputs = [process.communicate(timeout=60) for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0], outputs
        book = opened(path)
        assert sum(output.count("charged") for output, _ in outputs) == len(book.entries())
        assert len({entry.id for entry in book.entries()}) == len(book.entries())
        assert {entry.status for entry in book.entries()} == {"released"}
        assert not book.would_fit(gaussian(0.25))
        assert book.spent() <= 1.0

    def test_a_forked_process_cannot_spend_a_budget_in_memory(self, path: Path) -> None:
        body = """
from pydpmode.errors import LedgerError
memory = Ledger.open(None, Budget(1.0, 1e-6), "replace", "row")
memory.charge(gaussian(0.1)); ledger.charge(gaussian(0.1))
child = os.fork()
if child == 0:
    ledger.charge(gaussian(0.1))
    assert len(memory.entries()) == 1
    try:
        memory.charge(gaussian(0.1))
    except LedgerError as error:
        os._exit(7 if "another one" in str(error) else 1)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
memory.charge(gaussian(0.1)); ledger.charge(gaussian(0.1))
print(len(memory.entries()), len(ledger.entries()))
"""
        assert run(path, body) == (0, "2 3\n")


class TestInterruptions:
    def test_killed_between_charge_and_release(self, path: Path) -> None:
        code, _ = run(path, "ledger.charge(gaussian(0.9)); os.kill(os.getpid(), signal.SIGKILL)")
        assert code == -signal.SIGKILL
        book = opened(path)
        assert [entry.status for entry in book.entries()] == ["charged, unfinished"]
        assert not book.would_fit(gaussian(0.9))
        book.charge(gaussian(0.1))

    def test_killed_before_the_head_is_written(self, path: Path) -> None:
        body = """
event_log.FileLog._write_head = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
ledger.charge(gaussian(0.9))
"""
        assert run(path, body)[0] == -signal.SIGKILL
        assert len(opened(path).entries()) == 1
        assert not opened(path).would_fit(gaussian(0.9))

    def test_killed_in_the_middle_of_a_line(self, path: Path) -> None:
        opened(path).charge(gaussian(0.2))
        body = """
def half(file, data):
    os.write(file, data[:40])
    os.kill(os.getpid(), signal.SIGKILL)
event_log._write_all = half
ledger.charge(gaussian(0.5))
"""
        assert run(path, body)[0] == -signal.SIGKILL
        with pytest.raises(LedgerDamaged, match=r"line 3: the last line is incomplete.*delete this line"):
            opened(path)
        complete = path.read_bytes().rpartition(b"\n")
        path.write_bytes(complete[0] + complete[1])
        assert [entry.charge.epsilon for entry in opened(path).entries()] == [0.2]

    def test_a_charge_is_in_the_file_before_it_returns(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        book = opened(path)
        synced: list[bytes] = []
        real = os.fsync
        monkeypatch.setattr(
            event_log.os, "fsync", lambda file: (synced.append(path.read_bytes()), real(file))[1]
        )
        entry = book.charge(gaussian(0.5))
        assert entry.encode() in synced[0]

    @pytest.mark.parametrize("failing", ["write", "fsync", "head", "replace", "interrupt"])
    def test_a_full_disk_leaves_the_file_as_it_was(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
    ) -> None:
        book = opened(path)
        book.charge(gaussian(0.2))
        before = path.read_bytes()
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def fail(*_: object) -> None:
            raise full

        def half(file: int, data: bytes) -> None:
            os.write(file, data[: len(data) // 2])
            raise KeyboardInterrupt if failing == "interrupt" else full

        with monkeypatch.context() as patch:
            if failing in ("write", "interrupt"):
                patch.setattr(event_log, "_write_all", half)
            elif failing == "fsync":
                calls = iter([fail])
                patch.setattr(event_log.os, "fsync", lambda file: next(calls, lambda: None)())
            elif failing == "head":
                patch.setattr(event_log.FileLog, "_write_head", fail)
            else:
                patch.setattr(event_log.os, "replace", fail)
            if failing == "interrupt":
                with pytest.raises(KeyboardInterrupt):
                    book.charge(gaussian(0.3))
            else:
                with pytest.raises(LedgerError, match=r"No space left.*Nothing was read"):
                    book.charge(gaussian(0.3))
        assert path.read_bytes() == before
        assert [entry.charge.epsilon for entry in book.entries()] == [0.2]
        book.charge(gaussian(0.3))
        assert [entry.charge.epsilon for entry in opened(path).entries()] == [0.2, 0.3]

    def test_a_line_that_cannot_be_taken_back(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        book = opened(path)

        def fail(*_: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(event_log.os, "fsync", fail)
        monkeypatch.setattr(event_log.os, "ftruncate", fail)
        with pytest.raises(LedgerError, match="nor be taken back"):
            book.charge(gaussian(0.3))

    def test_a_short_write_is_continued(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = os.write
        monkeypatch.setattr(event_log.os, "write", lambda file, data: real(file, data[:7]))
        opened(path).charge(gaussian(0.3))
        assert len(opened(path).entries()) == 1


class TestPlaces:
    def test_a_read_only_file_is_shown_but_not_charged(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened(path).charge(gaussian(0.2))
        before = path.read_bytes()
        real = os.open

        def read_only(name: str | Path, flags: int, *rest: int) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR) and str(name) == str(path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return real(name, flags, *rest)

        monkeypatch.setattr(event_log.os, "open", read_only)
        book = opened(path)
        assert len(book.entries()) == 1
        with pytest.raises(LedgerError, match=r"cannot be written.*Permission denied"):
            book.charge(gaussian(0.2))
        assert path.read_bytes() == before

    def test_a_read_only_folder_is_shown_but_not_charged(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened(path).charge(gaussian(0.2))

        def fail(*_: object, **__: object) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        monkeypatch.setattr(filelock.FileLock, "acquire", fail)
        book = opened(path)
        assert book.remaining() > 0.9
        assert len(book.table()) == 1
        with pytest.raises(LedgerError, match=r"cannot lock.*Read-only"):
            book.charge(gaussian(0.2))

    def test_a_lock_that_another_holds(self, path: Path) -> None:
        book = Ledger.open(path, BUDGET, "replace", "row", lock_timeout=0.05)
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with filelock.FileLock(f"{path}.lock"):
                held.set()
                done.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(30)
        try:
            with pytest.raises(LedgerError, match="another process held the lock"):
                book.charge(gaussian(0.1))
        finally:
            done.set()
            thread.join()
        book.charge(gaussian(0.1))

    def test_a_folder_that_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerError, match="folder"):
            opened(tmp_path / "missing" / "study.jsonl")
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_instead_of_a_file(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerError, match="not a regular file"):
            opened(tmp_path)
