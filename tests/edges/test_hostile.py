"""Hostile input at every door; the short form of ``benchmarks/hostile.py``, and each bug that the long one found."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from ecphoryrag import Memory
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.errors import InputError, NotAStore, StoreDamaged
from ecphoryrag.indexing.items import MOST_FAILURES
from ecphoryrag.store.connections import connect_writer
from ecphoryrag.types import Document
from tests.edges.test_cli import CORPUS, Ecphory, ecphory, filled
from tests.support.hostile import GITIGNORES
from tests.support.hostile_doors import Arena, cases, knock

__all__ = ["ecphory", "filled"]
STORE = Path("memory.ecphory")
SHORT = 300


def test_nothing_hostile_does_harm(tmp_path: Path) -> None:
    arena = Arena(tmp_path / "arena")
    outcomes = [knock(arena, door, seed) for door, seed in cases(SHORT, 2)]
    wrong = [f"{one.door} {one.seed}: {one.wrong}" for one in outcomes if one.wrong]
    assert not wrong, "\n".join(wrong)
    assert {one.ended for one in outcomes} >= {"taken", "refused", "code 0", "code 1", "code 2", "code 3"}


def test_the_fuzzer_sees_what_goes_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arena = Arena(tmp_path / "arena")

    def failing(*_: object, **__: object) -> None:
        raise RecursionError

    def writing(*_: object, **__: object) -> None:
        (arena.root / "home" / "x").write_text("")

    for seen, harm in (("RecursionError", failing), ("changed outside", writing)):
        monkeypatch.setattr(Memory, "recall", harm)
        found = [knock(arena, "add", seed).wrong for seed in range(5)]
        assert any(seen in one for one in found if one)


def execute(path: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER UPDATE ON properties BEGIN DELETE FROM documents; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON documents (hex(zeroblob(1000)))",
        "CREATE TABLE extra (x, y AS (hex(zeroblob(1000))))",
        "ALTER TABLE documents RENAME TO d; CREATE VIEW documents AS WITH RECURSIVE c(x) AS "
        "(SELECT 1 UNION ALL SELECT x FROM c) SELECT x AS id, x AS row FROM c",
        "DROP TABLE aliases",
        "PRAGMA user_version = -1",
    ],
)
def test_a_schema_that_no_version_makes_is_refused_before_a_table_is_read(filled: Ecphory, statement: str) -> None:
    execute(STORE, statement)
    before = STORE.read_bytes()
    for command in (
        ["list"],
        ["add", "corpus.jsonl"],
        ["export"],
        ["repair"],
        ["recall", "Curie"],
        ["forget", "curie"],
    ):
        ran = filled(*command)
        assert (ran.code, ran.err.startswith("Error: The store memory.ecphory ")) == (ExitCode.ERROR, True), ran
    assert filled("verify", "--deep").code == ExitCode.ERROR
    assert STORE.read_bytes() == before
    with pytest.raises(StoreDamaged):
        Memory.open(STORE)


def test_what_analyze_keeps_is_let_pass(filled: Ecphory) -> None:
    execute(STORE, "ANALYZE")
    assert filled("list").code == filled("verify", "--deep").code == ExitCode.OK


def test_neither_triggers_nor_views_run_in_a_store_changed_while_it_is_open(filled: Ecphory) -> None:
    del filled
    with closing(connect_writer(STORE, create=False)) as connection:
        execute(STORE, "CREATE TRIGGER t AFTER INSERT ON extractors BEGIN DELETE FROM documents; END")
        execute(STORE, "CREATE VIEW v AS SELECT 1")
        connection.execute("INSERT INTO extractors (identity) VALUES ('x')")
        assert connection.execute("SELECT count(*) FROM documents").get == len(CORPUS)
        with pytest.raises(apsw.SQLError):
            connection.execute("SELECT * FROM v")
        with pytest.raises(apsw.Error):
            connection.execute("DELETE FROM search_data")


@pytest.mark.parametrize("suffix", ["", "-cache", "-vectors", "-ledger", "-wal", "-journal", "-ledger-journal"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(filled: Ecphory, suffix: str) -> None:
    path = Path(f"{STORE}{suffix}")
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for command in (["recall", "Curie"], ["verify", "--deep"], ["add", "corpus.jsonl"]):
        assert filled(*command).code in {ExitCode.OK, ExitCode.ERROR}
    if not suffix:
        with pytest.raises(NotAStore, match="pipe"):
            Memory.open(path)


def test_a_device_as_a_settings_file_is_not_read_to_its_end(filled: Ecphory, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = filled("list", "--config", "/dev/zero")
    assert (ran.code, "is no settings file" in ran.err) == (ExitCode.ERROR, True)


def test_a_deep_header_of_a_cache_is_no_cache(filled: Ecphory) -> None:
    before = filled("recall", "Curie").out
    Path(f"{STORE}-cache").write_bytes((100_000).to_bytes(8, "little") + b"[" * 100_000)
    assert filled("recall", "Curie").out.splitlines()[:3] == before.splitlines()[:3]
    assert filled("verify").code == ExitCode.ERROR


def test_json_holds_no_raw_control_character(filled: Ecphory) -> None:
    odd = "\x7f\x9b\u202e\u2066\u2028"
    record = {"id": f"i{odd}", "title": odd, "text": f"The {odd} Red Sea.", odd: odd}
    Path("odd.jsonl").write_text(json.dumps(record), encoding="utf-8")
    assert filled("add", "odd.jsonl").code == ExitCode.OK
    ran = filled("show", f"i{odd}", "--json")
    assert not set(odd) & set(ran.out)
    assert ran.json["document"]["title"] == odd
    assert filled("list").out.splitlines()[-1].startswith("warsaw")
    assert not set(odd) & set(filled("list").out)


@pytest.mark.parametrize("rules", [GITIGNORES[0], b"*a" * 100 + b"b\n", GITIGNORES[1]])
def test_rules_that_would_take_ages_do_not(ecphory: Ecphory, rules: bytes) -> None:
    folder = Path("docs")
    folder.mkdir()
    (folder / ("a" * 250)).write_text("Ada Lovelace.")
    (folder / ".gitignore").write_bytes(rules)
    started = time.process_time()
    assert ecphory("add", "docs").code in {ExitCode.OK, ExitCode.SOME_FAILED}
    assert time.process_time() - started < 20


def test_rules_with_several_stars_still_hold(ecphory: Ecphory) -> None:
    folder = Path("docs")
    folder.mkdir()
    (folder / ".gitignore").write_text("*.min.*.js\na*b*/\n**/x/**/y*z\n")
    left_out = ("f.min.2.js", "acbd/q.txt", "x/1/2/ybz", "x/yz", "k/x/yz")
    kept = ("f.min.js", "acbd.txt", "bab/q.txt", "x/y", "k/yz")
    for name in (*left_out, *kept):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"Ada Lovelace wrote {name}.")
    assert set(ecphory("add", "docs", "--json").json["added"]) == set(kept)


def test_millions_of_bad_lines_are_not_told_one_by_one(ecphory: Ecphory) -> None:
    good = json.dumps({"id": "last", "text": "Ada Lovelace."})
    Path("bad.jsonl").write_text("x\n" * (MOST_FAILURES + 500) + good, encoding="utf-8")
    Path("bad.json").write_text(json.dumps([1] * (MOST_FAILURES + 7)), encoding="utf-8")
    ran = ecphory("add", "bad.jsonl", "bad.json", "--json")
    failed = [one["reason"] for one in ran.json["failed"]]
    assert (ran.code, ran.json["added"], len(failed)) == (ExitCode.SOME_FAILED, ["last"], 2 * (MOST_FAILURES + 1))
    counted = [one for one in failed if one.startswith("and")]
    assert counted == [f"and {more} more lines or records that cannot be taken" for more in (500, 7)]


def test_documents_from_python_of_the_wrong_types_fail_alone(ecphory: Ecphory) -> None:
    del ecphory
    odd = object()
    with Memory.open(STORE) as memory:
        report = memory.add(
            [
                Document("a", "Ada.", source=odd),  # type: ignore[arg-type]
                Document("b", "Ada.", headings=("x",)),  # type: ignore[arg-type]
                Document("c", "Ada.", headings=odd),  # type: ignore[arg-type]
                Document("d", "Ada.", source="\ud800"),
                Document("e", "Ada Lovelace."),
            ]
        )
    assert (report.added, [one.source for one in report.failed]) == (("e",), ["a", "b", "c", "d"])


HOSTILE_LINES: dict[str, Callable[[dict[str, Any]], object]] = {
    "infinite": lambda record: record.update(metadata={"n": 1e999}),
    "half": lambda record: record.update(title="\ud800"),
    "deep": lambda record: record.update(metadata={"n": json.loads("[" * 70 + "]" * 70)}),
    "huge": lambda record: record.update(metadata={"n": 2**70}),
    "long": lambda record: record.update(id="x" * 5000),
    "title": lambda record: record.update(title="x" * 5000),
    "source": lambda record: record.update(source="\udcff"),
    "type": lambda record: record["chunks"][0].update(failure="\ud800"),
}


@pytest.mark.parametrize("name", HOSTILE_LINES)
def test_an_export_is_checked_like_any_other_input(filled: Ecphory, name: str) -> None:
    assert filled("export", "-o", "all.jsonl").code == ExitCode.OK
    header, *lines = Path("all.jsonl").read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[0])
    record["chunks"][0].update(mentions=[], aliases=[])
    HOSTILE_LINES[name](record)
    record["content_hash"] = Document(record["id"], record["text"], record["title"], record["metadata"]).content_hash
    Path("all.jsonl").write_text("\n".join([header, json.dumps(record), *lines[1:]]), encoding="utf-8")
    ran = filled("import", "all.jsonl", "--store", "two", "--json")
    assert (ran.code, len(ran.json["added"])) == (ExitCode.SOME_FAILED, len(CORPUS) - 1), ran
    assert filled("verify", "--deep", "--store", "two").code == ExitCode.OK


def test_plain_documents_are_imported_as_they_are_added(filled: Ecphory) -> None:
    ran = filled("import", "corpus.jsonl", "--store", "two", "--json")
    assert (ran.code, ran.json["added"]) == (ExitCode.OK, ["curie", "warsaw", "vistule"])
    assert filled("export", "--store", "two").out == filled("export").out
    Path("plain.txt").write_text("Ada Lovelace.\n", encoding="utf-8")
    for wrong in ("plain.txt", "none.jsonl", "/dev/zero", ".", "a\udcffb"):
        ran = filled("import", wrong, "--store", "three")
        assert (ran.code, Path("three").exists()) == (ExitCode.ERROR, False), ran
    headless = filled("export").out.split("\n", 1)[1]
    Path("headless.jsonl").write_text(headless, encoding="utf-8")
    assert filled("import", "headless.jsonl").code == ExitCode.ERROR


def test_a_filter_of_any_depth_is_refused_in_few_words(filled: Ecphory) -> None:
    del filled
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    with Memory.open(STORE, read_only=True) as memory:
        for where in ({"a": deep}, {"x" * 10**6: [deep]}, {"a": {"b": deep}}):
            with pytest.raises(InputError) as caught:
                memory.documents(where)  # type: ignore[arg-type]
            assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("documents.metadata", "[]"),
        ("documents.metadata", '{"a":1e999}'),
        ("documents.metadata", '{"a":' + "[" * 900 + "]" * 900 + "}"),
        ("documents.headings", '[["a", 7, null, {}]]'),
        ("documents.headings", "{}"),
        ("chunks.headings", "[1]"),
        ("properties.value", b"\xff"),
        ("properties.value", 1e300),
        ("mentions.field", 7),
    ],
)
def test_rows_that_anybody_may_have_written_are_damage(
    filled: Ecphory, column: str, value: str | bytes | float
) -> None:
    table, name = column.split(".")
    where = " WHERE name IN ('state', 'generation')" if table == "properties" else ""
    with closing(apsw.Connection(str(STORE))) as connection:
        connection.execute(f"UPDATE {table} SET {name} = ?{where}", (value,))
    for command in ("list", "list --json", "recall Curie", "show curie --json", "status", "export", "verify"):
        assert filled(*command.split()).code in {ExitCode.OK, ExitCode.ERROR, ExitCode.SOME_FAILED}
    assert filled("verify", "--deep").code == ExitCode.ERROR
    assert filled("repair").code in {ExitCode.OK, ExitCode.ERROR}


def test_a_question_longer_than_any_is_refused(filled: Ecphory) -> None:
    del filled
    with Memory.open(STORE, read_only=True) as memory:
        for atom in ("\x1b[31m", "Marie Curie ", "a"):
            with pytest.raises(InputError, match="characters"):
                memory.recall(atom * (2**20 // len(atom)))
            started = time.process_time()
            memory.recall((atom * 100_000)[:100_000])
            assert time.process_time() - started < 20
