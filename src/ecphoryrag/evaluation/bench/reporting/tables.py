"""The tables of a run: all methods by data set (the publication's Table 1), and the depth of search (Table 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ecphoryrag.evaluation.bench.reporting.numbers import NONE, count, marks, name, scale, seconds, value, with_spread
from ecphoryrag.evaluation.bench.reporting.parts import Cell, Grid, Item, Part
from ecphoryrag.evaluation.bench.table import TableRow

SHOWN = ("em", "f1", "recall@2", "recall@5", "recall@10", "all@5", "mrr", "ndcg@10")
"""Figures of Table 1, as far as a method has them."""
TABLE_1 = "Table 1. Methods"
DEPTH = "retrieval_depth"
READING = "select_seeds"
DEPTH_FIGURES = ("em", "f1", "recall@5", "all@5", "entities", "passages", "context_tokens")
READINGS = {"all": "all entities", "frontier": "entities of the last round"}
"""Where a round takes its seeds."""
READING_DEFAULT = "frontier"


def whole(rows: Sequence[TableRow], row: TableRow) -> bool:
    """Whether a row has as many questions as the fullest of its data set."""
    return row.questions == max(each.questions for each in rows if each.dataset == row.dataset)


def table_1(rows: Sequence[TableRow]) -> Part:
    """A grid for each data set: figures, tokens and seconds of every method; best and second best marked."""
    if not any(row.questions for row in rows):
        return Part(TABLE_1, ("No question has been asked in this run, so there is no Table 1.",))
    items: list[Item] = [
        "Figures of answers and retrieval in hundredths: the mean over the seeds ± its standard deviation; where there "
        "is one seed, the standard error over the questions in brackets. The best of a column is bold, the second "
        "underlined; methods that have not been asked all questions yet are not marked. Tokens of the language model "
        "and of the encoder are apart: for the whole index, and for a question on average; ~ marks estimates. Seconds "
        "of a question are medians."
    ]
    for dataset, found in groupby(sorted(rows, key=lambda row: _first(rows, row.dataset)), lambda row: row.dataset):
        items += _one_set(dataset, list(found))
    return Part(TABLE_1, tuple(items))


def _first(rows: Sequence[TableRow], dataset: str) -> int:
    return next(place for place, row in enumerate(rows) if row.dataset == dataset)


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    text: Callable[[TableRow], str]
    rank: Callable[[TableRow], float | None] = lambda row: None


def _figure(figure: str, shown: Callable[..., str]) -> _Column:
    def text(row: TableRow) -> str:
        return shown(figure, row.figures[figure]) if figure in row.figures else NONE

    def rank(row: TableRow) -> float | None:
        return row.figures[figure].mean * scale(figure) if figure in row.figures else None

    return _Column(name(figure), text, rank)


def _one_set(dataset: str, rows: Sequence[TableRow]) -> list[Item]:
    asked = [row for row in rows if row.questions]
    notes: list[Item] = []
    for row in rows:
        if row.unavailable is not None:
            notes.append(f"{row.label} with {row.encoder} could not run on {dataset}: {row.unavailable}.")
        elif not row.questions:
            notes.append(f"{row.label} with {row.encoder} has not been asked anything on {dataset} yet.")
    if not asked:
        return [f"{dataset}: no question has been asked yet.", *notes]
    several = len({row.encoder for row in asked}) > 1
    columns = [
        *(_figure(figure, with_spread) for figure in SHOWN if any(figure in row.figures for row in asked)),
        _Column("index: model tokens", _index_tokens),
        _Column("index: encoder tokens", lambda row: count(row.index.embedding_tokens)),
        _Column("question: tokens read", lambda row: _query(row, "input_tokens")),
        _Column("question: tokens written", lambda row: _query(row, "output_tokens")),
        _Column("question: encoder tokens", lambda row: _query(row, "embedding_tokens")),
        _Column("question: calls", lambda row: NONE if row.query is None else f"{row.query.calls:.1f}"),
        _Column("question: seconds", lambda row: NONE if row.query is None else seconds(row.query.seconds)),
        _Column("questions", lambda row: _questions(asked, row)),
        _Column("errors", lambda row: str(row.errors)),
    ]
    named = [f"{row.label}, {row.encoder}" if several else row.label for row in asked]
    lead = asked[0]
    caption = f"{dataset}: {lead.passages:,} passages, {lead.split} questions, {'' if several else lead.encoder + ', '}"
    caption += f"answers by {lead.generator}, normalised as {lead.normalisation}" if lead.generator else "no answers"
    return [_grid(caption, named, columns, asked), *notes]


def _grid(caption: str, named: Sequence[str], columns: Sequence[_Column], rows: Sequence[TableRow]) -> Grid:
    columns_cells = []
    for column in columns:
        marked = marks([column.rank(row) if whole(rows, row) else None for row in rows])
        columns_cells.append([Cell(column.text(row), mark) for row, mark in zip(rows, marked, strict=True)])
    lines = [(Cell(label), *(cells[place] for cells in columns_cells)) for place, label in enumerate(named)]
    return Grid(caption, ("method", *(column.title for column in columns)), tuple(lines))


def _index_tokens(row: TableRow) -> str:
    return count(row.index.input_tokens + row.index.output_tokens, estimated=row.index.estimated)


def _query(row: TableRow, what: str) -> str:
    return NONE if row.query is None else count(getattr(row.query, what), estimated=row.query.estimated)


def _questions(rows: Sequence[TableRow], row: TableRow) -> str:
    seeds = f" ({len(row.seeds)} seeds)" if len(row.seeds) > 1 else ""
    unfinished = "" if whole(rows, row) else ", unfinished"
    return f"{row.questions}{seeds}{unfinished}"


def depth_rows(rows: Sequence[TableRow]) -> list[TableRow]:
    """Those in which the depth of search is varied."""
    return [row for row in rows if DEPTH in row.varied and row.questions]


def reading(row: TableRow) -> str:
    """The reading of the publication's seed selection that a row follows."""
    return READINGS.get(str(row.parameters.get(READING, READING_DEFAULT)), "another reading")


