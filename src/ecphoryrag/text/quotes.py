"""Names and titles in quotation marks."""

from __future__ import annotations

import re

from ecphoryrag.text.names import Span

_LONGEST = 80
_WORDS = 10
_PAIRS = re.compile(
    rf"[“„«](?P<a>[^“”„«»\n]{{1,{_LONGEST}}})[”“»]"
    rf"|\"(?P<b>[^\"\n]{{1,{_LONGEST}}})\""
    rf"|``(?P<c>[^`'\n]{{1,{_LONGEST}}})''"
    rf"|[《〈](?P<title>[^《》〈〉\n]{{1,{_LONGEST}}})[》〉]"
    rf"|「(?P<d>[^「」\n]{{1,{_LONGEST}}})」|『(?P<e>[^『』\n]{{1,{_LONGEST}}})』"
    rf"|(?<!\w)‘(?P<f>[^‘’\n]{{1,{_LONGEST}}})’(?!\w)"
    rf"|(?<!\w)`(?P<code>[^`\n]{{1,{_LONGEST}}}?)`"
)
_OPENERS = re.compile('["“„«`《〈「『‘]')
_EDGE = " ,.;:!?、。，！？"
_SENTENCE_MARK = re.compile(r"[.!?]\s|[。！？]")


def find_quoted(text: str, offset: int = 0) -> list[Span]:
    """What stands in quotation marks and reads like a name: short, begun with a capital or in a script without case.

    Straight quotes are paired in their order within ``text``, which should therefore be one sentence; odd spacing
    inside the marks (``the film" Count to Ten" was``) is no hindrance. ``offset`` is added to every position.
    """
    found: list[Span] = []
    if _OPENERS.search(text) is None:
        return found
    for match in _PAIRS.finditer(text):
        group = match.lastgroup or "a"
        start, end = match.span(group)
        while end > start and (text[end - 1] in _EDGE or text[end - 1].isspace()):
            end -= 1
        while start < end and (text[start] in _EDGE or text[start].isspace()):
            start += 1
        if start == end:
            continue
        kind = {"title": "title", "code": "identifier"}.get(group, "quoted")
        if kind != "quoted" or _reads_like_a_name(text[start:end]):
            found.append(Span(start + offset, end + offset, kind))
    return found


def _reads_like_a_name(inside: str) -> bool:
    words = inside.split()
    if len(words) > _WORDS or _SENTENCE_MARK.search(inside):
        return False
    first = inside[0]
    return first.isupper() or first.isdigit() or (first.isalpha() and not first.islower())
