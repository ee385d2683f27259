"""Whether two names may name one thing, by their form alone, and why; and by which marks such pairs are found."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ecphoryrag.text.wordlists import HONORIFICS, word_set

LEAST_SPELLED = 7
"""Letters of a word that may be misspelt: of shorter ones a letter more or less makes another name."""
LEAST_SKELETON = 4
"""Consonants of a word that may be written otherwise when carried over from another script."""
SUFFIXES = word_set("inc ltd llc plc corp corporation company co gmbh ag sa nv spa limited incorporated")
"""Forms of companies, which are left out as often as not."""
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth i ii iii iv v vi vii viii ix x "
    "xi xii xiii xiv xv xvi xvii xviii one two three four five six seven eight nine ten"
)
TELLING_APART = word_set(
    f"{_ORDINALS} jr sr junior senior elder younger north south east west northern southern eastern western "
    "northeastern northwestern southeastern southwestern upper lower new old great little men women boys girls "
    "male female under before after pre post anti non"
)
"""Words by which namesakes are told apart: a name with one and a name without it are of two things."""
_LETTERS = str.maketrans(
    {"ß": "ss", "ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h"}
)
_CARRIED = (
    (re.compile("tch|tsch|cz"), "ch"),
    (re.compile("sch"), "sh"),
    (re.compile("kh"), "h"),
    (re.compile("ph"), "f"),
    (re.compile("ck|q"), "k"),
    (re.compile("c(?!h)"), "k"),
    (re.compile("zh"), "j"),
    (re.compile("dj|dzh"), "j"),
    (re.compile("w|ff(?=\\b)|f(?=f?\\b)"), "v"),
    (re.compile("ts|tz"), "z"),
    (re.compile("h(?=[bcdfgjklmnpqrstvwxz]|\\b)"), ""),
    (re.compile("[aeiouyj]"), ""),
    (re.compile("(.)\\1+"), "\\1"),
)
"""What is written now this way, now that, when a name is carried over from another script; vowels go last."""


def plain(word: str) -> str:
    """The word in Latin letters without marks, where it has such."""
    apart = unicodedata.normalize("NFKD", word.casefold().translate(_LETTERS))
    return "".join(sign for sign in apart if not unicodedata.combining(sign))


_ROMAN = re.compile("(?=..)m*(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")


def is_roman(word: str) -> bool:
    """Whether the word may be a number of more than one Roman letter."""
    return _ROMAN.fullmatch(word) is not None


class Likeness(NamedTuple):
    """How likely two names are one thing's, and why."""

    score: float
    reason: str


@dataclass(frozen=True)
class Form:
    """A key as it is compared."""

    key: str

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Without marks, a leading honorific and the form of a company."""
        words = [plain(word) for word in self.key.split()]
        while len(words) > 2 and words[0] in HONORIFICS - TELLING_APART and words[1] != "of":
            words = words[1:]
        while len(words) > 1 and words[-1] in SUFFIXES:
            words = words[:-1]
        return tuple(words)

    @cached_property
    def bare(self) -> str:
        """All letters in a row."""
        return "".join(self.words)

    @cached_property
    def apart(self) -> tuple[str, ...]:
        """Numbers and words that tell namesakes apart, sorted."""
        found = (word for word in self.words if any(map(str.isdigit, word)) or word in TELLING_APART or is_roman(word))
        return tuple(sorted(found))

    @cached_property
    def skeleton(self) -> str:
        """The consonants, as they are left when a name is carried over."""
        found = " ".join(self.words)
        for pattern, into in _CARRIED:
            found = pattern.sub(into, found)
        return found

    @cached_property
    def initials(self) -> str:
        """The first letters of its words, small words left out."""
        return "".join(word[0] for word in self.words if word not in {"of", "the", "and", "for", "in", "de", "la"})


def marks(form: Form) -> Iterator[str]:
    """Names that may be one thing's have one of these in common; short lists, whatever the name."""
    words, bare = form.words, form.bare
    if not bare.isascii() and not any(map(str.isalpha, bare)):
        return
    yield f"b{bare}"
    if len(words) > 1:
        yield f"e{words[0]} {words[-1]}"
        yield f"i{words[0][0]} {words[-1]}"
    if len(form.skeleton.replace(" ", "")) >= LEAST_SKELETON:
        yield f"s{form.skeleton}"
    if LEAST_SPELLED <= len(bare) <= 2 * LEAST_SPELLED * len(words):
        yield f"d{zlib.crc32(bare.encode())}"
        for at in range(1, len(bare)):
            yield f"d{zlib.crc32((bare[:at] + bare[at + 1 :]).encode())}"
    if len(words) > 2:
        yield f"a{form.initials}"
    elif len(words) == 1 and 2 < len(bare) <= 6:
        yield f"a{bare}"


