"""The method ``think-on-graph``: Sun et al. (2024), "Think-on-Graph: Deep and Responsible Reasoning of LLMs".

- Initialisation (section 2.1.1): the entities of the question, at most as many as the beam is wide, read by the model.
- Exploration (section 2.1.2): :mod:`think_on_graph_walk`, beam 3, depth 3.
- Reasoning (section 2.1.3): after each depth the model says whether the triples walked so far suffice, and if they do,
  answers. Where the walk can go no further it answers from these triples; where the depth is used up it answers from
  what it knows, without them, as the publication says.

Departures: the graph is that of the corpus's triples (given, or read by the model as for ``hipporag2``), where the
publication has Freebase or Wikidata; an entity of the question that is no name in the graph stands for the nearest one;
prompts are our own and replies follow a schema. The publication retrieves no passages: here a triple stands for the
passages that have it, in the order of the walk, so that the ranking may be shorter than asked for.

Parameters: ``openie`` (a file of triples), ``width`` 3, ``depth`` 3.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ecphoryrag.calls.asking import Request
from ecphoryrag.calls.quoting import one_line
from ecphoryrag.calls.reading import Unusable
from ecphoryrag.errors import InputError, PromptTooLong, Rejected
from ecphoryrag.evaluation.baselines import language
from ecphoryrag.evaluation.baselines.kept import digest, load_index, save_index
from ecphoryrag.evaluation.baselines.memory import ENTITY
from ecphoryrag.evaluation.baselines.openie import read_triples, triples_made_of
from ecphoryrag.evaluation.baselines.options import Options
from ecphoryrag.evaluation.baselines.port import Indexed, Kit, Retrieved, evidence_of
from ecphoryrag.evaluation.baselines.think_on_graph_walk import METHOD, Links, Near, Stand, Step, Walker, link
from ecphoryrag.evaluation.baselines.triples import normal_phrase
from ecphoryrag.ports import Vectors
from ecphoryrag.types import Answer, Chunk, Document, Evidence, JsonValue, Message, Recall, Usage
from ecphoryrag.types import Path as Road

NAME = METHOD
VERSION = 1
TOPIC_TOKENS, ANSWER_TOKENS = 128, 320
LONGEST = 120

TOPIC_SYSTEM = """\
List the entities that the question names: people, places, works, organizations, events and other things with a name. \
The most specific first. Reply with one JSON object: {"entities": ["..."]}"""
REASON_SYSTEM = f"""\
Given a question and facts from a knowledge graph, say whether the facts, with what you know, are enough to answer it.
Reply with one JSON object: {{"reasoning": "...", "sufficient": true or false, "answer": "..."}}
- answer: only the name, place, date, number, or yes or no that was asked for; empty if the facts are not enough.
{language.QUOTED}"""
FACTS_SYSTEM = f"""\
Answer the question from the facts as well as you can, with what you know where they fall short.
Reply with one JSON object: {{"reasoning": "...", "answer": "..."}}
- answer: only the name, place, date, number, or yes or no that was asked for.
{language.QUOTED}"""
KNOWN_SYSTEM = """\
Answer the question from what you know, step by step.
Reply with one JSON object: {"reasoning": "...", "answer": "..."}
- answer: only the name, place, date, number, or yes or no that was asked for."""
_ANSWER_SCHEMA = language.record(
    reasoning={"type": "string", "maxLength": 400}, answer={"type": "string", "minLength": 1, "maxLength": 200}
)
_REASON_SCHEMA = language.record(
    reasoning={"type": "string", "maxLength": 400},
    sufficient={"type": "boolean"},
    answer={"type": "string", "maxLength": 200},
)


@dataclass(frozen=True, slots=True)
class Trace:
    """A walk, and the answer it ended with."""

    question: str
    steps: tuple[Step, ...] = ()
    text: str | None = None
    reasoning: str = ""
    reason: str | None = None
    walking: Usage = field(default_factory=Usage)
    """The part of the usage that chose where to go."""
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Index:
    documents: tuple[Document, ...]
    links: Links
    names: tuple[str, ...]
    vectors: Vectors


def make(kit: Kit) -> ThinkOnGraph:
    """The method. Raises SettingsError for a parameter it does not have, and ModelNotAvailable without a model."""
    options = Options(NAME, kit.parameters)
    openie, width, depth = options.text("openie"), options.count("width", 3), options.count("depth", 3)
    options.finish()
    language.model_of(kit, NAME)
    return ThinkOnGraph(kit, Path(openie) if openie else None, width, depth)


class ThinkOnGraph:
    """Lets the language model walk the graph of triples."""

    name = NAME

    def __init__(self, kit: Kit, openie: Path | None, width: int, depth: int) -> None:
        self._kit = kit
        self._openie = openie
        self._width = width
        self._depth = depth
        self._index: _Index | None = None
        self._last: Trace | None = None

    def index(self, documents: Sequence[Document]) -> Indexed:
        """Triples, and vectors of the names in them. Raises InputError and ModelError as ``hipporag2`` does."""
        started = self._kit.clock.now()
        encoder = self._kit.encoder
        opened = read_triples(documents, self._openie, self._kit)
        links = link(opened.triples)
        names = tuple(links.of)
        made_of = digest(
            [
                *(NAME, VERSION, encoder.identity.fingerprint, triples_made_of(self._openie, self._kit)),
                [part for document in documents for part in (document.id, document.content_hash)],
                [" | ".join(triple) for some in opened.triples for triple in some],
            ]
        )
        kept = load_index(self._kit.folder, made_of)
        if kept is None:
            self._kit.tell("embedding names", 0, len(names))
            encoded = encoder.encode(names, "passage")
            figures = {"phrases": len(names), "facts": len(links.passages)}
            seconds = self._kit.clock.now() - started
            report = Indexed(opened.usage + encoded.usage, seconds, figures, opened.notes)
            save_index(self._kit.folder, made_of, report, {"names": encoded.vectors})
            vectors = encoded.vectors
        else:
            report, arrays = kept
            vectors = np.asarray(arrays["names"], np.float32)
        self._index = _Index(tuple(documents), links, names, vectors)
        return report

    def retrieve(self, question: str, k: int) -> Retrieved:
        """The passages that have the triples walked, in the order of the walk. Raises ModelError."""
        index, trace = self._ready(), self._trace(question)
        scores: dict[int, float] = {}
        for step in trace.steps:
            for passage in index.links.passages[step.triple]:
                scores.setdefault(passage, step.score)
        found = list(scores)[:k]
        documents = [index.documents[at] for at in found]
        reason = None if found else "the walk came to no triple"
        evidence = evidence_of(documents, [scores[at] for at in found])
        recall = Recall(question, NAME, evidence, reason=reason, usage=trace.walking)
        ids = tuple(document.id for document in documents)
        return Retrieved(ids, recall, trace.walking, trace.seconds, trace.notes)

    def answer(self, question: str) -> Answer:
        """The model's own, from the triples as its evidence; its usage is that of all calls. Raises ModelError."""
        trace = self._trace(question)
        evidence = tuple(_as_evidence(number, step) for number, step in enumerate(trace.steps, 1))
        recall = Recall(question, NAME, evidence, usage=trace.walking)
        model = language.model_of(self._kit, NAME).name
        return Answer(
            question, trace.text, trace.reasoning, evidence, (), recall, trace.usage, trace.reason, model, trace.notes
        )

    def close(self) -> None:
        """Let the index go."""
        self._index = None

    def _ready(self) -> _Index:
        if self._index is None:
            raise InputError(f"{NAME} has no index yet: index the documents first")
        return self._index

    def _trace(self, question: str) -> Trace:
        """Of the question asked last it is remembered: answering and retrieving are one piece of work."""
        if self._last is None or self._last.question != question:
            started = time.perf_counter()
            trace = self._run(question)
            self._last = replace(trace, seconds=time.perf_counter() - started)
        return self._last

    def _run(self, question: str) -> Trace:
        index = self._ready()
        vector = self._kit.encoder.encode([question], "query")
        trace = Trace(question, walking=vector.usage, usage=vector.usage)
        near = _near(self._kit, vector.vectors[0])
        walker = Walker(question, index.links, near, self._width, self._kit)
        stands, trace = self._topics(trace, index)
        for _ in range(self._depth):
            went = walker.go(stands)
            trace = replace(
                trace,
                steps=tuple(dict.fromkeys((*trace.steps, *went.steps))),
                walking=trace.walking + went.usage,
                usage=trace.usage + went.usage,
                notes=(*trace.notes, *went.notes),
            )
            if not went.steps:
                return self._conclude(trace, FACTS_SYSTEM if trace.steps else KNOWN_SYSTEM)
            trace, enough = self._reason(trace)
            if enough:
                return trace
            stands = went.stands
        return self._conclude(trace, KNOWN_SYSTEM)

    def _topics(self, trace: Trace, index: _Index) -> tuple[tuple[Stand, ...], Trace]:
        """Where the walk begins."""
        request = Request(
            "cue",
            language.turn(TOPIC_SYSTEM, f"Question: {one_line(trace.question)}"),
            language.record(entities=language.texts(LONGEST, self._width)),
            TOPIC_TOKENS,
            lambda value: language.texts_of(value, "entities"),
        )
        try:
            asked = language.ask(request, self._kit, NAME)
        except (Rejected, PromptTooLong) as error:
            notes = (*trace.notes, f"no entity was read out of the question: {error}")
            spent = error.usage
            return (), replace(trace, notes=notes, walking=trace.walking + spent, usage=trace.usage + spent)
        names, spent = self._known(asked.value[: self._width], index)
        spent += asked.usage
        stands = tuple(Stand(name) for name in dict.fromkeys(names))
        return stands, replace(trace, walking=trace.walking + spent, usage=trace.usage + spent)

    def _known(self, words: Sequence[str], index: _Index) -> tuple[list[str], Usage]:
        """For each of the question's entities the name in the graph."""
        if not index.names or not words:
            return [], Usage()
        encoded = self._kit.encoder.encode([normal_phrase(word) for word in words], "query")
        nearest = np.argmax(encoded.vectors @ index.vectors.T, axis=1)
        phrases = [normal_phrase(word) for word in words]
        known = [
            phrase if phrase in index.links.of else index.names[at] for phrase, at in zip(phrases, nearest, strict=True)
        ]
        return known, encoded.usage

    def _reason(self, trace: Trace) -> tuple[Trace, bool]:
        """Whether the triples suffice, and if so the answer."""
        request = Request(
            "answer", _prompt(REASON_SYSTEM, trace), _REASON_SCHEMA, ANSWER_TOKENS, _judged, self._made_of(trace)
        )
        try:
            asked = language.ask(request, self._kit, NAME)
        except (Rejected, PromptTooLong) as error:
            note = f"the walk went on, since whether it suffices could not be read: {error}"
            return replace(trace, usage=trace.usage + error.usage, notes=(*trace.notes, note)), False
        reasoning, text = asked.value
        trace = replace(trace, usage=trace.usage + asked.usage)
        return (replace(trace, text=text, reasoning=reasoning), True) if text else (trace, False)

    def _conclude(self, trace: Trace, system: str) -> Trace:
        """The answer in the end: from the triples, or from what the model knows."""
        shown = trace if system == FACTS_SYSTEM else Trace(trace.question)
        request = Request(
            "answer", _prompt(system, shown), _ANSWER_SCHEMA, ANSWER_TOKENS, _answered, self._made_of(shown)
        )
        try:
            asked = language.ask(request, self._kit, NAME)
        except (Rejected, PromptTooLong) as error:
            reason = f"the language model gave no usable answer: {error}"
            return replace(trace, usage=trace.usage + error.usage, reason=reason)
        reasoning, text = asked.value
        note = "answered without the triples" if system == KNOWN_SYSTEM else "answered from what triples there were"
        return replace(
            trace, usage=trace.usage + asked.usage, text=text, reasoning=reasoning, notes=(*trace.notes, note)
        )

    def _made_of(self, trace: Trace) -> tuple[str, ...]:
        index = self._ready()
        passages = (passage for step in trace.steps for passage in index.links.passages[step.triple])
        return tuple(dict.fromkeys(index.documents[at].id for at in passages))


