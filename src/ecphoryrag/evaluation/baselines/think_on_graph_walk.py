"""The walk of Think-on-Graph: which relations to follow, and which entities to stand on next, as the model says.

Sun et al. (2024), "Think-on-Graph", section 2.1 and appendix on prompts, and the public code where the text leaves a
step open:

- *relation search and prune*: for each entity stood on, the relations it has, in both directions, less the one it was
  reached by; the model scores up to ``width`` of them;
- *entity search and prune*: for each of these the entities it leads to; the model scores them, a single one takes the
  score of the relation, and where its reply cannot be used all count alike; a score is multiplied by that of the
  relation; the best ``width`` of all, without those that score 0, are stood on next.

Departures: candidates have numbers; of more relations than fit a prompt the nearest to the question are shown (the
public code drops Freebase's own); of 20 entities or more the 5 nearest to the question are kept (the public code draws
5 at random).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ecphoryrag.calls.asking import Request
from ecphoryrag.calls.quoting import one_line
from ecphoryrag.calls.reading import Unusable
from ecphoryrag.errors import PromptTooLong, Rejected
from ecphoryrag.evaluation.baselines import language
from ecphoryrag.evaluation.baselines.port import Kit
from ecphoryrag.evaluation.baselines.triples import Triple
from ecphoryrag.types import JsonValue, Message, Usage

T = TypeVar("T")

METHOD = "think-on-graph"
MOST_RELATIONS = 30
"""Shown at once."""
MANY_ENTITIES, RETAINED = 20, 5
"""From how many entities on they are thinned out, and to how many: the public code's."""
TOKENS = 256

RELATION_SYSTEM = f"""\
You are looking for the answer to a question in a knowledge graph. Given the relations of one entity, score those that \
can lead towards the answer, from 0 to 1, the best first, at most {{width}} of them.
Reply with one JSON object: {{{{"scores": [{{{{"number": 1, "score": 0.9}}}}]}}}}
{language.QUOTED}"""
ENTITY_SYSTEM = f"""\
You are looking for the answer to a question in a knowledge graph. Given the entities that a relation leads to, score \
each from 0 to 1 by how much it helps to find the answer; the scores sum to 1.
Reply with one JSON object: {{"scores": [{{"number": 1, "score": 0.9}}]}}
{language.QUOTED}"""

Near = Callable[[Sequence[str]], Sequence[float]]
"""How like the question each text is."""


class Way(NamedTuple):
    """A relation as seen from an entity: ``forward`` if the entity is its subject."""

    relation: str
    forward: bool


class Stand(NamedTuple):
    """An entity stood on, and the way it was reached by, seen from where it came from."""

    entity: str
    by: Way | None = None


@dataclass(frozen=True, slots=True)
class Links:
    """The triples by entity and way."""

    of: Mapping[str, Mapping[Way, tuple[str, ...]]]
    """What each entity's ways lead to, sorted."""
    passages: Mapping[Triple, tuple[int, ...]]
    """Positions of the passages that have the triple."""


@dataclass(frozen=True, slots=True)
class Step:
    """A triple that was walked, with the score of the entity it led to."""

    triple: Triple
    led_to: str
    score: float


@dataclass(frozen=True, slots=True)
class Round:
    """The best steps of one depth, and what choosing them cost; no steps: there is nowhere to go."""

    steps: tuple[Step, ...] = ()
    stands: tuple[Stand, ...] = ()
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()


def link(triples: Sequence[Sequence[Triple]]) -> Links:
    """The triples, given for each passage."""
    of: dict[str, dict[Way, set[str]]] = defaultdict(lambda: defaultdict(set))
    passages: dict[Triple, list[int]] = defaultdict(list)
    for number, some in enumerate(triples):
        for triple in some:
            of[triple.subject][Way(triple.relation, True)].add(triple.object)
            of[triple.object][Way(triple.relation, False)].add(triple.subject)
            passages[triple].append(number)
    ways = {name: {way: tuple(sorted(ends)) for way, ends in sorted(of[name].items())} for name in sorted(of)}
    return Links(ways, {triple: tuple(numbers) for triple, numbers in passages.items()})


