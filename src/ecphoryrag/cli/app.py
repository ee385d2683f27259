"""The command lines. Each command parses, hands over to :mod:`ecphoryrag.cli.work`, and gives its exit code.

``work`` and all behind it is imported by the command that needs it, so that ``--version`` and ``--help`` are quick.
"""
# ruff: noqa: PLC0415, PLR0913 - the imports for the reason above; a command has one parameter an option

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ecphoryrag.cli import options
from ecphoryrag.cli.bench_app import bench_app
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.commands import ON_FILE, ON_STORE, with_session
from ecphoryrag.cli.entity_app import add_entity_commands
from ecphoryrag.cli.session import Session, parse_where
from ecphoryrag.cli.store_app import add_store_commands

DESCRIPTION = "Associative memory for documents: add them, ask, and see where the answer comes from."
# Plain help and errors: they are whole in a pipe, and rich need not be imported for them.
app = typer.Typer(
    help=DESCRIPTION,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
model_app = typer.Typer(help="The local language model.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(model_app, name="model")
add_store_commands(app)
add_entity_commands(app)
app.add_typer(bench_app, name="bench")


def _version(wanted: bool) -> None:  # noqa: FBT001 - the shape that typer calls
    if wanted:
        from ecphoryrag import __version__

        sys.stdout.write(f"ecphory {__version__}\n")
        raise typer.Exit


@app.callback()
def before(
    context: typer.Context,
    *,
    store: options.Store = None,
    config: options.Config = None,
    json: options.Json = False,
    encoder: options.Encoder = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Keep the options that stand before the command's name."""
    del version  # its callback has acted
    context.obj = Session(store, config, json, encoder)


@app.command()
@with_session(*ON_STORE)
def add(
    session: Session,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH...", help="Files, folders, globs; - is standard input.")
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would cost; nothing is stored.")] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Ask again for the chunks that could not be extracted; takes no PATH.")
    ] = False,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            min=1,
            metavar="N",
            help="Stop before language models and servers have taken more tokens than this.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        options.InputFormat | None,
        typer.Option("--format", help="How standard input is read; default from the settings.", show_default=False),
    ] = None,
) -> ExitCode:
    """Add documents to the store, which is made if it is not there.

    What is there already with the same content is not worked on again; with other content it is replaced.
    """
    if retry and (paths or dry_run):
        raise typer.BadParameter("--retry takes no PATH and no --dry-run: it works on what the store holds")
    if not retry and not paths:
        raise typer.BadParameter("name at least one PATH", param_hint="'PATH...'")
    from ecphoryrag.cli import work, work_models

    session = replace(session, stdin_format=format)
    if dry_run:
        return work_models.estimate(session, paths or [])
    if retry:
        return work_models.retry(session, max_tokens)
    return work.add(session, paths or [], max_tokens)


@app.command()
@with_session(*ON_STORE)
def ask(
    session: Session,
    question: options.Question,
    *,
    method: options.MethodOption = None,
    k: options.K = None,
    where: options.Where = None,
) -> ExitCode:
    """Answer a question from the documents, with the evidence and the path to each piece of it."""
    from ecphoryrag.cli import work

    return work.ask(session, work.Inquiry(question, method, k, parse_where(where)))


@app.command()
@with_session(*ON_STORE)
def recall(
    session: Session,
    question: options.Question,
    *,
    explain: Annotated[bool, typer.Option("--explain", help="Draw the path to each chunk as a tree.")] = False,
    method: options.MethodOption = None,
    k: options.K = None,
    where: options.Where = None,
) -> ExitCode:
    """Show the chunks and entities that a question brings back; no language model is used."""
    from ecphoryrag.cli import work

    inquiry = work.Inquiry(question, method, k, parse_where(where))
    return work.recall(session, inquiry, explain=explain)


@app.command("list")
@with_session(*ON_STORE)
def list_documents(
    session: Session,
    *,
    where: options.Where = None,
) -> ExitCode:
    """List the documents: id, title, chunks, characters, metadata."""
    from ecphoryrag.cli import work

    return work.list_documents(session, parse_where(where))


@app.command()
@with_session(*ON_STORE)
def show(
    session: Session,
    id: Annotated[str, typer.Argument(metavar="ID", help="The id of a document.")],
) -> ExitCode:
    """Show a document, its chunks and the names found in them."""
    from ecphoryrag.cli import work

    return work.show(session, id)


