"""Moving a store to another encoder: its vectors lie beside the present ones until all are there.

The present vectors are read and written as ever meanwhile. What is kept of the next ones survives a killed process;
a chunk that is changed or forgotten takes its next vector with it. The last step is one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import apsw
import numpy as np

from ecphoryrag.errors import StoreError
from ecphoryrag.ports import PendingChunk, Vectors
from ecphoryrag.store import sql
from ecphoryrag.store.arrays import HALF
from ecphoryrag.store.identity import ENCODER, NEXT_ENCODER, packed, read_identity
from ecphoryrag.store.kept_json import read_words
from ecphoryrag.types import Chunk, EncoderIdentity

_PENDING = """
SELECT c.row, c.document, ordinal, start, stop, headings FROM chunks c
WHERE c.row > ? AND NOT EXISTS (SELECT 1 FROM next_vectors WHERE chunk = c.row) ORDER BY c.row LIMIT ?
"""
_PUT = """
INSERT INTO next_vectors
SELECT c.row, ?1 FROM chunks c JOIN documents d ON d.row = c.document
WHERE c.row = ?2 AND d.content_hash = ?3 AND c.start = ?4 AND c.stop = ?5
ON CONFLICT DO UPDATE SET vector = excluded.vector
"""
_ANY_PENDING = "SELECT 1 FROM chunks WHERE row NOT IN (SELECT chunk FROM next_vectors) LIMIT 1"
_SWITCH = "UPDATE chunks SET vector = (SELECT n.vector FROM next_vectors n WHERE n.chunk = chunks.row)"
_COUNTS = "SELECT (SELECT count(*) FROM next_vectors), (SELECT count(*) FROM chunks)"

Connected = Callable[[], AbstractContextManager[apsw.Connection]]


class Writing(Protocol):
    """The store's writer, inside a transaction."""

    def __call__(self, *, moving: bool) -> AbstractContextManager[apsw.Connection]:
        """``moving`` says whether what readers see changes."""
        ...


@dataclass(frozen=True, slots=True)
class Access:
    """What of the store a move needs."""

    path: Path
    reading: Connected
    writing: Writing
    switched: Callable[[], None]
    """Called after the last step, to make it last and to drop the caches."""


class SqliteReembedding:
    """See :class:`ecphoryrag.ports.Reembedding`. Begun when it is made, or gone on with if its target is the same."""

    def __init__(self, access: Access, current: EncoderIdentity, target: EncoderIdentity) -> None:
        self._access = access
        self._target = target
        self._moves = current != target
        with access.writing(moving=False) as connection:
            if not self._moves:
                _abandon(connection)
            elif read_identity(connection, NEXT_ENCODER, access.path) != target:
                _abandon(connection)
                connection.execute("INSERT INTO properties VALUES (?, ?)", (NEXT_ENCODER, packed(target)))

    @property
    def target(self) -> EncoderIdentity:
        """The encoder that the store is moved to."""
        return self._target

    def progress(self) -> tuple[int, int]:
        """How many chunks have a next vector, and how many there are."""
        with self._access.reading() as connection:
            done, chunks = sql.one(connection, _COUNTS)
        return (done, chunks) if self._moves else (chunks, chunks)

    def pending(self, limit: int, after: int = 0) -> list[PendingChunk]:
        """At most so many of the chunks beyond this row that have no next vector, by row."""
        if not self._moves:
            return []
        with self._access.reading() as connection:
            texts: dict[int, tuple[str, str, str, str]] = {}
            found: list[PendingChunk] = []
            for row, document, ordinal, start, stop, headings in list(sql.rows(connection, _PENDING, (after, limit))):
                if document not in texts:
                    query = "SELECT id, title, text, content_hash FROM documents WHERE row = ?"
                    id_, title, text, content = sql.one(connection, query, (document,))
                    texts[document] = id_, title, text, content
                id_, title, text, content = texts[document]
                chunk = Chunk(id_, ordinal, text[start:stop], start, stop, read_words(headings))
                found.append(PendingChunk(row, title, chunk, content))
            return found

    def put(self, chunks: Sequence[PendingChunk], vectors: Vectors) -> None:
        """Keep the vectors (len(chunks), d) of these chunks, in one transaction; of those that are still as they were.

        Raises StoreError if the store is by now moved to yet another encoder, ValueError for vectors of another shape
        or not finite.
        """
        if vectors.shape != (len(chunks), self._target.dimension) or not np.isfinite(vectors).all():
            raise ValueError(
                f"{len(chunks)} chunks need finite vectors of {self._target.dimension} dimensions, not {vectors.shape}."
            )
        half = np.ascontiguousarray(vectors, HALF)
        with self._access.writing(moving=False) as connection:
            self._check_target(connection)
            connection.executemany(
                _PUT,
                [
                    (vector.tobytes(), one.row, one.content_hash, one.chunk.start, one.chunk.end)
                    for one, vector in zip(chunks, half, strict=True)
                ],
            )

    def finish(self) -> bool:
        """Put all next vectors in the place of the present ones, in one transaction; False if some are not there yet.

        From then on the store is the target's: it must be opened again with that encoder. Raises StoreError if the
        store is by now moved to yet another one.
        """
        if not self._moves:
            return True
        with self._access.reading() as connection:
            if sql.row(connection, _ANY_PENDING) is not None:
                return False
        with self._access.writing(moving=True) as connection:
            self._check_target(connection)
            if sql.row(connection, _ANY_PENDING) is not None:  # added since
                return False
            connection.execute(_SWITCH)
            connection.execute("UPDATE properties SET value = ? WHERE name = ?", (packed(self._target), ENCODER))
            _abandon(connection)
        self._access.switched()
        return True

    def _check_target(self, connection: apsw.Connection) -> None:
        other = read_identity(connection, NEXT_ENCODER, self._access.path)
        if other != self._target:
            how = "given up" if other is None else f"given up for one to {other.name}"
            raise StoreError(
                f"The move of the store {self._access.path} to the encoder {self._target.name} was {how} meanwhile; "
                "begin it again if it is still wanted."
            )


def read_progress(connection: apsw.Connection, path: Path) -> str | None:
    """How far a move to another encoder has come, in words; None if none is under way."""
    target = read_identity(connection, NEXT_ENCODER, path)
    if target is None:
        return None
    done, chunks = sql.one(connection, _COUNTS)
    return f"to {target.name}: {done} of {chunks} chunks"


def _abandon(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM next_vectors")
    connection.execute("DELETE FROM properties WHERE name = ?", (NEXT_ENCODER,))
