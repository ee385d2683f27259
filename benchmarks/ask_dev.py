"""Record `ask` with the local model on the first questions of each development set.

    python benchmarks/ask_dev.py --data ../shared/data --questions 20

Takes about 20 s a question on two cores. Every answer is written to ``--rows`` as soon as it is there, and a run that
was stopped goes on where it ended; rows of other settings, data or code are refused, not mixed in. At the end the
figures go to ``benchmarks/results/ask-dev.json`` and ``ask-dev.md``. Without the data it says so and exits with 0.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ecphoryrag.errors import EcphoryError
from ecphoryrag.evaluation.answers import exact_match, f1
from ecphoryrag.evaluation.dataset import Question, load_dataset
from ecphoryrag.evaluation.provenance import machine, source_commit, versions
from ecphoryrag.evaluation.statistics import standard_error
from ecphoryrag.memory import Memory
from ecphoryrag.models.registry import make_generator
from ecphoryrag.settings import Settings
from ecphoryrag.types import Answer, JsonValue, Message

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SETS = ("musique", "2wikimultihopqa", "hotpotqa")

UNTIMED = "Who wrote the letter?"
"""Asked once a set before the clock runs: loads the language model."""

Row: TypeAlias = dict[str, JsonValue]
COLUMNS = (
    ("questions", "{:.0f}"),
    ("em", "{:.3f}"),
    ("f1", "{:.3f}"),
    ("answered", "{:.0f}"),
    ("gold in the prompt", "{:.3f}"),
    ("all gold in the prompt", "{:.0f}"),
    ("em with all gold", "{:.3f}"),
    ("input tokens", "{:.0f}"),
    ("output tokens", "{:.0f}"),
    ("seconds", "{:.1f}"),
)
"""Of the summary's table, with the format of each."""


def main() -> int:
    """Exit code: 0 if the run is whole or the data is not there, 1 if it cannot be made."""
    options = parser().parse_args()
    if not options.data.is_dir():
        print(f"bench-ask: {options.data} is not there; skipped. Name the folder of the sets with --data.")
        return 0
    try:
        settings = Settings()
        header = made_with(options.data, options.questions, settings)
        rows = read_rows(options.rows, header)
        for name in SETS:
            ask_set(options.data / name, options, settings, rows)
    except EcphoryError as error:
        print(f"bench-ask: {error}", file=sys.stderr)
        return 1
    write_summary(header, rows)
    return 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description="Record `ask` with the local model on the development sets.")
    options.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the sets")
    options.add_argument("--questions", type=int, default=20, metavar="N", help="first questions of each set")
    options.add_argument("--rows", type=Path, default=RESULTS / "ask-dev.jsonl", help="where each answer is recorded")
    return options


def made_with(data: Path, questions: int, settings: Settings) -> Row:
    """All that must be equal for rows to belong to one run, and the machine."""
    digests: dict[str, JsonValue] = {}
    for name in SETS:
        digests[name] = dict(load_dataset(data / name / "corpus.jsonl", data / name / "questions.jsonl").digests)
    answering = settings.answering.model_dump(mode="json", exclude={"local": {"path", "cache"}})
    return {
        "questions a set": questions,
        "model": model_name(settings),
        "indexing": settings.indexing.model_dump(mode="json"),
        "recall": settings.recall.model_dump(mode="json"),
        "answering": answering,
        "data": digests,
        "commit": source_commit(ROOT),
        "versions": dict(versions()),
        "machine": dict(machine()),
    }


def model_name(settings: Settings) -> str:
    """Of the configured language model. Raises ModelNotAvailable if it is not there, EcphoryError if there is none."""
    generator = make_generator(settings)
    if generator is None:
        raise EcphoryError("no language model is configured: set generator to `local`")
    generator.count_tokens([Message("user", UNTIMED)])  # loads it: a model that is not there should be known now
    return generator.name


def read_rows(path: Path, header: Row) -> list[Row]:
    """The rows recorded so far; starts the file if there is none. Raises EcphoryError if they are of another run."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        append(path, {"run": header})
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):  # the run was killed while it wrote this line: it is asked again
        path.write_text("".join(lines[:-1]), encoding="utf-8")
        del lines[-1]
    first, *rows = [json.loads(line) for line in lines] or [{}]
    before = first.get("run", {})
    differ = [key for key in header if key != "questions a set" and before.get(key) != header[key]]
    if differ:
        raise EcphoryError(
            f"{path} holds rows of a run with other {', '.join(differ)}; move it away or name another --rows"
        )
    return rows


def append(path: Path, row: Row) -> None:
    """One line, on the disk before the next question is asked."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def ask_set(folder: Path, options: argparse.Namespace, settings: Settings, rows: list[Row]) -> None:
    """Ask what has no row yet; ``rows`` grows."""
    dataset = load_dataset(folder / "corpus.jsonl", folder / "questions.jsonl", limit=options.questions)
    done = {row["id"] for row in rows}
    left = [question for question in dataset.questions if question.id not in done]
    if not left:
        return
    print(f"{folder.name}: indexing {len(dataset.documents)} documents, then {len(left)} questions", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="ask-dev-") as temporary,
        Memory.open(Path(temporary) / "store.ecphory", settings=settings) as memory,
    ):
        report = memory.add(dataset.documents)
        if report.failed:
            raise EcphoryError(f"{len(report.failed)} documents of {folder.name} failed: {report.failed[0].reason}")
        memory.ask(UNTIMED)
        for question in left:
            row: Row = {"set": folder.name, "id": question.id, **ask(memory, question)}
            append(options.rows, row)
            rows.append(row)
            print(f"  {question.id}  em {row['em']:.0f}  f1 {row['f1']:.2f}  {row['seconds']:.1f} s", flush=True)


