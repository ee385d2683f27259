"""What the commands print of models: cost, estimates, the findings of `doctor`, a move to another encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ecphoryrag.cli.screen import Screen, one_line
from ecphoryrag.types import Estimate, Failure, ReembedReport, Spending, Usage

if TYPE_CHECKING:
    from ecphoryrag.doctor import Finding

HEAD = "bold"
FAINT = "dim"
WRONG = "red"
_STATES = {"ok": "", "off": FAINT, "warning": "yellow", "failed": WRONG}
LISTED = 20
"""Failures shown one by one; of more the number is said."""


def spent(usage: Usage, seconds: float) -> str:
    """The cost in one line: what a language model read and wrote, what an encoder read, what the ledger saved."""
    about = "about " if usage.estimated else ""
    parts = []
    if usage.input_tokens or usage.output_tokens:
        parts.append(f"{about}{usage.input_tokens} tokens in, {usage.output_tokens} out")
    if usage.embedding_tokens:
        parts.append(f"{usage.embedding_tokens} tokens encoded")
    if usage.cached:
        parts.append(f"{usage.cached} from the ledger")
    return ", ".join([*(parts or ["no language-model tokens"]), f"{seconds:.2f} s"])


def show_spending(screen: Screen, spending: Sequence[Spending]) -> None:
    """A line for each purpose and model."""
    for one in spending:
        usage = one.usage
        calls = f"{usage.calls} calls, " if usage.calls else ""
        screen.line(f"spent on {one.purpose} with {one_line(one.model)}: {calls}{spent(usage, usage.seconds)}", FAINT)


def show_failures(screen: Screen, word: str, failures: Sequence[Failure], style: str = WRONG) -> None:
    """A line for each of the first, and how many more there are."""
    for failure in failures[:LISTED]:
        screen.line(f"{word}: {one_line(failure.source)}: {one_line(failure.reason)}", style)
    if len(failures) > LISTED:
        screen.line(f"{word}: and {len(failures) - LISTED} more", style)


def show_estimate(screen: Screen, estimate: Estimate) -> None:
    """What adding would cost."""
    show_failures(screen, "left out", estimate.left_out, FAINT)
    show_failures(screen, "would fail", estimate.failed)
    screen.line(f"{estimate.documents} documents to work on, {estimate.chunks} chunks", HEAD)
    known = f", and {estimate.cached} that the ledger holds" if estimate.cached else ""
    screen.line(f"{estimate.calls} calls of the language model{known}")
    about = "" if estimate.exact_input or not estimate.calls else "about "
    screen.line(f"{about}{estimate.input_tokens} tokens in, about {estimate.output_tokens} out ({estimate.basis})")
    screen.line(f"about {estimate.embedding_tokens} tokens to encode")
    took = "no earlier call says how long one takes" if estimate.seconds is None else _duration(estimate.seconds)
    screen.line(took)
    screen.line("Nothing was called and nothing was stored.", FAINT)


def show_findings(screen: Screen, findings: Sequence[Finding]) -> None:
    """A line for each part."""
    for found in findings:
        took = f" ({found.seconds:.1f} s)" if found.seconds >= 0.05 else ""
        name = one_line(found.name)
        screen.line(f"{found.state}: {found.part} {name}: {one_line(found.detail)}{took}", _STATES[found.state])


def show_move(screen: Screen, report: ReembedReport) -> None:
    """What became of moving a store to another encoder."""
    show_failures(screen, "failed", report.failed)
    if report.interrupted or report.stopped:
        screen.line(f"Stopped: {report.stopped or 'interrupted'}", WRONG)
    name = one_line(report.encoder.name)
    if report.already:
        screen.line(f"The store has the vectors of {name} already: there was nothing to do.", HEAD)
        return
    screen.line(f"{report.encoded} of {report.chunks} chunks encoded with {name}", HEAD)
    screen.line(spent(report.usage, report.seconds), FAINT)
    if report.switched:
        screen.line(f'The store has moved. From now on it needs encoder = "{name}" in the settings.')
    else:
        screen.line(
            "The store is as it was; what was encoded is kept, and running this again goes on from here.", WRONG
        )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"about {seconds:.0f} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.1f} hours"
