"""Two methods, or two runs, question by question: paired bootstrap intervals and a paired t-test.

A side is a run's folder, with a label after a colon where the run has several, and an encoder after an at sign where
it has several: ``results/dev:ecphory``, ``results/dev:dense@minilm``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.bench.rows import ROWS, CellRow, QuestionRow, Rows, read_rows
from ecphoryrag.evaluation.bench.table import mean, ordered
from ecphoryrag.evaluation.statistics import Interval, paired_bootstrap

ANSWERS = ("em", "f1")
"""Figures that do not compare if the answers were normalised differently."""


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared."""

    run: Path
    label: str | None = None
    encoder: str | None = None

    @property
    def shown(self) -> str:
        """As it is written."""
        label = f":{self.label}" if self.label else ""
        return f"{self.run}{label}{f'@{self.encoder}' if self.encoder else ''}"


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure: first side less second."""

    first: float
    """Mean over the questions compared."""
    second: float
    interval: Interval
    """Paired bootstrap, 95 %."""
    t: float | None
    """Statistic of the paired t-test; None for fewer than two questions, or if no difference varies."""
    p: float | None
    """Two-sided probability of so large a t if there were no difference."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two methods on one data set."""

    dataset: str
    first: str
    """Label and encoder."""
    second: str
    questions: int
    figures: Mapping[str, Difference]
    left_out: tuple[str, ...]
    """What one side has and the other has not, in words."""


def side(text: str) -> Side:
    """Read ``RUN[:LABEL][@ENCODER]``; a path that exists as it stands is a run alone. Raises InputError."""
    if Path(text).exists():
        return _checked(Side(Path(text)))
    rest, at, encoder = text.rpartition("@")
    rest, encoder = (rest, encoder) if at else (text, "")
    run, colon, label = rest.rpartition(":")
    if colon and Path(run).exists():
        return _checked(Side(Path(run), label or None, encoder or None))
    return _checked(Side(Path(rest), None, encoder or None))


def _checked(given: Side) -> Side:
    path = given.run / ROWS if given.run.is_dir() else given.run
    if not path.is_file():
        raise InputError(f"{given.run} is no run: it has no {ROWS}; name the folder that `bench run` wrote")
    return given


def compare(first: Side | str, second: Side | str) -> tuple[Compared, ...]:
    """Every data set that both sides have; of sides without a label, every label that both have.

    A question that was asked with several seeds counts once, with the mean of its figures. Raises InputError if a side
    is no run or there is nothing to compare, and says what each side has.
    """
    one, other = (side(each) if isinstance(each, str) else each for each in (first, second))
    here, there = _cells(one), _cells(other)
    labelled = one.label is not None or other.label is not None
    pairs = [
        (mine, theirs)
        for mine in here
        for theirs in there
        if mine[0] == theirs[0]
        and (labelled or mine[2] == theirs[2])
        and (mine[1] == theirs[1] or (_alone(here, mine[0]) and _alone(there, mine[0])))
    ]
    if not pairs:
        raise InputError(
            f"nothing to compare: {one.shown} has {_listed(here)}; {other.shown} has {_listed(there)}. Name labels, as "
            "in RUN:LABEL or RUN:LABEL@ENCODER"
        )
    return tuple(_compared(here[mine], there[theirs]) for mine, theirs in pairs)


Key = tuple[str, str, str]
"""Data set, encoder, label."""


@dataclass(frozen=True, slots=True)
class _Asked:
    cells: tuple[CellRow, ...]
    questions: Mapping[str, tuple[QuestionRow, ...]]
    """By id."""


def _cells(chosen: Side) -> dict[Key, _Asked]:
    rows: Rows = read_rows(chosen.run)
    asked = rows.by_cell()
    grouped: dict[Key, list[CellRow]] = {}
    for cell in rows.cells:
        if chosen.label in (None, cell.label) and chosen.encoder in (None, cell.encoder) and asked[cell.key]:
            grouped.setdefault((cell.dataset, cell.encoder, cell.label), []).append(cell)
    found = {}
    for key, cells in grouped.items():
        questions: dict[str, list[QuestionRow]] = {}
        for cell in cells:
            for row in asked[cell.key]:
                questions.setdefault(row.id, []).append(row)
        found[key] = _Asked(tuple(cells), {name: tuple(each) for name, each in questions.items()})
    return found


def _alone(cells: Mapping[Key, _Asked], dataset: str) -> bool:
    """Whether there is one encoder on this data set, so that it need not be the other side's."""
    return len({encoder for each, encoder, _ in cells if each == dataset}) == 1


def _listed(cells: Mapping[Key, _Asked]) -> str:
    return ", ".join(f"{label} ({encoder}, {dataset})" for dataset, encoder, label in cells) or "no rows of that"


def _compared(mine: _Asked, theirs: _Asked) -> Compared:
    one, other = mine.cells[0], theirs.cells[0]
    ids = [name for name in mine.questions if name in theirs.questions]
    left_out = [*_lacking(mine, theirs, one), *_lacking(theirs, mine, other)]
    if one.parts.get("data") != other.parts.get("data"):
        left_out.append("the two sides were not asked of the same data: compare with care")
    names = _names(mine, ids) & _names(theirs, ids)
    apart = sorted((_names(mine, ids) | _names(theirs, ids)) - names)
    if apart:
        left_out.append(f"figures that only one side has: {', '.join(apart)}")
    if one.normalisation != other.normalisation:
        left_out.append(f"em and f1: answers normalised as {one.normalisation} and {other.normalisation}")
        names -= set(ANSWERS)
    return Compared(
        dataset=one.dataset,
        first=f"{one.label}, {one.encoder}",
        second=f"{other.label}, {other.encoder}",
        questions=len(ids),
        figures={name: _difference(mine, theirs, ids, name) for name in ordered(names)},
        left_out=tuple(left_out),
    )


def _lacking(mine: _Asked, theirs: _Asked, cell: CellRow) -> list[str]:
    lacking = sum(name not in theirs.questions for name in mine.questions)
    return [f"{lacking} questions that only {cell.label}, {cell.encoder} was asked"] if lacking else []


def _names(asked: _Asked, ids: Sequence[str]) -> set[str]:
    """Figures that every row of these questions has."""
    rows = [set(row.figures) for name in ids for row in asked.questions[name]]
    return set.intersection(*rows) if rows else set()


def _difference(mine: _Asked, theirs: _Asked, ids: Sequence[str], name: str) -> Difference:
    one, other = (
        [mean([row.figures[name] for row in asked.questions[each]]) for each in ids] for asked in (mine, theirs)
    )
    t, p = paired_t_test(one, other)
    return Difference(mean(one), mean(other), paired_bootstrap(one, other), t, p)


def paired_t_test(first: Sequence[float], second: Sequence[float]) -> tuple[float | None, float | None]:
    """(t, two-sided p) of Student's test on the differences; (None, None) if they do not vary or are fewer than two.

    It takes the differences to be normal, which figures of 0, 1/2 and 1 are not; on hundreds of questions their mean
    nearly is. It is there since papers report it: the interval is the one to go by (decision 063).
    """
    from scipy import stats  # noqa: PLC0415 - half a second to import

    differences = {one - other for one, other in zip(first, second, strict=True)}
    if len(first) < 2 or len(differences) < 2:
        return None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # differences that are nearly equal; the result says so itself
        result = stats.ttest_rel(first, second)
    t, p = float(result.statistic), float(result.pvalue)
    return (t, p) if math.isfinite(t) and math.isfinite(p) else (None, None)
