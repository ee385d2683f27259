"""Results as JSON: the names and nesting of :mod:`ecphoryrag.types`, documented in ``docs/cli.md``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

from ecphoryrag.ports import IndexedDocument
from ecphoryrag.types import JsonValue

_RAW = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON may hold unescaped, beside the control characters that it may not, and a terminal or a line should not."""


def write_json(value: object) -> None:
    """The value as one line of JSON on standard output."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(escaped(json.dumps(to_json(value), ensure_ascii=not utf8, allow_nan=False)) + "\n")


def escaped(text: str) -> str:
    """The JSON text with the characters escaped that could rewrite a terminal, or that are no characters alone."""
    return _RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def to_json(value: object) -> JsonValue:
    """Dataclasses as records, tuples as lists, paths as strings. Raises TypeError for what has no JSON form."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def indexed_to_json(indexed: IndexedDocument) -> JsonValue:
    """A document with its chunks, each with its mentions; vectors are left out."""
    document = to_json(indexed.document)
    chunks = [
        {**_record(to_json(chunk)), "mentions": to_json(found.mentions), "aliases": to_json(found.aliases)}
        for chunk, found in zip(indexed.chunks, indexed.extractions, strict=True)
    ]
    return {"document": {**_record(document), "content_hash": indexed.document.content_hash}, "chunks": [*chunks]}


def _record(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
