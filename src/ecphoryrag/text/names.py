"""Names in running text, found by their form alone."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ecphoryrag.text.scripts import marks, uppers
from ecphoryrag.text.wordlists import word_set


class Span(NamedTuple):
    """A name found in a text: ``text[start:end]``, and the class it can honestly be given."""

    start: int
    end: int
    kind: str


_LINKS = "of|the|de|la|von|van|da|del|di|and|for|in|on|al|el|le|du|des|y|e"
_PART_LINK = re.compile(r"\s(?:of|and|the|for|in|on)\s")
_SHORT_PART = 3
_EDGES = word_set(
    "the a an he she it they in on at his her its their this that these those and but as for from with by after before"
    " during when while since who which what where how is was are were there also one two other some most many both"
    " however although due i we you if or not no to of"
)


@cache
def _run_pattern() -> re.Pattern[str]:
    word = f"[{uppers()}][\\w{marks()}'’.&-]*"
    return re.compile(f"(?:{word}|\\d{{4}})(?:(?:\\s+(?:{_LINKS}))" + r"{0,2}" + f"\\s+(?:{word}|\\d+))*")


_WORD = re.compile(r"\S+")


def find_runs(text: str) -> list[Span]:
    """Runs of capitalised words with the small words inside them, and the parts of a run that small words join."""
    found: list[Span] = []
    for match in _run_pattern().finditer(text):
        words = [(word[0], word.start(), word.end()) for word in _WORD.finditer(text, match.start(), match.end())]
        while words and words[0][0].lower() in _EDGES:
            words = words[1:]
        while words and words[-1][0].lower().rstrip(".,'’-") in _EDGES:
            words = words[:-1]
        if not words or (len(words) == 1 and words[0][0][0].isdigit()):
            continue
        start, end = words[0][1], words[-1][2]
        while end > start and text[end - 1] in ".,'’-":
            end -= 1
        found.append(Span(start, end, "name"))
        found += _parts(text, start, end)
    return found


def _parts(text: str, start: int, end: int) -> list[Span]:
    cuts = list(_PART_LINK.finditer(text, start, end))
    if not cuts:
        return []
    edges = [start, *(edge for cut in cuts for edge in cut.span()), end]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [Span(first, last, "name") for first, last in pairs if last - first > _SHORT_PART]
