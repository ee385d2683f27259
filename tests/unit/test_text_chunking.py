"""Chunks: budget, overlap, headings, very long sentences, linear time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import pytest

from ecphoryrag.settings import ChunkSettings
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.text.sentences import split_sentences
from ecphoryrag.text.tokens import count_tokens
from ecphoryrag.types import Document, Heading

LINES = [f"Sentence number {word} tells of a thing." for word in ("one", "two", "three", "four", "five", "six")]


def markdown(text: str) -> Document:
    """A document whose lines that begin with ``#`` are its headings."""
    headings, at = [], 0
    for line in text.splitlines(keepends=True):
        if line.startswith("#"):
            name = line.lstrip("#").strip()
            start = at + line.index(name)
            headings.append(Heading(len(line) - len(line.lstrip("#")), name, start, start + len(name)))
        at += len(line)
    return Document("d", text, headings=tuple(headings))


def test_a_short_document_stays_whole_headings_and_all() -> None:
    document = markdown("# One\n\nText of one.\n\n## Two\n\nText of two.\n\n## Three\n\nText of three.\n")
    (chunk,) = chunk_document(document, ChunkSettings())
    assert (chunk.start, chunk.end) == (0, len(document.text) - 1)
    assert chunk.headings == ("One",)


def test_a_blank_document_has_no_chunk() -> None:
    assert chunk_document(Document("d", " \n\t", title="T"), ChunkSettings()) == ()


def test_the_next_chunk_repeats_whole_sentences_within_the_overlap() -> None:
    document = Document("d", " ".join(line.replace("tells", verb) for verb in ("tells", "knows") for line in LINES))
    each = count_tokens(LINES[0])
    chunks = chunk_document(document, ChunkSettings(budget=6 * each, overlap=each))
    assert len(chunks) > 2
    for left, right in pairwise(chunks):
        assert split_sentences(left.text)[-1].text == split_sentences(right.text)[0].text
        assert right.start < left.end < right.end


def test_no_overlap_when_none_is_asked_for() -> None:
    chunks = chunk_document(Document("d", " ".join(LINES)), ChunkSettings(budget=32, overlap=0))
    assert all(left.end < right.start for left, right in pairwise(chunks))


def test_chunks_end_at_headings_and_carry_the_path_they_stand_under() -> None:
    body = " ".join(LINES[:3])
    document = markdown(f"# Top\n\n{body}\n\n## Left\n\n{body}\n\n## Right\n\n{body}\n")
    chunks = chunk_document(document, ChunkSettings(budget=count_tokens(body) + 8, overlap=10))
    assert [chunk.headings for chunk in chunks] == [("Top",), ("Top", "Left"), ("Top", "Right")]
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["# Top", "## Left", "## Right"]


def test_a_heading_at_the_end_of_a_full_chunk_goes_with_the_text_below_it() -> None:
    long = "This one sentence alone " + "goes on and on " * 10 + "to its end."
    document = markdown(f"So short.\n\n# Head\n\n{long}")
    chunks = chunk_document(document, ChunkSettings(budget=count_tokens(long) + 3, overlap=0))
    assert [chunk.text for chunk in chunks] == ["So short.", f"# Head\n\n{long}"]


def test_a_heading_at_the_very_end_goes_with_the_text_above_it() -> None:
    document = markdown(" ".join(LINES) + "\n\n# Last\n")
    chunks = chunk_document(document, ChunkSettings(budget=32, overlap=0))
    assert chunks[-1].text.endswith("# Last")
    assert "Sentence" in chunks[-1].text


def test_an_overlong_sentence_is_cut_between_words() -> None:
    text = "word " * 300
    chunks = chunk_document(Document("d", text), ChunkSettings(budget=50, overlap=20))
    assert {word for chunk in chunks for word in chunk.text.split()} == {"word"}
    assert sum(len(chunk.text.split()) for chunk in chunks) == 300


def test_a_text_without_spaces_is_cut_between_letters_and_not_before_a_mark() -> None:
    text = "e\u0301" * 400
    chunks = chunk_document(Document("d", text), ChunkSettings(budget=17, overlap=0))
    assert "".join(chunk.text for chunk in chunks) == text
    assert all(chunk.text.startswith("e") for chunk in chunks)


def text_of(sentences: Sequence[str]) -> str:
    """Paragraphs of four sentences."""
    return "\n\n".join(" ".join(sentences[at : at + 4]) for at in range(0, len(sentences), 4))


def test_chunks_begin_where_a_heading_or_else_a_paragraph_does() -> None:
    sentences = [f"Point {number} of this list is made here in so many words." for number in range(60)]
    body = text_of(sentences)
    plain = chunk_document(Document("d", body), ChunkSettings(budget=128, overlap=0))
    assert len(plain) > 5
    assert all(body[: chunk.start].endswith("\n\n") for chunk in plain[1:])
    headed = "\n\n".join(f"# Part {at}\n\n{text_of(sentences[at : at + 6])}" for at in range(0, 60, 6))
    parts = chunk_document(markdown(headed), ChunkSettings(budget=128, overlap=16))
    assert [chunk.headings for chunk in parts] == [(f"Part {at}",) for at in range(0, 60, 6)]


@pytest.mark.parametrize("overlap", [0, 16])
def test_a_changed_sentence_leaves_the_chunks_elsewhere_as_they_were(overlap: int) -> None:
    sentences = [f"{word} {number} has to do with thing {7 * number}." for number in range(50) for word in ("A", "No")]
    settings = ChunkSettings(budget=96, overlap=overlap)
    before = {chunk.text for chunk in chunk_document(Document("d", text_of(sentences)), settings)}
    counts = []
    for at in range(len(sentences)):
        changed = [*sentences[:at], f"What stands at {at} is another sentence by now.", *sentences[at + 1 :]]
        chunks = chunk_document(Document("d", text_of(changed)), settings)
        new = [chunk.ordinal for chunk in chunks if chunk.text not in before]
        assert new[-1] - new[0] == len(new) - 1, "they lie side by side"
        counts.append(len(new))
    assert max(counts) <= 5
    assert sum(count > 2 for count in counts) <= len(counts) * 0.1


@pytest.mark.parametrize(
    "piece",
    [
        "A short sentence ends here. ",
        "word ",
        "x",
        "。",
        "\n",
        ". ",
        '"',
        "# h\n",
        "กข ",
        "a.\n\n",
        "(",
        "北京大学",
        "A.",
    ],
)
def test_time_grows_in_proportion_to_the_length(piece: str) -> None:
    def seconds(count: int) -> float:
        document = Document("d", "Start " + piece * count + " end")
        started = time.process_time()
        chunk_document(document, ChunkSettings())
        return time.process_time() - started

    count = 8_000 // len(piece)
    seconds(count // 4)
    # Quadratic work would take 16 times as long for 4 times the text; the best of two keeps noise out.
    assert min(seconds(4 * count) for _ in range(2)) < 9 * min(seconds(count) for _ in range(2)) + 0.02
