"""Memory joins the real store, the names extractor and real encoders; the generator is scripted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import apsw
import pytest

from ecphoryrag import Document, Memory, Settings
from ecphoryrag.errors import DocumentNotFound, EncoderMismatch, InputError, StoreError, StoreNotFound, StoreReadOnly
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.ports import Encoded
from ecphoryrag.settings import load_settings
from ecphoryrag.store import sqlite
from ecphoryrag.types import Recall

LIGHT = {"id": "light", "title": "Skerrow Light", "text": "Skerrow Light was designed by Ilse Varn.", "year": 1871}
VARN = {"id": "varn", "title": "Ilse Varn", "text": "Ilse Varn was born in the village of Kettlemoor.", "year": 1840}
OTHER = {"id": "other", "title": "Marrow Wren", "text": "Marrow Wren is a ship of the Hask Shipyard.", "year": 1871}
QUESTION = "Where was the designer of Skerrow Light born?"


def settings(**answering: object) -> Settings:
    return load_settings({"encoder": "static", "generator": "none", "answering": answering})


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "notes.ecphory", settings=settings()) as opened:
        opened.add([LIGHT, VARN, OTHER])
        yield opened


def ids(recall: Recall) -> list[str]:
    return [evidence.chunk.document_id for evidence in recall.chunks]


def test_add_counts_each_document_once(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "notes.ecphory", settings=settings()) as memory:
        first = memory.add([LIGHT, VARN, {"id": "bad"}])
        assert (first.added, first.updated, first.unchanged) == (("light", "varn"), (), ())
        assert [failure.source for failure in first.failed] == ["bad"]
        second = memory.add([LIGHT, {**VARN, "text": "Ilse Varn was born in Dunlisk."}])
        assert (second.added, second.updated, second.unchanged) == ((), ("varn",), ("light",))
        assert memory.get("varn").text == "Ilse Varn was born in Dunlisk."


@pytest.mark.parametrize(
    "item", [LIGHT, Document("light", "Skerrow Light was designed by Ilse Varn."), "Skerrow Light."]
)
def test_one_item_needs_no_list(tmp_path: Path, item: dict[str, object] | Document | str) -> None:
    with Memory.open(tmp_path / "notes.ecphory", settings=settings()) as memory:
        assert len(memory.add(item).added) == 1


@pytest.mark.parametrize("method", ["ecphory", "bm25", "dense", "hybrid", "paper"])
def test_every_method_ranks_and_honours_k_and_where(memory: Memory, method: str) -> None:
    assert len(memory.recall(QUESTION, method=method).chunks) >= 2
    assert len(memory.recall(QUESTION, k=1, method=method).chunks) == 1
    assert set(ids(memory.recall(QUESTION, method=method, where={"year": 1840}))) == {"varn"}


def test_a_second_hop_is_recalled_with_its_path(memory: Memory) -> None:
    recall = memory.recall(QUESTION, k=2)
    assert set(ids(recall)) == {"light", "varn"}
    path = next(evidence.path for evidence in recall.chunks if evidence.chunk.document_id == "varn")
    assert any(step.kind == "entity" and step.text == "Ilse Varn" for step in path.steps)


def test_ask_answers_with_citations(tmp_path: Path) -> None:
    reply = json.dumps({"reasoning": "Ilse Varn designed it.", "answer": "Kettlemoor", "evidence": [1, 2]})
    generator = ScriptedGenerator([reply])
    with Memory.open(tmp_path / "notes.ecphory", settings=settings(), generator=generator) as memory:
        memory.add([LIGHT, VARN])
        answer = memory.ask(QUESTION)
    assert (answer.text, answer.cited, answer.model) == ("Kettlemoor", (1, 2), "scripted")
    assert {evidence.chunk.document_id for evidence in answer.evidence} == {"light", "varn"}


def test_ask_without_a_generator_gives_the_evidence_and_says_so(memory: Memory) -> None:
    answer = memory.ask(QUESTION)
    assert answer.text is None
    assert answer.reason is not None
    assert "model" in answer.reason
    assert len(answer.evidence) >= 2


def test_an_empty_store_gives_a_reason(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "notes.ecphory", settings=settings()) as memory:
        assert memory.recall(QUESTION).reason
        assert memory.ask(QUESTION).text is None


def test_forget_is_all_or_none(memory: Memory) -> None:
    with pytest.raises(DocumentNotFound, match="nowhere"):
        memory.forget("light", "nowhere")
    assert [summary.id for summary in memory.documents()] == ["light", "other", "varn"]
    memory.forget("light", "varn")
    assert [summary.id for summary in memory.documents()] == ["other"]
    assert memory.entity("Kettlemoor") is None


def test_entity_is_found_in_any_spelling(memory: Memory) -> None:
    entity = memory.entity("the ILSE VARN")
    assert entity is not None
    assert (entity.name, entity.chunk_count) == ("Ilse Varn", 2)
    assert memory.entity("Nobody Known") is None


def test_inspect_and_status_agree(memory: Memory) -> None:
    chunks = [memory.inspect(summary.id) for summary in memory.documents()]
    status = memory.status()
    assert status.documents == 3
    assert status.chunks == sum(len(indexed.chunks) for indexed in chunks)
    assert status.mentions == sum(len(found.mentions) for indexed in chunks for found in indexed.extractions)


def test_another_encoder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.ecphory"
    Memory.open(path, settings=settings()).close()
    with pytest.raises(EncoderMismatch, match="static"):
        Memory.open(path, settings=settings(), encoder=HashEncoder())


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFound, match=r"notes\.ecphory"):
        Memory.open(tmp_path / "notes.ecphory", settings=settings(), create=False)
    assert list(tmp_path.iterdir()) == []


def test_read_only_refuses_writes(memory: Memory, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "notes.ecphory", settings=settings(), read_only=True) as reader:
        assert len(reader.recall(QUESTION).chunks) >= 2
        with pytest.raises(StoreReadOnly):
            reader.add([{"id": "new", "text": "New text about Dunlisk."}])


@pytest.mark.parametrize("wrong", [{"k": 0}, {"method": "magic"}, {"where": {"": 1}}])
def test_wrong_requests_are_refused(memory: Memory, wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        memory.recall(QUESTION, **wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "notes.ecphory", settings=settings())
    memory.close()
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.status()


def test_threads_read_while_one_writes(memory: Memory) -> None:
    expected = set(ids(memory.recall(QUESTION, k=2)))
    found: list[set[str]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found.append(set(ids(memory.recall(QUESTION, k=2))))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(20):
        memory.add({"id": f"extra-{number}", "text": f"Nothing of note happened on day {number}."})
    done.set()
    for reader in readers:
        reader.join()
    assert found
    assert all(each == expected for each in found)


@pytest.mark.parametrize("wrong", [5, None, ["light"]])
def test_what_is_not_text_is_refused_by_name(memory: Memory, wrong: Any) -> None:
    for what in (memory.get, memory.inspect, memory.forget, memory.entity):
        with pytest.raises(InputError, match=type(wrong).__name__):
            what(wrong)
    assert len(memory.documents()) == 3


@pytest.mark.parametrize("wrong", [5, None])
def test_what_is_no_document_is_refused_by_name(memory: Memory, wrong: Any) -> None:
    with pytest.raises(InputError, match=type(wrong).__name__):
        memory.add(wrong)


def test_closing_while_a_question_is_asked_makes_no_other_model(tmp_path: Path) -> None:
    """The question was recalled when the memory was closed: the model is gone, and none may take its place."""

    class Closing(HashEncoder):
        def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
            if kind == "query":
                held.close()
            return super().encode(texts, kind)

    held = Memory.open(tmp_path / "a", settings=settings(), encoder=Closing(), generator=ScriptedGenerator([]))
    held.add(LIGHT)
    with pytest.raises(StoreError, match="closed"):
        held.ask(QUESTION)


def test_a_store_that_cannot_be_closed_still_lets_the_model_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Model(ScriptedGenerator):
        closed = False

        def close(self) -> None:
            self.closed = True

    def fail(connection: object) -> None:
        raise apsw.IOError

    model = Model([])
    memory = Memory.open(tmp_path / "a", settings=settings(), generator=model)
    monkeypatch.setattr(sqlite, "stop_logging", fail)
    with pytest.raises(StoreError):
        memory.close()
    assert model.closed
    memory.close()
