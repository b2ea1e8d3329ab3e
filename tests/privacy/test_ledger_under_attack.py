"""The ledger when something goes wrong at ANY point of a release: killed, disk full, interrupted, copied.

Never less privacy than stated: what may have left the process is in the file, and what was refused is not.
"""

from __future__ import annotations

import copy
import errno
import multiprocessing
import os
import pickle
import signal
import subprocess
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pydpmode as dpm
from audits.shared_budget import spend
from pydpmode.errors import BudgetExceeded, LedgerDamaged, LedgerError, PicklingRefused
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy import event_log
from pydpmode.privacy.ledger import Ledger
from pydpmode.privacy.private_data import PrivateData
from pydpmode.privacy.sources import open_source
from pydpmode.privacy.table_source import BaseTable, CodeArray, Kind

BUDGET = dpm.Budget(1.0, 1e-6)
SPEND = 0.9
# What the ledger asks of the system, in the order of its work.
CALLS = ("open", "write", "fsync", "replace", "close", "ftruncate")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class Witness(BaseTable):
    """Rows that leave a mark outside the process when they are read."""

    def __init__(self, mark: Path) -> None:
        super().__init__(("x",))
        self._table = open_source(np.linspace(0, 3, 40), columns=["x"])
        self._mark = mark

    @property
    def n_rows(self) -> int:
        return self._table.n_rows

    def _schema(self, position: int) -> tuple[Kind | None, str]:
        return self._table._schema(position)

    def _blocks(self, positions: list[int], rows_per_block: int) -> Any:
        self._mark.touch()
        return self._table.blocks(["x"], rows_per_block)

    def _codes(self, position: int) -> CodeArray:
        return self._table.codes("x")


def study(folder: Path, name: str = "l.jsonl") -> PrivateData:
    return PrivateData(
        Witness(folder / "read"), bounds={"x": (0.0, 3.0)}, budget=BUDGET, ledger=folder / name
    )


def release(data: PrivateData, epsilon: float = SPEND, seed: int | None = None) -> Any:
    at = [data.coordinate("x")]
    design = LatticeDesign(("x",), *data.box(at), np.ones(1), 2, 0.5, 0.5, 3.0)
    return data.release_surface(design, at, epsilon=epsilon, delta=BUDGET.delta, seed=seed)


def before_call(number: int, act: Callable[[], None], calls: tuple[str, ...] = CALLS) -> list[int]:
    """Patch the system calls of the ledger so that `act` runs before the given one; return a counter."""
    seen = [0]

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            seen[0] += 1
            if seen[0] == number:
                act()
            return real(*arguments, **more)

        return call

    # A module of its own, so that nothing else in the process is disturbed.
    system: Any = type(
        "System", (), {n: staticmethod(getattr(os, n)) for n in dir(os) if callable(getattr(os, n))}
    )
    for name in ("O_WRONLY", "O_CREAT", "O_APPEND", "O_RDONLY", "O_TRUNC", "PathLike"):
        setattr(system, name, getattr(os, name))
    for name in calls:
        setattr(system, name, staticmethod(wrapped(getattr(os, name))))
    event_log.os = system  # type: ignore[attr-defined]
    return seen


@pytest.fixture(autouse=True)
def _own_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "os", os)


def calls_of_a_release(folder: Path) -> int:
    data = study(folder)
    seen = before_call(-1, lambda: None)
    release(data)
    event_log.os = os  # type: ignore[attr-defined]
    return seen[0]


def in_child(body: Callable[[], None]) -> int:
    with warnings.catch_warnings():
        # Python 3.12 and later warn of forks while threads live; the child only works and leaves.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            body()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_fork
