"""Every figure against an obvious oracle written from its definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecphoryrag.evaluation.answers import exact_match, f1, normalise
from ecphoryrag.evaluation.metrics import FIGURES, distinct, score

DOCUMENTS = st.sampled_from([f"doc {n}" for n in range(12)] + ["ü/漢", "a b", "", "\x00", "10"])
RANKINGS = st.lists(DOCUMENTS, unique=True, max_size=15)
GOLD = st.lists(DOCUMENTS, unique=True, min_size=1, max_size=5)


def oracle(ranking: list[str], gold: list[str]) -> dict[str, float]:
    """All figures of one question, by definition."""
    relevant = [document in gold for document in ranking[:10]]
    figures = {f"recall@{k}": sum(relevant[:k]) / len(gold) for k in (2, 5, 10)}
    for k in (5, 10):
        figures[f"all@{k}"] = float(all(document in ranking[:k] for document in gold))
    figures["mrr"] = next((1 / rank for rank, hit in enumerate(relevant, 1) if hit), 0.0)
    gain = sum(1 / math.log2(rank + 1) for rank, hit in enumerate(relevant, 1) if hit)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(gold), 10) + 1))
    figures["ndcg@10"] = gain / ideal
    return figures


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(RANKINGS, GOLD), min_size=1, max_size=6))
def test_figures_equal_their_definitions(questions: list[tuple[list[str], list[str]]]) -> None:
    figures = score([ranking for ranking, _ in questions], [gold for _, gold in questions])
    assert tuple(figures) == FIGURES
    for position, (ranking, gold) in enumerate(questions):
        expected = oracle(ranking, gold)
        for name in FIGURES:
            assert figures[name][position] == pytest.approx(expected[name], abs=1e-9), name


@given(st.lists(DOCUMENTS, max_size=30))
def test_a_document_stands_once_at_its_best_chunk(chunks: list[str]) -> None:
    expected = sorted(set(chunks), key=chunks.index)
    assert list(distinct(chunks)) == expected


NAMES = ["paris", "london", "the", "42", "a", "of", "it's", "Rome,", "ROME"]
WORDS = st.lists(st.sampled_from(NAMES), max_size=6).map(" ".join)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_token_f1_by_crossing_out_common_words(answer: str, accepted: list[str]) -> None:
    def one(reference: str) -> float:
        left, right = normalise(answer).split(), normalise(reference).split()
        if not left or not right:
            return float(left == right)
        rest = list(right)
        same = 0
        for word in left:
            if word in rest:
                rest.remove(word)
                same += 1
        if not same:
            return 0.0
        precision, recall = same / len(left), same / len(right)
        return 2 * precision * recall / (precision + recall)

    assert f1(answer, accepted) == pytest.approx(max(one(reference) for reference in accepted))
    assert exact_match(answer, accepted) <= f1(answer, accepted)
