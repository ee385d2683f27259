"""Chains against a slow transcription that scores every chunk for every first hop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ecphoryrag.recall.chains import Walkable, chains
from ecphoryrag.recall.question import Asked, QuestionWord
from ecphoryrag.settings.recall import ChainSettings

WORDS = 4


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """A direction for each set of words."""
    rows = [np.random.default_rng([ord(sign) for sign in text]).standard_normal(6) for text in texts]
    return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


def random_case(seed: int, n: int, m: int) -> tuple[NDArray[np.float64], set[int], Asked, Walkable]:
    rng = np.random.default_rng(seed)
    links = rng.random((n, m)) < 0.4
    to_chunk = np.where(links, rng.random((n, m)) + 0.01, 0).T
    total = to_chunk.sum(axis=1, keepdims=True)
    vectors = rng.standard_normal((n, 6))
    asked = Asked(
        text="a b c d",
        words=tuple(QuestionWord(word, frozenset((at,)), int(rng.integers(1, 9))) for at, word in enumerate("abcd")),
        vector=np.zeros(6, np.float32),
        weights=np.where(rng.random((WORDS, n)) < 0.5, rng.random((WORDS, n)) + 0.1, 0),
        vectors=(vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32),
        positions=np.arange(n),
        whole=True,
    )
    walkable = Walkable(
        entities_of=sp.csr_array(links.astype(np.float64)),
        to_chunk=sp.csr_array(to_chunk / np.where(total == 0, 1, total)),
        rarity=rng.random(m) + 0.1,
    )
    return rng.random(n), {int(entity) for entity in rng.integers(0, m, 2)}, asked, walkable


def slow_chains(
    activation: NDArray[np.float64], cues: set[int], asked: Asked, walkable: Walkable, settings: ChainSettings
) -> list[float]:
    n, m = walkable.entities_of.shape
    links, to_chunk = walkable.entities_of.toarray(), walkable.to_chunk.toarray()
    common = max(5, settings.common_share * n)
    result = [0.0] * n
    for first in sorted(range(n), key=lambda at: (-activation[at], at))[: settings.first_hops]:
        rest = [at for at, word in enumerate(asked.words) if word.frequency <= common and asked.weights[at, first] == 0]
        bridges = [entity for entity in range(m) if links[first, entity] and entity not in cues]
        reach = {
            chunk: max(to_chunk[entity, chunk] * walkable.rarity[entity] for entity in bridges)
            for chunk in range(n)
            if chunk != first and any(to_chunk[entity, chunk] for entity in bridges)
        }
        if not rest or not reach:
            continue
        vector = encode([" ".join(asked.words[at].text for at in rest)])[0]
        words = {chunk: sum(asked.weights[at, chunk] for at in rest) for chunk in reach}
        meaning = {chunk: max(0.0, float(asked.vectors[chunk].astype(float) @ vector.astype(float))) for chunk in reach}
        for chunk, passed in reach.items():
            fit = words[chunk] / (max(words.values()) or 1)
            if any(meaning.values()):
                fit = (1 - settings.dense) * fit + settings.dense * meaning[chunk] / max(meaning.values())
            weight = np.exp(settings.sharpness * (activation[first] - activation.max()))
            result[chunk] = max(result[chunk], weight * passed / max(reach.values()) * fit)
    return result


@given(st.integers(0, 2**32 - 1), st.integers(1, 14), st.integers(1, 8))
def test_only_what_bridges_reach_and_yet_all_of_it(seed: int, n: int, m: int) -> None:
    case = random_case(seed, n, m)
    settings = ChainSettings()
    found = chains(*case, encode, settings)
    np.testing.assert_allclose(found.scores, slow_chains(*case, settings), rtol=1e-4, atol=1e-6)
    links = case[3].entities_of.toarray()
    for chunk in range(n):
        if found.scores[chunk] > 0:
            assert links[found.first[chunk], found.bridge[chunk]]
            assert links[chunk, found.bridge[chunk]]
            assert int(found.bridge[chunk]) not in case[1]
        else:
            assert (found.first[chunk], found.bridge[chunk]) == (-1, -1)
