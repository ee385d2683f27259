"""What the commands on models do: try each part, tell the cost before, move a store to another encoder."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ecphoryrag.cli import render, render_models
from ecphoryrag.cli.bars import adding
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.jsonout import write_json
from ecphoryrag.cli.outcome import tell_result
from ecphoryrag.cli.screen import standard_output
from ecphoryrag.cli.session import Session
from ecphoryrag.doctor import examine
from ecphoryrag.types import AddReport


def doctor(session: Session) -> ExitCode:
    """Try every configured part; a line as soon as a part is tried."""
    findings = []
    screen = standard_output()
    for found in examine(session.settings()):
        findings.append(found)
        if not session.json:
            render_models.show_findings(screen, [found])
            sys.stdout.flush()
    if session.json:
        write_json({"findings": findings})
    sys.stdout.flush()
    return ExitCode.ERROR if any(found.state == "failed" for found in findings) else ExitCode.OK


def estimate(session: Session, paths: Sequence[str]) -> ExitCode:
    """Say what adding the paths would cost."""
    with session.estimating() as memory:
        found = memory.estimate_paths(paths)
    tell_result(session, found, lambda screen: render_models.show_estimate(screen, found))
    return ExitCode.SOME_FAILED if found.failed else ExitCode.OK


def retry(session: Session, max_tokens: int | None) -> ExitCode:
    """Ask again for the chunks that could not be extracted."""
    with session.writing(create=False) as memory, adding() as progress:
        report = memory.retry(progress=progress, max_tokens=max_tokens)
    return tell_report(session, report, "No chunk is missing: there was nothing to ask again.")


def tell_report(session: Session, report: AddReport, nothing: str = render.NOTHING) -> ExitCode:
    """Show what became of the documents; ``nothing`` is said if there were none."""
    tell_result(session, report, lambda screen: render.show_report(screen, report, nothing))
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.stopped:
        return ExitCode.STOPPED
    return ExitCode.SOME_FAILED if report.failed or report.incomplete else ExitCode.OK


def reembed(session: Session, encoder: str) -> ExitCode:
    """Move the store to another encoder."""
    with session.moving() as memory, adding("chunks") as progress:
        report = memory.reembed(encoder, progress=progress)
    tell_result(session, report, lambda screen: render_models.show_move(screen, report))
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.stopped:
        return ExitCode.STOPPED
    return ExitCode.OK if report.switched else ExitCode.SOME_FAILED
