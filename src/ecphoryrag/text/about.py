"""What a passage is about, read off its first sentence: the subject before the first verb."""

from __future__ import annotations

import re
from functools import cache

from ecphoryrag.text.names import Span
from ecphoryrag.text.scripts import marks, uppers
from ecphoryrag.text.wordlists import DETERMINERS, LINK_WORDS, NEVER_SUBJECT, SMALL_WORDS, SUBJECT_STOPS, VERBS

_HEAD_CHARACTERS = 400
"""So far into a sentence its subject is looked for."""
_SUBJECT_WORDS = 14
_BETWEEN_WORDS = 8
"""Between a quoted title and its verb there are at most so many words outside brackets."""
_LEAD_IN = re.compile(
    r"(?:In|On|At|By|From|During|After|Before|Since|Until|For|With|Within|Under|As|Of|Among|Following|According|Despite"
    r"|Throughout|Along|Between|Like|Unlike|Although|While|When|Though|Because|Originally|Formerly|Currently|Today"
    r"|Historically|Traditionally|Also|Sometimes|Often|Generally|Typically|Commonly|Born|Known|Set|Written|Built|Led"
    r"|Held|Made|Sung|Shot|Run|Won|Begun|[A-Z][a-z]+(?:ed|ing))\s+[^A-Z,]*\b"
)
_ARTICLE = re.compile(r"(?:the|a|an)\s+", re.IGNORECASE)
_LIST_MARK = re.compile(r"\s*(?:[-*+•>#]+\s+|\d{1,3}[.)]\s+)?")
_BRACKET = re.compile(r"[(\[{（][^()\[\]（）{}]*[)\]）}]?")
_INNER_NAME = re.compile(
    r"[^\W\d_]*\d*\s?(?:\w+\s)*?\b(?P<before>[a-z]{3,})\s(?P<name>(?:[A-Z\d]\S*)(?:\s(?:(?:of|the|and|in|a|to|for|on|from)\s)*[A-Z\d]\S*)*)"
)
_MASK = "\x00"
_QUOTES = "\"“”„«»`'‘’"
_QUOTED = re.compile(r"(?:``|''|[\"“„«])\s*+(?P<inside>[^\"“”„«»`]{1,120}?)\s{0,3}(?:''|[\"”“»])")
_SUFFIX = re.compile(r",\s*(?:Jr|Sr|Inc|Ltd|LLC|Co|Esq|[IVX]+)\b\.?")
_OR = re.compile(r",?\s+or\s+(?:the\s+|simply\s+)?")


_LOWER = re.compile(r"[a-zà-ÿ]+")


def _find_verb(text: str, start: int) -> int:
    """Where the first verb of the list stands as a word of its own, or -1."""
    for match in _LOWER.finditer(text, start):
        if match[0] in VERBS:
            before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
            if not (
                before.isalnum() or (before and before in "'’-_") or after.isalnum() or (after and after in "'’-_")
            ):
                return match.start()
    return -1


@cache
def _name_run() -> str:
    word = f"[{uppers()}\\d][\\w{marks()}'’.-]*"
    return f"{word}(?:(?:\\s+(?:{LINK_WORDS}))*\\s+{word})*"


@cache
def _title_after_comma() -> re.Pattern[str]:
    """``, 1st Baronet``, ``, Countess of Blois``, ``, Illinois``: a capitalised phrase up to the end of the head."""
    return re.compile(f",\\s+{_name_run()}(?=\\s*(?:,|$|{_MASK}))")


def main_verb(sentence: str, start: int) -> int:
    """Position of the first common verb after ``start`` and outside brackets; the end of the sentence without one."""
    masked = _BRACKET.sub(lambda match: _MASK * len(match[0]), sentence[: start + _HEAD_CHARACTERS])
    verb = _find_verb(masked, start)
    return verb if verb >= 0 else len(sentence)


