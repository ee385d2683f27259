"""The command lines of `ecphory bench`: run a comparison, compare two sides, freeze settings, make the report.

As in :mod:`ecphoryrag.cli.app`, what a command needs is imported by that command alone.
"""
# ruff: noqa: PLC0415, PLR0913 - the imports for the reason above; a command has one parameter an option

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.commands import with_session
from ecphoryrag.cli.session import Session

bench_app = typer.Typer(
    help="Compare methods: run a configuration, compare two sides, freeze settings, make the report.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@bench_app.command()
@with_session("json")
def run(
    session: Session,
    configuration: Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The run's folder; default bench-results/NAME.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, metavar="N", help="Only the first questions of each cell.", show_default=False),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            min=1,
            metavar="N",
            help="Stop before the language model has taken more tokens than this.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Relative paths of data count from here; default: from the configuration.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Only cells of this label, method, data set or encoder. May be repeated.",
            show_default=False,
        ),
    ] = None,
) -> ExitCode:
    """Ask what the configuration asks for and the run's folder does not hold yet."""
    from ecphoryrag.cli import work_bench

    return work_bench.run(session, work_bench.Running(configuration, out, limit, max_tokens, data, tuple(only or ())))


@bench_app.command()
@with_session("json")
def compare(
    session: Session,
    first: Annotated[str, typer.Argument(metavar="A", help="RUN, RUN:LABEL or RUN:LABEL@ENCODER.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The same.")],
) -> ExitCode:
    """Compare two sides question by question: paired bootstrap intervals and a paired t-test."""
    from ecphoryrag.cli import work_bench

    return work_bench.compare(session, first, second)


@bench_app.command()
@with_session("json")
def freeze(
    session: Session,
    chosen_from: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished development run.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; it must not be there.")],
    *,
    by: Annotated[str, typer.Option("--by", metavar="FIGURE", help="The figure to choose by.")] = "em",
) -> ExitCode:
    """Choose each method's settings on development questions, and write them down for a run on test questions."""
    from ecphoryrag.cli import work_bench

    return work_bench.freeze(session, chosen_from, out, by)


@bench_app.command()
@with_session("json")
def report(
    session: Session,
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="The folders of runs.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where the report goes; default: the first run.", show_default=False),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="FILE", help="Write the summary in Markdown there too.", show_default=False),
    ] = None,
) -> ExitCode:
    """Make report.md and the self-contained report.html of stored runs. No model is asked."""
    from ecphoryrag.cli import work_bench

    return work_bench.report(session, runs, out, docs)
