"""Offsets, cover, budgets and idempotence of the text functions, on arbitrary text."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from ecphoryrag.settings import ChunkSettings
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.text.keys import name_key, normal_words
from ecphoryrag.text.sentences import split_sentences
from ecphoryrag.text.terms import segment
from ecphoryrag.text.tokens import count_tokens
from ecphoryrag.types import Chunk, Document, Heading

# Time is measured elsewhere; the first example builds the patterns.
untimed = settings(deadline=None, max_examples=60)

PIECES = [
    *(
        "Dr. ",
        "J. R. R. ",
        "The ",
        "Ada Lovelace ",
        "end. ",
        "Help! ",
        "3.5 ",
        "U.S. ",
        "...",
        "…",
        '"',
        "' ",
        "’s ",
        "(",
    ),
    *(
        ")",
        "\n",
        "\n\n",
        "# Head\n",
        "- item\n",
        "  ",
        "\t",
        "1. ",
        "e.g. ",
        "北京大学",
        "。",
        "「そうだ。」",
        "हिन्दी ",
        "।",
    ),
    *(
        "กรุงเทพ",
        " ",
        "서울에서 ",
        "القاهرة ",
        "؟",
        "é",
        "e\u0301",
        "½",
        "ﬁ",
        "ß",
        "İ",
        "\u200d",
        "🎉",
        "x" * 40,
        "_",
        "&",
    ),
]
TEXTS = st.one_of(st.text(max_size=120), st.lists(st.sampled_from(PIECES), max_size=60).map("".join))


@untimed
@given(TEXTS)
def test_sentences_stand_at_their_offsets_and_cover_all_that_is_not_blank(text: str) -> None:
    sentences = split_sentences(text)
    at = 0
    for sentence in sentences:
        assert text[sentence.start : sentence.end] == sentence.text == sentence.text.strip() != ""
        assert text[at : sentence.start].strip() == ""
        at = sentence.end
    assert text[at:].strip() == ""


@untimed
@given(TEXTS)
def test_words_of_a_text_are_their_own_keys(text: str) -> None:
    at = 0
    for word in normal_words(text):
        assert at <= word.start < word.end <= len(text)
        assert word.norm
        assert [again.norm for again in normal_words(word.norm)] == [word.norm]
        assert word.norm in [part.norm for part in normal_words(text[word.start : word.end])]
        at = word.start


@untimed
@given(TEXTS)
def test_a_key_is_found_in_the_text_that_holds_the_name(name: str) -> None:
    if "(" in name or "（" in name or not normal_words(name):
        return
    norms = " ".join(word.norm for word in normal_words(name))
    assert norms.endswith(name_key(name))
    assert len(norms) - len(name_key(name)) in {0, 2, 3, 4}, "no more than an article may go"


@untimed
@given(TEXTS)
def test_only_a_name_without_anything_visible_has_no_key(name: str) -> None:
    visible = [sign for sign in name if not sign.isspace() and unicodedata.category(sign) not in {"Cf", "Cc"}]
    if visible:
        assert name_key(name) or all(unicodedata.category(sign)[0] in "MZ" for sign in visible)
    if not name.strip():
        assert name_key(name) == ""


@untimed
@given(TEXTS, TEXTS)
def test_tokens_of_a_whole_are_no_more_than_those_of_its_parts(left: str, right: str) -> None:
    assert count_tokens(f"{left} {right}") <= count_tokens(left) + count_tokens(right)
    assert (count_tokens(left) == 0) == (left.strip() == "")


@untimed
@given(TEXTS)
def test_segmenting_again_a_text_with_word_spaces_changes_nothing(text: str) -> None:
    once = segment(text)
    if text.isascii():
        assert segment(once) == once


@st.composite
def documents(draw: st.DrawFn) -> Document:
    parts = draw(st.lists(st.tuples(st.integers(1, 3), st.text("ab. X\n", max_size=12), TEXTS), max_size=6))
    text, headings = draw(TEXTS), []
    for level, title, body in parts:
        name = " ".join(title.split())
        if name:
            text += "\n" + "#" * level + " "
            headings.append(Heading(level, name, len(text), len(text) + len(name)))
            text += name + "\n"
        text += body
    return Document("d", text * draw(st.sampled_from([1, 1, 4])), headings=tuple(headings))


@untimed
@given(documents(), st.integers(16, 60), st.integers(0, 40))
def test_chunks_stand_at_their_offsets_within_budget_and_lose_nothing(
    document: Document, budget: int, overlap: int
) -> None:
    chunks = chunk_document(document, ChunkSettings(budget=budget, overlap=overlap))
    at = 0
    for ordinal, chunk in enumerate(chunks):
        assert chunk.ordinal == ordinal
        assert document.text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() != ""
        assert count_tokens(chunk.text) <= budget
        assert document.text[at : chunk.start].strip() == ""
        assert chunk.end > at, "every chunk has something of its own"
        if chunk.start < at:
            assert count_tokens(document.text[chunk.start : at]) <= max(overlap, budget // 2)
        at = chunk.end
    assert document.text[at:].strip() == ""
    assert bool(chunks) == bool(document.text.strip())
    if count_tokens(document.text) <= budget - len(split_sentences(document.text)):
        assert len(chunks) <= 1


@untimed
@given(documents(), st.integers(16, 40))
def test_no_chunk_is_a_heading_alone_where_text_could_go_with_it(document: Document, budget: int) -> None:
    chunks = chunk_document(document, ChunkSettings(budget=budget, overlap=0))
    heads = [(heading.start, heading.end) for heading in document.headings]
    for chunk in chunks[:-1]:
        assert not any(
            bare(chunk, head, document) for head in heads if count_tokens(document.text[slice(*head)]) <= budget // 4
        )


def bare(chunk: Chunk, head: tuple[int, int], document: Document) -> bool:
    return document.text[chunk.start : chunk.end].strip("# \n=") == document.text[slice(*head)].strip("# \n=") and (
        chunk.start <= head[0] and head[1] <= chunk.end
    )
