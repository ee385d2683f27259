"""Erasing: forgetting documents so that no byte of the store's files tells of them, and a receipt of what was checked.

The rows are deleted in one transaction, which also notes that an erasure has begun. Then the lexical index is merged
into one segment without the deleted words, the caches are made anew or removed, the ledger and the store are each
written anew as a whole, their logs are emptied, and copies from before a migration are removed. At last every file
beside the store is searched byte by byte. Only then is the note taken back: whoever is killed in between finishes by
erasing again.
"""

from __future__ import annotations

import glob
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from ecphoryrag.ports import Replies
from ecphoryrag.store import sql
from ecphoryrag.store.cachefile import remove_cache
from ecphoryrag.store.connections import COMPANIONS, beside
from ecphoryrag.store.decisions import forget_documents
from ecphoryrag.store.entities import read_all_entities
from ecphoryrag.store.entity_vectors import EntityVectors
from ecphoryrag.store.former import is_former, remove_formers
from ecphoryrag.store.holder import holder
from ecphoryrag.store.ledger_file import ASIDE
from ecphoryrag.store.raw_bytes import Searched, search
from ecphoryrag.store.reembed import Connected, Writing
from ecphoryrag.store.rows import delete, document_row, no_document
from ecphoryrag.store.traces import Needles, Traces, distinctive
from ecphoryrag.store.view import Beside, read_stamp
from ecphoryrag.types import EncoderIdentity, ErasedFile, EraseReceipt, Failure

NOTHING_GONE, GONE, ERASING = 0, 1, 2
"""The property ``forgotten``: what has left the store since its file was last written anew, and whether that was to be
erased and is not finished."""
IN_MEMORY = 2**28
"""Bytes of a store that is written anew in memory; a larger one through a file of the system's temporary folder, which
holds nothing of what was erased."""
LEDGER = "-ledger"
_COUNTED = (
    *("documents", "chunks", "entities", "mentions", "aliases", "failures", "completions", "next_vectors"),
    *("extractors", "decisions"),
)
BEYOND = (
    "backups, exports and other copies of the store or of the ledger, wherever they are",
    "blocks that the file system has set free, its snapshots and journal, and what a disk keeps of overwritten blocks",
    "swapped or dumped memory of processes that had read the documents, and their memory until they end",
    "what language-model servers were sent, and keep",
)
"""What no erasure of ours reaches."""


def read_gone(connection: apsw.Connection) -> int:
    """What has left the store: one of NOTHING_GONE, GONE and ERASING."""
    gone: int = sql.value(connection, "SELECT value FROM properties WHERE name = 'forgotten'")
    return gone


def set_gone(connection: apsw.Connection, gone: int) -> None:
    """Note what has left the store; the caller holds the transaction."""
    connection.execute("UPDATE properties SET value = ? WHERE name = 'forgotten'", (gone,))


@dataclass(frozen=True, slots=True)
class Access:
    """What of the store an erasure needs."""

    path: Path
    encoder: EncoderIdentity
    caches: Beside
    reading: Connected
    writing: Writing
    alone: Callable[[], AbstractContextManager[apsw.Connection]]
    """The writer, outside a transaction."""
    flush: Callable[[], None]


@dataclass(slots=True)
class _Found:
    """What the search of all files has shown."""

    files: tuple[ErasedFile, ...]
    remaining: tuple[Failure, ...]
    copies: tuple[Failure, ...]


