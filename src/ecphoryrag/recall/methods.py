"""The five methods, from a question to chunk and entity positions."""

from __future__ import annotations

from collections.abc import Sequence

from ecphoryrag.ports import Encoder, View
from ecphoryrag.recall.cues import ToldNames
from ecphoryrag.recall.ecphory import Trace, ecphory
from ecphoryrag.recall.found import Found, FoundChunk, FoundEntity
from ecphoryrag.recall.graph import Graph
from ecphoryrag.recall.paper import PaperInput, paper
from ecphoryrag.recall.question import Asked, Likeness
from ecphoryrag.recall.rank import Scores, best
from ecphoryrag.recall.request import RecallRequest
from ecphoryrag.recall.routes import Route, Station, route

NOTHING_SHARED = "nothing in the store shares a word, a name or a meaning with the question"


def by_likeness(like: Likeness, request: RecallRequest) -> Found:
    """`dense`, `bm25` and `hybrid`."""
    scores: Scores = {"dense": like.dense, "bm25": like.bm25, "hybrid": like.hybrid}[request.method]
    if not scores.any():
        return Found(reason=NOTHING_SHARED)
    order = best(scores, request.k).tolist()
    chunks = tuple(FoundChunk(at, float(scores[at]), _signals(at, like)) for at in order)
    return Found(chunks, routes=tuple(Route("direct", (Station("chunk", at),)) for at in order))


def by_ecphory(
    asked: Asked, like: Likeness, view: View, known: Graph, request: RecallRequest, told: Sequence[str] = ()
) -> Found:
    """`ecphory`; ``told`` are names that a language model read out of the question."""
    settings = request.settings.ecphory
    names = ToldNames(tuple(told), request.settings.llm.cue_share)
    trace = ecphory(asked, like, view.snapshot, known, settings, names)
    if not like.hybrid.any() and not trace.cues:
        return Found(reason=NOTHING_SHARED)
    order = best(trace.scores, request.k).tolist()
    active = trace.activation.entities
    return Found(
        chunks=tuple(FoundChunk(at, float(trace.scores[at]), _signals(at, like, trace)) for at in order),
        entities=tuple(
            FoundEntity(at, float(active[at])) for at in best(active, settings.entities).tolist() if active[at] > 0
        ),
        routes=tuple(route(at, trace, known, settings.chain.weight) for at in order),
        trace=trace,
    )


def by_paper(asked: Asked, like: Likeness, view: View, encoder: Encoder, request: RecallRequest) -> Found:
    """`paper`."""
    snapshot = view.snapshot
    mentions = snapshot.mentions if asked.whole else snapshot.mentions[asked.positions]
    given = PaperInput(asked.vector, asked.vectors, view.entity_vectors(encoder), mentions)
    result = paper(given, request.settings.paper, request.k)
    return Found(
        chunks=tuple(
            FoundChunk(at, float(result.chunk_similarity[at]), _signals(at, like)) for at in result.chunks.tolist()
        ),
        entities=tuple(FoundEntity(at, float(result.similarity[at])) for at in result.entities.tolist()),
        routes=tuple(_from_entity(at, result.sources.get(at)) for at in result.chunks.tolist()),
    )


def _from_entity(chunk: int, entity: int | None) -> Route:
    here = Station("chunk", chunk)
    return Route("direct", (here,)) if entity is None else Route("spread", (Station("entity", entity), here))


def _signals(at: int, like: Likeness, trace: Trace | None = None) -> dict[str, float]:
    """The parts of a chunk's score, by name."""
    parts: Sequence[tuple[str, Scores]] = [("dense", like.dense), ("bm25", like.bm25), ("hybrid", like.hybrid)]
    if trace is not None:
        parts = [*parts, ("activation", trace.activation.chunks), ("chain", trace.chains.scores)]
    return {name: float(values[at]) for name, values in parts}
