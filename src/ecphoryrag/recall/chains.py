"""Chains: once a first hop has answered a part of the question, the rest of the question drives the next hop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.recall.question import Asked
from ecphoryrag.recall.rank import Scores, best
from ecphoryrag.recall.sparse import entries
from ecphoryrag.settings.recall import ChainSettings


@dataclass(frozen=True, slots=True)
class Walkable:
    """What a chain walks on: n chunks, m entities."""

    entities_of: sp.csr_array
    """(n, m) an entry for each mention."""
    to_chunk: sp.csr_array
    """(m, n) rows that sum to 1."""
    rarity: NDArray[np.float64]
    """(m,)"""


@dataclass(frozen=True, slots=True)
class Chains:
    """The best chain into each of n chunks."""

    scores: Scores
    """(n,) 0 where no chain leads."""
    first: NDArray[np.int64]
    """(n,) the chunk it came from, -1 where none."""
    bridge: NDArray[np.int64]
    """(n,) the entity it came over, -1 where none."""


def chains(
    activation: Scores, cues: NDArray[np.int64], asked: Asked, walkable: Walkable, settings: ChainSettings
) -> Chains:
    """Scores only what the bridges of the most active chunks reach.

    For each first hop: the rest of the question is its terms that the chunk does not hold; the bridges are the
    chunk's entities that are not ``cues``; a reached chunk scores its reach (the most any bridge passes to it, times
    the bridge's rarity, as a share of the highest), times its fit to the rest, times the first hop's weight.
    """
    n = len(activation)
    result = Chains(np.zeros(n), np.full(n, -1, np.int64), np.full(n, -1, np.int64))
    firsts = best(activation, settings.first_hops)
    for first in firsts.tolist():
        rest = np.flatnonzero(asked.weights[:, first] == 0)
        bridges = _bridges(first, cues, walkable)
        if not len(rest) or not len(bridges):
            continue
        reached, reach, over = _reach(first, bridges, walkable)
        if not len(reached):
            continue
        weight = float(np.exp(settings.sharpness * (activation[first] - activation[firsts[0]])))
        score = weight * reach / reach.max() * _fit(reached, rest, asked, settings.full)
        better = score > result.scores[reached]
        at = reached[better]
        result.scores[at] = score[better]
        result.first[at] = first
        result.bridge[at] = over[better]
    return result


def _bridges(first: int, cues: NDArray[np.int64], walkable: Walkable) -> NDArray[np.int64]:
    start, end = walkable.entities_of.indptr[first : first + 2]
    named = walkable.entities_of.indices[start:end].astype(np.int64)
    return named[~np.isin(named, cues)]


def _reach(
    first: int, bridges: NDArray[np.int64], walkable: Walkable
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Chunks that the bridges lead to, the most any bridge passes to each (times its rarity), and which bridge."""
    led = entries(walkable.to_chunk, bridges)
    over = bridges[led.line]
    passed = led.value * walkable.rarity[over]
    order = np.lexsort((over, -passed, led.place))
    chunks = led.place[order]
    once = np.concatenate(([True], chunks[1:] != chunks[:-1])) & (chunks != first)
    return chunks[once], passed[order][once], over[order][once]


def _fit(reached: NDArray[np.int64], rest: NDArray[np.int64], asked: Asked, full: float) -> Scores:
    """(reached,) BM25 of each reached chunk for the rest's terms, 1 where it is ``full`` of the most there could be.

    The yardstick is not the best chunk reached: where none fits, the best of them would count as a perfect answer.
    """
    most = float(asked.most[rest].sum()) * full
    return np.asarray(asked.weights[rest][:, reached].sum(axis=0) / most, np.float64)