def table_2(rows: Sequence[TableRow]) -> Part:
    """Depth by depth, in both readings of the seed selection; what the run did not measure is said."""
    title = "Table 2. Depth of the associative search"
    found = depth_rows(rows)
    if not found:
        return Part(title, ("This run does not vary the depth of search, so there is no Table 2.",))
    items: list[Item] = [
        "Each round of the published algorithm takes its seeds either among all entities found so far, as its text "
        "reads, or among those that the last round added. Entities: those kept at the end; passages and context "
        "tokens: what a reader is given, before its own budget cuts it. Seconds are medians."
    ]
    if not any("em" in row.figures for row in found):
        items.append("This run only retrieves: it has no answers, so EM and F1 are missing here.")
    by_set = sorted(found, key=lambda row: (_first(found, row.dataset), row.encoder))
    for (dataset, encoder), group in groupby(by_set, lambda row: (row.dataset, row.encoder)):
        lines = sorted(group, key=lambda row: (reading(row), _others(row), float(str(row.varied[DEPTH]))))
        columns = [_figure(each, value) for each in DEPTH_FIGURES if any(each in row.figures for row in lines)]
        columns += [
            _Column("seconds to retrieve", lambda row: seconds(row.retrieval_seconds or 0.0)),
            _Column("seconds", lambda row: NONE if row.query is None else seconds(row.query.seconds)),
            _Column("tokens read", lambda row: _query(row, "input_tokens")),
            _Column("questions", lambda row: str(row.questions)),
        ]
        named = [f"{reading(row)}, depth {row.varied[DEPTH]}{_others(row)}" for row in lines]
        grid = _grid(f"{dataset}, {encoder}", named, columns, lines)
        items.append(Grid(grid.caption, ("seeds and depth", *grid.header[1:]), _unmarked(grid)))
    return Part(title, tuple(items))


def _unmarked(grid: Grid) -> tuple[tuple[Cell, ...], ...]:
    """An ablation has no winner, and a larger context is not a better one."""
    return tuple(tuple(Cell(cell.text) for cell in row) for row in grid.rows)


def _others(row: TableRow) -> str:
    return "".join(f", {key} {said}" for key, said in row.varied.items() if key not in (DEPTH, READING))
