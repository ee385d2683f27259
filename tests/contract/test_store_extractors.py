"""Whichever way a document is replaced, an extractor that nothing comes from any more leaves no row behind."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ecphoryrag import Memory
from ecphoryrag.store import open_store, repair_store
from ecphoryrag.types import Chunk, Document, Extraction
from tests.contract.test_store_verify import damage
from tests.support.durable.quick import QuickEncoder, QuickExtractor
from tests.support.durable.story import SETTINGS
from tests.support.indexed_documents import ENCODER, indexed_document, with_failures
from tests.support.store_tables import tables

TEXT = " ".join(f"Keeper Number{at} met Anna Marsh at the Silver Harbour in the evening." for at in range(12))


class Named(QuickExtractor):
    """By another identity, and failing at some chunks."""

    def __init__(self, identity: str, failing: frozenset[int] = frozenset()) -> None:
        self.identity = identity
        self._failing = failing

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> Sequence[Extraction]:
        return [
            Extraction(failure="no reply") if chunk.ordinal in self._failing else found
            for chunk, found in zip(chunks, super().extract(document, chunks), strict=True)
        ]


Opened = Callable[..., Memory]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.ecphory"


@pytest.fixture
def opened(path: Path) -> Iterator[Opened]:
    """Opens the store with an extractor of this name; the one before is closed."""
    memories: list[Memory] = []

    def open_with(identity: str, failing: frozenset[int] = frozenset()) -> Memory:
        while memories:
            memories.pop().close()
        extractor = Named(identity, failing)
        memories.append(Memory.open(path, settings=SETTINGS, encoder=QuickEncoder(8), extractor=extractor))
        return memories[0]

    yield open_with
    while memories:
        memories.pop().close()


def never_added(tmp_path: Path) -> dict[str, list[tuple[object, ...]]]:
    with Memory.open(tmp_path / "never", settings=SETTINGS, encoder=QuickEncoder(8), extractor=Named("a")):
        pass
    return tables(tmp_path / "never")


def identities(path: Path) -> list[str]:
    return [identity for (identity,) in tables(path)["extractors"]]


def test_an_update_by_another_extractor(opened: Opened, path: Path, tmp_path: Path) -> None:
    opened("a").add(Document("one", TEXT))
    memory = opened("b")
    memory.add(Document("one", TEXT.replace("Number3 ", "Number333 ")))
    assert identities(path) == ["b"]
    memory.forget("one")
    assert tables(path) == never_added(tmp_path)


def test_an_update_of_what_two_extractors_made(opened: Opened, path: Path, tmp_path: Path) -> None:
    opened("a", frozenset({1})).add(Document("one", TEXT))
    opened("b").retry()
    assert identities(path) == ["a", "b"]
    memory = opened("c")
    memory.add(Document("one", TEXT.replace("Number3 ", "Number333 ")))
    assert identities(path) == ["c"]
    memory.forget("one")
    assert tables(path) == never_added(tmp_path)


def test_an_update_that_keeps_an_extractor_of_other_documents(opened: Opened, path: Path) -> None:
    opened("a").add([Document("one", TEXT), Document("two", TEXT + " Another.")])
    memory = opened("b")
    memory.add(Document("one", TEXT.replace("Number3 ", "Number333 ")))
    assert identities(path) == ["a", "b"]
    memory.forget("two")
    assert identities(path) == ["b"]


def test_a_completion_that_completes_nothing(opened: Opened, path: Path, tmp_path: Path) -> None:
    opened("a", frozenset({1})).add(Document("one", TEXT))
    memory = opened("b", frozenset({1}))
    memory.retry()
    assert identities(path) == ["a"]
    memory.forget("one")
    assert tables(path) == never_added(tmp_path)


def test_a_completion_in_the_store_itself(tmp_path: Path) -> None:
    path = tmp_path / "s"
    store = open_store(path, ENCODER.identity, "a")
    first = with_failures(indexed_document("one", "Anna Marsh came.\nBela Toth went."), 0)
    store.commit(first)
    store.close()
    store = open_store(path, ENCODER.identity, "b")
    store.complete("one", first.document.content_hash, {0: Extraction(failure="still none")})
    assert identities(path) == ["a"]
    store.close()


def test_what_repair_begins_again(opened: Opened, path: Path) -> None:
    opened("a", frozenset({1})).add(Document("one", TEXT))
    opened("b").retry()
    opened("c").close()
    damage(path, "UPDATE chunks SET stop = 99999 WHERE ordinal = 0")
    assert repair_store(path).pending == ("one",)
    assert identities(path) == ["a"]
    opened("c").repair()
    assert identities(path) == ["c"]


def test_repair_removes_what_earlier_versions_left(opened: Opened, path: Path) -> None:
    opened("a").add(Document("one", TEXT))
    opened("a").close()
    before = tables(path)
    damage(path, "INSERT INTO extractors (identity) VALUES ('left')", "UPDATE chunks SET words = x'00000000'")
    repair_store(path)
    assert tables(path) == before


def test_an_import_over_what_is_there(opened: Opened, path: Path, tmp_path: Path) -> None:
    memory = opened("a", frozenset({1}))
    memory.add(Document("one", TEXT))
    opened("b").retry()
    output = io.StringIO()
    memory = opened("c")
    memory.export(output, vectors=True)
    (tmp_path / "all.jsonl").write_text(output.getvalue(), encoding="utf-8")
    memory.add(Document("one", "Something else of Anna Marsh."))
    assert identities(path) == ["c"]
    memory.import_file(tmp_path / "all.jsonl")
    assert identities(path) == ["a", "b"]
    memory.forget("one")
    assert identities(path) == []
