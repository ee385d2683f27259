"""The soak itself, tried with a script in place of the model, on a corpus of a few passages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import soak, soak_parts
from benchmarks.soak_parts import chosen, ordeal_documents

from ecphoryrag.evaluation.dataset import Dataset, load_dataset
from ecphoryrag.settings import ChunkSettings
from tests.support.local_model import local_model
from tests.support.ordeals import Texts

TOWNS = ("Dunlisk", "Aldersund", "Tessamir", "Corrabel", "Kettlemoor", "Skerrowen", "Iskelby", "Marrow")
PASSAGES = 30
QUESTIONS = 20
CUT = ChunkSettings(budget=96, overlap=0)


def passage(number: int) -> str:
    here, there = TOWNS[number % len(TOWNS)], TOWNS[(number + 3) % len(TOWNS)]
    return " ".join(
        f"In {1800 + number + year} Ilka Varnholt {number} went from {here} to {there}, and built a light there that "
        f"Corvin Aldermay {number} kept until the harbour was closed."
        for year in range(1 + number % 3)
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "hotpotqa"
    folder.mkdir()
    corpus = [{"id": f"p{n:02}", "title": f"Log {n}", "text": passage(n)} for n in range(PASSAGES)]
    asked = [
        {"id": f"q{n}", "question": f"Who kept the light of Log {n}?", "gold": [f"p{n:02}", f"p{n + 1:02}"]}
        for n in range(QUESTIONS)
    ]
    for name, records in (("corpus", corpus), ("questions", asked)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder.parent


@pytest.fixture(scope="module")
def dataset(data: Path) -> Dataset:
    return load_dataset(data / "hotpotqa" / "corpus.jsonl", data / "hotpotqa" / "questions.jsonl")


def test_the_passages_are_gold_ones_and_others_and_every_question_on_them_is_asked(dataset: Dataset) -> None:
    documents, questions = chosen(dataset, 20)
    ids = {document.id for document in documents}
    assert len(documents) == 20
    assert {id_ for question in dataset.questions[:16] for id_ in question.gold} <= ids
    assert questions == [question for question in dataset.questions if set(question.gold) <= ids]
    assert [document.id for document in documents] == sorted(ids)
    few, _ = chosen(dataset, 5)
    assert len(few) == 5


@pytest.mark.parametrize("chunks", [1, 2, 7, 20])
def test_the_ordeals_have_as_many_chunks_as_asked(dataset: Dataset, chunks: int) -> None:
    documents = ordeal_documents(dataset, CUT, chunks)
    assert len(Texts(documents, CUT).chunks) == chunks
    assert len({document.id for document in documents}) == len(documents)


def test_every_part_runs_and_is_recorded_without_a_path(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", str(data), "--server", "scripted", "--work", str(tmp_path / "work"), "--results", str(tmp_path)]
    assert soak.main([*words, "--only", "chaos", "--chunks", "12", "--timeout", "0.4", "--seed", "3"]) == 0
    assert soak.main([*words, "--only", "kills", "--chunks", "6", "--kills", "1"]) == 0
    soak.main([*words, "--only", "extraction", "--passages", "20"])  # a script's replies are not what is estimated
    printed = capsys.readouterr().out
    records = json.loads((tmp_path / "soak.json").read_text(encoding="utf-8"))
    assert [record["part"] for record in records] == ["chaos", "kills", "extraction"]
    assert records[0]["figures"]["chunks"] == 12
    assert records[1]["figures"]["kills"] == 1
    figures = records[2]["figures"]
    assert (figures["passages"], figures["valid"], figures["names in the text"]) == (20, 1.0, 1.0)
    assert figures["calls"] == figures["chunks"] == 20
    assert figures["estimate, cold"]["calls"] == 0.0
    summary = (tmp_path / "soak.md").read_text(encoding="utf-8")
    assert [line for line in summary.splitlines() if line.startswith("## ")] == [
        "## extraction",
        "## chaos",
        "## kills",
    ]
    for text in (summary, json.dumps(records)):
        assert str(tmp_path) not in text
        assert str(soak.ROOT) not in text
    assert "holds: no document is done while incomplete" in printed


def test_what_was_done_is_not_done_again(data: Path, tmp_path: Path) -> None:
    words = ["--data", str(data), "--server", "scripted", "--work", str(tmp_path), "--only", "extraction"]
    soak.main([*words, "--passages", "12"])
    soak.main([*words, "--passages", "12"])
    first, again = json.loads((tmp_path / "scripted" / "soak.json").read_text(encoding="utf-8"))
    assert again["figures"] == first["figures"]


@pytest.mark.model
def test_the_local_model_behind_a_server_extracts_and_is_held_to_the_schema(tmp_path: Path) -> None:
    local_model()
    folder = tmp_path / "hotpotqa"
    folder.mkdir()
    only = {"id": "one", "title": "Dunlisk", "text": "Dunlisk is a town on the Iskel."}
    question = {"id": "q", "question": "On which river is Dunlisk?", "gold": ["one"]}
    (folder / "corpus.jsonl").write_text(json.dumps(only), encoding="utf-8")
    (folder / "questions.jsonl").write_text(json.dumps(question), encoding="utf-8")
    soak.main(["--data", str(tmp_path), "--work", str(tmp_path), "--results", str(tmp_path), "--only", "extraction"])
    (record,) = json.loads((tmp_path / "soak.json").read_text(encoding="utf-8"))
    figures = record["figures"]
    assert (figures["valid"], figures["names in the text"], figures["empty chunks"]) == (1.0, 1.0, 0)
    assert figures["calls"] >= 1
    assert figures["entities"] >= 1
    assert figures["estimate, cold"]["input"] == 0.0
    assert figures["replies held to the schema by"] in {"grammar", "json_schema"}


def test_a_missed_floor_is_an_error(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(soak_parts.PARTS, "chaos", lambda _: ({"chunks": 1}, {"all are done": False}))
    words = ["--data", str(data), "--server", "scripted", "--work", str(tmp_path), "--only", "chaos"]
    assert soak.main(words) == 1
    assert "MISSED: all are done" in (tmp_path / "scripted" / "soak.md").read_text(encoding="utf-8")


def test_without_the_data_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--data", str(tmp_path / "nowhere")]) == 0
    assert "is not there; skipped" in capsys.readouterr().out
