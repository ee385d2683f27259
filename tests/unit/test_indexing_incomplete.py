"""Chunks that could not be extracted: kept as such, listed, and done later without anything else being done again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pytest

from ecphoryrag.errors import BudgetSpent, GenerationError, JobStopped
from ecphoryrag.indexing import index, retry
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.models.names import NamesExtractor
from ecphoryrag.ports import Encoded, Store
from ecphoryrag.settings import ChunkSettings, IndexingSettings
from ecphoryrag.store import open_store
from ecphoryrag.types import Chunk, Document, Failure, Spending, Usage
from tests.support.paid_extractor import PaidExtractor
from tests.support.store_tables import tables

SETTINGS = IndexingSettings(batch=3, chunks=ChunkSettings(budget=16, overlap=0))
DOCUMENTS = [
    Document("a", " ".join(f"Then Ada went to see Bela{number} in the old town." for number in range(6)), "Ada"),
    Document("b", "Grace Hopper found a moth. Was it? It was.", metadata={"year": 1947}),
    Document("c", " ".join(f"Here Cato wrote letter number{number} to old Dora." for number in range(4))),
]
FAILED = {("a", 1), ("a", 4), ("c", 0)}
CALLS = 6 + 1 + 4


class CountingEncoder(HashEncoder):
    """The hash encoder, counting what it was given; its budget ends before so many texts, if it has one."""

    def __init__(self, budget: int | None = None) -> None:
        super().__init__()
        self.texts = 0
        self._budget = budget

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        if self._budget is not None and self.texts + len(texts) > self._budget:
            raise BudgetSpent("the tokens are spent")
        self.texts += len(texts)
        return super().encode(texts, kind)


def failing(chunk: Chunk) -> str | None:
    return f"no reply\n about chunk {chunk.ordinal} " if (chunk.document_id, chunk.ordinal) in FAILED else None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.ecphory"


def opened(path: Path, identity: str = "paid 1") -> Store:
    return open_store(path, HashEncoder().identity, identity)


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    made = opened(path)
    yield made
    made.close()


@pytest.fixture(params=[1, 4], ids=["alone", "threads"])
def extractor(request: pytest.FixtureRequest) -> PaidExtractor:
    """Fails on three chunks."""
    return PaidExtractor(parallel=request.param, failing=failing)


def undisturbed(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """What the store holds if no chunk fails."""
    other = path.with_name("undisturbed.ecphory")
    store = opened(other)
    index(DOCUMENTS, store, HashEncoder(), PaidExtractor(), SETTINGS)
    store.close()
    return tables(other)


def test_a_document_with_failed_chunks_is_kept_and_said_to_be_incomplete(
    store: Store, extractor: PaidExtractor
) -> None:
    report = index(DOCUMENTS, store, HashEncoder(), extractor, SETTINGS)
    assert sorted(report.added) == ["a", "b", "c"]
    assert sorted(report.incomplete, key=lambda failure: failure.source) == [
        Failure(
            "a",
            "2 of 6 chunks could not be extracted; chunk 1: no reply about chunk 1; chunk 4: no reply about chunk 4",
        ),
        Failure("c", "1 of 4 chunks could not be extracted; chunk 0: no reply about chunk 0"),
    ]
    assert report.chunks == CALLS
    assert report.empty_chunks == (), "a failed chunk is not an empty one"
    assert report.dropped == 1
    paid = Usage(8 + 3 * 2, 8 * 100 + 3 * 200, 8 * 20 + 3 * 7)
    embedding = next(one for one in report.spending if one.purpose == "embed")
    assert report.spending == (Spending("index", "scripted/paid", paid), embedding)
    assert embedding.model == HashEncoder().identity.name
    assert embedding.usage.embedding_tokens == report.usage.embedding_tokens > 0
    assert (report.usage.calls, report.usage.output_tokens) == (paid.calls, paid.output_tokens)
    status = store.status()
    assert status.incomplete == tuple(sorted(report.incomplete, key=lambda failure: failure.source))
    assert (status.incomplete_documents, status.failed_chunks, status.empty_chunks) == (2, 3, 0)
    assert store.incomplete() == ["a", "c"]
    with store.reading() as view:
        assert view.snapshot.chunk_count == CALLS, "its text is searched"
        assert "number0" in view.snapshot.terms


def test_adding_it_again_does_just_what_is_missing(store: Store, path: Path, extractor: PaidExtractor) -> None:
    index(DOCUMENTS, store, HashEncoder(), extractor, SETTINGS)
    extractor.calls.clear()
    extractor.failing = lambda _: None
    encoder = CountingEncoder()
    report = index(DOCUMENTS, store, encoder, extractor, SETTINGS)
    assert (sorted(report.updated), report.unchanged, report.added) == (["a", "c"], ("b",), ())
    assert (report.incomplete, report.chunks, report.mentions) == ((), 3, 9)
    assert set(extractor.calls) == FAILED
    assert encoder.texts == 0
    assert (store.status().incomplete, store.status().failed_chunks, store.incomplete()) == ((), 0, [])
    assert index(DOCUMENTS, store, encoder, extractor, SETTINGS).unchanged == ("a", "b", "c")
    store.close()
    assert tables(path) == undisturbed(path)


def test_retrying_needs_no_documents(store: Store, path: Path, extractor: PaidExtractor) -> None:
    index(DOCUMENTS, store, HashEncoder(), extractor, SETTINGS)
    extractor.calls.clear()
    still = {("a", 4)}
    extractor.failing = lambda chunk: "not yet" if (chunk.document_id, chunk.ordinal) in still else None
    report = retry(store, extractor)
    assert (sorted(report.updated), report.chunks) == (["a", "c"], 3)
    assert report.incomplete == (Failure("a", "1 of 6 chunks could not be extracted; chunk 4: not yet"),)
    assert store.status().incomplete == report.incomplete
    assert set(extractor.calls) == FAILED
    extractor.calls.clear()
    extractor.failing = lambda _: None
    assert retry(store, extractor).updated == ("a",)
    assert extractor.calls == [("a", 4)]
    assert retry(store, extractor).updated == ()
    store.close()
    assert tables(path) == undisturbed(path)


def test_what_another_extractor_completed_is_known_to_be_its_work(store: Store, path: Path) -> None:
    index(DOCUMENTS, store, HashEncoder(), PaidExtractor(failing=failing), SETTINGS)
    store.close()
    later = opened(path, "paid 2")
    retry(later, PaidExtractor(identity="paid 2", failing=lambda chunk: "no" if chunk.ordinal == 4 else None))
    assert later.status().extractor == "paid 1; paid 2"
    assert later.incomplete() == ["a"]
    later.close()
    assert tables(path)["completions"] == [("a", 1, "paid 2"), ("c", 0, "paid 2")]
    names = opened(path, NamesExtractor().identity)
    assert retry(names, NamesExtractor()).updated == ("a",)
    assert names.status().extractor == f"{NamesExtractor().identity}; paid 1; paid 2"
    names.delete(["a", "c"])
    assert names.status().extractor == "paid 1"
    names.close()


def test_other_content_is_extracted_and_encoded_anew(store: Store, extractor: PaidExtractor) -> None:
    index(DOCUMENTS, store, HashEncoder(), extractor, SETTINGS)
    extractor.calls.clear()
    extractor.failing = lambda _: None
    encoder = CountingEncoder()
    report = index([Document("a", "Ada went.")], store, encoder, extractor, SETTINGS)
    assert (report.updated, extractor.calls, encoder.texts) == (("a",), [("a", 0)], 1)
    assert store.incomplete() == ["c"]


def test_a_stop_while_retrying_leaves_the_rest_for_later(store: Store, path: Path) -> None:
    extractor = PaidExtractor(failing=failing)
    index(DOCUMENTS, store, HashEncoder(), extractor, SETTINGS)

    def spent(chunk: Chunk) -> str | None:
        if chunk.document_id == "c":
            raise BudgetSpent("the tokens are spent")
        return None

    extractor.failing = spent
    report = retry(store, extractor)
    assert (report.updated, report.stopped) == (("a",), "the tokens are spent")
    assert store.incomplete() == ["c"]
    extractor.failing = lambda _: None
    retry(store, extractor)
    store.close()
    assert tables(path) == undisturbed(path)


def test_a_document_forgotten_meanwhile_is_a_failure(store: Store, path: Path, extractor: PaidExtractor) -> None:
    index(DOCUMENTS, store, HashEncoder(), extractor, SETTINGS)
    other = opened(path)

    def forget(chunk: Chunk) -> None:
        if chunk.document_id == "c":
            other.delete(["c"])

    extractor.failing = forget
    report = retry(store, extractor)
    other.close()
    assert report.updated == ("a",)
    (failure,) = report.failed
    assert failure.source == "c"
    assert "changed or forgotten" in failure.reason
    assert [summary.id for summary in store.documents()] == ["a", "b"]


def test_an_extractor_that_cannot_read_an_incomplete_document_leaves_it_as_it_is(store: Store) -> None:
    index(DOCUMENTS, store, HashEncoder(), PaidExtractor(failing=failing), SETTINGS)
    before = store.status().incomplete

    def fail(chunk: Chunk) -> None:
        error = GenerationError(f"cannot read {chunk.document_id}")
        error.usage = Usage(2, 200, 9)
        raise error

    report = retry(store, PaidExtractor(failing=fail))
    assert report.spending == (Spending("index", "scripted/paid", Usage(4, 400, 18)),)
    assert report.failed == (Failure("a", "cannot read a"), Failure("c", "cannot read c"))
    assert store.status().incomplete == before


def test_a_stop_while_encoding_commits_as_many_as_it_can(store: Store, extractor: PaidExtractor) -> None:
    """The first two documents have 7 chunks, the third 4; the three are one batch."""
    report = index(DOCUMENTS, store, CountingEncoder(budget=8), NamesExtractor(), SETTINGS)
    assert report.stopped == "the tokens are spent"
    assert report.added == ("a", "b") == tuple(summary.id for summary in store.documents())
    rest = index(DOCUMENTS, store, CountingEncoder(budget=8), extractor, SETTINGS)
    assert (rest.stopped, rest.added) == (None, ("c",))


@pytest.mark.parametrize("error", [BudgetSpent("spent"), KeyboardInterrupt()], ids=["stop", "ctrl-c"])
def test_alone_what_was_paid_for_counts_though_its_document_is_not_complete(
    store: Store, error: JobStopped | KeyboardInterrupt
) -> None:
    def fail(chunk: Chunk) -> None:
        if chunk.document_id == "c" and chunk.ordinal == 2:
            raise error

    report = index(DOCUMENTS, store, HashEncoder(), PaidExtractor(failing=fail), SETTINGS)
    assert report.added == ("a", "b")
    assert report.spending[0].usage.calls == 6 + 1 + 2
    assert (report.stopped, report.interrupted) == (("spent", False) if isinstance(error, JobStopped) else (None, True))


def test_alone_each_document_is_committed_when_it_is_done(store: Store) -> None:
    """A model may take a minute a document; a batch of them would be much to lose."""
    seen: list[int] = []

    def look(chunk: Chunk) -> None:
        del chunk
        seen.append(len(store.documents()))

    index(DOCUMENTS, store, HashEncoder(), PaidExtractor(failing=look), SETTINGS)
    assert seen == [0] * 6 + [1] + [2] * 4


def test_a_status_names_the_first_hundred_and_counts_all(store: Store) -> None:
    documents = [Document(f"{number:03}", f"Ada{number} came.") for number in range(130)]
    index(documents, store, HashEncoder(), PaidExtractor(failing=lambda _: "x" * 1000), SETTINGS)
    status = store.status()
    assert [failure.source for failure in status.incomplete] == [f"{number:03}" for number in range(100)]
    assert (status.incomplete_documents, status.failed_chunks) == (130, 130)
    assert max(len(failure.reason) for failure in status.incomplete) < 400
