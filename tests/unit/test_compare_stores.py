"""The comparison of stores: blind to how a store came about, and to nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from ecphoryrag.ports import IndexedDocument
from ecphoryrag.store import open_store
from tests.support.compare_stores import contents, differences
from tests.support.indexed_documents import ENCODER, EXTRACTOR, indexed_document, with_failures

MEETING = indexed_document("meeting", "Ada Lovelace met Charles Babbage.\nLondon was cold.", "The Meeting")
HARBOUR = indexed_document("harbour", "Brannock Quay and Brannock Light lie in Dunlisk.", metadata={"year": 1898})
ENGINE = indexed_document("engine", "Charles Babbage designed the Analytical Engine.")


def store_of(path: Path, documents: Sequence[IndexedDocument], *, forgotten: Sequence[str] = ()) -> Path:
    with closing(open_store(path, ENCODER.identity, EXTRACTOR, create=True, read_only=False)) as store:
        for document in documents:
            store.commit(document)
        if forgotten:
            store.delete(forgotten)
    return path


def test_order_updates_and_what_was_forgotten_are_not_seen(tmp_path: Path) -> None:
    one = store_of(tmp_path / "one", [MEETING, HARBOUR])
    former = indexed_document("meeting", "Something else was said of Oslo.")
    other = store_of(tmp_path / "other", [ENGINE, former, HARBOUR, MEETING], forgotten=["engine"])
    assert differences(one, other) == []
    assert {"documents", "chunks", "mentions", "aliases", "entities", "failures", "properties"} <= contents(one).keys()
    assert set(contents(one)["mentions"]) == {"meeting", "harbour"}


def test_a_completed_store_equals_one_that_never_failed(tmp_path: Path) -> None:
    whole = store_of(tmp_path / "whole", [MEETING, HARBOUR])
    broken = store_of(tmp_path / "broken", [with_failures(MEETING, 0), HARBOUR])
    assert differences(whole, broken) != []
    with closing(open_store(broken, ENCODER.identity, EXTRACTOR, create=False, read_only=False)) as store:
        store.complete("meeting", MEETING.document.content_hash, {0: MEETING.extractions[0]})
    assert differences(whole, broken) == []


CHANGES = {
    "documents": ("content_hash", "title", "source", "metadata", "headings", "text"),
    "chunks": ("ordinal", "start", "stop", "headings", "words", "vector"),
    "mentions": ("number", "field", "start", "stop", "type", "importance", "about", "told", "length", "description"),
    "aliases": ("number", "one", "other"),
    "failures": ("reason",),
    "entities": ("key",),
    "properties": ("value",),
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has rows in every table that is tried."""
    path = tmp_path_factory.mktemp("stores") / "sample"
    return store_of(path, [MEETING, HARBOUR, with_failures(ENGINE, 0)])


def changed_by(path: Path, to: Path, statement: str) -> Path:
    """A copy of the store in which one row was changed, past all rules."""
    shutil.copyfile(path, to)
    with closing(apsw.Connection(str(to))) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statement)
        assert connection.changes() == 1
    return to


def first_row(table: str) -> str:
    """A condition that one row fulfils."""
    if table == "properties":
        return "name = 'encoder'"
    key = "(chunk, number)" if table in {"mentions", "aliases"} else "(row)" if table != "failures" else "(chunk)"
    return f"{key} = (SELECT {key.strip('()')} FROM {table} LIMIT 1)"


@pytest.mark.parametrize(("table", "column"), [(table, column) for table in CHANGES for column in CHANGES[table]])
def test_a_changed_value_is_seen(sample: Path, tmp_path: Path, table: str, column: str) -> None:
    changed = {"vector": "CAST(vector || x'00' AS BLOB)", "words": "CAST(words || x'00' AS BLOB)"}
    numbers = {"ordinal", "start", "stop", "number", "field", "importance", "about", "told", "length"}
    plus = f"coalesce({column}, 0) + 40" if column in numbers else f"coalesce({column}, '') || '!'"
    value = changed.get(column, plus)
    other = changed_by(sample, tmp_path / "o", f"UPDATE {table} SET {column} = {value} WHERE {first_row(table)}")
    assert differences(sample, other) != []


@pytest.mark.parametrize("table", CHANGES)
def test_a_row_that_is_missing_is_seen_from_both_sides(sample: Path, tmp_path: Path, table: str) -> None:
    other = changed_by(sample, tmp_path / "other", f"DELETE FROM {table} WHERE {first_row(table)}")
    assert differences(sample, other) != []
    assert differences(other, sample) != []


def test_the_same_rows_of_another_document_are_seen(tmp_path: Path) -> None:
    twin = indexed_document("twin", MEETING.document.text, MEETING.document.title)
    both = store_of(tmp_path / "both", [MEETING, twin])
    stores = []
    for id_ in ("meeting", "twin"):
        stores.append(shutil.copyfile(both, tmp_path / id_))
        with closing(apsw.Connection(str(stores[-1]))) as connection:
            of = "SELECT c.row FROM chunks c JOIN documents d ON d.row = c.document WHERE d.id = ?"
            connection.execute(f"DELETE FROM mentions WHERE chunk IN ({of})", (id_,))
    found = [line.split(":")[0] for line in differences(*stores)]
    assert found == ["mentions of 'meeting'", "mentions of 'twin'"]


def test_a_table_that_one_store_lacks_is_seen(tmp_path: Path) -> None:
    one, other = (store_of(tmp_path / name, [HARBOUR]) for name in ("one", "other"))
    with closing(apsw.Connection(str(other))) as connection:
        connection.execute("CREATE TABLE more (row INTEGER PRIMARY KEY, chunk INTEGER, vector BLOB) STRICT")
    assert differences(one, other) == ["table more: in one store only"]
    for path, vector in ((one, b"a"), (other, b"b")):
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS more (row INTEGER PRIMARY KEY, chunk INTEGER, vector BLOB)")
            connection.execute("INSERT INTO more (chunk, vector) VALUES (1, ?)", (vector,))
    assert differences(one, other) == ["more of 'harbour': [(0, b'a')] against [(0, b'b')]"]
