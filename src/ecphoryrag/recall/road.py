"""From a question to what it brought back."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.errors import InputError
from ecphoryrag.ports import Encoder, View
from ecphoryrag.recall.ecphory import Trace, ecphory, restricted
from ecphoryrag.recall.flat import Scores
from ecphoryrag.recall.found import Found, FoundChunk, FoundEntity
from ecphoryrag.recall.prepared import PreparedCache
from ecphoryrag.recall.question import Asked, Likeness, Meter, ask, likeness
from ecphoryrag.recall.rank import best
from ecphoryrag.recall.request import RecallRequest
from ecphoryrag.types import Cue, Evidence, Path, RankedEntity, Recall, Usage


def recall(question: str, view: View, encoder: Encoder, request: RecallRequest, cache: PreparedCache) -> Recall:
    """What the question brings back from the view's chunks, best first. Reads only.

    Never fails for what a question says: where nothing can be recalled the result is empty and says why. Raises
    InputError if the question is not text or the filter is malformed, ModelError if the encoder fails.
    """
    if not isinstance(question, str):
        raise InputError(f"the question is a {type(question).__name__}: give it as text")
    started = time.perf_counter()
    road = _Road(question, view, Meter(encoder), request, cache)
    recalled = road.travel()
    spent = Usage(embedding_tokens=road.encode.tokens, seconds=time.perf_counter() - started)
    return replace(recalled, usage=spent)


@dataclass(frozen=True, slots=True)
class _Road:
    """One question on its way."""

    question: str
    view: View
    encode: Meter
    request: RecallRequest
    cache: PreparedCache

    def travel(self) -> Recall:
        """The whole road; usage is added by the caller."""
        if not any(sign.isalnum() for sign in self.question):
            return self._nothing("the question holds no word")
        if not self.view.snapshot.chunk_count:
            return self._nothing("the store is empty: add documents first")
        positions = self._allowed()
        if not len(positions):
            return self._nothing("no document passes the filter")
        if self.request.method == "dense" and not self.view.snapshot.vectors.shape[1]:
            return self._nothing("the method `dense` needs vectors, and the encoder `none` makes none")
        index = self.cache.index(self.view.snapshot, self.request.settings.flat)
        asked = ask(self.question, self.view, index, positions, self.encode)
        like = likeness(asked, self.request.settings.flat.dense_share)
        found = self._ecphory(asked, like) if self.request.method == "ecphory" else self._flat(like)
        return self._grounded(found, positions)

    def _nothing(self, reason: str) -> Recall:
        return Recall(self.question, self.request.method, (), reason=reason)

    def _allowed(self) -> NDArray[np.int64]:
        if self.request.where is None:
            return np.arange(self.view.snapshot.chunk_count, dtype=np.int64)
        return np.flatnonzero(self.view.matching(self.request.where)).astype(np.int64)

    def _flat(self, like: Likeness) -> Found:
        scores: Scores = getattr(like, self.request.method)
        if not scores.any():
            return Found(reason=NOTHING_SHARED)
        return Found(_chunks(scores, self.request.k, like))

    def _ecphory(self, asked: Asked, like: Likeness) -> Found:
        settings = self.request.settings.ecphory
        known = self.cache.graph(self.view.snapshot, settings.about)
        if not asked.whole:
            known = restricted(known, asked.positions)
        trace = ecphory(asked, like, self.view.snapshot, known, self.encode, settings)
        if not like.hybrid.any() and not trace.cues:
            return Found(reason=NOTHING_SHARED)
        chunks = _chunks(trace.scores, self.request.k, like, trace)
        active = trace.activation.entities
        entities = tuple(
            FoundEntity(int(at), float(active[at])) for at in best(active, settings.entities) if active[at]
        )
        return Found(chunks, entities, trace)

    def _grounded(self, found: Found, positions: NDArray[np.int64]) -> Recall:
        stored = self.view.chunks([int(positions[chunk.position]) for chunk in found.chunks])
        evidence = tuple(
            Evidence(number, kept.chunk, kept.title, chunk.score, chunk.signals, Path("direct"), kept.metadata)
            for number, (chunk, kept) in enumerate(zip(found.chunks, stored, strict=True), start=1)
        )
        entities = self.view.entities([entity.position for entity in found.entities])
        ranked = tuple(
            RankedEntity(rank, entity, known.score)
            for rank, (entity, known) in enumerate(zip(entities, found.entities, strict=True), start=1)
        )
        return Recall(
            self.question, self.request.method, evidence, ranked, self._cues(found.trace), reason=found.reason
        )

    def _cues(self, trace: Trace | None) -> tuple[Cue, ...]:
        if trace is None or not trace.cues:
            return ()
        named = self.view.entities([cue.entities[0] for cue in trace.cues])
        return tuple(
            Cue(self.question[cue.start : cue.end], cue.start, cue.end, entity.key, entity.name, weight)
            for cue, entity, weight in zip(trace.cues, named, trace.cue_weights, strict=True)
        )


NOTHING_SHARED = "nothing in the store shares a word, a name or a meaning with the question"


def _chunks(scores: Scores, k: int, like: Likeness, trace: Trace | None = None) -> tuple[FoundChunk, ...]:
    signals = {"dense": like.dense, "bm25": like.bm25, "hybrid": like.hybrid}
    if trace is not None:
        signals |= {"activation": trace.activation.chunks, "chain": trace.chains.scores}
    return tuple(
        FoundChunk(int(at), float(scores[at]), {name: float(values[at]) for name, values in signals.items()})
        for at in best(scores, k)
    )
