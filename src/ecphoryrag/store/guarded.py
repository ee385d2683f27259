"""Opening a file that anybody may have made: nothing that its schema says is carried out unless it is our own.

A database can hold views, triggers, generated columns and checks that run when a table is read or written. None of
ours needs them, so they are switched off, and a file that holds anything that no version of this package makes is
refused before a table of it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import apsw

from ecphoryrag.errors import StoreDamaged
from ecphoryrag.store import sql
from ecphoryrag.store.schema import MIGRATIONS, Migration, migrate

_ON = (apsw.SQLITE_DBCONFIG_DEFENSIVE,)
"""No statement may write SQLite's own tables, nor the index's."""
_OFF = (
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
    apsw.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER,
)


def guard(connection: apsw.Connection) -> apsw.Connection:
    """The connection, with all switched off that a hostile file could use; it is to be the first thing done with it."""
    for setting in _ON:
        connection.config(setting, 1)
    for setting in _OFF:
        connection.config(setting, 0)
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


@dataclass(frozen=True, slots=True)
class SchemaFaults:
    """How a file's schema differs from the one that its format has."""

    unknown: tuple[str, ...]
    """What is there and should not be, or not so: ``trigger t``."""
    missing: tuple[str, ...]


def schema_faults(connection: apsw.Connection, format: int) -> SchemaFaults:
    """Compare the schema, statement by statement; what ``ANALYZE`` keeps is let pass."""
    expected, found = _expected(MIGRATIONS[:format]), _schema(connection)
    names = {row[:2] for row in found}
    unknown = [row for row in found if row not in expected]
    missing = [row for row in expected if row[:2] not in names]
    return SchemaFaults(_named(unknown), _named(missing))


def check_schema(connection: apsw.Connection, path: Path, format: int) -> None:
    """Raise StoreDamaged if the file holds what no version makes, or lacks a table."""
    faults = schema_faults(connection, format)
    lost = [name for name in faults.missing if name.startswith("table ")]
    for names, how in ((faults.unknown, "holds what no version of this package makes"), (lost, "lacks")):
        if names:
            raise StoreDamaged(
                f"The store {path} {how}: {', '.join(names[:5])}. It was changed by another program, perhaps to harm: "
                "restore a copy, or index the documents into a new store."
            )


def _named(rows: Sequence[sql.Row]) -> tuple[str, ...]:
    return tuple(f"{kind} {str(name)[:100]!a}" for kind, name, *_ in rows)


def _schema(connection: apsw.Connection) -> list[sql.Row]:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat[14]' ORDER BY name"
    return list(sql.rows(connection, query))


@cache
def _expected(migrations: tuple[Migration, ...]) -> frozenset[sql.Row]:
    fresh = apsw.Connection(":memory:")
    try:
        for migration in migrations:
            migrate(fresh, migration)
        return frozenset(_schema(fresh))
    finally:
        fresh.close()
