"""From documents to commits: on the real store and extractor, with an encoder that can be made to fail."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from ecphoryrag.errors import GenerationError, ModelNotAvailable, StoreError
from ecphoryrag.indexing import (
    LeftOut,
    Loaded,
    Progress,
    extracting,
    index,
    load_items,
    passage_head,
    passage_vectors,
    works,
)
from ecphoryrag.indexing.interrupts import held_interrupts
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.models.names import NamesExtractor
from ecphoryrag.ports import Encoded, Extractor, IndexedDocument, Store
from ecphoryrag.settings import ChunkSettings, IndexingSettings
from ecphoryrag.store import open_store
from ecphoryrag.types import Chunk, Document, EncoderIdentity, Extraction, Failure, Usage

SETTINGS = IndexingSettings(batch=3, chunks=ChunkSettings(budget=16, overlap=0))
DOCUMENTS = [
    Document("a", "Ada Lovelace wrote to Charles Babbage.", "Letters"),
    Document("b", "?! ..."),
    Document("c", "Grace Hopper found a moth. " * 6, "Moths", {"year": 1947}),
    Document("d", "Alan Turing read it."),
]


class WatchedEncoder(HashEncoder):
    """The hash encoder, keeping what it was given; fails on texts with a word of ill omen."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.calls: list[list[str]] = []
        self._error = error

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        self.calls.append(list(texts))
        if self._error and any("OMEN" in text for text in texts):
            raise self._error
        return super().encode(texts, kind)


class FailingExtractor:
    """The names extractor; fails on a word of ill omen."""

    def __init__(self, error: BaseException) -> None:
        self._names = NamesExtractor()
        self._error = error

    @property
    def identity(self) -> str:
        return self._names.identity

    @property
    def model(self) -> None:
        return None

    @property
    def basis(self) -> str:
        return self._names.basis

    @property
    def parallel(self) -> int:
        return 1

    def halt(self) -> None:
        """There is nothing to wait for."""

    def resume(self) -> None:
        """There was nothing to halt."""

    def estimate(self, document: Document, chunks: Sequence[Chunk]) -> Usage:
        return self._names.estimate(document, chunks)

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> Sequence[Extraction]:
        if "OMEN" in document.text:
            raise self._error
        return self._names.extract(document, chunks)


