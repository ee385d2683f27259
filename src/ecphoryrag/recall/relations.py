"""Implicit relations: sentences that join two activated entities, found when asked for and never stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, islice

from ecphoryrag.recall.passages import Passage
from ecphoryrag.types import Relation

PLACES = 3
"""Places of one entity in a sentence that are looked at: several, since a short name may stand in a longer."""
WEAK_CHUNK = 0.5
"""Share of a sentence's score that it has whatever its passage is worth: entities decide first, passages second."""


def implicit_relations(
    passages: Sequence[tuple[Passage, float]], active: Mapping[str, float], names: Mapping[str, str], most: int
) -> tuple[Relation, ...]:
    """The best ``most`` sentences of the passages that name two of the ``active`` entities, best first.

    ``passages`` come with their worth in 0..1; ``active`` is each entity's activation in 0..1 by key; ``names`` how it
    is shown. A sentence scores the geometric mean of its two entities' activation, by its passage's worth. Each
    sentence and each pair is kept once, with its best score; the subject is the one named first.
    """
    found: list[Relation] = []
    for passage, worth in passages:
        places = sorted(
            (place.start, place.end, key)
            for key in active
            for place in passage.all_places(key)
            if place.field == "text"
        )
        for sentence in passage.sentences:
            inside = _first_of_each(
                place for place in places if sentence.start <= place[0] and place[1] <= sentence.end
            )
            for one, other in combinations(inside, 2):
                if one[2] == other[2] or other[0] < one[1]:
                    continue
                score = (active[one[2]] * active[other[2]]) ** 0.5 * (WEAK_CHUNK + (1 - WEAK_CHUNK) * worth)
                found.append(
                    Relation(
                        subject=names[one[2]],
                        object=names[other[2]],
                        sentence=sentence.text,
                        document_id=passage.chunk.document_id,
                        start=sentence.start,
                        end=sentence.end,
                        score=score,
                    )
                )
    return _once_each(found)[:most]


def _first_of_each(places: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The first places of each key, in order: a sentence that repeats a name a thousand times says it once."""
    of_key: dict[str, list[tuple[int, int, str]]] = {}
    for place in places:
        of_key.setdefault(place[2], []).append(place)
    return sorted(place for found in of_key.values() for place in islice(found, PLACES))


def _once_each(found: Sequence[Relation]) -> tuple[Relation, ...]:
    """Best first; a sentence that joins three entities, or two chunks that overlap, would tell the same again."""
    kept: list[Relation] = []
    sentences: set[tuple[str, int, int]] = set()
    pairs: set[frozenset[str]] = set()
    for relation in sorted(found, key=lambda one: (-one.score, one.document_id, one.start, one.subject, one.object)):
        sentence = (relation.document_id, relation.start, relation.end)
        pair = frozenset((relation.subject, relation.object))
        if relation.score > 0 and sentence not in sentences and pair not in pairs:
            kept.append(relation)
            sentences.add(sentence)
            pairs.add(pair)
    return tuple(kept)
