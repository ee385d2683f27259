"""Character classes of the world's scripts, as the insides of regular-expression brackets.

Python's ``\\w`` leaves out combining marks, without which words of Hindi, Thai or Arabic fall apart; and scripts that
write no spaces between words (or, like Korean, glue particles to them) have to be cut differently from the others.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HIRAGANA = "\u3041-\u3096\u309d-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
LAO = "\u0e81-\u0ece\u0edc-\u0edf"
KHMER = "\u1780-\u17d3\u17d7\u17dc\u17dd"
MYANMAR = "\u1000-\u103f\u1050-\u109f"
UNSPACED = HAN + HIRAGANA + KATAKANA + HANGUL + THAI + LAO + KHMER + MYANMAR
"""Scripts in which a name cannot be told from the words around it by spaces."""
SOUTHEAST_ASIAN = THAI + LAO + KHMER + MYANMAR
"""Of these, those that mark no sentence ends either (or seldom)."""

JOINERS = "\u00ad\u200c\u200d\u2060\ufeff"
"""Invisible characters inside words: soft hyphen, (non-)joiners, word joiner, stray byte-order mark."""
APOSTROPHES = "'\u2019\u2018\uff07\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u0060\u00b4"
"""All that is typed for an apostrophe; some of them are letters to Unicode."""

_LAST_MARK_PLANE = 0x1FFFF


@cache
def marks() -> str:
    """All combining marks (categories Mn, Mc, Me) known to this Python, as ranges; about 10 ms at the first call."""
    found: list[str] = []
    code, end = 0x300, _LAST_MARK_PLANE
    while code <= end:
        if unicodedata.category(chr(code))[0] != "M":
            code += 1
            continue
        first = code
        while unicodedata.category(chr(code + 1))[0] == "M":
            code += 1
        found.append(chr(first) if first == code else f"{chr(first)}-{chr(code)}")
        code += 1
    return "".join(found) + "\U000e0100-\U000e01ef"


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


def is_unspaced(text: str) -> bool:
    """Whether a character of a script without word spaces is in the text."""
    return not text.isascii() and _unspaced().search(text) is not None


@cache
def uppers() -> str:
    """All capital letters (categories Lu, Lt) known to this Python, as ranges; about 10 ms at the first call."""
    found: list[str] = []
    code = 0x41
    while code <= _LAST_MARK_PLANE:
        if unicodedata.category(chr(code)) not in _UPPER:
            code += 1
            continue
        first = code
        while unicodedata.category(chr(code + 1)) in _UPPER:
            code += 1
        found.append(chr(first) if first == code else f"{chr(first)}-{chr(code)}")
        code += 1
    return "".join(found)


_UPPER = ("Lu", "Lt")
