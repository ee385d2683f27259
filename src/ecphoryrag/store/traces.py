"""What of documents can be told in a file's bytes: their words, runs of their text, and numbers made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import apsw

from ecphoryrag.store import sql
from ecphoryrag.store.entities import read_entities
from ecphoryrag.store.entity_vectors import entity_text, text_hash
from ecphoryrag.store.lexical import Tokenizer
from ecphoryrag.store.raw_bytes import SHORTEST, found_in, prepared
from ecphoryrag.store.resolving import read_resolution

MOST = 20_000
"""Needles searched for; of longer documents every second, third, ... is taken, and the receipt says how many."""
RUN = 40
"""Characters of a run of text: a sentence's part that no other document has unless it was copied."""
NUMBERS = 16
"""Bytes of a run of word hashes or of a vector."""
_BLOCK = 2**20
_WORD = re.compile(r"\w+")
_RUN = re.compile(r'[^"\\\x00-\x1f\x7f]{40}')
"""Without what JSON writes otherwise."""
_KEYS = """
SELECT DISTINCT key FROM mentions m JOIN chunks c ON c.row = chunk JOIN entities e ON e.row = entity WHERE document = ?
"""
_STRINGS = (
    "SELECT id, title, text, metadata, headings, source, content_hash FROM documents WHERE row = ?",
    "SELECT headings FROM chunks WHERE document = ?",
    "SELECT DISTINCT type, description FROM mentions m JOIN chunks c ON c.row = chunk WHERE document = ?",
    "SELECT one, other FROM aliases JOIN chunks c ON c.row = chunk WHERE document = ?",
    "SELECT reason FROM failures JOIN chunks c ON c.row = chunk WHERE document = ?",
    _KEYS,
)
_NUMBERS = (
    "SELECT words FROM chunks WHERE document = ?",
    "SELECT vector FROM chunks WHERE document = ?",
    "SELECT n.vector FROM next_vectors n JOIN chunks c ON c.row = chunk WHERE document = ?",
)


@dataclass(slots=True)
class Traces:
    """What was read of documents before they were deleted."""

    words: dict[str, None] = field(default_factory=dict)
    runs: dict[str, None] = field(default_factory=dict)
    numbers: dict[bytes, None] = field(default_factory=dict)
    keys: dict[str, None] = field(default_factory=dict)
    """Of the entities that they mention."""
    encoded: dict[bytes, None] = field(default_factory=dict)
    """Hashes of what was encoded of these entities."""

    def add_text(self, text: str) -> None:
        """Take the words and runs of a text."""
        self.words.update(dict.fromkeys(_WORD.findall(text)))
        self.runs.update(dict.fromkeys(_RUN.findall(text)))

    def add_document(self, connection: apsw.Connection, row: int) -> None:
        """Take all that the store holds of the document in this row, but for what was encoded of its entities."""
        for query in _STRINGS:
            for values in sql.rows(connection, query, (row,)):
                for value in values:
                    if value:
                        self.add_text(value)
                        if value.startswith(("{", "[")):
                            self.add_text(" ".join(_texts(json.loads(value))) if _is_json(value) else "")
        for query in _NUMBERS:
            for (value,) in sql.rows(connection, query, (row,)):
                if len(value) >= NUMBERS and any(value[:NUMBERS]):
                    self.numbers[value[:NUMBERS]] = None
        self.keys.update((key, None) for (key,) in sql.rows(connection, _KEYS, (row,)))

    def add_encoded(self, connection: apsw.Connection) -> None:
        """Take what was encoded of the entities of all documents taken so far: once, for many share the same ones."""
        self.encoded.update(dict.fromkeys(_encoded(connection, list(self.keys))))


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


@dataclass(frozen=True, slots=True)
class Needles:
    """What is searched for, once the documents are deleted: nothing of it stands in any row that is left."""

    all: tuple[bytes, ...]
    texts: tuple[bytes, ...]
    """Those of them that are whole words, or runs of text."""
    shared: int
    """How many more there are that a row holds."""
    left_out: int
    """How many there were beyond ``MOST``."""