def stored(path: Path, encoder: EncoderIdentity | None = None) -> Store:
    return open_store(path / "s.ecphory", encoder or HashEncoder().identity, NamesExtractor().identity, create=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = stored(tmp_path)
    yield opened
    opened.close()


def held(store: Store) -> list[str]:
    return [summary.id for summary in store.documents()]


def test_documents_are_committed_with_all_that_was_derived(store: Store) -> None:
    encoder = WatchedEncoder()
    report = index(DOCUMENTS, store, encoder, NamesExtractor(), SETTINGS)
    assert report.added == ("a", "b", "c", "d")
    assert (report.updated, report.unchanged, report.failed, report.left_out) == ((), (), (), ())
    indexed = [store.indexed(document.id) for document in DOCUMENTS]
    assert [item.document for item in indexed] == DOCUMENTS
    assert report.chunks == sum(len(item.chunks) for item in indexed) > len(DOCUMENTS)
    assert report.mentions == sum(len(found.mentions) for item in indexed for found in item.extractions) > 0
    assert report.usage.embedding_tokens > 0
    assert report.seconds > 0
    for item in indexed:
        heads = [passage_head(item.document.title, chunk) for chunk in item.chunks]
        texts = [chunk.text for chunk in item.chunks]
        expected = passage_vectors(heads, texts, HashEncoder()).vectors
        np.testing.assert_allclose(item.vectors, expected, atol=2e-3)
    assert [len(call) for call in encoder.calls] == [sum(len(i.chunks) for i in indexed[:3]), len(indexed[3].chunks)]


def test_chunks_without_a_name_are_counted_one_by_one(store: Store) -> None:
    report = index(DOCUMENTS, store, HashEncoder(), NamesExtractor(), SETTINGS)
    expected = [
        (document.id, chunk.ordinal)
        for document in DOCUMENTS
        for chunk, found in zip(store.indexed(document.id).chunks, store.indexed(document.id).extractions, strict=True)
        if not found.mentions
    ]
    assert list(report.empty_chunks) == expected
    assert ("b", 0) in expected
    assert len(report.empty_chunks) == store.status().empty_chunks


def test_a_vector_is_made_of_title_headings_and_text() -> None:
    chunk = Chunk("d", 0, "Text.", 0, 5, ("Title", "Section"))
    assert passage_head("Title", chunk) == "Title\nSection"
    assert passage_head("", Chunk("d", 0, "Text.", 0, 5)) == ""
    encoder = HashEncoder()
    vectors = passage_vectors(["Title\nSection", ""], ["Text.", "Text."], encoder).vectors
    np.testing.assert_array_equal(vectors, encoder.encode(["Title\nSection\nText.", "Text."], "passage").vectors)


class TitledEncoder(HashEncoder):
    title_share = 0.4


def test_a_title_has_its_share_of_the_vector() -> None:
    encoder = TitledEncoder()
    heads, texts = ["Skerrow Light", "", "Skerrow Light"], ["A tower.", "A tower.", "A lens."]
    encoded = passage_vectors(heads, texts, encoder)
    for vector, head, text in zip(encoded.vectors, heads, texts, strict=True):
        above, below = encoder.encode([head, text], "passage").vectors
        mixed = 0.4 * above + 0.6 * below if head else below
        np.testing.assert_allclose(vector, mixed / np.linalg.norm(mixed), atol=1e-6)
    assert encoded.tokens == encoder.encode(["Skerrow Light", *texts], "passage").tokens


def test_the_same_again_is_no_work_and_other_content_is_an_update(store: Store) -> None:
    index(DOCUMENTS, store, HashEncoder(), NamesExtractor(), SETTINGS)
    encoder = WatchedEncoder()
    again = index(DOCUMENTS, store, encoder, FailingExtractor(AssertionError("worked on")), SETTINGS)
    assert again.unchanged == ("a", "b", "c", "d")
    assert encoder.calls == []
    changed = Document("c", "Grace Hopper slept.")
    report = index([DOCUMENTS[0], changed], store, HashEncoder(), NamesExtractor(), SETTINGS)
    assert (report.unchanged, report.updated, report.added) == (("a",), ("c",), ())
    assert store.get("c") == changed


def test_failures_and_what_was_left_out_are_in_the_report_and_the_rest_goes_in(store: Store) -> None:
    items: list[Loaded] = [Failure("x.pdf", "PDF"), DOCUMENTS[0], LeftOut(".h", "hidden"), *load_items(["", "Yes."])]
    report = index(items, store, HashEncoder(), NamesExtractor(), SETTINGS)
    assert len(report.added) == 2
    assert report.failed == (Failure("x.pdf", "PDF"), Failure("item 1", "the text is empty"))
    assert report.left_out == (Failure(".h", "hidden"),)


@pytest.mark.parametrize("batch", [1, 2, 10])
def test_one_id_twice_in_a_call_is_unchanged_or_a_failure(store: Store, batch: int) -> None:
    items = [
        Document("a", "One."),
        Document("b", "B."),
        Document("a", "One."),
        Document("a", "Two.", source="f.jsonl:4"),
    ]
    settings = IndexingSettings(batch=batch)
    report = index(items, store, HashEncoder(), NamesExtractor(), settings)
    assert (report.added, report.unchanged) == (("a", "b"), ("a",))
    assert report.failed == (Failure("f.jsonl:4", "the id 'a' was already given, with other content"),)
    assert store.get("a").text == "One."


def omen(count: int = 6, at: int = 2) -> list[Document]:
    return [Document(str(number), f"Text {number}" + (" OMEN" if number == at else "")) for number in range(count)]


def test_a_document_that_the_encoder_fails_on_fails_alone(store: Store) -> None:
    encoder = WatchedEncoder(GenerationError("cannot encode this"))
    report = index(omen(), store, encoder, NamesExtractor(), SETTINGS)
    assert report.added == ("0", "1", "3", "4", "5")
    assert report.failed == (Failure("2", "cannot encode this"),)
    assert held(store) == ["0", "1", "3", "4", "5"]


def test_a_document_that_the_extractor_fails_on_fails_alone(store: Store) -> None:
    report = index(omen(), store, HashEncoder(), FailingExtractor(GenerationError("cannot read this")), SETTINGS)
    assert report.added == ("0", "1", "3", "4", "5")
    assert report.failed == (Failure("2", "cannot read this"),)


@pytest.mark.parametrize("part", ["encoder", "extractor"])
def test_a_missing_model_is_no_failure_of_a_document(store: Store, part: str) -> None:
    error = ModelNotAvailable("install it")
    encoder = WatchedEncoder(error if part == "encoder" else None)
    extractor: Extractor = FailingExtractor(error) if part == "extractor" else NamesExtractor()
    with pytest.raises(ModelNotAvailable) as caught:
        index(omen(at=4), store, encoder, extractor, SETTINGS)
    complete = ["0", "1", "2", "3"] if part == "extractor" else ["0", "1", "2"]
    assert caught.value.__notes__ == [
        f"Before this {len(complete)} documents were committed, which are kept; adding again goes on from there."
    ]
    assert held(store) == complete


class FullStore:
    """A store on a disk that is full after some commits."""

    def __init__(self, store: Store, commits: int) -> None:
        self._store = store
        self._left = commits

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def commit(self, document: IndexedDocument) -> Literal["added", "updated"]:
        if self._left == 0:
            raise StoreError("the disk is full")
        self._left -= 1
        return self._store.commit(document)


def test_a_full_disk_ends_the_work_and_says_what_is_kept(store: Store) -> None:
    with pytest.raises(StoreError, match="the disk is full") as caught:
        index(omen(), FullStore(store, 4), HashEncoder(), NamesExtractor(), SETTINGS)  # type: ignore[arg-type] # delegates
    assert "4 documents were committed" in caught.value.__notes__[0]
    assert held(store) == ["0", "1", "2", "3"]


def test_ctrl_c_ends_the_work_and_commits_what_is_complete(store: Store) -> None:
    report = index(omen(at=4), store, HashEncoder(), FailingExtractor(KeyboardInterrupt()), SETTINGS)
    assert report.interrupted
    assert report.added == ("0", "1", "2", "3") == tuple(held(store))
    rest = index(omen(at=4), store, HashEncoder(), NamesExtractor(), SETTINGS)
    assert not rest.interrupted
    assert (rest.unchanged, rest.added) == (("0", "1", "2", "3"), ("4", "5"))


class InterruptedStore(FullStore):
    """A store during whose commit the user presses Ctrl-C."""

    def commit(self, document: IndexedDocument) -> Literal["added", "updated"]:
        outcome = self._store.commit(document)
        if self._left == 0:
            signal.raise_signal(signal.SIGINT)
        self._left -= 1
        return outcome


def test_ctrl_c_during_a_commit_waits_for_it_and_reports_it(store: Store) -> None:
    report = index(omen(), InterruptedStore(store, 1), HashEncoder(), NamesExtractor(), SETTINGS)  # type: ignore[arg-type] # delegates
    assert report.interrupted
    assert report.added == ("0", "1", "2") == tuple(held(store)), "the third was ready to be committed"


def test_interrupts_are_held_and_then_let_through() -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), held_interrupts():  # noqa: PT012 - the raising is what is held back
        signal.raise_signal(signal.SIGINT)
        reached = True
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_progress_counts_every_document_to_the_total(store: Store) -> None:
    seen: list[Progress] = []
    items: list[Loaded] = [*DOCUMENTS, Failure("x", "y"), DOCUMENTS[0]]
    index(items, store, HashEncoder(), NamesExtractor(), SETTINGS, progress=seen.append)
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert seen[-1].done == seen[-1].total == 6
    assert {progress.stage for progress in seen} == {"load", "extract", "encode", "commit"}
    streamed: list[Progress] = []
    index(iter(items), store, HashEncoder(), NamesExtractor(), SETTINGS, progress=streamed.append)
    assert {progress.total for progress in streamed} == {None}


def test_what_is_not_yet_needed_is_not_yet_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    committed_at: list[int] = []

    def documents() -> Iterator[Loaded]:
        for number in range(9):
            committed_at.append(len(store.documents()))
            yield Document(str(number), "x" * 40)

    index(documents(), store, HashEncoder(), NamesExtractor(), SETTINGS)
    assert committed_at == [0, 0, 0, 3, 3, 3, 6, 6, 6]
    committed_at.clear()
    monkeypatch.setattr(works, "BATCH_CHARACTERS", 80)
    monkeypatch.setattr(extracting, "BATCH_CHARACTERS", 80)
    store.delete([str(number) for number in range(9)])
    index(documents(), store, HashEncoder(), NamesExtractor(), SETTINGS)
    assert committed_at == [0, 0, 2, 2, 4, 4, 6, 6, 8]


def test_nothing_is_nothing(store: Store) -> None:
    report = index([], store, HashEncoder(), NamesExtractor(), SETTINGS)
    assert (report.added, report.failed, report.chunks) == ((), (), 0)
