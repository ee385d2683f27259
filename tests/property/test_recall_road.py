"""Whatever documents say and questions ask: every span holds, nothing is NaN, and the order of adding is nothing."""

from __future__ import annotations

from typing import get_args

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.models.none import NoEncoder
from ecphoryrag.ports import IndexedDocument
from ecphoryrag.recall import PreparedCache, RecallRequest, recall
from ecphoryrag.settings import MethodName, RecallSettings
from ecphoryrag.types import Recall
from tests.support.reference_view import ReferenceView, told

METHODS: tuple[MethodName, ...] = get_args(MethodName)
NAMES = ("Anna Marsh", "Silent Harbour", "Silent", "Bela", "東京", "हिन्दी", "The Night's Watch", "Old Town", "¾ Moon")
pieces = st.sampled_from(
    [*NAMES, "wrote", "was born in", "silent harbour", "and", ".", "?", "  ", "\n", "the", "of", "\u2028", "anna marsh"]
)
texts = st.lists(pieces, max_size=12).map(" ".join)
titles = st.sampled_from(["", "Silent Harbour", "Old Town (novel)", "東京", "!!!"])
ENCODERS = (HashEncoder(8), NoEncoder())
documents = st.lists(st.tuples(texts, titles, st.booleans()), max_size=6)


def made(told_of: list[tuple[str, str, bool]], encoder: HashEncoder | NoEncoder) -> list[IndexedDocument]:
    return [
        told(f"d{at}", text, NAMES, title=title, encoder=encoder, metadata={"kept": kept})
        for at, (text, title, kept) in enumerate(told_of)
    ]


def ask(
    found: list[IndexedDocument], question: str, method: MethodName, encoder: HashEncoder | NoEncoder, k: int
) -> Recall:
    request = RecallRequest.of(RecallSettings(), k=k, method=method)
    return recall(question, ReferenceView(found), encoder, request, PreparedCache())


def check(recalled: Recall, known: list[IndexedDocument], k: int) -> None:
    by_id = {one.document.id: one.document for one in known}
    assert len(recalled.chunks) <= k
    assert [one.number for one in recalled.chunks] == list(range(1, len(recalled.chunks) + 1))
    assert recalled.chunks or recalled.reason
    for cue in recalled.cues:
        assert recalled.question[cue.start : cue.end] == cue.text
    for one in recalled.chunks:
        assert np.isfinite([one.score, *one.signals.values()]).all()
        assert by_id[one.chunk.document_id].text[one.chunk.start : one.chunk.end] == one.chunk.text
        assert one.path.steps[-1].document_id == one.chunk.document_id
        for step in one.path.steps:
            if step.document_id is not None:
                assert getattr(by_id[step.document_id], step.field)[step.start : step.end] == step.text
            elif step.kind in {"cue", "question"}:
                assert recalled.question[step.start : step.end] == step.text
    for relation in recalled.relations:
        assert by_id[relation.document_id].text[relation.start : relation.end] == relation.sentence
        assert 0 < relation.score <= 1
        assert relation.subject != relation.object
    assert len({one.entity.key for one in recalled.entities}) == len(recalled.entities)


@settings(deadline=None, max_examples=60)
@given(documents, texts, st.sampled_from(METHODS), st.sampled_from(ENCODERS), st.integers(1, 9))
def test_every_span_holds_and_no_score_is_nan(
    told_of: list[tuple[str, str, bool]],
    question: str,
    method: MethodName,
    encoder: HashEncoder | NoEncoder,
    k: int,
) -> None:
    known = made(told_of, encoder)
    check(ask(known, question, method, encoder, k), known, k)


@settings(deadline=None, max_examples=30)
@given(documents.filter(bool), texts, st.sampled_from(METHODS), st.randoms(use_true_random=False))
def test_the_order_of_adding_changes_nothing(
    told_of: list[tuple[str, str, bool]], question: str, method: MethodName, random: np.random.Generator
) -> None:
    known = made(told_of, ENCODERS[0])
    shuffled = list(known)
    random.shuffle(shuffled)
    one, other = (ask(order, question, method, ENCODERS[0], 9) for order in (known, shuffled))
    for part in ("chunks", "entities", "cues", "relations", "reason"):
        assert getattr(one, part) == getattr(other, part)


@settings(deadline=None, max_examples=40)
@given(documents, texts, st.sampled_from(METHODS))
def test_a_filter_lets_nothing_else_through(
    told_of: list[tuple[str, str, bool]], question: str, method: MethodName
) -> None:
    known = made(told_of, ENCODERS[0])
    request = RecallRequest.of(RecallSettings(), k=9, method=method, where={"kept": True})
    recalled = recall(question, ReferenceView(known), ENCODERS[0], request, PreparedCache())
    check(recalled, known, 9)
    kept = {one.document.id for one in known if one.document.metadata["kept"]}
    assert {one.chunk.document_id for one in recalled.chunks} <= kept
    assert {one.document_id for one in recalled.relations} <= kept
    assert {step.document_id for one in recalled.chunks for step in one.path.steps} <= {None, *kept}
