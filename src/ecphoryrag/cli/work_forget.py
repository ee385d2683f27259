"""What `forget` does: by ids or by a description, tried or done, with or without erasing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.outcome import tell_result
from ecphoryrag.cli.render_models import FAINT, HEAD, WRONG, show_failures
from ecphoryrag.cli.screen import Screen, one_line
from ecphoryrag.cli.session import Session
from ecphoryrag.ports import Where
from ecphoryrag.types import EraseReceipt


@dataclass(frozen=True, slots=True)
class Manner:
    """How documents are to be forgotten."""

    dry_run: bool
    yes: bool
    erase: bool


def forget(session: Session, ids: Sequence[str], how: Manner) -> ExitCode:
    """Forget documents by their ids, all or none."""
    unique = tuple(dict.fromkeys(ids))
    if how.dry_run:
        with session.reading() as memory:
            for id_ in unique:
                memory.get(id_)
        return _tell(session, unique, None, how, done=False)
    with session.writing(create=False) as memory:
        receipt = memory.forget(*unique, erase=how.erase)
    return _tell(session, unique, receipt, how, done=True)


def forget_where(session: Session, where: Where | None, sources: Sequence[str], how: Manner) -> ExitCode:
    """Forget the documents that a filter and sources choose; without ``--yes`` only say which."""
    if how.dry_run or not how.yes:
        with session.reading() as memory:
            report = memory.forget_where(where, source=sources, dry_run=True)
        code = _tell(session, report.documents, None, how, done=not report.documents)
        return code if how.dry_run or not report.documents else ExitCode.ERROR
    with session.writing(create=False) as memory:
        report = memory.forget_where(where, source=sources, erase=how.erase)
    return _tell(session, report.documents, report.receipt, how, done=True)


def _tell(session: Session, ids: tuple[str, ...], receipt: EraseReceipt | None, how: Manner, *, done: bool) -> ExitCode:
    def draw(screen: Screen) -> None:
        if not done:
            for id_ in ids:
                screen.line(f"would be forgotten: {one_line(id_)}")
            hint = "" if how.dry_run else ": say --yes to forget them"
            screen.line(f"{len(ids)} would be forgotten; nothing was changed{hint}", HEAD)
            return
        gone = len(ids) if receipt is None else len(receipt.documents)
        hint = "" if ids or receipt else ": no document is chosen so (`ecphory list` shows ids and sources)"
        screen.line(f"{gone} forgotten{hint}", HEAD)
        if receipt is not None:
            show_receipt(screen, receipt)

    value = {"forgotten": ids if done else (), "chosen": ids, "receipt": receipt}
    tell_result(session, value, draw)
    return ExitCode.SOME_FAILED if receipt is not None and not receipt.complete else ExitCode.OK


def show_receipt(screen: Screen, receipt: EraseReceipt) -> None:
    """What was removed where, what stays, and what an erasure does not reach."""
    for id_ in receipt.already_gone:
        screen.line(f"not there (any more): {one_line(id_)}", FAINT)
    removed = ", ".join(f"{count} {table}" for table, count in receipt.rows.items() if count)
    screen.line(f"rows removed: {removed or 'none'}")
    for file in receipt.files:
        sizes = f"{file.bytes_before} bytes before, {file.bytes_after} now"
        found = "" if file.what == "removed" else f", {file.traces} traces"
        screen.line(f"{file.what}: {one_line(file.name)}: {sizes}{found}")
    left = f", {receipt.needles_left_out} more were not" if receipt.needles_left_out else ""
    screen.line(f"{receipt.needles} words, runs of text and numbers of them were searched for{left}")
    if receipt.shared_needles:
        screen.line(f"{receipt.shared_needles} others stand in what is left of the store too, and stay")
    if receipt.shared_entities:
        screen.line(f"names that other documents mention too, and stay: {one_line(', '.join(receipt.shared_entities))}")
    show_failures(screen, "left", receipt.remaining)
    show_failures(screen, "a copy beside the store, not touched", receipt.copies)
    for one in receipt.beyond:
        screen.line(f"not reached: {one}", FAINT)
    if receipt.pending:
        screen.line(f"Not finished: {one_line(receipt.pending)}", WRONG)
    said = "erased: no file of the store holds any of it" if receipt.complete else "not erased yet"
    screen.line(f"{said}, {receipt.seconds:.2f} s", HEAD)
