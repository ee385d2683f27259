"""The seam of the comparison: index a corpus, retrieve for a question, and, if a method has its own way, answer.

All methods share one encoder, one language model, one reader prompt and one way of counting, so that they differ in
retrieval alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from ecphoryrag.ports import Encoder, Generator, Ledger
from ecphoryrag.settings import Settings
from ecphoryrag.types import Answer, Chunk, Document, Evidence, JsonValue, Recall, Usage
from ecphoryrag.types import Path as Road

Tell: TypeAlias = Callable[[str, int, int | None], None]
"""Told what is being done, how many are done, and of how many (None if unknown)."""


class Clock:
    """Seconds as they would have passed had no reply been kept by an earlier sitting, or for an earlier method.

    Without it a method that is indexed after another of the same prompts, or resumed, would look fast. Kept replies
    count one after the other, also where a server had answered several at once.
    """

    def __init__(self) -> None:
        self._kept = 0.0

    def now(self) -> float:
        """Seconds from an arbitrary start."""
        return time.perf_counter() + self._kept

    def skip(self, seconds: float) -> None:
        """A kept reply took the place of a call that had taken so long."""
        self._kept += seconds


@dataclass(frozen=True, slots=True)
class Kit:
    """What a method works with: the same for all methods of a run."""

    folder: Path
    """The method's own folder: empty at the first run, and as the method left it at the next."""
    settings: Settings
    encoder: Encoder
    generator: Generator | None
    """None for a run without a language model."""
    ledger: Ledger | None
    """Keeps each accepted reply, so that a run that was stopped pays none twice."""
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    """The method's own, by name; an unknown one is an error."""
    tell: Tell = lambda what, done, total: None
    clock: Clock = field(default_factory=Clock)
    """Of what indexing takes."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """What indexing took. ``usage`` holds what was paid when it was paid, also if the ledger held it this time."""

    usage: Usage
    seconds: float
    figures: Mapping[str, float] = field(default_factory=dict)
    """Sizes by name, such as ``entities``, ``facts``."""
    notes: tuple[str, ...] = ()
    """Whatever was done short of what was asked, such as passages without triples."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a method brought back for a question."""

    documents: tuple[str, ...]
    """Ids, best first, each once."""
    recall: Recall
    """The evidence for the shared reader, in the method's order."""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


class Method(Protocol):
    """A retrieval method."""

    @property
    def name(self) -> str:
        """As in the tables."""
        ...

    def index(self, documents: Sequence[Document]) -> Indexed:
        """Take in the corpus; what the folder already holds of it is not done again."""
        ...

    def retrieve(self, question: str, k: int) -> Retrieved:
        """The best ``k`` documents. Raises EcphoryError."""
        ...

    def answer(self, question: str) -> Answer | None:
        """The method's own way to an answer, with its usage; None if the shared reader is to answer."""
        ...

    def close(self) -> None:
        """Release what it holds; calling it twice is harmless."""
        ...


def evidence_of(documents: Sequence[Document], scores: Sequence[float]) -> tuple[Evidence, ...]:
    """Whole documents as evidence, in order, for a method that retrieves passages and knows no chunks."""
    return tuple(
        Evidence(
            number,
            Chunk(document.id, 0, document.text, 0, len(document.text)),
            document.title,
            score,
            {},
            Road("direct"),
            document.metadata,
        )
        for number, (document, score) in enumerate(zip(documents, scores, strict=True), 1)
    )