def ask(memory: Memory, question: Question) -> Row:
    """One question's row: the answer, its figures and its cost. An error is a wrong answer, and is kept."""
    start = time.perf_counter()
    try:
        answer = memory.ask(question.text)
    except EcphoryError as error:
        seconds = time.perf_counter() - start
        return {
            "error": str(error),
            "answer": None,
            "em": 0.0,
            "f1": 0.0,
            "gold in the prompt": 0.0,
            "seconds": seconds,
        }
    return row_of(answer, question, time.perf_counter() - start)


def row_of(answer: Answer, question: Question, seconds: float) -> Row:
    """The figures of an answer."""
    documents = list(dict.fromkeys(evidence.chunk.document_id for evidence in answer.evidence))
    return {
        "answer": answer.text,
        "reason": answer.reason,
        "em": exact_match(answer.text, question.answers),
        "f1": f1(answer.text, question.answers),
        "gold in the prompt": len(set(documents) & set(question.gold)) / len(question.gold),
        "evidence": list(documents),
        "cited": list(answer.cited),
        "notes": list(answer.notes),
        "calls": answer.usage.calls,
        "input tokens": answer.usage.input_tokens,
        "output tokens": answer.usage.output_tokens,
        "seconds": seconds,
    }


def write_summary(header: Row, rows: Sequence[Row]) -> None:
    """``ask-dev.json`` and ``ask-dev.md``, and the table on the screen."""
    figures = {name: summary([row for row in rows if row["set"] == name]) for name in SETS}
    figures["all"] = summary(rows)
    written: Row = {"run": header, "figures": {name: dict(values) for name, values in figures.items()}}
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(written, ensure_ascii=False, indent=1, allow_nan=False)
    (RESULTS / "ask-dev.json").write_text(text + "\n", encoding="utf-8")
    markdown = table(header, figures)
    (RESULTS / "ask-dev.md").write_text(markdown, encoding="utf-8")
    print("\n" + markdown)


def summary(rows: Sequence[Row]) -> dict[str, float | None]:
    """Means over the rows, standard errors of EM and F1, and how often the model had all it needed."""

    def numbers(name: str) -> list[float]:
        return [value for value in (row.get(name) for row in rows) if isinstance(value, int | float)]

    def mean(name: str) -> float | None:
        return statistics.fmean(numbers(name)) if numbers(name) else None

    whole = [row for row in rows if row["gold in the prompt"] == 1]
    right = [value for value in (row["em"] for row in whole) if isinstance(value, float)]
    seconds = numbers("seconds")
    return {
        "questions": len(rows),
        "em": mean("em"),
        "em standard error": standard_error(numbers("em")),
        "f1": mean("f1"),
        "f1 standard error": standard_error(numbers("f1")),
        "answered": sum(row["answer"] is not None for row in rows),
        "errors": sum("error" in row for row in rows),
        "gold in the prompt": mean("gold in the prompt"),
        "all gold in the prompt": len(whole),
        "em with all gold": statistics.fmean(right) if right else None,
        "calls": mean("calls"),
        "input tokens": mean("input tokens"),
        "output tokens": mean("output tokens"),
        "seconds": mean("seconds"),
        "seconds, median": statistics.median(seconds) if seconds else None,
    }


def cell(value: float | None, form: str) -> str:
    """A figure, or a dash where there is none."""
    return "-" if value is None else form.format(value)


def table(header: Row, figures: Mapping[str, Mapping[str, float | None]]) -> str:
    """The summary in Markdown."""
    names = [name for name, _ in COLUMNS]
    lines = [
        "# `ask` with the local model, first questions of each development set",
        "",
        f"Model {header['model']}, commit {header['commit']}. Made by `make bench-ask`. Tokens and seconds are means a",
        "question; `gold in the prompt` is the share of the needed documents whose text the model was shown, `em with",
        "all gold` the exact match on the questions where it was shown all of them.",
        "",
        f"| set | {' | '.join(names)} |",
        f"| --- |{' ---: |' * len(names)}",
    ]
    for name, values in figures.items():
        lines.append(f"| {name} | {' | '.join(cell(values[column], form) for column, form in COLUMNS)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
