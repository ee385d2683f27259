"""Personalised PageRank against a dense solution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from ecphoryrag.evaluation.baselines.pagerank import personalised_pagerank, walk_matrix

DAMPING = st.sampled_from([0.0, 0.2, 0.5, 0.85, 0.95])


@st.composite
def graphs(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A symmetric matrix of weights, some nodes without edges, and a restart with something positive in it."""
    size = draw(st.integers(1, 12))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    upper = np.triu(random.random((size, size)) * (random.random((size, size)) < draw(st.floats(0, 1))), 1)
    restart = random.random(size) * (random.random(size) < 0.5)
    restart[draw(st.integers(0, size - 1))] += draw(st.floats(0.01, 5))
    return upper + upper.T, restart


def solved(weights: NDArray[np.float64], restart: NDArray[np.float64], damping: float) -> NDArray[np.float64]:
    """Solved as a system of equations: rank = damping * P rank + (1 - damping) * start."""
    start = restart / restart.sum()
    steps = np.zeros_like(weights)
    for node in range(len(weights)):
        strength = weights[:, node].sum()
        steps[:, node] = weights[:, node] / strength if strength > 0 else start
    return np.asarray(np.linalg.solve(np.eye(len(weights)) - damping * steps, (1 - damping) * start))


@given(graphs(), DAMPING)
def test_it_agrees_with_the_dense_solution(
    graph: tuple[NDArray[np.float64], NDArray[np.float64]], damping: float
) -> None:
    weights, restart = graph
    rank = personalised_pagerank(walk_matrix(sparse.csr_array(weights)), restart, damping)
    np.testing.assert_allclose(rank, solved(weights, restart, damping), atol=1e-9)
    assert rank.sum() == pytest.approx(1)


@given(graphs(), DAMPING, st.floats(0.01, 100), st.floats(0.01, 100))
def test_only_proportions_count(
    graph: tuple[NDArray[np.float64], NDArray[np.float64]], damping: float, edges: float, starts: float
) -> None:
    weights, restart = graph
    one = personalised_pagerank(walk_matrix(sparse.csr_array(weights)), restart, damping)
    other = personalised_pagerank(walk_matrix(sparse.csr_array(weights * edges)), restart * starts, damping)
    np.testing.assert_allclose(one, other, atol=1e-9)


@given(graphs())
def test_what_no_path_reaches_has_nothing(graph: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    weights, restart = graph
    size = len(weights)
    apart = np.zeros((2 * size, 2 * size))
    apart[:size, :size] = apart[size:, size:] = weights
    rank = personalised_pagerank(walk_matrix(sparse.csr_array(apart)), np.append(restart, np.zeros(size)), 0.5)
    assert (rank[size:] == 0).all()


def test_a_restart_or_damping_that_cannot_be_is_refused() -> None:
    walk = walk_matrix(sparse.csr_array(np.ones((2, 2))))
    with pytest.raises(ValueError, match="something positive"):
        personalised_pagerank(walk, np.zeros(2), 0.5)
    with pytest.raises(ValueError, match="something positive"):
        personalised_pagerank(walk, np.array([1.0, -1.0]), 0.5)
    with pytest.raises(ValueError, match="does not converge"):
        personalised_pagerank(walk, np.ones(2), 1.0)
