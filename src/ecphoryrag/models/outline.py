"""What the form of a text says it is about, before names are looked for: title, headings, the first sentence's subject.

Extractors share it, with a language model or without.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ecphoryrag.ports import Inputs
from ecphoryrag.text.about import find_subjects
from ecphoryrag.text.acronyms import Acronym
from ecphoryrag.text.aliases import also_known, placed, same_person, spellings
from ecphoryrag.text.keys import name_key
from ecphoryrag.text.names import Manner, Span, manner_of
from ecphoryrag.text.wordlists import DETERMINERS, GENERIC_HEADINGS
from ecphoryrag.types import AboutKind, Chunk, Document, Field, Heading, Sentence

SHORTEST_KEY = 2
FIELDS: tuple[Field, Field] = ("title", "text")
TITLE, TEXT = range(2)
"""Positions in ``FIELDS``."""
Place = tuple[int, int, int]
"""(position in ``FIELDS``, start, end)"""
Occurrence = tuple[Place, tuple[str, str]]
"""A place, and the (key, type) of the name there."""
DESCRIPTION_CHARACTERS = 300
_DEFINES = re.compile(
    r"[\"”’'»]?\s*+(?:\([^()]*\))?+,?\s*+(?:is|was|are|were|refers|means|ist|war|sind|est|sont|es|era|è|é|foi)\b"
)
_NUMBERING = re.compile(r"\s*(?:(?:\d+\.)*\d+[.)]?|[IVX]+\.|[A-Za-z][.)])\s+")
_LINKED_BY = re.compile(r"\s*+(?:\([^()]*\)\s*+)?+(?:is|are|was|were|refers?|means)\b")


@dataclass(slots=True)
class Collected:
    """What has been found of one chunk so far; lives no longer than the call that made it."""

    spans: dict[Place, tuple[str, str]] = field(default_factory=dict)
    """To (key, type)."""
    about: dict[str, AboutKind] = field(default_factory=dict)
    """Key to the first kind that held."""

    def add(self, place: Place, key: str, kind: str, about: AboutKind | None = None) -> None:
        """A name at a place; the first that is told of a place, and the first reason of a key, hold."""
        self.spans.setdefault(place, (key, kind))
        if about is not None:
            self.about.setdefault(key, about)


class Outline:
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

    def overlapping(self, start: int, end: int) -> list[Heading]:
        """The headings that the span overlaps, in order."""
        at = bisect_left(self._starts, end)
        first = bisect_left(self._starts, start)
        while first and self._ordered[first - 1].end > start:
            first -= 1
        return self._ordered[first:at]

    def nearest(self, text: str, chunk: Chunk) -> Heading | None:
        """The first heading of this text inside the chunk, else the last one before it."""
        named = self._named.get(text, [])
        at = bisect_left(named, chunk.start, key=lambda heading: heading.start)
        if at < len(named) and named[at].start < chunk.end:
            return named[at]
        return named[at - 1] if at else None

    def opening(self, chunk: Chunk, sentences: Sequence[Sentence]) -> Sentence | None:
        """The first sentence that is no heading."""
        offset = chunk.start
        return next((one for one in sentences if not self.covers(offset + one.start, offset + one.end)), None)


@dataclass(frozen=True, slots=True)
class Form:
    """What of a document is read off it once for all of its chunks."""

    document: Document
    outline: Outline
    manner: Manner


class Forms:
    """The form of the document that was asked for last: chunks of one document mostly come together."""

    def __init__(self) -> None:
        self._last: Form | None = None

    def of(self, document: Document) -> Form:
        """Its form; safe for several threads, which at worst make one twice."""
        form = self._last
        if form is None or form.document is not document:
            self._last = form = Form(document, Outline(document.headings), manner_of(document.text))
        return form


def inputs_of(form: Form, chunk: Chunk, beside: Sequence[object] = ()) -> Inputs:
    """What the outline gives to the extraction of a chunk, its text, and what is ``beside`` these, as a key."""
    headings = form.outline.overlapping(chunk.start, chunk.end)
    inside = [(one.start - chunk.start, one.end - chunk.start) for one in headings]
    elsewhere: list[tuple[int, int]] = []
    over: list[object] = []
    for text in chunk.headings:
        heading = form.outline.nearest(text, chunk)
        if heading is None or heading.start >= chunk.start:
            over.append(heading and heading.start - chunk.start)
        elif heading.end > chunk.start:  # it reaches into the chunk, which happens where one is cut: held in place
            over.append(("across", heading.start, chunk.start))
        else:
            span = (heading.start, heading.end)
            over.append((form.document.text[slice(*span)], sum(one < span for one in elsewhere)))
            elsewhere.append(span)
    told = (form.document.title, chunk.text, chunk.headings, inside, over, form.manner.capital_nouns, *beside)
    key = hashlib.blake2b(repr(told).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
    return Inputs(key, tuple(elsewhere))


def add_outline(names: Collected, document: Document, chunk: Chunk, outline: Outline) -> None:
    """The title and the headings over the chunk."""
    title = document.title.strip()
    key = name_key(title)
    if key:
        at = document.title.index(title)
        names.add((TITLE, at, at + len(title)), key, "title", "title")
    _add_headings(names, document, chunk, outline)


def _add_headings(names: Collected, document: Document, chunk: Chunk, outline: Outline) -> None:
    """The headings over the chunk, each with the span of the nearest one of that text at or before the chunk."""
    for text in chunk.headings:
        numbering = _NUMBERING.match(text)
        bare = text[numbering.end() :] if numbering else text
        key = name_key(bare)
        heading = outline.nearest(text, chunk)
        if heading is None or len(key) < SHORTEST_KEY or key in GENERIC_HEADINGS:
            continue
        start = document.text.find(bare, heading.start, heading.end)
        # A heading before the chunk that repeats the title says nothing more than the title does.
        if start >= 0 and (names.about.get(key) != "title" or chunk.start <= start < chunk.end):
            names.add((TEXT, start, start + len(bare)), key, "title", "heading")


def add_subject(names: Collected, chunk: Chunk, first: Sentence, manner: Manner) -> list[tuple[str, str]]:
    """The subject of the first sentence that is no heading, with the names it is also known by; the alias pairs."""
    spans = [span for span in map(_determined(first.text, manner), find_subjects(first.text)) if span is not None]
    if not spans:
        return []
    others = also_known(first.text, max(span.end for span in spans))
    keys = []
    offset = chunk.start + first.start
    for span in (*spans, *others):
        key = name_key(first.text[span.start : span.end])
        if len(key) >= SHORTEST_KEY:
            kind = "term" if _reads_common(first.text, span) else span.kind
            names.add((TEXT, offset + span.start, offset + span.end), key, kind, "subject")
            keys.append(key)
    for span in spans:
        keys += spellings(first.text, span) + placed(first.text, span)
    return [(keys[0], key) for key in dict.fromkeys(keys) if key != keys[0]] if keys else []


def title_aliases(names: Collected, document: Document) -> list[tuple[str, str]]:
    """The title with each subject that is the same person by another form of the name."""
    key = name_key(document.title.strip())
    if not key:
        return []
    return [(key, other) for other, kind in names.about.items() if kind == "subject" and same_person(key, other)]


def acronym_aliases(text: str, acronyms: Sequence[Acronym]) -> list[tuple[str, str]]:
    """(long, short) keys of the acronyms found in the text."""
    pairs = [(name_key(text[a.long.start : a.long.end]), name_key(text[a.short.start : a.short.end])) for a in acronyms]
    return [(long, short) for long, short in pairs if long and short and long != short]


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


def descriptions_of(
    found: Sequence[Occurrence],
    document: Document,
    chunk: Chunk,
    sentences: Sequence[Sentence],
    opening: Sentence | None,
) -> dict[str, str]:
    """Key to the sentence that defines it (``X is a ...``), else the first that names it, shortened."""
    described: dict[str, tuple[bool, Sentence]] = {}
    at = 0
    for (place, start, end), (key, _) in found:
        if place == TITLE or not chunk.start <= start < chunk.end:
            if opening is not None:
                described.setdefault(key, (False, opening))
            continue
        while at < len(sentences) - 1 and sentences[at].end <= start - chunk.start:
            at += 1
        known = described.get(key)
        if known is not None and known[0]:
            continue
        defines = _DEFINES.match(document.text, end, chunk.end) is not None
        if known is None or defines:
            described[key] = (defines, sentences[at])
    return {key: sentence.text[:DESCRIPTION_CHARACTERS] for key, (_, sentence) in described.items()}
