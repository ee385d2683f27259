"""Personalised PageRank on an undirected graph with weights, by power iteration.

Page, Brin, Motwani and Winograd (1998), section 6, with the restart of Haveliwala (2002): the walk follows an edge of
the node it is at with probability ``damping``, in proportion to the edges' weights, and otherwise starts again at a
node drawn from the restart distribution. At a node without edges it always starts again.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Weights: TypeAlias = "sparse.csr_array[np.float64]"

TOLERANCE = 1e-12
"""L1 distance of two rounds at which it ends: far below the least difference between two passages that matters."""
ROUNDS = 10_000
"""With damping d the distance shrinks by d a round: 0.5 takes about 40 rounds, 0.99 about 2,800."""


def walk_matrix(weights: Weights) -> Weights:
    """(n, n) float64: entry (j, i) is the probability of the step from i to j; a node without edges has a zero column.

    ``weights`` (n, n) is symmetric and not negative.
    """
    strength: NDArray[np.float64] = np.asarray(weights.sum(axis=1), np.float64).ravel()
    inverse = np.divide(1.0, strength, out=np.zeros_like(strength), where=strength > 0)
    return sparse.csr_array(weights @ sparse.diags_array(inverse))


def personalised_pagerank(walk: Weights, restart: NDArray[np.float64], damping: float) -> NDArray[np.float64]:
    """(n,) float64 that sums to 1: how often the walk is at each node.

    ``walk`` is :func:`walk_matrix`'s; ``restart`` (n,) is not negative and need not sum to 1. Raises ValueError if
    nothing in it is positive, or ``damping`` is not in [0, 1).
    """
    total = float(restart.sum()) if len(restart) else 0.0
    if not 0 <= damping < 1:
        raise ValueError(f"a damping of {damping} does not converge: give 0 or more and less than 1")
    if not total > 0 or float(restart.min()) < 0:
        raise ValueError("the restart distribution must have something positive and nothing negative in it")
    start = restart / total
    stuck = np.asarray(walk.sum(axis=0), np.float64).ravel() == 0
    rank: NDArray[np.float64] = start
    for _ in range(ROUNDS):
        following: NDArray[np.float64] = (
            damping * (walk @ rank + float(rank[stuck].sum()) * start) + (1 - damping) * start
        )
        change = float(np.abs(following - rank).sum())
        rank = following
        if change <= TOLERANCE:
            break
    return np.asarray(rank / rank.sum())
