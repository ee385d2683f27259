"""A consistent reading of one generation."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from ecphoryrag.ports import Encoder, StoredChunk, Vectors, Where
from ecphoryrag.snapshot import Snapshot
from ecphoryrag.store import sql
from ecphoryrag.store.entities import read_all_entities, read_entities
from ecphoryrag.store.entity_vectors import EntityVectors
from ecphoryrag.store.filters import Filter, Filterable
from ecphoryrag.store.kept_json import read_metadata, read_words
from ecphoryrag.store.lexical import Tokenizer
from ecphoryrag.store.resolving import Resolution, read_resolution
from ecphoryrag.store.rows import Texts, read_mentions
from ecphoryrag.types import Chunk, Entity, Mention

KEPT_CHARACTERS = 4_000_000
"""Texts of documents kept at hand for one generation; a single longer one is kept until the next is read."""


class Stamp(NamedTuple):
    """Which state of which store: two equal stamps mean equal contents."""

    store: str
    generation: int
    state: str
    """Drawn anew at each commit, so that two stores grown from one copy are told apart."""


def read_stamp(connection: apsw.Connection) -> Stamp:
    """The stamp of what the connection's transaction sees."""
    query = "SELECT name, value FROM properties WHERE name IN ('store', 'generation', 'state')"
    values: dict[str, Any] = dict(sql.rows(connection, query))
    return Stamp(values["store"], values["generation"], values["state"])


@dataclass(frozen=True, slots=True)
class Beside:
    """The caches beside the store, and whether they may be written."""

    snapshot: Path
    vectors: Path
    writable: bool


class Former(NamedTuple):
    """An earlier snapshot, to make the next one of."""

    stamp: Stamp
    snapshot: Snapshot


class Shared:
    """What all readings of one generation share; filled when first needed, safe for threads."""

    def __init__(self, stamp: Stamp, former: Former | None = None) -> None:
        self.stamp = stamp
        self.lock = threading.RLock()
        self.encoding = threading.Lock()
        self.snapshot: Snapshot | None = None
        self.former = former
        self.entities: dict[int, Entity] = {}
        self.resolution: Resolution | None = None
        self.resolved = False
        self.filterable: list[Filterable] | None = None
        self.masks: dict[str, NDArray[np.bool_]] = {}
        self.entity_vectors: dict[str, Vectors] = {}
        self._texts: OrderedDict[int, Texts] = OrderedDict()
        self._characters = 0

    def newest(self) -> Former | None:
        """The newest snapshot that is at hand."""
        return self.former if self.snapshot is None else Former(self.stamp, self.snapshot)

    def texts(self, connection: apsw.Connection, row: int) -> Texts:
        """Title and text of the document in this row."""
        with self.lock:
            texts = self._texts.get(row)
            if texts is not None:
                self._texts.move_to_end(row)
                return texts
            texts = Texts(*sql.one(connection, "SELECT title, text FROM documents WHERE row = ?", (row,)))
            self._texts[row] = texts
            self._characters += len(texts.text)
            while self._characters > KEPT_CHARACTERS and len(self._texts) > 1:
                _, dropped = self._texts.popitem(last=False)
                self._characters -= len(dropped.text)
            return texts


