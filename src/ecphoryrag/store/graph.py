"""The graph of a store for other tools: what its nodes and edges are, read in an order that depends on nothing else.

Nodes are documents, chunks and entities. Edges lead from a document to its chunks (``part``), from a chunk to the
entities that it mentions (``mention``) or whose name only other documents know (``linked``), and between entities that
a text says are one thing (``alias``): what activation walks (see docs/recall.md), without its weights.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, TypeAlias, cast

import scipy.sparse as sp

from ecphoryrag.errors import StoreError, StoreNotFound
from ecphoryrag.ports import View
from ecphoryrag.snapshot import ABOUT_KINDS
from ecphoryrag.store.connections import check_path
from ecphoryrag.store.faults import translating
from ecphoryrag.store.standing import first_bytes
from ecphoryrag.types import AboutKind, DocumentSummary, Entity, GraphReport, Mention

GraphFormat: TypeAlias = Literal["graphml", "parquet"]
EdgeKind: TypeAlias = Literal["part", "mention", "linked", "alias"]
COUNTED = ("documents", "chunks", "entities", "edges")
MAGIC = b"SQLite format 3\0"
BATCH = 256
"""Chunks read at a time."""


@dataclass(frozen=True, slots=True)
class ChunkNode:
    """A chunk, by its position, with the position of its document."""

    position: int
    document: int
    document_id: str
    ordinal: int
    start: int
    end: int
    headings: tuple[str, ...]
    text: str
    title: str
    mentions: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """From one node to another: positions among the nodes of their kinds."""

    kind: EdgeKind
    source: int
    target: int
    count: int | None = None
    """How often the chunk mentions the entity."""
    type: str | None = None
    """The type that the chunk's first mention of the entity gives it."""
    importance: int | None = None
    """The highest of the chunk's mentions."""
    about: AboutKind | None = None


class Graph:
    """All nodes and edges of one generation; each method reads anew and holds a batch at a time."""

    def __init__(self, documents: Sequence[DocumentSummary], view: View) -> None:
        self._view = view
        self._documents = {document.id: document for document in documents}
        self.counts: dict[str, int] = {}
        """How many of each kind were read so far."""

    def documents(self) -> Iterator[tuple[int, DocumentSummary]]:
        """By id."""
        for position, id_ in enumerate(self._view.snapshot.document_ids):
            yield self._counted("documents", position), self._documents[id_]

    def chunks(self) -> Iterator[ChunkNode]:
        """By document and ordinal."""
        snapshot = self._view.snapshot
        for first in range(0, snapshot.chunk_count, BATCH):
            positions = range(first, min(first + BATCH, snapshot.chunk_count))
            stored = self._view.chunks(positions)
            for position, one, mentions in zip(positions, stored, self._view.mentions(positions), strict=True):
                chunk = one.chunk
                yield ChunkNode(
                    self._counted("chunks", position),
                    int(snapshot.chunk_documents[position]),
                    chunk.document_id,
                    chunk.ordinal,
                    chunk.start,
                    chunk.end,
                    chunk.headings,
                    chunk.text,
                    one.title,
                    tuple(mentions),
                )

    def entities(self) -> Iterator[tuple[int, Entity]]:
        """By key."""
        count = len(self._view.snapshot.entity_keys)
        for first in range(0, count, BATCH):
            positions = range(first, min(first + BATCH, count))
            for position, entity in zip(positions, self._view.entities(positions), strict=True):
                yield self._counted("entities", position), entity

    def edges(self) -> Iterator[Edge]:
        """All of them: those of each chunk, then the aliases."""
        snapshot = self._view.snapshot
        for first in range(0, snapshot.chunk_count, BATCH):
            positions = range(first, min(first + BATCH, snapshot.chunk_count))
            for position, mentions in zip(positions, self._view.mentions(positions), strict=True):
                document = int(snapshot.chunk_documents[position])
                yield self._edge(Edge("part", document, position))
                yield from self._mentioned(position, mentions)
                for entity in _row(snapshot.linked, position):
                    yield self._edge(Edge("linked", position, entity))
        for one, other in snapshot.aliases.tolist():
            yield self._edge(Edge("alias", one, other))

    def _mentioned(self, position: int, mentions: Sequence[Mention]) -> Iterator[Edge]:
        snapshot = self._view.snapshot
        told: dict[int, list[Mention]] = {}
        for mention in mentions:
            entity = snapshot.entity_positions.get(mention.key)
            if entity is not None:
                told.setdefault(entity, []).append(mention)
        about = _row(snapshot.about, position)
        for entity, count in _row(snapshot.mentions, position).items():
            found = told.get(entity, [])
            kind = cast(AboutKind, ABOUT_KINDS[int(about[entity]) - 1]) if entity in about else None
            yield self._edge(
                Edge(
                    "mention",
                    position,
                    entity,
                    int(count),
                    found[0].type if found else None,
                    max((one.importance for one in found), default=None),
                    kind,
                )
            )

    def position(self, key: str) -> int | None:
        """The position of the entity with this key."""
        return self._view.snapshot.entity_positions.get(key)

    def _counted(self, what: str, position: int) -> int:
        self.counts[what] = position + 1
        return position

    def _edge(self, edge: Edge) -> Edge:
        self.counts["edges"] = self.counts.get("edges", 0) + 1
        return edge


