"""Profiles of entities and relations: what all chunks say of one name, or of one pair of names, merged.

Guo et al. (2024), "LightRAG", section 3.1, functions P (profiling) and D (deduplication), and the public code
(version 1): the type of an entity is its most frequent one; descriptions are the distinct ones, sorted; the weight of
a relation is the sum of its strengths; its keywords are the distinct ones; descriptions of more than 500 tokens are
summed up by the language model; an end of a relation that no chunk has as an entity becomes one, of type ``unknown``.
Departures: tokens are counted by ``count_tokens``; a summary that cannot be had leaves the descriptions as they are,
cut at the budget, and is counted in the notes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ecphoryrag.calls.asking import Request
from ecphoryrag.errors import PromptTooLong, Rejected
from ecphoryrag.evaluation.baselines import language
from ecphoryrag.evaluation.baselines.kept import Journal, digest
from ecphoryrag.evaluation.baselines.lightrag_extract import METHOD, Extracted, Link, NamedThing
from ecphoryrag.evaluation.baselines.port import Kit
from ecphoryrag.text.tokens import count_tokens, fitting
from ecphoryrag.types import Usage

VERSION = 1
UNKNOWN = "unknown"
SUMMARY_TOKENS = 500
"""Of descriptions that are kept as they are, and of a summary."""
SUMMED_TOKENS = 2000
"""Of descriptions that are summed up in one call; the rest is left out, as in the public code."""
SYSTEM = f"""\
Merge the descriptions of one thing into one text that keeps every fact. Resolve contradictions, name the thing, write \
in the third person. Reply with one JSON object: {{"description": "..."}}
{language.QUOTED}"""
_SCHEMA = language.record(description={"type": "string", "maxLength": 4 * SUMMARY_TOKENS})


@dataclass(frozen=True, slots=True)
class EntityProfile:
    """An entity; ``chunks`` are positions, in order."""

    name: str
    type: str
    description: str
    chunks: tuple[int, ...]

    @property
    def text(self) -> str:
        """What its vector is of."""
        return f"{self.name}\n{self.description}"


@dataclass(frozen=True, slots=True)
class RelationProfile:
    """A relation between two entities, given as positions among the profiles."""

    ends: tuple[int, int]
    names: tuple[str, str]
    description: str
    keywords: str
    weight: float
    chunks: tuple[int, ...]

    @property
    def text(self) -> str:
        """What its vector is of."""
        return "\n".join((self.keywords, *self.names, self.description))


@dataclass(frozen=True, slots=True)
class Profiles:
    """The graph: entities and relations, both sorted by name."""

    entities: tuple[EntityProfile, ...]
    relations: tuple[RelationProfile, ...]


def profiles(extracted: Sequence[Extracted]) -> Profiles:
    """What the chunks say, merged; descriptions of any length."""
    things: dict[str, list[tuple[int, NamedThing]]] = defaultdict(list)
    links: dict[tuple[str, str], list[tuple[int, Link]]] = defaultdict(list)
    for number, one in enumerate(extracted):
        for thing in one.entities:
            things[thing.name].append((number, thing))
        for link in one.relations:
            links[link.ends].append((number, link))
    for ends, several in links.items():
        for name in ends:
            if name not in things:
                things[name] = [(at, NamedThing(name, UNKNOWN, link.description)) for at, link in several]
    entities = tuple(_entity(name, things[name]) for name in sorted(things))
    row = {entity.name: at for at, entity in enumerate(entities)}
    return Profiles(entities, tuple(_relation(ends, row, links[ends]) for ends in sorted(links)))


def _entity(name: str, several: Sequence[tuple[int, NamedThing]]) -> EntityProfile:
    kinds = Counter(thing.type for _, thing in several)
    kind = min(kinds, key=lambda one: (-kinds[one], one))
    return EntityProfile(name, kind, _joined([thing.description for _, thing in several]), _chunks(several))


def _relation(ends: tuple[str, str], row: dict[str, int], several: Sequence[tuple[int, Link]]) -> RelationProfile:
    keywords = sorted({word for _, link in several for word in link.keywords})
    return RelationProfile(
        (row[ends[0]], row[ends[1]]),
        ends,
        _joined([link.description for _, link in several]),
        ", ".join(keywords),
        sum(link.strength for _, link in several),
        _chunks(several),
    )


def _joined(descriptions: Sequence[str]) -> str:
    return "\n".join(sorted({text for text in descriptions if text}))


def _chunks(several: Sequence[tuple[int, NamedThing | Link]]) -> tuple[int, ...]:
    return tuple(sorted({number for number, _ in several}))


def summarise(merged: Profiles, kit: Kit) -> tuple[Profiles, Usage, tuple[str, ...]]:
    """The profiles with long descriptions summed up, what that cost, and what could not be summed up.

    Raises ModelError if the model makes no more calls.
    """
    summing = _Summing(kit)
    entities = tuple(replace(one, description=summing.short(one.name, one.description)) for one in merged.entities)
    relations = tuple(
        replace(one, description=summing.short(" and ".join(one.names), one.description)) for one in merged.relations
    )
    failed = summing.failed
    notes = (f"{len(failed)} long descriptions were cut, not summed up; the first: {failed[0]}",) if failed else ()
    return Profiles(entities, relations), summing.usage, notes


class _Summing:
    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._journal = Journal(kit.folder, kit.clock)
        self.usage = Usage()
        self.failed: list[str] = []

    def short(self, name: str, description: str) -> str:
        if count_tokens(description) <= SUMMARY_TOKENS:
            return description
        key = digest(["summary", VERSION, language.model_of(self._kit, METHOD).identity, name, description])
        kept = self._journal.find(key)
        if kept is None:
            kept = self._ask(name, description)
            self._journal.add(key, *kept)
        text, paid = kept
        self.usage += paid
        if isinstance(text, str):
            return text
        self.failed.append(name)
        return description[: fitting(description, 0, len(description), SUMMARY_TOKENS)]

    def _ask(self, name: str, description: str) -> tuple[str | None, Usage]:
        shown = description[: fitting(description, 0, len(description), SUMMED_TOKENS)]
        user = f"{language.data('Descriptions', shown.splitlines())}\n{language.data('Name', [name])}"
        request = Request(
            "index",
            language.turn(SYSTEM, user),
            _SCHEMA,
            SUMMARY_TOKENS + 100,
            lambda value: language.text_of(value, "description"),
        )
        try:
            asked = language.ask(request, self._kit, METHOD)
        except (Rejected, PromptTooLong) as error:
            return None, error.usage
        return asked.value or None, asked.usage
