"""Documents of an export back into a store, with all that was derived from them."""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal, NoReturn, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ecphoryrag.decisions import Decision
from ecphoryrag.errors import InputError, JobStopped, ModelError, StoreError
from ecphoryrag.indexing.decided import decision_of
from ecphoryrag.indexing.files import decode, shown
from ecphoryrag.indexing.interrupts import held_interrupts
from ecphoryrag.indexing.items import MAX_TITLE_CHARACTERS, FailureList, check_lengths, check_unicode, checked_metadata
from ecphoryrag.indexing.passages import passage_head, passage_vectors
from ecphoryrag.indexing.progress import Progress, ProgressCallback
from ecphoryrag.indexing.records import parse_json
from ecphoryrag.ports import DECISION, EXPORT_VERSION, Encoder, Exported, IndexedDocument, Store, Vectors
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.text.keys import name_key
from ecphoryrag.types import (
    AboutKind,
    AddReport,
    Chunk,
    Document,
    EncoderIdentity,
    Extraction,
    Failure,
    Heading,
    Mention,
    Spending,
    Usage,
)
from ecphoryrag.types import Field as MentionField

DECISION_LINE = f'{{"{DECISION}":'.encode("ascii")
LINE_BYTES = 2**28
"""Of a line at most: a longer one is no document that a store could hold, or no export."""
HALF = np.dtype("<f2")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Encoder(_Part):
    name: str
    version: str
    dimension: int = Field(ge=0)
    fingerprint: str


class _Header(_Part):
    ecphory_export: int
    format: int
    encoder: _Encoder | None
    documents: int = Field(ge=0, lt=2**63)
    decisions: int = Field(default=0, ge=0, lt=2**63)
    vectors: bool


class _Mention(_Part):
    key: str
    field: MentionField
    span: list[int] = Field(min_length=2, max_length=2)
    type: str
    description: str
    importance: int = Field(ge=1, le=5)
    about: AboutKind | None


class _Chunk(_Part):
    span: list[int] = Field(min_length=2, max_length=2)
    headings: list[str]
    mentions: list[_Mention]
    aliases: list[list[str]]
    failure: str | None = Field(default=None, min_length=1)
    completed_by: str | None = None
    vector: str | None = None


class _Document(_Part):
    id: str = Field(min_length=1)
    title: str
    text: str
    metadata: dict[str, Any]
    headings: list[list[int]]
    source: str | None
    content_hash: str
    extractor: str
    chunks: list[_Chunk]


@dataclass(frozen=True, slots=True)
class Source:
    """An export to be imported."""

    lines: IO[bytes]
    name: str
    reencode: bool = False
    """Whether passages are encoded although the export has vectors that fit."""


def import_lines(
    source: Source,
    store: Store,
    encoder: Encoder,
    settings: IndexingSettings,
    progress: ProgressCallback | None = None,
) -> AddReport:
    """Put the documents of an export into the store, each in one transaction; those there already stay untouched.

    A document of the same id and other content is replaced. Vectors are taken as they are if the export has them and
    they come from this store's encoder; otherwise the passages are encoded. A line that cannot be taken is a line of
    the report, with its number. Ctrl-C and JobStopped end the work as they end that of :func:`index`. Raises InputError
    for a file that is no export, StoreError and ModelError with a note that says how many documents were taken.
    """
    started = time.perf_counter()
    lines, name = source.lines, source.name
    header = _header(_line(lines, name, 1), name)
    kept = header.encoder
    same = not source.reencode and kept is not None and EncoderIdentity(**kept.model_dump()) == store.encoder
    dimension = store.encoder.dimension if same and header.vectors else None
    run = _Run(store, encoder, dimension, header.documents + header.decisions, progress)
    interrupted, stopped = False, None
    try:
        run.all(_batches(lines, name, settings.batch), name)
    except KeyboardInterrupt:
        interrupted = True
    except JobStopped as error:
        stopped = str(error)
    except (StoreError, ModelError) as error:
        error.add_note(f"Before this {len(run.added) + len(run.updated)} documents were imported, which are kept.")
        raise
    store.flush()
    return run.report(time.perf_counter() - started, interrupted=interrupted, stopped=stopped)


Importable: TypeAlias = Literal["export", "documents"]
"""What a file that can be imported holds: an export of a store, or plain documents as JSONL."""


