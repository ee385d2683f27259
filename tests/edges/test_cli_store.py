"""`verify`, `repair`, `backup`, `export` and `import` at the command line."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import apsw

from ecphoryrag import Memory
from ecphoryrag.cli.codes import ExitCode
from tests.contract.test_store_verify import damage
from tests.edges.test_cli import CORPUS, Ecphory, ecphory, filled

__all__ = ["ecphory", "filled"]
STORE = Path("memory.ecphory")


def test_verify(filled: Ecphory) -> None:
    ran = filled("verify")
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    assert ran.out.startswith(f"sound: {len(CORPUS)} documents")
    damage(STORE, "UPDATE chunks SET words = x'00000000'")
    ran = filled("verify", "--deep", "--json")
    assert ran.code == ExitCode.ERROR
    assert [flaw["kind"] for flaw in ran.json["flaws"]] == ["words"] * len(CORPUS)
    assert "mendable: document curie, chunk 0: " in filled("verify", "--deep").out
    assert filled("verify", "--store", "none").code == ExitCode.ERROR


def test_repair(filled: Ecphory) -> None:
    before = filled("export").out
    damage(STORE, "UPDATE chunks SET words = x'00000000'", "UPDATE chunks SET stop = 999 WHERE row = 1")
    ran = filled("repair")
    assert ran.code == ExitCode.OK, ran
    assert "indexed again: document curie" in ran.out
    assert filled("export").out == before
    assert filled("repair", "--json").json["mended"] == []
    damage(STORE, "UPDATE documents SET text = CAST(x'ff41' AS TEXT) WHERE id = 'curie'")
    ran = filled("repair")
    assert (ran.code, "lost: document curie" in ran.out) == (ExitCode.ERROR, True)


def test_backup(filled: Ecphory) -> None:
    ran = filled("backup", "copy.ecphory", "--json")
    assert (ran.code, ran.json["documents"]) == (ExitCode.OK, len(CORPUS))
    assert filled("export", "--store", "copy.ecphory").out == filled("export").out
    assert filled("backup", "copy.ecphory").code == ExitCode.ERROR


def test_export_and_import(filled: Ecphory) -> None:
    ran = filled("export", "-o", "all.jsonl", "--vectors", "--json")
    assert (ran.code, ran.json["documents"]) == (ExitCode.OK, len(CORPUS))
    text = Path("all.jsonl").read_bytes().decode("utf-8")
    assert text == filled("export", "--vectors").out
    ran = filled("import", "all.jsonl", "--store", "two", "--json")
    assert (ran.code, len(ran.json["added"])) == (ExitCode.OK, len(CORPUS))
    assert filled("export", "--vectors", "--store", "two").out == text
    assert filled("export", "--json").code == ExitCode.USAGE
    assert filled("export", "-o", str(STORE)).code == ExitCode.ERROR
    assert filled("verify").code == ExitCode.OK
    assert filled("import", "corpus.jsonl").code == ExitCode.OK
    assert filled("import", "none.jsonl").code == ExitCode.ERROR
    Path("all.jsonl").write_text(text.replace("Vistule", "Vistula"), encoding="utf-8")
    ran = filled("import", "all.jsonl", "--store", "three")
    assert (ran.code, "failed: all.jsonl:3" in ran.out) == (ExitCode.SOME_FAILED, True)
    assert not list(Path().glob("*.tmp"))


def test_the_same_through_memory(filled: Ecphory, tmp_path: Path) -> None:
    with Memory.open(STORE) as memory:
        assert memory.verify(deep=True).sound
        assert memory.repair().mended == ()
        assert memory.backup(tmp_path / "copy").documents == len(CORPUS)
        with Path("out.jsonl").open("w", encoding="utf-8") as output:
            memory.export(output)
    assert json.loads(Path("out.jsonl").read_text(encoding="utf-8").splitlines()[0])["documents"] == len(CORPUS)
    with Memory.open(tmp_path / "new") as memory:
        assert len(memory.import_file("out.jsonl").added) == len(CORPUS)


def test_a_store_of_an_earlier_format_is_copied_and_that_is_told(filled: Ecphory) -> None:
    exported = filled("export").out.partition("\n")[2]
    copy = Path("memory.ecphory.format-3")

    def earlier() -> None:
        damage(STORE, *(f"DROP TABLE {table}" for table in ("decided_places", "decided_keys", "decisions")))
        with closing(apsw.Connection(str(STORE))) as connection:
            connection.execute("DELETE FROM migrations WHERE number > 3; PRAGMA user_version = 3")

    earlier()
    refused = filled("status")
    assert (refused.code, "ecphory repair" in refused.err) == (ExitCode.ERROR, True)
    assert not copy.exists()
    ran = filled("repair", "--json")
    assert (ran.code, str(copy) in json.loads(ran.err)["notice"]) == (ExitCode.OK, True)
    assert str(copy) in ran.json["upgraded"]
    assert filled("export").out.partition("\n")[2] == exported
    assert str(copy) in filled("status").out
    copy.unlink()
    earlier()
    ran = filled("forget", "curie")
    assert (ran.code, ran.err.startswith("Note: The store memory.ecphory was of format 3")) == (ExitCode.OK, True)
    ran = filled("forget", "--erase", "--json")
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    assert {"name": copy.name, "what": "removed"}.items() <= ran.json["receipt"]["files"][-1].items()
    assert not copy.exists()
