"""What a user hands in, checked and made a :class:`Document`; everything later may trust it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ecphoryrag.errors import InputError, quoted
from ecphoryrag.types import Document, Failure, Heading, JsonValue

MAX_NESTING = 64
"""Levels of lists and records in metadata: far more than data made by people has, far fewer than breaks a parser."""
MAX_ID_CHARACTERS = 4096
"""The longest path of the common systems; a longer id is most likely a text in the wrong field."""
MAX_TITLE_CHARACTERS = 1000
"""Of a title and of a heading. Each is kept with every chunk of its text, so that one as long as the text would make
the store grow with the square of it; the longest titles of papers and laws have some 500."""

MAX_INTEGER_BITS = 63
"""The integers of SQLite and of most JSON readers, beside the sign."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder passed over by rule (hidden, git-ignored, a symbolic link), and the rule."""

    source: str
    reason: str


Loaded: TypeAlias = Document | Failure | LeftOut
"""The outcome of loading one thing: taken, failed, or passed over by rule."""


MOST_FAILURES = 1000
"""Bad lines or records of one file that are told one by one; a file of nothing else could hold millions."""


class FailureList:
    """What could not be taken of one file: the first thousand, and how many more."""

    def __init__(self) -> None:
        self._listed: list[Failure] = []
        self._more = 0

    def append(self, failure: Failure) -> bool:
        """Note one; False if it is only counted."""
        if len(self._listed) < MOST_FAILURES:
            self._listed.append(failure)
            return True
        self._more += 1
        return False

    def rest(self, source: str) -> tuple[Failure, ...]:
        """The line that stands for those that were only counted, if there are any."""
        return (Failure(source, f"and {self._more} more lines or records that cannot be taken"),) if self._more else ()

    def all(self) -> tuple[Failure, ...]:
        """Those that are told."""
        return (*self._listed, *self.rest("the rest of the file"))


class RepeatedKey(dict[str, object]):
    """A JSON object in which a key stood twice; kept apart so that only its own record is refused."""

    __slots__ = ("key",)

    def __init__(self, values: Mapping[str, object], key: str) -> None:
        super().__init__(values)
        self.key = key


def document_from(item: Document | Mapping[str, object] | str) -> Document:
    """A checked document: a text, a record (``id``, ``title``, ``text``, the rest is metadata), or a document.

    Without an id the content hash is the id. Raises InputError, naming the field that is wrong.
    """
    if isinstance(item, Document):
        return _checked(item)
    if isinstance(item, str):
        return _checked(Document(id="", text=item))
    if isinstance(item, Mapping):
        return _checked(_from_record(item))
    raise InputError(f"a document must be a Document, a mapping or a string, not a {type(item).__name__}")


def load_items(items: Iterable[Document | Mapping[str, object] | str]) -> Iterator[Loaded]:
    """Each item as a document, or as a failure that names it by its id or its place, counted from 1."""
    for number, item in enumerate(items, start=1):
        try:
            yield document_from(item)
        except InputError as error:
            yield Failure(_named(item, number), str(error))


def _named(item: object, number: int) -> str:
    id_ = item.id if isinstance(item, Document) else item.get("id") if isinstance(item, Mapping) else None
    return printable(id_) if isinstance(id_, str) and id_ and len(id_) <= MAX_ID_CHARACTERS else f"item {number}"


