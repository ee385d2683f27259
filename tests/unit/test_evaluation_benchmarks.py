"""The benchmarks' own logic: what fails, what is shown only, what is resumed and what refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import ask_dev, recall_floors
from benchmarks.recall_floors import CONFIGURATIONS, SETS, Check, Report

from ecphoryrag.errors import EcphoryError
from ecphoryrag.evaluation.dataset import Question
from ecphoryrag.types import Answer, Chunk, Evidence, Recall, Usage
from ecphoryrag.types import Path as Reached

STATIC, NO_TITLES = CONFIGURATIONS[0], CONFIGURATIONS[1]


def reports(recall: float, all_gold: float, low: float, seconds: float = 1.0) -> dict[str, Report]:
    report: Report = {
        "methods": {"ecphory": {"recall@5": recall, "all@5": all_gold, "p50_ms": 1.0, "p95_ms": 2.0}},
        "index": {
            "seconds": seconds,
            "rss_mb": 100.0,
            "store_bytes": 20,
            "text_bytes": 10,
            "open_and_first_recall_ms": 5.0,
            "reopen_and_first_recall_ms": 5.0,
        },
        "comparison": {"baseline": "bm25", "low": low},
    }
    return {name: dict(report) for name in SETS}


def missed(checks: list[Check]) -> list[str]:
    return [check.what for check in checks if check.decides and not check.holds]


def test_the_floors_are_those_that_were_promised() -> None:
    floors = {
        each.name: {name: tuple(bounds.values()) for name, bounds in each.floors.items()} for each in CONFIGURATIONS
    }
    assert floors == {
        "static": {"recall@5": (0.69, 0.895, 0.885, 0.835), "all@5": (0.40, 0.71, 0.80, 0.65)},
        "no-titles": {"recall@5": (0.65, 0.83, 0.82, 0.78)},
        "minilm": {"recall@5": (0.75, 0.91, 0.91, 0.865)},
        "none": {"recall@5": (0.63, 0.87, 0.87, 0.80)},
    }
    assert SETS == ("musique", "2wikimultihopqa", "hotpotqa")


def test_good_figures_miss_nothing_and_bad_ones_every_floor() -> None:
    assert missed(recall_floors.floors(STATIC, reports(0.95, 0.9, 0.01))) == []
    assert len(missed(recall_floors.floors(STATIC, reports(0.5, 0.3, 0.0)))) == 4 + 4 + 3


def test_the_mean_has_a_floor_of_its_own() -> None:
    only = reports(0.95, 0.9, 0.1)
    for name, recall in zip(SETS, (0.69, 0.895, 0.885), strict=True):
        only[name] = reports(recall, 0.9, 0.1)[name]
    assert missed(recall_floors.floors(STATIC, only)) == ["static: recall@5, mean of the sets"]
    one = {"musique": only["musique"]}
    assert not any("mean" in check.what for check in recall_floors.floors(STATIC, one))


def test_an_interval_that_touches_zero_decides_in_the_default_configuration_alone() -> None:
    touching = reports(0.95, 0.9, 0.0)
    assert len(missed(recall_floors.floors(STATIC, touching))) == 3
    assert missed(recall_floors.floors(NO_TITLES, touching)) == []


def test_a_figure_that_is_not_there_is_missed() -> None:
    broken = reports(0.95, 0.9, 0.1)
    broken["musique"]["methods"] = {"ecphory": {"unavailable": "why"}}
    broken["musique"]["comparison"] = None
    assert {what.split(": ", 1)[1] for what in missed(recall_floors.floors(STATIC, broken))} >= {
        "recall@5, musique",
        "recall@5, mean of the sets",
        "low end of ecphory - no flat method, musique",
    }


def test_a_run_that_failed_misses_all_its_floors() -> None:
    failed = reports(0.95, 0.9, 0.1) | {"hotpotqa": {}}
    assert [what for what in missed(recall_floors.floors(STATIC, failed)) if "hotpotqa" in what] == [
        "static: recall@5, hotpotqa",
        "static: all@5, hotpotqa",
        "static: low end of ecphory - no flat method, hotpotqa",
    ]
    assert not any(check.holds for check in recall_floors.times(STATIC, failed, strict=True))


def test_time_is_shown_and_decides_only_when_strict() -> None:
    slow = reports(0.95, 0.9, 0.1, seconds=31)
    shown = recall_floors.times(STATIC, slow, strict=False)
    assert missed(shown) == []
    assert any("missed (shown only)" in check.line() for check in shown)
    assert missed(recall_floors.times(STATIC, slow, strict=True)) == ["hotpotqa: indexing, s"]
    assert recall_floors.times(NO_TITLES, slow, strict=True) == []


def test_importing_the_package_is_quick() -> None:
    assert recall_floors.import_seconds() < 0.3


@pytest.mark.parametrize("script", ["recall_floors.py", "ask_dev.py"])
def test_without_data_it_is_skipped_with_a_word(tmp_path: Path, script: str) -> None:
    command = [sys.executable, f"benchmarks/{script}", "--data", str(tmp_path / "nowhere")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "is not there; skipped" in done.stdout


def test_rows_of_the_same_run_are_resumed_and_of_another_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    header: ask_dev.Row = {"questions a set": 2, "model": "m", "commit": "abc"}
    assert ask_dev.read_rows(path, header) == []
    ask_dev.append(path, {"id": "q1", "em": 1.0})
    assert ask_dev.read_rows(path, header | {"questions a set": 20}) == [{"id": "q1", "em": 1.0}]
    with pytest.raises(EcphoryError, match="a run with other commit"):
        ask_dev.read_rows(path, header | {"commit": "def"})


def test_a_row_cut_short_by_a_crash_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    header: ask_dev.Row = {"model": "m"}
    ask_dev.read_rows(path, header)
    ask_dev.append(path, {"id": "q1"})
    with path.open("a") as file:
        file.write('{"id": "q2", "em"')
    assert ask_dev.read_rows(path, header) == [{"id": "q1"}]
    ask_dev.append(path, {"id": "q2"})
    assert ask_dev.read_rows(path, header) == [{"id": "q1"}, {"id": "q2"}]


def an_answer(text: str | None) -> Answer:
    evidence = tuple(
        Evidence(number, Chunk(document, 0, "x", 0, 1), "", 1.0, {}, Reached("direct"))
        for number, document in enumerate(["a", "a", "c"], 1)
    )
    return Answer("q", text, "", evidence, (1,), Recall("q", "ecphory", evidence), Usage(1, 100, 20))


def test_a_row_tells_what_was_in_the_prompt() -> None:
    row = ask_dev.row_of(an_answer("The Iskel"), Question("q1", "q", ("a", "b"), ("Iskel", "x")), 2.0)
    assert (row["em"], row["f1"], row["gold in the prompt"]) == (1.0, 1.0, 0.5)
    assert (row["input tokens"], row["output tokens"], row["seconds"]) == (100, 20, 2.0)
    assert row["evidence"] == ["a", "c"]


def test_the_summary_counts_an_abstention_and_an_error_as_wrong() -> None:
    question = Question("q1", "q", ("a", "c"), ("Iskel",))
    rows: list[ask_dev.Row] = [
        {"set": "musique", "id": "1", **ask_dev.row_of(an_answer("Iskel"), question, 2.0)},
        {"set": "musique", "id": "2", **ask_dev.row_of(an_answer(None), question, 4.0)},
        {
            "set": "musique",
            "id": "3",
            "error": "x",
            "answer": None,
            "em": 0.0,
            "f1": 0.0,
            "gold in the prompt": 0.0,
            "seconds": 0.0,
        },
    ]
    figures = ask_dev.summary(rows)
    assert figures["em"] == pytest.approx(1 / 3)
    assert (figures["answered"], figures["errors"], figures["all gold in the prompt"]) == (1, 1, 2)
    assert figures["em with all gold"] == 0.5
    assert figures["seconds"] == 2.0
    markdown = ask_dev.table({"model": "m", "commit": "c"}, {"all": figures, "none": ask_dev.summary([])})
    assert "| all | 3 | 0.333 |" in markdown
    assert "| none | 0 | - |" in markdown
    json.dumps(figures, allow_nan=False)
