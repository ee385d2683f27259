"""Sentences of plain text in many scripts, by rules that look only a few characters around each possible end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ecphoryrag.text.scripts import SOUTHEAST_ASIAN
from ecphoryrag.text.wordlists import word_set
from ecphoryrag.types import Sentence

_CLOSERS = "\"'”’»›)\\]}」』）】》〉"
_STOPS = ".!?…‽"
_SURE = "。！？｡．︒।॥؟۔։።፧។៕။༎"
_BREAKS = "\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
# It begins with a set, which the engine skips to. No quantifier gives back what it took: nothing is scanned twice.
_CANDIDATE = re.compile(
    f"[{_STOPS}{_SURE}{_BREAKS}](?:(?<=[{_STOPS}])[{_STOPS}]*+[{_CLOSERS}]*+(?:\\[\\d{{1,3}}\\])*+"
    f"|(?<=[{_SURE}])[{_SURE}]*+[{_CLOSERS}]*+)?+"
)
_AHEAD = re.compile(r"\s*(?P<open>[\"'“”‘’«»‹›(\[{¿¡—–*_-]*\s?)(?P<word>\w*)")
_BEFORE = re.compile(r"(?:^|[\s(\[{\"'“‘«/—–-])((?:[^\W\d_]\.)*[\w]+)$")
_LIST_ITEM = re.compile(
    r"\s*(?:[-*+•‣◦·▪–—]\s|#{1,6}\s|>|\||(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})[.)]\s|={3,}|-{3,}|\*{3,}|```|$)"
)
_LOOK = 48
_WRAPPED = 50
"""A line at least this long that breaks without a full stop was most likely wrapped by an editor."""
_WRAPPED_UNSPACED = 25
_LIST_DIGITS = 3
"""A sentence that would consist of a number of so many digits is the number of a list item."""
_LONG, _PIECE = 200, 80
"""Text of a script without sentence marks is cut at spaces, once it is longer than the first, to the second or more."""

_NEVER_LAST = word_set(
    "mr mrs ms mx dr prof st ste sts rev hon gov sen rep gen col maj capt lt sgt cpl cmdr adm brig pres fr msgr supt"
    " messrs mme mlle mgr sra srta herr vs cf viz fig figs eq eqs sec ch vol vols no nos nr pp art arts al approx"
    " ca est ed eds trans bd bzw usw vgl evtl ggf sog dr phil nat z.b d.h u.a z.t i.d.r o.ä e.g i.e jan feb"
    " mar apr jun jul aug sep sept oct nov dec mt ft op cit ibid dept univ assn bros ave blvd rd hwy mph lit gest geb"
    " г ул им т.е т.д т.п др стр"
)
_MAY_BE_LAST = word_set("inc ltd co corp llc jr sr etc esq phd ph.d m.d b.a m.a bc ad b.c a.d a.m p.m am pm")
_STARTERS = word_set(
    "the a an he she it they we i you this that these those his her its their our my your in on at by for from with as"
    " after before during when while since although though however but and or so if once there here then thus also"
    " both many most some several all each no not one two three what who where why how today later following"
)
_GERMAN_MONTHS = word_set(
    "januar februar märz april mai juni juli august september oktober november dezember jahrhundert"
)


def split_sentences(text: str) -> list[Sentence]:
    """The sentences in order: together they hold every non-blank character once, and ``text[start:end]`` is each.

    A sentence ends at a full stop that does not belong to an abbreviation, initial or number, at the sentence marks
    of other scripts, at a blank line, and where a heading or list item begins or ends; a line break inside wrapped
    prose does not end it. Scripts without such marks (Thai, Lao) are cut at spaces by length. Linear in the length.
    """
    sentences: list[Sentence] = []
    start = 0
    for end in _ends(text):
        sentences += _trimmed(text, start, end)
        start = end
    sentences += _trimmed(text, start, len(text))
    return sentences


def _ends(text: str) -> Iterator[int]:
    start, line = 0, 0
    for match in _CANDIDATE.finditer(text):
        end = match.end()
        sign = text[match.start()]
        if sign in _STOPS:
            ends = _stop_ends(text, start, match)
        elif sign in _SURE:
            ends = not (text[end - 1] in "」』" and text[end : end + 1] == "と")
        else:
            ends = _line_ends(text, line, match.start())
            line = end
        if ends:
            yield end
            start = end


def _line_ends(text: str, line: int, end: int) -> bool:
    """Whether the line break at ``end``, of the line from ``line``, parts two sentences."""
    # A slice, so that `$` in the pattern is the end of the next line and no more than a glance is taken at it.
    following = text[end + 1 : end + 1 + _LOOK].split("\n", 1)[0]
    if _LIST_ITEM.match(following):
        return True
    head = text[line : min(end, line + _LOOK)]
    if head.lstrip().startswith(("#", "|", ">", "```")):
        return True
    first = following.lstrip()[:1]
    if first.islower() or (first.isdigit() and end - line >= _WRAPPED):
        return False
    wrapped = _WRAPPED if first.isupper() or text[end - 1 : end].isascii() else _WRAPPED_UNSPACED
    return end - line < wrapped


def _stop_ends(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a full stop, question or exclamation mark (with its closing quotes) ends a sentence."""
    end = match.end()
    if end < len(text) and not text[end].isspace():
        return False
    ahead = _AHEAD.match(text[end : end + _LOOK])
    following = ahead["word"] if ahead else ""
    if not following:
        return True
    mark = match[0]
    if following[0].islower():
        return False
    if mark[0] != "." or mark.startswith(("..", ".)", '."', ".”", ".'", ".’")):
        return True
    behind = text[max(start, match.start() - _LOOK) : match.start()]
    if behind.strip().isdigit() and len(behind.strip()) <= _LIST_DIGITS:
        return False
    before = _BEFORE.search(behind)
    return before is None or _word_ends(before[1], following)


def _word_ends(word: str, following: str) -> bool:
    """Whether ``word`` and its full stop end a sentence when ``following``, not in lower case, comes next."""
    folded = word.casefold()
    starts = following.casefold() in _STARTERS and (len(following) > 1 or following in {"I", "A"})
    if folded in _NEVER_LAST:
        return False
    if len(word) == 1 and not word.isdigit() and word.isascii():
        return starts
    if folded in _MAY_BE_LAST or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", word):
        return starts
    if word.isdigit():
        return following.casefold() not in _GERMAN_MONTHS
    return True


def _trimmed(text: str, start: int, end: int) -> list[Sentence]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start == end:
        return []
    if end - start > _LONG and _SOUTHEAST_ASIAN.search(text, start, start + _LONG):
        return _at_spaces(text, start, end)
    return [Sentence(text[start:end], start, end)]


_SOUTHEAST_ASIAN = re.compile(f"[{SOUTHEAST_ASIAN}]{{3}}")
_SPACE = re.compile(r"\s+")


def _at_spaces(text: str, start: int, end: int) -> list[Sentence]:
    pieces = []
    for space in _SPACE.finditer(text, start, end):
        if space.start() - start >= _PIECE:
            pieces.append(Sentence(text[start : space.start()], start, space.start()))
            start = space.end()
    pieces.append(Sentence(text[start:end], start, end))
    return pieces
