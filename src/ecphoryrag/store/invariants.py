"""What must hold between the rows of a store: one document at a time, and then between the tables."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import apsw
import numpy as np

from ecphoryrag.errors import StoreDamaged
from ecphoryrag.snapshot import ABOUT_KINDS
from ecphoryrag.store import sql
from ecphoryrag.store.arrays import HALF
from ecphoryrag.store.kept_json import read_headings, read_metadata, read_words
from ecphoryrag.store.lexical import Tokenizer
from ecphoryrag.store.linking import word_hashes
from ecphoryrag.text.keys import name_key
from ecphoryrag.types import Document, Heading

Kind: TypeAlias = Literal[
    "document",
    "metadata",
    "hash",
    "characters",
    "pending",
    "chunk",
    "vector",
    "words",
    "mention",
    "key",
    "alias",
    "failure",
    "fts",
]
"""What of a document is wrong; :mod:`ecphoryrag.store.repair` knows what to do about each."""

UNREADABLE = (apsw.CorruptError, apsw.IOError, UnicodeDecodeError)
"""How a value shows itself that cannot be read."""
PENDING = ""
"""The content hash of a document that is kept, but whose chunks are to be made again from its text."""
LENGTH_TOLERANCE = 0.01
"""How far a vector's length may be from 1: float16 keeps each component to 0.05 %."""
MOST_BYTES = 32768
"""FTS5 cuts longer terms."""
_DOCUMENT = "SELECT {} FROM documents WHERE row = ?"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a document."""

    kind: Kind
    what: str
    ordinal: int | None = None
    """Of the chunk; None for the document."""
    chunk: int | None = None
    """The chunk's row."""


@dataclass(frozen=True, slots=True)
class Read:
    """What could be read of a document; None for what could not."""

    row: int
    id: str | None
    title: str | None
    text: str | None
    source: str | None
    metadata: dict[str, Any] | None
    headings: tuple[Heading, ...] | None
    content_hash: str | None
    characters: int | None

    @property
    def document(self) -> Document | None:
        """The document, if all of it could be read."""
        if self.id is None or self.title is None or self.text is None or self.metadata is None or self.headings is None:
            return None
        return Document(self.id, self.text, self.title, self.metadata, self.headings, self.source)

    @property
    def shown(self) -> str:
        """How to name it."""
        return f"row {self.row}" if self.id is None else self.id


def read_leniently(connection: apsw.Connection, row: int) -> tuple[Read, list[Fault]]:
    """The document in this row, column by column, so that one that cannot be read hides no other."""
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for name in ("id", "title", "text", "source", "metadata", "headings", "content_hash", "characters"):
        try:
            values[name] = sql.value(connection, _DOCUMENT.format(name), (row,))
        except UNREADABLE as error:
            values[name] = None
            kind: Kind = "document" if name in ("id", "text") else "metadata"
            faults.append(Fault(kind, f"its {name} cannot be read ({error})"))
    metadata = _parsed(values["metadata"], read_metadata)
    if metadata is None and values["metadata"] is not None:
        faults.append(Fault("metadata", "its metadata are no JSON object"))
    headings = _parsed(values["headings"], read_headings)
    if headings is None and values["headings"] is not None:
        faults.append(Fault("metadata", "its headings are no list of headings"))
    read = Read(
        row,
        values["id"],
        values["title"],
        values["text"],
        values["source"],
        metadata,
        headings,
        values["content_hash"],
        values["characters"],
    )
    return read, faults


_Kept = TypeVar("_Kept")


def _parsed(value: str | None, read: Callable[[str], _Kept]) -> _Kept | None:
    """What is kept as JSON, or None if it is not what it must be."""
    try:
        return read(value or "")
    except StoreDamaged:
        return None


def examine_document(connection: apsw.Connection, row: int, dimension: int | None) -> tuple[Read, list[Fault]]:
    """All that is wrong with one document and what was derived from it, its place in the lexical index apart.

    ``dimension`` is that of the vectors; None if the store does not say.
    """
    read, faults = read_leniently(connection, row)
    document = read.document
    if document is not None:
        faults += _document_faults(read, document)
    try:
        faults += _chunk_faults(connection, read, dimension)
    except UNREADABLE as error:
        faults.append(Fault("chunk", f"its chunks cannot be read ({error})"))
    return read, faults


def _document_faults(read: Read, document: Document) -> Iterator[Fault]:
    if read.content_hash == PENDING:
        yield Fault("pending", "its chunks are to be made again from its text")
    elif read.content_hash != document.content_hash:
        yield Fault("hash", "its content is not what was added: the content hash differs")
    if read.characters != len(document.text):
        yield Fault("characters", f"it is said to have {read.characters} characters, and has {len(document.text)}")
    for heading in document.headings:
        if document.text[heading.start : heading.end] != heading.text:
            yield Fault("metadata", f"the heading {heading.text!a} does not stand where it is said to")
            return


