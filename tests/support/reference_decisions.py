"""The oracle of decisions about names: what they make of a list of documents, slowly and plainly."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ecphoryrag.decisions import Decision
from ecphoryrag.ports import IndexedDocument
from ecphoryrag.snapshot import ABOUT_KINDS
from ecphoryrag.store.rows import FIELDS, Texts
from ecphoryrag.store.spots import Standing, find_spot
from ecphoryrag.types import Mention
from tests.support.reference_snapshot import reference_snapshot


class Reference:
    """All that a store with these documents and decisions must show."""

    def __init__(self, documents: Iterable[IndexedDocument], decisions: Sequence[Decision]) -> None:
        self.documents = sorted(documents, key=lambda one: one.document.id)
        self.splits = [one for one in decisions if one.kind == "split" and not one.undone]
        self.merges = [one for one in decisions if one.kind == "merge" and not one.undone]
        self.met = [
            (row, indexed, ordinal, mention, self.stem(indexed, mention))
            for row, (indexed, ordinal) in enumerate(self.rows())
            for mention in indexed.extractions[ordinal].mentions
        ]
        self.counts = Counter(stem for *_, stem in self.met)
        self.key = {stem: self.shown(stem) for stem in self.counts}
        self.keys = sorted(set(self.key.values()))

    def rows(self) -> Iterable[tuple[IndexedDocument, int]]:
        return ((indexed, at) for indexed in self.documents for at in range(len(indexed.chunks)))

    def takes(self, split: Decision, indexed: IndexedDocument, mention: Mention | None) -> bool:
        document = indexed.document
        if document.id in split.documents:
            return True
        if split.where is not None and all(document.metadata.get(name) == value for name, value in split.where.items()):
            return True
        if mention is None:
            return False
        standing = {
            Standing(one.key, FIELDS.index(one.field), one.start, one.end)
            for extraction in indexed.extractions
            for one in extraction.mentions
        }
        texts = Texts(document.title, document.text)
        here = Standing(mention.key, FIELDS.index(mention.field), mention.start, mention.end)
        spots = [one for one in split.spots if one.document == document.id]
        return any(find_spot(spot, sorted(standing), texts) == here for spot in spots)

    def stem(self, indexed: IndexedDocument, mention: Mention | None, key: str | None = None) -> str:
        stem = key if mention is None else mention.key
        assert stem is not None
        for split in self.splits:
            if stem in split.keys and self.takes(split, indexed, mention):
                assert split.into is not None
                stem = split.into
        return stem

    def group(self, stem: str) -> set[str]:
        """Grown until nothing is added."""
        found = {stem}
        while True:
            more = found.union(*(one.keys for one in self.merges if found & set(one.keys)))
            if more == found:
                return found
            found = more

    def shown(self, stem: str) -> str:
        found = self.group(stem)
        chosen = [one.into for one in self.merges if one.into is not None and one.into in found]
        return chosen[-1] if chosen else min(found, key=lambda key: (-self.counts[key], key))

    def contents(self) -> dict[str, Any]:
        """In the form of the test: sets and dictionaries by chunk and key."""
        mentions: Counter[tuple[int, str]] = Counter()
        about: dict[tuple[int, str], int] = {}
        for row, _, _, mention, stem in self.met:
            cell = (row, self.key[stem])
            mentions[cell] += 1
            if mention.about is not None:
                code = 1 + ABOUT_KINDS.index(mention.about)
                about[cell] = min(about.get(cell, code), code)
        return {
            "keys": self.keys,
            "mentions": dict(mentions),
            "about": about,
            "linked": self.linked() - set(mentions),
            "aliases": self.aliases(),
        }

    def linked(self) -> set[tuple[int, str]]:
        natural = reference_snapshot(self.documents, dimension=8)
        rows, columns = natural.linked.nonzero()
        where = list(self.rows())
        found: set[tuple[int, str]] = set()
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            stem = self.stem(where[row][0], None, natural.entity_keys[column])
            alive = self.group(stem) & set(self.counts)
            if alive:
                found.add((row, self.key[min(alive)]))
        return found

    def aliases(self) -> set[frozenset[str]]:
        names = {mention.key for _, _, _, mention, _ in self.met}
        found: set[frozenset[str]] = set()
        for row, (indexed, ordinal) in enumerate(self.rows()):
            for pair in indexed.extractions[ordinal].aliases:
                if set(pair) <= names:
                    first, second = (self.in_chunk(row, indexed, key) for key in pair)
                    found |= {frozenset((a, b)) for a in first for b in second if a != b}
        return found

    def in_chunk(self, row: int, indexed: IndexedDocument, key: str) -> set[str]:
        here = {stem for at, _, _, mention, stem in self.met if at == row and mention.key == key}
        if not here or not any(key in split.keys for split in self.splits):
            here = {self.stem(indexed, None, key)}
        return {self.key[min(alive)] for stem in here if (alive := self.group(stem) & set(self.counts))}

    def spellings(self) -> dict[str, tuple[set[str], int]]:
        """Of each entity its spellings, and in how many places it is met."""
        places: dict[str, dict[tuple[str, str, int, int], str]] = defaultdict(dict)
        for _, indexed, _, mention, stem in self.met:
            place = (indexed.document.id, mention.field, mention.start, mention.end)
            places[self.key[stem]][place] = mention.name
        return {key: (set(found.values()), len(found)) for key, found in places.items()}
