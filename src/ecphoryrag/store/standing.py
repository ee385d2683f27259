"""Whether the file at a store's path is the one that was opened, and what lies beside it belongs to it.

SQLite finds a file's log by the file's name and trusts it, and keeps its locks by process. So a log that another store
has left would be written into this one, of two names of one file each would have a log of its own, and a connection
whose file was replaced, or which was taken along into a forked process, would write where nobody looks.
"""

from __future__ import annotations

import glob
import os
import time
from contextlib import suppress
from pathlib import Path

import apsw

from ecphoryrag.errors import StoreError

LOG_HEADER_BYTES = 32
"""A log that is no longer than its header holds nothing."""
_READ_WRITE_VERSIONS = slice(18, 20)
_WITHOUT_LOG = b"\x01\x01"
"""What a file's header has there as long as nothing may be in a log: `the SQLite file format`, 1.3.3."""
LOOKS, PAUSE = 4, 0.05
"""How often, and after how many seconds again, until two files that another process changes are not mistaken."""


def inode(path: Path) -> tuple[int, int]:
    """Which file is at the path now; (0, 0) if none is."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


class Standing:
    """Which file a store, or a ledger, was opened at, and by which process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.inode = inode(path)
        """Which file it was, whatever stands at the path by now."""
        self._process = os.getpid()

    def check(self) -> None:
        """Raise StoreError if the path leads to another file by now, or to none, or this is a forked process."""
        if os.getpid() != self._process:
            raise StoreError(
                f"The store {self._path} was opened by process {self._process}, of which this one is a fork, and locks "
                "are not taken along: nothing was done. Open the store in each process for itself."
            )
        if inode(self._path) != self.inode:
            raise StoreError(
                f"The file of the store {self._path} was moved, replaced or removed while it was open here. Nothing "
                "was done: open the store again, once the file that is meant is at this path."
            )

    def holds(self) -> bool:
        """Whether :meth:`check` would pass."""
        return os.getpid() == self._process and inode(self._path) == self.inode


def leave_log(connection: apsw.Connection) -> None:
    """Let closing the connection touch no log: one of this name may be another store's, or another process's."""
    with suppress(apsw.Error):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def check_own_log(path: Path) -> None:
    """Raise StoreError if the log beside the file is not its own: SQLite would write it into the file.

    A file has in its header whether there may be a log. A backup says no; a store that was killed says yes.
    Raises apsw.Error.
    """
    log = path.parent / (path.name + "-wal")
    for look in range(LOOKS):
        if look:
            time.sleep(PAUSE)
        before = _filled(log)
        if before is None or first_bytes(path, 20)[_READ_WRITE_VERSIONS] != _WITHOUT_LOG or _filled(log) != before:
            return  # none, or its own, or one that comes and goes as another process opens and closes the store
    raise StoreError(
        f"The log {log} does not belong to the store {path} as it is now: a store that was at this path before, and "
        "was not closed, has left it, and a copy has been put in its place. Used together they would damage it. "
        f"Nothing was changed: move {log.name} and {path.name}-shm elsewhere, and open the store again."
    )


def check_one_name(path: Path) -> None:
    """Raise StoreError if the file has other names (hard links): under each of them it would have another log.

    The name that a killed backup had given its copy before, beside the copy's own, is taken away.
    """
    with suppress(OSError):
        if path.stat().st_nlink > 1:
            for other in path.parent.glob(f"{glob.escape(path.name)}.????????.tmp"):
                if other.samefile(path):
                    other.unlink()
        names = path.stat().st_nlink
        if names > 1:
            raise StoreError(
                f"The file of the store {path} has {names} names (hard links), and its log would be seen under one of "
                "them only. Nothing was changed: give it one name, by copying the file to a new one and moving that "
                "here, or remove the other names."
            )


def _filled(log: Path) -> tuple[int, int] | None:
    """Which file the log is, if anything is in it."""
    try:
        status = log.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status.st_size > LOG_HEADER_BYTES else None


def first_bytes(path: Path, count: int) -> bytes:
    """The beginning of a store's file, also while it is open in this process.

    Not by ``open``: closing a file lets go of all locks that the process holds on it, SQLite's among them. Raises
    apsw.Error.
    """
    size = path.stat().st_size
    file = apsw.VFSFile("", str(path.absolute()), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    try:
        return file.xRead(min(count, size), 0)
    finally:
        file.xClose()