@app.command()
@with_session(*ON_STORE)
def forget(
    session: Session,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="The ids of documents.")] = None,
    *,
    where: options.Where = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="PATH",
            help="Documents from this file or folder, or from what matches this pattern. Repeat for more.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which; nothing is changed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Forget what --where and --source choose.")] = False,
    erase: Annotated[
        bool,
        typer.Option("--erase", help="Leave no byte of them in the store's files, and print what was removed where."),
    ] = False,
) -> ExitCode:
    """Forget documents: all of those named, or none if one of them is not there; or those chosen by a description."""
    if ids and (where or source):
        raise typer.BadParameter("name documents by ID, or choose them by --where and --source; not both")
    if not ids and not where and not source and not (erase and not dry_run):
        raise typer.BadParameter("name at least one ID, or choose by --where or --source", param_hint="'ID...'")
    from ecphoryrag.cli import work_forget

    how = work_forget.Manner(dry_run=dry_run, yes=yes, erase=erase)
    if ids or (erase and not where and not source):
        return work_forget.forget(session, ids or [], how)
    return work_forget.forget_where(session, parse_where(where), source or [], how)


@app.command()
@with_session(*ON_STORE)
def sync(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to mirror.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Forget all of its documents if no file is left in the folder.")
    ] = False,
    allow_mass_forget: Annotated[
        bool, typer.Option("--allow-mass-forget", help="Forget even more than half of its documents.")
    ] = False,
) -> ExitCode:
    """Mirror a folder: take in new and changed files, follow moved ones, forget those that are gone."""
    from ecphoryrag.cli import work_sync

    how = work_sync.Manner(dry_run=dry_run, allow_empty=allow_empty, allow_mass_forget=allow_mass_forget)
    return work_sync.sync(session, folder, how)


@app.command()
@with_session(*ON_STORE)
def status(
    session: Session,
) -> ExitCode:
    """Show what the store holds."""
    from ecphoryrag.cli import work

    return work.status(session)


@app.command()
@with_session(*ON_STORE)
def doctor(
    session: Session,
) -> ExitCode:
    """Try each configured part for real: what works, what is missing, and how to mend it."""
    from ecphoryrag.cli import work_models

    return work_models.doctor(session)


@app.command()
@with_session(*ON_FILE)
def reembed(
    session: Session,
    *,
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder", metavar="NAME", callback=options.known_encoder, help="The encoder to move the store to."
        ),
    ],
) -> ExitCode:
    """Move the store to another encoder. It stays readable, and switches at once when all vectors are there."""
    from ecphoryrag.cli import work_models

    return work_models.reembed(session, encoder)


@app.command("eval")
def evaluate(
    context: typer.Context,
    *,
    corpus: Annotated[Path, typer.Option("--corpus", metavar="FILE", help="Passages, as JSONL: id, title, text.")],
    questions: Annotated[
        Path, typer.Option("--questions", metavar="FILE", help="Questions, as JSONL: id, question, answers, gold.")
    ],
    methods: Annotated[
        str, typer.Option("--methods", metavar="NAMES", help="Methods to compare, with commas between.")
    ] = ",".join(options.Method),
    encoder: options.Encoder = None,
    no_titles: Annotated[bool, typer.Option("--no-titles", help="Leave the titles of the passages out.")] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, metavar="N", help="Only the first questions.", show_default=False),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="OUT", help="Write the report there; - is standard output.", show_default=False),
    ] = None,
    config: options.Config = None,
) -> None:
    """Measure recall on questions whose passages are known, method by method."""
    session = Session.of(context, config=config, json=json is not None, encoder=encoder)
    with session.reporting():
        from ecphoryrag.cli import work

        named = tuple(name.strip() for name in methods.split(",") if name.strip())
        output = Path("-") if json is None and session.json else json
        raise typer.Exit(
            work.evaluate(session, work.Evaluation(corpus, questions, named, not no_titles, limit, output))
        )


@app.command()
@with_session(*ON_FILE)
def config(
    session: Session,
) -> ExitCode:
    """Show every setting, its value, where that came from, and the reason of the default."""
    from ecphoryrag.cli import work

    return work.config(session)


@model_app.command()
@with_session("config", "json")
def fetch(session: Session) -> ExitCode:
    """Fetch the default language model into the cache folder, unless it is there."""
    from ecphoryrag.cli import work

    return work.fetch_model(session)


@model_app.command()
@with_session("config", "json")
def path(session: Session) -> ExitCode:
    """Print where the language model's file is."""
    from ecphoryrag.cli import work

    return work.model_path(session)
