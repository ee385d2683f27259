"""What every Store keeps to; the expectations come from the slow reference."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from ecphoryrag.errors import (
    DocumentNotFound,
    EncoderMismatch,
    InputError,
    StoreNotFound,
    StoreReadOnly,
)
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.ports import Encoded, IndexedDocument, Store
from ecphoryrag.snapshot import Snapshot
from ecphoryrag.store import open_store
from tests.support.indexed_documents import ENCODER, EXTRACTOR, contents, indexed_document, sample
from tests.support.reference_snapshot import reference_entities, reference_snapshot

Opener = Callable[..., Store]


@pytest.fixture(params=["sqlite"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the implementation's store, always the same one; closes what was opened."""
    opened: list[Store] = []
    assert request.param == "sqlite"

    def open_one(**options: Any) -> Store:
        path = options.pop("path", tmp_path / "test.ecphory")
        identity = options.pop("encoder", ENCODER.identity)
        opened.append(open_store(path, identity, options.pop("extractor", EXTRACTOR), **options))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(opener: Opener) -> Store:
    """A store that holds the sample."""
    made = opener()
    for document in sample():
        made.commit(document)
    return made


def snapshot(store: Store) -> Snapshot:
    with store.reading() as view:
        return view.snapshot


def assert_holds(store: Store, documents: Sequence[IndexedDocument]) -> None:
    """The store shows exactly these documents, in every way in which it shows anything."""
    with store.reading() as view:
        assert contents(view.snapshot) == contents(reference_snapshot(documents, dimension=8))
        entities = view.entities(range(len(view.snapshot.entity_keys)))
    assert entities == reference_entities(documents)
    assert [one.id for one in store.documents()] == sorted(one.document.id for one in documents)


def test_commit_tells_added_from_updated(opener: Opener) -> None:
    store = opener()
    assert store.commit(indexed_document("a", "Old Town")) == "added"
    assert store.commit(indexed_document("a", "New Town")) == "updated"
    assert store.get("a").text == "New Town"


def test_an_empty_store_reads_as_empty(opener: Opener) -> None:
    store = opener()
    assert_holds(store, [])
    with store.reading() as view:
        assert view.snapshot.vectors.shape == (0, 8)
        assert view.matching({"a": 1}).shape == (0,)
        assert view.entity_vectors(ENCODER).shape == (0, 8)
    status = store.status()
    assert (status.documents, status.chunks, status.entities, status.mentions, status.text_bytes) == (0, 0, 0, 0, 0)


def test_the_sample_has_something_of_everything() -> None:
    """The tests below prove little if the sample's matrices are empty."""
    whole = reference_snapshot(sample())
    for name in ("mentions", "about", "linked", "term_counts", "title_term_counts"):
        assert getattr(whole, name).nnz, name
    assert len(whole.aliases)
    assert {"run", "cafe", "हिन्दी", "old"} <= set(whole.terms)


def test_the_snapshot_is_the_reference(store: Store) -> None:
    assert_holds(store, sample())


def test_documents_come_back_as_they_were(store: Store) -> None:
    for given in sample():
        assert store.get(given.document.id) == given.document
        kept = store.indexed(given.document.id)
        assert (kept.document, kept.chunks, kept.extractions) == (given.document, given.chunks, given.extractions)
        np.testing.assert_allclose(kept.vectors, given.vectors, atol=1e-3)
        assert kept.vectors.dtype == np.float32


def test_vectors_of_a_snapshot_have_unit_length_and_zero_stays_zero(opener: Opener) -> None:
    store = opener()
    store.commit(indexed_document("a", "Old Town\n?!"))
    lengths = np.linalg.norm(snapshot(store).vectors, axis=1)
    np.testing.assert_allclose(lengths, [1, 0], atol=1e-6)


def test_without_an_encoder_vectors_are_zero_wide(opener: Opener) -> None:
    none = HashEncoder(0)
    store = opener(encoder=none.identity)
    given = indexed_document("a", "Old Town\nNew Town")
    store.commit(IndexedDocument(given.document, given.chunks, given.extractions, np.zeros((2, 0), np.float32)))
    assert snapshot(store).vectors.shape == (2, 0)
    with store.reading() as view:
        assert view.entity_vectors(none).shape == (2, 0)


def test_hashes_are_those_of_the_contents(store: Store) -> None:
    expected = {one.document.id: one.document.content_hash for one in sample()}
    assert store.hashes([*expected, "no such id"]) == expected
    assert {one.id: one.content_hash for one in store.documents()} == expected


def test_documents_are_summed_up(store: Store) -> None:
    for one, given in zip(store.documents(), sorted(sample(), key=lambda one: one.document.id), strict=True):
        document = given.document
        assert (one.id, one.title, one.metadata, one.source) == (
            document.id,
            document.title,
            document.metadata,
            document.source,
        )
        assert (one.chunks, one.characters) == (len(given.chunks), len(document.text))


