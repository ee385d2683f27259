"""`ecphory bench` in this process: what its commands print, write and end with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ecphoryrag.cli import run, work_bench
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.evaluation.bench.run import BenchReport
from tests.support.bench import write_config, write_data

HEAD = 'split = "development"\nencoders = ["none"]\nk = 3\ncode = "version"\n'
BM25 = '[[methods]]\nname = "bm25"\n[methods.parameters]\nk1 = [0.5, 1.2]\n'
DENSE = '[[methods]]\nname = "dense"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    write_config(tmp_path, HEAD, BM25)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_run_compare_freeze_and_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "run", "bench.toml", "--limit", "4"]) == ExitCode.OK
    lines = said(capsys).splitlines()
    assert lines[0].split("\t")[:5] == ["tiny", "none", "bm25[k1=0.5]", "4", "0"]
    assert lines[2] == "8 questions asked, 0 were there, 0 left, 0 failed"
    out = folder / "bench-results" / "bench"
    assert run(["bench", "run", "bench.toml", "--only", "bm25[k1=1.2]", "--json"]) == ExitCode.OK
    done = json.loads(said(capsys))
    assert (done["asked"], done["already"], done["stopped"]) == (2, 8, None)
    assert [row["questions"] for row in done["table"]] == [4, 6]

    assert run(["bench", "compare", f"{out}:bm25[k1=0.5]", f"{out}:bm25[k1=1.2]", "--json"]) == ExitCode.OK
    (compared,) = json.loads(said(capsys))["compared"]
    assert compared["questions"] == 4
    assert set(compared["figures"]["recall@5"]["interval"]) == {"difference", "low", "high"}
    assert run(["bench", "compare", f"{out}:bm25[k1=0.5]", f"{out}:bm25[k1=1.2]"]) == ExitCode.OK
    assert said(capsys).startswith("tiny\tbm25[k1=0.5], none\tbm25[k1=1.2], none\t4\trecall@2\t")

    assert run(["bench", "freeze", str(out), "frozen.json", "--by", "recall@5"]) == ExitCode.ERROR
    assert "is not finished" in capsys.readouterr().err
    assert run(["bench", "run", "bench.toml"]) == ExitCode.OK
    said(capsys)
    assert run(["bench", "freeze", str(out), "frozen.json", "--by", "recall@5"]) == ExitCode.OK
    assert said(capsys).startswith("bm25\tnone\tbm25[k1=")
    assert (folder / "frozen.json").is_file()

    assert run(["bench", "report", str(out), "--out", "page", "--docs", "docs/b.md", "--json"]) == ExitCode.OK
    files = json.loads(said(capsys))["files"]
    assert files == ["page/report.md", "page/report.html", "docs/b.md"]
    assert all((folder / path).stat().st_size for path in files)


def test_a_method_that_cannot_run_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_config(folder, HEAD, DENSE)
    assert run(["bench", "run", "bench.toml", "--out", "out", "--data", "."]) == ExitCode.SOME_FAILED
    assert said(capsys).startswith("cannot run: tiny, none, dense: it needs vectors")


@pytest.mark.parametrize(
    ("stopped", "code"), [("interrupted", ExitCode.INTERRUPTED), ("the budget is spent", ExitCode.STOPPED)]
)
def test_what_ends_a_run_early_has_its_code(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    stopped: str,
    code: ExitCode,
) -> None:
    report = BenchReport(folder / "out", 1, 0, 0, 6, 0, (), 0, stopped)
    monkeypatch.setattr(work_bench, "run_bench", lambda *given, **named: report)
    assert run(["bench", "run", "bench.toml", "--out", "out"]) == code
    assert f"Stopped: {stopped}" in said(capsys)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["run", "missing.toml"], "cannot read the configuration missing.toml"),
        (["compare", "here", "there"], "here is no run"),
        (["freeze", "here", "frozen.json"], "holds no rows"),
        (["report", "here"], "here is no run"),
    ],
)
def test_errors_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str], line: list[str], message: str) -> None:
    del folder
    assert run(["bench", *line]) == ExitCode.ERROR
    captured = capsys.readouterr()
    assert captured.err.startswith("Error: ")
    assert message in captured.err
    assert captured.out == ""


def test_progress_says_what_is_done_and_how_long_it_takes(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int, int | None]] = []

    class Bar:
        def __enter__(self) -> object:
            return lambda what, done, total: told.append((what, done, total))

        def __exit__(self, *error: object) -> None:
            pass

    monkeypatch.setattr(work_bench, "bar", Bar)
    assert run(["bench", "run", "bench.toml", "--out", "out"]) == ExitCode.OK
    said(capsys)
    assert told[-1] == ("tiny, none, bm25[k1=1.2]: ask 6/6, about 0 s left", 12, 12)
    assert any(what.startswith("tiny, none, bm25[k1=0.5]: index") for what, _, _ in told)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(42, "about 42 s"), (61, "about 1 min"), (7300, "about 2 h 1 min"), (200_000, "about 2 d 7 h")],
)
def test_durations(seconds: float, said: str) -> None:
    assert work_bench.duration(seconds) == said
