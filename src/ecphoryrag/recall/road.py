"""From a question to what it brought back."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.errors import InputError
from ecphoryrag.ports import Encoder, View
from ecphoryrag.recall.cues import aliases_of
from ecphoryrag.recall.ecphory import Trace, restricted
from ecphoryrag.recall.found import Found
from ecphoryrag.recall.ground import Ground, path
from ecphoryrag.recall.helped import NO_HELPERS, Helped
from ecphoryrag.recall.methods import by_ecphory, by_likeness, by_paper
from ecphoryrag.recall.passages import Passage, passages
from ecphoryrag.recall.prepared import PreparedCache
from ecphoryrag.recall.question import Meter, ask, likeness
from ecphoryrag.recall.rank import best
from ecphoryrag.recall.relations import implicit_relations
from ecphoryrag.recall.request import Helpers, RecallRequest
from ecphoryrag.types import Cue, Entity, Evidence, RankedEntity, Recall, Relation, Spending, Usage

MOST_CHARACTERS = 100_000
"""Of a question: forty pages. What is longer is a document by mistake, and would be worked on for minutes."""


def recall(
    question: str,
    view: View,
    encoder: Encoder,
    request: RecallRequest,
    cache: PreparedCache,
    helpers: Helpers = NO_HELPERS,
) -> Recall:
    """What the question brings back from the view's chunks, best first. Reads only.

    Where ``request.settings.llm`` asks for it, ``helpers`` add cues to the method `ecphory` and label its relations;
    if they fail, or are not there, the recall is that without them, and a note says so.

    Never fails for what a question says: where nothing can be recalled the result is empty and says why. Raises
    InputError if the question is not text or longer than any, or the filter is malformed, and ModelError if the
    encoder fails.
    """
    if not isinstance(question, str):
        raise InputError(f"the question is a {type(question).__name__}: give it as text")
    if len(question) > MOST_CHARACTERS:
        raise InputError(f"the question has {len(question):,} characters; at most {MOST_CHARACTERS:,} are allowed")
    started = time.perf_counter()
    encode = Meter(encoder)
    positions = _allowed(view, request)
    reason = _hopeless(question, view, positions, request)
    if reason is None:
        helped = Helped(question, request, helpers)
        found = _find(question, view, positions, encode, cache, helped)
        recalled = helped.labelled(_Recalled(question, view, positions, request).ground(found))
    else:
        recalled = Recall(question, request.method, (), reason=reason)
    embedded = () if encode.usage == Usage() else (Spending("embed", encoder.identity.name, encode.usage),)
    spending = (*embedded, *recalled.spending)
    spent = replace(sum((one.usage for one in spending), Usage()), seconds=time.perf_counter() - started)
    return replace(recalled, usage=spent, spending=spending)


def _allowed(view: View, request: RecallRequest) -> NDArray[np.int64]:
    if request.where is None:
        return np.arange(view.snapshot.chunk_count, dtype=np.int64)
    return np.flatnonzero(view.matching(request.where)).astype(np.int64)


def _hopeless(question: str, view: View, positions: NDArray[np.int64], request: RecallRequest) -> str | None:
    """Why nothing can be recalled, if that is plain before trying."""
    if not view.snapshot.chunk_count:
        return "the store is empty: add documents first"
    if not len(positions):
        return "no document passes the filter"
    if not any(sign.isalnum() for sign in question):
        return "the question holds no word"
    if request.method in {"dense", "paper"} and not view.snapshot.vectors.shape[1]:
        return f"the method `{request.method}` needs vectors, and the encoder `none` makes none"
    return None


def _find(
    question: str,
    view: View,
    positions: NDArray[np.int64],
    encode: Meter,
    cache: PreparedCache,
    helped: Helped,
) -> Found:
    request = helped.request
    settings = request.settings
    asked = ask(question, view, cache.index(view.snapshot, settings.flat), positions, encode)
    shares = settings.ecphory.dense_share if request.method == "ecphory" else settings.flat.dense_share
    like = likeness(asked, shares.of(encode.encoder.identity.name))
    if request.method == "paper":
        return by_paper(asked, like, view, encode.encoder, request)
    if request.method != "ecphory":
        return by_likeness(like, request)
    known = cache.graph(view.snapshot, settings.ecphory.about)
    if not asked.whole:
        known = restricted(known, positions)
    return by_ecphory(asked, like, view, known, request, helped.names())


@dataclass(frozen=True, slots=True)
class _Recalled:
    """Positions become values: texts, entities, paths and relations are fetched."""

    question: str
    view: View
    positions: NDArray[np.int64]
    request: RecallRequest

    def ground(self, found: Found) -> Recall:
        """All that a recall holds, but what it cost."""
        settings = self.request.settings.ecphory
        looked_at = [] if found.trace is None else best(found.trace.scores, settings.relation_chunks).tolist()
        on_routes = [
            station.position for route in found.routes for station in route.stations if station.kind == "chunk"
        ]
        texts = self._passages([*on_routes, *looked_at])
        cues = self._cues(found.trace)
        ground = Ground(self.question, cues, texts, self._names(found), self._cue_names(found.trace))
        evidence = tuple(
            Evidence(
                number=number,
                chunk=texts[chunk.position].chunk,
                title=texts[chunk.position].stored.title,
                score=chunk.score,
                signals=chunk.signals,
                path=path(route, ground),
                metadata=texts[chunk.position].stored.metadata,
            )
            for number, (chunk, route) in enumerate(zip(found.chunks, found.routes, strict=True), start=1)
        )
        known = self.view.entities([entity.position for entity in found.entities])
        ranked = tuple(
            RankedEntity(rank, entity, one.score)
            for rank, (entity, one) in enumerate(zip(known, found.entities, strict=True), start=1)
        )
        relations = self._relations(found.trace, ranked, [(at, texts[at]) for at in looked_at])
        return Recall(self.question, self.request.method, evidence, ranked, cues, relations, found.reason)

    def _passages(self, chunks: Iterable[int]) -> dict[int, Passage]:
        place = {int(self.positions[chunk]): chunk for chunk in chunks}
        return {place[at]: passage for at, passage in passages(self.view, place).items()}

    def _names(self, found: Found) -> dict[int, list[str]]:
        keys = self.view.snapshot.entity_keys
        pairs = self.view.snapshot.aliases
        on_routes = {
            station.position for route in found.routes for station in route.stations if station.kind == "entity"
        }
        return {at: [keys[at], *(keys[other] for other in aliases_of(at, pairs))] for at in on_routes}

    def _cue_names(self, trace: Trace | None) -> list[list[str]]:
        keys = self.view.snapshot.entity_keys
        return [] if trace is None else [[keys[entity] for entity in cue.entities] for cue in trace.cues]

    def _cues(self, trace: Trace | None) -> tuple[Cue, ...]:
        if trace is None or not trace.cues:
            return ()
        named = self.view.entities([cue.entities[0] for cue in trace.cues])
        return tuple(
            Cue(cue.told or self.question[cue.start : cue.end], cue.start, cue.end, entity.key, entity.name, weight)
            for cue, entity, weight in zip(trace.cues, named, trace.cue_weights, strict=True)
        )

    def _relations(
        self, trace: Trace | None, ranked: tuple[RankedEntity, ...], looked_at: list[tuple[int, Passage]]
    ) -> tuple[Relation, ...]:
        """Between the cues and the most active entities."""
        if trace is None or not looked_at:
            return ()
        cued = sorted({entity for cue in trace.cues for entity in cue.entities})
        entities: list[Entity] = [*(one.entity for one in ranked), *self.view.entities(cued)]
        at = self.view.snapshot.entity_positions
        activation = {entity.key: float(trace.activation.entities[at[entity.key]]) for entity in entities}
        top = max(activation.values(), default=0.0)
        if top <= 0:
            return ()
        active = {key: value / top for key, value in activation.items()}
        highest = float(trace.scores[looked_at[0][0]])
        worth = [(passage, max(float(trace.scores[chunk]) / highest, 0.0)) for chunk, passage in looked_at]
        names = {entity.key: entity.name for entity in entities}
        return implicit_relations(worth, active, names, self.request.settings.ecphory.relations)
