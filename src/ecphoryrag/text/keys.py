"""Normalised names: the form under which two spellings of one name meet, and the words of a text in that form."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import NamedTuple

from ecphoryrag.text.scripts import APOSTROPHES, JOINERS, UNSPACED, marks

ARTICLES = frozenset(("the", "a", "an"))
LINKABLE_LETTERS = 4
"""A shorter key of a script with spaces is too likely to be an ordinary word of the text it is looked for in."""
LINKABLE_SIGNS = 2
"""The same for a script without spaces, in which a sign is a syllable or a word."""
_CACHED_WORDS = 1 << 14


class Word(NamedTuple):
    """A word of a text in its normalised form; offsets into the original. A tuple, as texts hold many of them."""

    norm: str
    start: int
    end: int


@cache
def _word_pattern() -> re.Pattern[str]:
    """Initials with dots as one word, or a run of word characters; a possessive ending is matched and left out."""
    sign = f"[^\\W_{APOSTROPHES}]"
    letter = f"[^\\W\\d_{APOSTROPHES}]"
    inside = f"(?:{sign}|[{marks()}{JOINERS}])"
    initials = f"(?<!\\w){letter}\\.(?:[ \u00a0]?{letter}\\.)+(?!\\w)"
    plain = f"(?:{sign}+|[{marks()}{JOINERS}]+)+"
    return re.compile(f"({initials}|{plain})(?:[{APOSTROPHES}][sS](?!{inside}))?")


@cache
def _ascii_pattern() -> re.Pattern[str]:
    initials = r"(?<![A-Za-z0-9_])[A-Za-z]\.(?: ?[A-Za-z]\.)+(?![A-Za-z0-9_])"
    return re.compile(rf"({initials}|[A-Za-z0-9]+)(?:['`][sS](?![A-Za-z0-9]))?")


@cache
def _part_pattern() -> re.Pattern[str]:
    """A sign of a script without spaces with its marks (or a syllable of Korean letters), or a run of other signs."""
    mark = f"[{marks()}{JOINERS}\uff9e\uff9f]"
    syllable = "[\u1100-\u115f][\u1160-\u11a7]+[\u11a8-\u11ff]*"
    return re.compile(f"{syllable}|[{UNSPACED}]{mark}*|[^{UNSPACED}]+")


def normal_words(text: str) -> list[Word]:
    """The words of the text, normalised as :func:`name_key` normalises the words of a name.

    The key of a name is its words' ``norm`` joined by single spaces, so a name is found in running text as a run of
    consecutive words. In scripts without spaces every sign is a word of its own. Offsets are those of the original,
    whatever normalising does to the length; a sign that normalises to several words (``½``) gives them one span.
    """
    if text.isascii():
        return [
            Word(match[1].lower() if "." not in match[1] else _initials(match[1]), match.start(1), match.end(1))
            for match in _ascii_pattern().finditer(text)
        ]
    words: list[Word] = []
    for match in _word_pattern().finditer(text):
        surface, start = match[1], match.start(1)
        if surface.isascii():
            norm = surface.lower() if "." not in surface else _initials(surface)
            words.append(Word(norm, start, match.end(1)))
        else:
            words += [Word(norm, start + first, start + last) for norm, first, last in _parts(surface)]
    return words


@lru_cache(_CACHED_WORDS)
def name_key(name: str) -> str:
    """The key of a name; "" only for a blank one.

    Compatibility forms and case are folded (NFKC, case folding); a leading English article, possessive endings, and
    bracketed qualifiers after the name go; punctuation separates words. If nothing is left, as for the band ``!!!``,
    the folded name itself is the key.
    """
    if name.isascii() and name.replace(" ", "").isalnum():
        plain = name.lower().split()
        return " ".join(plain[1:] if len(plain) > 1 and plain[0] in ARTICLES else plain)
    words = normal_words(name)
    if "(" in name or "（" in name:
        words = _without_qualifiers(name, words)
    if len(words) > 1 and words[0].norm in ARTICLES and name[words[0].end].isspace():
        words = words[1:]
    if words:
        return " ".join([word.norm for word in words])
    folded = " ".join(_fold(name).split())
    return " ".join([word.norm for word in normal_words(folded)]) or folded


def is_linkable(key: str) -> bool:
    """Whether a key is long enough to be looked for in running text without meeting ordinary words all the time."""
    bare = key.replace(" ", "")
    return len(bare) >= (LINKABLE_LETTERS if bare.isascii() or not _is_unspaced(bare) else LINKABLE_SIGNS)


def _is_unspaced(text: str) -> bool:
    return re.match(f"[{UNSPACED}]", text) is not None


def _initials(surface: str) -> str:
    return surface.replace(".", "").replace(" ", "").lower()


@lru_cache(_CACHED_WORDS)
def _parts(surface: str) -> tuple[tuple[str, int, int], ...]:
    """(norm, start, end) of the words that a run of word characters consists of."""
    if "." in surface:
        pieces = [(re.sub("[. \u00a0]", "", surface), 0, len(surface))]
    else:
        pieces = [(match[0], match.start(), match.end()) for match in _part_pattern().finditer(surface)]
    found: list[tuple[str, int, int]] = []
    for piece, start, end in pieces:
        folded = _fold(piece)
        # Folding may bring out signs that do not belong to words, such as the fraction stroke of ½.
        found += [(norm, start, end) for norm in re.findall(f"(?:[^\\W_]|[{marks()}])+", folded)]
    return tuple(found)


def _fold(text: str) -> str:
    """NFKC and case folding, until nothing changes; invisible joiners go, and Arabic spelling variants are levelled."""
    before = ""
    folded = text
    while folded != before:
        before = folded
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
    folded = re.sub(f"[{JOINERS}]", "", folded)
    return _fold_arabic(folded) if _ARABIC.search(folded) else folded


_ARABIC = re.compile("[\u0620-\u06ff]")
_ARABIC_OPTIONAL = re.compile("[\u0640\u064b-\u065f\u0670]")
_ARABIC_FORMS = str.maketrans("أإآٱىیکة", "اااايي\u0643ه")
_ARABIC_PREFIX = re.compile("^(?:(?:[وفبك]?ال|لل)(?=\\w{3}))+")


def _fold_arabic(word: str) -> str:
    """Vowel signs and stretching off, forms of alef, ya, kaf and ta marbuta levelled, the attached article off.

    The steps of the field's light stemmers (Larkey, Ballesteros and Connell 2007, "light8" prefixes), less those that
    would cut a bare conjunction, which many names begin with.
    """
    bare = _ARABIC_OPTIONAL.sub("", word).translate(_ARABIC_FORMS)
    return _ARABIC_PREFIX.sub("", bare)


def _without_qualifiers(name: str, words: list[Word]) -> list[Word]:
    """Less the words in round brackets that follow a word and end one: not ``(500) Days``, not ``Ca(OH)2``."""
    spans: list[tuple[int, int]] = []
    depth, opened = 0, 0
    for position, sign in enumerate(name):
        if sign in "(（":
            depth += 1
            if depth == 1:
                opened = position
        elif sign in ")）" and depth:
            depth -= 1
            after = name[position + 1 : position + 2]
            if not depth and not after.isalnum():
                spans.append((opened, position))
    kept = words
    for opened, closed in spans:
        if any(word.end <= opened for word in kept):
            kept = [word for word in kept if word.end <= opened or word.start > closed]
    return kept