def test_updating_leaves_only_the_new(store: Store) -> None:
    new = indexed_document("a", "Quite Other wrote nothing.", "Nothing at all")
    store.commit(new)
    assert_holds(store, [new, *sample()[1:]])


def test_forgetting_leaves_the_rest_as_if_it_had_never_been(store: Store) -> None:
    store.delete(["a", "東"])
    assert_holds(store, [one for one in sample() if one.document.id not in {"a", "東"}])


def test_forgetting_all_leaves_nothing(store: Store) -> None:
    store.delete([one.document.id for one in sample()])
    assert_holds(store, [])
    assert store.status().entities == 0


def test_forgetting_is_all_or_nothing_and_names_the_missing(store: Store) -> None:
    generation = store.status().generation
    with pytest.raises(DocumentNotFound, match=r"'no such'.*'nor this'"):
        store.delete(["a", "no such", "b", "nor this"])
    assert_holds(store, sample())
    assert store.status().generation == generation


def test_what_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(DocumentNotFound, match="'nobody'"):
        store.get("nobody")
    with pytest.raises(DocumentNotFound, match="'nobody'"):
        store.indexed("nobody")


def test_the_order_of_adding_does_not_matter(opener: Opener, tmp_path: Path) -> None:
    for seed in range(3):
        store = opener(path=tmp_path / f"{seed}.ecphory")
        documents = list(sample())
        random.Random(seed).shuffle(documents)
        for document in documents:
            store.commit(indexed_document(document.document.id, "An Earlier Version to be replaced"))
        random.Random(seed + 10).shuffle(documents)
        for document in documents:
            store.commit(document)
        assert_holds(store, sample())


def test_each_commit_moves_the_generation_and_an_old_view_stays_as_it_was(store: Store) -> None:
    with store.reading() as before:
        generation = before.snapshot.generation
        store.commit(indexed_document("new", "Brand New"))
        store.delete(["a"])
        with store.reading() as after:
            assert after.snapshot.generation == generation + 2
            assert "new" in after.snapshot.document_ids
            assert "a" not in after.snapshot.document_ids
        assert before.snapshot.generation == generation
        chunks = before.chunks(range(before.snapshot.chunk_count))
        assert "a" in {one.chunk.document_id for one in chunks}
        assert "new" not in {one.chunk.document_id for one in chunks}
        assert before.entities([0])[0] == reference_entities(sample())[0]


def test_a_snapshot_is_made_once_a_generation(store: Store) -> None:
    first = snapshot(store)
    assert snapshot(store) is first
    store.commit(indexed_document("new", "Brand New"))
    assert snapshot(store) is not first


def test_terms_are_those_of_the_index(store: Store) -> None:
    with store.reading() as view:
        for at, stored in enumerate(view.chunks(range(view.snapshot.chunk_count))):
            row = view.snapshot.term_counts[[at], :].tocoo()
            held = {column: int(count) for column, count in zip(row.coords[1], row.data, strict=True)}
            terms = view.terms(stored.chunk.text)
            assert held == {view.snapshot.terms[term]: terms.count(term) for term in terms}
        assert view.terms("Running CAFÉS run") == ["run", "cafe", "run"]


def test_chunks_and_mentions_come_in_the_order_asked_for(store: Store) -> None:
    given = {(one.document.id, chunk.ordinal): (one, chunk) for one in sample() for chunk in one.chunks}
    with store.reading() as view:
        positions = list(range(view.snapshot.chunk_count))[::-1]
        for stored, mentions in zip(view.chunks(positions), view.mentions(positions), strict=True):
            document, chunk = given[stored.chunk.document_id, stored.chunk.ordinal]
            assert stored.chunk == chunk
            assert (stored.title, stored.metadata) == (document.document.title, document.document.metadata)
            expected = document.extractions[chunk.ordinal].mentions
            assert mentions == sorted(expected, key=lambda one: (one.field == "text", one.start, one.end))
        assert view.chunks([]) == []
        assert [one.key for one in view.entities([2, 0, 2])] == [view.snapshot.entity_keys[at] for at in (2, 0, 2)]


def test_an_entity_is_shown_by_its_most_frequent_spelling_and_its_own_passage(store: Store) -> None:
    with store.reading() as view:
        [entity] = view.entities([view.snapshot.entity_positions["silent harbour"]])
    assert entity.name == "Silent Harbour"
    assert entity.description == "Anna Marsh wrote Silent Harbour."
    assert entity.importance == 5


