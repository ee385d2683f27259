"""What is shown of entities, derived from their mentions, whatever the order in which documents came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import apsw

from ecphoryrag.snapshot import ABOUT_KINDS
from ecphoryrag.store import sql
from ecphoryrag.store.rows import described
from ecphoryrag.types import Entity

_SELECT = """
SELECT m.entity, e.key, c.document, c.ordinal, m.field, m.start, m.stop, m.type, m.importance, m.about, m.told,
    m.length, m.description
FROM mentions m JOIN chunks c ON c.row = m.chunk JOIN documents d ON d.row = c.document
    JOIN entities e ON e.row = m.entity
"""
_ORDER = "ORDER BY d.id, c.ordinal, m.number"
_SOME = f"{_SELECT} WHERE m.entity IN (SELECT value FROM json_each(?)) {_ORDER}"  # noqa: S608 - constants only
_ALL = _SELECT + _ORDER


@dataclass(slots=True)
class _Gathered:
    key: str
    places: dict[tuple[int, int, int, int], str] = field(default_factory=dict)
    chunks: set[tuple[int, int]] = field(default_factory=set)
    importance: int = 0
    best: tuple[bool, int, int, int, bool, int, int] | None = None
    type: str = ""
    description: str = ""

    def entity(self) -> Entity:
        spellings = Counter(self.places.values())
        names = sorted(spellings, key=lambda name: (-spellings[name], name))
        return Entity(
            key=self.key,
            name=names[0],
            type=self.type,
            description=self.description,
            importance=self.importance,
            aliases=tuple(names),
            mention_count=len(self.places),
            chunk_count=len(self.chunks),
        )


def read_entities(connection: apsw.Connection, rows: Sequence[int] | None) -> dict[int, Entity]:
    """Entities by their row numbers; all of them for None.

    The name is the most frequent spelling (of equally frequent ones the first in code point order), counted once a
    place even if chunks overlap there. Type and description come from the mention that defines: with a description
    rather than without, from a passage about the entity (in the order of ``ABOUT_KINDS``) rather than another, then
    the first by document id, chunk, title before text, and offset. Importance is the highest met.
    """
    if rows is None:
        found = sql.rows(connection, _ALL)
    else:
        found = sql.rows(connection, _SOME, ("[" + ",".join(map(str, rows)) + "]",))
    gathered: dict[int, _Gathered] = {}
    document, order, title, text = -1, -1, "", ""
    for row in found:
        if row[2] != document:
            document, order = row[2], order + 1
            title, text = sql.one(connection, "SELECT title, text FROM documents WHERE row = ?", (document,))
        _gather(gathered, row, order, title if row[4] == 0 else text, text)
    return {entity: one.entity() for entity, one in gathered.items()}


def _gather(gathered: dict[int, _Gathered], row: sql.Row, order: int, named: str, text: str) -> None:
    entity, key, document, ordinal, place, start, stop, type_, importance, about, told, length, words = row
    one = gathered.get(entity)
    if one is None:
        one = gathered[entity] = _Gathered(key)
    one.places[document, place, start, stop] = named[start:stop]
    one.chunks.add((document, ordinal))
    one.importance = max(one.importance, importance)
    empty = told is None and not words
    rank = (empty, about - 1 if about else len(ABOUT_KINDS), order, ordinal, place == 1, start, stop)
    if one.best is None or rank < one.best:
        one.best = rank
        one.type = type_
        one.description = described(text, told, length, words)
