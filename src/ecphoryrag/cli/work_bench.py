"""What the commands of `ecphory bench` do once their line is parsed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ecphoryrag.cli.bars import bar
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.outcome import tell_result
from ecphoryrag.cli.render_models import FAINT, HEAD, WRONG
from ecphoryrag.cli.screen import Screen, one_line
from ecphoryrag.cli.session import Session
from ecphoryrag.evaluation.bench.compare import Compared
from ecphoryrag.evaluation.bench.compare import compare as compare_sides
from ecphoryrag.evaluation.bench.freeze import Frozen
from ecphoryrag.evaluation.bench.freeze import freeze as freeze_settings
from ecphoryrag.evaluation.bench.progress import BenchProgress, Tell
from ecphoryrag.evaluation.bench.run import BenchReport, Choose
from ecphoryrag.evaluation.bench.run import run as run_bench
from ecphoryrag.evaluation.bench.table import TableRow, ordered, table

RESULTS = Path("bench-results")
"""Folder of runs that are given no folder."""
INTERRUPTED = "interrupted"
"""What :class:`BenchReport` says of Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Running:
    """The options of `bench run`; None is left to the configuration."""

    configuration: Path
    out: Path | None
    limit: int | None
    max_tokens: int | None
    data: Path | None
    only: tuple[str, ...]


def run(session: Session, running: Running) -> ExitCode:
    """A sitting of a run, and its table so far."""
    out = running.out or RESULTS / running.configuration.stem
    with _progress() as tell:
        done = run_bench(
            running.configuration,
            out,
            limit=running.limit,
            max_tokens=running.max_tokens,
            progress=tell,
            choose=Choose(data=running.data, only=running.only),
        )
    rows = table(out)
    tell_result(session, {**asdict(done), "table": rows}, lambda screen: _show_run(screen, done, rows))
    if done.stopped is not None:
        return ExitCode.INTERRUPTED if done.stopped == INTERRUPTED else ExitCode.STOPPED
    return ExitCode.SOME_FAILED if done.errors or done.unavailable else ExitCode.OK


def compare(session: Session, first: str, second: str) -> ExitCode:
    """Every data set that both sides have."""
    found = compare_sides(first, second)
    tell_result(session, {"compared": found}, lambda screen: _show_compared(screen, found))
    return ExitCode.OK


def freeze(session: Session, chosen_from: Path, out: Path, by: str) -> ExitCode:
    """Choose and write."""
    frozen = freeze_settings(chosen_from, out, by=by)
    said = {"path": out, "by": frozen.by, "choices": frozen.choices, "questions": len(frozen.questions)}
    tell_result(session, said, lambda screen: _show_frozen(screen, out, frozen))
    return ExitCode.OK


def report(session: Session, runs: Sequence[Path], out: Path | None, docs: Path | None) -> ExitCode:
    """Make the report's files."""
    from ecphoryrag.evaluation.bench.reporting import write_report  # noqa: PLC0415 - of the extra `eval`

    files = write_report(runs, out or runs[0], docs=docs)
    tell_result(session, {"files": files}, lambda screen: screen.line("\n".join(map(str, files))))
    return ExitCode.OK


@contextmanager
def _progress() -> Iterator[Tell | None]:
    """A bar of the whole run's questions, with what is being done and the time left."""
    with bar() as shown:
        if shown is None:
            yield None
            return

        def tell(progress: BenchProgress) -> None:
            total = "" if progress.total is None else f"/{progress.total}"
            doing = f"{one_line(progress.cell)}: {progress.doing} {progress.done}{total}"
            left = "" if progress.seconds_left is None else f", {duration(progress.seconds_left)} left"
            shown(f"{doing}{left}", progress.asked, progress.questions)

        yield tell


def duration(seconds: float) -> str:
    """About how long, in the two largest units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"about {days} d {hours} h"
    if hours:
        return f"about {hours} h {minutes} min"
    return f"about {minutes} min" if minutes else f"about {rest} s"


def _show_run(screen: Screen, done: BenchReport, rows: Sequence[TableRow]) -> None:
    for cell, reason in done.unavailable:
        screen.line(f"cannot run: {one_line(cell)}: {one_line(reason)}", WRONG)
    names = ordered({name for row in rows for name in row.figures})
    header = ["data set", "encoder", "method", "questions", "errors", *names]
    lines = [
        [row.dataset, row.encoder, row.label, str(row.questions), str(row.errors)]
        + [f"{row.figures[name].mean:.3f}" if name in row.figures else "" for name in names]
        for row in rows
    ]
    screen.table(header, lines)
    if done.stopped is not None:
        screen.line(f"Stopped: {one_line(done.stopped)}", WRONG)
        screen.line("What was asked is kept; the same command goes on from there.", WRONG)
    counts = f"{done.asked} questions asked, {done.already} were there, {done.left} left, {done.errors} failed"
    screen.line(counts, HEAD)
    screen.line(f"{done.cells} cells, {done.tokens} tokens of the language model; rows in {done.out}", FAINT)


def _show_compared(screen: Screen, found: Sequence[Compared]) -> None:
    header = ["data set", "A", "B", "questions", "figure", "A", "B", "A - B", "from", "to", "t", "p"]
    lines = [
        [each.dataset, each.first, each.second, str(each.questions), name]
        + [f"{value:.3f}" for value in (one.first, one.second, one.interval.difference)]
        + [f"{value:.3f}" for value in (one.interval.low, one.interval.high)]
        + ["" if one.t is None else f"{one.t:.2f}", "" if one.p is None else f"{one.p:.2g}"]
        for each in found
        for name, one in each.figures.items()
    ]
    screen.table(header, lines)
    for each in found:
        for note in each.left_out:
            screen.line(f"{each.dataset}: {one_line(note)}", FAINT)


def _show_frozen(screen: Screen, out: Path, frozen: Frozen) -> None:
    header = ["method", "encoder", "chosen", frozen.by, "among"]
    screen.table(
        header,
        [
            [choice.entry, choice.encoder, choice.label, f"{choice.figure:.3f}", str(len(choice.among))]
            for choice in frozen.choices
        ],
    )
    screen.line(f"{len(frozen.questions)} development questions; written to {out}", FAINT)
