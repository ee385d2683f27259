"""What indexing took of the language model, method by method."""

from __future__ import annotations

from collections.abc import Sequence

from ecphoryrag.evaluation.bench.reporting.numbers import NONE, count, seconds
from ecphoryrag.evaluation.bench.reporting.parts import Cell, Grid, Item, Part, groups
from ecphoryrag.evaluation.bench.table import TableRow

TITLE = "What indexing takes"
MEASURE = "paper"
"""The method against which the others are told."""


def indexing(rows: Sequence[TableRow]) -> Part:
    """A grid for each data set and encoder where some method had a language model read the passages."""
    indexed = [row for row in rows if row.unavailable is None]
    asked = {key: found for key, found in groups(indexed).items() if any(row.index.calls for row in found)}
    if not asked:
        return Part(TITLE, ("No method of this run asked a language model to index, so there is nothing to compare.",))
    items: list[Item] = [
        "Tokens that the language model read and wrote to index all passages, calls refused and asked again included; "
        "seconds are those of the calls and all other work, one call after the other. Replies that two methods share "
        "count for both."
    ]
    return Part(TITLE, (*items, *(_grid(*key, found) for key, found in asked.items())))


def _grid(dataset: str, encoder: str, rows: Sequence[TableRow]) -> Grid:
    measure = next((row for row in rows if row.method == MEASURE and row.index.calls), None)
    against = f"times {measure.label}" if measure else "times paper"
    header = ("method", "read", "written", "both", "calls", "tokens a passage", "seconds", "encoder", against, "sizes")
    passages = dict.fromkeys(f"{row.passages:,}" for row in rows)
    caption = f"{dataset}, {encoder}: {' or '.join(passages)} passages, read by {rows[0].generator}"
    return Grid(caption, header, tuple(_line(row, measure) for row in rows))


def _line(row: TableRow, measure: TableRow | None) -> tuple[Cell, ...]:
    index, both = row.index, tokens(row)
    sizes = ", ".join(f"{count(number)} {name}" for name, number in row.index_figures.items())
    texts = (
        row.label,
        count(index.input_tokens, estimated=index.estimated),
        count(index.output_tokens, estimated=index.estimated),
        count(both, estimated=index.estimated),
        count(index.calls),
        f"{both / row.passages:,.1f}" if row.passages else NONE,
        seconds(index.seconds),
        count(index.embedding_tokens),
        f"{both / tokens(measure):.2f}" if measure else NONE,
        sizes or NONE,
    )
    return tuple(map(Cell, texts))


def tokens(row: TableRow) -> float:
    """Read and written."""
    return row.index.input_tokens + row.index.output_tokens
