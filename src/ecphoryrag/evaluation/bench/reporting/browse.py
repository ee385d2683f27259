"""Single questions: what each method retrieved, which of it was gold, and what was answered.

The page holds them as data, from which its script makes what is looked at, 50 questions at a time: thousands of
questions by many methods would otherwise be millions of elements. How much there can be is bounded, and what is left
out is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from ecphoryrag.evaluation.baselines.memory import ENTITY
from ecphoryrag.evaluation.bench.reporting.parts import Run
from ecphoryrag.evaluation.bench.rows import CellRow, QuestionRow
from ecphoryrag.types import JsonValue

Verdict = Literal["right", "partly", "wrong"]
EXCERPT = 700
"""Characters of a passage; the whole of most."""
LONGEST = 600
"""Characters of an answer's reasoning, and of a problem."""
PASSAGES = 8_000_000
"""Characters of passages in a page, those of all runs together."""
QUESTIONS = 6_000
"""In a page; of a larger run, the first of each data set."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A document as it is shown."""

    title: str
    """The id where the run's folder has no texts."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """One method on one question; passages by their place in :attr:`Browser.documents`."""

    column: int
    """Of the method, in the browser's list of methods."""
    verdict: Verdict
    figures: str
    answer: str | None
    answered: bool
    reasoning: str
    problems: tuple[str, ...]
    retrieved: tuple[int, ...]
    shown: tuple[int, ...]
    """What the reader was given."""
    entities: tuple[str, ...]
    """Whose descriptions the reader was given."""
    cited: tuple[int, ...]
    """Numbers, in the prompt, of the evidence that the answer says it used."""
    cost: str

    @property
    def record(self) -> list[JsonValue]:
        """For the page's script."""
        record: list[JsonValue] = [self.column, self.verdict, self.figures]
        record.append(self.answer if self.answered else False)
        record += [self.reasoning, list(self.problems), list(self.retrieved), list(self.shown)]
        return [*record, list(self.entities), list(self.cited), self.cost]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question."""

    dataset: int
    """In the browser's list of data sets."""
    id: str
    text: str
    answers: tuple[str, ...]
    type: str
    gold: tuple[int, ...]
    tried: tuple[Tried, ...]
    results: str
    """For each method of the browser: 2 right, 1 partly, 0 wrong, - not asked."""

    @property
    def record(self) -> list[JsonValue]:
        """For the page's script."""
        told: list[JsonValue] = [each.record for each in self.tried]
        record: list[JsonValue] = [self.dataset, self.id, self.text, list(self.answers), self.type]
        return [*record, list(self.gold), self.results, told]


@dataclass(frozen=True, slots=True)
class Browser:
    """The questions of a run."""

    columns: tuple[str, ...]
    datasets: tuple[str, ...]
    documents: tuple[Passage, ...]
    questions: tuple[Asked, ...]
    answered: bool
    """Right is then a right answer; else every gold passage among the first five."""
    left_out: int = 0
    """Questions for which there is no room."""
    without_text: int = 0
    """Passages that are shown by title alone, for the same reason."""

    @property
    def data(self) -> str:
        """As JSON that cannot end the element it stands in, whatever the texts say."""
        record: dict[str, JsonValue] = {
            "columns": list(self.columns),
            "sets": list(self.datasets),
            "documents": [[passage.title, passage.text] for passage in self.documents],
            "questions": [asked.record for asked in self.questions],
        }
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def browser(run: Run, *, passages: int = PASSAGES, questions: int = QUESTIONS) -> Browser:
    """By data set and question, in the order in which they were asked; at most so many characters and questions."""
    cells = [cell for cell in run.rows.cells if cell.unavailable is None]
    several = len({cell.encoder for cell in cells}) > 1, len({cell.seed for cell in cells}) > 1
    columns: dict[str, int] = {}
    for cell in cells:
        columns.setdefault(_column(cell, *several), len(columns))
    by_key = {cell.key: cell for cell in cells}
    rows: dict[str, dict[str, list[tuple[int, QuestionRow]]]] = {}
    for row in run.rows.questions:
        if row.cell in by_key:
            cell = by_key[row.cell]
            asked = rows.setdefault(cell.dataset, {}).setdefault(row.id, [])
            asked.append((columns[_column(cell, *several)], row))
    every = sum(map(len, rows.values()))
    most = _even([len(asked) for asked in rows.values()], questions)
    library = _Library(run)
    shown = tuple(
        _asked(run, library, place, (dataset, name), found, len(columns))
        for place, (dataset, of_set) in enumerate(rows.items())
        for name, found in list(of_set.items())[: most[place]]
    )
    documents, without = library.documents(passages, shown)
    answered = any(row.answered for row in run.rows.questions)
    return Browser(tuple(columns), tuple(rows), documents, shown, answered, every - len(shown), without)


