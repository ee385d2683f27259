"""A disk between SQLite and the real one: it counts what SQLite asks of it, and fails or kills at the n-th time.

Installed as the default VFS of this process, so that every connection goes through it, whoever opens it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import apsw

Act: TypeAlias = Literal["write", "sync", "truncate", "open", "delete"]
"""What can fail: a file is opened, written at an offset, made safe, cut, or removed."""
Fault: TypeAlias = Literal["ioerr", "full", "short", "sync"]
"""An I/O error; no room; half of the bytes written and then an error; a failed sync (of other acts: an I/O error)."""
FAULTS: tuple[Fault, ...] = ("ioerr", "full", "short", "sync")
Death: TypeAlias = Literal["before", "half", "after"]
"""When a process dies: before the act, when half of the bytes are written, or after it."""
BASE = apsw.vfs_names()[0]
"""The disk beneath: the default before any of ours is."""
SUFFIXES = ("-wal", "-journal", "-shm")

_ERRORS = {
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "open": apsw.SQLITE_CANTOPEN,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One act, and which kind of file it was on: ``main``, ``wal``, ``journal``, ``ledger``, ``ledger-wal``, ..."""

    number: int
    act: Act
    file: str


@dataclass(slots=True)
class Plan:
    """What is to happen at which act, counted from 1; nothing if ``at`` is 0."""

    at: int = 0
    fault: Fault | None = None
    lasting: bool = False
    """Whether every later write, sync, truncation and opening of a file to be made fails too, until :meth:`mend`."""
    death: Death | None = None
    room: int | None = None
    """Bytes that may be taken on the disk in addition to those there; None for any number."""
    count: int = 0
    hit: Event | None = None
    events: list[Event] = field(default_factory=list)
    recording: bool = False

    def mend(self) -> None:
        """Nothing fails any more."""
        self.at, self.room = 0, None

    def next(self, act: Act, file: str) -> bool:
        """Count the act; whether it is the one."""
        self.count += 1
        if self.recording:
            self.events.append(Event(self.count, act, file))
        due = bool(self.at) and (self.count == self.at or (self.lasting and self.count > self.at))
        if due and self.hit is None:
            self.hit = Event(self.count, act, file)
        return due


def kind_of(name: str) -> str:
    """Which kind of file this is, by its name."""
    suffix = next((one for one in SUFFIXES if name.endswith(one)), "")
    base = name.removesuffix(suffix)
    if base.endswith("-ledger"):
        return "ledger" + suffix
    if base.endswith(".tmp"):
        return "copy" + suffix
    return suffix.lstrip("-") or "main"


def die() -> None:
    """As ``kill -9`` does, at this very place."""
    os.kill(os.getpid(), signal.SIGKILL)


class _File(apsw.VFSFile):
    """A file of the disk."""

    def __init__(self, plan: Plan, label: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._plan, self._label = plan, label
        super().__init__(BASE, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - apsw's names
        plan = self._plan
        if plan.room is not None and offset + len(data) > self.xFileSize():
            plan.room -= offset + len(data) - self.xFileSize()
            if plan.room < 0:
                plan.hit = plan.hit or Event(plan.count, "write", self._label)
                plan.room = 0
                raise failure("write", "full")
        if plan.next("write", self._label):
            if plan.death == "before":
                die()
            if plan.fault == "short" or plan.death == "half":
                super().xWrite(data[: len(data) // 2], offset)
            if plan.fault is not None:
                raise failure("write", plan.fault)
            if plan.death == "half":
                die()
            super().xWrite(data, offset)
            die()
        super().xWrite(data, offset)

    def xLock(self, level: int) -> None:  # noqa: N802
        try:
            super().xLock(level)
        except apsw.IOError as error:
            # What only reads asks in vain for a writer's lock when it is closed, and SQLite takes any refusal for an
            # answer; apsw hands on every error but this one.
            raise apsw.BusyError from error

    def xSync(self, flags: int) -> None:  # noqa: N802
        with _acting(self._plan, "sync", self._label):
            super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        with _acting(self._plan, "truncate", self._label):
            super().xTruncate(size)


@contextmanager
def _acting(plan: Plan, act: Act, label: str) -> Iterator[None]:
    due = plan.next(act, label)
    if due and plan.fault is not None:
        raise failure(act, plan.fault)
    if due and plan.death == "before":
        die()
    yield
    if due and plan.death is not None:
        die()


def failure(act: Act, fault: Fault) -> Exception:
    """The error of an act that fails so."""
    full = fault == "full" and act in ("write", "open", "truncate")
    code = apsw.SQLITE_FULL if full else _ERRORS[act]
    error = apsw.exception_for(code)
    assert isinstance(error, Exception)
    error.args = ("database or disk is full" if full else f"disk failure {code} on demand",)
    return error


class Disk(apsw.VFS):
    """See the module."""

    def __init__(self, plan: Plan, name: str = "ordeal") -> None:
        self._plan = plan
        super().__init__(name, BASE, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        whole = "" if name is None else (name if isinstance(name, str) else name.filename())
        label = kind_of(Path(whole).name)
        with _acting(self._plan, "open", label):
            return _File(self._plan, label, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        with _acting(self._plan, "delete", kind_of(Path(filename).name)):
            super().xDelete(filename, syncdir)


@contextmanager
def installed(plan: Plan) -> Iterator[Plan]:
    """Let all connections that are opened inside go through a disk with this plan."""
    disk = Disk(plan)
    hook = sys.unraisablehook
    # What SQLite does not ask the outcome of has nobody to be told to.
    sys.unraisablehook = lambda found: None if isinstance(found.exc_value, apsw.Error) else hook(found)
    try:
        yield plan
    finally:
        sys.unraisablehook = hook
        apsw.set_default_vfs(BASE)
        disk.unregister()
