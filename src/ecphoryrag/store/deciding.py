"""What a user decides about names, against what the store holds now."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import apsw

from ecphoryrag.decisions import Decided, Decision, Place, Selection, Spot
from ecphoryrag.errors import DocumentNotFound, EntityNotFound, InputError
from ecphoryrag.ports import IndexedDocument
from ecphoryrag.store import sql
from ecphoryrag.store.decisions import (
    check_decision,
    in_force,
    read_decisions,
    record_all,
    record_decision,
    undo_decision,
)
from ecphoryrag.store.reembed import Connected, Writing
from ecphoryrag.store.resolving import Resolution, name_rows, read_resolution, resolution_of
from ecphoryrag.store.rows import FIELDS, Texts, no_document
from ecphoryrag.store.spots import Standing, spot_of
from ecphoryrag.text.qualified import asked_keys, split_key

CONTEXT = 60
"""Characters shown on each side of a mention."""
_MENTIONS = """
SELECT m.chunk, m.number, e.key, d.row, d.id, c.ordinal, m.field, m.start, m.stop
FROM mentions m JOIN entities e ON e.row = m.entity JOIN chunks c ON c.row = m.chunk
JOIN documents d ON d.row = c.document
WHERE m.entity IN (SELECT value FROM json_each(?)) ORDER BY d.id, m.field, m.start, m.stop, e.key, c.ordinal
"""


@dataclass(frozen=True, slots=True)
class Deciding:
    """See :class:`ecphoryrag.ports.Deciding`."""

    path: Path
    reading: Connected
    writing: Writing

    def all(self) -> list[Decided]:
        """Every decision in the order in which they were made, those undone too, with what it does now."""
        with self.reading() as connection:
            decisions = read_decisions(connection)
            found = resolution_of(connection, in_force(decisions))
        return [found.effects.get(one.number, Decided(one)) for one in decisions]

    def record(self, decisions: Iterable[Decision]) -> list[Decision]:
        """Record decisions as they are, but for those that are there, in one transaction; returns what is new.

        Names and documents they speak of need not be there. Raises InputError for one that says nothing.
        """
        wanted = list(decisions)
        for one in wanted:
            check_decision(one)
        if not wanted:
            return []
        with self.writing(moving=True) as connection:
            return record_all(connection, wanted)

    def merge(self, names: Sequence[str], into: str | None = None, reason: str = "") -> Decided:
        """Decide that these names are one thing, shown as ``into``, or else as the most frequent of them.

        Raises EntityNotFound for a name that is not known, InputError if they are one name already.
        """
        with self.writing(moving=True) as connection:
            known = _Known(connection)
            keys = {known.stem(name) for name in ([*names] if into is None else [*names, into])}
            shown = None if into is None else known.stem(into)
            return _recorded(connection, Decision("merge", tuple(sorted(keys)), shown, reason=reason))

    def split(self, name: str, qualifier: str, selection: Selection, reason: str = "") -> Decided:
        """Decide that the selected mentions of the name are of another thing, told apart by the qualifier.

        Raises EntityNotFound for a name or mention that is not known, DocumentNotFound, and InputError for a
        qualifier without a word, an empty selection or a malformed filter.
        """
        with self.writing(moving=True) as connection:
            known = _Known(connection)
            stem = known.stem(name)
            made = split_key(stem, qualifier)
            if made is None:
                raise InputError(f"the qualifier {qualifier!r} holds no word: say in a word or two what is meant")
            documents = tuple(sorted(set(selection.documents)))
            _check_documents(connection, self.path, [*documents, *(id_ for id_, _ in selection.chunks)])
            decision = Decision(
                "split",
                tuple(known.together(stem)),
                made,
                " ".join(qualifier.split()),
                documents,
                selection.where,
                tuple(_spots(connection, known, name, selection)),
                reason,
            )
            return _recorded(connection, decision)

    def undo(self, number: int) -> Decision:
        """Undo a decision. Raises EntityNotFound if none of this number is in force."""
        with self.writing(moving=True) as connection:
            return undo_decision(connection, number)

    def places(self, name: str) -> list[Place]:
        """The mentions of the entity of this name, numbered. Raises EntityNotFound."""
        with self.reading() as connection:
            return _places(connection, _Known(connection), name)

    def resolved(self, indexed: IndexedDocument) -> IndexedDocument:
        """The document with the keys of the entities that its mentions are of."""
        with self.reading() as connection:
            resolution = read_resolution(connection)
            if resolution is None:
                return indexed
            query = "SELECT c.row FROM chunks c JOIN documents d ON d.row = document WHERE id = ? ORDER BY ordinal"
            rows = [row for (row,) in sql.rows(connection, query, (indexed.document.id,))]
            if len(rows) != len(indexed.chunks):
                raise DocumentNotFound(
                    f"The document {indexed.document.id!a} was changed while it was read; try again."
                )
            found = [
                replace(one, mentions=tuple(resolution.resolved(row, one.mentions)))
                for row, one in zip(rows, indexed.extractions, strict=True)
            ]
        return replace(indexed, extractions=tuple(found))


class _Known:
    """The entities that are there, by name."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.resolution = read_resolution(connection)

    def stem(self, name: str) -> str:
        """The stem that a name means. Raises EntityNotFound."""
        for key in asked_keys(name):
            resolution = self.resolution
            if resolution is None:
                if name_rows(self._connection, (key,)):
                    return key
            elif key in resolution.shown:
                return key
            elif key in resolution.lead:
                return resolution.keys[resolution.lead[key]]
        raise EntityNotFound(
            f"No entity is known by the name {name!r}; `ecphory entities` lists those there are. Nothing was changed."
        )

    def together(self, stem: str) -> list[str]:
        """All stems that are one entity with this one, sorted."""
        if self.resolution is None:
            return [stem]
        shown = self.resolution.shown
        return sorted({key for key, at in shown.items() if at == shown[stem]} | {stem})

    def names(self, stem: str) -> list[int]:
        """Rows of the names by which texts call the entity of this stem."""
        if self.resolution is None:
            return name_rows(self._connection, (stem,))
        at = self.resolution.shown[stem]
        return name_rows(self._connection, {*self.resolution.names.get(at, ()), self.resolution.keys[at]})

    def holds(self, stem: str, chunk: int, number: int, key: str) -> bool:
        """Whether this mention is one of the entity of this stem."""
        found: Resolution | None = self.resolution
        return found is None or found.position(chunk, number, key) == found.shown[stem]


