"""Names in running text of scripts with capitals, found by their form alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ecphoryrag.text.scripts import marks, uppers
from ecphoryrag.text.wordlists import DETERMINERS, EDGE_WORDS, LINK_WORDS, word_set


class Span(NamedTuple):
    """A name found in a text: ``text[start:end]``, and the class it can honestly be given."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Manner:
    """How a document writes: what its capitals can be trusted for."""

    lower_words: frozenset[str]
    """Words that it writes in lower case somewhere."""
    capital_nouns: bool
    """Every noun has a capital, as in German."""


_LINK = re.compile(r"\s(?:of|and|the|for|in|on|und|et|y|e|&)\s")
_ANY_LINK = re.compile(rf"\s(?:{LINK_WORDS})\s")
"""Where nouns have capitals, a small word between two of them joins no name: ``Leitung von Theodor Fischer``."""
_SHORT_PART = 3
_OPENING = 16
"""A sentence's first word begins within so many characters: list marks and quotes may stand before it."""
_LONGEST_RUN = 11
"""Words of a run beyond the first; text in capitals throughout would otherwise be one name."""
_CAPITAL_NOUNS_SHARE = 0.22
"""Share of capitalised words among those that do not begin a sentence, above which nouns must be capitalised too, if
determiners of German stand before them. English encyclopedias reach as much by names alone, hence the second test."""
_DETERMINED_SHARE = 0.04
_DETERMINERS_SEEN = 3
"""With fewer different ones the text is not German, and need not be counted through."""


@cache
def _run_pattern(capitals: str, marks_inside: str) -> re.Pattern[str]:
    inside = f"[\\w{marks_inside}]"
    rest = f"{inside}*(?:['’.&-]{inside}+)*[.-]?"
    link = f"(?:\\s+(?:{LINK_WORDS}))"
    # The pattern begins with a set, which the engine skips to; what must not stand before it is looked at afterwards.
    first = f"[{capitals}0-9](?<!\\w\\w)(?:(?<![0-9]){rest}|(?<=[0-9])\\d{{3}})"
    return re.compile(f"{first}(?:{link}{{0,2}}\\s+(?:[{capitals}]{rest}|\\d+(?!\\w))){{0,{_LONGEST_RUN}}}")


_LETTERS = re.compile(r"[^\W\d_]+")
_ASCII_LOWER = re.compile("[a-z]+")


def manner_of(text: str) -> Manner:
    """How the text writes, read off all of it once."""
    if text.isascii():
        # The tails of capitalised words are among these; they are no words, so nothing is mistaken for them.
        lower = frozenset(_ASCII_LOWER.findall(text))
    else:
        lower = frozenset(word for word in _LETTERS.findall(text) if word.islower())
    return Manner(lower, len(lower & DETERMINERS) >= _DETERMINERS_SEEN and _has_capital_nouns(text))


def _has_capital_nouns(text: str) -> bool:
    words = _LETTERS.findall(text)
    capitals = sum(word[0].isupper() for word in words)
    determined = sum(word in DETERMINERS for word in words)
    return capitals > _CAPITAL_NOUNS_SHARE * len(words) and determined > _DETERMINED_SHARE * len(words)


def find_runs(sentence: str, manner: Manner, offset: int = 0) -> list[Span]:
    """Runs of capitalised words with the small words inside them, and the parts of a run that small words join.

    A word whose capital may be owed to the beginning of the sentence alone is no name by itself. In a text whose nouns
    all have capitals, one word after a determiner is only a ``noun``. ``offset`` is added to every position.
    """
    found: list[Span] = []
    pattern = _run_pattern("A-Z", "") if sentence.isascii() else _run_pattern(uppers(), marks())
    for match in pattern.finditer(sentence):
        start, end = match.span()
        first = start < _OPENING and not sentence[:start].strip(_BEFORE_FIRST)
        bounds = _without_edges(sentence, start, end, EDGE_WORDS if first else _SMALL_LEADING)
        if bounds is None:
            continue
        name = sentence[slice(*bounds)]
        words = name.split()
        if len(words) == 1:
            if name[0].isdigit() or (first and bounds[0] == start and name.lower() in manner.lower_words):
                continue
            noun = manner.capital_nouns and _is_determined(sentence, bounds[0])
            found.append(Span(bounds[0] + offset, bounds[1] + offset, "noun" if noun else _kind(name)))
            continue
        found.append(Span(bounds[0] + offset, bounds[1] + offset, "name"))
        if not _LINKING.isdisjoint(words):
            parts = _parts(sentence, *bounds, _ANY_LINK if manner.capital_nouns else _LINK)
            found += [Span(part.start + offset, part.end + offset, part.kind) for part in parts]
    return found


