"""Which entity each mention is one of, once the decisions about names are followed.

Nothing of this is stored: what is committed for a document depends on that document alone, and decisions are followed
when arrays are built and entities are shown. Splits come first, in the order in which they were made, and work on
mentions; merges then join what there is, as a union, in whatever order they were made.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import apsw

from ecphoryrag.decisions import Decided, Decision, Spot
from ecphoryrag.store import sql
from ecphoryrag.store.decisions import in_force, read_decisions
from ecphoryrag.store.filters import Filter, Filterable
from ecphoryrag.store.kept_json import read_metadata
from ecphoryrag.store.rows import Texts
from ecphoryrag.store.spots import Standing, find_spot
from ecphoryrag.types import Mention

_MENTIONS = """
SELECT m.chunk, m.number, e.key, d.row, d.id, m.field, m.start, m.stop
FROM mentions m JOIN entities e ON e.row = m.entity JOIN chunks c ON c.row = m.chunk
JOIN documents d ON d.row = c.document WHERE m.entity IN (SELECT value FROM json_each(?)) ORDER BY m.chunk, m.number
"""
_COUNTS = """
SELECT e.key, count(*) FROM mentions m JOIN entities e ON e.row = m.entity
WHERE m.entity IN (SELECT value FROM json_each(?)) GROUP BY e.key
"""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The entities shown, and what leads to them. A *stem* is a name's key, or the key of what a split made."""

    keys: Sequence[str]
    """Of the entities shown, sorted."""
    shown: Mapping[str, int]
    """Position in ``keys`` of each stem that has mentions, or is merged with one that has."""
    lead: Mapping[str, int]
    """Names beside the keys that lead to an entity in a question: what is merged in it, and what a split left empty."""
    moved: Mapping[tuple[int, int], str]
    """By (chunk row, mention number) the stem of each mention that a split has moved."""
    splits: Sequence[_Split]
    names: Mapping[int, tuple[str, ...]]
    """Of each entity that decisions have changed, the keys by which texts name it, sorted."""
    labels: Mapping[str, str]
    """What is shown behind the name, by the stem that a split made."""
    stems: Mapping[str, int]
    """Every stem that has mentions; of those that decisions speak of, how many."""
    effects: Mapping[int, Decided]
    """By its number what each decision does."""

    def stem(self, chunk: int, number: int, key: str) -> str:
        """What this mention of the name with this key is one of, before merging."""
        return self.moved.get((chunk, number), key)

    def position(self, chunk: int, number: int, key: str) -> int:
        """The entity that this mention is one of."""
        return self.shown[self.stem(chunk, number, key)]

    def resolved(self, chunk: int, mentions: Sequence[Mention]) -> list[Mention]:
        """All mentions of the chunk in this row, in their order, with the keys of the entities that they are of."""
        keys = [self.keys[self.position(chunk, number, one.key)] for number, one in enumerate(mentions)]
        return [one if one.key == key else replace(one, key=key) for one, key in zip(mentions, keys, strict=True)]

    def in_document(self, connection: apsw.Connection, key: str, document: int) -> int | None:
        """The entity that a name without a mention of its own leads to in the document of this row; None for none."""
        stem = key
        for split in self.splits:
            if stem in split.decision.keys and split.takes_document(connection, document):
                stem = split.into
        return self.shown.get(stem)

    @property
    def split_keys(self) -> frozenset[str]:
        """Keys of names of which a split may take mentions."""
        return frozenset(key for split in self.splits for key in split.decision.keys)