def _recorded(connection: apsw.Connection, decision: Decision) -> Decided:
    check_decision(decision)
    made = record_decision(connection, decision)
    found = resolution_of(connection, in_force(read_decisions(connection)))
    return found.effects[made.number]


def _check_documents(connection: apsw.Connection, path: Path, ids: Iterable[str]) -> None:
    query = "SELECT 1 FROM documents WHERE id = ?"
    missing = [id_ for id_ in dict.fromkeys(ids) if sql.row(connection, query, (id_,)) is None]
    if missing:
        raise no_document(path, missing)


def _spots(connection: apsw.Connection, known: _Known, name: str, selection: Selection) -> list[Spot]:
    """The single mentions that are selected, by chunk or by number."""
    if not selection.chunks and not selection.mentions:
        return []
    places = _places(connection, known, name)
    chosen: set[int] = set()
    for id_, ordinal in selection.chunks:
        inside = {one.number for one in places if one.document_id == id_ and ordinal in one.chunks}
        if not inside:
            raise EntityNotFound(
                f"The text of chunk {ordinal} of document {id_!r} holds no mention of {name!r}; `ecphory entities "
                "--name NAME` lists them. Nothing was changed."
            )
        chosen |= inside
    for number in selection.mentions:
        if not 1 <= number <= len(places):
            raise EntityNotFound(f"{name!r} has {len(places)} mentions, and none of number {number}.")
        chosen.add(number)
    spots = set()
    for number in chosen:
        place = places[number - 1]
        texts = _texts(connection, place.document_id)
        standing = Standing(place.key, FIELDS.index(place.field), place.start, place.end)
        spots.add(spot_of(place.document_id, standing, texts))
    return sorted(spots, key=lambda spot: (spot.document, spot.field, spot.start, spot.key))


def _texts(connection: apsw.Connection, id_: str) -> Texts:
    return Texts(*sql.one(connection, "SELECT title, text FROM documents WHERE id = ?", (id_,)))


def _places(connection: apsw.Connection, known: _Known, name: str) -> list[Place]:
    stem = known.stem(name)
    chunks: dict[tuple[str, Standing], list[int]] = defaultdict(list)
    rows = json.dumps(known.names(stem))
    for chunk, number, key, _, id_, ordinal, place, start, stop in list(sql.rows(connection, _MENTIONS, (rows,))):
        if known.holds(stem, chunk, number, key):
            found = chunks[id_, Standing(key, place, start, stop)]
            if FIELDS[place] == "text" and ordinal not in found:
                found.append(ordinal)
    places: list[Place] = []
    document, texts = None, Texts("", "")
    for number, ((id_, standing), ordinals) in enumerate(chunks.items(), start=1):
        if id_ != document:
            document, texts = id_, _texts(connection, id_)
        field = FIELDS[standing.field]
        text = texts.title if field == "title" else texts.text
        places.append(
            Place(
                number,
                text[standing.start : standing.stop],
                standing.key,
                id_,
                field,
                standing.start,
                standing.stop,
                tuple(ordinals),
                text[max(standing.start - CONTEXT, 0) : standing.stop + CONTEXT],
            )
        )
    return places
