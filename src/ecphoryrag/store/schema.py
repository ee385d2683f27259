"""The tables of a store, made and changed only by named migrations, each in one transaction and recorded."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import apsw

from ecphoryrag.store.lexical import TOKENIZER

APPLICATION_ID = 0x45635068
"""``EcPh``: by this the file says that it is a store of this package."""

TABLES = """
CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied TEXT NOT NULL
) STRICT;
CREATE TABLE properties (
    name TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;
CREATE TABLE extractors (
    row INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE documents (
    row INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    content_hash TEXT NOT NULL,
    extractor INTEGER NOT NULL REFERENCES extractors,
    title TEXT NOT NULL,
    source TEXT,
    metadata TEXT NOT NULL,     -- JSON object
    headings TEXT NOT NULL,     -- JSON array of [level, text, start, end]
    characters INTEGER NOT NULL, -- of the text; SQL counts only to the first NUL
    text TEXT NOT NULL
) STRICT;
CREATE TABLE chunks (
    row INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    start INTEGER NOT NULL,     -- characters of documents.text, half-open
    stop INTEGER NOT NULL,
    headings TEXT NOT NULL,     -- JSON array of strings
    words BLOB NOT NULL,        -- little-endian uint32: CRC-32 of each normalised word
    vector BLOB NOT NULL,       -- little-endian float16
    UNIQUE (document, ordinal)
) STRICT;
CREATE TABLE entities (
    row INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE mentions (
    chunk INTEGER NOT NULL REFERENCES chunks ON DELETE CASCADE,
    number INTEGER NOT NULL,    -- position in the chunk's extraction
    entity INTEGER NOT NULL REFERENCES entities,
    field INTEGER NOT NULL,     -- 0 title, 1 text
    start INTEGER NOT NULL,     -- characters of that field; the name is what stands there
    stop INTEGER NOT NULL,
    type TEXT NOT NULL,
    importance INTEGER NOT NULL,
    about INTEGER NOT NULL,     -- 0 not; else 1 + position in ABOUT_KINDS
    told INTEGER,               -- the description is documents.text[told : told + length], or else words
    length INTEGER,
    description TEXT,
    PRIMARY KEY (chunk, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX mentions_by_entity ON mentions (entity);
CREATE TABLE aliases (
    chunk INTEGER NOT NULL REFERENCES chunks ON DELETE CASCADE,
    number INTEGER NOT NULL,
    one TEXT NOT NULL,          -- entity keys
    other TEXT NOT NULL,
    PRIMARY KEY (chunk, number)
) STRICT, WITHOUT ROWID;
"""


def _create(connection: apsw.Connection) -> None:
    connection.execute(TABLES)
    words = " ".join(f"''{word}''" if " " in word else word for word in TOKENIZER)
    connection.execute(
        f"CREATE VIRTUAL TABLE search USING fts5(title, body, content='', contentless_delete=1, tokenize='{words}')"
    )
    # 8 segments a level before they are merged: a third less work than the default 4 with one transaction a document.
    connection.execute("INSERT INTO search (search, rank) VALUES ('automerge', 8)")
    values = {"store": uuid.uuid4().hex, "generation": 0, "state": "", "forgotten": 0, "flushes": 0, "writer": None}
    connection.executemany("INSERT INTO properties VALUES (?, ?)", list(values.items()))


FAILURES = """
CREATE TABLE failures (             -- chunks without an extraction
    chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    reason TEXT NOT NULL
) STRICT;
CREATE TABLE completions (          -- chunks that had failed and that another extractor than their document's did
    chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    extractor INTEGER NOT NULL REFERENCES extractors
) STRICT;
"""


def _keep_failures(connection: apsw.Connection) -> None:
    connection.execute(FAILURES)


NEXT_VECTORS = """
CREATE TABLE next_vectors (         -- of chunks, by the encoder that the store is being moved to
    chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    vector BLOB NOT NULL            -- little-endian float16
) STRICT;
"""


def _keep_next_vectors(connection: apsw.Connection) -> None:
    connection.execute(NEXT_VECTORS)


DECISIONS = """
CREATE TABLE decisions (            -- of the user about names; see ecphoryrag.decisions
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,             -- merge or split
    target TEXT,                    -- key of what is shown or made
    qualifier TEXT NOT NULL,
    filter TEXT,                    -- JSON object
    reason TEXT NOT NULL,
    undone INTEGER NOT NULL         -- 0 or 1
) STRICT;
CREATE TABLE decided_keys (
    decision INTEGER NOT NULL REFERENCES decisions ON DELETE CASCADE,
    key TEXT NOT NULL,
    PRIMARY KEY (decision, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE decided_places (       -- documents, and mentions in them, that a split selects
    decision INTEGER NOT NULL REFERENCES decisions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    document TEXT NOT NULL,         -- id; the document need not be there
    key TEXT,                       -- NULL in this and the rest: all of the document
    field INTEGER,                  -- as in mentions
    start INTEGER,
    before TEXT,                    -- checksums of the words around
    after TEXT,
    PRIMARY KEY (decision, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX decided_places_by_document ON decided_places (document);
"""


def _keep_decisions(connection: apsw.Connection) -> None:
    connection.execute(DECISIONS)


@dataclass(frozen=True, slots=True)
class Migration:
    """A change of the tables; its number is the format it leads to."""

    number: int
    name: str
    apply: Callable[[apsw.Connection], None]


MIGRATIONS = (
    Migration(1, "create the tables", _create),
    Migration(2, "keep which chunks could not be extracted", _keep_failures),
    Migration(3, "keep the vectors of the next encoder", _keep_next_vectors),
    Migration(4, "keep what is decided about names", _keep_decisions),
)
FORMAT = MIGRATIONS[-1].number
"""The newest format: the one that this version reads and writes."""


def migrate(connection: apsw.Connection, migration: Migration) -> None:
    """Apply one migration and record it; the caller holds the transaction."""
    migration.apply(connection)
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (migration.number, migration.name, now))
    connection.execute(f"PRAGMA user_version = {migration.number:d}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
