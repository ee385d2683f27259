"""An export holds all that a store holds, says the same of equal stores to the byte, and is read in again."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecphoryrag.errors import InputError
from ecphoryrag.indexing import Source, import_lines
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.ports import IndexedDocument
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.store import export_store, open_store, verify_store
from ecphoryrag.types import AddReport
from tests.contract.test_store_verify import damage
from tests.support.compare_stores import differences
from tests.support.indexed_documents import ENCODER, EXTRACTOR, indexed_document, sample, with_failures


def documents() -> list[IndexedDocument]:
    return [
        *sample(),
        with_failures(indexed_document("f", "Old Town fell.\nNew Town rose.\nBela Toth saw it."), 0, 1),
        indexed_document(
            "\x00'\"", "Nul \x00 Inside Town\u2028after \x00 Nul\r\nOther Line", "\x00", {"a": [None], "b": 1}
        ),
    ]


def filled(path: Path, given: Sequence[IndexedDocument]) -> Path:
    store = open_store(path, ENCODER.identity, EXTRACTOR)
    for document in given:
        store.commit(document)
    store.close()
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with all kinds of rows, among them a chunk that another extractor completed."""
    place = filled(tmp_path / "one", documents())
    store = open_store(place, ENCODER.identity, "capitals 2")
    whole = indexed_document("f", "Old Town fell.\nNew Town rose.\nBela Toth saw it.")
    store.complete("f", whole.document.content_hash, {1: whole.extractions[1]})
    store.close()
    return place


def exported(path: Path, *, vectors: bool = True) -> str:
    output = io.StringIO()
    export_store(path, output, vectors=vectors)
    return output.getvalue()


def lines_of(text: str) -> list[str]:
    """Each with its end; other signs that Python takes for line ends are in the texts."""
    return [f"{line}\n" for line in text.split("\n")[:-1]]


def imported(path: Path, text: str | bytes, encoder: HashEncoder = ENCODER) -> AddReport:
    store = open_store(path, encoder.identity, EXTRACTOR)
    try:
        lines = io.BytesIO(text.encode("utf-8") if isinstance(text, str) else text)
        return import_lines(Source(lines, "x.jsonl"), store, encoder, IndexingSettings())
    finally:
        store.close()


@pytest.mark.parametrize("vectors", [False, True])
def test_it_comes_back_to_the_byte(path: Path, tmp_path: Path, vectors: bool) -> None:
    text = exported(path, vectors=vectors)
    report = imported(tmp_path / "two", text)
    assert (len(report.added), report.failed) == (len(documents()), ())
    assert exported(tmp_path / "two", vectors=vectors) == text
    assert verify_store(tmp_path / "two", deep=True).flaws == ()
    if vectors:
        assert differences(path, tmp_path / "two") == []
        assert report.usage.embedding_tokens == 0


def test_the_order_of_adding_does_not_show(tmp_path: Path) -> None:
    given = documents()
    first = exported(filled(tmp_path / "first", given))
    random.Random(3).shuffle(given)
    assert exported(filled(tmp_path / "second", given)) == first


def test_another_encoder_encodes_again(path: Path, tmp_path: Path) -> None:
    other = HashEncoder(16)
    report = imported(tmp_path / "two", exported(path), other)
    assert report.usage.embedding_tokens > 0
    store = open_store(tmp_path / "two", other.identity, EXTRACTOR)
    found = store.indexed("a")
    store.close()
    expected = other.encode([f"{found.document.title}\n{chunk.text}" for chunk in found.chunks], "passage").vectors
    np.testing.assert_allclose(found.vectors, expected, atol=1e-3)
    assert verify_store(tmp_path / "two", deep=True).flaws == ()


def test_passages_are_encoded_again_if_that_is_asked(path: Path, tmp_path: Path) -> None:
    text = exported(path)
    fewer = text.replace('"vector":"', '"vector":"AAAA', 1)
    vector = json.loads(lines_of(text)[1])["chunks"][0]["vector"]
    other = text.replace(vector, base64.b64encode(bytes(len(base64.b64decode(vector)))).decode("ascii"))
    assert other != text != fewer
    again = exported(imported_to(tmp_path / "once", text, reencode=True))
    for name, lines in (("as it is", other), ("cut", fewer)):
        assert exported(imported_to(tmp_path / name, lines, reencode=False)) != again
        assert exported(imported_to(tmp_path / f"{name} again", lines, reencode=True)) == again


def imported_to(path: Path, text: str, *, reencode: bool) -> Path:
    store = open_store(path, ENCODER.identity, EXTRACTOR)
    try:
        source = Source(io.BytesIO(text.encode("utf-8")), "x.jsonl", reencode)
        import_lines(source, store, ENCODER, IndexingSettings())
    finally:
        store.close()
    return path


def test_the_order_of_metadata_does_not_show(tmp_path: Path) -> None:
    one = filled(tmp_path / "one", [indexed_document("a", "Old Town", metadata={"x": 1, "y": {"p": 1, "q": 2}})])
    two = filled(tmp_path / "two", [indexed_document("a", "Old Town", metadata={"y": {"q": 2, "p": 1}, "x": 1})])
    assert exported(one) == exported(two)


