"""Opening a store to write to it: one of an earlier format is copied, then brought up to date in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import apsw

from ecphoryrag.store.connections import BUSY_SECONDS, connect_writer, format_of, known_format, transaction
from ecphoryrag.store.faults import translating
from ecphoryrag.store.former import keep_former
from ecphoryrag.store.schema import FORMAT, MIGRATIONS, migrate


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What became of a store of an earlier format."""

    path: Path
    found: int
    """Its format before."""
    copy: Path
    """Where it is as it was."""

    def __str__(self) -> str:
        return (
            f"The store {self.path} was of format {self.found} and is of format {FORMAT} now; {self.copy} is a copy of "
            "it as it was, which you may remove once you have seen that all is well."
        )


@dataclass(frozen=True, slots=True)
class OpenedWriter:
    """A connection that may write."""

    connection: apsw.Connection
    upgrade: Upgrade | None
    """What was done for it; None if the store was new or of the present format."""


def open_writer(path: Path, *, create: bool, busy_seconds: float = BUSY_SECONDS) -> OpenedWriter:
    """A connection that may write to the store, which is then of the present format.

    Killed or failed at any moment the store is as it was or of the present format; a copy has its name only when it is
    all there. Raises StoreNotFound, NotAStore, StoreTooNew, StoreBusy and StoreError.
    """
    connection = connect_writer(path, create=create, busy_seconds=busy_seconds)
    try:
        with translating(path):
            upgrade = _upgrade(connection, path) if known_format(connection, path) < FORMAT else None
    except BaseException:
        connection.close()
        raise
    return OpenedWriter(connection, upgrade)


def _upgrade(connection: apsw.Connection, path: Path) -> Upgrade | None:
    with transaction(connection, "IMMEDIATE"):
        found = format_of(connection, path)  # by now another process may have done it
        upgrade = Upgrade(path, found, keep_former(path, found)) if 0 < found < FORMAT else None
        for migration in MIGRATIONS[found:]:
            migrate(connection, migration)
    return upgrade
