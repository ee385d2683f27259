"""The method `paper`: the published algorithm (Algorithm 1), each step a function named after it.

Similarity is the cosine; vectors have unit length, so it is their inner product. It is summed in double precision and
without a threaded library, so that equal vectors have equal similarities and ties are broken by position, always.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.recall.rank import Scores, best
from ecphoryrag.settings.recall import PaperSettings

Positions = NDArray[np.int64]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PaperInput:
    """n chunks that may be recalled, m entities, d dimensions."""

    question: NDArray[np.float32]
    """(d,) v_Q."""
    chunk_vectors: Vectors
    """(n, d)"""
    entity_vectors: Vectors
    """(m, d) embed(name + description)."""
    mentions: sp.csr_array
    """(n, m) the chunks an entity was extracted from."""


@dataclass(frozen=True, slots=True)
class PaperResult:
    """E_final and C_final, best first, and what they were taken from."""

    entities: Positions
    chunks: Positions
    similarity: Scores
    """(m,) of each entity to the question."""
    chunk_similarity: Scores
    """(n,) of each chunk to the question."""
    sources: dict[int, int]
    """Chunk to the highest-ranked initial entity it is a source of; chunks found directly alone are not in it."""


def paper(given: PaperInput, settings: PaperSettings, k: int) -> PaperResult:
    """Algorithm 1 for one question; C_final has at most ``k`` chunks."""
    similarity = similarities(given.entity_vectors, given.question)
    chunk_similarity = similarities(given.chunk_vectors, given.question)
    mentioned_in = given.mentions.tocsc()
    similarity[np.diff(mentioned_in.indptr) == 0] = -np.inf  # known from chunks alone that may not be recalled
    known = int(np.isfinite(similarity).sum())
    initial = initial_entities(similarity, min(settings.k_initial, known))
    associated = associated_chunks(initial, mentioned_in)
    direct = direct_chunks(chunk_similarity, settings.direct_chunks)
    chunks = initial_chunks(list(associated), direct, chunk_similarity, settings.chunk_order)
    entities, added = initial, initial
    for _ in range(settings.retrieval_depth):
        seeds = select_seeds(entities, added, similarity, settings)
        if not len(seeds):
            break
        centroid = weighted_centroid(given.entity_vectors[seeds], similarity[seeds])
        near = associative_search(centroid, given.entity_vectors, similarity, settings.expansion * settings.k_initial)
        added = np.setdiff1d(near, entities)
        entities = np.union1d(entities, near)
    return PaperResult(
        entities=rank_entities(entities, similarity, settings.k_final),
        chunks=final_chunks(chunks, k),
        similarity=similarity,
        chunk_similarity=chunk_similarity,
        sources=associated,
    )


def similarities(vectors: Vectors, vector: NDArray[np.floating]) -> Scores:
    """(n,) inner products of the (n, d) rows with the (d,) vector."""
    return np.asarray(np.einsum("nd,d->n", vectors, vector, dtype=np.float64), np.float64)


def initial_entities(similarity: Scores, k_initial: int) -> Positions:
    """E_init: the entities nearest v_Q."""
    return best(similarity, k_initial)


def associated_chunks(initial: Positions, mentioned_in: sp.csc_array) -> dict[int, int]:
    """C_assoc: the source chunks of E_init, by the rank of their entity, then by position; and that entity."""
    sources: dict[int, int] = {}
    for entity in initial.tolist():
        start, end = mentioned_in.indptr[entity : entity + 2]
        for chunk in np.sort(mentioned_in.indices[start:end]).tolist():
            sources.setdefault(chunk, entity)
    return sources


def direct_chunks(chunk_similarity: Scores, count: int) -> Positions:
    """C_direct: the chunks nearest v_Q."""
    return best(chunk_similarity, count)


def initial_chunks(associated: list[int], direct: Positions, chunk_similarity: Scores, order: str) -> Positions:
    """C_init: both, each chunk once; by entity rank and then directness, or by similarity to v_Q."""
    union = np.array(list(dict.fromkeys([*associated, *direct.tolist()])), np.int64)
    if order == "entity":
        return union
    union = np.sort(union)
    return union[np.argsort(-chunk_similarity[union], kind="stable")]


def select_seeds(entities: Positions, added: Positions, similarity: Scores, settings: PaperSettings) -> Positions:
    """SelectSeeds: the ``k_initial`` entities most similar to the question, of E_all or of what the last round added.

    Of E_all these are always E_init itself, so that every round after the first finds what the first one found.
    """
    among = np.sort(entities if settings.select_seeds == "all" else added)
    return among[best(similarity[among], settings.k_initial)]


def weighted_centroid(vectors: Vectors, similarity: Scores) -> NDArray[np.float64]:
    """(d,) sum of w_e v_e with w_e = sim(e, Q) / sum of the sims.

    The publication does not say what a negative similarity does. Here it counts as 0, for a weight must not turn a
    vector round; and where none is positive all weights are equal.
    """
    weights = np.maximum(similarity, 0)
    total = float(weights.sum())
    shares = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
    return np.asarray(np.einsum("nd,n->d", vectors, shares, dtype=np.float64), np.float64)


def associative_search(centroid: NDArray[np.float64], vectors: Vectors, similarity: Scores, count: int) -> Positions:
    """The entities nearest the centroid, of those that may be recalled; ascending."""
    near = similarities(vectors, centroid)
    near[np.isneginf(similarity)] = -np.inf
    return np.sort(best(near, min(count, int(np.isfinite(near).sum()))))


def rank_entities(entities: Positions, similarity: Scores, k_final: int) -> Positions:
    """E_final: the entities of E_all nearest v_Q."""
    among = np.sort(entities)
    return among[best(similarity[among], k_final)]


def final_chunks(chunks: Positions, count: int) -> Positions:
    """C_final: the first chunks of C_init."""
    return chunks[:count]
