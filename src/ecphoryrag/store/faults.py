"""SQLite's errors in this package's words: the one place where they are translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from ecphoryrag.errors import EcphoryError, InputError, NotAStore, StoreBusy, StoreDamaged, StoreError, StoreReadOnly

FAULTS: dict[type[apsw.Error], tuple[type[EcphoryError], str]] = {
    apsw.BusyError: (StoreBusy, "another process or thread holds it; try again when that has ended"),
    apsw.LockedError: (StoreBusy, "another connection of this process holds it; try again when that has ended"),
    apsw.FullError: (
        StoreError,
        "the disk is full; nothing of the last document was kept, all before it was: free space and try again",
    ),
    apsw.IOError: (StoreError, "reading or writing failed; check the disk and the permissions of the folder"),
    apsw.CorruptError: (StoreDamaged, "the file is damaged; restore a copy, or index the documents into a new store"),
    apsw.NotADBError: (
        NotAStore,
        "the file is something else (or an encrypted or overwritten store); name another path",
    ),
    apsw.ReadOnlyError: (StoreReadOnly, "the file or its folder cannot be written; check the permissions"),
    apsw.PermissionsError: (StoreError, "access was denied; check the permissions of the file and its folder"),
    apsw.CantOpenError: (
        StoreError,
        "it cannot be opened; check that the folder exists and that the file and the folder may be read and written",
    ),
    apsw.TooBigError: (InputError, "a document is larger than the store can hold (1 GB of text); split it"),
}
"""apsw's exception to ours, and what to do. Whatever is not named here is a mistake of ours and passes unchanged."""


def translated(path: Path, error: apsw.Error) -> EcphoryError | None:
    """The error to raise in place of this one, or None if it is not one that a user can meet."""
    for kind in type(error).__mro__:
        if kind in FAULTS:
            ours, advice = FAULTS[kind]
            return ours(f"The store {path} cannot be used: {advice} (SQLite says: {error}).")
    return None


@contextmanager
def translating(path: Path) -> Iterator[None]:
    """Raise this package's errors in place of SQLite's."""
    try:
        yield
    except apsw.Error as error:
        ours = translated(path, error)
        if ours is None:
            raise
        raise ours from error
