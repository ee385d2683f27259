"""Queries whose rows have the types that the tables' STRICT declarations guarantee, which no type checker can see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from ecphoryrag.errors import StoreDamaged

Row = tuple[Any, ...]
Bindable = int | float | str | bytes | None


def rows(connection: apsw.Connection, query: str, bindings: Sequence[Bindable] = ()) -> Iterator[Row]:
    """All rows, as they come."""
    cursor: Any = connection.execute(query, tuple(bindings))
    return iter(cursor)


def row(connection: apsw.Connection, query: str, bindings: Sequence[Bindable] = ()) -> Row | None:
    """The first row, if there is one."""
    return next(rows(connection, query, bindings), None)


def one(connection: apsw.Connection, query: str, bindings: Sequence[Bindable] = ()) -> Row:
    """The first row, which the tables' own rules promise. Raises StoreDamaged if it is not there."""
    found = row(connection, query, bindings)
    if found is None:
        raise StoreDamaged(
            "The store is damaged: rows that its tables refer to are missing; restore a copy, or index the documents "
            "into a new store."
        )
    return found


def value(connection: apsw.Connection, query: str, bindings: Sequence[Bindable] = ()) -> Any:
    """The first column of the first row; None without a row."""
    found = row(connection, query, bindings)
    return None if found is None else found[0]
