"""The oracle of the store: the same facts, gathered from a list of documents in memory, slowly and plainly."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import apsw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.ports import IndexedDocument
from ecphoryrag.snapshot import ABOUT_KINDS, Snapshot
from ecphoryrag.store.lexical import Tokenizer
from ecphoryrag.text.keys import is_linkable, normal_words
from ecphoryrag.text.short_forms import short_forms
from ecphoryrag.types import Chunk, Entity, Extraction, Mention

LINKED_WORDS = range(2, 9)
NOT_NAMES = frozenset({"date", "number", "quantity", "term", "identifier"})


def reference_snapshot(documents: Iterable[IndexedDocument], generation: int = 1, dimension: int = 0) -> Snapshot:
    """What a store that holds these documents must give; ``chunk_rows`` alone is the store's own affair.

    ``dimension`` counts if there are no documents to show it.
    """
    ordered = sorted(documents, key=lambda indexed: indexed.document.id)
    rows = [
        (number, indexed, chunk, extraction)
        for number, indexed in enumerate(ordered)
        for chunk, extraction in zip(indexed.chunks, indexed.extractions, strict=True)
    ]
    keys = sorted({mention.key for _, _, _, extraction in rows for mention in extraction.mentions})
    position = {key: at for at, key in enumerate(keys)}
    mentions: Counter[tuple[int, int]] = Counter()
    about: dict[tuple[int, int], int] = {}
    for row, (_, _, _, extraction) in enumerate(rows):
        for mention in extraction.mentions:
            cell = (row, position[mention.key])
            mentions[cell] += 1
            if mention.about is not None:
                code = 1 + ABOUT_KINDS.index(mention.about)
                about[cell] = min(about.get(cell, code), code)
    shape = (len(rows), len(keys))
    body, title, terms = _terms(rows)
    return Snapshot(
        generation=generation,
        document_ids=[indexed.document.id for indexed in ordered],
        chunk_documents=np.array([number for number, *_ in rows], np.int32),
        chunk_rows=np.arange(len(rows), dtype=np.int64),
        entity_keys=keys,
        entity_positions=position,
        mentions=_csr(mentions, shape, np.dtype(np.float32)),
        about=_csr(about, shape, np.dtype(np.int8)),
        linked=_csr(_linked(rows, mentions, position), shape, np.dtype(np.float32)),
        short_forms=_csr(_short_forms(about, keys), shape, np.dtype(np.float32)),
        aliases=_aliases(ordered, position),
        terms=terms,
        term_counts=body,
        title_term_counts=title,
        vectors=_unit_rows(ordered, dimension),
    )


Row = tuple[int, IndexedDocument, Chunk, Extraction]


def _csr(cells: dict[tuple[int, int], int], shape: tuple[int, int], kind: np.dtype[np.generic]) -> sp.csr_array:
    ordered = sorted(cells)
    values = np.array([cells[cell] for cell in ordered], dtype=kind)
    where = np.array(ordered, dtype=np.int32).reshape(-1, 2)
    return sp.csr_array((values, (where[:, 0], where[:, 1])), shape=shape)


def _linked(
    rows: Sequence[Row], mentions: dict[tuple[int, int], int], position: dict[str, int]
) -> dict[tuple[int, int], int]:
    known: dict[tuple[str, ...], int] = {}
    for _, _, _, extraction in rows:
        for mention in extraction.mentions:
            words = tuple(mention.key.split())
            if linkable(mention) and len(words) in LINKED_WORDS and is_linkable(mention.key):
                known[words] = position[mention.key]
    found: dict[tuple[int, int], int] = {}
    for row, (_, _, chunk, _) in enumerate(rows):
        said = [word.norm for word in normal_words(chunk.text)]
        for length, start in itertools.product(LINKED_WORDS, range(len(said))):
            entity = known.get(tuple(said[start : start + length]))
            if entity is not None and (row, entity) not in mentions:
                found[row, entity] = 1
    return found


def linkable(mention: Mention) -> bool:
    """Whether this mention makes its key a name that other documents may be linked by."""
    if mention.about == "title":
        return True
    return mention.about in {"heading", "subject"} and mention.type not in NOT_NAMES


def _short_forms(about: dict[tuple[int, int], int], keys: Sequence[str]) -> dict[tuple[int, int], int]:
    codes = {kind: 1 + at for at, kind in enumerate(ABOUT_KINDS)}
    titles = {keys[entity] for (_, entity), code in about.items() if code == codes["title"]}
    found: dict[tuple[int, int], int] = {}
    for (row, entity), code in about.items():
        for form in short_forms(keys[entity]) if code != codes["frequent"] else ():
            if form in keys and form not in titles and (row, keys.index(form)) not in about:
                found[row, keys.index(form)] = 1
    return found


def _aliases(ordered: Sequence[IndexedDocument], position: dict[str, int]) -> NDArray[np.int32]:
    pairs = {
        (min(position[one], position[other]), max(position[one], position[other]))
        for indexed in ordered
        for extraction in indexed.extractions
        for one, other in extraction.aliases
        if one in position and other in position and one != other
    }
    return np.array(sorted(pairs), dtype=np.int32).reshape(-1, 2)


def _terms(rows: Sequence[Row]) -> tuple[sp.csc_array, sp.csc_array, dict[str, int]]:
    tokenize = Tokenizer(apsw.Connection(":memory:"))
    bodies = [Counter(tokenize(chunk.text)) for _, _, chunk, _ in rows]
    titles = [Counter(tokenize(indexed.document.title)) for _, indexed, _, _ in rows]
    columns = {term: at for at, term in enumerate(sorted({term for count in (*bodies, *titles) for term in count}))}
    shape = (len(rows), len(columns))
    matrices = []
    for counts in (bodies, titles):
        cells = {(row, columns[term]): n for row, count in enumerate(counts) for term, n in count.items()}
        matrices.append(_csr(cells, shape, np.dtype(np.float32)).tocsc())
    return matrices[0], matrices[1], columns


def _unit_rows(ordered: Sequence[IndexedDocument], dimension: int) -> NDArray[np.float32]:
    kept = [np.asarray(indexed.vectors, np.float16).astype(np.float32) for indexed in ordered]
    if not kept:
        return np.zeros((0, dimension), np.float32)
    rows = np.concatenate(kept)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms == 0, 1, norms), np.float32)


def reference_entities(documents: Iterable[IndexedDocument]) -> list[Entity]:
    """The entities as shown, by key."""
    met: dict[str, list[tuple[str, int, Mention]]] = defaultdict(list)
    for indexed in sorted(documents, key=lambda indexed: indexed.document.id):
        for ordinal, extraction in enumerate(indexed.extractions):
            for mention in extraction.mentions:
                met[mention.key].append((indexed.document.id, ordinal, mention))
    return [_entity(key, found) for key, found in sorted(met.items())]


def _entity(key: str, found: Sequence[tuple[str, int, Mention]]) -> Entity:
    places = {(document, mention.field, mention.start, mention.end): mention.name for document, _, mention in found}
    spellings = Counter(places.values())
    names = sorted(spellings, key=lambda name: (-spellings[name], name))
    defining = min(found, key=_order_of_definition)[2]
    return Entity(
        key=key,
        name=names[0],
        type=defining.type,
        description=defining.description,
        importance=max(mention.importance for _, _, mention in found),
        aliases=tuple(names),
        mention_count=len(places),
        chunk_count=len({(document, ordinal) for document, ordinal, _ in found}),
    )


def _order_of_definition(found: tuple[str, int, Mention]) -> tuple[bool, int, str, int, bool, int, int]:
    document, ordinal, mention = found
    kind = len(ABOUT_KINDS) if mention.about is None else ABOUT_KINDS.index(mention.about)
    return (mention.description == "", kind, document, ordinal, mention.field == "text", mention.start, mention.end)
