"""Queries whose rows have the types that the tables' STRICT declarations guarantee, which no type checker can see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

Row = tuple[Any, ...]
Bindable = int | float | str | bytes | None


def rows(connection: apsw.Connection, query: str, bindings: Sequence[Bindable] = ()) -> Iterator[Row]:
    """All rows, as they come."""
    cursor: Any = connection.execute(query, tuple(bindings))
    return iter(cursor)


def row(connection: apsw.Connection, query: str, bindings: Sequence[Bindable] = ()) -> Row | None:
    """The first row, if there is one."""
    return next(rows(connection, query, bindings), None)


def value(connection: apsw.Connection, query: str, bindings: Sequence[Bindable] = ()) -> Any:
    """The first column of the first row; None without a row."""
    found = row(connection, query, bindings)
    return None if found is None else found[0]
