"""Order, and the last score that makes it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


def best(scores: Scores, count: int) -> NDArray[np.int64]:
    """Positions of the ``count`` highest scores, highest first; equal scores in order of position."""
    count = min(count, len(scores))
    if count <= 0:
        return np.zeros(0, np.int64)
    if count < len(scores) // 4:
        # Everything at least as high as the last one in, so that ties are cut by position and not by chance.
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        among = np.flatnonzero(scores >= least)
        return among[np.argsort(-scores[among], kind="stable")][:count]
    return np.argsort(-scores, kind="stable")[:count]


def apart(scores: Scores, documents: NDArray[np.int32], discount: float) -> Scores:
    """(n,) scores, each less ``discount`` for every chunk of its document that scores higher (or as high, before it).

    ``documents`` (n,) is ascending: the chunks of a document stand together.
    """
    same = documents[1:] == documents[:-1]
    at = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    if not len(at):
        return scores
    order = at[np.lexsort((-scores[at], documents[at]))]  # documents stay together; in each the best comes first
    starts = np.flatnonzero(np.insert(np.diff(documents[order]) != 0, 0, True))
    before = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    lessened = scores.copy()
    lessened[order] -= discount * before
    return lessened


def log_activation(chunks: Scores, floor: float) -> Scores:
    """(n,) in 0..1: log of activation as a share of the highest, from ``floor`` (0) to the highest itself (1)."""
    top = float(chunks.max()) if len(chunks) else 0.0
    if top <= 0:
        return np.zeros(len(chunks))
    return np.asarray(1 - np.log(chunks / top + floor) / np.log(floor), np.float64)


def anchored(activation: Scores, likeness: Scores, anchor: float) -> Scores:
    """(n,) activation held to the question: a weighted sum of the two."""
    return np.asarray((1 - anchor) * activation + anchor * likeness, np.float64)
