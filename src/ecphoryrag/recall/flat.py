"""Likeness to the question without any association: dense, BM25, and both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
"""(n,) one score a chunk."""


def dense_scores(vectors: NDArray[np.float32], question: NDArray[np.float32]) -> Scores:
    """(n,) cosine of each chunk's vector to the question's (d,); all 0 with vectors of dimension 0."""
    # Not `@`: a threaded BLAS takes forty times as long for this when another process keeps a core busy, and its sums
    # may differ with the number of threads.
    return np.asarray(np.einsum("nd,d->n", vectors, question), np.float64)


def bm25_scores(weights: NDArray[np.float64]) -> Scores:
    """(n,) sum over the question's terms of their (q, n) weights."""
    return np.asarray(weights.sum(axis=0), np.float64)


def hybrid_scores(dense: Scores, bm25: Scores, dense_share: float) -> Scores:
    """(n,) in 0..1: a weighted sum of the two, each brought to 0..1 over the chunks.

    Cosines are stretched between their lowest and highest; BM25 is divided by its highest, for its 0 means something.
    If one of the two tells no chunk from another, the other decides alone.
    """
    if not dense.size:
        return dense
    words = bm25 / top if (top := float(bm25.max())) > 0 else np.zeros_like(bm25)
    spread = float(np.ptp(dense))
    if spread <= 0:
        return words
    meaning = np.asarray((dense - dense.min()) / spread, np.float64)
    return meaning if top <= 0 else np.asarray(dense_share * meaning + (1 - dense_share) * words, np.float64)
