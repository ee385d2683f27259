"""The token budget is kept exactly, and what is left out is said."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecphoryrag.answering import answer
from ecphoryrag.answering.budget import OMITTED, Fitted, _share, fit_evidence
from ecphoryrag.answering.prompt import build_prompt
from ecphoryrag.errors import PromptTooLong
from ecphoryrag.models.fakes import ScriptedGenerator
from ecphoryrag.settings import AnsweringSettings
from ecphoryrag.types import Recall, Relation
from tests.support.recalls import FACTS, make_recall

QUESTION = "Where was the builder of the Grey Pellin born?"
FILLER = "This sentence of eight words says nothing new. "
LONG = FILLER * 20 + "The builder of the Grey Pellin was born in Dunlisk. " + FILLER * 20


def taken(recall: Recall, fitted: Fitted) -> int:
    generator = ScriptedGenerator([])
    full = generator.count_tokens(build_prompt(recall.question, fitted.pieces, fitted.links))
    return full - generator.count_tokens(build_prompt(recall.question, ()))


def fit(recall: Recall, limit: int, links: int = 4) -> Fitted:
    return fit_evidence(recall, ScriptedGenerator([]), limit, links)


def test_what_fits_is_left_as_it_is() -> None:
    recall = make_recall(QUESTION)
    fitted = fit(recall, 1000)
    assert [piece.text for piece in fitted.pieces] == [text for _, text in FACTS]
    assert fitted.notes == ()


def test_a_long_piece_keeps_the_sentence_that_matters_and_short_ones_stay_whole() -> None:
    recall = make_recall(QUESTION, [*FACTS[1:], ("Long", LONG)])
    fitted = fit(recall, 120)
    assert taken(recall, fitted) <= 120
    assert [piece.text for piece in fitted.pieces[:2]] == [text for _, text in FACTS[1:]]
    assert "The builder of the Grey Pellin was born in Dunlisk." in fitted.pieces[2].text
    assert OMITTED.strip() in fitted.pieces[2].text
    assert fitted.notes == ("evidence 3 shortened to the sentences that matter, to fit 120 tokens",)


def test_kept_sentences_stay_in_their_order() -> None:
    text = "The Grey Pellin sailed. " + FILLER * 30 + "Its builder was born in Dunlisk. " + FILLER * 30
    (piece,) = fit(make_recall(QUESTION, [("Long", text)]), 40).pieces
    assert piece.text.index("sailed") < piece.text.index("born")


def test_a_sentence_that_joins_activated_entities_is_kept() -> None:
    bridge = "Old Varnholt raised three daughters."
    text = FILLER * 20 + bridge + " " + FILLER * 20
    relation = Relation(
        "Varnholt", "daughters", bridge, "d1", text.index(bridge), text.index(bridge) + len(bridge), 1.0
    )
    (piece,) = fit(make_recall("Unrelated?", [("Long", text)], [relation]), 40, links=0).pieces
    assert bridge in piece.text


def test_the_weakest_are_dropped_first_and_that_is_said() -> None:
    recall = make_recall(QUESTION, [(f"Title {n}", LONG) for n in range(5)])
    fitted = fit(recall, 200)
    assert taken(recall, fitted) <= 200
    assert [piece.evidence.number for piece in fitted.pieces] == [1, 2, 3]
    assert fitted.notes == (
        "evidence 1, 2, 3 shortened to the sentences that matter, to fit 200 tokens",
        "the weakest 2 of 5 pieces of evidence left out, to fit 200 tokens",
    )


def test_one_endless_sentence_is_cut_and_marked() -> None:
    recall = make_recall(QUESTION, [("T", "word " * 3000)])
    fitted = fit(recall, 50)
    assert taken(recall, fitted) <= 50
    assert fitted.pieces[0].text.endswith(OMITTED)
    assert len(fitted.pieces[0].text.split()) > 30
    assert fitted.notes


def test_no_room_at_all_is_an_error() -> None:
    with pytest.raises(PromptTooLong, match=r"answering\.evidence_tokens"):
        fit(make_recall(QUESTION, [("A title", LONG)]), 3)


def test_links_take_only_what_room_is_left() -> None:
    relations = [Relation(f"A{n}", f"B{n}", f"A{n} met B{n}.", "d9", 0, 9, 1.0) for n in range(9)]
    recall = make_recall(QUESTION, relations=relations)
    assert len(fit(recall, 1000, links=4).links) == 4
    assert fit(recall, 1000, links=0).links == ()
    free = fit(recall, taken(recall, fit(recall, 1000, links=0)) + 8, links=4)
    assert len(free.links) == 1
    assert len(free.pieces) == 3


facts = st.lists(
    st.tuples(
        st.text(alphabet="ab 。.", max_size=12),
        st.lists(
            st.sampled_from([FILLER, "Grey Pellin. ", "word " * 90, "\n", "灯台は崖の上。", "x" * 300 + " "]),
            max_size=30,
        ),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(facts, st.integers(20, 400))
def test_the_budget_is_never_exceeded_and_nothing_is_lost_in_silence(
    given_facts: list[tuple[str, list[str]]], limit: int
) -> None:
    recall = make_recall(QUESTION, [(title, "".join(parts)) for title, parts in given_facts])
    try:
        fitted = fit(recall, limit)
    except PromptTooLong:
        return
    assert taken(recall, fitted) <= limit
    assert fitted.pieces
    assert [piece.evidence for piece in fitted.pieces] == list(recall.chunks[: len(fitted.pieces)])
    changed = any(piece.text != piece.evidence.chunk.text for piece in fitted.pieces)
    assert changed == any("shortened" in note for note in fitted.notes)
    assert (len(fitted.pieces) < len(recall.chunks)) == any("left out" in note for note in fitted.notes)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 200))
def test_the_share_is_the_largest_that_fits(sizes: list[int], total: int) -> None:
    def held(share: int) -> int:
        return sum(min(size, share) for size in sizes)

    share = _share(sizes, total)
    assert held(share) <= total
    assert share >= max(sizes) or held(share + 1) > total


def test_prompt_and_reply_fit_the_context_whatever_the_budget() -> None:
    generator = ScriptedGenerator(lambda _: "not JSON", context_size=1100)
    recall = make_recall(QUESTION, [(f"Title {n}", LONG) for n in range(5)])
    answer(QUESTION, recall, generator, AnsweringSettings(evidence_tokens=9000))
    assert len(generator.asked) == 2  # neither the first prompt nor the one with the correction was refused as too long


def test_what_was_done_to_fit_is_in_the_answer() -> None:
    generator = ScriptedGenerator(['{"reasoning": "", "answer": "x", "evidence": [1]}'])
    recall = make_recall(QUESTION, [(f"Title {n}", LONG) for n in range(5)])
    given_answer = answer(QUESTION, recall, generator, AnsweringSettings(evidence_tokens=100))
    assert len(given_answer.notes) == 2
    assert len(given_answer.evidence) < 5
