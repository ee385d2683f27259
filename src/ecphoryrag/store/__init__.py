"""The embedded store: one SQLite file, its schema and migrations, and the caches beside it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ecphoryrag.ports import Store
    from ecphoryrag.types import EncoderIdentity

__all__ = ["open_store"]


def open_store(
    path: Path, encoder: EncoderIdentity, extractor: str, *, create: bool = True, read_only: bool = False
) -> Store:
    """Open the store at this path, or make it if ``create`` (never when ``read_only``).

    Raises StoreNotFound, NotAStore, StoreTooNew, StoreBusy, StoreDamaged, StoreError, and EncoderMismatch if its
    vectors come from another encoder. ``extractor`` is the identity noted with each document that is committed.
    """
    from ecphoryrag.store.sqlite import SqliteStore  # noqa: PLC0415 - SQLite and numpy load when a store is opened

    path = Path(path)
    with suppress(OSError):  # a path that cannot be looked at is refused where it is opened
        if path.is_symlink():  # SQLite's log lies beside what it points to; so must the caches, for all its names
            path = Path(os.path.realpath(path))
    return SqliteStore(path, encoder, extractor, create=create and not read_only, read_only=read_only)
