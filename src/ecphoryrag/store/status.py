"""What a store holds, counted, and which of its documents are incomplete."""

from __future__ import annotations

from pathlib import Path

import apsw

from ecphoryrag.incomplete import SHOWN, incomplete_document
from ecphoryrag.store import sql
from ecphoryrag.store.connections import beside
from ecphoryrag.store.erase import ERASING, read_gone
from ecphoryrag.store.former import formers
from ecphoryrag.store.reembed import read_progress
from ecphoryrag.store.schema import FORMAT
from ecphoryrag.store.view import read_stamp
from ecphoryrag.types import EncoderIdentity, Failure, StoreStatus

LISTED = 100
"""Incomplete documents that a status names; how many there are in all it always says."""

_COUNTS = """
SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks), (SELECT count(*) FROM entities),
(SELECT count(*) FROM mentions),
(SELECT count(*) FROM chunks WHERE NOT EXISTS (SELECT 1 FROM mentions WHERE chunk = chunks.row)
    AND row NOT IN (SELECT chunk FROM failures)),
(SELECT coalesce(sum(octet_length(text) + octet_length(title)), 0) FROM documents),
(SELECT count(DISTINCT document) FROM failures JOIN chunks c ON c.row = chunk), (SELECT count(*) FROM failures)
"""
_EXTRACTORS = """
SELECT identity FROM extractors
WHERE row IN (SELECT extractor FROM documents UNION SELECT extractor FROM completions) ORDER BY 1
"""
_INCOMPLETE = """
SELECT d.row, d.id, (SELECT count(*) FROM chunks WHERE document = d.row), count(*)
FROM failures JOIN chunks c ON c.row = chunk JOIN documents d ON d.row = c.document GROUP BY d.row ORDER BY d.id LIMIT ?
"""


def read_status(connection: apsw.Connection, path: Path, encoder: EncoderIdentity, extractor: str) -> StoreStatus:
    """Counts and sizes; ``extractor`` is the one configured, named where no document names one."""
    extractors = [identity for (identity,) in sql.rows(connection, _EXTRACTORS)]
    documents, chunks, entities, mentions, empty, text_bytes, incomplete, failed = sql.one(connection, _COUNTS)
    return StoreStatus(
        path=str(path),
        format=FORMAT,
        generation=read_stamp(connection).generation,
        documents=documents,
        chunks=chunks,
        entities=entities,
        mentions=mentions,
        empty_chunks=empty,
        encoder=encoder,
        extractor="; ".join(extractors) or extractor,
        bytes=sum(map(_size, (path, beside(path, "-wal")))),
        text_bytes=text_bytes,
        incomplete=_described(connection),
        incomplete_documents=incomplete,
        failed_chunks=failed,
        erasure=read_erasure(connection),
        reembedding=read_progress(connection, path),
        notices=tuple(_of_former(copy) for copy in formers(path)),
    )


def _of_former(copy: Path) -> str:
    return (
        f"{copy} is a copy from before the store was brought up to date, and holds what was forgotten since: remove it "
        "once you have seen that all is well"
    )


def read_erasure(connection: apsw.Connection) -> str | None:
    """What to say of an erasure that was begun and is not finished; None if there is none."""
    if read_gone(connection) != ERASING:
        return None
    what = "begun and not finished: what was to be erased may still be readable"
    return f"{what}; run `ecphory forget --erase` or `ecphory repair`"


def read_incomplete(connection: apsw.Connection) -> list[str]:
    """Ids of the documents that have chunks without an extraction, in order."""
    found = sql.rows(
        connection,
        "SELECT DISTINCT d.id FROM failures JOIN chunks c ON c.row = chunk JOIN documents d ON d.row = c.document "
        "ORDER BY 1",
    )
    return [id_ for (id_,) in found]


def _described(connection: apsw.Connection) -> tuple[Failure, ...]:
    """The first of the incomplete documents, each with the first of its reasons."""
    failures: list[Failure] = []
    for row, id_, chunks, failed in list(sql.rows(connection, _INCOMPLETE, (LISTED,))):
        reasons = sql.rows(
            connection,
            "SELECT ordinal, reason FROM failures JOIN chunks c ON c.row = chunk WHERE document = ? "
            "ORDER BY ordinal LIMIT ?",
            (row, SHOWN),
        )
        failures.append(incomplete_document(id_, chunks, failed, [(ordinal, reason) for ordinal, reason in reasons]))
    return tuple(failures)


def _size(file: Path) -> int:
    """Bytes; 0 if it is not there, as the log when another process closes the store."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