FILTERED: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"a", "b", "c", "d"}),
    ({"n": 1}, {"a", "b"}),
    ({"n": 1.0}, {"a", "b"}),
    ({"n": True}, {"c"}),
    ({"n": [True, 1]}, {"a", "b", "c"}),
    ({"n": None}, {"d"}),
    ({"tag": "x"}, {"a", "b"}),
    ({"tag": ["y", "z"]}, {"a", "c"}),
    ({"tag": []}, set()),
    ({"n": 1, "tag": "y"}, {"a"}),
    ({"author.name": "Ann"}, {"a", "b"}),
    ({"author.name": "Bob"}, {"b"}),
    ({"author.name.first": "Ann"}, set()),
    ({"x.y": 7}, {"c"}),
    ({"author": "Ann"}, set()),
    ({"no such": 1}, set()),
    ({"id": ["a", "d"]}, {"a", "d"}),
    ({"title": "Own"}, {"b"}),
    ({"source": "s.txt"}, {"a", "d"}),
    ({"'; DROP TABLE documents; --": '"'}, set()),
]


@pytest.mark.parametrize(("where", "passed"), FILTERED)
def test_filters(opener: Opener, where: dict[str, Any], passed: set[str]) -> None:
    store = opener()
    store.commit(
        indexed_document("a", "One\nTwo", "", {"n": 1, "tag": ["x", "y"], "author": {"name": "Ann"}}, source="s.txt")
    )
    store.commit(
        indexed_document("b", "One", "Own", {"n": 1.0, "tag": "x", "author": [{"name": "Ann"}, {"name": "Bob"}]})
    )
    store.commit(indexed_document("c", "One", "", {"n": True, "tag": ["z"], "x.y": 7}))
    store.commit(indexed_document("d", "One", "", {"n": None, "source": "s.txt"}))
    with store.reading() as view:
        mask = view.matching(where)
        found = {one.chunk.document_id for one in view.chunks(np.flatnonzero(mask).tolist())}
        assert mask.dtype == np.bool_
        assert mask.sum() == len(found) + ("a" in found)
    assert found == passed
    assert {one.id for one in store.documents(where)} == passed


@pytest.mark.parametrize("where", [{"a": {"b": 1}}, {"a": [["b"]]}, {"a": float("nan")}, {"": 1}, {3: 1}, ["a"], "a"])
def test_a_malformed_filter_is_refused(store: Store, where: Any) -> None:
    with pytest.raises(InputError), store.reading() as view:
        view.matching(where)
    with pytest.raises(InputError):
        store.documents(where)


def test_a_mask_is_the_callers_own(store: Store) -> None:
    with store.reading() as view:
        view.matching({})[:] = False
        assert view.matching({}).all()


class CountingEncoder(HashEncoder):
    """Remembers what it was asked to encode."""

    def __init__(self) -> None:
        super().__init__(8)
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        self.asked += texts
        return super().encode(texts, kind)


def test_entity_vectors_encode_name_and_definition_once(opener: Opener, store: Store) -> None:
    encoder = CountingEncoder()
    with store.reading() as view:
        first = view.entity_vectors(encoder)
        keys = list(view.snapshot.entity_keys)
    said = [f"{one.name}. {one.description}" for one in reference_entities(sample())]
    assert sorted(encoder.asked) == sorted(set(said))
    np.testing.assert_allclose(first, ENCODER.encode(said, "passage").vectors, atol=1e-3)
    store.close()
    encoder.asked.clear()
    again = opener()
    again.commit(indexed_document("z", "Zoltan Nemo came.\nAnna Marsh again"))
    with again.reading() as view:
        second = view.entity_vectors(encoder)
        assert encoder.asked == ["Zoltan Nemo. Zoltan Nemo came."]
        kept = [view.snapshot.entity_positions[key] for key in keys]
    np.testing.assert_array_equal(second[kept], first)
    again.delete(["z"])
    encoder.asked.clear()
    with again.reading() as view:
        np.testing.assert_array_equal(view.entity_vectors(encoder), first)
    assert encoder.asked == []


def test_status_counts(store: Store) -> None:
    store.commit(indexed_document("e", "nothing named here"))
    documents = [*sample(), indexed_document("e", "nothing named here")]
    status = store.status()
    assert status.documents == len(documents)
    assert status.chunks == sum(len(one.chunks) for one in documents)
    assert status.mentions == sum(len(found.mentions) for one in documents for found in one.extractions)
    assert status.entities == len(reference_entities(documents))
    assert status.empty_chunks == sum(not found.mentions for one in documents for found in one.extractions) > 0
    assert status.text_bytes == sum(len((one.document.text + one.document.title).encode()) for one in documents)
    assert (status.encoder, status.extractor) == (ENCODER.identity, EXTRACTOR)


