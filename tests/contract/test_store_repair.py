"""`repair` mends all that can be made again from the texts in the file, says what it cannot, and loses no document."""

from __future__ import annotations

from pathlib import Path

import pytest

from ecphoryrag.errors import StoreDamaged
from ecphoryrag.store import repair_store, verify_store
from tests.contract.test_store_verify import damage, files, opened, path, wrong
from tests.support.indexed_documents import indexed_document, sample
from tests.support.store_tables import tables

__all__ = ["path"]

WHOLLY = [
    "DELETE FROM properties WHERE name = 'state'",
    "UPDATE documents SET characters = 3 WHERE id = 'a'",
    "UPDATE chunks SET words = x'00000000' WHERE row = 2",
    "UPDATE mentions SET entity = (SELECT max(row) FROM entities) WHERE chunk = 2",
    "UPDATE entities SET key = CAST(x'ff' AS TEXT) WHERE key = 'old town'",
    "INSERT INTO entities (key) VALUES ('nobody')",
    "DELETE FROM entities WHERE key = 'old town'",
    "DELETE FROM search WHERE rowid = 2",
    "INSERT INTO search (rowid, title, body) VALUES (99, 'x', 'y')",
    "DELETE FROM search_data WHERE id > 10",
    "INSERT INTO next_vectors VALUES (2, x'00')",
    "INSERT INTO mentions SELECT 99, 9, 1, 1, 0, 1, 'x', 3, 0, NULL, NULL, NULL",
]


@pytest.mark.parametrize("statement", WHOLLY)
def test_what_the_texts_determine_is_as_before(path: Path, statement: str) -> None:
    before = tables(path)
    damage(path, statement)
    assert not verify_store(path, deep=True).sound
    report = repair_store(path)
    assert (report.remaining, report.pending) == ((), ())
    assert report.mended
    assert tables(path) == before
    assert verify_store(path, deep=True).sound


def test_a_sound_store_is_left_alone(path: Path) -> None:
    before = files(path)
    report = repair_store(path)
    assert (report.mended, report.remaining, report.pending) == ((), (), ())
    assert files(path) == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE mentions SET about = 9 WHERE chunk = 2",
        "UPDATE mentions SET stop = 9999 WHERE chunk = 2",
        "DELETE FROM mentions WHERE chunk = 1 AND number = 0",
        "INSERT INTO failures VALUES (1, 'no reason')",
    ],
)
def test_a_chunk_without_usable_mentions_is_to_be_extracted_again(path: Path, statement: str) -> None:
    damage(path, statement)
    assert repair_store(path).remaining == ()
    assert verify_store(path, deep=True).sound
    with opened(path) as store:
        assert store.incomplete() == ["a", "f"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chunks SET vector = x'00' WHERE row = 2",
        "UPDATE chunks SET stop = 9999 WHERE row = 2",
        "UPDATE chunks SET ordinal = 7 WHERE row = 2",
        "UPDATE documents SET metadata = '{' WHERE id = 'a'",
        "DELETE FROM chunks WHERE row = 1",
    ],
)
def test_a_document_without_usable_chunks_keeps_its_text_and_is_pending(path: Path, statement: str) -> None:
    damage(path, statement)
    report = repair_store(path)
    assert report.pending == ("a",)
    assert {flaw.kind for flaw in wrong(verify_store(path, deep=True))} == {"pending"}
    with opened(path) as store:
        assert store.get("a").text == sample()[0].document.text
        store.commit(sample()[0])
    assert verify_store(path, deep=True).sound


def test_what_cannot_be_mended_is_listed_and_its_bytes_stay(path: Path) -> None:
    damage(path, "UPDATE documents SET text = CAST(x'ff41' AS TEXT) WHERE id = 'a'")
    report = repair_store(path)
    assert [(flaw.kind, flaw.where) for flaw in report.remaining] == [("document", "document a")]
    with opened(path) as store:
        assert len(store.documents()) == len(sample()) + 3
        with store.reading() as view:
            view.entities(range(len(view.snapshot.entity_keys)))
        with pytest.raises(StoreDamaged):
            store.get("a")
        store.delete(["a"])
    assert verify_store(path, deep=True).sound


def test_a_text_that_was_altered_is_listed_and_adding_the_original_again_replaces_it(path: Path) -> None:
    damage(path, "UPDATE documents SET text = replace(text, 'filmed', 'failed') WHERE id = 'a'")
    report = repair_store(path)
    assert [flaw.kind for flaw in report.remaining] == ["hash"]
    again = verify_store(path, deep=True)
    assert [flaw.kind for flaw in again.flaws if flaw.severity != "note"] == ["hash"], "the loss is not forgotten"
    assert [flaw.kind for flaw in repair_store(path).remaining] == ["hash"]
    with opened(path) as store:
        assert store.hashes(["a"])["a"] != sample()[0].document.content_hash
        store.commit(sample()[0])
    assert verify_store(path, deep=True).sound


def test_damaged_caches_go_and_a_damaged_ledger_is_put_aside(path: Path) -> None:
    before = path.read_bytes()
    for suffix in ("-cache", "-vectors", "-ledger"):
        path.with_name(path.name + suffix).write_bytes(b"damaged")
    report = repair_store(path)
    assert {flaw.kind for flaw in report.mended} == {"cache", "ledger"}
    assert sorted(files(path)) == ["test.ecphory", "test.ecphory-ledger-aside-1"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("seed", range(4))
def test_damage_beyond_mending_changes_nothing(path: Path, seed: int) -> None:
    with opened(path) as store:
        for at in range(40):
            store.commit(indexed_document(f"more {at}", f"Town {at} met Old Town.\n" * 40))
        store.flush()
    data = bytearray(path.read_bytes())
    for page in range(6 + seed, len(data) // 4096, 7):
        data[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
    path.write_bytes(data)
    with pytest.raises(StoreDamaged, match=r"nothing was changed|cannot be used"):
        repair_store(path)
    assert path.read_bytes() == bytes(data)