def _even(sizes: Sequence[int], most: int) -> list[int]:
    """How many of each, so that there are at most ``most``, and none has fewer than others for want of room."""
    room, left = most, len(sizes)
    given: dict[int, int] = {}
    for place in sorted(range(len(sizes)), key=lambda place: sizes[place]):
        given[place] = min(sizes[place], room // left)
        room, left = room - given[place], left - 1
    return [given[place] for place in range(len(sizes))]


class _Library:
    """The documents that are named, each once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._places: dict[tuple[str, str], int] = {}

    def places(self, dataset: str, documents: Iterable[str]) -> tuple[int, ...]:
        return tuple(self._places.setdefault((dataset, name), len(self._places)) for name in documents)

    def documents(self, most: int, questions: Sequence[Asked]) -> tuple[tuple[Passage, ...], int]:
        """All of them, with the texts of gold as far as there is room, then of what readers were given; and how many
        of these have no room."""
        texts = [self._text(*key) for key in self._places]
        wanted = dict.fromkeys(chain(_gold(questions), _given(questions)))
        kept: dict[int, str] = {}
        used = without = 0
        for place in wanted:
            if used + len(texts[place]) <= most:
                kept[place] = texts[place]
                used += len(texts[place])
            else:
                without += 1
        titles = [self._title(*key) for key in self._places]
        return tuple(Passage(title, kept.get(place, "")) for place, title in enumerate(titles)), without

    def _title(self, dataset: str, name: str) -> str:
        found = self._run.texts.documents.get((dataset, name))
        return (found.title or name) if found else name

    def _text(self, dataset: str, name: str) -> str:
        found = self._run.texts.documents.get((dataset, name))
        return _cut(found.text, EXCERPT) if found else ""


def _gold(questions: Sequence[Asked]) -> Iterable[int]:
    return (place for asked in questions for place in asked.gold)


def _given(questions: Sequence[Asked]) -> Iterable[int]:
    return (place for asked in questions for each in asked.tried for place in each.shown)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()} …"


def _column(cell: CellRow, encoders: bool, seeds: bool) -> str:  # noqa: FBT001 - two facts of the run
    encoder = f", {cell.encoder}" if encoders else ""
    return f"{cell.label}{encoder}{f', seed {cell.seed}' if seeds else ''}"


def _asked(
    run: Run,
    library: _Library,
    place: int,
    key: tuple[str, str],
    found: Sequence[tuple[int, QuestionRow]],
    columns: int,
) -> Asked:
    question = run.texts.questions.get(key)
    tried = tuple(_tried(library, key[0], column, row) for column, row in sorted(found, key=lambda each: each[0]))
    results = ["-"] * columns
    for each in tried:
        results[each.column] = _DIGITS[each.verdict]
    return Asked(
        dataset=place,
        id=key[1],
        text=question.text if question else "",
        answers=question.answers if question else (),
        type=question.type if question else "",
        gold=library.places(key[0], found[0][1].gold),
        tried=tried,
        results="".join(results),
    )


_DIGITS: Mapping[Verdict, str] = {"right": "2", "partly": "1", "wrong": "0"}


def _tried(library: _Library, dataset: str, column: int, row: QuestionRow) -> Tried:
    problems = [f"Error: {row.error}"] if row.error else []
    problems += [row.reason] if row.reason else []
    return Tried(
        column=column,
        verdict=_verdict(row),
        figures=_figures(row),
        answer=row.answer,
        answered=row.answered,
        reasoning=_cut(row.reasoning, LONGEST),
        problems=tuple(_cut(said, LONGEST) for said in (*problems, *row.notes)),
        retrieved=library.places(dataset, row.retrieved),
        shown=library.places(dataset, (each for each in row.shown if not each.startswith(ENTITY))),
        entities=tuple(each.removeprefix(ENTITY) for each in row.shown if each.startswith(ENTITY)),
        cited=row.cited,
        cost=_cost(row),
    )


def _verdict(row: QuestionRow) -> Verdict:
    if row.answered:
        best, some = row.figures.get("em", 0.0), row.figures.get("f1", 0.0)
    else:
        best, some = row.figures.get("all@5", 0.0), row.figures.get("recall@5", 0.0)
    return "right" if best >= 1 else "partly" if some > 0 else "wrong"


def _figures(row: QuestionRow) -> str:
    said = [f"F1 {row.figures['f1'] * 100:.0f}"] if "f1" in row.figures else []
    said += [f"recall@5 {row.figures['recall@5'] * 100:.0f}"] if "recall@5" in row.figures else []
    if "gold_shown" in row.figures and row.shown:
        said.append(f"{row.figures['gold_shown'] * 100:.0f} % of the gold shown to the reader")
    return ", ".join(said)


def _cost(row: QuestionRow) -> str:
    usage = row.usage
    tokens = f"{usage.input_tokens:,} tokens read, {usage.output_tokens:,} written, " if usage.calls else ""
    return f"{tokens}{row.seconds:.3g} s"