def test_doing_it_twice_changes_nothing(path: Path, tmp_path: Path) -> None:
    text = exported(path)
    imported(tmp_path / "two", text)
    again = imported(tmp_path / "two", text)
    assert (again.added, again.updated, len(again.unchanged)) == ((), (), len(documents()))
    assert exported(tmp_path / "two") == text


def first_chunk(record: dict[str, Any]) -> dict[str, Any]:
    chunk: dict[str, Any] = record["chunks"][0]
    return chunk


BAD: list[Callable[[dict[str, Any]], object]] = [
    lambda one: one.pop("text"),
    lambda one: one.update(text=one["text"] + "!"),
    lambda one: one.update(text="half \ud800"),
    lambda one: one.update(unknown=1),
    lambda one: one.update(metadata={"x": float("nan")}),
    lambda one: one.update(headings=[[1, 0]]),
    lambda one: first_chunk(one).update(span=[0, 10**6]),
    lambda one: first_chunk(one).update(span=[0]),
    lambda one: first_chunk(one).update(vector="AAAA"),
    lambda one: first_chunk(one).update(vector="no base64!"),
    lambda one: first_chunk(one).update(vector="AHwAfAB8AHwAfAB8AHwAfA=="),
    lambda one: first_chunk(one).pop("vector"),
    lambda one: first_chunk(one).update(failure="why"),
    lambda one: first_chunk(one).update(aliases=[["x"]]),
    lambda one: first_chunk(one)["mentions"][0].update(key="other"),
    lambda one: first_chunk(one)["mentions"][0].update(span=[-1, 5]),
    lambda one: first_chunk(one)["mentions"][0].update(importance=6),
    lambda one: first_chunk(one)["mentions"][0].update(about="nothing"),
]


def test_bad_lines_are_refused_by_number_and_the_others_go_in(path: Path, tmp_path: Path) -> None:
    header, *lines = lines_of(exported(path))
    assert json.loads(header)["documents"] == len(lines)
    good = next(line for line in lines if json.loads(line)["id"] == "a")
    bad: list[str] = []
    for spoil in BAD:
        record = json.loads(good)
        spoil(record)
        bad.append(json.dumps(record) + "\n")
    bad += ["[]\n", "{\n", '{"metadata":' + "[" * 10_000 + "]" * 10_000 + "}\n", '{"id": 1e999}\n']
    head = json.loads(header) | {"documents": len(bad) + 1}
    text = (json.dumps(head) + "\n" + "".join(bad)).encode("utf-8") + good.encode("utf-8")
    report = imported(tmp_path / "two", text)
    assert [one.source for one in report.failed] == [f"x.jsonl:{at + 2}" for at in range(len(bad))]
    assert all(one.reason for one in report.failed)
    assert report.added == ("a",)


def test_a_file_that_was_cut_off_is_said_to_be(path: Path, tmp_path: Path) -> None:
    lines = lines_of(exported(path))
    report = imported(tmp_path / "two", "".join(lines[:3]))
    assert len(report.added) == 2
    assert "cut off" in report.failed[-1].reason


@pytest.mark.parametrize("text", ["", "{}\n", "no json\n", '{"id": "a", "text": "b"}\n', b"\xff\n", "[" * 9999])
def test_what_is_no_export_is_refused_whole(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(InputError, match="no export"):
        imported(tmp_path / "two", text)


def test_an_export_of_a_later_version_is_refused(path: Path, tmp_path: Path) -> None:
    text = exported(path).replace('"ecphory_export":1', '"ecphory_export":3', 1)
    with pytest.raises(InputError, match="later version"):
        imported(tmp_path / "two", text)


def test_a_document_that_cannot_be_read_is_left_out_and_named(path: Path) -> None:
    damage(path, "UPDATE documents SET text = CAST(x'ff41' AS TEXT) WHERE id = 'b'")
    output = io.StringIO()
    report = export_store(path, output)
    assert [one.source for one in report.left_out] == ["b"]
    assert report.documents == len(documents()) - 1 == output.getvalue().count("\n") - 1


TEXTS = ["Old Town", "Old Town met Anna Marsh.\nBBC", "anna marsh", "Nobody Else\nAnna Marsh\n東京", ""]
PARTS = st.tuples(st.sampled_from("abcd"), st.sampled_from(TEXTS), st.sampled_from(["", "Old Town", "Bela"]))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(PARTS, st.sampled_from("abcd")), max_size=10))
def test_added_then_forgotten_is_never_added(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str] | str]
) -> None:
    """A step adds or replaces a document, or forgets one; what is left is what a new store would be given."""
    folder = tmp_path_factory.mktemp("stores")
    store = open_store(folder / "lived", ENCODER.identity, EXTRACTOR)
    left: dict[str, IndexedDocument] = {}
    for step in steps:
        if isinstance(step, str):
            if left.pop(step, None) is not None:
                store.delete([step])
        else:
            left[step[0]] = indexed_document(*step)
            store.commit(left[step[0]])
    store.close()
    new = filled(folder / "new", [left[id_] for id_ in sorted(left, reverse=True)])
    assert exported(folder / "lived") == exported(new)
    assert verify_store(folder / "lived", deep=True).sound
