"""Text as it is given to the lexical index, whose tokenizer knows only spaces and punctuation."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise

from ecphoryrag.text.scripts import APOSTROPHES, HAN, JOINERS, UNSPACED, marks

_POSSESSIVE = re.compile(f"(?<=\\w)[{APOSTROPHES}][sS](?!\\w)")
_NEGATION = re.compile(f"(?<=[nN])[{APOSTROPHES}](?=[tT](?!\\w))")
_APOSTROPHE = re.compile(f"(?<=\\w)[{APOSTROPHES}](?=\\w)")
_LATIN_MARK = re.compile("[\u0300-\u036f]")


@cache
def _run_pattern() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}][{UNSPACED}{marks()}{JOINERS}]*")


@cache
def _sign_pattern() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}][{marks()}{JOINERS}]*")


def segment(text: str) -> str:
    """The text with every term between spaces or punctuation, for FTS5's ``unicode61`` with marks kept in words.

    Scripts without spaces become overlapping pairs of signs, Han characters also single ones, since a Chinese word
    may be one character (Nie et al. 2000: unigrams and bigrams together). Possessive endings go, ``n't`` closes up,
    other apostrophes part words (``L'Oréal``). Diacritics of Latin, Greek and Cyrillic letters go; marks of other
    scripts are part of the word and stay. Questions and passages must both pass through here.
    """
    if "'" in text or not text.isascii():
        text = _POSSESSIVE.sub("", text)
        text = _NEGATION.sub("", text)
        text = _APOSTROPHE.sub(" ", text)
    if text.isascii():
        return text
    bare = _LATIN_MARK.sub("", unicodedata.normalize("NFKD", text))
    return _run_pattern().sub(_pairs, unicodedata.normalize("NFKC", bare))


def _pairs(run: re.Match[str]) -> str:
    signs = _sign_pattern().findall(run[0])
    if len(signs) == 1:
        return f" {signs[0]} "
    terms = [left + right for left, right in pairwise(signs)]
    terms += [sign for sign in signs if _HAN_SIGN.match(sign)]
    return f" {' '.join(terms)} "


_HAN_SIGN = re.compile(f"[{HAN}]")
