"""Mentions of arbitrary documents: exact spans, sane keys, one extraction a chunk."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ecphoryrag.models.names import NamesExtractor
from ecphoryrag.settings import ChunkSettings
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.text.keys import name_key
from ecphoryrag.types import Document, Heading
from tests.property.test_text_properties import TEXTS, documents

PIECES = [
    *(
        "Ada Lovelace ",
        "(born 1815) ",
        "was ",
        "The ",
        "a ",
        ". ",
        "NASA ",
        "«Foo» ",
        '" Bar" ',
        "of ",
        "and ",
        "King ",
    ),
    *(
        "J. R. R. ",
        "O’Brien’s ",
        ", ",
        "known as ",
        "max_tokens ",
        "C6H12O6 ",
        "28 June 1899 ",
        "$5 million ",
        "——",
        "(MRI) ",
    ),
    *(
        "magnetic resonance imaging ",
        "北京大学",
        "的",
        "アレクサンダー・",
        "세종대왕은 ",
        "القاهرة ",
        "دلهي ",
        "महात्मा गांधी का ",
        "กรุง",
        "\n",
    ),
    *("Der Bau der Brücke ", "``Never ''", "U.S. ", "İzmir ", "ǅ", "A", "'s ", "1st Baronet ", "or ", "X. ", "&", "-"),
]
NAMED = st.lists(st.sampled_from(PIECES), max_size=50).map("".join)


@settings(deadline=None, max_examples=80)
@given(documents(), NAMED, st.one_of(TEXTS, NAMED), st.integers(16, 80))
@example(Document("d", "\n# XX\n", headings=(Heading(1, "XX", 3, 5),)), "Ada Lovelace " * 4, "XX", 16)
def test_every_mention_stands_at_its_span(base: Document, more: str, title: str, budget: int) -> None:
    document = Document("d", base.text + more, title, headings=base.headings)
    chunks = chunk_document(document, ChunkSettings(budget=budget, overlap=budget // 3))
    extractions = NamesExtractor().extract(document, chunks)
    assert len(extractions) == len(chunks)
    for chunk, extraction in zip(chunks, extractions, strict=True):
        for mention in extraction.mentions:
            assert getattr(document, mention.field)[mention.start : mention.end] == mention.name
            assert mention.name.strip() == mention.name != ""
            assert mention.key
            assert 1 <= mention.importance <= 5
            assert len(mention.description) <= 300
            if mention.about != "heading":
                assert mention.key == name_key(mention.name)
            if mention.field == "text" and mention.about != "heading":
                assert chunk.start <= mention.start < mention.end <= chunk.end
        described = [mention.key for mention in extraction.mentions if mention.description]
        assert len(described) == len(set(described))
        assert all(one and other and one != other for one, other in extraction.aliases)
        kinds = {(mention.key, mention.about) for mention in extraction.mentions}
        assert len(kinds) == len({key for key, _ in kinds}), "one kind of about for a key in a chunk"
        titles = [mention for mention in extraction.mentions if mention.field == "title"]
        assert len(titles) == bool(name_key(title.strip()))


@settings(deadline=None, max_examples=30)
@given(NAMED)
def test_what_is_found_depends_on_the_document_alone(text: str) -> None:
    document = Document("d", text)
    chunks = chunk_document(document, ChunkSettings())
    extractor = NamesExtractor()
    first = extractor.extract(document, chunks)
    extractor.extract(Document("e", text.upper() + " Other. "), chunks[:0])
    assert extractor.extract(document, chunks) == first
