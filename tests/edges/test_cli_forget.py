"""`forget` by a description, tried and done, with its receipt; and `sync`; at the command line."""

from __future__ import annotations

from pathlib import Path

from ecphoryrag.cli.codes import ExitCode
from tests.edges.test_cli import Ecphory, ecphory, filled

__all__ = ["ecphory", "filled"]


def test_what_a_description_chooses_is_forgotten_once_that_is_said(filled: Ecphory) -> None:
    ran = filled("forget", "--where", "lang=en")
    assert (ran.code, "2 would be forgotten; nothing was changed: say --yes" in ran.out) == (ExitCode.ERROR, True)
    ran = filled("forget", "--source", "corpus.jsonl", "--dry-run", "--json")
    assert (ran.code, ran.json["forgotten"], len(ran.json["chosen"])) == (ExitCode.OK, [], 3)
    ran = filled("forget", "curie", "--dry-run")
    assert (ran.code, ran.out.startswith("would be forgotten: curie\n")) == (ExitCode.OK, True)
    assert filled("forget", "none", "--dry-run").code == ExitCode.ERROR
    assert len(filled("list", "--json").json["documents"]) == 3
    assert filled("forget", "--where", "lang=en", "--yes").out == "2 forgotten\n"
    assert filled("forget", "--where", "lang=en").out.startswith("0 forgotten: no document is chosen so")
    assert [one["id"] for one in filled("list", "--json").json["documents"]] == ["vistule"]


def test_a_wrong_choice_is_a_wrong_command_line(filled: Ecphory) -> None:
    for arguments in ((), ("curie", "--where", "lang=en"), ("curie", "--source", "x"), ("--erase", "--dry-run")):
        assert filled("forget", *arguments).code == ExitCode.USAGE


def test_the_receipt(filled: Ecphory) -> None:
    filled("recall", "Who was born in Warsaw?")
    ran = filled("forget", "curie", "--erase", "--json")
    receipt = ran.json["receipt"]
    assert (ran.code, receipt["documents"], receipt["pending"], receipt["remaining"]) == (0, ["curie"], None, [])
    assert receipt["shared_entities"] == ["warsaw"]
    assert {file["name"] for file in receipt["files"]} >= {"memory.ecphory", "memory.ecphory-wal"}
    assert not any(b"curie" in file.read_bytes().lower() for file in Path().glob("memory.ecphory*"))
    Path("memory.ecphory.bak").write_bytes(b"Vistule")
    ran = filled("forget", "vistule", "--erase")
    assert ran.code == ExitCode.OK
    assert "a copy beside the store, not touched: " in ran.out
    assert "not reached: backups" in ran.out
    assert ran.out.splitlines()[-1].startswith("erased: no file of the store holds any of it")


def test_sync(ecphory: Ecphory) -> None:
    notes = Path("notes")
    notes.mkdir()
    (notes / "a.txt").write_text("Ada Lovelace.", encoding="utf-8")
    ran = ecphory("sync", "notes", "--dry-run")
    assert (ran.code, ran.out.startswith("would be added: a.txt\n")) == (ExitCode.OK, True)
    assert not Path("memory.ecphory").exists()
    assert ecphory("sync", "notes", "--json").json["added"] == ["a.txt"]
    (notes / "b.pdf").write_bytes(b"%PDF-")
    (notes / "a.txt").rename(notes / "c.txt")
    ran = ecphory("sync", "notes/")
    assert ran.code == ExitCode.SOME_FAILED
    assert "moved: a.txt -> c.txt\n" in ran.out
    assert "failed: " in ran.out
    (notes / "b.pdf").unlink()
    (notes / "c.txt").unlink()
    ran = ecphory("sync", "notes")
    assert (ran.code, "mounted" in ran.err) == (ExitCode.ERROR, True)
    assert ecphory("sync", "notes", "--allow-empty", "--json").json["forgotten"] == ["c.txt"]
    assert ecphory("sync", "none").code == ExitCode.ERROR