def importable(path: Path) -> Importable:
    """Which of the two the file holds, by its first line. Raises InputError if neither, or if it cannot be read."""
    try:
        if not path.is_file():  # of a pipe the first line could be read only once
            why = "it is a folder, a pipe or a device" if path.exists() else "no such file"
            raise InputError(
                f"{shown(path)} cannot be read ({why}); name a file. Documents in a pipe go to `ecphory add -`."
            )
        with path.open("rb") as lines:
            line = _line(lines, str(path), 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{str(path)!a} cannot be read ({reason}); name another file.") from error
    if _is_document(line):
        return "documents"
    _header(line, str(path))
    return "export"


def _is_document(line: bytes) -> bool:
    """Whether the line is a record of a plain document; one of an export without its header is not."""
    try:
        record = parse_json(decode(line))
    except InputError:
        return False
    return isinstance(record, dict) and "text" in record and not {"content_hash", "chunks"} <= record.keys()


@dataclass(slots=True)
class _Run:
    """One import, and what came of it so far."""

    store: Store
    encoder: Encoder
    dimension: int | None
    """Of the vectors in the export; None if the passages are to be encoded."""
    total: int
    progress: ProgressCallback | None
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: FailureList = field(default_factory=FailureList)
    decisions: list[Decision] = field(default_factory=list)
    lines: int = 0
    chunks: int = 0
    mentions: int = 0
    usage: Usage = field(default_factory=Usage)

    def all(self, batches: Iterator[list[tuple[int, bytes]]], name: str) -> None:
        """Take in every line."""
        for batch in batches:
            found: list[Exported] = []
            for number, line in batch:
                self.lines += 1
                try:
                    if line.startswith(DECISION_LINE):
                        self.decisions.append(decision_of(_parsed(line)))
                        continue
                    found.append(_exported(line, self.dimension))
                except InputError as error:
                    self.failed.append(Failure(f"{name}:{number}", str(error)))
            hashes = self.store.hashes([one.indexed.document.id for one in found])
            new = []
            for one in found:
                document = one.indexed.document
                if hashes.get(document.id) == document.content_hash:
                    self.unchanged.append(document.id)
                else:
                    new.append(one)
            for one in self.with_vectors(new):
                self.put(one, name)
        if self.lines != self.total:
            self.failed.append(
                Failure(name, f"{self.total} lines are said to follow the first, and {self.lines} do: it was cut off")
            )
        try:
            self.store.decisions().record(self.decisions)
        except InputError as error:
            self.failed.append(Failure(f"{name}: decisions", f"none of them was taken: {error}"))

    def with_vectors(self, found: list[Exported]) -> list[Exported]:
        """The same with the vectors of this store's encoder."""
        if self.dimension is not None:
            return found
        chunks = [(one.indexed.document.title, chunk) for one in found for chunk in one.indexed.chunks]
        if not chunks:
            nothing = np.zeros((0, self.store.encoder.dimension), np.float32)
            return [replace(one, indexed=replace(one.indexed, vectors=nothing)) for one in found]
        encoded = passage_vectors(
            [passage_head(title, chunk) for title, chunk in chunks], [chunk.text for _, chunk in chunks], self.encoder
        )
        self.usage += encoded.usage
        made, start = [], 0
        for one in found:
            stop = start + len(one.indexed.chunks)
            made.append(replace(one, indexed=replace(one.indexed, vectors=encoded.vectors[start:stop])))
            start = stop
        return made

    def put(self, one: Exported, name: str) -> None:
        """Commit one document."""
        id_ = one.indexed.document.id
        with held_interrupts():
            try:
                outcome = self.store.restore(one)
            except (InputError, ValueError) as error:
                self.failed.append(Failure(f"{name}: {id_}", str(error)))
                return
            (self.added if outcome == "added" else self.updated).append(id_)
            self.chunks += len(one.indexed.chunks)
            self.mentions += sum(len(found.mentions) for found in one.indexed.extractions)
        if self.progress:
            self.progress(Progress("commit", len(self.added) + len(self.updated) + len(self.unchanged), self.total))

    def report(self, seconds: float, *, interrupted: bool, stopped: str | None) -> AddReport:
        """What became of it."""
        spending = (Spending("embed", self.encoder.identity.name, self.usage),) if self.usage != Usage() else ()
        return AddReport(
            added=tuple(self.added),
            updated=tuple(self.updated),
            unchanged=tuple(self.unchanged),
            failed=self.failed.all(),
            chunks=self.chunks,
            mentions=self.mentions,
            usage=replace(self.usage, seconds=seconds),
            spending=spending,
            seconds=seconds,
            interrupted=interrupted,
            stopped=stopped,
        )


def _line(lines: IO[bytes], name: str, number: int) -> bytes:
    line = lines.readline(LINE_BYTES + 1)
    if len(line) > LINE_BYTES:
        raise InputError(f"{name}:{number} is longer than {LINE_BYTES >> 20} MiB: this is no export of a store.")
    return line


def _batches(lines: IO[bytes], name: str, size: int) -> Iterator[list[tuple[int, bytes]]]:
    batch: list[tuple[int, bytes]] = []
    number, held = 1, 0
    while line := _line(lines, name, number := number + 1):
        if not line.strip():
            continue
        batch.append((number, line))
        held += len(line)
        if len(batch) >= size or held > LINE_BYTES >> 4:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _header(line: bytes, name: str) -> _Header:
    try:
        record = _parsed(line)
        version = record.get("ecphory_export")
        if isinstance(version, int) and version > EXPORT_VERSION:
            raise InputError(f"{name} was exported by a later version: install a newer ecphoryrag to import it.")
        return _Header.model_validate(record)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{name} is no export of a store: its first line is no header. Nor is it a document, such as "
            '{"text": "..."}.'
        ) from error


