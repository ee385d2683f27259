"""Other names of one thing, as far as the text itself gives them."""

from __future__ import annotations

import re
from functools import cache

from ecphoryrag.text.about import main_verb
from ecphoryrag.text.keys import name_key, normal_words
from ecphoryrag.text.names import Span
from ecphoryrag.text.scripts import marks, uppers
from ecphoryrag.text.wordlists import HONORIFICS, LINK_WORDS, PARTICLES, word_set

_NICKNAME = re.compile(r"\s*(?:``|[\"“„«(])\s*(?P<name>[^\"“”„«»`()]{1,30}?)\s*(?:''|[\"”“»)])\s*")
_LIFE = re.compile(
    r"\s*[(（][^()（）]{0,80}?(?:born|née|né\b|died|\bb\.|\bd\.|geb|nacid|[0-9]{3,4}\s*[–—-]|\b1[0-9]{3}\b|\b20[0-2][0-9]\b)",
    re.IGNORECASE,
)
_SUFFIXES = word_set("jr sr ii iii iv esq phd")
_FIRMS = word_set(
    "inc ltd limited corp corporation llc plc gmbh ag sa s.a co company srl s.r.l spa s.p.a kg bv nv oy ab as a/s pty"
)
_LONGEST_PERSON = 6
_ACTS_AS = word_set("credited billed released published translated performing recording writing wrestling referred")
"""A name follows these only behind ``as``, ``to as`` or ``under``."""
_ACTS = word_set("known nicknamed called abbreviated titled")
_NOUNS = word_set("name names title titles pseudonym nickname moniker acronym alias aka née né born")
_BIRTH = frozenset(("né", "née", "born"))
"""A family name alone, or a nationality (``Australian-born British``), is no other name of the person."""
_AFTER_VERB = frozenset(("known", "nicknamed"))
"""Behind the verb of its sentence only these still speak of the subject (``is a wrestler best known as Foo``)."""
_NAMING_WORDS = _ACTS | _ACTS_AS | _NOUNS | {"a.k.a."}
_AS = re.compile(r"\b(?:as|under)\b")
_NAMING = re.compile(r"[^\W\d_]+|a\.k\.a\.")
_NAME_NOUN = r"(?:[a-z]+[ -])?(?:[a-z]+[ -])?(?:names?|titles?|pseudonym|nickname|moniker|acronym|alias)"
_LEADS_TO_NAME = (
    r"(?:\s+to)?(?:\s+[a-z]+ly)?(?:\s+simply)?(?:\s+(?:as|by|under|is|was))?:?"
    rf"(?:\s+(?:his|her|their|its|the|a)\s+{_NAME_NOUN}(?:\s+(?:of|as))?)?,?\s+"
)
_CALENDAR = re.compile(
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Janv|Févr|Avr|Mai|Juin|Juil|Août|Ene|Abr|Ago|Dic|Okt|Dez)"
    r"[a-zé]*\.?(?:\s+\d|$)|\d"
)


@cache
def _also_known() -> re.Pattern[str]:
    word = f"[{uppers()}\\d][\\w{marks()}'’.-]*"
    run = f"{word}(?:(?:\\s+(?:{LINK_WORDS}))*\\s+{word})*"
    quoted = r"(?:``|[\"“„«])\s*(?P<quoted>[^\"“”„«»`]{1,80}?)\s*(?:''|[\"”“»])"
    return re.compile(f"{_LEADS_TO_NAME}(?:the\\s+)?(?:{quoted}|(?P<run>{run}))")


def also_known(sentence: str, after: int) -> list[Span]:
    """Names that the sentence says its subject, which ends at ``after``, is known by (``better known as ...``)."""
    found = []
    verb = -1
    for word in _NAMING.finditer(sentence, after):
        match = _also_known().match(sentence, word.end()) if word[0] in _NAMING_WORDS else None
        if match is None:
            continue
        if verb < 0:
            verb = main_verb(sentence, after)
        if word.start() > verb and word[0] not in _AFTER_VERB:
            continue
        if word[0] in _ACTS_AS and not _AS.search(sentence, word.end(), match.start("run")):
            continue
        group = "quoted" if match["quoted"] else "run"
        start, end = match.span(group)
        if word[0] in _BIRTH and (sentence[word.start() - 1] == "-" or " " not in sentence[start:end]):
            continue
        while end > start and sentence[end - 1] in ".,'’-":
            end -= 1
        if not _CALENDAR.match(sentence, start, end):
            found.append(Span(start, end, "quoted" if match["quoted"] else "name"))
    return found


