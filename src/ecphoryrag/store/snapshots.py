"""From the rows of one generation to its snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import apsw
import numpy as np
from numpy.typing import NDArray

from ecphoryrag.snapshot import Snapshot
from ecphoryrag.store import sql
from ecphoryrag.store.arrays import HALF, csr, held_in, integers, positions_of
from ecphoryrag.store.forms import find_short_forms, titles_of
from ecphoryrag.store.lexical import term_counts
from ecphoryrag.store.linking import NOT_NAMES, find_linked
from ecphoryrag.store.resolved import Resolved
from ecphoryrag.store.resolving import read_resolution
from ecphoryrag.vectors import unit_rows

_LINKABLE = """
SELECT DISTINCT entity FROM mentions
WHERE about = 1 OR (about IN (2, 3) AND type NOT IN (SELECT value FROM json_each(?)))
"""


def build_snapshot(connection: apsw.Connection, generation: int, half: NDArray[np.float16]) -> Snapshot:
    """The snapshot of what the connection's open transaction sees; ``half`` comes from :func:`read_vectors`."""
    documents = list(sql.rows(connection, "SELECT id, row FROM documents ORDER BY id"))
    document_rows = np.array([row for _, row in documents], np.int64)
    resolution = read_resolution(connection)
    keys = list(sql.rows(connection, "SELECT key, row FROM entities ORDER BY key"))
    entity_rows = np.array([row for _, row in keys], np.int64)
    entity_keys = [key for key, _ in keys]
    chunks = integers(
        sql.rows(
            connection, "SELECT c.row, document FROM chunks c JOIN documents d ON d.row = document ORDER BY id, ordinal"
        ),
        2,
    )
    chunk_rows = chunks[:, 0]
    cells = _mentions(connection, chunk_rows, entity_rows)
    shape = (len(chunk_rows), len(entity_rows))
    pairs, kinds, counts = _counted(cells, shape)
    terms = term_counts(connection, chunk_rows)
    linked = _linked(connection, chunk_rows, entity_rows, entity_keys, pairs)
    positions = {key: position for position, key in enumerate(entity_keys)}
    if resolution is None:
        aliases = read_aliases(connection, positions)
    else:
        found = Resolved(connection, resolution, chunk_rows, entity_keys)
        cells = _ordered(found.mentions(entity_rows, NOT_ABOUT))
        entity_keys = list(resolution.keys)
        shape = (len(chunk_rows), len(entity_keys))
        pairs, kinds, counts = _counted(cells, shape)
        linked = found.linked(linked)
        linked = linked[~np.isin(_codes(linked, shape), _codes(pairs, shape))]
        aliases = found.aliases()
        positions = {key: position for position, key in enumerate(entity_keys)} | dict(resolution.lead)
    about = csr(*_about(pairs, kinds), shape, np.int8)
    names = {} if resolution is None else dict(resolution.names)
    short = find_short_forms(
        about, lambda entity: names.get(entity) or (entity_keys[entity],), positions, titles_of(about)
    )
    return Snapshot(
        generation=generation,
        document_ids=[id for id, _ in documents],  # noqa: A001 - the field's own word
        chunk_documents=positions_of(chunks[:, 1], document_rows).astype(np.int32),
        chunk_rows=chunk_rows,
        entity_keys=entity_keys,
        entity_positions=positions,
        mentions=csr(pairs, counts, shape, np.float32),
        about=about,
        linked=csr(linked, np.ones(len(linked)), shape, np.float32),
        short_forms=csr(short, np.ones(len(short)), shape, np.float32),
        aliases=aliases,
        terms={term: column for column, term in enumerate(terms.terms)},
        term_counts=terms.body,
        title_term_counts=terms.title,
        vectors=unit_rows(half),
        names=names,
    )


NOT_ABOUT = 127
"""Sorts after every kind, so that the first row of a pair holds its first kind."""


def _about(pairs: NDArray[np.int64], kinds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    about = kinds < NOT_ABOUT
    return pairs[about], kinds[about]


def _codes(cells: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    """(cells,) one number a cell, in the order of rows and columns."""
    return cells[:, 0] * shape[1] + cells[:, 1]


def _mentions(
    connection: apsw.Connection, chunk_rows: NDArray[np.int64], entity_rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(mentions, 3) chunk position, entity position, kind; the first kind first within a pair."""
    found = integers(sql.rows(connection, "SELECT chunk, entity, about FROM mentions"), 3)
    found[:, 0] = positions_of(found[:, 0], chunk_rows)
    found[:, 1] = positions_of(found[:, 1], entity_rows)
    found[found[:, 2] == 0, 2] = NOT_ABOUT
    return _ordered(found)


def _ordered(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    return cells[np.lexsort((cells[:, 2], cells[:, 1], cells[:, 0]))]


def _counted(
    cells: NDArray[np.int64], shape: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Of (cells, 3) that are :func:`_ordered`: (pairs, 2) chunk and entity, once each, (pairs,) the first kind of each,
    and (pairs,) how often it is there."""
    codes = _codes(cells, shape)
    first = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1]))) if len(codes) else codes
    return cells[first, :2], cells[first, 2], np.diff(np.append(first, len(codes)))


def _linked(
    connection: apsw.Connection,
    chunk_rows: NDArray[np.int64],
    entity_rows: NDArray[np.int64],
    entity_keys: list[str],
    pairs: NDArray[np.int64],
) -> NDArray[np.int64]:
    known = positions_of(integers(sql.rows(connection, _LINKABLE, (json.dumps(NOT_NAMES),)), 1)[:, 0], entity_rows)
    shape = (len(chunk_rows), len(entity_rows))
    codes = _codes(pairs, shape)

    def mentioned(found: NDArray[np.int64]) -> NDArray[np.bool_]:
        return held_in(_codes(found, shape), codes)

    def texts(positions: Iterable[int]) -> Iterator[tuple[int, str]]:
        document, text = None, ""
        for position in positions:
            of, start, stop = sql.one(
                connection, "SELECT document, start, stop FROM chunks WHERE row = ?", (int(chunk_rows[position]),)
            )
            if of != document:
                document, text = of, sql.value(connection, "SELECT text FROM documents WHERE row = ?", (of,))
            yield position, text[start:stop]

    words = [
        blob
        for (blob,) in sql.rows(
            connection, "SELECT words FROM chunks c JOIN documents d ON d.row = document ORDER BY id, ordinal"
        )
    ]
    return find_linked({int(at): entity_keys[at] for at in known}, words, mentioned, texts)


def read_aliases(connection: apsw.Connection, positions: dict[str, int]) -> NDArray[np.int32]:
    """(a, 2) pairs of positions of entities that some text says are one thing, ascending."""
    pairs = {
        (min(positions[one], positions[other]), max(positions[one], positions[other]))
        for one, other in sql.rows(connection, "SELECT DISTINCT one, other FROM aliases")
        if one != other and one in positions and other in positions
    }
    return np.array(sorted(pairs), np.int32).reshape(-1, 2)


def read_vectors(connection: apsw.Connection, dimension: int) -> NDArray[np.float16]:
    """(n, dimension) in the order of the snapshot."""
    rows = sql.rows(connection, "SELECT vector FROM chunks c JOIN documents d ON d.row = document ORDER BY id, ordinal")
    vectors = [vector for (vector,) in rows]
    return np.frombuffer(b"".join(vectors), HALF).reshape(len(vectors), dimension)
