"""The embedded store: one SQLite file, its schema and migrations, and the caches beside it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ecphoryrag.ports import Store
    from ecphoryrag.store.graph import GraphFormat
    from ecphoryrag.types import (
        BackupReport,
        EncoderIdentity,
        ExportReport,
        GraphReport,
        RepairReport,
        VerifyReport,
    )

__all__ = [
    "backup_store",
    "export_graph",
    "export_store",
    "kept_encoder",
    "open_store",
    "repair_store",
    "verify_store",
]


def kept_encoder(path: Path) -> EncoderIdentity | None:
    """Whose vectors the store at this path holds, of whatever format it is; None if there is no store yet.

    Raises NotAStore, StoreTooNew, StoreBusy, StoreDamaged and StoreError.
    """
    from ecphoryrag.store.connections import open_reader  # noqa: PLC0415 - as below
    from ecphoryrag.store.faults import translating  # noqa: PLC0415
    from ecphoryrag.store.identity import ENCODER, read_identity  # noqa: PLC0415

    path = _real(Path(path))
    if not path.exists() or (path.is_file() and not path.stat().st_size):
        return None
    with translating(path):
        connection = open_reader(path, any_format=True)
        try:
            # A process that was killed in making the store has left a file without a table.
            made = connection.execute("PRAGMA user_version").get
            return read_identity(connection, ENCODER, path) if made else None
        finally:
            connection.close()


def open_store(
    path: Path,
    encoder: EncoderIdentity,
    extractor: str | Callable[[], str],
    *,
    create: bool = True,
    read_only: bool = False,
) -> Store:
    """Open the store at this path, or make it if ``create`` (never when ``read_only``).

    Raises StoreNotFound, NotAStore, StoreTooNew, StoreBusy, StoreDamaged, StoreError, and EncoderMismatch if its
    vectors come from another encoder. ``extractor`` is the identity noted with each document that is committed,
    or a function that finds it out when it is needed.
    """
    from ecphoryrag.store.sqlite import SqliteStore  # noqa: PLC0415 - SQLite and numpy load when a store is opened

    return SqliteStore(_real(Path(path)), encoder, extractor, create=create and not read_only, read_only=read_only)


def verify_store(path: Path, *, deep: bool = False) -> VerifyReport:
    """Check the store at this path, and with ``deep`` every row of it; see :mod:`ecphoryrag.store.verify`."""
    from ecphoryrag.store.verify import verify_store as verify  # noqa: PLC0415 - as above

    return verify(_real(Path(path)), deep=deep)


def repair_store(path: Path) -> RepairReport:
    """Mend what can be mended from the texts in the store; see :mod:`ecphoryrag.store.repair`."""
    from ecphoryrag.store.repair import repair_store as repair  # noqa: PLC0415 - as above

    return repair(_real(Path(path)))


def backup_store(path: Path, target: Path) -> BackupReport:
    """Copy the store while others use it; see :mod:`ecphoryrag.store.backup`."""
    from ecphoryrag.store.backup import backup_store as backup  # noqa: PLC0415 - as above

    return backup(_real(Path(path)), Path(target))


def export_store(path: Path, output: IO[str], *, vectors: bool = False) -> ExportReport:
    """Write the store as lines of JSON; see :mod:`ecphoryrag.store.export`."""
    from ecphoryrag.store.export import export_store as export  # noqa: PLC0415 - as above

    return export(_real(Path(path)), output, vectors=vectors)


def export_graph(path: Path, target: Path | IO[str], format: GraphFormat) -> GraphReport:
    """Write the graph of the store for other tools; see :mod:`ecphoryrag.store.graph`."""
    from ecphoryrag.store.graph import export_graph as export  # noqa: PLC0415 - as above

    return export(_real(Path(path)), target, format)


def _real(path: Path) -> Path:
    with suppress(OSError):  # a path that cannot be looked at is refused where it is opened
        if path.is_symlink():  # SQLite's log lies beside what it points to; so must the caches, for all its names
            return Path(os.path.realpath(path))
    return path
