"""The table of a run, from its rows alone: equal rows give an equal table, in whatever sittings they were made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ecphoryrag.evaluation.bench.rows import CellRow, QuestionRow, Rows, Split, read_rows, same_cell
from ecphoryrag.evaluation.metrics import FIGURES
from ecphoryrag.types import JsonValue

ANSWER_FIGURES = ("em", "f1", "gold_shown")
ORDER = (*ANSWER_FIGURES, *FIGURES)
"""All figures, in the order of a table."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure over the questions of one or several seeds."""

    mean: float
    """Mean over the seeds of the mean over the questions."""
    deviation: float | None
    """Standard deviation of the seeds' means (n - 1); None for a single seed."""
    error: float | None
    """Standard error of the mean over the questions of all seeds, each question once; None for fewer than two."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Mean cost of one question, or the cost of an index (mean over the seeds' cells, which share it)."""

    calls: float
    input_tokens: float
    output_tokens: float
    embedding_tokens: float
    seconds: float
    """Of a question the median: a pause of the machine would otherwise stand for a method."""
    estimated: bool
    """Whether some of the tokens are estimates."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A method with its parameters on one data set with one encoder, over all its seeds."""

    dataset: str
    encoder: str
    label: str
    method: str
    split: Split
    generator: str | None
    parameters: Mapping[str, JsonValue]
    varied: Mapping[str, JsonValue]
    k: int
    normalisation: str
    seeds: tuple[int, ...]
    questions: int
    """Rows, all seeds together."""
    figures: Mapping[str, Figure]
    """By name, in the order of :data:`ORDER`; a name that some row lacks is left out, and named in ``notes``."""
    query: Spent | None
    """None if no question has been asked yet."""
    retrieval_seconds: float | None
    """Median of one question."""
    index: Spent
    index_figures: Mapping[str, float]
    passages: int
    errors: int
    """Questions that failed; they count as wrong."""
    unanswered: int
    """Questions asked for an answer that have none, failed ones included."""
    code: tuple[str, ...]
    """Short hashes of the code that made the rows; more than one if the run allowed for it."""
    unavailable: str | None
    notes: tuple[str, ...]


def table(run: Path | Rows) -> tuple[TableRow, ...]:
    """A row for each (data set, encoder, label), in the order in which the run began them.

    Only what stands in the rows counts: questions not yet asked are missing from ``questions`` and from the means.
    Raises InputError for rows that cannot be read.
    """
    rows = run if isinstance(run, Rows) else read_rows(run)
    questions = rows.by_cell()
    return tuple(_row(cells, [questions[cell.key] for cell in cells]) for cells in same_cell(rows.cells).values())


def _row(cells: Sequence[CellRow], asked: Sequence[Sequence[QuestionRow]]) -> TableRow:
    first = cells[-1]
    every = [row for rows in asked for row in rows]
    begun = [(cell, rows) for cell, rows in zip(cells, asked, strict=True) if rows]
    names = set.intersection(*(set(row.figures) for row in every)) if every else set()
    partial = sorted({name for row in every for name in row.figures} - names)
    notes = dict.fromkeys(note for cell in cells for note in cell.notes)
    if partial:
        notes[f"not in every row, so not in the table: {', '.join(partial)}"] = None
    return TableRow(
        dataset=first.dataset,
        encoder=first.encoder,
        label=first.label,
        method=first.method,
        split=first.split,
        generator=first.generator,
        parameters=first.parameters,
        varied=first.varied,
        k=first.k,
        normalisation=first.normalisation,
        seeds=tuple(cell.seed for cell, _ in begun),
        questions=len(every),
        figures={name: _figure(name, [rows for _, rows in begun]) for name in ordered(names)},
        query=_query(every),
        retrieval_seconds=median([row.retrieval_seconds for row in every]) if every else None,
        index=_index(cells),
        index_figures=first.index_figures,
        passages=first.passages,
        errors=sum(row.error is not None for row in every),
        unanswered=sum(row.answered and row.answer is None for row in every),
        code=tuple(dict.fromkeys(row.code for row in every)),
        unavailable=first.unavailable,
        notes=tuple(notes),
    )


def ordered(names: set[str]) -> list[str]:
    """Known names in the order of :data:`ORDER`, then the others by name."""
    return [name for name in ORDER if name in names] + sorted(names - set(ORDER))


def mean(values: Sequence[float]) -> float:
    """Exactly rounded, so that the order of the rows does not matter. Raises ValueError for none."""
    if not values:
        raise ValueError("no values to take the mean of")
    return math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float | None:
    """Standard deviation with n - 1; None for fewer than two."""
    if len(values) < 2:
        return None
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def _figure(name: str, asked: Sequence[Sequence[QuestionRow]]) -> Figure:
    seeds = [mean([row.figures[name] for row in rows]) for rows in asked]
    by_question: dict[str, list[float]] = {}
    for row in (row for rows in asked for row in rows):
        by_question.setdefault(row.id, []).append(row.figures[name])
    values = [mean(each) for each in by_question.values()]  # asked twice, a question says no more than once
    spread = deviation(values)
    return Figure(mean(seeds), deviation(seeds), None if spread is None else spread / math.sqrt(len(values)))


def _query(rows: Sequence[QuestionRow]) -> Spent | None:
    if not rows:
        return None
    return Spent(
        mean([row.usage.calls for row in rows]),
        mean([row.usage.input_tokens for row in rows]),
        mean([row.usage.output_tokens for row in rows]),
        mean([row.usage.embedding_tokens for row in rows]),
        median([row.seconds for row in rows]),
        any(row.usage.estimated for row in rows),
    )


def _index(cells: Sequence[CellRow]) -> Spent:
    return Spent(
        mean([cell.index.calls for cell in cells]),
        mean([cell.index.input_tokens for cell in cells]),
        mean([cell.index.output_tokens for cell in cells]),
        mean([cell.index.embedding_tokens for cell in cells]),
        mean([cell.index_seconds for cell in cells]),
        any(cell.index.estimated for cell in cells),
    )
