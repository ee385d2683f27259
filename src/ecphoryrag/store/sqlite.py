"""The embedded store: one SQLite file is the truth, what lies beside it only saves time."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import apsw

from ecphoryrag.errors import DocumentNotFound, InputError, StoreBusy, StoreError, StoreReadOnly
from ecphoryrag.ports import Earlier, Exported, IndexedDocument, Replies, Revision, View, Where
from ecphoryrag.snapshot import Snapshot
from ecphoryrag.store import sql
from ecphoryrag.store.cachefile import remove_cache
from ecphoryrag.store.changes import note_change
from ecphoryrag.store.connections import (
    BUSY_SECONDS,
    ReaderPool,
    beside,
    open_reader,
    start_logging,
    stop_logging,
    transaction,
)
from ecphoryrag.store.current import Current
from ecphoryrag.store.deciding import Deciding
from ecphoryrag.store.decisions import forget_documents
from ecphoryrag.store.erase import GONE, erase, read_gone, set_gone
from ecphoryrag.store.erase import Access as Erasing
from ecphoryrag.store.faults import suspecting, translating
from ecphoryrag.store.filters import Filter, Filterable
from ecphoryrag.store.holder import holder, now, ourselves
from ecphoryrag.store.identity import check_encoder, check_unmoved, packed
from ecphoryrag.store.kept_json import read_metadata
from ecphoryrag.store.reembed import Access, SqliteReembedding
from ecphoryrag.store.revise import check_revision, read_earlier, revise
from ecphoryrag.store.rows import (
    check,
    complete,
    delete,
    document_row,
    insert,
    no_document,
    read_document,
    read_indexed,
)
from ecphoryrag.store.standing import Standing, leave_log
from ecphoryrag.store.status import read_erasure, read_incomplete, read_status
from ecphoryrag.store.upgrade import open_writer
from ecphoryrag.store.view import Beside, Shared, SqliteView, Stamp, read_stamp
from ecphoryrag.types import Document, DocumentSummary, EncoderIdentity, EraseReceipt, Extraction, StoreStatus

CACHE = "-cache"
VECTORS = "-vectors"
"""What is added to the store's name for the snapshot's cache and for that of the entities' vectors."""


_SOURCES = "SELECT id, source FROM documents WHERE id IN (SELECT value FROM json_each(?))"


