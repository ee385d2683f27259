"""Dual-level retrieval: what the low-level keywords find among entities, and the high-level ones among relations.

Guo et al. (2024), "LightRAG", section 3.2, and the public code (version 1) where the text leaves a step open:

- *local*: the entities nearest to the low-level keywords, the relations they have (by the degree of both ends, then
  by weight), and the chunks they come from (by entity, then by how many of its neighbours are in the chunk);
- *global*: the relations nearest to the high-level keywords, ordered as above, their ends, and their chunks;
- *hybrid*: both; *mix*: both, and the chunks nearest to the question.

Each list is cut at its token budget where the public code cuts it: entities and relations by their descriptions,
chunks by their text. Departure: version 1 puts the lists of *hybrid* together in the order of a set; here they take
turns, local first (for *mix* the chunks nearest to the question before them), as in later versions of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from ecphoryrag.evaluation.baselines.lightrag_profiles import Profiles
from ecphoryrag.ports import Vectors
from ecphoryrag.text.tokens import count_tokens

MODES = ("hybrid", "local", "global", "mix")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is brought back."""

    top: int = 60
    """Entities, or relations, of a search."""
    threshold: float = 0.2
    """Cosine below which nothing is found."""
    chunks: int = 10
    """Chunks that *mix* takes by the question's vector."""
    entity_tokens: int = 4000
    relation_tokens: int = 4000
    text_tokens: int = 4000


@dataclass(frozen=True, slots=True)
class Graph:
    """What is searched: profiles, chunks, and the vectors of both."""

    profiles: Profiles
    texts: tuple[str, ...]
    """Of the chunks."""
    entity_vectors: Vectors
    relation_vectors: Vectors
    chunk_vectors: Vectors

    def relations_of(self) -> tuple[tuple[int, ...], ...]:
        """For each entity the relations it has."""
        of: list[list[int]] = [[] for _ in self.profiles.entities]
        for at, relation in enumerate(self.profiles.relations):
            for end in relation.ends:
                of[end].append(at)
        return tuple(map(tuple, of))


@dataclass(frozen=True, slots=True)
class Context:
    """Positions of entities, relations and chunks, best first, each once."""

    entities: tuple[int, ...] = ()
    relations: tuple[int, ...] = ()
    chunks: tuple[int, ...] = ()


def local(graph: Graph, vector: Vectors, limits: Limits) -> Context:
    """By the entities nearest to ``vector`` (d,), that of the low-level keywords."""
    entities, relations = graph.profiles.entities, graph.profiles.relations
    of = graph.relations_of()
    found = nearest(graph.entity_vectors, vector, limits.top, limits.threshold)
    links = dict.fromkeys(link for entity in found for link in of[entity])
    ranked = sorted(links, key=lambda link: _importance(graph, of, link))
    chunks: dict[int, tuple[int, int, int]] = {}
    for place, entity in enumerate(found):
        neighbours = {end for link in of[entity] for end in relations[link].ends} - {entity}
        for chunk in entities[entity].chunks:
            shared = sum(chunk in entities[one].chunks for one in neighbours)
            chunks.setdefault(chunk, (place, -shared, chunk))
    return Context(
        _within(found, lambda at: entities[at].description, limits.entity_tokens),
        _within(ranked, lambda at: relations[at].description, limits.relation_tokens),
        _within(sorted(chunks, key=lambda at: chunks[at]), lambda at: graph.texts[at], limits.text_tokens),
    )


def overall(graph: Graph, vector: Vectors, limits: Limits) -> Context:
    """The mode *global*: by the relations nearest to ``vector`` (d,), that of the high-level keywords."""
    entities, relations = graph.profiles.entities, graph.profiles.relations
    of = graph.relations_of()
    found = nearest(graph.relation_vectors, vector, limits.top, limits.threshold)
    ranked = _within(
        sorted(found, key=lambda link: _importance(graph, of, link)),
        lambda at: relations[at].description,
        limits.relation_tokens,
    )
    ends = dict.fromkeys(end for link in ranked for end in relations[link].ends)
    chunks = dict.fromkeys(chunk for link in ranked for chunk in relations[link].chunks)
    return Context(
        _within(ends, lambda at: entities[at].description, limits.entity_tokens),
        ranked,
        _within(chunks, lambda at: graph.texts[at], limits.text_tokens),
    )


def by_question(graph: Graph, vector: Vectors, limits: Limits) -> Context:
    """What *mix* adds: the chunks nearest to ``vector`` (d,), that of the question."""
    found = nearest(graph.chunk_vectors, vector, limits.chunks, limits.threshold)
    return Context(chunks=_within(found, lambda at: graph.texts[at], limits.text_tokens))


def in_turns(contexts: Sequence[Context]) -> Context:
    """The lists of several searches in turns: the first of each, then the second of each, each item once."""
    return Context(
        tuple(_turns([one.entities for one in contexts])),
        tuple(_turns([one.relations for one in contexts])),
        tuple(_turns([one.chunks for one in contexts])),
    )


def nearest(vectors: Vectors, vector: Vectors, count: int, threshold: float) -> tuple[int, ...]:
    """Positions of the rows most like ``vector``, at most ``count``, none below the cosine ``threshold``."""
    likeness = vectors @ vector if len(vectors) else np.zeros(0, np.float32)
    order = np.argsort(-likeness, kind="stable")[:count]
    return tuple(int(at) for at in order if likeness[at] >= threshold)


def _importance(graph: Graph, of: Sequence[Sequence[int]], link: int) -> tuple[float, float, int]:
    relation = graph.profiles.relations[link]
    return -sum(len(of[end]) for end in relation.ends), -relation.weight, link


def _within(items: Iterable[int], text: Callable[[int], str], budget: int) -> tuple[int, ...]:
    """The first items whose texts together stay within the budget of tokens."""
    kept: list[int] = []
    for item in items:
        budget -= count_tokens(text(item))
        if budget < 0:
            break
        kept.append(item)
    return tuple(kept)


def _turns(lists: Sequence[Sequence[int]]) -> Iterator[int]:
    seen: set[int] = set()
    for row in zip_longest(*lists):
        for item in row:
            if item is not None and item not in seen:
                seen.add(item)
                yield item
