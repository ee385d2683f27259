"""Documents cut into chunks: whole sentences, packed within a budget of tokens, with exact offsets.

Where chunks end is a function of the text near there, and not of what was counted from its beginning, so that most of
the chunks of a changed document are those it had before."""

from __future__ import annotations

import hashlib
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from ecphoryrag.text.sentences import split_sentences
from ecphoryrag.text.tokens import count_tokens, fitting
from ecphoryrag.types import Chunk, Document, Heading

if TYPE_CHECKING:
    from ecphoryrag.settings import ChunkSettings

_LEAST_SHARE = 0.25
"""A chunk has at least this share of what it may have, so that a document of many short sections or paragraphs does not
fall into crumbs. The more places a chunk may end at, the sooner chunks are the same again after a change."""
_FIRST_WORDS, _FIRST_CHARACTERS = 3, 32
"""By its first words a sentence is told from others: most changes of a sentence leave them as they are."""
_HEADING, _PARAGRAPH, _SENTENCE, _INSIDE = range(4)
"""What begins where a chunk may end, the best place first; ``_INSIDE``: the rest of an overlong sentence."""
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
    worth: tuple[int, bytes, bytes]
    """How good a place it is to begin a chunk, the least being the best."""


def chunk_document(document: Document, settings: ChunkSettings) -> tuple[Chunk, ...]:
    """The chunks of the document in order; none if its text is blank.

    Each holds at most ``settings.budget`` tokens by ``count_tokens``. A document within the budget is one chunk. Where
    a longer one is cut is chosen by its text near there: before a heading rather than a paragraph rather than a
    sentence, and of those before the one whose words have the least hash, so that a change of the text changes the
    chunks near it alone. A chunk that does not begin with a heading repeats the last sentences of the one before. A
    sentence beyond the budget is cut between words, or between letters if it has no spaces. A chunk stands under the
    headings that all its sentences share, and is no heading alone if text can go with it.
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
    pending, before = 0, 0
    for start, end, heading in _sections(document):
        if heading:
            while above and above[-1].level >= heading.level:
                above.pop()
            above.append(heading)
            path = tuple(" ".join(one.text.split()) for one in above)
        for sentence in split_sentences(text[start:end]):
            first, last = start + sentence.start, start + sentence.end
            tokens = count_tokens(sentence.text)
            rank = _PARAGRAPH if text.count("\n", before, first) > 1 else _SENTENCE
            before = last
            # The rule under a heading ("====") belongs to it.
            is_heading = heading is not None or (pending > 0 and not any(map(str.isalnum, sentence.text)))
            if is_heading and pending + tokens <= budget * _HEADING_SHARE:
                pending += tokens
                yield _Unit(first, last, tokens, True, path, _worth(_HEADING, sentence.text))
                continue
            for piece_start, piece_end, cost in _cut(text, (first, last, tokens), budget - pending, budget):
                worth = _worth(rank, text[piece_start:piece_end])
                yield _Unit(piece_start, piece_end, cost, False, path, worth)
                rank = _INSIDE
            pending = 0


def _worth(rank: int, text: str) -> tuple[int, bytes, bytes]:
    words = " ".join(text[: _FIRST_CHARACTERS * 2].split(None, _FIRST_WORDS)[:_FIRST_WORDS])[:_FIRST_CHARACTERS]
    return rank, _hash(words), _hash(text)


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


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
    ends = list(accumulate((unit.tokens for unit in units), initial=0))
    if ends[-1] <= budget:
        return [(0, len(units))] if units else []
    places = _places(units, ends, budget)
    packed: list[tuple[int, int]] = []
    before, fresh = 0, 0
    while fresh < len(units):
        repeats = overlap if fresh and not units[fresh].heading else 0
        last = places.after(fresh, budget - repeats)
        room = min(repeats, budget - (ends[last] - ends[fresh]))
        packed.append((_overlapped(units, before, fresh, room), last))
        before, fresh = fresh, last
    return packed


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a chunk may end: before these units, the last of them being none."""

    units: list[int]
    worth: list[tuple[int, bytes, bytes]]
    """Of each, the least being the best; that of the end is not looked at."""
    ends: list[int]
    """Tokens of all units before each."""

    def after(self, fresh: int, limit: int) -> int:
        """Where the chunk ends that begins with the unit ``fresh`` and may have so many tokens of its own.

        It looks ahead no farther than the limit and one unit, so that chunks are the same again soon after a change.
        """
        whole, begun = self.ends[-1], self.ends[fresh]
        if whole - begun <= limit:
            return self.units[-1]
        first = bisect_right(self.units, fresh)
        beyond = bisect_right(self.units, begun + limit, lo=first, key=self.ends.__getitem__)
        if beyond == first:
            return self.units[first]
        least = limit * _LEAST_SHARE
        low = bisect_left(self.units, begun + least, lo=first, hi=beyond, key=self.ends.__getitem__)
        high = bisect_right(self.units, whole - least, lo=low, hi=beyond, key=self.ends.__getitem__)
        if low == high:
            return self.units[beyond - 1]
        # Of equals the last: in a text that repeats itself chunks are as long as they may be.
        return self.units[min(range(high - 1, low - 1, -1), key=self.worth.__getitem__)]


def _places(units: list[_Unit], ends: list[int], budget: int) -> _Places:
    """A heading goes with the text below it, and one that has none with the text above it, if that fits."""
    last = len(units)
    while last and units[last - 1].heading:
        last -= 1
    text = max(last - 1, 0)
    while text and units[text - 1].heading:
        text -= 1
    together = ends[-1] - ends[text] <= budget
    places = [at for at in range(1, len(units)) if not units[at - 1].heading and not (together and at == last)]
    return _Places([*places, len(units)], [units[at].worth for at in places], ends)


def _overlapped(units: list[_Unit], before: int, fresh: int, room: int) -> int:
    """Where a chunk begins that has ``fresh`` for its first own unit: so many of the last sentences as fit ``room``.

    None of them is the first of the chunk ``before``, or beyond a heading.
    """
    begin, taken = fresh, 0
    while begin - 1 > before and not units[begin - 1].heading:
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
