"""A copy of a store, made while others read and write it."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import apsw

from ecphoryrag.errors import StoreDamaged, StoreError
from ecphoryrag.store import sql
from ecphoryrag.store.connections import beside, check_path, open_reader, transaction
from ecphoryrag.store.faults import translating
from ecphoryrag.store.guarded import guard
from ecphoryrag.store.verify import verify_store
from ecphoryrag.types import BackupReport

PAGES = 4096
"""Copied at a time, so that Ctrl-C is met in between."""


def backup_store(path: Path, target: Path) -> BackupReport:
    """Copy the store to ``target``, which must not be there yet; the copy is one state, checked before it is there.

    Others may read and write meanwhile: the copy is made inside one reading, which holds up nobody in a store that is
    written through a log. The caches and the ledger are not copied. Raises StoreError for a target that is there or
    cannot be written, StoreDamaged if the copy does not pass its check, and what opening the store raises.
    """
    started = time.perf_counter()
    check_path(path, create=False)
    check_path(target, create=True)
    if target.exists():
        raise StoreError(f"{target} is there already, and a backup writes over nothing: name another file.")
    temporary = beside(target, f".{secrets.token_hex(4)}.tmp")
    try:
        with translating(temporary):
            _copy(path, temporary)
        report = verify_store(temporary)
        if not report.sound:
            found = next(flaw for flaw in report.flaws if flaw.severity != "note")
            raise StoreDamaged(
                f"The copy of the store {path} is not sound ({found.where}: {found.what}), and was not kept: run "
                "`ecphory verify --deep` on the store."
            )
        size = temporary.stat().st_size
        _put(temporary, target)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(FileNotFoundError):
                beside(temporary, suffix).unlink()
    made = BackupReport(str(target), size, report.documents, report.chunks)
    return replace(made, seconds=time.perf_counter() - started)


def _copy(path: Path, temporary: Path) -> None:
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    with (
        closing(open_reader(path)) as source,
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


def _put(temporary: Path, target: Path) -> None:
    """Give the copy its name, once it is on the disk; never in the place of a file that came meanwhile."""
    try:
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.link(temporary, target)
    except FileExistsError as error:
        raise StoreError(f"{target} is there by now, and a backup writes over nothing: name another file.") from error
    except OSError:  # a file system without links
        try:
            temporary.rename(target)
        except OSError as error:
            raise StoreError(f"The backup {target} cannot be written ({error.strerror}); name another file.") from error
