"""Documents cut into chunks: whole sentences, packed to a budget of tokens, with exact offsets."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ecphoryrag.text.sentences import split_sentences
from ecphoryrag.text.tokens import count_tokens, fitting
from ecphoryrag.types import Chunk, Document, Heading

if TYPE_CHECKING:
    from ecphoryrag.settings import ChunkSettings

_TURN_SHARE = 0.25
"""A new section begins a new chunk if the current one has reached this share of the budget; smaller sections are
packed together, lest a document of many short sections fall into crumbs."""
_HEADING_SHARE = 0.5
"""Headings without text between them are held together up to this share of the budget, for the text below them."""
_MARKS_KEPT = 16
"""A cut steps back over at most so many combining marks, to leave them with their letter."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is packed: a sentence, a part of an overlong one, or a heading."""

    start: int
    end: int
    tokens: int
    heading: bool
    path: tuple[str, ...]


def chunk_document(document: Document, settings: ChunkSettings) -> tuple[Chunk, ...]:
    """The chunks of the document in order; none if its text is blank.

    Each holds at most ``settings.budget`` tokens by ``count_tokens``. A document within the budget is one chunk. A
    chunk that had to end for the budget is overlapped by the next in whole sentences; one that ends before a heading
    is not. A sentence beyond the budget is cut between words, or between letters if it has no spaces. A chunk stands
    under the headings that all its sentences share, and is no heading alone if text can go with it.
    """
    budget, overlap = settings.budget, min(settings.overlap, (settings.budget - 1) // 2)
    units = list(_units(document, budget))
    return tuple(
        Chunk(
            document.id,
            ordinal,
            document.text[units[first].start : units[last - 1].end],
            units[first].start,
            units[last - 1].end,
            _shared_path(units[first:last]),
        )
        for ordinal, (first, last) in enumerate(_pack(units, budget, overlap))
    )


def _units(document: Document, budget: int) -> Iterator[_Unit]:
    text = document.text
    above: list[Heading] = []
    path: tuple[str, ...] = ()
    pending = 0
    for start, end, heading in _sections(document):
        if heading:
            while above and above[-1].level >= heading.level:
                above.pop()
            above.append(heading)
            path = tuple(" ".join(one.text.split()) for one in above)
        for sentence in split_sentences(text[start:end]):
            first, last = start + sentence.start, start + sentence.end
            tokens = count_tokens(sentence.text)
            # The rule under a heading ("====") belongs to it.
            is_heading = heading is not None or (pending > 0 and not any(map(str.isalnum, sentence.text)))
            if is_heading and pending + tokens <= budget * _HEADING_SHARE:
                pending += tokens
                yield _Unit(first, last, tokens, True, path)
                continue
            for piece_start, piece_end, cost in _cut(text, (first, last, tokens), budget - pending, budget):
                yield _Unit(piece_start, piece_end, cost, False, path)
            pending = 0


def _sections(document: Document) -> Iterator[tuple[int, int, Heading | None]]:
    """Spans that cover the text: the lines of headings, and what lies between them."""
    text, at = document.text, 0
    for heading in sorted(document.headings, key=lambda one: one.start):
        if heading.start < at or heading.end <= heading.start:
            continue
        line = max(at, text.rfind("\n", at, heading.start) + 1)
        yield at, line, None
        yield line, heading.end, heading
        at = heading.end
    yield at, len(text), None


def _cut(text: str, span: tuple[int, int, int], room: int, budget: int) -> Iterator[tuple[int, int, int]]:
    """(start, end, tokens) of the parts of a sentence: the first within ``room`` tokens, the others ``budget``."""
    start, end, tokens = span
    if tokens > room:
        while (stop := fitting(text, start, end, room)) < end:
            piece = _tidied(text, start, stop)
            yield start, piece, count_tokens(text[start:piece])
            start, room = piece, budget
            while text[start].isspace():
                start += 1
        tokens = count_tokens(text[start:end])
    yield start, end, tokens


def _tidied(text: str, start: int, stop: int) -> int:
    """A cut at ``stop`` moved back to a space, if there is one after ``start``, or else from a mark to its letter."""
    low = stop
    if not text[low].isspace():
        space = next((position for position in range(low - 1, start, -1) if text[position].isspace()), None)
        if space is not None:
            low = space
        else:
            marks = low
            while marks > start + 1 and low - marks < _MARKS_KEPT and unicodedata.combining(text[marks]):
                marks -= 1
            low = marks
    while low > start + 1 and text[low - 1].isspace():
        low -= 1
    return low


def _pack(units: list[_Unit], budget: int, overlap: int) -> list[tuple[int, int]]:
    """(first, last) half-open ranges of units, each within the budget."""
    if not units or sum(unit.tokens for unit in units) <= budget:
        return [(0, len(units))] if units else []
    packed: list[tuple[int, int]] = []
    first, fresh, size = 0, 0, 0
    for at, unit in enumerate(units):
        full = size + unit.tokens > budget
        turns = unit.heading and not units[at - 1].heading and size >= budget * _TURN_SHARE
        if at > fresh and (full or turns):
            last = at
            while last - 1 > fresh and units[last - 1].heading:
                last -= 1
            packed.append((first, last))
            first = last if turns else _overlapped(units, (first, last, at), min(overlap, budget - unit.tokens))
            fresh = last
            size = sum(one.tokens for one in units[first:at])
        size += unit.tokens
    if packed and all(unit.heading for unit in units[fresh:]):
        return _with_text(units, packed, budget)
    return [*packed, (first, len(units))]


def _with_text(units: list[_Unit], packed: list[tuple[int, int]], budget: int) -> list[tuple[int, int]]:
    """The chunks with the headings at the very end, which have no text below them, put to the text above if it fits."""
    first, last = packed[-1]
    if sum(unit.tokens for unit in units[first:]) <= budget:
        return [*packed[:-1], (first, len(units))]
    # The last sentence above goes over to them, unless its chunk has no other of its own.
    own = packed[-2][1] if len(packed) > 1 else 0
    others = any(not unit.heading for unit in units[own : last - 1])
    if others and not units[last - 2].heading and sum(unit.tokens for unit in units[last - 1 :]) <= budget:
        return [*packed[:-1], (first, last - 1), (last - 1, len(units))]
    return [*packed, (last, len(units))]


def _overlapped(units: list[_Unit], span: tuple[int, int, int], room: int) -> int:
    """Where the next chunk begins: so many of the last sentences before ``last`` as fit, none beyond a heading."""
    previous, last, at = span
    begin, taken = last, 0
    if last < at:
        return last
    while begin - 1 > previous and not units[begin - 1].heading:
        taken += units[begin - 1].tokens
        if taken > room:
            break
        begin -= 1
    return begin


def _shared_path(units: list[_Unit]) -> tuple[str, ...]:
    paths = [unit.path for unit in units if not unit.heading] or [unit.path for unit in units]
    shared = paths[0]
    for path in paths:
        length = 0
        while length < min(len(shared), len(path)) and shared[length] == path[length]:
            length += 1
        shared = shared[:length]
    return shared
