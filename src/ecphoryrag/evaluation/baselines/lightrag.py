"""The method ``lightrag``: Guo, Xia, Yu, Ao and Huang (2024), "LightRAG".

- Graph-based indexing (section 3.1): :mod:`lightrag_extract` (R) and :mod:`lightrag_profiles` (P and D).
- Keywords of the question (section 3.2): one call gives low-level ones (what is named) and high-level ones (themes).
- Retrieval (section 3.2): :mod:`lightrag_search`, with the public code's budgets of version 1: 60 entities or
  relations, 4,000 tokens each of entities, relations and chunks.
- Generation (section 3.3) is the shared reader's, which is shown the chunks of the context and then, as evidence that
  is no passage, the descriptions of its entities and relations, as far as the reader's own budget goes.

Departures: chunks of at most 1,200 tokens end with sentences; the encoder, reader and counting of tokens are those
of the run; a question without keywords, or whose keywords cannot be read, is its own keyword, with a note (the public
code gives no answer); a document is as good as its best chunk.

Parameters: ``mode`` (``hybrid``, ``local``, ``global``, ``mix``), ``gleanings`` 1, ``top`` 60, ``threshold`` 0.2,
``chunks`` 10 (of *mix*), ``entity_tokens``, ``relation_tokens`` and ``text_tokens`` 4000, ``chunk_tokens`` 1200,
``context`` (what the reader is shown: ``all``, or ``chunks``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from ecphoryrag.calls.asking import Request
from ecphoryrag.calls.quoting import one_line
from ecphoryrag.errors import InputError, PromptTooLong, Rejected
from ecphoryrag.evaluation.baselines import language
from ecphoryrag.evaluation.baselines.kept import Arrays, digest, load_index, save_index
from ecphoryrag.evaluation.baselines.lightrag_extract import extract
from ecphoryrag.evaluation.baselines.lightrag_profiles import Profiles, profiles, summarise
from ecphoryrag.evaluation.baselines.lightrag_search import (
    MODES,
    Context,
    Graph,
    Limits,
    by_question,
    in_turns,
    local,
    overall,
)
from ecphoryrag.evaluation.baselines.memory import ENTITY
from ecphoryrag.evaluation.baselines.options import Options
from ecphoryrag.evaluation.baselines.port import Indexed, Kit, Retrieved
from ecphoryrag.indexing import passage_vectors
from ecphoryrag.settings import ChunkSettings
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.types import Answer, Chunk, Document, Entity, Evidence, Message, RankedEntity, Recall, Relation, Usage
from ecphoryrag.types import Path as Road

NAME = "lightrag"
VERSION = 1
OVERLAP = 100
"""Tokens that a chunk repeats of the one before it."""
KEYWORDS, LONGEST, KEYWORD_TOKENS = 8, 80, 256

SYSTEM = """\
Give the keywords to search for the answer of the question. Reply with one JSON object: {"high": [...], "low": [...]}
- high: themes and kinds of relation that the question is about.
- low: the names, things and details that it mentions."""
_EXAMPLE = "Question: In which city was the founder of Mill Lane Bakery born?"
_EXAMPLE_REPLY = '{"high": ["founder", "place of birth"], "low": ["Mill Lane Bakery", "city"]}'
_SCHEMA = language.record(high=language.texts(LONGEST, KEYWORDS), low=language.texts(LONGEST, KEYWORDS))


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters, with the publication's values as defaults."""

    mode: str
    gleanings: int
    chunk_tokens: int
    described: bool
    """Whether the reader is shown entities and relations."""
    limits: Limits


@dataclass(frozen=True, slots=True)
class Keywords:
    """What to search for, on two levels, and what it cost to know."""

    high: tuple[str, ...]
    low: tuple[str, ...]
    usage: Usage
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Index:
    documents: dict[str, Document]
    chunks: tuple[Chunk, ...]
    graph: Graph


