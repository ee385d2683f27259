"""The command lines on a store as a file: check it, mend it, copy it, write it out and read it in.

As in :mod:`ecphoryrag.cli.app`, what a command needs is imported by that command alone.
"""
# ruff: noqa: PLC0415, PLR0913 - the imports for the reason above; a command has one parameter an option

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ecphoryrag.cli import options
from ecphoryrag.cli.session import Session


def add_store_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    for command in (verify, repair, backup, export):
        app.command()(command)
    app.command("import")(import_file)


def verify(
    context: typer.Context,
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Look at every row of it, and at all that lies beside.")] = False,
    store: options.Store = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Check the store and name what is wrong. Nothing is changed."""
    session = Session.of(context, store, config, json)
    with session.reporting():
        from ecphoryrag.cli import work_store

        raise typer.Exit(work_store.verify(session, deep=deep))


def repair(
    context: typer.Context,
    *,
    encoder: options.Encoder = None,
    store: options.Store = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Mend what can be made again from the texts in the store, and list what cannot. No document is removed."""
    session = Session.of(context, store, config, json, encoder)
    with session.reporting():
        from ecphoryrag.cli import work_store

        raise typer.Exit(work_store.repair(session))


def backup(
    context: typer.Context,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The copy; it must not be there yet.")],
    *,
    store: options.Store = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Copy the store as it is at one moment. Others may read and write it meanwhile."""
    session = Session.of(context, store, config, json)
    with session.reporting():
        from ecphoryrag.cli import work_store

        raise typer.Exit(work_store.backup(session, target))


def export(
    context: typer.Context,
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE", help="Default: standard output.", show_default=False),
    ] = None,
    format: Annotated[
        options.ExportFormat, typer.Option("--format", help="All as JSONL, or the graph as GraphML or Parquet.")
    ] = options.ExportFormat.JSONL,
    vectors: Annotated[bool, typer.Option("--vectors", help="With the vectors of the passages (JSONL).")] = False,
    store: options.Store = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Write all that the store holds as JSONL, or its graph for other tools; equal for stores that hold the same."""
    session = Session.of(context, store, config, json)
    if session.json and output is None:
        raise typer.BadParameter("--json prints the outcome, and needs -o FILE for the export itself")
    if vectors and format != options.ExportFormat.JSONL:
        raise typer.BadParameter("--vectors is for --format jsonl")
    if format == options.ExportFormat.PARQUET and output is None:
        raise typer.BadParameter("--format parquet writes a folder: name it with -o")
    with session.reporting():
        from ecphoryrag.cli import work_store

        if format != options.ExportFormat.JSONL:
            raise typer.Exit(work_store.graph(session, output, format))
        raise typer.Exit(work_store.export(session, output, vectors=vectors))


def import_file(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What `ecphory export` wrote, or JSONL of documents.")],
    *,
    reencode: Annotated[
        bool, typer.Option("--re-encode", help="Encode the passages anew, even if the file has vectors that fit.")
    ] = False,
    encoder: options.Encoder = None,
    store: options.Store = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Take in an export, or plain documents as JSONL. The store is made if it is not there."""
    session = Session.of(context, store, config, json, encoder)
    with session.reporting():
        from ecphoryrag.cli import work_store

        raise typer.Exit(work_store.import_file(session, source, reencode=reencode))
