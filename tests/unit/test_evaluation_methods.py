"""From ranked chunks to ranked documents, and what becomes of a method that raises."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ecphoryrag.errors import InputError, ModelNotAvailable
from ecphoryrag.evaluation.dataset import Question
from ecphoryrag.evaluation.methods import METHODS, ask_all, check_methods
from ecphoryrag.evaluation.ranking import Ranking, rank_documents
from ecphoryrag.types import Chunk, Evidence, Path, Recall


class Shelf:
    """Recalls chunks of documents in a fixed order; a question may be told to raise."""

    def __init__(self, order: str, raising: Mapping[str, Exception] | None = None) -> None:
        self.order = order
        self.raising = raising or {}
        self.asked: list[tuple[str, int]] = []

    def recall(self, question: str, *, k: int | None = None, method: str | None = None) -> Recall:
        assert k is not None
        self.asked.append((question, k))
        if question in self.raising:
            raise self.raising[question]
        chunks = tuple(
            Evidence(number, Chunk(document, number, "x", 0, 1), "", 1 / number, {}, Path("direct"))
            for number, document in enumerate(self.order[:k], 1)
        )
        return Recall(question, method or "", chunks, reason=None if chunks else "the store is empty")


QUESTIONS = [Question("1", "first", ("a",)), Question("2", "second", ("a",)), Question("3", "third", ("b",))]


def told(what: str, done: int, total: int | None) -> None:
    assert done <= (total or 0)


def test_a_document_with_many_chunks_does_not_push_out_the_others() -> None:
    shelf = Shelf("a" * 25 + "bcdefghijklm")
    ranking = rank_documents(shelf, "q", "dense")
    assert ranking.documents == tuple("abcdefghij")
    assert [k for _, k in shelf.asked] == [10, 20, 40]
    assert ranking.chunks_asked == 40


def test_a_store_with_few_documents_is_exhausted_and_asked_no_more() -> None:
    shelf = Shelf("abab")
    assert rank_documents(shelf, "q", "dense").documents == ("a", "b")
    assert len(shelf.asked) == 1
    exactly = Shelf("ab" * 5)
    assert rank_documents(exactly, "q", "dense").documents == ("a", "b")
    assert [k for _, k in exactly.asked] == [10, 20]


def test_ten_documents_are_kept_of_more() -> None:
    assert len(rank_documents(Shelf("abcdefghijklmnop"), "q", "dense").documents) == 10


def test_a_reason_for_nothing_is_kept() -> None:
    assert rank_documents(Shelf(""), "q", "dense").reason == "the store is empty"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_question_that_raises_is_wrong_and_keeps_its_error(place: int) -> None:
    shelf = Shelf("ab", {QUESTIONS[place].text: ZeroDivisionError("no mass")})
    asked = ask_all(shelf, "ecphory", QUESTIONS, told)
    assert asked.unavailable is None
    assert len(asked.outcomes) == 3
    assert asked.outcomes[place] == "ZeroDivisionError: no mass"
    assert asked.rankings[place] == ()
    assert sum(isinstance(outcome, Ranking) for outcome in asked.outcomes) == 2


def test_a_method_that_cannot_run_tells_why_and_is_asked_once() -> None:
    shelf = Shelf("ab", {question.text: ModelNotAvailable("no vectors") for question in QUESTIONS})
    asked = ask_all(shelf, "paper", QUESTIONS, told)
    assert asked.unavailable == "no vectors"
    assert len(shelf.asked) == 1


def test_a_method_that_needs_vectors_where_there_are_none_tells_why() -> None:
    asked = ask_all(Shelf(""), "dense", QUESTIONS, told, vectors=False)
    assert asked.unavailable == "the store is empty"
    for method, vectors in (("bm25", False), ("dense", True)):
        wrong = ask_all(Shelf(""), method, QUESTIONS, told, vectors=vectors)
        assert wrong.unavailable is None
        assert wrong.rankings == [(), (), ()]


def test_a_slip_of_the_programmer_is_no_wrong_answer() -> None:
    shelf = Shelf("ab", {"second": AttributeError("no such thing")})
    with pytest.raises(AttributeError):
        ask_all(shelf, "ecphory", QUESTIONS, told)


def test_only_one_question_is_asked_untimed() -> None:
    shelf = Shelf("abcdefghijkl")
    ask_all(shelf, "bm25", QUESTIONS, told)
    assert [question for question, _ in shelf.asked] == ["third", "first", "second", "third"]


@pytest.mark.parametrize(
    ("methods", "said"),
    [([], "no method to evaluate"), (["dense", "bm52"], "unknown method 'bm52'"), (["bm25", "bm25"], "named twice")],
)
def test_methods_are_checked(methods: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_methods(methods)


def test_all_methods_of_the_settings_are_known() -> None:
    assert check_methods(METHODS) == ("ecphory", "paper", "dense", "bm25", "hybrid")
