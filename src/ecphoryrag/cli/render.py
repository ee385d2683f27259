"""What the commands print for people."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ecphoryrag.cli.render_models import FAINT, HEAD, WRONG, show_failures, show_spending, spent
from ecphoryrag.cli.screen import Branch, Screen, one_line
from ecphoryrag.indexing.records import json_or_text
from ecphoryrag.ports import IndexedDocument
from ecphoryrag.settings import SettingValue
from ecphoryrag.types import (
    AddReport,
    Answer,
    DocumentSummary,
    Evidence,
    JsonValue,
    Metadata,
    Path,
    Recall,
    Step,
    StoreStatus,
)

INDENT = "    "

NOTHING = "Nothing was found to add."


def show_report(screen: Screen, report: AddReport, nothing: str = NOTHING) -> None:
    """A line for each thing left out or failed, the empty chunks, and the counts; ``nothing`` if there was none."""
    for left in report.left_out:
        screen.line(f"left out: {one_line(left.source)}: {one_line(left.reason)}", FAINT)
    for failure in report.failed:
        screen.line(f"failed: {one_line(failure.source)}: {one_line(failure.reason)}", WRONG)
    empty: dict[str, list[int]] = {}
    for document, ordinal in report.empty_chunks:
        empty.setdefault(document, []).append(ordinal)
    for document, ordinals in empty.items():
        word = "chunk" if len(ordinals) == 1 else "chunks"
        screen.line(f"no names found: {one_line(document)}, {word} {_ranges(ordinals)}", FAINT)
    for notice in report.notices:
        screen.line(f"Note: {one_line(notice)}", WRONG)
    if report.dropped:
        screen.line(f"{report.dropped} names dropped that do not stand in the text", FAINT)
    show_failures(screen, "incomplete", report.incomplete)
    if report.incomplete:
        screen.line("`ecphory add --retry` asks again for just the chunks that are missing.", WRONG)
    if report.stopped:
        screen.line(f"Stopped: {one_line(report.stopped)}", WRONG)
        screen.line("What is counted below is kept; adding again goes on from there.", WRONG)
    if report.interrupted:
        screen.line("Interrupted: what is counted below is kept; adding again goes on from there.", WRONG)
    counts = (
        (len(report.added), "added"),
        (len(report.updated), "updated"),
        (len(report.unchanged), "unchanged"),
        (len(report.failed), "failed"),
        (len(report.left_out), "left out"),
    )
    if not (any(count for count, _ in counts) or report.stopped or report.interrupted):
        screen.line(nothing, WRONG)
    screen.line(", ".join(f"{count} {what}" for count, what in counts), HEAD)
    reused = f" and {report.reused} kept" if report.reused else ""
    chunks = f"{report.chunks} chunks{' extracted' + reused if reused else ''}, {report.mentions} mentions"
    screen.line(f"{chunks}; {spent(report.usage, report.seconds)}", FAINT)
    show_spending(screen, [one for one in report.spending if one.usage.calls])


def _ranges(numbers: Sequence[int]) -> str:
    """Rising numbers with runs drawn together: ``0-388, 390``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def show_answer(screen: Screen, answer: Answer) -> None:
    """The answer or why there is none, the reasoning, the evidence with its paths, and the cost."""
    if answer.text is None:
        screen.line(f"No answer: {answer.reason or 'the evidence does not suffice'}", WRONG)
    else:
        screen.line(f"Answer: {answer.text}", HEAD)
        if answer.reason:
            screen.line(f"Note: {answer.reason}", FAINT)
    if answer.reasoning:
        screen.line(f"Reasoning: {answer.reasoning}")
    for note in answer.notes:
        screen.line(f"Note: {note}", FAINT)
    if answer.recall.reason:
        screen.line(f"Recall: {answer.recall.reason}", FAINT)
    if answer.evidence:
        screen.line()
        screen.line("Evidence (* cited):", HEAD)
    for evidence in answer.evidence:
        _show_evidence(screen, evidence, "*" if evidence.number in answer.cited else " ")
        screen.line(f"{INDENT}path: {path_line(evidence.path)}", FAINT)
    screen.line()
    model = f"; model {answer.model}" if answer.model else ""
    screen.line(spent(answer.usage, answer.usage.seconds) + model, FAINT)
    if len({one.model for one in answer.spending if one.usage.calls}) > 1:
        show_spending(screen, answer.spending)