def test_killed_before_any_system_call_of_a_release(tmp_path: Path) -> None:
    count_folder = tmp_path / "count"
    count_folder.mkdir()
    total = calls_of_a_release(count_folder)
    assert total >= 12
    outcomes = set()
    for number in range(1, total + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        study(folder)

        def body(folder: Path = folder, number: int = number) -> None:
            data = study(folder)
            before_call(number, lambda: os.kill(os.getpid(), signal.SIGKILL))
            release(data)

        assert in_child(body) == -signal.SIGKILL
        # Whoever comes next: rows that were read are charged, and what is charged stays so.
        data = study(folder)
        entries = data.ledger.entries()
        assert len(entries) <= 1
        was_read = (folder / "read").exists()
        assert len(entries) == 1 or not was_read
        if entries:
            with pytest.raises(BudgetExceeded):
                release(data)
        release(data, 0.2)
        assert len(study(folder).ledger.entries()) == len(entries) + 1
        outcomes.add((was_read, tuple(e.status for e in entries)))
    # All three moments were hit: before the charge, between charge and release, after both.
    assert {(False, ()), (False, ("charged, unfinished",)), (True, ("charged, unfinished",))} <= outcomes


@pytest.mark.parametrize("what", ["full disk", "interrupt", "input/output error"])
def test_failing_at_any_system_call_of_a_release(what: str, tmp_path: Path) -> None:
    number_of = {"full disk": errno.ENOSPC, "input/output error": errno.EIO}

    def fail() -> None:
        if what == "interrupt":
            raise KeyboardInterrupt
        raise OSError(number_of[what], os.strerror(number_of[what]))

    count_folder = tmp_path / "count"
    count_folder.mkdir()
    total = calls_of_a_release(count_folder)
    refused = 0
    for number in range(1, total + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        data = study(folder)
        before_call(number, fail)
        try:
            release(data)
        except LedgerError:
            refused += 1
        except KeyboardInterrupt:
            assert what == "interrupt"
        event_log.os = os  # type: ignore[attr-defined]
        try:
            entries = study(folder).ledger.entries()
        except LedgerDamaged:
            # Refused until somebody looks at it: no budget can be spent from it.
            assert what != "full disk"
            continue
        assert len(entries) == 1 or not (folder / "read").exists()
    assert what == "interrupt" or refused >= 4


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this system does not let a small disk be mounted")
    try:
        data = study(disk)
        reads = disk / "read"
        release(data, 0.01)
        reads.unlink()
        # Every page that is left, so that a ledger line no longer fits in the page that it began.
        with pytest.raises(OSError, match="space"):  # noqa: PT012
            for number in range(100):
                (disk / f"filler{number}").write_bytes(b"\0" * 4096)
        done = 1
        with pytest.raises(LedgerError, match=r"No space left.*make room"):  # noqa: PT012
            for _ in range(100):
                release(data, 0.01)
                done += 1
                reads.unlink(missing_ok=True)
        kept = study(disk).ledger.entries()
        assert len(kept) in (done, done + 1)
        assert len(kept) == done + 1 or not reads.exists()
        for filler in disk.glob("filler*"):
            filler.unlink()
        release(data, 0.01)
        assert len(study(disk).ledger.entries()) == len(kept) + 1
    finally:
        subprocess.run(["umount", str(disk)], capture_output=True, check=False)


# -- several at once -------------------------------------------------------------------------------------


def test_processes_and_threads_share_one_budget(tmp_path: Path) -> None:
    alone = spend(str(tmp_path / "alone.jsonl"))
    path = str(tmp_path / "shared.jsonl")
    with (
        ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes,
        ThreadPoolExecutor(3) as threads,
    ):
        jobs = [threads.submit(spend, path) for _ in range(3)] + [
            processes.submit(spend, path) for _ in range(2)
        ]
        assert sum(job.result() for job in jobs) == alone
    entries = Ledger.open(path, BUDGET, "replace", "row").entries()
    assert len(entries) == alone
    assert {entry.status for entry in entries} == {"released"}


def test_two_ledgers_over_one_table_add_up_and_this_is_said(tmp_path: Path) -> None:
    books = [study(tmp_path, name) for name in ("one.jsonl", "two.jsonl")]
    for book in books:
        release(book)
        assert len(book.ledger.entries()) == 1
    assert "the\n    total is then the sum of their budgets" in (Ledger.__doc__ or "")


# -- copies ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pydpmode.errors.LowSignal")
def test_no_copy_has_a_budget_of_its_own(tmp_path: Path) -> None:
    data = study(tmp_path)
    model = dpm.DensityModes(np.linspace(0, 3, 40), bounds=(0.0, 3.0))
    assert copy.deepcopy(data) is data
    assert copy.deepcopy(data.ledger) is data.ledger
    twin = copy.deepcopy(model)
    twin.fit(epsilon=1.0, delta=1e-6, seed=1)
    with pytest.raises(BudgetExceeded):
        model.fit(epsilon=1.0, delta=1e-6, seed=1)
    for thing in (data, data.ledger, model):
        with pytest.raises(PicklingRefused, match="never pickled"):
            pickle.dumps(thing)
        with pytest.raises(PicklingRefused, match="never pickled"):
            pickle.dumps({"inside": [thing]})


def test_a_process_pool_gets_no_copy(tmp_path: Path) -> None:
    data = study(tmp_path)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool, pytest.raises(PicklingRefused):
        pool.submit(release, data).result()
    assert data.ledger.entries() == ()


def test_job_runners_get_no_copy(tmp_path: Path) -> None:
    """joblib, behind scikit-learn's grid search, pickles by another way."""
    joblib = pytest.importorskip("joblib")
    data = study(tmp_path)
    with pytest.raises((PicklingRefused, pickle.PicklingError)):
        joblib.Parallel(2)(joblib.delayed(release)(data, 0.1) for _ in range(2))
    with pytest.raises(PicklingRefused):
        joblib.dump(data, tmp_path / "copy.joblib")
    assert data.ledger.entries() == ()
    # In threads there is one object, and one budget.
    joblib.Parallel(2, backend="threading")(joblib.delayed(release)(data, 0.1) for _ in range(2))
    assert len(data.ledger.entries()) == 2


def test_threads_of_one_object_never_overspend(tmp_path: Path) -> None:
    data = study(tmp_path)
    done: list[int] = []

    def spend() -> None:
        try:
            release(data, 0.9)
        except BudgetExceeded:
            return
        done.append(1)

    threads = [threading.Thread(target=spend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1
