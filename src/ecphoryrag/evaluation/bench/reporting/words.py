"""A run in sentences, computed from its rows and its manifest: what was run, what it says, what it does not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ecphoryrag.evaluation.bench.reporting.differences import Pair, pairs
from ecphoryrag.evaluation.bench.reporting.numbers import INTERVAL, name
from ecphoryrag.evaluation.bench.reporting.parts import Cell, Grid, Item, Part, Run, groups
from ecphoryrag.evaluation.bench.reporting.tables import whole
from ecphoryrag.evaluation.bench.table import TableRow
from ecphoryrag.types import JsonValue


def what(run: Run) -> Part:
    """What was run, and on what."""
    rows = run.table
    if not rows:
        return Part("What was run", ("This run has no rows yet.",))
    asked = len(run.rows.questions)
    generators = _distinct(row.generator or "no model: retrieval alone is measured" for row in rows)
    lead = (
        f"{len(run.rows.cells)} cells (a method with its parameters on a data set with an encoder and a seed), "
        f"{asked:,} questions asked. Split: {_distinct(row.split for row in rows)}. "
        f"Methods: {_distinct(row.method for row in rows)}. Encoders: {_distinct(row.encoder for row in rows)}. "
        f"Answers by: {generators}. Seeds: {_distinct(str(cell.seed) for cell in run.rows.cells)}. "
        f"Passages the reader is given, at most: {_distinct(str(row.k) for row in rows)}."
    )
    sets = [
        tuple(map(Cell, (dataset, f"{found[0].passages:,}", str(max(row.questions for row in found)))))
        for dataset in dict.fromkeys(row.dataset for row in rows)
        for found in [[row for row in rows if row.dataset == dataset]]
    ]
    grid = Grid("Data sets", ("data set", "passages", "questions"), tuple(sets))
    code = "; ".join(f"{', '.join(methods)}: {' '.join(hashes)}" for hashes, methods in _codes(rows).items())
    items: list[Item] = [
        lead,
        grid,
        f"Code that made the rows (hashes of the sources that a cell runs through): {code or 'none'}.",
    ]
    return Part("What was run", (*items, *_sittings(run)))


def _sittings(run: Run) -> list[Item]:
    """From the manifest: commits, versions, machine."""
    recorded = run.manifest.get("sittings")
    sittings = [each for each in recorded if isinstance(each, dict)] if isinstance(recorded, list) else []
    if not sittings:
        return ["The run's folder has no manifest: commit, versions and machine are not known."]
    commits = _distinct(str(each.get("commit") or "an installed package") for each in sittings)
    last = sittings[-1]
    said = [
        f"{len(sittings)} {'sitting' if len(sittings) == 1 else 'sittings'} from {sittings[0].get('began')} on, "
        f"at commit {commits}, on {_pairs(last.get('machine'))}; versions: {_pairs(last.get('versions'))}."
    ]
    stopped = last.get("stopped")
    if stopped:
        said.append(f"The last sitting did not end by itself ({stopped}).")
    return [*said]


def says(run: Run) -> Part:
    """The best of each data set, and the differences with their intervals."""
    asked = [row for row in run.table if row.questions]
    if not asked:
        return Part("What it says", ("Nothing yet.",))
    lines: list[Item] = []
    for (dataset, encoder), rows in groups(asked).items():
        complete = [row for row in rows if whole(run.table, row)]
        figure = "em" if any("em" in row.figures for row in complete) else "recall@5"
        ranked = sorted((row for row in complete if figure in row.figures), key=lambda row: -row.figures[figure].mean)
        if len(ranked) > 1:
            listed = ", ".join(f"{row.label} {row.figures[figure].mean * 100:.1f}" for row in ranked)
            lines.append(f"{dataset}, {encoder}: {name(figure)} of {ranked[0].questions} questions: {listed}.")
    found = pairs(run)
    lines += _alike(found)
    different = [pair for pair in found if not pair.alike]
    if different:
        lines.append(_differences(different))
    return Part("What it says", tuple(lines) or ("There is one method only, so nothing is compared.",))


def _alike(found: Sequence[Pair]) -> list[Item]:
    """Pairs between which no question tells a difference, in a sentence for each data set."""
    same: dict[tuple[str, str, str, str, int], list[str]] = {}
    for pair in found:
        if pair.alike:
            of = (pair.dataset, pair.encoder, pair.figure, pair.second, pair.questions)
            same.setdefault(of, []).append(pair.first)
    return [
        f"{dataset}, {encoder}: on each of the {questions} questions {name(figure)} is the same for {second} and for "
        f"{', '.join(firsts)}."
        for (dataset, encoder, figure, second, questions), firsts in same.items()
    ]


def _differences(found: Sequence[Pair]) -> Grid:
    rows = []
    for pair in found:
        low, high = pair.interval.low * 100, pair.interval.high * 100
        verdict = "above" if low > 0 else "below" if high < 0 else "not told apart"
        values = f"{pair.interval.difference * 100:+.1f}", f"{low:+.1f} to {high:+.1f}"
        cells = (pair.dataset, pair.encoder, f"{pair.first} less {pair.second}", name(pair.figure), *values)
        rows.append(tuple(map(Cell, (*cells, str(pair.questions), verdict))))
    header = ("data set", "encoder", "pair", "figure", "difference", "95 % interval", "questions", "the first is")
    return Grid("Differences question by question, with paired bootstrap intervals", header, tuple(rows))


def does_not_say(run: Run) -> Part:
    """The limits that the rows themselves show."""
    rows = [row for row in run.table if row.questions]
    said: list[Item] = []
    splits = {row.split for row in rows}
    if "development" in splits:
        said.append(
            "These are development questions: settings were chosen while looking at questions like them, so the "
            "figures are no estimate for new questions. Differences between methods suffer less from this than levels."
        )
    said += _precision(run, rows)
    unfinished = [f"{row.label}, {row.encoder} on {row.dataset}" for row in rows if not whole(rows, row)]
    if unfinished:
        said.append(f"Not finished, so not to be compared yet: {'; '.join(unfinished)}.")
    begun = {(row.label, row.dataset, row.encoder) for row in run.table}
    waiting = [
        f"{label}, {encoder} on {dataset}"
        for label, dataset, encoder in _planned(run)
        if (label, dataset, encoder) not in begun
    ]
    if waiting:
        said.append(f"Configured, and not begun yet: {'; '.join(waiting)}.")
    missing = [
        f"{row.label}, {row.encoder} on {row.dataset}: {row.unavailable}" for row in run.table if row.unavailable
    ]
    if missing:
        said.append(f"Could not run: {'; '.join(missing)}.")
    unanswered = sum(row.unanswered for row in rows)
    if unanswered:
        said.append(f"{unanswered} questions have no answer; they count as wrong.")
    failed = sum(row.errors for row in rows)
    if failed:
        said.append(f"{failed} questions failed with an error; they count as wrong.")
    said += _notes(rows)
    said.append(
        "Seconds are those of the one machine named above, with whatever else it did; tokens and figures are not of "
        "the machine. Other encoders, other language models, other corpora and longer documents were not tried here."
    )
    return Part("What it does not say", tuple(said))


def _planned(run: Run) -> list[tuple[str, str, str]]:
    """Label, data set and encoder of every cell that the manifest names, each once."""
    recorded = run.manifest.get("cells")
    cells = [each for each in recorded if isinstance(each, dict)] if isinstance(recorded, list) else []
    named = [(str(each.get("label")), str(each.get("dataset")), str(each.get("encoder"))) for each in cells]
    return list(dict.fromkeys(named))


def _precision(run: Run, rows: Sequence[TableRow]) -> list[Item]:
    said: list[Item] = []
    widest: dict[str, float] = {}
    for row in rows:
        figure = "em" if "em" in row.figures else "recall@5"
        error = row.figures[figure].error if figure in row.figures else None
        if error is not None:
            widest[row.dataset] = max(widest.get(row.dataset, 0.0), error * INTERVAL * 100)
    if widest:
        listed = ", ".join(f"± {width:.0f} on {dataset}" for dataset, width in widest.items())
        said.append(f"A single figure is known to within, at worst (95 %, in hundredths): {listed}.")
    compared = [pair for pair in pairs(run) if not pair.alike]
    told = [pair for pair in compared if pair.interval.low <= 0 <= pair.interval.high]
    if told:
        said.append(
            f"{len(told)} of the {len(compared)} differences above have an interval that holds zero: there these "
            "questions do not tell which method is better, which is not to say that they are equal."
        )
    if rows and all(len(row.seeds) < 2 for row in rows):
        said.append("There is one seed: how much a different sample of questions would change is not measured.")
    if any(row.query is not None and row.query.estimated for row in rows):
        said.append("Some tokens are estimates (~).")
    return said


def _notes(rows: Sequence[TableRow]) -> list[Item]:
    notes: dict[str, list[str]] = {}
    for row in rows:
        for note in row.notes:
            notes.setdefault(note, []).append(f"{row.label}, {row.encoder} on {row.dataset}")
    said: list[Item] = []
    for note, of in notes.items():
        more = f" and {len(of) - 3} more" if len(of) > 3 else ""
        said.append(f"Noted of {'; '.join(of[:3])}{more}: {note}.")
    several = [row for row in rows if len(row.code) > 1]
    if several:
        said.append(f"Rows of several states of the code stand together in: {_distinct(row.label for row in several)}.")
    return said


def _codes(rows: Sequence[TableRow]) -> Mapping[tuple[str, ...], list[str]]:
    """Methods with their encoder, by the hashes that they have in common."""
    codes: dict[str, dict[str, None]] = {}
    for row in rows:
        codes.setdefault(f"{row.method} with {row.encoder}", {}).update(dict.fromkeys(row.code))
    together: dict[tuple[str, ...], list[str]] = {}
    for method, found in codes.items():
        if found:
            together.setdefault(tuple(found), []).append(method)
    return together


def _distinct(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _pairs(record: JsonValue) -> str:
    return ", ".join(f"{key} {said}" for key, said in record.items()) if isinstance(record, dict) else "unknown"
