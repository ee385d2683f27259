"""Markdown: headings with exact places, the title, front matter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoryrag.errors import InputError
from ecphoryrag.indexing.markdown import headings, markdown_document, split_front_matter

BLOCKS = [
    "# One",
    "## Two ##",
    "   ###\tThree",
    "# ",
    "#no heading",
    "####### seven",
    "\\# escaped",
    "Setext\n===",
    "  Also setext  \n---",
    "two\nlines\n===",
    "```\n# in code\n```",
    "~~~ x\n# in code\n",
    "> # quoted",
    "- # listed",
    "<!--\n# comment\n-->",
    "text",
    "***",
    "# é 漢 # x #",
    "# a\u2028b\x0bc",
    "# `#` **b**",
    "| a |\n|---|",
    "# #",
    "    # code",
    "\t# tab",
]


def found(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.text) for heading in headings(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One\ntext\n## Two ##\n", [(1, "One"), (2, "Two")]),
        ("   ###\tThree", [(3, "Three")]),
        ("Setext\n===\nOther\n---", [(1, "Setext"), (2, "Other")]),
        ("text\n# interrupts", [(1, "interrupts")]),
        ("#no\n####### seven\n\\# escaped\n\n    # code", []),
        ("```\n# in code\n```\n# after", [(1, "after")]),
        ("````\n```\n# in code\n````\n# after", [(1, "after")]),
        ("~~~\n# never closed", []),
        ("> # quoted\n\n- # listed\n\n<!--\n# comment\n-->", []),
        ("two\nlines\n===\n", []),
        ("# é 漢 # x #", [(1, "é 漢 # x")]),
        ("# \n#", []),
        ("# `#` **bold**", [(1, "`#` **bold**")]),
    ],
)
def test_headings_are_those_of_commonmark(text: str, expected: list[tuple[int, str]]) -> None:
    assert found(text) == expected


@given(st.lists(st.sampled_from(BLOCKS), max_size=12), st.sampled_from(["\n", "\n\n"]))
def test_every_heading_stands_at_its_offsets(blocks: list[str], between: str) -> None:
    text = between.join(blocks)
    last = 0
    for heading in headings(text):
        assert text[heading.start : heading.end] == heading.text
        assert heading.text == heading.text.strip()
        line_start = text.rfind("\n", 0, heading.start) + 1
        assert not text[line_start : heading.start].strip(" \t#")
        assert last <= heading.start < heading.end
        last = heading.end


@given(st.text(st.sampled_from("#=-`~> \n\tab\\*|<!é\u2028"), max_size=60))
def test_any_text_has_its_headings_at_their_offsets(text: str) -> None:
    assert all(text[heading.start : heading.end] == heading.text for heading in headings(text))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Title\n\ntext", "Title"),
        ("\n\n# Title", "Title"),
        ("Title\n=====\ntext", "Title"),
        ("## Two\n# One", ""),
        ("text\n\n# One", ""),
        ("text", ""),
        ("---\ntitle: Front\n---\ntext", "Front"),
        ("---\ntitle: Front\n---\n# Heading\n", "Heading"),
        ("---\ntitle: 1984\n---\ntext", ""),
    ],
)
def test_the_title_is_a_first_heading_of_level_one_or_the_front_matters(text: str, title: str) -> None:
    assert markdown_document("d", text, "d.md").title == title


@pytest.mark.parametrize("form", ["# {}\n\ntext", "{}\n===\n\ntext"])
def test_a_heading_as_long_as_a_text_is_text(form: str) -> None:
    longest = markdown_document("d", form.format("x" * 1000), "d.md")
    assert (len(longest.title), len(longest.headings)) == (1000, 1)
    longer = markdown_document("d", form.format("x" * 1001), "d.md")
    assert (longer.title, longer.headings) == ("", ())


def test_front_matter_is_metadata_and_no_text() -> None:
    text = "---\nlang: de\nyear: 1999\ndone: true\nquoted: \"5\"\nsingle: 'it: is'\n# comment\ntags:\n  - a b\n  - 2\n"
    text += "flow: [red, 3]\nempty:\nurl: https://x.org/a#b\n---\n# T\n"
    document = markdown_document("d", text, "d.md")
    assert document.metadata == {
        "lang": "de",
        "year": 1999,
        "done": True,
        "quoted": "5",
        "single": "it: is",
        "tags": ["a b", 2],
        "flow": ["red", 3],
        "empty": None,
        "url": "https://x.org/a#b",
    }
    assert document.text == "# T\n"
    assert [(heading.start, heading.end) for heading in document.headings] == [(2, 3)]


@pytest.mark.parametrize(
    "text",
    [
        "---\nnever: closed\n",
        "---\nnested:\n  deep: 1\n---\nx",
        "---\na: 1\na: 2\n---\nx",
        "---\njust words\n---\nx",
        "--- \n- item\n---\nx",
        "text\n---\na: 1\n---\n",
    ],
)
def test_front_matter_that_is_not_understood_stays_text(text: str) -> None:
    assert split_front_matter(text) == ({}, text)


def test_front_matter_alone_is_no_document() -> None:
    with pytest.raises(InputError, match="front matter and no text"):
        markdown_document("d", "---\na: 1\n---\n\n", "d.md")
