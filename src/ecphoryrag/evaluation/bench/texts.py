"""The questions and passages of a run, for reading single rows: which gold passage was missed, what stood in it.

They are apart from the rows, since they belong to the makers of the data sets: rows may be published where texts may
not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.dataset import Dataset, Question
from ecphoryrag.types import Document

TEXTS = "texts.jsonl"
"""Name of the file in a run's folder."""


@dataclass(frozen=True, slots=True)
class Texts:
    """By name of the data set and id; both empty if the run's folder has no texts."""

    questions: Mapping[tuple[str, str], Question]
    documents: Mapping[tuple[str, str], Document]


def write_texts(run: Path, datasets: Sequence[tuple[str, Dataset]]) -> None:
    """The texts of these sets, each question and document once; nothing is done if they are there already."""
    digest = sorted([name, *data.digests.values(), len(data.questions)] for name, data in datasets)
    path = run / TEXTS
    first = json.dumps({"kind": "texts", "of": digest}) + "\n"
    if path.exists():
        with path.open(encoding="utf-8") as file:
            if file.readline() == first:
                return
    draft = path.with_name(f"{TEXTS}.new")
    with draft.open("w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(first)
        file.writelines(dict.fromkeys(_lines(datasets)))
    draft.replace(path)


def _lines(datasets: Sequence[tuple[str, Dataset]]) -> Iterator[str]:
    for name, data in datasets:
        for question in data.questions:
            record = {
                "kind": "question",
                "dataset": name,
                "id": question.id,
                "text": question.text,
                "answers": question.answers,
                "gold": question.gold,
                "type": question.type,
            }
            yield json.dumps(record, ensure_ascii=False) + "\n"
        for document in data.documents:
            passage = {"dataset": name, "id": document.id, "title": document.title, "text": document.text}
            yield json.dumps({"kind": "document", **passage}, ensure_ascii=False) + "\n"


def read_texts(run: Path) -> Texts:
    """The texts of a run's folder. Raises InputError, naming file and line, for what is none."""
    path = run / TEXTS
    questions: dict[tuple[str, str], Question] = {}
    documents: dict[tuple[str, str], Document] = {}
    if not path.exists():
        return Texts(questions, documents)
    with path.open(encoding="utf-8", errors="surrogatepass") as file:
        for number, line in enumerate(file, 1):
            try:
                record = json.loads(line)
                if record["kind"] == "question":
                    questions[record["dataset"], record["id"]] = Question(
                        *(record["id"], record["text"], tuple(record["gold"]), tuple(record["answers"])),
                        record["type"],
                    )
                elif record["kind"] == "document":
                    key = record["dataset"], record["id"]
                    documents[key] = Document(record["id"], record["text"], record["title"])
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{path}, line {number}: not a text of a run; delete the file and run again"
                ) from error
    return Texts(questions, documents)
