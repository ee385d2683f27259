"""What `sync` does."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from ecphoryrag.cli.bars import adding
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.outcome import tell_result
from ecphoryrag.cli.render import show_report
from ecphoryrag.cli.render_models import FAINT, HEAD, WRONG, show_failures
from ecphoryrag.cli.screen import Screen, one_line
from ecphoryrag.cli.session import Session
from ecphoryrag.types import SyncReport


@dataclass(frozen=True, slots=True)
class Manner:
    """How a folder is to be mirrored."""

    dry_run: bool
    allow_empty: bool
    allow_mass_forget: bool


def sync(session: Session, folder: Path, how: Manner) -> ExitCode:
    """Mirror the folder, or say what would be done."""
    with ExitStack() as stack:
        memory = stack.enter_context(session.estimating() if how.dry_run else session.writing(create=True))
        progress = None if how.dry_run else stack.enter_context(adding())
        report = memory.sync(folder, progress=progress, **asdict(how))
    tell_result(session, report, lambda screen: show_sync(screen, report))
    indexed = report.indexed
    if indexed is not None and indexed.interrupted:
        return ExitCode.INTERRUPTED
    if indexed is not None and indexed.stopped:
        return ExitCode.STOPPED
    incomplete = indexed is not None and bool(indexed.incomplete)
    return ExitCode.SOME_FAILED if report.failed or incomplete else ExitCode.OK


def show_sync(screen: Screen, report: SyncReport) -> None:
    """A line for each document that is not as it was, and the counts."""
    would = "would be " if report.dry_run else ""
    for left in report.left_out:
        screen.line(f"left out: {one_line(left.source)}: {one_line(left.reason)}", FAINT)
    for kept in report.kept:
        screen.line(f"kept: {one_line(kept.source)}: {one_line(kept.reason)}", WRONG)
    for word, ids in (("added", report.added), ("updated", report.updated), ("forgotten", report.forgotten)):
        for id_ in ids:
            screen.line(f"{would}{word}: {one_line(id_)}")
    for old, new in report.moved:
        screen.line(f"{would}moved: {one_line(old)} -> {one_line(new)}")
    if report.indexed is not None:
        show_report(screen, report.indexed)
    else:
        show_failures(screen, "failed", report.failed)
    if report.postponed:
        screen.line(f"Not finished: {report.postponed}", WRONG)
    if report.refused:
        screen.line(f"Would be refused: {one_line(report.refused)}", WRONG)
    screen.line(
        f"{len(report.added)} added, {len(report.updated)} updated, {len(report.moved)} moved, "
        f"{len(report.forgotten)} forgotten, {report.unchanged} unchanged, {len(report.kept)} kept, "
        f"{len(report.failed)} failed{'; nothing was changed' if report.dry_run else ''}",
        HEAD,
    )