def find_subjects(sentence: str) -> list[Span]:
    """Spans of what the sentence is about, the best first; none if it begins with a pronoun or has no subject."""
    matched = _LIST_MARK.match(sentence)
    start = matched.end() if matched else 0
    masked = _BRACKET.sub(lambda match: _MASK * len(match[0]), sentence[: start + _HEAD_CHARACTERS])
    quoted = _QUOTED.match(sentence, start)
    if quoted and _before_verb(masked, quoted.end()):
        return [Span(*quoted.span("inside"), "quoted")]
    start = _after_lead_in(masked, start)
    verb = _find_verb(masked, start)
    end = verb if verb >= 0 else len(masked)
    bracket = masked.find(_MASK, start, end)
    if bracket > start and masked[start:bracket].strip(_QUOTES + " "):
        return _trimmed(sentence, start, _cut_at_comma(masked, start, bracket))
    if verb < 0:
        end = _capital_end(masked, start)
    return _trimmed(sentence, start, _cut_at_comma(masked, start, end))


def _before_verb(masked: str, at: int) -> bool:
    """Whether the main verb comes soon after ``at``."""
    verb = _find_verb(masked, at)
    return verb >= 0 and len(masked[at:verb].replace(_MASK, "").split()) <= _BETWEEN_WORDS


def _after_lead_in(masked: str, start: int) -> int:
    """Where the subject begins, if an adverbial or participle phrase with a comma stands before it."""
    if not _LEAD_IN.match(masked, start):
        return start
    verb = _find_verb(masked, start)
    limit = verb if verb >= 0 else len(masked)
    comma = masked.rfind(",", start, limit)
    return comma + 1 if comma != -1 and masked[comma + 1 : limit].strip() else start


def _capital_end(masked: str, start: int) -> int:
    article = _ARTICLE.match(masked, start)
    run = re.compile(_name_run()).match(masked, article.end() if article else start)
    return run.end() if run else start


def _cut_at_comma(masked: str, start: int, end: int) -> list[int]:
    """Where the subject may end, the likeliest first: with a title or place after the comma, and before the comma."""
    comma = masked.find(",", start, end)
    if comma == -1:
        return [end]
    suffix = _SUFFIX.match(masked, comma, end)
    if suffix:
        return [suffix.end(), comma]
    title = _title_after_comma().match(masked, comma, end)
    return [title.end(), comma] if title else [comma]


def _trimmed(sentence: str, start: int, ends: list[int]) -> list[Span]:
    found: list[Span] = []
    for end in ends:
        for first, last in _bounds(sentence, start, end):
            words = sentence[first:last].split()
            if words and len(words) <= _SUBJECT_WORDS and not _is_pronoun(words):
                found.append(Span(first, last, "name"))
    return list(dict.fromkeys(found))


def _is_pronoun(words: list[str]) -> bool:
    """Whether the phrase begins with a pronoun or the like and is not a title in capitals (``His Last Haul``)."""
    first = words[0].lower()
    if first not in NEVER_SUBJECT and not _LEAD_IN_WORD.fullmatch(words[0]):
        return False
    if len(words) > 1 and words[1][0].isdigit():
        return True
    rest = [word for word in words[1:] if word.strip(_QUOTES + ".,:").lower() not in SMALL_WORDS]
    return not rest or not all(word[0].isupper() or not word[0].isalpha() for word in rest)


_LEAD_IN_WORD = re.compile("In|On|At|By|From|During|After|Before|Since|Until|For|With|Within|Under|As|Among")


def _bounds(sentence: str, start: int, end: int) -> list[tuple[int, int]]:
    while start < end and (sentence[start].isspace() or sentence[start] in _QUOTES):
        start += 1
    article = _ARTICLE.match(sentence, start, end)
    if article:
        start = article.end()
    while end > start and (sentence[end - 1].isspace() or sentence[end - 1] in _QUOTES + ",;:–—-"):
        end -= 1
    while start < end and (sentence[start].isspace() or sentence[start] in _QUOTES):
        start += 1
    either = _OR.search(sentence, start, end)
    if either and sentence[either.end() : either.end() + 1].isupper():
        return [(start, either.start()), (either.end(), end)]
    inner = _INNER_NAME.fullmatch(sentence, start, end)
    if inner and inner["before"] not in SMALL_WORDS | DETERMINERS:
        return [(start, end), inner.span("name")]
    stop = SUBJECT_STOPS.search(sentence, start + 1, end)
    if stop:
        return [(start, stop.start()), (start, end)]
    return [(start, end)]