def _row(matrix: sp.csr_array, position: int) -> Mapping[int, float]:
    """Column to value of one row of a sparse matrix, ascending."""
    span = slice(int(matrix.indptr[position]), int(matrix.indptr[position + 1]))
    return dict(sorted(zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True)))


@contextmanager
def reading_graph(path: Path) -> Iterator[Graph]:
    """The graph of the store at this path; no encoder is needed. Raises what opening a store raises."""
    from ecphoryrag.store import kept_encoder, open_store  # noqa: PLC0415 - which import this module

    check_path(path, create=False)
    encoder = kept_encoder(path)
    if encoder is None:
        raise StoreNotFound(f"There is no store at {path}; check the path, or add documents to make one there.")
    with closing(open_store(path, encoder, "", create=False, read_only=True)) as store, store.reading() as view:
        # The list is read beside the view; what was added or forgotten in between is in neither or in both.
        known = set(view.snapshot.document_ids)
        listed = [one for one in store.documents() if one.id in known]
        if len(listed) != len(known):
            raise StoreError(f"The store {path} was changed while it was read; try again.")
        yield Graph(listed, view)


def export_graph(path: Path, target: Path | IO[str], format: GraphFormat) -> GraphReport:
    """Write the graph of the store at this path, whole or not at all.

    ``graphml`` to a file, put in the place of what is there, or to an open stream; ``parquet`` to a folder that is not
    there yet. Raises StoreError for a target that cannot be written, ModelNotAvailable without pyarrow, and what
    opening a store raises.
    """
    started = time.perf_counter()
    with reading_graph(path) as graph:
        replaced = _to_path(graph, target, format) if isinstance(target, Path) else _graphml(graph, target)
        documents, chunks, entities, edges = (graph.counts.get(name, 0) for name in COUNTED)
    return GraphReport(documents, chunks, entities, edges, replaced, time.perf_counter() - started)


def _to_path(graph: Graph, target: Path, format: GraphFormat) -> int:
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        if format == "parquet":
            from ecphoryrag.store.parquet import write_parquet  # noqa: PLC0415 - of the extra `parquet`

            if os.path.lexists(target):
                raise StoreError(f"{target} is there already, and Parquet goes to a folder of its own: name another.")
            temporary.mkdir()
            write_parquet(graph, temporary)
            temporary.rename(target)
            return 0
        keep_stores(target)
        with temporary.open("x", encoding="utf-8", newline="") as file:
            replaced = _graphml(graph, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise StoreError(f"The graph {target} cannot be written ({error.strerror}); name another place.") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink()
    return replaced


def keep_stores(target: Path) -> None:
    """Raise StoreError if a store stands there; OSError if it cannot be looked at."""
    if not target.is_file() or target.stat().st_size < len(MAGIC):
        return
    with translating(target):
        if first_bytes(target, len(MAGIC)) == MAGIC:
            raise StoreError(f"{target} is a store, and an export does not write over one: name another file.")


def _graphml(graph: Graph, output: IO[str]) -> int:
    from ecphoryrag.store.graphml import write_graphml  # noqa: PLC0415 - of this format alone

    return write_graphml(graph, output)


def as_json(value: object) -> str:
    """What a table or an attribute has no form for."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
