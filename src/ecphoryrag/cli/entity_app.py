"""The command lines on what the store knows by name: list it, merge and split names, undo that, and measure it.

As in :mod:`ecphoryrag.cli.app`, what a command needs is imported by that command alone.
"""
# ruff: noqa: PLC0415, PLR0913 - the imports for the reason above; a command has one parameter an option

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ecphoryrag.cli import options
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.commands import ON_STORE, with_session
from ecphoryrag.cli.session import Session, parse_where

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Kept with the decision.", show_default=False)]
Least = Annotated[
    float | None,
    typer.Option("--least", min=0.0, max=1.0, metavar="SCORE", help="Least score, 0 to 1.", show_default=False),
]


def add_entity_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    for command in (entities, merge, split, unmerge):
        app.command()(command)
    app.command("eval-entities")(eval_entities)


@with_session(*ON_STORE)
def entities(
    session: Session,
    *,
    duplicates: Annotated[bool, typer.Option("--duplicates", help="List pairs that may be one, and why.")] = False,
    decisions: Annotated[bool, typer.Option("--decisions", help="List what was decided, with the numbers.")] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="List the mentions of one, with the numbers.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Lines at most.")] = 50,
    least: Least = None,
) -> ExitCode:
    """List the entities, the most often met first; likely duplicates, decisions, or the mentions of one."""
    if duplicates + decisions + (name is not None) > 1:
        raise typer.BadParameter("choose one of --duplicates, --decisions and --name")
    if least is not None and not duplicates:
        raise typer.BadParameter("--least is for --duplicates")
    from ecphoryrag.cli import work_entities as work

    if duplicates:
        return work.duplicates(session, limit, least)
    if decisions:
        return work.decisions(session)
    if name is not None:
        return work.mentions(session, name, limit)
    return work.entities(session, limit)


@with_session(*ON_STORE)
def merge(
    session: Session,
    names: Annotated[list[str], typer.Argument(metavar="NAME OTHER...", help="Names of one thing.")],
    *,
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="NAME", help="The name to show; else the most frequent.", show_default=False),
    ] = None,
    reason: Reason = "",
) -> ExitCode:
    """Decide that names are of one thing. Nothing is extracted again, and `unmerge` undoes it."""
    from ecphoryrag.cli import work_entities as work

    return work.merge(session, names, into, reason)


@with_session(*ON_STORE)
def split(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that is of several things.")],
    *,
    qualifier: Annotated[
        str, typer.Option("--as", metavar="WORDS", help="What tells the new one apart: NAME (WORDS).")
    ],
    documents: Annotated[
        list[str] | None,
        typer.Option("--document", metavar="ID", help="Take all mentions in it; repeatable.", show_default=False),
    ] = None,
    chunks: Annotated[
        list[str] | None,
        typer.Option("--chunk", metavar="ID:N", help="Take the mentions in this chunk's text.", show_default=False),
    ] = None,
    mentions: Annotated[
        list[int] | None,
        typer.Option("--mention", metavar="N", help="Take this one of `entities --name`.", show_default=False),
    ] = None,
    where: options.Where = None,
    reason: Reason = "",
) -> ExitCode:
    """Decide that some mentions of a name are of another thing. `unmerge` undoes it."""
    pairs = []
    for chunk in chunks or ():
        document, _, ordinal = chunk.rpartition(":")
        if not document or not ordinal.isascii() or not ordinal.isdigit():
            raise typer.BadParameter(f"{chunk!r} is not ID:N, a document's id and a chunk's number")
        pairs.append((document, int(ordinal)))
    from ecphoryrag.cli import work_entities as work
    from ecphoryrag.decisions import Selection

    selection = Selection(tuple(documents or ()), parse_where(where), tuple(pairs), tuple(mentions or ()))
    return work.split(session, name, qualifier, selection, reason)


@with_session(*ON_STORE)
def unmerge(
    session: Session,
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="Of the decision, by `entities --decisions`.")],
) -> ExitCode:
    """Undo a merge or a split: what is shown is again as if it had not been made. The history keeps it."""
    from ecphoryrag.cli import work_entities as work

    return work.unmerge(session, number)


@with_session(*ON_STORE)
def eval_entities(
    session: Session,
    *,
    labels: Annotated[Path, typer.Option("--labels", metavar="FILE", help="Labelled pairs of mentions, as JSONL.")],
    least: Least = None,
) -> ExitCode:
    """Measure how well names are resolved, and what merging the likely duplicates would make of it."""
    from ecphoryrag.cli import work_entities as work

    return work.evaluate(session, labels, least)
