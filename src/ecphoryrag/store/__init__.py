"""The embedded store: one SQLite file, its schema and migrations, and the caches beside it."""

from __future__ import annotations

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

    return SqliteStore(Path(path), encoder, extractor, create=create and not read_only, read_only=read_only)