def make(kit: Kit) -> LightRAG:
    """The method with the kit's parameters. Raises SettingsError for one that is unknown or out of range."""
    options = Options(NAME, kit.parameters)
    usual = Limits()
    setting = Setting(
        options.choice("mode", MODES),
        options.count("gleanings", 1, least=0),
        options.count("chunk_tokens", 1200, least=16),
        options.choice("context", ("all", "chunks")) == "all",
        Limits(
            options.count("top", usual.top),
            options.real("threshold", usual.threshold, -1, 1),
            options.count("chunks", usual.chunks),
            options.count("entity_tokens", usual.entity_tokens),
            options.count("relation_tokens", usual.relation_tokens),
            options.count("text_tokens", usual.text_tokens),
        ),
    )
    options.finish()
    return LightRAG(kit, setting)


class LightRAG:
    """Chunks reached over a graph of entity and relation profiles that is searched on two levels."""

    name = NAME

    def __init__(self, kit: Kit, setting: Setting) -> None:
        self._kit = kit
        self._setting = setting
        self._index: _Index | None = None

    def index(self, documents: Sequence[Document]) -> Indexed:
        """Entities, relations, profiles and vectors; what the folder holds of these documents is read from it.

        Raises ModelError as encoder and language model do; what was paid until then is in the folder.
        """
        started = self._kit.clock.now()
        settings = ChunkSettings(budget=self._setting.chunk_tokens, overlap=OVERLAP)
        titled = [(one.title, chunk) for one in documents for chunk in chunk_document(one, settings)]
        extracted, usage, notes = extract(titled, self._setting.gleanings, self._kit)
        merged, paid, cut = summarise(profiles(extracted), self._kit)
        made_of = digest(
            [
                *(NAME, VERSION, self._kit.encoder.identity.fingerprint),
                [[chunk.document_id, title, chunk.text] for title, chunk in titled],
                [[entity.text, *map(str, entity.chunks)] for entity in merged.entities],
                [[relation.text, *map(str, relation.chunks)] for relation in merged.relations],
            ]
        )
        kept = load_index(self._kit.folder, made_of)
        if kept is None:
            arrays, spent = self._build(titled, merged)
            figures = {
                "chunks": len(titled),
                "entities": len(merged.entities),
                "relations": len(merged.relations),
            }
            report = Indexed(usage + paid + spent, self._kit.clock.now() - started, figures, (*notes, *cut))
            save_index(self._kit.folder, made_of, report, arrays)
        else:
            report, arrays = kept
        vectors = {name: np.asarray(arrays[name], np.float32) for name in ("entities", "relations", "chunks")}
        chunks = tuple(chunk for _, chunk in titled)
        graph = Graph(
            merged,
            tuple(chunk.text for chunk in chunks),
            vectors["entities"],
            vectors["relations"],
            vectors["chunks"],
        )
        self._index = _Index({one.id: one for one in documents}, chunks, graph)
        return report

    def _build(self, titled: Sequence[tuple[str, Chunk]], merged: Profiles) -> tuple[Arrays, Usage]:
        encoder, tell = self._kit.encoder, self._kit.tell
        tell("embedding chunks", 0, len(titled))
        chunks = passage_vectors([title for title, _ in titled], [chunk.text for _, chunk in titled], encoder)
        tell("embedding entities", 0, len(merged.entities))
        entities = encoder.encode([one.text for one in merged.entities], "passage")
        tell("embedding relations", 0, len(merged.relations))
        relations = encoder.encode([one.text for one in merged.relations], "passage")
        arrays = {"chunks": chunks.vectors, "entities": entities.vectors, "relations": relations.vectors}
        return arrays, chunks.usage + entities.usage + relations.usage

    def retrieve(self, question: str, k: int) -> Retrieved:
        """Documents by their first chunk in the context, which with entities and relations is the evidence.

        Raises ModelError.
        """
        started = time.perf_counter()
        if self._index is None:
            raise InputError(f"{NAME} has no index yet: index the documents first")
        keywords = read_keywords(question, self._kit)
        context, spent = self._search(question, keywords, self._index.graph)
        usage = keywords.usage + spent
        chunks = [self._index.chunks[at] for at in context.chunks]
        documents = tuple(dict.fromkeys(chunk.document_id for chunk in chunks))[:k]
        evidence = [at for at in context.chunks if self._index.chunks[at].document_id in documents]
        recall = _recall(question, self._index, Context(context.entities, context.relations, tuple(evidence)), usage)
        if self._setting.described:
            recall = replace(recall, chunks=(*recall.chunks, *_described(recall)))
        return Retrieved(documents, recall, usage, time.perf_counter() - started, keywords.notes)

    def _search(self, question: str, keywords: Keywords, graph: Graph) -> tuple[Context, Usage]:
        mode, limits = self._setting.mode, self._setting.limits
        encoded = self._kit.encoder.encode([", ".join(keywords.low), ", ".join(keywords.high), question], "query")
        low, high, whole = encoded.vectors
        contexts: list[Context] = []
        if mode == "mix":
            contexts.append(by_question(graph, whole, limits))
        # Without keywords of its own level, a mode of one level takes the other, as the public code does.
        if keywords.low and (mode != "global" or not keywords.high):
            contexts.append(local(graph, low, limits))
        if keywords.high and (mode != "local" or not keywords.low):
            contexts.append(overall(graph, high, limits))
        return in_turns(contexts), encoded.usage

    def answer(self, question: str) -> Answer | None:
        """None: the shared reader answers."""
        del question
        return None

    def close(self) -> None:
        """Let the index go."""
        self._index = None


