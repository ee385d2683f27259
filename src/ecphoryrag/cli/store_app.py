"""The command lines on a store as a file: check it, mend it, copy it, write it out and read it in.

As in :mod:`ecphoryrag.cli.app`, what a command needs is imported by that command alone.
"""
# ruff: noqa: PLC0415 - the imports for the reason above; a command has one parameter an option

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ecphoryrag.cli import options
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.commands import ON_FILE, ON_STORE, with_session
from ecphoryrag.cli.session import Session


def add_store_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    for command in (verify, repair, backup, export):
        app.command()(command)
    app.command("import")(import_file)


@with_session(*ON_FILE)
def verify(
    session: Session,
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Look at every row of it, and at all that lies beside.")] = False,
) -> ExitCode:
    """Check the store and name what is wrong. Nothing is changed."""
    from ecphoryrag.cli import work_store

    return work_store.verify(session, deep=deep)


@with_session(*ON_STORE)
def repair(
    session: Session,
) -> ExitCode:
    """Mend what can be made again from the texts in the store, and list what cannot. No document is removed."""
    from ecphoryrag.cli import work_store

    return work_store.repair(session)


@with_session(*ON_FILE)
def backup(
    session: Session,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The copy; it must not be there yet.")],
) -> ExitCode:
    """Copy the store as it is at one moment. Others may read and write it meanwhile."""
    from ecphoryrag.cli import work_store

    return work_store.backup(session, target)


@with_session(*ON_FILE)
def export(
    session: Session,
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE", help="Default: standard output.", show_default=False),
    ] = None,
    format: Annotated[
        options.ExportFormat, typer.Option("--format", help="All as JSONL, or the graph as GraphML or Parquet.")
    ] = options.ExportFormat.JSONL,
    vectors: Annotated[bool, typer.Option("--vectors", help="With the vectors of the passages (JSONL).")] = False,
) -> ExitCode:
    """Write all that the store holds as JSONL, or its graph for other tools; equal for stores that hold the same."""
    if session.json and output is None:
        raise typer.BadParameter("--json prints the outcome, and needs -o FILE for the export itself")
    if vectors and format != options.ExportFormat.JSONL:
        raise typer.BadParameter("--vectors is for --format jsonl")
    if format == options.ExportFormat.PARQUET and output is None:
        raise typer.BadParameter("--format parquet writes a folder: name it with -o")
    from ecphoryrag.cli import work_store

    if format != options.ExportFormat.JSONL:
        return work_store.graph(session, output, format)
    return work_store.export(session, output, vectors=vectors)


@with_session(*ON_STORE)
def import_file(
    session: Session,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What `ecphory export` wrote, or JSONL of documents.")],
    *,
    reencode: Annotated[
        bool, typer.Option("--re-encode", help="Encode the passages anew, even if the file has vectors that fit.")
    ] = False,
) -> ExitCode:
    """Take in an export, or plain documents as JSONL. The store is made if it is not there."""
    from ecphoryrag.cli import work_store

    return work_store.import_file(session, source, reencode=reencode)
