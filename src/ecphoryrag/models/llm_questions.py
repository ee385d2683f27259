"""What a language model adds at question time: the entities of the question, and how two entities are related.

Both are help and no more: a model that fails leaves a note, and recall goes on as it would without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from ecphoryrag.calls.asking import Request, ask
from ecphoryrag.calls.quoting import one_line, plain
from ecphoryrag.calls.reading import Unusable
from ecphoryrag.errors import ModelError
from ecphoryrag.models.llm_prompts import (
    CUES_TOKENS,
    LABEL_CHARACTERS,
    LABEL_TOKENS,
    MOST_CUES,
    MOST_LABEL_WORDS,
    NAME_CHARACTERS,
    cue_prompt,
    cue_schema,
    label_prompt,
    label_schema,
)
from ecphoryrag.ports import Finding, Generator, Ledger
from ecphoryrag.types import JsonValue, Relation, Spending, Usage

T = TypeVar("T")


class ModelCueFinder:
    """Names the entities of a question by one call (port ``CueFinder``)."""

    def __init__(self, generator: Generator, ledger: Ledger | None = None) -> None:
        self._generator = generator
        self._ledger = ledger

    def find_cues(self, question: str) -> Finding:
        """The names, each once; a failure of the model is a note."""
        request = Request("cue", cue_prompt(question), cue_schema(), CUES_TOKENS, _read_names)
        return _found(request, self._generator, self._ledger, lambda names: Finding(names=names))


class ModelRelationLabeller:
    """Labels relations by one call for all of them (port ``RelationLabeller``)."""

    def __init__(self, generator: Generator, ledger: Ledger | None = None) -> None:
        self._generator = generator
        self._ledger = ledger

    def label_relations(self, question: str, relations: Sequence[Relation]) -> Finding:
        """The same relations in the same order, with a label where the model gave one; a failure is a note.

        The question is not shown to the model: a label says what the sentence does, whatever was asked.
        """
        del question
        if not relations:
            return Finding()
        count = len(relations)
        request = Request(
            purpose="relation",
            messages=label_prompt(relations),
            schema=label_schema(count),
            max_tokens=LABEL_TOKENS * (count + 1),
            read=lambda said: _read_labels(said, count),
            documents=tuple(dict.fromkeys(relation.document_id for relation in relations)),
        )

        def labelled(labels: Sequence[str | None]) -> Finding:
            pairs = zip(relations, labels, strict=True)
            return Finding(relations=tuple(replace(relation, label=label) for relation, label in pairs))

        unlabelled = Finding(relations=tuple(relations))
        return _found(request, self._generator, self._ledger, labelled, unlabelled)


_NOTHING = Finding()
_WANTED = {"cue": "cues", "relation": "relations labelled"}


def _found(
    request: Request[T],
    generator: Generator,
    ledger: Ledger | None,
    made: Callable[[T], Finding],
    without: Finding = _NOTHING,
) -> Finding:
    """What is made of the reply, or the finding without one and a note; with the cost of either."""
    try:
        asked = ask(request, generator, ledger=ledger)
    except ModelError as error:
        wanted = _WANTED[request.purpose]
        note = f"no {wanted} by the language model: {error}"
        finding, usage, notes = without, error.usage, (*error.notes, note)
    else:
        finding, usage, notes = made(asked.value), asked.usage, asked.notes
    spent = () if usage == Usage() else (Spending(request.purpose, generator.name, usage),)
    return replace(finding, spending=spent, notes=notes)


def _read_names(said: JsonValue) -> tuple[str, ...]:
    names = said.get("names") if isinstance(said, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Unusable('the reply has no list of texts "names"')
    tidied = [one_line(plain(str(name)))[:NAME_CHARACTERS] for name in names]
    return tuple(dict.fromkeys(name for name in tidied if name))[:MOST_CUES]


def _read_labels(said: JsonValue, count: int) -> tuple[str | None, ...]:
    labels = said.get("labels") if isinstance(said, dict) else None
    if not isinstance(labels, list) or not all(label is None or isinstance(label, str) for label in labels):
        raise Unusable('the reply has no list of texts and nulls "labels"')
    if len(labels) != count:
        raise Unusable(f"the reply has {len(labels)} labels for {count} lines")
    return tuple(_label(str(label or "")) for label in labels)


def _label(said: str) -> str | None:
    """The label, if it is one: small models repeat the sentence instead."""
    label = one_line(plain(said))[:LABEL_CHARACTERS]
    return label if 0 < len(label.split()) <= MOST_LABEL_WORDS else None
