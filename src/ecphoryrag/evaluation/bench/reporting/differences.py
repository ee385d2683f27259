"""What can be said of two methods of one run: the difference question by question, with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ecphoryrag.evaluation.bench.reporting.parts import Run, groups
from ecphoryrag.evaluation.bench.table import TableRow, mean
from ecphoryrag.evaluation.statistics import Interval, paired_bootstrap

PREFERRED = (("ecphory", ("dense", "paper", "hybrid", "hipporag2")), ("hipporag2", ("dense",)))
"""Who is compared with whom where a run has them: what the project claims, and whether a baseline is faithful."""


@dataclass(frozen=True, slots=True)
class Pair:
    """First less second, on the questions that both were asked."""

    dataset: str
    encoder: str
    first: str
    second: str
    figure: str
    questions: int
    interval: Interval
    alike: bool
    """Both have the same figure on every question: there is no difference to be told."""


def pairs(run: Run) -> list[Pair]:
    """The preferred pairs of each data set and encoder; of a run without any, its first method against the others.

    Labels with varied parameters count as their method only where the run holds one label of it.
    """
    found = []
    for (dataset, encoder), rows in groups([row for row in run.table if row.questions]).items():
        named = {row.label: row for row in rows}
        for first, second in _chosen(rows):
            figure = _figure(named[first], named[second])
            if figure is None:
                continue
            one, other = _by_question(run, named[first], figure), _by_question(run, named[second], figure)
            ids = [name for name in one if name in other]
            if ids:
                mine, theirs = [one[name] for name in ids], [other[name] for name in ids]
                interval = paired_bootstrap(mine, theirs)
                found.append(Pair(dataset, encoder, first, second, figure, len(ids), interval, mine == theirs))
    return found


def _chosen(rows: Sequence[TableRow]) -> list[tuple[str, str]]:
    of_method: dict[str, list[str]] = {}
    for row in rows:
        of_method.setdefault(row.method, []).append(row.label)
    alone = {method: labels[0] for method, labels in of_method.items() if len(labels) == 1}
    chosen = [
        (alone[first], alone[second])
        for first, seconds in PREFERRED
        for second in seconds
        if first in alone and second in alone
    ]
    return chosen or [(row.label, rows[0].label) for row in rows[1:]]


def _figure(one: TableRow, other: TableRow) -> str | None:
    """What both have: answers before retrieval, as they are what a user gets."""
    return next((name for name in ("em", "recall@5") if name in one.figures and name in other.figures), None)


def _by_question(run: Run, row: TableRow, figure: str) -> Mapping[str, float]:
    """The mean over the seeds, by question."""
    keys = {
        cell.key
        for cell in run.rows.cells
        if (cell.dataset, cell.encoder, cell.label) == (row.dataset, row.encoder, row.label)
    }
    values: dict[str, list[float]] = {}
    for asked in run.rows.questions:
        if asked.cell in keys:
            values.setdefault(asked.id, []).append(asked.figures[figure])
    return {name: mean(each) for name, each in values.items()}
