"""The demo: index the sample documents, then answer four questions that no single document answers.

    python examples/demo.py [--store FILE]

Exits with 1 if evidence that a question needs was not recalled, or fewer than three answers are right.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ecphoryrag import Answer, EcphoryError, Memory
from ecphoryrag.cli.bars import adding
from ecphoryrag.cli.render import show_answer, show_report
from ecphoryrag.cli.screen import standard_output
from ecphoryrag.evaluation.answers import exact_match

HERE = Path(__file__).parent
QUESTIONS = 4
RIGHT_AT_LEAST = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of ``questions.jsonl``: what it accepts as an answer, and the documents it needs."""

    question: str
    answers: tuple[str, ...]
    gold: frozenset[str]


def main() -> None:
    """Run the demo and exit."""
    parser = argparse.ArgumentParser(description="Index the sample documents and answer four questions.")
    parser.add_argument("--store", type=Path, default=Path("sample.ecphory"), help="the store file to use")
    store = parser.parse_args().store
    store.parent.mkdir(parents=True, exist_ok=True)
    try:
        right, whole = run(store)
    except EcphoryError as error:
        sys.exit(f"error: {error}")
    print(f"\n{right} of {QUESTIONS} answers right; all needed documents in the evidence of {whole} of {QUESTIONS}.")
    sys.exit(0 if whole == QUESTIONS and right >= RIGHT_AT_LEAST else 1)


def run(store: Path) -> tuple[int, int]:
    """(answers that are right, questions whose evidence is whole)."""
    screen = standard_output()
    with Memory.open(store) as memory:
        screen.line(f"Adding {HERE.name}/documents to {store}", "bold")
        with adding() as progress:
            report = memory.add_paths([HERE / "documents"], progress=progress)
        show_report(screen, report)
        right = whole = 0
        for number, asked in enumerate(questions(), start=1):
            screen.line(f"\n{'=' * 80}\nQuestion {number}: {asked.question}", "bold")
            started = time.perf_counter()
            answer = memory.ask(asked.question)
            show_answer(screen, answer)
            screen.line(f"{time.perf_counter() - started:.1f} s in all; expected: {asked.answers[0]}", "dim")
            right += bool(exact_match(answer.text, asked.answers))
            whole += asked.gold <= documents(answer)
    return right, whole


def questions() -> list[Asked]:
    """The questions shown: the first four."""
    lines = (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()[:QUESTIONS]
    records = [json.loads(line) for line in lines]
    return [Asked(each["question"], tuple(each["answers"]), frozenset(each["gold"])) for each in records]


def documents(answer: Answer) -> set[str]:
    """Documents in the evidence that the answer was given from."""
    return {evidence.chunk.document_id for evidence in answer.evidence}


if __name__ == "__main__":
    main()
