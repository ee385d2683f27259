"""What each command does once its line is parsed: call Memory, show the outcome, say the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ecphoryrag.cli import render
from ecphoryrag.cli.bars import adding, bar
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.jsonout import indexed_to_json, write_json
from ecphoryrag.cli.outcome import tell_result
from ecphoryrag.cli.session import Session
from ecphoryrag.cli.work_models import tell_report
from ecphoryrag.ports import Where
from ecphoryrag.settings import explain_settings


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question and how it is to be recalled; None is left to the settings."""

    question: str
    method: str | None
    k: int | None
    where: Where | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What `eval` is to measure, and where the report goes (``-``: standard output)."""

    corpus: Path
    questions: Path
    methods: tuple[str, ...]
    titles: bool
    limit: int | None
    output: Path | None


def add(session: Session, paths: Sequence[str], max_tokens: int | None) -> ExitCode:
    """Index what the paths hold."""
    with session.writing(create=True) as memory, adding() as progress:
        report = memory.add_paths(paths, progress=progress, max_tokens=max_tokens)
    return tell_report(session, report)


def ask(session: Session, inquiry: Inquiry) -> ExitCode:
    """Answer from the evidence."""
    with session.reading() as memory:
        answer = memory.ask(inquiry.question, k=inquiry.k, method=inquiry.method, where=inquiry.where)
    tell_result(session, answer, lambda screen: render.show_answer(screen, answer))
    return ExitCode.NO_ANSWER if answer.text is None else ExitCode.OK


def recall(session: Session, inquiry: Inquiry, *, explain: bool) -> ExitCode:
    """Show what the question brings back."""
    with session.reading() as memory:
        recalled = memory.recall(inquiry.question, k=inquiry.k, method=inquiry.method, where=inquiry.where)
    tell_result(session, recalled, lambda screen: render.show_recall(screen, recalled, explain=explain))
    return ExitCode.OK


def list_documents(session: Session, where: Where | None) -> ExitCode:
    """List the documents."""
    with session.reading() as memory:
        documents = memory.documents(where)
    tell_result(session, {"documents": documents}, lambda screen: render.show_documents(screen, documents))
    return ExitCode.OK


def show(session: Session, id: str) -> ExitCode:
    """Show one document."""
    with session.reading() as memory:
        indexed = memory.inspect(id)
    tell_result(session, indexed_to_json(indexed), lambda screen: render.show_document(screen, indexed))
    return ExitCode.OK


def status(session: Session) -> ExitCode:
    """Show what the store holds."""
    with session.reading() as memory:
        found = memory.status()
    tell_result(session, found, lambda screen: render.show_status(screen, found))
    return ExitCode.OK


def config(session: Session) -> ExitCode:
    """Show every setting."""
    values = explain_settings(session.arguments(), session.config)
    tell_result(session, {"settings": values}, lambda screen: render.show_settings(screen, values))
    return ExitCode.OK


def evaluate(session: Session, evaluation: Evaluation) -> ExitCode:
    """Measure recall; the table goes to standard output, or to standard error where that is taken by the JSON."""
    from ecphoryrag.evaluation import command  # noqa: PLC0415 - of the extra `eval`

    settings = session.settings()
    to_stdout = evaluation.output == Path("-")
    with bar() as progress:
        report = command.run(
            evaluation.corpus,
            evaluation.questions,
            evaluation.methods,
            encoder=settings.encoder,
            titles=evaluation.titles,
            limit=evaluation.limit,
            output=None if to_stdout else evaluation.output,
            settings=settings,
            progress=progress,
        )
    command.render(report, Console(file=sys.stderr if to_stdout else sys.stdout))
    if to_stdout:
        write_json(report.to_json(rows=True))
    sys.stdout.flush()
    return ExitCode.OK


def fetch_model(session: Session) -> ExitCode:
    """Fetch the default language model, unless it is there."""
    from ecphoryrag.models.fetch import bytes_to_fetch, fetch_model  # noqa: PLC0415 - of this command alone

    local = session.settings().models.local
    missing = bytes_to_fetch(local)
    if missing:
        sys.stderr.write(f"Fetching the language model: {missing / 1e9:.2f} GB.\n")
    with bar("bytes") as tell:
        path = fetch_model(local, (lambda done, total: tell("model", done, total)) if tell else None)
    tell_result(session, {"path": path, "fetched_bytes": missing}, lambda screen: screen.line(str(path)))
    return ExitCode.OK


def model_path(session: Session) -> ExitCode:
    """Show where the language model's file is."""
    from ecphoryrag.models.files import resolve_model  # noqa: PLC0415 - of this command alone

    path = resolve_model(session.settings().models.local)
    tell_result(session, {"path": path}, lambda screen: screen.line(str(path)))
    return ExitCode.OK
