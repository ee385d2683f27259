"""The ways told of are ways of the graph, start where activation started and never go in circles."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ecphoryrag.recall.chains import Chains
from ecphoryrag.recall.cues import FoundCue
from ecphoryrag.recall.ecphory import Trace
from ecphoryrag.recall.graph import Facts, Graph, graph
from ecphoryrag.recall.routes import Route, Station, route
from ecphoryrag.recall.spread import Activation, spread

DAMPING = 0.8


def traced(
    mentioned: np.ndarray, seeds: Activation, cues: tuple[int, ...] = (), about: sp.csr_array | None = None
) -> tuple[Trace, Graph]:
    n, m = mentioned.shape
    known = graph(
        Facts(
            mentioned=sp.csr_array(mentioned.astype(np.float64)),
            about=sp.csr_array((n, m)) if about is None else about,
            documents=np.arange(n, dtype=np.int32),
            rarity=np.ones(m),
            frequency=np.ones(m, np.int64),
        )
    )
    active = spread(seeds, known.to_entity, known.to_chunk, damping=DAMPING, steps=12)
    nothing = Chains(np.zeros(n), np.full(n, -1, np.int64), np.full(n, -1, np.int64))
    found = tuple(FoundCue(at, at + 1, (entity,), 1) for at, entity in enumerate(cues))
    weights = tuple(1 / len(cues) for _ in cues)
    trace = Trace(found, weights, DAMPING, seeds, active, known.to_chunk, nothing, active.chunks, active.chunks)
    return trace, known


def is_a_way(told: Route, mentioned: np.ndarray, trace: Trace) -> bool:
    """Each chunk on it names the entity, or the cue, before and after it."""
    for one, other in zip(told.stations, told.stations[1:], strict=False):
        chunk = one if one.kind == "chunk" else other
        name = other if one.kind == "chunk" else one
        entities = trace.cues[name.position].entities if name.kind == "cue" else (name.position,)
        if not any(mentioned[chunk.position, entity] for entity in entities):
            return False
    return True


@given(st.integers(0, 2**32 - 1), st.integers(1, 10), st.integers(1, 8), st.integers(0, 2))
def test_a_route_is_a_way_without_circles(seed: int, n: int, m: int, cued: int) -> None:
    rng = np.random.default_rng(seed)
    mentioned = rng.random((n, m)) < 0.35
    cues = tuple(entity for entity in range(min(cued, m)) if mentioned[:, entity].any())
    chunks = np.where(rng.random(n) < 0.4, rng.random(n), 0)
    chunks[0] += 0.1
    entities = np.zeros(m)
    entities[list(cues)] = 0.3
    total = chunks.sum() + entities.sum()
    trace, known = traced(mentioned, Activation(chunks / total, entities / total), cues)
    for chunk in range(n):
        told = route(chunk, trace, known, 0.8)
        assert told.stations[-1] == Station("chunk", chunk)
        assert told.stations[0].kind in {"cue", "chunk"}
        passed = [station.position for station in told.stations if station.kind == "chunk"]
        assert len(set(passed)) == len(passed)
        assert is_a_way(told, mentioned, trace)
        assert told.kind == "spread" or passed == [chunk]
        assert told.kind == "spread" or not any(station.kind == "entity" for station in told.stations)


def test_what_comes_back_to_a_chunk_is_no_reason_for_it() -> None:
    """The first chunk has nearly all the seeds and is what the name is about: the name returns what it was given."""
    mentioned = np.array([[1], [1]])
    trace, known = traced(
        mentioned, Activation(np.array([0.95, 0.05]), np.zeros(1)), about=sp.csr_array(np.array([[16.0], [0.0]]))
    )
    assert route(0, trace, known, 0.8) == Route("direct", (Station("chunk", 0),))
    assert route(1, trace, known, 0.8) == Route(
        "spread", (Station("chunk", 0), Station("entity", 0), Station("chunk", 1))
    )


def test_a_chain_that_gave_much_is_the_way() -> None:
    trace, known = traced(np.array([[1, 1], [0, 1]]), Activation(np.array([0.5, 0.5]), np.zeros(2)), ())
    led = Chains(np.array([0.0, 0.9]), np.array([-1, 0]), np.array([-1, 1]))
    chained = Trace(
        trace.cues,
        trace.cue_weights,
        DAMPING,
        trace.seeds,
        trace.activation,
        trace.to_chunk,
        led,
        np.ones(2),
        np.ones(2),
    )
    assert route(1, chained, known, 0.8) == Route(
        "chain", (Station("chunk", 0), Station("entity", 1), Station("chunk", 1))
    )