@dataclass(frozen=True, slots=True)
class Walker:
    """Asks the model at each crossing of one question."""

    question: str
    links: Links
    near: Near
    width: int
    kit: Kit

    def go(self, stands: Sequence[Stand]) -> Round:
        """One depth further from where it stands. Raises ModelError if the model cannot be asked."""
        usage, notes = Usage(), list[str]()
        steps: list[tuple[Step, Stand]] = []
        for stand in stands:
            ways, spent = self._ways(stand, notes)
            usage += spent
            for way, weight in ways:
                ends, spent = self._ends(stand.entity, way, weight, notes)
                usage += spent
                for end, score in ends:
                    triple = Triple(
                        *((stand.entity, way.relation, end) if way.forward else (end, way.relation, stand.entity))
                    )
                    steps.append((Step(triple, end, score), Stand(end, way)))
        best = sorted((step for step in steps if step[0].score > 0), key=lambda one: -one[0].score)[: self.width]
        return Round(
            tuple(step for step, _ in best), tuple(dict.fromkeys(stand for _, stand in best)), usage, tuple(notes)
        )

    def _ways(self, stand: Stand, notes: list[str]) -> tuple[list[tuple[Way, float]], Usage]:
        """The relations to follow from here, with their scores."""
        back = Way(stand.by.relation, not stand.by.forward) if stand.by else None
        ways = [way for way in self.links.of.get(stand.entity, {}) if way != back]
        if not ways:
            return [], Usage()
        ways = self._nearest(ways, [way.relation for way in ways], MOST_RELATIONS)
        lines = [
            f"{stand.entity} | {way.relation} | ?" if way.forward else f"? | {way.relation} | {stand.entity}"
            for way in ways
        ]
        scores, usage, failure = self._scores(RELATION_SYSTEM.format(width=self.width), "Relations", lines)
        if failure:
            notes.append(f"no relation of {stand.entity!r} was followed: {failure}")
        ranked = sorted(((ways[at], score) for at, score in scores.items() if score > 0), key=lambda one: -one[1])
        return ranked[: self.width], usage

    def _ends(self, entity: str, way: Way, weight: float, notes: list[str]) -> tuple[list[tuple[str, float]], Usage]:
        """The entities that the relation leads to, with their scores."""
        ends = list(self.links.of[entity][way])
        if len(ends) >= MANY_ENTITIES:
            ends = self._nearest(ends, ends, RETAINED)
        if len(ends) == 1:
            return [(ends[0], weight)], Usage()
        lines = [
            f"{entity} | {way.relation} | {end}" if way.forward else f"{end} | {way.relation} | {entity}"
            for end in ends
        ]
        scores, usage, failure = self._scores(ENTITY_SYSTEM, "Entities", lines)
        if failure:
            notes.append(f"the entities after {way.relation!r} count alike: {failure}")
            scores = dict.fromkeys(range(len(ends)), 1 / len(ends))
        return [(ends[at], weight * score) for at, score in sorted(scores.items())], usage

    def _nearest(self, items: list[T], texts: Sequence[str], most: int) -> list[T]:
        if len(items) <= most:
            return items
        likeness = self.near(texts)
        order = sorted(range(len(items)), key=lambda at: -likeness[at])[:most]
        return [items[at] for at in sorted(order)]

    def _scores(self, system: str, what: str, lines: Sequence[str]) -> tuple[dict[int, float], Usage, str | None]:
        """Scores by position, what they cost, and why there are none."""
        shown = language.data(what, [f"{number}. {line}" for number, line in enumerate(lines, 1)])
        numbers: list[JsonValue] = list(range(1, len(lines) + 1))
        item = language.record(number={"type": "integer", "enum": numbers}, score={"type": "number"})
        request = Request(
            "relation",
            (Message("system", system), Message("user", f"{shown}\nQuestion: {one_line(self.question)}")),
            language.record(scores={"type": "array", "maxItems": max(self.width, RETAINED), "items": dict(item)}),
            TOKENS,
            lambda value: _scored(value, len(lines)),
        )
        try:
            asked = language.ask(request, self.kit, METHOD)
        except (Rejected, PromptTooLong) as error:
            return {}, error.usage, str(error)
        return asked.value, asked.usage, None


def _scored(value: JsonValue, count: int) -> dict[int, float]:
    """Raises Unusable for a number that was not shown."""
    scores: dict[int, float] = {}
    for item in language.records_of(value, "scores"):
        number = language.field_of(item, "number")
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count:
            raise Unusable(f'"number" must be from 1 to {count}')
        scores.setdefault(number - 1, language.real_of(item, "score", 0.0, 1.0))
    return scores
