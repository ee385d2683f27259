"""Activation spreads: a random walk with restart over the mentions of entities in chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Activation:
    """Shares of one whole: the two arrays together sum to 1, and nothing is negative. n chunks, m entities."""

    chunks: NDArray[np.float64]
    """(n,)"""
    entities: NDArray[np.float64]
    """(m,)"""


def spread(
    seeds: Activation, to_entity: sp.csr_array, to_chunk: sp.csr_array, *, damping: float, steps: int
) -> Activation:
    """Personalised PageRank on the bipartite graph of mentions, by ``steps`` rounds of power iteration from the seeds.

    ``to_entity`` (n, m) and ``to_chunk`` (m, n) have rows that sum to 1, or to 0 where nothing leads on. Each round a
    share ``damping`` of all activation moves along them and the rest returns to the seeds; so does what stands where
    nothing leads on. The sum of all activation therefore never changes.
    """
    from_chunk, from_entity = to_entity.T, to_chunk.T
    stuck_chunks = np.flatnonzero(np.diff(to_entity.indptr) == 0)
    stuck_entities = np.flatnonzero(np.diff(to_chunk.indptr) == 0)
    chunks, entities = seeds.chunks, seeds.entities
    for _ in range(steps):
        stuck = float(chunks[stuck_chunks].sum() + entities[stuck_entities].sum())
        back = 1 - damping + damping * stuck
        chunks, entities = (
            back * seeds.chunks + damping * (from_entity @ entities),
            back * seeds.entities + damping * (from_chunk @ chunks),
        )
    return Activation(chunks, entities)
