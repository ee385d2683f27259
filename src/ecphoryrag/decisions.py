"""What a user has decided about names: which are one thing, and which mentions of one name are another thing.

A decision is made of stable things alone: keys of names, ids of documents, and words around a mention, as checksums.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ecphoryrag.types import Field, JsonValue

DecisionKind: TypeAlias = Literal["merge", "split"]


@dataclass(frozen=True, slots=True)
class Spot:
    """One mention, told again after its document has changed: by the words around it, then by where it stood."""

    document: str
    """Id."""
    key: str
    """Of the name that stands there."""
    field: Field
    start: int
    before: str
    """Checksums of the few words before it, so that no text of the document is kept here."""
    after: str


@dataclass(frozen=True, slots=True)
class Decision:
    """A merge: these names are one thing. A split: the mentions of these names that it selects are another thing.

    A split selects by documents, by a filter on their metadata, and by single mentions; one of these is enough.
    """

    kind: DecisionKind
    keys: tuple[str, ...]
    """Sorted. Of names, and of entities that earlier splits made."""
    into: str | None = None
    """Merge: the key of the name to show, if one was chosen. Split: the key of the entity that it makes."""
    qualifier: str = ""
    """Split: what tells the new entity from its namesakes, as it is shown in brackets."""
    documents: tuple[str, ...] = ()
    """Sorted ids."""
    where: Mapping[str, JsonValue] | None = None
    spots: tuple[Spot, ...] = ()
    reason: str = ""
    undone: bool = False
    number: int = 0
    """By which it is undone; 0 before it is recorded. No part of what is exported."""

    @property
    def content(self) -> str:
        """Equal for decisions that say the same, whatever their number."""
        return json.dumps(self.record(), sort_keys=True)

    def record(self) -> dict[str, JsonValue]:
        """As an export holds it."""
        where: JsonValue = None if self.where is None else dict(self.where)
        return {
            "kind": self.kind,
            "keys": [*self.keys],
            "into": self.into,
            "qualifier": self.qualifier,
            "documents": [*self.documents],
            "where": where,
            "spots": [[s.document, s.key, s.field, s.start, s.before, s.after] for s in self.spots],
            "reason": self.reason,
            "undone": self.undone,
        }


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision, and what it does at present."""

    decision: Decision
    mentions: int = 0
    """Merge: mentions that are shown under another of its names. Split: mentions that it moves. 0: without effect."""
    idle: tuple[str, ...] = ()
    """Names, documents and mentions that it speaks of and that are not there now; they count again if they come."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Mentions of a name: those that one of these selects."""

    documents: tuple[str, ...] = ()
    """Ids: every mention in these documents, later ones included."""
    where: Mapping[str, JsonValue] | None = None
    """Every mention in documents whose metadata pass, later ones included."""
    chunks: tuple[tuple[str, int], ...] = ()
    """(document id, ordinal): the mentions that stand in the text of these chunks now."""
    mentions: tuple[int, ...] = ()
    """Numbers as :meth:`ecphoryrag.Memory.mentions` gives them: these mentions."""


@dataclass(frozen=True, slots=True)
class Place:
    """A mention of an entity, numbered from 1 by document id, title before text, and offset."""

    number: int
    name: str
    key: str
    """Of this spelling."""
    document_id: str
    field: Field
    start: int
    end: int
    chunks: tuple[int, ...] = ()
    """Ordinals of the chunks whose text it stands in; of a title none."""
    context: str = ""
    """The words around it, for the reader."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two entities that may be one, and why."""

    score: float
    """0 to 1."""
    one: str
    """Name as shown; the one met more often first."""
    other: str
    one_key: str
    other_key: str
    reasons: tuple[str, ...] = field(default_factory=tuple)