class SqliteStore:
    """See :class:`ecphoryrag.ports.Store`; one instance may be used from several threads.

    Raises StoreReadOnly for writes to a store opened read-only, StoreBusy if another process holds the file for
    longer than ``BUSY_SECONDS``, and StoreError or StoreDamaged if the disk or the file fails.
    """

    def __init__(
        self,
        path: Path,
        encoder: EncoderIdentity,
        extractor: str | Callable[[], str],
        *,
        create: bool,
        read_only: bool,
    ) -> None:
        self._path = path
        self._encoder = encoder
        self._extractor = extractor
        self._beside = Beside(beside(path, CACHE), beside(path, VECTORS), writable=not read_only)
        self._writing = threading.RLock()
        self._sharing = threading.Lock()
        self._shared: Shared | None = None
        self._logging = False
        self._gone = False
        self._unflushed = False
        self._closed = False
        self._ourselves = ourselves(now())
        self._writer: apsw.Connection | None = None
        self._notices: tuple[str, ...] = ()
        if read_only:
            with translating(path):
                connection = open_reader(path)
                try:
                    self._check_encoder(connection)
                finally:
                    connection.close()
        else:
            opened = open_writer(path, create=create)
            self._writer = opened.connection
            self._notices = () if opened.upgrade is None else (str(opened.upgrade),)
            try:
                with translating(path):
                    self._adopt(self._writer)
                    if erasure := read_erasure(self._writer):
                        self._notices += (f"An erasure in the store {path} was {erasure}.",)
                    # At once, since a reading that is open when the first commit comes would hold it up; but if
                    # another process is reading just now, the first commit is soon enough.
                    with suppress(apsw.BusyError):
                        start_logging(self._writer, 0)
                        self._logging = True
            except BaseException as error:
                for notice in self._notices:
                    error.add_note(notice)
                self._writer.close()
                raise
        self._standing = Standing(path)
        self._readers = ReaderPool(path)
        self._current = Current(self._beside, encoder.dimension, self._newest)

    def _adopt(self, connection: apsw.Connection) -> None:
        """Write the encoder's identity into a new store, or compare it with the store's."""
        if sql.row(connection, "SELECT 1 FROM properties WHERE name = 'encoder'") is None:
            with transaction(connection, "IMMEDIATE"):
                connection.execute(
                    "INSERT INTO properties VALUES ('encoder', ?) ON CONFLICT DO NOTHING", (packed(self._encoder),)
                )
        self._check_encoder(connection)

    def _check_encoder(self, connection: apsw.Connection) -> None:
        with suspecting(self._path, connection, self._encoder.dimension):
            check_encoder(connection, self._path, self._encoder)

    @property
    def path(self) -> Path:
        """Where its file is."""
        return self._path

    @property
    def notices(self) -> tuple[str, ...]:
        """What its opening did that the user should know."""
        return self._notices

    @property
    def encoder(self) -> EncoderIdentity:
        """Whose vectors it holds."""
        return self._encoder

    @contextmanager
    def _write(self, *, moving: bool = True, changed: list[int] | None = None) -> Iterator[apsw.Connection]:
        """The writer, inside a transaction; if it is ``moving``, what readers see changes, and so does the generation.

        ``changed`` is filled by the caller with the rows of all documents that it changes; without it what changes is
        not known, and readers read all again.
        Raises EncoderMismatch if the store was moved to another encoder since it was opened.
        """
        with self._writing, translating(self._path):
            connection = self._writer
            if self._closed:
                raise StoreError(f"The store {self._path} has been closed; open it again.")
            if connection is None:
                raise StoreReadOnly(f"The store {self._path} was opened read-only; open it for writing.")
            self._standing.check()
            try:
                if not self._logging:
                    start_logging(connection, BUSY_SECONDS)
                    self._logging = True
                with suspecting(self._path, connection, self._encoder.dimension), transaction(connection, "IMMEDIATE"):
                    check_unmoved(connection, self._path, self._encoder)
                    yield connection
                    _set(connection, "writer", self._ourselves)
                    if moving:
                        _move_on(connection, changed)
            except apsw.BusyError as error:
                raise self._busy(connection) from error
            self._unflushed = True

    def _busy(self, connection: apsw.Connection) -> StoreBusy:
        noted = None
        with suppress(apsw.BusyError):
            noted = sql.value(connection, "SELECT value FROM properties WHERE name = 'writer'")
        return StoreBusy(
            f"The store {self._path} is {holder(self._path, noted)}; waited {BUSY_SECONDS:g} s. Nothing of this was "
            "written: try again when that has ended."
        )

    def commit(self, document: IndexedDocument) -> Literal["added", "updated"]:
        """Add the document, or replace the one with its id, in one transaction.

        Raises InputError for text that is not Unicode, ValueError if the parts contradict each other.
        """
        return self._put(document, None, {})

    def restore(self, document: Exported) -> Literal["added", "updated"]:
        """As :meth:`commit`, with the extractors that an export names in place of the present one."""
        return self._put(document.indexed, document.extractor, document.completed)

    def _put(
        self, document: IndexedDocument, extractor: str | None, completed: Mapping[int, str]
    ) -> Literal["added", "updated"]:
        check(document, self._encoder.dimension)
        changed: list[int] = []
        with self._write(changed=changed) as connection:
            before = document_row(connection, document.document.id)
            if before is not None:
                delete(connection, before)
                self._note_gone(connection)
            others = {at: self._extractor_row(connection, identity) for at, identity in sorted(completed.items())}
            row = insert(connection, document, self._extractor_row(connection, extractor), others)
            changed += [row] if before is None else [before, row]
        return "added" if before is None else "updated"

    def earlier(self, id: str) -> Earlier | None:
        """The document's present state, for a revision of it; None if there is none."""
        with self._reading() as connection:
            check_unmoved(connection, self._path, self._encoder)
            return read_earlier(connection, id)

    def revise(self, revision: Revision) -> None:
        """Change what a revision changes, in one transaction; all else of the document keeps its rows.

        Raises DocumentNotFound if the document is gone or has another content by now, and what :meth:`commit` raises.
        """
        check_revision(revision, self._encoder.dimension)
        changed: list[int] = []
        with self._write(changed=changed) as connection:
            if not revise(connection, revision, self._extractor_row(connection)):
                raise self._changed(revision.document.id)
            changed += _row(connection, revision.document.id)
            self._note_gone(connection)

    def note_sources(self, sources: Mapping[str, str | None]) -> None:
        """Put down where documents of these ids are read from now; one that is not there is passed over."""
        if not sources:
            return
        with self._reading() as connection:
            known = sql.rows(connection, _SOURCES, (json.dumps(list(sources)),))
            moved = [(sources[id_], id_) for id_, source in known if source != sources[id_]]
        if moved:
            with self._write(changed=[]) as connection:  # no array holds it
                connection.executemany("UPDATE documents SET source = ? WHERE id = ?", moved)

    def complete(self, id: str, content_hash: str, extractions: Mapping[int, Extraction]) -> None:
        """Put these extractions, by ordinal, in the place of those that failed; all else of the document stays.

        One transaction. Raises DocumentNotFound if the document is gone or has another content by now, and ValueError
        for a mention that does not stand where it says.
        """
        changed: list[int] = []
        with self._write(changed=changed) as connection:
            if not complete(connection, id, content_hash, extractions, self._extractor_row(connection)):
                raise self._changed(id)
            changed += _row(connection, id)

    def _changed(self, id: str) -> DocumentNotFound:
        return DocumentNotFound(
            f"The document {id!a} was changed or forgotten in the store {self._path} while its chunks were extracted; "
            "add it again."
        )

    def _extractor_row(self, connection: apsw.Connection, identity: str | None = None) -> int:
        if identity is None:
            identity = self._extractor if isinstance(self._extractor, str) else self._extractor()
        connection.execute("INSERT INTO extractors (identity) VALUES (?) ON CONFLICT DO NOTHING", (identity,))
        row: int = sql.value(connection, "SELECT row FROM extractors WHERE identity = ?", (identity,))
        return row

    def delete(self, ids: Sequence[str]) -> None:
        """Forget these documents, all or none. Raises DocumentNotFound, naming those that are not there."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return
        changed: list[int] = []
        with self._write(changed=changed) as connection:
            rows = {id_: document_row(connection, id_) for id_ in wanted}
            missing = [id_ for id_, row in rows.items() if row is None]
            if missing:
                raise no_document(self._path, missing)
            for row in rows.values():
                if row is not None:
                    delete(connection, row)
                    changed.append(row)
            forget_documents(connection, wanted)
            self._note_gone(connection)
        self.flush()

    def _note_gone(self, connection: apsw.Connection) -> None:
        """In the transaction that deletes: what is gone may be readable in the file, and the cache is of no use."""
        set_gone(connection, max(read_gone(connection), GONE))
        self._gone = True

    def move(self, moves: Sequence[tuple[str, str, str]]) -> None:
        """Give documents, by their ids, other ids and sources, all in one transaction; nothing is derived again.

        Raises DocumentNotFound, and InputError if a new id is another document's, with nothing changed.
        """
        if not moves:
            return
        changed: list[int] = []
        with self._write(changed=changed) as connection:
            for id_, new, source in moves:
                changed += _row(connection, id_)
                if document_row(connection, id_) is None:
                    raise no_document(self._path, [id_])
                if id_ != new and document_row(connection, new) is not None:
                    raise InputError(f"The store {self._path} has a document {new!a}: {id_!a} cannot be moved there.")
                connection.execute("UPDATE documents SET id = ?, source = ? WHERE id = ?", (new, source, id_))
                connection.execute("UPDATE decided_places SET document = ? WHERE document = ?", (new, id_))
            self._note_gone(connection)

    def erase(self, ids: Sequence[str], replies: Replies | None = None) -> EraseReceipt:
        """Forget these documents so that no byte of the store's files, and of this ledger's, tells of them.

        See :mod:`ecphoryrag.store.erase`. Raises DocumentNotFound, with nothing changed.
        """
        with self._writing:
            access = Erasing(
                self._path,
                self._encoder,
                self._beside,
                self._reading,
                self._write,
                self._alone,
                self.flush,
            )
            return erase(access, ids, replies)

    @contextmanager
    def _alone(self) -> Iterator[apsw.Connection]:
        with self._write(moving=False):
            pass  # it is open, writes through a log, and nobody else writes
        with self._writing, translating(self._path):
            if self._writer is None:
                raise StoreError(f"The store {self._path} has been closed; open it again.")
            yield self._writer

    def flush(self) -> None:
        """Make all commits so far safe against loss of power."""
        with self._writing, translating(self._path):
            connection = self._writer
            if connection is None or not self._unflushed:
                return
            self._standing.check()
            try:
                if self._gone:
                    remove_cache(self._beside.snapshot)
                    self._gone = False
                connection.execute("PRAGMA synchronous = FULL")
                with transaction(connection, "IMMEDIATE"):
                    connection.execute("UPDATE properties SET value = value + 1 WHERE name = 'flushes'")
                self._unflushed = False
            except apsw.BusyError as error:
                raise self._busy(connection) from error
            finally:
                connection.execute("PRAGMA synchronous = NORMAL")
            _checkpoint(connection)

    def hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """Content hash of each of these documents that is there."""
        with self._reading() as connection:
            found = sql.rows(
                connection,
                "SELECT id, content_hash FROM documents WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(ids)),),
            )
            return dict(found)

    def get(self, id: str) -> Document:
        """Raises DocumentNotFound."""
        with self._reading() as connection:
            found = read_document(connection, id)
        if found is None:
            raise no_document(self._path, [id])
        return found[1]

    def indexed(self, id: str) -> IndexedDocument:
        """The document with its chunks, mentions and vectors (as float16 keeps them). Raises DocumentNotFound."""
        with self._reading() as connection:
            check_unmoved(connection, self._path, self._encoder)
            found = read_indexed(connection, id, self._encoder.dimension)
        if found is None:
            raise no_document(self._path, [id])
        return found

    def documents(self, where: Where | None = None) -> list[DocumentSummary]:
        """All documents that pass the filter, by id."""
        wanted = Filter({} if where is None else where)
        with self._reading() as connection:
            rows = sql.rows(
                connection,
                "SELECT id, title, (SELECT count(*) FROM chunks WHERE document = d.row), characters, metadata, "
                "content_hash, source FROM documents d ORDER BY id",
            )
            summaries = [
                DocumentSummary(id_, title, chunks, characters, read_metadata(metadata), content_hash, source)
                for id_, title, chunks, characters, metadata, content_hash, source in rows
            ]
        return [one for one in summaries if wanted(Filterable(one.id, one.title, one.source, one.metadata))]

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        with (
            translating(self._path),
            self._readers.connection() as connection,
            suspecting(self._path, connection, self._encoder.dimension),
        ):
            yield connection

    @contextmanager
    def reading(self) -> Iterator[View]:
        """A consistent view of the newest generation.

        Raises EncoderMismatch if the store was moved to another encoder since it was opened.
        """
        with self._reading() as connection:
            check_unmoved(connection, self._path, self._encoder)
            shared = self._share(read_stamp(connection))
            yield SqliteView(connection, shared, self._snapshot(connection, shared), self._beside)

    def _share(self, stamp: Stamp) -> Shared:
        """What readings of this state share; the newest state is kept for later readings."""
        with self._sharing:
            if self._shared is not None and self._shared.stamp == stamp:
                return self._shared
            shared = Shared(stamp, None if self._shared is None else self._shared.newest())
            if self._shared is None or self._shared.stamp.generation <= stamp.generation:
                self._shared = shared
            return shared

    def _snapshot(self, connection: apsw.Connection, shared: Shared) -> Snapshot:
        with shared.lock:
            if shared.snapshot is None:
                shared.snapshot = self._current.snapshot(connection, shared)
            return shared.snapshot

    def _newest(self) -> Stamp:
        with self._readers.connection() as newer:
            return read_stamp(newer)

    def decisions(self) -> Deciding:
        """Decisions about names: what is recorded, undone and listed."""
        return Deciding(self._path, self._reading, self._write)

    def incomplete(self) -> list[str]:
        """Ids of the documents with failed chunks, in order."""
        with self._reading() as connection:
            return read_incomplete(connection)

    def status(self) -> StoreStatus:
        """Counts and sizes; ``bytes`` are those of the store's file with its log, without the caches."""
        with self._reading() as connection:
            check_unmoved(connection, self._path, self._encoder)
            configured = self._extractor if isinstance(self._extractor, str) else ""
            return read_status(connection, self._path, self._encoder, configured)

    def reembed(self, target: EncoderIdentity) -> SqliteReembedding:
        """Begin to move the store to another encoder, or go on; a move to yet another one is given up for it.

        The present encoder as the target gives up a move that is under way.
        """
        access = Access(self._path, self._reading, self._write, self._switched)
        return SqliteReembedding(access, self._encoder, target)

    def _switched(self) -> None:
        """Make a finished move last; none of the caches is of any use any more."""
        self.flush()
        remove_cache(self._beside.snapshot)
        remove_cache(self._beside.vectors)

    def close(self) -> None:
        """Release the file; calling it twice is harmless."""
        with self._writing:
            if self._closed:
                return
            if self._unflushed:
                with suppress(StoreError, apsw.Error):  # what cannot be done now stays marked as still to be done
                    self.flush()
            self._closed = True
            self._readers.close()
            if self._writer is not None:
                writer, self._writer = self._writer, None
                with translating(self._path):
                    try:
                        if not self._standing.holds():
                            leave_log(writer)
                        elif self._logging:
                            stop_logging(writer)
                    finally:
                        writer.close()


def _row(connection: apsw.Connection, id: str) -> list[int]:
    row = document_row(connection, id)
    return [] if row is None else [row]


def _move_on(connection: apsw.Connection, changed: list[int] | None) -> None:
    """Come to the next generation, which these documents tell from the last."""
    before, state = read_stamp(connection), secrets.token_hex(8)
    _set(connection, "state", state)
    _set(connection, "generation", before.generation + 1)
    note_change(connection, before.generation + 1, (before.state, state), changed)


def _set(connection: apsw.Connection, name: str, value: int | str) -> None:
    connection.execute("UPDATE properties SET value = ? WHERE name = ?", (value, name))


def _checkpoint(connection: apsw.Connection) -> None:
    """Move the log into the file as far as readers allow; what they hold back is moved at the next one."""
    connection.set_busy_timeout(0)
    try:
        with suppress(apsw.BusyError, apsw.LockedError):
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
