"""What the commands on a store as a file do. All but `import` need no model, and so no Memory."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ecphoryrag.cli.bars import adding
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.jsonout import write_json
from ecphoryrag.cli.options import ExportFormat
from ecphoryrag.cli.render_models import FAINT, HEAD, WRONG, show_failures
from ecphoryrag.cli.screen import PlainScreen, Screen, one_line, standard_output
from ecphoryrag.cli.session import Session
from ecphoryrag.cli.work_forget import show_receipt
from ecphoryrag.cli.work_models import tell_report
from ecphoryrag.errors import StoreError
from ecphoryrag.store import backup_store, export_graph, export_store, repair_store, verify_store
from ecphoryrag.store.graph import keep_stores
from ecphoryrag.types import ExportReport, Flaw


def verify(session: Session, *, deep: bool) -> ExitCode:
    """Check the store."""
    report = verify_store(session.settings().store, deep=deep)
    if session.json:
        write_json(report)
    else:
        screen = standard_output()
        _show_flaws(screen, report.flaws)
        if report.unlisted:
            screen.line(f"and {report.unlisted} more", WRONG)
        counts = f"{report.documents} documents, {report.chunks} chunks, {report.entities} entities"
        looked = "every row" if deep else "the file and its tables; --deep looks at every row"
        screen.line(f"{'sound' if report.sound else 'not sound'}: {counts}, {report.mentions} mentions", HEAD)
        screen.line(f"checked {looked}, {report.seconds:.2f} s", FAINT)
    sys.stdout.flush()
    return ExitCode.OK if report.sound else ExitCode.ERROR


def repair(session: Session) -> ExitCode:
    """Mend the store; only documents that must be indexed again need an encoder."""
    report = repair_store(session.settings().store)
    if report.upgraded:
        session.tell_notice(report.upgraded)
    if report.pending:
        with session.writing(create=False) as memory:
            again = memory.repair()
        report = replace(report, pending=again.pending, indexed=again.indexed, seconds=report.seconds + again.seconds)
    if session.json:
        write_json(report)
    else:
        screen = standard_output()
        for flaw in report.mended:
            screen.line(f"mended: {one_line(flaw.where)}: {one_line(flaw.what)}")
        for id_ in report.indexed:
            screen.line(f"indexed again: document {one_line(id_)}")
        for id_ in report.pending:
            screen.line(f"not indexed again: document {one_line(id_)}; run `ecphory repair` again", WRONG)
        _show_flaws(screen, report.remaining)
        if report.receipt is not None:
            show_receipt(screen, report.receipt)
        left = len(report.remaining) + len(report.pending)
        screen.line(f"{len(report.mended)} mended, {left} not", HEAD)
    sys.stdout.flush()
    return ExitCode.ERROR if report.remaining or report.pending else ExitCode.OK


def backup(session: Session, target: Path) -> ExitCode:
    """Copy the store."""
    report = backup_store(session.settings().store, target)
    if session.json:
        write_json(report)
    else:
        counts = f"{report.documents} documents, {report.chunks} chunks, {report.bytes} bytes"
        standard_output().line(f"{report.path}: {counts}, {report.seconds:.2f} s")
    sys.stdout.flush()
    return ExitCode.OK


def export(session: Session, output: Path | None, *, vectors: bool) -> ExitCode:
    """Write the store out; what is to be told goes to standard error where the export takes standard output."""
    path = session.settings().store
    if output is None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        report = export_store(path, sys.stdout, vectors=vectors)
    else:
        report = _export_to(path, output, vectors=vectors)
    if session.json:
        write_json(report)
    else:
        screen = PlainScreen(sys.stderr) if output is None else standard_output()
        show_failures(screen, "left out", report.left_out)
        screen.line(f"{report.documents} documents, {report.chunks} chunks, {report.seconds:.2f} s", FAINT)
    sys.stdout.flush()
    return ExitCode.SOME_FAILED if report.left_out else ExitCode.OK


def graph(session: Session, output: Path | None, format: ExportFormat) -> ExitCode:
    """Write the graph; as :func:`export` tells of it."""
    if output is None and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    report = export_graph(
        session.settings().store, output or sys.stdout, "parquet" if format == ExportFormat.PARQUET else "graphml"
    )
    if session.json:
        write_json(report)
    else:
        screen = PlainScreen(sys.stderr) if output is None else standard_output()
        if report.replaced:
            screen.line(f"{report.replaced} characters replaced that {format} cannot hold", WRONG)
        counts = f"{report.documents} documents, {report.chunks} chunks, {report.entities} entities"
        screen.line(f"{counts}, {report.edges} edges, {report.seconds:.2f} s", FAINT)
    sys.stdout.flush()
    return ExitCode.OK


def _export_to(path: Path, output: Path, *, vectors: bool) -> ExportReport:
    """Write the file whole or not at all, and never in the place of a store."""
    temporary = output.with_name(f"{output.name}.{secrets.token_hex(4)}.tmp")
    try:
        keep_stores(output)
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            report = export_store(path, file, vectors=vectors)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(output)
    except OSError as error:
        raise StoreError(f"The export {output} cannot be written ({error.strerror}); name another file.") from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return report


def import_file(session: Session, source: Path, *, reencode: bool) -> ExitCode:
    """Take an export, or plain documents, in."""
    from ecphoryrag.indexing import importable  # noqa: PLC0415 - of this command alone

    importable(source)  # before a store is made for it
    with session.writing(create=True) as memory, adding() as progress:
        report = memory.import_file(source, reencode=reencode, progress=progress)
    return tell_report(session, report)


def _show_flaws(screen: Screen, flaws: Sequence[Flaw]) -> None:
    for flaw in flaws:
        style = FAINT if flaw.severity == "note" else WRONG
        screen.line(f"{flaw.severity}: {one_line(flaw.where)}: {one_line(flaw.what)}; {one_line(flaw.remedy)}", style)
