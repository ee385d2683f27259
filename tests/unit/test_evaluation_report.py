"""The report as JSON and as text."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from ecphoryrag.evaluation.metrics import FIGURES
from ecphoryrag.evaluation.provenance import machine, peak_memory_mb, source_commit, versions
from ecphoryrag.evaluation.render import render
from ecphoryrag.evaluation.report import (
    Comparison,
    EvaluationReport,
    IndexResult,
    MethodResult,
    QuestionOutcome,
    QuestionRow,
)
from ecphoryrag.evaluation.statistics import Interval


def a_report(comparison: Comparison | None = None) -> EvaluationReport:
    figures = dict.fromkeys(FIGURES, 0.5)
    errors = dict.fromkeys(FIGURES, 0.05)
    index = IndexResult(2.0, 3, 4, 5, 6, 1, 0, 100.0, 2048, 1024, 12.0, 5.0, (("d[/]3", "empty"),))
    row = QuestionRow(
        "q1",
        "Who?",
        ("a",),
        {"ecphory": QuestionOutcome(("a",), figures, 1.5, 10), "bm25": QuestionOutcome(error="bad")},
    )
    methods = (
        MethodResult("ecphory", figures, errors, 1.5, 2.5),
        MethodResult("bm25", figures, errors, 1.0, 2.0, errors=1, empty=2),
        MethodResult("paper", unavailable="no vectors"),
    )
    comparisons = (comparison,) if comparison else ()
    return EvaluationReport(
        methods, index, comparison, comparisons, (row,), {"encoder": "none"}, {"python": "3"}, {"cores": 2}, {}
    )


def text_of(report: EvaluationReport, *, terminal: bool) -> str:
    file = io.StringIO()
    render(report, Console(file=file, force_terminal=terminal, width=160))
    return file.getvalue()


def test_json_has_the_documented_keys() -> None:
    report = a_report(Comparison("ecphory", "bm25", Interval(0.1, 0.02, 0.2))).to_json()
    read = json.loads(json.dumps(report, allow_nan=False))
    assert set(FIGURES) | {"p50_ms", "p95_ms"} <= set(read["methods"]["ecphory"])
    assert read["methods"]["paper"] == {"unavailable": "no vectors"}
    assert {"seconds", "passages", "entities", "mentions", "llm_tokens", "rss_mb", "store_bytes", "text_bytes"} <= set(
        read["index"]
    )
    assert read["index"]["failed"] == [{"id": "d[/]3", "reason": "empty"}]
    assert read["comparison"]["above_zero"] is True
    assert read["questions"][0]["methods"]["ecphory"]["documents"] == ["a"]
    assert read["questions"][0]["methods"]["bm25"]["error"] == "bad"
    assert "questions" not in a_report().to_json(rows=False)


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_that_went_wrong_is_left_out(terminal: bool) -> None:
    text = text_of(a_report(), terminal=terminal)
    assert "paper could not run: no vectors" in text
    assert "bm25 raised on 1 questions" in text
    assert "bm25 recalled nothing for 2 questions" in text
    assert "Not indexed: d[/]3: empty" in text
    assert "No comparison" in text
    assert "2.0 x the text" in text


def test_plain_lines_are_aligned_without_escapes() -> None:
    lines = text_of(a_report(), terminal=False).splitlines()
    assert lines[0].split() == ["method", *FIGURES, "p50", "ms", "p95", "ms"]
    assert lines[1].split() == ["ecphory", *["0.500"] * len(FIGURES), "1.5", "2.5"]
    assert len({len(line) for line in lines[:3]}) == 1
    assert "\x1b" not in text_of(a_report(), terminal=False)


@pytest.mark.parametrize(
    ("interval", "verdict"), [(Interval(0.1, 0.01, 0.2), ", above zero"), (Interval(0.1, 0.0, 0.2), ", not above zero")]
)
def test_the_comparison_is_said_with_its_interval(interval: Interval, verdict: str) -> None:
    text = text_of(a_report(Comparison("ecphory", "hybrid", interval)), terminal=False)
    assert f"ecphory - hybrid (best flat), recall@5: +0.100, 95% interval [{interval.low:+.3f}, +0.200]" in text
    assert verdict in text


def test_peak_memory_is_in_mebibytes() -> None:
    before = peak_memory_mb()
    if before is None:
        pytest.skip("this system does not tell")
    held = bytearray(b"x") * (300 * 2**20)
    after = peak_memory_mb()
    assert after is not None
    assert after >= max(before, 300)
    assert after < before + 800
    del held


def test_provenance_names_versions_and_no_host() -> None:
    assert {"python", "numpy", "ecphoryrag"} <= set(versions())
    assert set(machine()) == {"cores", "system", "machine"}


def test_commit_is_of_the_folder_and_tells_of_changes(tmp_path: Path) -> None:
    assert source_commit(tmp_path) is None

    def git(*words: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-q", "-m", "first")
    commit = source_commit(tmp_path)
    assert commit is not None
    assert len(commit) == 12
    (tmp_path / "file").write_text("2")
    assert source_commit(tmp_path) == f"{commit}+changes"
