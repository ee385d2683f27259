"""What came of an adding so far, counted for the report and told to whoever waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ecphoryrag.errors import EcphoryError, quoted
from ecphoryrag.incomplete import incomplete_document
from ecphoryrag.indexing.progress import Progress, ProgressCallback, Stage
from ecphoryrag.types import AddReport, Document, Extraction, Failure, Purpose, Spending, Usage

Spent: TypeAlias = tuple[Purpose, str | None, Usage]
"""What was spent for what on which model; None for what is no model."""


@dataclass(slots=True)
class Tally:
    """The outcome of one call, as it grows."""

    progress: ProgressCallback | None = None
    total: int | None = None
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    left_out: list[Failure] = field(default_factory=list)
    empty_chunks: list[tuple[str, int]] = field(default_factory=list)
    incomplete: list[Failure] = field(default_factory=list)
    chunks: int = 0
    reused: int = 0
    mentions: int = 0
    dropped: int = 0
    interrupted: bool = False
    stopped: str | None = None
    sources: dict[str, str | None] = field(default_factory=dict)
    """Where the documents that needed no work were read from."""
    _given: dict[str, str] = field(default_factory=dict)
    """Content hash of each id met in this call."""
    _refused: dict[str, str] = field(default_factory=dict)
    """Why documents could not be taken in, by id."""
    _again: list[tuple[str, str]] = field(default_factory=list)
    """Id and source of each document that was given before in this call, with the same content."""

    def first(self, document: Document, content: str) -> bool:
        """Whether this id was not yet given in this call; what is given again is counted. ``content`` is its hash."""
        if document.id not in self._given:
            self._given[document.id] = content
            return True
        if self._given[document.id] == content:
            self._again.append((document.id, source_of(document)))
        else:
            reason = f"the id {quoted(document.id)} was already given, with other content"
            self.fail(Failure(source_of(document), reason))
        return False

    def leave(self, id: str, document: Document | None = None) -> None:
        """Count a document that needs no work."""
        if document is not None:
            self.sources[id] = document.source
        self.unchanged.append(id)
        self.tell("commit", id)

    def fail(self, failure: Failure) -> None:
        """Count what cannot be taken in."""
        self.failed.append(failure)
        self.tell("load", failure.source)

    def fail_document(self, document: Document, error: EcphoryError) -> None:
        """Count a document that cannot be taken in."""
        self._refused[document.id] = str(error)
        self.fail(Failure(source_of(document), str(error)))

    def commit(
        self,
        id: str,
        chunks: int,
        found: Mapping[int, Extraction],
        outcome: Literal["added", "updated"],
        reused: int = 0,
    ) -> None:
        """Count a document of so many chunks that was committed, what was found in those worked on, by ordinal, and how
        many were taken over from its former state."""
        (self.added if outcome == "added" else self.updated).append(id)
        self.chunks += len(found)
        self.reused += reused
        failures: list[tuple[int, str]] = []
        for ordinal, extraction in sorted(found.items()):
            self.mentions += len(extraction.mentions)
            self.dropped += extraction.dropped
            if extraction.failure is not None:
                failures.append((ordinal, extraction.failure))
            elif not extraction.mentions:
                self.empty_chunks.append((id, ordinal))
        if failures:
            self.incomplete.append(incomplete_document(id, chunks, len(failures), failures))

    def tell(self, stage: Stage, current: str | None = None) -> None:
        """Tell how far it has come, if someone wants to know."""
        if self.progress:
            done = len(self.added) + len(self.updated) + len(self.unchanged) + len(self.failed)
            self.progress(Progress(stage, done, self.total, current))

    def settle(self) -> None:
        """Count what was given again, now that it is known what came of it when it was given first."""
        there = {*self.added, *self.updated, *self.unchanged} if self._again else set()
        for id_, source in self._again:
            if id_ in there:
                self.leave(id_)
            elif id_ in self._refused:
                self.fail(Failure(source, self._refused[id_]))
        self._again.clear()

    def kept(self) -> str:
        """What to say beside an error that ends the work."""
        committed = len(self.added) + len(self.updated)
        return f"Before this {committed} documents were committed, which are kept; adding again goes on from there."

    def report(self, spent: Sequence[Spent], seconds: float) -> AddReport:
        """The report of what was done; its ``usage`` has the time that passed, its ``spending`` that of the calls."""
        total = sum((usage for _, _, usage in spent), Usage())
        spending = [Spending(purpose, model, usage) for purpose, model, usage in spent if model and usage != Usage()]
        return AddReport(
            added=tuple(self.added),
            updated=tuple(self.updated),
            unchanged=tuple(self.unchanged),
            failed=tuple(self.failed),
            left_out=tuple(self.left_out),
            chunks=self.chunks,
            reused=self.reused,
            mentions=self.mentions,
            empty_chunks=tuple(self.empty_chunks),
            incomplete=tuple(self.incomplete),
            dropped=self.dropped,
            usage=replace(total, seconds=seconds),
            spending=tuple(spending),
            seconds=seconds,
            interrupted=self.interrupted,
            stopped=self.stopped,
        )


def source_of(document: Document) -> str:
    """Where it came from, for the reader of a report."""
    return document.source or document.id
