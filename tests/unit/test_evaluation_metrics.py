"""Hand-made cases of the figures, where a wrong definition would show."""

from __future__ import annotations

import pytest

from ecphoryrag.errors import EcphoryError
from ecphoryrag.evaluation import metrics
from ecphoryrag.evaluation.answers import exact_match, f1, normalise
from ecphoryrag.evaluation.metrics import all_at, require_ir_measures, score


def test_order_counts_and_not_the_ids() -> None:
    figures = score([["z", "a"], ["a", "z"]], [["z"], ["z"]])
    assert figures["mrr"].tolist() == [1.0, 0.5]


def test_all_needs_every_gold_document_within_the_cut() -> None:
    ranking = ["a", "b", "c", "d", "e", "f"]
    assert all_at(ranking, ["a", "e"], 5)
    assert not all_at(ranking, ["a", "f"], 5)
    assert all_at(ranking, ["a", "f"], 10)


def test_the_eleventh_document_is_not_looked_at() -> None:
    ranking = [f"wrong {n}" for n in range(10)] + ["right"]
    figures = score([ranking], [["right"]])
    assert [figures[name].tolist() for name in metrics.FIGURES] == [[0.0]] * len(metrics.FIGURES)


def test_questions_without_a_ranking_score_nothing() -> None:
    figures = score([(), ("a",)], [["a"], ["a"]])
    assert figures["recall@5"].tolist() == [0.0, 1.0]
    assert score([()], [["a"]])["ndcg@10"].tolist() == [0.0]


@pytest.mark.parametrize(
    ("rankings", "gold", "said"),
    [
        ([["a", "a"]], [["a"]], "twice"),
        ([["a"]], [[]], "without a gold"),
        ([["a"]], [["a"], ["b"]], "1 rankings for 2"),
    ],
)
def test_what_has_no_figure_is_refused(rankings: list[list[str]], gold: list[list[str]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        score(rankings, gold)


def test_a_missing_extra_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    with pytest.raises(EcphoryError, match=r"pip install 'ecphoryrag\[eval\]'"):
        require_ir_measures()


@pytest.mark.parametrize(
    ("answer", "normal"),
    [("The Eiffel-Tower!", "eiffeltower"), ("an  A-team", "ateam"), ("Théâtre", "théâtre"), ("the", "")],
)
def test_normalisation_is_squads(answer: str, normal: str) -> None:
    assert normalise(answer) == normal


def test_the_best_alias_counts() -> None:
    assert exact_match("the Iskel.", ["River Iskel", "Iskel"]) == 1.0
    assert f1("River Iskel", ["Iskel", "Iskel River"]) == 1.0
    assert f1("Iskel", ["the River Iskel"]) == pytest.approx(2 / 3)


def test_no_answer_is_wrong() -> None:
    assert exact_match(None, ["x"]) == 0.0
    assert f1(None, ["x"]) == 0.0
    assert f1("x", []) == 0.0
