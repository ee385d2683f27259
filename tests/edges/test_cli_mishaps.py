"""What the command line says when models, ledgers and settings go wrong in the middle of things."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from ecphoryrag.cli.codes import ExitCode
from tests.edges.test_cli import Ecphory, ecphory
from tests.edges.test_cli_models import COUNT, asking, calls, server
from tests.support.llama_server import LlamaServer

__all__ = ["asking", "ecphory", "server"]
LEDGER = "memory.ecphory-ledger"


def test_a_moved_store_is_moved_on_while_the_settings_still_name_the_former_encoder(
    ecphory: Ecphory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("notes").mkdir()
    Path("notes", "a.txt").write_text("Ada met Bob in Rome.", encoding="utf-8")
    assert ecphory("add", "notes", "--encoder", "static").code == ExitCode.OK
    monkeypatch.setenv("ECPHORY_ENCODER", "static")
    assert ecphory("reembed", "--encoder", "none").code == ExitCode.OK
    refused = ecphory("status")
    assert refused.code == ExitCode.ERROR
    assert "ecphory reembed --encoder static" in refused.err
    again = ecphory("reembed", "--encoder", "none", "--json")  # as one does who was killed before it was told
    assert again.code == ExitCode.OK
    assert again.json["already"] is True
    assert ecphory("reembed", "--encoder", "static").code == ExitCode.OK, "what the error told to do"
    assert ecphory("status").code == ExitCode.OK


def test_a_store_moves_away_from_a_server_that_is_gone_and_no_longer_configured(
    ecphory: Ecphory, server: LlamaServer
) -> None:
    Path("notes").mkdir()
    Path("notes", "a.txt").write_text("Ada met Bob in Rome.", encoding="utf-8")
    assert ecphory("add", "notes", "--encoder", "openai/emb").code == ExitCode.OK
    asked = len(server.asked)
    assert ecphory("reembed", "--encoder", "none").code == ExitCode.OK
    assert len(server.asked) == asked
    assert ecphory("status").code == ExitCode.OK


@pytest.mark.parametrize("command", [("add", "notes"), ("add", "--retry")])
def test_a_ledger_of_a_later_version_is_told_of_once_and_in_whole_sentences(
    asking: Ecphory, server: LlamaServer, command: tuple[str, ...]
) -> None:
    server.reply = lambda asked: "no JSON"
    assert asking("add", "notes").code == ExitCode.SOME_FAILED
    ledger = sqlite3.connect(LEDGER)
    ledger.execute("PRAGMA user_version = 9")
    ledger.close()
    told = asking(*command, "--json")
    assert told.code == ExitCode.SOME_FAILED
    (notice,) = told.json["notices"]
    assert "of format 9" in notice
    assert ".." not in notice
    forgotten = asking("forget", "log-000.txt", "--yes", "--json")
    assert forgotten.code == ExitCode.ERROR
    said = json.loads(forgotten.err)["error"]
    assert said["type"] == "StoreTooNew"
    assert ".." not in said["message"]


def test_a_folder_where_the_ledger_belongs_is_named_and_left_alone(asking: Ecphory) -> None:
    assert asking("add", "notes/log-000.txt").code == ExitCode.OK
    Path(LEDGER).unlink()
    Path(LEDGER, "inside").mkdir(parents=True)
    for command in ("verify", "repair"):
        told = asking(command, "--json")
        assert told.code == ExitCode.ERROR
        (flaw,) = told.json["flaws" if command == "verify" else "remaining"]
        assert flaw["kind"] == "ledger"
        assert flaw["remedy"] == "move it away"
    assert Path(LEDGER, "inside").is_dir()


def test_nothing_to_add_is_said_of_nothing_else(asking: Ecphory, server: LlamaServer) -> None:
    stopped = asking("add", "notes", "--max-tokens", "1")
    assert stopped.code == ExitCode.STOPPED
    assert "Nothing was found" not in stopped.out
    assert calls(server) == 0
    assert asking("add", "notes").code == ExitCode.OK
    retried = asking("add", "--retry")
    assert retried.code == ExitCode.OK
    assert "Nothing was found to add" not in retried.out
    assert "No chunk is missing" in retried.out
    assert calls(server) == COUNT
