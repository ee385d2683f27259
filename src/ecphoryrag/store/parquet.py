"""The graph as tables in Parquet, for pandas, Polars and DuckDB: a folder with one file a table.

``documents``, ``chunks``, ``entities`` with their position in ``node``; ``mentions`` one row a mention; ``edges`` as in
GraphML, ``source`` and ``target`` being nodes of the kinds that ``kind`` joins. Equal stores give equal bytes with
equal versions of pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from ecphoryrag.errors import ModelNotAvailable
from ecphoryrag.store.graph import Graph, as_json

ROWS = 8192
"""Held in memory at a time."""
SCHEMAS: dict[str, dict[str, str]] = {
    "documents": {
        "node": "int64",
        "id": "string",
        "title": "string",
        "source": "string",
        "metadata": "string",
        "content_hash": "string",
        "characters": "int64",
        "chunks": "int64",
    },
    "chunks": {
        "node": "int64",
        "document": "int64",
        "document_id": "string",
        "ordinal": "int64",
        "start": "int64",
        "end": "int64",
        "headings": "list",
        "text": "string",
    },
    "entities": {
        "node": "int64",
        "key": "string",
        "name": "string",
        "type": "string",
        "description": "string",
        "importance": "int64",
        "aliases": "list",
        "mentions": "int64",
        "chunks": "int64",
    },
    "mentions": {
        "chunk": "int64",
        "entity": "int64",
        "key": "string",
        "name": "string",
        "field": "string",
        "start": "int64",
        "end": "int64",
        "type": "string",
        "description": "string",
        "importance": "int64",
        "about": "string",
    },
    "edges": {
        "kind": "string",
        "source": "int64",
        "target": "int64",
        "count": "int64",
        "type": "string",
        "importance": "int64",
        "about": "string",
    },
}
Row: TypeAlias = tuple[Any, ...]


def write_parquet(graph: Graph, folder: Path) -> None:
    """Write all tables. Raises ModelNotAvailable without pyarrow, OSError."""
    tables: dict[str, Callable[[Graph], Iterator[Row]]] = {
        "documents": _documents,
        "chunks": _chunks,
        "entities": _entities,
        "mentions": _mentions,
        "edges": _edges,
    }
    for name, rows in tables.items():
        _write(folder / f"{name}.parquet", SCHEMAS[name], rows(graph))


def _write(path: Path, fields: dict[str, str], rows: Iterable[Row]) -> None:
    try:
        import pyarrow as pa  # noqa: PLC0415 - of the extra `parquet`
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise ModelNotAvailable("Parquet needs pyarrow: pip install 'ecphoryrag[parquet]'") from error
    kinds = {"int64": pa.int64(), "string": pa.string(), "list": pa.list_(pa.string())}
    schema = pa.schema([(name, kinds[kind]) for name, kind in fields.items()])
    pending = iter(rows)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(pending, ROWS)):
            columns = zip(zip(*batch, strict=True), schema, strict=True)
            arrays = [pa.array(column, field.type) for column, field in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _documents(graph: Graph) -> Iterator[Row]:
    for node, one in graph.documents():
        metadata = as_json(dict(one.metadata))
        yield (node, one.id, one.title, one.source, metadata, one.content_hash, one.characters, one.chunks)


def _chunks(graph: Graph) -> Iterator[Row]:
    for one in graph.chunks():
        headings = list(one.headings)
        yield (one.position, one.document, one.document_id, one.ordinal, one.start, one.end, headings, one.text)


def _entities(graph: Graph) -> Iterator[Row]:
    for node, one in graph.entities():
        aliases = list(one.aliases)
        counts = (one.mention_count, one.chunk_count)
        yield (node, one.key, one.name, one.type, one.description, one.importance, aliases, *counts)


def _mentions(graph: Graph) -> Iterator[Row]:
    for chunk in graph.chunks():
        for one in chunk.mentions:
            place = (one.name, one.field, one.start, one.end)
            told = (one.type, one.description, one.importance, one.about)
            yield (chunk.position, graph.position(one.key), one.key, *place, *told)


def _edges(graph: Graph) -> Iterator[Row]:
    for one in graph.edges():
        yield (one.kind, one.source, one.target, one.count, one.type, one.importance, one.about)
