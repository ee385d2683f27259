"""Memory and what it has beside the store: the ledger is forgotten with the documents, and halted work starts anew."""

from __future__ import annotations

import _thread
import json
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from ecphoryrag import Memory
from ecphoryrag.errors import DocumentNotFound, EncoderMismatch, ModelNotAvailable, SettingsError, StoreNotFound
from ecphoryrag.models.fakes import ScriptedGenerator
from ecphoryrag.settings import ModelsSettings, OllamaSettings, Settings
from ecphoryrag.store.ledger import open_ledger
from tests.support.llama_server import CHAT, LlamaServer, llama_server
from tests.support.loopback import Asked, Fault
from tests.support.scripted_extraction import by_chunk, documents, extracted, settings


def test_what_is_forgotten_is_forgotten_in_the_ledger_too_even_if_it_is_switched_off(tmp_path: Path) -> None:
    path = tmp_path / "s.ecphory"
    with llama_server(extracted) as server:
        given = settings(server.url)
        with Memory.open(path, settings=given) as memory:
            memory.add(documents(3))
            with pytest.raises(DocumentNotFound):
                memory.forget("log-000", "nothing")
            memory.add(documents(3))
            assert set(by_chunk(server.asked).values()) == {1}, "a refused forgetting has forgotten nothing"
            memory.forget("log-000")
        unkept = given.model_copy(update={"models": given.models.model_copy(update={"ledger": False})})
        with Memory.open(path, settings=unkept) as memory:
            memory.forget("log-001")
        with closing(open_ledger(path)) as kept:
            assert len(kept.history("index", "openai/" + server.model)) == 1
        with Memory.open(path, settings=given) as memory:
            memory.add(documents(3))
        assert sorted(by_chunk(server.asked).values()) == [1, 2, 2]


def interrupt_after(server: LlamaServer, chats: int) -> None:
    """Press Ctrl-C once so many chats were asked for."""
    while server.count(CHAT) < chats:
        time.sleep(0.01)
    _thread.interrupt_main()


def test_ctrl_c_ends_the_pauses_between_tries_and_the_next_adding_works(tmp_path: Path) -> None:
    broken = threading.Event()
    broken.set()

    def fault(asked: Asked) -> Fault | None:
        return Fault(status=503) if broken.is_set() and asked.path == CHAT else None

    with llama_server(extracted, fault=fault) as server:
        given = settings(server.url, tries=20, longest_wait=60.0)
        with Memory.open(tmp_path / "s.ecphory", settings=given) as memory:
            threading.Thread(target=interrupt_after, args=(server, 8)).start()
            report = memory.add(documents(4))
            assert report.interrupted
            assert report.added == ()
            time.sleep(0.5)  # for what was under way
            calls = server.count(CHAT)
            time.sleep(1.5)  # the pauses between tries have grown to seconds by now, and would end in more
            assert server.count(CHAT) == calls, "nothing is called any more"
            broken.clear()
            assert len(memory.add(documents(4)).added) == 4


def test_a_damaged_ledger_is_said_and_costs_no_job(tmp_path: Path) -> None:
    path = tmp_path / "s.ecphory"
    (tmp_path / "s.ecphory-ledger").write_bytes(b"this is no ledger at all" * 100)
    with llama_server(extracted) as server, Memory.open(path, settings=settings(server.url)) as memory:
        report = memory.add(documents(1))
        assert len(report.added) == 1
        assert any("ledger" in notice for notice in report.notices)
        assert memory.status().notices == report.notices


def test_a_given_generator_extracts_too(tmp_path: Path) -> None:
    said = json.dumps({"entities": [["Ilka Varnholt", "person", 5, "a sailor"]]})
    given = Settings(encoder="none", generator="none", extractor="llm")
    with Memory.open(tmp_path / "s", settings=given, generator=ScriptedGenerator(lambda _: said)) as memory:
        report = memory.add([{"id": "a", "text": "Ilka Varnholt sailed past Corrabel."}])
        assert [one.usage.calls for one in report.spending] == [1]
        assert memory.entity("Ilka Varnholt") is not None
    with pytest.raises(SettingsError, match="generator is `none`"):
        Memory.open(tmp_path / "s", settings=given)


@pytest.mark.parametrize(
    "given", [{"generator": "openai/x"}, {"generator": "ollama/x"}, {"encoder": "openai/x"}, {"encoder": "ollama/x"}]
)
def test_a_missing_package_is_named_with_what_installs_it(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "tenacity", None)
    monkeypatch.delitem(sys.modules, "ecphoryrag.models.guard", raising=False)
    backend = next(iter(given.values())).partition("/")[0]
    settings = Settings.model_validate({"encoder": "none", "extractor": "llm", "generator": "none"} | given)
    with pytest.raises(ModelNotAvailable, match=rf"tenacity: run `pip install 'ecphoryrag\[{backend}\]'`"):
        Memory.open(tmp_path / "s", settings=settings)


def test_a_served_encoder_that_is_not_the_stores_is_told_without_its_server(tmp_path: Path) -> None:
    nowhere = Settings(encoder="ollama/bge-m3", generator="none", models=NOWHERE)
    with pytest.raises(StoreNotFound):
        Memory.open(tmp_path / "none", settings=nowhere, create=False)
    Memory.open(tmp_path / "s", settings=Settings(encoder="none")).close()
    with pytest.raises(EncoderMismatch, match=r'`encoder = "none"`.*reembed --encoder ollama/bge-m3'):
        Memory.open(tmp_path / "s", settings=nowhere, read_only=True)


NOWHERE = ModelsSettings(ollama=OllamaSettings(base_url="http://127.0.0.1:9"))
