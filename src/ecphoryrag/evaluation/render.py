"""The report as a table: drawn on a terminal, plain aligned lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from ecphoryrag.evaluation.metrics import FIGURES
from ecphoryrag.evaluation.report import COMPARED, Comparison, EvaluationReport, MethodResult
from ecphoryrag.evaluation.statistics import LEVEL

_HEADER = ("method", *FIGURES, "p50 ms", "p95 ms")


def render(report: EvaluationReport, console: Console) -> None:
    """Print the figures of every method, what indexing cost, and ``ecphory`` against the best flat method."""
    rows = [_cells(result) for result in report.methods if result.unavailable is None]
    if console.is_terminal:
        console.print(_table(rows))
    else:
        for line in _aligned([_HEADER, *rows]):
            _plain(console, line)
    for line in _remarks(report):
        _plain(console, line)


def _plain(console: Console, line: str) -> None:
    """As it is: neither wrapped nor read as markup (ids and reasons may hold brackets)."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _table(rows: Sequence[Sequence[str]]) -> Table:
    table = Table()
    for position, name in enumerate(_HEADER):
        table.add_column(name, justify="right" if position else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _cells(result: MethodResult) -> tuple[str, ...]:
    figures = [f"{result.figures[name]:.3f}" for name in FIGURES]
    times = ["-" if value is None else f"{value:.1f}" for value in (result.p50_ms, result.p95_ms)]
    return (result.method, *figures, *times)


def _remarks(report: EvaluationReport) -> list[str]:
    index = report.index
    memory = "unknown" if index.rss_mb is None else f"{index.rss_mb:.0f} MB"
    first, again = (
        "unknown" if value is None else f"{value:.0f} ms"
        for value in (index.open_and_first_recall_ms, index.reopen_and_first_recall_ms)
    )
    ratio = index.store_bytes / index.text_bytes
    lines = [
        f"{len(report.questions)} questions. Indexed {index.passages} passages in {index.seconds:.1f} s: "
        f"{index.entities} entities, {index.mentions} mentions, {index.llm_tokens} tokens of a language model.",
        f"Store {index.store_bytes / 2**20:.1f} MB ({ratio:.1f} x the text), peak memory {memory}, "
        f"opening and first recall {first}, reopening and first recall {again}.",
    ]
    lines += [f"Not indexed: {document}: {reason}" for document, reason in index.failed]
    for result in report.methods:
        if result.unavailable is not None:
            lines.append(f"{result.method} could not run: {result.unavailable}")
        if result.errors:
            lines.append(f"{result.method} raised on {result.errors} questions, counted as wrong: see the JSON report.")
        if result.empty:
            lines.append(f"{result.method} recalled nothing for {result.empty} questions, counted as wrong.")
    lines.append(describe(report.comparison))
    return lines


def describe(comparison: Comparison | None) -> str:
    """The comparison in a sentence."""
    if comparison is None:
        return "No comparison: it needs ecphory and a flat method (dense, bm25, hybrid) in the same run."
    interval = comparison.interval
    verdict = "above zero" if interval.above_zero else "not above zero"
    return (
        f"{comparison.method} - {comparison.baseline} (best flat), {COMPARED}: {interval.difference:+.3f}, "
        f"{LEVEL:.0%} interval [{interval.low:+.3f}, {interval.high:+.3f}], {verdict}."
    )
