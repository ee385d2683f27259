"""Single questions: what each method retrieved, which of it was gold, and what was answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ecphoryrag.evaluation.baselines.memory import ENTITY
from ecphoryrag.evaluation.bench.reporting.parts import Run
from ecphoryrag.evaluation.bench.rows import CellRow, QuestionRow

Verdict = Literal["right", "partly", "wrong"]
EXCERPT = 700
"""Characters of a passage; the whole of most."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A document as it is shown."""

    title: str
    """The id where the run's folder has no texts."""
    gold: bool = False
    shown: bool = False
    """Whether the reader was given it."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """One method on one question."""

    column: int
    """Of the method, in the browser's list of methods."""
    verdict: Verdict
    figures: str
    answer: str | None
    answered: bool
    reasoning: str
    problems: tuple[str, ...]
    retrieved: tuple[Passage, ...]
    missed: tuple[str, ...]
    """Gold that did not come back."""
    entities: tuple[str, ...]
    """Whose descriptions the reader was given."""
    cited: tuple[int, ...]
    """Numbers, in the prompt, of the evidence that the answer says it used."""
    cost: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question."""

    dataset: str
    id: str
    text: str
    answers: tuple[str, ...]
    type: str
    gold: tuple[Passage, ...]
    others: tuple[Passage, ...]
    """Passages that some reader was shown and that are not gold, with their texts."""
    tried: tuple[Tried, ...]
    results: str
    """For each method of the browser: 2 right, 1 partly, 0 wrong, - not asked."""


@dataclass(frozen=True, slots=True)
class Browser:
    """All questions of a run."""

    columns: tuple[str, ...]
    datasets: tuple[str, ...]
    questions: tuple[Asked, ...]
    answered: bool
    """Right is then a right answer; else every gold passage among the first five."""


def browser(run: Run) -> Browser:
    """By data set and question, in the order in which they were asked."""
    cells = [cell for cell in run.rows.cells if cell.unavailable is None]
    several = len({cell.encoder for cell in cells}) > 1, len({cell.seed for cell in cells}) > 1
    columns: dict[str, int] = {}
    for cell in cells:
        columns.setdefault(_column(cell, *several), len(columns))
    by_key = {cell.key: cell for cell in cells}
    rows: dict[tuple[str, str], list[tuple[int, QuestionRow]]] = {}
    for row in run.rows.questions:
        if row.cell in by_key:
            cell = by_key[row.cell]
            rows.setdefault((cell.dataset, row.id), []).append((columns[_column(cell, *several)], row))
    order = list(dict.fromkeys(dataset for dataset, _ in rows))
    asked = tuple(
        _asked(run, dataset, name, found, len(columns))
        for (dataset, name), found in sorted(rows.items(), key=lambda item: order.index(item[0][0]))
    )
    return Browser(tuple(columns), tuple(order), asked, any(row.answered for row in run.rows.questions))


def _column(cell: CellRow, encoders: bool, seeds: bool) -> str:  # noqa: FBT001 - two facts of the run
    encoder = f", {cell.encoder}" if encoders else ""
    return f"{cell.label}{encoder}{f', seed {cell.seed}' if seeds else ''}"


def _asked(run: Run, dataset: str, name: str, found: Sequence[tuple[int, QuestionRow]], columns: int) -> Asked:
    question = run.texts.questions.get((dataset, name))
    gold = found[0][1].gold
    tried = tuple(_tried(run, dataset, column, row) for column, row in sorted(found, key=lambda each: each[0]))
    results = ["-"] * columns
    for each in tried:
        results[each.column] = {"right": "2", "partly": "1", "wrong": "0"}[each.verdict]
    shown = dict.fromkeys(document for _, row in found for document in row.shown if document not in gold)
    others = [_passage(run, dataset, document) for document in shown]
    return Asked(
        dataset=dataset,
        id=name,
        text=question.text if question else "",
        answers=question.answers if question else (),
        type=question.type if question else "",
        gold=tuple(_passage(run, dataset, document, gold=True) for document in gold),
        others=tuple(passage for passage in others if passage.text),
        tried=tried,
        results="".join(results),
    )


def _passage(run: Run, dataset: str, document: str, *, gold: bool = False) -> Passage:
    found = run.texts.documents.get((dataset, document))
    if found is None:
        return Passage(document, gold)
    text = found.text if len(found.text) <= EXCERPT else f"{found.text[:EXCERPT].rstrip()} …"
    return Passage(found.title or document, gold, text=text)


def _tried(run: Run, dataset: str, column: int, row: QuestionRow) -> Tried:
    titles = {document: _passage(run, dataset, document).title for document in (*row.retrieved, *row.gold, *row.shown)}
    retrieved = tuple(
        Passage(titles[document], document in row.gold, document in row.shown) for document in row.retrieved
    )
    problems = [f"Error: {row.error}"] if row.error else []
    problems += [row.reason] if row.reason else []
    return Tried(
        column=column,
        verdict=_verdict(row),
        figures=_figures(row),
        answer=row.answer,
        answered=row.answered,
        reasoning=row.reasoning,
        problems=(*problems, *row.notes),
        retrieved=retrieved,
        missed=tuple(titles[document] for document in row.gold if document not in row.retrieved),
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
