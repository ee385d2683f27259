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
    if len(documents) < 2 or not (documents[1:] == documents[:-1]).any():
        return scores
    order = np.lexsort((-scores, documents))  # documents stay where they are; within each the best comes first
    place = np.arange(len(scores))
    first = np.concatenate(([0], np.flatnonzero(np.diff(documents)) + 1))
    before = place - np.repeat(first, np.diff(np.append(first, len(scores))))
    less = np.empty(len(scores))
    less[order] = discount * before
    return np.asarray(scores - less, np.float64)


def log_activation(chunks: Scores, floor: float) -> Scores:
    """(n,) in 0..1: log of activation as a share of the highest, from ``floor`` (0) to the highest itself (1)."""
    top = float(chunks.max()) if len(chunks) else 0.0
    if top <= 0:
        return np.zeros(len(chunks))
    return np.asarray(1 - np.log(chunks / top + floor) / np.log(floor), np.float64)


def anchored(activation: Scores, likeness: Scores, anchor: float) -> Scores:
    """(n,) activation held to the question: a weighted sum of the two."""
    return np.asarray((1 - anchor) * activation + anchor * likeness, np.float64)
