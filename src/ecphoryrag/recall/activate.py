"""Where activation starts: on the chunks most like the question, and on the entities it names."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ecphoryrag.recall.flat import Scores
from ecphoryrag.recall.rank import best
from ecphoryrag.recall.spread import Activation


def chunk_seeds(likeness: Scores, count: int, sharpness: float) -> Scores:
    """(n,) softmax over the ``count`` chunks most like the question, 0 elsewhere; sums to 1 unless there is none."""
    seeds = np.zeros(len(likeness))
    if not len(likeness):
        return seeds
    chosen = best(likeness, count)
    values = np.exp(sharpness * (likeness[chosen] - likeness[chosen[0]]))
    seeds[chosen] = values / values.sum()
    return seeds


def cue_weights(frequencies: Sequence[int], documents: int, shares: Sequence[float] | None = None) -> list[float]:
    """Weight of each cue, by its rarity: log(1 + documents of the store / its frequency), times its share (1 where
    none are given); they sum to 1."""
    weights = [math.log1p(documents / frequency) for frequency in frequencies]
    if shares is not None:
        weights = [weight * share for weight, share in zip(weights, shares, strict=True)]
    total = sum(weights)
    return [weight / total for weight in weights]


def join_seeds(
    chunks: Scores, cues: Sequence[Sequence[int]], weights: Sequence[float], entities: int, chunk_share: float
) -> Activation:
    """Seeds that sum to 1: ``chunk_share`` on chunks, the rest on cues; all of it on chunks where there is no cue.

    The entities of one cue (a name and its aliases) each get its whole weight before all are brought to their share:
    what is known under two names is not halved by it.
    """
    on_entities = np.zeros(entities)
    if not cues:
        return Activation(chunks, on_entities)
    for named, weight in zip(cues, weights, strict=True):
        np.maximum.at(on_entities, np.asarray(named), weight)
    return Activation(chunk_share * chunks, (1 - chunk_share) * on_entities / on_entities.sum())
