"""Filters on documents: evaluated in Python on parsed metadata, so that no filter ever becomes SQL."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ecphoryrag.errors import InputError, quoted
from ecphoryrag.ports import Where
from ecphoryrag.types import JsonValue, Metadata

OWN_FIELDS = ("id", "title", "source")
"""Filter keys that mean the document's own field where its metadata has no such key."""

INTEGER_BITS = 64
"""What an integer in metadata may take."""


@dataclass(frozen=True, slots=True)
class Filterable:
    """What a filter sees of a document."""

    id: str
    title: str
    source: str | None
    metadata: Metadata


class Filter:
    """A checked filter. Raises InputError for a malformed one.

    All keys must hold. A key holds if a value of the document under it equals the wanted value, or one of a list of
    wanted values; ``None`` also holds where there is no value. A key with dots is looked up as it stands first, then
    step by step into nested records, and into each item of a list. ``True`` and ``1`` differ, ``1`` and ``1.0`` do not.
    """

    def __init__(self, where: Where) -> None:
        if not isinstance(where, Mapping):
            raise InputError(f"A filter must map keys to values, but it is of type {type(where).__name__}.")
        self._wanted = {_key(key): _wanted(key, value) for key, value in where.items()}
        self.canonical = json.dumps(
            sorted((key, sorted(map(repr, wanted))) for key, wanted in self._wanted.items()), ensure_ascii=True
        )
        """Equal for filters that let the same documents pass."""

    def __call__(self, document: Filterable) -> bool:
        """Whether the document passes."""
        return all(_holds(document, key, wanted) for key, wanted in self._wanted.items())


_Wanted = frozenset[tuple[str, JsonValue]]


def _key(key: object) -> str:
    if not isinstance(key, str) or not key:
        raise InputError(f"A filter's keys must be names of metadata fields, but one is {quoted(key)}.")
    return key


def _wanted(key: str, value: JsonValue) -> _Wanted:
    values = value if isinstance(value, list | tuple) else [value]
    return frozenset(_scalar(key, item) for item in values)


def _scalar(key: str, value: object) -> tuple[str, JsonValue]:
    """The value with its kind, so that True and 1 differ."""
    if value is None or isinstance(value, bool | str):
        return type(value).__name__, value
    if isinstance(value, int):
        if value.bit_length() > INTEGER_BITS:
            raise InputError(
                f"The filter on {quoted(key)} wants an integer of more than {INTEGER_BITS} bits; no document can hold "
                "it."
            )
        return "number", value
    if isinstance(value, float) and math.isfinite(value):
        return "number", value
    raise InputError(
        f"The filter on {quoted(key)} wants {quoted(value)}; a value must be text, a finite number, true, false or "
        "null, or a list of these. To reach into a nested record, write the key with dots, as in 'author.name'."
    )


def _holds(document: Filterable, key: str, wanted: _Wanted) -> bool:
    found = list(_values(document.metadata, key))
    if not found and key in OWN_FIELDS:
        found = [{"id": document.id, "title": document.title, "source": document.source}[key]]
    if not found:
        return ("NoneType", None) in wanted
    return any(_kinded(value) in wanted for value in found)


def _kinded(value: JsonValue) -> tuple[str, JsonValue]:
    if value is None or isinstance(value, bool | str):
        return type(value).__name__, value
    if isinstance(value, int | float):
        return "number", value
    return "record", None


def _values(value: object, key: str) -> Iterator[JsonValue]:
    """Every value under the key, lists opened."""
    if isinstance(value, Mapping):
        if key in value:
            yield from _items(value[key])
            return
        head, dot, rest = key.partition(".")
        if dot and head in value:
            yield from _values(value[head], rest)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _values(item, key)


def _items(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _items(item)
    else:
        yield value