def erase(access: Access, ids: Sequence[str], replies: Replies | None) -> EraseReceipt:
    """Erase these documents, and finish an erasure that was begun before. See :meth:`ecphoryrag.Memory.forget`.

    Raises DocumentNotFound, with nothing changed, for an id that is not there, unless an erasure was begun before: it
    may have been one of that. Raises StoreBusy, StoreReadOnly and StoreError.
    """
    started = time.perf_counter()
    wanted = list(dict.fromkeys(ids))
    before = _sizes(access.path)
    pending, there = _look(access, wanted)
    if replies is not None:
        replies.forget(wanted)
    traces, rows = _delete(access, there, wanted if pending else [])
    with access.reading() as connection:
        needles = distinctive(connection, traces)
        keys = {key for (key,) in sql.rows(connection, "SELECT key FROM entities")}
    shared = tuple(sorted(key for key in traces.keys if key in keys))
    if replies is not None:
        rows["ledger"] = replies.scrub(needles.texts)
    _renew_caches(access)
    why = _write_anew(access)
    unremoved = remove_formers(access.path)
    found = _search(access, needles, replies, before)
    kept = {failure.source for failure in unremoved}
    remaining = (*unremoved, *(failure for failure in found.remaining if failure.source not in kept))
    if why is None and not remaining:
        with access.writing(moving=False) as connection:
            set_gone(connection, NOTHING_GONE)
        access.flush()
    return EraseReceipt(
        path=str(access.path),
        documents=tuple(there),
        already_gone=tuple(_without(wanted, there)),
        rows=rows,
        files=found.files,
        needles=len(needles.all),
        needles_left_out=needles.left_out,
        shared_needles=needles.shared,
        shared_entities=shared,
        remaining=remaining,
        copies=found.copies,
        pending=why,
        beyond=BEYOND,
        seconds=time.perf_counter() - started,
    )


