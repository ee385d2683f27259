"""Acronyms and what they stand for, where the text says so.

The matching of letters is that of Schwartz and Hearst 2003, "A simple algorithm for identifying abbreviation
definitions in biomedical text", section 3.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ecphoryrag.text.names import Span

_SHORT = re.compile(r"\(\s*(?P<short>[^\W\d_][\w.&/-]{1,9})\s*[),;]")
_LONGEST_SHORT = 10
_REACH = 160
_WORD = re.compile(r"\w[\w'’-]*")


class Acronym(NamedTuple):
    """A long form and its short form, as spans of one text."""

    long: Span
    short: Span


def find_acronyms(text: str) -> list[Acronym]:
    """Pairs of the pattern ``Long Form (LF)``; the long form may be in lower case."""
    found = []
    for match in _SHORT.finditer(text):
        short = match["short"]
        if sum(map(str.isupper, short)) < 2:
            continue
        before = text[max(0, match.start() - _REACH) : match.start()]
        words = list(_WORD.finditer(before))
        letters = sum(map(str.isalnum, short))
        words = words[-min(letters + 5, letters * 2) :]
        if not words:
            continue
        begin = _long_form(short, before, words[0].start())
        if begin is None:
            continue
        offset = match.start() - len(before)
        end = offset + len(before.rstrip())
        found.append(Acronym(Span(offset + begin, end, "name"), Span(*match.span("short"), "acronym")))
    return found


def _long_form(short: str, before: str, earliest: int) -> int | None:
    """Where the shortest text before the bracket begins that holds the short form's letters in order.

    The first letter must begin a word.
    """
    at = len(before) - 1
    for index in range(len(short) - 1, -1, -1):
        letter = short[index].lower()
        if not letter.isalnum():
            continue
        while at >= earliest and (before[at].lower() != letter or (index == 0 and at > 0 and before[at - 1].isalnum())):
            at -= 1
        if at < earliest:
            return None
        at -= 1
    begin = at + 1
    return begin if len(before.rstrip()) - begin > len(short) else None
