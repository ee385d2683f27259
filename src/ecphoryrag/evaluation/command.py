"""What `ecphory eval` does, without parsing a command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.methods import ProgressBar
from ecphoryrag.evaluation.render import render
from ecphoryrag.evaluation.report import EvaluationReport
from ecphoryrag.evaluation.run import EvaluationRequest, evaluate
from ecphoryrag.settings import Settings

__all__ = ["render", "run", "write_report"]


def run(  # noqa: PLR0913 - one parameter an option of the command; EvaluationRequest is the group
    corpus: Path,
    questions: Path,
    methods: Sequence[str],
    *,
    encoder: str,
    titles: bool,
    limit: int | None,
    output: Path | None,
    settings: Settings,
    progress: ProgressBar | None = None,
) -> EvaluationReport:
    """Evaluate, and write the report to ``output`` if one is given.

    Raises InputError for an unknown method or encoder, for data that cannot be used, and, before anything is
    computed, for an output that cannot be written; EcphoryError if the extra `eval` is missing.
    """
    request = EvaluationRequest(corpus, questions, tuple(methods), encoder, titles, limit)
    if output is not None:
        _check_writable(output)
    report = evaluate(request, settings, progress)
    if output is not None:
        write_report(report, output)
    return report


def write_report(report: EvaluationReport, output: Path, *, rows: bool = True) -> None:
    """As UTF-8 JSON with one space of indent. Raises InputError if the file cannot be written."""
    text = json.dumps(report.to_json(rows=rows), ensure_ascii=False, indent=1, allow_nan=False)
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the report to {output}: {error.strerror}") from error


def _check_writable(output: Path) -> None:
    """Minutes of measuring should not end in a misspelt path."""
    if output.is_dir():
        raise InputError(f"cannot write the report to {output}: it is a folder; name a file")
    if not output.parent.is_dir():
        raise InputError(f"cannot write the report to {output}: the folder {output.parent} does not exist")
