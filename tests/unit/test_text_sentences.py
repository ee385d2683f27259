"""Sentences in many scripts and bad spacing, on examples."""

from __future__ import annotations

import pytest

from ecphoryrag.text.sentences import split_sentences

TEXTS = [
    ["Mr. Smith went to Washington D.C. in 1990.", "He met J. R. R. Tolkien there."],
    ["It cost 3.5 million...", "But who knew?", '"Help!" he said.', '"No."', "She left."],
    ["Atty Persse( 1869 – 1960) was a British trainer.", "He was Champion Trainer in 1930."],
    ['Coffee and Cigarettes"( 2003), and" Paterson"( 2016).', '" Stranger Than Paradise" was added.'],
    ["Plan B.", "He left at 5 p.m.", "Then it rained."],
    ["See Fig. 3 of vol. 2.", "It was founded by Foo Inc.", "The rest is history."],
    ["He won.[3]", "She lost."],
    ["I saw it on Yahoo! and left.", "Then?", "Nothing."],
    ["Am 3. Oktober 1990 war es.", "Das z.B. blieb.", "Er lebte im 19. Jahrhundert."],
    ["Ivan жил в 1900 г. в Москве.", "Потом уехал."],
    ["दिल्ली राजधानी है।", "यह नगर है।", "क्या?"],
    ["ما هذا؟", "القاهرة عاصمة.", "نعم."],
]


@pytest.mark.parametrize("sentences", TEXTS)
def test_sentences_parted_by_a_space(sentences: list[str]) -> None:
    assert [sentence.text for sentence in split_sentences("  ".join(sentences))] == sentences


@pytest.mark.parametrize(
    "sentences",
    [["北京是首都。", "他说：“你好！”", "然后走了。"], ["「そうだ。」と言った。", "次の文。"], ["何？！", "はい。"]],
)
def test_sentences_without_spaces(sentences: list[str]) -> None:
    assert [sentence.text for sentence in split_sentences("".join(sentences))] == sentences


def test_headings_lists_and_blank_lines_end_sentences_and_wrapped_lines_do_not() -> None:
    text = (
        "# A Title\n\nThis line of prose was wrapped by an editor at seventy columns in\nLondon and it goes on.\n"
        "- first item\n- second item\n1. one\n2. two\nShort line\nAnother short line\n"
    )
    assert [sentence.text for sentence in split_sentences(text)] == [
        "# A Title",
        "This line of prose was wrapped by an editor at seventy columns in\nLondon and it goes on.",
        "- first item",
        "- second item",
        "1. one",
        "2. two",
        "Short line",
        "Another short line",
    ]


def test_thai_is_cut_at_spaces_once_it_is_long() -> None:
    phrase = "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"
    sentences = split_sentences(" ".join([phrase] * 12))
    assert len(sentences) > 2
    assert all(sentence.text.startswith(phrase) for sentence in sentences)


def test_blank_text_has_no_sentences() -> None:
    assert split_sentences(" \n\t ") == []
