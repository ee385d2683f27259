"""Chunks without an extraction: what every Store keeps of them, and how they are completed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from ecphoryrag.errors import DocumentNotFound, StoreDamaged, StoreReadOnly
from ecphoryrag.ports import IndexedDocument, Store
from ecphoryrag.store import open_store
from ecphoryrag.store.schema import FORMAT
from ecphoryrag.types import Extraction
from tests.golden.make_store import FOLDER
from tests.support.indexed_documents import ENCODER, EXTRACTOR, contents, indexed_document, sample, with_failures
from tests.support.reference_snapshot import reference_entities, reference_snapshot
from tests.support.store_tables import tables

WHOLE = indexed_document(
    "log", "Storm in Tromsø.\nGrey Point Light went out.\nIda Moen lit it.", "The Log of Grey Point Light"
)
HALF = with_failures(WHOLE, 0, 2)
HASH = WHOLE.document.content_hash


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.ecphory"


def opened(path: Path, extractor: str = EXTRACTOR, *, read_only: bool = False) -> Store:
    return open_store(path, ENCODER.identity, extractor, read_only=read_only)


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """Holds the sample and a document with two failed chunks of three."""
    made = opened(path)
    for document in (*sample(), HALF):
        made.commit(document)
    yield made
    made.close()


def assert_holds(store: Store, *documents: IndexedDocument) -> None:
    given = [*sample(), *documents]
    with store.reading() as view:
        assert contents(view.snapshot) == contents(reference_snapshot(given))
        found = view.entities(range(len(view.snapshot.entity_keys)))
    assert found == reference_entities(given)


def test_a_failure_comes_back_with_its_reason(store: Store) -> None:
    assert store.indexed("log").extractions == HALF.extractions
    assert_holds(store, HALF)
    assert store.incomplete() == ["log"]


def test_completing_leaves_what_a_whole_document_leaves(store: Store, path: Path, tmp_path: Path) -> None:
    store.complete("log", HASH, {0: WHOLE.extractions[0], 2: WHOLE.extractions[2]})
    assert store.incomplete() == []
    assert_holds(store, WHOLE)
    store.close()
    other = opened(tmp_path / "other.ecphory")
    for document in (*sample(), WHOLE):
        other.commit(document)
    other.close()
    assert tables(path) == tables(tmp_path / "other.ecphory")


def test_a_chunk_may_fail_again_and_others_are_left_alone(store: Store) -> None:
    again = Extraction(failure="no again, with half a pair: \ud800")
    store.complete("log", HASH, {0: again, 1: Extraction(failure="it did not fail"), 2: WHOLE.extractions[2]})
    found = store.indexed("log").extractions
    assert found[0].failure == "no again, with half a pair: \\ud800"
    assert found[1:] == WHOLE.extractions[1:]
    assert (store.status().incomplete_documents, store.status().failed_chunks) == (1, 1)


def test_a_failed_chunk_may_have_mentions_which_are_replaced(store: Store) -> None:
    partial = Extraction(WHOLE.extractions[0].mentions[:2], failure="only the title and the storm were found")
    given = with_failures(WHOLE, 0)
    store.commit(type(given)(given.document, given.chunks, (partial, *given.extractions[1:]), given.vectors))
    assert store.indexed("log").extractions[0] == partial
    bare = Extraction()
    store.complete("log", HASH, {0: bare})
    assert_holds(store, type(given)(given.document, given.chunks, (bare, *given.extractions[1:]), given.vectors))


def test_a_document_that_changed_or_is_gone_is_not_completed(store: Store) -> None:
    generation = store.status().generation
    with pytest.raises(DocumentNotFound, match="'log' was changed or forgotten"):
        store.complete("log", "another", {0: WHOLE.extractions[0]})
    for absent in ("nobody", "\ud800"):
        with pytest.raises(DocumentNotFound):
            store.complete(absent, HASH, {0: WHOLE.extractions[0]})
    assert store.status().generation == generation
    store.delete(["log"])
    assert (store.incomplete(), store.status().failed_chunks) == ([], 0)


def test_a_mention_that_is_not_in_the_text_is_refused_and_nothing_changed(store: Store) -> None:
    with pytest.raises(ValueError, match="does not stand where it says"):
        store.complete("log", HASH, {0: WHOLE.extractions[0], 2: sample()[0].extractions[0]})
    assert store.indexed("log").extractions == HALF.extractions


def test_each_completion_moves_the_generation(store: Store) -> None:
    generation = store.status().generation
    store.complete("log", HASH, {0: WHOLE.extractions[0]})
    assert store.status().generation == generation + 1


def test_a_store_opened_read_only_says_what_failed_and_completes_nothing(store: Store, path: Path) -> None:
    store.close()
    reader = opened(path, read_only=True)
    assert reader.incomplete() == ["log"]
    with pytest.raises(StoreReadOnly):
        reader.complete("log", HASH, {0: WHOLE.extractions[0]})
    reader.close()


def test_a_store_of_the_first_format_has_no_failures_and_can_have_them(path: Path) -> None:
    path.write_bytes((FOLDER / "store-format-1.sqlite").read_bytes())
    old = opened(path)
    assert (old.incomplete(), old.status().incomplete, old.status().format) == ([], (), FORMAT)
    old.commit(HALF)
    old.close()
    again = opened(path)
    assert again.incomplete() == ["log"]
    again.close()
    with sqlite3.connect(path) as plain:
        assert plain.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    plain.close()


@pytest.mark.parametrize("damage", ["UPDATE failures SET reason = CAST(x'ff41' AS TEXT)", "DELETE FROM chunks"])
def test_failures_that_cannot_be_read_are_called_damage(store: Store, path: Path, damage: str) -> None:
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(damage)
    connection.close()
    with pytest.raises(StoreDamaged, match="damaged"):
        read_all(path)


def read_all(path: Path) -> None:
    store = opened(path, read_only=True)
    try:
        store.status()
        store.indexed("log")
        with store.reading():
            pass
    finally:
        store.close()
