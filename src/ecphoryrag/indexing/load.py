"""The first stage of the road of a document: paths, streams and records become documents.

What cannot be taken is a :class:`~ecphoryrag.types.Failure`, what is passed over by rule a
:class:`~ecphoryrag.indexing.items.LeftOut`; neither keeps the others from going in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path, PurePath
from typing import BinaryIO

from ecphoryrag.errors import InputError
from ecphoryrag.indexing.files import (
    cannot_read,
    decode,
    open_regular,
    read_bounded,
    refuse_by_name,
    shown,
    too_large,
    unsupported,
)
from ecphoryrag.indexing.items import Loaded, document_from
from ecphoryrag.indexing.records import json_documents, jsonl_documents, parse_json
from ecphoryrag.indexing.walk import Found, find_files
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.types import Document, Failure

STDIN = "-"
STDIN_SOURCE = "standard input"
MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd"})
JSONL_SUFFIXES = frozenset({".jsonl", ".ndjson"})
_COUNTING_BLOCK = 2**20


class LoadedPaths(Iterator[Loaded]):
    """What the paths hold, read as it is asked for."""

    def __init__(self, paths: Sequence[str | Path], settings: IndexingSettings) -> None:
        self._paths = tuple(paths)
        self._loaded = _load(self._paths, settings)

    def __iter__(self) -> LoadedPaths:
        return self

    def __next__(self) -> Loaded:
        return next(self._loaded)

    def count(self) -> int | None:
        """Documents to be expected, one a file and one a line of JSONL; None with standard input among them."""
        if any(str(path) == STDIN for path in self._paths):
            return None
        return sum(_count(met) for met in find_files(self._paths) if isinstance(met, Found))


def load_paths(paths: Sequence[str | Path], settings: IndexingSettings) -> LoadedPaths:
    """The documents of files, folders (recursively) and globs; ``-`` is standard input. See :func:`find_files`."""
    return LoadedPaths(paths, settings)


def load_records(path: Path, settings: IndexingSettings) -> Iterator[Loaded]:
    """The documents of a JSONL file, whatever its name is."""
    try:
        with path.open("rb") as file:
            yield from jsonl_documents(file, shown(path), settings.max_file_bytes)
    except OSError as error:
        yield Failure(shown(path), str(cannot_read(error)))
    except InputError as error:
        yield Failure(shown(path), str(error))


def load_stdin(stream: BinaryIO, settings: IndexingSettings) -> Iterator[Loaded]:
    """The document, or the records, of a stream, by ``settings.stdin_format``.

    With ``auto``: JSONL if the first line that is not blank is a record, else JSON if the whole is a list of records
    or one, else a text. The id of a text is its content hash.
    """
    limit = settings.max_file_bytes
    try:
        if settings.stdin_format == "jsonl":
            yield from jsonl_documents(stream, STDIN_SOURCE, limit)
        elif settings.stdin_format == "auto":
            yield from _guess(stream, limit)
        else:
            text = decode(read_bounded(stream, limit))
            yield from _documents(text, "", STDIN_SOURCE, settings.stdin_format)
    except InputError as error:
        yield Failure(STDIN_SOURCE, str(error))


def _guess(stream: BinaryIO, limit: int) -> Iterator[Loaded]:
    first = b""
    while len(first) <= limit and (line := stream.readline(limit + 1)):
        first += line
        if line.strip():
            break
    if _starts_with_record(first):
        yield from jsonl_documents(stream, STDIN_SOURCE, limit, first)
        return
    if len(first) > limit:
        raise too_large(limit)
    text = decode(first + read_bounded(stream, limit - len(first)))
    start = text.lstrip()[:15].lower()
    if start.startswith(("<!doctype html", "<html")):
        raise unsupported("HTML")
    if _starts_with_record(text.lstrip().partition("\n")[0].encode("utf-8")):  # of UTF-16
        yield from jsonl_documents(BytesIO(text.encode("utf-8")), STDIN_SOURCE, limit)
    elif start.startswith(("{", "[")) and _holds_records(text):
        yield from _documents(text, "", STDIN_SOURCE, "json")
    else:
        yield from _documents(text, "", STDIN_SOURCE, "text")


def _starts_with_record(line: bytes) -> bool:
    if not line.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return False
    try:
        return isinstance(parse_json(decode(line)), dict)
    except InputError:
        return False


def _holds_records(text: str) -> bool:
    try:
        value = parse_json(text)
    except InputError:
        return False
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _load(paths: Sequence[str | Path], settings: IndexingSettings) -> Iterator[Loaded]:
    files: list[str | Path] = []
    for path in paths:
        if str(path) != STDIN:
            files.append(path)
            continue
        yield from _load_files(files, settings)
        files = []
        if sys.stdin is None:  # what Python makes of a closed one
            yield Failure(STDIN_SOURCE, "cannot be read: it is closed")
        else:
            yield from load_stdin(sys.stdin.buffer, settings)
    yield from _load_files(files, settings)


def _load_files(paths: Sequence[str | Path], settings: IndexingSettings) -> Iterator[Loaded]:
    for met in find_files(paths):
        if not isinstance(met, Found):
            yield met
            continue
        yield from load_found(met, settings.max_file_bytes)


def load_found(found: Found, limit: int) -> Iterator[Loaded]:
    """The documents of one file of at most so many bytes (of JSONL: a line)."""
    try:
        yield from _read(found, limit)
    except InputError as error:
        yield Failure(found.source, str(error))


def _read(found: Found, limit: int) -> Iterator[Loaded]:
    refuse_by_name(found.path)
    with open_regular(found.path) as file:
        if found.path.suffix.lower() in JSONL_SUFFIXES:
            yield from jsonl_documents(file, found.source, limit)
            return
        if os.fstat(file.fileno()).st_size > limit:
            raise too_large(limit)
        text = decode(read_bounded(file, limit))
    yield from _documents(text, found.id, found.source, _format(found.path))


def _format(path: PurePath) -> str:
    suffix = path.suffix.lower()
    return "markdown" if suffix in MARKDOWN_SUFFIXES else "json" if suffix == ".json" else "text"


def _documents(text: str, id: str, source: str, kind: str) -> Iterator[Loaded]:
    """The documents of one text. Raises InputError if it holds none."""
    if not text.strip():
        raise InputError("blank: it holds nothing but spaces and line ends" if text else "empty")
    if kind == "json":
        yield from json_documents(text, source)
    elif kind == "markdown":
        # The Markdown parser is a heavy import that most calls do not need.
        from ecphoryrag.indexing.markdown import markdown_document  # noqa: PLC0415

        yield document_from(markdown_document(id, text, source))
    else:
        yield document_from(Document(id, text, source=source))


def _count(found: Found) -> int:
    if found.path.suffix.lower() not in JSONL_SUFFIXES:
        return 1
    try:
        with open_regular(found.path) as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(_COUNTING_BLOCK), b""))
    except (InputError, OSError):
        return 1  # the failure itself is reported when the file is loaded
