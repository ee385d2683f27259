"""A view over documents in memory, plainly: what recall reads, without a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import apsw
import numpy as np
from numpy.typing import NDArray

from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.ports import Encoder, IndexedDocument, StoredChunk, Vectors, Where
from ecphoryrag.snapshot import Snapshot
from ecphoryrag.store.lexical import Tokenizer
from ecphoryrag.text.keys import name_key
from ecphoryrag.types import Chunk, Document, Entity, Extraction, JsonValue, Mention
from tests.support.reference_snapshot import reference_entities, reference_snapshot


class ReferenceView:
    """See :class:`ecphoryrag.ports.View`; ``matching`` knows equality of top-level values alone."""

    def __init__(self, documents: Iterable[IndexedDocument]) -> None:
        ordered = sorted(documents, key=lambda indexed: indexed.document.id)
        self._rows = [(indexed, at) for indexed in ordered for at in range(len(indexed.chunks))]
        self._entities = reference_entities(ordered)
        self._snapshot = reference_snapshot(ordered)
        self._tokenizer = Tokenizer(apsw.Connection(":memory:"))

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def terms(self, text: str) -> list[str]:
        return self._tokenizer(text)

    def matching(self, where: Where) -> NDArray[np.bool_]:
        passed = [
            all(row.document.metadata.get(name) == value for name, value in where.items()) for row, _ in self._rows
        ]
        return np.array(passed, np.bool_)

    def chunks(self, positions: Sequence[int]) -> list[StoredChunk]:
        rows = [self._rows[position] for position in positions]
        return [StoredChunk(row.chunks[at], row.document.title, row.document.metadata) for row, at in rows]

    def mentions(self, positions: Sequence[int]) -> list[list[Mention]]:
        rows = [self._rows[position] for position in positions]
        return [sorted(row.extractions[at].mentions, key=lambda found: (found.start, found.end)) for row, at in rows]

    def entities(self, positions: Sequence[int]) -> list[Entity]:
        return [self._entities[position] for position in positions]

    def entity_vectors(self, encoder: Encoder) -> Vectors:
        return encoder.encode([f"{one.name}: {one.description}" for one in self._entities], "passage").vectors


def told(
    id: str,
    text: str,
    names: Sequence[str] = (),
    *,
    title: str = "",
    metadata: Mapping[str, JsonValue] | None = None,
    aliases: Sequence[tuple[str, str]] = (),
    encoder: Encoder | None = None,
) -> IndexedDocument:
    """A document, one chunk a line, in which each of the ``names`` is a mention wherever it stands.

    The chunk is about its title; without one, about the first name in it.
    """
    document = Document(id, text, title, dict(metadata or {}))
    chunks: list[Chunk] = []
    at = 0
    for line in text.split("\n"):
        if line:
            chunks.append(Chunk(id, len(chunks), line, at, at + len(line)))
        at += len(line) + 1
    pairs = tuple((name_key(one), name_key(other)) for one, other in aliases)
    extractions = tuple(Extraction(_mentions(document, chunk, names), pairs) for chunk in chunks)
    texts = [f"{title}\n{chunk.text}" if title else chunk.text for chunk in chunks]
    return IndexedDocument(
        document, tuple(chunks), extractions, (encoder or HashEncoder(256)).encode(texts, "passage").vectors
    )


def _mentions(document: Document, chunk: Chunk, names: Sequence[str]) -> tuple[Mention, ...]:
    found = []
    for name in names:
        at = chunk.text.find(name)
        while at >= 0:
            found.append(Mention(name, name_key(name), chunk.start + at, chunk.start + at + len(name)))
            at = chunk.text.find(name, at + len(name))
    found.sort(key=lambda mention: (mention.start, -mention.end))
    if document.title and name_key(document.title):
        title = Mention(
            document.title,
            name_key(document.title),
            0,
            len(document.title),
            "title",
            description=chunk.text,
            about="title",
        )
        return (title, *found)
    if found:
        first = found[0]
        found[0] = Mention(first.name, first.key, first.start, first.end, description=chunk.text, about="subject")
    return tuple(found)