def likeness(one: Form, other: Form) -> Likeness | None:
    """Why these two names may be one thing's; None if their form does not say so, or says the contrary.

    Other numbers, years, ordinals, generations or directions, other given names, and a word more than the other are
    never taken for a spelling.
    """
    if one.apart != other.apart and (one.bare != other.bare or any(map(str.isdigit, one.bare))):
        return None
    short = len(one.bare) < LEAST_SPELLED or bool(one.apart)  # as the names of kings, which many bear
    if one.words == other.words:
        return Likeness(
            0.65 if short else 0.95, "the same but for diacritics, a title before it or the form of a company"
        )
    if one.bare == other.bare:
        return Likeness(0.55 if len(one.bare) < LEAST_SKELETON else 0.85, "the same but for spaces or hyphens")
    for check in (_initials, _middle, _acronym, _spelling, _carried):
        found = check(one, other) or (check(other, one) if check in (_initials, _middle, _acronym) else None)
        if found is not None:
            return found
    return None


def _initials(full: Form, short: Form) -> Likeness | None:
    """``J. K. Rowling`` and ``Joanne Rowling``: a given name on one side, its initials on the other."""
    if len(short.words) != 2 or len(full.words) < 2 or full.words[-1] != short.words[-1]:
        return None
    given, letters = full.words[:-1], short.words[0]
    if len(full.words[-1]) < 3 or len(letters) > 3 or len(letters) >= len(given[0]):
        return None
    if letters == "".join(word[0] for word in given):
        return Likeness(0.75 if len(letters) > 1 else 0.5, "initials in the place of given names")
    if len(letters) > 1 and len(given) == 1 and letters[0] == given[0][0] and not set(letters) & set("aeiouy"):
        return Likeness(0.5, "initials that begin as the given name does")
    return None


def _middle(full: Form, short: Form) -> Likeness | None:
    """``John Adams`` and ``John Quincy Adams``: the longer has middle names, or their initials, more."""
    if not 2 <= len(short.words) < len(full.words) or short.words[0] != full.words[0]:
        return None
    if short.words[-1] != full.words[-1] or len(short.words[0]) == 1 or len(short.words[-1]) < 3:
        return None
    left = iter(full.words[1:-1])
    if not all(
        any(word == other or (len(word) == 1 and other[0] == word) for other in left) for word in short.words[1:-1]
    ):
        return None
    more = [word for word in full.words[1:-1] if word not in short.words]
    if any(word in {"of", "the", "and", "in", "for", "at", "on", "to"} for word in full.words):
        return None
    return Likeness(0.7 if all(len(word) == 1 for word in more) else 0.5, "a middle name more")


def _acronym(full: Form, short: Form) -> Likeness | None:
    if len(short.words) == 1 and len(full.words) > 2 and short.bare == full.initials:
        return Likeness(0.45, "the first letters of the longer name")
    return None


def _spelling(one: Form, other: Form) -> Likeness | None:
    """One letter more, less or other, inside a long word that is no given name beside other words."""
    if len(one.words) != len(other.words):
        return None
    unlike = [(a, b) for a, b in zip(one.words, other.words, strict=True) if a != b]
    if len(unlike) != 1:
        return None
    a, b = unlike[0]
    if min(len(a), len(b)) < LEAST_SPELLED or a[0] != b[0] or not _one_edit(a, b):
        return None
    if a.rstrip("s") == b.rstrip("s") or {a, b} == {a.rstrip("e"), b.rstrip("e")} or a + "n" == b or b + "n" == a:
        return Likeness(0.35, "the same but for an ending")
    return Likeness(0.5 if len(one.words) == 1 else 0.65, "one letter apart")


def _carried(one: Form, other: Form) -> Likeness | None:
    """``Tchaikovsky`` and ``Chaikovskii``: the same consonants, carried over from another script."""
    if one.skeleton != other.skeleton or len(one.words) != len(other.words):
        return None
    if len(one.skeleton.replace(" ", "")) < LEAST_SKELETON:
        return None
    for a, b in zip(one.words, other.words, strict=True):
        if a != b and (min(len(a), len(b)) < LEAST_SPELLED - 1 or _distance(a, b) > len(a) // 3):
            return None
    return Likeness(0.5, "the same consonants, as when carried over from another script")


def _one_edit(a: str, b: str) -> bool:
    """Whether one letter added, left out, replaced, or two neighbours exchanged make one of the other."""
    if len(a) > len(b):
        a, b = b, a
    start = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    if len(a) == len(b):
        swapped = a[start + 1 : start + 2] + a[start : start + 1] + a[start + 2 :]
        return a[start + 1 :] == b[start + 1 :] or swapped == b[start:]
    return len(b) - len(a) == 1 and a[start:] == b[start + 1 :]


def _distance(a: str, b: str) -> int:
    """Levenshtein's."""
    before = list(range(len(b) + 1))
    for at, x in enumerate(a, start=1):
        row = [at]
        for to, y in enumerate(b, start=1):
            row.append(min(before[to] + 1, row[-1] + 1, before[to - 1] + (x != y)))
        before = row
    return before[-1]


def contained(form: Form) -> Sequence[str]:
    """Names by which the bearer of a longer one goes too: the family name of a person, the head of a name."""
    words = form.words
    if len(words) < 2 or len(words) > 4 or form.apart or any(word in {"of", "the", "and", "in"} for word in words):
        return ()
    return (words[-1],) if len(words[-1]) > 3 else ()
