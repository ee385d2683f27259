"""A store of any size in seconds: a small one that was indexed for real, its rows multiplied by SQL.

Every copy has ids of its own and the same text, so each is as sound as the first; all checks of ``verify`` pass.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from ecphoryrag.memory import Memory
from ecphoryrag.models.none import NoEncoder
from ecphoryrag.settings import Settings

PEOPLE = (
    "Marie Curie",
    "Ada Lovelace",
    "Charles Babbage",
    "Lise Meitner",
    "Emmy Noether",
    "Grace Hopper",
    "Alan Turing",
)
PLACES = ("Warsaw", "London", "Vienna", "Berlin", "New York", "Bletchley Park", "Uppsala", "Göttingen", "Paris")
SEED_DOCUMENTS = 500

_COPY = """
INSERT INTO documents (row, id, content_hash, extractor, title, source, metadata, headings, characters, text)
SELECT row + :by, id || ' ' || :turn, content_hash, extractor, title, source, metadata, headings, characters, text
FROM documents WHERE row <= :documents;
INSERT INTO chunks (row, document, ordinal, start, stop, headings, words, vector)
SELECT row + :chunks_by, document + :by, ordinal, start, stop, headings, words, vector FROM chunks WHERE row <= :chunks;
INSERT INTO search (rowid, title, body)
SELECT c.row, d.title, substr(d.text, c.start + 1, c.stop - c.start)
FROM chunks c JOIN documents d ON d.row = c.document WHERE c.row > :chunks_by;
INSERT INTO mentions (chunk, number, entity, field, start, stop, type, importance, about, told, length, description)
SELECT chunk + :chunks_by, number, entity, field, start, stop, type, importance, about, told, length, description
FROM mentions WHERE chunk <= :chunks;
INSERT INTO aliases SELECT chunk + :chunks_by, number, one, other FROM aliases WHERE chunk <= :chunks;
"""


def make_large_store(path: Path, chunks: int) -> int:
    """A store with at least so many chunks, without vectors; returns how many."""
    with Memory.open(path, settings=Settings(encoder="none", generator="none"), encoder=NoEncoder()) as memory:
        memory.add([{"id": f"d{at}", "title": title_of(at), "text": text_of(at)} for at in range(SEED_DOCUMENTS)])
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        counted: Any = connection.execute("SELECT max(row), (SELECT max(row) FROM chunks) FROM documents").get
        documents, first = counted
        there, turn = first, 0
        with connection:
            while there < chunks:
                turn += 1
                bindings = {"by": turn * documents, "chunks_by": turn * first, "documents": documents, "chunks": first}
                connection.execute(_COPY, bindings | {"turn": turn})
                there += first
            connection.execute("UPDATE properties SET value = value + 1 WHERE name = 'generation'")
            connection.execute("UPDATE properties SET value = hex(randomblob(8)) WHERE name = 'state'")
    return int(there)


def title_of(number: int) -> str:
    """Some repeat."""
    return f"{PEOPLE[number % len(PEOPLE)]} {number % 50}"


def text_of(number: int) -> str:
    """A short text that is one chunk."""
    one, other = PEOPLE[number % len(PEOPLE)], PEOPLE[number // 7 % len(PEOPLE)]
    place = PLACES[number % len(PLACES)]
    return f"{one} met {other} in {place} in {1800 + number % 200}. They spoke of Engine {number} and of {place}."