def test_it_is_all_there_after_reopening(opener: Opener, store: Store) -> None:
    store.flush()
    store.close()
    store.close()
    assert_holds(opener(create=False), sample())


def test_every_extractor_that_had_a_part_is_named(opener: Opener, store: Store) -> None:
    store.close()
    store = opener(extractor="capitals 2")
    assert store.status().extractor == "capitals 1"
    store.commit(indexed_document("z", "Zoltan"))
    assert store.status().extractor == "capitals 1; capitals 2"
    store.delete([one.document.id for one in sample()])
    assert store.status().extractor == "capitals 2"


def test_the_vectors_of_another_encoder_are_refused(opener: Opener, store: Store) -> None:
    store.close()
    for read_only in (False, True):
        with pytest.raises(
            EncoderMismatch, match=r"(?s)'hash' \(version 1, 8 dim.*'hash' \(version 1, 16 dim.*Set `encoder = "
        ):
            opener(encoder=HashEncoder(16).identity, read_only=read_only)
    assert_holds(opener(), sample())


def test_nothing_is_made_where_it_was_not_asked_for(opener: Opener, tmp_path: Path) -> None:
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreNotFound, match=r"test\.ecphory"):
            opener(**options)
    assert list(tmp_path.iterdir()) == []


def test_a_store_opened_read_only_refuses_to_write(opener: Opener, store: Store) -> None:
    store.close()
    reader = opener(read_only=True)
    with pytest.raises(StoreReadOnly):
        reader.commit(sample()[0])
    with pytest.raises(StoreReadOnly):
        reader.delete(["a"])
    reader.flush()
    assert_holds(reader, sample())


@pytest.mark.parametrize("bad", ["text", "title", "id", "metadata", "source"])
def test_half_a_surrogate_pair_is_refused_and_nothing_kept(opener: Opener, bad: str) -> None:
    store = opener()
    parts: dict[str, Any] = {"id": "a", "text": "b", bad: {"k": "\ud800"} if bad == "metadata" else "\ud800"}
    with pytest.raises(InputError, match="surrogate"):
        store.commit(indexed_document(**parts))
    assert store.documents() == []


def test_signs_that_trouble_databases_come_back(opener: Opener) -> None:
    store = opener()
    given = indexed_document("\x00'\"", "Nul \x00 Inside Town\nafter \x00 Nul", "\x00", {"\x00": "\x00'"})
    store.commit(given)
    assert store.get("\x00'\"") == given.document
    assert store.documents()[0].characters == len(given.document.text)
    assert store.indexed("\x00'\"").extractions == given.extractions
    assert_holds(store, [given])
    store.delete(["\x00'\""])
    assert_holds(store, [])


def test_parts_that_do_not_belong_together_are_refused(opener: Opener) -> None:
    store = opener()
    good = indexed_document("a", "Old Town\nNew Town")
    for bad in (
        IndexedDocument(good.document, good.chunks[:1], good.extractions, good.vectors),
        IndexedDocument(good.document, good.chunks, good.extractions, good.vectors[:, :4]),
        IndexedDocument(good.document, good.chunks, good.extractions, good.vectors * np.float32(np.nan)),
        IndexedDocument(good.document, good.chunks[::-1], good.extractions, good.vectors),
        IndexedDocument(
            indexed_document("a", "Old Towm\nNew Town").document, good.chunks, good.extractions, good.vectors
        ),
        IndexedDocument(
            good.document, good.chunks, indexed_document("a", "\n\n\nOld Town\nNew").extractions, good.vectors
        ),
    ):
        with pytest.raises(ValueError, match="'a'"):
            store.commit(bad)
    assert store.documents() == []


def test_threads_read_one_state_each_while_another_writes(store: Store) -> None:
    """Each document that comes says how many there are; a view that mixes states would count wrong."""
    base = len(sample())
    failures: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            with store.reading() as view:
                shot = view.snapshot
                extra = [int(name.removeprefix("extra ")) for name in shot.document_ids if name.startswith("extra ")]
                texts = [one.chunk.document_id for one in view.chunks(range(shot.chunk_count))]
                expected = [shot.document_ids[at] for at in shot.chunk_documents]
                keys = [one.key for one in view.entities(range(len(shot.entity_keys)))]
            if texts != expected or keys != list(shot.entity_keys):
                failures.append("rows are not those of the snapshot")
            if sorted(extra) != list(range(len(extra))) or shot.generation != base + len(extra):
                failures.append(f"generation {shot.generation} with {len(extra)} extra documents")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(25):
            store.commit(indexed_document(f"extra {number}", f"Number {number} came to Old Town.\nAnd More"))
            if number % 10 == 0:
                store.flush()
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert failures == []
    assert store.status().documents == base + 25