def printable(text: str) -> str:
    """The text with what UTF-8 cannot hold written out, so that it can be shown and stored."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _from_record(record: Mapping[str, object]) -> Document:
    if isinstance(record, RepeatedKey):
        raise InputError(f"the record has the key {quoted(record.key)} twice; it is not clear which is meant")
    for key in record:
        if not isinstance(key, str):
            raise InputError(f"the keys of a record must be strings, not {quoted(key)}")
    text = record.get("text")
    if "text" not in record:
        raise InputError('the record has no "text"; a record needs at least {"text": "..."}')
    if not isinstance(text, str):
        raise InputError(f'"text" must be a string, not {_kind(text)}')
    title = record.get("title")
    if title is not None and not isinstance(title, str):
        raise InputError(f'"title" must be a string, not {_kind(title)}')
    metadata = {key: value for key, value in record.items() if key not in {"id", "title", "text"}}
    return Document(_record_id(record), text, title or "", checked_metadata(metadata))


def _record_id(record: Mapping[str, object]) -> str:
    """The id as a string; many data sets count with integers. Missing or null: empty, for the content hash."""
    id_ = record.get("id")
    if id_ is None:
        return ""
    if isinstance(id_, int) and not isinstance(id_, bool):
        return str(checked_json(id_, '"id"', 1))
    if not isinstance(id_, str):
        raise InputError(f'"id" must be a string or an integer, not {_kind(id_)}')
    if not id_.strip():
        raise InputError('"id" is blank; leave it out to have one made from the content')
    return id_


def _checked(document: Document) -> Document:
    for name, value in (("id", document.id), ("title", document.title), ("text", document.text)):
        if not isinstance(value, str):
            raise InputError(f"the {name} must be a string, not {_kind(value)}")
        check_characters(value, name)
    if not document.text.strip():
        raise InputError("the text is blank" if document.text else "the text is empty")
    check_lengths(document)
    if document.source is not None:
        if not isinstance(document.source, str):
            raise InputError(f"the source must be a string, not {_kind(document.source)}")
        check_characters(document.source, "source")
    if not isinstance(document.headings, tuple) or not all(isinstance(one, Heading) for one in document.headings):
        raise InputError("the headings must be a tuple of Heading")
    for heading in document.headings:
        if len(heading.text) > MAX_TITLE_CHARACTERS:
            raise InputError(
                f"the heading at {heading.start} has {len(heading.text)} characters; at most {MAX_TITLE_CHARACTERS} "
                "are allowed; leave it as text"
            )
        if document.text[heading.start : heading.end] != heading.text or heading.start < 0 or heading.level < 1:
            raise InputError(
                f"the heading {quoted(heading.text)} does not stand at its offsets {heading.start}-{heading.end}"
            )
    document = replace(document, metadata=checked_metadata(document.metadata))
    return document if document.id else replace(document, id=document.content_hash)


def check_lengths(document: Document) -> None:
    """Raises InputError for an id or a title that is longer than any."""
    if len(document.id) > MAX_ID_CHARACTERS:
        raise InputError(f"the id has {len(document.id)} characters; at most {MAX_ID_CHARACTERS} are allowed")
    if len(document.title) > MAX_TITLE_CHARACTERS:
        raise InputError(
            f"the title has {len(document.title)} characters; at most {MAX_TITLE_CHARACTERS} are allowed; shorten it, "
            "or put it at the beginning of the text"
        )


def check_characters(text: str, name: str) -> None:
    """Raises InputError for characters that no text file can hold, naming the first and its offset."""
    at = text.find("\0")
    if at >= 0:
        raise InputError(f"the {name} holds a NUL character at offset {at}; it does not belong in text, remove it")
    check_unicode(text, name)


def check_unicode(text: str, name: str) -> None:
    """Raises InputError for half of a surrogate pair, which no encoding can hold."""
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"the {name} holds half of a surrogate pair at offset {error.start}, which is not a character; repair it"
        ) from error


def checked_metadata(metadata: object) -> dict[str, JsonValue]:
    """A deep copy. Raises InputError for what is not a record of JSON values."""
    if not isinstance(metadata, Mapping):
        raise InputError(f"metadata must be a mapping, not {_kind(metadata)}")
    names = {key: f'"{printable(str(key)[:100])}"' for key in metadata}
    return {_key(key, "metadata"): checked_json(value, names[key], 1) for key, value in metadata.items()}


def checked_json(value: object, name: str, depth: int = 1) -> JsonValue:
    """A deep copy, so that a later change by the caller cannot reach what was checked.

    Raises InputError, with ``name``, for what JSON does not know, and for what is nested too deeply.
    """
    if depth > MAX_NESTING:
        raise InputError(f"{name} is nested more than {MAX_NESTING} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        check_characters(value, name)
        return value
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise InputError(f"{name} is an integer of more than {MAX_INTEGER_BITS + 1} bits; write it as a string")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{name} is {value}, which JSON does not know; use null or leave it out")
        return float(value)
    if isinstance(value, RepeatedKey):
        raise InputError(f"{name} has the key {quoted(value.key)} twice; it is not clear which is meant")
    if isinstance(value, Mapping):
        return {_key(key, name): checked_json(item, name, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [checked_json(item, name, depth + 1) for item in value]
    raise InputError(f"{name} holds {_kind(value)}, which JSON does not know; write it as a string or a number")


def _key(key: object, name: str) -> str:
    if not isinstance(key, str):
        raise InputError(f"the keys of {name} must be strings, not {quoted(key)}")
    check_characters(key, f"key {quoted(printable(key))}")
    return key


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "a record"}
    return names.get(type(value), f"a {type(value).__name__}")
