"""Settings are chosen on development questions, and test questions are closed to any others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ecphoryrag.errors import InputError, SettingsError
from ecphoryrag.evaluation.bench.code import Code
from ecphoryrag.evaluation.bench.freeze import freeze, read_frozen
from ecphoryrag.evaluation.bench.rows import ROWS, RowFile, read_rows
from ecphoryrag.evaluation.bench.run import run
from tests.support.bench import HEAD, QUESTIONS, fakes, run_faked, write_config, write_data

HEAD = HEAD.replace('code = "version"\n', "")
VARIED = """
[[methods]]
name = "paper"
[methods.parameters]
context = ["entities", "both"]
[[methods]]
name = "dense"
"""
CHOSEN = VARIED.replace('["entities", "both"]', '"both"')
TEST = HEAD.replace("development", "test") + 'frozen = "frozen.json"\n'
SPLIT = "development = 3\n"


@pytest.fixture(autouse=True)
def one_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sources may be edited while a test runs."""
    monkeypatch.setattr(Code, "of", lambda *given: "c0de")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_data(tmp_path)
    run_faked(write_config(tmp_path, HEAD, VARIED, SPLIT), tmp_path / "dev")
    return tmp_path


def test_the_best_on_development_is_frozen_and_runs_on_test(folder: Path) -> None:
    frozen = freeze(folder / "dev", folder / "frozen.json", by="gold_shown")
    assert [(each.entry, each.label) for each in frozen.choices] == [
        ("paper", "paper[context=both]"),
        ("dense", "dense"),
    ]
    assert frozen.choices[0].among["paper[context=entities]"] == 0.0 < frozen.choices[0].figure
    assert len(frozen.questions) == 3
    assert read_frozen(folder / "frozen.json") == frozen
    report = run_faked(write_config(folder, TEST, CHOSEN, SPLIT), folder / "test")
    assert (report.asked, report.left) == (6, 0)
    development = {row.id for row in read_rows(folder / "dev").questions}
    assert {row.id for row in read_rows(folder / "test").questions} == {name for name, *_ in QUESTIONS} - development


@pytest.mark.parametrize(
    ("head", "methods", "said"),
    [
        (TEST, VARIED, r"paper\[context=entities\] with static on tiny has settings that were not chosen"),
        (TEST, CHOSEN.replace('"both"', '"chunks"'), "has settings that were not chosen"),
        (TEST, CHOSEN + '[[methods]]\nname = "bm25"', "bm25 with static on tiny has settings that were not chosen"),
        (TEST.replace("k = 3", "k = 4"), CHOSEN, "settings that were not chosen"),
        (TEST + "[settings]\nrecall.flat.b = 0.5", CHOSEN, "settings that were not chosen"),
        (TEST.replace('generator = "local"', ""), CHOSEN, "settings that were not chosen"),
        (TEST.replace("frozen.json", "gone.json"), CHOSEN, "cannot read the frozen settings .*gone.json"),
    ],
)
def test_other_settings_do_not_run_on_test(folder: Path, head: str, methods: str, said: str) -> None:
    freeze(folder / "dev", folder / "frozen.json", by="gold_shown")
    with pytest.raises(SettingsError, match=said):
        run_faked(write_config(folder, head, methods, SPLIT), folder / "test")
    assert not read_rows(folder / "test").questions


def test_a_development_question_is_not_tested(folder: Path) -> None:
    freeze(folder / "dev", folder / "frozen.json", by="gold_shown")
    with pytest.raises(SettingsError, match="is a development question"):
        run_faked(write_config(folder, TEST, CHOSEN), folder / "test")
    seen = read_rows(folder / "dev").questions[0].id
    text = next(text for name, text, *_ in QUESTIONS if name == seen)
    (folder / "other").mkdir()
    write_data(folder / "other", [("new id", f" {text.upper()}", ["x"], ["vale"])])
    data = 'questions = "other/questions.jsonl"\n'
    with pytest.raises(SettingsError, match="the question new id of tiny is a development question"):
        run_faked(write_config(folder, TEST, CHOSEN, data), folder / "test")


def test_other_code_is_not_tested_unless_somebody_answers_for_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    freeze(folder / "dev", folder / "frozen.json", by="gold_shown")
    monkeypatch.setattr(Code, "of", lambda *given: "other")
    with pytest.raises(SettingsError, match="the code of paper is other, and was c0de"):
        run_faked(write_config(folder, TEST, CHOSEN, SPLIT), folder / "test")
    lenient = TEST + 'code = "version"\n'
    assert run_faked(write_config(folder, lenient, CHOSEN, SPLIT), folder / "test").left == 0


def test_a_frozen_file_is_not_changed_nor_written_over(folder: Path) -> None:
    path = folder / "frozen.json"
    freeze(folder / "dev", path, by="gold_shown")
    with pytest.raises(InputError, match="is there already"):
        freeze(folder / "dev", path, by="em")
    record = json.loads(path.read_text("utf-8"))
    record["questions"] = []
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(SettingsError, match="was changed after it was frozen"):
        read_frozen(path)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(SettingsError, match="holds no frozen settings"):
        read_frozen(path)


def test_only_a_finished_development_run_is_frozen(folder: Path) -> None:
    run_faked(write_config(folder, HEAD, VARIED, SPLIT), folder / "begun", limit=1)
    more = write_config(folder, HEAD, VARIED + '[[methods]]\nname = "hybrid"', SPLIT)
    run_faked(more, folder / "dev", limit=2)
    with pytest.raises(InputError, match="hybrid with static has 2 of 3 questions of tiny"):
        freeze(folder / "dev", folder / "frozen.json", by="em")
    with pytest.raises(InputError, match=r"paper\[context=entities\] with static has 1 of 3 questions"):
        freeze(folder / "begun", folder / "frozen.json", by="em")
    run_faked(write_config(folder, HEAD, VARIED, SPLIT), folder / "begun")
    with pytest.raises(InputError, match="no figure 'speed'"):
        freeze(folder / "begun", folder / "frozen.json", by="speed")
    with pytest.raises(InputError, match="no rows of development questions"):
        freeze(folder / "nothing", folder / "frozen.json", by="em")
    freeze(folder / "begun", folder / "frozen.json", by="gold_shown")
    run_faked(write_config(folder, TEST, CHOSEN, SPLIT), folder / "test")
    with pytest.raises(InputError, match="no rows of development questions"):
        freeze(folder / "test", folder / "again.json", by="em")


def test_a_cell_that_was_not_begun_keeps_a_run_from_being_frozen(tmp_path: Path) -> None:
    write_data(tmp_path)
    config, out = write_config(tmp_path, HEAD, VARIED, SPLIT), tmp_path / "dev"
    run(config, out, choose=replace(fakes(), only=("paper",)))
    with pytest.raises(InputError, match="is not finished: dense with static on tiny was not begun"):
        freeze(out, tmp_path / "frozen.json", by="gold_shown")
    run_faked(config, out)
    freeze(out, tmp_path / "frozen.json", by="gold_shown")


def test_choices_are_made_over_the_same_data_sets(folder: Path) -> None:
    rows = read_rows(folder / "dev")
    first = rows.cells[0]
    with RowFile(folder / "dev" / ROWS) as file:
        file.append(replace(first, key="elsewhere", dataset="other"))
        for row in rows.of(first):
            file.append(replace(row, cell="elsewhere"))
    with pytest.raises(InputError, match=r"paper\[context=both\] with static has no rows of other"):
        freeze(folder / "dev", folder / "frozen.json", by="gold_shown")
