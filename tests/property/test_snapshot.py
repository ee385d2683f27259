"""Whatever is added, updated and forgotten, in whatever order: the snapshot is that of the slow reference."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecphoryrag.ports import IndexedDocument, Store
from ecphoryrag.store import open_store
from ecphoryrag.text.keys import name_key
from ecphoryrag.types import AboutKind, Chunk, Document, Extraction, Field, Mention
from tests.support.indexed_documents import ENCODER, EXTRACTOR, contents
from tests.support.reference_snapshot import reference_entities, reference_snapshot

WORDS = [
    "Old",
    "old",
    "Town",
    "town's",
    "of",
    "the",
    "Zoë",
    "ZOE",
    "run",
    "running",
    "東京",
    "東",
    "नदी",
    "U.S.",
    "½",
    "x\x00y",
    "١",
    "fi",
]
PHRASES = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
FIELDS: st.SearchStrategy[Field] = st.sampled_from(["title", "text"])
ABOUT: st.SearchStrategy[AboutKind | None] = st.sampled_from([None, None, "title", "heading", "subject", "frequent"])
IDS = st.sampled_from(["a", "b", "ab", "é", "東", "A", "\U0001f600"])


@st.composite
def indexed_documents(draw: st.DrawFn, ids: st.SearchStrategy[str] = IDS) -> IndexedDocument:
    """Any split into chunks (that may overlap) and any spans as mentions."""
    title, text = draw(PHRASES), draw(st.lists(PHRASES, max_size=4).map(". ".join))
    document = Document(draw(ids), text, title)
    bounds = draw(st.lists(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))), max_size=3))
    chunks = tuple(
        Chunk(document.id, ordinal, text[min(pair) : max(pair)], min(pair), max(pair))
        for ordinal, pair in enumerate(bounds)
    )
    extractions = tuple(draw(_extractions(document)) for _ in chunks)
    vectors = ENCODER.encode([chunk.text for chunk in chunks], "passage").vectors
    return IndexedDocument(document, chunks, extractions, vectors)


@st.composite
def _extractions(draw: st.DrawFn, document: Document) -> Extraction:
    mentions = []
    for _ in range(draw(st.integers(0, 4))):
        field = draw(FIELDS)
        held = document.title if field == "title" else document.text
        start, end = sorted((draw(st.integers(0, len(held))), draw(st.integers(0, len(held)))))
        name = held[start:end]
        if name_key(name):
            kind, importance = draw(st.sampled_from(["name", "term", "date"])), draw(st.integers(1, 5))
            said = draw(st.one_of(st.just(""), st.just(document.text), PHRASES))
            about = draw(ABOUT)
            mentions.append(Mention(name, name_key(name), start, end, field, kind, said, importance, about))
    keys = st.sampled_from([mention.key for mention in mentions] + ["nowhere"])
    return Extraction(tuple(mentions), tuple(draw(st.lists(st.tuples(keys, keys), max_size=2))))


@contextmanager
def new_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "test.ecphory", ENCODER.identity, EXTRACTOR)
        try:
            yield store
        finally:
            store.close()


QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@QUICK
@given(st.lists(indexed_documents(), max_size=8), st.lists(IDS, max_size=3), st.randoms(use_true_random=False))
def test_the_snapshot_is_the_reference(
    given_documents: list[IndexedDocument], forgotten: list[str], random: object
) -> None:
    """Later documents replace earlier ones of the same id; some are forgotten, some of them added again."""
    with new_store() as store:
        held: dict[str, IndexedDocument] = {}
        for at, indexed in enumerate(given_documents):
            store.commit(indexed)
            held[indexed.document.id] = indexed
            if at < len(forgotten) and forgotten[at] in held:
                store.delete([forgotten[at]])
                del held[forgotten[at]]
        assert_same(store, list(held.values()))
        with new_store() as other:
            shuffled = list(held.values())
            getattr(random, "shuffle")(shuffled)  # noqa: B009
            for indexed in shuffled:
                other.commit(indexed)
            assert_same(other, list(held.values()))


def assert_same(store: Store, documents: list[IndexedDocument]) -> None:
    """Twice: as built, and as read from the cache by another opening."""
    expected = contents(reference_snapshot(documents, dimension=8))
    with store.reading() as view:
        assert contents(view.snapshot) == expected
        assert view.entities(range(len(view.snapshot.entity_keys))) == reference_entities(documents)
    again = open_store(Path(store.status().path), ENCODER.identity, EXTRACTOR, read_only=True)
    with again.reading() as view:
        assert contents(view.snapshot) == expected
        for matrix in (view.snapshot.mentions, view.snapshot.linked, view.snapshot.term_counts):
            matrix.check_format(full_check=True)
    again.close()


@QUICK
@given(indexed_documents())
def test_a_document_comes_back_as_it_was(indexed: IndexedDocument) -> None:
    with new_store() as store:
        store.commit(indexed)
        kept = store.indexed(indexed.document.id)
        assert (kept.document, kept.chunks, kept.extractions) == (indexed.document, indexed.chunks, indexed.extractions)
        np.testing.assert_allclose(kept.vectors, indexed.vectors, atol=1e-3)
        store.delete([indexed.document.id])
        status = store.status()
        assert (status.documents, status.chunks, status.entities, status.mentions) == (0, 0, 0, 0)
