"""All that a store holds, in a form that ``==`` compares: without row numbers and what counts the commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

_QUERIES = {
    "documents": "SELECT d.id, content_hash, identity, title, source, metadata, headings, characters, text "
    "FROM documents d JOIN extractors e ON e.row = extractor",
    "chunks": "SELECT d.id, ordinal, start, stop, c.headings, words, vector "
    "FROM chunks c JOIN documents d ON d.row = document",
    "mentions": "SELECT d.id, ordinal, number, key, field, m.start, m.stop, type, importance, about, told, length, "
    "description FROM mentions m JOIN entities e ON e.row = entity JOIN chunks c ON c.row = chunk "
    "JOIN documents d ON d.row = document",
    "aliases": "SELECT d.id, ordinal, number, one, other FROM aliases JOIN chunks c ON c.row = chunk "
    "JOIN documents d ON d.row = document",
    "failures": "SELECT d.id, ordinal, reason FROM failures JOIN chunks c ON c.row = chunk "
    "JOIN documents d ON d.row = document",
    "completions": "SELECT d.id, ordinal, identity FROM completions p JOIN chunks c ON c.row = chunk "
    "JOIN documents d ON d.row = document JOIN extractors e ON e.row = p.extractor",
    "entities": "SELECT key FROM entities",
    "extractors": "SELECT identity FROM extractors",
    "terms": "SELECT term, d.id, ordinal, col, offset FROM temp.terms JOIN chunks c ON c.row = doc "
    "JOIN documents d ON d.row = document",
}


def tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each table, in order, with ids in place of row numbers; checks the file as well."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, search, instance)")
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    found = {name: sorted(connection.execute(query).fetchall(), key=repr) for name, query in _QUERIES.items()}
    connection.close()
    return found
