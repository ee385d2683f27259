"""The published algorithm against a slow, literal transcription in plain Python."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ecphoryrag.recall.paper import PaperInput, paper, weighted_centroid
from ecphoryrag.settings import PaperSettings

Seeds = Literal["frontier", "all"]
Order = Literal["entity", "similarity"]
READINGS: list[tuple[Seeds, Order]] = [
    ("frontier", "entity"),
    ("frontier", "similarity"),
    ("all", "entity"),
    ("all", "similarity"),
]


def random_input(seed: int, n: int, m: int) -> PaperInput:
    """Unit vectors, some of them equal, some zero; entities that no chunk mentions among them."""
    rng = np.random.default_rng(seed)

    def unit(rows: int) -> np.ndarray:
        vectors = rng.standard_normal((rows, 5))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[rng.random(rows) < 0.1] = vectors[0]
        vectors[rng.random(rows) < 0.05] = 0
        return vectors.astype(np.float32)

    return PaperInput(unit(1)[0], unit(n), unit(m), sp.csr_array((rng.random((n, m)) < 0.2).astype(np.float32)))


def literal(given_: PaperInput, s: PaperSettings, k: int) -> tuple[list[int], list[int]]:
    """E_final and C_final, line by line as published; ties by position."""
    mentions = given_.mentions.toarray()
    entity_vectors = [[float(x) for x in row] for row in given_.entity_vectors]
    chunk_vectors = [[float(x) for x in row] for row in given_.chunk_vectors]
    question = [float(x) for x in given_.question]
    everyone = [e for e in range(len(entity_vectors)) if mentions[:, e].any()]

    def sim(left: list[float], right: list[float]) -> float:
        return sum(x * y for x, y in zip(left, right, strict=True))

    def nearest(vectors: list[list[float]], among: list[int], to: list[float], count: int) -> list[int]:
        return sorted(among, key=lambda one: (-sim(vectors[one], to), one))[:count]

    e_init = nearest(entity_vectors, everyone, question, s.k_initial)
    c_assoc = [c for e in e_init for c in range(len(chunk_vectors)) if mentions[c, e]]
    c_direct = nearest(chunk_vectors, list(range(len(chunk_vectors))), question, s.direct_chunks)
    c_init = list(dict.fromkeys(c_assoc + c_direct))
    if s.chunk_order == "similarity":
        c_init = nearest(chunk_vectors, c_init, question, len(c_init))
    e_all, last = set(e_init), set(e_init)
    for _ in range(s.retrieval_depth):
        candidates = sorted(e_all if s.select_seeds == "all" else last)
        seeds = nearest(entity_vectors, candidates, question, s.k_initial)
        if not seeds:
            break
        sims = [max(0.0, sim(entity_vectors[e], question)) for e in seeds]
        weights = [one / sum(sims) for one in sims] if sum(sims) > 0 else [1 / len(seeds)] * len(seeds)
        centroid = [sum(w * entity_vectors[e][d] for w, e in zip(weights, seeds, strict=True)) for d in range(5)]
        found = set(nearest(entity_vectors, everyone, centroid, s.expansion * s.k_initial))
        last = found - e_all
        e_all |= found
    return nearest(entity_vectors, sorted(e_all), question, s.k_final), c_init[:k]


inputs = st.builds(random_input, st.integers(0, 2**32 - 1), st.integers(1, 25), st.integers(1, 60))


@pytest.mark.parametrize(("depth", "reading"), list(itertools.product(range(4), READINGS)))
@given(given_=inputs, k=st.integers(1, 30))
def test_equals_the_literal_transcription(depth: int, reading: tuple[Seeds, Order], given_: PaperInput, k: int) -> None:
    select_seeds, chunk_order = reading
    settings = PaperSettings(
        k_initial=4,
        direct_chunks=3,
        k_final=9,
        retrieval_depth=depth,
        select_seeds=select_seeds,
        chunk_order=chunk_order,
    )
    result = paper(given_, settings, k)
    assert (result.entities.tolist(), result.chunks.tolist()) == literal(given_, settings, k)


def everything_found(given_: PaperInput, depth: int, select_seeds: Seeds) -> list[int]:
    settings = PaperSettings(k_initial=4, k_final=60, retrieval_depth=depth, select_seeds=select_seeds)
    return [int(entity) for entity in paper(given_, settings, 5).entities]


@given(inputs)
def test_read_literally_no_round_after_the_first_finds_anything(given_: PaperInput) -> None:
    first, second, third = (everything_found(given_, depth, "all") for depth in (1, 2, 3))
    assert first == second == third


def test_from_the_frontier_a_second_round_does_find_more() -> None:
    given_ = random_input(7, 40, 60)
    found = [len(everything_found(given_, depth, "frontier")) for depth in range(3)]
    assert found[0] < found[1] < found[2]


def test_weights_of_seeds_that_point_away() -> None:
    vectors = np.eye(2, dtype=np.float32)
    assert weighted_centroid(vectors, np.array([0.5, -0.2])).tolist() == [1, 0]
    assert weighted_centroid(vectors, np.array([-0.5, -0.2])).tolist() == [0.5, 0.5]
    assert weighted_centroid(vectors, np.array([0.0, 0.0])).tolist() == [0.5, 0.5]