OTHER_ORDER = (
    "the passages stand in the order of their entities and not of their scores: with the method `paper`, "
    "recall.paper.chunk_order chooses (decision 033)"
)


def show_recall(screen: Screen, recall: Recall, *, explain: bool) -> None:
    """The ranked chunks, entities and implicit relations; with ``explain`` each path as a tree."""
    if recall.reason:
        screen.line(f"{'Note' if recall.chunks else 'Nothing recalled'}: {recall.reason}", WRONG)
    for evidence in recall.chunks:
        _show_evidence(screen, evidence, " ")
        if explain:
            screen.tree(_explained(evidence))
        else:
            screen.line(f"{INDENT}path: {path_line(evidence.path)}", FAINT)
    if recall.entities:
        screen.line()
        screen.line("Entities:", HEAD)
    for ranked in recall.entities:
        screen.line(
            f"{ranked.rank}. {one_line(ranked.entity.name)} ({one_line(ranked.entity.type)}) {ranked.score:.4f}"
        )
    if recall.relations:
        screen.line()
        screen.line("Implicit relations:", HEAD)
    for relation in recall.relations:
        place = f"{relation.document_id} {relation.start}-{relation.end}"
        how = f" ({one_line(relation.label)})" if relation.label else ""
        screen.line(f"{one_line(relation.subject)} -- {one_line(relation.object)}{how}: {one_line(relation.sentence)}")
        screen.line(f"{INDENT}{one_line(place)}", FAINT)
    screen.line()
    for note in recall.notes:
        screen.line(f"Note: {note}", FAINT)
    scores = [evidence.score for evidence in recall.chunks]
    if scores != sorted(scores, reverse=True):
        screen.line(f"Note: {OTHER_ORDER}", FAINT)
    screen.line(f"method {recall.method}; {spent(recall.usage, recall.usage.seconds)}", FAINT)


def show_documents(screen: Screen, documents: Sequence[DocumentSummary]) -> None:
    """One document a row: id, title, chunks, characters, metadata."""
    header = ("id", "title", "chunks", "characters", "metadata")
    rows = [(item.id, item.title, str(item.chunks), str(item.characters), _pairs(item.metadata)) for item in documents]
    screen.table(header, rows)


def show_document(screen: Screen, indexed: IndexedDocument) -> None:
    """A document with its chunks and their mentions."""
    document = indexed.document
    screen.line(f"id: {one_line(document.id)}", HEAD)
    for name, value in (("title", document.title), ("source", document.source or "")):
        if value:
            screen.line(f"{name}: {one_line(value)}")
    if document.metadata:
        screen.line(f"metadata: {_pairs(document.metadata)}")
    screen.line(f"content hash: {document.content_hash}")
    for chunk, found in zip(indexed.chunks, indexed.extractions, strict=True):
        above = " > ".join(one_line(heading) for heading in chunk.headings)
        screen.line()
        screen.line(f"chunk {chunk.ordinal}, {chunk.start}-{chunk.end}" + (f", under {above}" if above else ""), HEAD)
        screen.line(_indented(chunk.text))
        for mention in found.mentions:
            place = f"{mention.field} {mention.start}-{mention.end}"
            about = f", about ({mention.about})" if mention.about else ""
            screen.line(f"{INDENT}- {one_line(mention.name)} [{one_line(mention.type)}] {place}{about}", FAINT)
        for one, other in found.aliases:
            screen.line(f"{INDENT}- {one_line(one)} = {one_line(other)}", FAINT)
        if not found.mentions:
            screen.line(f"{INDENT}no names found", FAINT)


