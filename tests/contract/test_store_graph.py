"""The graph of a store as other tools read it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from pyarrow import parquet

from ecphoryrag.errors import StoreError
from ecphoryrag.store import export_graph, open_store
from tests.support.indexed_documents import ENCODER, EXTRACTOR, indexed_document, sample

ODD = "Ada Byron met Charles Babbage.\r\nA \x01 bell \x07 rang for Old Town & <New Town> \uffff."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "test.ecphory"
    store = open_store(place, ENCODER.identity, EXTRACTOR)
    for document in (*sample(), indexed_document("odd \x1b]", ODD)):
        store.commit(document)
    store.close()
    return place


def read(path: Path) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """What the store itself says: the nodes by their names in the graph, and the edges."""
    store = open_store(path, ENCODER.identity, EXTRACTOR, create=False, read_only=True)
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[dict[str, Any]] = []
    try:
        with store.reading() as view:
            snapshot = view.snapshot
            for at, id_ in enumerate(snapshot.document_ids):
                nodes[f"d{at}"] = {"kind": "document", "id": id_}
            for at, stored in enumerate(view.chunks(range(snapshot.chunk_count))):
                nodes[f"c{at}"] = {"kind": "chunk", "text": stored.chunk.text, "document": stored.chunk.document_id}
                edges.append({"kind": "part", "ends": (f"d{snapshot.chunk_documents[at]}", f"c{at}")})
            for at, entity in enumerate(view.entities(range(len(snapshot.entity_keys)))):
                nodes[f"e{at}"] = {"kind": "entity", "key": entity.key, "label": entity.name}
            for kind in ("mentions", "linked"):
                cells = getattr(snapshot, kind).tocoo()
                for row, column, count in zip(cells.row, cells.col, cells.data, strict=True):
                    name = "mention" if kind == "mentions" else kind
                    edges.append({"kind": name, "ends": (f"c{row}", f"e{column}"), "count": int(count)})
            edges.extend({"kind": "alias", "ends": (f"e{one}", f"e{other}")} for one, other in snapshot.aliases)
    finally:
        store.close()
    return nodes, edges


def clean(text: str) -> str:
    return "".join("\ufffd" if sign in "\x01\x07\x1b\uffff" else sign for sign in text)


def test_networkx_reads_the_whole_graph(path: Path, tmp_path: Path) -> None:
    report = export_graph(path, tmp_path / "g.graphml", "graphml")
    graph = nx.read_graphml(tmp_path / "g.graphml")
    nodes, edges = read(path)
    assert report.replaced > 3
    assert set(graph.nodes) == set(nodes)
    for name, expected in nodes.items():
        found = graph.nodes[name]
        assert {key: found.get(key, "") for key in expected} == {key: clean(value) for key, value in expected.items()}
    assert report.edges == graph.number_of_edges() == len(edges)
    for edge in edges:
        found = graph.edges[edge["ends"]]
        assert found["kind"] == edge["kind"]
        if edge["kind"] == "mention":
            assert found["count"] == edge["count"]
            assert found["importance"] in range(1, 6)
    assert {edge["kind"] for edge in edges} >= {"part", "mention"}


def test_the_tables_hold_what_the_graph_holds(path: Path, tmp_path: Path) -> None:
    report = export_graph(path, tmp_path / "tables", "parquet")
    nodes, edges = read(path)
    tables = {file.stem: parquet.read_table(file).to_pylist() for file in (tmp_path / "tables").iterdir()}
    assert set(tables) == {"documents", "chunks", "entities", "mentions", "edges"}
    assert [row["id"] for row in tables["documents"]] == [one["id"] for one in nodes.values() if "id" in one]
    assert [row["text"] for row in tables["chunks"]] == [one["text"] for one in nodes.values() if "text" in one]
    assert [row["key"] for row in tables["entities"]] == [one["key"] for one in nodes.values() if "key" in one]
    assert len(tables["edges"]) == len(edges) == report.edges
    texts = {row["node"]: row["text"] for row in tables["chunks"]}
    starts = {row["node"]: row["start"] for row in tables["chunks"]}
    for row in tables["mentions"]:
        if row["field"] == "text":
            start = starts[row["chunk"]]
            assert texts[row["chunk"]][row["start"] - start : row["end"] - start] == row["name"]
    json.loads(tables["documents"][0]["metadata"])


def test_equal_stores_give_equal_bytes(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.ecphory"
    store = open_store(other, ENCODER.identity, EXTRACTOR)
    for document in (indexed_document("odd \x1b]", ODD), *reversed(sample())):
        store.commit(document)
    store.close()
    one, two = io.StringIO(), io.StringIO()
    export_graph(path, one, "graphml")
    export_graph(other, two, "graphml")
    assert one.getvalue() == two.getvalue()
    for name, place in (("a", path), ("b", other)):
        export_graph(place, tmp_path / name, "parquet")
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_an_empty_store_has_an_empty_graph(tmp_path: Path) -> None:
    open_store(tmp_path / "s", ENCODER.identity, EXTRACTOR).close()
    assert export_graph(tmp_path / "s", tmp_path / "g", "graphml").edges == 0
    assert nx.read_graphml(tmp_path / "g").number_of_nodes() == 0
    export_graph(tmp_path / "s", tmp_path / "p", "parquet")
    assert parquet.read_table(tmp_path / "p" / "edges.parquet").num_rows == 0


def test_nothing_is_written_over(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    for target in (path, tmp_path):
        with pytest.raises(StoreError):
            export_graph(path, target, "parquet")
        with pytest.raises(StoreError):
            export_graph(path, target, "graphml")
    with pytest.raises(StoreError):
        export_graph(path, tmp_path / "none" / "x", "graphml")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
