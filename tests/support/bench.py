"""A small comparison: a corpus and questions of our own, fakes for the models, and a child process that runs it."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ecphoryrag.evaluation.bench.run import BenchReport, Choose, run
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.types import Message

CORPUS = [
    ("vale", "The Silent Vale", "The Silent Vale is a 1931 film directed by Orla Menken."),
    ("orla", "Orla Menken", "Orla Menken was a director. She was the daughter of Brida Sollas."),
    ("brida", "Brida Sollas", "Brida Sollas was a painter from Dunlisk."),
    ("dunlisk", "Dunlisk", "Dunlisk is a harbour town on the river Iskel."),
    ("iskel", "Iskel", "The Iskel is a river that rises near Kettlemoor."),
    ("rope", "Haskett", "Haskett makes ropes of hemp and nothing else."),
]
QUESTIONS = [
    ("q1", "Who is the mother of the director of The Silent Vale?", ["Brida Sollas"], ["vale", "orla"]),
    ("q2", "On which river lies the home town of Brida Sollas?", ["Iskel", "River Iskel"], ["brida", "dunlisk"]),
    ("q3", "Who directed The Silent Vale?", ["Orla Menken"], ["vale"]),
    ("q4", "What does Haskett make?", ["ropes"], ["rope"]),
    ("q5", "Near what does the Iskel rise?", ["Kettlemoor"], ["iskel"]),
    ("q6", "Whose daughter was Orla Menken?", ["Brida Sollas"], ["orla"]),
]
HEAD = """
split = "development"
generator = "local"
k = 3
code = "version"
"""
"""``code``: the sources may be edited while a test runs."""
METHODS = """
[[methods]]
name = "closed-book"
[[methods]]
name = "dense"
[[methods]]
name = "ecphory"
[[methods]]
name = "paper"
[methods.parameters]
k_final = [2, 4]
"""
FIRST = re.compile(r"^\[1\] ([^:]+):", re.MULTILINE)


def write_data(folder: Path, questions: Sequence[tuple[str, str, list[str], list[str]]] = QUESTIONS) -> None:
    """``corpus.jsonl`` and ``questions.jsonl``."""
    corpus = [{"id": name, "title": title, "text": text} for name, title, text in CORPUS]
    asked = [
        {"id": name, "question": text, "answers": answers, "gold": gold} for name, text, answers, gold in questions
    ]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)), encoding="utf-8")
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")


def write_config(folder: Path, head: str = HEAD, methods: str = METHODS, dataset: str = "") -> Path:
    """``bench.toml``, over the data of :func:`write_data`."""
    data = f'[[datasets]]\nname = "tiny"\nformat = "ecphory"\ncorpus = "corpus.jsonl"\n{dataset}'
    if "questions =" not in dataset:
        data += 'questions = "questions.jsonl"\n'
    path = folder / "bench.toml"
    path.write_text(f"{head}\n{data}\n{methods}", encoding="utf-8")
    return path


def reply(messages: Sequence[Message]) -> str:
    """The title of the first piece of evidence, or a guess where there is none: the same prompt, the same reply."""
    first = FIRST.search(messages[-1].content)
    if first is None:
        return json.dumps({"reasoning": "I know it.", "answer": "Brida Sollas"})
    return json.dumps({"reasoning": "It stands first.", "answer": first[1], "evidence": [1]})


def generator(seconds: float = 0.0) -> ScriptedGenerator:
    """Says :func:`reply` after so many seconds."""

    def said(messages: Sequence[Message]) -> str:
        time.sleep(seconds)
        return reply(messages)

    return ScriptedGenerator(said)


def fakes(seconds: float = 0.0) -> Choose:
    """Models that cost nothing."""
    return Choose(encoder=lambda settings: HashEncoder(), generator=lambda settings: generator(seconds))


def run_faked(config: Path, out: Path, limit: int | None = None, max_tokens: int | None = None) -> BenchReport:
    """A sitting with :func:`fakes`."""
    return run(config, out, limit=limit, max_tokens=max_tokens, choose=fakes())


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), choose=fakes(float(sys.argv[3])))
