"""What the commands on names do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.outcome import tell_result
from ecphoryrag.cli.render_models import FAINT, HEAD, WRONG
from ecphoryrag.cli.screen import Screen, one_line
from ecphoryrag.cli.session import Session
from ecphoryrag.decisions import Decided, Decision, Duplicate, Place, Selection
from ecphoryrag.types import Entity


def entities(session: Session, limit: int) -> ExitCode:
    """List what is known."""
    with session.reading() as memory:
        found = memory.entities(limit=limit)
    tell_result(session, {"entities": found}, lambda screen: _show_entities(screen, found))
    return ExitCode.OK


def _show_entities(screen: Screen, found: Sequence[Entity]) -> None:
    header = ("name", "type", "mentions", "chunks", "also written")
    rows = [
        (one.name, one.type, str(one.mention_count), str(one.chunk_count), "; ".join(one.aliases[1:])) for one in found
    ]
    screen.table(header, rows)


def duplicates(session: Session, limit: int, least: float | None) -> ExitCode:
    """List pairs that may be one."""
    with session.reading() as memory:
        found = memory.duplicates(limit=limit) if least is None else memory.duplicates(limit=limit, least=least)
    tell_result(session, {"duplicates": found}, lambda screen: _show_duplicates(screen, found))
    return ExitCode.OK


def _show_duplicates(screen: Screen, found: Sequence[Duplicate]) -> None:
    rows = [(f"{one.score:.3f}", one.one, one.other, "; ".join(one.reasons)) for one in found]
    screen.table(("score", "one", "other", "why"), rows)


def decisions(session: Session) -> ExitCode:
    """List what was decided."""
    with session.reading() as memory:
        found = memory.decisions()

    def show(screen: Screen) -> None:
        for one in found:
            _show_decided(screen, one)
        if not found:
            screen.line("nothing was decided", FAINT)

    tell_result(session, {"decisions": found}, show)
    return ExitCode.OK


def mentions(session: Session, name: str, limit: int) -> ExitCode:
    """List the mentions of one entity."""
    with session.reading() as memory:
        found = memory.mentions(name)[:limit]
    tell_result(session, {"mentions": found}, lambda screen: _show_places(screen, found))
    return ExitCode.OK


def _show_places(screen: Screen, found: Sequence[Place]) -> None:
    rows = [
        (
            str(one.number),
            one.name,
            one.document_id,
            "title" if one.field == "title" else ", ".join(map(str, one.chunks)),
            one.context,
        )
        for one in found
    ]
    screen.table(("number", "name", "document", "chunk", "around it"), rows)


def merge(session: Session, names: Sequence[str], into: str | None, reason: str) -> ExitCode:
    """Record a merge."""
    with session.writing(create=False) as memory:
        made = memory.merge(*names, into=into, reason=reason)
    tell_result(session, made, lambda screen: _show_decided(screen, made))
    return ExitCode.OK


def split(session: Session, name: str, qualifier: str, selection: Selection, reason: str) -> ExitCode:
    """Record a split."""
    with session.writing(create=False) as memory:
        made = memory.split(name, qualifier, selection, reason=reason)
    tell_result(session, made, lambda screen: _show_decided(screen, made))
    return ExitCode.OK


def unmerge(session: Session, number: int) -> ExitCode:
    """Undo a decision."""
    with session.writing(create=False) as memory:
        undone = memory.undo(number)
    tell_result(session, undone, lambda screen: screen.line(f"undone: {_described(undone)}"))
    return ExitCode.OK


def _show_decided(screen: Screen, decided: Decided) -> None:
    decision = decided.decision
    effect = "undone" if decision.undone else f"{decided.mentions} mentions" if decided.mentions else "without effect"
    reason = f" ({one_line(decision.reason)})" if decision.reason else ""
    style = FAINT if decision.undone else WRONG if not decided.mentions else HEAD
    screen.line(f"{_described(decision)}: {effect}{reason}", style)
    for part in decided.idle:
        screen.line(f"    not there now: {one_line(part)}", FAINT)


def _described(decision: Decision) -> str:
    names = " = ".join(map(one_line, decision.keys))
    if decision.kind == "merge":
        shown = "" if decision.into is None else f", shown as {one_line(decision.into)}"
        return f"{decision.number} merge {names}{shown}"
    parts = [f"document {one_line(id_)}" for id_ in decision.documents]
    parts += [] if decision.where is None else [f"where {one_line(str(dict(decision.where)))}"]
    parts += [f"{len(decision.spots)} mentions"] if decision.spots else []
    return f"{decision.number} split {one_line(decision.into or '')} off {names}: {', '.join(parts)}"


def evaluate(session: Session, labels: Path, least: float | None) -> ExitCode:
    """Measure resolution."""
    from ecphoryrag.evaluation.entities import evaluate_entities, read_labels  # noqa: PLC0415 - of this command alone

    pairs = read_labels(labels)
    with session.reading() as memory:
        report = evaluate_entities(memory, pairs, least)

    def show(screen: Screen) -> None:
        for line in report.table():
            screen.line(line)

    tell_result(session, report.to_json(), show)
    return ExitCode.OK
