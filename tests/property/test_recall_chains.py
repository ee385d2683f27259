"""Chains against a slow transcription that scores every chunk for every first hop."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ecphoryrag.recall.chains import Walkable, chains
from ecphoryrag.recall.question import Asked
from ecphoryrag.settings.recall import ChainSettings

TERMS = 4
Case = tuple[NDArray[np.float64], NDArray[np.int64], Asked, Walkable]


def random_case(seed: int, n: int, m: int) -> Case:
    rng = np.random.default_rng(seed)
    links = rng.random((n, m)) < 0.4
    to_chunk = np.where(links, rng.random((n, m)) + 0.01, 0).T
    total = to_chunk.sum(axis=1, keepdims=True)
    asked = Asked(
        text="a b c d",
        vector=np.zeros(0, np.float32),
        weights=np.where(rng.random((TERMS, n)) < 0.5, rng.random((TERMS, n)) + 0.1, 0),
        most=rng.random(TERMS) + 1.2,
        vectors=np.zeros((n, 0), np.float32),
        positions=np.arange(n),
        whole=True,
        held_by=len,
    )
    walkable = Walkable(
        entities_of=sp.csr_array(links.astype(np.float64)),
        to_chunk=sp.csr_array(to_chunk / np.where(total == 0, 1, total)),
        rarity=rng.random(m) + 0.1,
    )
    return rng.random(n), np.unique(rng.integers(0, m, 2)), asked, walkable


def slow_chains(case: Case, settings: ChainSettings) -> list[float]:
    activation, cues, asked, walkable = case
    n, m = walkable.entities_of.shape
    links, to_chunk = walkable.entities_of.toarray(), walkable.to_chunk.toarray()
    result = [0.0] * n
    for first in sorted(range(n), key=lambda at: (-activation[at], at))[: settings.first_hops]:
        rest = [term for term in range(TERMS) if asked.weights[term, first] == 0]
        bridges = [entity for entity in range(m) if links[first, entity] and entity not in cues]
        reach = {
            chunk: max(to_chunk[entity, chunk] * walkable.rarity[entity] for entity in bridges)
            for chunk in range(n)
            if chunk != first and any(to_chunk[entity, chunk] for entity in bridges)
        }
        for chunk, passed in reach.items():
            if rest:
                fit = sum(asked.weights[term, chunk] for term in rest) / sum(asked.most[term] for term in rest)
                weight = np.exp(settings.sharpness * (activation[first] - activation.max()))
                score = weight * passed / max(reach.values()) * fit / settings.full
                result[chunk] = max(result[chunk], score)
    return result


@given(st.integers(0, 2**32 - 1), st.integers(1, 14), st.integers(1, 8))
def test_only_what_bridges_reach_and_yet_all_of_it(seed: int, n: int, m: int) -> None:
    case = random_case(seed, n, m)
    settings = ChainSettings()
    found = chains(*case, settings)
    np.testing.assert_allclose(found.scores, slow_chains(case, settings), rtol=1e-9)
    links = case[3].entities_of.toarray()
    for chunk in range(n):
        if found.scores[chunk] > 0:
            assert links[found.first[chunk], found.bridge[chunk]]
            assert links[chunk, found.bridge[chunk]]
            assert int(found.bridge[chunk]) not in case[1]
        else:
            assert (found.first[chunk], found.bridge[chunk]) == (-1, -1)
