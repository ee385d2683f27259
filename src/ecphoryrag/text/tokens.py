"""The size of a text in tokens, estimated without a tokenizer: the unit of the chunk budget."""

from __future__ import annotations

import re

from ecphoryrag.text.scripts import HANGUL

_PART = 100
_COSTS = {
    "lower": (100, 5, 13),
    "capital": (100, 2, 22),
    "upper": (100, 1, 60),
    "one": (100, 1, 0),
    "accented": (90, 1, 90),
    "cyrillic": (60, 0, 17),
    "hangul": (170, 1, 170),
    "other": (105, 1, 105),
    "astral": (400, 1, 400),
}
"""Hundredths of a token: a run of signs of one kind costs the first, and each sign beyond the second the third.

Fitted to the counts of the tokenizer that the default encoder ships (LLaMA 2's, 32,000 pieces);
``docs/decisions/012-token-estimate.md`` has the errors."""

_PIECE = re.compile(
    "(?P<lower>[a-z]+)|(?P<capital>[A-Z][a-z]+)|(?P<upper>[A-Z]+)|(?P<one>[!-@\\[-`{-~])"
    "|(?P<accented>[\u00c0-\u024f\u1e00-\u1eff]+)|(?P<cyrillic>[\u0400-\u052f]+)"
    f"|(?P<hangul>[{HANGUL}]+)|(?P<astral>[\U00010000-\U0010ffff]+)|(?P<other>[^\\s])"
)

_WINDOW = 8
"""Characters that a token hardly exceeds: how far to look for the end of what fits, before looking further."""


def count_tokens(text: str) -> int:
    """Tokens of the text, estimated; 0 only for a blank text.

    Deterministic, linear in the length, and never more for a whole than for its words one by one: a text packed of
    pieces stays within a budget that the pieces' sum stays within.
    """
    parts = 0
    for match in _PIECE.finditer(text):
        base, free, each = _COSTS[match.lastgroup or "other"]
        parts += base + max(0, match.end() - match.start() - free) * each
    return -(-parts // _PART)


def fitting(text: str, start: int, end: int, budget: int) -> int:
    """The largest ``stop`` up to ``end`` with ``count_tokens(text[start:stop]) <= budget``.

    Time follows the length of what fits, also where one word goes on for megabytes.
    """
    width = _WINDOW * max(budget, 1)
    while (window := start + width) < end:
        stop = _fitting_within(text, start, window, budget)
        if stop < window:
            return stop
        width *= 2
    return _fitting_within(text, start, end, budget)


def _fitting_within(text: str, start: int, end: int, budget: int) -> int:
    room = budget * _PART
    for match in _PIECE.finditer(text, start, end):
        base, free, each = _COSTS[match.lastgroup or "other"]
        cost = base + max(0, match.end() - match.start() - free) * each
        if cost > room:
            if room < base:
                return match.start()
            return min(match.end(), match.start() + free + (room - base) // each)
        room -= cost
    return end
