"""What every extractor owes its callers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ecphoryrag.models.fakes import ScriptedGenerator
from ecphoryrag.models.llm_extractor import LLMExtractor
from ecphoryrag.models.names import NamesExtractor
from ecphoryrag.ports import Extractor
from ecphoryrag.settings import ChunkSettings
from ecphoryrag.settings.indexing import ExtractionSettings
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.text.keys import name_key
from ecphoryrag.types import Chunk, Document, Extraction, Heading, Message, Usage
from tests.support.memory_ledger import MemoryLedger

SHIP = "The Grey Pellin is a ship that was built by Ilka Varnholt in 1871. It belongs to Dunlisk.\n"
TOWN = "# Town\nDunlisk is a harbour town. Ilka Varnholt (IV) was born in Dunlisk. 東京 and Ｄｕｎｌｉｓｋ differ.\n"
DOCUMENTS = (
    Document("a", SHIP * 4, "Grey Pellin"),
    Document("b", SHIP + TOWN, "Dunlisk (town)", headings=(Heading(1, "Town", len(SHIP) + 2, len(SHIP) + 6),)),
    Document("c", "?! ... !!", ""),
    Document("d", "x", "The Night's Watch"),
    Document("e", TOWN * 3),
)


def names_in(messages: Sequence[Message]) -> str:
    """What a model might say: the capitalised runs of the text, one twice, one that is not there, and the title."""
    asked = messages[-1].content
    text = "\n".join(line[2:] for line in asked.split("\n") if line.startswith("> "))
    found = list(dict.fromkeys(re.findall(r"[A-Z]\w+(?: [A-Z]\w+)*|東京|Ｄ\w+|\d{4}", text)))
    rows = [[name, "person", 1 + at % 5, f"what {name} is"] for at, name in enumerate([*found, "Nowhere", *found[:1]])]
    return json.dumps({"entities": rows})


def scripted() -> Extractor:
    return LLMExtractor(ScriptedGenerator(names_in), ExtractionSettings(), MemoryLedger(), parallel=4)


@pytest.fixture(params=[NamesExtractor, scripted], ids=["names", "llm"])
def extractor(request: pytest.FixtureRequest) -> Extractor:
    make: Callable[[], Extractor] = request.param
    return make()


def chunked(document: Document) -> tuple[Chunk, ...]:
    return chunk_document(document, ChunkSettings(budget=32, overlap=8))


def without_cost(extractions: Sequence[Extraction]) -> list[Extraction]:
    return [replace(one, usage=Usage()) for one in extractions]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.id))
def test_mentions_hold(extractor: Extractor, document: Document) -> None:
    chunks = chunked(document)
    extractions = extractor.extract(document, chunks)
    assert len(extractions) == len(chunks)
    for chunk, extraction in zip(chunks, extractions, strict=True):
        assert extraction.failure is None
        order = [(mention.field == "text", mention.start, mention.end) for mention in extraction.mentions]
        assert order == sorted(set(order))
        for mention in extraction.mentions:
            assert getattr(document, mention.field)[mention.start : mention.end] == mention.name
            assert mention.key
            assert mention.key == name_key(mention.name)
            assert 1 <= mention.importance <= 5
            assert mention.about is None or mention.importance >= 4
            assert not any(sign < " " for sign in mention.description if sign != "\n")
            inside = mention.field == "title" or chunk.start <= mention.start < mention.end <= chunk.end
            assert inside or mention.about == "heading"
        described = [mention.key for mention in extraction.mentions if mention.description]
        assert len(described) == len(set(described))
        for one, other in extraction.aliases:
            assert one != other


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.id))
def test_title_and_headings_need_no_model(extractor: Extractor, document: Document) -> None:
    for chunk, extraction in zip(chunked(document), extractor.extract(document, chunked(document)), strict=True):
        about = {(mention.about, mention.name) for mention in extraction.mentions}
        assert not document.title or ("title", document.title) in about
        for heading in chunk.headings:
            assert ("heading", heading) in about


def test_what_it_returns_depends_on_the_document_alone(extractor: Extractor) -> None:
    alone = {document.id: without_cost(extractor.extract(document, chunked(document))) for document in DOCUMENTS}
    for document in reversed(DOCUMENTS):
        assert without_cost(extractor.extract(document, chunked(document))) == alone[document.id]
        single = [extractor.extract(document, [chunk])[0] for chunk in chunked(document)]
        assert without_cost(single) == alone[document.id]


def test_calls_from_several_threads_give_the_same(extractor: Extractor) -> None:
    parts = [(document, chunk) for document in DOCUMENTS for chunk in chunked(document)]
    one_by_one = [extractor.extract(document, [chunk])[0] for document, chunk in parts]
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda part: extractor.extract(part[0], [part[1]])[0], parts))
    assert without_cost(at_once) == without_cost(one_by_one)


def test_it_says_who_it_is_and_what_it_would_cost(extractor: Extractor) -> None:
    assert extractor.identity.startswith(("names/", "llm/"))
    assert extractor.parallel >= 1
    assert (extractor.model is None) == (extractor.estimate(DOCUMENTS[0], chunked(DOCUMENTS[0])) == Usage())
    assert extractor.extract(DOCUMENTS[0], []) == []
