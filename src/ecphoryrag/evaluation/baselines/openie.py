"""Open information extraction: the triples of a passage, in two calls of the language model, or from a file.

Gutiérrez et al. (2024), "HippoRAG", section 2.3 and appendix on prompts, and (2025), "From RAG to Memory", section
3.1: first the named entities of the passage (one call), then its triples, given these (a second call), each with one
worked example. The prompts are our own, and replies follow a schema, which bounds how many there can be. A passage
whose calls fail is kept, without triples, and counted in the notes; if only the first fails, the second is asked
without entities, as in the public code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ecphoryrag.calls.asking import Request
from ecphoryrag.calls.quoting import plain
from ecphoryrag.calls.reading import Unusable
from ecphoryrag.errors import PromptTooLong, Rejected
from ecphoryrag.evaluation.baselines import language
from ecphoryrag.evaluation.baselines.kept import Journal, digest
from ecphoryrag.evaluation.baselines.port import Kit
from ecphoryrag.evaluation.baselines.triples import Opened, Triple, clean_triples, given_triples
from ecphoryrag.ports import JsonSchema
from ecphoryrag.types import Document, JsonValue, Message, Usage

VERSION = 1
"""Of prompts and reading; a change of it makes the folder's triples be read again."""
METHOD = "open information extraction"
ENTITIES, TRIPLES = 30, 30
"""Of a passage, at most: a small model that repeats itself would otherwise never end."""
LONGEST = 120
"""Characters of a name or relation."""
ENTITY_TOKENS, TRIPLE_TOKENS = 512, 1536

ENTITY_SYSTEM = f"""\
List the named entities of the passage: people, places, organizations, works, events, dates, numbers with a meaning, \
and other things that have a name. Spell them as in the passage.
Reply with one JSON object: {{"entities": ["...", ...]}}
{language.QUOTED}"""

TRIPLE_SYSTEM = f"""\
Turn the passage into facts for a knowledge graph. Reply with one JSON object: \
{{"triples": [["subject", "relation", "object"], ...]}}
- Each fact has at least one, better two, of the listed entities as subject or object.
- Write the name in place of a pronoun. Keep relations short.
- State what the passage states and nothing else.
{language.QUOTED}"""

_EXAMPLE = language.passage(
    "Mill Lane Bakery",
    "Mill Lane Bakery opened in Lisbon in 1921. Its founder, the baker Ines Duarte, was born in Porto.",
)
_EXAMPLE_ENTITIES = '["Mill Lane Bakery", "Lisbon", "1921", "Ines Duarte", "Porto"]'
_EXAMPLE_TRIPLES = (
    '{"triples": [["Mill Lane Bakery", "opened in", "Lisbon"], ["Mill Lane Bakery", "opened in year", "1921"], '
    '["Ines Duarte", "founded", "Mill Lane Bakery"], ["Ines Duarte", "is a", "baker"], '
    '["Ines Duarte", "was born in", "Porto"]]}'
)
_ENTITY_SCHEMA = language.record(entities=language.texts(LONGEST, ENTITIES))
_THREE: JsonSchema = {**language.texts(LONGEST, 3), "minItems": 3}
_TRIPLE_SCHEMA = language.record(triples={"type": "array", "maxItems": TRIPLES, "items": dict(_THREE)})


def triples_made_of(openie: Path | None, kit: Kit) -> str:
    """What besides the documents determines their triples."""
    if openie is not None:
        return "given"  # the triples themselves are part of what an index is made of
    return f"read {VERSION} by {language.model_of(kit, METHOD).identity}"


def read_triples(documents: Sequence[Document], openie: Path | None, kit: Kit) -> Opened:
    """The triples of the documents, from the file if one is named, else by the language model, once a document.

    Raises InputError for a file that cannot be read, and ModelError if the model makes no more calls; what it read
    until then is in the folder.
    """
    if openie is not None:
        return given_triples(openie, documents)
    maker = triples_made_of(None, kit)
    journal = Journal(kit.folder, kit.clock)
    triples: list[tuple[Triple, ...]] = []
    usage, failed = Usage(), list[str]()
    for number, document in enumerate(documents):
        kit.tell("reading triples", number, len(documents))
        key = digest([maker, document.id, document.content_hash])
        found = journal.find(key)
        if found is None:
            found = _read(document, kit)
            journal.add(key, *found)
        value, paid = found
        usage += paid
        raw, failure = language.field_of(value, "triples"), language.field_of(value, "failure")
        triples.append(clean_triples(_threes(raw)))
        if failure is not None:
            failed.append(f"{document.id}: {failure}")
    kit.tell("reading triples", len(documents), len(documents))
    notes = (f"{len(failed)} of {len(documents)} passages have no triples; the first: {failed[0]}",) if failed else ()
    return Opened(tuple(triples), usage, notes)


def _read(document: Document, kit: Kit) -> tuple[JsonValue, Usage]:
    """``triples`` and ``failure``, as JSON, and what they cost."""
    usage, entities = Usage(), tuple[str, ...]()
    passage = language.passage(document.title, document.text)
    try:
        asked = language.ask(_entity_request(document.id, passage), kit, METHOD)
        usage, entities = asked.usage, asked.value
    except (Rejected, PromptTooLong) as error:
        usage = error.usage
    try:
        opened = language.ask(_triple_request(document.id, passage, entities), kit, METHOD)
    except (Rejected, PromptTooLong) as error:
        return {"triples": [], "failure": str(error)}, usage + error.usage
    return {"triples": [list(three) for three in opened.value], "failure": None}, usage + opened.usage


def _entity_request(document: str, passage: str) -> Request[tuple[str, ...]]:
    return Request(
        "index",
        (
            Message("system", ENTITY_SYSTEM),
            Message("user", _EXAMPLE),
            Message("assistant", f'{{"entities": {_EXAMPLE_ENTITIES}}}'),
            Message("user", passage),
        ),
        _ENTITY_SCHEMA,
        ENTITY_TOKENS,
        lambda value: language.texts_of(value, "entities"),
        (document,),
    )


def _triple_request(document: str, passage: str, entities: Sequence[str]) -> Request[tuple[tuple[str, ...], ...]]:
    listed = language.data("Entities", ["; ".join(entities)])
    example = language.data("Entities", ["; ".join(_EXAMPLE_ENTITIES.strip("[]").replace('"', "").split(", "))])
    return Request(
        "index",
        (
            Message("system", TRIPLE_SYSTEM),
            Message("user", f"{_EXAMPLE}\n{example}"),
            Message("assistant", _EXAMPLE_TRIPLES),
            Message("user", f"{passage}\n{listed}"),
        ),
        _TRIPLE_SCHEMA,
        TRIPLE_TOKENS,
        lambda value: _threes(language.field_of(value, "triples")),
        (document,),
    )


def _threes(value: JsonValue) -> tuple[tuple[str, ...], ...]:
    """Lists of three texts; of other lengths are left out, as in the public code. Raises Unusable for no list."""
    if not isinstance(value, list):
        raise Unusable('"triples" must be a list of [subject, relation, object]')
    threes = (tuple(plain(word) for word in item if isinstance(word, str)) for item in value if isinstance(item, list))
    return tuple(three for three in threes if len(three) == 3)
