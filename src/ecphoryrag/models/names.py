"""The extractor ``names``: deterministic, without a model, from the form of the text alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ecphoryrag.models.outline import (
    FIELDS,
    SHORTEST_KEY,
    TEXT,
    TITLE,
    Collected,
    Forms,
    Outline,
    acronym_aliases,
    add_outline,
    add_subject,
    descriptions_of,
    inputs_of,
    title_aliases,
)
from ecphoryrag.ports import Inputs
from ecphoryrag.text.keys import name_key
from ecphoryrag.text.mentions import find_names
from ecphoryrag.text.names import Manner, opener
from ecphoryrag.text.sentences import split_sentences
from ecphoryrag.types import AboutKind, Chunk, Document, Extraction, Mention, Sentence, Usage

VERSION = 3
_FREQUENT = 2
"""A name repeated so often is what the chunk is about, if nothing else says what that is."""
_FREQUENT_BESIDE = 3
"""The same where the chunk has a title, heading or subject."""
_NAMED = frozenset({"name", "title", "quoted", "acronym"})
_IMPORTANCE = {
    "number": 1,
    "noun": 1,
    "date": 2,
    "term": 2,
    "identifier": 3,
    "title": 3,
    "quoted": 3,
    "acronym": 3,
    "name": 3,
}
_PASSING, _REPEATED, _ABOUT = 2, 4, 5


class NamesExtractor:
    """Names, what each chunk is about, and other spellings that the text gives, by rules (port ``Extractor``)."""

    def __init__(self) -> None:
        self._forms = Forms()

    @property
    def identity(self) -> str:
        """Name and version; the version grows whenever the output for some text changes."""
        return f"names/{VERSION}"

    @property
    def model(self) -> None:
        """None: no language model is called."""

    @property
    def basis(self) -> str:
        """That there is nothing to estimate."""
        return "no language model is called"

    @property
    def parallel(self) -> int:
        """1: it is work of this processor."""
        return 1

    def halt(self) -> None:
        """There is nothing to wait for."""

    def resume(self) -> None:
        """There was nothing to halt."""

    def estimate(self, document: Document, chunks: Sequence[Chunk]) -> Usage:
        """Nothing: no model is called."""
        del document, chunks
        return Usage()

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> list[Extraction]:
        """One extraction a chunk, in order, its mentions by field and offset. Pure; raises nothing."""
        form = self._forms.of(document)
        return [_extract(document, chunk, form.manner, form.outline) for chunk in chunks]

    def inputs(self, document: Document, chunks: Sequence[Chunk]) -> list[Inputs]:
        """The chunk, the outline over it, and which words at the beginnings of its sentences the document writes small.

        See :class:`ecphoryrag.ports.Comparable`.
        """
        form = self._forms.of(document)
        return [inputs_of(form, chunk, [_openers(chunk, form.manner)]) for chunk in chunks]


def _openers(chunk: Chunk, manner: Manner) -> list[str]:
    found = {opener(sentence.text) for sentence in split_sentences(chunk.text)}
    return sorted(word for word in found if word is not None and word in manner.lower_words)


def _extract(document: Document, chunk: Chunk, manner: Manner, outline: Outline) -> Extraction:
    sentences = split_sentences(chunk.text)
    found = find_names(chunk.text, sentences, manner)
    names = Collected()
    first = outline.opening(chunk, sentences)
    add_outline(names, document, chunk, outline)
    aliases = [] if first is None else add_subject(names, chunk, first, manner)
    for span in found.spans:
        key = name_key(chunk.text[span.start : span.end])
        if len(key) >= SHORTEST_KEY:
            names.add((TEXT, chunk.start + span.start, chunk.start + span.end), key, span.kind)
    if first is not None:
        _add_first_name(names, document, chunk, first)
    _add_frequent(names)
    aliases += acronym_aliases(chunk.text, found.acronyms)
    aliases += title_aliases(names, document)
    return Extraction(_mentions(names, document, chunk, sentences, first), tuple(dict.fromkeys(aliases)))


def _add_first_name(names: Collected, document: Document, chunk: Chunk, first: Sentence) -> None:
    """Where nothing names what the chunk is about, the first name of its first sentence does, subject or not.

    Passages from the middle of a text begin ``In 1983 the Foo Company moved`` or ``She met Ada Lovelace``.
    """
    if any(key in names.about and _is_proper(document, place) for place, (key, _) in names.spans.items()):
        return
    start, end = chunk.start + first.start, chunk.start + first.end
    named = [place for place, (_, kind) in names.spans.items() if kind in _NAMED and start <= place[1] < end]
    if named:
        names.about.setdefault(names.spans[min(named)][0], "subject")


def _is_proper(document: Document, place: tuple[int, int, int]) -> bool:
    """Whether the name is a title, or has a capital (or a letter without case) that no beginning of a sentence gave."""
    name = document.text[place[1] : place[2]]
    return place[0] == TITLE or name[1:] != name[1:].lower() or name[:1].lower() == name[:1].upper()


def _add_frequent(names: Collected) -> None:
    counts = Counter(key for key, kind in names.spans.values() if kind in _NAMED)
    needed = _FREQUENT_BESIDE if names.about else _FREQUENT
    best = max(counts.values(), default=0)
    if best >= needed:
        key = next(key for key, kind in names.spans.values() if kind in _NAMED and counts[key] == best)
        names.about.setdefault(key, "frequent")


def _mentions(
    names: Collected, document: Document, chunk: Chunk, sentences: Sequence[Sentence], opening: Sentence | None
) -> tuple[Mention, ...]:
    found = sorted(names.spans.items())
    counts = Counter(key for _, (key, _) in found)
    descriptions = descriptions_of(found, document, chunk, sentences, opening)
    mentions = []
    for (place, start, end), (key, kind) in found:
        name = (document.title if place == TITLE else document.text)[start:end]
        about = names.about.get(key)
        importance = _importance(name, kind, counts[key], about)
        shown = "term" if kind == "noun" else kind
        description = descriptions.pop(key, "")
        mentions.append(Mention(name, key, start, end, FIELDS[place], shown, description, importance, about))
    return tuple(mentions)


def _importance(name: str, kind: str, count: int, about: AboutKind | None) -> int:
    if about is not None:
        return _REPEATED if about == "frequent" else _ABOUT
    usual = _IMPORTANCE[kind]
    if count > 1 and kind not in {"number", "noun", "date"}:
        return min(usual + 1, _REPEATED)
    return min(usual, _PASSING) if len(name.split()) == 1 and kind == "name" else usual
