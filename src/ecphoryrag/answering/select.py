"""Which sentences of a long piece of evidence matter to the question, and which relations are worth pointing out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from ecphoryrag.answering.prompt import Piece
from ecphoryrag.calls.quoting import quoted
from ecphoryrag.text.keys import name_key, normal_words
from ecphoryrag.types import Entity, Evidence, Recall, Sentence

ENTITIES = 10
"""Most active entities looked for in sentences."""
ENTITY_WORTH = 1.0
RELATION_WORTH = 2.0
FIRST_WORTH = 1.0
"""Worth of a sentence beside the rarity of the question's words in it (about 1 to 4 a word): an activated entity named
in it, a relation found in it, and being the first, which mostly says what the text is about."""


def by_worth(evidence: Evidence, sentences: Sequence[Sentence], recall: Recall) -> list[int]:
    """Positions of the chunk's sentences, the most telling first; of equals the earlier first."""
    words = [[word.norm for word in normal_words(sentence.text)] for sentence in sentences]
    asked = {word.norm for word in normal_words(recall.question)}
    frequency = Counter(word for found in words for word in asked.intersection(found))
    keys = [_running_keys(ranked.entity) for ranked in recall.entities[:ENTITIES]]
    spans = [(r.start, r.end) for r in recall.relations if r.document_id == evidence.chunk.document_id]
    worth = []
    for at, sentence in enumerate(sentences):
        start, end = evidence.chunk.start + sentence.start, evidence.chunk.start + sentence.end
        running = f" {' '.join(words[at])} "
        worth.append(
            sum(math.log(1 + len(sentences) / frequency[word]) for word in sorted(asked.intersection(words[at])))
            + ENTITY_WORTH * sum(any(key in running for key in names) for names in keys)
            + RELATION_WORTH * any(first < end and last > start for first, last in spans)
            + FIRST_WORTH * (at == 0)
        )
    return sorted(range(len(sentences)), key=lambda at: (-worth[at], at))


def _running_keys(entity: Entity) -> set[str]:
    """The keys by which texts name the entity, as they stand in running words; several if names were merged in it."""
    return {f" {key} " for key in (entity.key, *map(name_key, entity.aliases)) if key}


def link_lines(recall: Recall, pieces: Sequence[Piece]) -> list[str]:
    """A line for each relation that the recall found, best first: the two names, how they are related if a language
    model said so, and where the sentence stands.

    A sentence that is in one of the pieces is named by its number; another is quoted.
    """
    lines = []
    for relation in recall.relations:
        where = f'"{quoted(relation.sentence)}"'
        for number, piece in enumerate(pieces, 1):
            chunk = piece.evidence.chunk
            inside = chunk.document_id == relation.document_id and chunk.start <= relation.start < chunk.end
            if inside and relation.sentence in piece.text:
                where = f"see [{number}]"
                break
        label = f" ({quoted(relation.label)})" if relation.label else ""
        line = f"Link: {quoted(relation.subject)} – {quoted(relation.object)}{label}, {where}"
        if line not in lines:
            lines.append(line)
    return lines
