"""The split: settings are chosen on development questions and frozen before test questions are touched.

The rule, and how it is held:

1. A configuration is for development or for testing, and says so. What is varied is varied in development.
2. :func:`freeze` chooses, for each method entry and encoder of a *finished* development run, the one combination of
   parameters with the best mean of one named figure over the data sets (the first of equals), and writes it down with
   a hash of its settings, the code it was measured with, and a hash of every development question.
3. A run on test questions names that file. It is refused if the file was changed, if one of its cells has settings
   that were not the chosen ones, if the code is other code (with ``code = "strict"``), or if a question of it is a
   development question.
4. A frozen file is never written over: choosing again, after having seen test figures, leaves both files to be seen.

The hash in the file guards against mistakes. Against somebody who wants to deceive nothing here helps.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ecphoryrag.errors import InputError, SettingsError
from ecphoryrag.evaluation.bench.ask import words_hash
from ecphoryrag.evaluation.bench.manifest import planned_cells, planned_questions
from ecphoryrag.evaluation.bench.plan import Planned
from ecphoryrag.evaluation.bench.rows import CellRow, Rows, read_rows
from ecphoryrag.evaluation.bench.table import mean
from ecphoryrag.types import JsonValue


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for a method entry with one encoder."""

    entry: str
    """The entry's label in the configuration."""
    encoder: str
    label: str
    """With the parameters that were varied."""
    chosen: str
    """Hash of the settings, :attr:`ecphoryrag.evaluation.bench.rows.CellRow.chosen`."""
    parameters: Mapping[str, JsonValue]
    k: int
    figure: float
    """Mean over the data sets."""
    among: Mapping[str, float]
    """The figure of every label that stood to choose."""
    code: tuple[str, ...]
    """Of its rows, one a data set."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """The content of a frozen file."""

    by: str
    """Name of the figure by which was chosen."""
    choices: tuple[Choice, ...]
    questions: tuple[str, ...]
    """Hashes of the development questions."""
    sha256: str = ""
    """Of all the rest."""


def freeze(run: Path, out: Path, *, by: str) -> Frozen:
    """Choose, and write ``out``.

    Raises InputError if ``out`` is there already, if the run is no development run, or if it is not finished: every
    cell of the manifest is there with all its questions, as many as the others of its data set, and has the figure.
    """
    if out.exists():
        raise InputError(f"{out} is there already, and what is frozen stays: name a new file")
    rows = read_rows(run)
    if not rows.questions or any(cell.split != "development" for cell in rows.cells):
        raise InputError(f"{run} holds no rows of development questions alone: settings are chosen on those")
    _check_finished(rows, run, by)
    grouped: dict[tuple[str, str], dict[str, list[CellRow]]] = {}
    for cell in rows.cells:
        if cell.unavailable is None:
            entry = cell.label.partition("[")[0]
            grouped.setdefault((entry, cell.encoder), {}).setdefault(cell.label, []).append(cell)
    choices = tuple(_choose(entry, encoder, cells, rows, by) for (entry, encoder), cells in grouped.items())
    questions = tuple(sorted({row.asked for row in rows.questions}))
    frozen = Frozen(by, choices, questions)
    frozen = Frozen(by, choices, questions, _digest(frozen))
    out.write_text(json.dumps(asdict(frozen), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return frozen


def _check_finished(rows: Rows, run: Path, by: str) -> None:
    """What has no row yet is known from the manifest alone; a run without one is taken as it is."""
    asked = rows.by_cell()
    for each in planned_cells(run):
        if each.key not in asked:
            raise InputError(
                f"{run} is not finished: {each.label} with {each.encoder} on {each.dataset} was not begun; finish the "
                "run, then freeze"
            )
    for cell in rows.cells:
        if cell.unavailable is not None:
            continue
        most = max(len(asked[other.key]) for other in rows.cells if other.dataset == cell.dataset)
        most = max(most, planned_questions(run, cell.dataset, cell.seed))
        if len(asked[cell.key]) < most:
            raise InputError(
                f"{run} is not finished: {cell.label} with {cell.encoder} has {len(asked[cell.key])} of {most} "
                f"questions of {cell.dataset}; finish the run, then freeze"
            )
        if not all(by in row.figures for row in asked[cell.key]):
            raise InputError(f"{cell.label} has no figure {by!r}; name one that all methods of the run have")


def _choose(entry: str, encoder: str, labels: Mapping[str, Sequence[CellRow]], rows: Rows, by: str) -> Choice:
    asked = rows.by_cell()

    def figure(cells: Sequence[CellRow]) -> float:
        datasets = dict.fromkeys(cell.dataset for cell in cells)
        return mean(
            [
                mean([row.figures[by] for cell in cells if cell.dataset == dataset for row in asked[cell.key]])
                for dataset in datasets
            ]
        )

    sets = {label: {cell.dataset for cell in cells} for label, cells in labels.items()}
    for label, has in sets.items():
        lacking = set.union(*sets.values()) - has
        if lacking:
            raise InputError(
                f"{label} with {encoder} has no rows of {', '.join(sorted(lacking))}, others of {entry} have: "
                "their means do not compare; take it out of the configuration, and run that in a new folder"
            )
    among = {label: figure(cells) for label, cells in labels.items()}
    best = max(among, key=lambda label: among[label])
    cell = labels[best][0]
    code = tuple(dict.fromkeys(row.code for each in labels[best] for row in asked[each.key]))
    return Choice(entry, encoder, best, cell.chosen, cell.parameters, cell.k, among[best], among, code)


def read_frozen(path: Path) -> Frozen:
    """Raises SettingsError if the file is not there, is none, or was changed."""
    try:
        record = json.loads(path.read_text("utf-8"))
        choices = tuple(Choice(**{**each, "code": tuple(each["code"])}) for each in record["choices"])
        frozen = Frozen(record["by"], choices, tuple(record["questions"]), record["sha256"])
    except OSError as error:
        raise SettingsError(
            f"cannot read the frozen settings {path}: {error.strerror}; make them from a development run"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{path} holds no frozen settings; make them from a development run") from error
    if _digest(frozen) != frozen.sha256:
        raise SettingsError(f"{path} was changed after it was frozen; restore it, or freeze a development run again")
    return frozen


def check_frozen(frozen: Frozen, planned: Sequence[Planned], *, strict: bool) -> None:
    """Whether a run on test questions may be. Raises SettingsError for the first cell or question that may not."""
    development = set(frozen.questions)
    by_settings = {(choice.encoder, choice.chosen): choice for choice in frozen.choices}
    for cell in planned:
        row = cell.row
        choice = by_settings.get((row.encoder, row.chosen))
        if choice is None:
            known = sorted({f"{each.label} with {each.encoder}" for each in frozen.choices})
            raise SettingsError(
                f"{row.label} with {row.encoder} on {row.dataset} has settings that were not chosen on development "
                f"questions; chosen were {', '.join(known)}, each with the settings and models of that run"
            )
        if strict and row.parts["code"] not in choice.code:
            raise SettingsError(
                f"the code of {row.label} is {row.parts['code']}, and was {', '.join(choice.code)} when its settings "
                'were chosen; run the development questions again, or set code = "version" and answer for it'
            )
        for question in cell.dataset.questions:
            if words_hash(question.text) in development:
                raise SettingsError(
                    f"the question {question.id} of {row.dataset} is a development question: settings were chosen on it"
                )


def _digest(frozen: Frozen) -> str:
    record = asdict(frozen)
    del record["sha256"]
    return hashlib.sha256(json.dumps(record, ensure_ascii=True, sort_keys=True).encode("ascii")).hexdigest()
