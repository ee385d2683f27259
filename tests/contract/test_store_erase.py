"""What was erased is in no byte of the store's files, whatever came before and meanwhile; and the receipt is true."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from ecphoryrag import Memory
from ecphoryrag.errors import DocumentNotFound
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.ports import Store
from ecphoryrag.settings import load_settings
from ecphoryrag.store import connections, open_store, raw_bytes, repair_store, sqlite, verify_store
from ecphoryrag.store import erase as erasing
from ecphoryrag.store import traces as erase_traces
from ecphoryrag.store.entities import read_entities
from ecphoryrag.store.ledger import open_ledger
from ecphoryrag.types import Document, Generation, Heading, Spending, Usage
from tests.support.indexed_documents import ENCODER, EXTRACTOR, indexed_document, sample

ROOT = Path(__file__).parents[2]
WORD = "zyxxyvex"
FIELDS = {
    "text": indexed_document("secret", "Zyxxyvex told Anna Marsh of it."),
    "inside a word": indexed_document("secret", "the prezyxxyvexed ones"),
    "title": indexed_document("secret", "Told of it.", "Zyxxyvex"),
    "metadata": indexed_document("secret", "Told of it.", metadata={"zyxxyvex": ["a", {"zyxxyvex": 1}]}),
    "source": indexed_document("secret", "Told of it.", source="notes/zyxxyvex.txt"),
    "id": indexed_document("zyxxyvex", "Told of it."),
    "heading": indexed_document("secret", "Zyxxyvex told.", headings=(Heading(1, "Zyxxyvex", 0, 8),)),
    "alias": indexed_document("secret", "Zyxxyvex Zorn Zyxxyvex."),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is made."""
    return tmp_path / "test.ecphory"


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    store = open_store(path, ENCODER.identity, EXTRACTOR)
    try:
        yield store
    finally:
        store.close()


def traces(path: Path, word: str = WORD) -> list[str]:
    return [file.name for file in path.parent.iterdir() if word.encode() in file.read_bytes().lower()]


@pytest.mark.parametrize("field", FIELDS)
def test_wherever_the_word_stood_it_is_nowhere(path: Path, field: str) -> None:
    with opened(path) as store:
        for number in range(12):
            store.commit(indexed_document(f"d{number}", f"Quagmire Number{number} came to Old Town."))
            if number == 5:
                store.commit(FIELDS[field])
        with store.reading() as view:
            view.entity_vectors(ENCODER)
        store.flush()
        assert traces(path)
        receipt = store.erase([FIELDS[field].document.id])
        assert receipt.complete
        assert receipt.rows["documents"] == 1
        assert traces(path) == []
        with store.reading() as view:
            view.entity_vectors(ENCODER)
    assert traces(path) == []
    assert verify_store(path, deep=True).sound


def test_a_search_that_finds_something_says_so(path: Path) -> None:
    """A copy that somebody has put beside the store is named, and left; the store's own must be clean."""
    copy = path.parent / (path.name + ".bak")
    with opened(path) as store:
        store.commit(FIELDS["text"])
        store.flush()
        copy.write_bytes(path.read_bytes())
        receipt = store.erase(["secret"])
    assert receipt.complete
    assert [failure.source for failure in receipt.copies] == [str(copy)]
    assert next(file for file in receipt.files if file.name == copy.name).traces > 3
    assert traces(path) == [copy.name]


def test_earlier_versions_of_a_document_and_what_was_merely_forgotten_go_too(path: Path) -> None:
    with opened(path) as store:
        for number in range(30):
            store.commit(indexed_document("secret", f"Zyxxyvex{number} told Anna Marsh {'of it ' * number}"))
        store.commit(indexed_document("other", "Wvutsrq was here"))
        store.commit(indexed_document("secret", "Nothing of that"))
        store.delete(["other"])
        assert store.erase(["secret"]).complete
        assert traces(path) == traces(path, "wvutsrq") == []


def test_what_others_say_stays_and_is_said_to(path: Path) -> None:
    with opened(path) as store:
        for document in sample():
            store.commit(document)
        store.commit(indexed_document("copy", sample()[0].document.text, sample()[0].document.title))
        receipt = store.erase(["copy"])
        assert receipt.complete
        assert receipt.shared_entities == ("anna marsh", "bela toth", "it", "silent harbour")
        assert receipt.shared_needles > 5
        assert store.get("a") == sample()[0].document
        with store.reading() as view:
            assert "anna marsh" in view.snapshot.entity_keys


def test_all_or_none(path: Path) -> None:
    with opened(path) as store:
        store.commit(FIELDS["text"])
        with pytest.raises(DocumentNotFound, match=r"'none'.*Nothing was changed"):
            store.erase(["secret", "none"])
        assert store.get("secret")
        assert store.status().erasure is None


