"""BM25F over term counts: which chunks share words with the question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.recall.sparse import entries
from ecphoryrag.settings.recall import FlatSettings
from ecphoryrag.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class LexicalIndex:
    """n chunks, t terms."""

    weights: sp.csc_array
    """(n, t) float32: what a term adds to the score of a chunk for a question that holds it."""
    frequency: NDArray[np.int64]
    """(t,) chunks that hold the term, in text or title."""
    most: NDArray[np.float64]
    """(t,) the limit of the term's weight, approached by a chunk that repeats it."""


def lexical_index(snapshot: Snapshot, settings: FlatSettings) -> LexicalIndex:
    """BM25F weights of every term in every chunk (Robertson and Zaragoza 2009, sections 3.4 and 3.6).

    A term's count is that of the text plus ``title_weight`` times that of the title, and a chunk's length is counted
    the same way.
    """
    counts = (snapshot.term_counts + settings.title_weight * snapshot.title_term_counts).tocsc()
    counts.sum_duplicates()
    counts.eliminate_zeros()
    frequency = np.diff(counts.indptr).astype(np.int64)
    lengths = np.asarray(counts.sum(axis=1), np.float64).ravel()
    inverse = inverse_frequency(frequency, counts.shape[0])
    weights = bm25_weights(counts, lengths, inverse, settings.k1, settings.b)
    return LexicalIndex(weights, frequency, inverse * (settings.k1 + 1))


def inverse_frequency(frequency: NDArray[np.int64], chunks: int) -> NDArray[np.float64]:
    """(t,) log(1 + (n - f + .5) / (f + .5)): BM25's inverse document frequency in the form that is never negative."""
    return np.asarray(np.log1p((chunks - frequency + 0.5) / (frequency + 0.5)), np.float64)


def bm25_weights(
    counts: sp.csc_array, lengths: NDArray[np.float64], inverse: NDArray[np.float64], k1: float, b: float
) -> sp.csc_array:
    """(n, t) float32: inverse * count * (k1 + 1) / (count + k1 * (1 - b + b * length / mean length))."""
    mean = lengths.mean() if len(lengths) and lengths.any() else 1.0
    discount = k1 * (1 - b + b * lengths / mean)
    count = counts.data.astype(np.float64)
    columns = np.repeat(np.arange(counts.shape[1]), np.diff(counts.indptr))
    data = inverse[columns] * count * (k1 + 1) / (count + discount[counts.indices])
    return sp.csc_array((data.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)


def term_columns(terms: Iterable[str], known: Mapping[str, int]) -> NDArray[np.int64]:
    """Columns of the terms that the index knows, each once, in the order of the question."""
    return np.array(list(dict.fromkeys(known[term] for term in terms if term in known)), np.int64)


def term_weights(index: LexicalIndex, columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """(q, n): the weights of these terms alone, so that later steps need not touch the rest of the index."""
    weights = np.zeros((len(columns), index.weights.shape[0]))
    found = entries(index.weights, columns)
    weights[found.line, found.place] = found.value
    return weights