def _look(access: Access, wanted: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether an erasure was begun before, and which documents are there."""
    with access.reading() as connection:
        pending = read_gone(connection) == ERASING
        there = [id_ for id_ in wanted if document_row(connection, id_) is not None]
    missing = _without(wanted, there)
    if missing and not pending:
        raise no_document(access.path, missing)
    return pending, there


def _without(wanted: Sequence[str], there: Sequence[str]) -> list[str]:
    known = frozenset(there)
    return [id_ for id_ in wanted if id_ not in known]


def _delete(access: Access, there: Sequence[str], others: Sequence[str]) -> tuple[Traces, dict[str, int]]:
    """Delete the documents in one transaction; what they were, and how many rows of each table went."""
    traces = Traces()
    for id_ in others:
        traces.add_text(id_)
    with access.writing(moving=bool(there)) as connection:
        set_gone(connection, ERASING)
        before = _counts(connection) if there else {}
        rows = [row for id_ in there if (row := document_row(connection, id_)) is not None]
        for row in rows:
            traces.add_document(connection, row)
        traces.add_encoded(connection)
        for row in rows:
            delete(connection, row)
        forget_documents(connection, there)
        _forget_names(connection, traces)
        after = _counts(connection) if there else {}
    return traces, {table: before[table] - after[table] for table in before}


def _forget_names(connection: apsw.Connection, traces: Traces) -> None:
    """Take names that no document has any more out of what was decided about names: here they would be the last trace.

    A merge of more than two names loses that name alone, also if it was the one to show.
    """
    for key in traces.keys:
        if sql.row(connection, "SELECT 1 FROM entities WHERE key = ?", (key,)) is not None:
            continue
        connection.execute(
            "DELETE FROM decisions WHERE (target = ?1 OR number IN (SELECT decision FROM decided_keys WHERE key = ?1)) "
            "AND (kind != 'merge' OR (SELECT count(*) FROM decided_keys WHERE decision = decisions.number) <= 2)",
            (key,),
        )
        connection.execute("UPDATE decisions SET target = NULL WHERE kind = 'merge' AND target = ?", (key,))
        connection.execute("DELETE FROM decided_keys WHERE key = ?", (key,))


def _counts(connection: apsw.Connection) -> dict[str, int]:
    counts: dict[str, int] = {}
    for table in _COUNTED:
        counts[table] = sql.value(connection, f"SELECT count(*) FROM {table}")  # noqa: S608 - constants
    return counts


def _renew_caches(access: Access) -> None:
    """Leave nothing in the caches of what is gone."""
    with access.writing(moving=False) as connection:
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")
    remove_cache(access.caches.snapshot)
    vectors = access.caches.vectors
    for file in vectors.parent.glob(f"{glob.escape(vectors.name)}.*.tmp"):  # of killed writers
        with suppress(FileNotFoundError):
            file.unlink()
    if vectors.exists():
        with access.reading() as connection:
            kept = read_all_entities(connection)
            state = json.dumps(read_stamp(connection))
        if not EntityVectors(vectors, access.encoder, writable=True).keep_only(kept, state):
            remove_cache(vectors)


def _write_anew(access: Access) -> str | None:
    """Write the whole file anew and empty the log; why that could not be done now."""
    with access.alone() as connection:
        try:
            size = access.path.stat().st_size
            if size > IN_MEMORY:
                connection.execute("PRAGMA temp_store = FILE")
            connection.execute("VACUUM")
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except (apsw.BusyError, apsw.LockedError):
            return (
                f"the store is {holder(access.path)}: what was forgotten is still in the file or its log. Run `ecphory "
                "forget --erase` when that has ended"
            )
        finally:
            connection.execute("PRAGMA temp_store = MEMORY")
    return None


def files_of(path: Path) -> Iterator[Path]:
    """The store's file and all that lies beside it under its name."""
    for file in sorted(path.parent.glob(f"{glob.escape(path.name)}*")):
        if file.name[len(path.name) :][:1] in ("", "-", ".") and file.is_file():
            yield file


def _sizes(path: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for file in files_of(path):
        with suppress(OSError):
            sizes[file.name] = file.stat().st_size
    return sizes


def _search(access: Access, needles: Needles, replies: Replies | None, before: dict[str, int]) -> _Found:
    """Search every file, tell what other documents hold from what is left, and remove ledgers that were put aside."""
    searched = search(list(files_of(access.path)), needles.all)
    ledger = beside(access.path, LEDGER)
    found = sorted({number for one in searched for number in one.found})
    some = [needles.all[number] for number in found]
    paid = {found[at] for at in replies.held(some)} if replies is not None and ledger.exists() else set()
    files: list[ErasedFile] = []
    remaining: list[Failure] = []
    copies: list[Failure] = []
    for one in searched:
        of_ledger = one.path.name.startswith(ledger.name)
        left = [number for number in one.found if not (of_ledger and number in paid)]
        aside = one.path.name.startswith(ledger.name + ASIDE)
        removed = aside and bool(left) and _removed(one.path)
        files.append(
            ErasedFile(
                one.path.name,
                "removed" if removed else "searched",
                before.get(one.path.name, 0),
                0 if removed else one.bytes,
                0 if removed else len(left),
            )
        )
        if removed or not (left or one.error):
            continue
        failure = _failure(one, len(left))
        (remaining if _is_ours(access.path, one.path) else copies).append(failure)
    there = {one.path.name for one in searched}
    gone = [ErasedFile(file, "removed", size, 0, 0) for file, size in before.items() if file not in there]
    return _Found((*files, *gone), tuple(remaining), tuple(copies))


def _failure(one: Searched, left: int) -> Failure:
    if one.error:
        return Failure(str(one.path), f"it could not be read ({one.error}): check its permissions, and erase again")
    return Failure(str(one.path), f"it still holds {left} of the words, runs of text or numbers that were searched for")


def _is_ours(path: Path, file: Path) -> bool:
    """Whether it is one of the store's own files, and not a copy that somebody has put beside it."""
    rest = file.name[len(path.name) :]
    return rest.removeprefix(LEDGER) in ("", *COMPANIONS) or rest in ("-cache", "-vectors") or is_former(path, file)


def _removed(file: Path) -> bool:
    """Remove a ledger that was put aside: nothing uses it."""
    try:
        file.unlink(missing_ok=True)
    except OSError:
        return False
    return True
