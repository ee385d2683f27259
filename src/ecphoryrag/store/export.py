"""A store as lines of JSON: a header, a document a line with all that was derived from it, a decision a line.

Documents by id, decisions in the order in which they were made, keys by name, no row numbers, no times: stores that
hold the same give the same bytes.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import IO

import apsw

from ecphoryrag.decisions import Decision
from ecphoryrag.errors import StoreDamaged
from ecphoryrag.ports import DECISION, EXPORT_VERSION, PLAIN_EXPORT_VERSION
from ecphoryrag.store import sql
from ecphoryrag.store.connections import check_path, open_reader, transaction
from ecphoryrag.store.decisions import read_decisions
from ecphoryrag.store.faults import SYMPTOMS, translating
from ecphoryrag.store.identity import ENCODER, read_identity
from ecphoryrag.store.invariants import PENDING
from ecphoryrag.store.kept_json import read_words
from ecphoryrag.store.rows import Texts, read_document, read_mentions
from ecphoryrag.store.schema import FORMAT
from ecphoryrag.types import ExportReport, Failure, JsonValue, Mention

_CHUNKS = """
SELECT c.row, ordinal, start, stop, headings, vector, reason, identity
FROM chunks c LEFT JOIN failures f ON f.chunk = c.row LEFT JOIN completions p ON p.chunk = c.row
LEFT JOIN extractors e ON e.row = p.extractor WHERE document = ? ORDER BY ordinal
"""


def export_store(path: Path, output: IO[str], *, vectors: bool = False) -> ExportReport:
    """Write the store at this path as lines, as it is at one moment.

    A document that cannot be read is left out, and a line of the report. Raises StoreNotFound, NotAStore, StoreTooNew,
    StoreBusy, StoreError and StoreDamaged.
    """
    started = time.perf_counter()
    check_path(path, create=False)
    left_out: list[Failure] = []
    documents = chunks = 0
    with translating(path), closing(open_reader(path)) as connection, transaction(connection, "DEFERRED"):
        rows = list(sql.rows(connection, "SELECT row, CAST(id AS BLOB) FROM documents ORDER BY id"))
        decisions = _decisions(connection, left_out)
        output.write(_line(_header(connection, path, len(rows), len(decisions), vectors=vectors)))
        for row, name in rows:
            try:
                record, count = _record(connection, row, name.decode("utf-8"), vectors=vectors)
                line = _line(record)
            except (*SYMPTOMS, StoreDamaged) as error:
                left_out.append(Failure(name.decode("utf-8", "backslashreplace"), f"it cannot be read ({error})"))
                continue
            output.write(line)
            documents, chunks = documents + 1, chunks + count
        for one in decisions:
            output.write(_line({DECISION: one.record()}))
    return ExportReport(documents, chunks, tuple(left_out), time.perf_counter() - started)


def _line(record: dict[str, JsonValue]) -> str:
    return json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def _decisions(connection: apsw.Connection, left_out: list[Failure]) -> list[Decision]:
    """Those that can be read; if there are some that cannot, one failure says so."""
    try:
        return read_decisions(connection)
    except (*SYMPTOMS, StoreDamaged) as error:
        left_out.append(Failure("decisions about names", f"they cannot be read ({error})"))
        return []


def _header(
    connection: apsw.Connection, path: Path, documents: int, decisions: int, *, vectors: bool
) -> dict[str, JsonValue]:
    try:
        encoder = read_identity(connection, ENCODER, path)
    except StoreDamaged:
        encoder = None  # the texts are worth having all the same
    header: dict[str, JsonValue] = {
        "ecphory_export": EXPORT_VERSION if decisions else PLAIN_EXPORT_VERSION,
        "format": FORMAT,
        "encoder": None if encoder is None else asdict(encoder),
        "documents": documents,
        "vectors": vectors and encoder is not None,
    }
    if decisions:
        header["decisions"] = decisions
    return header


def _record(connection: apsw.Connection, row: int, id_: str, *, vectors: bool) -> tuple[dict[str, JsonValue], int]:
    """The document's line, and how many chunks it has."""
    found = read_document(connection, id_)
    if found is None:
        raise ValueError("its id leads to no document")
    document = found[1]
    query = "SELECT content_hash, identity FROM documents d JOIN extractors e ON e.row = extractor WHERE d.row = ?"
    content_hash, extractor = sql.one(connection, query, (row,))
    if content_hash == PENDING:
        raise ValueError("its chunks are to be made again: run `ecphory repair` first")
    texts = Texts(document.title, document.text)
    chunks = list(_chunks(connection, row, texts, vectors=vectors))
    record: dict[str, JsonValue] = {
        "id": document.id,
        "title": document.title,
        "text": document.text,
        "metadata": dict(document.metadata),
        "headings": [[one.level, one.start, one.end] for one in document.headings],
        "source": document.source,
        "content_hash": content_hash,
        "extractor": extractor,
        "chunks": [*chunks],
    }
    return record, len(chunks)


def _chunks(connection: apsw.Connection, row: int, texts: Texts, *, vectors: bool) -> Iterator[dict[str, JsonValue]]:
    for chunk, _, start, stop, headings, vector, failure, completed in list(sql.rows(connection, _CHUNKS, (row,))):
        record: dict[str, JsonValue] = {
            "span": [start, stop],
            "headings": [*read_words(headings)],
            "mentions": [_mention(mention) for mention in read_mentions(connection, chunk, texts)],
            "aliases": [
                [one, other]
                for one, other in sql.rows(
                    connection, "SELECT one, other FROM aliases WHERE chunk = ? ORDER BY number", (chunk,)
                )
            ],
        }
        if failure is not None:
            record["failure"] = failure
        if completed is not None:
            record["completed_by"] = completed
        if vectors:
            record["vector"] = base64.b64encode(vector).decode("ascii")
        yield record


def _mention(mention: Mention) -> JsonValue:
    return {
        "key": mention.key,
        "field": mention.field,
        "span": [mention.start, mention.end],
        "type": mention.type,
        "description": mention.description,
        "importance": mention.importance,
        "about": mention.about,
    }
