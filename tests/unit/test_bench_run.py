"""The runner with fakes for the models: what it asks, keeps, refuses and stops at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ecphoryrag.errors import InputError, ModelNotAvailable, SettingsError
from ecphoryrag.evaluation.baselines.memory import MemoryMethod
from ecphoryrag.evaluation.baselines.registry import METHODS
from ecphoryrag.evaluation.bench.config import load_config
from ecphoryrag.evaluation.bench.progress import BenchProgress
from ecphoryrag.evaluation.bench.rows import ROWS, QuestionRow, Row, RowFile, read_rows
from ecphoryrag.evaluation.bench.run import Choose, run
from ecphoryrag.evaluation.bench.table import table
from ecphoryrag.evaluation.bench.texts import read_texts
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.models.none import NoEncoder
from ecphoryrag.types import Message
from tests.support.bench import HEAD, QUESTIONS, fakes, generator, reply, run_faked, write_config, write_data

RETRIEVAL = HEAD.replace('generator = "local"\n', "")
DENSE = '[[methods]]\nname = "dense"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_data(tmp_path)
    return tmp_path


def test_every_cell_is_asked_and_every_question_has_its_figures(folder: Path) -> None:
    out = folder / "out"
    report = run_faked(write_config(folder), out)
    assert (report.cells, report.asked, report.already, report.left, report.errors) == (5, 30, 0, 0, 0)
    assert report.stopped is None
    rows = table(out)
    assert [row.label for row in rows] == ["closed-book", "dense", "ecphory", "paper[k_final=2]", "paper[k_final=4]"]
    closed, dense = rows[0], rows[1]
    assert closed.figures["em"].mean == pytest.approx(2 / 6)  # "Brida Sollas" is right twice
    assert "recall@5" not in closed.figures
    assert dense.figures["recall@5"].mean > 0.8
    assert dense.query is not None
    assert (dense.query.calls, dense.query.embedding_tokens > 0, dense.query.input_tokens > 50) == (1, True, True)
    assert dense.index.embedding_tokens > 0
    assert rows[3].index.embedding_tokens > dense.index.embedding_tokens  # entities are embedded too
    assert rows[3].varied == {"k_final": 2}
    asked = read_rows(out)
    first = next(row for row in asked.questions if row.cell == asked.cells[1].key)
    assert (first.answered, first.cited, first.gold, len(first.shown)) == (True, (1,), ("vale", "orla"), 3)
    assert first.figures["gold_shown"] == len(set(first.shown) & {"vale", "orla"}) / 2
    assert len(first.retrieved) == 6  # of ten asked for, whatever the reader was shown


def test_retrieval_alone_asks_no_model_and_a_method_that_cannot_run_says_why(folder: Path) -> None:
    methods = DENSE + '[[methods]]\nname = "bm25"\n[[methods]]\nname = "closed-book"\n'
    report = run_faked(write_config(folder, RETRIEVAL, methods), folder / "out")
    assert report.unavailable[0][0] == "tiny, static, closed-book"
    assert "set `generator`" in report.unavailable[0][1]
    dense, bm25, closed = table(folder / "out")
    assert "em" not in dense.figures
    assert (dense.generator, dense.unanswered, closed.questions) == (None, 0, 0)
    assert closed.unavailable == report.unavailable[0][1]
    assert bm25.query is not None
    assert (bm25.index.embedding_tokens, bm25.query.embedding_tokens) == (0, 0)


def test_a_method_that_needs_vectors_is_unavailable_without(folder: Path) -> None:
    config = write_config(folder, RETRIEVAL + 'encoders = ["none"]\n', DENSE)
    report = run(config, folder / "out", choose=Choose(encoder=lambda settings: NoEncoder()))
    assert report.unavailable == (("tiny, none, dense", "it needs vectors, and the encoder makes none"),)


def test_a_run_goes_on_and_asks_nothing_twice(folder: Path) -> None:
    config, out = write_config(folder, methods=DENSE), folder / "out"
    first = run_faked(config, out, limit=2)
    second = run_faked(config, out)
    third = run_faked(config, out)
    assert [(each.asked, each.already, each.left) for each in (first, second, third)] == [
        (2, 0, 0),
        (4, 2, 0),
        (0, 6, 0),
    ]
    assert len((out / ROWS).read_bytes().splitlines()) == 7
    sittings = json.loads((out / "manifest.json").read_text("utf-8"))["sittings"]
    assert [(each["rows"], each["stopped"], each["limit"]) for each in sittings] == [
        (2, None, 2),
        (4, None, None),
        (0, None, None),
    ]


def test_a_reply_that_was_paid_before_a_crash_is_not_paid_again_and_counts_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, out = write_config(folder, methods=DENSE), folder / "out"
    whole = run_faked(config, folder / "whole")

    class Crash(Exception):
        pass

    append = RowFile.append

    def crashing(self: RowFile, row: Row) -> None:
        if isinstance(row, QuestionRow) and row.id == "q3":
            raise Crash
        append(self, row)

    with monkeypatch.context() as patch:
        patch.setattr(RowFile, "append", crashing)
        with pytest.raises(Crash):
            run_faked(config, out)
    assert len(read_rows(out).questions) == 2
    report = run_faked(config, out)
    paid = json.loads((out / "manifest.json").read_text("utf-8"))["sittings"]
    assert report.asked == 4
    assert paid[0]["stopped"] == "killed"
    replies = [json.loads(line) for line in (out / "replies.jsonl").read_text("utf-8").splitlines()]
    assert len(replies) == 6
    assert report.tokens < whole.tokens * 4 / 6  # one of the four was paid for before
    usages = [[row.usage for row in read_rows(folder / name).questions] for name in ("whole", "out")]
    assert usages[0] == usages[1]


def test_a_spent_budget_stops_the_run_and_keeps_what_is_done(folder: Path) -> None:
    config, out = write_config(folder, methods=DENSE), folder / "out"
    one = run_faked(config, folder / "one", limit=1).tokens
    report = run_faked(config, out, max_tokens=one * 3)
    assert report.stopped is not None
    assert "allowed" in report.stopped
    assert 0 < report.asked < 6
    assert report.tokens <= one * 3
    assert report.left == 6 - report.asked
    assert all(row.error is None and row.answer for row in read_rows(out).questions)
    assert run_faked(config, out).left == 0


class Unreachable(ScriptedGenerator):
    """Answers twice, then is gone."""

    def __init__(self) -> None:
        super().__init__(reply)

    def generate(self, messages: Sequence[Message], schema: object, max_tokens: int):  # type: ignore[no-untyped-def]
        if len(self.asked) == 2:
            raise ModelNotAvailable("nothing is listening there")
        return super().generate(messages, None, max_tokens)


def test_a_model_that_is_gone_stops_the_run_instead_of_making_every_answer_wrong(folder: Path) -> None:
    config, out = write_config(folder, methods=DENSE), folder / "out"
    choose = replace(fakes(), generator=lambda settings: Unreachable())
    report = run(config, out, choose=choose)
    assert (report.asked, report.left, report.stopped) == (2, 4, "nothing is listening there")


def test_an_error_is_a_wrong_answer_and_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    retrieve = MemoryMethod.retrieve

    def failing(self: MemoryMethod, question: str, k: int):  # type: ignore[no-untyped-def]
        if "Haskett" in question:
            raise ValueError("no such thing")
        return retrieve(self, question, k)

    monkeypatch.setattr(MemoryMethod, "retrieve", failing)
    report = run_faked(write_config(folder, methods=DENSE), folder / "out")
    failed = next(row for row in read_rows(folder / "out").questions if row.id == "q4")
    assert (report.errors, failed.error, failed.answer) == (1, "ValueError: no such thing", None)
    assert set(failed.figures.values()) == {0.0}
    (row,) = table(folder / "out")
    assert (row.questions, row.errors, row.unanswered) == (6, 1, 1)


def test_ctrl_c_ends_it_cleanly(folder: Path) -> None:
    seen: list[BenchProgress] = []

    def stop(progress: BenchProgress) -> None:
        seen.append(progress)
        if progress.doing == "ask" and progress.done == 3:
            raise KeyboardInterrupt

    config, out = write_config(folder, methods=DENSE), folder / "out"
    report = run(config, out, progress=stop, choose=fakes())
    assert (report.stopped, report.asked, report.left) == ("interrupted", 3, 3)
    last = seen[-1]
    assert (last.cell, last.total, last.asked, last.questions) == ("tiny, static, dense", 6, 3, 6)
    assert last.seconds_left is not None
    assert last.seconds_left > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda text: text.replace("k = 3", "k = 2"),
            "rows of dense with static on tiny, seed 0, made with other settings",
        ),
        (lambda text: text.replace("k = 3", "k = 3\nnormalisation = 'loose'"), "made with other settings"),
        (lambda text: text.replace('name = "dense"', 'name = "hybrid"'), "which the configuration does not ask for"),
        (lambda text: text + "\n[settings]\nanswering.evidence_tokens = 99", "made with other settings"),
        (lambda text: text.replace("[[datasets]]", "[[datasets]]\ntitles = false"), "made with other data"),
        (
            lambda text: text.replace('generator = "local"', ""),
            "made with other generator",
        ),
        (lambda text: text.replace("k = 3", "k = 3\nquestions = 2"), "made with other seed"),
    ],
)
def test_rows_of_another_run_are_refused_and_left_alone(folder: Path, change: object, said: str) -> None:
    config, out = write_config(folder, methods=DENSE), folder / "out"
    run_faked(config, out, limit=1)
    before = (out / ROWS).read_bytes()
    assert callable(change)
    config.write_text(change(config.read_text("utf-8")), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        run_faked(config, out)
    assert (out / ROWS).read_bytes() == before


def test_other_data_and_other_models_are_refused(folder: Path) -> None:
    config, out = write_config(folder, methods=DENSE), folder / "out"
    run_faked(config, out, limit=1)
    with pytest.raises(InputError, match="made with other encoder"):
        run(config, out, choose=replace(fakes(), encoder=lambda settings: HashEncoder(32)))
    write_data(folder, [("q1", "Who?", ["x"], ["vale"])])
    with pytest.raises(InputError, match="made with other data"):
        run_faked(config, out)


def test_other_code_is_refused_unless_somebody_answers_for_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ecphoryrag.evaluation.bench.code import Code  # noqa: PLC0415 - patched here alone

    strict = HEAD.replace('code = "version"\n', "")
    for head, refused in ((strict, True), (HEAD, False)):
        config, out = write_config(folder, head, DENSE), folder / f"out {refused}"
        for code in ("aaa", "bbb"):
            monkeypatch.setattr(Code, "of", lambda *given, code=code: code)
            if refused and code == "bbb":
                with pytest.raises(InputError, match=r'made with other code; .*set code = "version"'):
                    run_faked(config, out)
            else:
                run_faked(config, out, limit=1 if code == "aaa" else 2)
    assert [row.code for row in read_rows(folder / "out False").questions] == ["aaa", "bbb"]
    assert table(folder / "out False")[0].code == ("aaa", "bbb")


def test_a_method_may_be_added_and_a_part_may_be_run(folder: Path) -> None:
    config, out = write_config(folder, methods=DENSE), folder / "out"
    run_faked(config, out)
    config = write_config(folder, methods=DENSE + '[[methods]]\nname = "hybrid"\n[[methods]]\nname = "bm25"\n')
    report = run(config, out, choose=replace(fakes(), only=("bm25",)))
    assert (report.cells, report.asked, report.left) == (1, 6, 0)
    assert [row.label for row in table(out)] == ["dense", "bm25"]


def test_seeds_draw_samples_and_share_an_index(folder: Path) -> None:
    head = HEAD + "questions = 2\nseeds = [1, 2, 3]\n"
    run_faked(write_config(folder, head, DENSE), folder / "out")
    (row,) = table(folder / "out")
    assert (row.seeds, row.questions) == ((1, 2, 3), 6)
    assert row.figures["em"].deviation is not None
    samples = [{each.id for each in read_rows(folder / "out").of(cell)} for cell in read_rows(folder / "out").cells]
    assert len({frozenset(sample) for sample in samples}) > 1
    assert len(list((folder / "out" / "work").rglob("store.ecphory"))) == 1


def test_k_of_the_reader_is_varied_over_one_retrieval(folder: Path) -> None:
    head = HEAD.replace("k = 3", "k = [1, 4]")
    run_faked(write_config(folder, head, DENSE), folder / "out")
    one, four = table(folder / "out")
    assert [one.label, four.label] == ["dense[k=1]", "dense[k=4]"]
    assert one.figures["recall@5"] == four.figures["recall@5"]
    assert one.figures["gold_shown"].mean < four.figures["gold_shown"].mean
    assert [len(row.shown) for row in read_rows(folder / "out").questions] == [1] * 6 + [4] * 6


def test_texts_stand_apart_from_rows_and_are_not_for_git(folder: Path) -> None:
    run_faked(write_config(folder, methods=DENSE), folder / "out")
    texts = read_texts(folder / "out")
    assert texts.questions["tiny", "q2"].answers == ("Iskel", "River Iskel")
    assert texts.documents["tiny", "orla"].title == "Orla Menken"
    assert QUESTIONS[0][1] not in (folder / "out" / ROWS).read_text("utf-8")
    assert "texts.jsonl" in (folder / "out" / ".gitignore").read_text("utf-8")


def test_the_manifest_says_what_it_was_made_with_and_no_place(folder: Path) -> None:
    config = write_config(folder, methods=DENSE)
    run_faked(config, folder / "out")
    text = (folder / "out" / "manifest.json").read_text("utf-8")
    manifest = json.loads(text)
    assert manifest["configuration"] == config.read_text("utf-8")
    assert manifest["generator"] == "scripted"
    assert manifest["encoders"]["static"]["fingerprint"] == "blake2b-64"
    assert manifest["data"]["tiny, seed 0"]["questions"] == 6
    assert manifest["sittings"][0]["versions"]["numpy"]
    assert str(folder) not in text + (folder / "out" / ROWS).read_text("utf-8")


def test_two_processes_do_not_write_one_run(folder: Path) -> None:
    from ecphoryrag.evaluation.bench.lock import locked  # noqa: PLC0415 - used here alone

    config = write_config(folder, methods=DENSE)
    with locked(folder / "out"), pytest.raises(InputError, match="another process is writing"):
        run_faked(config, folder / "out")
    assert run_faked(config, folder / "out").left == 0


def test_a_method_that_is_missing_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ecphoryrag.evaluation.baselines import registry  # noqa: PLC0415 - patched here alone

    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    report = run_faked(write_config(folder, methods=DENSE), folder / "out")
    assert "the method dense is not part of this version" in report.unavailable[0][1]


@pytest.mark.parametrize(
    ("head", "methods", "said"),
    [
        ("split = 'both'", DENSE, "split"),
        ("split = 'development'\nsurprise = 1", DENSE, "surprise"),
        (HEAD + "encoders = ['what']", DENSE, "encoders"),
        (HEAD + "seeds = [1, 2]", DENSE, "several seeds need `questions`"),
        (HEAD + "seeds = [1, 1]", DENSE, "the seed '1' is there twice"),
        (HEAD + "frozen = 'x.json'", DENSE, "`frozen` is for test questions"),
        (HEAD.replace("development", "test"), DENSE, "test questions need `frozen`"),
        (HEAD, DENSE + DENSE, "label of a method 'dense' is there twice"),
        (HEAD, DENSE + "datasets = ['none']", "data set 'none' is none of this"),
        (HEAD, '[[methods]]\nname = "colbert"', "no method is called 'colbert'"),
        (HEAD, "", "methods"),
        ("split = ", DENSE, "not valid TOML"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(folder: Path, head: str, methods: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        run_faked(write_config(folder, head, methods), folder / "out")


def test_other_refusals(folder: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read the configuration"):
        run_faked(folder / "nothing.toml", folder / "out")
    config = write_config(folder, methods=DENSE + "[methods.parameters]\nopenie = { file = 'gone' }")
    with pytest.raises(InputError, match="gone"):
        run_faked(config, folder / "out")
    with pytest.raises(InputError, match="limit on questions is 0"):
        run_faked(config, folder / "out", limit=0)
    config = write_config(folder, methods=DENSE + "[methods.parameters]\nspeed = 3")
    report = run_faked(config, folder / "out2")
    assert "speed" in report.unavailable[0][1]
    config = write_config(folder, HEAD + "questions = 6\nseeds = [1, 2]\n", DENSE)
    with pytest.raises(InputError, match="several seeds draw the same sample"):
        run_faked(config, folder / "out3")


def test_the_generator_is_closed_and_only_by_the_run(folder: Path) -> None:
    closed: list[int] = []

    class Closing(ScriptedGenerator):
        def close(self) -> None:
            closed.append(len(self.asked))

    made = Closing(reply)
    run(write_config(folder, methods=DENSE), folder / "out", choose=replace(fakes(), generator=lambda settings: made))
    assert closed == [6]
    assert generator().name == "scripted"


@pytest.mark.parametrize("name", ["retrieval-dev.toml", "end-to-end-dev.toml"])
def test_the_ready_configurations_can_be_read(name: str) -> None:
    config, _ = load_config(Path(__file__).resolve().parents[2] / "benchmarks" / "configs" / name)
    assert [dataset.name for dataset in config.datasets] == ["musique", "2wikimultihopqa", "hotpotqa"]
    assert {method.name for method in config.methods} <= set(METHODS)
    assert config.split == "development"
