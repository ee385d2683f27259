"""What is shown of entities, derived from their mentions, whatever the order in which documents came."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import apsw

from ecphoryrag.snapshot import ABOUT_KINDS
from ecphoryrag.store import sql
from ecphoryrag.store.resolving import Resolution, name_rows, read_resolution
from ecphoryrag.store.rows import described
from ecphoryrag.types import Entity

_SELECT = """
SELECT e.key, c.document, c.ordinal, m.field, m.start, m.stop, m.type, m.importance, m.about, m.told, m.length,
    m.description, m.chunk, m.number
FROM mentions m JOIN chunks c ON c.row = m.chunk JOIN documents d ON d.row = c.document
    JOIN entities e ON e.row = m.entity
"""
_ORDER = "ORDER BY d.id, c.ordinal, m.number"
_SOME = f"{_SELECT} WHERE m.entity IN (SELECT value FROM json_each(?)) {_ORDER}"  # noqa: S608 - constants only
_ALL = _SELECT + _ORDER

_Spot = tuple[int, int, int, int]
"""Document row, field, start, end."""


@dataclass(slots=True)
class _Gathered:
    key: str
    label: str = ""
    places: dict[_Spot, str] = field(default_factory=dict)
    own: set[_Spot] = field(default_factory=set)
    """Where it is met by the name that is shown; the others are merged in it."""
    chunks: set[tuple[int, int]] = field(default_factory=set)
    importance: int = 0
    best: tuple[bool, int, int, int, bool, int, int] | None = None
    type: str = ""
    description: str = ""

    def entity(self) -> Entity:
        spellings = Counter(self.places.values())
        names = sorted(spellings, key=lambda name: (-spellings[name], name))
        name = names[0]
        if len(self.own) not in (0, len(self.places)):
            shown = Counter(self.places[place] for place in self.own)
            name = min(shown, key=lambda name: (-shown[name], name))
        return Entity(
            key=self.key,
            name=name + self.label,
            type=self.type,
            description=self.description,
            importance=self.importance,
            aliases=tuple(names),
            mention_count=len(self.places),
            chunk_count=len(self.chunks),
        )


def read_entities(
    connection: apsw.Connection, resolution: Resolution | None, keys: Sequence[str] | None
) -> dict[str, Entity]:
    """Entities by their keys, as decisions about names make them; all of them for None.

    The name is the most frequent spelling (of equally frequent ones the first in code point order), counted once a
    place even if chunks overlap there; of merged names that of the one that is shown, if it has mentions. Type and
    description come from the mention that defines: with a description rather than without, from a passage about the
    entity (in the order of ``ABOUT_KINDS``) rather than another, then the first by document id, chunk, title before
    text, and offset. Importance is the highest met.
    """
    if keys is None:
        found = sql.rows(connection, _ALL)
    else:
        names = set(keys)
        if resolution is not None:
            names.update(name for key in keys for name in resolution.names.get(resolution.shown[key], ()))
        found = sql.rows(connection, _SOME, (json.dumps(name_rows(connection, names)),))
    gathered: dict[str, _Gathered] = {}
    document, order, title, text = -1, -1, "", ""
    for row in found:
        name = key = row[0]
        if resolution is not None:
            name = resolution.stem(row[12], row[13], key)
            key = resolution.keys[resolution.shown[name]]
        if row[1] != document:
            document, order = row[1], order + 1
            title, text = sql.one(connection, "SELECT title, text FROM documents WHERE row = ?", (document,))
        one = gathered.get(key)
        if one is None:
            one = gathered[key] = _Gathered(key)
            if resolution is not None:
                one.label = resolution.labels.get(key, "")
        _gather(one, row, order, title if row[3] == 0 else text, text)
        if name == key:
            one.own.add((row[1], row[3], row[4], row[5]))
    wanted = gathered.keys() if keys is None else gathered.keys() & set(keys)
    return {key: gathered[key].entity() for key in wanted}


def read_all_entities(connection: apsw.Connection) -> list[Entity]:
    """All entities in the order of the snapshot."""
    found = read_entities(connection, read_resolution(connection), None)
    return [found[key] for key in sorted(found)]


def _gather(one: _Gathered, row: sql.Row, order: int, named: str, text: str) -> None:
    _, document, ordinal, place, start, stop, type_, importance, about, told, length, words, *_ = row
    one.places[document, place, start, stop] = named[start:stop]
    one.chunks.add((document, ordinal))
    one.importance = max(one.importance, importance)
    empty = told is None and not words
    rank = (empty, about - 1 if about else len(ABOUT_KINDS), order, ordinal, place == 1, start, stop)
    if one.best is None or rank < one.best:
        one.best = rank
        one.type = type_
        one.description = described(text, told, length, words)
