"""Which documents the last commits changed, so that arrays of an earlier state can be brought up to date.

Each commit that says which documents it changes leaves a property ``change N`` for the generation N that it made: the
state before it, the state after it, and the rows of these documents. States are random words, so a chain of such
entries from one state to another holds only if nothing else was committed between them: a commit that does not say
what it changes, or one of a program that knows nothing of this, leaves no entry or a state that no entry names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from ecphoryrag.store import sql

KEPT = 128
"""Commits that are remembered."""
MOST_DOCUMENTS = 64
"""Of one commit; what changes more is not put down."""


def note_change(
    connection: apsw.Connection, generation: int, states: tuple[str, str], documents: Sequence[int] | None
) -> None:
    """Put down what a commit changes, None if that is not known, and drop what is too old; in its transaction.

    ``states`` are those before and after it.
    """
    connection.execute("DELETE FROM properties WHERE name = ?", (_name(generation - KEPT),))
    if documents is not None and len(documents) <= MOST_DOCUMENTS:
        value = json.dumps([*states, sorted(set(documents))])
        connection.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (_name(generation), value))


def changed_since(
    connection: apsw.Connection, now: tuple[int, str], then: tuple[int, str], most: int
) -> frozenset[int] | None:
    """The rows of all documents that were changed between two states, each a generation and its word.

    None if that is not known, or if there are more than ``most``.
    """
    if not 0 < now[0] - then[0] <= KEPT:
        return None
    state, changed = then[1], set[int]()
    for generation in range(then[0] + 1, now[0] + 1):
        entry = _entry(sql.value(connection, "SELECT value FROM properties WHERE name = ?", (_name(generation),)))
        if entry is None or entry[0] != state:
            return None
        state = entry[1]
        changed.update(entry[2])
        if len(changed) > most:
            return None
    return frozenset(changed) if state == now[1] else None


def _name(generation: int) -> str:
    return f"change {generation}"


def _entry(value: object) -> tuple[str, str, list[int]] | None:
    """What an entry says; None for what no commit writes."""
    try:
        before, after, rows = json.loads(value) if isinstance(value, str) else (None, None, None)
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(before, str) or not isinstance(after, str) or not isinstance(rows, list):
        return None
    return (before, after, rows) if all(isinstance(row, int) for row in rows) else None
