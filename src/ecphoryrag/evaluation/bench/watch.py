"""How much a method brought back for a question: what an ablation of retrieval alone is read by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ecphoryrag.evaluation.baselines.memory import ENTITY
from ecphoryrag.evaluation.baselines.port import Indexed, Method, Retrieved
from ecphoryrag.evaluation.bench.ask import for_reader
from ecphoryrag.evaluation.metrics import distinct
from ecphoryrag.text.tokens import count_tokens
from ecphoryrag.types import Answer, Document

SIZES = ("entities", "passages", "context_tokens")
"""Entities retrieved; distinct passages among the reader's first ``k``; tokens, by the estimate that needs no model,
of the titles and texts of all pieces of evidence, before the reader's own budget of tokens cuts them."""


class Watched:
    """A method that remembers what it last brought back. It is counted after the clock has stopped."""

    def __init__(self, inner: Method) -> None:
        self._inner = inner
        self._last: Retrieved | None = None

    @property
    def name(self) -> str:
        """Of the method."""
        return self._inner.name

    def index(self, documents: Sequence[Document]) -> Indexed:
        """By the method."""
        return self._inner.index(documents)

    def retrieve(self, question: str, k: int) -> Retrieved:
        """By the method."""
        self._last = None
        self._last = self._inner.retrieve(question, k)
        return self._last

    def answer(self, question: str) -> Answer | None:
        """By the method."""
        return self._inner.answer(question)

    def close(self) -> None:
        """Close the method."""
        self._inner.close()

    def take(self, k: int) -> Mapping[str, float]:
        """:data:`SIZES` of what came back since the last time; zeros if nothing did."""
        last, self._last = self._last, None
        if last is None:
            return dict.fromkeys(SIZES, 0.0)
        shown = for_reader(last.recall, k).chunks
        documents = distinct(evidence.chunk.document_id for evidence in shown)
        passages = [document for document in documents if not document.startswith(ENTITY)]
        tokens = sum(count_tokens(f"{evidence.title}\n{evidence.chunk.text}") for evidence in shown)
        sizes = (len(last.recall.entities), len(passages), tokens)
        return {name: float(size) for name, size in zip(SIZES, sizes, strict=True)}
