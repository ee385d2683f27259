"""A copy of a store, made while others read and write it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from ecphoryrag.errors import StoreDamaged, StoreError
from ecphoryrag.store.connections import check_path
from ecphoryrag.store.copying import copy_store, make_as_private, put_new, remove_unfinished, unfinished
from ecphoryrag.store.faults import translating
from ecphoryrag.store.verify import verify_store
from ecphoryrag.types import BackupReport


def backup_store(path: Path, target: Path) -> BackupReport:
    """Copy the store to ``target``, which must not be there yet; the copy is one state, checked before it is there.

    Those may read it who may read the store. Others may read and write meanwhile: the copy is made inside one
    reading, which holds up nobody in a store that is written through a log. The caches and the ledger are not
    copied. Raises StoreError for a target that is there or cannot be written, StoreDamaged if the copy does not
    pass its check, and what opening the store raises.
    """
    started = time.perf_counter()
    check_path(path, create=False)
    check_path(target, create=True)
    if target.exists():
        raise StoreError(f"{target} is there already, and a backup writes over nothing: name another file.")
    temporary = unfinished(target)
    try:
        _make(temporary, path, target)
        with translating(temporary):
            copy_store(path, temporary)
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
        remove_unfinished(temporary)
    made = BackupReport(str(target), size, report.documents, report.chunks)
    return replace(made, seconds=time.perf_counter() - started)


def _make(temporary: Path, path: Path, target: Path) -> None:
    try:
        make_as_private(temporary, path)
    except OSError as error:
        raise _unwritable(target, error) from error


def _unwritable(target: Path, error: OSError) -> StoreError:
    return StoreError(f"The backup {target} cannot be written ({error.strerror}); name another file.")


def _put(temporary: Path, target: Path) -> None:
    try:
        put_new(temporary, target)
    except FileExistsError as error:
        raise StoreError(f"{target} is there by now, and a backup writes over nothing: name another file.") from error
    except OSError as error:
        raise _unwritable(target, error) from error
