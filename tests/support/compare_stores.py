"""Whether two stores hold the same: by id and content, never by row number, order of adding or generation.

    assert differences(one, other) == []

Reads every table as it is, so that nothing that the store's own readers pass over is passed over here, and a table
added later is compared without a change here: what refers to a row is read as what it refers to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import apsw

Row: TypeAlias = tuple[object, ...]
Contents: TypeAlias = Mapping[str, Mapping[str, Counter[Row]]]
"""For each table and each document (or "" for what belongs to none) its rows."""

_CHUNK = "FROM chunks c JOIN documents d ON d.row = c.document WHERE c.row = t.chunk"
_REFERENCES = {
    "document": "(SELECT id FROM documents d WHERE d.row = t.document)",
    "chunk": f"(SELECT c.ordinal {_CHUNK})",
    "entity": "(SELECT key FROM entities e WHERE e.row = t.entity)",
    "extractor": "(SELECT identity FROM extractors x WHERE x.row = t.extractor)",
}
_OWNER = {
    "document": _REFERENCES["document"],
    "chunk": f"(SELECT d.id {_CHUNK})",
    "id": "t.id",
}
_HISTORY = frozenset({"migrations"})
"""When something happened rather than what is there."""
_PROPERTIES_OF_ONE = ("store", "generation", "state", "flushes", "forgotten", "writer")
"""Of one store alone: its name, its age, who writes."""


def contents(path: Path) -> Contents:
    """All that a store holds, with the numbers of rows left out."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return {table: _rows(connection, table) for table in _tables(connection)}


def differences(one: Path, other: Path) -> list[str]:
    """A line for each document's rows of a table that are not the same in both; empty if the stores are equal."""
    left, right = contents(one), contents(other)
    found = [f"table {table}: in one store only" for table in sorted(left.keys() ^ right.keys())]
    for table in sorted(left.keys() & right.keys()):
        mine, theirs = left[table], right[table]
        for owner in sorted(mine.keys() | theirs.keys()):
            a, b = mine.get(owner, Counter()), theirs.get(owner, Counter())
            if a != b:
                found.append(f"{table} of {owner!r}: {_shown(a - b)} against {_shown(b - a)}")
    return found


def _tables(connection: apsw.Connection) -> list[str]:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")]
    virtual = [
        name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage = 0")
    ]
    derived = {name for name in names for index in virtual if name == index or str(name).startswith(f"{index}_")}
    left_out = derived | _HISTORY
    return [str(name) for name in names if name not in left_out and not str(name).startswith("sqlite_")]


def _rows(connection: apsw.Connection, table: str) -> dict[str, Counter[Row]]:
    columns = [str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
    owner = next((_OWNER[column] for column in columns if column in _OWNER), "''")
    read = ", ".join(_REFERENCES.get(column, f"t.{column}") for column in columns if column != "row")
    kept = ""
    if table == "properties":
        kept = f"WHERE name NOT LIKE 'change %' AND name NOT IN ({', '.join(map(repr, _PROPERTIES_OF_ONE))})"
    elif table == "extractors":
        kept = "WHERE row IN (SELECT extractor FROM documents)"
    found: dict[str, Counter[Row]] = {}
    for of, *row in connection.execute(f"SELECT {owner}, {read} FROM {table} t {kept}"):
        found.setdefault(str(of), Counter())[tuple(row)] += 1
    return found


def _shown(rows: Counter[Row], most: int = 3) -> str:
    first = [repr(row)[:200] for row, _ in list(rows.items())[:most]]
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return f"[{', '.join(first)}{more}]"
