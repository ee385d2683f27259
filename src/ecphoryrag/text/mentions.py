"""All names of one passage: the finders of every class together, and which of overlapping finds stay."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ecphoryrag.text.acronyms import Acronym, find_acronyms
from ecphoryrag.text.identifiers import find_identifiers
from ecphoryrag.text.names import Manner, Span, find_runs
from ecphoryrag.text.numbers import find_numbers
from ecphoryrag.text.quotes import find_quoted
from ecphoryrag.text.salient import find_salient
from ecphoryrag.text.scripts import is_unspaced
from ecphoryrag.text.unspaced import find_unspaced
from ecphoryrag.types import Sentence

_WORDS_PER_NAME = 12
"""A passage with fewer names than one in so many words is one of those that do not name what they are about."""
_WORDS_PER_TERM = 8
_WORDS_PER_TERM_UNCASED = 3


@dataclass(frozen=True, slots=True)
class Found:
    """The names of a passage by position, each span once, and the acronyms it spells out."""

    spans: tuple[Span, ...]
    acronyms: tuple[Acronym, ...]


def find_names(text: str, sentences: Sequence[Sentence], manner: Manner) -> Found:
    """Names, titles, quoted names, acronyms, dates, amounts, identifiers and terms of the passage."""
    quoted: list[Span] = []
    runs: list[Span] = []
    for sentence in sentences:
        quoted += find_quoted(sentence.text, sentence.start)
        runs += find_runs(sentence.text, manner, sentence.start)
    acronyms = find_acronyms(text)
    firm = find_identifiers(text) + find_numbers(text)
    runs = _outside(runs, firm)
    if quoted:
        runs = [run for run in runs if not _is_word_of(run, quoted, text)]
    spans = [*firm, *quoted, *(span for pair in acronyms for span in (pair.long, pair.short)), *runs]
    if is_unspaced(text):
        spans += _outside(find_unspaced(text), quoted)
    elif len(runs) + len(quoted) < len(text.split()) / _WORDS_PER_NAME:
        cased = any(sign.isupper() for sign in text)
        spans += _outside(find_salient(text, _WORDS_PER_TERM if cased else _WORDS_PER_TERM_UNCASED), spans)
    by_place = {(span.start, span.end): span for span in reversed(spans)}
    return Found(tuple(sorted(by_place.values())), tuple(acronyms))


def _outside(spans: list[Span], others: Sequence[Span]) -> list[Span]:
    """The spans that overlap none of the others."""
    if not others or not spans:
        return spans
    taken = sorted(others)
    starts = [other.start for other in taken]
    # How far the finds up to each reach, so that one look back is enough.
    reaches = list(accumulate((other.end for other in taken), max))
    kept = []
    for span in spans:
        before = bisect_left(starts, span.end)
        if not before or reaches[before - 1] <= span.start:
            kept.append(span)
    return kept


def _is_word_of(run: Span, quoted: Sequence[Span], text: str) -> bool:
    """Whether the run is a single word inside a longer quoted name."""
    inside = any(one.start <= run.start and run.end <= one.end and one[:2] != run[:2] for one in quoted)
    return inside and not any(map(str.isspace, text[run.start : run.end]))