def spellings(sentence: str, span: Span) -> list[str]:
    """Keys of shorter forms of the name at ``span``: without nickname, middle names, honorific or suffix.

    Middle names go only where the sentence shows a person: life dates in brackets, a nickname, an honorific.
    """
    name = sentence[span.start : span.end]
    forms = []
    nickname = _NICKNAME.search(name)
    person = nickname is not None or _is_person(sentence, span)
    if nickname and name[: nickname.start()].strip() and name[nickname.end() :].strip():
        plain = f"{name[: nickname.start()]} {name[nickname.end() :]}"
        forms += [plain, f"{nickname['name']} {name[nickname.end() :]}"]
    else:
        plain = name
    words = plain.replace(",", " ").split()
    while len(words) > 2 and words[0].rstrip(".").lower() in HONORIFICS:
        words = words[1:]
        person = True
        forms.append(" ".join(words))
    if len(words) > 1 and words[-1].rstrip(".").lower() in _FIRMS:
        forms.append(" ".join(words[:-1]))
    if len(words) > 2 and words[-1].rstrip(".").lower() in _SUFFIXES:
        words = words[:-1]
        forms.append(" ".join(words))
    if person and 2 < len(words) <= _LONGEST_PERSON and not {"of", "the", "and"} & set(words):
        forms += _without_middle(words)
        if nickname:
            forms.append(f"{nickname['name']} {words[-1]}")
    own = name_key(name)
    return [key for key in dict.fromkeys(map(name_key, forms)) if key and key != own]


def _is_person(sentence: str, span: Span) -> bool:
    """Whether life dates follow the name (with at most one more phrase between commas), or an initial is in it."""
    at = _ASIDE.match(sentence, span.end)
    return _LIFE.match(sentence, at.end() if at else span.end) is not None or (
        _INITIAL.search(sentence, span.start, span.end) is not None
    )


_ASIDE = re.compile(r"[\"”'’]?(?:\s*,[^,()]{1,60}(?=[,(]))?,?")
_INITIAL = re.compile(r"(?<=\w)\s[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω]\.?\s")


def placed(sentence: str, span: Span) -> list[str]:
    """Keys of the name with the place or office that the sentence puts it in.

    ``Rochester is a city in Cedar County, Iowa`` gives ``rochester iowa`` (and ``rochester cedar county``);
    ``Louis III (died 1189), Count of Chiny`` and ``Albert (1338 – 1412) was King of Sweden`` give the name with the
    office.
    """
    name = sentence[span.start : span.end]
    own = name_key(name)
    forms = []
    place = _placed().match(sentence, span.end)
    if place:
        forms = [f"{name} {part}" for part in place["places"].split(",")]
    office = _office().match(sentence, span.end)
    if office:
        forms.append(f"{name} {office['office']}")
    return [key for key in dict.fromkeys(map(name_key, forms)) if key != own]


@cache
def _placed() -> re.Pattern[str]:
    word = f"[{uppers()}][\\w{marks()}'’.-]*"
    run = f"{word}(?:(?:\\s+(?:of|the|and|de))*\\s+{word})*"
    return re.compile(
        r"\s*+(?:\([^()]*\)\s*+)?+(?:is|was|are|were)\s+(?:a|an|the|one)\s[^.;]{3,120}?\s(?:in|of)\s+(?:the\s+)?"
        rf"(?P<places>{run}(?:,\s+(?:the\s+)?{run}){{0,4}})"
    )


@cache
def _office() -> re.Pattern[str]:
    word = f"[{uppers()}][\\w{marks()}'’.-]*"
    return re.compile(
        r"\s*+\([^()]*\)\s*+(?:,|(?:is|was)(?:\s+the)?)\s+"
        rf"(?P<office>(?:{word}\s+)+of\s+(?:the\s+)?{word}(?:[\s-]+(?:and\s+)?{word})*)"
    )


def _without_middle(words: list[str]) -> list[str]:
    """``John Albert Smith`` as ``John Smith``, ``John A. Smith`` and ``Albert Smith``; particles stay with the last."""
    last = len(words) - 1
    while last > 1 and words[last - 1].lower() in PARTICLES:
        last -= 1
    family = " ".join(words[last:])
    if last < 2:
        return []
    forms = [f"{words[0]} {family}", f"{words[1]} {family}"]
    if len(words[1].rstrip(".")) > 1:
        forms.append(f"{words[0]} {words[1][0]}. {family}")
    if last > 2:
        forms.append(f"{words[0]} {words[1]} {family}")
    return forms


def same_person(title: str, subject: str) -> bool:
    """Whether two different keys clearly share a last name or one's words are among the other's."""
    left, right = title.split(), subject.split()
    if title == subject or not left or not right:
        return False
    if set(left) <= set(right) or set(right) <= set(left):
        return True
    return left[-1] == right[-1] and len(left) > 1 and len(right) > 1


def acronym_matches(long: str, short: str) -> bool:
    """Whether the letters of ``short`` are initials of words of ``long`` in order, the first one of the first word."""
    letters = [sign.lower() for sign in short if sign.isalnum()]
    initials = [word.norm[0] for word in normal_words(long)]
    if not letters or not initials or letters[0] != initials[0]:
        return False
    text, at = " ".join(word.norm for word in normal_words(long)), 0
    for letter in letters:
        at = text.find(letter, at) + 1
        if not at:
            return False
    return sum(letter in initials for letter in letters) >= len(letters) - 1
