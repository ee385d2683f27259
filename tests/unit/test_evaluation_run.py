"""A whole evaluation on a small corpus, through the real memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ecphoryrag.errors import EcphoryError, InputError
from ecphoryrag.evaluation import metrics
from ecphoryrag.evaluation.command import run
from ecphoryrag.evaluation.metrics import FIGURES
from ecphoryrag.evaluation.report import EvaluationReport
from ecphoryrag.evaluation.run import best_flat
from ecphoryrag.settings import Settings

CORPUS = [
    ("vale", "The Silent Vale", "The Silent Vale is a 1931 film directed by Orla Menken."),
    ("orla", "Orla Menken", "Orla Menken was a director. She was the daughter of Brida Sollas."),
    ("brida", "Brida Sollas", "Brida Sollas was a painter from Dunlisk."),
    ("dunlisk", "Dunlisk", "Dunlisk is a harbour town on the river Iskel."),
    ("iskel", "Iskel", "The Iskel is a river that rises near Kettlemoor."),
    ("rope", "Haskett", "Haskett makes ropes of hemp and nothing else."),
]
QUESTIONS = [
    ("q1", "Who is the mother of the director of The Silent Vale?", ["vale", "orla"]),
    ("q2", "On which river lies the home town of Brida Sollas?", ["brida", "dunlisk"]),
    ("q3", "???", ["rope"]),
]


@pytest.fixture
def data(tmp_path: Path) -> tuple[Path, Path]:
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    records = [{"id": name, "title": title, "text": text} for name, title, text in CORPUS]
    corpus.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    asked = [{"id": name, "question": text, "gold": gold} for name, text, gold in QUESTIONS]
    questions.write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    return corpus, questions


def evaluated(
    data: tuple[Path, Path],
    *methods: str,
    encoder: str = "static",
    titles: bool = True,
    limit: int | None = None,
    output: Path | None = None,
) -> EvaluationReport:
    return run(*data, methods, encoder=encoder, titles=titles, limit=limit, output=output, settings=Settings())


def test_every_method_is_measured_and_written(data: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    report = evaluated(data, "ecphory", "paper", "dense", "bm25", "hybrid", output=output)
    written = json.loads(output.read_text(encoding="utf-8"))
    assert list(written["methods"]) == ["ecphory", "paper", "dense", "bm25", "hybrid"]
    for figures in written["methods"].values():
        assert all(0 <= figures[name] <= 1 for name in FIGURES)
        assert 0 < figures["p50_ms"] <= figures["p95_ms"]
        assert figures["errors"] == 0
    assert written["methods"]["ecphory"]["recall@5"] == pytest.approx(2 / 3)
    index = written["index"]
    assert (index["passages"], index["llm_tokens"]) == (6, 0)
    assert index["entities"] > 5
    assert index["mentions"] >= index["entities"]
    assert min(index["seconds"], index["rss_mb"], index["store_bytes"], index["open_and_first_recall_ms"]) > 0
    assert index["reopen_and_first_recall_ms"] > 0
    assert index["text_bytes"] == sum(len(text) for _, _, text in CORPUS)
    assert [row["id"] for row in written["questions"]] == ["q1", "q2", "q3"]
    assert report.comparison is not None
    assert written["comparison"]["baseline"] == report.comparison.baseline
    assert written["comparison"] in written["comparisons"]
    assert str(tmp_path) not in output.read_text(encoding="utf-8")


def test_a_question_that_recalls_nothing_counts_as_wrong_and_says_why(data: tuple[Path, Path]) -> None:
    report = evaluated(data, "bm25")
    row = report.questions[2].outcomes["bm25"]
    assert row.documents == ()
    assert row.reason
    assert row.figures["recall@5"] == 0
    assert report.methods[0].empty == 1
    assert report.comparison is None


def test_without_vectors_what_needs_them_cannot_run(data: tuple[Path, Path]) -> None:
    report = evaluated(data, "dense", "paper", "ecphory", "hybrid", encoder="none")
    for method in ("dense", "paper"):
        result = report.result(method)
        assert result is not None
        assert result.unavailable is not None
        assert "vectors" in result.unavailable
        assert method not in report.questions[0].outcomes
    assert report.comparison is not None
    assert report.comparison.baseline == "hybrid"
    assert report.index.open_and_first_recall_ms is not None


def test_titles_are_blank_for_every_method_and_gold_stays(data: tuple[Path, Path]) -> None:
    titled, untitled = (evaluated(data, "bm25", titles=titles, limit=1) for titles in (True, False))
    assert untitled.index.mentions < titled.index.mentions
    assert untitled.questions[0].gold == titled.questions[0].gold == ("vale", "orla")
    assert untitled.settings["titles"] is False


def test_two_runs_give_the_same_rankings_and_figures(data: tuple[Path, Path]) -> None:
    first, second = (evaluated(data, "ecphory", "hybrid") for _ in range(2))
    assert [result.figures for result in first.methods] == [result.figures for result in second.methods]
    assert first.comparison == second.comparison


def test_an_unknown_method_or_encoder_is_refused(data: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="unknown method 'bm52'"):
        evaluated(data, "bm52")
    with pytest.raises(InputError, match="unknown encoder: 'word2vec' begins with none of `static`, `minilm`, `none`"):
        evaluated(data, "bm25", encoder="word2vec")


def test_a_report_that_cannot_be_written_is_refused_before_any_work(data: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere does not exist"):
        evaluated(data, "bm25", output=tmp_path / "nowhere" / "report.json")
    with pytest.raises(InputError, match="it is a folder"):
        evaluated(data, "bm25", output=tmp_path)


def test_a_missing_extra_stops_before_any_work(data: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    with pytest.raises(EcphoryError, match=r"ecphoryrag\[eval\]"):
        evaluated(data, "bm25")


def test_the_best_flat_method_is_the_first_of_the_highest() -> None:
    scores = {
        name: {"recall@5": np.array(values)}
        for name, values in {
            "ecphory": [1.0, 1.0],
            "dense": [0.0, 0.5],
            "bm25": [0.5, 0.5],
            "hybrid": [1.0, 0.0],
        }.items()
    }
    assert best_flat(scores) == "bm25"
    assert best_flat({"ecphory": scores["ecphory"], "paper": scores["bm25"]}) is None