def _parsed(line: bytes) -> dict[str, Any]:
    record = json.loads(line.decode("utf-8"), parse_constant=_no_number)
    if not isinstance(record, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - as for all else that is wrong with a line
    return record


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _exported(line: bytes, dimension: int | None) -> Exported:
    """The document of a line. Raises InputError, saying what is wrong with it."""
    try:
        record = _Document.model_validate(_parsed(line))
        return _checked(record, dimension)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{place}: {first['msg']}") from error
    except RecursionError as error:
        raise InputError("it is nested too deeply") from error
    except (ValueError, binascii.Error) as error:
        raise InputError(f"the line cannot be taken: {error}") from error


def _checked(record: _Document, dimension: int | None) -> Exported:
    text = record.text
    headings = tuple(_heading(text, parts) for parts in record.headings)
    metadata = checked_metadata(record.metadata)
    document = Document(record.id, text, record.title, metadata, headings, record.source)
    check_lengths(document)
    _check_texts(record)
    if document.content_hash != record.content_hash:
        raise ValueError("its content is not that which was exported: the content hash differs")
    chunks = tuple(_chunk(document, ordinal, one) for ordinal, one in enumerate(record.chunks))
    extractions = tuple(_extraction(document, one) for one in record.chunks)
    completed = {at: one.completed_by for at, one in enumerate(record.chunks) if one.completed_by is not None}
    vectors = _vectors(record.chunks, dimension)
    return Exported(IndexedDocument(document, chunks, extractions, vectors), record.extractor, completed)


def _check_texts(record: _Document) -> None:
    """Raises InputError for what is no text, wherever it is to be kept; a hash that matches is no proof of anything."""
    named = {"id": record.id, "title": record.title, "text": record.text, "extractor": record.extractor}
    for name, text in (named | {"source": record.source or ""}).items():
        check_unicode(text, name)
    for heading in record.headings:
        if len(heading) == 3 and (heading[0] < 1 or heading[2] - heading[1] > MAX_TITLE_CHARACTERS):
            raise InputError(f"the heading at {heading[1]} is of level {heading[0]} or too long")
    for chunk in record.chunks:
        for text in (*chunk.headings, *(key for pair in chunk.aliases for key in pair), chunk.completed_by or ""):
            check_unicode(text, "heading, alias or extractor of a chunk")
        for mention in chunk.mentions:
            check_unicode(mention.type, "type of a mention")
            check_unicode(mention.description, "description of a mention")
        check_unicode(chunk.failure or "", "failure of a chunk")


def _chunk(document: Document, ordinal: int, one: _Chunk) -> Chunk:
    start, stop = _span(one.span, document.text)
    return Chunk(document.id, ordinal, document.text[start:stop], start, stop, tuple(one.headings))


def _heading(text: str, parts: list[int]) -> Heading:
    level, start, stop = parts
    _span([start, stop], text)
    return Heading(level, text[start:stop], start, stop)


def _span(span: list[int], text: str) -> tuple[int, int]:
    start, stop = span
    if not 0 <= start <= stop <= len(text):
        raise ValueError(f"the span {start}:{stop} lies outside its text")
    return start, stop


def _extraction(document: Document, chunk: _Chunk) -> Extraction:
    if chunk.failure is not None and (chunk.mentions or chunk.aliases):
        raise ValueError("a chunk has both an extraction and the reason why it has none")
    mentions = tuple(_mention(document, one) for one in chunk.mentions)
    pairs: list[tuple[str, str]] = []
    for pair in chunk.aliases:
        one, other = pair
        if not one or not other:
            raise ValueError("an alias is empty")
        pairs.append((one, other))
    return Extraction(mentions, tuple(pairs), failure=chunk.failure)


def _mention(document: Document, one: _Mention) -> Mention:
    place = document.title if one.field == "title" else document.text
    start, stop = _span(one.span, place)
    name = place[start:stop]
    if not name or name_key(name) != one.key:
        raise ValueError(f"the mention at {start}:{stop}, {name!a}, does not have the key {one.key!a}")
    return Mention(name, one.key, start, stop, one.field, one.type, one.description, one.importance, one.about)


def _vectors(chunks: Sequence[_Chunk], dimension: int | None) -> Vectors:
    if dimension is None:
        return np.zeros((len(chunks), 0), np.float32)
    rows = []
    for one in chunks:
        if one.vector is None:
            raise ValueError("a chunk has no vector, and the header says that all have one")
        data = base64.b64decode(one.vector, validate=True)
        if len(data) != HALF.itemsize * dimension:
            raise ValueError(f"a vector has {len(data)} bytes, not those of {dimension} dimensions")
        rows.append(data)
    found = np.frombuffer(b"".join(rows), HALF).reshape(len(chunks), dimension).astype(np.float32)
    if not np.isfinite(found).all():
        raise ValueError("a vector is not finite")
    return found
