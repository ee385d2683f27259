"""EM and F1 against published behaviour of the SQuAD script, and the looser normalisation by name."""

from __future__ import annotations

import pytest

from ecphoryrag.evaluation.answers import exact_match, f1, normalise, normalise_loosely


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        # The order of the published script: lower case, punctuation, articles, white space.
        ("The  Denver Broncos.", "denver broncos"),
        ("an apple a day", "apple day"),
        ("a.n.", ""),  # punctuation goes first, and leaves an article
        ("$1,000", "1000"),
        ("U.S.A.", "usa"),
        ("rock-and-roll", "rockandroll"),
        ("theatre", "theatre"),  # articles only as whole words
        ("la\tthe\nville", "la ville"),
        ("“quoted”", "“quoted”"),  # typographic punctuation is not ASCII, and stays
    ],
)
def test_normalisation_step_by_step(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("answer", "accepted", "em", "overlap"),
    [
        # Rajpurkar et al. 2016 and 2018: examples of the task's description, with the script's scores.
        ("Denver Broncos", ["Denver Broncos", "Denver Broncos", "The Denver Broncos!"], 1.0, 1.0),
        ("in the 10th century", ["10th and 11th centuries", "in the 10th and 11th centuries"], 0.0, 4 / 8),
        ("gravity", ["gravity"], 1.0, 1.0),
        ("graupel", ["within a cloud"], 0.0, 0.0),
        ("within the cloud layers", ["within a cloud"], 0.0, 4 / 5),
        ("a a b", ["a b b"], 0.0, 2 / 3),  # "a" is an article; of the two b only one is matched
        ("the", ["an"], 1.0, 1.0),  # nothing is left of either, as the 2.0 script has it
        ("the", ["x"], 0.0, 0.0),
        ("", ["x"], 0.0, 0.0),
    ],
)
def test_known_answers(answer: str, accepted: list[str], em: float, overlap: float) -> None:
    assert exact_match(answer, accepted) == em
    assert f1(answer, accepted) == pytest.approx(overlap)


def test_the_looser_normalisation_has_to_be_asked_for() -> None:
    assert normalise_loosely("He was the King and the Queen.") == "he king queen"
    assert exact_match("Smith and Jones", ["Smith, Jones"]) == 0.0
    assert exact_match("Smith and Jones", ["Smith, Jones"], "loose") == 1.0
    assert f1("it was red", ["red"]) == pytest.approx(1 / 2)
    assert f1("it was red", ["red"], "loose") == pytest.approx(2 / 3)
