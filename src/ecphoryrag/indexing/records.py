"""JSON and JSONL: one record, one document; a bad record fails alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import BinaryIO

from ecphoryrag.errors import InputError
from ecphoryrag.indexing.files import cannot_read, decode, refuse_by_magic, too_large, wide_encoding
from ecphoryrag.indexing.items import FailureList, Loaded, RepeatedKey, checked_json, document_from
from ecphoryrag.types import Failure, JsonValue


def parse_json(text: str) -> object:
    """The value. Raises InputError, with the place, for what is not JSON."""
    try:
        return json.loads(text, object_pairs_hook=_record)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise InputError(f"not valid JSON: {error.msg.removesuffix(' at')} at {place}") from error
    except RecursionError as error:
        raise InputError("not usable JSON: nested too deeply") from error
    except ValueError as error:  # an integer of thousands of digits
        raise InputError("not usable JSON: a number of thousands of digits; write it as a string") from error


def json_documents(text: str, source: str) -> Iterator[Loaded]:
    """The records of a JSON text: a list of them, or one. Raises InputError if it is neither."""
    value = parse_json(text)
    if isinstance(value, list):
        if not value:
            raise InputError("the list holds no record")
        yield from _bounded(
            (_document(record, f"{source}[{number}]") for number, record in enumerate(value, 1)), source
        )
    else:
        yield _document(value, source)


def jsonl_documents(file: BinaryIO, source: str, limit: int, start: bytes = b"") -> Iterator[Loaded]:
    """The records of a JSONL file, read line by line: the file may be larger than memory, a line not over ``limit``.

    ``start`` is what was read of it already, to the end of a line.
    Raises InputError if it is of a known binary kind or holds no record at all.
    """
    found = False
    for loaded in _bounded(_line_documents(file, source, limit, start), source):
        found = True
        yield loaded
    if not found:
        raise InputError("empty: it holds no record")


def _line_documents(file: BinaryIO, source: str, limit: int, start: bytes) -> Iterator[Loaded]:
    for number, line in _lines(file, limit, start):
        place = f"{source}:{number}"
        if isinstance(line, InputError):
            yield Failure(place, str(line))
        elif line.strip():
            yield _line_document(line, place)


def _bounded(loaded: Iterator[Loaded], source: str) -> Iterator[Loaded]:
    """The same, with no more failures one by one than are worth reading and fit into memory."""
    failures = FailureList()
    for one in loaded:
        if not isinstance(one, Failure) or failures.append(one):
            yield one
    yield from failures.rest(source)


def _lines(file: BinaryIO, limit: int, start: bytes) -> Iterator[tuple[int, bytes | InputError]]:
    """Numbered lines without their end; the error in place of a line that is too long."""
    number = 0
    try:
        for part in (BytesIO(start), file):
            while line := part.readline(limit + 1):
                number += 1
                if number == 1:
                    refuse_by_magic(line)
                    if wide_encoding(line):
                        yield from _wide_lines(line, file, limit)
                        return
                if len(line) > limit and not line.endswith(b"\n"):
                    _skip_line(part, limit)
                    yield number, too_large(limit)
                else:
                    yield number, line.rstrip(b"\r\n")
    except OSError as error:
        yield number + 1, cannot_read(error)


def _skip_line(file: BinaryIO, limit: int) -> None:
    while (rest := file.readline(limit)) and not rest.endswith(b"\n"):
        pass


def _wide_lines(start: bytes, file: BinaryIO, limit: int) -> Iterator[tuple[int, bytes | InputError]]:
    """Lines of UTF-16 and UTF-32, in which the byte of a line end also stands inside other characters."""
    data = start + file.read(limit + 1)
    if len(data) > limit:
        yield 1, too_large(limit)
        return
    try:
        text = decode(data)
    except InputError as error:
        yield 1, error
        return
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line.encode("utf-8")


def _line_document(line: bytes, place: str) -> Loaded:
    try:
        value = parse_json(decode(line))
    except InputError as error:
        return Failure(place, str(error))
    return _document(value, place)


def _document(record: object, place: str) -> Loaded:
    if not isinstance(record, dict):
        return Failure(place, 'not a record; a record is {"text": "...", ...}')
    try:
        return replace(document_from(record), source=place)
    except InputError as error:
        return Failure(place, str(error))


def _record(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    counts = Counter(key for key, _ in pairs)
    return RepeatedKey(record, next(key for key, count in counts.items() if count > 1))


def json_or_text(text: str) -> JsonValue:
    """The value that the text is as JSON, else the text itself: ``1999`` is a number, ``"1999"`` and ``x`` strings.

    Used for values that people write by hand, so that a filter and the metadata it is compared with read alike.
    """
    try:
        return checked_json(parse_json(text), "value")
    except InputError:
        return text
