"""All names of one passage: the finders of every class together, and which of overlapping finds stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
        quoted += _moved(find_quoted(sentence.text), sentence.start)
        runs += _moved(find_runs(sentence.text, manner), sentence.start)
    acronyms = find_acronyms(text)
    firm = find_identifiers(text) + find_numbers(text)
    runs = _outside(runs, firm)
    runs = [run for run in runs if not _is_word_of(run, quoted, text)]
    spans = [*firm, *quoted, *(span for pair in acronyms for span in (pair.long, pair.short)), *runs]
    if is_unspaced(text):
        spans += _outside(find_unspaced(text), quoted)
    elif len(runs) + len(quoted) < len(text.split()) / _WORDS_PER_NAME:
        cased = any(sign.isupper() for sign in text)
        spans += _outside(find_salient(text, _WORDS_PER_TERM if cased else _WORDS_PER_TERM_UNCASED), spans)
    by_place = {(span.start, span.end): span for span in reversed(spans)}
    return Found(tuple(sorted(by_place.values())), tuple(acronyms))


def _moved(spans: list[Span], by: int) -> list[Span]:
    return [Span(span.start + by, span.end + by, span.kind) for span in spans] if by else spans


def _outside(spans: list[Span], others: Sequence[Span]) -> list[Span]:
    """The spans that overlap none of the others."""
    if not others or not spans:
        return spans
    taken = sorted(others)
    kept, at, reach = [], 0, 0
    for span in sorted(spans):
        while at < len(taken) and taken[at].start < span.end:
            reach = max(reach, taken[at].end)
            at += 1
        # `reach` may stem from a find that begins within this span's end but before a later, shorter span.
        if reach <= span.start or not any(other.start < span.end and span.start < other.end for other in taken[:at]):
            kept.append(span)
    return kept


def _is_word_of(run: Span, quoted: Sequence[Span], text: str) -> bool:
    """Whether the run is a single word inside a longer quoted name."""
    inside = any(one.start <= run.start and run.end <= one.end and one[:2] != run[:2] for one in quoted)
    return inside and not any(map(str.isspace, text[run.start : run.end]))
