"""Markdown: the headings with their exact places, the title, and what stands in the front matter."""

from __future__ import annotations

import re
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ecphoryrag.errors import InputError
from ecphoryrag.indexing.items import MAX_TITLE_CHARACTERS
from ecphoryrag.indexing.records import json_or_text
from ecphoryrag.types import Document, Heading, JsonValue

_KEY = re.compile(r"([A-Za-z0-9_][\w.-]*)\s*:(?:\s+(\S.*))?")
_ITEM = re.compile(r"\s*-\s+(\S.*)")
_ATX = re.compile(r" {0,3}#{1,6}")


def markdown_document(id: str, text: str, source: str) -> Document:
    """The document: front matter as metadata and out of the text, headings, and the title.

    The title is the first heading if that is of level 1 and nothing comes before it, else the front matter's
    ``title``, else none. Raises InputError if nothing but front matter is there.
    """
    metadata, body = split_front_matter(text)
    if text.strip() and not body.strip():
        raise InputError("it holds front matter and no text")
    found = headings(body)
    title = str(metadata["title"]) if isinstance(metadata.get("title"), str) else ""
    if found and found[0].level == 1 and not body[: found[0].start].strip(" \t\n#"):
        title = found[0].text
    return Document(id, body, title, metadata, found, source)


def headings(text: str) -> tuple[Heading, ...]:
    """The headings of CommonMark, ATX and setext, outside of quotes, lists and code, each exactly as it is written.

    A setext heading of several lines is left as text: it is most often a paragraph above a rule. So is one of more
    than :data:`MAX_TITLE_CHARACTERS`, which names no section.
    """
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    found = []
    for opening, content in _heading_tokens(text):
        if opening.map is None or not content or "\n" in content or len(content) > MAX_TITLE_CHARACTERS:
            continue
        number = opening.map[0]
        marks = _ATX.match(lines[number]) if opening.markup.startswith("#") else None
        # The content is the line without its marks and outer spaces, so it stands there verbatim.
        start = starts[number] + lines[number].index(content, marks.end() if marks else 0)
        found.append(Heading(int(opening.tag[1:]), content, start, start + len(content)))
    return tuple(found)


def _heading_tokens(text: str) -> list[tuple[Token, str]]:
    """Opening token and content of each heading that stands in no other block. Inline marks are not parsed."""
    parser = MarkdownIt("commonmark")
    tokens: list[Token] = []
    parser.block.parse(text, parser, {}, tokens)
    return [
        (token, tokens[at + 1].content)
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]


def split_front_matter(text: str) -> tuple[dict[str, JsonValue], str]:
    """Metadata and the text after the front matter.

    Understood are ``key: value`` and ``key:`` above ``- item`` lines, numbers and booleans as in JSON. What holds
    anything else (nested YAML) is left in the text as it is, rather than read in part.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    end = next((at for at, line in enumerate(lines[1:], start=1) if line.rstrip() in {"---", "..."}), None)
    if end is None:
        return {}, text
    metadata = _front_matter(lines[1:end])
    return ({}, text) if metadata is None else (metadata, "\n".join(lines[end + 1 :]))


def _front_matter(lines: list[str]) -> dict[str, JsonValue] | None:
    metadata: dict[str, JsonValue] = {}
    items: list[JsonValue] | None = None
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item, pair = _ITEM.fullmatch(line.rstrip()), _KEY.fullmatch(line.rstrip())
        if item and items is not None:
            items.append(_value(item[1]))
        elif pair and pair[1] not in metadata:
            items = [] if pair[2] is None else None
            metadata[pair[1]] = items if items is not None else _value(pair[2])
        else:
            return None
    return {key: None if value == [] else value for key, value in metadata.items()}


def _value(text: str) -> JsonValue:
    """A scalar, or a flow list of scalars such as ``[red, green]``."""
    if text.startswith("[") and text.endswith("]") and not set(text[1:-1]) & set("[]{}\"'"):
        return [_value(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    return json_or_text(text)
