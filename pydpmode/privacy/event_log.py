"""Append-only records, in memory or as JSON lines that processes share. Knows nothing of privacy.

Each line carries a checksum over itself and the checksum of the line before, so that an edited,
lost, repeated or moved line shows. Lines lost at the end leave a valid shorter file: against that, a
small file beside it (`NAME.head`) holds the number of lines and the last checksum, and every
process remembers what it has seen.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..errors import LedgerDamaged, LedgerError

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]

Event = dict[str, Any]

_LINE = re.compile(rb'(\{.+),"checksum":"([0-9a-f]{64})"\}', re.DOTALL)
_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOTHING = "Nothing was read from the data or charged."


@dataclass(frozen=True)
class Chain:
    """What a log holds: its events, the checksum after each, and its size in bytes."""

    events: tuple[Event, ...] = ()
    checksums: tuple[str, ...] = ()
    size: int = 0

    @property
    def last(self) -> str:
        """Checksum of the last line, "" for an empty log."""
        return self.checksums[-1] if self.checksums else ""


class EventLog(Protocol):
    """A log of events: lock, read, append."""

    @property
    def name(self) -> str:
        """What to call the log in messages."""
        ...

    def locked(self, *, to_write: bool = True) -> contextlib.AbstractContextManager[None]:
        """Hold the log alone; to read only, a log that cannot be locked is read as it is."""
        ...

    def read(self) -> Chain:
        """Return what the log holds, after checking it."""
        ...

    def append(self, event: Event, chain: Chain) -> None:
        """Add one event after `chain`, for good, or raise and leave the log as it was."""
        ...


class MemoryLog:
    """A log in this process alone."""

    def __init__(self) -> None:
        self._events: tuple[Event, ...] = ()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def name(self) -> str:
        """What to call the log in messages."""
        return "the ledger in memory"

    @contextlib.contextmanager
    def locked(self, *, to_write: bool = True) -> Iterator[None]:
        """Hold the log alone. A forked process may look, but not add: its additions would be lost."""
        if os.getpid() != self._process:
            if to_write:
                raise LedgerError(
                    "a ledger in memory belongs to the process that made it, and this is another one: "
                    f"give ledger='study.jsonl', a file that both share. {_NOTHING}"
                )
            # The lock may have been copied while another thread held it.
            yield
            return
        with self._lock:
            yield

    def read(self) -> Chain:
        """Return all events."""
        return Chain(self._events)

    def append(self, event: Event, chain: Chain) -> None:
        """Add one event."""
        self._events = (*chain.events, event)


class FileLog:
    """JSON lines in a file, shared by processes through a lock file beside it.

    Parameters
    ----------
    path : path
        Symbolic links are followed, so that they share one lock. Hard links do not: of two processes that
        write at once through two of them, one is refused.
    lock_timeout : float
        Seconds to wait for other processes.
    """

    def __init__(self, path: str | os.PathLike[str], lock_timeout: float) -> None:
        if b"\0" in os.fsencode(path):
            raise LedgerError(
                f"the path of a ledger holds a null character; give one such as study.jsonl. {_NOTHING}"
            )
        self.path = Path(os.path.realpath(path))
        self._head = self.path.with_name(self.path.name + ".head")
        self._timeout = lock_timeout
        self._seen: tuple[int, str] = (0, "")

    @property
    def name(self) -> str:
        """What to call the log in messages."""
        return str(self.path)

    @contextlib.contextmanager
    def locked(self, *, to_write: bool = True) -> Iterator[None]:
        """Hold the lock file; to read only, a file in a place that cannot be written is read as it is."""
        import filelock  # imported here: not needed for a ledger in memory

        lock_path = f"{self.path}.lock"
        # A new object each time: a thread or a forked process never inherits a held one.
        lock = filelock.FileLock(lock_path, timeout=self._timeout)
        try:
            if self.path.exists() and not self.path.is_file():
                raise LedgerError(
                    f"{self.path} is not a regular file; give a path such as study.jsonl. {_NOTHING}"
                )
            if not self.path.parent.is_dir():
                raise FileNotFoundError(2, "no such folder")
            lock.acquire()
        except filelock.Timeout:
            raise LedgerError(
                f"{self.path}: another process held the lock for {self._timeout:g} seconds; try again when "
                f"it has finished. {_NOTHING}"
            ) from None
        except OSError as problem:
            if to_write:
                raise LedgerError(
                    f"{self.path}: cannot lock the ledger with {lock_path} ({_reason(problem)}); it needs "
                    f"a folder that exists and can be written. {_NOTHING}"
                ) from None
            yield
            return
        try:
            yield
        finally:
            lock.release()

    def read(self) -> Chain:
        """Return what the file holds, after checking every line.

        Raises
        ------
        LedgerDamaged
            When a line is not what was written, or lines are missing.
        LedgerError
            When the file cannot be read.
        """
        # The head first: it never runs ahead of the lines, even if the file grows meanwhile.
        head = self._read_head()
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as problem:
            raise LedgerError(
                f"{self.path}: cannot read the ledger ({_reason(problem)}). {_NOTHING}"
            ) from None
        chain = self._parse(data, head)
        self._check_nothing_lost(chain, head)
        if len(chain.events) > self._seen[0]:
            self._seen = len(chain.events), chain.last
        return chain

    def append(self, event: Event, chain: Chain) -> None:
        """Add one line after `chain` and force it to the disk, or leave the file as it was.

        Raises
        ------
        LedgerError
            When the line could not be written (read-only file, full disk, ...).
        """
        line, checksum = _line(event, chain.last)
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _FLAGS, 0o666)
        except OSError as problem:
            raise self._unwritten(problem) from None
        try:
            self._check_alone(file, chain.size)
            self._append_bytes(file, line, chain.size)
            self._write_head_or_undo(file, chain, checksum)
        finally:
            # The line is on the disk, or taken back: what closing reports changes neither.
            with contextlib.suppress(OSError):
                os.close(file)
        self._seen = len(chain.events) + 1, checksum

    def _check_alone(self, file: int, size: int) -> None:
        """Refuse a file that others write to: the lock goes by the name, and a file may have two.

        The file itself is locked until it is closed, where the system can do that: by the process, so that
        neither a forked one nor a file that could not be closed keeps the lock.
        """
        busy = False
        if fcntl is not None:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as problem:
                busy = problem.errno in (errno.EACCES, errno.EAGAIN)
        if busy or os.fstat(file).st_size != size:
            raise LedgerError(
                f"{self.path} was written to while this process held its lock: by a program that takes no "
                "lock, or under another name of the file (a hard link). Give every process the same path "
                f"and try again. {_NOTHING}"
            )

    def _append_bytes(self, file: int, line: bytes, size: int) -> None:
        try:
            _write_all(file, line)
            os.fsync(file)
        except OSError as problem:
            self._cut_back(file, size)
            raise self._unwritten(problem) from None
        except BaseException:
            self._cut_back(file, size)
            raise

    def _write_head_or_undo(self, file: int, chain: Chain, checksum: str) -> None:
        if not chain.events:
            _sync_folder(self.path.parent)
        try:
            self._write_head(len(chain.events) + 1, checksum)
        except OSError as problem:
            # The old head is still in place, so the line can go again.
            self._cut_back(file, chain.size)
            raise self._unwritten(problem) from None

    def _cut_back(self, file: int, size: int) -> None:
        """Remove what was written after `size` bytes, under the same lock."""
        try:
            os.ftruncate(file, size)
            os.fsync(file)
        except OSError as problem:
            raise LedgerError(
                f"{self.path}: a line could not be written, nor be taken back ({_reason(problem)}): the "
                "file may end in an incomplete line, and will then be refused until that is removed. "
                f"{_NOTHING}"
            ) from None

    def _write_head(self, lines: int, checksum: str) -> None:
        temporary = self._head.with_name(f"{self._head.name}.new")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o666)
        try:
            _write_all(file, json.dumps({"lines": lines, "checksum": checksum}).encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(temporary, self._head)

    def _read_head(self) -> tuple[int, str]:
        try:
            head = json.loads(self._head.read_bytes())
            return int(head["lines"]), str(head["checksum"])
        except FileNotFoundError:
            # A ledger may be moved or restored without it.
            return 0, ""
        except (OSError, ValueError, KeyError, TypeError):
            raise LedgerDamaged(
                f"{self._head}: this file, which holds the number of lines of the ledger, cannot be read. "
                "Restore it together with the ledger, or delete it if the ledger is known to be complete. "
                f"{_NOTHING}"
            ) from None

    def _parse(self, data: bytes, head: tuple[int, str]) -> Chain:
        *complete, rest = data.split(b"\n")
        events: list[Event] = []
        checksums = [""]
        for number, raw in enumerate(complete, start=1):
            event, checksum = self._check_line(raw, checksums[-1], number)
            events.append(event)
            checksums.append(checksum)
        if rest:
            raise LedgerDamaged(self._incomplete(len(complete) + 1, head))
        return Chain(tuple(events), tuple(checksums[1:]), len(data))

    def _check_line(self, raw: bytes, previous: str, number: int) -> tuple[Event, str]:
        match = _LINE.fullmatch(raw)
        body = match.group(1) + b"}" if match else b""
        checksum = _checksum(previous, body)
        if not match or checksum != match.group(2).decode():
            raise LedgerDamaged(
                f"{self.path}, line {number}: this line is not what was written there: it was edited, cut, "
                "moved or repeated, or a line before it is missing, or the file is no ledger. Restore the "
                f"file from a backup; without one, count the whole budget as spent. {_NOTHING}"
            )
        event: Event = json.loads(body)
        return event, checksum

    def _incomplete(self, number: int, head: tuple[int, str]) -> str:
        text = f"{self.path}, line {number}: the last line is incomplete. "
        if head[0] == number - 1:
            return (
                f"{text}Whoever wrote it was stopped before it was complete, so no release came of it: "
                f"delete this line, and nothing else. {_NOTHING}"
            )
        return (
            f"{text}Restore the file from a backup; without one, count the whole budget as spent. {_NOTHING}"
        )

    def _check_nothing_lost(self, chain: Chain, head: tuple[int, str]) -> None:
        for lines, checksum in (head, self._seen):
            if lines == 0 or (len(chain.events) >= lines and chain.checksums[lines - 1] == checksum):
                continue
            raise LedgerDamaged(
                f"{self.path}, line {min(lines, len(chain.events) + 1)}: {lines} lines were written, and "
                f"the file now has {len(chain.events)} or others: lines at the end are missing, or the "
                "file was replaced. Restore it from a backup; to start another study, use another file "
                f"name. {_NOTHING}"
            )

    def _unwritten(self, problem: OSError) -> LedgerError:
        return LedgerError(
            f"{self.path}: the ledger cannot be written ({_reason(problem)}), so no release can be made: "
            f"make room, or make the file writable. {_NOTHING}"
        )


def _line(event: Mapping[str, Any], previous: str) -> tuple[bytes, str]:
    body = json.dumps(event, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    checksum = _checksum(previous, body)
    return body[:-1] + f',"checksum":"{checksum}"}}\n'.encode(), checksum


def _checksum(previous: str, body: bytes) -> str:
    return hashlib.sha256(previous.encode() + body).hexdigest()


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _sync_folder(folder: Path) -> None:
    """Force the name of a new file to the disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _reason(problem: OSError) -> str:
    return problem.strerror or type(problem).__name__
