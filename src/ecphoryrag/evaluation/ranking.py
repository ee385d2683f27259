"""From ranked chunks to ranked documents."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from ecphoryrag.evaluation.metrics import RANKED, distinct
from ecphoryrag.types import Recall


class Recaller(Protocol):
    """What is evaluated: :class:`ecphoryrag.Memory`, or whatever else recalls chunks."""

    def recall(self, question: str, *, k: int | None = None, method: str | None = None) -> Recall:
        """At most k chunks, best first; fewer only if the method has no more."""
        ...


@dataclass(frozen=True, slots=True)
class Ranking:
    """The documents a question brought back."""

    documents: tuple[str, ...]
    """At most 10, each once, at the place of its best chunk."""
    milliseconds: float
    """Of the recall of 10 chunks alone; asking again for more, where needed, is not in it."""
    chunks_asked: int
    """10, or more where several chunks of one document stood among the first."""
    reason: str | None = None
    """What the method itself says about recalling nothing, or less than could be expected."""


def rank_documents(recaller: Recaller, question: str, method: str) -> Ranking:
    """The first 10 distinct documents: asks for ever more chunks until there are 10 or the method has no more.

    Cutting the chunks at 10 instead would punish a method for finding two chunks of one long document.
    """
    asked = RANKED
    start = time.perf_counter()
    recall = recaller.recall(question, k=asked, method=method)
    milliseconds = (time.perf_counter() - start) * 1000
    documents = _documents(recall)
    while len(documents) < RANKED and len(recall.chunks) >= asked:
        asked *= 2
        recall = recaller.recall(question, k=asked, method=method)
        documents = _documents(recall)
    return Ranking(documents[:RANKED], milliseconds, asked, recall.reason)


def _documents(recall: Recall) -> tuple[str, ...]:
    return distinct(evidence.chunk.document_id for evidence in recall.chunks)
