"""Chains: once a first hop has answered a part of the question, the rest of the question drives the next hop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.recall.flat import Scores, dense_scores
from ecphoryrag.recall.question import Asked
from ecphoryrag.recall.rank import best
from ecphoryrag.recall.sparse import entries
from ecphoryrag.settings.recall import ChainSettings

COMMON_LEAST = 5
"""Chunks; in a small store no word that fewer hold is common."""

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to (texts, d) vectors."""


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


@dataclass(frozen=True, slots=True)
class _Hop:
    first: int
    weight: float
    rest: tuple[int, ...]
    """Positions in the question's words."""
    reached: NDArray[np.int64]
    reach: NDArray[np.float64]
    over: NDArray[np.int64]


def chains(
    activation: Scores, cues: set[int], asked: Asked, walkable: Walkable, encode: Encode, settings: ChainSettings
) -> Chains:
    """Scores only what the bridges of the most active chunks reach.

    For each first hop: the rest of the question is its words that the chunk does not hold; the bridges are the
    chunk's entities that are not cues; a reached chunk scores reach times fit to the rest times the first hop's
    weight.
    """
    n = len(activation)
    result = Chains(np.zeros(n), np.full(n, -1, np.int64), np.full(n, -1, np.int64))
    hops = _hops(activation, cues, asked, walkable, settings)
    if not hops:
        return result
    rests = list(dict.fromkeys(hop.rest for hop in hops))
    vectors = encode([" ".join(asked.words[at].text for at in rest) for rest in rests])
    for hop in hops:
        fit = _fit(hop, asked, vectors[rests.index(hop.rest)], settings.dense)
        score = hop.weight * hop.reach / hop.reach.max() * fit
        better = score > result.scores[hop.reached]
        at = hop.reached[better]
        result.scores[at] = score[better]
        result.first[at] = hop.first
        result.bridge[at] = hop.over[better]
    return result


def _hops(activation: Scores, cues: set[int], asked: Asked, walkable: Walkable, settings: ChainSettings) -> list[_Hop]:
    hops = []
    chosen = best(activation, settings.first_hops)
    common = max(COMMON_LEAST, settings.common_share * len(activation))
    named = np.array(sorted(cues), np.int64)
    telling = [(at, word.terms) for at, word in enumerate(asked.words) if word.frequency <= common]
    for first in chosen:
        held = set(np.flatnonzero(asked.weights[:, first]).tolist())
        rest = tuple(at for at, terms in telling if not terms <= held)
        start, end = walkable.entities_of.indptr[first : first + 2]
        bridges = walkable.entities_of.indices[start:end].astype(np.int64)
        bridges = bridges[~np.isin(bridges, named)]
        if not rest or not len(bridges):
            continue
        reached, reach, over = _reach(int(first), bridges, walkable)
        if len(reached):
            weight = float(np.exp(settings.sharpness * (activation[first] - activation[chosen[0]])))
            hops.append(_Hop(int(first), weight, rest, reached, reach, over))
    return hops


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


def _fit(hop: _Hop, asked: Asked, rest: NDArray[np.float32], dense_share: float) -> Scores:
    """(reached,) in 0..1: how well each reached chunk fits the rest of the question, by words and by meaning."""
    terms = sorted({term for at in hop.rest for term in asked.words[at].terms})
    words = asked.weights[terms][:, hop.reached].sum(axis=0)
    if top := float(words.max()):
        words /= top
    meaning = np.maximum(dense_scores(asked.vectors[hop.reached], rest), 0)
    if not (highest := float(meaning.max())):
        return np.asarray(words, np.float64)
    return np.asarray((1 - dense_share) * words + dense_share * meaning / highest, np.float64)
