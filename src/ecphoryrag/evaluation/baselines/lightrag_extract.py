"""Typed entities and relations of a chunk, read by a language model with one gleaning round.

Guo et al. (2024), "LightRAG", section 3.1, function R, and the public code (version 1) where the text leaves a step
open: a first call for entities with type and description and relations with description, keywords and strength; then
one more call, in the same conversation, for what the first left out. What both name is one: the first description of a
chunk stands. Departures: our own prompts, and replies that follow a schema, which bounds how many there can be. A
chunk whose first call fails has nothing and is counted in the notes; if only the gleaning fails, the first stands.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from ecphoryrag.calls.asking import Request
from ecphoryrag.calls.reading import Unusable
from ecphoryrag.errors import PromptTooLong, Rejected
from ecphoryrag.evaluation.baselines import language
from ecphoryrag.evaluation.baselines.kept import Journal, digest
from ecphoryrag.evaluation.baselines.port import Kit
from ecphoryrag.types import Chunk, JsonValue, Message, Usage

VERSION = 1
METHOD = "lightrag"
TYPES = ("organization", "person", "place", "event", "category")
"""The publication's five; what fits none of them is `other`."""
ENTITIES, RELATIONS = 24, 24
LONGEST_NAME, LONGEST_TEXT, KEYWORDS = 120, 240, 5
REPLY_TOKENS = 1536
STRONGEST = 10.0

SYSTEM = f"""\
Read entities and relations out of the passage. Reply with one JSON object:
{{"entities": [{{"name": "...", "type": "...", "description": "..."}}], "relations": [{{"source": "...", "target": \
"...", "description": "...", "keywords": ["..."], "strength": 1}}]}}
- entities: all that the passage names. type is one of {", ".join(TYPES)}, other. description: what the passage says \
of it, in a sentence.
- relations: pairs of these entities that are clearly related. description: how, in a sentence. keywords: the theme \
of the relation in general words. strength: from 1 (weak) to 10.
{language.QUOTED}"""
GLEAN = """\
Some entities and relations of the passage are missing from your reply. List those, and only those, in the same form."""
_EXAMPLE = language.passage("Mill Lane Bakery", "Mill Lane Bakery was founded by the baker Ines Duarte in Lisbon.")
_EXAMPLE_REPLY = (
    '{"entities": [{"name": "Mill Lane Bakery", "type": "organization", "description": "A bakery in Lisbon, founded '
    'by Ines Duarte."}, {"name": "Ines Duarte", "type": "person", "description": "A baker, founder of Mill Lane '
    'Bakery."}, {"name": "Lisbon", "type": "place", "description": "The city of Mill Lane Bakery."}], "relations": '
    '[{"source": "Ines Duarte", "target": "Mill Lane Bakery", "description": "Ines Duarte founded Mill Lane Bakery.", '
    '"keywords": ["founding", "business"], "strength": 9}]}'
)
_SCHEMA = language.record(
    entities={
        "type": "array",
        "maxItems": ENTITIES,
        "items": dict(
            language.record(
                name={"type": "string", "maxLength": LONGEST_NAME},
                type={"type": "string", "enum": [*TYPES, "other"]},
                description={"type": "string", "maxLength": LONGEST_TEXT},
            )
        ),
    },
    relations={
        "type": "array",
        "maxItems": RELATIONS,
        "items": dict(
            language.record(
                source={"type": "string", "maxLength": LONGEST_NAME},
                target={"type": "string", "maxLength": LONGEST_NAME},
                description={"type": "string", "maxLength": LONGEST_TEXT},
                keywords=language.texts(LONGEST_NAME, KEYWORDS),
                strength={"type": "number"},
            )
        ),
    },
)


@dataclass(frozen=True, slots=True)
class NamedThing:
    """An entity as one chunk has it; ``name`` is normalised by :func:`entity_name`."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class Link:
    """A relation as one chunk has it, without a direction: ``ends`` are sorted."""

    ends: tuple[str, str]
    description: str
    keywords: tuple[str, ...]
    strength: float


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a chunk says."""

    entities: tuple[NamedThing, ...] = ()
    relations: tuple[Link, ...] = ()


def entity_name(text: str) -> str:
    """Upper case, on one line, without quotation marks around it, as in the public code: one name, one entity."""
    return " ".join(unicodedata.normalize("NFC", text).upper().split()).strip("\"'“”‘’«» ")