def opener(sentence: str) -> str | None:
    """The first word in lower case if it may owe its capital to the beginning: the one :func:`find_runs` looks up."""
    start = len(sentence) - len(sentence.lstrip(_BEFORE_FIRST))
    word = _LETTERS.match(sentence, start) if start < _OPENING else None
    return word[0].lower() if word is not None and not word[0].islower() else None


_BEFORE_FIRST = "\"'“”‘’«»([{*_#>-–— \t\n"
_LINKING = word_set(LINK_WORDS.replace("|", " "))
_WORD = re.compile(r"\S+")


def _without_edges(text: str, start: int, end: int, leading: frozenset[str]) -> tuple[int, int] | None:
    """The run less small words at its ends and a possessive ending; None if nothing is left."""
    name = text[start:end]
    if name.isalnum():
        return None if name.lower() in EDGE_WORDS else (start, end)
    tokens = name.split()
    if tokens[0].lower() in leading or tokens[-1] in _TRAILING or len(tokens) == 1:
        words = [word.span() for word in _WORD.finditer(text, start, end)]
        while words and text[slice(*words[0])].lower() in (EDGE_WORDS if len(words) == 1 else leading):
            words = words[1:]
        while words and text[slice(*words[-1])] in _TRAILING:
            words = words[:-1]
        if not words:
            return None
        start, end = words[0][0], words[-1][1]
    while end > start and text[end - 1] in ".,'’-" and not _INITIALS.search(text, start, end):
        end -= 1
    if end - start > 2 and text[end - 1] == "s" and text[end - 2] in "'’":
        end -= 2
    return (start, end) if start < end else None


_SMALL_LEADING = frozenset(("the", "a", "an", "and", "but", "or", "of", "in", "he", "she", "it", "they", "his", "her"))
"""Never the beginning of a name inside a sentence; at its beginning no word of ``EDGE_WORDS`` is."""
_TRAILING = frozenset(("The", "In", "He", "She", "It", "This", "His", "Her", "They"))
_INITIALS = re.compile(r"(?:^|[\s.])[^\W\d_]\.[^\W\d_]\.$")
_ACRONYM = re.compile(r"[A-Z]{2,6}s?")


def _kind(name: str) -> str:
    return "acronym" if name[:2].isupper() and name.isascii() and _ACRONYM.fullmatch(name) else "name"


def _is_determined(text: str, start: int) -> bool:
    """Whether the word before is in lower case and a determiner, or an adjective that agrees with one."""
    before = text[max(0, start - 20) : start].split()
    return (
        bool(before)
        and before[-1].islower()
        and (before[-1] in DETERMINERS or before[-1].endswith(("en", "e", "er", "es", "em")))
    )


def _parts(text: str, start: int, end: int, link: re.Pattern[str]) -> list[Span]:
    cuts = list(link.finditer(text, start, end))
    if not cuts:
        return []
    edges = [start, *(edge for cut in cuts for edge in cut.span()), end]
    found = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        bounds = _without_edges(text, first, last, _SMALL_LEADING)
        name = text[slice(*bounds)] if bounds else ""
        if bounds and len(name) > _SHORT_PART and not name.isdigit():
            noun = link is _ANY_LINK and name.isalnum() and _is_determined(text, bounds[0])
            found.append(Span(*bounds, "noun" if noun else _kind(name)))
    return found
