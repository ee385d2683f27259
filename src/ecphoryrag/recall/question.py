"""A question met with a store: its words as terms, its vector, and the chunks that it may recall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.ports import Encoder, View
from ecphoryrag.recall.flat import Scores, bm25_scores, dense_scores, hybrid_scores
from ecphoryrag.recall.lexical import LexicalIndex, term_columns, term_weights
from ecphoryrag.types import Usage

MOST_TERMS = 128
"""Of a question that long, as of a pasted page, the rarest terms are asked for: each takes 8 bytes a chunk."""


class Meter:
    """Encodes queries, and adds up what that costs."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.usage = Usage()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, d) query vectors. Raises ModelError."""
        if not self.encoder.identity.dimension:
            return np.zeros((len(texts), 0), np.float32)
        encoded = self.encoder.encode(texts, "query")
        self.usage += encoded.usage
        return encoded.vectors


@dataclass(frozen=True, slots=True)
class Asked:
    """n chunks that may be recalled, q terms of the question that the store knows, d dimensions."""

    text: str
    vector: NDArray[np.float32]
    """(d,)"""
    weights: NDArray[np.float64]
    """(q, n) BM25 weight of each term in each chunk."""
    most: NDArray[np.float64]
    """(q,) the limit of each term's weight."""
    vectors: NDArray[np.float32]
    """(n, d)"""
    positions: NDArray[np.int64]
    """(n,) where these chunks stand in the snapshot, ascending."""
    whole: bool
    """Whether these are all chunks of the snapshot."""
    held_by: Callable[[str], int]
    """How many chunks of the store hold the rarest term of a part of the question."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """(n,) each: likeness of the chunks to the question, without association."""

    dense: Scores
    bm25: Scores
    hybrid: Scores


def ask(question: str, view: View, index: LexicalIndex, positions: NDArray[np.int64], encode: Meter) -> Asked:
    """Meet the question with the chunks at these positions of the view's snapshot."""
    snapshot = view.snapshot
    columns = _rarest(term_columns(view.terms(question), snapshot.terms), index.frequency)
    weights, vectors = term_weights(index, columns), snapshot.vectors
    whole = len(positions) == snapshot.chunk_count
    if not whole:
        weights, vectors = weights[:, positions], vectors[positions]

    def held_by(part: str) -> int:
        terms = term_columns(view.terms(part), snapshot.terms)
        return int(index.frequency[terms].min()) if len(terms) else 0

    return Asked(question, encode([question])[0], weights, index.most[columns], vectors, positions, whole, held_by)


def _rarest(columns: NDArray[np.int64], frequency: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most ``MOST_TERMS`` of the columns, in their order."""
    if len(columns) <= MOST_TERMS:
        return columns
    return columns[np.sort(np.argsort(frequency[columns], kind="stable")[:MOST_TERMS])]


def likeness(asked: Asked, dense_share: float) -> Likeness:
    """Dense, BM25, and both."""
    dense, bm25 = dense_scores(asked.vectors, asked.vector), bm25_scores(asked.weights)
    return Likeness(dense, bm25, hybrid_scores(dense, bm25, dense_share))
