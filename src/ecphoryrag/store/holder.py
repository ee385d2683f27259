"""Who holds a store's file: from the system's table of locks where that can be read, else from what writers say.

The table (``/proc/locks``) names the process that holds a lock now; it is read without opening the store, since closing
a file drops all locks that the process has on it. What the last writer wrote of itself into the property ``writer``
says since when it has had the store open, and stands in where there is no such table or the holder is not in it: on
other systems, and in another container.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

_LOCKS = Path("/proc/locks")
_WAL_WRITE = 120
"""The byte of ``-shm`` that a writer with a log locks."""
_PENDING, _RESERVED, _SHARED, _SHARED_LAST = 0x40000000, 0x40000001, 0x40000002, 0x400001FF
"""Bytes of the store's file that SQLite locks: those of one who writes without a log, and those of all who read."""


@dataclass(frozen=True, slots=True)
class Writer:
    """What a process that writes says of itself."""

    pid: int
    program: str
    place: str
    """Stands for the machine, its boot and the container: process ids mean something only inside one."""
    started: int | None
    """When the process began, in the system's clock ticks, by which a later process of the same id is told apart."""
    since: str
    """When it opened the store for writing."""


def ourselves(since: str) -> str:
    """What this process, which has had the store open for writing since then, writes into the property ``writer``."""
    return json.dumps(asdict(Writer(os.getpid(), _own_program(), _place(), _ticks(os.getpid()), since)))


def now() -> str:
    """The time as it is shown."""
    return _shown(dt.datetime.now(dt.UTC))


def holder(path: Path, noted: object = None) -> str:
    """Who holds the store at this path, as the rest of "The store is ...".

    ``noted`` is the property ``writer``, if it could be read. Never raises.
    """
    writer = _writer(noted)
    writing, reading = _holding(path)
    for pids, doing in ((writing, "written"), (reading - {os.getpid()}, "read")):
        if pids:
            return f"being {doing} by {' and '.join(_named(pid, writer) for pid in sorted(pids))}"
    if writer is None:
        return "held by another process, which cannot be seen from here"
    told = f"process {writer.pid} ({writer.program}), which had opened it at {writer.since}"
    if writer.place != _place():
        return (
            "held by another process, which cannot be seen from here; the last to write was, on another machine or in "
            f"another container, {told}"
        )
    if writer.pid == os.getpid():
        return "held by another connection of this process, or by a process that cannot be seen from here"
    if _is_running(writer):
        return f"held by another process; the last to write was {told}"
    return f"held by another process, which cannot be seen from here; the last to write was {told}, and has ended"


def _writer(noted: object) -> Writer | None:
    if isinstance(noted, int):  # as versions before wrote it
        return Writer(noted, "an earlier version", _place(), None, "an unknown time")
    try:
        return Writer(**json.loads(noted)) if isinstance(noted, str) else None
    except (ValueError, TypeError):
        return None


def _named(pid: int, writer: Writer | None) -> str:
    if pid == os.getpid():
        return "another connection of this process"
    ticks = _ticks(pid)
    if writer is not None and (writer.pid, writer.place) == (pid, _place()) and writer.started in (None, ticks):
        return f"process {pid} ({writer.program}), which has had it open for writing since {writer.since}"
    since = _started(ticks)
    return f"process {pid} ({_program(pid)}{f', running since {since}' if since else ''})"


def _holding(path: Path) -> tuple[set[int], set[int]]:
    """Ids of the processes that hold the lock of a writer, and of those that read the file; empty if not to be seen."""
    writing: set[int] = set()
    reading: set[int] = set()
    main, log = _key(path), _key(path.parent / f"{path.name}-shm")
    for file, kind, pid, first, last in _locks():
        if file == log and kind == "WRITE" and first <= _WAL_WRITE <= last:
            writing.add(pid)
        elif file == main and first <= _SHARED_LAST and last >= _PENDING:
            (writing if kind == "WRITE" else reading).add(pid)
    return writing, reading


def _key(file: Path) -> str | None:
    """The file as the table of locks names it; None if it is not there."""
    try:
        status = file.stat()
    except OSError:
        return None
    return f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"


def _locks() -> Iterator[tuple[str, Literal["READ", "WRITE"], int, int, int]]:
    """File, kind, process and byte range of each lock that is held."""
    try:
        lines = _LOCKS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        match line.split():
            case [_, "POSIX", _, ("READ" | "WRITE") as kind, pid, file, first, last]:
                end = sys.maxsize if last == "EOF" else int(last)
                yield file, "WRITE" if kind == "WRITE" else "READ", int(pid), int(first), end
            case _:
                pass  # one who waits, or another kind of lock


def _place() -> str:
    """The same for processes whose ids mean the same."""
    boot = namespace = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    with suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").stat().st_ino)
    parts = (platform.node(), boot, namespace)
    return hashlib.blake2b("\n".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _own_program() -> str:
    """The name alone: arguments may hold what is to be forgotten."""
    return _short([sys.argv[0]]) if sys.argv and sys.argv[0] not in ("", "-", "-c") else "python"


def _program(pid: int) -> str:
    try:
        words = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "its name cannot be seen"
    return _short([word.decode("utf-8", "replace") for word in words if word])


def _short(words: list[str]) -> str:
    """The program's name: that of the script where an interpreter runs one."""
    name = Path(words[0]).name if words else "unknown"
    if name.startswith("python") and len(words) > 1 and not words[1].startswith("-"):
        name = Path(words[1]).name
    return "".join(sign if sign.isprintable() else "?" for sign in name)[:60]


def _ticks(pid: int) -> int | None:
    """When the process began, in clock ticks since the machine did; None where that cannot be seen."""
    try:
        status = (Path("/proc") / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
        return int(status.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _started(ticks: int | None) -> str | None:
    if ticks is None:
        return None
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        boot = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
        return _shown(dt.datetime.fromtimestamp(boot + ticks / os.sysconf("SC_CLK_TCK"), dt.UTC))
    except (OSError, ValueError, StopIteration):
        return None


def _shown(time: dt.datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")


def _is_running(writer: Writer) -> bool:
    """Whether the process is still there, and is the one it was."""
    try:
        os.kill(writer.pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return writer.started is None or _ticks(writer.pid) == writer.started