def extract(
    chunks: Sequence[tuple[str, Chunk]], gleanings: int, kit: Kit
) -> tuple[tuple[Extracted, ...], Usage, tuple[str, ...]]:
    """For each (title, chunk) what it says; what it cost; and which chunks failed.

    What was read is in the folder at once. Raises ModelError if the model makes no more calls.
    """
    journal, maker = Journal(kit.folder, kit.clock), language.model_of(kit, METHOD).identity
    found: list[Extracted] = []
    usage, failed = Usage(), list[str]()
    for number, (title, chunk) in enumerate(chunks):
        kit.tell("reading entities and relations", number, len(chunks))
        key = digest([METHOD, VERSION, gleanings, maker, chunk.document_id, title, chunk.text])
        kept = journal.find(key)
        if kept is None:
            kept = _read(title, chunk, gleanings, kit)
            journal.add(key, *kept)
        value, paid = kept
        usage += paid
        rounds, failure = language.field_of(value, "rounds"), language.field_of(value, "failure")
        found.append(_united([_taken(one) for one in rounds] if isinstance(rounds, list) else []))
        if failure is not None:
            failed.append(f"{chunk.document_id}: {failure}")
    kit.tell("reading entities and relations", len(chunks), len(chunks))
    notes = (f"{len(failed)} of {len(chunks)} chunks were not read whole; the first: {failed[0]}",) if failed else ()
    return tuple(found), usage, notes


def _read(title: str, chunk: Chunk, gleanings: int, kit: Kit) -> tuple[JsonValue, Usage]:
    """The replies of all rounds, and why there are fewer than asked for."""
    messages = [
        Message("system", SYSTEM),
        Message("user", _EXAMPLE),
        Message("assistant", _EXAMPLE_REPLY),
        Message("user", language.passage(title, chunk.text)),
    ]
    rounds: list[JsonValue] = []
    usage = Usage()
    for _ in range(1 + gleanings):
        request = Request("index", tuple(messages), _SCHEMA, REPLY_TOKENS, _checked, (chunk.document_id,))
        try:
            asked = language.ask(request, kit, METHOD)
        except (Rejected, PromptTooLong) as error:
            return {"rounds": rounds, "failure": str(error)}, usage + error.usage
        usage += asked.usage
        rounds.append(asked.value)
        messages += [Message("assistant", json.dumps(asked.value, ensure_ascii=False)), Message("user", GLEAN)]
    return {"rounds": rounds, "failure": None}, usage


def _checked(value: JsonValue) -> JsonValue:
    """The reply, if it can be read."""
    _taken(value)
    return value


def _taken(value: JsonValue) -> Extracted:
    """Raises Unusable for a reply without the two lists; a single record that lacks its names is left out."""
    entities = [_entity(item) for item in language.records_of(value, "entities")]
    relations = [_relation(item) for item in language.records_of(value, "relations")]
    return Extracted(
        tuple(one for one in entities if one is not None), tuple(one for one in relations if one is not None)
    )


def _entity(item: JsonValue) -> NamedThing | None:
    try:
        name, kind = entity_name(language.text_of(item, "name")), language.text_of(item, "type").lower()
        description = language.text_of(item, "description")
    except Unusable:
        return None
    return NamedThing(name, kind if kind in TYPES else "other", description) if name else None


def _relation(item: JsonValue) -> Link | None:
    try:
        source, target = (entity_name(language.text_of(item, end)) for end in ("source", "target"))
        description, keywords = language.text_of(item, "description"), language.texts_of(item, "keywords")
        strength = language.real_of(item, "strength", 1.0, STRONGEST)
    except Unusable:
        return None
    if not source or not target or source == target:
        return None
    return Link((min(source, target), max(source, target)), description, keywords, strength)


def _united(rounds: Sequence[Extracted]) -> Extracted:
    entities: dict[str, NamedThing] = {}
    relations: dict[tuple[str, str], Link] = {}
    for one in rounds:
        for entity in one.entities:
            entities.setdefault(entity.name, entity)
        for relation in one.relations:
            relations.setdefault(relation.ends, relation)
    return Extracted(tuple(entities.values()), tuple(relations.values()))
