"""The command line with models on servers: estimates, budgets, incomplete documents, `doctor`, `reembed`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ecphoryrag.cli.codes import ExitCode
from tests.edges.test_cli import Ecphory, ecphory
from tests.support.llama_server import MODEL, LlamaServer, llama_server
from tests.support.loopback import Asked
from tests.support.ollama_server import OllamaServer
from tests.support.scripted_extraction import CHUNK_TOKENS, by_chunk, documents, extracted, filled

__all__ = ["ecphory"]
COUNT = 6


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LlamaServer]:
    with llama_server(extracted) as running:
        monkeypatch.setenv("ECPHORY_MODELS__OPENAI__BASE_URL", running.url)
        monkeypatch.setenv("ECPHORY_MODELS__OPENAI__LONGEST_WAIT", "0.01")
        monkeypatch.setenv("ECPHORY_MODELS__OPENAI__TRIES", "1")
        monkeypatch.setenv("ECPHORY_INDEXING__CHUNKS__BUDGET", str(CHUNK_TOKENS))
        monkeypatch.setenv("ECPHORY_INDEXING__CHUNKS__OVERLAP", "0")
        yield running


@pytest.fixture
def asking(ecphory: Ecphory, server: LlamaServer, monkeypatch: pytest.MonkeyPatch) -> Ecphory:
    """The command with the extractor `llm`, and documents of one chunk each in the folder `notes`."""
    monkeypatch.setenv("ECPHORY_GENERATOR", f"openai/{MODEL}")
    monkeypatch.setenv("ECPHORY_EXTRACTOR", "llm")
    Path("notes").mkdir()
    for document in documents(COUNT):
        Path("notes", f"{document.id}.txt").write_text(document.text, encoding="utf-8")
    return ecphory


def calls(server: LlamaServer) -> int:
    return by_chunk(server.asked).total()


def test_a_dry_run_calls_nothing_stores_nothing_and_says_what_adding_then_takes(
    asking: Ecphory, server: LlamaServer
) -> None:
    told = asking("add", "notes", "--dry-run", "--json")
    assert told.code == ExitCode.OK
    assert calls(server) == 0
    assert not Path("memory.ecphory").exists()
    assert told.json["documents"] == told.json["chunks"] == told.json["calls"] == COUNT
    added = asking("add", "notes", "--json").json
    assert calls(server) == added["usage"]["calls"] == COUNT
    assert told.json["input_tokens"] == added["usage"]["input_tokens"]
    assert told.json["exact_input"]
    again = asking("add", "notes", "--dry-run")
    assert "0 documents to work on" in again.out
    assert "Nothing was called and nothing was stored." in again.out


def test_the_budget_stops_the_work_and_the_next_run_goes_on(asking: Ecphory, server: LlamaServer) -> None:
    whole = asking("add", "notes", "--dry-run", "--json").json
    room = whole["input_tokens"] // 2 + 800  # what a reply may take is reserved too
    stopped = asking("add", "notes", "--json", "--max-tokens", str(room))
    assert stopped.code == ExitCode.STOPPED
    assert "--max-tokens" in stopped.json["stopped"]
    done = len(stopped.json["added"])
    assert 0 < done < COUNT
    assert stopped.json["usage"]["input_tokens"] + stopped.json["usage"]["output_tokens"] <= room
    rest = asking("add", "notes", "--json")
    assert rest.code == ExitCode.OK
    assert len(rest.json["added"]) == COUNT - done
    assert set(by_chunk(server.asked).values()) == {1}, "nothing is paid twice"


def test_incomplete_documents_are_shown_and_retried_alone(asking: Ecphory, server: LlamaServer) -> None:
    broken = {"on": True}

    def sometimes(asked: Asked) -> str:
        text = " ".join(str(message.get("content", "")) for message in asked.messages)
        return "I cannot do that." if broken["on"] and "Zorbabake" in text else extracted(asked)

    server.reply = sometimes
    added = asking("add", "notes")
    assert added.code == ExitCode.SOME_FAILED
    assert "incomplete: log-" in added.out
    assert "ecphory add --retry" in added.out
    status = asking("status", "--json").json
    incomplete = len(status["incomplete"])
    assert 0 < incomplete < COUNT
    assert "incomplete: " in asking("status").out
    broken["on"] = False
    before = calls(server)
    retried = asking("add", "--retry", "--json")
    assert retried.code == ExitCode.OK
    assert calls(server) - before == incomplete
    assert len(retried.json["updated"]) == incomplete
    assert asking("status", "--json").json["incomplete"] == []
    assert "incomplete" not in asking("status").out


def test_status_says_what_was_paid_by_purpose_and_model(asking: Ecphory) -> None:
    asking("add", "notes")
    spending = asking("status", "--json").json["spending"]
    assert [(one["purpose"], one["model"], one["usage"]["calls"]) for one in spending] == [
        ("index", f"openai/{MODEL}", COUNT)
    ]
    assert f"spent on index with openai/{MODEL}: {COUNT} calls" in asking("status").out


@pytest.mark.parametrize("arguments", [("add",), ("add", "--retry", "notes"), ("add", "--retry", "--dry-run")])
def test_a_retry_takes_no_path_and_an_adding_takes_one(asking: Ecphory, arguments: tuple[str, ...]) -> None:
    assert asking(*arguments).code == ExitCode.USAGE


def test_the_doctor_tries_each_part(asking: Ecphory, server: LlamaServer) -> None:
    unfit = asking("doctor", "--json")
    assert unfit.code == ExitCode.ERROR
    assert {found["part"]: found["state"] for found in unfit.json["findings"]}["extractor"] == "failed"

    def names_the_designer(asked: Asked) -> str:
        doctors = asked.schema is not None and "Ottilie Brandreth" in asked.prompt
        return json.dumps(filled(asked.schema or {}, ["Ottilie Brandreth"])) if doctors else extracted(asked)

    server.reply = names_the_designer
    healthy = asking("doctor", "--json")
    states = {found["part"]: found["state"] for found in healthy.json["findings"]}
    assert states == {"store": "off", "encoder": "off", "extractor": "ok", "generator": "warning"}
    assert "Ottilie Brandreth" in asking("doctor").out
    asking("add", "notes")
    assert f"ok: store memory.ecphory: {COUNT} documents" in asking("doctor").out


def test_the_doctor_says_what_is_missing(ecphory: Ecphory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ECPHORY_GENERATOR", f"local/{tmp_path}/missing.gguf")
    found = ecphory("doctor")
    assert found.code == ExitCode.ERROR
    assert "failed: generator" in found.out
    assert "there is no model file" in found.out
    monkeypatch.setenv("ECPHORY_GENERATOR", "ollama/phi4")
    monkeypatch.setenv("ECPHORY_MODELS__OLLAMA__BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ECPHORY_MODELS__OLLAMA__TRIES", "1")
    found = ecphory("doctor", "--json")
    assert found.code == ExitCode.ERROR
    assert "127.0.0.1:9" in found.json["findings"][-1]["detail"]


def test_a_store_moves_to_a_served_encoder_and_back(ecphory: Ecphory, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.jsonl").write_text(
        "\n".join(json.dumps({"id": f"d{at}", "text": f"Keeper number {at} of the light."}) for at in range(5)),
        encoding="utf-8",
    )
    assert ecphory("add", "a.jsonl").code == ExitCode.OK
    with OllamaServer(model="bge-m3") as ollama:
        monkeypatch.setenv("ECPHORY_MODELS__OLLAMA__BASE_URL", ollama.address)
        moved = ecphory("reembed", "--encoder", "ollama/bge-m3")
        assert moved.code == ExitCode.OK, moved.err
        assert "5 of 5 chunks encoded with ollama/bge-m3" in moved.out
        assert ecphory("status").code == ExitCode.ERROR  # the settings still name the old one
        monkeypatch.setenv("ECPHORY_ENCODER", "ollama/bge-m3")
        status = ecphory("status", "--json").json
        assert status["encoder"]["name"] == "ollama/bge-m3"
        assert [one["purpose"] for one in status["spending"]] == ["embed"]
        assert ecphory("recall", "keeper number 3", "--method", "dense").code == ExitCode.OK
    assert ecphory("list").out.count("\n") == 5, "the server is not needed to list"
    assert ecphory("reembed", "--encoder", "static").code == ExitCode.OK
    assert ecphory("list", "--encoder", "static").out.count("\n") == 5


def test_an_unknown_encoder_is_a_wrong_command_line(ecphory: Ecphory) -> None:
    assert ecphory("reembed", "--encoder", "magic").code == ExitCode.USAGE
    assert ecphory("reembed").code == ExitCode.USAGE


def test_a_dry_run_needs_no_server(asking: Ecphory, server: LlamaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = asking("add", "notes", "--dry-run", "--json").json
    monkeypatch.setenv("ECPHORY_MODELS__OPENAI__BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("ECPHORY_ENCODER", "openai/embedding")
    told = asking("add", "notes", "--dry-run", "--json")
    assert told.code == ExitCode.OK
    assert (told.json["documents"], told.json["calls"]) == (COUNT, COUNT)
    assert not told.json["exact_input"]
    assert 0.5 < told.json["input_tokens"] / exact["input_tokens"] < 2
    assert told.json["embedding_tokens"] > 0
    assert "without the model, since nothing listens" in told.json["basis"]


def test_a_dry_run_asks_no_served_encoder(
    asking: Ecphory, server: LlamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECPHORY_ENCODER", "openai/embedding")
    assert asking("add", "notes", "--dry-run", "--json").json["embedding_tokens"] > 0
    assert server.count("/v1/embeddings") == 0


def test_the_encoder_may_be_named_before_the_command(ecphory: Ecphory) -> None:
    assert ecphory("--encoder", "none", "add", "-", stdin="The town of Dunlisk.").code == ExitCode.OK
    assert "encoder: none" in ecphory("--encoder", "none", "status").out
    assert ecphory("--encoder", "static", "status", "--encoder", "none").code == ExitCode.OK
    assert ecphory("--encoder", "foo", "status").code == ExitCode.USAGE


def test_a_move_to_the_encoder_that_the_store_has_says_so(ecphory: Ecphory) -> None:
    ecphory("add", "-", "--encoder", "none", stdin="The town of Dunlisk.")
    moved = ecphory("reembed", "--encoder", "none")
    assert moved.code == ExitCode.OK
    assert "already" in moved.out
    assert "has moved" not in moved.out
    assert ecphory("reembed", "--encoder", "none", "--json").json["already"] is True