class _Split:
    """A split that is followed: which documents and mentions it takes."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.into = decision.into or ""
        self._filter = None if decision.where is None else Filter(decision.where)
        self._documents = frozenset(decision.documents)
        self._passed: dict[int, bool] = {}

    def takes_document(self, connection: apsw.Connection, row: int) -> bool:
        """Whether it takes every mention in the document of this row."""
        if row not in self._passed:
            query = "SELECT id, title, source, metadata FROM documents WHERE row = ?"
            id_, title, source, metadata = sql.one(connection, query, (row,))
            passed = id_ in self._documents
            if not passed and self._filter is not None:
                passed = self._filter(Filterable(id_, title, source, read_metadata(metadata)))
            self._passed[row] = passed
        return self._passed[row]


@dataclass(slots=True)
class _Met:
    """A mention of a name that a split may take."""

    chunk: int
    number: int
    document: int
    """Row."""
    id: str
    standing: Standing
    stem: str


def read_resolution(connection: apsw.Connection) -> Resolution | None:
    """What the decisions in force make of the mentions; None if there are none. Raises StoreDamaged."""
    decisions = in_force(read_decisions(connection))
    return resolution_of(connection, decisions) if decisions else None


def resolution_of(connection: apsw.Connection, decisions: Sequence[Decision]) -> Resolution:
    """What these decisions make of the mentions that are there."""
    splits = [_Split(one) for one in decisions if one.kind == "split"]
    names = [key for (key,) in sql.rows(connection, "SELECT key FROM entities")]
    moved, effects = _moved(connection, splits, set(names)) if splits else ({}, {})
    stems, sources = _stems(connection, names, moved, {key for one in decisions for key in one.keys})
    merged = _merged(decisions, stems)
    keys = sorted({merged.get(stem, stem) for stem in stems})
    at = {key: position for position, key in enumerate(keys)}
    shown = {stem: at[merged.get(stem, stem)] for stem in stems}
    shown |= {stem: at[key] for stem, key in merged.items()}
    changed: dict[int, set[str]] = defaultdict(set)
    for stem in {*merged, *sources}:
        if stem in stems:
            changed[shown[stem]] |= sources.get(stem, {stem})
    effects |= {one.number: _merging(one, stems, merged) for one in decisions if one.kind == "merge"}
    return Resolution(
        keys=keys,
        shown=shown,
        lead=_lead(shown, at, splits, stems, sources),
        moved={place: stem for place, (stem, _) in moved.items()},
        splits=splits,
        names={position: tuple(sorted(found)) for position, found in sorted(changed.items())},
        labels=_labels(splits),
        stems=stems,
        effects=effects,
    )


def name_rows(connection: apsw.Connection, keys: Iterable[str]) -> list[int]:
    """The rows of these names, those that there are. One by one: a key may hold what JSON in SQL would cut."""
    query = "SELECT row FROM entities WHERE key = ?"
    found = (sql.value(connection, query, (key,)) for key in sorted(keys))
    return [row for row in found if row is not None]


_Moved = dict[tuple[int, int], tuple[str, str]]
"""By (chunk row, mention number) the stem that a mention is one of now, and the key of its name."""


def _moved(connection: apsw.Connection, splits: Sequence[_Split], names: set[str]) -> tuple[_Moved, dict[int, Decided]]:
    wanted = name_rows(connection, {key for split in splits for key in split.decision.keys} & names)
    met = [
        _Met(chunk, number, document, id_, Standing(key, place, start, stop), key)
        for chunk, number, key, document, id_, place, start, stop in list(
            sql.rows(connection, _MENTIONS, (json.dumps(wanted),))
        )
    ]
    spots = _spotted(connection, splits, met)
    effects: dict[int, Decided] = {}
    for split, meant in zip(splits, spots, strict=True):
        places = {place for place in meant.values() if place is not None}
        taken = [
            one
            for one in met
            if one.stem in split.decision.keys
            and ((one.id, one.standing) in places or split.takes_document(connection, one.document))
        ]
        for one in taken:
            one.stem = split.into
        effects[split.decision.number] = _splitting(split.decision, {(one.id, one.standing) for one in taken}, meant)
    return {(m.chunk, m.number): (m.stem, m.standing.key) for m in met if m.stem != m.standing.key}, effects


_Meant = dict[Spot, tuple[str, Standing] | None]
"""Document id and mention that each spot means."""


def _splitting(decision: Decision, taken: set[tuple[str, Standing]], meant: _Meant) -> Decided:
    within = {id_ for id_, _ in taken}
    idle = [f"document {id_}" for id_ in decision.documents if id_ not in within]
    idle += [f"mention at {s.start} of document {s.document}" for s in decision.spots if meant[s] not in taken]
    return Decided(decision, len(taken), tuple(idle))


def _merging(decision: Decision, stems: Mapping[str, int], merged: Mapping[str, str]) -> Decided:
    moved = sum(stems.get(key, 0) for key in decision.keys if merged.get(key) != key)
    return Decided(decision, moved, tuple(f"name {key}" for key in decision.keys if key not in stems))


def _spotted(connection: apsw.Connection, splits: Sequence[_Split], met: Iterable[_Met]) -> list[_Meant]:
    """Of each split the mentions that its spots mean."""
    found: list[_Meant] = [dict.fromkeys(split.decision.spots) for split in splits]
    standing: dict[str, set[Standing]] = defaultdict(set)
    for one in met:
        standing[one.id].add(one.standing)
    for id_ in sorted({spot.document for split in splits for spot in split.decision.spots} & standing.keys()):
        places = sorted(standing[id_])
        texts = Texts(*sql.one(connection, "SELECT title, text FROM documents WHERE id = ?", (id_,)))
        for meant in found:
            for spot in meant:
                if spot.document == id_:
                    place = find_spot(spot, places, texts)
                    meant[spot] = None if place is None else (id_, place)
    return found


def _stems(
    connection: apsw.Connection, names: Iterable[str], moved: _Moved, decided: set[str]
) -> tuple[dict[str, int], dict[str, set[str]]]:
    """The stems that have mentions, with how many those decided on have; and of those made by splits their names."""
    stems = dict.fromkeys(names, 1)
    away = Counter(key for _, key in moved.values())
    stems.update(sql.rows(connection, _COUNTS, (json.dumps(name_rows(connection, decided | away.keys())),)))
    for key, count in away.items():
        stems[key] -= count
    sources: dict[str, set[str]] = defaultdict(set)
    for stem, key in moved.values():
        stems[stem] = stems.get(stem, 0) + 1
        sources[stem].add(key)
    return {stem: count for stem, count in stems.items() if count}, dict(sources)


def _merged(decisions: Sequence[Decision], stems: Mapping[str, int]) -> dict[str, str]:
    """For each merged stem the one that is shown, where any of them has a mention.

    The one that the last of the merges has chosen to show; where none has, the one with most mentions, then the first.
    """
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    merges = [one for one in decisions if one.kind == "merge"]
    for one in merges:
        first, *rest = (root(key) for key in one.keys)
        for other in rest:
            parent[root(other)] = root(first)
    groups: dict[str, list[str]] = defaultdict(list)
    for key in sorted(parent):
        groups[root(key)].append(key)
    chosen = {root(one.into): one.into for one in merges if one.into is not None}
    merged: dict[str, str] = {}
    for name, members in groups.items():
        if any(key in stems for key in members):
            most = min(members, key=lambda key: (-stems.get(key, 0), key))
            merged |= dict.fromkeys(members, chosen.get(name, most))
    return merged


def _lead(
    shown: Mapping[str, int],
    at: Mapping[str, int],
    splits: Sequence[_Split],
    stems: Mapping[str, int],
    sources: Mapping[str, set[str]],
) -> dict[str, int]:
    lead = {stem: position for stem, position in shown.items() if stem not in at}
    for split in splits:
        if split.into in shown:
            said = split.into.replace("(", "").replace(")", "")
            if said not in stems:
                lead.setdefault(said, shown[split.into])
    for stem in sorted(sources):
        if stem in shown:
            for key in sorted(sources[stem]):
                if key not in shown:
                    lead.setdefault(key, shown[stem])
    return lead


def _labels(splits: Sequence[_Split]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for split in splits:
        base = split.into[: split.into.rindex(" (")]
        labels.setdefault(split.into, f"{labels.get(base, '')} ({split.decision.qualifier})")
    return labels