def _near(kit: Kit, vector: Vectors) -> Near:
    def near(texts: Sequence[str]) -> Sequence[float]:
        return [float(one) for one in kit.encoder.encode(texts, "passage").vectors @ vector]

    return near


def _prompt(system: str, trace: Trace) -> tuple[Message, ...]:
    facts = [" | ".join(step.triple) for step in trace.steps]
    shown = f"{language.data('Facts', facts)}\n" if facts else ""
    return language.turn(system, f"{shown}Question: {one_line(trace.question)}")


def _judged(value: JsonValue) -> tuple[str, str]:
    """Reasoning, and the answer, empty if the facts do not suffice. Raises Unusable."""
    reasoning, text = language.text_of(value, "reasoning"), language.text_of(value, "answer")
    enough = language.field_of(value, "sufficient")
    if not isinstance(enough, bool):
        raise Unusable('"sufficient" must be true or false')
    if enough and not text:
        raise Unusable('"answer" must not be empty if the facts are sufficient')
    return reasoning, text if enough else ""


def _answered(value: JsonValue) -> tuple[str, str]:
    """Raises Unusable."""
    reasoning, text = language.text_of(value, "reasoning"), language.text_of(value, "answer")
    if not text:
        raise Unusable('"answer" must not be empty')
    return reasoning, text


def _as_evidence(number: int, step: Step) -> Evidence:
    """A triple as a piece of evidence that is no passage."""
    text = " | ".join(step.triple)
    return Evidence(number, Chunk(f"{ENTITY}{step.led_to}", 0, text, 0, len(text)), "", step.score, {}, Road("spread"))
