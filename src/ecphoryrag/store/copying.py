"""Copying a store's file as it is at one moment, and giving the copy its name once it is on the disk."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import closing, suppress
from pathlib import Path

import apsw

from ecphoryrag.store import sql
from ecphoryrag.store.connections import COMPANIONS, beside, open_reader, transaction
from ecphoryrag.store.guarded import guard

PAGES = 4096
"""Copied at a time, so that Ctrl-C is met in between."""
UNFINISHED = ".tmp"
"""How the name of a copy ends that is not all there."""


def unfinished(target: Path) -> Path:
    """Another name for a copy while it is made: what is found under it is never a copy."""
    return beside(target, f".{secrets.token_hex(4)}{UNFINISHED}")


def copy_store(path: Path, temporary: Path, *, any_format: bool = False) -> None:
    """Copy the store, while others may read and write it, to a file that is not there or empty.

    Raises StoreError for a store of an earlier format unless ``any_format``, apsw.Error, and what opening raises.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    with (
        closing(open_reader(path, any_format=any_format)) as source,
        closing(guard(apsw.Connection(str(temporary.absolute()), flags=flags))) as copy,
        transaction(source, "DEFERRED"),  # held to the end, so that no commit of another makes it begin again
    ):
        sql.value(source, "SELECT count(*) FROM sqlite_schema")
        backup = copy.backup("main", source, "main")
        try:
            while not backup.done:
                backup.step(PAGES)
        except apsw.Error:
            with suppress(apsw.Error):  # ending it says once more what went wrong
                backup.close()
            raise
        backup.close()
        copy.execute("PRAGMA journal_mode = DELETE")


def make_as_private(file: Path, store: Path) -> None:
    """Make the file, empty, for those alone who may read the store, whatever the process gives a new file.

    Raises OSError, FileExistsError among them.
    """
    mode = stat.S_IMODE(store.stat().st_mode) & 0o666
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(handle, mode | stat.S_IRUSR | stat.S_IWUSR)
    finally:
        os.close(handle)


def put_new(temporary: Path, target: Path) -> None:
    """Give the copy its name, once it is on the disk, never in the place of another file.

    Raises FileExistsError if there is one, and OSError.
    """
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise FileExistsError(target) from None
        temporary.rename(target)


def remove_unfinished(temporary: Path) -> None:
    """Remove what is left of the making of a copy, also after it has its name. Raises OSError."""
    for suffix in ("", *COMPANIONS):
        beside(temporary, suffix).unlink(missing_ok=True)
