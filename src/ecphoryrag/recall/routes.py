"""By which way activation reached a chunk, read back from where it came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ecphoryrag.recall.ecphory import Trace
from ecphoryrag.recall.graph import Graph

MOST_ENTITIES = 3
"""A way over more entities explains nothing any more."""
CHAIN_SHARE = 0.25
"""A chain is named as the way if it gave this share of what the spreading gave."""


@dataclass(frozen=True, slots=True)
class Station:
    """A cue (position among the cues), an entity (position in the snapshot) or a chunk (position among the allowed)."""

    kind: Literal["cue", "entity", "chunk"]
    position: int


@dataclass(frozen=True, slots=True)
class Route:
    """From a cue, or from the question as a whole, to a chunk: the last station."""

    kind: Literal["direct", "spread", "chain"]
    stations: tuple[Station, ...]


def route(chunk: int, trace: Trace, known: Graph, chain_weight: float) -> Route:
    """The way by which most activation came."""
    first, bridge = int(trace.chains.first[chunk]), int(trace.chains.bridge[chunk])
    if first >= 0 and chain_weight * trace.chains.scores[chunk] >= CHAIN_SHARE * trace.spread[chunk]:
        before = _backwards(first, trace, known, MOST_ENTITIES - 1, frozenset((chunk,)))
        stations = (*before, Station("entity", bridge), Station("chunk", chunk))
        return Route("chain", _from_cue(stations, trace, known))
    stations = _backwards(chunk, trace, known, MOST_ENTITIES, frozenset())
    return Route("direct" if len(stations) == 1 else "spread", _from_cue(stations, trace, known))


def _from_cue(stations: tuple[Station, ...], trace: Trace, known: Graph) -> tuple[Station, ...]:
    """A way that starts at a chunk which names a cue starts at that cue, the weightiest; what follows a cue is a chunk.

    The question may have given the chunk more than the cue did: the cue is still what a reader recognises in it.
    """
    if stations[0].kind == "cue":
        return (stations[0], *stations[2:])
    start, end = known.to_entity.indptr[stations[0].position : stations[0].position + 2]
    named = set(known.to_entity.indices[start:end].tolist())
    held = [at for at, cue in enumerate(trace.cues) if not named.isdisjoint(cue.entities)]
    if not held:
        return stations
    return (Station("cue", max(held, key=lambda at: trace.cue_weights[at])), *stations)


def _backwards(chunk: int, trace: Trace, known: Graph, entities_left: int, seen: frozenset[int]) -> tuple[Station, ...]:
    """The stations to a chunk: alone if the question itself gave it most."""
    here = Station("chunk", chunk)
    start, end = known.to_entity.indptr[chunk : chunk + 2]
    if not entities_left or start == end:
        return (here,)
    named = known.to_entity.indices[start:end]
    # What a chunk gave to an entity and gets back from it is no reason for the chunk.
    echo = trace.damping * known.to_entity.data[start:end] * trace.activation.chunks[chunk]
    flows = trace.damping * trace.to_chunk.data[known.to_chunk_entry[start:end]]
    flows = flows * np.maximum(trace.activation.entities[named] - echo, 0)
    at = int(np.argmax(flows))
    if flows[at] <= (1 - trace.damping) * trace.seeds.chunks[chunk]:
        return (here,)
    before = _before(int(named[at]), trace, known, entities_left, seen | {chunk})
    return (*before, Station("entity", int(named[at])), here) if before else (here,)


def _before(entity: int, trace: Trace, known: Graph, entities_left: int, seen: frozenset[int]) -> tuple[Station, ...]:
    """The stations to an entity, without it: a cue, or a chunk that mentions it and how that was reached."""
    start, end = known.to_chunk.indptr[entity : entity + 2]
    chunks = known.to_chunk.indices[start:end]
    flows = trace.damping * known.to_entity.data[known.to_entity_entry[start:end]] * trace.activation.chunks[chunks]
    flows[np.isin(chunks, list(seen))] = 0
    at = int(np.argmax(flows))
    cued = [number for number, cue in enumerate(trace.cues) if entity in cue.entities]
    if cued and (1 - trace.damping) * trace.seeds.entities[entity] >= flows[at]:
        return (Station("cue", cued[0]),)
    if flows[at] <= 0:
        return (Station("cue", cued[0]),) if cued else ()
    return _backwards(int(chunks[at]), trace, known, entities_left - 1, seen)
