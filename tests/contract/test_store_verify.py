"""`verify` calls a sound store sound, names each thing that is wrong, and changes nothing; `repair` mends it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from ecphoryrag.errors import NotAStore, StoreNotFound
from ecphoryrag.ports import Store
from ecphoryrag.store import open_store, verify_store
from ecphoryrag.store.ledger import open_ledger
from ecphoryrag.types import Flaw, Generation, Usage, VerifyReport
from tests.support.indexed_documents import ENCODER, EXTRACTOR, indexed_document, sample, with_failures


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    store = open_store(path, ENCODER.identity, EXTRACTOR)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store at rest with the sample, a failed chunk, signs that trouble databases, caches and a ledger."""
    place = tmp_path / "test.ecphory"
    with opened(place) as store:
        for document in sample():
            store.commit(document)
        store.commit(with_failures(indexed_document("f", "Old Town fell.\nNew Town rose."), 1))
        store.commit(indexed_document("\x00'\"", "Nul \x00 Inside Town\nafter \x00 Nul", "\x00"))
        store.commit(indexed_document("long", "x" * 40_000 + " Old Town"))
        store.flush()
        with store.reading() as view:
            view.entity_vectors(ENCODER)
    ledger = open_ledger(place)
    ledger.keep("key", Generation("reply", "stop", Usage(1)), "index", "fake")
    ledger.close()
    return place