def test_while_another_reads_an_earlier_state_it_is_pending_and_then_finished(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    with opened(path) as store:
        store.commit(FIELDS["text"])
        store.commit(sample()[0])
        reader = apsw.Connection(str(path))
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM documents").get == 2
        receipt = store.erase(["secret"])
        assert not receipt.complete
        assert receipt.pending is not None
        assert reader.execute("SELECT text FROM documents WHERE id = 'secret'").get.startswith("Zyxxyvex")
        assert "forget --erase" in (store.status().erasure or "")
        assert [flaw.kind for flaw in verify_store(path).flaws if flaw.severity != "note"] == ["erasure"]
        reader.execute("COMMIT")
        reader.close()
        again = store.erase(["secret"])
        assert again.complete
        assert again.already_gone == ("secret",)
        assert store.status().erasure is None
        assert traces(path) == []


def test_with_a_move_to_another_encoder_under_way(path: Path) -> None:
    target = HashEncoder(12).identity
    with opened(path) as store:
        store.commit(FIELDS["text"])
        store.commit(sample()[0])
        moving = store.reembed(target)
        pending = moving.pending(10)
        vectors = HashEncoder(12).encode([one.chunk.text for one in pending], "passage").vectors
        moving.put(pending, vectors)
        receipt = store.erase(["secret"])
        assert receipt.complete
        assert receipt.rows["next_vectors"] == 1
        assert traces(path) == []
        done, chunks = moving.progress()
        assert done == chunks
        assert moving.finish()
    data = path.read_bytes()
    assert vectors[0].astype("<f2").tobytes() not in data
    assert vectors[1].astype("<f2").tobytes() in data


def test_replies_of_models_go_whichever_question_they_came_from(path: Path) -> None:
    settings = load_settings({"encoder": "none", "generator": "none"})
    with Memory.open(path, settings=settings) as memory:
        memory.add([Document("secret", "Zyxxyvex told Anna Marsh."), Document("other", "Bela Toth came.")])
        ledger = open_ledger(path)
        ledger.keep("1", Generation('{"names": ["Zyxxyvex"]}', "stop", Usage(calls=1)), "index", "m", ("secret",))
        ledger.keep("2", Generation('{"cues": ["zyxxyvex"]}', "stop", Usage(calls=1)), "cue", "m")
        ledger.keep("3", Generation('{"names": ["Bela Toth"]}', "stop", Usage(calls=1)), "index", "m", ("other",))
        ledger.keep_vectors(
            ["a"], HashEncoder(8).encode(["x"], "passage").vectors, Spending("embed", "e", Usage()), lasting=False
        )
        (path.parent / (path.name + "-ledger-aside-1")).write_bytes(b"damaged Zyxxyvex")
        receipt = memory.forget("secret", erase=True)
        assert receipt is not None
        assert receipt.complete
        assert receipt.rows["ledger"] == 1
        assert (ledger.find("1"), ledger.find("2"), ledger.find_vectors(["a"])) == (None, None, [None])
        assert ledger.find("3") is not None
        ledger.close()
    assert traces(path) == []


def test_an_interrupted_erasure_is_told_at_opening_and_finished_by_repair(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: erasing.Access) -> None:
        raise KeyboardInterrupt

    with opened(path) as store:
        for number in range(12):
            store.commit(indexed_document(f"d{number}", f"Quagmire Number{number} came to Old Town."))
        store.commit(FIELDS["text"])
        with monkeypatch.context() as patched:
            patched.setattr(erasing, "_renew_caches", interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.erase(["secret"])
    assert traces(path)
    with opened(path) as store:
        assert "not finished" in store.notices[0]
        assert "ecphory repair" in store.notices[0]
    (flaw,) = [flaw for flaw in verify_store(path).flaws if flaw.severity != "note"]
    assert (flaw.kind, flaw.severity, "ecphory repair" in flaw.remedy) == ("erasure", "mendable", True)
    report = repair_store(path)
    assert report.receipt is not None
    assert report.receipt.complete
    assert ([one.kind for one in report.mended], report.remaining) == (["erasure"], ())
    assert traces(path) == []
    assert verify_store(path, deep=True).sound
    with opened(path) as store:
        assert store.notices == ()
    assert repair_store(path).receipt is None


def test_repair_of_an_open_memory_finishes_it_too_or_says_that_another_reads(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    settings = load_settings({"encoder": "none", "generator": "none"})
    with Memory.open(path, settings=settings) as memory:
        memory.add([Document("secret", "Zyxxyvex told Anna Marsh."), Document("other", "Bela Toth came.")])
        reader = apsw.Connection(str(path))
        reader.execute("BEGIN; SELECT count(*) FROM documents")
        receipt = memory.forget("secret", erase=True)
        assert receipt is not None
        assert not receipt.complete
        held = memory.repair()
        assert held.receipt is not None
        assert held.receipt.pending
        assert [flaw.kind for flaw in held.remaining] == ["erasure"]
        reader.close()
        report = memory.repair()
        assert report.receipt is not None
        assert report.receipt.complete
        assert report.remaining == ()
        assert memory.get("other")
        assert traces(path) == []


ERASE = """
import sys
from pathlib import Path
from ecphoryrag.store import open_store
from tests.support.indexed_documents import ENCODER, EXTRACTOR
store = open_store(Path(sys.argv[1]), ENCODER.identity, EXTRACTOR)
print("ready", flush=True)
store.erase(["secret"])
"""


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.005, 0.01, 0.03, 0.1])
def test_killed_anywhere_it_is_finished_by_the_next(path: Path, delay: float) -> None:
    with opened(path) as store:
        for number in range(40):
            store.commit(indexed_document(f"d{number}", f"Quagmire Number{number} came to Old Town. " * 20))
        store.commit(FIELDS["text"])
        store.flush()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    words = [sys.executable, "-c", ERASE, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.kill()
    with opened(path) as store:
        documents = [one.id for one in store.documents()]
        assert len(documents) in (40, 41)
        assert ("secret" in documents) != (store.status().erasure is not None or not traces(path))
        receipt = store.erase(["secret"] if "secret" in documents or store.status().erasure else [])
        assert receipt.complete
        assert store.status().erasure is None
        assert [one.id for one in store.documents()] == sorted(f"d{number}" for number in range(40))
    assert traces(path) == []
    assert verify_store(path, deep=True).sound


def test_the_search_finds_what_is_there_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the slow way, with needles at every offset, across blocks, and alike in their beginning."""
    file = tmp_path / "file"
    needles = [b"abcd", b"abcde", b"abcdX", b"\0\0\0\0", b"xyz\xff", b"zyxxyvex", b"q" * 50]
    for shift in range(9):
        file.write_bytes(
            b"." * shift + b"abcde" + b"." * (100 + shift) + b"q" * 49 + b"-" * 7 + b"zyxxyve" + b"xyz\xff"
        )
        data = file.read_bytes()
        expected = tuple(number for number, needle in enumerate(needles) if needle in data)
        for block in (60, 64, 101):
            monkeypatch.setattr(raw_bytes, "BLOCK", block)
            found = raw_bytes._search_file(str(file), needles)
            assert found is not None
            assert tuple(found[1]) == expected, (shift, block)
        (searched,) = raw_bytes.search([file, tmp_path / "none"], needles)
        assert (searched.found, searched.bytes, searched.error) == (expected, len(data), None)


def test_forgetting_costs_no_more_in_a_larger_store(path: Path) -> None:
    """Rows that are looked at, not seconds: the same number of steps of SQLite's machine, whatever else is there."""
    steps: dict[int, int] = {}
    for size in (20, 200):
        store_path = path.with_name(f"{size}")
        with opened(store_path) as store:
            for number in range(size):
                store.commit(indexed_document(f"d{number:03}", f"Quagmire Number{number} came to Old Town."))
            assert isinstance(store, sqlite.SqliteStore)
            assert store._writer is not None
            count = 0

            def tick() -> bool:
                nonlocal count
                count += 1
                return False

            store._writer.set_progress_handler(tick, 10)
            store.delete(["d010"])
            store._writer.set_progress_handler(None)
            steps[size] = count
    assert steps[200] < steps[20] * 1.5 + 20, steps


def test_a_merge_of_three_names_outlives_the_one_that_it_shows(path: Path) -> None:
    with Memory.open(path, encoder=HashEncoder()) as memory:
        memory.add([{"id": "a", "text": "Robert Smithson wrote."}, {"id": "b", "text": "Bob Smithers sang in Rome."}])
        memory.add({"id": "secret", "text": "Zyxxyvex Zorn sang in London."})
        memory.merge("Robert Smithson", "Bob Smithers", "Zyxxyvex Zorn", into="Zyxxyvex Zorn")
        receipt = memory.forget("secret", erase=True)
        assert receipt is not None
        assert (receipt.remaining, receipt.pending) == ((), None)
        (left,) = memory.decisions()
        assert (left.decision.keys, left.decision.into) == (("bob smithers", "robert smithson"), None)
        assert memory.entity("Bob Smithers") == memory.entity("Robert Smithson") is not None
    assert not traces(path)
    assert verify_store(path, deep=True).sound


def test_what_documents_share_is_read_once_not_with_each(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each, erasing half of 8,000 documents that name one place took minutes."""
    calls = []

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return read_entities(*arguments)

    monkeypatch.setattr(erase_traces, "read_entities", counted)
    with opened(path) as store:
        for number in range(30):
            store.commit(indexed_document(f"d{number}", f"Quagmire Number{number} came to Old Town."))
        store.erase([f"d{number}" for number in range(20)])
    assert len(calls) == 2


def test_needles_that_begin_alike_are_each_found_where_they_stand() -> None:
    needles = [b"Person1", b"Person10", b"Person", b"Persons", b"Personage", b"Perso2"]
    assert raw_bytes.found_in(b"..Person10..Perso", *raw_bytes.prepared(needles)) == {0, 1, 2}
    assert raw_bytes.found_in(b"a Personage", *raw_bytes.prepared(needles)) == {2, 4}
