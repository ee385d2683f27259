"""The graph as GraphML 1.0, for Gephi, NetworkX, yEd and Cytoscape. Written as it is read, so of any size.

All edges are directed, since some readers do not take both kinds in one file; ``alias`` runs from the smaller key to
the greater and means both ways. A value that is empty is left out.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import IO, TypeAlias
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

from ecphoryrag.store.graph import Edge, Graph, as_json

NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
NODE_FIELDS = {
    "kind": "string",
    "label": "string",
    "id": "string",
    "title": "string",
    "source": "string",
    "metadata": "string",
    "content_hash": "string",
    "document": "string",
    "ordinal": "long",
    "start": "long",
    "end": "long",
    "headings": "string",
    "text": "string",
    "key": "string",
    "type": "string",
    "description": "string",
    "importance": "long",
    "aliases": "string",
    "mentions": "long",
    "chunks": "long",
}
EDGE_FIELDS = {"kind": "string", "count": "long", "type": "string", "importance": "long", "about": "string"}
ENDS = {"part": ("d", "c"), "mention": ("c", "e"), "linked": ("c", "e"), "alias": ("e", "e")}
"""The letters before the positions of the nodes that an edge joins."""
LABEL = 80
"""Characters of a chunk that are shown for it."""
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML 1.0 cannot hold in any form (section 2.2, production Char)."""

Values: TypeAlias = Mapping[str, str | int | None]


def write_graphml(graph: Graph, output: IO[str]) -> int:
    """Write it; returns how many characters XML cannot hold and U+FFFD stands for."""
    writer = _Writer(output)
    writer.begin()
    for position, document in graph.documents():
        fields: Values = {
            "kind": "document",
            "label": document.title or document.id,
            "id": document.id,
            "title": document.title,
            "source": document.source,
            "metadata": as_json(dict(document.metadata)) if document.metadata else None,
            "content_hash": document.content_hash,
            "chunks": document.chunks,
        }
        writer.node(f"d{position}", fields)
    for chunk in graph.chunks():
        fields = {
            "kind": "chunk",
            "label": chunk.text[:LABEL],
            "title": chunk.title,
            "document": chunk.document_id,
            "ordinal": chunk.ordinal,
            "start": chunk.start,
            "end": chunk.end,
            "headings": as_json(chunk.headings) if chunk.headings else None,
            "text": chunk.text,
        }
        writer.node(f"c{chunk.position}", fields)
    for position, entity in graph.entities():
        fields = {
            "kind": "entity",
            "label": entity.name,
            "key": entity.key,
            "type": entity.type,
            "description": entity.description,
            "importance": entity.importance,
            "aliases": as_json(entity.aliases) if len(entity.aliases) > 1 else None,
            "mentions": entity.mention_count,
            "chunks": entity.chunk_count,
        }
        writer.node(f"e{position}", fields)
    for edge in graph.edges():
        writer.edge(edge)
    writer.end()
    return writer.replaced


class _Writer:
    def __init__(self, output: IO[str]) -> None:
        self._output = output
        self._xml = XMLGenerator(_Text(output), encoding="utf-8", short_empty_elements=True)
        self.replaced = 0

    def begin(self) -> None:
        """The head, with what each field is called."""
        self._xml.startDocument()
        self._open("graphml", {"xmlns": NAMESPACE})
        for kind, fields in (("node", NODE_FIELDS), ("edge", EDGE_FIELDS)):
            for name, type_ in fields.items():
                self._line()
                self._open("key", {"id": f"{kind[0]}_{name}", "for": kind, "attr.name": name, "attr.type": type_})
                self._xml.endElement("key")
        self._line()
        self._open("graph", {"edgedefault": "directed"})

    def node(self, name: str, fields: Values) -> None:
        """One node."""
        self._line()
        self._open("node", {"id": name})
        self._data("n", fields)
        self._xml.endElement("node")

    def edge(self, edge: Edge) -> None:
        """One edge."""
        source, target = ENDS[edge.kind]
        self._line()
        self._open("edge", {"source": f"{source}{edge.source}", "target": f"{target}{edge.target}"})
        fields: Values = {
            "kind": edge.kind,
            "count": edge.count,
            "type": edge.type,
            "importance": edge.importance,
            "about": edge.about,
        }
        self._data("e", fields)
        self._xml.endElement("edge")

    def end(self) -> None:
        """What closes it."""
        self._line()
        self._xml.endElement("graph")
        self._line()
        self._xml.endElement("graphml")
        self._line()
        self._xml.endDocument()

    def _data(self, kind: str, fields: Values) -> None:
        for name, value in fields.items():
            if value is None or value == "":
                continue
            self._open("data", {"key": f"{kind}_{name}"})
            self._text(str(value))
            self._xml.endElement("data")

    def _text(self, text: str) -> None:
        clean, count = _NO_XML.subn("\ufffd", text)
        self.replaced += count
        first, *rest = clean.split("\r")
        self._xml.characters(first)
        for part in rest:  # a reader would take a bare one for a line feed
            self._xml.ignorableWhitespace("&#13;")
            self._xml.characters(part)

    def _open(self, name: str, attributes: dict[str, str]) -> None:
        self._xml.startElement(name, AttributesImpl(attributes))

    def _line(self) -> None:
        self._xml.ignorableWhitespace("\n")


class _Text(io.TextIOBase):
    """Any stream of text as one that XMLGenerator writes to as it is; it would wrap, and in the end close, others."""

    def __init__(self, output: IO[str]) -> None:
        self._output = output

    def write(self, text: str, /) -> int:
        """Hand it on."""
        return self._output.write(text)