def read_keywords(question: str, kit: Kit) -> Keywords:
    """High- and low-level keywords; the question itself if there are none, with a note. Raises ModelError."""
    request = Request(
        "cue",
        (
            *language.turn(SYSTEM, _EXAMPLE),
            Message("assistant", _EXAMPLE_REPLY),
            Message("user", f"Question: {one_line(question)}"),
        ),
        _SCHEMA,
        KEYWORD_TOKENS,
        lambda value: (language.texts_of(value, "high"), language.texts_of(value, "low")),
    )
    try:
        asked = language.ask(request, kit, NAME)
    except (Rejected, PromptTooLong) as error:
        return Keywords((), (question,), error.usage, (f"the question is its own keyword: {error}",))
    high, low = asked.value
    if not high and not low:
        return Keywords((), (question,), asked.usage, ("the question is its own keyword: the model gave none",))
    return Keywords(high, low, asked.usage, asked.notes)


def _recall(question: str, index: _Index, context: Context, usage: Usage) -> Recall:
    """The context as evidence: chunks, entity profiles, and relation profiles with keywords as their labels."""
    profile = index.graph.profiles
    chunks = tuple(
        Evidence(number, chunk, document.title, 1 / number, {}, Road("spread"), document.metadata)
        for number, chunk in enumerate((index.chunks[at] for at in context.chunks), 1)
        for document in [index.documents[chunk.document_id]]
    )
    entities = tuple(
        RankedEntity(rank, Entity(one.name, one.name, one.type, one.description, 3, (one.name,), *counts), 1 / rank)
        for rank, one in enumerate((profile.entities[at] for at in context.entities), 1)
        for counts in [(len(one.chunks), len(one.chunks))]
    )
    relations = tuple(
        Relation(*one.names, one.description, first.document_id, first.start, first.end, 1 / rank, one.keywords)
        for rank, one in enumerate((profile.relations[at] for at in context.relations), 1)
        for first in [index.chunks[one.chunks[0]]]
    )
    reason = None if chunks else "no entity or relation is like the question's keywords"
    return Recall(question, NAME, chunks, entities, (), relations, reason, usage)


def _described(recall: Recall) -> tuple[Evidence, ...]:
    """Entities and relations in turns, as pieces of evidence that are no passages."""
    entities = [(one.entity.name, one.entity.description) for one in recall.entities]
    relations = [(f"{one.subject} - {one.object}", one.sentence) for one in recall.relations]
    rows = [item for row in zip_longest(entities, relations) for item in row if item is not None and item[1]]
    return tuple(
        Evidence(number, Chunk(f"{ENTITY}{title}", 0, text, 0, len(text)), title, 1 / number, {}, Road("spread"))
        for number, (title, text) in enumerate(rows, len(recall.chunks) + 1)
    )
