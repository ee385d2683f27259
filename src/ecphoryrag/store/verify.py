"""Checking a store: its file, its tables, every document, and what lies beside it. Nothing is changed."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from ecphoryrag.errors import EcphoryError, NotAStore, StoreDamaged, StoreError, StoreTooNew
from ecphoryrag.store import sql
from ecphoryrag.store.cachefile import kept_stamp
from ecphoryrag.store.connections import beside, check_path, format_of, open_reader, transaction
from ecphoryrag.store.decisions import decision_faults
from ecphoryrag.store.faults import SYMPTOMS, translating
from ecphoryrag.store.guarded import guard, schema_faults
from ecphoryrag.store.identity import ENCODER, NEXT_ENCODER, read_identity
from ecphoryrag.store.invariants import (
    INDEX_ROWS,
    PROPERTIES,
    PROPERTIES_AT_ODDS,
    TABLES_AT_ODDS,
    UNNAMED,
    Fault,
    Read,
    examine_document,
    index_faults,
    vector_fault,
)
from ecphoryrag.store.ledger import LEDGER
from ecphoryrag.store.ledger_file import open_file
from ecphoryrag.store.lexical import VOCABULARIES
from ecphoryrag.store.schema import FORMAT
from ecphoryrag.store.sqlite import CACHE, VECTORS
from ecphoryrag.store.standing import check_own_log, first_bytes
from ecphoryrag.store.status import read_erasure
from ecphoryrag.store.view import read_stamp
from ecphoryrag.types import Flaw, Severity, VerifyReport

MAGIC = b"SQLite format 3\0"
LISTED = 100
"""Flaws of one kind that a report names."""
_REPAIR = "run `ecphory repair`"
_RESTORE = "restore a copy, or save what can be read with `ecphory export` and import it into a new store"
_AGAIN = "run `ecphory repair`, then add the document again from where it came"
_COUNTS = """
SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks), (SELECT count(*) FROM entities),
(SELECT count(*) FROM mentions)
"""
_REMEDIES: dict[str, tuple[Severity, str]] = {
    "document": ("lost", "add it again from where it came, or forget it"),
    "metadata": ("lost", _AGAIN),
    "hash": ("lost", _AGAIN),
}
"""For faults of documents that `repair` cannot mend alone."""


def verify_store(path: Path, *, deep: bool = False) -> VerifyReport:
    """Check the store at this path, and with ``deep`` every row of it; never changes a byte of it.

    Raises StoreNotFound, NotAStore for a file of something else, StoreTooNew, StoreBusy, and StoreError if the log
    beside it is another store's.
    """
    started = time.perf_counter()
    check_path(path, create=False)
    flaws = Flaws()
    counts = (0, 0, 0, 0)
    with translating(path):
        try:
            counts = _check_file(path, flaws, deep=deep)
        except apsw.ReadOnlyError:
            what = "a process was killed while it wrote, and what it left half done is not undone yet"
            flaws.add("journal", str(path), "mendable", what, "open it once for writing, or run `ecphory repair`")
        except (apsw.CorruptError, apsw.SQLError, UnicodeDecodeError, StoreDamaged) as error:
            flaws.add("integrity", str(path), "lost", str(error), _restoring(path))
    _check_ledger(beside(path, LEDGER), flaws, deep=deep)
    return VerifyReport(str(path), deep, *counts, tuple(flaws.listed), flaws.unlisted, time.perf_counter() - started)


def _restoring(path: Path) -> str:
    """What to do with a file that is damaged as a whole: saving what can be read needs one that can be opened."""
    try:
        with translating(path), closing(open_reader(path)):
            return _RESTORE
    except EcphoryError:
        return "restore a copy: this file cannot be opened any more, by `ecphory export` neither"


@dataclass(slots=True)
class Flaws:
    """What was found, as many of each kind as are listed."""

    listed: list[Flaw] = field(default_factory=list)
    unlisted: int = 0
    _kinds: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, where: str, severity: Severity, what: str, remedy: str) -> None:
        """Note one."""
        self._kinds[kind] += 1
        if self._kinds[kind] > LISTED:
            self.unlisted += 1
        else:
            self.listed.append(Flaw(kind, where, severity, what, remedy))

    def add_fault(self, read: Read, fault: Fault) -> None:
        """Note what is wrong with a document."""
        severity, remedy = _REMEDIES.get(fault.kind, ("mendable", _REPAIR))
        where = f"document {read.shown}" + ("" if fault.ordinal is None else f", chunk {fault.ordinal}")
        self.add(fault.kind, where, severity, fault.what, remedy)


def _check_file(path: Path, flaws: Flaws, *, deep: bool) -> tuple[int, int, int, int]:
    if first_bytes(path, len(MAGIC)) != MAGIC:
        raise NotAStore(f"{path} does not begin as an SQLite file does: it is something else, or was overwritten.")
    check_own_log(path)
    flags = apsw.SQLITE_OPEN_READONLY
    with closing(guard(apsw.Connection(str(path.absolute()), flags=flags))) as connection:
        connection.set_busy_timeout(5000)
        connection.execute("PRAGMA temp_store = MEMORY")
        found = format_of(connection, path)
        if found < FORMAT:
            what = f"it is of format {found}, and this version writes format {FORMAT}"
            flaws.add("format", str(path), "note", what, "open it once for writing, for instance with `ecphory repair`")
            if not found:
                return (0, 0, 0, 0)
        with transaction(connection, "DEFERRED"):
            return _check_rows(connection, path, flaws, deep=deep and found == FORMAT)


def _check_rows(connection: apsw.Connection, path: Path, flaws: Flaws, *, deep: bool) -> tuple[int, int, int, int]:
    found = format_of(connection, path)
    if not _check_schema(connection, found, flaws):
        return (0, 0, 0, 0)
    pragma = "PRAGMA main.integrity_check(20)" if deep else "PRAGMA main.quick_check(20)"
    for (said,) in sql.rows(connection, pragma):
        if said != "ok":
            flaws.add("integrity", str(path), "lost", f"SQLite says: {said}", f"{_REPAIR}; if that fails, {_RESTORE}")
    if found == FORMAT:
        _check_tables(connection, path, flaws)
    documents, chunks, entities, mentions = sql.one(connection, _COUNTS)
    if deep:
        dimension = _dimension(connection, path)
        _each(lambda: _check_documents(connection, dimension, flaws), "documents", flaws)
        connection.execute(VOCABULARIES)
        _each(lambda: _check_index(connection, flaws), "search", flaws)
        _each(lambda: _check_next(connection, path, flaws), "next_vectors", flaws)
    _check_caches(connection, path, flaws)
    return documents, chunks, entities, mentions


def _each(check: Callable[[], None], table: str, flaws: Flaws) -> None:
    """Run one check; what cannot be read, or is not of its type, ends this check alone."""
    try:
        check()
    except SYMPTOMS as error:
        severity: Severity = "mendable" if table == "search" else "lost"
        flaws.add("unreadable", f"table {table}", severity, str(error), f"{_REPAIR}; if that fails, {_RESTORE}")


def _check_schema(connection: apsw.Connection, format: int, flaws: Flaws) -> bool:
    """Whether nothing is there that is not ours, so that the tables may be read."""
    found = schema_faults(connection, format)
    for name in found.missing:
        flaws.add("schema", name, "lost", "is missing", _RESTORE)
    for name in found.unknown:
        flaws.add("schema", name, "lost", "is not as any version makes it: its tables were not looked at", _RESTORE)
    return not found.unknown


def _check_tables(connection: apsw.Connection, path: Path, flaws: Flaws) -> None:
    kept = {name for (name,) in sql.rows(connection, "SELECT name FROM properties")}
    for name in PROPERTIES:
        if name not in kept:
            severity: Severity = "lost" if name == ENCODER else "mendable"
            remedy = "export without vectors, and import" if name == ENCODER else _REPAIR
            flaws.add("property", f"property {name}", severity, "is missing", remedy)
    try:
        read_identity(connection, ENCODER, path)
        read_identity(connection, NEXT_ENCODER, path)
    except StoreDamaged as error:
        flaws.add("property", f"property {ENCODER}", "lost", str(error), "export without vectors, and import")
    if sql.value(connection, PROPERTIES_AT_ODDS):
        flaws.add("property", "table properties", "mendable", "holds one of another type", _REPAIR)
    for kind, query, what, missing in TABLES_AT_ODDS:
        count = sql.value(connection, query)
        if count:
            flaws.add(kind, f"table {what}", "mendable", f"{count} rows refer to a {missing} that is missing", _REPAIR)
    for number, what in decision_faults(connection):
        flaws.add("decision", f"decision {number}", "lost", what, f"{_REPAIR}: it is removed, and can be made again")
    unnamed = sql.value(connection, UNNAMED)
    if unnamed:
        flaws.add("entity", "table entities", "mendable", f"{unnamed} entities are mentioned nowhere", _REPAIR)
    if read_erasure(connection) is not None:
        what = "an erasure was begun and is not finished: what was to be erased may still be readable"
        flaws.add("erasure", str(path), "mendable", what, f"{_REPAIR}, or `ecphory forget --erase`")
    unknown, unlisted = sql.one(connection, INDEX_ROWS)
    if unknown:
        flaws.add("fts", "the lexical index", "mendable", f"it does not know {unknown} chunks", _REPAIR)
    if unlisted:
        flaws.add("fts", "the lexical index", "mendable", f"it knows {unlisted} chunks that are not there", _REPAIR)


def _dimension(connection: apsw.Connection, path: Path) -> int | None:
    try:
        encoder = read_identity(connection, ENCODER, path)
    except StoreDamaged:
        return None  # told with the properties
    return None if encoder is None else encoder.dimension


def _check_documents(connection: apsw.Connection, dimension: int | None, flaws: Flaws) -> None:
    for (row,) in list(sql.rows(connection, "SELECT row FROM documents ORDER BY row")):
        read, faults = examine_document(connection, row, dimension)
        for fault in faults:
            flaws.add_fault(read, fault)


def _check_index(connection: apsw.Connection, flaws: Flaws) -> None:
    for read, fault in index_faults(connection):
        flaws.add_fault(read, fault)


def _check_next(connection: apsw.Connection, path: Path, flaws: Flaws) -> None:
    target = read_identity(connection, NEXT_ENCODER, path)
    for chunk, vector in sql.rows(connection, "SELECT chunk, vector FROM next_vectors ORDER BY chunk"):
        wrong = "nobody is moving this store" if target is None else vector_fault(vector, target.dimension)
        if wrong:
            flaws.add("next", f"next vector of row {chunk}", "mendable", wrong, _REPAIR)


def cache_files(path: Path) -> Iterator[Path]:
    """The caches beside the store that are there."""
    for suffix in (CACHE, VECTORS):
        file = beside(path, suffix)
        if file.is_file():
            yield file


def _check_caches(connection: apsw.Connection, path: Path, flaws: Flaws) -> None:
    try:
        stamp = json.dumps(read_stamp(connection))
    except (KeyError, TypeError):
        return  # told with the properties
    for file in cache_files(path):
        try:
            kept = kept_stamp(file)
        except OSError as error:
            flaws.add("cache", str(file), "note", f"it cannot be read ({error.strerror})", "check its permissions")
            continue
        if kept is None:
            flaws.add("cache", str(file), "mendable", "it is damaged; it is not used", _REPAIR)
        elif kept.startswith("snapshot") and not kept.endswith(f" {stamp}"):
            flaws.add("cache", str(file), "note", "it is of another state; it is not used", "nothing: it is made anew")


def _check_ledger(path: Path, flaws: Flaws, *, deep: bool) -> None:
    remedy = f"{_REPAIR}: it is put aside, and what it held will be paid for again"
    if path.is_dir():
        flaws.add("ledger", str(path), "mendable", "a folder stands where the ledger belongs", "move it away")
        return
    try:
        if not path.exists():
            return
        file = open_file(path, writable=False, create=False)
        if file is None:
            return
        with closing(file.connection) as connection:
            for (said,) in sql.rows(connection, f"PRAGMA {'integrity_check' if deep else 'quick_check'}(5)"):
                if said != "ok":
                    flaws.add("ledger", str(path), "mendable", f"SQLite says: {said}", remedy)
    except StoreTooNew as error:
        flaws.add("ledger", str(path), "note", str(error), "install a newer version")
    except (NotAStore, StoreDamaged, UnicodeDecodeError, apsw.CorruptError, apsw.NotADBError) as error:
        flaws.add("ledger", str(path), "mendable", str(error), remedy)
    except (apsw.Error, StoreError) as error:
        flaws.add("ledger", str(path), "note", f"it cannot be read now ({error})", "try again")
