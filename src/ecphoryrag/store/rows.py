"""A document with all that was derived from it, to and from rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

import apsw
import numpy as np
from numpy.typing import NDArray

from ecphoryrag.errors import DocumentNotFound, InputError
from ecphoryrag.ports import IndexedDocument
from ecphoryrag.snapshot import ABOUT_KINDS
from ecphoryrag.store import sql
from ecphoryrag.store.arrays import HALF
from ecphoryrag.store.kept_json import read_headings, read_metadata, read_words
from ecphoryrag.store.linking import word_hashes
from ecphoryrag.text.terms import segment
from ecphoryrag.types import AboutKind, Chunk, Document, Extraction, Field, Mention
from ecphoryrag.vectors import unit_rows

FIELDS: tuple[Field, ...] = ("title", "text")
"""``mentions.field`` holds the position here."""

_INSERT_DOCUMENT = """
INSERT INTO documents (id, content_hash, extractor, title, source, metadata, headings, characters, text)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_INSERT_CHUNK = (
    "INSERT INTO chunks (document, ordinal, start, stop, headings, words, vector) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_MENTION = """
INSERT INTO mentions (chunk, number, entity, field, start, stop, type, importance, about, told, length, description)
VALUES (?, ?, (SELECT row FROM entities WHERE key = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def check(indexed: IndexedDocument, dimension: int) -> None:
    """Raise InputError for text that is not Unicode.

    Raises ValueError if the parts do not belong together: a mistake of whoever made them.
    """
    document, name = indexed.document, ascii(indexed.document.id)
    _check_unicode(document)
    if not len(indexed.chunks) == len(indexed.extractions) == len(indexed.vectors):
        raise ValueError(f"Document {name} needs an extraction and a vector for each of its chunks.")
    if indexed.vectors.shape != (len(indexed.chunks), dimension):
        raise ValueError(f"Document {name} has vectors of shape {indexed.vectors.shape}, not (chunks, {dimension}).")
    if not np.isfinite(indexed.vectors).all():
        raise ValueError(f"Document {name} has a vector that is not finite.")
    for ordinal, chunk in enumerate(indexed.chunks):
        if chunk.ordinal != ordinal or document.text[chunk.start : chunk.end] != chunk.text:
            raise ValueError(f"Chunk {ordinal} of document {name} is not what its ordinal and offsets say.")
    for extraction in indexed.extractions:
        _check_mentions(document.id, Texts(document.title, document.text), extraction)


def _check_mentions(id: str, texts: Texts, extraction: Extraction) -> None:
    for mention in extraction.mentions:
        field = texts.title if mention.field == "title" else texts.text
        if not mention.key or field[mention.start : mention.end] != mention.name or not mention.name:
            raise ValueError(f"A mention of {mention.name!a} in document {id!a} does not stand where it says.")


def _check_unicode(document: Document) -> None:
    metadata = _json(dict(document.metadata))
    for part in (document.id, document.title, document.text, document.source or "", metadata):
        try:
            part.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(
                f"Document {document.id!a} holds half of a surrogate pair ({part[error.start]!a}), which is no "
                "character; replace it, for instance with text.encode('utf-16', 'surrogatepass').decode('utf-16', "
                "'replace')."
            ) from error


def insert(connection: apsw.Connection, indexed: IndexedDocument, extractor: int, completed: Mapping[int, int]) -> int:
    """Write the rows of a checked document; the caller holds the transaction. Returns the document's.

    ``completed`` gives by ordinal the extractors of chunks that had failed with the document's own.
    """
    document = indexed.document
    connection.execute(_INSERT_DOCUMENT, document_values(document, extractor))
    row = connection.last_insert_rowid()
    placed: list[Placed] = []
    for chunk, extraction, vector in zip(indexed.chunks, indexed.extractions, indexed.vectors, strict=True):
        number = insert_chunk(connection, row, document.title, chunk, vector)
        placed.append((number, chunk, extraction))
        if chunk.ordinal in completed:
            connection.execute("INSERT INTO completions VALUES (?, ?)", (number, completed[chunk.ordinal]))
    insert_extractions(connection, placed, document.text)
    return row


def insert_chunk(
    connection: apsw.Connection, document: int, title: str, chunk: Chunk, vector: NDArray[np.float32]
) -> int:
    """Write a chunk of the document of this row and title, with its vector (d,); its row number."""
    words = word_hashes(chunk.text).astype("<u4").tobytes()
    headings, half = _json(list(chunk.headings)), np.ascontiguousarray(vector, HALF)
    connection.execute(
        _INSERT_CHUNK, (document, chunk.ordinal, chunk.start, chunk.end, headings, words, half.tobytes())
    )
    number = connection.last_insert_rowid()
    connection.execute(
        "INSERT INTO search (rowid, title, body) VALUES (?, ?, ?)", (number, segment(title), segment(chunk.text))
    )
    return number


Placed: TypeAlias = tuple[int, Chunk, Extraction]
"""A chunk's row, the chunk and what was found in it."""


def insert_extractions(connection: apsw.Connection, placed: Sequence[Placed], text: str) -> None:
    """Write what was found in chunks that have their rows, and why nothing was."""
    mentions: list[tuple[int | str | None, ...]] = []
    aliases: list[tuple[int | str, ...]] = []
    failures: list[tuple[int | str, ...]] = []
    for number, chunk, extraction in placed:
        mentions += _mention_rows(number, chunk, extraction, text)
        aliases += [(number, at, one, other) for at, (one, other) in enumerate(extraction.aliases)]
        if extraction.failure is not None:
            failures.append((number, _storable(extraction.failure)))
    keys = {mention[2] for mention in mentions}
    connection.executemany(
        "INSERT INTO entities (key) VALUES (?) ON CONFLICT DO NOTHING", [(key,) for key in sorted(map(str, keys))]
    )
    connection.executemany(_INSERT_MENTION, mentions)
    connection.executemany("INSERT INTO aliases VALUES (?, ?, ?, ?)", aliases)
    connection.executemany("INSERT INTO failures VALUES (?, ?)", failures)


def delete_extractions(connection: apsw.Connection, chunks: Sequence[sql.Row]) -> None:
    """Remove what was found in the chunks of these rows, and why nothing was; the entities stay."""
    for table in ("failures", "mentions", "aliases"):
        connection.executemany(f"DELETE FROM {table} WHERE chunk = ?", chunks)  # noqa: S608 - constants


def _storable(reason: str) -> str:
    """The reason with what UTF-8 cannot hold written out: it may quote what a model returned."""
    return reason.encode("utf-8", "backslashreplace").decode("utf-8")


def complete(
    connection: apsw.Connection, id: str, content_hash: str, extractions: Mapping[int, Extraction], extractor: int
) -> bool:
    """Put these extractions, by ordinal, in the place of failed ones; the caller holds the transaction.

    False if there is no document of this id and content. Raises ValueError for a mention that is not in its text.
    """
    query = "SELECT row, extractor, title, text FROM documents WHERE id = ? AND content_hash = ?"
    found = sql.row(connection, query, (id, content_hash)) if _is_unicode(id) else None
    if found is None:
        return False
    row, first_extractor, title, text = found
    for extraction in extractions.values():
        _check_mentions(id, Texts(title, text), extraction)
    failed = sql.rows(
        connection,
        "SELECT c.row, ordinal, start, stop FROM failures JOIN chunks c ON c.row = chunk WHERE document = ?",
        (row,),
    )
    placed: list[Placed] = [
        (number, Chunk(id, ordinal, text[start:stop], start, stop), extractions[ordinal])
        for number, ordinal, start, stop in failed
        if ordinal in extractions
    ]
    numbers = [(number,) for number, _, _ in placed]
    entities = entities_of(connection, numbers)
    delete_extractions(connection, numbers)
    insert_extractions(connection, placed, text)
    delete_unnamed(connection, entities)
    if extractor != first_extractor:
        done = [(number, extractor) for number, _, extraction in placed if extraction.failure is None]
        connection.executemany("INSERT INTO completions VALUES (?, ?)", done)
        delete_unused(connection, [extractor])  # where it too could do nothing
    return True


def document_values(document: Document, extractor: int) -> tuple[int | str | None, ...]:
    """The values of its row but the number, the id first."""
    headings = [[heading.level, heading.text, heading.start, heading.end] for heading in document.headings]
    return (
        document.id,
        document.content_hash,
        extractor,
        document.title,
        document.source,
        _json(dict(document.metadata)),
        _json(headings),
        len(document.text),
        document.text,
    )


def _mention_rows(
    chunk_row: int, chunk: Chunk, extraction: Extraction, text: str
) -> Iterator[tuple[int | str | None, ...]]:
    told: dict[str, int] = {}
    for number, mention in enumerate(extraction.mentions):
        description: str | None = mention.description
        at: int | None = None
        if mention.description:
            if mention.description not in told:
                told[mention.description] = text.find(mention.description, chunk.start, chunk.end)
            at = told[mention.description]
        found = at is not None and at >= 0
        yield (
            chunk_row,
            number,
            mention.key,
            FIELDS.index(mention.field),
            mention.start,
            mention.end,
            mention.type,
            mention.importance,
            0 if mention.about is None else 1 + ABOUT_KINDS.index(mention.about),
            at if found else None,
            len(mention.description) if found else None,
            None if found or not description else description,
        )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def delete(connection: apsw.Connection, row: int) -> None:
    """Remove a document with all that came from it; the caller holds the transaction."""
    chunks = connection.execute("SELECT row FROM chunks WHERE document = ?", (row,)).fetchall()
    extractors = extractors_of(connection, row)
    entities = entities_of(connection, chunks)
    connection.executemany("DELETE FROM search WHERE rowid = ?", chunks)
    connection.execute("DELETE FROM documents WHERE row = ?", (row,))
    delete_unnamed(connection, entities)
    delete_unused(connection, extractors)


def extractors_of(connection: apsw.Connection, row: int) -> set[int]:
    """Rows of the extractors of the document of this row, and of its chunks."""
    return {extractor for (extractor,) in sql.rows(connection, _EXTRACTORS, (row, row))}


def delete_unused(connection: apsw.Connection, extractors: Iterable[int]) -> None:
    """Remove those of these extractors that nothing in the store comes from any more."""
    connection.executemany(
        "DELETE FROM extractors WHERE row = ?1 AND NOT EXISTS (SELECT 1 FROM documents WHERE extractor = ?1) "
        "AND NOT EXISTS (SELECT 1 FROM completions WHERE extractor = ?1)",
        [(extractor,) for extractor in extractors],
    )


_EXTRACTORS = """
SELECT extractor FROM documents WHERE row = ?
UNION SELECT p.extractor FROM completions p JOIN chunks c ON c.row = chunk WHERE document = ?
"""


def entities_of(connection: apsw.Connection, chunks: Sequence[sql.Row]) -> list[int]:
    """Rows of the entities that are mentioned in the chunks of these rows."""
    found = sql.rows(
        connection,
        "SELECT DISTINCT entity FROM mentions WHERE chunk IN (SELECT value FROM json_each(?))",
        (json.dumps([number for (number,) in chunks]),),
    )
    return [entity for (entity,) in found]


def delete_unnamed(connection: apsw.Connection, entities: Sequence[int]) -> None:
    """Remove those of these entities that no chunk mentions any more."""
    connection.executemany(
        "DELETE FROM entities WHERE row = ?1 AND NOT EXISTS (SELECT 1 FROM mentions WHERE entity = ?1)",
        [(entity,) for entity in entities],
    )


def document_row(connection: apsw.Connection, id: str) -> int | None:
    """The row number of the document with this id, if there is one."""
    found: int | None = sql.value(connection, _SELECT_ROW, (id,)) if _is_unicode(id) else None
    return found


def no_document(path: Path, ids: Iterable[str]) -> DocumentNotFound:
    """The error for documents that a store at this path does not have; the caller has changed nothing."""
    return DocumentNotFound(
        f"The store {path} has no document {', '.join(map(repr, ids))}; `ecphory list` shows the ids it has. Nothing "
        "was changed."
    )


def _is_unicode(text: str) -> bool:
    """Whether it has no half of a surrogate pair, which SQLite could not be asked for."""
    return text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)


_SELECT_ROW = "SELECT row FROM documents WHERE id = ?"
_SELECT_DOCUMENT = "SELECT row, id, title, text, metadata, headings, source FROM documents WHERE id = ?"


def read_document(connection: apsw.Connection, id: str) -> tuple[int, Document] | None:
    """The row number and the document with this id, if there is one."""
    if not _is_unicode(id):
        return None
    found = sql.row(connection, _SELECT_DOCUMENT, (id,))
    if found is None:
        return None
    row, name, title, text, metadata, headings, source = found
    return row, Document(
        id=name,
        text=text,
        title=title,
        metadata=read_metadata(metadata),
        headings=read_headings(headings),
        source=source,
    )


def read_indexed(connection: apsw.Connection, id: str, dimension: int) -> IndexedDocument | None:
    """The document with its chunks, extractions and vectors; what the extractions cost is not kept."""
    found = read_document(connection, id)
    if found is None:
        return None
    row, document = found
    chunks: list[Chunk] = []
    extractions: list[Extraction] = []
    vectors: list[bytes] = []
    chunk_rows = list(
        sql.rows(
            connection,
            "SELECT row, ordinal, start, stop, headings, vector, reason FROM chunks LEFT JOIN failures ON chunk = row "
            "WHERE document = ? ORDER BY ordinal",
            (row,),
        )
    )
    for number, ordinal, start, stop, headings, vector, failure in chunk_rows:
        chunks.append(Chunk(id, ordinal, document.text[start:stop], start, stop, read_words(headings)))
        pairs = sql.rows(connection, "SELECT one, other FROM aliases WHERE chunk = ? ORDER BY number", (number,))
        aliases = tuple((one, other) for one, other in pairs)
        mentions = tuple(read_mentions(connection, number, Texts(document.title, document.text)))
        extractions.append(Extraction(mentions, aliases, failure=failure))
        vectors.append(vector)
    half = np.frombuffer(b"".join(vectors), HALF).reshape(len(chunks), dimension)
    return IndexedDocument(document, tuple(chunks), tuple(extractions), unit_rows(half))


@dataclass(frozen=True, slots=True)
class Texts:
    """What a document's mentions point into."""

    title: str
    text: str


def read_mentions(connection: apsw.Connection, chunk_row: int, texts: Texts) -> list[Mention]:
    """The mentions of a chunk in the order of its extraction."""
    found = sql.rows(
        connection,
        "SELECT key, field, start, stop, type, importance, about, told, length, description "
        "FROM mentions JOIN entities e ON e.row = entity WHERE chunk = ? ORDER BY number",
        (chunk_row,),
    )
    return [
        Mention(
            name=(texts.text if field else texts.title)[start:stop],
            key=key,
            start=start,
            end=stop,
            field=FIELDS[field],
            type=type_,
            description=described(texts.text, told, length, description),
            importance=importance,
            about=cast(AboutKind, ABOUT_KINDS[about - 1]) if about else None,
        )
        for key, field, start, stop, type_, importance, about, told, length, description in found
    ]


def described(text: str, told: int | None, length: int | None, description: str | None) -> str:
    """A mention's description, which is a span of the document's text or words of its own."""
    if told is not None and length is not None:
        return text[told : told + length]
    return description or ""
