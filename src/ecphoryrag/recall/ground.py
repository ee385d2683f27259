"""Grounding: a way over stations becomes a path over the very words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ecphoryrag.recall.passages import Passage, Place
from ecphoryrag.recall.routes import Route, Station
from ecphoryrag.text.keys import normal_words
from ecphoryrag.types import Cue, Path, Step


@dataclass(frozen=True, slots=True)
class Ground:
    """What paths are written with."""

    question: str
    cues: Sequence[Cue]
    passages: Mapping[int, Passage]
    """By position among the allowed chunks; all that the routes pass."""
    names: Mapping[int, Sequence[str]]
    """Keys under which each entity on the routes may stand in a text: its own, then its aliases'."""
    cue_names: Sequence[Sequence[str]]
    """The same for each cue."""


def path(route: Route, ground: Ground) -> Path:
    """Cue (or question), sentence, entity, sentence, ...: each with its span.

    A cue's span is that in the question; all others are spans in the document that the step names. An entity stands
    where it led to: in the next passage, or else in the last one. A passage on the way is shown by the sentence that
    names the entity it led on to, the last one by the sentence that names the entity it was reached by, or, where the
    whole passage is about that entity, by the sentence that shares most words with the question.
    """
    steps: list[Step] = []
    if route.stations[0].kind != "cue":
        steps.append(Step("question", ground.question, start=0, end=len(ground.question)))
    words = frozenset(word.norm for word in normal_words(ground.question))
    for at, station in enumerate(route.stations):
        if station.kind == "cue":
            cue = ground.cues[station.position]
            steps.append(Step("cue", cue.text, start=cue.start, end=cue.end))
        elif station.kind == "entity":
            around = [*route.stations[at + 1 : at + 2], *route.stations[max(at - 1, 0) : at]]
            near_by = [ground.passages[other.position] for other in around if other.kind == "chunk"]
            steps.append(_entity(ground.names[station.position], near_by))
        else:
            near = [*route.stations[at + 1 : at + 2], *route.stations[max(at - 1, 0) : at]]
            named = [_names(other, ground) for other in near if other.kind != "chunk"]
            steps.append(_sentence(ground.passages[station.position], named, words))
    return Path(route.kind, tuple(steps))


def _names(station: Station, ground: Ground) -> Sequence[str]:
    return ground.names[station.position] if station.kind == "entity" else ground.cue_names[station.position]


def _entity(names: Sequence[str], around: Sequence[Passage]) -> Step:
    for passage in around:
        place = passage.locate(names)
        if place is not None:
            return _step("entity", place, passage)
    return Step("entity", names[0])


def _sentence(passage: Passage, named: Sequence[Sequence[str]], words: frozenset[str]) -> Step:
    for names in named:
        place = passage.locate(names)
        if place is not None and place.field == "text":
            sentence = passage.sentence_at(place)
            if sentence is not None:
                return _step("sentence", sentence, passage)
    telling = passage.most_telling(words)
    if telling is not None:
        return _step("sentence", telling, passage)
    chunk = passage.chunk
    return _step("chunk", Place(chunk.text, chunk.start, chunk.end), passage)


def _step(kind: Literal["entity", "sentence", "chunk"], place: Place, passage: Passage) -> Step:
    return Step(kind, place.text, passage.chunk.document_id, place.start, place.end, place.field)