class SqliteView:
    """See :class:`ecphoryrag.ports.View`."""

    def __init__(self, connection: apsw.Connection, shared: Shared, snapshot: Snapshot, beside: Beside) -> None:
        self._connection = connection
        self._shared = shared
        self._snapshot = snapshot
        self._tokenizer = Tokenizer(connection)
        self._beside = beside

    @property
    def snapshot(self) -> Snapshot:
        """The arrays of this generation, shared by all who read it."""
        return self._snapshot

    def terms(self, text: str) -> list[str]:
        """The text as terms of the lexical index, in order, repeats kept."""
        return self._tokenizer(text)

    def matching(self, where: Where) -> NDArray[np.bool_]:
        """(n,) which chunks belong to documents that pass the filter. Raises InputError for one that is malformed."""
        wanted = Filter(where)
        shared = self._shared
        with shared.lock:
            if wanted.canonical not in shared.masks:
                if shared.filterable is None:
                    shared.filterable = read_filterable(self._connection)
                passed = np.array([wanted(document) for document in shared.filterable], np.bool_)
                shared.masks[wanted.canonical] = passed[self._snapshot.chunk_documents]
            return shared.masks[wanted.canonical].copy()

    def chunks(self, positions: Sequence[int]) -> list[StoredChunk]:
        """The chunks at these positions of the snapshot, in the order asked for."""
        return [self._chunk(int(self._snapshot.chunk_rows[position])) for position in positions]

    def _chunk(self, row: int) -> StoredChunk:
        document, ordinal, start, stop, headings, id_, metadata = sql.one(
            self._connection,
            "SELECT d.row, ordinal, start, stop, c.headings, d.id, d.metadata "
            "FROM chunks c JOIN documents d ON d.row = document WHERE c.row = ?",
            (row,),
        )
        texts = self._shared.texts(self._connection, document)
        chunk = Chunk(id_, ordinal, texts.text[start:stop], start, stop, read_words(headings))
        return StoredChunk(chunk, texts.title, read_metadata(metadata))

    def mentions(self, positions: Sequence[int]) -> list[list[Mention]]:
        """For each of these chunks the mentions in its title and text, by offset, those of the title first."""
        found: list[list[Mention]] = []
        resolution = self.resolution()
        for position in positions:
            row = int(self._snapshot.chunk_rows[position])
            document = sql.value(self._connection, "SELECT document FROM chunks WHERE row = ?", (row,))
            mentions = read_mentions(self._connection, row, self._shared.texts(self._connection, document))
            if resolution is not None:
                mentions = resolution.resolved(row, mentions)
            found.append(sorted(mentions, key=lambda mention: (mention.field == "text", mention.start, mention.end)))
        return found

    def entities(self, positions: Sequence[int]) -> list[Entity]:
        """The entities at these positions of the snapshot, in the order asked for."""
        shared = self._shared
        keys = self._snapshot.entity_keys
        with shared.lock:
            missing = [position for position in dict.fromkeys(map(int, positions)) if position not in shared.entities]
            if missing:
                found = read_entities(self._connection, self.resolution(), [keys[position] for position in missing])
                shared.entities.update((position, found[keys[position]]) for position in missing)
            return [shared.entities[int(position)] for position in positions]

    def resolution(self) -> Resolution | None:
        """What decisions about names make of the mentions, read once a generation."""
        shared = self._shared
        with shared.lock:
            if not shared.resolved:
                shared.resolution, shared.resolved = read_resolution(self._connection), True
            return shared.resolution

    def entity_vectors(self, encoder: Encoder) -> Vectors:
        """(m, d) vectors of name and defining sentence of all entities, computed on first need and cached."""
        shared = self._shared
        fingerprint = repr(encoder.identity)
        with shared.encoding:  # not `lock`: encoding may take long, and others read meanwhile
            if fingerprint not in shared.entity_vectors:
                shared.entity_vectors[fingerprint] = self._read_or_encode(encoder)
            return shared.entity_vectors[fingerprint]

    def _read_or_encode(self, encoder: Encoder) -> Vectors:
        if not encoder.identity.dimension:
            return np.zeros((len(self._snapshot.entity_keys), 0), np.float32)
        cache = EntityVectors(self._beside.vectors, encoder.identity, writable=self._beside.writable)
        state = json.dumps(self._shared.stamp)
        found = cache.written_for(state)
        if found is None:
            found = cache.of(read_all_entities(self._connection), encoder, state)
        return found


def read_filterable(connection: apsw.Connection) -> list[Filterable]:
    """What filters see of all documents, by id."""
    rows = sql.rows(connection, "SELECT id, title, source, metadata FROM documents ORDER BY id")
    return [Filterable(id_, title, source, read_metadata(metadata)) for id_, title, source, metadata in rows]