def show_status(screen: Screen, status: StoreStatus) -> None:
    """Counts and sizes, one a line."""
    ratio = f" ({status.bytes / status.text_bytes:.1f} x the text)" if status.text_bytes else ""
    for name, value in (
        ("store", status.path),
        ("format", status.format),
        ("generation", status.generation),
        ("documents", status.documents),
        ("chunks", status.chunks),
        ("entities", status.entities),
        ("mentions", status.mentions),
        ("chunks without names", status.empty_chunks),
        ("encoder", f"{status.encoder.name} {status.encoder.version}, {status.encoder.dimension} dimensions"),
        ("extractor", status.extractor),
        ("bytes", f"{status.bytes}{ratio}"),
    ):
        screen.line(f"{name}: {one_line(str(value))}")
    if status.erasure:
        screen.line(f"erasure: {one_line(status.erasure)}", WRONG)
    if status.reembedding:
        screen.line(f"moving to another encoder: {one_line(status.reembedding)}")
    for notice in status.notices:
        screen.line(f"note: {one_line(notice)}", WRONG)
    show_spending(screen, status.spending)
    show_failures(screen, "incomplete", status.incomplete)


def show_settings(screen: Screen, values: Sequence[SettingValue]) -> None:
    """One setting a row: name, value, where it came from, and why the default is what it is."""
    rows = [
        (
            setting.name,
            _as_set(setting.value),
            f"{setting.origin} ({setting.detail})" if setting.detail else setting.origin,
            setting.reason,
        )
        for setting in values
    ]
    screen.table(("setting", "value", "from", "reason"), rows)


def _as_set(value: object) -> str:
    """As a settings file would hold it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def path_line(path: Path) -> str:
    """The path in one line, from the question on."""
    return " -> ".join([path.kind, *(_step(step) for step in path.steps)])


def _show_evidence(screen: Screen, evidence: Evidence, mark: str) -> None:
    chunk = evidence.chunk
    title = f"  {one_line(evidence.title)}" if evidence.title else ""
    place = f"{one_line(chunk.document_id)} {chunk.start}-{chunk.end}"
    screen.line(f"[{evidence.number}]{mark} {place}{title}  (score {evidence.score:.4f})", HEAD)
    screen.line(_indented(chunk.text))


def _explained(evidence: Evidence) -> Branch:
    """The path, each step hanging on the one before, beside the parts of the score."""
    reached: tuple[Branch, ...] = ()
    for step in reversed(evidence.path.steps):
        reached = (Branch(_step(step), reached),)
    signals = tuple(Branch(f"{name}: {value:.4f}") for name, value in evidence.signals.items())
    return Branch(
        f"[{evidence.number}] reached by: {evidence.path.kind}",
        (*reached, *([Branch("signals", signals)] if signals else [])),
    )


def _step(step: Step) -> str:
    text = one_line(step.text)
    if step.document_id is None:
        return f"{step.kind} {text!r}" if step.kind == "cue" else f"{step.kind}: {text}"
    span = f" {step.start}-{step.end}" if step.start is not None else ""
    field = " in the title" if step.field == "title" else ""
    return f"{step.kind}: {text} ({one_line(step.document_id)}{span}{field})"


def _indented(text: str) -> str:
    return INDENT + text.strip("\n").replace("\n", "\n" + INDENT)


def _pairs(metadata: Metadata) -> str:
    return ", ".join(f"{one_line(key)}={_written(value)}" for key, value in sorted(metadata.items()))


def _written(value: JsonValue) -> str:
    """The value as `--where` reads it back: a text that would be read as JSON stands in quotes."""
    if isinstance(value, str) and json_or_text(value) == value:
        return one_line(value)
    return one_line(json.dumps(value, ensure_ascii=False))
