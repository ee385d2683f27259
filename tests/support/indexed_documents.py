"""Indexed documents for tests of the store, made by rules that are plain to see."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.ports import IndexedDocument
from ecphoryrag.snapshot import Snapshot
from ecphoryrag.text.keys import name_key
from ecphoryrag.types import AboutKind, Chunk, Document, Extraction, Heading, JsonValue, Mention

ENCODER = HashEncoder(8)
EXTRACTOR = "capitals 1"
_NAME = re.compile(r"[A-ZÉ東-龥][\w]*(?: [A-ZÉ][\w]*)*")
_PARAGRAPH = re.compile(r"[^\n]+")


def indexed_document(
    id: str,
    text: str,
    title: str = "",
    metadata: Mapping[str, JsonValue] | None = None,
    headings: tuple[Heading, ...] = (),
    source: str | None = None,
) -> IndexedDocument:
    """A chunk a line; a mention for each run of capitalised words, the first of a chunk being its subject."""
    document = Document(id, text, title, dict(metadata or {}), headings, source)
    chunks = tuple(
        Chunk(id, ordinal, found[0], found.start(), found.end(), tuple(heading.text for heading in headings))
        for ordinal, found in enumerate(_PARAGRAPH.finditer(text))
    )
    extractions = tuple(_extraction(document, chunk) for chunk in chunks)
    vectors = ENCODER.encode([f"{title}\n{chunk.text}" for chunk in chunks], "passage").vectors
    return IndexedDocument(document, chunks, extractions, vectors)


def _extraction(document: Document, chunk: Chunk) -> Extraction:
    mentions: list[Mention] = []
    key = name_key(document.title)
    if key:
        end = len(document.title)
        mentions.append(Mention(document.title, key, 0, end, "title", "title", chunk.text[:40], 5, "title"))
    subject: AboutKind | None = "subject"
    for found in _NAME.finditer(chunk.text):
        start = chunk.start + found.start()
        kind = "term" if found[0].isupper() else "name"
        said = chunk.text if subject else f"{found[0]}: a word of the extractor's own"
        mentions.append(
            Mention(found[0], name_key(found[0]), start, start + len(found[0]), "text", kind, said, 3, subject)
        )
        subject = None
    pairs = itertools.pairwise(mentions)
    aliases = tuple((one.key, other.key) for one, other in pairs if one.name[0] == other.name[0])
    return Extraction(tuple(mention for mention in mentions if mention.key), aliases)


def with_failures(indexed: IndexedDocument, *ordinals: int) -> IndexedDocument:
    """The document with the extraction of these chunks failed."""
    extractions = tuple(
        Extraction(failure=f"no reply to chunk {at} could be used") if at in ordinals else extraction
        for at, extraction in enumerate(indexed.extractions)
    )
    return replace(indexed, extractions=extractions)


def contents(snapshot: Snapshot) -> dict[str, Any]:
    """All of a snapshot but its generation and the store's row numbers, in a form that ``==`` compares exactly."""
    held: dict[str, Any] = {
        "document_ids": list(snapshot.document_ids),
        "chunk_documents": snapshot.chunk_documents.tolist(),
        "entity_keys": list(snapshot.entity_keys),
        "entity_positions": dict(snapshot.entity_positions),
        "aliases": snapshot.aliases.tolist(),
        "terms": dict(snapshot.terms),
        "vectors": (snapshot.vectors.shape, snapshot.vectors.dtype.str, np.round(snapshot.vectors, 6).tolist()),
    }
    for name in ("mentions", "about", "linked", "short_forms", "term_counts", "title_term_counts"):
        matrix = getattr(snapshot, name)
        held[name] = (
            type(matrix).__name__,
            matrix.shape,
            matrix.dtype.str,
            matrix.indptr.tolist(),
            matrix.indices.tolist(),
            matrix.data.tolist(),
        )
    return held


def sample() -> Sequence[IndexedDocument]:
    """Six documents that mention one another, in several scripts, with and without titles."""
    return (
        indexed_document("a", "Anna Marsh wrote Silent Harbour.\nIt was filmed by Bela Toth.", "Silent Harbour"),
        indexed_document(
            "b", "Bela Toth was born in Old Town. Bela Toth and BBC met Anna Marsh.", metadata={"year": 1931}
        ),
        indexed_document("c", "he came to old town by the silent harbour\n東京 and Old Town", "Notes of a traveller"),
        indexed_document("d", "", "Only a title", {"tags": ["x", "y"]}),
        indexed_document(
            "é/d?#%", "हिन्दी की भाषा, running and runs; cafés of École Bleue", "École Bleue", source="x/y.txt"
        ),
        indexed_document(
            "東",
            "Silent Harbour is told of; anna marsh is not.\nBela Toth, bela toth",
            headings=(Heading(1, "Silent", 0, 6),),
        ),
    )