def distinctive(connection: apsw.Connection, traces: Traces) -> Needles:
    """What of the traces no row that is left accounts for; wants ``temp.vocabulary``."""
    tokenizer = Tokenizer(connection)
    known: dict[str, bool] = {}
    texts: dict[bytes, None] = {data: None for run in traces.runs for data in _spellings(run)}
    others: dict[bytes, None] = dict.fromkeys(traces.numbers)
    for word in traces.words:
        gone = [term for term in tokenizer(word) if not _is_known(connection, known, term)]
        if not gone:
            continue
        texts.update(dict.fromkeys(_spellings(word)))
        for term in gone:  # in the index, a word lacks the beginning that it shares with the one before
            data = term.encode("utf-8")
            others.update(dict.fromkeys(part for part in (data, data[1:], data[2:]) if len(part) >= SHORTEST + 2))
    living = _encoded(connection, list(traces.keys))
    others.update(dict.fromkeys(made for made in traces.encoded if made not in living))
    every = [data for data in {**texts, **others} if len(data) >= SHORTEST]
    step = -(-len(every) // MOST) or 1
    taken = every[::step]
    kept = held(connection, taken)
    left = tuple(data for number, data in enumerate(taken) if number not in kept)
    return Needles(left, tuple(data for data in left if data in texts), len(kept), len(every) - len(taken))


def _is_known(connection: apsw.Connection, known: dict[str, bool], term: str) -> bool:
    if term not in known:
        query = "SELECT 1 FROM temp.vocabulary WHERE term = ?"
        known[term] = sql.value(connection, query, (term,)) is not None
    return known[term]


def _spellings(text: str) -> Iterator[bytes]:
    """As it is, as entity keys and terms have it, and as JSON of ASCII has it."""
    for spelt in dict.fromkeys((text, text.casefold(), text.lower())):
        data = spelt.encode("utf-8", "replace")
        yield data
        if not spelt.isascii():
            yield json.dumps(spelt)[1:-1].encode("ascii")


def _encoded(connection: apsw.Connection, keys: Sequence[str]) -> frozenset[bytes]:
    """Hashes of what is encoded of those of these entities that are there."""
    resolution = read_resolution(connection)
    there = [key for key in keys if resolution is None or key in resolution.shown]
    found = read_entities(connection, resolution, there)
    return frozenset(text_hash(entity_text(one)) for one in found.values())


def held(connection: apsw.Connection, needles: Sequence[bytes]) -> dict[int, str]:
    """For each needle, by its number, that a row holds, the table; the others are traces of what is gone.

    Wants ``temp.vocabulary``, which stands for the lexical index; a connection without a lexical index does not.
    """
    by_start, table = prepared(needles)
    found: dict[int, str] = {}
    if not needles:
        return found
    for name, values in _values(connection):
        for block in _blocks(values):
            for number in found_in(block, by_start, table):
                found.setdefault(number, name)
    return found


def _blocks(values: Iterable[object]) -> Iterator[bytes]:
    parts: list[bytes] = []
    size = 0
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
        parts.append(data)
        size += len(data)
        if size > _BLOCK:
            yield b"\0".join(parts)
            parts, size = [], 0
    yield b"\0".join(parts)


def _values(connection: apsw.Connection) -> Iterator[tuple[str, Iterable[object]]]:
    """Each table with all its values that are texts or bytes; of the lexical index its words."""
    for table, columns in _columns(connection):
        rows = sql.rows(connection, f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 - quoted names
        yield table.strip('"'), (value for row in rows for value in row if isinstance(value, str | bytes))
    if sql.row(connection, "SELECT 1 FROM temp.sqlite_schema WHERE name = 'vocabulary'") is not None:
        yield "search", (term for (term,) in sql.rows(connection, "SELECT term FROM temp.vocabulary"))


def _columns(connection: apsw.Connection) -> Iterable[tuple[str, Sequence[str]]]:
    """Every plain table and its columns, quoted; the lexical index's own tables apart."""
    query = (
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'search%' "
        "AND name NOT LIKE 'sqlite_%' ORDER BY name"
    )
    yield "main.sqlite_schema", ["sql"]
    for (name,) in list(sql.rows(connection, query)):
        found = sql.rows(connection, "SELECT name FROM pragma_table_info(?)", (name,))
        yield _quoted(name), [_quoted(column) for (column,) in found]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
