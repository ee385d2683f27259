"""The matrices of the walk against their definition, cell by cell."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ecphoryrag.recall.graph import Facts, Graph, graph, to_chunk

shapes = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 14), st.integers(1, 8))
WEIGHTS = (16.0, 8.0, 4.0)


def random_facts(seed: int, n: int, m: int) -> Facts:
    rng = np.random.default_rng(seed)
    mentioned = rng.random((n, m)) < 0.4
    about = np.where(mentioned & (rng.random((n, m)) < 0.5), rng.choice(WEIGHTS, (n, m)), 0)
    return Facts(
        mentioned=sp.csr_array(mentioned.astype(np.float64)),
        about=sp.csr_array(about),
        documents=np.sort(rng.integers(0, max(1, n // 2), n)).astype(np.int32),
        rarity=rng.random(m) + 0.1,
        frequency=np.ones(m, np.int64),
    )


def slow_to_chunk(known: Facts, fit: np.ndarray, sharpness: float) -> np.ndarray:
    """Each cell by the words of the definition: a document's chunks about one entity are one receiver, then share."""
    mentioned, about = known.mentioned.toarray(), known.about.toarray()
    n, m = mentioned.shape
    parts = np.zeros((m, n))
    for entity in range(m):
        for chunk in range(n):
            if not mentioned[chunk, entity]:
                continue
            if not about[chunk, entity]:
                parts[entity, chunk] = 1
                continue
            group = [
                other for other in range(n) if known.documents[other] == known.documents[chunk] and about[other, entity]
            ]
            most = 1 + max(about[other, entity] for other in group)
            pulls = [np.exp(sharpness * (fit[other] - max(fit[group]))) for other in group]
            parts[entity, chunk] = most * pulls[group.index(chunk)] / sum(pulls)
    total = parts.sum(axis=1, keepdims=True)
    return parts / np.where(total == 0, 1, total)


@given(shapes, st.floats(0, 50))
def test_an_entity_passes_on_as_defined(shape: tuple[int, int, int], sharpness: float) -> None:
    known = random_facts(*shape)
    fit = np.random.default_rng(shape[0]).random(shape[1])
    made = graph(known)
    np.testing.assert_allclose(
        to_chunk(made, fit, sharpness).toarray(), slow_to_chunk(known, fit, sharpness), atol=1e-12
    )
    np.testing.assert_allclose(made.to_chunk.toarray(), slow_to_chunk(known, fit, 0), atol=1e-12)


@given(shapes)
def test_a_chunk_passes_on_by_rarity(shape: tuple[int, int, int]) -> None:
    known = random_facts(*shape)
    weights = known.mentioned.toarray() * known.rarity
    total = weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(graph(known).to_entity.toarray(), weights / np.where(total == 0, 1, total), atol=1e-12)


def agrees_on_entries(made: Graph) -> bool:
    places = made.to_entity.copy()
    places.data = np.arange(places.nnz, dtype=np.float64) + 1
    numbered = made.to_chunk.copy()
    numbered.data = made.to_entity_entry + 1.0
    return bool((places.toarray() == numbered.toarray().T).all()) and bool(
        (made.to_chunk_entry[made.to_entity_entry] == np.arange(places.nnz)).all()
    )


@given(shapes)
def test_the_two_matrices_know_each_others_entries(shape: tuple[int, int, int]) -> None:
    assert agrees_on_entries(graph(random_facts(*shape)))


@given(shapes, st.integers(0, 2**14 - 1))
def test_leaving_chunks_out_is_as_if_they_had_never_been(shape: tuple[int, int, int], kept: int) -> None:
    known = random_facts(*shape)
    positions = np.array([at for at in range(shape[1]) if kept >> at & 1], np.int64)
    fit = np.random.default_rng(shape[0]).random(len(positions))
    alone = Facts(
        sp.csr_array(known.mentioned.toarray()[positions]),
        sp.csr_array(known.about.toarray()[positions]),
        known.documents[positions],
        known.rarity,
        known.frequency,
    )
    left, right = graph(known.rows(positions)), graph(alone)
    np.testing.assert_array_equal(to_chunk(left, fit, 5).toarray(), to_chunk(right, fit, 5).toarray())
    np.testing.assert_array_equal(left.to_entity.toarray(), right.to_entity.toarray())
    assert left.mentioned.tolist() == (alone.mentioned.toarray().sum(axis=0) > 0).tolist()
