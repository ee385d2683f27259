"""Salient terms of text that shows no names: lower-case prose, and scripts with spaces but without capitals.

Candidates are the phrases between stop words and punctuation, scored by their words' degree over frequency (RAKE: Rose,
Engel, Cramer and Cowley 2010, "Automatic keyword extraction from individual documents", section 1.3.2), so that a
word counts for more the longer the phrases it stands in, and every occurrence of a phrase counts.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from ecphoryrag.text.keys import name_key
from ecphoryrag.text.names import Span
from ecphoryrag.text.scripts import UNSPACED, marks
from ecphoryrag.text.wordlists import STOP_WORDS

_LONGEST_PHRASE = 4
_SHORTEST_WORD = 3
_UNCASED_SHORTEST = 2


@cache
def _token() -> re.Pattern[str]:
    inside = f"[^\\W_{UNSPACED}]"
    return re.compile(f"(?P<word>{inside}(?:{inside}|[{marks()}\u200c\u200d]|[-’'](?=\\w))*)|(?P<mark>[^\\s\\w])")


def find_salient(text: str, words_per_term: int) -> list[Span]:
    """Occurrences of the text's most salient phrases: two, and one more for every so many content words."""
    phrases = [[(start, end, name_key(text[start:end])) for start, end in phrase] for phrase in _phrases(text)]
    spans, keys = _candidates(phrases)
    degree: Counter[str] = Counter()
    frequency: Counter[str] = Counter()
    for phrase in phrases:
        for *_, word in phrase:
            frequency[word] += 1
            degree[word] += len(phrase)
    often = Counter(keys)
    scores = {
        key: _score(words, degree, frequency) * often[key] for key, words in dict(zip(keys, spans, strict=True)).items()
    }
    most = 2 + sum(map(len, phrases)) // words_per_term
    kept = set(sorted(scores, key=lambda key: (-scores[key], key))[:most])
    return [Span(words[0][0], words[-1][1], "term") for words, key in zip(spans, keys, strict=True) if key in kept]


_Word = tuple[int, int, str]


def _score(words: list[_Word], degree: Counter[str], frequency: Counter[str]) -> float:
    return sum(degree[word] / frequency[word] for *_, word in words)


def _candidates(phrases: list[list[_Word]]) -> tuple[list[list[_Word]], list[str]]:
    """Whole phrases and the parts of phrases that occur more than once, with their keys.

    A part is left out if a longer one around it occurs as often.
    """
    parts = [
        phrase[first:last]
        for phrase in phrases
        for first in range(len(phrase))
        for last in range(first + 1, len(phrase) + 1)
    ]
    keys = [" ".join(word for *_, word in part) for part in parts]
    counts = Counter(keys)
    often = {key for key, count in counts.items() if count > 1}
    inner: set[str] = set()
    for key in often:
        words = key.split(" ")
        inner.update(part for part in (" ".join(words[:-1]), " ".join(words[1:])) if counts[part] == counts[key])
    whole = {" ".join(word for *_, word in phrase) for phrase in phrases}
    kept = [
        (part, key)
        for part, key in zip(parts, keys, strict=True)
        if key and ((key in often and key not in inner) or (key in whole and counts[key] == 1 and _is_telling(part)))
    ]
    return [part for part, _ in kept], [key for _, key in kept]


def _is_telling(part: list[_Word]) -> bool:
    """Whether a phrase that occurs once may be a term: of a script with case, a single word is too little."""
    return len(part) > 1 or part[0][2].lower() == part[0][2].upper()


def _phrases(text: str) -> list[list[tuple[int, int]]]:
    """Spans of the content words of each phrase."""
    found: list[list[tuple[int, int]]] = [[]]
    for match in _token().finditer(text):
        word = match["word"]
        plain = word is not None and not word[0].isdigit() and word.lower() not in STOP_WORDS
        if not plain or len(word) < (_SHORTEST_WORD if word.isascii() else _UNCASED_SHORTEST):
            found.append([])
            continue
        if len(found[-1]) == _LONGEST_PHRASE:
            found.append([])
        found[-1].append(match.span())
    return [phrase for phrase in found if phrase]
