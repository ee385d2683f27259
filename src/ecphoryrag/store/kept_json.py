"""Values that a store keeps as JSON, read as what they must be: a file may come from anybody."""

from __future__ import annotations

import json
import math
from typing import Any

from ecphoryrag.errors import StoreDamaged
from ecphoryrag.types import Heading, JsonValue

DEEPEST = 64
"""Levels that metadata may have; the road of a document lets no more in."""


def read_metadata(text: str) -> dict[str, JsonValue]:
    """The metadata of a document. Raises StoreDamaged."""
    found = _read(text)
    if not isinstance(found, dict):
        raise _damage("the metadata of a document are no record")
    return found


def read_words(text: str) -> tuple[str, ...]:
    """The headings above a chunk. Raises StoreDamaged."""
    found = _read(text)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise _damage("the headings above a chunk are no texts")
    return tuple(found)


def read_headings(text: str) -> tuple[Heading, ...]:
    """The headings of a document. Raises StoreDamaged."""
    found = _read(text)
    if not isinstance(found, list):
        raise _damage("the headings of a document are no list")
    try:
        headings = tuple(Heading(*parts) for parts in found)
    except TypeError as error:
        raise _damage("the headings of a document cannot be read") from error
    for one in headings:
        numbers = (one.level, one.start, one.end)
        if not isinstance(one.text, str) or not all(type(number) is int for number in numbers):
            raise _damage("the headings of a document cannot be read")
    return headings


def _read(text: str) -> Any:
    try:
        if text.count("[") + text.count("{") > DEEPEST and _depth(text) > DEEPEST + 1:
            raise _damage(f"a value of the store is nested more than {DEEPEST} levels deep")
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise _damage(f"a value of the store is no JSON ({error})") from error


def _damage(what: str) -> StoreDamaged:
    return StoreDamaged(f"The store is damaged: {what}; restore a copy, or run `ecphory verify --deep`.")


def _finite(word: str) -> float:
    found = float(word)
    if not math.isfinite(found):
        raise ValueError(f"{word} is no number")
    return found


def _depth(text: str) -> int:
    """How deep brackets are nested; those within strings are not counted."""
    depth = deepest = 0
    inside = escaped = False
    for sign in text:
        if inside:
            inside, escaped = escaped or sign != '"', sign == "\\" and not escaped
        elif sign == '"':
            inside = True
        elif sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest
