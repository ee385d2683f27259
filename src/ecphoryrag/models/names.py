"""The extractor ``names``: deterministic, without a model, from the form of the text alone."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ecphoryrag.text.about import find_subjects
from ecphoryrag.text.aliases import also_known, placed, same_person, spellings
from ecphoryrag.text.keys import name_key
from ecphoryrag.text.mentions import Found, find_names
from ecphoryrag.text.names import Manner, Span, manner_of
from ecphoryrag.text.sentences import split_sentences
from ecphoryrag.text.wordlists import DETERMINERS, GENERIC_HEADINGS
from ecphoryrag.types import AboutKind, Chunk, Document, Extraction, Field, Heading, Mention, Sentence, Usage

VERSION = 2
_DESCRIPTION_CHARACTERS = 300
_SHORTEST_KEY = 2
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
_FIELDS: tuple[Field, Field] = ("title", "text")
_TITLE, _TEXT = range(2)
_Occurrence = tuple[tuple[int, int, int], tuple[str, str]]
_PASSING, _REPEATED, _ABOUT = 2, 4, 5
_DEFINES = re.compile(
    r"[\"”’'»]?\s*+(?:\([^()]*\))?+,?\s*+(?:is|was|are|were|refers|means|ist|war|sind|est|sont|es|era|è|é|foi)\b"
)
_NUMBERING = re.compile(r"\s*(?:(?:\d+\.)*\d+[.)]?|[IVX]+\.|[A-Za-z][.)])\s+")
_LINKED_BY = re.compile(r"\s*+(?:\([^()]*\)\s*+)?+(?:is|are|was|were|refers?|means)\b")


@dataclass(slots=True)
class _Names:
    """What has been found of one chunk so far; lives no longer than the call that made it."""

    spans: dict[tuple[int, int, int], tuple[str, str]] = field(default_factory=dict)
    """(position in ``_FIELDS``, start, end) to (key, type)."""
    about: dict[str, AboutKind] = field(default_factory=dict)
    """Key to the first kind that held."""

    def add(self, place: tuple[int, int, int], key: str, kind: str, about: AboutKind | None = None) -> None:
        self.spans.setdefault(place, (key, kind))
        if about is not None:
            self.about.setdefault(key, about)


class NamesExtractor:
    """Names, what each chunk is about, and other spellings that the text gives, by rules (port ``Extractor``)."""

    @property
    def identity(self) -> str:
        """Name and version; the version grows whenever the output for some text changes."""
        return f"names/{VERSION}"

    @property
    def model(self) -> None:
        """None: no language model is called."""

    @property
    def parallel(self) -> int:
        """1: it is work of this processor."""
        return 1

    def estimate(self, document: Document, chunks: Sequence[Chunk]) -> Usage:
        """Nothing: no model is called."""
        del document, chunks
        return Usage()

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> list[Extraction]:
        """One extraction a chunk, in order, its mentions by field and offset. Pure; raises nothing."""
        manner = manner_of(document.text)
        outline = _Outline(document.headings)
        return [_extract(document, chunk, manner, outline) for chunk in chunks]


class _Outline:
    """The headings of a document, for look-up by position and by text."""

    def __init__(self, headings: Sequence[Heading]) -> None:
        self._ordered = sorted(headings, key=lambda heading: heading.start)
        self._starts = [heading.start for heading in self._ordered]
        self._named: dict[str, list[Heading]] = {}
        for heading in self._ordered:
            self._named.setdefault(" ".join(heading.text.split()), []).append(heading)

    def covers(self, start: int, end: int) -> bool:
        """Whether the span overlaps a heading."""
        at = bisect_left(self._starts, end)
        return at > 0 and self._ordered[at - 1].end > start

    def nearest(self, text: str, chunk: Chunk) -> Heading | None:
        """The first heading of this text inside the chunk, else the last one before it."""
        named = self._named.get(text, [])
        at = bisect_left(named, chunk.start, key=lambda heading: heading.start)
        if at < len(named) and named[at].start < chunk.end:
            return named[at]
        return named[at - 1] if at else None


def _extract(document: Document, chunk: Chunk, manner: Manner, outline: _Outline) -> Extraction:
    sentences = split_sentences(chunk.text)
    found = find_names(chunk.text, sentences, manner)
    names = _Names()
    title = document.title.strip()
    title_key = name_key(title)
    if title_key:
        at = document.title.index(title)
        names.add((_TITLE, at, at + len(title)), title_key, "title", "title")
    _add_headings(names, document, chunk, outline)
    first = _opening(chunk, sentences, outline)
    aliases = _add_subject(names, chunk, first, manner) if first is not None else []
    for span in found.spans:
        key = name_key(chunk.text[span.start : span.end])
        if len(key) >= _SHORTEST_KEY:
            names.add((_TEXT, chunk.start + span.start, chunk.start + span.end), key, span.kind)
    if first is not None:
        _add_first_name(names, document, chunk, first)
    _add_frequent(names)
    aliases += _acronyms(chunk.text, found)
    if title_key:
        aliases += [
            (title_key, key) for key, kind in names.about.items() if kind == "subject" and same_person(title_key, key)
        ]
    return Extraction(_mentions(names, document, chunk, sentences, first), tuple(dict.fromkeys(aliases)))


def _add_headings(names: _Names, document: Document, chunk: Chunk, outline: _Outline) -> None:
    """The headings over the chunk, each with the span of the nearest one of that text at or before the chunk."""
    for text in chunk.headings:
        numbering = _NUMBERING.match(text)
        bare = text[numbering.end() :] if numbering else text
        key = name_key(bare)
        heading = outline.nearest(text, chunk)
        if heading is None or len(key) < _SHORTEST_KEY or key in GENERIC_HEADINGS:
            continue
        start = document.text.find(bare, heading.start, heading.end)
        # A heading before the chunk that repeats the title says nothing more than the title does.
        if start >= 0 and (names.about.get(key) != "title" or chunk.start <= start < chunk.end):
            names.add((_TEXT, start, start + len(bare)), key, "title", "heading")


def _add_subject(names: _Names, chunk: Chunk, first: Sentence, manner: Manner) -> list[tuple[str, str]]:
    """The subject of the first sentence that is no heading, with the names it is also known by; the alias pairs."""
    spans = [span for span in map(_determined(first.text, manner), find_subjects(first.text)) if span is not None]
    if not spans:
        return []
    others = also_known(first.text, max(span.end for span in spans))
    keys = []
    offset = chunk.start + first.start
    for span in (*spans, *others):
        key = name_key(first.text[span.start : span.end])
        if len(key) >= _SHORTEST_KEY:
            kind = "term" if _reads_common(first.text, span) else span.kind
            names.add((_TEXT, offset + span.start, offset + span.end), key, kind, "subject")
            keys.append(key)
    for span in spans:
        keys += spellings(first.text, span) + placed(first.text, span)
    return [(keys[0], key) for key in dict.fromkeys(keys) if key != keys[0]] if keys else []


def _add_first_name(names: _Names, document: Document, chunk: Chunk, first: Sentence) -> None:
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
    return place[0] == _TITLE or name[1:] != name[1:].lower() or name[:1].lower() == name[:1].upper()


def _opening(chunk: Chunk, sentences: Sequence[Sentence], outline: _Outline) -> Sentence | None:
    """The first sentence that is no heading."""
    offset = chunk.start
    return next((one for one in sentences if not outline.covers(offset + one.start, offset + one.end)), None)


def _determined(text: str, manner: Manner) -> Callable[[Span], Span | None]:
    """A filter of subjects: one common noun names nothing (``The film stars``), nor in German one with an article."""

    def apply(span: Span) -> Span | None:
        words = text[span.start : span.end].split()
        if manner.capital_nouns and words[0].lower() in DETERMINERS:
            span = (
                Span(span.start + text[span.start : span.end].index(words[1]), span.end, span.kind)
                if words[1:]
                else span
            )
            words = words[1:]
            return span if len(words) > 1 else None
        return None if len(words) == 1 and words[0].islower() else span

    return apply


def _reads_common(text: str, span: Span) -> bool:
    """Whether it is in lower case and the sentence does not define it."""
    return text[span.start : span.end].islower() and not _LINKED_BY.match(text, span.end)


def _add_frequent(names: _Names) -> None:
    counts = Counter(key for key, kind in names.spans.values() if kind in _NAMED)
    needed = _FREQUENT_BESIDE if names.about else _FREQUENT
    best = max(counts.values(), default=0)
    if best >= needed:
        key = next(key for key, kind in names.spans.values() if kind in _NAMED and counts[key] == best)
        names.about.setdefault(key, "frequent")


def _acronyms(text: str, found: Found) -> list[tuple[str, str]]:
    pairs = [
        (name_key(text[a.long.start : a.long.end]), name_key(text[a.short.start : a.short.end])) for a in found.acronyms
    ]
    return [(long, short) for long, short in pairs if long and short and long != short]


def _mentions(
    names: _Names, document: Document, chunk: Chunk, sentences: Sequence[Sentence], opening: Sentence | None
) -> tuple[Mention, ...]:
    found = sorted(names.spans.items())
    counts = Counter(key for _, (key, _) in found)
    descriptions = _descriptions(found, document, chunk, sentences, opening)
    mentions = []
    for (place, start, end), (key, kind) in found:
        name = (document.title if place == _TITLE else document.text)[start:end]
        about = names.about.get(key)
        importance = _importance(name, kind, counts[key], about)
        shown = "term" if kind == "noun" else kind
        description = descriptions.pop(key, "")
        mentions.append(Mention(name, key, start, end, _FIELDS[place], shown, description, importance, about))
    return tuple(mentions)


def _importance(name: str, kind: str, count: int, about: AboutKind | None) -> int:
    if about is not None:
        return _REPEATED if about == "frequent" else _ABOUT
    usual = _IMPORTANCE[kind]
    if count > 1 and kind not in {"number", "noun", "date"}:
        return min(usual + 1, _REPEATED)
    return min(usual, _PASSING) if len(name.split()) == 1 and kind == "name" else usual


def _descriptions(
    found: Sequence[_Occurrence],
    document: Document,
    chunk: Chunk,
    sentences: Sequence[Sentence],
    opening: Sentence | None,
) -> dict[str, str]:
    """Key to the sentence that defines it (``X is a ...``), else the first that names it, shortened."""
    described: dict[str, tuple[bool, Sentence]] = {}
    at = 0
    for (place, start, end), (key, _) in found:
        if place == _TITLE or not chunk.start <= start < chunk.end:
            if opening is not None:
                described.setdefault(key, (False, opening))
            continue
        while at < len(sentences) - 1 and sentences[at].end <= start - chunk.start:
            at += 1
        known = described.get(key)
        if known is not None and known[0]:
            continue
        defines = _DEFINES.match(document.text, end) is not None
        if known is None or defines:
            described[key] = (defines, sentences[at])
    return {key: sentence.text[:_DESCRIPTION_CHARACTERS] for key, (_, sentence) in described.items()}
