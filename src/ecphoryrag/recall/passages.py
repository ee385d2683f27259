"""The texts behind chunk positions, fetched once a question, and where in them names and sentences stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ecphoryrag.ports import StoredChunk, View
from ecphoryrag.text.keys import Word, normal_words
from ecphoryrag.text.sentences import split_sentences
from ecphoryrag.types import Chunk, Field, Sentence


@dataclass(frozen=True, slots=True)
class Place:
    """``getattr(document, field)[start:end] == text``."""

    text: str
    start: int
    end: int
    field: Field = "text"


class Passage:
    """A stored chunk with its mentions; sentences and words are found when asked for."""

    def __init__(
        self, stored: StoredChunk, places: Mapping[str, Sequence[Place]], linked: Mapping[str, Collection[str]]
    ) -> None:
        self.stored = stored
        self._places = places
        """Of each entity key, where its mentions are; in the text first, by offset."""
        self._linked = linked
        """Entities that the text names without a mention of their own, and the keys by which it may."""
        self._sentences: list[Sentence] | None = None
        self._words: list[Word] | None = None
        self._norms: list[str] = []

    @property
    def chunk(self) -> Chunk:
        """The chunk itself."""
        return self.stored.chunk

    @property
    def sentences(self) -> list[Sentence]:
        """Of the chunk, with offsets into the document."""
        if self._sentences is None:
            offset = self.chunk.start
            self._sentences = [
                Sentence(found.text, found.start + offset, found.end + offset)
                for found in split_sentences(self.chunk.text)
            ]
        return self._sentences

    def locate(self, keys: Iterable[str]) -> Place | None:
        """Where one of these names stands: the first name that the text holds, or else that the title does."""
        found = [place for key in keys for place in self.all_places(key)]
        return min(found, key=lambda place: place.field != "text", default=None)

    def all_places(self, key: str) -> Sequence[Place]:
        """Its mentions; of a linked name the first place that says its words."""
        if key in self._linked:
            said = [place for name in self._linked[key] if (place := self._said(name)) is not None]
            return said[:1]
        return self._places.get(key, ())

    def sentence_at(self, place: Place) -> Place | None:
        """The sentence that holds this place of the text."""
        for sentence in self.sentences:
            if sentence.start <= place.start < sentence.end:
                return Place(sentence.text, sentence.start, sentence.end)
        return None

    def most_telling(self, words: frozenset[str]) -> Place | None:
        """The sentence that holds most of these normalised words, the first of equals; None without a sentence."""
        if not self.sentences:
            return None
        held = [len(words & {word.norm for word in normal_words(sentence.text)}) for sentence in self.sentences]
        chosen = self.sentences[held.index(max(held))]
        return Place(chosen.text, chosen.start, chosen.end)

    def _said(self, key: str) -> Place | None:
        if self._words is None:
            self._words = normal_words(self.chunk.text)
            self._norms = [word.norm for word in self._words]
        wanted = key.split()
        at = -1
        for _ in range(self._norms.count(wanted[0]) if wanted else 0):
            at = self._norms.index(wanted[0], at + 1)
            if self._norms[at : at + len(wanted)] == wanted:
                start, end = self._words[at].start, self._words[at + len(wanted) - 1].end
                return Place(self.chunk.text[start:end], self.chunk.start + start, self.chunk.start + end)
        return None


def passages(view: View, positions: Iterable[int]) -> dict[int, Passage]:
    """The passages at these positions of the view's snapshot."""
    wanted = sorted(set(positions))
    found = {}
    snapshot = view.snapshot
    linked, keys = snapshot.linked, snapshot.entity_keys
    for position, stored, mentions in zip(wanted, view.chunks(wanted), view.mentions(wanted), strict=True):
        places: dict[str, list[Place]] = defaultdict(list)
        for mention in sorted(mentions, key=lambda mention: (mention.field != "text", mention.start, mention.end)):
            places[mention.key].append(Place(mention.name, mention.start, mention.end, mention.field))
        start, end = linked.indptr[position : position + 2]
        named = {keys[entity]: snapshot.names_of(entity) for entity in linked.indices[start:end].tolist()}
        found[position] = Passage(stored, places, named)
    return found
