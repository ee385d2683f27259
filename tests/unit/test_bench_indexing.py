"""What indexing takes of the language model: counted as it was paid, at whatever passage a run was stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ecphoryrag.errors import InputError, JobStopped
from ecphoryrag.evaluation.bench.config import load_config
from ecphoryrag.evaluation.bench.models import REPLIES
from ecphoryrag.evaluation.bench.reporting.indexing import indexing
from ecphoryrag.evaluation.bench.reporting.parts import Grid
from ecphoryrag.evaluation.bench.run import BenchReport, Choose, run
from ecphoryrag.evaluation.bench.table import TableRow, table
from ecphoryrag.evaluation.datasets import Selection, Source, read
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.ports import JsonSchema
from ecphoryrag.types import Generation, JsonValue, Message
from tests.support.bench import CORPUS, HEAD, QUESTIONS, write_config, write_data
from tests.support.scripted_extraction import filled

PASSAGES = 4
METHODS = """
[[methods]]
name = "paper"
label = "paper-llm"
parameters = { extractor = "llm" }
[[methods]]
name = "ecphory"
label = "ecphory-llm"
parameters = { extractor = "llm" }
[[methods]]
name = "ecphory"
label = "ecphory-names"
parameters = { extractor = "names" }
[[methods]]
name = "hipporag2"
[[methods]]
name = "lightrag"
"""
TITLES = [title for _, title, _ in CORPUS]
SECONDS = 50.0
"""What a call is said to have taken."""


class Reading(ScriptedGenerator):
    """Reads the titles it knows out of a prompt, in whatever form the schema asks for; may end after some calls."""

    def __init__(self, ends: int | None = None, error: Callable[[], BaseException] = KeyboardInterrupt) -> None:
        super().__init__(lambda messages: "")
        self.calls = 0
        self._ends = ends
        self._error = error

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        if self.calls == self._ends:
            raise self._error()
        self.calls += 1
        names = [title for title in TITLES if title in messages[-1].content] or ["Nothing"]
        text = json.dumps(_form(dict(schema or {}), names))
        reply = super().generate(messages, schema, max_tokens)
        written = len(text.split())
        return Generation(text, "stop", replace(reply.usage, output_tokens=written, seconds=SECONDS))


def _form(schema: dict[str, Any], names: list[str]) -> Any:
    asked = set(schema["properties"])
    if asked == {"triples"}:
        return {"triples": [[name, "is in", "the passage"] for name in names]}
    if asked == {"entities", "relations"}:
        things = [{"name": name, "type": "place", "description": f"{name} is told of."} for name in names]
        return {"entities": things, "relations": []}
    return filled(schema, names)


def indexed(config: Path, out: Path, generator: Reading) -> BenchReport:
    choose = Choose(encoder=lambda settings: HashEncoder(), generator=lambda settings: generator)
    return run(config, out, choose=choose)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    write_data(tmp_path)
    return write_config(tmp_path, f"{HEAD}questions = 0\n", METHODS, f"passages = {PASSAGES}\n")


def paid(out: Path) -> tuple[int, int, int]:
    """Calls and tokens read and written of all that was paid for."""
    lines = [json.loads(line)["usage"] for line in (out / REPLIES).read_text("utf-8").splitlines()]
    return len(lines), *(sum(line[name] for line in lines) for name in ("input_tokens", "output_tokens"))


def spent(rows: Sequence[TableRow]) -> dict[str, tuple[float, float, float]]:
    return {row.label: (row.index.calls, row.index.input_tokens, row.index.output_tokens) for row in rows}


def test_nothing_is_asked_and_tokens_are_those_that_were_paid(config: Path) -> None:
    generator, out = Reading(), config.parent / "out"
    report = indexed(config, out, generator)
    assert (report.asked, report.left, report.stopped, report.unavailable) == (0, 0, None, ())
    rows = table(out)
    took = spent(rows)
    assert [row.passages for row in rows] == [PASSAGES] * 5
    assert {label: calls for label, (calls, _, _) in took.items()} == {
        "paper-llm": PASSAGES,
        "ecphory-llm": PASSAGES,
        "ecphory-names": 0,
        "hipporag2": 2 * PASSAGES,
        "lightrag": 2 * PASSAGES,
    }
    assert took["paper-llm"] == took["ecphory-llm"]  # one prompt, paid for once and told of both
    assert not any(took["ecphory-names"])
    apart = [took[label] for label in ("paper-llm", "hipporag2", "lightrag")]
    assert tuple(map(sum, zip(*apart, strict=True))) == paid(out)
    assert generator.calls == paid(out)[0] == 5 * PASSAGES
    assert indexed(config, out, generator).asked == 0
    assert generator.calls == 5 * PASSAGES  # a second sitting pays for nothing
    assert table(out) == rows


def test_kept_replies_take_the_seconds_they_had_taken(config: Path) -> None:
    out = config.parent / "out"
    indexed(config, out, Reading())
    seconds = {row.label: row.index.seconds for row in table(out)}
    assert SECONDS * PASSAGES < seconds["ecphory-llm"] < SECONDS * PASSAGES + 20  # replies that paper-llm paid for
    assert seconds["ecphory-names"] < 20


@pytest.mark.parametrize("error", [KeyboardInterrupt, lambda: JobStopped("the server is gone")])
@pytest.mark.parametrize("ends", [0, 2, 7, 10, 15, 18])
def test_a_run_stopped_at_any_passage_goes_on_there(config: Path, ends: int, error: Callable[[], Exception]) -> None:
    whole, out = config.parent / "whole", config.parent / "out"
    indexed(config, whole, Reading())
    first = Reading(ends, error)
    assert indexed(config, out, first).stopped is not None
    second = Reading()
    assert indexed(config, out, second).stopped is None
    assert first.calls + second.calls == 5 * PASSAGES
    assert spent(table(out)) == spent(table(whole))
    stopped_in = ["paper-llm", "hipporag2", "lightrag"][(ends >= 4) + (ends >= 12)]
    seconds = {row.label: row.index.seconds for row in table(out)}
    begun = {"paper-llm": 0, "hipporag2": 4, "lightrag": 12}[stopped_in]
    assert (ends - begun) * SECONDS <= seconds[stopped_in] < (ends - begun) * SECONDS + 20


def test_the_report_tells_them_against_the_paper(config: Path) -> None:
    out = config.parent / "out"
    indexed(config, out, Reading())
    rows = table(out)
    _, grid = indexing(rows).items
    assert isinstance(grid, Grid)
    assert f"{PASSAGES} passages" in grid.caption
    lines = {line[0].text: dict(zip(grid.header, (cell.text for cell in line), strict=True)) for line in grid.rows}
    took = spent(rows)
    both = {label: read + written for label, (_, read, written) in took.items()}
    for label, line in lines.items():
        assert line["both"] == f"{both[label]:,.0f}"
        assert line["times paper-llm"] == f"{both[label] / both['paper-llm']:.2f}"
        assert line["tokens a passage"] == f"{both[label] / PASSAGES:,.1f}"
    assert lines["ecphory-names"]["times paper-llm"] == "0.00"
    (said,) = indexing([row for row in rows if row.label == "ecphory-names"]).items
    assert isinstance(said, str)
    assert "no method" in said.lower()


def few(folder: Path, passages: int, seed: int = 0, count: int | None = None) -> tuple[set[str], list[str]]:
    source = Source("tiny", "ecphory", folder / "questions.jsonl", folder / "corpus.jsonl")
    found = read(source, Selection(passages=passages, seed=seed, count=count))
    return {document.id for document in found.documents}, [question.id for question in found.questions]


def test_a_corpus_is_cut_by_its_seed_alone(tmp_path: Path) -> None:
    write_data(tmp_path)
    documents, questions = few(tmp_path, 4)
    gold = {name: set(needed) for name, _, _, needed in QUESTIONS}
    assert len(documents) == 4
    assert set(questions) == {name for name, needed in gold.items() if needed <= documents}
    assert questions
    assert few(tmp_path, 4) == (documents, questions)
    assert len({frozenset(few(tmp_path, 4, seed)[0]) for seed in range(8)}) > 1
    assert few(tmp_path, 4, count=1)[0] == documents
    assert len(few(tmp_path, 4, count=1)[1]) == 1
    assert few(tmp_path, len(CORPUS))[0] == {name for name, _, _ in CORPUS}
    with pytest.raises(InputError, match="fewer than the 7 asked for"):
        few(tmp_path, 7)
    with pytest.raises(InputError, match="fewer than the 9 asked for"):
        few(tmp_path, 4, count=9)


def test_half_of_the_passages_are_no_gold_of_the_questions_drawn(tmp_path: Path) -> None:
    only = [QUESTIONS[0]]
    write_data(tmp_path, only)
    for seed in range(5):
        documents, questions = few(tmp_path, 4, seed)
        assert {"vale", "orla"} <= documents
        assert questions == ["q1"]
    assert "vale" not in few(tmp_path, 3)[0] or "orla" not in few(tmp_path, 3)[0] or few(tmp_path, 3)[1] == ["q1"]


def test_the_passages_are_part_of_what_a_row_is(config: Path) -> None:
    out = config.parent / "out"
    indexed(config, out, Reading())
    config.write_text(config.read_text("utf-8").replace(f"passages = {PASSAGES}", "passages = 3"), encoding="utf-8")
    with pytest.raises(InputError, match="made with other data"):
        indexed(config, out, Reading())


def test_the_comparison_is_configured() -> None:
    found, _ = load_config(Path(__file__).parents[2] / "benchmarks/configs/indexing-tokens.toml")
    assert (found.questions, found.datasets[0].passages) == (0, 30)
    extractors = [(method.name, method.parameters.get("extractor")) for method in found.methods]
    assert extractors == [
        ("paper", "llm"),
        ("ecphory", "llm"),
        ("ecphory", "names"),
        ("hipporag2", None),
        ("lightrag", None),
    ]


ASKED_ONLY: dict[str, dict[str, JsonValue]] = {
    "lightrag": {
        "mode": "local",
        "top": 3,
        "threshold": 0.5,
        "chunks": 2,
        "entity_tokens": 10,
        "relation_tokens": 10,
        "text_tokens": 10,
        "context": "chunks",
    },
    "react": {"rounds": 2, "passages": 2},
    "think-on-graph": {"width": 2, "depth": 2},
    "hipporag2": {"filter": "none", "facts": 2, "phrases": 2, "passage_weight": 0.1, "damping": 0.4},
}


@pytest.mark.parametrize("method", ASKED_ONLY)
def test_parameters_of_the_question_share_one_index(tmp_path: Path, method: str) -> None:
    write_data(tmp_path)
    entries = [f'[[methods]]\nname = "{method}"\n']
    for name, value in ASKED_ONLY[method].items():
        given = json.dumps({"value": value})[len('{"value": ') : -1]
        entries.append(f'[[methods]]\nname = "{method}"\nlabel = "{name}"\nparameters = {{ {name} = {given} }}\n')
    config = write_config(tmp_path, f"{HEAD}questions = 0\n", "\n".join(entries), f"passages = {PASSAGES}\n")
    generator, out = Reading(), tmp_path / "out"
    assert indexed(config, out, generator).unavailable == ()
    assert len(list((out / "work").glob(f"*/{method}-*"))) == 1
    took = spent(table(out))
    assert len(took) == len(entries)
    assert len(set(took.values())) == 1  # what the one index took is told of each
    assert generator.calls == next(iter(took.values()))[0]