def _chunk_faults(connection: apsw.Connection, read: Read, dimension: int | None) -> Iterator[Fault]:
    query = "SELECT row, ordinal, start, stop, headings, words, vector FROM chunks WHERE document = ? ORDER BY ordinal"
    found = list(sql.rows(connection, query, (read.row,)))
    for at, (row, ordinal, start, stop, headings, words, vector) in enumerate(found):
        if ordinal != at:
            yield Fault("chunk", f"chunk {ordinal} stands where chunk {at} should", ordinal, row)
        if _parsed(headings, read_words) is None:
            yield Fault("chunk", "its headings are no list of texts", ordinal, row)
        wrong = vector_fault(vector, dimension)
        if wrong:
            yield Fault("vector", wrong, ordinal, row)
        if read.text is None or read.title is None:
            continue
        if not 0 <= start <= stop <= len(read.text):
            yield Fault("chunk", f"its span {start}:{stop} lies outside the text", ordinal, row)
            continue
        if words != word_hashes(read.text[start:stop]).astype("<u4").tobytes():
            yield Fault("words", "its words are not those of its text", ordinal, row)
        try:
            yield from _extraction_faults(connection, read.title, read.text, ordinal, row)
        except UNREADABLE as error:
            yield Fault("mention", f"its mentions cannot be read ({error})", ordinal, row)


def vector_fault(vector: bytes, dimension: int | None) -> str | None:
    """What is wrong with a vector as the store keeps it; None if nothing is."""
    if dimension is None:
        return None
    if len(vector) != HALF.itemsize * dimension:
        return f"its vector has {len(vector)} bytes, not those of {dimension} dimensions"
    values = np.frombuffer(vector, HALF).astype(np.float32)
    if not np.isfinite(values).all():
        return "its vector is not finite"
    length = float(np.linalg.norm(values))
    if length and abs(length - 1) > LENGTH_TOLERANCE:
        return f"its vector has length {length:.3f}, neither 1 nor 0"
    return None


def _extraction_faults(connection: apsw.Connection, title: str, text: str, ordinal: int, chunk: int) -> Iterator[Fault]:
    query = (
        "SELECT number, CAST(key AS BLOB), field, m.start, stop, importance, about, told, length, type, description "
        "FROM mentions m LEFT JOIN entities e ON e.row = entity WHERE chunk = ? ORDER BY number"
    )
    count = 0
    for number, key, field, start, stop, importance, about, told, length, *_ in sql.rows(connection, query, (chunk,)):
        place = text if field else title
        named = f"mention {number}"
        if number != count:
            yield Fault("mention", f"{named} stands where mention {count} should", ordinal, chunk)
        count = number + 1
        if field not in (0, 1) or not 0 <= about <= len(ABOUT_KINDS) or not 1 <= importance <= 5:
            yield Fault("mention", f"{named} has a field, importance or kind that there is not", ordinal, chunk)
        elif not 0 <= start < stop <= len(place):
            yield Fault("mention", f"the span {start}:{stop} of {named} lies outside its text", ordinal, chunk)
        elif key is None or key != name_key(place[start:stop]).encode("utf-8"):
            yield Fault(
                "key", f"{named} stands at {place[start:stop]!a}, which is not its entity's name", ordinal, chunk
            )
        if (told is None) != (length is None) or (told is not None and not 0 <= told < told + length <= len(text)):
            yield Fault("mention", f"the description of {named} lies outside the text", ordinal, chunk)
    aliases = list(sql.rows(connection, "SELECT number, one, other FROM aliases WHERE chunk = ? ORDER BY 1", (chunk,)))
    if [number for number, *_ in aliases] != list(range(len(aliases))) or not all(a and b for _, a, b in aliases):
        yield Fault("alias", "its aliases are not numbered in order, or empty", ordinal, chunk)
    failure = sql.row(connection, "SELECT reason FROM failures WHERE chunk = ?", (chunk,))
    if failure is not None and (count or aliases or not failure[0]):
        yield Fault("failure", "it is said to have no extraction, and has one, or no reason", ordinal, chunk)


def index_marks(connection: apsw.Connection) -> dict[int, int]:
    """For each row that the lexical index knows a mark of all its terms with their places.

    Wants the table ``temp.occurrences``. A sum of checksums, so that neither the index nor the texts need be held.
    """
    marks: dict[int, int] = {row: 0 for (row,) in sql.rows(connection, "SELECT id FROM search_docsize")}
    for term, row, column, offset in sql.rows(connection, "SELECT term, doc, col, offset FROM temp.occurrences"):
        marks[row] = marks.get(row, 0) + _mark(term.encode("utf-8"), column, offset)
    return marks


