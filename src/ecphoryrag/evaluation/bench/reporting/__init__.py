"""The report of stored runs: ``report.md``, ``report.html``, and the summary for the documentation.

Made of what stands in a run's folder alone (:mod:`..rows`, :mod:`..texts`, :mod:`..manifest`), so that the same run
gives the same bytes. No model is asked and nothing is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.bench.manifest import MANIFEST
from ecphoryrag.evaluation.bench.reporting import curves, indexing, markdown, tables, words
from ecphoryrag.evaluation.bench.reporting.browse import PASSAGES, QUESTIONS, browser
from ecphoryrag.evaluation.bench.reporting.page import page, section
from ecphoryrag.evaluation.bench.reporting.parts import Part, Run, folder_name
from ecphoryrag.evaluation.bench.reporting.plots import require_matplotlib
from ecphoryrag.evaluation.bench.rows import ROWS, read_rows
from ecphoryrag.evaluation.bench.table import table
from ecphoryrag.evaluation.bench.texts import read_texts
from ecphoryrag.types import JsonValue

__all__ = ["BEGIN", "END", "read_run", "write_report"]

BEGIN, END = "<!-- runs: begin -->", "<!-- runs: end -->"
"""Marks, in the file for the documentation, around what the report writes."""
MARKDOWN, HTML = "report.md", "report.html"
LEAD = ("Everything here is computed from the rows of the runs named.",)
QUOTES = "Passages and questions are quoted from the data sets, whose own licences hold for them."
"""Of the page, which has their texts."""
DOCS_LEAD = (
    "What follows is written by `ecphory bench report`; do not edit it. Every number and sentence about a run is "
    "computed from its rows. How to run it again: `ecphory bench run CONFIG`, with the configurations under "
    "`benchmarks/configs`.",
)


def read_run(folder: Path) -> Run:
    """A stored run. Raises InputError if the folder holds none, or its files cannot be read."""
    if not (folder / ROWS).is_file():
        raise InputError(f"{folder} is no run: it has no {ROWS}; name the folder that `bench run` wrote")
    rows = read_rows(folder)
    return Run(folder_name(folder), rows, table(rows), read_texts(folder), _manifest(folder / MANIFEST))


def write_report(runs: Sequence[Path], out: Path, *, docs: Path | None = None) -> tuple[Path, ...]:
    """Write the files into ``out``, which is made, and the summary to ``docs``; returns what was written.

    Where ``docs`` is there and holds :data:`BEGIN` and :data:`END`, only what stands between these is replaced.

    Raises InputError for a folder that is no run, or a file that cannot be written, and EcphoryError if the extra
    `eval` is missing.
    """
    require_matplotlib()
    read = [read_run(folder) for folder in runs]
    parts = [(run.name, _parts(run)) for run in read]
    title = f"Comparison of methods: {', '.join(run.name for run in read)}"
    sections = [
        section(number, name, shown, browser(run, passages=PASSAGES // len(read), questions=QUESTIONS // len(read)))
        for number, (run, (name, shown)) in enumerate(zip(read, parts, strict=True))
    ]
    written = {
        out / MARKDOWN: markdown.document(title, LEAD, parts),
        out / HTML: page(title, (*LEAD, QUOTES), sections),
    }
    if docs is not None:
        written[docs] = _docs(docs, [(run.name, _summary(run)) for run in read])
    for path, text in written.items():
        _write(path, text)
    return tuple(written)


def _parts(run: Run) -> list[Part]:
    rows = run.table
    return [
        words.what(run),
        tables.table_1(rows),
        words.says(run),
        curves.cost(rows),
        indexing.indexing(rows),
        tables.table_2(rows),
        curves.depth(rows),
        curves.context(rows),
        curves.by_k(rows),
        words.does_not_say(run),
    ]


def _summary(run: Run) -> list[Part]:
    parts = [words.what(run), words.says(run)]
    of_depth = tables.depth_rows(run.table)
    if any(row.questions and row not in of_depth for row in run.table):
        parts.append(tables.table_1(run.table))
    if any(row.index.calls for row in run.table):
        parts.append(indexing.indexing(run.table))
    if of_depth:
        parts.append(tables.table_2(run.table))
    return [*parts, words.does_not_say(run)]


def _docs(path: Path, runs: Sequence[tuple[str, Sequence[Part]]]) -> str:
    """The text of the file: where it is there and has the two marks, what stands between them is made anew."""
    try:
        before = path.read_text("utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}; name another file") from error
    head, begin, rest = before.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        return markdown.document("Benchmarks", DOCS_LEAD, runs)
    blocks = [*DOCS_LEAD, *markdown.runs(runs, named=True)]
    return head + BEGIN + "\n\n" + "\n\n".join(blocks) + "\n\n" + END + tail


def _manifest(path: Path) -> dict[str, JsonValue]:
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is no manifest; restore it, or move it away: the report does not need it") from error
    return record if isinstance(record, dict) else {}


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="\n")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; name another place") from error
