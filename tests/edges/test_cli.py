"""The command line in this process: what each command prints, as text and as JSON, and its exit code."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ecphoryrag import Memory
from ecphoryrag.cli import run
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.models.fakes import ScriptedGenerator
from ecphoryrag.settings import Settings
from ecphoryrag.types import AddReport, Recall

CORPUS: list[dict[str, Any]] = [
    {
        "id": "curie",
        "title": "Marie Curie",
        "text": "Marie Curie was born in Warsaw in 1867.",
        "lang": "en",
        "year": 1867,
    },
    {"id": "warsaw", "title": "Warsaw", "text": "Warsaw is the capital of Poland, on the Vistula.", "lang": "en"},
    {"id": "vistule", "title": "", "text": "La Vistule est un fleuve.", "lang": "fr", "tags": ["river", "water"]},
]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out.count("\n") == 1
        return json.loads(self.out)


Ecphory = Callable[..., Ran]


@pytest.fixture
def ecphory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ecphory:
    """The command in an empty folder, with the smallest encoder and no language model."""
    for variable in list(os.environ):
        if variable.upper().startswith("ECPHORY_"):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ECPHORY_ENCODER", "none")
    monkeypatch.setenv("ECPHORY_GENERATOR", "none")

    def call(*arguments: str, stdin: str | bytes | None = None) -> Ran:
        if stdin is not None:
            content = stdin.encode() if isinstance(stdin, str) else stdin
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        code = run(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert "\x1b" not in captured.out + captured.err
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def filled(ecphory: Ecphory) -> Ecphory:
    Path("corpus.jsonl").write_text("\n".join(json.dumps(record) for record in CORPUS), encoding="utf-8")
    assert ecphory("add", "corpus.jsonl").code == ExitCode.OK
    return ecphory


def test_add_counts_and_names_what_failed_and_what_was_left_out(ecphory: Ecphory) -> None:
    docs = Path("docs")
    docs.mkdir()
    (docs / "a.txt").write_text("Ada Lovelace.", encoding="utf-8")
    (docs / "b.pdf").write_bytes(b"%PDF-")
    (docs / ".hidden").write_text("x", encoding="utf-8")
    ran = ecphory("add", "docs")
    assert ran.code == ExitCode.SOME_FAILED
    assert "left out: docs/.hidden: hidden\n" in ran.out
    assert "failed: docs/b.pdf: PDF is not yet supported" in ran.out
    assert "1 added, 0 updated, 0 unchanged, 1 failed, 1 left out\n" in ran.out
    (docs / "b.pdf").unlink()
    assert "0 added, 0 updated, 1 unchanged, 0 failed, 1 left out\n" in ecphory("add", "docs").out
    (docs / "a.txt").write_text("?!", encoding="utf-8")
    ran = ecphory("add", "docs")
    assert ran.code == ExitCode.OK
    assert "no names found: a.txt, chunk 0\n" in ran.out
    assert "0 added, 1 updated, 0 unchanged" in ran.out


def test_chunks_without_names_are_one_line_a_document(ecphory: Ecphory) -> None:
    ran = ecphory("add", "-", stdin=("?! " * 2000 + "Ada Lovelace. " + "?! " * 2000).encode())
    told = [line for line in ran.out.splitlines() if line.startswith("no names found: ")]
    assert len(told) == 1
    assert re.search(r", chunks 0-\d+, \d+-\d+$", told[0])


def test_add_as_json_is_the_report(ecphory: Ecphory) -> None:
    ran = ecphory("add", "-", "none.txt", "--json", stdin='{"id": "x", "text": "Ada Lovelace."}\n{"id": 1}')
    assert ran.code == ExitCode.SOME_FAILED
    report = ran.json
    assert set(report) == set(AddReport.__dataclass_fields__)
    assert report["added"] == ["x"]
    assert report["failed"] == [
        {"source": "standard input:2", "reason": 'the record has no "text"; a record needs at least {"text": "..."}'},
        {"source": "none.txt", "reason": "no such file or folder"},
    ]
    assert report["usage"]["input_tokens"] == 0


def test_standard_input_is_read_as_it_is_told(ecphory: Ecphory) -> None:
    content = '{"id": "x", "text": "Ada."}'
    assert ecphory("add", "-", "--format", "text", "--json", stdin=content).json["added"] != ["x"]
    assert ecphory("add", "-", "--format", "jsonl", "--json", stdin=content).json["added"] == ["x"]
    assert ecphory("add", "-", "--format", "xml", stdin=content).code == ExitCode.USAGE


def test_an_interrupted_add_says_what_is_kept(ecphory: Ecphory, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> AddReport:
        return AddReport(added=("a",), interrupted=True)

    monkeypatch.setattr(Memory, "add_paths", interrupted)
    ran = ecphory("add", "x.txt")
    assert ran.code == ExitCode.INTERRUPTED
    assert "Interrupted: what is counted below is kept" in ran.out
    assert ecphory("add", "x.txt", "--json").json["interrupted"] is True


def test_ctrl_c_in_any_command_is_no_traceback(filled: Ecphory, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "recall", interrupted)
    ran = filled("recall", "Who?")
    assert (ran.code, ran.out, ran.err) == (ExitCode.INTERRUPTED, "", "Interrupted.\n")


def test_ctrl_c_while_the_command_is_loaded_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ecphoryrag.cli.app.app", interrupted)
    assert run(["status"]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "Interrupted.\n"


def test_recall_shows_ranked_chunks_with_place_and_path(filled: Ecphory) -> None:
    ran = filled("recall", "Where was Marie Curie born?", "-k", "2")
    assert ran.code == ExitCode.OK
    assert "[1]  curie 0-39  Marie Curie  (score " in ran.out
    assert "\n    Marie Curie was born in Warsaw in 1867.\n    path: " in ran.out
    assert "[2]" in ran.out
    assert "[3]" not in ran.out
    assert "\nEntities:\n1. " in ran.out
    assert "method ecphory; " in ran.out


def test_an_order_that_is_not_that_of_the_scores_is_explained(filled: Ecphory, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "recall.paper.chunk_order chooses"
    assert said not in filled("recall", "Where was Marie Curie born?").out
    recall = Memory.recall

    def turned(memory: Memory, question: str, **how: Any) -> Recall:
        found = recall(memory, question, **how)
        assert len({evidence.score for evidence in found.chunks}) > 1
        return replace(found, chunks=found.chunks[::-1])

    monkeypatch.setattr(Memory, "recall", turned)
    assert said in filled("recall", "Where was Marie Curie born?").out


def test_recall_explains_each_path_as_a_tree(filled: Ecphory) -> None:
    ran = filled("recall", "Which river is in the country whose capital Marie Curie was born in?", "--explain")
    recalled = filled("recall", "Which river is in the country whose capital Marie Curie was born in?", "--json").json
    assert ran.out.count("reached by: ") == len(recalled["chunks"])
    assert "[1] reached by: " in ran.out
    assert "signals\n" in ran.out
    drawn = [line for line in ran.out.splitlines() if line.lstrip("│ ").startswith(("├── ", "└── "))]
    steps = sum(len(chunk["path"]["steps"]) for chunk in recalled["chunks"])
    signals = sum(len(chunk["signals"]) + 1 for chunk in recalled["chunks"])
    assert len(drawn) == steps + signals
    assert steps > 0


@pytest.mark.parametrize("method", ["ecphory", "bm25"])
def test_recall_as_json_is_the_whole_recall(filled: Ecphory, method: str) -> None:
    recalled = filled("recall", "Where was Marie Curie born?", "--method", method, "-k", "1", "--json").json
    assert recalled["method"] == method
    assert recalled["question"] == "Where was Marie Curie born?"
    (chunk,) = recalled["chunks"]
    assert chunk["chunk"]["document_id"] == "curie"
    text = CORPUS[0]["text"]
    assert chunk["chunk"]["text"] == text[chunk["chunk"]["start"] : chunk["chunk"]["end"]]
    assert chunk["metadata"] == {"lang": "en", "year": 1867}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (["lang=fr"], {"vistule"}),
        (["year=1867"], {"curie"}),
        (['year="1867"'], set()),
        (["lang=fr", "lang=en"], {"curie", "warsaw", "vistule"}),
        (["lang=en", "year=1867"], {"curie"}),
        (["tags=water"], {"vistule"}),
        (['lang=["fr"]'], {"vistule"}),
    ],
)
def test_filters_by_metadata(filled: Ecphory, where: list[str], expected: set[str]) -> None:
    options = [part for pair in where for part in ("--where", pair)]
    assert {line["id"] for line in filled("list", *options, "--json").json["documents"]} == expected
    recalled = filled("recall", "Warsaw Vistule", *options, "--json").json
    assert {chunk["chunk"]["document_id"] for chunk in recalled["chunks"]} == expected


def test_ask_without_a_model_gives_the_evidence_and_the_reason(filled: Ecphory) -> None:
    ran = filled("ask", "Where was Marie Curie born?")
    assert ran.code == ExitCode.NO_ANSWER
    assert ran.out.startswith("No answer: no language model is configured")
    assert "[1]  curie 0-39" in ran.out
    answer = filled("ask", "Where was Marie Curie born?", "--json")
    assert answer.code == ExitCode.NO_ANSWER
    assert answer.json["text"] is None
    assert "no language model" in answer.json["reason"]
    assert answer.json["evidence"][0]["chunk"]["document_id"] == "curie"


@pytest.fixture
def scripted(filled: Ecphory, monkeypatch: pytest.MonkeyPatch) -> Ecphory:
    def make(_settings: Settings, _name: str | None = None) -> ScriptedGenerator:
        return ScriptedGenerator(['{"reasoning": "It says so.", "answer": "Warsaw", "evidence": [1]}'])

    monkeypatch.setattr("ecphoryrag.models.registry.make_generator", make)
    return filled


def test_ask_shows_answer_reasoning_cited_evidence_and_cost(scripted: Ecphory) -> None:
    ran = scripted("ask", "Where was Marie Curie born?")
    assert ran.code == ExitCode.OK
    assert ran.out.startswith("Answer: Warsaw\nReasoning: It says so.\n")
    assert "[1]* curie 0-39  Marie Curie" in ran.out
    assert "[2]  " in ran.out
    assert "    path: " in ran.out
    last = ran.out.splitlines()[-1]
    assert "tokens in" in last
    assert last.endswith("; model scripted")
    assert " s" in last


def test_ask_as_json_is_the_whole_answer(scripted: Ecphory) -> None:
    answer = scripted("--json", "ask", "Where was Marie Curie born?").json
    assert (answer["text"], answer["cited"], answer["model"]) == ("Warsaw", [1], "scripted")
    assert answer["usage"]["calls"] == 1
    assert answer["recall"]["method"] == "ecphory"


def test_list_is_one_line_a_document_with_tabs(filled: Ecphory) -> None:
    assert filled("list").out.splitlines() == [
        "curie\tMarie Curie\t1\t39\tlang=en, year=1867",
        'vistule\t\t1\t25\tlang=fr, tags=["river", "water"]',
        "warsaw\tWarsaw\t1\t48\tlang=en",
    ]
    assert [item["id"] for item in filled("list", "--json").json["documents"]] == ["curie", "vistule", "warsaw"]


def test_show_has_the_document_its_chunks_and_its_names(filled: Ecphory) -> None:
    ran = filled("show", "curie")
    assert ran.code == ExitCode.OK
    assert ran.out.startswith("id: curie\ntitle: Marie Curie\nsource: corpus.jsonl:1\nmetadata: lang=en, year=1867\n")
    assert "chunk 0, 0-39\n    Marie Curie was born in Warsaw in 1867.\n" in ran.out
    assert "- Warsaw [" in ran.out
    assert "text 24-30" in ran.out
    shown = filled("show", "curie", "--json").json
    assert shown["document"]["text"] == CORPUS[0]["text"]
    assert len(shown["document"]["content_hash"]) == 32
    (chunk,) = shown["chunks"]
    assert {"Warsaw", "Marie Curie"} <= {mention["name"] for mention in chunk["mentions"]}


def test_forget_is_all_or_none(filled: Ecphory) -> None:
    ran = filled("forget", "curie", "nobody")
    assert ran.code == ExitCode.ERROR
    assert "'nobody'" in ran.err
    assert len(filled("list").out.splitlines()) == 3
    assert filled("forget", "curie", "warsaw", "curie").out == "2 forgotten\n"
    assert filled("forget", "vistule", "--json").json["forgotten"] == ["vistule"]
    assert filled("list").out == ""
    ran = filled("recall", "Where?")
    assert ran.code == ExitCode.OK
    assert ran.out.startswith("Nothing recalled: ")


def test_status_counts(filled: Ecphory) -> None:
    ran = filled("status")
    assert "documents: 3\n" in ran.out
    assert "encoder: none " in ran.out
    found = filled("status", "--json").json
    assert (found["documents"], found["chunks"], found["encoder"]["name"]) == (3, 3, "none")


def test_config_says_where_each_value_came_from(ecphory: Ecphory, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("[recall]\nk = 3\n", encoding="utf-8")
    ran = ecphory("config", "--config", "x.toml", "--store", "y.ecphory")
    lines = {line.split("\t")[0]: line.split("\t")[1:] for line in ran.out.splitlines()}
    assert lines["recall.k"][:2] == ["3", "file (x.toml)"]
    assert lines["store"][:2] == ["y.ecphory", "argument"]
    assert lines["encoder"][:2] == ["none", "environment (ECPHORY_ENCODER)"]
    assert all(reason for _, _, reason in lines.values())
    (k,) = [item for item in ecphory("config", "--json").json["settings"] if item["name"] == "recall.k"]
    assert (k["value"], k["origin"]) == (5, "default")


def test_options_may_stand_before_the_command_or_after_it(ecphory: Ecphory) -> None:
    Path("a.txt").write_text("Ada Lovelace.", encoding="utf-8")
    assert ecphory("--store", "x.ecphory", "add", "a.txt").code == ExitCode.OK
    assert Path("x.ecphory").exists()
    assert ecphory("status", "--store", "x.ecphory", "--json").json["documents"] == 1
    assert ecphory("--json", "--store", "none.ecphory", "status", "--store", "x.ecphory").json["documents"] == 1


@pytest.mark.parametrize(
    "arguments", [("ask", "q"), ("recall", "q"), ("list",), ("show", "x"), ("forget", "x"), ("status",)]
)
def test_without_a_store_nothing_is_made_and_the_hint_is_given(ecphory: Ecphory, arguments: tuple[str, ...]) -> None:
    ran = ecphory(*arguments)
    assert (ran.code, ran.out) == (ExitCode.ERROR, "")
    assert ran.err.startswith("Error: ")
    assert "memory.ecphory" in ran.err
    assert "`ecphory add PATH...` makes one" in ran.err
    assert not Path("memory.ecphory").exists()
    ran = ecphory(*arguments, "--json")
    assert (ran.code, ran.out) == (ExitCode.ERROR, "")
    assert json.loads(ran.err)["error"]["type"] == "StoreNotFound"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "nobody"), "nobody"),
        (("recall", "q", "--encoder", "static"), "encoder"),
        (("list", "--config", "none.toml"), "none.toml"),
        (("list", "--store", "corpus.jsonl"), "corpus.jsonl"),
        (("model", "path", "--config", "local.toml"), "ecphory model fetch"),
        (("eval", "--corpus", "none.jsonl", "--questions", "none.jsonl"), "none.jsonl"),
        (("eval", "--corpus", "corpus.jsonl", "--questions", "corpus.jsonl", "--methods", "magic"), "magic"),
    ],
)
def test_expected_errors_are_one_line_and_code_1(filled: Ecphory, arguments: tuple[str, ...], said: str) -> None:
    Path("local.toml").write_text("[models.local]\ncache = 'nothing-here'\n", encoding="utf-8")
    ran = filled(*arguments)
    assert (ran.code, ran.out) == (ExitCode.ERROR, "")
    assert ran.err.startswith("Error: ")
    assert said in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("add",),
        ("ask",),
        ("recall", "q", "-k", "0"),
        ("recall", "q", "--method", "magic"),
        ("recall", "q", "--where", "novalue"),
        ("recall", "q", "--where", "=x"),
        ("add", "x", "--encoder", "magic"),
        ("list", "--nope"),
        ("eval",),
    ],
)
def test_a_wrong_command_line_is_code_2(filled: Ecphory, arguments: tuple[str, ...]) -> None:
    ran = filled(*arguments)
    assert ran.code == ExitCode.USAGE
    assert "Usage: ecphory" in ran.out + ran.err


def test_control_characters_of_a_document_do_not_reach_the_terminal(ecphory: Ecphory) -> None:
    record = {"id": "x\x1b[2Jy\nz", "title": "T\tt", "text": "Ada\x1b]0;owned\x07 Lovelace\u202e.\nNext \x9bline."}
    ecphory("add", "-", stdin=json.dumps(record))
    for command in (("list",), ("recall", "Ada"), ("show", str(record["id"])), ("recall", "Ada", "--explain")):
        out = ecphory(*command).out
        assert not set(out) & set("\x1b\x07\x9b\u202e\r"), command
        assert "x\\x1b[2Jy\\nz" in out
    assert ecphory("list", "--json").json["documents"][0]["id"] == record["id"]


def test_long_lines_are_neither_wrapped_nor_cut(ecphory: Ecphory) -> None:
    text = "Ada Lovelace " * 30 + "end."
    ecphory("add", "-", stdin=json.dumps({"id": "i" * 200, "text": text}))
    assert f"    {text}\n" in ecphory("recall", "Ada Lovelace").out
    assert ecphory("list").out.startswith("i" * 200 + "\t")


def test_eval_measures_and_writes(filled: Ecphory) -> None:
    question = {"id": "q", "question": "Where was Marie Curie born?", "answers": ["Warsaw"], "gold": ["curie"]}
    Path("q.jsonl").write_text(json.dumps({**question, "type": "x"}), encoding="utf-8")
    asked = ("eval", "--corpus", "corpus.jsonl", "--questions", "q.jsonl", "--methods", "bm25, ecphory", "--limit", "1")
    ran = filled(*asked, "--json", "out.json")
    assert ran.code == ExitCode.OK, ran.err
    assert "bm25" in ran.out
    written = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert set(written["methods"]) == {"bm25", "ecphory"}
    ran = filled(*asked, "--json", "-")
    assert ran.json["methods"]["bm25"]["recall@5"] == 1.0
    assert "bm25" in ran.err


def test_model_fetch_of_a_model_that_is_there_prints_its_path(
    ecphory: Ecphory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ecphoryrag.models.fetch.fetch_model", lambda local, progress: tmp_path / "m.gguf")
    monkeypatch.setattr("ecphoryrag.models.fetch.bytes_to_fetch", lambda local: 1_100_000_000)
    ran = ecphory("model", "fetch")
    assert (ran.code, ran.out) == (ExitCode.OK, f"{tmp_path / 'm.gguf'}\n")
    assert "1.10 GB" in ran.err


def test_model_path_is_the_file_that_the_settings_name(ecphory: Ecphory, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("own.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("ECPHORY_MODELS__LOCAL__PATH", "own.gguf")
    assert ecphory("model", "path").out == "own.gguf\n"
    assert ecphory("model", "path", "--json").json == {"path": "own.gguf"}
