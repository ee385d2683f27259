"""Mending a store: all that can be made again from the documents' texts in it, in one transaction."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import apsw

from ecphoryrag.errors import StoreDamaged
from ecphoryrag.store import sql
from ecphoryrag.store.cachefile import kept_stamp, remove_cache
from ecphoryrag.store.connections import beside, connect_writer, open_reader, stop_logging, transaction
from ecphoryrag.store.decisions import remove_faulty
from ecphoryrag.store.erase import ERASING, read_gone
from ecphoryrag.store.faults import translating
from ecphoryrag.store.identity import ENCODER, NEXT_ENCODER, read_identity
from ecphoryrag.store.invariants import PENDING, PROPERTIES_AT_ODDS, Fault, Read, examine_document, vector_fault
from ecphoryrag.store.ledger import LEDGER, open_ledger
from ecphoryrag.store.ledger_file import put_aside
from ecphoryrag.store.linking import word_hashes
from ecphoryrag.store.rows import delete_unused
from ecphoryrag.store.sqlite import SqliteStore
from ecphoryrag.store.upgrade import open_writer
from ecphoryrag.store.verify import cache_files, verify_store
from ecphoryrag.text.keys import name_key
from ecphoryrag.text.terms import segment
from ecphoryrag.types import EraseReceipt, RepairReport

UNKNOWN_EXTRACTOR = "unknown"
"""Stands for the extractor of a document that no longer says which it was."""
DAMAGED = "damaged"
"""Stands for the hash of a content that is not what was added."""
BESIDE = frozenset({"cache", "ledger"})
"""Kinds of flaws that are mended without touching the store."""
LOST = frozenset({"hash", "metadata", "decision"})
"""Kinds that are consistent again afterwards, but without what was lost."""
_LOOSE = ("mentions", "aliases", "failures", "completions", "next_vectors")


def repair_store(path: Path) -> RepairReport:
    """Check all of the store, mend what can be mended from its own texts in one transaction, and check it again.

    Made again: the lexical index, SQLite's own indices, entities, words, properties. A chunk whose mentions cannot be
    used is marked as failed, so that ``add --retry`` extracts it again. A document whose chunks or vectors cannot be
    used keeps its text, loses them, and is ``pending``: :meth:`ecphoryrag.Memory.repair` indexes it again. One whose
    text cannot be read stays as it is in the file, and is listed. No document is removed. Damaged caches are removed,
    a damaged ledger is put aside. An erasure that was begun is finished.

    Raises StoreDamaged, with nothing changed, if the file's own structure is damaged beyond its indices, and what
    opening the store raises.
    """
    started = time.perf_counter()
    with translating(path):  # migrated, and with what a killed writer left half done undone
        opened = open_writer(path, create=False)
        opened.connection.close()
    before = verify_store(path, deep=True)
    wrong = [flaw for flaw in before.flaws if flaw.severity != "note"]
    if any(flaw.kind not in BESIDE for flaw in wrong):
        with translating(path), closing(connect_writer(path, create=False)) as connection:
            with transaction(connection, "IMMEDIATE"):
                _mend(connection, path)
            stop_logging(connection)
    for file in cache_files(path):
        if kept_stamp(file) is None:
            remove_cache(file)
    ledger = beside(path, LEDGER)
    if any(flaw.kind == "ledger" for flaw in wrong) and not ledger.is_dir():  # a folder holds what is no ledger's
        put_aside(ledger)
    receipt = _finish_erasure(path)
    after = verify_store(path, deep=True)
    remaining = [flaw for flaw in after.flaws if flaw.severity != "note" and flaw.kind != "pending"]
    left = {(flaw.kind, flaw.where) for flaw in remaining}
    gone = [flaw for flaw in wrong if (flaw.kind, flaw.where) not in left and flaw.kind != "pending"]
    lost = [flaw for flaw in gone if flaw.kind in LOST]
    with translating(path), closing(open_reader(path)) as connection:
        pending = _pending(connection)
    mended = tuple(flaw for flaw in gone if flaw.kind not in LOST)
    upgraded = None if opened.upgrade is None else str(opened.upgrade)
    seconds = time.perf_counter() - started
    return RepairReport(
        str(path), mended, (*remaining, *lost), pending, upgraded=upgraded, receipt=receipt, seconds=seconds
    )


def _finish_erasure(path: Path) -> EraseReceipt | None:
    """Finish an erasure that was begun and not finished; None if there is none, or the store cannot say its encoder."""
    with translating(path), closing(open_reader(path)) as connection:
        if read_gone(connection) != ERASING:
            return None
        try:
            encoder = read_identity(connection, ENCODER, path)
        except StoreDamaged:
            return None
    if encoder is None:
        return None
    store = SqliteStore(path, encoder, "", create=False, read_only=False)
    with closing(store), closing(open_ledger(path)) as replies:
        return store.erase((), replies)


def _pending(connection: apsw.Connection) -> tuple[str, ...]:
    rows = sql.rows(connection, "SELECT id FROM documents WHERE content_hash = ? ORDER BY id", (PENDING,))
    return tuple(id_ for (id_,) in rows)


def _mend(connection: apsw.Connection, path: Path) -> None:
    try:
        connection.execute("REINDEX")
        _mend_properties(connection)
        _mend_references(connection)
        dimension = _dimension(connection, path)
        for (row,) in list(sql.rows(connection, "SELECT row FROM documents ORDER BY row")):
            read, faults = examine_document(connection, row, dimension)
            _mend_document(connection, read, faults)
        _mend_next(connection, path)
        remove_faulty(connection)
        connection.execute("DELETE FROM entities WHERE row NOT IN (SELECT entity FROM mentions)")
        delete_unused(connection, [row for (row,) in list(sql.rows(connection, "SELECT row FROM extractors"))])
        _index_again(connection)
        _set(connection, "state", secrets.token_hex(8))
        connection.execute("UPDATE properties SET value = value + 1 WHERE name = 'generation'")
        said = [line for (line,) in sql.rows(connection, "PRAGMA main.integrity_check(1)")]
    except (apsw.CorruptError, apsw.ConstraintError, apsw.SQLError) as error:
        said = [str(error)]
    if said != ["ok"]:
        raise StoreDamaged(
            f"The store {path} is damaged in a way that cannot be mended in place ({said[0]}); nothing was changed. "
            "Restore a copy, or save what can be read with `ecphory export` and import it into a new store."
        )


def _set(connection: apsw.Connection, name: str, value: int | str) -> None:
    connection.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (name, value))


def _mend_properties(connection: apsw.Connection) -> None:
    values: dict[str, int | str | None] = {"store": uuid.uuid4().hex, "generation": 0, "state": "", "forgotten": 0}
    values |= {"flushes": 0, "writer": None}
    connection.execute(PROPERTIES_AT_ODDS.replace("SELECT count(*)", "DELETE", 1))
    connection.executemany("INSERT OR IGNORE INTO properties VALUES (?, ?)", list(values.items()))


def _mend_references(connection: apsw.Connection) -> None:
    """Remove rows of documents and chunks that are gone; name an extractor where none is named."""
    connection.execute("DELETE FROM chunks WHERE document NOT IN (SELECT row FROM documents)")
    for table in _LOOSE:
        connection.execute(f"DELETE FROM {table} WHERE chunk NOT IN (SELECT row FROM chunks)")  # noqa: S608 - constants
    connection.execute("DELETE FROM completions WHERE extractor NOT IN (SELECT row FROM extractors)")
    if sql.row(connection, "SELECT 1 FROM documents WHERE extractor NOT IN (SELECT row FROM extractors) LIMIT 1"):
        connection.execute("INSERT INTO extractors (identity) VALUES (?) ON CONFLICT DO NOTHING", (UNKNOWN_EXTRACTOR,))
        connection.execute(
            "UPDATE documents SET extractor = (SELECT row FROM extractors WHERE identity = ?) "
            "WHERE extractor NOT IN (SELECT row FROM extractors)",
            (UNKNOWN_EXTRACTOR,),
        )


def _dimension(connection: apsw.Connection, path: Path) -> int | None:
    try:
        encoder = read_identity(connection, ENCODER, path)
    except StoreDamaged:
        return None
    return None if encoder is None else encoder.dimension


def _mend_document(connection: apsw.Connection, read: Read, faults: Sequence[Fault]) -> None:
    kinds = {fault.kind for fault in faults}
    if not kinds:
        return
    if read.id is None and read.text is not None:
        connection.execute("UPDATE documents SET id = ? WHERE row = ?", (f"unreadable id {read.row}", read.row))
        _begin_again(connection, read)
        return
    if "document" in kinds:
        # What was derived from a text that cannot be read cannot be shown, and would spoil what is shown of others.
        connection.execute("DELETE FROM chunks WHERE document = ?", (read.row,))
        return
    if kinds & {"metadata", "chunk", "vector"}:
        _begin_again(connection, read)
        return
    failed = {fault.chunk for fault in faults if fault.kind in ("mention", "alias", "failure")} - {None}
    for chunk in failed:
        _mark_failed(connection, chunk or 0)
    for fault in faults:
        if fault.kind == "words" and fault.chunk is not None:
            _mend_words(connection, read, fault.chunk)
        elif fault.kind == "key" and fault.chunk not in failed and fault.chunk is not None:
            _mend_keys(connection, read, fault.chunk)
    document = read.document
    if kinds & {"hash", "characters"} and document is not None:
        # The hash of nothing, where the content is not what was added: adding the original again is then seen to be a
        # change, and until that is done the loss is not forgotten.
        kept = DAMAGED if "hash" in kinds else document.content_hash
        connection.execute(
            "UPDATE documents SET content_hash = ?, characters = ? WHERE row = ?", (kept, len(document.text), read.row)
        )


def _begin_again(connection: apsw.Connection, read: Read) -> None:
    """Keep the document with what of it can be read, and nothing that was derived from it."""
    connection.execute("DELETE FROM chunks WHERE document = ?", (read.row,))
    headings = [
        [one.level, one.text, one.start, one.end]
        for one in read.headings or ()
        if (read.text or "")[one.start : one.end] == one.text
    ]
    connection.execute(
        "UPDATE documents SET title = ?, source = ?, metadata = ?, headings = ?, content_hash = ?, characters = ? "
        "WHERE row = ?",
        (
            read.title or "",
            read.source,
            json.dumps(read.metadata or {}, ensure_ascii=False, separators=(",", ":")),
            json.dumps(headings, ensure_ascii=False, separators=(",", ":")),
            PENDING,
            len(read.text or ""),
            read.row,
        ),
    )


def _mark_failed(connection: apsw.Connection, chunk: int) -> None:
    for table in ("mentions", "aliases"):
        connection.execute(f"DELETE FROM {table} WHERE chunk = ?", (chunk,))  # noqa: S608 - constants
    reason = "its mentions were damaged in the store; `ecphory add --retry` extracts them again"
    connection.execute("INSERT OR REPLACE INTO failures VALUES (?, ?)", (chunk, reason))


def _mend_words(connection: apsw.Connection, read: Read, chunk: int) -> None:
    start, stop = sql.one(connection, "SELECT start, stop FROM chunks WHERE row = ?", (chunk,))
    words = word_hashes((read.text or "")[start:stop]).astype("<u4").tobytes()
    connection.execute("UPDATE chunks SET words = ? WHERE row = ?", (words, chunk))


def _mend_keys(connection: apsw.Connection, read: Read, chunk: int) -> None:
    """Let each mention of the chunk be one of the entity whose name it is."""
    query = "SELECT number, field, start, stop FROM mentions WHERE chunk = ?"
    for number, field, start, stop in list(sql.rows(connection, query, (chunk,))):
        key = name_key(((read.text if field else read.title) or "")[start:stop])
        connection.execute("INSERT INTO entities (key) VALUES (?) ON CONFLICT DO NOTHING", (key,))
        connection.execute(
            "UPDATE mentions SET entity = (SELECT row FROM entities WHERE key = ?) WHERE chunk = ? AND number = ?",
            (key, chunk, number),
        )


def _mend_next(connection: apsw.Connection, path: Path) -> None:
    """Remove next vectors that cannot be used; the move to the next encoder makes them again."""
    try:
        target = read_identity(connection, NEXT_ENCODER, path)
    except StoreDamaged:
        target = None
        connection.execute("DELETE FROM properties WHERE name = ?", (NEXT_ENCODER,))
    rows = list(sql.rows(connection, "SELECT chunk, vector FROM next_vectors"))
    bad = [(chunk,) for chunk, vector in rows if target is None or vector_fault(vector, target.dimension)]
    connection.executemany("DELETE FROM next_vectors WHERE chunk = ?", bad)


def _index_again(connection: apsw.Connection) -> None:
    """Make the lexical index again from the texts."""
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    for row, title, body in _searched(connection):
        connection.execute("INSERT INTO search (rowid, title, body) VALUES (?, ?, ?)", (row, title, body))


def _searched(connection: apsw.Connection) -> Iterator[tuple[int, str, str]]:
    query = "SELECT row, document, start, stop FROM chunks ORDER BY document, ordinal"
    document, title, text = None, "", ""
    for row, of, start, stop in list(sql.rows(connection, query)):
        if of != document:
            document = of
            title, text = sql.one(connection, "SELECT title, text FROM documents WHERE row = ?", (of,))
            title = segment(title)
        yield row, title, segment(text[start:stop])
