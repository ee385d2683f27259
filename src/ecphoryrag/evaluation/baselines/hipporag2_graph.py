"""The graph of HippoRAG 2: phrases and passages as nodes, with fact, synonymy and passage edges.

Gutiérrez et al. (2025), "From RAG to Memory", section 3.1 (offline indexing) and 3.2 (dense-sparse integration); the
public code where the text leaves a step open: a triple adds 1 to the edge between its two phrases in both directions,
and as the graph has no direction it counts twice there, as do synonyms; an edge between a passage and a phrase counts
once (``parallel``; without it all count once). Departures: synonymy is measured for phrases of more than two letters
and digits of any script, and an edge stands if either end takes the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ecphoryrag.evaluation.baselines.pagerank import Weights
from ecphoryrag.evaluation.baselines.triples import Triple
from ecphoryrag.ports import Vectors

SHORTEST = 3
"""Letters and digits of a phrase for which synonyms are looked for."""
ROWS = 1024
"""Phrases compared with all others at once."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FactGraph:
    """What the triples say, as numbers: p phrases and f distinct facts in n passages."""

    phrases: tuple[str, ...]
    """Subjects and objects, sorted."""
    facts: tuple[Triple, ...]
    """Each once, sorted."""
    ends: Ints
    """(f, 2) the phrases that a fact joins."""
    holding: Weights
    """(n, p) 1 where the passage has a triple with the phrase."""
    fact_edges: Weights
    """(p, p) symmetric: triples that join the two phrases, over all passages; none from a phrase to itself."""

    @property
    def passages_of(self) -> Ints:
        """(p,) in how many passages each phrase is."""
        return np.asarray(self.holding.sum(axis=0)).ravel().astype(np.int64)


def read_facts(triples: Sequence[Sequence[Triple]]) -> FactGraph:
    """The graph of the triples, given for each passage."""
    phrases = tuple(sorted({name for some in triples for triple in some for name in (triple.subject, triple.object)}))
    facts = tuple(sorted({triple for some in triples for triple in some}))
    row = {name: number for number, name in enumerate(phrases)}
    ends = np.array([(row[fact.subject], row[fact.object]) for fact in facts], np.int64).reshape(-1, 2)
    held = [
        (passage, phrase)
        for passage, some in enumerate(triples)
        for phrase in sorted({row[name] for triple in some for name in (triple.subject, triple.object)})
    ]
    joined = [(row[t.subject], row[t.object]) for some in triples for t in some if t.subject != t.object]
    one_way = _counted(joined, (len(phrases), len(phrases)))
    return FactGraph(
        phrases, facts, ends, _counted(held, (len(triples), len(phrases))), sparse.csr_array(one_way + one_way.T)
    )


def _counted(pairs: Sequence[tuple[int, int]], shape: tuple[int, int]) -> Weights:
    at = np.array(pairs, np.int64).reshape(-1, 2)
    return sparse.csr_array(sparse.coo_array((np.ones(len(at)), (at[:, 0], at[:, 1])), shape=shape))


def synonymy(phrases: Sequence[str], vectors: Vectors, threshold: float, neighbours: int) -> Weights:
    """(p, p) symmetric: the cosine of two phrases, where it is at least ``threshold``.

    Of each phrase at most ``neighbours`` are taken, the nearest first; an edge stands if either end takes it.
    ``vectors`` (p, d) has rows of unit length.
    """
    asking = [number for number, name in enumerate(phrases) if sum(map(str.isalnum, name)) >= SHORTEST]
    sources: list[Ints] = []
    targets: list[Ints] = []
    cosines: list[NDArray[np.float32]] = []
    for first in range(0, len(asking), ROWS):
        rows = np.array(asking[first : first + ROWS], np.int64)
        block = vectors[rows] @ vectors.T
        block[np.arange(len(rows)), rows] = -1.0
        for row, likeness in zip(rows, block, strict=True):
            near = np.flatnonzero(likeness >= threshold)
            near = near[np.argsort(-likeness[near], kind="stable")[:neighbours]]
            sources.append(np.full(len(near), row))
            targets.append(near.astype(np.int64))
            cosines.append(likeness[near])
    shape = (len(phrases), len(phrases))
    if not sources:
        return sparse.csr_array(shape, dtype=np.float64)
    found = sparse.coo_array(
        (np.concatenate(cosines).astype(np.float64), (np.concatenate(sources), np.concatenate(targets))), shape=shape
    )
    one_way = sparse.csr_array(found)
    return sparse.csr_array(one_way.maximum(one_way.T))


def edge_weights(facts: FactGraph, synonyms: Weights, *, parallel: bool) -> Weights:
    """(p + n, p + n) symmetric: phrases first, then passages.

    Between phrases the cosine of synonyms, which as in the public code takes the place of the count of triples, or
    that count; between a passage and its phrases 1. ``parallel`` counts the edges between phrases twice.
    """
    unlike = facts.fact_edges - facts.fact_edges.multiply(synonyms.astype(bool))
    between = (unlike + synonyms) * (2.0 if parallel else 1.0)
    passages = facts.holding.shape[0]
    above = sparse.hstack([between, facts.holding.T], format="csr")
    below = sparse.hstack([facts.holding, sparse.csr_array((passages, passages))], format="csr")
    whole = sparse.csr_array(sparse.vstack([above, below], format="csr"))
    whole.eliminate_zeros()
    return whole
