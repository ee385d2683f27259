"""A changed document to the rows that change: chunks that stay keep their rows, vectors and places in the index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import apsw
import numpy as np

from ecphoryrag.ports import Earlier, IndexedDocument, Kept, Revision
from ecphoryrag.store import sql
from ecphoryrag.store.kept_json import read_words
from ecphoryrag.store.rows import (
    FIELDS,
    check,
    delete_extractions,
    delete_unnamed,
    delete_unused,
    document_values,
    entities_of,
    extractors_of,
    insert_chunk,
    insert_extractions,
    read_document,
)
from ecphoryrag.types import Chunk, Extraction

_TEXT = FIELDS.index("text")
"""``mentions.field`` of the text."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """The rows that a revision changes."""

    row: int
    title: str
    text: str
    chunks: Mapping[int, tuple[int, int, int]]
    """By ordinal: row, start, stop."""


def read_earlier(connection: apsw.Connection, id: str) -> Earlier | None:
    """The document with this id and its chunks, if there is one."""
    found = read_document(connection, id)
    if found is None:
        return None
    row, document = found
    content_hash = sql.value(connection, "SELECT content_hash FROM documents WHERE row = ?", (row,))
    chunks: list[Chunk] = []
    extractors: list[str | None] = []
    rows = sql.rows(
        connection,
        "SELECT ordinal, start, stop, c.headings, iif(f.chunk IS NULL, identity, NULL) FROM chunks c "
        "JOIN documents d ON d.row = document LEFT JOIN failures f ON f.chunk = c.row "
        "LEFT JOIN completions p ON p.chunk = c.row JOIN extractors e ON e.row = coalesce(p.extractor, d.extractor) "
        "WHERE document = ? ORDER BY ordinal",
        (row,),
    )
    for ordinal, start, stop, headings, extractor in rows:
        chunks.append(Chunk(id, ordinal, document.text[start:stop], start, stop, read_words(headings)))
        extractors.append(extractor)
    return Earlier(document, content_hash, tuple(chunks), tuple(extractors))


def check_revision(revision: Revision, dimension: int) -> None:
    """Raise InputError for text that is not Unicode, ValueError if the parts do not belong together."""
    fresh = [chunk for chunk in revision.chunks if chunk.ordinal not in revision.kept]
    if len(revision.vectors) != len(fresh):
        raise ValueError(f"The revision of {revision.document.id!a} needs a vector for each chunk that is not kept.")
    extracted = {at for at, kept in revision.kept.items() if kept.moves is None} | {chunk.ordinal for chunk in fresh}
    if extracted != revision.extractions.keys():
        raise ValueError(f"The revision of {revision.document.id!a} needs an extraction for each chunk but those kept.")
    vectors = np.zeros((len(revision.chunks), dimension), np.float32)
    vectors[[chunk.ordinal for chunk in fresh]] = revision.vectors
    extractions = tuple(revision.extractions.get(chunk.ordinal, Extraction()) for chunk in revision.chunks)
    check(IndexedDocument(revision.document, revision.chunks, extractions, vectors), dimension)


def revise(connection: apsw.Connection, revision: Revision, extractor: int) -> bool:
    """Change the rows of a checked revision; the caller holds the transaction.

    False, and nothing done, if there is no document of this id and basis. Raises ValueError if a chunk that it keeps is
    another in the store.
    """
    stored = _stored(connection, revision)
    if stored is None:
        return False
    _check_kept(stored, revision)
    rows = {at: stored.chunks[kept.ordinal][0] for at, kept in revision.kept.items()}
    gone = [(row,) for row, _, _ in stored.chunks.values() if row not in rows.values()]
    again = [(rows[at],) for at in revision.extractions if at in rows]
    entities, extractors = entities_of(connection, [*gone, *again]), extractors_of(connection, stored.row)
    connection.executemany("DELETE FROM search WHERE rowid = ?", gone)
    connection.executemany("DELETE FROM chunks WHERE row = ?", gone)
    delete_extractions(connection, again)
    connection.executemany("DELETE FROM completions WHERE chunk = ?", [(row,) for row in rows.values()])
    _, *values = document_values(revision.document, extractor)
    connection.execute(_UPDATE_DOCUMENT, (*values, stored.row))
    _move(connection, stored, revision, rows)
    fresh = [chunk for chunk in revision.chunks if chunk.ordinal not in rows]
    for chunk, vector in zip(fresh, revision.vectors, strict=True):
        rows[chunk.ordinal] = insert_chunk(connection, stored.row, revision.document.title, chunk, vector)
    placed = [(rows[at], revision.chunks[at], one) for at, one in sorted(revision.extractions.items())]
    insert_extractions(connection, placed, revision.document.text)
    delete_unnamed(connection, entities)
    delete_unused(connection, extractors - {extractor})
    return True


_UPDATE_DOCUMENT = """
UPDATE documents SET content_hash = ?, extractor = ?, title = ?, source = ?, metadata = ?, headings = ?, characters = ?,
text = ? WHERE row = ?
"""


def _stored(connection: apsw.Connection, revision: Revision) -> _Stored | None:
    found = sql.row(
        connection,
        "SELECT row, title, text FROM documents WHERE id = ? AND content_hash = ?",
        (revision.document.id, revision.basis),
    )
    if found is None:
        return None
    row, title, text = found
    chunks = sql.rows(connection, "SELECT ordinal, row, start, stop FROM chunks WHERE document = ?", (row,))
    return _Stored(row, title, text, {ordinal: (number, start, stop) for ordinal, number, start, stop in chunks})


def _check_kept(stored: _Stored, revision: Revision) -> None:
    name = ascii(revision.document.id)
    if stored.title != revision.document.title:
        raise ValueError(f"The revision of {name} keeps chunks under another title.")
    if len({kept.ordinal for kept in revision.kept.values()}) != len(revision.kept):
        raise ValueError(f"The revision of {name} keeps a chunk twice.")
    for at, kept in revision.kept.items():
        _, start, stop = stored.chunks.get(kept.ordinal, (0, 0, 0))
        if stored.text[start:stop] != revision.chunks[at].text:
            raise ValueError(f"Chunk {at} of the revision of {name} is not chunk {kept.ordinal} of the store.")


def _move(connection: apsw.Connection, stored: _Stored, revision: Revision, rows: Mapping[int, int]) -> None:
    """Give the kept chunks their new ordinals and offsets, and their mentions theirs; what does not move is not
    written."""
    places: list[tuple[int, int, int, int]] = []
    for at, kept in revision.kept.items():
        chunk, (row, start, _) = revision.chunks[at], stored.chunks[kept.ordinal]
        if at != kept.ordinal or chunk.start != start:
            places.append((at, chunk.start, chunk.end, row))
        if kept.moves:
            _move_mentions(connection, row, kept, stored.chunks[kept.ordinal])
    # Below zero first: two chunks of a document never have one ordinal, not even between two statements.
    reordered = [(-1 - at, row) for at, _, _, row in places]
    connection.executemany("UPDATE chunks SET ordinal = ? WHERE row = ?", reordered)
    connection.executemany("UPDATE chunks SET ordinal = ?, start = ?, stop = ? WHERE row = ?", places)


def _move_mentions(connection: apsw.Connection, row: int, kept: Kept, place: tuple[int, int, int]) -> None:
    _, start, stop = place
    outside = list(
        sql.rows(
            connection,
            "SELECT number, start, stop FROM mentions WHERE chunk = ? AND field = ? AND (start < ? OR stop > ?)",
            (row, _TEXT, start, stop),
        )
    )
    by = next((by for first, last, by in kept.moves or () if (first, last) == (start, stop)), 0)
    if by:
        connection.execute(
            "UPDATE mentions SET start = start + ?1, stop = stop + ?1 WHERE chunk = ?2 AND field = ?3 "
            "AND start >= ?4 AND stop <= ?5",
            (by, row, _TEXT, start, stop),
        )
        connection.execute("UPDATE mentions SET told = told + ? WHERE chunk = ? AND told IS NOT NULL", (by, row))
    moved = list(_moved(outside, kept.moves or ()))
    connection.executemany(
        "UPDATE mentions SET start = start + ?1, stop = stop + ?1 WHERE chunk = ?2 AND number = ?3",
        [(by, row, number) for number, by in moved],
    )


def _moved(outside: Sequence[tuple[int, ...]], moves: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """(number, by) of each mention outside the chunk that moves."""
    for number, start, stop in outside:
        by = next((by for first, last, by in moves if first <= start and stop <= last), 0)
        if by:
            yield number, by
