"""Mentions told again after their document has changed: by the words around them, then by where they stood."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from ecphoryrag.decisions import Spot
from ecphoryrag.store.rows import FIELDS, Texts
from ecphoryrag.text.keys import normal_words

WORDS = 4
"""On each side: enough to tell most mentions of a name apart."""
LEAST_ALIKE = 4
"""Of the twice ``WORDS`` words around, nearest first, so many must be the same: one side may be new altogether."""
WINDOW = 200
"""Characters in which these words are looked for."""
_DIGEST_BYTES = 3


class Standing(NamedTuple):
    """Where a mention stands in its document."""

    key: str
    field: int
    """Position in ``FIELDS``."""
    start: int
    stop: int


def surroundings(text: str, start: int, stop: int) -> tuple[str, str]:
    """Checksums of the words before and after ``text[start:stop]``: of the nearest one, the nearest two, and so on."""
    before = [word.norm for word in normal_words(text[max(start - WINDOW, 0) : start])][-WORDS:]
    after = [word.norm for word in normal_words(text[stop : stop + WINDOW])][:WORDS]
    return _digests(before[::-1]), _digests(after)


def _digests(words: Sequence[str]) -> str:
    nearest = (" ".join(words[: at + 1]).encode("utf-8") for at in range(len(words)))
    return " ".join(hashlib.blake2b(some, digest_size=_DIGEST_BYTES).hexdigest() for some in nearest)


def _alike(one: str, other: str) -> int:
    """How many words, nearest first, are the same; all, if the text begins or ends there for both."""
    if one == other:
        return WORDS
    pairs = zip(one.split(), other.split(), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def spot_of(document: str, standing: Standing, texts: Texts) -> Spot:
    """How this mention is told again."""
    field = FIELDS[standing.field]
    text = texts.title if field == "title" else texts.text
    before, after = surroundings(text, standing.start, standing.stop)
    return Spot(document, standing.key, field, standing.start, before, after)


def find_spot(spot: Spot, standing: Sequence[Standing], texts: Texts) -> Standing | None:
    """Which of the document's mentions is meant, if one of them is.

    Of those of this name in this field the one with most of the same words around it; of several the nearest to where
    it stood. One that stands there by chance, among other words, is not meant.
    """
    field = FIELDS.index(spot.field)
    text = texts.title if spot.field == "title" else texts.text
    best: tuple[int, int, int] | None = None
    found: Standing | None = None
    for one in standing:
        if one.key != spot.key or one.field != field:
            continue
        before, after = surroundings(text, one.start, one.stop)
        alike = _alike(before, spot.before) + _alike(after, spot.after)
        rank = (-alike, abs(one.start - spot.start), one.start)
        if alike >= LEAST_ALIKE and (best is None or rank < best):
            best, found = rank, one
    return found