def text_mark(tokenizer: Tokenizer, title: str, body: str) -> int:
    """The mark that :func:`index_marks` must have for a chunk."""
    return sum(
        _mark(term.encode("utf-8")[:MOST_BYTES], column, offset)
        for column, text in (("title", title), ("body", body))
        for offset, term in enumerate(tokenizer(text))
    )


def _mark(term: bytes, column: str, offset: int) -> int:
    return zlib.crc32(term + f"\0{column}\0{offset}".encode()) + 1


def index_faults(connection: apsw.Connection) -> Iterator[tuple[Read, Fault]]:
    """Chunks of which the lexical index holds other terms than their texts have; wants ``temp.occurrences``."""
    tokenizer = Tokenizer(connection)
    marks = index_marks(connection)
    for (row,) in list(sql.rows(connection, "SELECT row FROM documents ORDER BY row")):
        read, _ = read_leniently(connection, row)
        query = "SELECT row, ordinal, start, stop FROM chunks WHERE document = ? ORDER BY ordinal"
        for chunk, ordinal, start, stop in list(sql.rows(connection, query, (row,))):
            mark = marks.pop(chunk, None)
            if mark is None:
                yield read, Fault("fts", "the lexical index does not know it", ordinal, chunk)
            elif read.title is None or read.text is None:
                continue
            elif mark != text_mark(tokenizer, read.title, read.text[start:stop]):
                yield read, Fault("fts", "the lexical index holds other words than its text has", ordinal, chunk)
    for chunk in marks:
        nothing = Read(chunk, None, None, None, None, None, None, None, None)
        yield nothing, Fault("fts", "the lexical index knows a chunk that is not there", None, chunk)


TABLES_AT_ODDS = (
    ("orphan", "SELECT count(*) FROM chunks WHERE document NOT IN (SELECT row FROM documents)", "chunks", "document"),
    ("orphan", "SELECT count(*) FROM mentions WHERE chunk NOT IN (SELECT row FROM chunks)", "mentions", "chunk"),
    ("entity", "SELECT count(*) FROM mentions WHERE entity NOT IN (SELECT row FROM entities)", "mentions", "entity"),
    ("orphan", "SELECT count(*) FROM aliases WHERE chunk NOT IN (SELECT row FROM chunks)", "aliases", "chunk"),
    ("orphan", "SELECT count(*) FROM failures WHERE chunk NOT IN (SELECT row FROM chunks)", "failures", "chunk"),
    ("orphan", "SELECT count(*) FROM completions WHERE chunk NOT IN (SELECT row FROM chunks)", "completions", "chunk"),
    ("orphan", "SELECT count(*) FROM next_vectors WHERE chunk NOT IN (SELECT row FROM chunks)", "vectors", "chunk"),
    (
        "orphan",
        "SELECT count(*) FROM decided_keys WHERE decision NOT IN (SELECT number FROM decisions)",
        "decided_keys",
        "decision",
    ),
    (
        "orphan",
        "SELECT count(*) FROM decided_places WHERE decision NOT IN (SELECT number FROM decisions)",
        "decided_places",
        "decision",
    ),
    (
        "extractor",
        "SELECT count(*) FROM documents WHERE extractor NOT IN (SELECT row FROM extractors)",
        "documents",
        "extractor",
    ),
    (
        "extractor",
        "SELECT count(*) FROM completions WHERE extractor NOT IN (SELECT row FROM extractors)",
        "completions",
        "extractor",
    ),
)
"""Kind of flaw, how many rows have it, what these rows are, and what they lack."""
UNNAMED = "SELECT count(*) FROM entities WHERE row NOT IN (SELECT entity FROM mentions)"
"""Entities that nothing mentions."""
INDEX_ROWS = (
    "SELECT (SELECT count(*) FROM chunks WHERE row NOT IN (SELECT id FROM search_docsize)), "
    "(SELECT count(*) FROM search_docsize WHERE id NOT IN (SELECT row FROM chunks))"
)
"""Chunks that the lexical index does not know, and rows of it that are no chunks."""
PROPERTIES = ("store", "generation", "state", "forgotten", "flushes", "writer", "encoder")
"""What every store says of itself."""
PROPERTIES_AT_ODDS = """
SELECT count(*) FROM properties WHERE (name IN ('store', 'state') AND typeof(value) != 'text')
OR (name IN ('generation', 'forgotten', 'flushes') AND typeof(value) != 'integer')
"""
