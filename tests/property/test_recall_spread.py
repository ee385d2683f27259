"""Spreading against power iteration on one dense matrix."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ecphoryrag.recall.spread import Activation, spread

Matrix = NDArray[np.float64]


def rows_to_one(matrix: Matrix) -> Matrix:
    total = matrix.sum(axis=1, keepdims=True)
    return np.asarray(matrix / np.where(total == 0, 1, total), np.float64)


def random_graph(seed: int, n: int, m: int) -> tuple[Matrix, Matrix, Activation]:
    """Row-stochastic chunk-by-entity and entity-by-chunk matrices, some rows empty; seeds that sum to 1."""
    rng = np.random.default_rng(seed)
    links = rng.random((n, m)) < 0.3
    to_entity = np.where(links, rng.random((n, m)) + 0.01, 0)
    to_chunk = np.where(links, rng.random((n, m)) + 0.01, 0).T
    to_entity, to_chunk = rows_to_one(to_entity), rows_to_one(to_chunk)
    seeds = np.where(rng.random(n + m) < 0.5, rng.random(n + m), 0)
    seeds[0] += 0.1
    seeds /= seeds.sum()
    return to_entity, to_chunk, Activation(seeds[:n], seeds[n:])


def dense_power_iteration(to_entity: Matrix, to_chunk: Matrix, seeds: Activation, damping: float, steps: int) -> Matrix:
    n, m = to_entity.shape
    start = np.concatenate([seeds.chunks, seeds.entities])
    transition = np.zeros((n + m, n + m))
    transition[:n, n:] = to_entity
    transition[n:, :n] = to_chunk
    transition[transition.sum(axis=1) == 0] = start
    now = start
    for _ in range(steps):
        now = (1 - damping) * start + damping * transition.T @ now
    return now


graphs = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 12))


@given(graphs, st.floats(0, 1), st.integers(0, 20))
def test_spreading_is_dense_power_iteration(shape: tuple[int, int, int], damping: float, steps: int) -> None:
    to_entity, to_chunk, seeds = random_graph(*shape)
    active = spread(seeds, sp.csr_array(to_entity), sp.csr_array(to_chunk), damping=damping, steps=steps)
    expected = dense_power_iteration(to_entity, to_chunk, seeds, damping, steps)
    np.testing.assert_allclose(np.concatenate([active.chunks, active.entities]), expected, rtol=1e-9, atol=1e-12)


@given(graphs, st.floats(0, 1), st.integers(0, 20))
def test_activation_is_never_negative_and_its_sum_never_changes(
    shape: tuple[int, int, int], damping: float, steps: int
) -> None:
    to_entity, to_chunk, seeds = random_graph(*shape)
    active = spread(seeds, sp.csr_array(to_entity), sp.csr_array(to_chunk), damping=damping, steps=steps)
    assert (active.chunks >= 0).all()
    assert (active.entities >= 0).all()
    assert abs(active.chunks.sum() + active.entities.sum() - 1) < 1e-9


@given(graphs, st.floats(0, 1), st.integers(0, 20))
def test_without_damping_or_steps_the_seeds_come_back(shape: tuple[int, int, int], damping: float, steps: int) -> None:
    to_entity, to_chunk, seeds = random_graph(*shape)
    for d, s in ((0.0, steps), (damping, 0)):
        active = spread(seeds, sp.csr_array(to_entity), sp.csr_array(to_chunk), damping=d, steps=s)
        np.testing.assert_array_equal(active.chunks, seeds.chunks)
        np.testing.assert_array_equal(active.entities, seeds.entities)
