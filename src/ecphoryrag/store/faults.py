"""SQLite's errors in this package's words, and what a damaged file makes of everything else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from ecphoryrag.errors import EcphoryError, InputError, NotAStore, StoreBusy, StoreDamaged, StoreError, StoreReadOnly
from ecphoryrag.snapshot import ABOUT_KINDS
from ecphoryrag.store.holder import holder

FAULTS: dict[type[apsw.Error], tuple[type[EcphoryError], str]] = {
    apsw.BusyError: (StoreBusy, "it is {holder}; try again when that has ended"),
    apsw.LockedError: (StoreBusy, "another connection of this process holds it; try again when that has ended"),
    apsw.FullError: (
        StoreError,
        "the disk is full; nothing of the last change was kept, all before it was: free space and try again",
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
            if "{holder}" in advice:
                advice = advice.format(holder=holder(path))
            return ours(f"The store {path} cannot be used: {advice} (SQLite says: {error}).")
    return None


def damage(connection: apsw.Connection, dimension: int) -> str | None:
    """What is wrong with the file, found by looking at all of it; None if it is sound."""
    try:
        for said in _first_column(connection, "PRAGMA main.integrity_check(1)"):
            if said != "ok":
                return str(said)
        if _first_column(connection, "PRAGMA foreign_key_check"):
            return "rows refer to rows that are missing"
        for query, what in _CONTRADICTIONS:
            if _first_column(connection, query, {"dimension": dimension, "kinds": len(ABOUT_KINDS)}):
                return what
        for query in _TEXTS:  # read as texts, for SQLite does not check that they are UTF-8
            for _ in connection.execute(query):
                pass
    except (apsw.Error, UnicodeDecodeError) as error:
        return str(error)
    return None


def _first_column(connection: apsw.Connection, query: str, bindings: dict[str, int] | None = None) -> list[object]:
    return [row[0] for row in connection.execute(query, bindings or {})]


_CONTRADICTIONS = (
    (
        "SELECT 1 WHERE (SELECT count(*) FROM properties WHERE name IN ('store', 'generation', 'state', 'forgotten', "
        "'flushes', 'writer', 'encoder')) < 7",
        "properties of the store are missing",
    ),
    (
        "SELECT 1 FROM properties WHERE "
        "(name IN ('store', 'state', 'encoder', 'next_encoder') AND typeof(value) != 'text') "
        "OR (name IN ('generation', 'forgotten', 'flushes') AND typeof(value) != 'integer') "
        "OR (name = 'writer' AND typeof(value) NOT IN ('null', 'integer', 'text'))",
        "properties of the store are not readable",
    ),
    (
        "SELECT 1 FROM documents WHERE NOT json_valid(metadata) OR NOT json_valid(headings) LIMIT 1",
        "metadata of a document are not readable",
    ),
    (
        "SELECT 1 FROM chunks WHERE NOT json_valid(headings) OR length(vector) != 2 * :dimension OR length(words) % 4 "
        "LIMIT 1",
        "a chunk is not readable",
    ),
    (
        "SELECT 1 FROM chunks WHERE row NOT IN (SELECT rowid FROM search_docsize) LIMIT 1",
        "the lexical index does not know a chunk",
    ),
    (
        "SELECT 1 FROM search_docsize WHERE id NOT IN (SELECT row FROM chunks) LIMIT 1",
        "the lexical index knows a chunk that is missing",
    ),
    ("SELECT 1 FROM entities WHERE row NOT IN (SELECT entity FROM mentions) LIMIT 1", "an entity is named nowhere"),
    (
        "SELECT 1 FROM mentions WHERE field NOT IN (0, 1) OR about NOT BETWEEN 0 AND :kinds "
        "OR (told IS NULL) != (length IS NULL) OR start < 0 OR stop <= start LIMIT 1",
        "a mention is not readable",
    ),
)
"""What the tables' own rules do not forbid and no commit leaves behind: rows found by the query, and what they mean."""
_TEXTS = (
    "SELECT id, title, text, metadata, headings, source FROM documents",
    "SELECT key FROM entities",
    "SELECT type, description FROM mentions",
    "SELECT one, other FROM aliases",
    "SELECT reason FROM failures",
    "SELECT name, value FROM properties",
)


SYMPTOMS = (apsw.Error, ValueError, TypeError, LookupError, AttributeError)
"""How a damaged file shows itself where its contents are taken at their word; mistakes of ours do so too."""


@contextmanager
def suspecting(path: Path, connection: apsw.Connection, dimension: int) -> Iterator[None]:
    """If what is done inside fails as it would with a damaged file, look whether it is damaged, and then say so."""
    try:
        yield
    except StoreDamaged as error:
        if str(path) in str(error):
            raise
        raise StoreDamaged(f"{path}: {error}") from error
    except SYMPTOMS as error:
        if isinstance(error, apsw.Error) and translated(path, error) is not None:
            raise
        found = damage(connection, dimension)
        if found is None:
            raise
        raise StoreDamaged(
            f"The store {path} is damaged ({found}); restore a copy, or index the documents into a new store."
        ) from error


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
