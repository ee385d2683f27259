"""Names that machines gave: addresses, paths, identifiers of code, versions, standards, formulas."""

from __future__ import annotations

import re
from functools import cache

from ecphoryrag.text.names import Span

_STANDARDS = "ISO(?:/IEC)?|IEC|IEEE|RFC|DIN|EN|ANSI|ASTM|ECMA|ITU-T|NIST|CVE|PEP|JIS|GB|BS"


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?P<url>\b(?:https?|ftp|file)://[^\s<>\"'”’)\]}]+|\bwww\.[^\s<>\"'”’)\]}]+)"
        r"|(?P<mail>\b[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8})"
        r"|(?P<doi>\b10\.\d{4,9}/[^\s\"'<>)\]]+)"
        r"|(?P<path>(?<![\w/.~])(?:~|\.{1,2})?(?:/[\w.+-]+){2,}/?|\b[A-Za-z]:\\[\w\\.+-]+)"
        r"|(?P<version>\bv?\d+\.\d+\.\d+(?:[-+.][A-Za-z0-9]+)*\b|\bv\d+(?:\.\d+)+\b)"
        r"|(?P<code>(?<![\w.])(?:[A-Za-z]\w*(?:\.|::|->))+[A-Za-z_]\w*(?:\(\))?"
        r"|(?<!\w)_*[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+_*(?:\(\))?|(?<!\w)__[a-z]+__"
        r"|(?<!\w)[a-z]+[0-9]*(?:[A-Z][a-z0-9]+)+(?!\w)|(?<!\w)[A-Za-z_]\w*\(\)|(?<!\w)--[a-z][a-z-]+)"
        r"|(?P<formula>(?<![\w-])(?=[A-Z()\w]*\d)(?:(?:[A-Z][a-z]?|\((?:[A-Z][a-z]?\d*)+\))[0-9₀-₉]*){2,}[+-]?(?![\w]))"
    )


_STANDARD = re.compile(rf"\b(?:{_STANDARDS})[ -]\d[\w.:-]*")
_ODD = re.compile(
    r"[_@\\/.:(0-9A-Z-](?:(?<=[_@\\])|(?<=[/.])(?=\w)|(?<=::)|(?<=\()(?=\))|(?<=\s--)(?=\w)|(?<=[a-z][A-Z])"
    r"|(?<=[A-Za-z)][0-9])|(?<=[0-9])(?=[A-Za-z]))"
)
"""What no plain word has inside; it begins with a set, which the engine skips to."""
_SPACE = re.compile(r"\s")
_LONGEST_TOKEN = 500
"""A longer stretch without spaces is not an identifier but data, such as an encoded image."""
_DOTTED_PLAIN = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]?|[a-z]+\.[A-Z][a-z]+|(?:e\.g|i\.e|p\.m|a\.m)")


def find_identifiers(text: str) -> list[Span]:
    """Spans of identifiers; trailing sentence punctuation is left out."""
    found = [Span(match.start(), match.end(), "identifier") for match in _STANDARD.finditer(text)]
    seen = 0
    for odd in _ODD.finditer(text):
        if odd.start() < seen:
            continue
        start, seen = _token(text, seen, odd.start())
        if seen - start > _LONGEST_TOKEN:
            continue
        for match in _pattern().finditer(text, start, seen):
            first, last = match.span()
            while last > first and text[last - 1] in ".,;:!?":
                last -= 1
            if match.lastgroup != "code" or not _DOTTED_PLAIN.fullmatch(text, first, last):
                found.append(Span(first, last, "identifier"))
    return found


def _token(text: str, after: int, at: int) -> tuple[int, int]:
    """Span of the stretch without spaces around ``at``, no part of it before ``after``."""
    start = at
    while start > after and not text[start - 1].isspace():
        start -= 1
    space = _SPACE.search(text, at)
    return start, space.start() if space else len(text)