def damage(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF")
    for statement in statements:
        before = connection.total_changes()
        connection.execute(statement)
        assert connection.total_changes() > before or statement.startswith(("DROP", "CREATE")), statement
    connection.close()


def wrong(report: VerifyReport) -> list[Flaw]:
    return [flaw for flaw in report.flaws if flaw.severity != "note"]


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_store_is_called_sound_and_not_touched(path: Path, deep: bool) -> None:
    before = files(path)
    report = verify_store(path, deep=deep)
    assert report.flaws == ()
    assert (report.documents, report.chunks) == (len(sample()) + 3, sum(len(one.chunks) for one in sample()) + 5)
    assert files(path) == before


def test_a_store_that_is_being_written_is_checked_as_it_is(path: Path) -> None:
    with opened(path) as store:
        store.commit(indexed_document("new", "Brand New came to Old Town."))
        report = verify_store(path, deep=True)
        assert wrong(report) == []
        assert report.documents == len(sample()) + 4


DAMAGES = [
    ("property", "DELETE FROM properties WHERE name = 'state'"),
    ("property", "UPDATE properties SET value = '{' WHERE name = 'encoder'"),
    ("metadata", "UPDATE documents SET metadata = '{' WHERE id = 'b'"),
    ("metadata", "UPDATE documents SET headings = '[[1]]' WHERE id = 'b'"),
    ("metadata", "UPDATE documents SET title = CAST(x'ff41' AS TEXT) WHERE id = 'a'"),
    ("document", "UPDATE documents SET text = CAST(x'ff41' AS TEXT) WHERE id = 'a'"),
    ("hash", "UPDATE documents SET text = replace(text, 'filmed', 'failed') WHERE id = 'a'"),
    ("characters", "UPDATE documents SET characters = 3 WHERE id = 'a'"),
    ("chunk", "UPDATE chunks SET headings = ']' WHERE row = 2"),
    ("chunk", "UPDATE chunks SET stop = 9999 WHERE row = 2"),
    ("chunk", "UPDATE chunks SET ordinal = 7 WHERE row = 2"),
    ("vector", "UPDATE chunks SET vector = x'00' WHERE row = 2"),
    ("vector", "UPDATE chunks SET vector = x'007c007c007c007c007c007c007c007c' WHERE row = 2"),
    ("vector", "UPDATE chunks SET vector = x'003c003c003c003c003c003c003c003c' WHERE row = 2"),
    ("words", "UPDATE chunks SET words = x'00000000' WHERE row = 2"),
    ("mention", "UPDATE mentions SET about = 9 WHERE chunk = 2"),
    ("mention", "UPDATE mentions SET stop = 9999 WHERE chunk = 2"),
    ("mention", "UPDATE mentions SET told = 9999, length = 3 WHERE chunk = 2"),
    ("mention", "DELETE FROM mentions WHERE chunk = 1 AND number = 0"),
    ("key", "UPDATE mentions SET start = start + 1 WHERE chunk = 2"),
    ("key", "UPDATE entities SET key = CAST(x'ff' AS TEXT) WHERE key = 'old town'"),
    ("alias", "UPDATE aliases SET one = ''"),
    ("failure", "INSERT INTO failures VALUES (1, 'no reason')"),
    ("entity", "INSERT INTO entities (key) VALUES ('nobody')"),
    ("entity", "DELETE FROM entities WHERE key = 'old town'"),
    ("orphan", "DELETE FROM documents WHERE id = 'b'"),
    ("orphan", "DELETE FROM chunks WHERE row = 2"),
    ("extractor", "DELETE FROM extractors"),
    ("fts", "DELETE FROM search WHERE rowid = 2"),
    ("fts", "INSERT INTO search (rowid, title, body) VALUES (99, 'x', 'y')"),
    ("fts", "DELETE FROM search WHERE rowid = 2; INSERT INTO search (rowid, body) VALUES (2, 'other words')"),
    ("integrity", "DELETE FROM search_data WHERE id > 10"),
    ("schema", "DROP TABLE aliases"),
    ("schema", "DROP TABLE documents"),
    ("next", "INSERT INTO next_vectors VALUES (2, x'00')"),
]


@pytest.mark.parametrize(("kind", "statement"), DAMAGES)
def test_what_is_wrong_is_named_and_nothing_is_changed(path: Path, kind: str, statement: str) -> None:
    damage(path, *statement.split("; "))
    before = files(path)
    report = verify_store(path, deep=True)
    assert kind in {flaw.kind for flaw in wrong(report)}, report.flaws
    assert not report.sound
    assert all(flaw.where and flaw.what and flaw.remedy for flaw in report.flaws)
    assert files(path) == before


def test_a_flaw_names_its_document_and_chunk(path: Path) -> None:
    damage(path, "UPDATE chunks SET words = x'00000000' WHERE row = 2")
    assert [(flaw.kind, flaw.where) for flaw in wrong(verify_store(path, deep=True))] == [
        ("words", "document a, chunk 1")
    ]
    assert wrong(verify_store(path)) == []  # which only a look at every row can find


def test_of_many_flaws_the_first_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    path = tmp_path / "many"
    with opened(path) as store:
        store.commit(indexed_document("many", "\n".join(f"Town {at}" for at in range(105))))
    damage(path, "UPDATE chunks SET words = x'00000000'")
    report = verify_store(path, deep=True)
    assert (len(report.flaws), report.unlisted) == (100, 5)


@pytest.mark.parametrize("suffix", ["-cache", "-vectors", "-ledger"])
def test_a_damaged_file_beside_is_named(path: Path, suffix: str) -> None:
    file = path.with_name(path.name + suffix)
    data = bytearray(file.read_bytes())
    data[-5:] = bytes(5) if any(data[-5:]) else b"12345"
    file.write_bytes(data if suffix != "-ledger" else b"no ledger" * 99)
    assert [flaw.where for flaw in wrong(verify_store(path))] == [str(file)]


def test_an_older_cache_is_a_note(path: Path) -> None:
    with opened(path) as store:
        store.commit(indexed_document("new", "Brand New"))
    report = verify_store(path)
    assert report.sound
    assert [flaw.severity for flaw in report.flaws] == ["note"]


def test_a_store_whose_writer_was_killed_is_checked_with_its_log(path: Path, tmp_path: Path) -> None:
    (tmp_path / "killed").mkdir()
    killed = tmp_path / "killed" / path.name
    with opened(path) as store:
        store.commit(indexed_document("new", "Brand New came to Old Town."))
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{killed}{suffix}")
    before = files(killed)
    report = verify_store(killed, deep=True)
    assert (report.flaws, report.documents) == ((), len(sample()) + 4)
    after = files(killed)
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("seed", range(6))
def test_flipped_bits_never_raise(path: Path, seed: int) -> None:
    data = bytearray(path.read_bytes())
    for at in range(200 + seed * 777, len(data), 9973):
        data[at] ^= 1 << seed
    path.write_bytes(data)
    assert not verify_store(path, deep=True).sound


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFound):
        verify_store(tmp_path / "none")
    (tmp_path / "text").write_text("no store")
    with pytest.raises(NotAStore):
        verify_store(tmp_path / "text")


def test_export_is_recommended_only_for_what_it_can_open(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)  # the first page, where the schema is
        file.write(b"\xff" * 900)
    remedies = [flaw.remedy for flaw in wrong(verify_store(path)) if flaw.kind == "integrity"]
    assert remedies
    assert all("by `ecphory export` neither" in remedy for remedy in remedies)
