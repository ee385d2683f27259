"""How the snapshot of a state is come by: from its cache, from an earlier snapshot and what has changed, or built."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import apsw

from ecphoryrag.snapshot import Snapshot
from ecphoryrag.store import sql
from ecphoryrag.store.cachefile import remove_cache
from ecphoryrag.store.changes import changed_since
from ecphoryrag.store.snapshot_cache import kept_under, read_snapshot, write_snapshot
from ecphoryrag.store.snapshots import build_snapshot, read_vectors
from ecphoryrag.store.updating import update_snapshot
from ecphoryrag.store.view import Beside, Former, Shared, Stamp

LEAST_CHANGED = 16
CHANGED_SHARE = 20
"""Where more documents have changed than these, and than one in so many of all, all is read again."""
WRITE_AFTER = 32
"""Commits after which a snapshot that was brought up to date in memory is written again: that takes time in proportion
to the whole, and the next opening can bring up to date what is a little older."""
NOTABLE_CHUNKS = 20_000
"""So many take some seconds to build, of which whoever waits is told."""

_log = logging.getLogger(__name__)


class Current:
    """Comes by snapshots for one opening of a store; the caller holds the lock of what is shared."""

    def __init__(self, beside: Beside, dimension: int, newest: Callable[[], Stamp]) -> None:
        self._beside = beside
        self._dimension = dimension
        self._newest = newest
        self._written: int | None = None
        """The generation of the cache that this opening has read or written last."""

    def snapshot(self, connection: apsw.Connection, shared: Shared) -> Snapshot:
        """The snapshot of what the connection's transaction sees, which is the state of ``shared``."""
        former, shared.former = shared.former, None
        kept = _kept(self._beside)
        if kept == shared.stamp:
            found = read_snapshot(self._beside.snapshot, json.dumps(kept))
            if found is not None:
                self._written = kept.generation
                return found
        made = None if former is None else _updated(connection, former, shared.stamp)
        if made is None and kept is not None and _changed(connection, kept, shared.stamp) is not None:
            found = read_snapshot(self._beside.snapshot, json.dumps(kept))
            made = None if found is None else _updated(connection, Former(kept, found), shared.stamp)
        if made is None:
            made = self._built(connection, shared.stamp)
        elif self._written is None or shared.stamp.generation - self._written > WRITE_AFTER:
            self._write(connection, shared.stamp, made)
        return made

    def _built(self, connection: apsw.Connection, stamp: Stamp) -> Snapshot:
        chunks = sql.value(connection, "SELECT count(*) FROM chunks")
        if chunks >= NOTABLE_CHUNKS:
            _log.warning("Preparing %s chunks for questions, which takes a while.", format(chunks, ","))
        half = read_vectors(connection, self._dimension)
        made = build_snapshot(connection, stamp.generation, half)
        self._write(connection, stamp, made)
        return made

    def _write(self, connection: apsw.Connection, stamp: Stamp, made: Snapshot) -> None:
        """Keep it, but not a cache that was written while documents were forgotten: it must not outlive them."""
        if not self._beside.writable:
            return
        half = read_vectors(connection, self._dimension)
        if write_snapshot(self._beside.snapshot, json.dumps(stamp), made, half):
            self._written = stamp.generation
        if self._newest() != stamp:
            remove_cache(self._beside.snapshot)
            self._written = None


def _kept(beside: Beside) -> Stamp | None:
    """The state that the cache says it is of; its checksum is not looked at yet."""
    try:
        store, generation, state = json.loads(kept_under(beside.snapshot) or "")
    except (ValueError, TypeError, RecursionError):
        return None
    right = isinstance(store, str) and isinstance(generation, int) and isinstance(state, str)
    return Stamp(store, generation, state) if right else None


def _changed(connection: apsw.Connection, then: Stamp, now: Stamp) -> frozenset[int] | None:
    """The rows of the documents that were changed, if that is known and they are few."""
    if then.store != now.store:
        return None
    documents = sql.value(connection, "SELECT count(*) FROM documents")
    most = max(LEAST_CHANGED, documents // CHANGED_SHARE)
    return changed_since(connection, (now.generation, now.state), (then.generation, then.state), most)


def _updated(connection: apsw.Connection, former: Former, stamp: Stamp) -> Snapshot | None:
    changed = _changed(connection, former.stamp, stamp)
    return None if changed is None else update_snapshot(connection, former.snapshot, changed, stamp.generation)
