"""Where a name stands in a text: exactly, or with other spaces, case, quotation marks or compatibility forms."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, cached_property

from ecphoryrag.text.scripts import APOSTROPHES, JOINERS, is_unspaced, marks

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d"
_DOUBLE_QUOTES = "“”„‟«»″＂"
_ALIKE = {
    **dict.fromkeys(map(ord, APOSTROPHES), "'"),
    **dict.fromkeys(map(ord, _DASHES), "-"),
    **dict.fromkeys(map(ord, _DOUBLE_QUOTES), '"'),
    **dict.fromkeys(map(ord, JOINERS)),
}


class Located:
    """A text in which names are looked for; what is derived from it is derived once, when first needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def find(self, name: str) -> list[tuple[int, int]]:
        """All places of the name that are whole words, in order, none overlapping; (start, end) each.

        Looked for letter by letter first. If it is nowhere, then without regard to compatibility forms (NFKC), case,
        the amount and kind of white space, typographic dashes and quotation marks, and invisible characters. In
        scripts without spaces a name is found inside what would be a word.
        """
        exact = self._find(name, self.text) if name.strip() else []
        if exact:
            return exact
        folded, starts, ends = self._folded
        found = []
        for first, last in self._find("".join(_fold(name)[0]).strip(), folded):
            start, end = starts[first], ends[last - 1]
            # Half of what one sign folded to, such as the 1 of ½, is no place of the text.
            if (first and starts[first - 1] == start) or (last < len(folded) and ends[last] == end):
                continue
            if self._whole(start, end):
                found.append((start, end))
        return found

    def _find(self, name: str, text: str) -> list[tuple[int, int]]:
        found = []
        at = text.find(name) if name else -1
        while at >= 0:
            end = at + len(name)
            whole = _parted(text, at) and _parted(text, end)
            if whole:
                found.append((at, end))
            at = text.find(name, end if whole else at + 1)
        return found

    def _whole(self, start: int, end: int) -> bool:
        return _parted(self.text, start) and _parted(self.text, end)

    @cached_property
    def _folded(self) -> tuple[str, list[int], list[int]]:
        """The folded text, and for each of its characters where the original that it comes from starts and ends."""
        signs, places = _fold(self.text)
        return "".join(signs), [start for start, _ in places], [end for _, end in places]


def _parted(text: str, at: int) -> bool:
    """Whether a name may begin or end here: not between two signs of one word."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if unicodedata.category(after)[0] == "M" or after in JOINERS:
        return False
    if is_unspaced(before) or is_unspaced(after):
        return True
    return not (_in_word(before) and _in_word(after))


def _in_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_" or unicodedata.category(sign)[0] == "M"


@cache
def _cluster() -> re.Pattern[str]:
    """A sign with its marks, or a syllable of Korean letters."""
    syllable = "[\u1100-\u115f][\u1160-\u11a7]+[\u11a8-\u11ff]*"
    return re.compile(f"{syllable}|.[{marks()}]*", re.DOTALL)


def _fold(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """The characters of the folded text, and the span of the original that each comes from."""
    signs: list[str] = []
    places: list[tuple[int, int]] = []
    for match in _cluster().finditer(text):
        once = unicodedata.normalize("NFKC", match[0].translate(_ALIKE)).casefold()
        for sign in unicodedata.normalize("NFKC", once).translate(_ALIKE):
            if not sign.isspace():
                signs.append(sign)
                places.append(match.span())
            elif signs and signs[-1] != " ":
                signs.append(" ")
                places.append(match.span())
    return signs, places
